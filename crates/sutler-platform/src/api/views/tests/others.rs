//! Namespaces, brokers, secrets, orphans and the marketplace.

use super::{SECRET, check, moment, person};
use crate::api::views::{BrokerDocument, NamespaceView, OrphanView, SecretView, offered_classes};
use crate::broker_request::{Namespace, Profile};
use crate::catalog::{AccessRules, BrokerScope, CatalogRestrictions, OfferedPlan, OfferedService};
use crate::commands::SecretSummary;
use crate::lifecycle::breaker::{Breaker, OpenBreaker, OpenCause};
use crate::lifecycle::intent::BrokerStatement;
use crate::lifecycle::orphan::{
    CleanupMode, NewOrphan, OrphanCause, OrphanEvent, OrphanKey, decide,
};
use crate::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerState, BrokerTls,
    NamespaceRecord, NamespaceState, SyncStatus,
};
use serde_json::{Value, json};
use sutler_osb::ServiceOffering;
use uuid::Uuid;

fn registration() -> BrokerRegistration {
    BrokerRegistration {
        uid: Uuid::from_u128(0xb0b),
        name: "databases".try_into().expect("a name"),
        scope: BrokerScope::Namespace("app".to_owned()),
        url: "https://broker.example".to_owned(),
        authentication: BrokerAuthentication::ClientCredentials {
            token_url: "https://uaa.example/oauth/token".to_owned(),
            client_id: "platform".to_owned(),
            client_secret: SECRET.to_owned(),
            scope: None,
        },
        tls: BrokerTls {
            ca_pem: Some(format!("ca {SECRET}")),
            client_pem: Some(format!("key {SECRET}")),
            insecure_skip_verify: true,
        },
        profile: Profile::Kubernetes,
        restrictions: CatalogRestrictions::default(),
        access: AccessRules::default(),
        limits: BrokerLimits::default(),
        options: BrokerOptions::default(),
        revision: 3,
        created: moment(1_000_000),
        created_by: person("ada"),
        deregistering: None,
    }
}

#[test]
fn a_broker_is_shown_without_its_credentials() {
    let open = OpenBreaker {
        since: moment(1_000_100),
        cause: OpenCause::Unauthorized,
        failed_probes: 2,
        next_probe: moment(1_000_200),
        last: Some(BrokerStatement {
            status: Some(401),
            error: None,
            description: None,
        }),
    };
    let state = BrokerState {
        breaker: Breaker::Open(open),
        catalog_revision: 7,
        sync: SyncStatus {
            read_at: Some(moment(1_000_050)),
            failure: Some("the broker refuses the credentials".to_owned()),
            ..SyncStatus::default()
        },
        ..BrokerState::default()
    };
    check("broker-open", &BrokerDocument::of(&registration(), &state));
}

#[test]
fn other_ways_to_authenticate_show_no_secret_either() {
    let secret = || SECRET.to_owned();
    for authentication in [
        BrokerAuthentication::None,
        BrokerAuthentication::Bearer { token: secret() },
        BrokerAuthentication::Basic {
            username: "platform".to_owned(),
            password: secret(),
        },
    ] {
        let registration = BrokerRegistration {
            authentication,
            ..registration()
        };
        let view = BrokerDocument::of(&registration, &BrokerState::default());
        let text = serde_json::to_string(&view).expect("it serialises");
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn a_namespace_is_shown_with_what_brokers_are_told() {
    let text = |text: &str| text.try_into().expect("a text");
    let namespace = NamespaceRecord {
        facts: Namespace {
            name: text("app"),
            uid: text("ns-1"),
            cluster_id: text("here"),
            annotations: Default::default(),
            cloud_foundry: None,
        },
        labels: [("team".to_owned(), "x".to_owned())].into(),
        created: moment(1_000_000),
        state: NamespaceState::Deleting(moment(1_000_009)),
    };
    check("namespace", &NamespaceView::of(&namespace));
}

#[test]
fn a_secret_is_shown_by_its_keys() {
    let secret = SecretSummary {
        name: "db-init".to_owned(),
        keys: vec!["password".to_owned()],
        revision: 2,
        changed: moment(1_000_000),
        changed_by: person("ada"),
    };
    check("secret", &SecretView::of("app", &secret));
}

#[test]
fn an_orphan_is_shown_with_its_cause() {
    let found = OrphanEvent::Found(Box::new(NewOrphan {
        key: OrphanKey {
            broker: Uuid::from_u128(0xb0b),
            instance: "osb-1".try_into().expect("an id"),
            binding: None,
        },
        service_id: "class-1".try_into().expect("an id"),
        plan_id: "small".try_into().expect("an id"),
        cause: OrphanCause::Abandoned,
        by: Some(person("ada")),
        waiting: None,
        guarded_until: None,
        cleanup: CleanupMode::Automatic,
    }));
    let decision = decide(None, found, moment(1_000_000)).expect("it is possible");
    check("orphan", &OrphanView::of(&decision.next));
}

/// An offering with two plans; its icon is this.
fn offering(icon: String) -> (OfferedService, Vec<OfferedPlan>) {
    let offering: Value = json!({
        "id": "class-1", "name": "postgresql", "description": "A database", "bindable": true,
        "tags": ["sql"], "metadata": {"displayName": "PostgreSQL", "imageUrl": icon},
        "plan_updateable": true,
        "dashboard_client": {"id": "d", "secret": SECRET},
        "plans": [
            {"id": "large", "name": "large", "description": "Large", "free": false},
            {"id": "small", "name": "small", "description": "Small", "bindable": false},
        ],
    });
    let offering: ServiceOffering = serde_json::from_value(offering).expect("an offering");
    let plans = offering.plans.clone().into_iter();
    let plans = plans.map(|plan| OfferedPlan::from_plan(offering.id.clone(), plan));
    let plans = plans.collect();
    (OfferedService::from_offering(offering), plans)
}

#[test]
fn an_offering_is_shown_with_its_plans_and_their_effective_values() {
    let (service, plans) = offering("https://icons.example/1.png".to_owned());
    let plans = plans.iter().map(|plan| (&service, plan));
    let classes = offered_classes(("databases", Uuid::from_u128(0xb0b)), plans);
    check("marketplace", &classes);
}

#[test]
fn an_icon_that_is_too_large_is_left_out() {
    let (service, plans) = offering("x".repeat(65 * 1024));
    let plans = plans.iter().map(|plan| (&service, plan));
    let classes = offered_classes(("databases", Uuid::nil()), plans);
    let text = serde_json::to_string(&classes).expect("it serialises");
    assert!(text.len() < 2_000 && text.contains("PostgreSQL"), "{text}");
}
