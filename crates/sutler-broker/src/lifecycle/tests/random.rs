//! Random sequences of events for an instance and a binding, checked against a small model.
//!
//! The model knows no rules, only what a worker would observe: the executing operation, the waiting one, and
//! the resources that really exist. From that alone it derives the state that the rules must be in, and
//! decisions they must never take. `random/resources.rs` turns steps into events of both kinds of resource.

mod admin_commands;
mod resources;

use super::fixtures::{BINDING_STATES, INSTANCE_STATES, operation};
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::{AsyncRequest, Asynchrony, Decision, Effect, Reply, ResponseMode, Verb};
use crate::refusal::Refusal;
use proptest::collection;
use proptest::prelude::{Just, Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use proptest::{prop_assert, prop_assert_eq, prop_oneof};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use sutler_journal::OperationId;

const LIVES: u32 = 2_000;
const STEPS_MAX: usize = 40;

/// One step of a sequence.
#[derive(Clone, Debug)]
enum Step {
    Create {
        same: bool,
        odd: RequestVariant,
        how: SendMode,
    },
    Update {
        size: u8,
        odd: RequestVariant,
        how: SendMode,
    },
    Delete {
        odd: RequestVariant,
        how: SendMode,
    },
    Saved(OperationRole),
    Ended(OperationRole, Outcome),
    Overdue(OperationRole),
    Command(CommandKind),
}

/// Command of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandKind {
    Retry,
    Cancel,
    Abandon,
    Purge,
}

/// How a request is sent.
#[derive(Clone, Copy, Debug)]
struct SendMode {
    rule: Asynchrony,
    accepts_incomplete: bool,
}

/// Unusual property of a request; each kind of resource uses those that apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestVariant {
    No,
    Objection,
    NoIds,
    Forced,
    ParentBusy,
    ParentMissing,
    Cascade,
}

/// Operation that a step refers to.
#[derive(Clone, Copy, Debug)]
enum OperationRole {
    Executing,
    Waiting,
    Earlier(usize),
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Succeeded,
    Failed,
    Refused,
}

/// A resource under the rules.
trait ModelledResource: Clone + Debug + Default + PartialEq {
    type Event: Clone;
    const CREATE: Verb;
    const DELETE: Verb;
    /// The event that a request is, if this kind of resource knows it.
    fn request(step: &Step, async_request: AsyncRequest) -> Option<Self::Event>;
    /// The event that an occurrence is. `new`: the id a clean-up would have.
    fn occurrence(step: &Step, about: OperationId, new: OperationId) -> Option<Self::Event>;
    /// The event of a command. `failed`: verb of the last operation, if it failed.
    fn command(command: CommandKind, failed: Option<Verb>, new: OperationId) -> Self::Event;
    fn decide(self, event: Self::Event) -> Result<Decision<Self>, Refusal>;
    fn pinned(&self) -> Vec<OperationId>;
    /// The state after everything below it was purged, too.
    fn purged(self) -> Self {
        self
    }
    /// The state's name in the tables.
    fn name(&self) -> &'static str;
}

/// Resources that really exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RealState {
    #[default]
    Nothing,
    Remains,
    Whole,
}

/// State that a worker would observe.
#[derive(Default)]
struct Model {
    executing: Option<(OperationId, Verb)>,
    cancelled: bool,
    waiting: Option<OperationId>,
    earlier: Vec<OperationId>,
    there: RealState,
    /// A delete was accepted during the create, so the resource must never become live.
    doomed: bool,
    /// Verb of the last operation, if it did not succeed.
    failed: Option<Verb>,
    ids: u128,
}

impl Model {
    fn fresh(&mut self) -> OperationId {
        self.ids += 1;
        operation(1_000 + self.ids)
    }

    fn find(&self, who: OperationRole) -> OperationId {
        let nobody = operation(1);
        match who {
            OperationRole::Executing => self.executing.map_or(nobody, |(id, _)| id),
            OperationRole::Waiting => self.waiting.unwrap_or(nobody),
            OperationRole::Earlier(index) if self.earlier.is_empty() => operation(index as u128),
            OperationRole::Earlier(index) => self.earlier[index % self.earlier.len()],
        }
    }

