//! Brokers that forbid changes of the plan, and deletes by boris; they remember who asked for what.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use sutler_broker::prelude::*;
use sutler_broker::{Cx, Error, Result, Update, Updated};
use sutler_servers::http::HttpRequest;
use sutler_servers::{MissingServer, free_port, until};
use tokio::net::TcpListener;

const CATALOG: &str = "
services:
  - id: pg
    name: postgresql
    description: databases
    bindable: true
    plan_updateable: true
    instances_retrievable: true
    plans:
      - { id: pg-small, name: small, description: a small one }
      - { id: pg-large, name: large, description: a large one }
";

/// A request about an instance as the broker saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceivedRequest {
    /// What it was.
    pub(super) verb: String,
    /// The user of its originating identity.
    pub(super) user: String,
}

/// A broker; it ends when it is dropped.
pub(super) struct ForbiddingBroker {
    /// Where it is.
    pub(super) url: String,
    kind: BrokerKind,
}

enum BrokerKind {
    Own(Arc<Mutex<Vec<ReceivedRequest>>>),
    OpenBrokerApi(Child),
}

impl ForbiddingBroker {
    /// A broker built with this project, in this process.
    pub(super) async fn own() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let catalog = CatalogFile::parse(CATALOG, None).expect("a catalog");
        let broker = Broker::new(catalog)
            .service("postgresql", Databases(received.clone()))
            .in_memory()
            .basic_auth("platform", "s3cret");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let running = broker.start().await.expect("a broker");
        tokio::spawn(async move { running.serve(listener, std::future::pending()).await });
        Self {
            url: format!("http://{address}"),
            kind: BrokerKind::Own(received),
        }
    }

    /// A broker built with `openbrokerapi`, if that is installed.
    pub(super) fn on_openbrokerapi() -> Option<Self> {
        let Some(python) = installed() else {
            let missing = MissingServer {
                name: "openbrokerapi",
                program: "openbrokerapi",
                how: "run `./test --tools`, which installs it beside what is built",
                may_be: false,
            };
            missing.report();
            return None;
        };
        let port = free_port();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openbrokerapi/broker.py");
        let process = Command::new(python)
            .args([program.as_os_str(), port.to_string().as_ref()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let broker = Self {
            url: format!("http://127.0.0.1:{port}"),
            kind: BrokerKind::OpenBrokerApi(process),
        };
        let request = HttpRequest::new("GET", "/requests");
        until("the broker answers", || {
            request.send(("127.0.0.1", port)).ok()
        });
        Some(broker)
    }

    /// Requests about instances so far.
    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        match &self.kind {
            BrokerKind::Own(received) => received.lock().expect("no panic").clone(),
            BrokerKind::OpenBrokerApi(_) => {
                let address = self.url.trim_start_matches("http://");
                let answer = HttpRequest::new("GET", "/requests").send(address);
                let answer = answer.expect("it answers").body;
                let received: Vec<Value> = serde_json::from_slice(&answer).expect("JSON");
                let changes = received.iter().filter_map(received_request);
                changes.collect()
            }
        }
    }
}

impl Drop for ForbiddingBroker {
    fn drop(&mut self) {
        if let BrokerKind::OpenBrokerApi(process) = &mut self.kind {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn received_request(request: &Value) -> Option<ReceivedRequest> {
    let verb = match request["method"].as_str()? {
        "PUT" => "provision",
        "PATCH" => "update",
        "DELETE" => "delete",
        _ => return None,
    };
    Some(ReceivedRequest {
        verb: verb.to_owned(),
        user: request["user"].as_str()?.to_owned(),
    })
}

/// The interpreter of the folder with the installed packages.
fn installed() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("openbrokerapi");
    let folder = std::env::var_os("SUTLER_TEST_OPENBROKERAPI").map_or_else(beside, PathBuf::from);
    let python = folder.join("bin/python");
    python.exists().then_some(python)
}

/// Databases of the broker built with this project.
struct Databases(Arc<Mutex<Vec<ReceivedRequest>>>);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Disk {
    disk: Option<u32>,
}

impl Databases {
    fn note(&self, verb: &str, cx: &Cx) -> String {
        let identity = cx.originating_identity();
        let user = identity.and_then(|it| it.value.get("username")?.as_str().map(str::to_owned));
        let user = user.unwrap_or_default();
        self.0.lock().expect("no panic").push(ReceivedRequest {
            verb: verb.to_owned(),
            user: user.clone(),
        });
        user
    }
}

impl Service for Databases {
    type Params = Disk;
    type State = Disk;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Disk) -> Result<Provisioned<Disk>> {
        self.note("provision", cx);
        Ok(Provisioned::new(params))
    }

    async fn update(&self, cx: &Cx, state: Disk, update: Update<Disk>) -> Result<Updated<Disk>> {
        self.note("update", cx);
        if cx.plan().plan_id != update.previous_plan.plan_id {
            return Err(Error::invalid("plans are changed by the owner only"));
        }
        Ok(Updated::new(Disk {
            disk: update.params.disk.or(state.disk),
        }))
    }

    async fn deprovision(&self, cx: &Cx, _state: Option<Disk>) -> Result<()> {
        match self.note("delete", cx).as_str() {
            "boris" => Err(Error::failed("boris may not delete this").instance_usable(true)),
            _ => Ok(()),
        }
    }
}
