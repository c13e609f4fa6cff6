//! Kinds of documents and their keys. The namespace comes first, so that lists and the feed can be filtered by key.
//!
//! Kinds differ from those of the broker's half on purpose: both can share one store.

use super::ResourceName;
use crate::lifecycle::orphan::OrphanKey;
use sutler_journal::{Key, Kind, Queue, Realm};
use sutler_osb::{BindingId, InstanceId, PlanId, ServiceId};
use uuid::Uuid;

/// Realm of every document of the platform.
pub const REALM: &str = "platform";

/// A namespace: `name`.
pub const NAMESPACE: Kind = Kind::new("namespace");
/// A registered broker: `scope`, `name`; the scope is `-` or a namespace.
pub const BROKER: Kind = Kind::new("osb_broker");
/// What is known of a broker at present: `uid`.
pub const BROKER_STATE: Kind = Kind::new("broker_state");
/// The lane of the syncs of a broker's catalog: `uid`. It has no document: the state of the broker names its operation,
/// and its own lane is that of the probe.
pub const CATALOG_SYNC: Kind = Kind::new("catalog_sync");
/// An offering of a broker's catalog: `broker uid`, `service id`.
pub const SERVICE_OFFERING: Kind = Kind::new("service_offering");
/// A plan of a broker's catalog: `broker uid`, `service id`, `plan id`.
pub const SERVICE_PLAN: Kind = Kind::new("service_plan");
/// A service instance, the lane of its intents: `namespace`, `uid`.
pub const INSTANCE: Kind = Kind::new("service_instance");
/// A service binding, the lane of its intents: `namespace`, `instance uid`, `uid`.
pub const BINDING: Kind = Kind::new("service_binding");
/// The name of an instance, taken: `namespace`, `name`.
pub const INSTANCE_NAME: Kind = Kind::new("instance_name");
/// The name of a binding, taken: `namespace`, `name`.
pub const BINDING_NAME: Kind = Kind::new("binding_name");
/// The id of an instance at its broker, taken: `broker uid`, `OSB instance id`.
pub const BROKER_INSTANCE_ID: Kind = Kind::new("broker_instance_id");
/// The id of a binding at its broker, taken: `broker uid`, `OSB binding id`. It is unique without that of the instance.
pub const BROKER_BINDING_ID: Kind = Kind::new("broker_binding_id");
/// A secret: `namespace`, `name`.
pub const SECRET: Kind = Kind::new("secret");
/// An instance or a binding that uses a secret: `namespace`, `secret`, `uid`.
pub const SECRET_USE: Kind = Kind::new("secret_use");
/// A row of the orphan ledger, the lane of its deletion: `broker uid`, `OSB instance id` (, `OSB binding id`).
pub const ORPHAN: Kind = Kind::new("orphan");
/// A process of the platform: `worker id`.
pub const REPLICA: Kind = Kind::new("replica");

/// Scope of brokers that serve all namespaces.
const ALL_NAMESPACES: &str = "-";

/// The realm of the platform.
#[must_use]
pub fn platform_realm() -> Realm {
    Realm::new(REALM).expect("a valid name")
}

/// Queue of all requests to one broker.
#[must_use]
pub fn broker_queue(broker: Uuid) -> Queue {
    Queue::of(format!("osb:{broker}"))
}

/// Queue of what is not sent to a broker, and of probes.
#[must_use]
pub fn platform_queue() -> Queue {
    Queue::named("platform")
}

/// Keys of the platform's documents.
///
/// # Panics
/// None of its methods does: names and ids were checked when they were read.
#[derive(Clone, Debug)]
pub struct PlatformKeys(Realm);

impl Default for PlatformKeys {
    fn default() -> Self {
        Self(platform_realm())
    }
}

impl PlatformKeys {
    /// The realm.
    pub fn realm(&self) -> &Realm {
        &self.0
    }

    fn key(&self, kind: Kind, ids: &[&str]) -> Key {
        Key::new(&self.0, kind, ids).expect("names and ids are valid parts of keys")
    }

    /// First bytes of the keys of a kind, all namespaces.
    #[must_use]
    pub fn all_of(&self, kind: Kind) -> Vec<u8> {
        Key::prefix(&self.0, kind, &[]).expect("a valid prefix")
    }

    /// First bytes of the keys of a kind whose first id is this one.
    #[must_use]
    pub fn all_below(&self, kind: Kind, first: &str) -> Vec<u8> {
        Key::prefix(&self.0, kind, &[first]).expect("a valid prefix")
    }

    /// First bytes of the keys of the bindings of an instance, gone ones included.
    #[must_use]
    pub fn bindings_of(&self, namespace: &str, instance: Uuid) -> Vec<u8> {
        let ids = [namespace, &instance.to_string()];
        Key::prefix(&self.0, BINDING, &ids).expect("a valid prefix")
    }

