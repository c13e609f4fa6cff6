//! State of a container run, from the engine's report and the markers in the run directory. Pure.
//!
//! Requests to the engine are `engine.rs`.

use crate::runner::Exit;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The engine's report of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EngineReport {
    Absent,
    /// Created, but not started.
    Created,
    Running {
        /// Start time, if the engine reports it.
        since: Option<Timestamp>,
    },
    Exited {
        code: i64,
        out_of_memory: bool,
    },
    /// A state without an exit code: dead, or being removed.
    Unclear(String),
}

/// Markers of a run directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunMarkers {
    pub(super) limits: WatchLimits,
    /// Time just before the engine was asked to start it.
    pub(super) started: Option<Timestamp>,
    /// Why the runner ended it.
    pub(super) end: Option<Exit>,
}

/// Limits used to watch a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WatchLimits {
    pub(super) deadline_ms: u64,
    pub(super) output_bytes: u64,
}

impl RunMarkers {
    /// Remaining time of the run.
    pub(super) fn left(&self, now: Timestamp) -> Duration {
        let Some(started) = self.started else {
            return Duration::from_millis(self.limits.deadline_ms);
        };
        let gone = Duration::try_from(now.duration_since(started)).unwrap_or_default();
        Duration::from_millis(self.limits.deadline_ms).saturating_sub(gone)
    }
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContainerState {
    /// No container exists, and none was ever started.
    NotMade,
    /// A container exists that was not started.
    Made,
    Running,
    /// It is running after its deadline.
    Overdue,
    Ended(Exit),
    Lost(String),
}

pub(super) fn state_of(
    container: EngineReport,
    markers: Option<RunMarkers>,
    now: Timestamp,
) -> ContainerState {
    let started = markers.as_ref().and_then(|markers| markers.started);
    match container {
        EngineReport::Absent if started.is_some() => ContainerState::Lost(
            "The container of the run is gone: how far it got is not known. See who else removes containers."
                .to_owned(),
        ),
        EngineReport::Absent => ContainerState::NotMade,
        EngineReport::Created => ContainerState::Made,
        EngineReport::Running { since } => match &markers {
            None => ContainerState::Lost(
                "The directory of the run is gone while its container runs: what it gives back cannot be \
                 read. See who removes files of the working directory."
                    .to_owned(),
            ),
            Some(markers) => {
                let from = RunMarkers {
                    started: since.or(markers.started),
                    ..markers.clone()
                };
                match from.left(now).is_zero() {
                    true => ContainerState::Overdue,
                    false => ContainerState::Running,
                }
            }
        },
        EngineReport::Exited {
            code,
            out_of_memory,
        } => match markers {
            None => ContainerState::Lost(
                "The directory of the run is gone: what it gave back cannot be read. See who removes files of \
                 the working directory."
                    .to_owned(),
            ),
            Some(markers) => ContainerState::Ended(match (markers.end, out_of_memory) {
                (Some(why), _) => why,
                (None, true) => Exit::Memory,
                (None, false) => Exit::Code(i32::try_from(code).unwrap_or(i32::MAX)),
            }),
        },
        EngineReport::Unclear(state) => ContainerState::Lost(format!(
            "The engine says of the container of the run: {state}. How far it got is not known."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{ContainerState, EngineReport, RunMarkers, WatchLimits, state_of};
    use crate::runner::Exit;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn markers(started: Option<i64>, end: Option<Exit>) -> Option<RunMarkers> {
        Some(RunMarkers {
            limits: WatchLimits {
                deadline_ms: 10_000,
                output_bytes: 1,
            },
            started: started.map(at),
            end,
        })
    }

    #[test]
    fn every_report_of_the_engine_gives_one_state_with_the_markers_of_the_run() {
        let exited = |code, out_of_memory| EngineReport::Exited {
            code,
            out_of_memory,
        };
        let running = |since: Option<i64>| EngineReport::Running {
            since: since.map(at),
        };
        for (container, markers, means) in [
            (EngineReport::Absent, None, ContainerState::NotMade),
            (
                EngineReport::Absent,
                markers(None, None),
                ContainerState::NotMade,
            ),
            (
                EngineReport::Created,
                markers(Some(1), None),
                ContainerState::Made,
            ),
            (
                running(Some(95)),
                markers(Some(94), None),
                ContainerState::Running,
            ),
            (
                running(Some(90)),
                markers(Some(99), None),
                ContainerState::Overdue,
            ),
            (
                running(None),
                markers(Some(80), None),
                ContainerState::Overdue,
            ),
            (
                exited(3, false),
                markers(Some(80), None),
                ContainerState::Ended(Exit::Code(3)),
            ),
            (
                exited(137, true),
                markers(Some(80), None),
                ContainerState::Ended(Exit::Memory),
            ),
            (
                exited(137, false),
                markers(Some(80), Some(Exit::Deadline)),
                ContainerState::Ended(Exit::Deadline),
            ),
        ] {
            let shown = format!("{container:?} {markers:?}");
            assert_eq!(state_of(container, markers, at(100)), means, "{shown}");
        }
        for (container, markers) in [
            (EngineReport::Absent, markers(Some(80), None)),
            (running(Some(95)), None),
            (exited(0, false), None),
            (
                EngineReport::Unclear("dead".to_owned()),
                markers(Some(80), None),
            ),
        ] {
            let status = state_of(container, markers, at(100));
            assert!(matches!(status, ContainerState::Lost(_)), "{status:?}");
        }
    }
}
