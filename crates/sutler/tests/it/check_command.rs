//! `sutler check` as a command: output, exit codes, and removal of everything it created, also when it is
//! stopped. The cases themselves are tested in `sutler-check`.

mod compat_profiles;
mod interrupted_check;
mod stuck_broker;

use crate::process::{Broker, ProgramOutput, folder, run_sutler, sutler};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CONFIG: &str = "\
users: [{name: platform, password: hush-hush}]
catalog: {file: catalog.yaml}
admin: {users: [{name: root, password: t0ps3cret}]}
";

/// Time limit for a catalog of 24 plans.
const DONE_WITHIN: Duration = Duration::from_secs(20);

/// A catalog of offerings with two plans each.
fn catalog(offerings: usize) -> String {
    let guid = |nth: usize| format!("5d1f0c5e-0000-4000-8000-{nth:012}");
    let offering = |nth: usize| {
        let [service, small, large] = [3 * nth, 3 * nth + 1, 3 * nth + 2].map(guid);
        format!(
            "- {{id: {service}, name: service-{nth}, description: d, bindable: true, plan_updateable: true, instances_retrievable: true, bindings_retrievable: true, plans: [{{id: {small}, name: small, description: d, binding_rotatable: true}}, {{id: {large}, name: large, description: d}}]}}\n"
        )
    };
    (1..=offerings).fold("services:\n".to_owned(), |text, nth| text + &offering(nth))
}

