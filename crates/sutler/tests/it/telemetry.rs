//! Telemetry of the real program: log lines, audit, probes, metrics, traces.
//!
//! Here: starting a broker whose log is read, and requests to it. The behaviours are in `telemetry/`.

mod deploy_files;
mod logs_and_audit;
mod metrics_page;
mod traces;

use crate::process::sutler;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit of every wait, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two polls.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A broker whose log is read.
struct ObservedBroker {
    process: Child,
    log: Arc<Mutex<Vec<Value>>>,
    address: String,
    client: reqwest::Client,
}

impl ObservedBroker {
    /// Starts a broker on a free port with a JSON log, and waits until it listens.
    async fn start(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut process = sutler(folder)
            .args(["broker", "--no-auth", "--log-format", "json"])
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let log = Arc::new(Mutex::new(Vec::new()));
        let stderr = process.stderr.take().expect("it is piped");
        let lines = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                lines.lock().expect("nobody panics").push(line);
            }
        });
        let mut broker = Self {
            process,
            log,
            address: String::new(),
            client: reqwest::Client::new(),
        };
        let line = broker.line(|line| line["message"] == "listening").await;
        broker.address = line["address"].as_str().expect("an address").to_owned();
        broker
    }

    /// Waits for a matching line of the log, and returns it.
    async fn line(&self, is: impl Fn(&Value) -> bool) -> Value {
        let find = async || {
            let log = self.log.lock().expect("nobody panics");
            log.iter().find(|it| is(it)).cloned()
        };
        until(find, || format!("{:#?}", self.log.lock())).await
    }

    /// All lines so far.
    fn lines(&self) -> Vec<Value> {
        self.log.lock().expect("nobody panics").clone()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self
            .client
            .get(self.url(path))
            .send()
            .await
            .expect("an answer");
        (
            answer.status().as_u16(),
            answer.text().await.expect("a text"),
        )
    }

    /// Requests an instance with these headers, and waits for it.
    async fn provision(&self, id: &str, parameters: Value, headers: &[(&str, &str)]) -> u16 {
        self.put(id, parameters, headers, "").await
    }

    async fn put(&self, id: &str, parameters: Value, headers: &[(&str, &str)], query: &str) -> u16 {
        let catalog = self.catalog().await;
        let service = &catalog["services"][0];
        let body = json!({
            "service_id": service["id"], "plan_id": service["plans"][0]["id"],
            "organization_guid": "org", "space_guid": "space",
            "parameters": parameters,
        });
        let path = format!("/v2/service_instances/{id}{query}");
        let mut request = self
            .client
            .put(self.url(&path))
            .header("X-Broker-API-Version", "2.17");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.json(&body).send().await.expect("an answer");
        answer.status().as_u16()
    }

    async fn catalog(&self) -> Value {
        let request = self.client.get(self.url("/v2/catalog"));
        let answer = request.header("X-Broker-API-Version", "2.17").send().await;
        answer.expect("an answer").json().await.expect("JSON")
    }

    /// Sends a signal by name.
    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the end after a signal; returns how long it took.
    async fn ended(&mut self) -> Duration {
        let began = Instant::now();
        let process = Mutex::new(&mut self.process);
        let poll = async || {
            let mut process = process.lock().expect("nobody panics");
            process.try_wait().expect("it can be waited for")
        };
        until(poll, || "it does not end".to_owned()).await;
        began.elapsed()
    }
}

impl Drop for ObservedBroker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until there is a value.
async fn until<T>(poll: impl AsyncFn() -> Option<T>, why: impl Fn() -> String) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(began.elapsed() < TIMEOUT, "{}", why());
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A program that a test needs, if it is available. In CI it must be.
fn tool(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        let ci = std::env::var("CI").is_ok_and(|it| it == "true");
        assert!(!ci, "{name} is not there: run ./test --tools");
        eprintln!("skipped: {name} is not there; run ./test --tools to install it");
    }
    found
}
