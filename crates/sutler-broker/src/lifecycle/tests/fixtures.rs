//! One instance and one binding in every state they can be in, for the tests of the rules.
//!
//! The states have the names that `tests/transitions/*.txt` uses. Operations have fixed ids, so that
//! a test can say which one it means.

use crate::lifecycle::binding::{self, Binding, BindingData, BindingSpec};
use crate::lifecycle::instance::{self, Change, Instance, InstanceData, InstanceSpec};
use crate::lifecycle::{AsyncRequest, Asynchrony, AuthorState};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sutler_journal::OperationId;
use uuid::Uuid;

/// A failed create before [`CREATE`].
pub(super) const FIRST: OperationId = operation(1);
/// The create.
pub(super) const CREATE: OperationId = operation(2);
/// The update.
pub(super) const UPDATE: OperationId = operation(3);
/// The delete.
pub(super) const DELETE: OperationId = operation(4);
/// Id of the operation that a request would start.
pub(super) const NEW: OperationId = operation(5);
/// An unrelated operation.
pub(super) const OTHER: OperationId = operation(6);

pub(super) const INSTANCE_STATES: [&str; 12] = [
    "absent",
    "creating",
    "creating again",
    "create-failed",
    "live",
    "updating",
    "updating (given up)",
    "deleting",
    "deleting a failed create",
    "deleting over a create",
    "gone",
    "purging",
];

pub(super) const BINDING_STATES: [&str; 9] = [
    "absent",
    "creating",
    "creating again",
    "create-failed",
    "live",
    "deleting",
    "deleting a failed create",
    "deleting over a create",
    "gone",
];

pub(super) const fn operation(number: u128) -> OperationId {
    OperationId(Uuid::from_u128(number))
}

pub(super) fn async_request(rule: Asynchrony, accepts_incomplete: bool) -> AsyncRequest {
    AsyncRequest {
        operation: NEW,
        accepts_incomplete,
        rule,
    }
}

/// With `accepts_incomplete=true`, of a plan that prefers to be asynchronous.
pub(super) fn asynchronously() -> AsyncRequest {
    async_request(Asynchrony::Preferred, true)
}

/// Without `accepts_incomplete`, of the same plan.
pub(super) fn synchronously() -> AsyncRequest {
    async_request(Asynchrony::Preferred, false)
}

/// Without `accepts_incomplete`, of a plan that can only be asynchronous.
pub(super) fn impossibly() -> AsyncRequest {
    async_request(Asynchrony::Required, false)
}

/// A value of one of the OSB types, from its JSON.
pub(super) fn value<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("a sample is valid")
}

/// State that the author saved before the event.
pub(super) fn kept() -> Option<AuthorState> {
    Some(AuthorState(json!("kept")))
}

/// State that an operation saves while it runs.
pub(super) fn saved() -> AuthorState {
    AuthorState(json!("saved"))
}

/// State that a successful run returns.
pub(super) fn returned() -> Option<AuthorState> {
    Some(AuthorState(json!("returned")))
}

pub(super) fn spec() -> InstanceSpec {
    InstanceSpec {
        service_id: value(json!("database")),
        plan_id: value(json!("small")),
        plan: "small@1".to_owned(),
        parameters: value(json!({"size": 1, "zone": "a"})),
        organization_guid: "organization".to_owned(),
        space_guid: "space".to_owned(),
        context: Some(value(json!({"platform": "cloudfoundry"}))),
        maintenance_version: Some("1.0.0".to_owned()),
    }
}

/// Change of the fixture's update.
pub(super) fn change() -> Change {
    Change {
        plan: Some((value(json!("large")), "large@1".to_owned())),
        parameters: Some(value(json!({"size": 2}))),
        ..Change::default()
    }
}

