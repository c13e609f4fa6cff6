//! Handlers of the routes, one file per resource. They read the request, ask the platform, and choose the success.

pub(super) mod bindings;
pub(super) mod brokers;
pub(super) mod instance_orders;
pub(super) mod instances;
pub(super) mod intents;
pub(super) mod marketplace;
pub(super) mod namespaces;
pub(super) mod orphans;
pub(super) mod secrets;
pub(super) mod version;