    /// The only state the rules may be in.
    fn state<L: ModelledResource>(&self) -> &'static str {
        let lives = self.there == RealState::Whole && !self.doomed;
        match self.executing {
            Some((_, verb)) if verb == L::CREATE && self.waiting.is_some() => {
                "deleting over a create"
            }
            Some((_, verb)) if verb == L::CREATE && self.there == RealState::Nothing => "creating",
            Some((_, verb)) if verb == L::CREATE => "creating again",
            Some((_, verb)) if verb == L::DELETE && lives => "deleting",
            Some((_, verb)) if verb == L::DELETE => "deleting a failed create",
            Some(_) if self.cancelled => "updating (given up)",
            Some(_) => "updating",
            None if lives => "live",
            None if self.there != RealState::Nothing => "create-failed",
            None if self.earlier.is_empty() => "absent",
            None => "gone",
        }
    }

    fn end<L: ModelledResource>(&mut self, outcome: Outcome) {
        let Some((id, verb)) = self.executing.take() else {
            return;
        };
        self.earlier.push(id);
        self.cancelled = false;
        self.failed = match outcome {
            Outcome::Succeeded => None,
            Outcome::Failed | Outcome::Refused => Some(verb),
        };
        self.there = match (outcome, self.there) {
            (Outcome::Succeeded, _) if verb == L::CREATE => RealState::Whole,
            (Outcome::Failed, _) if verb == L::CREATE => RealState::Remains,
            (Outcome::Succeeded, _) if verb == L::DELETE => RealState::Nothing,
            // A delete that did not succeed may have left resources.
            (_, RealState::Nothing) if verb == L::DELETE => RealState::Remains,
            (_, there) => there,
        };
    }

    /// Applies an effect, if a worker could.
    fn follow<L: ModelledResource>(
        &mut self,
        effect: Effect,
        new: OperationId,
    ) -> Result<(), TestCaseError> {
        match effect {
            Effect::Start(verb, id) => {
                prop_assert_eq!(id, new, "an operation has a fresh id");
                prop_assert_eq!(self.executing, None, "two operations execute at once");
                prop_assert_eq!(self.waiting, None, "a waiting delete was overtaken");
                self.executing = Some((id, verb));
                if verb == L::CREATE {
                    self.doomed = false;
                    if self.there == RealState::Whole {
                        self.there = RealState::Remains;
                    }
                }
            }
            Effect::Cancel(id) => {
                prop_assert_eq!(
                    self.executing.map(|(id, _)| id),
                    Some(id),
                    "cancels another"
                );
                let delete = self.executing.is_some_and(|(_, verb)| verb == L::DELETE);
                prop_assert!(delete || !self.cancelled, "cancelled twice");
                self.cancelled = true;
            }
            Effect::StartWaiting(verb, id) => {
                prop_assert_eq!((verb, id), (L::DELETE, new), "only a new delete waits");
                prop_assert!(
                    self.cancelled,
                    "waits for an operation that was not asked to stop"
                );
                prop_assert_eq!(self.executing.map(|(_, verb)| verb), Some(L::CREATE));
                prop_assert_eq!(self.waiting.replace(id), None, "two deletes wait");
                self.doomed = true;
            }
            Effect::Wake(id) => {
                prop_assert_eq!(self.executing, None, "woken before the create ended");
                prop_assert_eq!(self.waiting.take(), Some(id), "woken, but it does not wait");
                self.executing = Some((id, L::DELETE));
            }
            Effect::End(id) if self.waiting == Some(id) => self.earlier.extend(self.waiting.take()),
            Effect::End(id) => {
                prop_assert_eq!(self.executing.map(|(id, _)| id), Some(id), "ends another");
                self.end::<L>(Outcome::Failed);
            }
        }
        Ok(())
    }
}

