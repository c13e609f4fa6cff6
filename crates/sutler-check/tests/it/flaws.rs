//! Every MUST case is failed by the flaw of its name, and a broker without flaws fails none.
//! Run with `--nocapture` to see which other cases each flaw breaks.

use crate::faulty_broker::{Era, FaultyBroker, Flaws, Kit, checked_flaws};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use sutler_check::{Case, Check, Finding, Level, Options, Profile, Report, Verdict, all_cases};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Brokers checked in parallel.
const SIDE_BY_SIDE: usize = 6;

async fn checked(kit: Kit, flaws: Flaws, era: Era) -> Report {
    let broken = FaultyBroker::start_of(kit, flaws, era).await;
    let options = Options {
        profile: match era {
            Era::Now => Profile::V2_17,
            Era::Compat => Profile::Compat2_13,
        },
        jobs: 2,
        ..Options::default()
    };
    let check = Check::of(broken.connection()).options(options);
    check.run().await.unwrap()
}

/// Names of the cases that passed in some report.
fn passed_cases(report: &Report) -> BTreeSet<&'static str> {
    let passed = |it: &&Finding| matches!(it.verdict, Verdict::Pass);
    let all = report.findings.iter().filter(passed);
    all.map(|it| it.case.name).collect()
}

/// Names of the cases that failed in some report.
fn failed(report: &Report) -> BTreeSet<&'static str> {
    report
        .failures(Level::May)
        .map(|finding| finding.case.name)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_without_flaws_fails_nothing_and_has_no_leftovers() {
    for era in [Era::Now, Era::Compat] {
        for kit in Kit::ALL {
            let report = checked(kit, Flaws::none(), era).await;
            let failures: Vec<String> = report
                .failures(Level::Should)
                .map(ToString::to_string)
                .collect();
            assert!(failures.is_empty(), "{kit:?} {era:?}: {failures:#?}");
            assert!(
                report.left_behind.is_empty(),
                "{kit:?}: {:#?}",
                report.left_behind
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_deletes_its_resources() {
    for kit in Kit::ALL {
        let broken = FaultyBroker::start(kit, Flaws::none()).await;
        let check = Check::of(broken.connection());
        check.run().await.unwrap();
        assert!(broken.requests() > 0);
        assert_eq!(broken.instances(), 0, "{kit:?}");
    }
}

/// Result of one flaw.
enum FlawOutcome {
    /// The case failed, and these others with it.
    Noticed(BTreeSet<&'static str>),
    /// The check passed with the flaw in these catalogs.
    Survived(Vec<Kit>),
    /// The case passes nowhere, so no flaw can break it.
    NeverPassed,
}

async fn tried(case: &'static str, kits: Vec<Kit>) -> FlawOutcome {
    if kits.is_empty() {
        return FlawOutcome::NeverPassed;
    }
    for kit in &kits {
        let report = checked(*kit, Flaws::one(case), Era::Now).await;
        let mut failed = failed(&report);
        if failed.remove(case) {
            return FlawOutcome::Noticed(failed);
        }
    }
    FlawOutcome::Survived(kits)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_must_case_is_failed_by_the_flaw_of_its_name() {
    let mut passed_in: BTreeMap<&str, Vec<Kit>> = BTreeMap::new();
    for kit in Kit::ALL {
        for name in passed_cases(&checked(kit, Flaws::none(), Era::Now).await) {
            passed_in.entry(name).or_default().push(kit);
        }
    }
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut tries = JoinSet::new();
    // Of the weaker cases, those with a flaw.
    let weaker = checked_flaws();
    let tried_ones = |it: &&Case| it.level == Level::Must || weaker.contains(it.name);
    for case in all_cases().filter(tried_ones) {
        let kits = passed_in.get(case.name).cloned().unwrap_or_default();
        let places = places.clone();
        tries.spawn(async move {
            let _place = places.acquire_owned().await;
            (case.name, tried(case.name, kits).await)
        });
    }
    let mut faults = Vec::new();
    let mut all = BTreeMap::new();
    while let Some(tried) = tries.join_next().await {
        let (name, came) = tried.unwrap();
        all.insert(name, came);
    }
    let known = checked_flaws();
    for (name, came) in all {
        match came {
            FlawOutcome::Noticed(others) => eprintln!("{name}: noticed, and {others:?}"),
            FlawOutcome::NeverPassed => {
                faults.push(format!("{name}: passes in no catalog of the kit"))
            }
            FlawOutcome::Survived(_) if !known.contains(name) => {
                faults.push(format!("{name}: the kit has no flaw of this name"));
            }
            FlawOutcome::Survived(kits) => faults.push(format!("{name}: survived in {kits:?}")),
        }
    }
    assert!(
        faults.is_empty(),
        "{} cases:\n{}",
        faults.len(),
        faults.join("\n")
    );
    let cases: BTreeSet<String> = all_cases().map(|it| it.name.to_owned()).collect();
    let strangers: Vec<&String> = known.difference(&cases).collect();
    assert!(
        strangers.is_empty(),
        "flaws that are no cases: {strangers:?}"
    );
}
