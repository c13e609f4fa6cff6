//! What is there before a run begins: a namespace, a registered broker, and its catalog, as if it had been read.

use super::model_broker::OfferedCatalog;
use super::scenario::PlatformScenario;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;
use sutler_journal::Commit;
use sutler_osb::ServiceOffering;
use sutler_platform::author::Author;
use sutler_platform::broker_request::Profile;
use sutler_platform::catalog::{BrokerScope, OfferedPlan, OfferedService};
use sutler_platform::platform_records::PlatformRecords;
use sutler_platform::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerState, BrokerTls,
    CatalogRecord, Record, ResourceName, TypedRecord,
};
use sutler_records::LoadedDocument;
use uuid::Uuid;

/// The only broker.
pub(crate) const BROKER: Uuid = Uuid::from_u128(0xb);

/// A name.
pub(crate) fn name(text: &str) -> ResourceName {
    ResourceName::try_from(text).expect("a name")
}

/// The only namespace.
pub(crate) fn namespace() -> ResourceName {
    name("app")
}

/// A person.
pub(crate) fn person(username: &str) -> Author {
    Author {
        username: username.to_owned(),
        uid: format!("uid-{username}"),
        groups: vec!["people".to_owned(), format!("team-{username}")],
        extra: BTreeMap::from([("scopes".to_owned(), vec![username.to_owned()])]),
        impersonated_by: None,
    }
}

/// Writes everything.
pub(crate) async fn write(records: &PlatformRecords, scenario: &PlatformScenario) {
    let offerings = OfferedCatalog::first(scenario.options.retrievable).body();
    let offering: ServiceOffering =
        serde_json::from_value(offerings["services"][0].clone()).expect("an offering");
    let keys = &records.keys;
    let registration = registration(records, scenario);
    let mut commit = Commit::new();
    let key = keys.broker(None, &registration.name);
    commit = put(records, commit, &key, registration);
    let state = BrokerState {
        catalog_revision: 1,
        ..BrokerState::default()
    };
    commit = put(records, commit, &keys.broker_state(BROKER), state);
    for plan in &offering.plans {
        let plan = OfferedPlan::from_plan(offering.id.clone(), plan.clone());
        let key = keys.service_plan(BROKER, plan.service_id(), plan.id());
        commit = put(records, commit, &key, CatalogRecord::Plan(plan));
    }
    let service = OfferedService::from_offering(offering);
    let key = keys.service_offering(BROKER, service.id());
    commit = put(records, commit, &key, CatalogRecord::Service(service));
    let store = &records.documents.store;
    store.commit(&commit).await.expect("the store answers");
}

fn put<T: TypedRecord>(
    records: &PlatformRecords,
    commit: Commit,
    key: &sutler_journal::Key,
    contents: T,
) -> Commit {
    let absent = LoadedDocument::absent();
    records
        .documents
        .put(commit, key, &absent, &Record::of(contents))
}

fn registration(records: &PlatformRecords, scenario: &PlatformScenario) -> BrokerRegistration {
    let chosen = &scenario.options;
    BrokerRegistration {
        uid: BROKER,
        name: name("model-broker"),
        scope: BrokerScope::AllNamespaces,
        url: "http://broker.test".to_owned(),
        authentication: BrokerAuthentication::None,
        tls: BrokerTls::default(),
        profile: Profile::Kubernetes,
        restrictions: Default::default(),
        access: Default::default(),
        limits: BrokerLimits {
            max_in_flight: NonZeroU32::new(16).expect("not zero"),
            answer_within: scenario.answer_within,
            send_within: scenario.send_within,
            poll_within: scenario.poll_within,
            relist_every: Duration::from_secs(24 * 3600),
        },
        options: BrokerOptions {
            auto_retries: chosen.auto_retries,
            delete_waits_for_update: chosen.delete_waits_for_update,
            manual_orphan_cleanup: chosen.manual_orphan_cleanup,
            serialize: chosen.serialize,
            rotation_overlap: Duration::from_secs(20),
            ..BrokerOptions::default()
        },
        revision: 1,
        created: records.now(),
        created_by: person("olga"),
        deregistering: None,
    }
}
