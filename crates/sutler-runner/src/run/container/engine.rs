//! Client of the container engine: every request, and how its responses are interpreted. Pulls missing images.
//!
//! Bollard's types do not leave this file, except for the description of a container (`container_spec.rs`).

use super::settings::{ContainerSettings, RegistryLogin};
use super::state::EngineReport;
use crate::run_spec::RunName;
use crate::runner::RunError;
use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, CreateImageOptionsBuilder, InspectContainerOptions,
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use secrecy::ExposeSecret;
use std::collections::HashMap;
use std::time::Duration;

/// Timeout of a request; requests that wait for the end of a run are repeated.
const ANSWER_SECONDS: u64 = 120;
/// Attempts and interval of requests while the engine does not know yet how a container ended.
const UNSETTLED_TRIES: usize = 200;
const UNSETTLED: Duration = Duration::from_millis(25);
/// Pause before a failed request is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// Client of the engine.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    docker: Docker,
    logins: Vec<RegistryLogin>,
    socket: String,
}

fn container_name(name: RunName) -> String {
    format!("sutler-{name}")
}

impl Engine {
    pub(super) fn new(settings: &ContainerSettings) -> Result<Self, RunError> {
        let socket = settings.socket.display().to_string();
        let docker =
            Docker::connect_with_unix(&socket, ANSWER_SECONDS, bollard::API_DEFAULT_VERSION);
        let docker = docker.map_err(|fault| no_answer(&socket, &fault))?;
        Ok(Self {
            docker,
            logins: settings.logins.clone(),
            socket,
        })
    }

    pub(super) async fn inspect(&self, name: RunName) -> Result<EngineReport, RunError> {
        for _ in 0..UNSETTLED_TRIES {
            match self.inspect_once(name).await? {
                Some(container) => return Ok(container),
                None => tokio::time::sleep(UNSETTLED).await,
            }
        }
        // Probably still ending.
        Ok(EngineReport::Running { since: None })
    }

    /// `None`: it has ended, but the engine does not know its exit code yet.
    async fn inspect_once(&self, name: RunName) -> Result<Option<EngineReport>, RunError> {
        let container_name = container_name(name);
        let inspected = self
            .docker
            .inspect_container(&container_name, None::<InspectContainerOptions>);
        match inspected.await {
            Ok(found) => Ok(Some(found.state.map_or_else(
                || EngineReport::Unclear("nothing".to_owned()),
                |state| container_of(&state),
            ))),
            Err(fault) if status(&fault) == Some(404) => Ok(Some(EngineReport::Absent)),
            // Podman's state between the end of a process and the end of its container.
            Err(Error::JsonDataError { message, .. }) if message.contains("`stopped`") => Ok(None),
            // Podman's error if the process ended during the request.
            Err(fault) if fault.to_string().contains("no such process") => Ok(None),
            Err(fault) => Err(self.fault(&fault)),
        }
    }

    /// Creates a container. An existing one of this name is left unchanged.
    pub(super) async fn create(
        &self,
        name: RunName,
        body: ContainerCreateBody,
    ) -> Result<(), RunError> {
        let options = CreateContainerOptionsBuilder::new()
            .name(&container_name(name))
            .build();
        match self.docker.create_container(Some(options), body).await {
            Ok(_) => Ok(()),
            Err(fault) if status(&fault) == Some(409) => Ok(()),
            // Podman has no status code for it.
            Err(fault) if fault.to_string().contains("already in use") => Ok(()),
            Err(fault) => Err(self.fault(&fault)),
        }
    }

    /// Starts a container, unless it is already started or removed.
    pub(super) async fn start(&self, name: RunName) -> Result<(), RunError> {
        let container_name = container_name(name);
        let started = self
            .docker
            .start_container(&container_name, None::<StartContainerOptions>);
        match started.await {
            Ok(()) => Ok(()),
            Err(fault) if matches!(status(&fault), Some(304 | 404)) => Ok(()),
            Err(Error::DockerResponseServerError { message, .. }) => {
                Err(RunError::Refused(format!(
                    "The container cannot be started: {message}. Correct the image or its limits."
                )))
            }
            Err(fault) => Err(self.fault(&fault)),
        }
    }

    /// Signals a container. `false`: it is not running.
    pub(super) async fn signal(&self, name: RunName, signal: &str) -> Result<bool, RunError> {
        let options = KillContainerOptionsBuilder::new().signal(signal).build();
        match self
            .docker
            .kill_container(&container_name(name), Some(options))
            .await
        {
            Ok(()) => Ok(true),
            Err(fault) if matches!(status(&fault), Some(404 | 409)) => Ok(false),
            Err(fault) => match self.inspect(name).await? {
                EngineReport::Running { .. } => Err(self.fault(&fault)),
                _ => Ok(false),
            },
        }
    }

    /// Whether it is certain that a container does not run.
    pub(super) async fn is_over(&self, name: RunName) -> Result<bool, RunError> {
        match self.inspect(name).await? {
            EngineReport::Absent | EngineReport::Created | EngineReport::Exited { .. } => Ok(true),
            EngineReport::Running { .. } => Ok(false),
            // A container that the engine is removing or failed to remove has ended before.
            EngineReport::Unclear(state) if matches!(state.as_str(), "dead" | "removing") => {
                Ok(true)
            }
            EngineReport::Unclear(state) => Err(RunError::Unavailable(format!(
                "The engine says of the container of run {name}: {state}. See with its own tools whether it runs."
            ))),
        }
    }

