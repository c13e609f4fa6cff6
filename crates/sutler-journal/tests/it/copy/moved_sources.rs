//! Sources of finished copies: marked, refused, and reopened.

use super::fixture::{Fixture, contents};
use super::{NAMES, begin, copy_whole, memory};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::copy::{
    CopyError, CopyNames, StoreCopy, UnusableStoreError, check_usable, is_unfinished, moved_to,
    reopen,
};
use sutler_journal::{Commit, Start};

/// Both stores hold the same unfinished operations: brokers on both would execute them twice.
#[tokio::test]
async fn the_source_of_a_finished_copy_is_refused_until_it_is_reopened() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let (source, target) = (fixture.store(), memory());
    let mut copying = begin(&fixture, &target).await.unwrap();
    copying.catch_up().await.unwrap();
    check_usable(&*source).await.expect("it is only copied");
    copying.finish().await.unwrap();
    let refused = check_usable(&*source).await;
    match refused {
        Err(UnusableStoreError::Moved(to)) => assert_eq!(to, NAMES.target),
        other => panic!("{other:?}"),
    }
    check_usable(&*target).await.expect("it is whole");
    assert_eq!(contents(&*source).await, contents(&*target).await);
    assert_eq!(
        reopen(&*source).await.unwrap().as_deref(),
        Some(NAMES.target)
    );
    check_usable(&*source).await.expect("it may be used again");
    assert_eq!(reopen(&*source).await.unwrap(), None);
}

/// The report of the first copy would be taken for that of a new one, which copied nothing.
#[tokio::test]
async fn a_reopened_source_is_not_copied_into_its_finished_target() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    copy_whole(&fixture, &target).await;
    let repeated = begin(&fixture, &target).await.expect("the same command");
    assert!(repeated.finished().is_some());
    reopen(&*fixture.store()).await.unwrap();
    let refused = begin(&fixture, &target).await.err();
    assert!(matches!(refused, Some(CopyError::Reopened)), "{refused:?}");
}

/// A copy of old data would be taken for the present one.
#[tokio::test]
async fn a_moved_source_is_not_copied_into_a_third_store() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    copy_whole(&fixture, &memory()).await;
    let third = memory();
    let names = CopyNames {
        target: "memory:three",
        ..NAMES
    };
    let begun = StoreCopy::begin(fixture.store(), Arc::clone(&third), names).await;
    match begun.err() {
        Some(CopyError::Moved(to)) => assert_eq!(to, NAMES.target),
        other => panic!("{other:?}"),
    }
    assert!(contents(&*third).await.documents.is_empty());
    reopen(&*fixture.store()).await.unwrap();
    let mut copying = StoreCopy::begin(fixture.store(), Arc::clone(&third), names)
        .await
        .unwrap();
    copying.finish().await.unwrap();
    assert_eq!(contents(&*fixture.store()).await, contents(&*third).await);
}

/// A broker that starts before the mark keeps the source: the mark is taken back.
#[tokio::test]
async fn a_source_that_is_used_at_the_last_moment_is_not_left_marked() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    let late = fixture.store();
    let source = InterceptingStore::new(fixture.store(), move |call| {
        if let Call::Commit(_) = call {
            // The only commit to the source is its mark.
            let late = Arc::clone(&late);
            tokio::spawn(async move {
                let new = Fixture::new_operation("late", Start::Waiting);
                drop(late.commit(&Commit::new().start(new)).await);
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
    assert_eq!(moved_to(&*fixture.store()).await.unwrap(), None);
    assert!(is_unfinished(&*target).await.unwrap());
    copy_whole(&fixture, &target).await;
}

/// Killed between the mark of the source and the end of the target: the same command finishes the copy.
#[tokio::test]
async fn a_copy_killed_after_the_mark_is_finished_by_the_same_command() {
    let fixture = Fixture::new();
    fixture.fill(5).await;
    let target = memory();
    let marked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&marked);
    let source = InterceptingStore::new(fixture.store(), move |call| {
        if let Call::Commit(_) = call {
            seen.store(true, Ordering::SeqCst);
        }
        Intercept::Pass
    });
    let dead = InterceptingStore::new(Arc::clone(&target), move |call| match call {
        Call::Commit(_) if marked.load(Ordering::SeqCst) => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    let mut copying = StoreCopy::begin(Arc::new(source), Arc::new(dead), NAMES)
        .await
        .unwrap();
    let killed = copying.finish().await;
    assert!(matches!(killed, Err(CopyError::Store { .. })), "{killed:?}");
    assert!(is_unfinished(&*target).await.unwrap());
    assert!(moved_to(&*fixture.store()).await.unwrap().is_some());
    copy_whole(&fixture, &target).await;
}
