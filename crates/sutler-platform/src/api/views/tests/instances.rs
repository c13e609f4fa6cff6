//! Two people change one instance, and the broker rejects the first change: what everybody sees then.

use super::{check, moment, person};
use crate::api::views::{InstanceContext, InstanceView, IntentDocument};
use crate::catalog::{KnownCatalog, OfferedPlan, OfferedService};
use crate::commands::IntentView as JournalIntent;
use crate::lifecycle::breaker::{OpenCause, SendingStop, StopReason};
use crate::lifecycle::instance::{
    ChangeFacts, ChangeRequest, Context, CreateRequest, Event, Instance, InstanceCommand,
    InstancePolicy, NewIds, PreparedTurn, ResourceDetails, decide,
};
use crate::lifecycle::intent::{
    BrokerStatement, IntentCause, IntentEnd, IntentNumber, OperationId,
};
use crate::records::{AttemptLog, IntentDetail, IntentProgress, IntentRequest, PreparedRequest};
use crate::spec::samples::{parameters_patch, plan_patch, spec};
use serde_json::json;
use std::time::Duration;
use sutler_client::{BrokerMessage, Meaning, RejectionReason, Success};
use sutler_osb::{ErrorCode, ServiceOffering};
use uuid::Uuid;

/// An instance and the clock of its decisions.
struct Story {
    instance: Option<Instance>,
    second: i64,
}

impl Story {
    fn happens(&mut self, event: Event) {
        self.second += 1;
        let policy = InstancePolicy {
            send_within: Duration::from_secs(3600),
            exclusive: false,
            delete_waits_for_update: false,
            manual_cleanup: false,
            auto_retries: 3,
            late_create_within: Duration::from_secs(120),
            context_updates: false,
            retrievable: false,
        };
        let id = u128::try_from(self.second).expect("a positive number");
        let context = Context {
            now: moment(self.second),
            ids: NewIds {
                operation: OperationId(Uuid::from_u128(id)),
                uid: Uuid::from_u128(0xbeef),
                osb_id: "osb-1".try_into().expect("an id"),
            },
            policy: &policy,
            fits: &|_| true,
        };
        let decision = decide(self.instance.take(), event, &context);
        self.instance = Some(decision.expect("it is possible").next);
    }

    fn asks(&mut self, command: InstanceCommand) {
        self.happens(Event::Command(Box::new(command)));
    }

    fn is_sent(&mut self, number: u64) {
        self.happens(Event::Turn(IntentNumber(number), PreparedTurn::Ready));
    }

    fn is_answered(&mut self, number: u64, meaning: Meaning<ResourceDetails>) {
        self.happens(Event::Answer(IntentNumber(number), Box::new(meaning)));
    }

    /// What is known of the broker when somebody looks.
    fn view(&self, stop: Option<&SendingStop>) -> InstanceView {
        let catalog = catalog();
        let context = InstanceContext {
            broker: Some("databases"),
            catalog: Some(&catalog),
            stop,
        };
        InstanceView::of(self.instance.as_ref().expect("it exists"), context)
    }
}

fn facts(name: &str) -> ChangeFacts {
    ChangeFacts {
        request: ChangeRequest::of_platform(person(name), IntentCause::User),
        violations: Vec::new(),
        catalog_revision: 1,
    }
}

/// `class-1` is `postgresql`; `small` is known, `large` is not any more.
fn catalog() -> KnownCatalog {
    let offering = json!({"id": "class-1", "name": "postgresql", "description": "d", "bindable": true,
        "plans": [{"id": "small", "name": "Small plan", "description": "d"}]});
    let offering: ServiceOffering = serde_json::from_value(offering).expect("an offering");
    let plan = offering.plans[0].clone();
    let plan = OfferedPlan::from_plan(offering.id.clone(), plan);
    KnownCatalog::new([OfferedService::from_offering(offering)], [plan])
}

