//! Implements the framework's hooks: each collects the inputs of an action and turns its result into a response.
//!
//! The part they share is `run_action.rs`.

use super::BundleService;
use super::build_run::all_secret_names;
use super::outcome::Outcome;
use super::request_checks::{fits, leads_to, refuse_template_texts, to_sentence};
use super::run_action::{action_inputs, by, pin, remembered, remembered_binding, unsuccessful};
use super::state::{BindingState, BundlePin, InstanceState, StateTooLargeError};
use super::vars::{ActionInputs, request_texts};
use crate::version_store::Bundle;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::time::Duration;
use sutler_broker::{
    Asynchrony, AuthorState, Bound, Cx, Error, InstanceSpec, Policy, Predecessor, ProposedChange,
    ProposedRequest, Provenance, Provisioned, Refusal, Result, UntypedService, Update, Updated,
};
use sutler_bundle::{
    Action, AsyncSupport, DashboardOf, Manifest, UpgradeError, UpgradePath, check_upgrade,
    refuse_reserved, refuse_templates,
};
use sutler_osb::{
    FetchInstanceResponse, InstanceId, OperationKind, Parameters, PinnedPlan, ServiceId,
};
use sutler_runner::{RunResult, Vars};

/// The runner enforces the deadlines of runs, even without a broker. The framework must not give up an operation
/// before: the result of a run that ended while no broker was running is still to be read.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Attempts of an operation whose runs get lost, if the bundle allows to run it again.
const ATTEMPTS_MAX: u32 = 3;

#[async_trait]
impl UntypedService for BundleService {
    async fn provision(&self, cx: &Cx, parameters: Parameters) -> Result<Provisioned<AuthorState>> {
        let earlier = remembered(cx.instance_state().await?.as_ref())?;
        let bundle = self.bundle(cx, None).await?;
        let mut state = earlier.unwrap_or_default();
        state.bundle = pin(&bundle);
        let before = state.as_vars();
        let inputs = ActionInputs {
            parameters: Some(&parameters.0),
            state: before.as_ref(),
            ..action_inputs(cx, &bundle)
        };
        match self.act(cx, Action::Provision, &bundle, inputs).await? {
            Outcome::Done(result) => {
                state.promote_aside();
                if let Err(fault) = take_over(&mut state, &result, cx, Action::Provision) {
                    state.set_aside(result.state.as_ref());
                    cx.save_state(&state).await?;
                    return Err(Error::failed(fault.to_string()));
                }
                Ok(Provisioned::new(state.kept()))
            }
            Outcome::Failed { sentence, aside } => {
                state.set_aside(aside.as_ref());
                cx.save_state(&state).await?;
                Err(Error::failed(sentence))
            }
            Outcome::Again { sentence, aside } => {
                if aside.is_some() {
                    state.set_aside(aside.as_ref());
                    cx.save_state(&state).await?;
                }
                Err(Error::transient(sentence))
            }
            other => Err(unsuccessful(other)),
        }
    }

    async fn deprovision(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        let state = remembered(state.as_ref())?;
        let bundle = self.bundle(cx, state.as_ref()).await?;
        let state = state.unwrap_or_default();
        let before = state.as_vars();
        let inputs = ActionInputs {
            state: before.as_ref(),
            provision_credentials: state.credentials.as_ref(),
            ..action_inputs(cx, &bundle)
        };
        match self.act(cx, Action::Deprovision, &bundle, inputs).await? {
            Outcome::Done(_) | Outcome::NothingToDo => Ok(()),
            other => Err(unsuccessful(other)),
        }
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
        let state = remembered(state.as_ref())?.unwrap_or_default();
        if update.context_only {
            return Ok(Updated::new(state.kept()));
        }
        // An upgrade runs the version that the catalog had when it was requested.
        let upgrades = update.upgrades();
        let pinned = (!upgrades).then_some(&state);
        let bundle = self.bundle(cx, pinned).await?;
        let before = state.as_vars();
        let previous = update.previous_plan.plan_name.as_str();
        let earlier = self.secrets_before(&state, upgrades);
        let inputs = ActionInputs {
            parameters: Some(&update.params.0),
            previous: Some((&cx.instance_parameters().0, previous)),
            previous_version: upgrades.then(|| state.bundle.version.as_deref().unwrap_or_default()),
            also_secret: &earlier,
            state: before.as_ref(),
            ..action_inputs(cx, &bundle)
        };
        match self.act(cx, Action::Update, &bundle, inputs).await? {
            Outcome::Done(result) => {
                // Bindings that ended meanwhile may have changed it.
                let latest = remembered(cx.instance_state().await?.as_ref())?;
                let mut state = latest.unwrap_or(state);
                if let Err(fault) = take_over(&mut state, &result, cx, Action::Update) {
                    cx.save_state(&state).await?;
                    return Err(Error::failed(fault.to_string()));
                }
                if upgrades {
                    let before = std::mem::replace(&mut state.bundle, pin(&bundle));
                    let BundlePin { name, version, .. } = &state.bundle;
                    tracing::info!(bundle = %name, from = ?before.version, to = ?version, "an instance was moved on to another version");
                }
                Ok(Updated::new(state.kept()))
            }
            other => Err(unsuccessful(other)),
        }
    }

