//! Checks the victim's effect log: no memoised step is repeated, no operation ends twice.

use crate::victim::{EffectEntry, steps_of};
use crate::violation::{CheckResult, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectsReport {
    /// Steps done.
    pub effects: u64,
    /// Steps done again because the crash happened between the effect and its memo.
    pub repeats: u64,
    /// Operations that ended.
    pub done: BTreeSet<String>,
    /// The last step done of each operation.
    pub steps: BTreeMap<String, u32>,
}

#[derive(Debug, Default)]
struct OperationStory {
    verb: String,
    /// The last step, and the start of the victim in which it ran.
    last: Option<(u32, u64)>,
    memoised: BTreeSet<u32>,
    ended: bool,
}

/// Reads and checks an effect log.
///
/// # Flow
/// A step may be repeated only if nothing was logged after it: no memo, no later step, no end;
/// and only by another start of the victim. At most `concurrent` steps may be repeated after each
/// death, because no more were in progress.
///
/// # Errors
/// The first violation, with its operation.
pub fn check_effects(path: &Path, concurrent: u64) -> CheckResult<EffectsReport> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Violation::new(format!("no ledger: {error}")))?;
    let mut stories: BTreeMap<String, OperationStory> = BTreeMap::new();
    let mut repeated_after: BTreeMap<u64, u64> = BTreeMap::new();
    let mut report = EffectsReport::default();
    for line in text.lines() {
        let entry: EffectEntry = line.parse().map_err(|it| Violation::new(format!("{it}")))?;
        match entry {
            EffectEntry::Effect {
                operation,
                verb,
                step,
                boot,
                ..
            } => {
                report.effects += 1;
                let story = stories.entry(operation.clone()).or_default();
                story.verb = verb;
                report.steps.insert(operation.clone(), step);
                if let Some(after) = story.effect(step, boot).map_err(|it| it.at(&operation))? {
                    report.repeats += 1;
                    *repeated_after.entry(after).or_default() += 1;
                }
            }
            EffectEntry::Memo { operation, boot } => {
                let story = stories.entry(operation).or_default();
                if let Some((step, _)) = story.last.filter(|(_, of)| *of == boot) {
                    story.memoised.insert(step);
                }
            }
            EffectEntry::Done { operation, .. } => {
                let story = stories.entry(operation.clone()).or_default();
                story.end().map_err(|it| it.at(&operation))?;
                report.done.insert(operation);
            }
        }
    }
    if let Some((boot, count)) = repeated_after
        .iter()
        .find(|(_, count)| **count > concurrent)
    {
        let sentence = format!("{count} steps were repeated after the death of start {boot}");
        return Err(Violation::new(sentence));
    }
    Ok(report)
}

impl OperationStory {
    /// Adds an effect; for a repeat, returns the start of the victim that died before.
    fn effect(&mut self, step: u32, boot: u64) -> CheckResult<Option<u64>> {
        let broken = |what: &str| Err(Violation::new(format!("{} step {step}: {what}", self.verb)));
        if self.ended {
            return broken("done after the operation's end");
        }
        if self.memoised.contains(&step) {
            return broken("repeated although its memo was durable");
        }
        let before = self.last.replace((step, boot));
        match before {
            None if step == 1 => Ok(None),
            Some((last, _)) if step == last + 1 => Ok(None),
            Some((last, of)) if step == last && of < boot => Ok(Some(of)),
            Some((last, _)) if step == last => broken("repeated without a death in between"),
            Some((last, _)) if step < last => broken("repeated after a later step"),
            None | Some(_) => broken("done before the one before it"),
        }
    }

    fn end(&mut self) -> CheckResult<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Err(Violation::new("it ended twice"));
        }
        let steps = self.last.map_or(0, |(step, _)| step);
        if !self.verb.is_empty() && steps != steps_of(&self.verb) {
            let sentence = format!("{} ended after {steps} steps", self.verb);
            return Err(Violation::new(sentence));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{EffectsReport, check_effects};
    use crate::violation::CheckResult;

    fn check(lines: &str) -> CheckResult<EffectsReport> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), lines).expect("written");
        check_effects(file.path(), 1)
    }

    fn broken(lines: &str) -> String {
        check(lines).expect_err("must be noticed").to_string()
    }

    #[test]
    fn a_step_whose_memo_was_lost_may_be_repeated_after_a_death() {
        let lines = "effect a unbind 1 1 1\neffect a unbind 1 1 2\nmemo a 2\ndone a 2\n";
        assert_eq!(check(lines).expect("allowed").repeats, 1);
    }

    #[test]
    fn a_step_with_a_durable_memo_is_never_repeated() {
        let lines = "effect a bind 1 1 1\nmemo a 1\neffect a bind 1 1 2\n";
        assert!(broken(lines).contains("memo was durable"));
    }

    #[test]
    fn a_step_is_never_repeated_after_a_later_one() {
        let lines = "effect a bind 1 1 1\neffect a bind 2 1 1\neffect a bind 1 1 2\n";
        assert!(broken(lines).contains("after a later step"));
    }

    #[test]
    fn a_step_is_never_repeated_within_one_life() {
        let lines = "effect a bind 1 1 1\neffect a bind 1 1 1\n";
        assert!(broken(lines).contains("without a death"));
    }

    #[test]
    fn an_operation_ends_once_with_all_its_steps() {
        assert!(broken("done a 1\ndone a 2\n").contains("twice"));
        assert!(broken("effect a bind 1 1 1\nmemo a 1\ndone a 1\n").contains("after 1 steps"));
    }

    #[test]
    fn no_more_steps_are_repeated_than_were_in_progress() {
        let lines = "effect a bind 1 1 1\neffect b bind 1 1 1\n\
                     effect a bind 1 1 2\neffect b bind 1 1 2\n";
        assert!(broken(lines).contains("2 steps were repeated"));
    }
}