/// Runs one sequence and returns the states it reached.
fn live<L: ModelledResource>(steps: &[Step]) -> Result<BTreeSet<&'static str>, TestCaseError> {
    let mut world = Model::default();
    let mut at = L::default();
    let mut been = BTreeSet::new();
    for step in steps {
        been.insert(at.name());
        let new = world.fresh();
        at = match *step {
            Step::Create { how, .. } | Step::Update { how, .. } | Step::Delete { how, .. } => {
                async_request(&mut world, at, step, how, new)?
            }
            Step::Saved(who) | Step::Ended(who, _) | Step::Overdue(who) => {
                occur(&mut world, at, step, who, new)?
            }
            Step::Command(command) => admin_commands::run_command(&mut world, at, command, new)?,
        };
        prop_assert_eq!(at.name(), world.state::<L>());
        let waits_for_a_create = match world.executing {
            Some((_, verb)) => verb == L::CREATE && world.cancelled,
            None => false,
        };
        prop_assert!(
            world.waiting.is_none() || waits_for_a_create,
            "a delete sleeps for ever"
        );
        let running = world
            .executing
            .map(|(id, _)| id)
            .into_iter()
            .chain(world.waiting);
        for id in running {
            prop_assert!(
                at.pinned().contains(&id),
                "a running operation can be swept"
            );
        }
    }
    been.insert(at.name());
    Ok(been)
}

fn async_request<L: ModelledResource>(
    world: &mut Model,
    at: L,
    step: &Step,
    how: SendMode,
    new: OperationId,
) -> Result<L, TestCaseError> {
    let async_request = |how: SendMode| AsyncRequest {
        operation: new,
        accepts_incomplete: how.accepts_incomplete,
        rule: how.rule,
    };
    let Some(event) = L::request(step, async_request(how)) else {
        return Ok(at);
    };
    let decided = at.clone().decide(event.clone());
    prop_assert_eq!(
        &decided,
        &at.clone().decide(event),
        "decided differently the second time"
    );
    never_202_unasked::<L>(&at, step, async_request)?;
    let Ok(decision) = decided else {
        return Ok(at);
    };
    match decision.reply {
        Reply::Started(id, mode) => {
            let background = how.accepts_incomplete && how.rule != Asynchrony::Never;
            prop_assert_eq!(id, new);
            prop_assert_eq!(mode == ResponseMode::Background, background);
            let starts = |effect: &Effect| match *effect {
                Effect::Start(_, id) | Effect::StartWaiting(_, id) => id == new,
                Effect::Cancel(_) | Effect::Wake(_) | Effect::End(_) => false,
            };
            prop_assert!(
                decision.effects.iter().any(starts),
                "said to be started, and is not"
            );
        }
        Reply::Joined(id) => {
            let running = world.waiting.or(world.executing.map(|(id, _)| id));
            prop_assert_eq!(Some(id), running, "joined what does not run");
            prop_assert_eq!(&decision.next, &at);
            prop_assert!(decision.effects.is_empty());
        }
        Reply::AlreadyDone => {
            prop_assert_eq!(&decision.next, &at);
            prop_assert!(decision.effects.is_empty());
        }
        Reply::Nothing => prop_assert!(false, "a request without an answer"),
    }
    for effect in decision.effects {
        let orders = matches!(effect, Effect::Wake(_) | Effect::End(_));
        prop_assert!(!orders, "a request wakes or ends");
        world.follow::<L>(effect, new)?;
    }
    Ok(decision.next)
}

/// A request answered with 202 must be refused without `accepts_incomplete`.
fn never_202_unasked<L: ModelledResource>(
    at: &L,
    step: &Step,
    async_request: impl Fn(SendMode) -> AsyncRequest,
) -> Result<(), TestCaseError> {
    let answer = |accepts_incomplete| {
        let rule = Asynchrony::Required;
        let event = L::request(
            step,
            async_request(SendMode {
                rule,
                accepts_incomplete,
            }),
        )?;
        Some(at.clone().decide(event).map(|decision| decision.reply))
    };
    let without = answer(false);
    match answer(true) {
        Some(Ok(Reply::Started(..) | Reply::Joined(_))) => {
            prop_assert_eq!(without, Some(Err(Refusal::AsyncRequired)));
        }
        Some(Ok(Reply::AlreadyDone | Reply::Nothing) | Err(_)) | None => {
            prop_assert!(!matches!(
                without,
                Some(Ok(Reply::Started(..) | Reply::Joined(_)))
            ));
        }
    }
    Ok(())
}

