//! List of all cases: generates one test of each per runner.

/// Generates one test per case. Takes an expression that creates a fresh
/// [`Candidate`](crate::conformance::Candidate); it may await.
#[macro_export]
macro_rules! runner_conformance {
    ($fresh:expr) => {
        $crate::runner_conformance! { $fresh =>
            lifecycle: a_run_that_was_not_started_is_reported_as_never_started
                a_run_is_first_running_and_then_finished
                starting_a_run_again_changes_nothing
                another_broker_adopts_a_run_and_gets_its_output_from_the_beginning
                a_run_that_ended_unwatched_is_read_later
                a_run_with_an_unknown_end_is_lost_and_leaves_nothing_running
                a_stop_of_a_lost_run_leaves_nothing_running
                a_stop_of_a_run_whose_directory_is_gone_leaves_nothing_running
                a_stop_ends_an_abandoned_start
                leftovers_of_interrupted_runs_are_swept_by_the_next_broker
                a_removed_run_is_not_listed_and_leaves_nothing
                a_missing_reader_does_not_stop_a_run;
            exits: the_exit_code_of_the_entry_point_is_reported
                a_signal_is_not_a_success
                a_deadline_ends_everything_the_run_started
                a_flood_of_output_does_not_keep_a_run_from_its_deadline
                a_stop_ends_everything_the_run_started
                leftover_processes_of_the_entry_point_are_ended
                what_cannot_be_run_is_refused_with_a_sentence;
            results: the_entry_point_is_given_its_action_and_a_private_file_of_variables
                state_and_secrets_are_given_as_files
                without_state_there_is_no_state_location
                the_environment_is_clean_and_describes_the_run
                results_of_a_run_are_read
                a_run_that_failed_is_read_too
                progress_is_reported_while_the_run_continues
                a_result_that_is_not_a_plain_file_is_refused
                results_of_a_lost_run_are_read
                modules_for_playbooks_are_on_the_path_of_ansible
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
