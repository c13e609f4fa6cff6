//! A runner that runs nothing: it follows scripts of the test, and records the run specs.

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_bundle::Action;
use sutler_runner::{
    Exit, RunError, RunEvent, RunName, RunProgress, RunResult, RunSpec, RunStatus, Runner, Vars,
};
use tokio::sync::{Notify, mpsc, watch};

/// Behaviour of a run.
#[derive(Clone)]
pub(crate) struct Script {
    pub exit: Exit,
    pub result: RunResult,
    pub output: Vec<&'static str>,
    pub progress: Option<&'static str>,
    /// It ends only when the test releases it.
    pub held: bool,
}

impl Script {
    /// Succeeds without a result.
    pub(crate) fn well() -> Self {
        Self::exits(0)
    }

    pub(crate) fn exits(code: i32) -> Self {
        Self {
            exit: Exit::Code(code),
            result: RunResult::default(),
            output: Vec::new(),
            progress: None,
            held: false,
        }
    }

    pub(crate) fn credentials(mut self, credentials: Value) -> Self {
        self.result.credentials = Some(vars(credentials));
        self
    }

    pub(crate) fn state(mut self, state: Value) -> Self {
        self.result.state = Some(vars(state));
        self
    }

    pub(crate) fn binding_state(mut self, state: Value) -> Self {
        self.result.binding_state = Some(vars(state));
        self
    }

    pub(crate) fn dashboard(mut self, url: &str) -> Self {
        self.result.dashboard_url = Some(url.to_owned());
        self
    }

    pub(crate) fn error(mut self, sentence: &str) -> Self {
        self.result.error = Some(sentence.to_owned());
        self
    }

    pub(crate) fn with_output(mut self, output: &'static str) -> Self {
        self.output.push(output);
        self
    }

    pub(crate) fn with_progress(mut self, progress: &'static str) -> Self {
        self.progress = Some(progress);
        self
    }

    pub(crate) fn held(mut self) -> Self {
        self.held = true;
        self
    }
}

fn vars(value: Value) -> Vars {
    Vars(serde_json::from_value(value).expect("an object"))
}

struct FakeRun {
    script: Script,
    status: watch::Sender<RunStatus>,
}

/// The runner; it outlives brokers.
#[derive(Default)]
pub(crate) struct FakeRunner {
    scripts: Mutex<HashMap<Action, Script>>,
    runs: Mutex<BTreeMap<RunName, FakeRun>>,
    started_specs: Mutex<Vec<RunSpec>>,
    silent: Mutex<bool>,
    /// Number of started watches.
    watches: AtomicUsize,
    dropped: Notify,
    refuses: Mutex<bool>,
    /// Runs whose removal never returns.
    stuck: Mutex<BTreeSet<RunName>>,
    /// Whether stops fail, and how many did.
    stubborn: Mutex<(bool, u32)>,
    /// Whether starts never return, and how many were begun.
    slow: Mutex<(bool, u32)>,
}

impl FakeRunner {
    /// Sets the behaviour of an action.
    pub(crate) fn set_script(&self, action: Action, script: Script) {
        self.scripts.lock().unwrap().insert(action, script);
    }

    /// All started run specs, in order.
    pub(crate) fn started_specs(&self) -> Vec<RunSpec> {
        self.started_specs.lock().unwrap().clone()
    }

    /// Variables of the last run.
    pub(crate) fn last_vars(&self) -> Map<String, Value> {
        let started_specs = self.started_specs();
        started_specs
            .last()
            .expect("something was ordered")
            .vars
            .0
            .clone()
    }

    pub(crate) fn actions(&self) -> Vec<Action> {
        self.started_specs().iter().map(|it| it.action).collect()
    }