/// `spec()` after `change()`, written out.
pub(super) fn changed_spec() -> InstanceSpec {
    InstanceSpec {
        plan_id: value(json!("large")),
        plan: "large@1".to_owned(),
        parameters: value(json!({"size": 2, "zone": "a"})),
        // The new plan has none.
        maintenance_version: None,
        ..spec()
    }
}

fn instance_data(made: OperationId, last: OperationId) -> InstanceData {
    InstanceData {
        spec: spec().into(),
        state: kept(),
        dashboard_url: Some("https://dashboard/1".to_owned()),
        metadata: Some(value(json!({"labels": {"before": "the run"}}))),
        made,
        last,
    }
}

pub(super) fn instance(state: &str) -> Instance {
    let updating = |given_up| Instance::Updating {
        data: instance_data(CREATE, UPDATE),
        change: change().into(),
        dashboard_url: Some("https://dashboard/2".to_owned()),
        given_up,
    };
    let deleting = |pending_create, was_live| Instance::Deleting {
        data: instance_data(CREATE, DELETE),
        pending_create,
        was_live,
    };
    match state {
        "absent" => Instance::Absent,
        "creating" => Instance::Creating {
            data: instance_data(CREATE, CREATE),
        },
        "creating again" => Instance::Creating {
            data: instance_data(FIRST, CREATE),
        },
        "create-failed" => Instance::CreateFailed {
            data: instance_data(CREATE, CREATE),
        },
        "live" => Instance::Live {
            data: instance_data(CREATE, CREATE),
        },
        "updating" => updating(false),
        "updating (given up)" => updating(true),
        "deleting" => deleting(None, true),
        "deleting a failed create" => deleting(None, false),
        "deleting over a create" => deleting(Some(CREATE), false),
        "gone" => Instance::gone(DELETE),
        "purging" => Instance::purging(DELETE),
        unknown => panic!("no instance is ever `{unknown}`"),
    }
}

/// Output of a successful run of an instance.
pub(super) fn instance_output() -> instance::HookOutput {
    instance::HookOutput {
        state: returned(),
        metadata: Some(value(json!({"labels": {"after": "the run"}}))),
    }
}

pub(super) fn binding_spec() -> BindingSpec {
    BindingSpec {
        service_id: value(json!("database")),
        plan_id: value(json!("small")),
        parameters: value(json!({"role": "reader"})),
        bind_resource: None,
        app_guid: Some("app".to_owned()),
        context: None,
        predecessor: None,
    }
}

fn binding_data(made: OperationId, last: OperationId) -> BindingData {
    BindingData {
        spec: binding_spec().into(),
        state: kept(),
        given: None,
        made,
        last,
    }
}

pub(super) fn binding(state: &str) -> Binding {
    let live = |last| BindingData {
        given: Some(*binding_output().given),
        ..binding_data(CREATE, last)
    };
    match state {
        "absent" => Binding::Absent,
        "creating" => Binding::Creating {
            data: binding_data(CREATE, CREATE),
        },
        "creating again" => Binding::Creating {
            data: binding_data(FIRST, CREATE),
        },
        "create-failed" => Binding::CreateFailed {
            data: binding_data(CREATE, CREATE),
        },
        "live" => Binding::Live { data: live(CREATE) },
        "deleting" => Binding::Deleting {
            data: live(DELETE),
            pending_create: None,
            was_live: true,
        },
        "deleting a failed create" => Binding::Deleting {
            data: binding_data(CREATE, DELETE),
            pending_create: None,
            was_live: false,
        },
        "deleting over a create" => Binding::Deleting {
            data: binding_data(CREATE, DELETE),
            pending_create: Some(CREATE),
            was_live: false,
        },
        "gone" => Binding::gone(DELETE),
        unknown => panic!("no binding is ever `{unknown}`"),
    }
}

/// Output of a successful bind.
pub(super) fn binding_output() -> binding::HookOutput {
    binding::HookOutput {
        state: returned(),
        given: Box::new(value(json!({"credentials": {"user": "u"}}))),
    }
}
