//! The framework's own broker under the check: no MUST and no SHOULD fails, in any store, with either
//! value of each switch. Its service is in `own_broker/service.rs`.
//!
//! A MUST that is never observed here proves nothing: such cases are listed, with the reason.

mod service;

use secrecy::SecretString;
use service::FullService;
use std::collections::BTreeSet;
use std::sync::Arc;
use sutler_broker::{DeletedPoll, MissingVersion};
use sutler_check::{Check, Level, Options, Profile, Report, Verdict, all_cases};
use sutler_client::wire::Connection;
use sutler_journal::Store;
use tokio::task::JoinSet;

/// Names of MUST cases that a check of our broker cannot observe, and why.
const NOT_OBSERVED: &[(&str, &str)] = &[];

async fn checked(ours: &FullService, profile: Profile, plans: &[&str]) -> Report {
    let connection = Connection::to(ours.url())
        .basic(service::USER, SecretString::from(service::PASSWORD))
        .build()
        .unwrap();
    let options = Options {
        profile,
        plans: plans.iter().map(ToString::to_string).collect(),
        jobs: 16,
        ..Options::default()
    };
    let report = Check::of(connection).options(options).run().await.unwrap();
    eprintln!("took {:?}", report.took);
    report
}

#[track_caller]
fn nothing_fails(report: &Report) {
    let failures: Vec<String> = report
        .failures(Level::Should)
        .map(ToString::to_string)
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(report.left_behind.is_empty(), "{:#?}", report.left_behind);
}

/// Asserts that every MUST was observed, or is listed as not observable.
#[track_caller]
fn assert_all_observed(report: &Report) {
    let observed: BTreeSet<&str> = report
        .findings
        .iter()
        .filter(|it| matches!(it.verdict, Verdict::Pass))
        .map(|it| it.case.name)
        .collect();
    let known = |name: &str| NOT_OBSERVED.iter().any(|(known, _)| *known == name);
    let unseen: Vec<&str> = all_cases()
        .filter(|it| it.level == Level::Must && !observed.contains(it.name) && !known(it.name))
        .map(|it| it.name)
        .collect();
    assert!(unseen.is_empty(), "never seen: {unseen:#?}");
}

/// A broker with default settings.
async fn of(store: Arc<dyn Store>) -> FullService {
    FullService::start(store, MissingVersion::BadRequest, DeletedPoll::Succeeded).await
}

#[tokio::test(flavor = "multi_thread")]
async fn our_broker_in_memory_conforms_to_every_rule() {
    let ours = of(FullService::memory()).await;
    let report = checked(&ours, Profile::V2_17, &[]).await;
    nothing_fails(&report);
    assert_all_observed(&report);
    assert_eq!(ours.left(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn our_broker_in_sqlite_conforms_to_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let ours = of(FullService::sqlite(folder.path()).await).await;
    let report = checked(&ours, Profile::V2_17, &[]).await;
    nothing_fails(&report);
    assert_all_observed(&report);
    assert_eq!(ours.left(), BTreeSet::new());
}

/// Names of the cases that fail with these values of the switches.
async fn failing(version: MissingVersion, poll: DeletedPoll, profile: Profile) -> Vec<String> {
    let ours = FullService::start(FullService::memory(), version, poll).await;
    let report = checked(&ours, profile, &["async"]).await;
    let failures = report.failures(Level::Should);
    let names: BTreeSet<String> = failures.map(|it| it.case.name.to_owned()).collect();
    names.into_iter().collect()
}

/// Each switch affects its own cases, of instances and of bindings, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn each_value_of_each_switch_satisfies_its_own_suites_and_no_others() {
    use DeletedPoll::{Gone, Succeeded};
    use MissingVersion::{BadRequest, PreconditionFailed};
    use Profile::{Compat2_13, V2_17};
    const VERSION: &str = "version-missing-status";
    const POLL: &str = "last-operation-deleted";
    const UNBIND: &str = "unbind-poll-after";
    let expected: [(MissingVersion, DeletedPoll, Profile, &'static [&str]); 8] = [
        (BadRequest, Succeeded, V2_17, &[]),
        // Since 2.17 both answers to a poll are conformant.
        (BadRequest, Gone, V2_17, &[]),
        (PreconditionFailed, Succeeded, V2_17, &[VERSION]),
        (PreconditionFailed, Gone, V2_17, &[VERSION]),
        (PreconditionFailed, Gone, Compat2_13, &[]),
        (PreconditionFailed, Succeeded, Compat2_13, &[POLL, UNBIND]),
        (BadRequest, Gone, Compat2_13, &[VERSION]),
        (BadRequest, Succeeded, Compat2_13, &[POLL, UNBIND, VERSION]),
    ];
    let mut checks: JoinSet<_> = expected
        .into_iter()
        .map(async |(version, poll, profile, expected)| {
            let failing = failing(version, poll, profile).await;
            (format!("{version:?} {poll:?} {profile}"), failing, expected)
        })
        .collect();
    while let Some(checked) = checks.join_next().await {
        let (switches, failing, expected) = checked.unwrap();
        assert_eq!(failing, expected, "{switches}");
    }
}