    /// Number of runs that were not removed.
    pub(crate) fn left(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// Lets held runs end.
    pub(crate) fn release(&self) {
        for staged in self.runs.lock().unwrap().values() {
            if *staged.status.borrow() == RunStatus::Running {
                staged
                    .status
                    .send_replace(RunStatus::Finished(staged.script.exit.clone()));
            }
        }
    }

    /// Makes the ends of all runs unknown.
    pub(crate) fn lose(&self) {
        for staged in self.runs.lock().unwrap().values() {
            staged
                .status
                .send_replace(RunStatus::Lost("a test said so".to_owned()));
        }
    }

    pub(crate) fn set_unavailable(&self, silent: bool) {
        *self.silent.lock().unwrap() = silent;
    }

    /// Number of started watches.
    pub(crate) fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Ends all watches, although the runs continue.
    pub(crate) fn drop_watch(&self) {
        self.dropped.notify_one();
    }

    /// Makes the removal of the current runs never return.
    pub(crate) fn block_removals(&self) {
        let runs = self.runs.lock().unwrap();
        self.stuck.lock().unwrap().extend(runs.keys());
    }

    /// Makes every start fail.
    pub(crate) fn refuses(&self, refuses: bool) {
        *self.refuses.lock().unwrap() = refuses;
    }

    /// Makes stops fail.
    pub(crate) fn fail_stops(&self, stubborn: bool) {
        self.stubborn.lock().unwrap().0 = stubborn;
    }

    /// Number of failed stops.
    pub(crate) fn failed_stops(&self) -> u32 {
        self.stubborn.lock().unwrap().1
    }

    /// Makes starts never return, as if an image were pulled.
    pub(crate) fn block_starts(&self, slow: bool) {
        self.slow.lock().unwrap().0 = slow;
    }

    /// Number of starts that never returned.
    pub(crate) fn slow_starts(&self) -> u32 {
        self.slow.lock().unwrap().1
    }

    fn is_start_blocked(&self) -> bool {
        let mut slow = self.slow.lock().unwrap();
        slow.1 += u32::from(slow.0);
        slow.0
    }

    fn answers(&self) -> Result<(), RunError> {
        match *self.silent.lock().unwrap() {
            true => Err(RunError::Unavailable("a test said so".to_owned())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Runner for FakeRunner {
    async fn status(&self, name: RunName) -> Result<RunStatus, RunError> {
        self.answers()?;
        let runs = self.runs.lock().unwrap();
        let status = runs.get(&name).map(|it| it.status.borrow().clone());
        Ok(status.unwrap_or(RunStatus::NeverStarted))
    }

    async fn start(&self, run_spec: &RunSpec) -> Result<(), RunError> {
        self.answers()?;
        if *self.refuses.lock().unwrap() {
            return Err(RunError::Refused("a test said so".to_owned()));
        }
        if self.is_start_blocked() {
            std::future::pending::<()>().await;
        }
        let mut runs = self.runs.lock().unwrap();
        if runs.contains_key(&run_spec.name) {
            return Ok(());
        }
        self.started_specs.lock().unwrap().push(run_spec.clone());
        let scripts = self.scripts.lock().unwrap();
        let script = scripts
            .get(&run_spec.action)
            .cloned()
            .unwrap_or(Script::well());
        let status = match script.held {
            true => RunStatus::Running,
            false => RunStatus::Finished(script.exit.clone()),
        };
        let status = watch::Sender::new(status);
        runs.insert(run_spec.name, FakeRun { script, status });
        Ok(())
    }

    async fn watch(
        &self,
        name: RunName,
        lines: mpsc::Sender<RunEvent>,
    ) -> Result<RunStatus, RunError> {
        self.answers()?;
        let found = {
            let runs = self.runs.lock().unwrap();
            runs.get(&name)
                .map(|it| (it.script.clone(), it.status.subscribe()))
        };
        let Some((script, mut status)) = found else {
            return Ok(RunStatus::NeverStarted);
        };
        for text in script.output {
            let _ = lines
                .send(RunEvent::Output(Bytes::from_static(text.as_bytes())))
                .await;
        }
        if let Some(text) = script.progress {
            let progress = RunProgress {
                text: text.to_owned(),
                percent: Some(40),
            };
            let _ = lines.send(RunEvent::Progress(progress)).await;
        }
        let nth = self.watches.fetch_add(1, Ordering::Relaxed);
        tokio::select! {
            ended = status.wait_for(|it| *it != RunStatus::Running) => {
                Ok(ended.map_or(RunStatus::NeverStarted, |it| it.clone()))
            }
            () = self.dropped.notified() => match nth % 2 {
                0 => Err(RunError::Unavailable("the watch was cut".to_owned())),
                _ => Ok(RunStatus::Running),
            },
        }
    }

    async fn result(&self, name: RunName) -> Result<RunResult, RunError> {
        self.answers()?;
        let runs = self.runs.lock().unwrap();
        Ok(runs
            .get(&name)
            .map(|it| it.script.result.clone())
            .unwrap_or_default())
    }

    async fn stop(&self, name: RunName) -> Result<(), RunError> {
        self.answers()?;
        {
            let mut stubborn = self.stubborn.lock().unwrap();
            if stubborn.0 {
                stubborn.1 += 1;
                return Err(RunError::Unavailable("a test said so".to_owned()));
            }
        }
        if let Some(staged) = self.runs.lock().unwrap().get(&name)
            && *staged.status.borrow() == RunStatus::Running
        {
            staged
                .status
                .send_replace(RunStatus::Finished(Exit::Stopped));
        }
        Ok(())
    }

    async fn remove(&self, name: RunName) -> Result<(), RunError> {
        self.answers()?;
        if self.stuck.lock().unwrap().contains(&name) {
            std::future::pending::<()>().await;
        }
        self.runs.lock().unwrap().remove(&name);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<RunName>, RunError> {
        self.answers()?;
        Ok(self.runs.lock().unwrap().keys().copied().collect())
    }
}
