//! A real broker that offers one bundle, and requests to it.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, run_sutler};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use sutler_servers::{MissingServer, find_programs, until};
use tempfile::TempDir;

/// A bundle of this repository.
pub(super) fn repository_bundle(name: &str) -> PathBuf {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bundles");
    bundles.join(name).canonicalize().expect("it is there")
}

/// Whether a program is available; reports it if not, and fails where all programs are required.
pub(super) fn has(program: &'static str, how: &'static str) -> bool {
    let found = find_programs(&[program], &["/usr/bin"]).is_some();
    if !found {
        let missing = MissingServer {
            name: program,
            program,
            how,
            may_be: false,
        };
        missing.report();
    }
    found
}

/// Fails unless `sutler bundle test` takes the examples of a bundle through this number of steps.
#[track_caller]
pub(super) fn passes_its_test(bundle: &Path, secrets: &Value, more: &[&str], steps: usize) {
    let work_folder = folder();
    let file = work_folder.path().join("secrets.json");
    fs::write(&file, secrets.to_string()).expect("a file");
    let (bundle, file) = (bundle.display().to_string(), file.display().to_string());
    let mut words = vec!["bundle", "test", &bundle, "--secrets", &file];
    words.extend(more);
    let tested = run_sutler(work_folder.path(), &words);
    let expected = format!("{steps} steps, all done\n");
    let whole = format!("{}{}", tested.stdout, tested.stderr);
    assert!(tested.stdout.ends_with(&expected), "{whole}");
    assert_eq!(tested.code, Some(0), "{whole}");
}

/// A broker and the bundle that it offers.
pub(super) struct Fixture {
    folder: TempDir,
    broker: Broker,
    service: String,
    plan: String,
}

impl Fixture {
    /// Starts a broker, with secrets in the format of `sutler bundle test`.
    pub(super) fn open(bundle: &Path, secrets: &Value) -> Self {
        Self::open_with(bundle, secrets, json!({}))
    }

    /// The same, with additional keys in the block `bundles`.
    pub(super) fn open_with(bundle: &Path, secrets: &Value, more: Value) -> Self {
        let folder = folder();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("permissions");
        let kept = secrets.as_object().into_iter().flatten();
        let kept: Vec<Value> = kept
            .map(|(name, keys)| {
                let keys = keys.as_object().into_iter().flatten();
                let keys: Vec<Value> = keys
                    .map(|(key, value)| json!({ "key": key, "value": value }))
                    .collect();
                json!({ "name": name, "keys": keys })
            })
            .collect();
        let mut bundles = json!({ "folder": bundle, "work": "work", "secrets": kept });
        for (key, value) in more.as_object().into_iter().flatten() {
            bundles[key] = value.clone();
        }
        let config = json!({
            "auth": "none", "store": { "url": "memory:" }, "bundles": bundles,
        });
        fs::write(folder.path().join("sutler.yaml"), config.to_string()).expect("a file");
        let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
        let catalog = body(
            &BrokerRequest::get("/v2/catalog")
                .send(broker.address())
                .text,
        );
        let offering = &catalog["services"][0];
        let text = |id: &Value| id.as_str().expect("an id").to_owned();
        Self {
            service: text(&offering["id"]),
            plan: text(&offering["plans"][0]["id"]),
            folder,
            broker,
        }
    }

    /// A folder of the test that runs of any user may write to.
    pub(super) fn open_folder(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&path, open).expect("permissions");
        path
    }

    /// Fails unless the broker passes every MUST and SHOULD case, for every plan.
    #[track_caller]
    pub(super) fn keeps_every_rule(&self) {
        let url = format!("http://{}", self.broker.address());
        let checked = run_sutler(self.folder.path(), &["check", &url, "--level", "should"]);
        let whole = format!("{}{}", checked.stdout, checked.stderr);
        let sentence = "\nconformant: no MUST and no SHOULD failed";
        assert!(checked.stdout.contains(sentence), "{whole}");
        assert_eq!(checked.code, Some(0), "{whole}");
    }

    /// Fails unless a check of the first plan applies these cases, and they pass.
    #[track_caller]
    pub(super) fn proves(&self, rules: &[&str]) {
        let url = format!("http://{}", self.broker.address());
        let words = ["check", &url, "--plan", &self.plan, "--format", "json"];
        let checked = run_sutler(self.folder.path(), &words);
        let report: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
        let findings = report["findings"].as_array().expect("a list");
        for rule in rules {
            let of = |it: &&Value| it["case"] == *rule;
            let verdicts: Vec<&Value> = findings
                .iter()
                .filter(of)
                .map(|it| &it["verdict"])
                .collect();
            let kept = verdicts.iter().all(|it| **it == "pass");
            assert!(kept && !verdicts.is_empty(), "{rule}: {verdicts:?}");
        }
    }

    /// Sends a request with the ids where they belong; returns the status and the body.
    pub(super) fn request(&self, method: &str, path: &str, more: Value) -> (u16, Value) {
        let ids = format!("service_id={}&plan_id={}", self.service, self.plan);
        let path = format!("/v2/service_instances/{path}");
        let request = match method {
            "GET" => BrokerRequest::get(&path),
            "DELETE" => BrokerRequest::new(method, &format!("{path}?{ids}")),
            _ => {
                let mut whole = json!({
                    "service_id": self.service, "plan_id": self.plan,
                    "organization_guid": "o", "space_guid": "s",
                });
                for (key, value) in more.as_object().into_iter().flatten() {
                    whole[key] = value.clone();
                }
                BrokerRequest::new(method, &path).json(&whole)
            }
        };
        let answer = request.send(self.broker.address());
        (answer.status, body(&answer.text))
    }

    /// Fails unless the response has this status; returns the body.
    #[track_caller]
    pub(super) fn expect_status(
        &self,
        status: u16,
        method: &str,
        path: &str,
        more: Value,
    ) -> Value {
        let (answered, body) = self.request(method, path, more);
        assert_eq!(answered, status, "{method} {path}: {body}");
        body
    }

    /// Polls an instance until its progress is this text.
    pub(super) fn until_progress(&self, instance: &str, text: &str) {
        until(text, || {
            let polled = self.poll(instance);
            assert_eq!(polled["state"], "in progress", "{polled}");
            (polled["description"] == text).then_some(())
        });
    }

    /// Polls an instance until its operation has succeeded.
    pub(super) fn until_done(&self, instance: &str) {
        until("it is done", || {
            let polled = self.poll(instance);
            assert_ne!(polled["state"], "failed", "{polled}");
            (polled["state"] == "succeeded").then_some(())
        });
    }

    /// Polls an instance until its operation has failed; returns the description.
    pub(super) fn until_failed(&self, instance: &str) -> String {
        until("it has failed", || {
            let polled = self.poll(instance);
            assert_ne!(polled["state"], "succeeded", "{polled}");
            let why = polled["description"].as_str().unwrap_or_default();
            (polled["state"] == "failed").then(|| why.to_owned())
        })
    }

    fn poll(&self, instance: &str) -> Value {
        let path = format!("{instance}/last_operation");
        self.expect_status(200, "GET", &path, Value::Null)
    }
}

fn body(answer: &str) -> Value {
    let text = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(text).unwrap_or_default()
}
