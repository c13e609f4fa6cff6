//! The sequential model: the states of one instance with its bindings, and the effect of each request.
//!
//! Written from the specification's rules, not from the broker's code. A request that is answered acts
//! at one moment ([`Tree::after`]); between requests operations end by themselves ([`Tree::moves`]).
//! `linearizability.rs` searches for an order of moments that explains the observed responses.

use super::history::{BINDINGS, Progress, Spec};
use super::operation_ends::OperationEnds;
use sutler_journal::Outcome;

/// An operation, with its name if a client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Not named to a client yet.
    Unnamed,
    /// With this name.
    Named(u32),
}

impl Op {
    /// The operation after a response with this name; `None` if it has another name.
    fn met(self, name: u32) -> Option<Self> {
        match self {
            Self::Unnamed => Some(Self::Named(name)),
            Self::Named(known) => (known == name).then_some(self),
        }
    }
}

/// An instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Instance {
    /// It does not exist.
    Absent,
    /// Its creation failed.
    CreateFailed,
    /// It is being created.
    Creating(Op, Spec),
    /// It exists.
    Live(Spec),
    /// It is being updated to this size.
    Updating(Op, Spec, u32),
    /// It is being deleted: the interrupted creation, and its state if it existed.
    Deleting(Op, Option<Op>, Option<Spec>),
}

/// A binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binding {
    /// It does not exist.
    Absent,
    /// Its creation failed.
    CreateFailed,
    /// It is being created.
    Creating(Op),
    /// It exists, with these credentials if a client saw them.
    Live(Option<u32>),
    /// It is being deleted: the interrupted creation, and its credentials if it existed.
    Deleting(Op, Option<Op>, Option<Option<u32>>),
}

/// An instance with its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tree {
    /// The instance.
    pub(crate) instance: Instance,
    /// Its bindings.
    pub(crate) bindings: [Binding; BINDINGS.len()],
}

/// Request to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ModelRequest {
    /// PUT of the instance.
    Provision(Spec),
    /// PATCH.
    Update(u32),
    /// DELETE of the instance.
    Deprovision,
    /// PUT of a binding.
    Bind(usize),
    /// DELETE of a binding.
    Unbind(usize),
    /// GET of the instance.
    Fetch,
    /// GET of a binding.
    FetchBinding(usize),
    /// Poll.
    Poll(Option<usize>, u32),
}

/// Response to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    /// Unknown; if the request acted, it started an operation.
    Began,
    /// 202 with this operation.
    Accepted(u32),
    /// A synchronous response: the operation that it started or joined has ended.
    Waited,
    /// 200 at once: nothing to do.
    Already,
    /// A fetch returned this.
    Found(u32),
    /// Response to a poll.
    Polled(Progress),
    /// 404.
    Missing,
    /// 410.
    Gone,
    /// 409.
    Conflict,
    /// 422.
    Busy,
}

/// State observed at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ObservedState {
    /// The instance existed.
    Live(Spec),
    /// The instance existed, with this size.
    Sized(u32),
    /// It did not exist.
    Absent,
    /// The binding existed, with these credentials.
    Bound(usize, u32),
    /// The binding did not exist.
    Unbound(usize),
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            instance: Instance::Absent,
            bindings: [Binding::Absent; BINDINGS.len()],
        }
    }
}

/// Name of an operation that begins now.
fn begun(reply: Reply) -> Option<Op> {
    match reply {
        Reply::Began | Reply::Waited => Some(Op::Unnamed),
        Reply::Accepted(name) => Some(Op::Named(name)),
        _ => None,
    }
}

/// Name of a joined operation after this response.
fn joined(op: Op, reply: Reply) -> Option<Op> {
    match reply {
        Reply::Accepted(name) => op.met(name),
        Reply::Waited => Some(op),
        _ => None,
    }
}

