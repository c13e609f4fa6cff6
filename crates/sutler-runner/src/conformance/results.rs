//! Cases: inputs of a run, its results, and who else can read them.

use super::Candidate;
use super::fixture::{
    UNTIL_GO, output_until, run, run_and_read, run_for_output, spec, status_until, vars,
};
use crate::run_spec::SecretFiles;
use crate::runner::{Exit, RunStatus};
use secrecy::SecretString;
use serde_json::json;
use std::collections::BTreeMap;

const CANARY: &str = "canary-4f1c9b";

fn secret(name: &str, key: &str, value: &str) -> SecretFiles {
    SecretFiles {
        name: name.to_owned(),
        keys: BTreeMap::from([(key.to_owned(), SecretString::from(value.to_owned()))]),
    }
}

/// Three arguments: the action, `--extra-vars`, and a file that only the run's user may read.
pub async fn the_entry_point_is_given_its_action_and_a_private_file_of_variables(
    candidate: &dyn Candidate,
) {
    let script = "[ $# = 3 ] && [ \"$1\" = provision ] && [ \"$2\" = --extra-vars ] || exit 9\n\
        file=${3#@}; [ \"$file\" = \"$SUTLER_VARS_FILE\" ] || exit 10\n\
        case $(stat -c %a \"$file\") in ?00) ;; *) exit 11 ;; esac\n\
        cat \"$file\" >\"$SUTLER_RESULT_DIR/state.json\"";
    let mut spec = spec(candidate, script);
    spec.vars = vars(json!({"size": 3, "deep": {"list": [1, "ä", null]}, "_apb_plan_id": "dev"}));
    let result = run_and_read(candidate, &spec).await.expect("read");
    assert_eq!(result.state, Some(spec.vars));
}

/// As files: texts unchanged, including line breaks.
///
/// Regression: R37.
pub async fn state_and_secrets_are_given_as_files(candidate: &dyn Candidate) {
    let script = "cat \"$BUNDLE_STATE_LOCATION/name\"; echo; cat \"$BUNDLE_STATE_LOCATION/count\"; echo\n\
        cat \"$SUTLER_BINDING_STATE_LOCATION/role\"; echo\n\
        cat \"$SUTLER_SECRETS_DIR/apb-db/key.pem\" \"$SUTLER_SECRETS_DIR/apb-mail/token\"";
    let mut spec = spec(candidate, script);
    spec.state = Some(vars(json!({"name": "db-7", "count": 2})));
    spec.binding_state = Some(vars(json!({"role": "reader"})));
    spec.secrets = vec![
        secret("db", "key.pem", "one\ntwo\n"),
        secret("mail", "token", "three"),
    ];
    assert_eq!(
        run_for_output(candidate, &spec).await,
        "db-7\n2\nreader\none\ntwo\nthree"
    );
}

/// No state is different from an empty state.
pub async fn without_state_there_is_no_state_location(candidate: &dyn Candidate) {
    let script = "echo \"[${BUNDLE_STATE_LOCATION-none}]\"";
    assert_eq!(
        run_for_output(candidate, &spec(candidate, script)).await,
        "[none]\n"
    );
}

/// Environment of a run, without the broker's own variables.
pub async fn the_environment_is_clean_and_describes_the_run(candidate: &dyn Candidate) {
    let spec = spec(candidate, "env");
    let output = run_for_output(candidate, &spec).await;
    for line in [
        "SUTLER_ACTION=provision".to_owned(),
        format!("SUTLER_IDEMPOTENCY_KEY={}", spec.idempotency_key),
        "SUTLER_ATTEMPT=1".to_owned(),
    ] {
        assert!(
            output.lines().any(|it| it == line),
            "{line} is not in {output}"
        );
    }
    for name in ["POD_NAME=", "POD_NAMESPACE=", "PATH=", "HOME="] {
        assert!(
            output.lines().any(|line| line.starts_with(name)),
            "{name} is not in {output}"
        );
    }
    let own = ["CARGO", "RUST", "SUTLER_TEST"];
    let leaked = output
        .lines()
        .find(|line| own.iter().any(|own| line.starts_with(own)));
    assert_eq!(leaked, None);
}

/// All files, in every form.
pub async fn results_of_a_run_are_read(candidate: &dyn Candidate) {
    let script = "cd \"$SUTLER_RESULT_DIR\"\n\
        echo '{\"user\":\"u\",\"port\":5}' >credentials.json\n\
        echo '{\"name\":\"db\",\"old\":null}' >state.json\n\
        echo '{\"role\":\"r\"}' >binding_state.json\n\
        echo '{\"percent\":70,\"text\":\"nearly\"}' >>progress\n\
        echo https://example.org/db >dashboard_url\n\
        echo 'not really' >error";
    let result = run_and_read(candidate, &spec(candidate, script))
        .await
        .expect("read");
    let credentials = result.credentials.expect("credentials");
    assert_eq!(credentials, vars(json!({"user": "u", "port": 5})));
    assert_eq!(result.state, Some(vars(json!({"name": "db", "old": null}))));
    assert_eq!(result.binding_state, Some(vars(json!({"role": "r"}))));
    let progress = result.progress.expect("progress");
    assert_eq!(
        (progress.text.as_str(), progress.percent),
        ("nearly", Some(70))
    );
    assert_eq!(
        result.dashboard_url.as_deref(),
        Some("https://example.org/db")
    );
    assert_eq!(result.error.as_deref(), Some("not really"));
}

