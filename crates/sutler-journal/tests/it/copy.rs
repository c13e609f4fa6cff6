//! Copies between stores: everything is copied, whatever happens meanwhile.
//!
//! Both stores are in memory, so that the clock is stopped and every call can be made to fail. The tests
//! of the executable copy between real stores.

mod fixture;
mod moved_sources;

use fixture::{Fixture, contents, settle_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::copy::{CopyError, CopyNames, CopyStep, StoreCopy, is_unfinished, moved_to};
use sutler_journal::{
    Commit, Cursor, MemoryStore, Next, Outcome, Start, Store, StoreTime, Sweep, Write,
};
use tokio::sync::Notify;

const NAMES: CopyNames<'_> = CopyNames {
    source: "memory:one",
    target: "memory:two",
};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn begin(fixture: &Fixture, target: &Arc<dyn Store>) -> Result<StoreCopy, CopyError> {
    StoreCopy::begin(fixture.store(), Arc::clone(target), NAMES).await
}

/// Copies everything and compares the target with the source.
async fn copy_whole(fixture: &Fixture, target: &Arc<dyn Store>) {
    let mut copying = begin(fixture, target).await.expect("a copy");
    let finished = copying.finish().await.expect("the end of it");
    let (source, copied) = (contents(&*fixture.store()).await, contents(&**target).await);
    assert_eq!(source, copied);
    assert_eq!(finished.documents, source.documents.len() as u64);
    assert_eq!(finished.operations, source.operations.len() as u64);
    assert_eq!(finished.digest.len(), 64);
}

#[tokio::test]
async fn records_of_every_state_are_copied() {
    let fixture = Fixture::new();
    fixture.fill(250).await;
    let target = memory();
    copy_whole(&fixture, &target).await;
    assert!(!is_unfinished(&*target).await.unwrap());
    let stats = target.stats().await.unwrap();
    assert!(stats.live > 0 && stats.terminal > 0, "{stats:?}");
}

#[tokio::test]
async fn an_empty_store_is_copied_too() {
    let fixture = Fixture::new();
    copy_whole(&fixture, &memory()).await;
}

#[tokio::test]
async fn concurrent_changes_are_followed() {
    let fixture = Fixture::new();
    fixture.fill(150).await;
    let target = memory();
    let mut copying = begin(&fixture, &target).await.unwrap();
    for round in 0..3 {
        copying.catch_up().await.unwrap();
        assert_eq!(copying.progress().borrow().step, CopyStep::Following);
        fixture.change(round).await;
    }
    fixture.stop().await;
    copying.finish().await.unwrap();
    assert_eq!(contents(&*fixture.store()).await, contents(&*target).await);
}

/// After each read of the feed there are new changes in it.
#[tokio::test]
async fn a_constantly_changing_source_is_copied() {
    const READS_MAX: usize = 100;
    let fixture = Fixture::new();
    fixture.fill(250).await;
    let target = memory();
    let (busy, reads) = (fixture.store(), AtomicUsize::new(0));
    let source = InterceptingStore::new(fixture.store(), move |call| {
        let Call::Read("changes") = call else {
            return Intercept::Pass;
        };
        let busy = Arc::clone(&busy);
        tokio::spawn(async move {
            let new = Fixture::new_operation("busy", Start::Waiting);
            busy.commit(&Commit::new().start(new)).await.unwrap();
        });
        match reads.fetch_add(1, Ordering::SeqCst) < READS_MAX {
            true => Intercept::PassSlowly,
            false => Intercept::Refuse,
        }
    });
    let copying = StoreCopy::begin(Arc::new(source), Arc::clone(&target), NAMES).await;
    copying.expect("a copy").catch_up().await.unwrap();
    copy_whole(&fixture, &target).await;
}

/// The feed may be trimmed before an interrupted copy resumes.
#[tokio::test]
async fn a_trimmed_feed_leads_to_another_scan() {
    let fixture = Fixture::new();
    fixture.fill(120).await;
    let target = memory();
    let mut copying = begin(&fixture, &target).await.unwrap();
    copying.catch_up().await.unwrap();
    fixture.change(0).await;
    let everything = Sweep::Feed {
        before: StoreTime(i64::MAX),
        limit: 10_000,
    };
    fixture.store().sweep(&everything).await.unwrap();
    fixture.change(1).await;
    fixture.stop().await;
    copying.finish().await.unwrap();
    assert_eq!(contents(&*fixture.store()).await, contents(&*target).await);
}