    /// A namespace.
    #[must_use]
    pub fn namespace(&self, name: &ResourceName) -> Key {
        self.key(NAMESPACE, &[name.as_str()])
    }

    /// A broker, of all namespaces or of one.
    #[must_use]
    pub fn broker(&self, scope: Option<&ResourceName>, name: &ResourceName) -> Key {
        let scope = scope.map_or(ALL_NAMESPACES, ResourceName::as_str);
        self.key(BROKER, &[scope, name.as_str()])
    }

    /// First bytes of the keys of the brokers of all namespaces (`None`), or of one.
    #[must_use]
    pub fn brokers_of(&self, scope: Option<&ResourceName>) -> Vec<u8> {
        let scope = scope.map_or(ALL_NAMESPACES, ResourceName::as_str);
        self.all_below(BROKER, scope)
    }

    /// What is known of a broker.
    #[must_use]
    pub fn broker_state(&self, broker: Uuid) -> Key {
        self.key(BROKER_STATE, &[&broker.to_string()])
    }

    /// The lane of the syncs of a broker's catalog.
    #[must_use]
    pub fn catalog_sync(&self, broker: Uuid) -> Key {
        self.key(CATALOG_SYNC, &[&broker.to_string()])
    }

    /// An offering.
    #[must_use]
    pub fn service_offering(&self, broker: Uuid, service: &ServiceId) -> Key {
        self.key(SERVICE_OFFERING, &[&broker.to_string(), service.as_str()])
    }

    /// A plan.
    #[must_use]
    pub fn service_plan(&self, broker: Uuid, service: &ServiceId, plan: &PlanId) -> Key {
        let ids = [&broker.to_string(), service.as_str(), plan.as_str()];
        self.key(SERVICE_PLAN, &ids)
    }

    /// An instance.
    #[must_use]
    pub fn instance(&self, namespace: &str, uid: Uuid) -> Key {
        self.key(INSTANCE, &[namespace, &uid.to_string()])
    }

    /// A binding.
    #[must_use]
    pub fn binding(&self, namespace: &str, instance: Uuid, uid: Uuid) -> Key {
        let ids = [namespace, &instance.to_string(), &uid.to_string()];
        self.key(BINDING, &ids)
    }

    /// The name of an instance.
    #[must_use]
    pub fn instance_name(&self, namespace: &str, name: &str) -> Key {
        self.key(INSTANCE_NAME, &[namespace, name])
    }

    /// The name of a binding.
    #[must_use]
    pub fn binding_name(&self, namespace: &str, name: &str) -> Key {
        self.key(BINDING_NAME, &[namespace, name])
    }

    /// The id of an instance at its broker.
    #[must_use]
    pub fn broker_instance_id(&self, broker: Uuid, id: &InstanceId) -> Key {
        self.key(BROKER_INSTANCE_ID, &[&broker.to_string(), id.as_str()])
    }

    /// The id of a binding at its broker.
    #[must_use]
    pub fn broker_binding_id(&self, broker: Uuid, id: &BindingId) -> Key {
        self.key(BROKER_BINDING_ID, &[&broker.to_string(), id.as_str()])
    }

    /// A secret.
    #[must_use]
    pub fn secret(&self, namespace: &str, name: &str) -> Key {
        self.key(SECRET, &[namespace, name])
    }

    /// That an instance or a binding of this uid uses a secret.
    #[must_use]
    pub fn secret_use(&self, namespace: &str, secret: &str, uid: Uuid) -> Key {
        self.key(SECRET_USE, &[namespace, secret, &uid.to_string()])
    }

    /// First bytes of the keys of all uses of a secret.
    #[must_use]
    pub fn uses_of_secret(&self, namespace: &str, secret: &str) -> Vec<u8> {
        Key::prefix(&self.0, SECRET_USE, &[namespace, secret]).expect("a valid prefix")
    }

    /// A row of the orphan ledger.
    #[must_use]
    pub fn orphan(&self, orphan: &OrphanKey) -> Key {
        let broker = orphan.broker.to_string();
        match &orphan.binding {
            None => self.key(ORPHAN, &[&broker, orphan.instance.as_str()]),
            Some(binding) => self.key(
                ORPHAN,
                &[&broker, orphan.instance.as_str(), binding.as_str()],
            ),
        }
    }

    /// First bytes of the keys of the rows of an instance and its bindings, by the id that the broker knows.
    #[must_use]
    pub fn orphans_of(&self, broker: Uuid, instance: &InstanceId) -> Vec<u8> {
        let ids = [&broker.to_string(), instance.as_str()];
        Key::prefix(&self.0, ORPHAN, &ids).expect("a valid prefix")
    }

    /// A replica.
    #[must_use]
    pub fn replica(&self, id: Uuid) -> Key {
        self.key(REPLICA, &[&id.to_string()])
    }
}
