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
                stale_names_the_first_thing_that_does_not_hold,
                writes_are_done_in_their_order,
                writes_without_expectations_replace_and_remove,
            }
            expectations {
                absent_holds_while_there_is_no_document,
                version_holds_for_the_last_writer_only,
                a_document_that_is_gone_has_no_version,
                unchanged_guards_a_document_that_is_only_read,
                a_document_that_is_absent_is_not_unchanged,
                a_version_never_comes_back,
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
                the_last_page_says_that_nothing_follows,
                a_document_is_found_by_its_present_terms,
                paging_goes_on_from_a_place_that_is_gone,
                operations_are_listed_newest_first,
                documents_are_told_with_their_terms,
            }
            volume {
                pages_among_100_000_documents_are_exact,
                paging_visits_each_document_once_while_others_are_written,
            }
            operations {
                a_new_operation_is_as_it_was_asked_for,
                an_operation_id_is_taken_once,
                moving_on_replaces_what_is_given,
                a_retry_grows_the_attempt,
                what_is_not_there_cannot_move_on,
                what_ended_never_changes,
                waking_makes_claimable_now,
                waking_what_is_due_keeps_its_place,
                cancelling_marks_and_moves_nothing,
                sealing_anew_changes_nothing_else,
                an_imported_operation_is_as_it_was,
            }
            claims {
                a_ready_operation_is_handed_out_once,
                a_waiting_operation_is_never_claimed,
                nothing_is_claimed_before_it_is_due,
                the_longest_due_comes_first,
                a_claim_is_limited_per_queue,
                a_claim_needs_a_lease,
                a_yielded_operation_can_be_claimed_by_anyone,
                a_claim_tells_of_a_cancellation,
                what_ended_is_not_claimed,
            }
            leases {
                a_renewed_lease_goes_on,
                a_paused_workers_renewal_is_lost,
                a_renewal_is_for_one_worker,
                work_of_a_dead_worker_is_taken_over,
                progress_ends_the_count_of_takeovers,
                taken_over_work_is_limited_and_ordered_like_any_other,
                a_release_gives_everything_back,
                a_renewal_tells_of_cancellations,
                a_renewal_sets_the_end_of_the_lease,
            }
            fences {
                a_fence_holds_for_the_present_claim_only,
                a_fence_holds_only_while_the_operation_runs,
                an_expired_lease_writes_nothing,
                a_worker_that_was_taken_over_writes_nothing,
                a_claim_in_the_accepting_commit_needs_a_lease,
                a_repeated_fenced_commit_succeeds_after_the_lease,
            }
            feed {
                the_feed_is_in_commit_order,
                the_feed_names_every_subject,
                the_feed_has_nothing_but_applied_commits,
                a_commit_is_never_split,
                a_cursor_can_be_used_again,
                a_commit_under_way_is_invisible,
                nothing_appears_behind_a_cursor,
                a_trimmed_feed_says_so,
                a_commit_is_remembered_while_the_feed_has_it,
            }
            sweeps {
                a_poll_tells_every_change_of_its_operation,
                a_sweep_leaves_what_is_pinned_or_unfinished,
                a_sweep_counts_from_the_end,
                a_sweep_can_be_for_one_outcome,
                a_sweep_can_be_for_some_lanes,
                a_sweep_is_limited,
                a_sweep_takes_the_log_along,
                the_counts_are_by_queue,
                a_survey_tells_what_is_there,
            }
            logs {
                a_log_is_read_in_order,
                a_log_is_read_from_a_chunk_on,
                a_log_is_bounded,
                a_log_needs_an_operation,
            }
            limits {
                a_hundred_writes_are_taken,
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
                one_of_many_heirs_takes_over,
                the_feed_is_stable_while_many_commit,
            }
            faults {
                a_commit_cut_before_is_applied_once_by_repeating,
                a_commit_cut_in_the_middle_is_applied_once_by_repeating,
                a_commit_cut_after_is_applied_once_by_repeating,
                an_overtaken_commit_is_never_applied_late,
                a_cut_disturbs_nothing_else,
            }
            restarts {
                everything_acknowledged_survives_a_restart,
                a_commit_can_be_repeated_after_a_restart,
                what_ran_is_found_again_after_a_restart,
            }
            histories {
                any_history_is_as_the_contract_says,
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
            ("faults", include_str!("faults.rs")),
            ("restarts", include_str!("restarts.rs")),
            ("histories", include_str!("histories.rs")),
        ];
        for line in root.lines() {
            if let Some(theme) = line.strip_prefix("pub mod ") {
                let theme = theme.trim_end_matches(';');
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