/// Sweeps are not in the feed: the finish deletes swept operations from the target, and nothing else.
#[tokio::test]
async fn operations_swept_meanwhile_are_deleted_and_others_stay() {
    let fixture = Fixture::new();
    fixture.fill(60).await;
    let target = memory();
    let mut copying = begin(&fixture, &target).await.unwrap();
    copying.catch_up().await.unwrap();
    let failed = Sweep::Operations {
        lanes: Vec::new(),
        outcome: Some(Outcome::Failed),
        finished_before: StoreTime(i64::MAX),
        limit: 1000,
    };
    assert!(fixture.store().sweep(&failed).await.unwrap() > 0);
    copying.finish().await.unwrap();
    assert_eq!(contents(&*fixture.store()).await, contents(&*target).await);
}

/// An interrupted finish leaves unfinished operations; the source continues, and they are replaced.
#[tokio::test]
async fn a_source_changed_after_an_interrupted_finish_is_copied_again() {
    let fixture = Fixture::new();
    fixture.fill(40).await;
    let target = memory();
    let source: Arc<dyn Store> = Arc::new(InterceptingStore::new(fixture.store(), {
        let info_calls = AtomicUsize::new(0);
        move |call| match call {
            Call::Read("info") if info_calls.fetch_add(1, Ordering::SeqCst) == 1 => {
                Intercept::Refuse
            }
            _ => Intercept::Pass,
        }
    }));
    let mut copying = StoreCopy::begin(source, Arc::clone(&target), NAMES)
        .await
        .unwrap();
    let broken = copying.finish().await;
    assert!(matches!(broken, Err(CopyError::Store { .. })), "{broken:?}");
    assert!(is_unfinished(&*target).await.unwrap());
    fixture.change(7).await;
    settle_all(&fixture).await;
    copy_whole(&fixture, &target).await;
}

/// A store that serves calls up to a certain one, and a flag that is set when that one is reached.
fn dying(
    store: &Arc<dyn Store>,
    at: usize,
    intercept: Intercept,
    counts: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static,
) -> (Arc<dyn Store>, Arc<Notify>) {
    let dead = Arc::new(Notify::new());
    let (notify, calls) = (Arc::clone(&dead), AtomicUsize::new(0));
    let intercepted = InterceptingStore::new(Arc::clone(store), move |call| {
        if counts(call) && calls.fetch_add(1, Ordering::SeqCst) == at {
            notify.notify_one();
            return intercept.clone();
        }
        Intercept::Pass
    });
    (Arc::new(intercepted), dead)
}

fn changes_something(call: &Call<'_>) -> bool {
    match call {
        Call::Commit(_) | Call::Sweep(_) => true,
        Call::Read(name) => *name == "append_log",
        Call::Renew(_) | Call::Claim(_) | Call::Release(_) => false,
    }
}

/// A copy killed before or after any single change of the target resumes and completes.
#[tokio::test]
async fn a_copy_killed_at_any_moment_resumes() {
    let fixture = Fixture::new();
    fixture.fill(12).await;
    let mut deaths = 0;
    for intercept in [Intercept::CrashBefore, Intercept::CrashAfter] {
        for at in 0.. {
            let target = memory();
            let (intercepted, dead) = dying(&target, at, intercept.clone(), changes_something);
            let run = async {
                let mut copying = begin(&fixture, &intercepted).await?;
                copying.finish().await
            };
            let ended = tokio::select! {
                ended = run => Some(ended),
                () = dead.notified() => None,
            };
            if let Some(ended) = ended {
                ended.expect("nobody died");
                break;
            }
            deaths += 1;
            copy_whole(&fixture, &target).await;
        }
    }
    assert!(deaths > 30, "it was killed {deaths} times");
}

/// A commit of unknown outcome is repeated, and nothing is copied twice.
#[tokio::test(start_paused = true)]
async fn a_commit_of_unknown_outcome_is_resolved() {
    let fixture = Fixture::new();
    fixture.fill(12).await;
    for intercept in [Intercept::LoseRequest, Intercept::LoseReply] {
        for at in 0..8 {
            let target = memory();
            let commits = |call: &Call<'_>| matches!(call, Call::Commit(_));
            let (intercepted, _) = dying(&target, at, intercept.clone(), commits);
            let mut copying = begin(&fixture, &intercepted).await.unwrap();
            copying.finish().await.unwrap();
            assert_eq!(contents(&*fixture.store()).await, contents(&*target).await);
        }
    }
}

#[tokio::test]
async fn a_target_that_is_not_empty_is_refused_and_left_as_it_is() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    fixture.fill(3).await;
    other.fill(2).await;
    let target = other.store();
    let before = contents(&*target).await;
    let refused = begin(&fixture, &target).await;
    assert!(matches!(refused.err(), Some(CopyError::NotEmpty)));
    assert_eq!(contents(&*target).await, before);
}

