//! An instance of a bundle without a broker; its state is a file.
//!
//! For authors at a terminal and in tests. Run specs, driving and outcomes are the same as behind a broker; an
//! interrupted action is found again when it is requested again.

use super::build_run::{self, OperatorSecret, RunInputs};
use super::outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
use super::redact::Redaction;
use super::request_checks::{self, RequestedAction};
use super::run_driver::{RunTask, drive_run};
use super::run_observer::RunObserver;
use super::state::{BindingState, BundlePin, ChangeOrigin, InstanceState};
use super::vars::ActionInputs;
use crate::version_store::Bundle;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler_bundle::{Action, RunLimits};
use sutler_runner::{Exit, RunName, RunResult, RunSpec, Runner, Vars};
use uuid::Uuid;

/// Why an action cannot be run, or failed. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LocalRunError {
    /// Refused before the run.
    #[error("{0}")]
    Refused(String),
    /// The action failed.
    #[error("{0}")]
    Failed(String),
    /// The state file cannot be read or written.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] std::io::Error),
}

/// Request for an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalRequest {
    /// Name of the plan; by default the instance's plan, or the first one.
    pub plan: Option<String>,
    /// Parameters, of the instance or of the binding.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The binding, for bind and unbind.
    pub binding: Option<String>,
}

/// Result of an action.
#[derive(Clone, Default)]
pub struct LocalResult {
    /// Credentials of the binding, or those stored by the provision.
    pub credentials: Option<Map<String, Value>>,
    /// Dashboard of the instance.
    pub dashboard_url: Option<String>,
    /// Whether nothing was done because the bundle does not have the action.
    pub nothing_to_do: bool,
}

