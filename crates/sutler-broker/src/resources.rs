//! Instances and bindings as they are stored: keys, index terms, requests, details and progress.
//!
//! Sealing and loading is done by `sutler_records`; rules are in `lifecycle/`.

use crate::lifecycle::binding::{self, Binding, BindingSpec};
use crate::lifecycle::instance::{self, Change, Instance, InstanceSpec};
use crate::lifecycle::{AuthorState, Decision, Verb};
use crate::operation_log::Origin;
use crate::refusal::Refusal;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_journal::{
    Commit, CommitRejectedError, Fence, Key, Kind, Lost, OperationId, Run, StoreTime, Term,
};
use sutler_osb::{BindingId, InstanceId, OriginatingIdentity, RequestIdentity};
use sutler_records::{Documents, Resource};

pub(crate) const INSTANCE: Kind = Kind::new("instance");
pub(crate) const BINDING: Kind = Kind::new("binding");
pub(crate) const PLAN: Kind = Kind::new("plan");

/// Terms. A binding is listed by its instance under these two.
pub(crate) const OF: &str = "of";
pub(crate) const BUSY: &str = "busy";
/// Time of deletion; tombstones are swept by it.
pub(crate) const GONE: &str = "gone";
pub(crate) const PLAN_TERM: &str = "plan";
/// The plan that a running update moves the instance to, if it differs.
pub(crate) const NEXT_PLAN_TERM: &str = "next_plan";
pub(crate) const LIFECYCLE: &str = "lifecycle";
/// Accepted before its plan was offered; the value is always the same.
pub(crate) const WAITS: &str = "waits";
pub(crate) const WAITS_FOR_PLAN: &[u8] = b"plan";

/// Result data of an operation, for polls and for a waiting caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_usable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_repeatable: Option<bool>,
    /// Delay until the next poll, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Refusal of the hook, for a waiting caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedAs>,
}

/// Refusal of a hook, as stored with the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusedAs {
    Invalid,
    Unsupported,
    RequiresApp,
}

/// Request of an operation, with its caller. Never changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The parsed body.
    #[serde(rename = "asked")]
    pub body: RequestBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<OriginatingIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_identity: Option<RequestIdentity>,
    /// The request that started the operation.
    #[serde(default)]
    pub origin: Origin,
}

/// Body of a request. It is shared until it is stored as JSON; a stored one is read only where it is needed.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RequestBody {
    Provision(Arc<InstanceSpec>),
    Update(Arc<Change>),
    Bind(Arc<BindingSpec>),
    /// Name of a request without a body.
    Named(&'static str),
    Stored(Box<RawValue>),
}

impl<'de> Deserialize<'de> for RequestBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Stored)
    }
}

impl RequestBody {
    /// The change that an update requests.
    pub(crate) fn change(&self) -> Result<Arc<Change>, serde_json::Error> {
        match self {
            Self::Update(change) => Ok(change.clone()),
            Self::Stored(json) => serde_json::from_str(json.get()),
            Self::Provision(_) | Self::Bind(_) | Self::Named(_) => {
                Err(serde_json::Error::custom("not the request of an update"))
            }
        }
    }

    /// Whether this is the request of an operation with this verb. The verb of a row is not sealed, the request is.
    pub(crate) fn fits(&self, verb: Verb) -> bool {
        /// Only the specs of new resources name a service.
        #[derive(Deserialize)]
        struct ServiceName {
            service_id: Option<serde::de::IgnoredAny>,
        }
        let (creates, updates) = match self {
            Self::Provision(_) | Self::Bind(_) => (true, false),
            Self::Update(_) => (false, true),
            Self::Named(_) => (false, false),
            Self::Stored(json) => {
                let fields: Result<ServiceName, _> = serde_json::from_str(json.get());
                let creates = fields.as_ref().is_ok_and(|it| it.service_id.is_some());
                (creates, fields.is_ok() && !creates)
            }
        };
        match verb {
            Verb::Provision | Verb::Bind => creates,
            Verb::Update => updates,
            Verb::Deprovision | Verb::Unbind => !creates && !updates,
        }
    }
}

/// Progress of an operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Steps {
    /// Results of the author's steps.
    #[serde(default)]
    pub memos: BTreeMap<String, Value>,
    /// Unbinds that a deprovision started, by binding.
    #[serde(default)]
    pub cascade: BTreeMap<String, OperationId>,
    /// The call of the hook from which its deadline counts; recorded when the attempt is followed by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_call: Option<FirstCall>,
}

/// The first call of a hook after the acceptance or after a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstCall {
    /// Moment, in microseconds of the store's clock; later by the time for which attempts were due and did not run.
    pub at: i64,
    /// The attempt that was planned last. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<PlannedAttempt>,
    /// Takeovers before it: a later takeover has all the time again.
    pub takeovers: u32,
}

/// An attempt that follows another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedAttempt {
    /// When it is due, in microseconds of the store's clock.
    pub due: i64,
    /// Number of its claim, if no other claim comes before it that may run. A claim that is put back makes it the next one.
    pub fence: u64,
}

impl Steps {
    /// The claim with this number is put back without having run: the planned attempt comes with the next one. Returns
    /// whether anything changed.
    pub(crate) fn put_back(&mut self, fence: Fence) -> bool {
        let planned = self.first_call.as_mut().and_then(|it| it.next.as_mut());
        let Some(next) = planned.filter(|next| next.fence == fence.0) else {
            return false;
        };
        next.fence += 1;
        true
    }
}

/// Result of saving a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveResult {
    Kept,
    TooLarge,
}

