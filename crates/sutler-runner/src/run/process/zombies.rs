//! Supervisors started by this process, until they are waited for: an ended child that is not waited for stays in
//! the process list.
//!
//! Each is checked together with its run: checking all every time would cost more with every run.

use crate::run_spec::RunName;
use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Supervisors that are not reaped yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Zombies(Arc<Mutex<HashMap<RunName, Child>>>);

impl Zombies {
    /// Adds a started supervisor.
    pub(super) fn expect(&self, name: RunName, supervisor: Child) {
        self.running().insert(name, supervisor);
    }

    /// Reaps the supervisor of a run, if it has ended.
    pub(super) fn reap(&self, name: RunName) {
        let mut running = self.running();
        if running.get_mut(&name).is_some_and(has_ended) {
            running.remove(&name);
        }
    }

    /// Reaps all that have ended.
    pub(super) fn reap_all(&self) {
        self.running()
            .retain(|_, supervisor| !has_ended(supervisor));
    }

    fn running(&self) -> MutexGuard<'_, HashMap<RunName, Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_ended(supervisor: &mut Child) -> bool {
    !matches!(supervisor.try_wait(), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::Zombies;
    use crate::run_spec::RunName;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use uuid::Uuid;

    fn name(nth: u128) -> RunName {
        RunName {
            operation: Uuid::from_u128(nth),
            attempt: 1,
        }
    }

    fn reaped_eventually(zombies: &Zombies, left: usize, reap: impl Fn()) {
        let begun = Instant::now();
        while zombies.running().len() > left {
            assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
            reap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn ended_supervisors_are_reaped_and_running_ones_are_not() {
        let zombies = Zombies::default();
        let mut waits = Command::new("cat");
        let mut waits = waits.stdin(Stdio::piped()).spawn().expect("it runs");
        let input = waits.stdin.take();
        zombies.expect(name(1), waits);
        for nth in [2, 3] {
            let ends = Command::new("true").spawn().expect("it runs");
            zombies.expect(name(nth), ends);
        }
        reaped_eventually(&zombies, 2, || zombies.reap(name(2)));
        reaped_eventually(&zombies, 1, || zombies.reap_all());
        zombies.reap(name(1));
        assert_eq!(zombies.running().len(), 1, "it lives");
        drop(input);
        reaped_eventually(&zombies, 0, || zombies.reap(name(1)));
    }
}
