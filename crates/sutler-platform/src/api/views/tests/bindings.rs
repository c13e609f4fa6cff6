//! A binding that has credentials and is being rotated: they are never shown.

use super::{SECRET, check, moment, person};
use crate::api::views::{BindingContext, BindingView};
use crate::lifecycle::binding::{
    BindFacts, BindSpec, Binding, BindingBody, BindingCommand, BindingDetails, BindingPolicy,
    Context, CreateRequest, Event, InstanceReadiness, NewIds, PreparedTurn, RotateRequest,
    RotationPolicy, TargetResource, Transforms, decide,
};
use crate::lifecycle::intent::{IntentNumber, OperationId};
use crate::spec::samples::parameters;
use serde_json::json;
use std::time::Duration;
use sutler_client::{Meaning, Success};
use sutler_osb::BindResponse;
use uuid::Uuid;

fn facts() -> BindFacts {
    BindFacts {
        instance: InstanceReadiness::Live,
        violations: Vec::new(),
        rotatable: false,
    }
}

fn after(binding: Option<Binding>, second: i64, event: Event) -> Option<Binding> {
    let policy = BindingPolicy {
        send_within: Duration::from_secs(3600),
        manual_cleanup: false,
        auto_retries: 3,
        late_create_within: Duration::from_secs(120),
        may_name_application: true,
        overlap: Duration::from_secs(3600),
    };
    let id = u128::try_from(second).expect("a positive number");
    let context = Context {
        now: moment(second),
        ids: NewIds {
            operation: OperationId(Uuid::from_u128(id)),
            uid: Uuid::from_u128(0xb1d),
            osb_id: format!("osb-{second}").try_into().expect("an id"),
        },
        policy: &policy,
    };
    let decision = decide(binding, event, &context).expect("it is possible");
    Some(decision.next)
}

fn create() -> BindingCommand {
    let transforms: Transforms = serde_json::from_value(json!([
        {"rename": {"from": "uri", "to": "DATABASE_URL"}},
        {"remove": "admin"},
        {"add": {"key": "PORT", "jsonPath": "$.port"}},
        {"add": {"key": "MODE", "value": SECRET}},
    ]))
    .expect("transforms");
    let every = Some(Duration::from_secs(30 * 86_400));
    let rotation = RotationPolicy::new(every, Duration::from_secs(3600));
    BindingCommand::Create(Box::new(CreateRequest {
        namespace: "app".to_owned(),
        instance: Uuid::from_u128(0xbeef),
        name: "db-app".to_owned(),
        spec: BindSpec {
            parameters: parameters(json!({"role": "reader"})),
            parameter_sources: Vec::new(),
            target: TargetResource::Credentials,
        },
        transforms,
        rotation: Some(rotation.expect("a policy")),
        osb_id: None,
        by: person("ada"),
        idempotency_key: None,
        facts: facts(),
    }))
}

#[test]
fn credentials_are_never_part_of_a_binding() {
    let binding = after(None, 1_000_001, Event::Command(Box::new(create())));
    let sent = Event::Turn(IntentNumber(1), PreparedTurn::Ready);
    let binding = after(binding, 1_000_002, sent);
    let answer = BindResponse {
        syslog_drain_url: Some(SECRET.to_owned()),
        ..BindResponse::default()
    };
    let credentials = answer.try_into().expect("it is short");
    let bound = BindingBody::Fit(BindingDetails {
        credentials,
        expires_at: Some(moment(9_000_000)),
        renew_before: None,
    });
    let answer = Meaning::Succeeded(Success::Now(bound));
    let answer = Event::Answer(IntentNumber(1), Box::new(answer));
    let binding = after(binding, 1_000_003, answer);
    let rotate = BindingCommand::Rotate(RotateRequest {
        by: person("bob"),
        idempotency_key: None,
        facts: facts(),
    });
    let binding = after(binding, 1_000_004, Event::Command(Box::new(rotate)));
    let binding = binding.expect("it exists");
    let text = serde_json::to_string(&binding).expect("it serialises");
    assert!(
        text.contains(SECRET),
        "the document has what the view must not show"
    );
    let context = BindingContext {
        instance: Some("db"),
    };
    check("binding-rotating", &BindingView::of(&binding, context));
}
