//! When a run is terminated and when it is killed. Pure: time is the duration since the start.
//!
//! Signals and waiting are `supervise.rs`.

use crate::runner::Exit;
use std::time::Duration;

/// Interval at which killed processes that still exist are killed again.
const KILL_AGAIN: Duration = Duration::from_millis(50);

/// Why the supervisor ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Deadline,
    Stopped,
    /// The program has ended; its leftovers are killed.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Ending { cause: Cause, kill_at: Duration },
    Killed { cause: Cause, again_at: Duration },
}

/// Signal to send now to all processes of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownStep {
    Nothing,
    Terminate,
    Kill,
}

/// Progress of the shutdown of a run.
#[derive(Debug)]
pub(super) struct ShutdownTimeline {
    deadline: Duration,
    grace: Duration,
    phase: Phase,
}

impl ShutdownTimeline {
    pub(super) const fn new(deadline: Duration, grace: Duration) -> Self {
        Self {
            deadline,
            grace,
            phase: Phase::Running,
        }
    }

    /// Step to take at `now`.
    pub(super) fn step(&mut self, now: Duration, stop_asked: bool) -> ShutdownStep {
        match self.phase {
            Phase::Running if stop_asked => self.end(now, Cause::Stopped),
            Phase::Running if now >= self.deadline => self.end(now, Cause::Deadline),
            Phase::Running => ShutdownStep::Nothing,
            Phase::Ending { cause, kill_at } if now >= kill_at => self.kill(now, cause),
            Phase::Killed { cause, again_at } if now >= again_at => self.kill(now, cause),
            Phase::Ending { .. } | Phase::Killed { .. } => ShutdownStep::Nothing,
        }
    }

    /// The program ended at `now`. Processes that were terminated keep their grace.
    pub(super) fn program_ended(&mut self, now: Duration) {
        if self.phase == Phase::Running {
            self.phase = Phase::Killed {
                cause: Cause::Over,
                again_at: now,
            };
        }
    }

    /// Time until the next step, unless an event occurs.
    pub(super) fn idle(&self, now: Duration) -> Duration {
        let next = match self.phase {
            Phase::Running => self.deadline,
            Phase::Ending { kill_at, .. } => kill_at,
            Phase::Killed { again_at, .. } => again_at,
        };
        next.saturating_sub(now)
    }

    /// Exit of the run, from the exit of its program.
    pub(super) fn exit(&self, program: Exit) -> Exit {
        match self.phase {
            Phase::Running => program,
            Phase::Ending { cause, .. } | Phase::Killed { cause, .. } => match cause {
                Cause::Deadline => Exit::Deadline,
                Cause::Stopped => Exit::Stopped,
                Cause::Over => program,
            },
        }
    }

    fn end(&mut self, now: Duration, cause: Cause) -> ShutdownStep {
        let kill_at = now.saturating_add(self.grace);
        self.phase = Phase::Ending { cause, kill_at };
        ShutdownStep::Terminate
    }

    fn kill(&mut self, now: Duration, cause: Cause) -> ShutdownStep {
        let again_at = now.saturating_add(KILL_AGAIN);
        self.phase = Phase::Killed { cause, again_at };
        ShutdownStep::Kill
    }
}

#[cfg(test)]
mod tests {
    use super::{KILL_AGAIN, ShutdownStep, ShutdownTimeline};
    use crate::runner::Exit;
    use std::time::Duration;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_deadline_terminates_first_and_kills_after_the_grace() {
        let mut timeline = ShutdownTimeline::new(s(10), s(3));
        assert_eq!(timeline.step(s(9), false), ShutdownStep::Nothing);
        assert_eq!(timeline.idle(s(9)), s(1));
        assert_eq!(timeline.step(s(10), false), ShutdownStep::Terminate);
        assert_eq!(timeline.step(s(12), false), ShutdownStep::Nothing);
        assert_eq!(timeline.idle(s(12)), s(1));
        assert_eq!(timeline.step(s(13), false), ShutdownStep::Kill);
        assert_eq!(timeline.step(s(13) + KILL_AGAIN, false), ShutdownStep::Kill);
        assert_eq!(timeline.exit(Exit::Signal(9)), Exit::Deadline);
    }

    #[test]
    fn a_stop_terminates_once_and_takes_precedence_over_a_later_deadline() {
        let mut timeline = ShutdownTimeline::new(s(10), s(3));
        assert_eq!(timeline.step(s(8), true), ShutdownStep::Terminate);
        assert_eq!(timeline.step(s(10), true), ShutdownStep::Nothing);
        assert_eq!(timeline.exit(Exit::Code(0)), Exit::Stopped);
    }

    #[test]
    fn leftovers_of_an_ended_program_are_killed_at_once() {
        let mut timeline = ShutdownTimeline::new(s(10), s(3));
        timeline.program_ended(s(1));
        assert_eq!(timeline.step(s(1), false), ShutdownStep::Kill);
        assert_eq!(timeline.exit(Exit::Code(4)), Exit::Code(4));
    }

    #[test]
    fn terminated_processes_keep_their_grace_when_the_program_has_ended() {
        let mut timeline = ShutdownTimeline::new(s(10), s(3));
        assert_eq!(timeline.step(s(2), true), ShutdownStep::Terminate);
        timeline.program_ended(s(3));
        assert_eq!(timeline.step(s(3), true), ShutdownStep::Nothing);
        assert_eq!(timeline.step(s(5), true), ShutdownStep::Kill);
    }
}