    async fn bind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<Bound> {
        self.bind_after(cx, state, None).await
    }

    async fn rotate(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        predecessor: Predecessor,
    ) -> Result<Bound> {
        self.bind_after(cx, state, Some(predecessor)).await
    }

    async fn unbind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        let own = remembered_binding(cx)?;
        if own.shared {
            return Ok(());
        }
        let state = remembered(state.as_ref())?.unwrap_or_default();
        let bundle = self.bundle(cx, Some(&state)).await?;
        let (before, own_before) = (state.as_vars(), own.as_vars());
        let inputs = ActionInputs {
            bind_parameters: Some(&cx.parameters().0),
            state: before.as_ref(),
            binding_state: own_before.as_ref(),
            provision_credentials: state.credentials.as_ref(),
            bind_credentials: own.credentials.as_ref(),
            ..action_inputs(cx, &bundle)
        };
        match self.act(cx, Action::Unbind, &bundle, inputs).await? {
            Outcome::Done(result) => self.add_to_instance(cx, &result, Action::Unbind).await,
            Outcome::NothingToDo => {
                let name = &bundle.manifest.name;
                tracing::warn!(bundle = %name, "a bundle has no unbind action: nothing was revoked");
                Ok(())
            }
            other => Err(unsuccessful(other)),
        }
    }

    fn dashboard_url(&self, instance: &InstanceId, spec: &InstanceSpec) -> Option<String> {
        let bundle = self.offered(spec.service_id.as_str())?;
        let plan = self.plan_name(spec.service_id.as_str(), spec.plan_id.as_str())?;
        let of = DashboardOf {
            instance_id: instance.as_str(),
            plan: &plan,
            bundle: &bundle.manifest.name,
        };
        Some(bundle.manifest.dashboard.as_ref()?.url(of))
    }

    fn policy(&self, verb: OperationKind, plan: &PinnedPlan) -> Policy {
        let action = action_of(verb);
        let origin = plan.origin.as_ref();
        let configured = origin.and_then(|it| {
            let version_store = &self.parts.version_store;
            version_store.read_manifest(it, |manifest| manifest.rules(action).asynchrony)
        });
        let policy = Policy {
            deadline: NEVER,
            attempts_max: ATTEMPTS_MAX,
            ..Policy::default()
        };
        match configured {
            None => policy,
            Some(support) => Policy {
                asynchrony: asynchrony_of(support),
                ..policy
            },
        }
    }

    fn check(&self, proposed: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        let none = Map::new();
        let (service, parameters): (&ServiceId, &Map<String, Value>) = match proposed {
            ProposedChange::Provision(spec) => (&spec.service_id, &spec.parameters.0),
            ProposedChange::Update {
                there,
                to,
                parameters,
                upgrades,
            } => {
                let change = parameters.map_or(&none, |it| &it.0);
                self.check_change(&there.parameters.0, to, change)?;
                if *upgrades {
                    self.check_upgrade(there, to, change)?;
                }
                (&there.service_id, change)
            }
            ProposedChange::Bind(spec) => (&spec.service_id, &spec.parameters.0),
            ProposedChange::Move { from, to } => return self.check_move(from, to),
        };
        let allowed = refuse_reserved(parameters).and_then(|()| {
            // Texts for a version that is not offered any more are marked as literal when it runs.
            let bundle = self.offered(service.as_str());
            bundle.map_or(Ok(()), |it| refuse_templates(&it.manifest, parameters))
        });
        allowed.map_err(|clause| Refusal::Invalid(to_sentence(&clause)))
    }

    fn check_request(&self, request: &ProposedRequest<'_>) -> std::result::Result<(), Refusal> {
        let texts = request_texts(request);
        let read = |manifest: &Manifest| refuse_template_texts(manifest, &texts);
        let origin = request.plan.origin.as_ref();
        let judged = origin.and_then(|it| self.parts.version_store.read_manifest(it, read));
        let allowed = judged.unwrap_or(Ok(()));
        allowed.map_err(|clause| Refusal::Invalid(to_sentence(&clause)))
    }

    fn provenance(&self, state: Option<&AuthorState>) -> Option<Provenance> {
        let BundlePin {
            name,
            version,
            digest,
        } = InstanceState::read(state?).ok()?.bundle;
        (!digest.is_empty()).then_some(Provenance {
            name,
            version,
            digest,
        })
    }

    async fn fetch_instance(
        &self,
        _instance: &InstanceId,
        state: Option<AuthorState>,
        mut stored: FetchInstanceResponse,
    ) -> Result<FetchInstanceResponse> {
        let inputs = remembered(state.as_ref())?.and_then(|it| it.dashboard_url);
        stored.dashboard_url = inputs.or(stored.dashboard_url);
        Ok(stored)
    }
}

