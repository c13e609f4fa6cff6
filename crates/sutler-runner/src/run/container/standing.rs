//! What an engine's word and the marks in a run directory mean together. Pure.

use crate::runner::Exit;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What an engine says of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Absent,
    /// Made, and not started.
    Created,
    Running {
        /// When it was started, where the engine says so.
        since: Option<Timestamp>,
    },
    Exited {
        code: i64,
        out_of_memory: bool,
    },
    /// In a way that says nothing: dead, or being removed.
    Unclear(String),
}

/// What a run directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) limits: RunLimits,
    /// When the engine was about to be told to start it.
    pub(super) started: Option<Timestamp>,
    /// Why it was ended by us.
    pub(super) end: Option<Exit>,
}

/// What has to be known of an order later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunLimits {
    pub(super) deadline_ms: u64,
    pub(super) output_bytes: u64,
}

impl Marks {
    /// How long the run has left.
    pub(super) fn left(&self, now: Timestamp) -> Duration {
        let Some(started) = self.started else {
            return Duration::from_millis(self.limits.deadline_ms);
        };
        let gone = Duration::try_from(now.duration_since(started)).unwrap_or_default();
        Duration::from_millis(self.limits.deadline_ms).saturating_sub(gone)
    }
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is no container, and there never was one that was started.
    NotMade,
    /// There is a container that was not started.
    Made,
    Running,
    /// It runs, and its deadline is over.
    Overdue,
    Ended(Exit),
    Lost(String),
}

pub(super) fn standing(container: Container, marks: Option<Marks>, now: Timestamp) -> Standing {
    let started = marks.as_ref().and_then(|marks| marks.started);
    match container {
        Container::Absent if started.is_some() => Standing::Lost(
            "The container of the run is gone: how far it got is not known. See who else removes containers."
                .to_owned(),
        ),
        Container::Absent => Standing::NotMade,
        Container::Created => Standing::Made,
        Container::Running { since } => match &marks {
            None => Standing::Lost(
                "The directory of the run is gone while its container runs: what it gives back cannot be \
                 read. See who removes files of the working directory."
                    .to_owned(),
            ),
            Some(marks) => {
                let from = Marks {
                    started: since.or(marks.started),
                    ..marks.clone()
                };
                match from.left(now).is_zero() {
                    true => Standing::Overdue,
                    false => Standing::Running,
                }
            }
        },
        Container::Exited {
            code,
            out_of_memory,
        } => match marks {
            None => Standing::Lost(
                "The directory of the run is gone: what it gave back cannot be read. See who removes files of \
                 the working directory."
                    .to_owned(),
            ),
            Some(marks) => Standing::Ended(match (marks.end, out_of_memory) {
                (Some(why), _) => why,
                (None, true) => Exit::Memory,
                (None, false) => Exit::Code(i32::try_from(code).unwrap_or(i32::MAX)),
            }),
        },
        Container::Unclear(state) => Standing::Lost(format!(
            "The engine says of the container of the run: {state}. How far it got is not known."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Container, Marks, RunLimits, Standing, standing};
    use crate::runner::Exit;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn marks(started: Option<i64>, end: Option<Exit>) -> Option<Marks> {
        Some(Marks {
            limits: RunLimits {
                deadline_ms: 10_000,
                output_bytes: 1,
            },
            started: started.map(at),
            end,
        })
    }

    #[test]
    fn every_word_of_the_engine_means_one_thing_with_the_marks_of_the_run() {
        let exited = |code, out_of_memory| Container::Exited {
            code,
            out_of_memory,
        };
        let running = |since: Option<i64>| Container::Running {
            since: since.map(at),
        };
        for (container, marks, means) in [
            (Container::Absent, None, Standing::NotMade),
            (Container::Absent, marks(None, None), Standing::NotMade),
            (Container::Created, marks(Some(1), None), Standing::Made),
            (running(Some(95)), marks(Some(94), None), Standing::Running),
            (running(Some(90)), marks(Some(99), None), Standing::Overdue),
            (running(None), marks(Some(80), None), Standing::Overdue),
            (
                exited(3, false),
                marks(Some(80), None),
                Standing::Ended(Exit::Code(3)),
            ),
            (
                exited(137, true),
                marks(Some(80), None),
                Standing::Ended(Exit::Memory),
            ),
            (
                exited(137, false),
                marks(Some(80), Some(Exit::Deadline)),
                Standing::Ended(Exit::Deadline),
            ),
        ] {
            let shown = format!("{container:?} {marks:?}");
            assert_eq!(standing(container, marks, at(100)), means, "{shown}");
        }
        for (container, marks) in [
            (Container::Absent, marks(Some(80), None)),
            (running(Some(95)), None),
            (exited(0, false), None),
            (Container::Unclear("dead".to_owned()), marks(Some(80), None)),
        ] {
            let seen = standing(container, marks, at(100));
            assert!(matches!(seen, Standing::Lost(_)), "{seen:?}");
        }
    }
}
