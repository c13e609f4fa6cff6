//! No secret is written anywhere: secrets are planted in every input, and searched in all output of the
//! program.
//!
//! A real process at the most detailed log level gets valid requests, invalid ones, a failure and a panic.
//! Places where a secret belongs (the response to the bind that created it, the files and the environment it
//! was put in) are not searched.

mod bundles;

use crate::http_request::{BrokerRequest, base64};
use crate::process::{Broker, folder, sutler};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::path::Path;

/// The offering of the demo catalog.
const SERVICE: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a01";
const PLAN: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a02";

/// Names of files with contents of the operator.
const PUT_THERE: [&str; 3] = ["sutler.yaml", "secret", "sutler.key"];

/// The planted secrets, by place.
struct Canaries {
    planted: Vec<(&'static str, String)>,
    /// The hash of a password, as in a configuration.
    hash: String,
}

impl Canaries {
    fn new() -> Self {
        let password = SecretString::from(canary("hashed"));
        let hash = sutler_broker::hash_password(&password).expect("a hash");
        let tail = hash.rsplit('$').next().unwrap_or_default().to_owned();
        let planted = vec![
            ("the hash of a password", tail),
            ("a hashed password", canary("hashed")),
        ];
        Self { planted, hash }
    }

    /// Creates a canary for a place.
    fn plant(&mut self, place: &'static str) -> String {
        let value = canary(place);
        self.planted.push((place, value.clone()));
        value
    }

    /// Adds a secret that the program created.
    fn found(&mut self, place: &'static str, value: &str) {
        assert!(value.len() >= 16, "{place} is too short to be searched for");
        self.planted.push((place, value.to_owned()));
    }

    /// Fails if a text contains one of them, in plain text or encoded.
    fn search(&self, bytes: &[u8], place: &str) {
        for (planted, value) in &self.planted {
            for form in forms(value) {
                let there = bytes.windows(form.len()).any(|window| window == form);
                assert!(!there, "the secret of {planted} stands in {place}");
            }
        }
    }
}

/// A value in plain text, and encoded at every offset of the encoded text.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    for before in 0..3 {
        let encoded = base64(&format!("{}{value}", &"  "[..before]));
        // The first and the last letters depend on the text before and after.
        let (from, to) = ((before * 8).div_ceil(6), (before + value.len()) / 3 * 4);
        forms.push(encoded.as_bytes()[from..to].to_vec());
    }
    forms
}

fn canary(place: &str) -> String {
    let place: String = place.split_whitespace().collect::<Vec<_>>().join("-");
    format!("canary.{place}.7f3a9c")
}

fn configure(folder: &Path, canaries: &mut Canaries) {
    let file = canaries.plant("a password in a file");
    std::fs::write(folder.join("secret"), &file).expect("a file");
    let (user_password, operators) = (
        canaries.plant("a password in the configuration"),
        canaries.plant("a password of an operator"),
    );
    let hash = &canaries.hash;
    let text = format!(
        "users:\n- {{name: me, password: '{user_password}'}}\n- {{name: env, password: '${{env:PLANTED}}'}}\n- {{name: file, password: '${{file:secret}}'}}\n- {{name: hash, password_hash: '{hash}'}}\nadmin: {{users: [{{name: op, password: '{operators}'}}]}}\nbearer: {{issuer: 'http://127.0.0.1:9', jwks_url: 'http://127.0.0.1:9/keys', audience: [me]}}\nmetrics: {{public: true}}\naudit: {{file: audit.log}}\nlog: {{level: trace}}\n"
    );
    std::fs::write(folder.join("sutler.yaml"), text).expect("a file");
}

/// A provision with secrets in every possible place.
fn provision(id: &str, parameters: Value, canaries: &mut Canaries) -> BrokerRequest {
    let identity = json!({ "user_id": "u", "token": canaries.plant("the identity") }).to_string();
    let body = json!({
        "service_id": SERVICE, "plan_id": PLAN,
        "organization_guid": "o", "space_guid": "s",
        "context": { "platform": "cloudfoundry", "token": canaries.plant("the context") },
        "parameters": parameters,
    });
    BrokerRequest::new("PUT", &format!("/v2/service_instances/{id}"))
        .header(
            "X-Broker-API-Originating-Identity",
            &format!("cloudfoundry {}", base64(&identity)),
        )
        .json(&body)
}

