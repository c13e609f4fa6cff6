//! Instances and bindings of a test: created by commands, and read.

use super::{BROKER, NAMESPACE, TestPlatform, person};
use crate::binding_changes::{self, change_binding, commit_change};
use crate::credentials::{DeliverCredentialsError, DeliveredCredentials, delivered_credentials};
use crate::instance_events::change_instance;
use crate::lifecycle::binding::{
    self, BindFacts, BindSpec, Binding, BindingCommand, BindingDecision, InstanceReadiness,
    TargetResource, Transforms,
};
use crate::lifecycle::instance::{
    self, ChangeFacts, ChangeRequest, Instance, InstanceCommand, InstanceDecision,
};
use crate::lifecycle::intent::IntentCause;
use crate::records::Record;
use crate::spec::samples::parameters;
use crate::spec::{Parameters, ParametersPatch, Spec, SpecPatch};
use crate::writes::{BindingChange, InstanceChange, instance_commit};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use sutler_journal::{BYTES_MAX, Commit, Key};
use sutler_records::LoadedDocument;

/// What is known of a bind to a live instance.
pub(crate) fn facts() -> BindFacts {
    BindFacts {
        instance: InstanceReadiness::Live,
        violations: Vec::new(),
        rotatable: false,
    }
}

/// A request to bind.
pub(crate) fn bind_request(instance: &Instance, name: &str) -> binding::CreateRequest {
    binding::CreateRequest {
        namespace: NAMESPACE.to_owned(),
        instance: instance.uid,
        name: name.to_owned(),
        spec: BindSpec {
            parameters: Parameters::default(),
            parameter_sources: Vec::new(),
            target: TargetResource::Credentials,
        },
        transforms: Transforms::default(),
        rotation: None,
        osb_id: None,
        by: person("ann"),
        idempotency_key: None,
        facts: facts(),
    }
}

/// What is known of a change.
pub(crate) fn change_facts(name: &str) -> ChangeFacts {
    ChangeFacts {
        request: ChangeRequest::of_platform(person(name), IntentCause::User),
        violations: Vec::new(),
        catalog_revision: 1,
    }
}

/// A change of a parameter that has so many bytes.
pub(crate) fn large_change(length: usize) -> instance::Event {
    let mut values = Map::new();
    values.insert("disk".to_owned(), json!("y".repeat(length)));
    let patch = SpecPatch {
        parameters: ParametersPatch::new(values),
        ..SpecPatch::default()
    };
    let command = InstanceCommand::Patch(patch, change_facts("ann"));
    instance::Event::Command(Box::new(command))
}

impl TestPlatform {
    /// Adds so much to an instance that few bytes are left.
    pub(crate) async fn fill(&self, key: &Key, add: impl Fn(&mut Instance, String)) {
        let documents = &self.context.records.documents;
        let was: LoadedDocument<Record<Instance>> =
            self.context.records.load(key).await.expect("it is read");
        let mut full = was.state.get().expect("it exists").clone();
        let stored = serde_json::to_vec(&full).expect("JSON").len();
        add(&mut full, "x".repeat(BYTES_MAX - stored - 20_000));
        let commit = documents.put(Commit::new(), key, &was, &Record::of(full));
        documents.store.commit(&commit).await.expect("it has room");
    }

    /// Adds so much to the history of an instance that few bytes are left.
    pub(crate) async fn fill_history(&self, key: &Key) {
        let add = |it: &mut Instance, filler: String| {
            let mut spec = it.basis.spec().clone();
            spec.parameters = parameters(json!({ "filler": filler }));
            it.managers.push_back(("a tool".to_owned(), spec));
        };
        self.fill(key, add).await;
    }

    /// Accepts the create of an instance.
    pub(crate) async fn create_instance(&self) -> Key {
        let (key, commit) = self.create_commit().await;
        let written = self.context.records.documents.store.commit(&commit).await;
        written.expect("it is written");
        key
    }

