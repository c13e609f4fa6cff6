//! The example as its users run it: the real program, on a real port, killed and restarted.
//!
//! Read `src/main.rs` first. The rules of every endpoint are tested in `sutler-broker`.

use secrecy::SecretString;
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use sutler_check::{Check, Finding, Level, Verdict};
use sutler_client::wire::Connection;
use sutler_servers::http::HttpRequest;

const LINES_MAX: usize = 40;
/// How long the program may take until it listens.
const TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

const SERVICE: &str = "6a1f8a1e-5d3f-4b1c-9c5e-0d1f1f6f7a01";
const PLAN: &str = "6a1f8a1e-5d3f-4b1c-9c5e-0d1f1f6f7a02";
const INSTANCE: &str = "/v2/service_instances/one";
const BINDING: &str = "/v2/service_instances/one/service_bindings/app";

/// The running program; killed on drop.
struct Hello {
    process: Child,
    address: String,
}

impl Hello {
    fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        drop(listener);
        let process = Command::new(env!("CARGO_BIN_EXE_hello"))
            .current_dir(folder)
            .env("HELLO_LISTEN", &address)
            .env("BROKER_USERNAME", "hello")
            .env("BROKER_PASSWORD", "world")
            .spawn()
            .expect("the example runs");
        let hello = Self { process, address };
        hello.until_it_listens();
        hello
    }

    fn until_it_listens(&self) {
        let began = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            assert!(began.elapsed() < TIMEOUT, "it does not listen");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("PUT", path, &body.to_string())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "")
    }

    fn delete(&self, path: &str) -> (u16, Value) {
        let ids = format!("?service_id={SERVICE}&plan_id={PLAN}");
        self.ask("DELETE", &format!("{path}{ids}"), "")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = HttpRequest::new(method, path)
            .with_basic_auth("hello:world")
            .with_header("X-Broker-API-Version", "2.17")
            .with_body("application/json", body);
        let response = request.send(&self.address).expect("it answers");
        let body = serde_json::from_slice(&response.body).expect("it answers in JSON");
        (response.status, body)
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        // SIGKILL: acknowledged changes must survive without a clean shutdown.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn provision() -> Value {
    json!({
        "service_id": SERVICE, "plan_id": PLAN,
        "organization_guid": "org", "space_guid": "space",
        "parameters": { "name": "Ada" },
    })
}

fn bind() -> Value {
    json!({ "service_id": SERVICE, "plan_id": PLAN })
}

#[test]
fn an_instance_is_made_bound_unbound_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = Hello::start(folder.path());
    assert_eq!(hello.put(INSTANCE, &provision()), (201, json!({})));
    assert_eq!(hello.put(INSTANCE, &provision()), (200, json!({})));
    let greeting = json!({ "credentials": { "greeting": "Hello, Ada!", "guest": "app" } });
    assert_eq!(hello.put(BINDING, &bind()), (201, greeting.clone()));
    let (status, fetched) = hello.get(BINDING);
    assert_eq!(
        (status, &fetched["credentials"]),
        (200, &greeting["credentials"])
    );
    assert_eq!(hello.delete(BINDING), (200, json!({})));
    assert_eq!(hello.delete(BINDING).0, 410);
    assert_eq!(hello.delete(INSTANCE), (200, json!({})));
    assert_eq!(hello.get(INSTANCE).0, 404);
}

#[test]
fn instances_and_bindings_are_there_after_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = Hello::start(folder.path());
    assert_eq!(hello.put(INSTANCE, &provision()).0, 201);
    let (_, bound) = hello.put(BINDING, &bind());
    drop(hello);
    let hello = Hello::start(folder.path());
    let (status, instance) = hello.get(INSTANCE);
    assert_eq!(
        (status, &instance["parameters"]),
        (200, &json!({ "name": "Ada" }))
    );
    assert_eq!(hello.put(BINDING, &bind()), (200, bound));
}

/// Holds: D-28.
#[test]
fn a_delete_must_mean_this_service_and_its_plan_may_lag_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = Hello::start(folder.path());
    assert_eq!(hello.put(INSTANCE, &provision()).0, 201);
    let delete = |service: &str, plan: &str| {
        let path = format!("{INSTANCE}?service_id={service}&plan_id={plan}");
        hello.ask("DELETE", &path, "").0
    };
    assert_eq!(delete("another", PLAN), 400);
    assert_eq!(hello.get(INSTANCE).0, 200);
    assert_eq!(delete(SERVICE, "the-one-before"), 200);
}

#[test]
fn parameters_that_do_not_fit_the_derived_schema_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = Hello::start(folder.path());
    let mut body = provision();
    body["parameters"] = json!({ "name": 7 });
    assert_eq!(hello.put(INSTANCE, &body).0, 400);
    assert_eq!(hello.get(INSTANCE).0, 404);
}

#[tokio::test]
async fn it_keeps_every_rule_of_the_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = Hello::start(folder.path());
    let connection = Connection::to(&format!("http://{}", hello.address))
        .basic("hello", SecretString::from("world"))
        .build()
        .expect("a broker to ask");
    let checked = Check::of(connection).run().await;
    let report = checked.expect("there is a catalog");
    let failures = report.failures(Level::Should);
    let failures: Vec<String> = failures.map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(report.left_behind.is_empty(), "{:?}", report.left_behind);
    let passed = |it: &&Finding| matches!(it.verdict, Verdict::Pass);
    let passed = report.findings.iter().filter(passed).count();
    assert!(
        passed > report.findings.len() / 2,
        "only {passed} were seen"
    );
}

#[test]
fn the_whole_broker_fits_on_a_page_and_the_readme_shows_it_as_it_is() {
    let source = include_str!("../src/main.rs");
    assert!(source.lines().count() <= LINES_MAX);
    let readme = include_str!("../../../README.md");
    assert!(
        readme.contains(source),
        "copy examples/hello/src/main.rs to the README"
    );
}