/// Content of the state file.
#[derive(Clone, Default, Serialize, Deserialize)]
struct LocalState {
    plan: Option<String>,
    parameters: Map<String, Value>,
    state: Option<InstanceState>,
    bindings: BTreeMap<String, LocalBindingState>,
    /// An action that was started; the next call looks for its run.
    begun: Option<PendingAction>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct LocalBindingState {
    parameters: Map<String, Value>,
    state: BindingState,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct PendingAction {
    operation: Uuid,
    action: String,
    request: LocalRequest,
}

/// Inputs of an action that was started now or earlier.
struct StartedAction {
    name: RunName,
    deadline: std::time::Duration,
    redaction: Redaction,
    /// Needed only if it never started; a sentence if it cannot be built.
    run_spec: Result<RunSpec, String>,
}

/// An instance without a broker.
pub struct LocalInstance {
    bundle: Arc<Bundle>,
    runner: Arc<dyn Runner>,
    secrets: Vec<OperatorSecret>,
    id: String,
    file: PathBuf,
    memory: LocalState,
}

impl LocalInstance {
    /// Opens an instance; without a state file it is new.
    ///
    /// # Errors
    /// The state file cannot be read.
    pub fn open(
        bundle: Arc<Bundle>,
        runner: Arc<dyn Runner>,
        secrets: Vec<OperatorSecret>,
        folder: &Path,
        id: &str,
    ) -> Result<Self, LocalRunError> {
        let named = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if id.is_empty() || id.len() > 64 || !id.chars().all(named) {
            let sentence = "the instance's name must be of letters, digits, `-` and `_`";
            return Err(LocalRunError::Refused(sentence.to_owned()));
        }
        let file = folder.join(format!("instance-{id}.json"));
        let memory = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
                let sentence = format!("{} was not written by us: remove it", file.display());
                LocalRunError::Refused(sentence)
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => LocalState::default(),
            Err(error) => return Err(LocalRunError::Disk(file, error)),
        };
        Ok(Self {
            bundle,
            runner,
            secrets,
            id: id.to_owned(),
            file,
            memory,
        })
    }

    /// Runs an action to its end.
    ///
    /// # Errors
    /// It was refused, or it failed.
    pub async fn act(
        &mut self,
        action: Action,
        request: LocalRequest,
        observer: &dyn RunObserver,
    ) -> Result<LocalResult, LocalRunError> {
        let Some(begun) = self.begin(action, &request)? else {
            return self.end(action, &request, not_there(action)).await;
        };
        let name = begun.name;
        let task = RunTask {
            name,
            deadline: begun.deadline,
            redaction: &begun.redaction,
        };
        let run_spec = begun.run_spec;
        let make = || run_spec.clone();
        let carried = drive_run(self.runner.as_ref(), &task, make, observer).await;
        let (ending, result) = match carried {
            Ok(carried) => carried,
            Err(error) => {
                // Nothing was started: the next call may request another action.
                self.memory.begun = None;
                self.write()?;
                let _ = self.runner.remove(name).await;
                return Err(LocalRunError::Failed(format!("{error:?}")));
            }
        };
        let on_lost = self.bundle.manifest.rules(action).on_lost;
        let outcome = conclude(action, name, ending, result, on_lost);
        let ended = self.end(action, &request, outcome).await;
        let removed = self.runner.remove(name).await;
        removed.map_err(|fault| LocalRunError::Failed(fault.to_string()))?;
        ended
    }

    /// Starts an action and returns without waiting, as after a kill of the broker.
    ///
    /// # Errors
    /// The action was refused.
    pub async fn start_only(
        &mut self,
        action: Action,
        request: LocalRequest,
    ) -> Result<(), LocalRunError> {
        if let Some(begun) = self.begin(action, &request)? {
            let run_spec = begun.run_spec.map_err(LocalRunError::Refused)?;
            let started = self.runner.start(&run_spec).await;
            started.map_err(|fault| LocalRunError::Failed(fault.to_string()))?;
        }
        Ok(())
    }

    /// Builds the run spec of an action, and stores that the action has started; `None`: the bundle does not have
    /// the action. Nothing is stored if the spec cannot be built.
    fn begin(
        &mut self,
        action: Action,
        request: &LocalRequest,
    ) -> Result<Option<StartedAction>, LocalRunError> {
        let earlier = match &self.memory.begun {
            Some(begun) if begun.action == action.as_str() => Some(begun.operation),
            Some(begun) => {
                let sentence = format!(
                    "a {} was cut off: run it again first, and it goes on from where it is",
                    begun.action
                );
                return Err(LocalRunError::Refused(sentence));
            }
            None => None,
        };
        if earlier.is_none() {
            self.accept(action, request)?;
        }
        let operation = earlier.unwrap_or_else(Uuid::now_v7);
        let bundle = self.bundle.clone();
        let Some(runnable) = build_run::runnable(&bundle, action) else {
            return Ok(None);
        };
        let name = RunName {
            operation,
            attempt: 1,
        };
        let kept = LocalInputs::of(&self.memory, action, request);
        let inputs = self.action_inputs(action, request, &kept)?;
        let ceiling = RunLimits {
            deadline: std::time::Duration::MAX,
            memory: u64::MAX,
            ..RunLimits::default()
        };
        let started_action = StartedAction {
            name,
            deadline: build_run::limits(&bundle, action, &ceiling).deadline,
            redaction: build_run::secrets_of(&bundle.manifest, &inputs, &self.secrets).redaction(),
            run_spec: build_run::build_run_spec(RunInputs {
                name,
                action,
                bundle: &bundle,
                runnable,
                inputs,
                kept: &self.secrets,
                ceiling: &ceiling,
                idempotency_key: operation.simple().to_string(),
            }),
        };
        if earlier.is_none() {
            if let Err(sentence) = &started_action.run_spec {
                return Err(LocalRunError::Refused(sentence.clone()));
            }
            self.memory.begun = Some(PendingAction {
                operation,
                action: action.to_string(),
                request: request.clone(),
            });
            self.write()?;
        }
        Ok(Some(started_action))
    }

    /// Refuses the same requests as a broker.
    fn accept(&self, action: Action, request: &LocalRequest) -> Result<(), LocalRunError> {
        let manifest = &self.bundle.manifest;
        let before = self.memory.plan.as_deref();
        let first = manifest.plans.first().map(|it| it.name.as_str());
        let plan = request.plan.as_deref().or(before).or(first);
        let requested = RequestedAction {
            action,
            plan: plan.unwrap_or_default(),
            before,
            current: &self.memory.parameters,
            parameters: &request.parameters,
        };
        request_checks::accepts(manifest, &self.secrets, &requested).map_err(LocalRunError::Refused)
    }

    fn action_inputs<'a>(
        &'a self,
        action: Action,
        request: &'a LocalRequest,
        kept: &'a LocalInputs,
    ) -> Result<ActionInputs<'a>, LocalRunError> {
        let manifest = &self.bundle.manifest;
        let name = request.plan.as_deref().or(self.memory.plan.as_deref());
        let plan = match name {
            Some(name) => manifest.plan(name),
            None => manifest.plans.first(),
        };
        let Some(plan) = plan else {
            let names: Vec<&str> = manifest.plans.iter().map(|it| it.name.as_str()).collect();
            let sentence = format!("there is no such plan; use one of: {}", names.join(", "));
            return Err(LocalRunError::Refused(sentence));
        };
        let previous = self.memory.plan.as_deref().unwrap_or_default();
        Ok(ActionInputs {
            plan_name: &plan.name,
            plan_id: plan.id.as_deref().unwrap_or(&plan.name),
            service_id: manifest.id.as_deref().unwrap_or(&manifest.name),
            instance_id: &self.id,
            binding_id: request.binding.as_deref(),
            bundle_version: manifest.bundle_version.as_deref(),
            parameters: Some(&kept.parameters),
            bind_parameters: request.binding.is_some().then_some(&kept.bind_parameters),
            previous: (action == Action::Update).then_some((&self.memory.parameters, previous)),
            provision_credentials: kept.instance.credentials.as_ref(),
            bind_credentials: kept.binding.credentials.as_ref(),
            state: kept.state.as_ref(),
            binding_state: kept.binding_state.as_ref(),
            ..ActionInputs::default()
        })
    }

    /// Merges the result of an action, and clears the started action.
    async fn end(
        &mut self,
        action: Action,
        request: &LocalRequest,
        outcome: Outcome,
    ) -> Result<LocalResult, LocalRunError> {
        let operation = self.memory.begun.as_ref().map(|it| it.operation);
        let by = ChangeOrigin {
            operation: operation.unwrap_or_default(),
            action,
            at: Timestamp::now(),
        };
        if !matches!(outcome, Outcome::Again { .. }) {
            self.memory.begun = None;
        }
        let ended = match outcome {
            Outcome::Done(result) => self.take_over(action, request, result, by),
            Outcome::NothingToDo => {
                self.forget(action, request);
                Ok(LocalResult {
                    nothing_to_do: true,
                    ..LocalResult::default()
                })
            }
            Outcome::Failed { sentence, aside } | Outcome::Again { sentence, aside } => {
                self.leave(action, request, aside.as_ref());
                Err(LocalRunError::Failed(sentence))
            }
            Outcome::Unsupported(sentence) => Err(LocalRunError::Failed(sentence)),
        };
        self.write()?;
        ended
    }

    /// Stores the state set by a failed action, for the action that cleans up.
    fn leave(&mut self, action: Action, request: &LocalRequest, aside: Option<&Vars>) {
        match action {
            Action::Provision => {
                let state = self.memory.state.get_or_insert_with(InstanceState::default);
                state.set_aside(aside);
            }
            Action::Bind if aside.is_some() => {
                let binding = request.binding.clone().unwrap_or_default();
                let own = self.memory.bindings.entry(binding).or_default();
                own.state.keep_what_fits(aside);
            }
            Action::Bind | Action::Update | Action::Unbind | Action::Deprovision => {}
        }
    }

    fn take_over(
        &mut self,
        action: Action,
        request: &LocalRequest,
        result: RunResult,
        by: ChangeOrigin,
    ) -> Result<LocalResult, LocalRunError> {
        let too_much = |fault: super::StateTooLargeError| LocalRunError::Failed(fault.to_string());
        let mut state = self.memory.state.clone().unwrap_or_default();
        state.bundle = BundlePin {
            name: self.bundle.manifest.name.clone(),
            version: self.bundle.manifest.bundle_version.clone(),
            digest: self.bundle.digest.clone(),
        };
        state.promote_aside();
        state.merge(result.state.as_ref(), by).map_err(too_much)?;
        state.dashboard_url = result.dashboard_url.or(state.dashboard_url);
        let gift = LocalResult {
            credentials: result.credentials.clone().map(|it| it.0),
            dashboard_url: state.dashboard_url.clone(),
            nothing_to_do: false,
        };
        match action {
            Action::Provision | Action::Update => {
                state.credentials = result.credentials.map(|it| it.0).or(state.credentials);
                self.memory.parameters.extend(request.parameters.clone());
                self.memory.plan = request.plan.clone().or(self.memory.plan.take());
            }
            Action::Bind => {
                let binding = request.binding.clone().unwrap_or_default();
                let mut own = BindingState::default();
                own.merge(result.binding_state.as_ref()).map_err(too_much)?;
                own.credentials = result.credentials.map(|it| it.0);
                let remembered = LocalBindingState {
                    parameters: request.parameters.clone(),
                    state: own,
                };
                self.memory.bindings.insert(binding, remembered);
            }
            Action::Unbind | Action::Deprovision => {}
        }
        self.memory.state = Some(state);
        self.forget(action, request);
        Ok(gift)
    }

    fn forget(&mut self, action: Action, request: &LocalRequest) {
        match action {
            Action::Deprovision => self.memory = LocalState::default(),
            Action::Unbind => {
                let binding = request.binding.as_deref().unwrap_or_default();
                self.memory.bindings.remove(binding);
            }
            Action::Provision | Action::Update | Action::Bind => {}
        }
    }

    /// Writes the state file atomically, readable by its owner only: it holds credentials.
    fn write(&self) -> Result<(), LocalRunError> {
        let disk = |error| LocalRunError::Disk(self.file.clone(), error);
        let aside = self.file.with_extension("new");
        let bytes = serde_json::to_vec(&self.memory).unwrap_or_default();
        let _ = fs::remove_file(&aside);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)
            .map_err(disk)?;
        file.write_all(&bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&aside, &self.file))
            .map_err(disk)
    }
}

