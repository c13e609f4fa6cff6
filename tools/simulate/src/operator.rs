//! A simulated operator who gives commands about any instance or binding, and often goes away before the
//! answer. In some scenarios the process that is asked dies.

use crate::client::send;
use crate::commit_checker::CommitChecker;
use crate::external_system::ResourceName;
use crate::replica::{Process, Replicas};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time between the request of a purge and the death of its process: about the time that a purge takes.
const KILLED_WITHIN: Duration = Duration::from_millis(40);

/// An operator.
pub(crate) struct Operator {
    pub replicas: Arc<Replicas>,
    pub checker: Arc<CommitChecker>,
    pub instances: Vec<String>,
    pub bindings: Vec<String>,
    /// Set when the part with faults is over.
    pub over: Arc<AtomicBool>,
}

impl Operator {
    /// Gives commands until the part with faults is over.
    pub(crate) async fn run(&self) {
        let choices = &self.replicas.network.choices;
        loop {
            let longest = match self.replicas.scenario.purge_kills {
                true => Duration::from_secs(8),
                false => Duration::from_secs(20),
            };
            let pause = choices.between(Duration::from_secs(1), longest);
            tokio::time::sleep(pause).await;
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let instance = &self.instances[choices.index(self.instances.len())];
            if self.replicas.scenario.purge_kills {
                self.command(&ResourceName::instance(instance), "purge")
                    .await;
                continue;
            }
            let lane = match choices.percent(30) {
                true => {
                    let binding = &self.bindings[choices.index(self.bindings.len())];
                    ResourceName::binding(instance, binding)
                }
                false => ResourceName::instance(instance),
            };
            let command = choices.pick(&["retry", "cancel", "abandon", "purge", "purge"]);
            self.command(&lane, command).await;
        }
    }

    /// Kills a process, often in the middle of a purge; another one takes its place.
    fn kill_soon(&self, slot: usize, process: &Process) {
        let replicas = Arc::clone(&self.replicas);
        let name = process.name.clone();
        tokio::spawn(async move {
            let choices = &replicas.network.choices;
            tokio::time::sleep(choices.between(Duration::ZERO, KILLED_WITHIN)).await;
            let current = replicas.process(slot).map(|it| it.name);
            if current.as_ref() == Some(&name) {
                let history = &replicas.network.history;
                history.record("fault", || format!("fault: Kill of {name}"));
                replicas.kill(slot);
                replicas.start_later(slot);
            }
        });
    }

    async fn command(&self, lane: &ResourceName, command: &str) {
        let (network, external) = (&self.replicas.network, &self.replicas.external);
        let slot = network.choices.index(self.replicas.count());
        let Some(process) = self.replicas.process(slot) else {
            return;
        };
        // Both may leave things behind: what a run still does after its operation was ended.
        if matches!(command, "abandon" | "purge") {
            external.excuse(lane, &self.bindings);
            self.checker.allow_purge(lane);
        }
        external.contest(&lane.instance);
        let path = match &lane.binding {
            Some(binding) => format!("/admin/v1/bindings/{}/{binding}/{command}", lane.instance),
            None => format!("/admin/v1/instances/{}/{command}", lane.instance),
        };
        let timeout = match network.choices.below(3) {
            0 => Duration::from_millis(20),
            1 => Duration::from_millis(200),
            _ => Duration::from_secs(10),
        };
        let timeout = network.choices.between(Duration::from_millis(1), timeout);
        if self.replicas.scenario.purge_kills {
            self.kill_soon(slot, &process);
        }
        let body = json!({ "reason": "simulated" });
        let answer = send(&process, "POST", &path, Some(body), timeout).await;
        network.history.record("operator", || match answer {
            Ok(answer) => format!(
                "operator: {command} {lane} at {} -> {} {}",
                process.name, answer.status, answer.json
            ),
            Err(why) => format!(
                "operator: {command} {lane} at {} -> no answer ({why:?})",
                process.name
            ),
        });
    }
}
