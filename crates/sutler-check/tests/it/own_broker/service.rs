//! A broker of the framework with every feature, and a service that records created resources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::prelude::*;
use sutler_broker::{DeletedPoll, MissingVersion};
use sutler_journal::{MemoryStore, Store};
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const USER: &str = "ours";
pub(crate) const PASSWORD: &str = "ours-password";

/// Duration of an asynchronous operation: long enough to be observed in progress.
const TAKES: Duration = Duration::from_millis(400);

/// A running broker; stops when dropped.
pub(crate) struct FullService {
    url: String,
    made: Made,
    _stop: DropGuard,
}

/// Created resources: `instance` or `instance/binding`.
type Made = Arc<Mutex<BTreeSet<String>>>;

impl FullService {
    /// A broker over a store, with these values of the two switches.
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        missing_version: MissingVersion,
        deleted_poll: DeletedPoll,
    ) -> Self {
        let made = Made::default();
        let catalog = CatalogFile::parse(&catalog().to_string(), None).unwrap();
        let mut broker = Broker::new(catalog)
            .basic_auth(USER, PASSWORD)
            .shared_store(store, KeyRing::ephemeral())
            .settings(|it| {
                it.missing_version = missing_version;
                it.deleted_poll = deleted_poll;
            });
        for offering in ["everything", "plain", "logs", "routes", "volumes"] {
            let made = made.clone();
            broker = broker.service(offering, CountedService { made });
        }
        let running = broker.start().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move { running.serve(listener, stopped).await });
        Self {
            url,
            made,
            _stop: stop.drop_guard(),
        }
    }

    /// A store in memory.
    pub(crate) fn memory() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    /// A store in a file in a directory.
    pub(crate) async fn sqlite(folder: &Path) -> Arc<dyn Store> {
        let path = folder.join("ours.db");
        Arc::new(SqliteStore::open(path).await.unwrap())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Resources that the service has created and not removed.
    pub(crate) fn left(&self) -> BTreeSet<String> {
        self.made.lock().unwrap().clone()
    }
}

/// Parameters of the user; their schema is in the catalog.
type Params = BTreeMap<String, Value>;

struct CountedService {
    made: Made,
}

impl CountedService {
    fn note(&self, what: String) {
        self.made.lock().unwrap().insert(what);
    }

    fn forget(&self, what: &str) {
        self.made.lock().unwrap().remove(what);
    }
}

/// Sleeps if the plan is asynchronous; a cancelled operation ends sooner.
async fn takes_time(cx: &Cx) -> Result<()> {
    if !cx.plan().plan_name.as_str().contains("async") {
        return Ok(());
    }
    let cancelled = cx.cancellation().cancelled();
    match tokio::time::timeout(TAKES, cancelled).await {
        Ok(()) => Err(Error::failed("It was stopped.")),
        Err(_) => Ok(()),
    }
}

fn binding(cx: &Cx) -> String {
    let id = cx.binding_id().map(ToString::to_string);
    format!("{}/{}", cx.instance_id(), id.unwrap_or_default())
}