/// Sends all requests, valid and invalid; returns the responses except those that contain secrets by design.
fn ask_everything(broker: &Broker, canaries: &mut Canaries) -> Vec<String> {
    let me = format!("me:{}", canary("a password in the configuration"));
    let address = broker.address();
    let mut answers = Vec::new();
    let mut keep = |request: BrokerRequest, expected: u16| {
        let answer = request.send(address);
        assert_eq!(answer.status, expected, "{}", answer.text);
        answers.push(answer.text);
    };
    for (name, place) in [
        ("env", "a password in the environment"),
        ("file", "a password in a file"),
        ("hash", "hashed"),
    ] {
        let pair = format!("{name}:{}", canary(place));
        keep(BrokerRequest::get("/v2/catalog").user(&pair), 200);
    }
    let wrong = format!("me:{}", canaries.plant("a wrong password"));
    keep(BrokerRequest::get("/v2/catalog").user(&wrong), 401);
    let token = format!("Bearer e30.{}.e30", canaries.plant("a token"));
    keep(
        BrokerRequest::get("/v2/catalog").header("Authorization", &token),
        401,
    );
    let query = canaries.plant("the query");
    keep(
        BrokerRequest::get(&format!("/v2/nothing?password={query}")).user(&me),
        404,
    );
    let url = format!(
        "http://me:{}@localhost/v2/catalog",
        canaries.plant("the address")
    );
    keep(BrokerRequest::get(&url).user(&me), 200);
    let good = json!({ "note": canaries.plant("a parameter") });
    keep(provision("good", good, canaries).user(&me), 201);
    let bad = json!({ "delay_ms": canaries.plant("a bad parameter") });
    keep(provision("bad", bad, canaries).user(&me), 400);
    let fails = json!({ "fail": "It failed.", "note": canaries.plant("a failing parameter") });
    keep(provision("fails", fails, canaries).user(&me), 500);
    let panics = json!({ "panic": true, "note": canaries.plant("a panicking parameter") });
    keep(provision("panics", panics, canaries).user(&me), 500);
    let broken = BrokerRequest::new("PUT", "/v2/service_instances/broken").user(&me);
    keep(
        broken.text(&format!(
            "{{\"parameters\": \"{}",
            canaries.plant("no JSON")
        )),
        400,
    );
    let bind = "/v2/service_instances/good/service_bindings/b";
    let body = json!({ "service_id": SERVICE, "plan_id": PLAN,
        "parameters": { "note": canaries.plant("a parameter of a bind") } });
    // The credentials belong in this response, and nowhere else.
    let bound = BrokerRequest::new("PUT", bind)
        .user(&me)
        .json(&body)
        .send(address);
    assert_eq!(bound.status, 201, "{}", bound.text);
    let body = bound.text.split("\r\n\r\n").nth(1).unwrap_or_default();
    let body: Value = serde_json::from_str(body).expect("JSON");
    let password = body["credentials"]["password"].as_str().unwrap_or_default();
    canaries.found("the credentials", password);
    answers.extend(ask_as_operator(address));
    answers
}

/// Responses to operators, and to callers who are not.
fn ask_as_operator(address: &str) -> Vec<String> {
    let me = format!("me:{}", canary("a password in the configuration"));
    let op = format!("op:{}", canary("a password of an operator"));
    let paths = [
        "instances",
        "bindings",
        "operations",
        "audit",
        "stats",
        "instances/fails",
        "nothing",
    ];
    let mut answers = Vec::new();
    for path in paths {
        let request = BrokerRequest::get(&format!("/admin/v1/{path}")).user(&op);
        answers.push(request.send(address).text);
    }
    for order in ["instances/fails/retry", "instances/panics/purge"] {
        let request = BrokerRequest::new("POST", &format!("/admin/v1/{order}")).user(&op);
        answers.push(
            request
                .json(&json!({ "reason": "to see" }))
                .send(address)
                .text,
        );
    }
    let refused = BrokerRequest::get("/admin/v1/instances")
        .user(&me)
        .send(address);
    assert_eq!(refused.status, 401, "{}", refused.text);
    answers.push(refused.text);
    answers.push(BrokerRequest::get("/metrics").send(address).text);
    answers
}