impl Tree {
    /// The tree after a request with this response; `None` if that is impossible.
    pub(crate) fn after(self, request: ModelRequest, reply: Reply) -> Option<Self> {
        match request {
            ModelRequest::Provision(spec) => self.provision(spec, reply),
            ModelRequest::Update(size) => self.update(size, reply),
            ModelRequest::Deprovision => self.deprovision(reply),
            ModelRequest::Bind(n) => self.bind(n, reply),
            ModelRequest::Unbind(n) => self.unbind(n, reply),
            ModelRequest::Fetch => self.fetch(reply),
            ModelRequest::FetchBinding(n) => self.fetch_binding(n, reply),
            ModelRequest::Poll(of, name) => self.poll(of, name, reply),
        }
    }

    /// The tree if it has this state, with the knowledge gained; `None` if it has another.
    pub(crate) fn shows(self, sight: ObservedState) -> Option<Self> {
        let so = match sight {
            ObservedState::Live(spec) => self.instance == Instance::Live(spec),
            ObservedState::Sized(size) => {
                matches!(self.instance, Instance::Live(spec) if spec.size == size)
            }
            ObservedState::Absent => self.instance == Instance::Absent,
            ObservedState::Bound(n, secret) => return self.fetch_binding(n, Reply::Found(secret)),
            ObservedState::Unbound(n) => self.bindings[n] == Binding::Absent,
        };
        so.then_some(self)
    }

    fn with(self, instance: Instance) -> Self {
        Self { instance, ..self }
    }

    fn with_binding(mut self, n: usize, binding: Binding) -> Self {
        self.bindings[n] = binding;
        self
    }

    fn when(self, so: bool) -> Option<Self> {
        so.then_some(self)
    }

    fn provision(self, spec: Spec, reply: Reply) -> Option<Self> {
        use Instance::{Absent, CreateFailed, Creating, Deleting, Live, Updating};
        match (self.instance, reply) {
            (Updating(_, there, _), Reply::Busy) => self.when(there == spec),
            (Deleting(..), Reply::Busy) => Some(self),
            (Creating(_, there) | Live(there) | Updating(_, there, _), Reply::Conflict) => {
                self.when(there != spec)
            }
            (Live(there), Reply::Already | Reply::Waited) => self.when(there == spec),
            (Absent | CreateFailed, _) => Some(self.with(Creating(begun(reply)?, spec))),
            (Creating(op, there), _) if there == spec => {
                Some(self.with(Creating(joined(op, reply)?, spec)))
            }
            _ => None,
        }
    }

    fn update(self, size: u32, reply: Reply) -> Option<Self> {
        use Instance::{Absent, CreateFailed, Creating, Deleting, Live, Updating};
        match (self.instance, reply) {
            (Absent | CreateFailed, Reply::Missing) => Some(self),
            (Creating(..) | Deleting(..), Reply::Busy) => Some(self),
            (Updating(_, _, to), Reply::Busy) => self.when(to != size),
            (Live(spec), Reply::Already | Reply::Waited) if spec.size == size => Some(self),
            (Live(spec), _) if spec.size != size => {
                Some(self.with(Updating(begun(reply)?, spec, size)))
            }
            (Updating(op, spec, to), _) if to == size => {
                Some(self.with(Updating(joined(op, reply)?, spec, to)))
            }
            _ => None,
        }
    }

    fn deprovision(self, reply: Reply) -> Option<Self> {
        use Instance::{Absent, CreateFailed, Creating, Deleting, Live, Updating};
        match (self.instance, reply) {
            (Absent, Reply::Gone) | (Updating(..), Reply::Busy) => Some(self),
            (CreateFailed, _) => Some(self.with(Deleting(begun(reply)?, None, None))),
            (Creating(made, _), _) => Some(self.with(Deleting(begun(reply)?, Some(made), None))),
            (Live(spec), _) => Some(self.with(Deleting(begun(reply)?, None, Some(spec)))),
            (Deleting(op, over, live), _) => {
                Some(self.with(Deleting(joined(op, reply)?, over, live)))
            }
            _ => None,
        }
    }