/// Owned inputs of a run spec.
struct LocalInputs {
    parameters: Map<String, Value>,
    bind_parameters: Map<String, Value>,
    instance: InstanceState,
    binding: BindingState,
    state: Option<Map<String, Value>>,
    binding_state: Option<Map<String, Value>>,
}

impl LocalInputs {
    fn of(memory: &LocalState, action: Action, request: &LocalRequest) -> Self {
        let mut parameters = memory.parameters.clone();
        if !matches!(action, Action::Bind | Action::Unbind) {
            parameters.extend(request.parameters.clone());
        }
        let binding = request.binding.as_deref().unwrap_or_default();
        let binding = memory.bindings.get(binding).cloned().unwrap_or_default();
        let bind_parameters = match action {
            Action::Bind => request.parameters.clone(),
            Action::Provision | Action::Update | Action::Deprovision | Action::Unbind => {
                binding.parameters
            }
        };
        let instance = memory.state.clone().unwrap_or_default();
        Self {
            parameters,
            bind_parameters,
            state: instance.as_vars(),
            binding_state: binding.state.as_vars(),
            instance,
            binding: binding.state,
        }
    }
}

fn not_there(action: Action) -> Outcome {
    let name = RunName {
        operation: Uuid::nil(),
        attempt: 1,
    };
    let ending = Ending::Exited(Exit::Code(NO_SUCH_ACTION));
    conclude(
        action,
        name,
        ending,
        RunResult::default(),
        sutler_bundle::OnLost::Fail,
    )
}
