//! A store that fails under the engine: nothing is lost or done twice.

use super::{Bench, Script, finish};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Outcome, State};

/// Intercepts the first `times` commits of a run.
fn commits_meet(bench: &Bench, fate: Intercept, times: usize) {
    let mut left = times;
    bench.tap(move |call| match call {
        Call::Commit(_) if left > 0 => {
            left -= 1;
            fate.clone()
        }
        _ => Intercept::Pass,
    });
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_repeated_until_its_outcome_is_known() {
    for fate in [
        Intercept::Refuse,
        Intercept::LoseRequest,
        Intercept::LoseReply,
    ] {
        let bench = Bench::new();
        let id = bench.accept("a").await;
        let script = Script::new(|run, _| async move { finish(&run).await });
        commits_meet(&bench, fate.clone(), 3);
        bench.engine(script.clone()).await;
        let row = bench.done(id).await;
        assert_eq!(row.state, State::Done(Outcome::Succeeded), "{fate:?}");
        assert_eq!((row.fence.0, row.attempt), (1, 1), "{fate:?}");
        assert_eq!(script.seen().len(), 1, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yield_whose_answer_is_lost_is_a_yield_all_the_same() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let script = Script::new(|run, before| async move {
        match before {
            0 => Ok(sutler_journal::RunResult::Yield(Duration::from_secs(5))),
            _ => finish(&run).await,
        }
    });
    commits_meet(&bench, Intercept::LoseReply, 1);
    bench.engine(script.clone()).await;
    let row = bench.done(id).await;
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 0));
    assert_eq!(script.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn claims_that_fail_are_made_again() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let mut left = 5;
    bench.tap(move |call| match call {
        Call::Claim(_) if left > 0 => {
            left -= 1;
            Intercept::Refuse
        }
        _ => Intercept::Pass,
    });
    let script = Script::new(|run, _| async move { finish(&run).await });
    bench.engine(script.clone()).await;
    let row = bench.done(id).await;
    assert_eq!((row.fence.0, row.takeovers), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_for_longer_than_the_lease_ends_the_run_and_not_the_operation() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let script = Script::new(|run, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        finish(&run).await
    });
    bench.engine(script.clone()).await;
    while script.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bench.tap(|call| match call {
        Call::Read(_) => Intercept::Pass,
        _ => Intercept::Refuse,
    });
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(bench.row(id).await.state, State::Running);
    bench.tap(|_| Intercept::Pass);
    let row = bench.done(id).await;
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 1));
}