    /// Waits until a container has ended, or for a moment if the engine cannot report it.
    pub(super) async fn ended(&self, name: RunName) {
        loop {
            let options = WaitContainerOptionsBuilder::new()
                .condition("not-running")
                .build();
            let mut waiting = std::pin::pin!(
                self.docker
                    .wait_container(&container_name(name), Some(options))
            );
            match waiting.next().await {
                None | Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => return,
                Some(Err(fault)) if status(&fault) == Some(404) => return,
                Some(Err(Error::RequestTimeoutError)) => {}
                Some(Err(_)) => {
                    tokio::time::sleep(PAUSE).await;
                    return;
                }
            }
        }
    }

    /// Output of a container from the beginning.
    pub(super) fn logs(&self, name: RunName, follow: bool) -> impl Stream<Item = Bytes> + Send {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .follow(follow)
            .build();
        let logs = self.docker.logs(&container_name(name), Some(options));
        logs.filter_map(|piece| async move { piece.ok().map(LogOutput::into_bytes) })
    }

    /// Removes a container that is not running. `false`: it exists and is in use.
    pub(super) async fn remove(&self, name: RunName) -> Result<bool, RunError> {
        let options = RemoveContainerOptionsBuilder::new().v(true).build();
        let container_name = container_name(name);
        let removed = self.docker.remove_container(&container_name, Some(options));
        match removed.await {
            Ok(()) => Ok(true),
            Err(fault) if status(&fault) == Some(404) => Ok(true),
            Err(fault) => match self.inspect(name).await? {
                EngineReport::Absent => Ok(true),
                EngineReport::Running { .. } => Ok(false),
                _ => Err(self.fault(&fault)),
            },
        }
    }

    pub(super) async fn list(&self, owner: &str) -> Result<Vec<RunName>, RunError> {
        let filters = HashMap::from([("label", vec![format!("sutler.owner={owner}")])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let listed = self.docker.list_containers(Some(options)).await;
        let listed = listed.map_err(|fault| self.fault(&fault))?;
        let labels = listed.into_iter().filter_map(|container| container.labels);
        Ok(labels
            .filter_map(|labels| labels.get("sutler.run")?.parse().ok())
            .collect())
    }

    /// Pulls the image if the engine lacks it, within this time.
    pub(super) async fn pull_if_missing(
        &self,
        reference: &str,
        within: Duration,
    ) -> Result<(), RunError> {
        match self.docker.inspect_image(reference).await {
            Ok(_) => return Ok(()),
            Err(fault) if status(&fault) == Some(404) => {}
            Err(fault) => return Err(self.fault(&fault)),
        }
        let why = match tokio::time::timeout(within, self.pull(reference)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => format!("it took longer than {} seconds", within.as_secs()),
        };
        Err(RunError::Refused(format!(
            "The image {reference} cannot be pulled: {why}. See that it is there, that the registry can be \
             reached and that the engine may pull from it."
        )))
    }

    async fn pull(&self, reference: &str) -> Result<(), String> {
        let options = CreateImageOptionsBuilder::new()
            .from_image(reference)
            .build();
        let login = self
            .logins
            .iter()
            .find(|login| is_of(reference, &login.registry));
        let credentials = login.map(|login| DockerCredentials {
            username: Some(login.user.clone()),
            password: Some(login.password.expose_secret().to_owned()),
            serveraddress: Some(login.registry.clone()),
            ..DockerCredentials::default()
        });
        let mut pulled = std::pin::pin!(self.docker.create_image(Some(options), None, credentials));
        while let Some(step) = pulled.next().await {
            step.map_err(|fault| message_of(&fault))?;
        }
        match self.docker.inspect_image(reference).await {
            Ok(_) => Ok(()),
            Err(fault) => Err(message_of(&fault)),
        }
    }

    fn fault(&self, fault: &Error) -> RunError {
        match fault {
            Error::DockerResponseServerError {
                status_code: 400..=499,
                message,
            } => RunError::Refused(format!(
                "The container engine refuses: {message}. Correct what it names."
            )),
            _ => no_answer(&self.socket, fault),
        }
    }
}

fn is_of(reference: &str, registry: &str) -> bool {
    let rest = reference.strip_prefix(registry);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn message_of(fault: &Error) -> String {
    let text = match fault {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
        other => other.to_string(),
    };
    text.trim().trim_end_matches('.').to_owned()
}

fn no_answer(socket: &str, fault: &Error) -> RunError {
    RunError::Unavailable(format!(
        "The container engine at {socket} does not do it: {fault}. See that it runs and that the broker may use \
         its socket."
    ))
}

const fn status(fault: &Error) -> Option<u16> {
    match fault {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

fn container_of(state: &ContainerState) -> EngineReport {
    use ContainerStateStatusEnum as Status;
    match state.status {
        Some(Status::CREATED) => EngineReport::Created,
        Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING | Status::STOPPING) => {
            EngineReport::Running {
                since: state.started_at.as_deref().and_then(|at| at.parse().ok()),
            }
        }
        Some(Status::EXITED) => EngineReport::Exited {
            code: state.exit_code.unwrap_or(i64::MAX),
            out_of_memory: state.oom_killed.unwrap_or_default(),
        },
        Some(other) => EngineReport::Unclear(other.to_string()),
        None => EngineReport::Unclear("nothing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn a_login_is_for_its_registry_alone() {
        assert!(is_of(
            "registry.example:5000/team/db@sha256:1",
            "registry.example:5000"
        ));
        assert!(!is_of(
            "registry.example:50001/team/db",
            "registry.example:5000"
        ));
        assert!(!is_of("registry.example.evil/team/db", "registry.example"));
    }
}
