//! Lines of the audit: one for each change, whatever becomes of who asked for it.

use super::{TestApi, basic, instance};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::MemoryStore;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_records::{AUDIT_TARGET, AuditLine, AuditOutcome, audit_enabled, log_audit};
use sutler_server::Limits;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// Turns that other tasks get before a test says that a line is missing.
const TURNS_MAX: usize = 10_000;

/// Lines of the audit on this thread.
#[derive(Clone, Default)]
struct AuditLines(Arc<Mutex<Vec<String>>>);

impl AuditLines {
    fn begin() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(lines.clone());
        // Another thread may find out at this moment that nothing wants such lines; that would hold for this one, too.
        while !audit_enabled() || lines.last().is_empty() {
            tracing::callsite::rebuild_interest_cache();
            log_audit("begin", AuditOutcome::Accepted, &AuditLine::default());
        }
        lines.lines().clear();
        (lines, guard)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last line with these words, each as `field=value`.
    fn last(&self) -> String {
        self.lines().last().cloned().unwrap_or_default()
    }
}

struct LineFields(String);

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?};", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {}={value};", field.name());
    }
}

impl Subscriber for AuditLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == AUDIT_TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LineFields(String::new());
        event.record(&mut line);
        self.lines().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A store whose commits take many turns, and whether one has begun.
fn slow_store() -> (Arc<InterceptingStore>, Arc<AtomicBool>) {
    let is_committed = Arc::new(AtomicBool::new(false));
    let flag = is_committed.clone();
    let hook = move |call: &Call<'_>| match call {
        Call::Commit(_) => {
            flag.store(true, Ordering::SeqCst);
            Intercept::PassSlowly
        }
        _ => Intercept::Pass,
    };
    let store = InterceptingStore::new(Arc::new(MemoryStore::new()), hook);
    (Arc::new(store), is_committed)
}

/// Sends a change, and goes away as soon as the store was asked to write it.
async fn leave_while_it_is_written(api: &TestApi, is_committed: &AtomicBool) {
    let request = Request::builder()
        .method("PUT")
        .uri("/api/v1/namespaces/app")
        .header("authorization", basic("ada"))
        .header("content-type", "application/json")
        .body(Body::from("{}"));
    is_committed.store(false, Ordering::SeqCst);
    let committed = async {
        while !is_committed.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = api.send(request.expect("a request")) => panic!("the store has not answered"),
        () = committed => {}
    }
}

async fn until_it_is_written() {
    for _ in 0..TURNS_MAX {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_change_whose_sender_is_gone_is_carried_out_and_audited() {
    let (lines, _guard) = AuditLines::begin();
    let (store, is_committed) = slow_store();
    let api = TestApi::over(store).await;
    leave_while_it_is_written(&api, &is_committed).await;
    until_it_is_written().await;
    let line = lines.last();
    assert!(line.contains("verb=namespace_put;"), "{line}");
    assert!(line.contains("outcome=succeeded;"), "{line}");
    assert_eq!(api.get("/namespaces/app").await.status, 200);
}

#[tokio::test]
async fn a_change_whose_sender_is_gone_counts_against_the_caller_until_it_has_ended() {
    let (store, is_committed) = slow_store();
    let limits = Limits {
        requests_per_caller: 1,
        refusal_pause: Duration::ZERO,
        ..Limits::default()
    };
    let api = TestApi::within(store, limits).await;
    leave_while_it_is_written(&api, &is_committed).await;
    let refused = api.get("/namespaces").await;
    assert_eq!(refused.status, 429, "{refused:?}");
    until_it_is_written().await;
    assert_eq!(api.get("/namespaces/app").await.status, 200);
}

#[tokio::test]
async fn a_line_names_what_was_created() {
    let (lines, _guard) = AuditLines::begin();
    let api = TestApi::with_instance().await;
    assert!(
        lines.last().contains("instance.id=app/db;"),
        "{}",
        lines.last()
    );
    let mut body = instance("taken");
    body["externalId"] = json!("x");
    let adopted = api.post("/namespaces/app/instances:adopt", body).await;
    assert_eq!(adopted.status, 201, "{adopted:?}");
    let line = lines.last();
    assert!(line.contains("instance.id=app/taken;"), "{line}");
    let body = json!({"name": "db-app", "instance": "db"});
    assert_eq!(api.post("/namespaces/app/bindings", body).await.status, 202);
    let line = lines.last();
    assert!(line.contains("binding.id=app/db-app;"), "{line}");
}

#[tokio::test]
async fn a_change_that_is_only_tried_is_told_apart() {
    let (lines, _guard) = AuditLines::begin();
    let api = TestApi::with_broker().await;
    let path = "/namespaces/app/instances?dryRun";
    assert_eq!(api.post(path, instance("db")).await.status, 200);
    assert!(lines.last().contains("note=dry run;"), "{}", lines.last());
}

#[tokio::test]
async fn who_may_not_act_for_others_is_audited() {
    let (lines, _guard) = AuditLines::begin();
    let api = TestApi::with_broker().await;
    let person = r#"{"username": "carol", "uid": "u-1"}"#;
    let headers = [("sutler-on-behalf-of", person)];
    let path = ("POST", "/namespaces/app/instances");
    let refused = api.ask(path, &headers, Some(instance("db"))).await;
    assert_eq!(refused.status, 403);
    let line = lines.last();
    assert!(line.contains("outcome=refused;"), "{line}");
    assert!(line.contains("caller=user:ada;"), "{line}");
    assert!(line.contains("act for somebody else"), "{line}");
}

#[tokio::test]
async fn the_reason_of_giving_up_is_kept() {
    let api = TestApi::with_instance().await;
    let shown = api.get("/namespaces/app/instances/db").await;
    let uid = shown.body["uid"].as_str().expect("a uid").to_owned();
    let bob = basic("bob");
    let bob = [("authorization", bob.as_str())];
    let reason = Some(json!({"reason": "the broker is gone"}));
    let path = "/namespaces/app/instances/db:abandon";
    let gone = api.ask(("POST", path), &bob, reason).await;
    assert_eq!(gone.body["abandoned"]["reason"], "the broker is gone");
    let kept = api.get(&format!("/namespaces/app/instances/{uid}")).await;
    assert_eq!(kept.body["abandoned"]["reason"], "the broker is gone");
    assert_eq!(kept.body["abandoned"]["by"]["username"], "bob");
}
