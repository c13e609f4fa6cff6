//! Builds the run spec of an action from a bundle and its inputs. Pure, except that it checks whether a script
//! exists.
//!
//! Variables are `vars.rs`; running is `run_driver.rs`.

use super::ansible_vars::mark_literals;
use super::redact::Secrets;
use super::vars::{ActionInputs, vars};
use crate::version_store::Bundle;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use sutler_bundle::{Action, Entrypoint, InlineVars, Manifest, RunLimits, with_defaults};
use sutler_runner::{RunName, RunSpec, Runnable, SecretFiles, Vars};

/// A secret of the operator for bundles.
#[derive(Clone, Debug)]
pub struct OperatorSecret {
    /// Name under which bundles require it.
    pub name: String,
    /// Bundles that get it; empty: all that require it.
    pub bundles: BTreeSet<String>,
    /// Its keys and values.
    pub keys: BTreeMap<String, SecretString>,
}

/// Secrets that are meant for a bundle.
fn secrets_meant<'a>(manifest: &Manifest, kept: &'a [OperatorSecret]) -> Vec<&'a OperatorSecret> {
    let meant = |secret: &&OperatorSecret| {
        let required = manifest.secrets.iter().any(|it| it.name == secret.name);
        match secret.bundles.is_empty() {
            true => required,
            false => secret.bundles.contains(&manifest.name),
        }
    };
    kept.iter().filter(meant).collect()
}

/// Secrets that a bundle gets, or a sentence about the missing ones.
fn secrets_for(manifest: &Manifest, kept: &[OperatorSecret]) -> Result<Vec<SecretFiles>, String> {
    let found = secrets_meant(manifest, kept);
    for wish in manifest.secrets.iter().filter(|wish| wish.required) {
        let Some(secret) = found.iter().find(|it| it.name == wish.name) else {
            return Err(format!(
                "the bundle {} needs the secret {}: add it to bundles.secrets of the configuration",
                manifest.name, wish.name
            ));
        };
        if let Some(key) = wish.keys.iter().find(|key| !secret.keys.contains_key(*key)) {
            return Err(format!(
                "the secret {} of the bundle {} has no key {key}: add it where the secret is kept",
                wish.name, manifest.name
            ));
        }
    }
    let files = found.into_iter().map(|secret| SecretFiles {
        name: secret.name.clone(),
        keys: secret.keys.clone(),
    });
    Ok(files.collect())
}

/// Runnable of an action; `None` if the bundle has no such action.
pub(crate) fn runnable(bundle: &Bundle, action: Action) -> Option<Runnable> {
    let manifest = &bundle.manifest;
    if !manifest.rules(action).offered {
        return None;
    }
    if let Some(reference) = &manifest.image {
        return Some(Runnable::Image {
            reference: reference.clone(),
            inline_vars: matches!(manifest.inline_vars, InlineVars::Yes { .. }),
        });
    }
    let entrypoint = match &manifest.entry {
        Entrypoint::Program(words) => words.clone(),
        Entrypoint::Scripts => vec![script(&bundle.folder, action)?],
        Entrypoint::Playbooks => playbook(&bundle.folder, action)?,
    };
    let path = bundle.folder.clone();
    Some(Runnable::Folder { path, entrypoint })
}

fn script(folder: &Path, action: Action) -> Option<String> {
    let name = format!("actions/{action}");
    folder.join(&name).is_file().then_some(name)
}

/// Command line of a playbook. The shell drops the action from the arguments, so that playbooks run unmodified.
fn playbook(folder: &Path, action: Action) -> Option<Vec<String>> {
    const RUN: &str = r#"playbook=$1; shift 2
export ANSIBLE_ROLES_PATH="$SUTLER_BUNDLE_DIR/roles${ANSIBLE_ROLES_PATH:+:$ANSIBLE_ROLES_PATH}"
exec ansible-playbook "$playbook" "$@""#;
    let places = ["playbooks", "project", "actions"];
    let mut names = places
        .iter()
        .flat_map(|place| ["yaml", "yml"].map(|extension| format!("{place}/{action}.{extension}")));
    let found = names.find(|name| folder.join(name).is_file())?;
    // None of these words may be the path of a file in the bundle: a runner would resolve it.
    let words = ["/bin/sh", "-c", RUN, "-playbook"].map(str::to_owned);
    Some(words.into_iter().chain([found]).collect())
}

/// Inputs of a run spec.
#[derive(Clone)]
pub(super) struct RunInputs<'a> {
    pub(super) name: RunName,
    pub(super) action: Action,
    pub(super) bundle: &'a Bundle,
    pub(super) runnable: Runnable,
    pub(super) inputs: ActionInputs<'a>,
    pub(super) kept: &'a [OperatorSecret],
    pub(super) ceiling: &'a RunLimits,
    pub(super) idempotency_key: String,
}

/// Builds the run spec.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn build_run_spec(wanted: RunInputs<'_>) -> Result<RunSpec, String> {
    let RunInputs {
        name,
        action,
        bundle,
        runnable,
        mut inputs,
        kept,
        ceiling,
        idempotency_key,
    } = wanted;
    let manifest = &bundle.manifest;
    let secrets = secrets_for(manifest, kept)?;
    let (parameters, bind_parameters) = completed(manifest, &inputs);
    inputs.parameters = inputs.parameters.is_some().then_some(&parameters);
    inputs.bind_parameters = inputs.bind_parameters.is_some().then_some(&bind_parameters);
    inputs.secrets = as_variables(secrets.iter().map(|it| &it.keys));
    inline_is_allowed(manifest, &runnable, &inputs)?;
    let all = mark_literals(manifest, vars(action, &inputs));
    Ok(RunSpec {
        name,
        action,
        runnable,
        vars: all,
        state: inputs.state.cloned().map(Vars),
        binding_state: inputs.binding_state.cloned().map(Vars),
        secrets,
        environment: BTreeMap::new(),
        labels: labels(action, bundle, &inputs),
        idempotency_key,
        limits: limits(bundle, action, ceiling),
    })
}

