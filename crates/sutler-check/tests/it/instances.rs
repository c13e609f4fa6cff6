//! Guarantees of the instance cases other than their verdicts: few instances and requests, no failure of
//! a correct broker that behaves differently, and detection of SHOULD flaws. MUST cases:
//! `flaws.rs`.

use crate::faulty_broker::{FaultyBroker, Flaws, Kit, VARIANTS};
use std::collections::BTreeSet;
use sutler_check::{Check, Level, Report, all_cases};

/// Maximum instances created for one plan, concurrently or one after the other.
const INSTANCES_MAX: usize = 4;
/// Maximum requests sent for one plan, including bindings.
const REQUESTS_MAX: usize = 300;

async fn checked(kit: Kit, flaws: Flaws) -> Report {
    let broken = FaultyBroker::start(kit, flaws).await;
    Check::of(broken.connection()).run().await.unwrap()
}

fn failed(report: &Report) -> BTreeSet<&'static str> {
    let failures = report.failures(Level::May);
    failures.map(|finding| finding.case.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_of_a_plan_creates_few_instances_with_few_requests() {
    for kit in Kit::ALL {
        let report = checked(kit, Flaws::none()).await;
        let plans = report.subjects().len() - 1;
        let instances = report.made.instances;
        let requests = report.requests;
        eprintln!("{kit:?}: {plans} plans, {instances} instances, {requests} requests");
        assert!(instances <= plans * INSTANCES_MAX, "{kit:?}: {instances}");
        assert!(requests <= plans * REQUESTS_MAX, "{kit:?}: {requests}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformant_variants_fail_nothing() {
    for variant in VARIANTS {
        for kit in [Kit::Async, Kit::Sync] {
            let report = checked(kit, Flaws::variant(variant)).await;
            let failures: Vec<String> = report
                .failures(Level::Should)
                .map(|it| format!("{} of {}: {:?}", it.case.name, it.subject, report.said(it)))
                .collect();
            assert!(failures.is_empty(), "{variant}, {kit:?}: {failures:#?}");
            let left = &report.left_behind;
            assert!(left.is_empty(), "{variant}, {kit:?}: {left:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flaws_of_should_cases_of_instances_are_noticed() {
    let flawed = [
        (Kit::Plain, "provision-accepted"),
        (Kit::Plain, "provision-maintenance-unknown"),
        (Kit::Sync, "provision-invalid-parameters"),
        (Kit::Plain, "provision-repeat-done"),
        (Kit::Plain, "provision-minimal"),
        (Kit::Sync, "fetch-instance-hints"),
        (Kit::Sync, "fetch-instance-parameters"),
        (Kit::Sync, "fetch-instance-maintenance"),
        (Kit::Plain, "update-unknown-instance"),
        (Kit::Plain, "update-deleted-instance"),
        (Kit::Plain, "update-maintenance-unknown"),
        (Kit::Mixed, "last-operation-again"),
        (Kit::Mixed, "last-operation-deleted"),
    ];
    for (kit, case) in flawed {
        assert!(all_cases().any(|it| it.name == case), "{case} is no case");
        let failed = failed(&checked(kit, Flaws::one(case)).await);
        assert!(failed.contains(case), "{case} was not noticed: {failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_options_show_in_may_cases_only() {
    let undone = [
        ("uses no id again", "provision-reuse"),
        ("deletes nothing that is bound", "deprovision-cascade"),
        (
            "says 404 of what is not in the catalog",
            "provision-invalid-data",
        ),
    ];
    for (variant, case) in undone {
        let failed = failed(&checked(Kit::Async, Flaws::variant(variant)).await);
        assert_eq!(failed, BTreeSet::from([case]), "{variant}");
    }
}
