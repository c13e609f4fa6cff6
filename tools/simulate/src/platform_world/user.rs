//! A simulated user: creates, changes, deletes, binds and unbinds at random, gives orders about intents, and often goes
//! away before the answer.

use super::checker::PlatformChecker;
use super::replicas::{PlatformProcess, PlatformReplicas};
use super::setup::{name, namespace, person};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sutler_platform::author::Author;
use sutler_platform::commands::{
    ChangeOptions, CommandError, InstancePatch, WantedBinding, WantedInstance, WantedSecret,
};
use sutler_platform::lifecycle::binding::{BindingReply, TargetResource, Transforms};
use sutler_platform::lifecycle::instance::{Instance, InstanceReply};
use sutler_platform::lifecycle::intent::{IntentEnd, IntentNumber, IntentState, OnFailure};
use sutler_platform::records::ResourceName;
use sutler_platform::spec::{ParameterSource, Parameters, ParametersPatch};

/// The only secret; it is there only after somebody wrote it.
const SECRET: &str = "init";
/// Names of bindings of every instance.
const BINDINGS: usize = 2;

/// A user.
pub(crate) struct User {
    pub username: String,
    pub replicas: Arc<PlatformReplicas>,
    pub checker: Arc<PlatformChecker>,
}

/// A command about one instance, or one of its bindings.
#[derive(Clone, Copy, Debug)]
enum UserCommand {
    Create,
    PatchPlan,
    PatchParameters,
    PatchLabels,
    PatchAnnotations,
    PutSecret,
    Touch,
    Delete,
    DeleteAll,
    Undelete,
    Cancel,
    Resume,
    Retry,
    Rollback,
    Abandon,
    Bind,
    Unbind,
    UndeleteBinding,
    Rotate,
    RetryBinding,
    CancelBinding,
    ResumeBinding,
    AbandonBinding,
}

/// Commands by how often they are given.
const COMMANDS: [UserCommand; 38] = {
    use UserCommand::*;
    [
        Create,
        Touch,
        Resume,
        Retry,
        Cancel,
        Undelete,
        PatchPlan,
        PatchPlan,
        PatchPlan,
        PatchParameters,
        PatchParameters,
        PatchParameters,
        PatchParameters,
        PatchLabels,
        PatchLabels,
        Touch,
        Delete,
        DeleteAll,
        DeleteAll,
        DeleteAll,
        Undelete,
        Cancel,
        Resume,
        Retry,
        Rollback,
        Abandon,
        Bind,
        Bind,
        Bind,
        Bind,
        Unbind,
        Unbind,
        UndeleteBinding,
        Rotate,
        RetryBinding,
        CancelBinding,
        ResumeBinding,
        AbandonBinding,
    ]
};

impl User {
    /// Gives commands until it is aborted.
    pub(crate) async fn run(&self) {
        let choices = &self.replicas.network.choices;
        let scenario = &self.replicas.scenario;
        loop {
            let pause = choices.between(Duration::from_millis(10), scenario.user_pause);
            tokio::time::sleep(pause).await;
            let Some(process) = self.replicas.process(choices.index(self.replicas.count())) else {
                continue;
            };
            let instance = format!("db{}", choices.index(scenario.instances));
            let timeout = choices.between(Duration::from_millis(20), scenario.user_timeout);
            let command = match self.stored(&instance) {
                None if choices.percent(80) => UserCommand::Create,
                _ if choices.percent(scenario.habits.secrets / 2) => UserCommand::PutSecret,
                _ if choices.percent(scenario.habits.annotations) => UserCommand::PatchAnnotations,
                _ => choices.pick(&COMMANDS),
            };
            self.give(&process, &instance, command, timeout).await;
        }
    }

    async fn give(
        &self,
        process: &PlatformProcess,
        instance: &str,
        command: UserCommand,
        timeout: Duration,
    ) {
        let history = &self.replicas.network.history;
        history.record("command", || {
            format!(
                "{}: {command:?} {instance} at {}",
                self.username, process.name
            )
        });
        let given = self.carry_out(process, instance, command);
        let answer = tokio::select! {
            biased;
            () = process.link.died() => None,
            answer = tokio::time::timeout(timeout, given) => answer.ok(),
        };
        history.record("command answer", || match answer {
            Some(Ok(reply)) => format!("{}: {command:?} -> {reply}", self.username),
            Some(Err(error)) => format!("{}: {command:?} -> refused: {error}", self.username),
            None => format!("{}: {command:?} -> no answer", self.username),
        });
    }

    fn author(&self) -> Author {
        person(&self.username)
    }