/// Created by Ada, live.
fn live() -> Story {
    let mut story = Story {
        instance: None,
        second: 1_000_000,
    };
    story.asks(InstanceCommand::Create(CreateRequest {
        namespace: "app".to_owned(),
        broker: Uuid::from_u128(0xb0b),
        service: "class-1".try_into().expect("an id"),
        spec: spec("small", json!({"disk": 10})),
        osb_id: None,
        source: None,
        facts: facts("ada"),
    }));
    story.is_sent(1);
    let details = ResourceDetails {
        dashboard_url: Some("https://dashboard.example/1".to_owned()),
        metadata: None,
    };
    story.is_answered(1, Meaning::Succeeded(Success::Now(details)));
    story
}

fn rejection() -> Meaning<ResourceDetails> {
    Meaning::Rejected {
        reason: RejectionReason::Refused,
        message: BrokerMessage {
            status: Some(403),
            error: Some(ErrorCode::from("QuotaExceeded".to_owned())),
            description: Some("The quota of <b>large</b> plans is used up.".to_owned()),
            usable: true,
        },
        update_repeatable: true,
    }
}

#[test]
fn pending_changes_are_shown_with_their_authors_and_what_they_change() {
    let mut story = live();
    story.asks(InstanceCommand::Patch(plan_patch("large"), facts("bob")));
    story.is_sent(2);
    let disk = parameters_patch(json!({"disk": 50}));
    story.asks(InstanceCommand::Patch(disk, facts("ada")));
    check("instance-pending", &story.view(None));
}

#[test]
fn after_a_rejection_the_specification_is_as_before_and_the_brokers_words_are_kept() {
    let mut story = live();
    story.asks(InstanceCommand::Patch(plan_patch("large"), facts("bob")));
    story.is_sent(2);
    let disk = parameters_patch(json!({"disk": 50}));
    story.asks(InstanceCommand::Patch(disk, facts("ada")));
    story.is_answered(2, rejection());
    check("instance-rejected", &story.view(None));
}

#[test]
fn what_waits_for_a_broker_says_so() {
    let mut story = live();
    story.asks(InstanceCommand::Delete {
        by: person("bob"),
        cascade: true,
        bindings: Vec::new(),
    });
    let stop = SendingStop {
        since: moment(1_000_000),
        reason: StopReason::Open(OpenCause::Silence),
    };
    check("instance-deleting", &story.view(Some(&stop)));
}

#[test]
fn a_link_of_a_broker_that_is_not_http_is_not_shown() {
    let mut story = live();
    story.asks(InstanceCommand::Touch(facts("ada")));
    story.is_sent(2);
    let details = ResourceDetails {
        dashboard_url: Some("javascript:alert(1)".to_owned()),
        metadata: None,
    };
    story.is_answered(2, Meaning::Succeeded(Success::Now(details)));
    let view = serde_json::to_string(&story.view(None)).expect("it serialises");
    assert!(!view.contains("javascript"), "{view}");
}

#[test]
fn an_intent_of_the_journal_has_its_attempts_and_not_what_was_sent() {
    let request = IntentRequest {
        number: IntentNumber(2),
        author: Some(person("bob")),
        verb: "update".to_owned(),
        patch: Some(plan_patch("small")),
        stands_on: vec![IntentNumber(1)],
        accepted: moment(1_000_000),
    };
    let mut attempts = AttemptLog::default();
    attempts.begin(1, moment(1_000_001));
    let words = BrokerStatement {
        status: Some(503),
        error: None,
        description: Some("later".to_owned()),
    };
    attempts.answered(words.clone());
    let prepared = json!({"body": super::SECRET}).to_string();
    let prepared: PreparedRequest = serde_json::from_value(json!(prepared)).expect("a text");
    let progress = IntentProgress {
        prepared: Some(prepared),
        attempts,
        ..IntentProgress::default()
    };
    let detail = IntentDetail {
        number: Some(IntentNumber(2)),
        description: None,
        end: Some(IntentEnd::Failed(words)),
    };
    let catalog = catalog();
    let service = "class-1".try_into().expect("an id");
    let names = crate::api::views::CatalogNames::of(Some(&catalog), &service);
    let intent = JournalIntent {
        operation: sutler_journal::OperationId(Uuid::nil()),
        request,
        progress,
        detail,
        claims: 1,
    };
    check(
        "intent-journal",
        &IntentDocument::of_journal(&intent, Some(names)),
    );
}
