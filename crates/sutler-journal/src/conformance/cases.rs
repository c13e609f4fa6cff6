//! The list of all cases, and the macro that makes tests of them.
//!
//! There is one list without exceptions. A behaviour that is written but not listed here
//! fails `every_behaviour_is_listed` at the end of this file.

/// Makes one test per behaviour, each with its own
/// [`Candidate`](crate::conformance::Candidate): pass an expression that creates one (it
/// may `.await`). Use it once per module; the crate needs tokio's `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! store_conformance {
    ($make:expr) => {
        $crate::conformance_tests! { $make;
            commits {
                an_empty_store_holds_nothing,
                a_commit_writes_documents_and_operations_together,
                a_repeated_commit_succeeds_and_changes_nothing,
                a_commit_without_writes_can_be_repeated,
                a_stale_commit_changes_nothing,
                a_stale_commit_is_not_remembered,
                stale_names_the_first_failed_condition,
                writes_are_done_in_their_order,
                writes_without_expectations_replace_and_remove,
            }
            expectations {
                absent_holds_while_there_is_no_document,
                version_holds_for_the_last_writer_only,
                a_document_that_is_gone_has_no_version,
                unchanged_guards_a_document_that_is_only_read,
                a_document_that_is_absent_is_not_unchanged,
                a_version_is_never_reused,
                expectations_do_not_see_the_commits_own_writes,
            }
            names {
                ids_that_look_alike_are_different_documents,
                ids_that_look_alike_are_different_term_values,
                ids_that_look_alike_are_different_lanes,
                term_values_are_any_bytes,
                bodies_are_any_bytes,
                realms_and_kinds_never_see_each_other,
                a_prefix_takes_the_children_and_no_neighbours,
            }
            lists {
                a_list_by_prefix_is_in_order_of_keys,
                a_list_by_term_is_in_order_of_values_then_keys,
                a_range_includes_both_its_ends,
                the_last_page_has_no_next_position,
                a_document_is_found_by_its_present_terms,
                paging_continues_after_a_removed_position,
                operations_are_listed_newest_first,
                scanned_documents_have_their_terms,
            }
            volume {
                pages_among_100_000_documents_are_exact,
                paging_visits_each_document_once_while_others_are_written,
            }
            operations {
                a_new_operation_has_the_requested_fields,
                an_operation_id_is_used_once,
                advancing_replaces_only_the_given_fields,
                a_retry_grows_the_attempt,
                an_absent_operation_cannot_be_advanced,
                an_ended_operation_never_changes,
                waking_makes_claimable_now,
                waking_a_due_operation_keeps_its_order,
                cancelling_marks_and_moves_nothing,
                resealing_changes_nothing_else,
                an_imported_operation_keeps_its_fields,
            }
            claims {
                a_ready_operation_is_claimed_once,
                a_waiting_operation_is_never_claimed,
                nothing_is_claimed_before_it_is_due,
                the_longest_due_comes_first,
                a_claim_is_limited_per_queue,
                a_claim_needs_a_lease,
                a_yielded_operation_can_be_claimed_by_anyone,
                an_operation_that_waits_again_is_claimed_after_a_wake,
                a_claim_returns_a_requested_cancellation,
                an_ended_operation_is_not_claimed,
            }
            leases {
                a_renewed_lease_stays_valid,
                a_paused_workers_renewal_is_lost,
                a_renewal_is_for_one_worker,
                operations_of_a_dead_worker_are_taken_over,
                progress_ends_the_count_of_takeovers,
                takeovers_are_limited_and_ordered_like_other_claims,
                a_release_makes_all_operations_ready,
                a_renewal_returns_cancelled_operations,
                a_renewal_lists_only_operations_that_run,
                a_renewal_sets_the_end_of_the_lease,
            }
            fences {
                a_fence_holds_for_the_present_claim_only,
                a_fence_holds_only_while_the_operation_runs,
                an_expired_lease_writes_nothing,
                a_worker_after_a_takeover_cannot_write,
                a_worker_of_an_operation_that_was_made_to_wait_cannot_write,
                a_claim_in_the_accepting_commit_needs_a_lease,
                a_repeated_fenced_commit_succeeds_after_the_lease,
            }
            feed {
                the_feed_is_in_commit_order,
                the_feed_names_every_subject,
                the_feed_names_the_lane_of_every_operation,
                the_feed_has_nothing_but_applied_commits,
                a_commit_is_never_split,
                a_cursor_can_be_used_again,
                a_cursor_is_as_good_as_its_number,
                a_commit_causes_a_hint_at_the_feed,
                a_commit_in_progress_is_invisible,
                nothing_appears_behind_a_cursor,
                a_trimmed_feed_reports_a_gap,
                a_commit_is_remembered_while_the_feed_has_it,
            }
            sweeps {
                a_poll_returns_every_change_of_its_operation,
                a_sweep_leaves_pinned_and_unfinished_operations,
                a_sweep_counts_from_the_end,
                a_sweep_can_be_for_one_outcome,
                a_sweep_can_be_for_some_lanes,
                a_sweep_is_limited,
                a_sweep_deletes_the_log,
                the_counts_are_by_queue,
                store_info_counts_leases_logs_and_commits,
            }
            logs {
                a_log_is_read_in_order,
                a_log_is_read_from_a_chunk_on,
                a_log_is_bounded,
                a_log_needs_an_operation,
                a_chunk_is_resealed_if_it_is_as_read,
            }
            limits {
                a_hundred_writes_are_accepted,
                more_writes_are_refused,
                a_megabyte_is_the_most,
                terms_are_limited,
                contending_writes_are_refused,
            }
            concurrency {
                independent_lanes_never_conflict,
                write_skew_is_impossible,
                absence_is_guarded_like_presence,
                one_of_many_writers_wins,
                no_update_is_lost,
                a_commit_repeated_at_once_is_applied_once,
                claims_never_overlap,
                exactly_one_of_many_workers_takes_over,
                the_feed_is_stable_while_many_commit,
            }
            concurrent_reads {
                the_feed_is_current_while_many_commit,
                a_page_during_commits_shows_one_moment,
            }
            faults {
                a_commit_cut_before_is_applied_once_by_repeating,
                a_commit_cut_in_the_middle_is_applied_once_by_repeating,
                a_commit_cut_after_is_applied_once_by_repeating,
                an_overtaken_commit_is_never_applied_late,
                a_cut_affects_no_other_commit,
            }
            stalls {
                renewals_and_claims_end_in_time_during_a_stall,
                a_store_serves_after_a_stall,
            }
            restarts {
                everything_acknowledged_survives_a_restart,
                a_commit_can_be_repeated_after_a_restart,
                a_running_operation_is_taken_over_after_a_restart,
            }
            owners {
                a_second_opening_is_refused_or_shares_leases,
                a_second_opening_is_refused_or_shares_commits,
                a_second_opening_is_refused_or_claims_others,
            }
            histories {
                random_histories_match_the_model,
            }
        }
    };
}

