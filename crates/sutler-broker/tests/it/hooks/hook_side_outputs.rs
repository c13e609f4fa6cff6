//! Outputs of hooks other than results: log output, the instance's state from a binding, a plan's origin.

use crate::fixture::test_catalog::{self, LARGE, SMALL};
use crate::fixture::{Fixture, catalog_of};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use sutler_broker::{
    Admin, AuthorState, Bound, Broker, Cx, Error, OperationStatus, ProposedChange, Provisioned,
    Refusal, Result, UntypedService, Update, Updated,
};
use sutler_osb::{Catalog, CatalogSpec, Parameters};

/// Writes log output, and records the origin of every plan it is called with.
#[derive(Default)]
struct RecordingService {
    origins: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl UntypedService for RecordingService {
    async fn provision(&self, cx: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        self.origins.lock().unwrap().push(cx.plan().origin.clone());
        cx.log(0, "one\n").await?;
        cx.log(4, "two\n").await?;
        // A worker that takes over sends all output again.
        cx.log(0, "one\ntwo\nthree\n").await?;
        let earlier = cx.instance_state().await?.map(|it| it.0);
        if cx.parameters().0.contains_key("fail") {
            cx.save_state(&json!({ "left": "behind" })).await?;
            return Err(Error::failed("Told to."));
        }
        let state = json!({ "earlier": earlier, "names": [] });
        Ok(Provisioned::new(AuthorState(state)))
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Ok(())
    }

    fn updates(&self) -> bool {
        true
    }

    async fn update(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        update: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        assert!(!cx.instance_parameters().0.contains_key("new"));
        assert!(update.params.0.contains_key("new"));
        Ok(Updated::new(state.unwrap_or(AuthorState(Value::Null))))
    }

    async fn bind(&self, cx: &Cx, _: Option<AuthorState>) -> Result<Bound> {
        let name = cx.binding_id().map(|id| id.as_str().to_owned());
        let add = |state: Option<&AuthorState>| {
            let mut next = state.cloned().unwrap_or(AuthorState(json!({})));
            let names = next.0["names"].as_array_mut().expect("it is a list");
            names.push(json!(name));
            Ok(Some(next))
        };
        cx.change_instance_state(add).await?;
        let state = cx.instance_state().await?.map(|it| it.0);
        Ok(Bound::credentials(json!({ "state": state })))
    }

    fn check(&self, change: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        match change {
            ProposedChange::Move { from, to } => Err(Refusal::Invalid(format!(
                "No way from {} to {}.",
                from.plan_name.as_str(),
                to.plan_name.as_str()
            ))),
            ProposedChange::Provision(_)
            | ProposedChange::Update { .. }
            | ProposedChange::Bind(_) => Ok(()),
        }
    }
}

fn with_origins() -> Catalog {
    let mut spec: CatalogSpec = serde_json::from_value(test_catalog::catalog()).expect("a catalog");
    let services = spec.services.iter_mut().flatten();
    for plan in services.flat_map(|it| it.plans.iter_mut().flatten()) {
        plan.origin = Some(format!("origin of {}", plan.id.as_deref().unwrap_or("?")));
    }
    Catalog::try_from(spec).expect("the catalog keeps the rules")
}

async fn recording(catalog: Catalog) -> (Fixture, Arc<RecordingService>) {
    let recording = Arc::new(RecordingService::default());
    let broker = Broker::new(catalog)
        .basic_auth("user", "s3cret")
        .admin(Admin::at("/admin").without_auth())
        .other_services(recording.clone())
        .in_memory();
    let running = broker.start().await.expect("the broker starts");
    (Fixture::around(running), recording)
}

#[tokio::test]
async fn hook_output_is_stored_once_and_shown_to_operators_only() {
    let (kit, _) = recording(catalog_of(test_catalog::catalog())).await;
    let accepted = kit.provision("i").query("accepts_incomplete", "true");
    let operation = accepted.send().await.is(202).operation();
    kit.poll_until_done(kit.poll("i").operation(&operation))
        .await;
    let path = format!("/admin/v1/operations/{operation}/log");
    let log = kit.request("GET", path.clone()).send().await.is(200).json;
    let texts: Vec<&str> = log["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["text"].as_str())
        .collect();
    assert_eq!(texts.concat(), "one\ntwo\nthree\n", "{log}");
    assert_eq!(log["ended"], true);
    let next = log["next"].as_str().expect("a cursor");
    let rest = kit.request("GET", path.clone()).query("after", next);
    assert_eq!(rest.send().await.is(200).json["items"], json!([]));
    kit.request("GET", path)
        .query("after", "x")
        .send()
        .await
        .is(400);
    let id = operation.parse().expect("an operation is a UUID");
    assert_eq!(
        kit.running.operation_status(id).await.ok(),
        Some(OperationStatus::Ended)
    );
    let nobody = uuid::Uuid::nil();
    assert_eq!(
        kit.running.operation_status(nobody).await.ok(),
        Some(OperationStatus::Unknown)
    );
}

#[tokio::test]
async fn bindings_change_the_state_of_their_instance_and_lose_nothing() {
    let (kit, _) = recording(catalog_of(test_catalog::catalog())).await;
    kit.has_instance("i").await;
    let names: Vec<String> = (0..8).map(|nth| format!("b{nth}")).collect();
    let requests = names.iter().map(|name| kit.bind("i", name).send());
    let requests: tokio::task::JoinSet<_> = requests.collect();
    for reply in requests.join_all().await {
        reply.is(201);
    }
    let last = kit.bind("i", "last").send().await.is(201).json;
    let mut names: Vec<&str> = last["credentials"]["state"]["names"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 9, "{names:?}");
    assert_eq!(names.first(), Some(&"b0"));
}

#[tokio::test]
async fn a_provision_gets_the_state_saved_by_a_failed_one() {
    let (kit, _) = recording(catalog_of(test_catalog::catalog())).await;
    let failing = kit.provision("i").parameters(json!({ "fail": true }));
    failing.send().await.is(500);
    kit.has_instance("i").await;
    let bound = kit.bind("i", "b").send().await.is(201).json;
    let earlier = &bound["credentials"]["state"]["earlier"];
    assert_eq!(*earlier, json!({ "left": "behind" }));
    let change = kit.update("i").parameters(json!({ "new": 1 }));
    change.send().await.is(200);
}

#[tokio::test]
async fn the_origin_of_a_plan_is_pinned_and_never_shown() {
    let (kit, recording) = recording(with_origins()).await;
    kit.has_instance("i").await;
    let origins = recording.origins.lock().unwrap().clone();
    assert_eq!(origins, [Some(format!("origin of {SMALL}"))]);
    let shown = kit.catalog().send().await.is(200).json.to_string();
    assert!(!shown.contains("origin"), "{shown}");
}

#[tokio::test]
async fn a_service_may_refuse_a_change_between_two_plans() {
    let (kit, _) = recording(catalog_of(test_catalog::catalog())).await;
    kit.has_instance("i").await;
    let moved = kit.update("i").only_plan(LARGE);
    let refused = moved.send().await.is(400);
    assert_eq!(refused.description(), "No way from small to large.");
}
