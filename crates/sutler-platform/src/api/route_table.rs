//! Every route of the API: method, path, inputs, permission, name, handler. The one table of them.
//!
//! The router, the check of permissions, metrics and the audit follow from it, and so will the description of the API. A
//! route that is not here does not exist; one without a permission cannot be written down.

use super::access::Permission::{
    Abandon, BrokerManage, Change, Credentials, NamespaceManage, OrphanManage, Public, Read,
    SecretWrite,
};
use super::api_route::RouteMethod::{Delete, Get, Patch, Post, Put};
use super::api_route::{ApiRoute, route};
use super::handlers::{
    bindings, brokers, instance_orders, instances, intents, marketplace, namespaces, orphans,
    secrets, version,
};
use super::request_inputs::Input;

const NONE: &[Input] = &[];
const PAGE: &[Input] = &[Input::Limit, Input::After];
const BROKER_PUT: &[Input] = &[Input::IfMatch, Input::IfNoneMatch];
const BROKER_PATCH: &[Input] = &[Input::IfMatch];
const BROKER_DELETE: &[Input] = &[Input::Abandon];
const MARKETPLACE: &[Input] = &[Input::Namespace];
const INSTANCES: &[Input] = &[Input::Limit, Input::After, Input::State, Input::Broker];
const BINDINGS: &[Input] = &[Input::Limit, Input::After, Input::State, Input::Instance];
const ORPHANS: &[Input] = INSTANCES;
const CREATE: &[Input] = &[Input::Wait, Input::DryRun, Input::IdempotencyKey];
const ADOPT: &[Input] = &[Input::DryRun, Input::IdempotencyKey];
const REPLACE: &[Input] = &[
    Input::Wait,
    Input::DryRun,
    Input::Force,
    Input::IfMatch,
    Input::IfNoneMatch,
    Input::IdempotencyKey,
];
const CHANGE: &[Input] = &[
    Input::Wait,
    Input::DryRun,
    Input::Force,
    Input::IfMatch,
    Input::IdempotencyKey,
];
const DELETE: &[Input] = &[Input::Wait, Input::Cascade];
const WAIT: &[Input] = &[Input::Wait];
const KEYED: &[Input] = &[Input::Wait, Input::IdempotencyKey];