impl BundleService {
    async fn bind_after(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        predecessor: Option<Predecessor>,
    ) -> Result<Bound> {
        let state = remembered(state.as_ref())?.unwrap_or_default();
        let bundle = self.bundle(cx, Some(&state)).await?;
        if self.shares(&bundle) {
            return share(&state);
        }
        let mut own = remembered_binding(cx)?;
        let (before, own_before) = (state.as_vars(), own.as_vars());
        let inputs = ActionInputs {
            bind_parameters: Some(&cx.parameters().0),
            predecessor: predecessor.as_ref().map(|it| it.binding_id.as_str()),
            state: before.as_ref(),
            binding_state: own_before.as_ref(),
            provision_credentials: state.credentials.as_ref(),
            ..action_inputs(cx, &bundle)
        };
        match self.act(cx, Action::Bind, &bundle, inputs).await? {
            Outcome::Done(result) => {
                own.credentials = result.credentials.as_ref().map(|it| it.0.clone());
                let merged = own.merge(result.binding_state.as_ref());
                let kept = match merged {
                    Ok(()) => self.add_to_instance(cx, &result, Action::Bind).await,
                    Err(fault) => Err(Error::failed(fault.to_string())),
                };
                if let Err(error) = kept {
                    // The binding exists: the unbind that removes it needs its state.
                    own.keep_what_fits(result.binding_state.as_ref());
                    cx.save_state(&own).await?;
                    return Err(error);
                }
                let shown = own.credentials.clone().unwrap_or_default();
                Bound::credentials(Value::Object(shown)).state(&own)
            }
            Outcome::Failed { sentence, aside } => {
                self.leave(cx, own, aside.as_ref()).await?;
                Err(Error::failed(sentence))
            }
            Outcome::Again { sentence, aside } => {
                self.leave(cx, own, aside.as_ref()).await?;
                Err(Error::transient(sentence))
            }
            other => Err(unsuccessful(other)),
        }
    }

    /// Stores the state set by a failed bind, for the unbind that cleans up.
    async fn leave(&self, cx: &Cx, mut own: BindingState, aside: Option<&Vars>) -> Result<()> {
        own.keep_what_fits(aside);
        match own.state.is_empty() {
            true => Ok(()),
            false => cx.save_state(&own).await,
        }
    }

    /// Whether bindings share the provision's credentials without a run.
    fn shares(&self, bundle: &Bundle) -> bool {
        let has_bind = super::build_run::runnable(bundle, Action::Bind).is_some();
        let manifest = &bundle.manifest;
        self.parts.share_provision_credentials
            || (manifest.share_provision_credentials && !has_bind)
    }

    /// Merges instance state set by an action of a binding, once.
    async fn add_to_instance(&self, cx: &Cx, result: &RunResult, action: Action) -> Result<()> {
        let Some(patch) = result.state.as_ref().filter(|it| !it.0.is_empty()) else {
            return Ok(());
        };
        let by = by(cx, action);
        cx.change_instance_state(|kept| {
            let mut state = remembered(kept)?.unwrap_or_default();
            if state.has_entry_of(by.operation) {
                return Ok(None);
            }
            state
                .merge(Some(patch), by)
                .map_err(|fault| Error::failed(fault.to_string()))?;
            Ok(Some(state.kept()))
        })
        .await
    }