    /// Whether an operation has exclusive access to the instance.
    fn is_held(self) -> bool {
        matches!(
            self.instance,
            Instance::Creating(..) | Instance::Updating(..) | Instance::Deleting(..)
        )
    }

    fn bind(self, n: usize, reply: Reply) -> Option<Self> {
        use Binding::{Absent, CreateFailed, Creating, Deleting, Live};
        let there = self.bindings[n];
        match (there, reply) {
            (_, Reply::Missing) => {
                let missing = [Instance::Absent, Instance::CreateFailed];
                self.when(missing.contains(&self.instance))
            }
            (_, Reply::Busy) => self.when(self.is_held() || matches!(there, Deleting(..))),
            (Live(_), Reply::Already | Reply::Waited) => Some(self),
            (Absent | CreateFailed, _) if matches!(self.instance, Instance::Live(_)) => {
                Some(self.with_binding(n, Creating(begun(reply)?)))
            }
            (Creating(op), _) => Some(self.with_binding(n, Creating(joined(op, reply)?))),
            _ => None,
        }
    }

    fn unbind(self, n: usize, reply: Reply) -> Option<Self> {
        use Binding::{Absent, CreateFailed, Creating, Deleting, Live};
        match (self.bindings[n], reply) {
            (Absent, Reply::Gone) => Some(self),
            (_, Reply::Busy) => self.when(self.is_held()),
            (Deleting(op, over, live), _) => {
                Some(self.with_binding(n, Deleting(joined(op, reply)?, over, live)))
            }
            (there, _) if !self.is_held() => {
                let op = begun(reply)?;
                let next = match there {
                    Creating(made) => Deleting(op, Some(made), None),
                    CreateFailed => Deleting(op, None, None),
                    Live(secret) => Deleting(op, None, Some(secret)),
                    Absent | Deleting(..) => return None,
                };
                Some(self.with_binding(n, next))
            }
            _ => None,
        }
    }

    fn fetch(self, reply: Reply) -> Option<Self> {
        let right = match (self.instance, reply) {
            (Instance::Live(spec), Reply::Found(size)) => spec.size == size,
            (Instance::Updating(..) | Instance::Deleting(_, _, Some(_)), Reply::Busy) => true,
            (
                Instance::Absent
                | Instance::CreateFailed
                | Instance::Creating(..)
                | Instance::Deleting(_, _, None),
                Reply::Missing,
            ) => true,
            _ => false,
        };
        self.when(right)
    }

    fn fetch_binding(self, n: usize, reply: Reply) -> Option<Self> {
        match (self.bindings[n], reply) {
            (Binding::Live(None), Reply::Found(secret)) => {
                Some(self.with_binding(n, Binding::Live(Some(secret))))
            }
            (Binding::Live(Some(known)), Reply::Found(secret)) => self.when(known == secret),
            (Binding::Live(_), Reply::Missing) => None,
            (_, Reply::Missing) => Some(self),
            _ => None,
        }
    }

    /// Whether an operation of the instance or of a binding has not ended.
    fn runs(self, of: Option<usize>, op: Op) -> bool {
        match of {
            None => match self.instance {
                Instance::Creating(it, _) | Instance::Updating(it, ..) => it == op,
                Instance::Deleting(it, over, _) => it == op || over == Some(op),
                Instance::Absent | Instance::CreateFailed | Instance::Live(_) => false,
            },
            Some(n) => match self.bindings[n] {
                Binding::Creating(it) => it == op,
                Binding::Deleting(it, over, _) => it == op || over == Some(op),
                Binding::Absent | Binding::CreateFailed | Binding::Live(_) => false,
            },
        }
    }

    fn poll(self, of: Option<usize>, name: u32, reply: Reply) -> Option<Self> {
        let runs = self.runs(of, Op::Named(name));
        match reply {
            Reply::Polled(Progress::Running) => self.when(runs),
            Reply::Polled(_) => self.when(!runs),
            _ => None,
        }
    }