    /// The commit that accepts the create of an instance.
    pub(crate) async fn create_commit(&self) -> (Key, Commit) {
        let create = instance::CreateRequest {
            namespace: NAMESPACE.to_owned(),
            broker: BROKER,
            service: "postgresql".try_into().expect("an id"),
            spec: Spec {
                plan: "small".try_into().expect("an id"),
                maintenance_version: None,
                parameters: Parameters::default(),
                parameter_sources: Vec::new(),
                labels: BTreeMap::new(),
                annotations: BTreeMap::new(),
                name: "db".to_owned(),
            },
            osb_id: None,
            source: None,
            facts: change_facts("ann"),
        };
        let context = self.context.as_ref();
        let view = context.brokers.view(BROKER).await.expect("a broker");
        let command = InstanceCommand::Create(create);
        let event = instance::Event::Command(Box::new(command));
        let decision = crate::executor::decide_instance(context, &view, None, event);
        let decision = decision.expect("it is accepted");
        let key = context.records.keys.instance(NAMESPACE, decision.next.uid);
        let change = InstanceChange {
            context,
            broker: &view,
            key: &key,
            was: &LoadedDocument::<Record<Instance>>::absent(),
            decision: &decision,
            now: context.records.now(),
        };
        let commit = instance_commit(&change, None, |_| None).await;
        (key, commit.expect("it is a commit"))
    }

    /// An instance that the broker confirmed.
    pub(crate) async fn live_instance(&self) -> (Key, Instance) {
        let key = self.create_instance().await;
        self.until_instance(&key, "it is live", |it| it.confirmed().is_some())
            .await;
        let instance = self.read(&key).await;
        (key, instance)
    }

    /// Accepts a bind.
    pub(crate) async fn bind(&self, request: binding::CreateRequest) -> Key {
        let context = self.context.as_ref();
        let view = context.brokers.view(BROKER).await.expect("a broker");
        let instance = context.records.keys.instance(NAMESPACE, request.instance);
        let instance: Instance = self.read(&instance).await;
        let command = BindingCommand::Create(Box::new(request));
        let event = binding::Event::Command(Box::new(command));
        let decision = binding_changes::decide(context, &view, None, event);
        let decision = decision.expect("it is accepted");
        let (instance_uid, uid) = (decision.next.instance, decision.next.uid);
        let key = context.records.keys.binding(NAMESPACE, instance_uid, uid);
        let change = BindingChange {
            context,
            key: &key,
            instance: &instance,
            was: &LoadedDocument::<Record<Binding>>::absent(),
            decision: &decision,
            now: context.records.now(),
        };
        let written = commit_change(&change, |commit| commit).await;
        assert!(written.expect("it is written"));
        key
    }

    /// A binding with credentials.
    pub(crate) async fn bound(&self, instance: &Instance, name: &str) -> Key {
        let key = self.bind(bind_request(instance, name)).await;
        self.until_binding(&key, "it is bound", |it| it.current().is_some())
            .await;
        key
    }

    /// A person asks for something of a binding.
    pub(crate) async fn ask(&self, key: &Key, command: BindingCommand) -> BindingDecision {
        let event = binding::Event::Command(Box::new(command));
        let decision = change_binding(&self.context, key, event).await;
        decision.expect("it is accepted")
    }

    /// A person asks for something of an instance.
    pub(crate) async fn ask_instance(
        &self,
        key: &Key,
        command: InstanceCommand,
    ) -> InstanceDecision {
        let event = instance::Event::Command(Box::new(command));
        let decision = change_instance(&self.context, key, |_, _| event.clone()).await;
        decision.expect("it is accepted")
    }

    /// Waits until a binding is so.
    pub(crate) async fn until_binding(
        &self,
        key: &Key,
        what: &str,
        is_so: impl Fn(&Binding) -> bool,
    ) {
        self.until(what, async || is_so(&self.read::<Binding>(key).await))
            .await;
    }

    /// Waits until an instance is so.
    pub(crate) async fn until_instance(
        &self,
        key: &Key,
        what: &str,
        is_so: impl Fn(&Instance) -> bool,
    ) {
        self.until(what, async || is_so(&self.read::<Instance>(key).await))
            .await;
    }

    /// What is delivered of a binding.
    pub(crate) async fn credentials(
        &self,
        key: &Key,
    ) -> Result<DeliveredCredentials, DeliverCredentialsError> {
        delivered_credentials(&self.read::<Binding>(key).await)
    }

    /// The password that is delivered of a binding.
    pub(crate) async fn password(&self, key: &Key) -> String {
        let delivered = self.credentials(key).await.expect("credentials");
        let password = delivered.credentials.0.get("password");
        let password = password.and_then(serde_json::Value::as_str);
        password.expect("a password").to_owned()
    }
}
