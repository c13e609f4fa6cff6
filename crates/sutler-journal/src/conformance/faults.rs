//! Broken connections: an unknown outcome is resolved by repeating, never by guessing.

use super::fixture::{Fixture, advance, bytes, insert, key, new_operation};
use super::{Candidate, Cut};
use crate::commit::{Commit, CommitError, Due, Next, Start};
use crate::document::Version;
use crate::operation::OperationId;
use crate::query::Cursor;

/// A commit whose effect shows how often it was applied.
struct CountedCommit {
    commit: Commit,
    document: String,
    retried: OperationId,
}

impl CountedCommit {
    async fn prepare(fixture: &Fixture, n: usize) -> Self {
        let retried = fixture.start_ready().await;
        let document = format!("document-{n}");
        let commit = insert(&document, "x")
            .start(new_operation(&document, Start::Waiting))
            .advance(retried, Next::Retry(Due::Now), None, None);
        Self {
            commit,
            document,
            retried,
        }
    }

    /// How often it was applied; panics if it was applied partially.
    async fn times(&self, fixture: &Fixture) -> u32 {
        let times = fixture.row(self.retried).await.attempt - 1;
        let document = fixture.get(&self.document).await;
        assert_eq!(u32::from(document.is_some()), times, "all or nothing");
        let (changes, _) = fixture.feed(&Cursor::default()).await;
        let in_feed = changes.iter().any(|c| c.commit == self.commit.id());
        assert_eq!(u32::from(in_feed), times, "in the feed if it happened");
        times
    }
}

async fn repeat_until_known(fixture: &Fixture, commit: &Commit) -> Result<(), CommitError> {
    let mut result = fixture.store.commit(commit).await;
    let mut tries = 0;
    while let Err(CommitError::Unknown(_)) = result {
        tries += 1;
        assert!(tries < 10, "a whole connection, yet nothing is known");
        result = fixture.store.commit(commit).await;
    }
    result
}

async fn cut_and_resolve(candidate: &dyn Candidate, cut: Cut) {
    let fixture = Fixture::of(candidate).await;
    for n in 0..6 {
        let counted = CountedCommit::prepare(&fixture, n).await;
        candidate.cut(cut).await;
        match fixture.store.commit(&counted.commit).await {
            // A store may have repeated the commit itself.
            Ok(()) => assert_eq!(counted.times(&fixture).await, 1, "acknowledged"),
            Err(CommitError::NotWritten(_)) => {
                assert_eq!(
                    counted.times(&fixture).await,
                    0,
                    "not written is not written"
                );
                assert_ne!(cut, Cut::AfterCommit, "it was made durable");
            }
            Err(CommitError::Unknown(_)) => {}
            Err(CommitError::Stale(which)) => panic!("nobody else writes, yet {which:?}"),
        }
        let known = repeat_until_known(&fixture, &counted.commit).await;
        known.expect("nobody else writes");
        assert_eq!(counted.times(&fixture).await, 1, "exactly once");
        let again = repeat_until_known(&fixture, &counted.commit).await;
        again.expect("it was applied");
        assert_eq!(counted.times(&fixture).await, 1, "still once");
    }
    assert_eq!(fixture.stats().await.accepted, 12);
}

/// Cut before COMMIT: nothing is applied, and a repeat applies it once.
pub async fn a_commit_cut_before_is_applied_once_by_repeating(candidate: &dyn Candidate) {
    cut_and_resolve(candidate, Cut::BeforeCommit).await;
}

/// Cut during COMMIT: whatever the outcome, after a repeat it is applied once.
pub async fn a_commit_cut_in_the_middle_is_applied_once_by_repeating(candidate: &dyn Candidate) {
    cut_and_resolve(candidate, Cut::DuringCommit).await;
}

/// Cut after COMMIT: it is applied, and a repeat succeeds and changes nothing.
pub async fn a_commit_cut_after_is_applied_once_by_repeating(candidate: &dyn Candidate) {
    cut_and_resolve(candidate, Cut::AfterCommit).await;
}

/// A commit of unknown outcome that others overtook is either applied before them or stale for ever.
pub async fn an_overtaken_commit_is_never_applied_late(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("a", "0")).await;
    let cuts = [Cut::BeforeCommit, Cut::DuringCommit, Cut::AfterCommit];
    for (round, cut) in cuts.into_iter().cycle().take(12).enumerate() {
        let replace = |read: Version, writer: &str| {
            let body = bytes(&format!("{writer} {round}"));
            Commit::new().replace(key("a"), read, Vec::new(), body)
        };
        let lost = replace(fixture.version("a").await, "lost");
        candidate.cut(cut).await;
        drop(fixture.store.commit(&lost).await);
        let current = fixture.version("a").await;
        let happened = current == Version(lost.id());
        fixture.commit(replace(current, "later")).await;
        match repeat_until_known(&fixture, &lost).await {
            Ok(()) => assert!(happened, "{cut:?}: it came after what overtook it"),
            Err(CommitError::Stale(_)) => assert!(!happened, "{cut:?}: it had happened"),
            Err(error) => panic!("{error:?}"),
        }
        let body = fixture.get("a").await.expect("a").body;
        assert_eq!(body, format!("later {round}"));
    }
}

/// After a cut, commits of others and the next commits of the same client succeed.
pub async fn a_cut_affects_no_other_commit(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for cut in [Cut::BeforeCommit, Cut::DuringCommit, Cut::AfterCommit] {
        candidate.cut(cut).await;
        let lost = insert(&format!("{cut:?}"), "x");
        drop(fixture.store.commit(&lost).await);
        let id = fixture.start_ready().await;
        fixture.commit(advance(id, Next::Same)).await;
        fixture.commit(insert(&format!("after {cut:?}"), "x")).await;
    }
}