/// Every route.
pub(super) static ROUTES: [ApiRoute; 62] = [
    route((Get, "/version", NONE), (Public, "version"), |it| {
        Box::pin(version::show(it))
    }),
    route((Get, "/namespaces", PAGE), (Read, "namespace_list"), |it| {
        Box::pin(namespaces::list(it))
    }),
    route(
        (Put, "/namespaces/{ns}", NONE),
        (NamespaceManage, "namespace_put"),
        |it| Box::pin(namespaces::put(it)),
    ),
    route(
        (Get, "/namespaces/{ns}", NONE),
        (Read, "namespace_show"),
        |it| Box::pin(namespaces::show(it)),
    ),
    route(
        (Delete, "/namespaces/{ns}", NONE),
        (NamespaceManage, "namespace_delete"),
        |it| Box::pin(namespaces::delete(it)),
    ),
    route((Get, "/brokers", PAGE), (Read, "broker_list"), |it| {
        Box::pin(brokers::list(it))
    }),
    route(
        (Put, "/brokers/{name}", BROKER_PUT),
        (BrokerManage, "broker_put"),
        |it| Box::pin(brokers::put(it)),
    ),
    route(
        (Get, "/brokers/{name}", NONE),
        (Read, "broker_show"),
        |it| Box::pin(brokers::show(it)),
    ),
    route(
        (Patch, "/brokers/{name}", BROKER_PATCH),
        (BrokerManage, "broker_patch"),
        |it| Box::pin(brokers::patch(it)),
    ),
    route(
        (Delete, "/brokers/{name}", BROKER_DELETE),
        (BrokerManage, "broker_delete"),
        |it| Box::pin(brokers::delete(it)),
    ),
    route(
        (Post, "/brokers/{name}:sync", WAIT),
        (BrokerManage, "broker_sync"),
        |it| Box::pin(brokers::sync(it)),
    ),
    route(
        (Post, "/brokers/{name}:pause", NONE),
        (BrokerManage, "broker_pause"),
        |it| Box::pin(brokers::pause(it)),
    ),
    route(
        (Post, "/brokers/{name}:resume", NONE),
        (BrokerManage, "broker_resume"),
        |it| Box::pin(brokers::resume(it)),
    ),
    route(
        (Post, "/brokers/{name}:probe", NONE),
        (BrokerManage, "broker_probe"),
        |it| Box::pin(brokers::probe(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/brokers", PAGE),
        (Read, "own_broker_list"),
        |it| Box::pin(brokers::list(it)),
    ),
    route(
        (Put, "/namespaces/{ns}/brokers/{name}", BROKER_PUT),
        (BrokerManage, "own_broker_put"),
        |it| Box::pin(brokers::put(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/brokers/{name}", NONE),
        (Read, "own_broker_show"),
        |it| Box::pin(brokers::show(it)),
    ),
    route(
        (Patch, "/namespaces/{ns}/brokers/{name}", BROKER_PATCH),
        (BrokerManage, "own_broker_patch"),
        |it| Box::pin(brokers::patch(it)),
    ),
    route(
        (Delete, "/namespaces/{ns}/brokers/{name}", BROKER_DELETE),
        (BrokerManage, "own_broker_delete"),
        |it| Box::pin(brokers::delete(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/brokers/{name}:sync", WAIT),
        (BrokerManage, "own_broker_sync"),
        |it| Box::pin(brokers::sync(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/brokers/{name}:pause", NONE),
        (BrokerManage, "own_broker_pause"),
        |it| Box::pin(brokers::pause(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/brokers/{name}:resume", NONE),
        (BrokerManage, "own_broker_resume"),
        |it| Box::pin(brokers::resume(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/brokers/{name}:probe", NONE),
        (BrokerManage, "own_broker_probe"),
        |it| Box::pin(brokers::probe(it)),
    ),
    route(
        (Get, "/marketplace", MARKETPLACE),
        (Read, "marketplace"),
        |it| Box::pin(marketplace::list(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances", CREATE),
        (Change, "instance_create"),
        |it| Box::pin(instances::create(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances:adopt", ADOPT),
        (BrokerManage, "instance_adopt"),
        |it| Box::pin(instances::adopt(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/instances", INSTANCES),
        (Read, "instance_list"),
        |it| Box::pin(instances::list(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/instances/{name}", NONE),
        (Read, "instance_show"),
        |it| Box::pin(instances::show(it)),
    ),
    route(
        (Put, "/namespaces/{ns}/instances/{name}", REPLACE),
        (Change, "instance_put"),
        |it| Box::pin(instances::put(it)),
    ),
    route(
        (Patch, "/namespaces/{ns}/instances/{name}", CHANGE),
        (Change, "instance_patch"),
        |it| Box::pin(instances::patch(it)),
    ),
    route(
        (Delete, "/namespaces/{ns}/instances/{name}", DELETE),
        (Change, "instance_delete"),
        |it| Box::pin(instances::delete(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances/{name}:undelete", NONE),
        (Change, "instance_undelete"),
        |it| Box::pin(instance_orders::undelete(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances/{name}:rollback", CHANGE),
        (Change, "instance_rollback"),
        |it| Box::pin(instance_orders::rollback(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances/{name}:touch", CHANGE),
        (Change, "instance_touch"),
        |it| Box::pin(instance_orders::touch(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances/{name}:protect", NONE),
        (Change, "instance_protect"),
        |it| Box::pin(instance_orders::protect(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/instances/{name}:abandon", NONE),
        (Abandon, "instance_abandon"),
        |it| Box::pin(instance_orders::abandon(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/instances/{name}/intents", PAGE),
        (Read, "intent_list"),
        |it| Box::pin(intents::list_of_instance(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/instances/{name}/intents/{seq}", NONE),
        (Read, "intent_show"),
        |it| Box::pin(intents::show_of_instance(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/instances/{name}/intents/{seq}:cancel",
            NONE,
        ),
        (Change, "intent_cancel"),
        |it| Box::pin(intents::cancel_of_instance(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/instances/{name}/intents/{seq}:resume",
            CHANGE,
        ),
        (Change, "intent_resume"),
        |it| Box::pin(intents::resume_of_instance(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/instances/{name}/intents/{seq}:retry",
            CHANGE,
        ),
        (Change, "intent_retry"),
        |it| Box::pin(intents::retry_of_instance(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/bindings", KEYED),
        (Change, "binding_create"),
        |it| Box::pin(bindings::create(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/bindings", BINDINGS),
        (Read, "binding_list"),
        |it| Box::pin(bindings::list(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/bindings/{name}", NONE),
        (Read, "binding_show"),
        |it| Box::pin(bindings::show(it)),
    ),
    route(
        (Delete, "/namespaces/{ns}/bindings/{name}", WAIT),
        (Change, "binding_delete"),
        |it| Box::pin(bindings::delete(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/bindings/{name}:undelete", NONE),
        (Change, "binding_undelete"),
        |it| Box::pin(bindings::undelete(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/bindings/{name}:rotate", KEYED),
        (Change, "binding_rotate"),
        |it| Box::pin(bindings::rotate(it)),
    ),
    route(
        (Post, "/namespaces/{ns}/bindings/{name}:abandon", NONE),
        (Abandon, "binding_abandon"),
        |it| Box::pin(bindings::abandon(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/bindings/{name}/credentials", NONE),
        (Credentials, "binding_credentials"),
        |it| Box::pin(bindings::credentials(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/bindings/{name}/intents", PAGE),
        (Read, "binding_intent_list"),
        |it| Box::pin(intents::list_of_binding(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/bindings/{name}/intents/{seq}", NONE),
        (Read, "binding_intent_show"),
        |it| Box::pin(intents::show_of_binding(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/bindings/{name}/intents/{seq}:cancel",
            NONE,
        ),
        (Change, "binding_intent_cancel"),
        |it| Box::pin(intents::cancel_of_binding(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/bindings/{name}/intents/{seq}:resume",
            WAIT,
        ),
        (Change, "binding_intent_resume"),
        |it| Box::pin(intents::resume_of_binding(it)),
    ),
    route(
        (
            Post,
            "/namespaces/{ns}/bindings/{name}/intents/{seq}:retry",
            WAIT,
        ),
        (Change, "binding_intent_retry"),
        |it| Box::pin(intents::retry_of_binding(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/secrets", PAGE),
        (Read, "secret_list"),
        |it| Box::pin(secrets::list(it)),
    ),
    route(
        (Put, "/namespaces/{ns}/secrets/{name}", NONE),
        (SecretWrite, "secret_put"),
        |it| Box::pin(secrets::put(it)),
    ),
    route(
        (Get, "/namespaces/{ns}/secrets/{name}", NONE),
        (Read, "secret_show"),
        |it| Box::pin(secrets::show(it)),
    ),
    route(
        (Delete, "/namespaces/{ns}/secrets/{name}", NONE),
        (SecretWrite, "secret_delete"),
        |it| Box::pin(secrets::delete(it)),
    ),
    route(
        (Get, "/orphans", ORPHANS),
        (OrphanManage, "orphan_list"),
        |it| Box::pin(orphans::list(it)),
    ),
    route(
        (Get, "/orphans/{id}", NONE),
        (OrphanManage, "orphan_show"),
        |it| Box::pin(orphans::show(it)),
    ),
    route(
        (Post, "/orphans/{id}:retry", NONE),
        (OrphanManage, "orphan_retry"),
        |it| Box::pin(orphans::retry(it)),
    ),
    route(
        (Post, "/orphans/{id}:forget", NONE),
        (Abandon, "orphan_forget"),
        |it| Box::pin(orphans::forget(it)),
    ),
];

#[cfg(test)]
mod tests;