impl SaveResult {
    /// Error for a hook whose state could not be saved.
    pub(crate) fn into_error(self) -> crate::error::Error {
        crate::error::Error::failed("The state of the operation is too large to be kept.")
    }
}

impl Resource for Instance {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        match self.data() {
            Some(instance_data) => {
                let mut terms = vec![
                    Term::new(PLAN_TERM, instance_data.spec.plan_id.as_str()),
                    Term::new(LIFECYCLE, self.lifecycle()),
                ];
                if let Some(next) = self.next_plan() {
                    terms.push(Term::new(NEXT_PLAN_TERM, next.as_str()));
                }
                if instance_data.spec.waits_for_plan() {
                    terms.push(Term::new(WAITS, WAITS_FOR_PLAN));
                }
                terms
            }
            // Housekeeping finds it by this term if the purge was interrupted.
            None if self.is_purging() => vec![Term::new(LIFECYCLE, self.lifecycle())],
            None => Vec::new(),
        }
    }

    fn dated_terms(&self, written: StoreTime) -> Vec<Term> {
        // The tombstone of a purge stays until the bindings are purged too.
        let is_tombstone = self.data().is_none() && !self.is_purging();
        gone_term(is_tombstone, written)
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        Instance::pins(self)
    }
}

impl Resource for Binding {
    fn terms(&self, key: &Key) -> Vec<Term> {
        if self.data().is_none() {
            return Vec::new();
        }
        let mut terms = vec![
            Term::new(OF, key.id(0)),
            Term::new(LIFECYCLE, self.lifecycle()),
        ];
        if self.is_busy() {
            terms.push(Term::new(BUSY, key.id(0)));
        }
        terms
    }

    fn dated_terms(&self, written: StoreTime) -> Vec<Term> {
        gone_term(self.data().is_none(), written)
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        Binding::pins(self)
    }
}

/// Time of deletion of a tombstone, by the store's clock.
fn gone_term(is_tombstone: bool, written: StoreTime) -> Vec<Term> {
    let term = || Term::new(GONE, moment_bytes(written));
    is_tombstone.then(term).into_iter().collect()
}

/// Seconds as bytes that sort by time.
pub(crate) fn moment_bytes(time: StoreTime) -> Vec<u8> {
    let since_epoch = time.since(StoreTime::default());
    since_epoch.as_secs().to_be_bytes().to_vec()
}

/// Keys of instances and bindings in a realm.
pub(crate) trait ResourceKeys {
    /// Key of an instance.
    fn instance_key(&self, id: &InstanceId) -> Key;

    /// Key of a binding, which contains that of its instance.
    fn binding_key(&self, instance: &InstanceId, id: &BindingId) -> Key;
}

impl ResourceKeys for Documents {
    fn instance_key(&self, id: &InstanceId) -> Key {
        Key::new(&self.realm, INSTANCE, &[id.as_str()]).expect("an InstanceId is a valid id")
    }

    fn binding_key(&self, instance: &InstanceId, id: &BindingId) -> Key {
        Key::new(&self.realm, BINDING, &[instance.as_str(), id.as_str()])
            .expect("both are valid ids")
    }
}

/// A resource that holds the state of its author.
trait HoldsAuthorState: Resource {
    /// Decides how the author's state is saved.
    fn save(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal>;
}

impl HoldsAuthorState for Instance {
    fn save(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, instance::Event::Saved { operation, state })
    }
}

impl HoldsAuthorState for Binding {
    fn save(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, binding::Event::Saved { operation, state })
    }
}

/// Saves the author's state in the middle of an operation.
pub(crate) async fn save_state(
    documents: &Documents,
    run: &Run,
    state: AuthorState,
) -> Result<SaveResult, Lost> {
    if run.operation().row.lane.kind() == BINDING.as_str() {
        save_state_of::<Binding>(documents, run, state).await
    } else {
        save_state_of::<Instance>(documents, run, state).await
    }
}

async fn save_state_of<S: HoldsAuthorState>(
    documents: &Documents,
    run: &Run,
    state: AuthorState,
) -> Result<SaveResult, Lost> {
    let lane = &run.operation().row.lane;
    loop {
        let was = documents.load_for_run::<S>(run, lane).await?;
        let Ok(decision) = was.state.clone().save(run.id(), state.clone()) else {
            return Ok(SaveResult::Kept);
        };
        let commit = documents.put(Commit::new(), lane, &was, &decision.next);
        match run.commit(commit).await? {
            Ok(()) => return Ok(SaveResult::Kept),
            Err(CommitRejectedError::Stale(_)) => {}
            Err(CommitRejectedError::TooLarge(_)) => return Ok(SaveResult::TooLarge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RequestBody;
    use crate::lifecycle::Verb;

    /// A changed verb of a row must not turn the retry of an update into a deletion.
    #[test]
    fn a_stored_request_fits_only_verbs_of_its_kind() {
        let update = r#"{"parameters":{"service_id":1}}"#;
        for (json, fitting) in [
            (
                r#"{"service_id":"s","plan_id":"p"}"#,
                [Verb::Provision, Verb::Bind].as_slice(),
            ),
            (update, &[Verb::Update]),
            ("{}", &[Verb::Update]),
            (r#""deprovision""#, &[Verb::Deprovision, Verb::Unbind]),
        ] {
            let body: RequestBody = serde_json::from_str(json).expect("a body");
            for verb in [
                Verb::Provision,
                Verb::Update,
                Verb::Deprovision,
                Verb::Bind,
                Verb::Unbind,
            ] {
                assert_eq!(body.fits(verb), fitting.contains(&verb), "{json} {verb:?}");
            }
        }
    }
}
