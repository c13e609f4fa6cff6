//! JSON of keys and of a rekey. Pure; a key is named by its id, and compared by its check value.

use serde::Serialize;
use std::collections::BTreeMap;
use sutler_journal::rekey::{KeyUsage, RecordCounts, RekeyProgress, RekeyReport};
use sutler_journal::{KeyId, KeyRing};

/// Numbers of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CountsView {
    documents: u64,
    operations: u64,
    log_chunks: u64,
}

impl From<RecordCounts> for CountsView {
    fn from(counts: RecordCounts) -> Self {
        Self {
            documents: counts.documents,
            operations: counts.operations,
            log_chunks: counts.log_chunks,
        }
    }
}

/// The keys of a broker and of its store.
#[derive(Debug, Serialize)]
pub(crate) struct KeysView {
    /// The key that seals.
    current: String,
    /// Whether a record of the current key was opened with it: the keys belong to this store.
    opens: bool,
    items: Vec<KeyView>,
    /// Records that name no key.
    damaged: u64,
}

/// One key.
#[derive(Debug, Serialize)]
struct KeyView {
    id: String,
    /// `current` seals and opens, `opens` only opens, `missing` is named by records and unknown to the broker.
    state: &'static str,
    /// The same in two places if the key is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    records: CountsView,
}

impl KeysView {
    /// `opens`: whether a record of the current key was opened.
    pub(crate) fn of(ring: &KeyRing, usage: &KeyUsage, opens: bool) -> Self {
        let (ids, current) = (ring.ids(), ring.current());
        let missing = usage.by_key.keys().filter(|id| !ids.contains(id));
        let view = |id: &KeyId| KeyView {
            id: id.to_string(),
            state: match (*id == current, ids.contains(id)) {
                (true, _) => "current",
                (false, true) => "opens",
                (false, false) => "missing",
            },
            check: ring.check_value(id),
            records: usage.of(id).into(),
        };
        Self {
            current: current.to_string(),
            opens,
            items: ids.iter().chain(missing).map(view).collect(),
            damaged: usage.damaged,
        }
    }
}

/// State of a rekey.
#[derive(Clone, Debug)]
pub(crate) enum RekeyState {
    Running,
    Ended(RekeyReport),
    /// The store did not answer, or the run broke off; the log has the cause.
    Failed,
    /// The broker was shut down.
    Interrupted,
}

/// The last rekey of this process.
#[derive(Debug, Serialize)]
pub(crate) struct RekeyView {
    /// `none`, `running`, `complete`, `not_settled`, `failed` or `interrupted`.
    state: &'static str,
    /// Sentence about the state, with the next step.
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Number of the pass over the store; the last one finds nothing to do.
    pass: u32,
    /// Documents and operations to read in a pass, as known at the start.
    expected: u64,
    /// Read in this pass.
    read: CountsView,
    /// Sealed again in all passes.
    resealed: CountsView,
    /// Records of older keys, at the end.
    left: BTreeMap<String, CountsView>,
    /// Number of records that cannot be sealed again.
    failed: u64,
    /// Some of them.
    failures: Vec<FailureView>,
}

/// A record that cannot be sealed again.
#[derive(Debug, Serialize)]
struct FailureView {
    record: String,
    reason: String,
}

impl RekeyView {
    /// No rekey since the start.
    pub(crate) fn none() -> Self {
        let description = "This broker has run no rekey since its start.".to_owned();
        Self::new("none", description, RekeyProgress::default(), 0)
    }

    /// A rekey with this current key.
    pub(crate) fn of(
        state: &RekeyState,
        key: &KeyId,
        progress: RekeyProgress,
        expected: u64,
    ) -> Self {
        let (word, description) = (word(state), sentence(state, key, progress));
        let mut view = Self {
            key: Some(key.to_string()),
            ..Self::new(word, description, progress, expected)
        };
        if let RekeyState::Ended(report) = state {
            view.read = report.seen.into();
            let left = report.left.iter();
            let left = left.map(|(key, counts)| (key.to_string(), (*counts).into()));
            view.left = left.collect();
            view.failed = report.failed;
            let failures = report.failures.iter().map(|it| FailureView {
                record: it.record.clone(),
                reason: it.reason.clone(),
            });
            view.failures = failures.collect();
        }
        view
    }

