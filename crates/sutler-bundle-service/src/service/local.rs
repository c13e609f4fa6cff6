//! An instance of a bundle without any broker: what is remembered lies in a file.
//!
//! For authors, at a terminal and in tests. The same orders, the same course of a run and the same
//! conclusions as behind a broker; an action that was cut off is found again when it is asked for again.

use super::accept::{self, Asked};
use super::course::{Errand, carry_out};
use super::order::{self, KeptSecret, Wanted};
use super::outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
use super::redact::Redaction;
use super::state::{BindingState, By, InstanceState, Pin};
use super::vars::Told;
use super::witness::Witness;
use crate::shelf::Bundle;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler_bundle::{Action, Limits};
use sutler_runner::{Exit, Given, Order, RunName, Runner, Vars};
use uuid::Uuid;

/// Why an action cannot be run, or did not succeed. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LocalFault {
    /// It was refused before anything was run.
    #[error("{0}")]
    Refused(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// What is remembered cannot be read or written.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] std::io::Error),
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalRequest {
    /// The plan, by name; the first, or the one it has, if none is given.
    pub plan: Option<String>,
    /// Parameters, of the instance or of the binding.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The binding, where it is about one.
    pub binding: Option<String>,
}

/// What an action gave.
#[derive(Clone, Default)]
pub struct LocalGift {
    /// Credentials: of the binding, or those that the provision keeps.
    pub credentials: Option<Map<String, Value>>,
    /// Where the instance is managed.
    pub dashboard_url: Option<String>,
    /// Whether the bundle has no such action, and there was nothing to do.
    pub nothing_to_do: bool,
}

/// What lies in the file.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Memory {
    plan: Option<String>,
    parameters: Map<String, Value>,
    state: Option<InstanceState>,
    bindings: BTreeMap<String, BindingMemory>,
    /// An action that was begun; whoever comes next looks for it.
    begun: Option<Begun>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct BindingMemory {
    parameters: Map<String, Value>,
    state: BindingState,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Begun {
    operation: Uuid,
    action: String,
    request: LocalRequest,
}

/// What an action needs that is begun, or was before.
struct Beginning {
    name: RunName,
    deadline: std::time::Duration,
    redaction: Redaction,
    /// Needed only if it never started; a sentence if it cannot be made.
    order: Result<Order, String>,
}

/// An instance.
pub struct Local {
    bundle: Arc<Bundle>,
    runner: Arc<dyn Runner>,
    secrets: Vec<KeptSecret>,
    id: String,
    file: PathBuf,
    memory: Memory,
}

impl Local {
    /// Opens what is remembered of an instance; a new one remembers nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(
        bundle: Arc<Bundle>,
        runner: Arc<dyn Runner>,
        secrets: Vec<KeptSecret>,
        folder: &Path,
        id: &str,
    ) -> Result<Self, LocalFault> {
        let named = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if id.is_empty() || id.len() > 64 || !id.chars().all(named) {
            let sentence = "the instance's name must be of letters, digits, `-` and `_`";
            return Err(LocalFault::Refused(sentence.to_owned()));
        }
        let file = folder.join(format!("instance-{id}.json"));
        let memory = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
                let sentence = format!("{} was not written by us: remove it", file.display());
                LocalFault::Refused(sentence)
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Memory::default(),
            Err(error) => return Err(LocalFault::Disk(file, error)),
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
        witness: &dyn Witness,
    ) -> Result<LocalGift, LocalFault> {
        let Some(begun) = self.begin(action, &request)? else {
            return self.end(action, &request, not_there(action)).await;
        };
        let name = begun.name;
        let errand = Errand {
            name,
            deadline: begun.deadline,
            redaction: &begun.redaction,
        };
        let order = begun.order;
        let make = || order.clone();
        let carried = carry_out(self.runner.as_ref(), &errand, make, witness).await;
        let (ending, given) = match carried {
            Ok(carried) => carried,
            Err(error) => {
                // It was not begun after all: whoever comes next may do something else.
                self.memory.begun = None;
                self.write()?;
                let _ = self.runner.remove(name).await;
                return Err(LocalFault::Failed(format!("{error:?}")));
            }
        };
        let on_lost = self.bundle.manifest.rules(action).on_lost;
        let outcome = conclude(action, name, ending, given, on_lost);
        let ended = self.end(action, &request, outcome).await;
        let removed = self.runner.remove(name).await;
        removed.map_err(|fault| LocalFault::Failed(fault.to_string()))?;
        ended
    }

    /// Starts an action and goes away, as a broker does that is killed.
    ///
    /// # Errors
    /// It was refused.
    pub async fn start_only(
        &mut self,
        action: Action,
        request: LocalRequest,
    ) -> Result<(), LocalFault> {
        if let Some(begun) = self.begin(action, &request)? {
            let order = begun.order.map_err(LocalFault::Refused)?;
            let started = self.runner.start(&order).await;
            started.map_err(|fault| LocalFault::Failed(fault.to_string()))?;
        }
        Ok(())
    }

    /// Orders an action, and writes down that it is begun; `None`: the bundle has no such action. Nothing
    /// is written of what cannot be ordered.
    fn begin(
        &mut self,
        action: Action,
        request: &LocalRequest,
    ) -> Result<Option<Beginning>, LocalFault> {
        let earlier = match &self.memory.begun {
            Some(begun) if begun.action == action.as_str() => Some(begun.operation),
            Some(begun) => {
                let sentence = format!(
                    "a {} was cut off: run it again first, and it goes on from where it is",
                    begun.action
                );
                return Err(LocalFault::Refused(sentence));
            }
            None => None,
        };
        if earlier.is_none() {
            self.accept(action, request)?;
        }
        let operation = earlier.unwrap_or_else(Uuid::now_v7);
        let bundle = self.bundle.clone();
        let Some(runnable) = order::runnable(&bundle, action) else {
            return Ok(None);
        };
        let name = RunName {
            operation,
            attempt: 1,
        };
        let kept = Kept::of(&self.memory, action, request);
        let told = self.told(action, request, &kept)?;
        let ceiling = Limits {
            deadline: std::time::Duration::MAX,
            memory: u64::MAX,
            ..Limits::default()
        };
        let beginning = Beginning {
            name,
            deadline: order::limits(&bundle, action, &ceiling).deadline,
            redaction: order::hidden(&bundle.manifest, &told, &self.secrets).redaction(),
            order: order::order(Wanted {
                name,
                action,
                bundle: &bundle,
                runnable,
                told,
                kept: &self.secrets,
                ceiling: &ceiling,
                idempotency_key: operation.simple().to_string(),
            }),
        };
        if earlier.is_none() {
            if let Err(sentence) = &beginning.order {
                return Err(LocalFault::Refused(sentence.clone()));
            }
            self.memory.begun = Some(Begun {
                operation,
                action: action.to_string(),
                request: request.clone(),
            });
            self.write()?;
        }
        Ok(Some(beginning))
    }

    /// Refuses what a broker would refuse.
    fn accept(&self, action: Action, request: &LocalRequest) -> Result<(), LocalFault> {
        let manifest = &self.bundle.manifest;
        let before = self.memory.plan.as_deref();
        let first = manifest.plans.first().map(|it| it.name.as_str());
        let plan = request.plan.as_deref().or(before).or(first);
        let asked = Asked {
            action,
            plan: plan.unwrap_or_default(),
            before,
            there: &self.memory.parameters,
            parameters: &request.parameters,
        };
        accept::accepts(manifest, &self.secrets, &asked).map_err(LocalFault::Refused)
    }

    fn told<'a>(
        &'a self,
        action: Action,
        request: &'a LocalRequest,
        kept: &'a Kept,
    ) -> Result<Told<'a>, LocalFault> {
        let manifest = &self.bundle.manifest;
        let name = request.plan.as_deref().or(self.memory.plan.as_deref());
        let plan = match name {
            Some(name) => manifest.plan(name),
            None => manifest.plans.first(),
        };
        let Some(plan) = plan else {
            let names: Vec<&str> = manifest.plans.iter().map(|it| it.name.as_str()).collect();
            let sentence = format!("there is no such plan; use one of: {}", names.join(", "));
            return Err(LocalFault::Refused(sentence));
        };
        let previous = self.memory.plan.as_deref().unwrap_or_default();
        Ok(Told {
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
            ..Told::default()
        })
    }

    /// Takes over what an action gave, and forgets that it was begun.
    async fn end(
        &mut self,
        action: Action,
        request: &LocalRequest,
        outcome: Outcome,
    ) -> Result<LocalGift, LocalFault> {
        let operation = self.memory.begun.as_ref().map(|it| it.operation);
        let by = By {
            operation: operation.unwrap_or_default(),
            action,
            at: Timestamp::now(),
        };
        if !matches!(outcome, Outcome::Again { .. }) {
            self.memory.begun = None;
        }
        let ended = match outcome {
            Outcome::Done(given) => self.take_over(action, request, given, by),
            Outcome::NothingToDo => {
                self.forget(action, request);
                Ok(LocalGift {
                    nothing_to_do: true,
                    ..LocalGift::default()
                })
            }
            Outcome::Failed { sentence, aside } | Outcome::Again { sentence, aside } => {
                self.leave(action, request, aside.as_ref());
                Err(LocalFault::Failed(sentence))
            }
            Outcome::Unsupported(sentence) => Err(LocalFault::Failed(sentence)),
        };
        self.write()?;
        ended
    }

    /// Keeps what an action had set that did not succeed, for the one that cleans up after it.
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
        given: Given,
        by: By,
    ) -> Result<LocalGift, LocalFault> {
        let too_much = |fault: super::TooMuch| LocalFault::Failed(fault.to_string());
        let mut state = self.memory.state.clone().unwrap_or_default();
        state.bundle = Pin {
            name: self.bundle.manifest.name.clone(),
            version: self.bundle.manifest.bundle_version.clone(),
            digest: self.bundle.digest.clone(),
        };
        state.promote_aside();
        state.merge(given.state.as_ref(), by).map_err(too_much)?;
        state.dashboard_url = given.dashboard_url.or(state.dashboard_url);
        let gift = LocalGift {
            credentials: given.credentials.clone().map(|it| it.0),
            dashboard_url: state.dashboard_url.clone(),
            nothing_to_do: false,
        };
        match action {
            Action::Provision | Action::Update => {
                state.credentials = given.credentials.map(|it| it.0).or(state.credentials);
                self.memory.parameters.extend(request.parameters.clone());
                self.memory.plan = request.plan.clone().or(self.memory.plan.take());
            }
            Action::Bind => {
                let binding = request.binding.clone().unwrap_or_default();
                let mut own = BindingState::default();
                own.merge(given.binding_state.as_ref()).map_err(too_much)?;
                own.credentials = given.credentials.map(|it| it.0);
                let remembered = BindingMemory {
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
            Action::Deprovision => self.memory = Memory::default(),
            Action::Unbind => {
                let binding = request.binding.as_deref().unwrap_or_default();
                self.memory.bindings.remove(binding);
            }
            Action::Provision | Action::Update | Action::Bind => {}
        }
    }

    /// Whole or not at all, and for its owner alone: it holds credentials.
    fn write(&self) -> Result<(), LocalFault> {
        let disk = |error| LocalFault::Disk(self.file.clone(), error);
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

/// What an order is made of, kept for as long as it is made.
struct Kept {
    parameters: Map<String, Value>,
    bind_parameters: Map<String, Value>,
    instance: InstanceState,
    binding: BindingState,
    state: Option<Map<String, Value>>,
    binding_state: Option<Map<String, Value>>,
}

impl Kept {
    fn of(memory: &Memory, action: Action, request: &LocalRequest) -> Self {
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
            state: instance.told(),
            binding_state: binding.state.told(),
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
        Given::default(),
        sutler_bundle::OnLost::Fail,
    )
}