#[test]
fn no_secret_is_in_any_output_of_the_program() {
    let folder = folder();
    let here = folder.path();
    let mut canaries = Canaries::new();
    configure(here, &mut canaries);
    let environment = canaries.plant("a password in the environment");
    let mut command = sutler(here);
    command
        .args(["broker", "--config", "sutler.yaml"])
        .env("PLANTED", &environment);
    let broker = Broker::of(&mut command);
    let answers = ask_everything(&broker, &mut canaries);
    std::fs::write(here.join("sutler.yaml"), "lisen: x\n").expect("a file");
    broker.signal("HUP");
    broker.until_logged("not reloaded");
    for line in std::fs::read_to_string(here.join("sutler.key"))
        .expect("keys")
        .split_whitespace()
    {
        if line.len() >= 32 {
            canaries.found("the key file", line);
        }
    }
    let arguments = std::fs::read(format!("/proc/{}/cmdline", broker.id()));
    canaries.search(&arguments.expect("the process is there"), "its arguments");
    let inherited = std::fs::read(format!("/proc/{}/environ", broker.id())).expect("it is there");
    for variable in inherited.split(|byte| *byte == 0) {
        // The configured secret stays in its own file.
        if !variable.starts_with(b"PLANTED=") {
            canaries.search(variable, "its environment");
        }
    }
    search_the_operators_client(here, &broker, &canaries);
    // While it runs, and after SIGTERM.
    search_files(here, &canaries);
    let log = broker.ended().join("\n");
    assert!(
        log.contains("TRACE") && log.contains("panic"),
        "the log is not whole"
    );
    canaries.search(log.as_bytes(), "the log");
    for answer in &answers {
        canaries.search(answer.as_bytes(), answer);
    }
    search_files(here, &canaries);
    configure(here, &mut canaries);
    for verb in ["show", "check"] {
        let mut command = sutler(here);
        command.args(["config", verb]).env("PLANTED", &environment);
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        canaries.search(&output.stdout, "what is shown");
        canaries.search(&output.stderr, "what is complained of");
    }
}

#[test]
fn a_secret_is_found_in_plain_text_and_encoded() {
    let mut canaries = Canaries::new();
    let value = canaries.plant("a place");
    let pair = base64(&format!("me:{value}"));
    let shifted = ["", "x", "xx"].map(|before| base64(&format!("{before}{value}, and more")));
    let mut texts = vec![format!("a {value} b"), format!("Basic {pair}")];
    texts.extend(shifted);
    for text in texts {
        let result = std::panic::catch_unwind(|| canaries.search(text.as_bytes(), "a text"));
        assert!(result.is_err(), "{text}");
    }
    canaries.search(b"nothing of the kind", "a text");
}

/// Output of `sutler admin`, with correct and with wrong credentials. Its copy of the database is searched
/// with the other files.
fn search_the_operators_client(folder: &Path, broker: &Broker, canaries: &Canaries) {
    let list = ["instances", "list", "-o", "json"];
    let good = "a password of an operator";
    let commands = [
        (&list[..], good),
        (&list[..], "a wrong password"),
        (&["backup", "copy.db"][..], good),
    ];
    for (arguments, place) in commands {
        let output = sutler(folder)
            .arg("admin")
            .args(arguments)
            .args(["--user", "op"])
            .args(["--url", &format!("http://{}/admin", broker.address())])
            .env("SUTLER_ADMIN_PASSWORD", canary(place))
            .output()
            .expect("the program runs");
        canaries.search(&output.stdout, "what operators are shown");
        canaries.search(&output.stderr, "what operators are told");
    }
    assert!(folder.join("copy.db").exists(), "there is no copy");
}

/// Searches databases, logs and all other files.
fn search_files(folder: &Path, canaries: &Canaries) {
    let mut searched = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if PUT_THERE.contains(&name.as_str()) {
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("it can be read");
        canaries.search(&bytes, &name);
        searched += 1;
    }
    assert!(searched >= 1, "there is no database");
}