    /// Checks the conditions between parameters of an update and the current ones.
    fn check_change(
        &self,
        before: &Map<String, Value>,
        to: &PinnedPlan,
        change: &Map<String, Value>,
    ) -> std::result::Result<(), Refusal> {
        let read = |manifest: &Manifest| fits(manifest, to.plan_name.as_str(), before, change);
        let origin = to.origin.as_ref();
        let judged = origin.and_then(|it| self.parts.version_store.read_manifest(it, read));
        judged.unwrap_or(Ok(())).map_err(Refusal::Invalid)
    }

    /// Checks whether the upgrade is allowed (`upgrade.rs`).
    fn check_upgrade(
        &self,
        there: &InstanceSpec,
        to: &PinnedPlan,
        change: &Map<String, Value>,
    ) -> std::result::Result<(), Refusal> {
        let mut parameters = there.parameters.0.clone();
        parameters.extend(change.clone());
        let judge = |manifest: &Manifest| {
            let secrets = self.parts.secrets.iter();
            let named = secrets.filter(|it| it.bundles.contains(&manifest.name));
            check_upgrade(&UpgradePath {
                from: there.maintenance_version.as_deref(),
                to: manifest,
                plan: to.plan_name.as_str(),
                parameters: &parameters,
                answered: &named.flat_map(|it| it.keys.keys().cloned()).collect(),
            })
        };
        let origin = to.origin.as_ref();
        let judged = origin.and_then(|it| self.parts.version_store.read_manifest(it, judge));
        judged.unwrap_or(Ok(())).map_err(|error| match error {
            UpgradeError::Invalid(sentence) => Refusal::Invalid(sentence),
            UpgradeError::Unsupported(sentence) => Refusal::Unsupported(sentence),
        })
    }

    /// Names of secret parameters of the version before an upgrade: the new version may not know them, but gets
    /// their values.
    fn secrets_before(&self, state: &InstanceState, upgrades: bool) -> Vec<String> {
        let version_store = &self.parts.version_store;
        let digest = Some(&state.bundle.digest).filter(|_| upgrades);
        let names = digest.and_then(|it| version_store.read_manifest(it, all_secret_names));
        names.unwrap_or_default()
    }

    /// Checks that the manifest allows the change of plan.
    fn check_move(&self, from: &PinnedPlan, to: &PinnedPlan) -> std::result::Result<(), Refusal> {
        let (old, new) = (from.plan_name.as_str(), to.plan_name.as_str());
        let read = |manifest: &Manifest| leads_to(manifest, old, new);
        let origin = from.origin.as_ref();
        let judged = origin.and_then(|it| self.parts.version_store.read_manifest(it, read));
        judged.unwrap_or(Ok(())).map_err(Refusal::Invalid)
    }
}

fn share(state: &InstanceState) -> Result<Bound> {
    let Some(credentials) = &state.credentials else {
        let sentence = "The service was provisioned without credentials, so there are none to share. \
            Its bundle must give some at provision, or have a bind action.";
        return Err(Error::failed(sentence));
    };
    let own = BindingState {
        shared: true,
        ..BindingState::default()
    };
    Bound::credentials(Value::Object(credentials.clone())).state(&own)
}

/// Merges the result of an action into the instance's state. New credentials always replace the old ones, which may
/// be invalid now.
fn take_over(
    state: &mut InstanceState,
    result: &RunResult,
    cx: &Cx,
    action: Action,
) -> std::result::Result<(), StateTooLargeError> {
    if let Some(credentials) = &result.credentials {
        state.credentials = Some(credentials.0.clone());
    }
    if let Some(url) = &result.dashboard_url {
        state.dashboard_url = Some(url.clone());
    }
    state.merge(result.state.as_ref(), by(cx, action))
}

/// Maps `async` of a manifest to the framework's setting.
const fn asynchrony_of(support: AsyncSupport) -> Asynchrony {
    match support {
        AsyncSupport::Optional => Asynchrony::Preferred,
        AsyncSupport::Required => Asynchrony::Required,
        AsyncSupport::Unsupported => Asynchrony::Never,
    }
}

fn action_of(verb: OperationKind) -> Action {
    match verb {
        OperationKind::Provision => Action::Provision,
        OperationKind::Update => Action::Update,
        OperationKind::Deprovision => Action::Deprovision,
        OperationKind::Bind => Action::Bind,
        OperationKind::Unbind => Action::Unbind,
    }
}
