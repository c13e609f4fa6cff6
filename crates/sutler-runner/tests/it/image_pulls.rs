//! Images behind a password: pulled by a real engine from a real registry.

use secrecy::SecretString;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use sutler_bundle::{Action, RunLimits};
use sutler_runner::{
    ContainerRunner, ContainerSettings, Exit, Network, RegistryLogin, RunError, RunName, RunSpec,
    RunStatus, Runnable, Runner, Vars,
};
use sutler_servers::docker_registry::{self, RegistryAccess, USER};
use sutler_servers::podman::{Podman, SHELL_IMAGE, shared};
use sutler_servers::{Demands, PASSWORD};
use tokio::sync::mpsc;

/// Deadline of a run, including the pull of its image.
const DEADLINE: Duration = Duration::from_secs(30);
const WRONG: &str = "this-is-not-the-password";

fn spec(image: &str) -> RunSpec {
    RunSpec {
        name: RunName {
            operation: uuid::Uuid::new_v4(),
            attempt: 1,
        },
        action: Action::Provision,
        runnable: Runnable::Image {
            reference: image.to_owned(),
            inline_vars: false,
        },
        vars: Vars::default(),
        state: None,
        binding_state: None,
        secrets: Vec::new(),
        environment: BTreeMap::from([("SCRIPT".to_owned(), "exit 0".to_owned())]),
        labels: BTreeMap::new(),
        idempotency_key: "key".to_owned(),
        limits: RunLimits {
            deadline: DEADLINE,
            ..RunLimits::default()
        },
    }
}

/// A runner with this password for a registry.
fn runner(
    folder: &std::path::Path,
    podman: &Podman,
    registry: &str,
    password: Option<&str>,
) -> ContainerRunner {
    let mut settings = ContainerSettings::new(folder.join("work"), podman.socket.clone());
    settings.network = Network::None;
    settings.logins = password
        .map(|password| RegistryLogin {
            registry: registry.to_owned(),
            user: USER.to_owned(),
            password: SecretString::from(password),
        })
        .into_iter()
        .collect();
    ContainerRunner::open(settings).expect("opened")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_behind_a_password_is_pulled_with_it_and_refused_in_time_without_it() {
    let Some(podman) = shared().filter(|podman| podman.is_own()) else {
        return;
    };
    let Some(server) = docker_registry::own(Demands::default(), RegistryAccess::Password) else {
        return;
    };
    let host = format!("127.0.0.1:{}", server.admin_url().port);
    let image = format!("{host}/bundles/shell:1");
    let login = format!("{USER}:{PASSWORD}");
    let push = ["push", "--tls-verify=false", "--creds", &login, SHELL_IMAGE];
    let _ = podman.podman(&[&push[..], &[&image]].concat());
    let folder = tempfile::tempdir().expect("a folder");
    for password in [None, Some(WRONG)] {
        let begun = Instant::now();
        let runner = runner(folder.path(), podman, &host, password);
        let refused = runner.start(&spec(&image)).await;
        let Err(RunError::Refused(sentence)) = refused else {
            panic!("{refused:?}");
        };
        assert!(sentence.contains("cannot be pulled"), "{sentence}");
        assert!(!sentence.contains(WRONG), "{sentence}");
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
        assert!(runner.list().await.expect("a list").is_empty());
    }
    let runner = runner(folder.path(), podman, &host, Some(PASSWORD));
    let spec = spec(&image);
    runner.start(&spec).await.expect("pulled and started");
    let (lines, _heard) = mpsc::channel(64);
    let status = runner.watch(spec.name, lines).await.expect("watched");
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
    runner.remove(spec.name).await.expect("removed");
    let _ = podman.podman(&["image", "rm", "--force", &image]);
}
