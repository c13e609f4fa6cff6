//! Outcome of an operation from the end of its run. Pure: one table, held by tests.
//!
//! Exit 0 is success, 8 means that the bundle has no such action, everything else is a failure. Which results are
//! committed, and what the user reads, is decided here and nowhere else.

use sutler_bundle::{Action, OnLost};
use sutler_runner::{Exit, RunName, RunResult, Vars};

/// The exit code of an entry point that does not know the action.
pub const NO_SUCH_ACTION: i32 = 8;
/// Longest sentence of a bundle that a user is shown, in characters.
const SENTENCE_CHARS_MAX: usize = 1_000;

/// How a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was seen to end.
    Exited(Exit),
    /// It cannot be told; but it runs no more. The sentence, for operators, says why.
    Lost(String),
    /// It cannot be told, and neither can whether it still runs: nothing may be run in its place.
    Unreachable(String),
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It did what was asked: this is what it gave.
    Done(RunResult),
    /// There was nothing to do, because the bundle has no such action; the operator is told.
    NothingToDo,
    /// It failed. What it set is put aside for whoever cleans up; it is never part of the state.
    Failed {
        /// For the user.
        sentence: String,
        /// State set before the failure.
        aside: Option<Vars>,
    },
    /// It cannot be done by this bundle, and nothing was changed.
    Unsupported(String),
    /// It is worth another attempt, which is another run.
    Again {
        /// For whoever polls.
        sentence: String,
        /// State set by the lost run, for the next run and for clean-up.
        aside: Option<Vars>,
    },
}

/// Outcome of an operation.
#[must_use]
pub fn conclude(
    action: Action,
    name: RunName,
    ending: Ending,
    result: RunResult,
    on_lost: OnLost,
) -> Outcome {
    let exit = match ending {
        Ending::Exited(exit) => exit,
        Ending::Lost(_) if on_lost == OnLost::Rerun => {
            let sentence = "It cannot be told how the run ended; it is made again.".to_owned();
            let aside = aside(action, result);
            return Outcome::Again { sentence, aside };
        }
        Ending::Lost(_) => {
            let sentence = format!("It cannot be told how the {action} ended. {}", see(name));
            return failed(action, sentence, result);
        }
        Ending::Unreachable(_) => {
            let sentence = format!(
                "It cannot be told how the {action} ended, nor whether it still runs; it was not run \
                 again. {}",
                see(name)
            );
            return failed(action, sentence, result);
        }
    };
    match exit {
        Exit::Code(0) => match result.refused.first() {
            Some(refused) => {
                let sentence = format!("{refused} {}", see(name));
                failed(action, sentence, result)
            }
            None => done(action, name, result),
        },
        Exit::Code(NO_SUCH_ACTION) => not_there(action, result),
        Exit::Code(code) => {
            let sentence = own_words(&result).unwrap_or_else(|| {
                format!("The {action} failed with exit code {code}. {}", see(name))
            });
            failed(action, sentence, result)
        }
        Exit::Signal(signal) => {
            let sentence = own_words(&result).unwrap_or_else(|| {
                format!("The {action} was ended by signal {signal}. {}", see(name))
            });
            failed(action, sentence, result)
        }
        Exit::Deadline => {
            let sentence = format!(
                "The {action} took longer than it may and was ended. {}",
                see(name)
            );
            failed(action, sentence, result)
        }
        Exit::Stopped => failed(action, format!("The {action} was cancelled."), result),
        Exit::Memory => {
            let sentence = format!(
                "The {action} needed more memory than it may have and was ended. {}",
                see(name)
            );
            failed(action, sentence, result)
        }
    }
}

fn done(action: Action, name: RunName, result: RunResult) -> Outcome {
    match action {
        Action::Bind if result.credentials.is_none() => {
            let sentence = format!(
                "The bind ended well but gave no credentials: its bundle must write \
                 credentials.json. {}",
                see(name)
            );
            failed(action, sentence, result)
        }
        // Credentials are welcome from a provision and an update, and never needed.
        Action::Provision | Action::Update | Action::Bind => Outcome::Done(result),
        Action::Deprovision | Action::Unbind => Outcome::Done(RunResult {
            credentials: None,
            ..result
        }),
    }
}

/// The bundle does not know the action.
fn not_there(action: Action, result: RunResult) -> Outcome {
    match action {
        // Nothing was made for the binding alone, so nothing is left of it.
        Action::Unbind => Outcome::NothingToDo,
        Action::Update => {
            let sentence = "This service cannot be updated: its bundle has no action for it.";
            Outcome::Unsupported(sentence.to_owned())
        }
        Action::Bind => {
            let sentence = "The bundle of this service has no bind action, so there are no \
                credentials to give. Its author must add one, or say share_provision_credentials \
                in the manifest.";
            failed(action, sentence.to_owned(), result)
        }
        Action::Provision | Action::Deprovision => {
            let sentence = format!(
                "The bundle of this service has no {action} action. Its author must add one."
            );
            failed(action, sentence, result)
        }
    }
}

fn failed(action: Action, sentence: String, result: RunResult) -> Outcome {
    let aside = aside(action, result);
    Outcome::Failed { sentence, aside }
}

/// The part of a result that clean-up needs.
fn aside(action: Action, result: RunResult) -> Option<Vars> {
    match action {
        Action::Provision => result.state,
        Action::Bind => result.binding_state,
        // What is there stays as it was.
        Action::Update | Action::Deprovision | Action::Unbind => None,
    }
}

/// The sentence that the bundle itself has for the user.
fn own_words(result: &RunResult) -> Option<String> {
    let words = result.error.as_deref()?.trim();
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let words: String = words.chars().take(SENTENCE_CHARS_MAX).map(plain).collect();
    (!words.is_empty()).then_some(words)
}

fn see(name: RunName) -> String {
    format!(
        "The operator of the service broker can see why: sutler admin logs {}.",
        name.operation
    )
}

#[cfg(test)]
mod tests;
