//! Bundles without a broker: state is in a file, and interrupted actions continue.

use super::fake_runner::{FakeRunner, Script};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use sutler_bundle::Action;
use sutler_bundle_service::{
    LocalInstance, LocalRequest, LocalResult, LocalRunError, RunObserver, VersionStore,
};
use sutler_runner::{RunProgress, Runner};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// An observer that ignores everything.
#[derive(Default)]
struct IgnoringObserver(CancellationToken);

#[async_trait]
impl RunObserver for IgnoringObserver {
    async fn output(&self, _: u64, _: &str) -> sutler_broker::Result<()> {
        Ok(())
    }

    async fn progress(&self, _: &RunProgress) -> sutler_broker::Result<()> {
        Ok(())
    }

    async fn adopted(&self) -> sutler_broker::Result<()> {
        Ok(())
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.0
    }
}

struct LocalFixture {
    root: TempDir,
    fake: Arc<FakeRunner>,
}

impl LocalFixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let bundle = root.path().join("db");
        fs::create_dir_all(bundle.join("actions")).expect("a folder");
        fs::write(bundle.join("bundle.yml"), super::fixture::MANIFEST).expect("a manifest");
        for action in Action::ALL {
            let path = bundle.join("actions").join(action.as_str());
            fs::write(path, "#!/bin/sh\n").expect("a script");
        }
        let fake = Arc::default();
        Self { root, fake }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    /// Opens the instance as a new process would.
    fn open(&self) -> LocalInstance {
        let version_store = VersionStore::open(&self.path().join("work")).expect("a version store");
        let bundle = version_store
            .take_in(&self.path().join("db"))
            .expect("a bundle");
        let runner: Arc<dyn Runner> = self.fake.clone();
        LocalInstance::open(bundle, runner, Vec::new(), self.path(), "one").expect("an instance")
    }

    async fn act(&self, action: Action, parameters: Value) -> Result<LocalResult, LocalRunError> {
        let of_binding = matches!(action, Action::Bind | Action::Unbind);
        let request = LocalRequest {
            plan: None,
            parameters: serde_json::from_value(parameters).expect("an object"),
            binding: of_binding.then(|| "b".to_owned()),
        };
        self.open()
            .act(action, request, &IgnoringObserver::default())
            .await
    }
}

#[tokio::test]
async fn actions_without_a_broker_get_the_same_inputs_as_behind_a_broker() {
    let local = LocalFixture::new();
    local.fake.set_script(
        Action::Provision,
        Script::well()
            .state(json!({ "db": "d1" }))
            .credentials(json!({ "root": "toor" })),
    );
    local
        .act(Action::Provision, json!({ "size": 2 }))
        .await
        .expect("done");
    let bound = Script::well()
        .credentials(json!({ "user": "u" }))
        .binding_state(json!({ "login": "l" }));
    local.fake.set_script(Action::Bind, bound);
    let gift = local.act(Action::Bind, json!({})).await.expect("done");
    assert_eq!(
        gift.credentials.map(Value::Object),
        Some(json!({ "user": "u" }))
    );
    assert_eq!(local.fake.last_vars()["role"], json!("reader"));
    local
        .act(Action::Update, json!({ "size": 3 }))
        .await
        .expect("done");
    let vars = local.fake.last_vars();
    assert_eq!(
        (&vars["size"], &vars["state_db"]),
        (&json!(3), &json!("d1"))
    );
    local.act(Action::Unbind, json!({})).await.expect("done");
    assert_eq!(local.fake.last_vars()["binding_state_login"], json!("l"));
    local
        .act(Action::Deprovision, json!({}))
        .await
        .expect("done");
    let vars = local.fake.last_vars();
    assert_eq!(vars["_apb_provision_creds"], json!({ "root": "toor" }));
    assert_eq!(local.fake.left(), 0, "runs are removed");
    let kept = fs::read_to_string(local.path().join("instance-one.json")).expect("the file");
    assert!(!kept.contains("toor"), "what is gone is forgotten");
}

#[tokio::test]
async fn an_interrupted_action_continues_and_no_other_is_started_before() {
    let local = LocalFixture::new();
    local.fake.set_script(
        Action::Provision,
        Script::well().state(json!({ "db": "d1" })),
    );
    let mut owner = local.open();
    let begun = owner.start_only(Action::Provision, LocalRequest::default());
    begun.await.expect("started");
    drop(owner);
    let refused = local.act(Action::Deprovision, json!({})).await;
    let sentence = refused.err().map(|it| it.to_string()).unwrap_or_default();
    assert!(sentence.contains("provision was cut off"), "{sentence}");
    local
        .act(Action::Provision, json!({}))
        .await
        .expect("it goes on");
    assert_eq!(local.fake.actions(), [Action::Provision], "one run");
    local
        .act(Action::Deprovision, json!({}))
        .await
        .expect("done");
    assert_eq!(local.fake.last_vars()["state_db"], json!("d1"));
}

#[tokio::test]
async fn after_a_refusal_another_action_may_follow() {
    let local = LocalFixture::new();
    let mut owner = local.open();
    let unknown = LocalRequest {
        plan: Some("huge".to_owned()),
        ..LocalRequest::default()
    };
    let deaf = IgnoringObserver::default();
    let refused = owner.act(Action::Provision, unknown, &deaf);
    let sentence = refused.await.err().map(|it| it.to_string());
    assert!(sentence.unwrap_or_default().contains("small"));
    local.act(Action::Provision, json!({})).await.expect("done");
    local.fake.refuses(true);
    local
        .act(Action::Update, json!({}))
        .await
        .err()
        .expect("it is refused");
    local.fake.refuses(false);
    local
        .act(Action::Deprovision, json!({}))
        .await
        .expect("nothing was begun that must be ended first");
}

#[tokio::test]
async fn an_invalid_result_is_reported_to_the_author_who_can_clean_up() {
    let local = LocalFixture::new();
    let mut nonsense = Script::well().state(json!({ "db": "d1" }));
    nonsense.result.refused = vec!["credentials.json is no JSON.".to_owned()];
    local.fake.set_script(Action::Provision, nonsense);
    let failed = local.act(Action::Provision, json!({})).await;
    let sentence = failed.err().map(|it| it.to_string()).unwrap_or_default();
    assert!(sentence.contains("credentials.json"), "{sentence}");
    local
        .act(Action::Deprovision, json!({}))
        .await
        .expect("done");
    assert_eq!(local.fake.last_vars()["state_db"], json!("d1"));
}