/// Parameters with the manifest's defaults.
fn completed(
    manifest: &Manifest,
    inputs: &ActionInputs<'_>,
) -> (Map<String, Value>, Map<String, Value>) {
    let own = inputs.parameters.cloned().unwrap_or_default();
    let of_bind = inputs.bind_parameters.cloned().unwrap_or_default();
    match manifest.plan(inputs.plan_name) {
        Some(plan) => (
            with_defaults(&plan.parameters, &own),
            with_defaults(&plan.bind_parameters, &of_bind),
        ),
        None => (own, of_bind),
    }
}

fn as_variables<'a>(
    secrets: impl Iterator<Item = &'a BTreeMap<String, SecretString>>,
) -> Map<String, Value> {
    let keys = secrets.flatten();
    keys.map(|(key, value)| (key.clone(), Value::String(value.expose_secret().to_owned())))
        .collect()
}

/// Secrets to redact from the log of a run, even if the run could not be built today.
pub(super) fn secrets_of<'a>(
    manifest: &'a Manifest,
    inputs: &ActionInputs<'a>,
    kept: &[OperatorSecret],
) -> Secrets {
    let mut hidden = Secrets::default();
    let kept = secrets_meant(manifest, kept);
    hidden.all_of(&as_variables(kept.iter().map(|it| &it.keys)));
    let (parameters, bind_parameters) = completed(manifest, inputs);
    for credentials in [inputs.provision_credentials, inputs.bind_credentials] {
        credentials.into_iter().for_each(|it| hidden.all_of(it));
    }
    let known = secret_names(manifest, inputs);
    let previous = inputs.previous.map(|(parameters, _)| parameters);
    for inputs in [Some(&parameters), Some(&bind_parameters), previous] {
        inputs
            .into_iter()
            .for_each(|it| hidden.add_by_key(it, &known));
    }
    for state in [inputs.state, inputs.binding_state] {
        let none = BTreeSet::new();
        state
            .into_iter()
            .for_each(|it| hidden.add_by_key(it, &none));
    }
    hidden
}

/// The names of secret parameters: those of the plan, and those of the version before an upgrade.
fn secret_names<'a>(manifest: &'a Manifest, inputs: &ActionInputs<'a>) -> BTreeSet<&'a str> {
    let plans = manifest.plan(inputs.plan_name).into_iter();
    let parameters = plans.flat_map(|it| it.parameters.iter().chain(&it.bind_parameters));
    let own = parameters.filter(|it| it.secret).map(|it| it.name.as_str());
    let others = inputs.also_secret.iter().map(String::as_str);
    own.chain(others).collect()
}

/// The names of all secret parameters of a bundle, whatever the plan.
pub(super) fn all_secret_names(manifest: &Manifest) -> Vec<String> {
    let plans = manifest.plans.iter();
    let parameters = plans.flat_map(|it| it.parameters.iter().chain(&it.bind_parameters));
    parameters
        .filter(|it| it.secret)
        .map(|it| it.name.clone())
        .collect()
}

/// Checks that no secret is passed on a command line, which all users of the host can read, unless the manifest
/// allows it by name.
fn inline_is_allowed<'a>(
    manifest: &'a Manifest,
    runnable: &Runnable,
    inputs: &ActionInputs<'a>,
) -> Result<(), String> {
    let inline = matches!(
        runnable,
        Runnable::Image {
            inline_vars: true,
            ..
        }
    );
    let InlineVars::Yes { despite } = &manifest.inline_vars else {
        return Ok(());
    };
    if !inline {
        return Ok(());
    }
    let mut secret: BTreeSet<&str> = inputs.secrets.keys().map(String::as_str).collect();
    let known = secret_names(manifest, inputs);
    let result = [inputs.parameters, inputs.bind_parameters];
    let names = result.into_iter().flatten().flat_map(|it| it.keys());
    secret.extend(
        names
            .map(String::as_str)
            .filter(|name| known.contains(name)),
    );
    if inputs.state.or(inputs.binding_state).is_some() {
        secret.insert("state");
    }
    if inputs
        .provision_credentials
        .or(inputs.bind_credentials)
        .is_some()
    {
        secret.insert("credentials");
    }
    secret.retain(|name| !despite.contains(*name));
    match secret.first() {
        None => Ok(()),
        Some(name) => Err(format!(
            "the bundle {} takes its variables on the command line, where others can read {name}: \
             let its image read a file, or list {name} under inline_vars of its manifest",
            manifest.name
        )),
    }
}

fn labels(action: Action, bundle: &Bundle, inputs: &ActionInputs<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("action".to_owned(), action.to_string()),
        ("bundle".to_owned(), bundle.manifest.name.clone()),
        ("digest".to_owned(), bundle.digest.clone()),
        ("instance".to_owned(), inputs.instance_id.to_owned()),
    ]);
    if let Some(binding) = inputs.binding_id {
        labels.insert("binding".to_owned(), binding.to_owned());
    }
    labels
}

/// Limits of the manifest, capped by the operator's.
pub(super) fn limits(bundle: &Bundle, action: Action, ceiling: &RunLimits) -> RunLimits {
    let wished = bundle.manifest.limits(action);
    RunLimits {
        deadline: wished.deadline.min(ceiling.deadline),
        memory: wished.memory.min(ceiling.memory),
        output: wished.output.min(ceiling.output),
        open_files: wished.open_files.min(ceiling.open_files),
        processes: wished.processes.min(ceiling.processes),
    }
}
