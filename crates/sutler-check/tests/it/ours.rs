//! The framework's own broker under the check: no MUST and no SHOULD fails, in any store, with either
//! value of each switch. What it offers is in `ours/service.rs`.
//!
//! A MUST that is never seen here proves nothing: what is out of sight is listed, with its reason.

mod service;

use secrecy::SecretString;
use service::Ours;
use std::collections::BTreeSet;
use std::sync::Arc;
use sutler_broker::{DeletedPoll, MissingVersion};
use sutler_check::{Check, Level, Options, Profile, Report, Verdict, all_cases};
use sutler_client::wire::Connection;
use sutler_journal::Store;

/// The names of MUST cases that a check of our broker cannot see, and why.
const OUT_OF_SIGHT: &[(&str, &str)] = &[
    ("binding-", "BINDINGS"),
    ("bind-", "BINDINGS"),
    ("fetch-binding-", "BINDINGS"),
    ("unbind-", "BINDINGS"),
    ("volume-mounts", "BINDINGS"),
    ("endpoints", "BINDINGS"),
];

async fn checked(ours: &Ours, profile: Profile) -> Report {
    let connection = Connection::to(ours.url())
        .basic(service::USER, SecretString::from(service::PASSWORD))
        .build()
        .unwrap();
    let options = Options {
        profile,
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

/// Every MUST was seen somewhere, or is known to be out of sight.
#[track_caller]
fn all_is_seen(report: &Report) {
    let seen: BTreeSet<&str> = report
        .findings
        .iter()
        .filter(|it| matches!(it.verdict, Verdict::Pass))
        .map(|it| it.case.name)
        .collect();
    let known = |name: &str| {
        OUT_OF_SIGHT
            .iter()
            .any(|(known, _)| name.starts_with(known))
    };
    let unseen: Vec<&str> = all_cases()
        .filter(|it| it.level == Level::Must && !seen.contains(it.name) && !known(it.name))
        .map(|it| it.name)
        .collect();
    assert!(unseen.is_empty(), "never seen: {unseen:#?}");
}

/// A broker as it is out of the box.
async fn of(store: Arc<dyn Store>) -> Ours {
    Ours::start(store, MissingVersion::BadRequest, DeletedPoll::Succeeded).await
}

#[tokio::test(flavor = "multi_thread")]
async fn our_broker_in_memory_keeps_every_rule() {
    let ours = of(Ours::memory()).await;
    let report = checked(&ours, Profile::V2_17).await;
    nothing_fails(&report);
    all_is_seen(&report);
    assert_eq!(ours.left(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn our_broker_in_sqlite_keeps_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let ours = of(Ours::sqlite(folder.path()).await).await;
    let report = checked(&ours, Profile::V2_17).await;
    nothing_fails(&report);
    all_is_seen(&report);
    assert_eq!(ours.left(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_switches_of_our_broker_satisfy_the_older_suites() {
    let (version, poll) = (MissingVersion::PreconditionFailed, DeletedPoll::Gone);
    let ours = Ours::start(Ours::memory(), version, poll).await;
    nothing_fails(&checked(&ours, Profile::Compat2_13).await);
}
