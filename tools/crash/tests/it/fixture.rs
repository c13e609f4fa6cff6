//! A victim, a connection to it, and its acknowledgements.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use sutler_crash::{HttpClient, HttpResponse, Launch, VictimProcess, provision_body};
use tempfile::TempDir;

/// Time limit of any condition.
const SOON: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// This package's executable.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sutler-crash"))
}

pub(crate) struct VictimFixture {
    pub(crate) dir: TempDir,
    pub(crate) launch: Launch,
    pub(crate) victim: VictimProcess,
    pub(crate) client: HttpClient,
    /// Instances acknowledged with 202, by their operations.
    pub(crate) accepted: BTreeMap<String, String>,
}

impl VictimFixture {
    /// Starts a victim configured by `prepare`.
    pub(crate) async fn new(prepare: impl FnOnce(&mut Launch, &Path)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut launch = Launch::new(program(), dir.path());
        prepare(&mut launch, dir.path());
        let victim = launch.start_ready().await.expect("a victim");
        let client = HttpClient::to(victim.address);
        Self {
            dir,
            launch,
            victim,
            client,
            accepted: BTreeMap::new(),
        }
    }

    /// Kills the victim and starts it again on the same file.
    pub(crate) async fn again(mut self, prepare: impl FnOnce(&mut Launch)) -> Self {
        self.victim.kill().await.expect("it was alive");
        prepare(&mut self.launch);
        self.victim = self.launch.start_ready().await.expect("another victim");
        self.client = HttpClient::to(self.victim.address);
        self
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &Value) -> HttpResponse {
        let path = format!("/v2/service_instances/{path}");
        self.client
            .send(method, &path, body)
            .await
            .expect("an answer")
    }

    /// Requests an instance without waiting for it, and records it if it was accepted.
    pub(crate) async fn provision(&mut self, id: &str) -> HttpResponse {
        let path = format!("{id}?accepts_incomplete=true");
        let answer = self
            .send("PUT", &path, &provision_body(&json!({ "size": 3 })))
            .await;
        if answer.status == 202 {
            let operation = answer.operation().expect("an operation").to_owned();
            self.accepted.insert(id.to_owned(), operation);
        }
        answer
    }

    /// Every accepted operation must succeed soon, and its instance must exist.
    pub(crate) async fn everything_accepted_succeeds(&mut self) {
        for (id, operation) in self.accepted.clone() {
            let path = format!("{id}/last_operation?operation={operation}");
            until(&format!("the end of {id}"), async || {
                let polled = self.send("GET", &path, &Value::Null).await;
                match polled.state() {
                    Some("succeeded") => true,
                    Some("in progress") => false,
                    None if polled.status == 503 => false,
                    _ => panic!("{id} was accepted, and then: {polled:?}"),
                }
            })
            .await;
            let fetched = self.send("GET", &id, &Value::Null).await;
            assert_eq!(fetched.status, 200, "{id}: {fetched:?}");
            assert_eq!(fetched.body["parameters"], json!({ "size": 3 }), "{id}");
        }
    }

    /// Requests instances until one is not accepted; returns the refusal.
    pub(crate) async fn provision_until_refused(&mut self, most: usize) -> HttpResponse {
        for number in 0..most {
            let answer = self.provision(&format!("fill-{number}")).await;
            if answer.status != 202 {
                return answer;
            }
        }
        panic!("{most} instances were accepted and the fault has not shown");
    }

    /// Requests one more instance until it is accepted.
    pub(crate) async fn provision_until_accepted(&mut self, id: &str) {
        until(&format!("the acceptance of {id}"), async || {
            let answer = self.provision(id).await;
            // 200: a request whose response was an error may still have been executed.
            let accepted = [202, 200].contains(&answer.status);
            if !accepted {
                assert_clean(&answer);
            }
            accepted
        })
        .await;
    }
}

/// 503, with a message and `Retry-After`, and without internal details.
pub(crate) fn assert_clean(answer: &HttpResponse) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.retry_after.is_some(), "no Retry-After: {answer:?}");
    let sentence = answer.body["description"].as_str().unwrap_or_default();
    assert!(sentence.ends_with('.'), "no sentence: {answer:?}");
    for inner in ["sqlite", "disk", "I/O", "EIO", "COMMIT"] {
        assert!(
            !sentence.contains(inner),
            "the inner text got out: {answer:?}"
        );
    }
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < SOON, "{what} did not come to be");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
