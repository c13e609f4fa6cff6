//! The running broker process, and a platform that sends requests to it.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use sutler_servers::Server;

/// Timeout of any event on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The platform's password; all written data is searched for it.
pub(crate) const PLATFORM_PASSWORD: &str = "platform-canary-9a3c";

pub(crate) const SERVICE: &str = "2f0c1c52-9f55-4c43-8a80-6a3c8e0f5b01";
pub(crate) const SMALL: &str = "2f0c1c52-9f55-4c43-8a80-6a3c8e0f5b02";
pub(crate) const LARGE: &str = "2f0c1c52-9f55-4c43-8a80-6a3c8e0f5b03";

/// The broker, with its records in a folder. Killed on drop.
pub(crate) struct Program {
    process: Child,
    address: String,
    folder: PathBuf,
    client: Client,
}

/// Options of a start.
pub(crate) struct Start<'a> {
    pub(crate) url: String,
    pub(crate) prefix: &'a str,
    pub(crate) folder: &'a Path,
    /// Attempts of an operation.
    pub(crate) attempts: u32,
    /// Address for applications, instead of the one in the URL.
    pub(crate) address: Option<String>,
}

impl<'a> Start<'a> {
    pub(crate) fn new(server: &Server, prefix: &'a str, folder: &'a Path) -> Self {
        Self {
            url: server.admin_url().url(),
            prefix,
            folder,
            attempts: 8,
            address: None,
        }
    }

    pub(crate) fn run(&self) -> Program {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        drop(listener);
        let log = self.folder.join("log");
        let log = File::options().append(true).create(true).open(log);
        let public_address = self.address.iter().map(|it| ("POSTGRES_ADDRESS", it));
        let process = Command::new(env!("CARGO_BIN_EXE_postgres-broker"))
            .envs(public_address)
            .current_dir(self.folder)
            .env("POSTGRES_ADMIN_URL", &self.url)
            .env("POSTGRES_PREFIX", self.prefix)
            .env("POSTGRES_ATTEMPTS", self.attempts.to_string())
            .env("POSTGRES_BROKER_LISTEN", &address)
            .env("BROKER_USERNAME", "platform")
            .env("BROKER_PASSWORD", PLATFORM_PASSWORD)
            // Everything is logged, because operators do so to find a cause; it must contain no secret.
            .env("RUST_LOG", "trace")
            .stderr(log.expect("a log"))
            .spawn()
            .expect("the broker runs");
        let mut program = Program {
            process,
            address,
            folder: self.folder.to_owned(),
            client: Client::new(),
        };
        program.until_it_listens();
        program
    }
}

impl Program {
    fn until_it_listens(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            let ended = self.process.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "it ended: {}", self.log());
            assert!(began.elapsed() < TIMEOUT, "it does not listen");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// SIGKILL: acknowledged changes must survive without a clean shutdown.
    pub(crate) fn kill_and_wait(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Its command line, as `ps` shows it.
    pub(crate) fn command_line(&self) -> String {
        let path = format!("/proc/{}/cmdline", self.process.id());
        fs::read_to_string(path).expect("it runs")
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("http://{}/v2/service_instances/{path}", self.address);
        let answer = self
            .client
            .request(method, url)
            .basic_auth("platform", Some(PLATFORM_PASSWORD))
            .header("X-Broker-API-Version", "2.17")
            .json(body)
            .timeout(TIMEOUT)
            .send()
            .await
            .expect("it answers");
        let status = answer.status().as_u16();
        (status, answer.json().await.expect("it answers in JSON"))
    }

    pub(crate) async fn provision(&self, instance: &str, parameters: Value) -> (u16, Value) {
        self.ask(Method::PUT, instance, &provision(parameters))
            .await
    }

    /// The same, in the background.
    pub(crate) async fn start_provision(&self, instance: &str) -> (u16, Value) {
        let path = format!("{instance}?accepts_incomplete=true");
        self.ask(Method::PUT, &path, &provision(json!({}))).await
    }

    pub(crate) async fn update(&self, instance: &str, change: Value) -> (u16, Value) {
        let mut body = json!({ "service_id": SERVICE });
        for (key, value) in change.as_object().expect("an object") {
            body[key] = value.clone();
        }
        self.ask(Method::PATCH, instance, &body).await
    }

    pub(crate) async fn bind(&self, instance: &str, binding: &str) -> (u16, Value) {
        let body = json!({ "service_id": SERVICE, "plan_id": SMALL });
        self.ask(Method::PUT, &bindings(instance, binding), &body)
            .await
    }

    /// The same, in the background.
    pub(crate) async fn start_bind(&self, instance: &str, binding: &str) -> (u16, Value) {
        let body = json!({ "service_id": SERVICE, "plan_id": SMALL });
        let path = format!("{}?accepts_incomplete=true", bindings(instance, binding));
        self.ask(Method::PUT, &path, &body).await
    }

    pub(crate) async fn fetch_binding(&self, instance: &str, binding: &str) -> (u16, Value) {
        let path = bindings(instance, binding);
        self.ask(Method::GET, &path, &json!({})).await
    }

    pub(crate) async fn rotate(&self, instance: &str, old: &str, new: &str) -> (u16, Value) {
        let body =
            json!({ "service_id": SERVICE, "plan_id": SMALL, "predecessor_binding_id": old });
        self.ask(Method::PUT, &bindings(instance, new), &body).await
    }

    pub(crate) async fn unbind(&self, instance: &str, binding: &str) -> (u16, Value) {
        self.delete(&bindings(instance, binding)).await
    }

    pub(crate) async fn deprovision(&self, instance: &str) -> (u16, Value) {
        self.delete(instance).await
    }

    /// The same, in the background.
    pub(crate) async fn start_deprovision(&self, instance: &str) -> (u16, Value) {
        let path =
            format!("{instance}?service_id={SERVICE}&plan_id={SMALL}&accepts_incomplete=true");
        self.ask(Method::DELETE, &path, &json!({})).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        let path = format!("{path}?service_id={SERVICE}&plan_id={SMALL}");
        self.ask(Method::DELETE, &path, &json!({})).await
    }

    /// Polls until the operation on an instance has ended.
    pub(crate) async fn until_it_ends(&self, instance: &str) -> (u16, Value) {
        let began = Instant::now();
        let path = format!("{instance}/last_operation");
        loop {
            let polled = self.ask(Method::GET, &path, &json!({})).await;
            if polled.1["state"] != "in progress" {
                return polled;
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end: {}", polled.1);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn provision(parameters: Value) -> Value {
    json!({
        "service_id": SERVICE, "plan_id": SMALL,
        "organization_guid": "org", "space_guid": "space",
        "parameters": parameters,
    })
}

fn bindings(instance: &str, binding: &str) -> String {
    format!("{instance}/service_bindings/{binding}")
}
