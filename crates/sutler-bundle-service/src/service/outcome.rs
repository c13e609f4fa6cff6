//! Outcome of an operation from the end of its run. Pure: one table, checked by tests.
//!
//! Exit 0 is success, 8 means that the bundle does not have the action, everything else is a failure. Only this file
//! decides which results are committed, and the text that the user reads.

use sutler_bundle::{Action, OnLost};
use sutler_runner::{Exit, RunName, RunResult, Vars};

/// Exit code of an entry point that does not know the action.
pub const NO_SUCH_ACTION: i32 = 8;
/// Longest text of a bundle that a user is shown, in characters.
const SENTENCE_CHARS_MAX: usize = 1_000;

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its exit was observed.
    Exited(Exit),
    /// Its exit is unknown, but it is not running. The text, for operators, says why.
    Lost(String),
    /// Its exit is unknown, and it may still be running: no other run may replace it.
    Unreachable(String),
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success, with the result.
    Done(RunResult),
    /// Nothing was done, because the bundle does not have the action; this is logged for the operator.
    NothingToDo,
    /// Failure. The state it set is put aside for clean-up; it never becomes part of the state.
    Failed {
        /// For the user.
        sentence: String,
        /// State set before the failure.
        aside: Option<Vars>,
    },
    /// The bundle does not support it, and nothing was changed.
    Unsupported(String),
    /// Another attempt is worthwhile; it is another run.
    Again {
        /// Text for polls.
        sentence: String,
        /// State set by the lost run, for the next run and for clean-up.
        aside: Option<Vars>,
    },
}

/// Determines the outcome of an operation.
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
        // A provision and an update may return credentials, but need not.
        Action::Provision | Action::Update | Action::Bind => Outcome::Done(result),
        Action::Deprovision | Action::Unbind => Outcome::Done(RunResult {
            credentials: None,
            ..result
        }),
    }
}

/// The bundle does not have the action.
fn not_there(action: Action, result: RunResult) -> Outcome {
    match action {
        // Nothing was created for the binding alone, so nothing is left.
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
        // The existing state is unchanged.
        Action::Update | Action::Deprovision | Action::Unbind => None,
    }
}

/// The bundle's own text for the user.
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
