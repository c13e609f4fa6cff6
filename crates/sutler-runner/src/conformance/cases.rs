//! List of all cases: generates one test of each per runner.

/// Generates one test per case. Takes an expression that creates a fresh
/// [`Candidate`](crate::conformance::Candidate); it may await.
#[macro_export]
macro_rules! runner_conformance {
    ($fresh:expr) => {
        $crate::runner_conformance! { $fresh =>
            lifecycle: a_run_that_nobody_started_never_started
                a_run_is_seen_running_and_then_finished
                starting_a_run_again_changes_nothing
                another_broker_adopts_a_run_and_hears_it_from_the_beginning
                a_run_that_ended_unwatched_is_read_later
                a_run_that_cannot_be_told_is_lost_and_leaves_nothing_running
                a_stop_of_a_lost_run_leaves_nothing_running
                a_stop_of_a_run_whose_directory_is_gone_leaves_nothing_running
                a_stop_ends_a_start_that_nobody_waits_for
                what_was_cut_short_is_swept_by_the_next_broker
                what_is_removed_is_listed_no_more_and_leaves_nothing
                nobody_listening_is_no_reason_to_stop;
            ends: the_code_of_the_entry_point_is_told
                a_signal_is_no_success
                a_deadline_ends_everything_the_run_started
                a_flood_of_output_does_not_keep_a_run_from_its_deadline
                a_stop_ends_everything_the_run_started
                what_the_entry_point_leaves_behind_is_ended
                what_cannot_be_run_is_refused_with_a_sentence;
            results: the_entry_point_is_given_its_action_and_a_private_file_of_variables
                state_and_secrets_are_given_as_files
                where_there_is_no_state_there_is_no_place_of_it
                the_environment_is_clean_and_says_what_the_run_is
                what_a_run_gives_back_is_read
                a_run_that_failed_is_read_too
                progress_is_heard_while_the_run_goes_on
                a_result_that_is_no_plain_file_is_refused
                what_a_lost_run_left_is_read
                modules_for_playbooks_are_where_ansible_looks
                no_secret_is_in_a_list_of_processes;
            limits: output_is_kept_within_its_limit
                memory_is_limited
                open_files_are_limited
                processes_are_limited
                a_run_has_no_privileges;
        }
    };
    ($fresh:expr => $($file:ident: $($case:ident)+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let candidate = $fresh;
                $crate::conformance::$file::$case(&candidate).await;
            }
        )+)+
    };
}