    fn options(&self, shown: Option<u64>) -> ChangeOptions {
        let choices = &self.replicas.network.choices;
        let mut options = ChangeOptions::by(self.author());
        if choices.percent(20) {
            options.on_failure = OnFailure::Halt;
        }
        options.forced = choices.percent(30);
        // Sometimes it is a revision that is not shown any more.
        options.if_revision = shown
            .filter(|_| choices.percent(30))
            .map(|it| it.saturating_sub(choices.below(2)));
        options
    }

    /// The instance as it is stored now.
    fn stored(&self, instance: &str) -> Option<Instance> {
        self.checker.known(|known| {
            let mut instances = known.instances.values();
            let found =
                instances.find(|it| it.tombstone.is_none() && it.basis.spec().name == instance);
            found.cloned()
        })
    }

    /// The number of an intent, most often of one for which the command has a meaning.
    fn number(&self, stored: Option<&Instance>, command: UserCommand) -> IntentNumber {
        let choices = &self.replicas.network.choices;
        let Some(stored) = stored else {
            return IntentNumber(1);
        };
        let pending = stored.pending.iter().filter(|it| match command {
            UserCommand::Resume => matches!(it.state, IntentState::OnHold(_)),
            UserCommand::Cancel => true,
            _ => false,
        });
        let ended = stored.ended.iter().filter(|it| match command {
            UserCommand::Retry => matches!(it.end, IntentEnd::Rejected(_) | IntentEnd::Failed(_)),
            UserCommand::Rollback => it.end == IntentEnd::Succeeded,
            _ => false,
        });
        let meant: Vec<IntentNumber> = pending
            .map(|it| it.number)
            .chain(ended.map(|it| it.number))
            .collect();
        match meant.is_empty() || choices.percent(20) {
            true => IntentNumber(1 + choices.below(stored.generation)),
            false => choices.pick(&meant),
        }
    }

    async fn carry_out(
        &self,
        process: &PlatformProcess,
        instance: &str,
        command: UserCommand,
    ) -> Result<String, CommandError> {
        use UserCommand::*;
        match command {
            PutSecret => self.put_secret(process).await,
            Create | PatchPlan | PatchParameters | PatchLabels | PatchAnnotations | Touch
            | Delete | DeleteAll | Undelete | Cancel | Resume | Retry | Rollback | Abandon => {
                self.change_instance(process, instance, command).await
            }
            Bind | Unbind | UndeleteBinding | Rotate | RetryBinding | CancelBinding
            | ResumeBinding | AbandonBinding => {
                self.change_binding(process, instance, command).await
            }
        }
    }

    async fn change_instance(
        &self,
        process: &PlatformProcess,
        instance: &str,
        command: UserCommand,
    ) -> Result<String, CommandError> {
        use UserCommand::*;
        let choices = &self.replicas.network.choices;
        let platform = &process.platform;
        let (space, id) = (namespace(), name(instance));
        let stored = self.stored(instance);
        let options = self.options(stored.as_ref().map(|it| it.revision));
        let number = self.number(stored.as_ref(), command);
        let by = self.author();
        let outcome = match command {
            Create => {
                let wanted = self.wanted(instance);
                let options = ChangeOptions::by(by);
                platform.create_instance(&space, &wanted, &options).await
            }
            PatchPlan | PatchParameters | PatchLabels | PatchAnnotations => {
                let patch = self.patch(command);
                platform.patch_instance(&space, &id, &patch, &options).await
            }
            Touch => platform.touch_instance(&space, &id, &options).await,
            Delete => platform.delete_instance(&space, &id, false, &by).await,
            DeleteAll => platform.delete_instance(&space, &id, true, &by).await,
            Undelete => platform.undelete_instance(&space, &id, &by).await,
            Cancel => platform.cancel_intent(&space, &id, number, &by).await,
            Resume => platform.resume_intent(&space, &id, number, &options).await,
            Retry => platform.retry_intent(&space, &id, number, &options).await,
            Rollback => {
                platform
                    .rollback_instance(&space, &id, number, &options)
                    .await
            }
            // Rarely: it takes everything away.
            _ if choices.percent(30) => platform.abandon_instance(&space, &id, &by.into()).await,
            _ => return Ok("not today".to_owned()),
        }?;
        self.check_author(&outcome.instance, &outcome.reply);
        Ok(format!("{:?}", outcome.reply))
    }

    async fn put_secret(&self, process: &PlatformProcess) -> Result<String, CommandError> {
        let number = self.replicas.network.choices.below(4);
        let wanted = secret(number);
        let (space, id, by) = (namespace(), name(SECRET), self.author());
        let platform = &process.platform;
        let put = platform.put_secret(&space, &id, &wanted, &by).await?;
        Ok(format!("revision {}", put.revision))
    }