/// A failed run may have an error text, and state for clean-up.
pub async fn a_run_that_failed_is_read_too(candidate: &dyn Candidate) {
    let script =
        "cd \"$SUTLER_RESULT_DIR\"; echo '{\"made\":1}' >state.json; echo 'no room' >error; exit 4";
    let spec = spec(candidate, script);
    let watched = run(candidate, &spec).await;
    assert_eq!(watched.status, RunStatus::Finished(Exit::Code(4)));
    let result = candidate
        .runner()
        .await
        .result(spec.name)
        .await
        .expect("read");
    assert_eq!(result.state, Some(vars(json!({"made": 1}))));
    assert_eq!(result.error.as_deref(), Some("no room"));
}

/// While the run continues, not only at the end.
pub async fn progress_is_reported_while_the_run_continues(candidate: &dyn Candidate) {
    let script = format!("echo 'half way' >>\"$SUTLER_RESULT_DIR/progress\"\n{UNTIL_GO}");
    let spec = spec(candidate, &script);
    let runner = candidate.runner().await;
    runner.start(&spec).await.expect("started");
    let (lines, mut events) = tokio::sync::mpsc::channel(4);
    let watching = tokio::spawn({
        let runner = std::sync::Arc::clone(&runner);
        async move { runner.watch(spec.name, lines).await }
    });
    let first = events.recv().await.expect("something is heard");
    assert!(
        matches!(&first, crate::runner::RunEvent::Progress(news) if news.text == "half way"),
        "{first:?}"
    );
    candidate.create_go_file(spec.name).await;
    let status = watching.await.expect("no panic").expect("watched");
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
}

/// Links and pipes are not followed. The other files are read.
pub async fn a_result_that_is_not_a_plain_file_is_refused(candidate: &dyn Candidate) {
    for script in [
        "ln -s /etc/passwd \"$SUTLER_RESULT_DIR/error\"",
        "mkfifo \"$SUTLER_RESULT_DIR/credentials.json\"",
        "mkdir \"$SUTLER_RESULT_DIR/state.json\"",
        "head -c 3000000 /dev/zero >\"$SUTLER_RESULT_DIR/credentials.json\"",
        "echo oops >\"$SUTLER_RESULT_DIR/credentials.json\"",
    ] {
        let script = format!(
            "{script}; echo '{{\"role\":\"r\"}}' >\"$SUTLER_RESULT_DIR/binding_state.json\""
        );
        let result = run_and_read(candidate, &spec(candidate, &script)).await;
        let result = result.expect("read");
        assert_eq!(result.refused.len(), 1, "{script}: {result:?}");
        let binding_state = result.binding_state.expect("what is good");
        assert_eq!(binding_state, vars(json!({"role": "r"})), "{script}");
    }
}

/// Clean-up after a run that was lost, or that removed its own directory, needs the rest.
pub async fn results_of_a_lost_run_are_read(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let script = "echo '{\"made\":1}' >\"$SUTLER_RESULT_DIR/state.json\"; echo up; sleep 1000";
    let spec = spec(candidate, script);
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "up").await;
    candidate.lose(spec.name).await;
    status_until(&runner, spec.name, |status| *status != RunStatus::Running).await;
    let result = runner.result(spec.name).await.expect("read");
    assert_eq!(result.state, Some(vars(json!({"made": 1}))));
}

/// Playbooks written for Automation Broker find the modules under their old names, and cannot change them for
/// others.
pub async fn modules_for_playbooks_are_on_the_path_of_ansible(candidate: &dyn Candidate) {
    let script = "set -e\n\
        test -r \"${ANSIBLE_LIBRARY%%:*}/asb_set_state.py\"\n\
        test -r \"${ANSIBLE_LOOKUP_PLUGINS%%:*}/asb_state.py\"\n\
        test -r \"${ANSIBLE_MODULE_UTILS%%:*}/sutler_results.py\"\n\
        test -d \"${ANSIBLE_ROLES_PATH%%:*}/ansibleplaybookbundle.asb-modules\"\n\
        if touch \"${ANSIBLE_LIBRARY%%:*}/mine.py\" 2>/dev/null; then exit 9; fi\n\
        echo found";
    assert_eq!(
        run_for_output(candidate, &spec(candidate, script)).await,
        "found\n"
    );
}

/// The process list shows no secret.
pub async fn no_secret_is_in_a_list_of_processes(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let mut spec = spec(candidate, &format!("echo up\n{UNTIL_GO}"));
    spec.vars = vars(json!({"password": CANARY}));
    spec.state = Some(vars(json!({"password": CANARY})));
    spec.secrets = vec![secret("db", "password", CANARY)];
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "up").await;
    let found = shown_in_proc(CANARY);
    candidate.create_go_file(spec.name).await;
    runner.stop(spec.name).await.expect("stopped");
    assert_eq!(found, Vec::<String>::new());
    assert!(!format!("{spec:?}").contains(CANARY));
}

/// Paths of command lines and environments in /proc that contain a text.
fn shown_in_proc(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("a list of processes");
    let mut found = Vec::new();
    for process in processes.flatten() {
        for what in ["cmdline", "environ"] {
            let path = process.path().join(what);
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