impl Service for CountedService {
    type Params = Params;
    type State = Params;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Params) -> Result<Provisioned<Params>> {
        self.note(cx.instance_id().to_string());
        takes_time(cx).await?;
        Ok(Provisioned::new(params))
    }

    async fn update(&self, cx: &Cx, _: Params, update: Update<Params>) -> Result<Updated<Params>> {
        takes_time(cx).await?;
        Ok(Updated::new(update.params))
    }

    async fn deprovision(&self, cx: &Cx, _state: Option<Params>) -> Result<()> {
        takes_time(cx).await?;
        self.forget(&cx.instance_id().to_string());
        Ok(())
    }

    async fn bind(&self, cx: &Cx, _state: &Params) -> Result<Bound> {
        if cx.plan().plan_name.as_str() == "bound" && cx.app_guid().is_none() {
            return Err(Error::requires_app());
        }
        self.note(binding(cx));
        takes_time(cx).await?;
        let secret = cx.idempotency_key("secret");
        Ok(match cx.plan().plan_name.as_str() {
            "drain" => Bound::syslog_drain("syslog-tls://logs.example:6514"),
            "route" => Bound::route(Some("https://proxy.example/forward".to_owned())),
            "volume" => Bound::volumes(
                serde_json::from_value(json!([{
                    "driver": "nfs",
                    "container_dir": "/data",
                    "mode": "rw",
                    "device_type": "shared",
                    "device": { "volume_id": secret, "mount_config": { "share": "/exports" } },
                }]))
                .unwrap(),
            ),
            _ => Bound::credentials(json!({ "user": binding(cx), "password": secret }))
                .metadata(
                    serde_json::from_value(json!({
                        "expires_at": "2099-12-31T23:59:59.0Z",
                        "renew_before": "2099-11-30T23:59:59.0Z",
                    }))
                    .unwrap(),
                )
                .endpoints(
                    serde_json::from_value(json!([
                        { "host": "ours.example", "ports": ["443", "9000-9010"] },
                    ]))
                    .unwrap(),
                ),
        })
    }

    async fn unbind(&self, cx: &Cx, _state: &Params) -> Result<()> {
        takes_time(cx).await?;
        self.forget(&binding(cx));
        Ok(())
    }

    fn policy(&self, _verb: OperationKind, plan: &PinnedPlan) -> Policy {
        match plan.plan_name.as_str() {
            "async" => Policy::default().required_async(),
            "preferably-async" => Policy::default(),
            _ => Policy::default().sync(),
        }
    }
}

/// A realistic id; `n` distinguishes offerings, `m` their plans.
fn id(n: u32, m: u32) -> String {
    format!("5b0d3c1e-7a2f-4c58-8e94-{n:06}{m:06}")
}

fn plan(n: u32, m: u32, name: &str) -> Value {
    json!({ "id": id(n, m), "name": name, "description": format!("The plan {name}") })
}

fn with(mut plan: Value, more: &Value) -> Value {
    if let (Some(plan), Some(more)) = (plan.as_object_mut(), more.as_object()) {
        plan.extend(more.clone());
    }
    plan
}

fn closed() -> Value {
    json!({ "parameters": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "minLength": 1 },
            "replicas": { "type": "integer", "minimum": 1, "maximum": 5 },
        },
    }})
}

fn catalog() -> Value {
    let full = json!({
        "binding_rotatable": true,
        "maximum_polling_duration": 600,
        "maintenance_info": { "version": "1.2.3", "description": "Restarts it" },
        "free": false,
        "metadata": { "bullets": ["Everything"] },
        "schemas": {
            "service_instance": { "create": closed(), "update": closed() },
            "service_binding": { "create": closed() },
        },
    });
    let special = |n: u32, name: &str, requires: &str, plan_name: &str| {
        json!({
            "id": id(n, 0), "name": name, "description": "Needs a permission", "bindable": true,
            "bindings_retrievable": true, "requires": [requires], "plans": [plan(n, 1, plan_name)],
        })
    };
    json!({ "services": [
        {
            "id": id(1, 0), "name": "everything", "description": "All there is",
            "bindable": true, "plan_updateable": true, "allow_context_updates": true,
            "instances_retrievable": true, "bindings_retrievable": true,
            "tags": ["ours"], "metadata": { "displayName": "Everything" },
            "dashboard_client": { "id": "ours", "secret": "of-a-test" },
            "plans": [
                with(plan(1, 1, "sync"), &full),
                with(plan(1, 2, "async"), &full),
                with(plan(1, 3, "preferably-async"), &full),
                with(plan(1, 4, "fixed"), &json!({ "plan_updateable": false })),
                with(plan(1, 5, "unbindable"), &json!({ "bindable": false })),
            ],
        },
        {
            "id": id(2, 0), "name": "plain", "description": "Hardly anything", "bindable": false,
            "plans": [plan(2, 1, "bare"), with(plan(2, 2, "bound"), &json!({ "bindable": true }))],
        },
        special(3, "logs", "syslog_drain", "drain"),
        special(4, "routes", "route_forwarding", "route"),
        special(5, "volumes", "volume_mount", "volume"),
    ]})
}