fn occur<L: ModelledResource>(
    world: &mut Model,
    at: L,
    step: &Step,
    who: OperationRole,
    new: OperationId,
) -> Result<L, TestCaseError> {
    let about = world.find(who);
    let Some(event) = L::occurrence(step, about, new) else {
        return Ok(at);
    };
    let decided = at.clone().decide(event);
    prop_assert!(decided.is_ok(), "nobody is there to be refused");
    let Ok(decision) = decided else {
        return Ok(at);
    };
    prop_assert_eq!(decision.reply, Reply::Nothing);
    if world.executing.map(|(id, _)| id) != Some(about) {
        prop_assert_eq!(
            &decision.next,
            &at,
            "an operation that does not execute changed it"
        );
        prop_assert!(decision.effects.is_empty());
        return Ok(at);
    }
    if let Step::Ended(_, outcome) = step {
        world.end::<L>(*outcome);
    }
    for effect in decision.effects {
        prop_assert!(
            !matches!(effect, Effect::Start(..) | Effect::End(_)),
            "only a request starts, and only an operator ends"
        );
        world.follow::<L>(effect, new)?;
    }
    Ok(decision.next)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rules = vec![
        Asynchrony::Never,
        Asynchrony::Preferred,
        Asynchrony::Required,
    ];
    let how = (select(rules), any::<bool>()).prop_map(|(rule, accepts_incomplete)| SendMode {
        rule,
        accepts_incomplete,
    });
    let odds = vec![
        RequestVariant::Objection,
        RequestVariant::NoIds,
        RequestVariant::Forced,
        RequestVariant::ParentBusy,
        RequestVariant::ParentMissing,
        RequestVariant::Cascade,
    ];
    let odd = prop_oneof![4 => Just(RequestVariant::No), 1 => select(odds)];
    let who = prop_oneof![
        6 => Just(OperationRole::Executing),
        1 => Just(OperationRole::Waiting),
        1 => any::<u8>().prop_map(|index| OperationRole::Earlier(index.into())),
    ];
    let outcome = select(vec![Outcome::Succeeded, Outcome::Failed, Outcome::Refused]);
    let orders = vec![
        CommandKind::Retry,
        CommandKind::Cancel,
        CommandKind::Abandon,
        CommandKind::Purge,
    ];
    let create = (any::<bool>(), odd.clone(), how.clone());
    let step = prop_oneof![
        4 => create.prop_map(|(same, odd, how)| Step::Create { same, odd, how }),
        3 => (0..3_u8, odd.clone(), how.clone())
            .prop_map(|(size, odd, how)| Step::Update { size, odd, how }),
        3 => (odd, how).prop_map(|(odd, how)| Step::Delete { odd, how }),
        1 => who.clone().prop_map(Step::Saved),
        5 => (who.clone(), outcome).prop_map(|(who, outcome)| Step::Ended(who, outcome)),
        1 => who.prop_map(Step::Overdue),
        2 => select(orders).prop_map(Step::Command),
    ];
    collection::vec(step, 1..STEPS_MAX)
}

/// Runs many sequences and asserts that together they reach every state.
fn hold<L: ModelledResource>(states: &[&'static str]) {
    let config = Config {
        cases: LIVES,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let been = RefCell::new(BTreeSet::new());
    let outcome = TestRunner::new_with_rng(config, rng).run(&steps(), |steps| {
        been.borrow_mut().extend(live::<L>(&steps)?);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert_eq!(been.into_inner(), states.iter().copied().collect());
}

/// Holds: B-035, B-082, B-083, B-087, B-255.
#[test]
fn whatever_happens_to_an_instance_nothing_runs_twice_and_nothing_is_forgotten() {
    // Its purge is finished at once: there are no bindings here.
    let states = INSTANCE_STATES.into_iter().filter(|it| *it != "purging");
    hold::<Instance>(&states.collect::<Vec<_>>());
}

/// Holds: B-035, B-082, B-083, B-087, B-245.
#[test]
fn whatever_happens_to_a_binding_nothing_runs_twice_and_nothing_is_forgotten() {
    hold::<Binding>(&BINDING_STATES);
}
