//! A real broker on a real port in this process, with everything in memory, and a service that records
//! the originating identity of each hook call.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use sutler_broker::{
    AuthorState, Bound, Broker, Cx, Policy, Provisioned, Result, UntypedService, Update, Updated,
};
use sutler_client::PlanIds;
use sutler_osb::{Catalog, OperationKind, Parameters, PinnedPlan};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const SERVICE: &str = "service/1 ä";
/// Plan that is always synchronous.
pub(crate) const SYNC: &str = "sync";
/// Plan that is always asynchronous.
pub(crate) const ASYNC: &str = "async";

/// One call of a hook: its kind and its originating identity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hook {
    pub kind: OperationKind,
    pub user: Option<Value>,
    pub request: Option<String>,
    pub parameters: Value,
}

#[derive(Default)]
struct HookLog(Mutex<Vec<Hook>>);

impl HookLog {
    fn record(&self, kind: OperationKind, cx: &Cx) {
        let hook = Hook {
            kind,
            user: cx.originating_identity().map(|it| json!(it)),
            request: cx.request_identity().map(|it| it.as_str().to_owned()),
            parameters: json!(cx.parameters()),
        };
        let mut hooks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.push(hook);
    }
}

#[async_trait]
impl UntypedService for HookLog {
    async fn provision(&self, cx: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        self.record(OperationKind::Provision, cx);
        Ok(Provisioned::new(AuthorState(json!({}))))
    }

    async fn deprovision(&self, cx: &Cx, _: Option<AuthorState>) -> Result<()> {
        self.record(OperationKind::Deprovision, cx);
        Ok(())
    }

    fn updates(&self) -> bool {
        true
    }

    async fn update(
        &self,
        cx: &Cx,
        _: Option<AuthorState>,
        _: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        self.record(OperationKind::Update, cx);
        Ok(Provisioned::new(AuthorState(json!({}))))
    }

    async fn bind(&self, cx: &Cx, _: Option<AuthorState>) -> Result<Bound> {
        self.record(OperationKind::Bind, cx);
        Ok(Bound::credentials(json!({ "password": "hush" })))
    }

    async fn unbind(&self, cx: &Cx, _: Option<AuthorState>) -> Result<()> {
        self.record(OperationKind::Unbind, cx);
        Ok(())
    }

    fn policy(&self, _: OperationKind, plan: &PinnedPlan) -> Policy {
        match plan.plan_id.as_str() {
            ASYNC => Policy::default().required_async(),
            _ => Policy::default().sync(),
        }
    }
}

/// A running broker.
pub(crate) struct RunningBroker {
    pub address: SocketAddr,
    hook_log: Arc<HookLog>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl RunningBroker {
    /// Starts a broker; its user is `user` and its password `s3cret`, unless `set_up` changes them.
    pub(crate) async fn start(set_up: impl FnOnce(Broker) -> Broker) -> Self {
        let hook_log = Arc::new(HookLog::default());
        let broker = Broker::new(catalog())
            .basic_auth("user", "s3cret")
            .in_memory()
            .untyped_service(SERVICE, hook_log.clone());
        let running = set_up(broker).start().await.expect("the broker starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            running.serve(listener, stopped).await;
        });
        Self {
            address,
            hook_log,
            stop,
            serving,
        }
    }

    /// Every hook that was called, in order.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        let hooks = self.hook_log.0.lock();
        hooks.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn close(self) {
        self.stop.send(()).expect("the server still runs");
        self.serving.await.expect("it ends in order");
    }
}

/// The service and one of its plans.
pub(crate) fn offered(plan: &str) -> PlanIds {
    PlanIds {
        service_id: SERVICE.try_into().expect("an id"),
        plan_id: plan.try_into().expect("an id"),
    }
}

fn catalog() -> Catalog {
    let catalog = json!({ "services": [{
        "name": "notes", "id": SERVICE, "description": "Notes who asks.",
        "bindable": true, "plan_updateable": true,
        "instances_retrievable": true, "bindings_retrievable": true,
        "plans": [
            { "id": SYNC, "name": "sync", "description": "At once.", "binding_rotatable": true },
            { "id": ASYNC, "name": "async", "description": "Later.",
              "maximum_polling_duration": 600 },
        ],
    }] });
    serde_json::from_value(catalog).expect("the catalog keeps the rules")
}