/// The tests of a list; used by [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr; $($theme:ident { $($behaviour:ident,)* })*) => {
        $($crate::conformance_tests! { @theme $make; $theme $($behaviour)* })*
    };
    (@theme $make:expr; $theme:ident $($behaviour:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $behaviour() {
                let candidate = $make;
                $crate::conformance::$theme::$behaviour(&candidate).await;
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_behaviour_is_listed() {
        let list = include_str!("cases.rs");
        let root = include_str!("../conformance.rs");
        let themes = [
            ("commits", include_str!("commits.rs")),
            ("expectations", include_str!("expectations.rs")),
            ("names", include_str!("names.rs")),
            ("lists", include_str!("lists.rs")),
            ("volume", include_str!("volume.rs")),
            ("operations", include_str!("operations.rs")),
            ("claims", include_str!("claims.rs")),
            ("leases", include_str!("leases.rs")),
            ("fences", include_str!("fences.rs")),
            ("feed", include_str!("feed.rs")),
            ("sweeps", include_str!("sweeps.rs")),
            ("logs", include_str!("logs.rs")),
            ("limits", include_str!("limits.rs")),
            ("concurrency", include_str!("concurrency.rs")),
            ("concurrent_reads", include_str!("concurrent_reads.rs")),
            ("faults", include_str!("faults.rs")),
            ("stalls", include_str!("stalls.rs")),
            ("restarts", include_str!("restarts.rs")),
            ("owners", include_str!("owners.rs")),
            ("histories", include_str!("histories.rs")),
        ];
        for line in root.lines() {
            if let Some(theme) = line.strip_prefix("pub mod ") {
                let theme = theme.trim_end_matches(';');
                // Records for the tests of stores, not behaviours.
                if theme == "samples" {
                    continue;
                }
                assert!(themes.iter().any(|(name, _)| *name == theme), "{theme}");
            }
        }
        for (theme, source) in themes {
            let behaviours: Vec<&str> = source
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next())
                .collect();
            assert!(!behaviours.is_empty(), "{theme} is empty");
            for behaviour in behaviours {
                let listed = list
                    .lines()
                    .any(|line| line.trim() == format!("{behaviour},"));
                assert!(listed, "{theme}: {behaviour} is not in the list");
            }
        }
    }
}