    /// Transitions that may happen without a request, one at a time.
    pub(crate) fn moves(self, facts: &OperationEnds) -> Vec<Self> {
        let mut next = self.instance_moves(facts);
        for n in 0..BINDINGS.len() {
            next.extend(self.binding_moves(n, facts));
            next.extend(self.deleted_with_instance(n));
        }
        next
    }

    fn instance_moves(self, facts: &OperationEnds) -> Vec<Self> {
        use Instance::{Absent, CreateFailed, Creating, Deleting, Live, Updating};
        let may = |op, verb, outcome| facts.may(None, op, verb, outcome);
        let mut next = Vec::new();
        match self.instance {
            Creating(op, spec) => {
                if !spec.fails && may(op, "provision", Outcome::Succeeded) {
                    next.push(Live(spec));
                }
                if may(op, "provision", Outcome::Failed) {
                    next.push(CreateFailed);
                }
            }
            Updating(op, spec, size) if !self.has_busy_bindings() => {
                if may(op, "update", Outcome::Succeeded) {
                    next.push(Live(Spec { size, ..spec }));
                }
                if may(op, "update", Outcome::Failed) {
                    next.push(Live(spec));
                }
            }
            Deleting(op, Some(made), live) => {
                if may(made, "provision", Outcome::Cancelled) {
                    next.push(Deleting(op, None, live));
                }
            }
            Deleting(op, None, live) => {
                let alone = self.bindings.iter().all(|it| *it == Binding::Absent);
                if alone && may(op, "deprovision", Outcome::Succeeded) {
                    next.push(Absent);
                }
                if may(op, "deprovision", Outcome::Failed) {
                    next.push(live.map_or(CreateFailed, Live));
                }
            }
            Absent | CreateFailed | Live(_) | Updating(..) => {}
        }
        next.into_iter().map(|it| self.with(it)).collect()
    }

    fn has_busy_bindings(self) -> bool {
        let busy = |it: &Binding| matches!(it, Binding::Creating(_) | Binding::Deleting(..));
        self.bindings.iter().any(busy)
    }

    fn binding_moves(self, n: usize, facts: &OperationEnds) -> Vec<Self> {
        use Binding::{Absent, CreateFailed, Creating, Deleting, Live};
        let may = |op, verb, outcome| facts.may(Some(n), op, verb, outcome);
        let mut next = Vec::new();
        match self.bindings[n] {
            Creating(op) => {
                if may(op, "bind", Outcome::Succeeded) {
                    next.push(Live(None));
                }
                if may(op, "bind", Outcome::Failed) {
                    next.push(CreateFailed);
                }
            }
            Deleting(op, Some(made), live) => {
                if may(made, "bind", Outcome::Cancelled) {
                    next.push(Deleting(op, None, live));
                }
            }
            Deleting(op, None, live) => {
                if may(op, "unbind", Outcome::Succeeded) {
                    next.push(Absent);
                }
                if may(op, "unbind", Outcome::Failed) {
                    next.push(live.map_or(CreateFailed, Live));
                }
            }
            Absent | CreateFailed | Live(_) => {}
        }
        let put = |it| self.with_binding(n, it);
        next.into_iter().map(put).collect()
    }

    /// The binding after a delete of the instance, which deletes it too.
    fn deleted_with_instance(self, n: usize) -> Option<Self> {
        if !matches!(self.instance, Instance::Deleting(_, None, _)) {
            return None;
        }
        let next = match self.bindings[n] {
            Binding::Creating(made) => Binding::Deleting(Op::Unnamed, Some(made), None),
            Binding::CreateFailed => Binding::Deleting(Op::Unnamed, None, None),
            Binding::Live(secret) => Binding::Deleting(Op::Unnamed, None, Some(secret)),
            Binding::Absent | Binding::Deleting(..) => return None,
        };
        Some(self.with_binding(n, next))
    }
}
