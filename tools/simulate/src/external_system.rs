//! A model of the external system that the hooks of the simulated brokers change: the things that hooks make and
//! remove there, and which hooks run at the moment, in which process.
//!
//! It sees two runs of one lane at once even where the journal is consistent: a worker that lost its lease
//! cannot write to the store, but its hooks can still act outside. Things that an operator's command leaves
//! behind are excused.

use crate::history::History;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{MemoryStore, OperationId, State as OperationState, Store as _};

/// An instance or one of its bindings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourceName {
    pub instance: String,
    pub binding: Option<String>,
}

impl ResourceName {
    pub(crate) fn instance(name: &str) -> Self {
        Self {
            instance: name.to_owned(),
            binding: None,
        }
    }

    pub(crate) fn binding(instance: &str, name: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            binding: Some(name.to_owned()),
        }
    }

    /// Whether operations of both must not run at the same time: a binding shares its instance.
    fn excludes(&self, other: &Self) -> bool {
        self.instance == other.instance
            && (self.binding.is_none() || other.binding.is_none() || self.binding == other.binding)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.binding {
            Some(binding) => write!(f, "{}/{binding}", self.instance),
            None => write!(f, "{}", self.instance),
        }
    }
}

/// A running hook.
#[derive(Clone, Debug)]
struct Execution {
    number: u64,
    lane: ResourceName,
    verb: &'static str,
    operation: String,
    fence: u64,
    process: String,
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lane,
            verb,
            operation,
            fence,
            process,
            ..
        } = self;
        let short = &operation[operation.len().saturating_sub(6)..];
        write!(f, "{process}: {verb} {lane} (…{short}, fence {fence})")
    }
}

/// How two runs of one lane came to overlap, as a hint for the reader.
fn overlap_kind(old: &Execution, new: &Execution, stopping: &BTreeSet<String>) -> &'static str {
    if old.operation != new.operation {
        "two operations"
    } else if old.fence == new.fence {
        "under one fence"
    } else if new.fence < old.fence {
        "an old claim starts"
    } else if stopping.contains(&old.process) {
        "a shut-down released it early"
    } else {
        "an old claim goes on"
    }
}

#[derive(Default)]
struct State {
    executions: Vec<Execution>,
    entered: u64,
    things: BTreeSet<ResourceName>,
    /// First call of the hook of an operation.
    first_calls: BTreeMap<String, Duration>,
    /// Lanes about which an operator gave a command that may leave things behind.
    excused: BTreeSet<ResourceName>,
    /// Instances that others than their one platform may change: what it knows may be out of date.
    contested: BTreeSet<String>,
    /// Whether a lane exists, as the last answer to its platform says.
    known: BTreeMap<ResourceName, bool>,
    /// Operations that an operator's command ended, and when.
    ended_by_operator: BTreeMap<String, Duration>,
    /// How often the hook of an operation ended its process.
    ended_processes: BTreeMap<String, u32>,
    /// Processes that are being shut down.
    stopping: BTreeSet<String>,
    /// Until then leases may overlap, because the store's clock jumped.
    clock_unsound_until: Duration,
}

/// How often one operation may end its process: the engine gives it up after five takeovers.
const ENDED_PROCESSES_MAX: u32 = 6;

/// Time from the last read of an operation to its hook, besides that of the read itself.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

/// The external system, as a model.
pub(crate) struct ExternalSystem {
    history: Arc<History>,
    store: Arc<MemoryStore>,
    lease: Duration,
    call_timeout: Duration,
    state: Mutex<State>,
}

/// A running hook; ends when dropped.
pub(crate) struct ExecutionGuard {
    external: Arc<ExternalSystem>,
    number: u64,
}

impl Drop for ExecutionGuard {
    fn drop(&mut self) {
        self.external.leave(self.number);
    }
}

/// Who calls a hook.
pub(crate) struct HookCaller {
    pub lane: ResourceName,
    pub verb: &'static str,
    pub operation: String,
    pub fence: u64,
    pub process: String,
    /// Whether the process has read that the operation ended.
    pub has_read_end: bool,
}

