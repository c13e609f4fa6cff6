//! A store that fails under the engine: nothing is lost or done twice.

use super::{EngineFixture, ScriptedExecutor, finish};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Outcome, State};

/// Intercepts the first `times` commits of a run.
fn intercept_commits(fixture: &EngineFixture, intercept: Intercept, times: usize) {
    let mut left = times;
    fixture.hook(move |call| match call {
        Call::Commit(_) if left > 0 => {
            left -= 1;
            intercept.clone()
        }
        _ => Intercept::Pass,
    });
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_repeated_until_its_outcome_is_known() {
    for intercept in [
        Intercept::Refuse,
        Intercept::LoseRequest,
        Intercept::LoseReply,
    ] {
        let fixture = EngineFixture::new();
        let id = fixture.accept("a").await;
        let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
        intercept_commits(&fixture, intercept.clone(), 3);
        fixture.engine(executor.clone()).await;
        let row = fixture.done(id).await;
        assert_eq!(row.state, State::Done(Outcome::Succeeded), "{intercept:?}");
        assert_eq!((row.fence.0, row.attempt), (1, 1), "{intercept:?}");
        assert_eq!(executor.observed().len(), 1, "{intercept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yield_with_a_lost_response_is_applied() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        match before {
            0 => Ok(sutler_journal::RunResult::Yield(Duration::from_secs(5))),
            _ => finish(&run).await,
        }
    });
    intercept_commits(&fixture, Intercept::LoseReply, 1);
    fixture.engine(executor.clone()).await;
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 0));
    assert_eq!(executor.observed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failed_claims_are_repeated() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let mut left = 5;
    fixture.hook(move |call| match call {
        Call::Claim(_) if left > 0 => {
            left -= 1;
            Intercept::Refuse
        }
        _ => Intercept::Pass,
    });
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    fixture.engine(executor.clone()).await;
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.takeovers), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_lease_ends_the_run_and_not_the_operation() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        finish(&run).await
    });
    fixture.engine(executor.clone()).await;
    while executor.observed().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fixture.hook(|call| match call {
        Call::Read(_) => Intercept::Pass,
        _ => Intercept::Refuse,
    });
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(fixture.row(id).await.state, State::Running);
    fixture.hook(|_| Intercept::Pass);
    let row = fixture.done(id).await;
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 1));
}
