//! Brokers that forbid changes of the plan, and deletes by boris; they keep every request with its user, and updates and
//! deletes of a user wait while the test says so.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use sutler_broker::prelude::*;
use sutler_broker::{Cx, Error, Result, Update, Updated};
use sutler_servers::http::HttpRequest;
use sutler_servers::{MissingServer, free_port, until};
use tokio::net::TcpListener;
use tokio::sync::watch;

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
    Own(Arc<OwnBroker>),
    OpenBrokerApi(Child),
}

/// What the test and the broker built with this project share.
struct OwnBroker {
    received: Mutex<Vec<ReceivedRequest>>,
    /// Users whose updates and deletes wait.
    held: watch::Sender<BTreeSet<String>>,
}

impl ForbiddingBroker {
    /// A broker built with this project, in this process.
    pub(super) async fn own() -> Self {
        let shared = Arc::new(OwnBroker {
            received: Mutex::default(),
            held: watch::Sender::default(),
        });
        let catalog = CatalogFile::parse(CATALOG, None).expect("a catalog");
        let broker = Broker::new(catalog)
            .service("postgresql", Databases(shared.clone()))
            .in_memory()
            .basic_auth("platform", "s3cret");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let running = broker.start().await.expect("a broker");
        tokio::spawn(async move { running.serve(listener, std::future::pending()).await });
        Self {
            url: format!("http://{address}"),
            kind: BrokerKind::Own(shared),
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

    /// Updates and deletes of a user wait from now on.
    pub(super) fn hold(&self, user: &str) {
        match &self.kind {
            BrokerKind::Own(shared) => {
                shared
                    .held
                    .send_if_modified(|it| it.insert(user.to_owned()));
            }
            BrokerKind::OpenBrokerApi(_) => self.order(&format!("/hold/{user}")),
        }
    }

    /// Carries out what waits for this user.
    pub(super) fn release(&self, user: &str) {
        match &self.kind {
            BrokerKind::Own(shared) => {
                shared.held.send_if_modified(|it| it.remove(user));
            }
            BrokerKind::OpenBrokerApi(_) => self.order(&format!("/release/{user}")),
        }
    }

    fn order(&self, target: &str) {
        let address = self.url.trim_start_matches("http://");
        let answer = HttpRequest::new("POST", target).send(address);
        assert_eq!(answer.expect("it answers").status, 200);
    }

    /// Waits until the broker has a request of this verb and user.
    pub(super) fn until_received(&self, verb: &str, user: &str) {
        until("the broker receives the request", || {
            let requests = self.requests();
            let mut of_user = requests.iter().filter(|it| it.user == user);
            of_user.find(|it| it.verb == verb).map(|_| ())
        });
    }

    /// Requests about instances so far.
    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        match &self.kind {
            BrokerKind::Own(shared) => shared.received.lock().expect("no panic").clone(),
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
struct Databases(Arc<OwnBroker>);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Disk {
    disk: Option<u32>,
}

impl Databases {
    fn note(&self, verb: &str, cx: &Cx) -> String {
        let identity = cx.originating_identity();
        let user = identity.and_then(|it| it.value.get("username")?.as_str().map(str::to_owned));
        let user = user.unwrap_or_default();
        let mut received = self.0.received.lock().expect("no panic");
        received.push(ReceivedRequest {
            verb: verb.to_owned(),
            user: user.clone(),
        });
        user
    }

    /// Waits while requests of this user are held.
    async fn until_released(&self, user: &str) {
        let mut held = self.0.held.subscribe();
        let released = held.wait_for(|it| !it.contains(user)).await;
        assert!(released.is_ok(), "the test has ended");
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
        self.until_released(&self.note("update", cx)).await;
        if cx.plan().plan_id != update.previous_plan.plan_id {
            return Err(Error::invalid("plans are changed by the owner only"));
        }
        Ok(Updated::new(Disk {
            disk: update.params.disk.or(state.disk),
        }))
    }

    async fn deprovision(&self, cx: &Cx, _state: Option<Disk>) -> Result<()> {
        let user = self.note("delete", cx);
        self.until_released(&user).await;
        match user.as_str() {
            "boris" => Err(Error::failed("boris may not delete this").instance_usable(true)),
            _ => Ok(()),
        }
    }
}
