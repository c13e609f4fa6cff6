//! Catalogs, names, persons and instances of the tests.

use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use sutler_platform::author::Author;
use sutler_platform::broker_request::{Annotations, Namespace};
use sutler_platform::lifecycle::instance::{Basis, Exposure, Instance, Origin, Tombstone};
use sutler_platform::lifecycle::orphan::{
    AttemptLog, DeleteRound, Orphan, OrphanCause, OrphanKey, OrphanState,
};
use sutler_platform::records::{NamespaceRecord, NamespaceState, OrphanRecord, ResourceName};
use sutler_platform::spec::{Parameters, Spec};
use uuid::Uuid;

pub(super) fn name(text: &str) -> ResourceName {
    text.try_into().expect("a name")
}

pub(super) fn operator() -> Author {
    Author {
        username: "olga".to_owned(),
        uid: "uid-olga".to_owned(),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

/// The namespace `app`.
pub(super) fn namespace(state: NamespaceState) -> NamespaceRecord {
    let text = |text: &str| text.to_owned().try_into().expect("a text");
    NamespaceRecord {
        facts: Namespace {
            name: text("app"),
            uid: text("uid-app"),
            cluster_id: text("c"),
            annotations: Annotations::default(),
            cloud_foundry: None,
        },
        labels: BTreeMap::new(),
        created: jiff::Timestamp::UNIX_EPOCH,
        state,
    }
}

pub(super) fn plan(id: &str) -> Value {
    json!({"id": id, "name": id, "description": "A plan."})
}

pub(super) fn service(id: &str, plans: &[&str]) -> Value {
    let plans: Vec<Value> = plans.iter().map(|id| plan(id)).collect();
    json!({
        "id": id, "name": id, "description": "An offering.", "bindable": true, "plans": plans,
    })
}

/// The body of a catalog.
pub(super) fn catalog(services: &[(&str, &[&str])]) -> String {
    let services: Vec<Value> = services
        .iter()
        .map(|(id, plans)| service(id, plans))
        .collect();
    json!({ "services": services }).to_string()
}

/// An instance of a plan that was never sent.
pub(super) fn instance(broker: Uuid, number: u128, plan: &str) -> Instance {
    let spec = Spec {
        plan: plan.try_into().expect("an id"),
        maintenance_version: None,
        parameters: Parameters::default(),
        parameter_sources: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        name: format!("db{number}"),
    };
    Instance {
        uid: Uuid::from_u128(number),
        namespace: "app".to_owned(),
        broker,
        service: "s".try_into().expect("an id"),
        osb_id: format!("osb-{number}").try_into().expect("an id"),
        osb_id_is_chosen: false,
        former_ids: Vec::new(),
        origin: Origin::Created,
        source: None,
        basis: Basis::Requested(Box::new(spec)),
        exposure: Exposure::Nothing,
        usable: false,
        protected: false,
        generation: 1,
        revision: 1,
        applied: None,
        pending: Vec::new(),
        ended: VecDeque::new(),
        revisions: VecDeque::new(),
        managers: VecDeque::new(),
        idempotency_keys: VecDeque::new(),
        deletion: None,
        create_sent: None,
        waits_for_orphan: false,
        auto_retries: 0,
        tombstone: None,
        abandoned: None,
    }
}

/// A row of the ledger that waits for a person.
pub(super) fn deferred_orphan(broker: Uuid, number: u128) -> OrphanRecord {
    let orphan = Orphan {
        key: OrphanKey {
            broker,
            instance: format!("osb-{number}").try_into().expect("an id"),
            binding: None,
        },
        service_id: "s".try_into().expect("an id"),
        plan_id: "p1".try_into().expect("an id"),
        cause: OrphanCause::Abandoned,
        found: jiff::Timestamp::UNIX_EPOCH,
        by: None,
        waiting: None,
        guarded_until: jiff::Timestamp::UNIX_EPOCH,
        round: DeleteRound::default(),
        attempts: AttemptLog::default(),
        state: OrphanState::Deferred,
    };
    OrphanRecord {
        orphan,
        operation: None,
        has_secrets: false,
    }
}

/// The same instance, deleted.
pub(super) fn gone(mut instance: Instance) -> Instance {
    instance.tombstone = Some(Tombstone::Deleted(jiff::Timestamp::UNIX_EPOCH));
    instance
}