    /// I-7: an accepted intent is that of who asked for it.
    fn check_author(&self, instance: &Instance, reply: &InstanceReply) {
        let InstanceReply::Accepted(number) = reply else {
            return;
        };
        let author = instance.intent(*number).map(|it| &it.author.username);
        if author.is_some_and(|it| *it != self.username) {
            let history = &self.replicas.network.history;
            history.violate(format!(
                "I-7: {number} of {} is that of {author:?}",
                self.username
            ));
        }
    }

    fn wanted(&self, instance: &str) -> WantedInstance {
        let choices = &self.replicas.network.choices;
        let habits = &self.replicas.scenario.habits;
        let parameters = json!({ "disk": choices.below(3) });
        let has_secret = choices.percent(habits.secrets);
        let source = || ParameterSource {
            secret: SECRET.to_owned(),
            key: None,
            watch: choices.percent(70),
        };
        let chosen = choices.percent(habits.chosen_ids);
        let osb_id = chosen.then(|| format!("chosen-{}", choices.below(3)));
        WantedInstance {
            name: name(instance),
            broker: None,
            class: "postgresql".to_owned(),
            plan: choices.pick(&["small", "large"]).to_owned(),
            maintenance_version: None,
            parameters: Parameters::new(parameters.as_object().cloned().unwrap_or_default()),
            parameter_sources: has_secret.then(source).into_iter().collect(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            osb_id: osb_id.map(|id| id.try_into().expect("an id")),
        }
    }

    fn patch(&self, command: UserCommand) -> InstancePatch {
        let choices = &self.replicas.network.choices;
        let mut patch = InstancePatch::default();
        match command {
            UserCommand::PatchPlan => {
                patch.plan = Some(choices.pick(&["small", "large"]).to_owned());
            }
            UserCommand::PatchAnnotations => {
                let value = choices.percent(70).then(|| choices.below(3).to_string());
                patch.annotations.insert("note".to_owned(), value);
            }
            UserCommand::PatchLabels => {
                let value = choices.percent(70).then(|| choices.below(3).to_string());
                patch.labels.insert("team".to_owned(), value);
            }
            _ => {
                let key = choices.pick(&["disk", "memory"]);
                let value = match choices.below(5) {
                    0 => json!(null),
                    number => json!(number),
                };
                let parameters = json!({ key: value });
                let parameters = parameters.as_object().cloned().unwrap_or_default();
                patch.parameters = ParametersPatch::new(parameters);
            }
        }
        patch
    }

    async fn change_binding(
        &self,
        process: &PlatformProcess,
        instance: &str,
        command: UserCommand,
    ) -> Result<String, CommandError> {
        use UserCommand::*;
        let choices = &self.replicas.network.choices;
        let platform = &process.platform;
        let (space, by) = (namespace(), self.author());
        let id = name(&format!("{instance}-b{}", choices.index(BINDINGS)));
        let number = IntentNumber(1 + choices.below(4));
        let outcome = match command {
            Bind => {
                let wanted = wanted_binding(&id, instance);
                platform.create_binding(&space, &wanted, &by, None).await
            }
            Unbind => platform.delete_binding(&space, &id, &by).await,
            UndeleteBinding => platform.undelete_binding(&space, &id, &by).await,
            Rotate => platform.rotate_binding(&space, &id, &by, None).await,
            RetryBinding => {
                platform
                    .retry_binding_intent(&space, &id, number, &by)
                    .await
            }
            CancelBinding => {
                platform
                    .cancel_binding_intent(&space, &id, number, &by)
                    .await
            }
            ResumeBinding => {
                platform
                    .resume_binding_intent(&space, &id, number, &by)
                    .await
            }
            _ if choices.percent(50) => platform.abandon_binding(&space, &id, &by.into()).await,
            _ => return Ok("not today".to_owned()),
        }?;
        if let BindingReply::Accepted(number) = &outcome.reply {
            let author = outcome
                .binding
                .intent(*number)
                .map(|it| &it.author.username);
            if author.is_some_and(|it| *it != self.username) {
                let history = &self.replicas.network.history;
                history.violate(format!("I-7: {number} of a binding is that of {author:?}"));
            }
        }
        Ok(format!("{:?}", outcome.reply))
    }
}

/// Contents of the secret: one parameter.
fn secret(number: u64) -> WantedSecret {
    let value = number.to_string().into_bytes();
    WantedSecret(BTreeMap::from([("size".to_owned(), value)]))
}

fn wanted_binding(id: &ResourceName, instance: &str) -> WantedBinding {
    WantedBinding {
        name: id.clone(),
        instance: name(instance),
        parameters: Parameters::new(serde_json::Map::new()),
        parameter_sources: Vec::new(),
        target: TargetResource::Credentials,
        transforms: Transforms::default(),
        rotation: None,
        osb_id: None,
    }
}