#[tokio::test]
async fn the_copy_of_another_source_is_refused() {
    let fixture = Fixture::new();
    let target = memory();
    begin(&fixture, &target).await.unwrap();
    let names = CopyNames {
        source: "etcd://elsewhere",
        ..NAMES
    };
    let other = StoreCopy::begin(fixture.store(), Arc::clone(&target), names).await;
    match other.err() {
        Some(CopyError::OtherSource(name)) => assert_eq!(name, NAMES.source),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_finished_copy_is_reported_and_not_changed_again() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    copy_whole(&fixture, &target).await;
    let (_, end) = feed(&*target).await;
    let mut again = begin(&fixture, &target).await.unwrap();
    let finished = again.finished().cloned().expect("it was finished");
    again.catch_up().await.unwrap();
    assert_eq!(again.finish().await.unwrap(), finished);
    assert_eq!(feed(&*target).await.1, end, "nothing was written");
}

async fn feed(store: &dyn Store) -> (usize, Cursor) {
    let part = store.changes(&Cursor::default(), 100_000).await.unwrap();
    (part.changes.len(), part.next)
}

#[tokio::test]
async fn of_two_copies_into_one_target_one_fails() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    let mut one = begin(&fixture, &target).await.unwrap();
    let mut other = begin(&fixture, &target).await.unwrap();
    other.catch_up().await.unwrap();
    let late = one.catch_up().await;
    assert!(matches!(late, Err(CopyError::TakenOver)), "{late:?}");
    other.finish().await.unwrap();
}

#[tokio::test]
async fn a_source_with_leases_is_not_finished() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    fixture.work().await;
    let target = memory();
    let mut copying = begin(&fixture, &target).await.unwrap();
    copying.catch_up().await.unwrap();
    let refused = copying.finish().await;
    assert!(matches!(refused, Err(CopyError::InUse(1))), "{refused:?}");
    fixture.stop().await;
    copying.finish().await.unwrap();
}

/// A change at the last moment is detected, and the copy is not reported as finished.
#[tokio::test]
async fn a_change_while_it_is_finished_is_noticed() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    let late = fixture.store();
    let source = InterceptingStore::new(fixture.store(), move |call| {
        if let Call::Read("scan_documents") = call {
            // A copy that reads documents now has followed the feed before, or has not started yet.
            let new = Fixture::new_operation("late", Start::Waiting);
            let id = new.id;
            let late = Arc::clone(&late);
            tokio::spawn(async move {
                drop(late.commit(&Commit::new().start(new)).await);
                let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
                drop(late.commit(&end.write(Write::Unpin(id))).await);
            });
            return Intercept::PassSlowly;
        }
        Intercept::Pass
    });
    let mut copying = StoreCopy::begin(Arc::new(source), Arc::clone(&target), NAMES)
        .await
        .unwrap();
    let refused = copying.finish().await;
    assert!(matches!(refused, Err(CopyError::Changed)), "{refused:?}");
    assert!(is_unfinished(&*target).await.unwrap());
    copy_whole(&fixture, &target).await;
}

/// Neither the state of a copy nor the mark of a moved store is sealed.
#[tokio::test]
async fn names_that_the_database_has_are_escaped_and_cut_in_messages() {
    let long = "x".repeat(300);
    let hostile = format!("sqlite:/\u{1b}[2J\u{202e}{long}");
    let names = CopyNames {
        source: &hostile,
        target: &hostile,
    };
    let fixture = Fixture::new();
    let target = memory();
    let begun = StoreCopy::begin(fixture.store(), Arc::clone(&target), names).await;
    let mut copying = begun.expect("a copy");
    let refused = begin(&fixture, &target)
        .await
        .err()
        .expect("another source");
    let text = refused.to_string();
    assert!(text.contains(r"sqlite:/\u{1b}[2J\u{202e}xxx"), "{text}");
    assert!(!text.contains(&long), "{text}");
    copying.finish().await.expect("the end of it");
    let moved = moved_to(&*fixture.store()).await.unwrap().expect("moved");
    assert!(
        moved.starts_with(r"sqlite:/\u{1b}[2J\u{202e}xxx"),
        "{moved}"
    );
    assert!(moved.ends_with("x…") && moved.len() < 300, "{moved}");
    let again = StoreCopy::begin(fixture.store(), Arc::clone(&target), names).await;
    assert!(again.is_ok(), "names are compared as they are");
    let other = format!("{hostile}y");
    let names = CopyNames {
        source: &hostile,
        target: &other,
    };
    let other = StoreCopy::begin(fixture.store(), memory(), names).await;
    assert!(matches!(other.err(), Some(CopyError::Moved(_))));
}
