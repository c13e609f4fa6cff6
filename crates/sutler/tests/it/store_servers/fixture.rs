//! Replicas of one broker over one store, and requests to them.

use crate::http_request::{BrokerRequest, BrokerResponse};
use crate::process::{Broker, folder, sutler};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::Store;
use sutler_servers::{Proxy, ServerUrl};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The offering of the demo catalog, and its plans.
const SERVICE: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a01";
const SMALL: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a02";
pub(super) const LARGE: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a03";
/// Credentials of the platform and of the operator.
pub(super) const USER: &str = "platform:hush-hush";
const OPERATOR: &str = "root:t0ps3cret";
/// Time limit of every wait, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A folder with the configuration of all replicas.
pub(super) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// Replicas over this store. `more` is added to the configuration.
    pub(super) fn over(store: &ServerUrl, more: &str) -> Self {
        let folder = folder();
        let url = store.url();
        let text = format!(
            "users: [{{name: platform, password: hush-hush}}]\n\
             admin: {{users: [{{name: root, password: t0ps3cret}}]}}\n\
             store: {{url: '{url}', key_file: store.key}}\n{more}"
        );
        std::fs::write(folder.path().join("sutler.yaml"), text).expect("a file");
        Self { folder }
    }

    pub(super) fn command(&self) -> Command {
        sutler(self.folder.path())
    }

    /// Contents of a file that a replica wrote.
    pub(super) fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).expect("a file")
    }

    /// Starts a replica, and waits until it listens.
    pub(super) fn replica(&self) -> Replica {
        Replica(Broker::of(self.command().args([
            "broker",
            "--config",
            "sutler.yaml",
        ])))
    }

    /// Starts a replica with additional variables.
    pub(super) fn replica_with(&self, variables: Vec<(String, String)>) -> Replica {
        let mut command = self.command();
        command.args(["broker", "--config", "sutler.yaml"]);
        Replica(Broker::of(command.envs(variables)))
    }
}

/// A running broker, and requests to it.
pub(super) struct Replica(pub(super) Broker);

impl Replica {
    pub(super) fn request(&self, method: &str, path: &str, body: &Value) -> ParsedResponse {
        let request =
            BrokerRequest::new(method, &format!("/v2/service_instances/{path}")).user(USER);
        let request = match body {
            Value::Null => request,
            body => request.json(body),
        };
        ParsedResponse::of(request.send(self.0.address()))
    }

    /// Requests an instance whose hook takes this long.
    pub(super) fn provision(&self, id: &str, delay_ms: u64) -> ParsedResponse {
        let body = json!({
            "service_id": SERVICE, "plan_id": SMALL, "organization_guid": "o", "space_guid": "s",
            "parameters": { "delay_ms": delay_ms },
        });
        self.request("PUT", &format!("{id}?accepts_incomplete=true"), &body)
    }

    pub(super) fn update(&self, id: &str, plan: &str) -> ParsedResponse {
        let body = json!({ "service_id": SERVICE, "plan_id": plan });
        self.request("PATCH", id, &body)
    }

    pub(super) fn bind(&self, id: &str, binding: &str) -> ParsedResponse {
        let body = json!({ "service_id": SERVICE, "plan_id": LARGE });
        self.request("PUT", &format!("{id}/service_bindings/{binding}"), &body)
    }

    /// Deletes an instance, or a binding by its path below it.
    pub(super) fn delete(&self, path: &str) -> ParsedResponse {
        let path = format!("{path}?service_id={SERVICE}&plan_id={LARGE}");
        self.request("DELETE", &path, &Value::Null)
    }

    /// Deletes an instance whose plan was never changed.
    pub(super) fn delete_small(&self, id: &str) -> ParsedResponse {
        let path = format!("{id}?service_id={SERVICE}&plan_id={SMALL}");
        self.request("DELETE", &path, &Value::Null)
    }

    pub(super) fn poll(&self, id: &str, operation: &str) -> ParsedResponse {
        let path = format!("{id}/last_operation?operation={operation}");
        self.request("GET", &path, &Value::Null)
    }

    /// Polls until an operation has ended; returns its state.
    pub(super) fn until_it_ends(&self, id: &str, operation: &str) -> Value {
        until(&format!("the end of {operation}"), || {
            let polled = self.poll(id, operation);
            let over = polled.status == 200 && polled.body["state"] != "in progress";
            over.then(|| polled.body["state"].clone()).ok_or(polled)
        })
    }

    /// Waits until the hook of an operation has written its progress; it writes nothing more until it ends.
    pub(super) fn until_it_works(&self, id: &str, operation: &str) {
        until("progress", || {
            let polled = self.poll(id, operation);
            let has_progress = polled.body["description"].is_string();
            if has_progress { Ok(()) } else { Err(polled) }
        });
    }

    pub(super) fn ready(&self) -> ParsedResponse {
        ParsedResponse::of(BrokerRequest::get("/readyz").send(self.0.address()))
    }

    pub(super) fn until_ready_is(&self, status: u16) {
        until(&format!("/readyz says {status}"), || {
            let ready = self.ready();
            if ready.status == status {
                Ok(())
            } else {
                Err(ready)
            }
        });
    }

    /// A page of the administration.
    pub(super) fn admin(&self, path: &str) -> Value {
        let request = BrokerRequest::get(&format!("/admin/v1/{path}")).user(OPERATOR);
        let response = ParsedResponse::of(request.send(self.0.address()));
        assert_eq!(response.status, 200, "{response:?}");
        response.body
    }
}

/// A parsed response.
#[derive(Debug)]
pub(super) struct ParsedResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    /// `null` if it is not JSON.
    pub(super) body: Value,
}

impl ParsedResponse {
    fn of(answer: BrokerResponse) -> Self {
        let (head, body) = answer.text.split_once("\r\n\r\n").unwrap_or_default();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("retry-after")
                .then(|| value.to_owned())
        };
        Self {
            status: answer.status,
            retry_after: head.lines().find_map(header),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// The operation of a 202.
    #[track_caller]
    pub(super) fn operation(&self) -> String {
        assert_eq!(self.status, 202, "{self:?}");
        let operation = self.body["operation"].as_str();
        operation.expect("an operation").to_owned()
    }
}

/// Waits until a condition is true.
#[track_caller]
pub(super) fn until<T, E: Debug>(what: &str, mut callback: impl FnMut() -> Result<T, E>) -> T {
    let began = Instant::now();
    loop {
        match callback() {
            Ok(seen) => return seen,
            Err(instead) => assert!(began.elapsed() < TIMEOUT, "never {what}: {instead:?}"),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A proxy on its own runtime, for synchronous tests.
pub(super) struct RunningProxy {
    pub(super) proxy: Proxy,
    /// Drives the proxy for as long as it exists.
    _runtime: Runtime,
}

impl RunningProxy {
    pub(super) fn new(proxy: impl Future<Output = Proxy>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let proxy = runtime.block_on(proxy);
        Self {
            proxy,
            _runtime: runtime,
        }
    }
}

/// Future of a store that is being opened.
pub(super) type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>>>>;

/// Opens a store of any kind of server.
pub(super) fn opening<S: Store + 'static, E: Debug + 'static>(
    store: impl Future<Output = Result<S, E>> + 'static,
) -> Opening {
    Box::pin(async move { Arc::new(store.await.expect("a store")) as Arc<dyn Store> })
}

/// The URL of a store as a secret.
pub(super) fn secret(server_url: &ServerUrl) -> SecretString {
    server_url.url().into()
}
