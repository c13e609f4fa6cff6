//! Guarantees of the binding cases other than their verdicts: few bindings, no failure of a correct broker
//! that behaves differently, and detection of SHOULD flaws. MUST cases: `flaws.rs`.

use crate::faulty_broker::{BINDING_VARIANTS, FaultyBroker, Flaws, Kit};
use std::collections::BTreeSet;
use sutler_check::{Check, Level, Report, all_cases};

/// Maximum bindings created for one plan, concurrently or one after the other.
const BINDINGS_MAX: usize = 6;

async fn checked(kit: Kit, flaws: Flaws) -> Report {
    let broken = FaultyBroker::start(kit, flaws).await;
    Check::of(broken.connection()).run().await.unwrap()
}

fn failed(report: &Report) -> BTreeSet<&'static str> {
    let failures = report.failures(Level::May);
    failures.map(|finding| finding.case.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_of_a_plan_creates_few_bindings() {
    for kit in Kit::ALL {
        let report = checked(kit, Flaws::none()).await;
        let plans = report.subjects().len() - 1;
        let bindings = report.made.bindings;
        eprintln!("{kit:?}: {plans} plans, {bindings} bindings");
        assert!(bindings <= plans * BINDINGS_MAX, "{kit:?}: {bindings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformant_variants_of_bindings_fail_nothing() {
    for variant in BINDING_VARIANTS {
        for kit in [Kit::Async, Kit::Sync, Kit::Requires] {
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
async fn flaws_of_should_cases_of_bindings_are_noticed() {
    let flawed = [
        (Kit::Sync, "bind-empty-app-guid"),
        (Kit::Sync, "bind-invalid-parameters"),
        (Kit::Sync, "bind-unknown-instance"),
        (Kit::Sync, "bind-repeat-done"),
        (Kit::Sync, "bind-repeat-same"),
        (Kit::Sync, "bind-unique-credentials"),
        (Kit::Requires, "bind-syslog-drain-given"),
        (Kit::Requires, "bind-volumes-given"),
        (Kit::Sync, "binding-fetch-same"),
        (Kit::Async, "binding-poll-again"),
        (Kit::Sync, "rotate-repeat"),
        (Kit::Sync, "rotate-credentials"),
        (Kit::Async, "unbind-poll-after"),
        (Kit::Async, "unbind-halts-bind-poll"),
    ];
    for (kit, case) in flawed {
        assert!(all_cases().any(|it| it.name == case), "{case} is no case");
        let failed = failed(&checked(kit, Flaws::one(case)).await);
        assert!(failed.contains(case), "{case} was not noticed: {failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_binding_options_show_in_may_cases_only() {
    let undone = [
        ("uses no id of a binding again", "bind-again"),
        (
            "rotates only with service and plan",
            "rotate-predecessor-only",
        ),
        (
            "ignores predecessors where it does not rotate",
            "rotate-not-rotatable",
        ),
        (
            "shows no parameters of bindings",
            "binding-fetch-parameters",
        ),
    ];
    for (variant, case) in undone {
        let failed = failed(&checked(Kit::Async, Flaws::variant(variant)).await);
        assert_eq!(failed, BTreeSet::from([case]), "{variant}");
    }
}