/// Starts a broker on SQLite with this number of offerings.
fn started(folder: &Path, offerings: usize) -> Broker {
    std::fs::write(folder.join("catalog.yaml"), catalog(offerings)).expect("a file");
    std::fs::write(folder.join("sutler.yaml"), CONFIG).expect("a file");
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

/// A check of a broker, not yet started.
fn check(folder: &Path, broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = sutler(folder);
    command
        .args(["check", &format!("http://{}", broker.address())])
        .args(["--user", "platform"])
        .args(arguments)
        .env("SUTLER_CHECK_PASSWORD", "hush-hush");
    command
}

fn checked(folder: &Path, broker: &Broker, arguments: &[&str]) -> ProgramOutput {
    let output = check(folder, broker, arguments).output();
    let output = output.expect("the program runs");
    ProgramOutput {
        stdout: String::from_utf8(output.stdout).expect("it prints text"),
        stderr: String::from_utf8(output.stderr).expect("it prints text"),
        code: output.status.code(),
    }
}

/// Names listed by the administration of the broker.
fn listed(folder: &Path, broker: &Broker, what: &[&str]) -> String {
    let url = format!("http://{}/admin", broker.address());
    let output = sutler(folder)
        .args(["admin", "--url", &url, "--user", "root"])
        .args(what)
        .args(["--all", "-o", "name"])
        .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[track_caller]
fn leaves_nothing(folder: &Path, broker: &Broker) {
    assert_eq!(listed(folder, broker, &["instances", "list"]), "");
    assert_eq!(listed(folder, broker, &["bindings", "list"]), "");
}

#[test]
fn help_of_the_check_names_every_option_and_the_exit_codes() {
    let output = run_sutler(folder().path(), &["check", "--help"]);
    assert!(
        output.stdout == include_str!("cli_messages/check-help.txt"),
        "it is now:\n{}",
        output.stdout
    );
}

#[test]
fn the_page_of_cases_is_up_to_date() {
    let made = run_sutler(folder().path(), &["check", "--reference"]).stdout;
    let kept = include_str!("../../../../docs/check-cases.md");
    assert!(
        made == kept,
        "run `cargo run -p sutler -- check --reference > docs/check-cases.md`"
    );
    let listed = run_sutler(folder().path(), &["check", "--list-cases"]).stdout;
    assert_eq!(listed.lines().count(), made.matches("\n| `").count());
}

#[test]
fn twenty_four_plans_are_checked_in_seconds_and_nothing_is_left() {
    let folder = folder();
    let broker = started(folder.path(), 12);
    let began = Instant::now();
    let output = checked(folder.path(), &broker, &["--jobs", "8", "--format", "json"]);
    let took = began.elapsed();
    assert_eq!(output.code, Some(0), "{}{}", output.stderr, output.stdout);
    leaves_nothing(folder.path(), &broker);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    let requests = &report["requests"];
    let made = &report["made"];
    eprintln!("24 plans: {took:?}, {requests} requests, made {made}");
    assert!(took < DONE_WITHIN, "{took:?}");
    let most = |of: &str, each: u64| made[of].as_u64().is_some_and(|it| it <= each * 24);
    // The numbers printed by `--dry-run`.
    assert!(most("instances", 4) && most("bindings", 8), "{made}");
}

#[test]
fn a_check_prints_a_table_and_its_result() {
    let folder = folder();
    let broker = started(folder.path(), 1);
    let report = folder.path().join("report.md");
    let output = checked(folder.path(), &broker, &["--level", "should"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stderr, output.stdout);
    let mut lines = output.stdout.lines();
    let heading = lines.next().unwrap_or_default();
    assert!(heading.contains("MUST passed"), "{}", output.stdout);
    for subject in ["the broker", "service-1/small", "service-1/large", "all"] {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(subject), "{}", output.stdout);
    }
    assert!(
        output
            .stdout
            .contains("\nconformant: no MUST and no SHOULD failed"),
        "{}",
        output.stdout
    );
    let arguments = ["--format", "markdown", "-o", "report.md", "--plan", "large"];
    let written = checked(folder.path(), &broker, &arguments);
    assert_eq!((written.stdout.as_str(), written.code), ("", Some(0)));
    let text = std::fs::read_to_string(report).expect("it was written");
    assert!(text.contains("| service-1/large |"), "{text}");
    assert!(!text.contains("| service-1/small |"), "{text}");
}

#[test]
fn a_dry_run_prints_the_steps_and_creates_nothing() {
    let folder = folder();
    let broker = started(folder.path(), 1);
    let given = "service-1/large: {provision: {delay_ms: 5, fail: top-secret}}\n";
    std::fs::write(folder.path().join("given.yaml"), given).expect("a file");
    let arguments = ["--dry-run", "--params", "given.yaml"];
    let output = checked(folder.path(), &broker, &arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        output.stdout.contains("service-1/small (5d1f0c5e-"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("(from the schema)"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("(given)"), "{}", output.stdout);
    assert!(!output.stdout.contains("top-secret"), "{}", output.stdout);
    let provisions = ["operations", "list", "--verb", "provision"];
    assert_eq!(listed(folder.path(), &broker, &provisions), "");
}

#[test]
fn an_unknown_choice_is_refused_with_a_suggestion() {
    let folder = folder();
    let broker = started(folder.path(), 1);
    let plan = checked(folder.path(), &broker, &["--plan", "smal"]);
    let sentence = "sutler: no plan of the catalog is called \"smal\"; did you mean \"small\"?\n";
    assert_eq!((plan.stderr.as_str(), plan.code), (sentence, Some(2)));
    std::fs::write(folder.path().join("p.yaml"), "service-1:\n  provison: {}\n").expect("a file");
    let params = checked(folder.path(), &broker, &["--params", "p.yaml"]);
    assert!(
        params.stderr.contains("\n  p.yaml:2:3: "),
        "{}",
        params.stderr
    );
    assert_eq!(params.code, Some(2));
}

#[test]
fn a_broker_that_cannot_be_checked_has_a_separate_exit_code() {
    let folder = folder();
    let broker = started(folder.path(), 1);
    let url = format!("http://{}", broker.address());
    let refused = run_sutler(folder.path(), &["check", &url]);
    assert!(
        refused
            .stdout
            .contains("could not be checked: the broker refused the credentials"),
        "{}",
        refused.stdout
    );
    assert_eq!(refused.code, Some(3));
    drop(broker);
    let silent = run_sutler(folder.path(), &["check", &url]);
    assert!(
        silent.stdout.contains("the broker did not answer"),
        "{}",
        silent.stdout
    );
    assert_eq!(silent.code, Some(3));
    let wrong = run_sutler(folder.path(), &["check", "ftp://x"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    let nowhere = run_sutler(folder.path(), &["check"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
}
