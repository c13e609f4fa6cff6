//! Description of the container of a run: command, environment, mounts and limits.
//!
//! Paths inside of containers are those of Automation Broker's contract where it has any. The run directory is
//! `run_dir.rs`; requests to the engine are `engine.rs`.

use super::run_dir::RunDir;
use super::settings::{ContainerSettings, MODULES, Network};
use crate::run::process::{RunPaths, environment};
use crate::run_spec::{RunSpec, Runnable};
use crate::runner::RunError;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::path::Path;

/// Maximum bytes of temporary files.
const TMP_BYTES: u64 = 256 << 20;

/// Size of the engine's log in relation to the output limit: its lines are longer.
const LOG_FACTOR: u64 = 8;
/// Minimum size of the engine's log, in bytes.
const LOG_BYTES_MIN: u64 = 1 << 20;
/// Maximum processes of one user of the host, over all containers.
const USER_PROCESSES_MAX: u64 = 32_768;

const VARS: &str = "/run/sutler/vars.json";
const RESULT: &str = "/run/sutler/result";
const BINDING_STATE: &str = "/run/sutler/binding-state";
const STATE: &str = "/etc/apb/state";
const SECRETS: &str = "/etc/apb-secrets";
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Description of the container of a run.
pub(super) fn container(
    settings: &ContainerSettings,
    modules: &Path,
    spec: &RunSpec,
    folder: &RunDir,
) -> Result<ContainerCreateBody, RunError> {
    let Runnable::Image {
        reference,
        inline_vars,
    } = &spec.runnable
    else {
        return Err(RunError::Refused(
            "A folder is no image: pack it first.".to_owned(),
        ));
    };
    let vars = match inline_vars {
        true => serde_json::Value::Object(spec.vars.0.clone()).to_string(),
        false => format!("@{VARS}"),
    };
    let action = spec.action.as_str().to_owned();
    let mut labels: HashMap<String, String> = HashMap::new();
    for (name, value) in &spec.labels {
        labels.insert(format!("sutler.{name}"), value.clone());
    }
    labels.insert("sutler.run".to_owned(), spec.name.to_string());
    labels.insert("sutler.owner".to_owned(), settings.owner.clone());
    labels.insert("sutler.action".to_owned(), action.clone());
    let (uid, gid) = settings.user;
    Ok(ContainerCreateBody {
        image: Some(reference.clone()),
        cmd: Some(vec![action, "--extra-vars".to_owned(), vars]),
        env: Some(variables(settings, spec)),
        user: Some(format!("{uid}:{gid}")),
        labels: Some(labels),
        host_config: Some(host_config(settings, modules, spec, folder)),
        ..ContainerCreateBody::default()
    })
}

fn variables(settings: &ContainerSettings, spec: &RunSpec) -> Vec<String> {
    let places = RunPaths {
        bundle: None,
        scratch: Path::new("/tmp"),
        result: Path::new(RESULT),
        vars: Path::new(VARS),
        secrets: Path::new(SECRETS),
        state: spec.state.as_ref().map(|_| Path::new(STATE)),
        binding_state: spec
            .binding_state
            .as_ref()
            .map(|_| Path::new(BINDING_STATE)),
    };
    let all = environment(spec, &settings.environment, &places);
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn host_config(
    settings: &ContainerSettings,
    modules: &Path,
    spec: &RunSpec,
    folder: &RunDir,
) -> HostConfig {
    let most = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX);
    let of_the_run = |name: &str, target: &str, read_only: bool| {
        mount(&folder.path.join(name), target, read_only)
    };
    let limits = &spec.limits;
    let own_processes = getrlimit(Resource::Nproc)
        .maximum
        .unwrap_or(USER_PROCESSES_MAX);
    let network = match settings.network {
        Network::None => "none",
        Network::Bridge => "bridge",
        Network::Host => "host",
    };
    HostConfig {
        mounts: Some(vec![
            of_the_run("vars.json", VARS, true),
            of_the_run("state", STATE, true),
            of_the_run("binding-state", BINDING_STATE, true),
            of_the_run("secrets", SECRETS, true),
            of_the_run("result", RESULT, false),
            of_the_run("termination-log", TERMINATION_LOG, false),
            mount(modules, MODULES, true),
        ]),
        network_mode: Some(network.to_owned()),
        memory: Some(most(limits.memory)),
        memory_swap: Some(most(limits.memory)),
        pids_limit: Some(most(limits.processes)),
        ulimits: Some(vec![
            ulimit("nofile", most(limits.open_files)),
            // Engines would request more than they may have. The effective limit is `pids_limit`.
            ulimit("nproc", most(own_processes.min(USER_PROCESSES_MAX))),
        ]),
        log_config: Some(log_config(limits.output)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some(HashMap::from([(
            "/tmp".to_owned(),
            format!("rw,nosuid,nodev,mode=1777,size={TMP_BYTES}"),
        )])),
        ..HostConfig::default()
    }
}

fn mount(source: &Path, target: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

/// Log file that is removed with the container: output may contain secrets until it is read and redacted. Podman
/// maps this driver name to its own kind of file.
fn log_config(output: u64) -> HostConfigLogConfig {
    let most = output.saturating_mul(LOG_FACTOR).max(LOG_BYTES_MIN);
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(HashMap::from([(
            "max-size".to_owned(),
            most.min(i64::MAX.unsigned_abs()).to_string(),
        )])),
    }
}

fn ulimit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(most),
        hard: Some(most),
    }
}