impl ExternalSystem {
    pub(crate) fn new(
        history: Arc<History>,
        store: Arc<MemoryStore>,
        lease: Duration,
        call_timeout: Duration,
    ) -> Self {
        Self {
            history,
            store,
            lease,
            call_timeout,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hook begins.
    pub(crate) async fn enter(self: &Arc<Self>, caller: HookCaller) -> ExecutionGuard {
        self.note_ended_runs().await;
        let number = {
            let mut state = self.state();
            state.entered += 1;
            state.entered
        };
        let execution = Execution {
            number,
            lane: caller.lane,
            verb: caller.verb,
            operation: caller.operation,
            fence: caller.fence,
            process: caller.process,
        };
        self.history
            .record("hook", || format!("{execution} begins"));
        if caller.has_read_end {
            self.history.violate(format!(
                "{execution} begins although its process has read that it ended"
            ));
        }
        self.note_if_ended(&execution).await;
        let now = self.history.now();
        let mut state = self.state();
        for other in &state.executions {
            let is_ended = |it: &Execution| state.ended_by_operator.contains_key(&it.operation);
            let excused = now < state.clock_unsound_until
                || (other.operation != execution.operation
                    && (is_ended(other) || is_ended(&execution)));
            if other.lane.excludes(&execution.lane) && !excused {
                let how = overlap_kind(other, &execution, &state.stopping);
                self.history.violate(format!(
                    "two runs of one lane at once ({how}): {other} still runs when {execution} begins"
                ));
            }
        }
        if let Some(ended) = state.ended_by_operator.get(&execution.operation)
            && now > *ended + (self.call_timeout + BEGINS_WITHIN).min(self.lease * 3 / 2)
        {
            self.history.violate(format!(
                "{execution} begins {:?} after an operator ended it",
                now - *ended
            ));
        }
        let first = state.first_calls.entry(execution.operation.clone());
        first.or_insert(now);
        state.executions.push(execution);
        ExecutionGuard {
            external: Arc::clone(self),
            number,
        }
    }

    /// Notes running hooks whose operation is done in the store: only an operator's command ends it so.
    /// Such a run must stop within one and a half leases: a lease if renewals fail, and one renewal more if an
    /// answer was lost. Its hook may begin within the time of one call: the run read its operation before.
    pub(crate) async fn note_ended_runs(&self) {
        let running = self.state().executions.clone();
        for execution in &running {
            self.note_if_ended(execution).await;
        }
        self.check_ended_runs();
    }

    /// Notes an execution whose operation is done in the store, and since when.
    async fn note_if_ended(&self, execution: &Execution) {
        let Some(id) = OperationId::parse(&execution.operation) else {
            return;
        };
        let row = self.store.operation(id).await.ok().flatten();
        let row = row.map(|it| it.row);
        if row
            .as_ref()
            .is_some_and(|row| !matches!(row.state, OperationState::Done(_)))
        {
            return;
        }
        let finished = row.and_then(|row| row.finished);
        let passed = match (self.store.now().await, finished) {
            (Ok(now), Some(finished)) => now.since(finished),
            _ => Duration::ZERO,
        };
        let now = self.history.now();
        let mut state = self.state();
        let instance = ResourceName::instance(&execution.lane.instance);
        let is_excused = state.excused.contains(&execution.lane)
            || state.excused.contains(&instance)
            || now < state.clock_unsound_until;
        let operation = execution.operation.clone();
        let is_new = !state.ended_by_operator.contains_key(&operation);
        let since = match now < state.clock_unsound_until {
            true => now,
            false => now.saturating_sub(passed),
        };
        state.ended_by_operator.entry(operation).or_insert(since);
        if is_new && !is_excused {
            self.history.violate(format!(
                "{execution} still runs, and its operation has ended"
            ));
        }
    }

    fn leave(&self, number: u64) {
        let mut state = self.state();
        if let Some(at) = state.executions.iter().position(|it| it.number == number) {
            let execution = state.executions.remove(at);
            self.history
                .record("hook end", || format!("{execution} is over"));
        }
    }

    /// The hook of an operation ends its process. An operation that does so again and again is given up.
    pub(crate) fn process_ended_by(&self, operation: &str) {
        let mut state = self.state();
        let times = state
            .ended_processes
            .entry(operation.to_owned())
            .or_default();
        *times += 1;
        if *times > ENDED_PROCESSES_MAX {
            let times = *times;
            self.history.violate(format!(
                "the hook of one operation ended its process for the {times}th time"
            ));
        }
    }

    /// Whether hooks ended so few processes that no other operation may be given up. Each further operation that ends
    /// its processes runs twice together with the others before it is suspected.
    pub(crate) fn few_processes_ended(&self) -> bool {
        let ended = self.state().ended_processes.values().sum::<u32>();
        ended <= ENDED_PROCESSES_MAX
    }

    /// A process begins to shut down.
    pub(crate) fn stopping(&self, process: &str) {
        self.state().stopping.insert(process.to_owned());
    }

    /// A process died: its hooks do nothing more.
    pub(crate) fn kill(&self, process: &str) {
        self.state().executions.retain(|it| it.process != process);
    }

    fn check_ended_runs(&self) {
        let now = self.history.now();
        let mut state = self.state();
        let late: Vec<String> = state
            .executions
            .iter()
            .filter_map(|execution| {
                let ended = state.ended_by_operator.get(&execution.operation)?;
                (now > *ended + self.lease * 3 / 2)
                    .then(|| format!("{execution} still runs long after an operator ended it"))
            })
            .collect();
        for sentence in late {
            self.history.violate(sentence);
        }
        let running: BTreeSet<String> = state
            .executions
            .iter()
            .map(|it| it.operation.clone())
            .collect();
        state
            .ended_by_operator
            .retain(|operation, _| running.contains(operation));
    }

    /// The store's clock jumped: leases end early, and overlaps cannot be prevented.
    pub(crate) fn clock_jumped(&self) {
        self.state().clock_unsound_until = self.history.now() + self.lease * 2;
    }

    pub(crate) fn make(&self, lane: &ResourceName) {
        if self.state().things.insert(lane.clone()) {
            self.history
                .record("made", || format!("{lane} now exists outside"));
        }
    }

    pub(crate) fn remove(&self, lane: &ResourceName) {
        let mut state = self.state();
        if lane.binding.is_none() {
            let left: Vec<String> = state
                .things
                .iter()
                .filter(|it| it.instance == lane.instance && it.binding.is_some())
                .filter(|it| !state.excused.contains(*it))
                .map(ToString::to_string)
                .collect();
            if !left.is_empty() {
                self.history.violate(format!(
                    "{lane} is removed outside while its bindings exist: {}",
                    left.join(", ")
                ));
            }
        }
        if state.things.remove(lane) {
            self.history
                .record("removed", || format!("{lane} is removed outside"));
        }
    }

    pub(crate) fn has(&self, lane: &ResourceName) -> bool {
        self.state().things.contains(lane)
    }

    /// Things that must not be there when everything was deleted.
    pub(crate) fn left_behind(&self) -> Vec<ResourceName> {
        let state = self.state();
        let left = state.things.difference(&state.excused);
        left.cloned().collect()
    }

    /// From now on things of this lane, and of its bindings, may be left behind.
    pub(crate) fn excuse(&self, lane: &ResourceName, bindings: &[String]) {
        let mut state = self.state();
        state.excused.insert(lane.clone());
        if lane.binding.is_none() {
            for binding in bindings {
                state
                    .excused
                    .insert(ResourceName::binding(&lane.instance, binding));
            }
        }
    }

    pub(crate) fn is_excused(&self, lane: &ResourceName) -> bool {
        self.state().excused.contains(lane)
    }

    /// From now on others than its platform may change this instance and its bindings.
    pub(crate) fn contest(&self, instance: &str) {
        self.state().contested.insert(instance.to_owned());
    }

    pub(crate) fn is_contested(&self, lane: &ResourceName) -> bool {
        self.state().contested.contains(&lane.instance)
    }

    /// What the platform of a lane knows about it now; `None`: nothing, until the next answer.
    pub(crate) fn platform_knows(&self, lane: &ResourceName, is_present: Option<bool>) {
        let mut state = self.state();
        if lane.binding.is_none() && is_present != Some(true) {
            // A deletion takes the bindings along.
            let instance = &lane.instance;
            state.known.retain(|it, _| it.instance != *instance);
        }
        // An instance that may be in deletion takes its bindings along at any moment.
        let instance = ResourceName::instance(&lane.instance);
        let may_go = lane.binding.is_some() && state.known.get(&instance) != Some(&true);
        match is_present.filter(|is_present| !(*is_present && may_go)) {
            Some(is_present) => state.known.insert(lane.clone(), is_present),
            None => state.known.remove(lane),
        };
    }

    /// Lanes about which only their platform asked, and whether they exist as it knows.
    pub(crate) fn known(&self) -> Vec<(ResourceName, bool)> {
        let state = self.state();
        let known = state.known.iter();
        known
            .filter(|(lane, _)| !state.contested.contains(&lane.instance))
            .map(|(lane, is_present)| (lane.clone(), *is_present))
            .collect()
    }

    /// First call of the hook of an operation, if there was one.
    pub(crate) fn first_call(&self, operation: &str) -> Option<Duration> {
        self.state().first_calls.get(operation).copied()
    }

    /// Number of calls of hooks.
    pub(crate) fn calls(&self) -> u64 {
        self.state().entered
    }
}