    fn new(
        state: &'static str,
        description: String,
        progress: RekeyProgress,
        expected: u64,
    ) -> Self {
        Self {
            state,
            description,
            key: None,
            pass: progress.pass,
            expected,
            read: progress.seen.into(),
            resealed: progress.resealed.into(),
            left: BTreeMap::new(),
            failed: 0,
            failures: Vec::new(),
        }
    }
}

fn word(state: &RekeyState) -> &'static str {
    match state {
        RekeyState::Running => "running",
        RekeyState::Ended(report) if report.is_complete() => "complete",
        RekeyState::Ended(report) if report.failed > 0 => "failed",
        RekeyState::Ended(_) => "not_settled",
        RekeyState::Failed => "failed",
        RekeyState::Interrupted => "interrupted",
    }
}

/// Sentence about a state, with the next step.
pub(crate) fn sentence(state: &RekeyState, key: &KeyId, progress: RekeyProgress) -> String {
    let (read, resealed) = (progress.seen.total(), progress.resealed.total());
    match state {
        RekeyState::Running => format!(
            "The rekey runs: {read} records read in pass {}, {resealed} sealed again with {key}.",
            progress.pass
        ),
        RekeyState::Ended(report) if report.is_complete() => format!(
            "All {} records are sealed with {key}, {resealed} of them now; nothing needs another key. Retire the others with `sutler admin keys retire`.",
            report.seen.total()
        ),
        RekeyState::Ended(report) if report.failed > 0 => format!(
            "Records that cannot be sealed again: {}. Keep the old key; stop the broker if its store is an SQLite file, and run `sutler store check` about them.",
            report.failed
        ),
        RekeyState::Ended(_) => format!(
            "Others still write with an older key: let every broker read the key file in which {key} is current (SIGHUP), then run the rekey again."
        ),
        RekeyState::Failed => format!(
            "The rekey broke off after {resealed} records were sealed again with {key}; the log of the broker says why. Run it again to continue."
        ),
        RekeyState::Interrupted => format!(
            "The broker was stopped after {resealed} records were sealed again with {key}. Start it and run the rekey again to continue."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{KeysView, RekeyState, RekeyView};
    use sutler_journal::rekey::{KeyUsage, RecordCounts, RekeyProgress, RekeyReport};
    use sutler_journal::{KeyId, KeyRing};

    fn one() -> RecordCounts {
        RecordCounts {
            documents: 1,
            ..RecordCounts::default()
        }
    }

    #[test]
    fn every_state_of_a_rekey_has_a_word_and_a_next_step() {
        let key = KeyId::parse("k2").expect("an id");
        let complete = RekeyReport {
            settled: true,
            seen: one(),
            ..RekeyReport::default()
        };
        let left = RekeyReport {
            left: [(KeyId::parse("k1").expect("an id"), one())].into(),
            ..complete.clone()
        };
        let failed = RekeyReport {
            failed: 1,
            ..complete.clone()
        };
        for (state, word, step) in [
            (RekeyState::Running, "running", "sealed again with k2"),
            (
                RekeyState::Ended(complete),
                "complete",
                "sutler admin keys retire",
            ),
            (RekeyState::Ended(left), "not_settled", "SIGHUP"),
            (RekeyState::Ended(failed), "failed", "sutler store check"),
            (RekeyState::Failed, "failed", "Run it again"),
            (RekeyState::Interrupted, "interrupted", "again to continue"),
        ] {
            let view = RekeyView::of(&state, &key, RekeyProgress::default(), 3);
            assert_eq!(view.state, word);
            assert!(view.description.contains(step), "{}", view.description);
        }
    }

    #[test]
    fn keys_that_only_records_name_are_missing() {
        let lines = [KeyRing::fresh_line("k2"), KeyRing::fresh_line("k1")];
        let ring = KeyRing::parse(&format!("{}{}", *lines[0], *lines[1])).expect("a ring");
        let usage = KeyUsage {
            by_key: [(KeyId::parse("k0").expect("an id"), one())].into(),
            ..KeyUsage::default()
        };
        let view = KeysView::of(&ring, &usage, true);
        let items = view.items.iter();
        let states: Vec<_> = items.map(|it| (it.id.as_str(), it.state)).collect();
        assert_eq!(
            states,
            [("k2", "current"), ("k1", "opens"), ("k0", "missing")]
        );
        let text = serde_json::to_string(&view).expect("JSON");
        for line in lines {
            let (_, secret) = line.trim().split_once(':').expect("a key");
            assert!(!text.contains(secret), "no key is shown");
        }
    }
}
