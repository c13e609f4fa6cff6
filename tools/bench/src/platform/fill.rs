//! Fills the database of a platform: by the commands of a real platform in a process of its own, whose brokers answer in
//! memory.

use super::broker_set::{BrokerSet, broker_name};
use super::counted_store::StoreCounters;
use super::platform_server;
use super::stub_brokers::{CLASS, catalog, is_slow};
use crate::load::BoxError;
use crate::report::print_line;
use async_trait::async_trait;
use bytes::Bytes;
use clap::Args;
use hyper::header::{ETAG, HeaderMap, HeaderValue, RETRY_AFTER};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sutler_client::wire::{Answer, InvalidConnectionError, Method, Request, TransportError};
use sutler_platform::author::Author;
use sutler_platform::broker_request::Annotations;
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::commands::{ChangeOptions, WantedInstance, WantedNamespace};
use sutler_platform::platform::Platform;
use sutler_platform::records::{BrokerRegistration, ResourceName};
use sutler_platform::spec::Parameters;

/// The namespace of all instances.
pub(super) const NAMESPACE: &str = "bench";
/// Creates at the same time.
const FILLERS: usize = 256;
/// Creates that were accepted and not sent, at most.
const BACKLOG_MAX: usize = 4_096;
/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Time limit of what is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Brokers in memory, and how many provisions they answered.
#[derive(Clone, Default)]
struct MemoryBrokers(Arc<AtomicUsize>);

/// One broker: the wait between polls, and the common count.
struct MemoryBroker(HeaderValue, Arc<AtomicUsize>);

impl ConnectBroker for MemoryBrokers {
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        // …/prompt/SECONDS/NUMBER
        let seconds = registration.url.rsplit('/').nth(1).unwrap_or_default();
        let wait = HeaderValue::from_str(seconds).unwrap_or(HeaderValue::from_static("1"));
        Ok(Arc::new(MemoryBroker(wait, self.0.clone())))
    }
}

#[async_trait]
impl BrokerTransport for MemoryBroker {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        let last = request.path.last().map(String::as_str).unwrap_or_default();
        let mut headers = HeaderMap::new();
        let (status, body) = match (request.method, last) {
            (_, "catalog") => {
                headers.insert(ETAG, HeaderValue::from_static("\"1\""));
                (200, Bytes::from(catalog().to_string()))
            }
            (Method::Put, _) => {
                let is_slow = request.body.as_deref().is_some_and(is_slow);
                self.1.fetch_add(1, Ordering::Relaxed);
                (if is_slow { 202 } else { 201 }, Bytes::from_static(b"{}"))
            }
            _ => {
                headers.insert(RETRY_AFTER, self.0.clone());
                (200, Bytes::from_static(b"{\"state\":\"in progress\"}"))
            }
        };
        Ok(Answer {
            status,
            headers,
            body,
            took: Duration::ZERO,
        })
    }
}

/// What one database is filled with.
#[derive(Args, Clone)]
pub(crate) struct FillArgs {
    #[arg(long)]
    dir: PathBuf,
    #[command(flatten)]
    brokers: BrokerSet,
    /// Number of instances
    #[arg(long)]
    instances: usize,
    /// Their plan
    #[arg(long)]
    plan: String,
}

/// Fills a database in a process of its own, which leaves it closed.
pub(super) fn fill(
    dir: &Path,
    brokers: &BrokerSet,
    (instances, plan): (usize, &str),
) -> Result<(), BoxError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("platform-fill").arg("--dir").arg(dir);
    command.args(brokers.arguments());
    command.args(["--instances", &instances.to_string(), "--plan", plan]);
    match command.stdin(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err("the database was not filled".into()),
    }
}

/// Registers brokers, reads their catalogs, and creates instances of a plan, spread over the brokers that answer.
pub(crate) async fn run(args: FillArgs) -> Result<(), BoxError> {
    let FillArgs {
        dir,
        brokers,
        instances,
        plan,
    } = args;
    let began = Instant::now();
    let memory = MemoryBrokers::default();
    let answered = memory.0.clone();
    let counters = Arc::<StoreCounters>::default();
    let platform = platform_server::start(&dir, Arc::new(memory), counters).await?;
    let wanted = WantedNamespace {
        labels: BTreeMap::new(),
        annotations: Annotations::default(),
        cluster_id: None,
        cloud_foundry: None,
    };
    let namespace = ResourceName::try_from(NAMESPACE)?;
    platform.put_namespace(&namespace, &wanted).await?;
    register(&platform, &brokers).await?;
    create(&platform, &brokers, (instances, &plan), &answered).await?;
    platform.shut_down().await;
    print_line(&format!(
        "filled {instances} instances of {} brokers in {:.0} s",
        brokers.count,
        began.elapsed().as_secs_f64()
    ));
    Ok(())
}

async fn register(platform: &Platform, brokers: &BrokerSet) -> Result<(), BoxError> {
    let author = author();
    for number in 0..brokers.count {
        let definition = brokers.definition(number);
        let name = broker_name(number)?;
        let registered = platform.brokers();
        registered
            .register(None, &name, definition, &author)
            .await?;
    }
    let until = Instant::now() + PATIENCE;
    for number in 0..brokers.count {
        let name = broker_name(number)?;
        let found = platform.brokers().find(None, &name).await?;
        let uid = found.ok_or("a broker is missing")?.uid;
        while platform.brokers().view(uid).await?.state.sync.served == 0 {
            pause(until, "the catalogs are not read").await?;
        }
    }
    Ok(())
}

async fn create(
    platform: &Platform,
    brokers: &BrokerSet,
    (instances, plan): (usize, &str),
    answered: &Arc<AtomicUsize>,
) -> Result<(), BoxError> {
    let next = Arc::new(AtomicUsize::new(0));
    let prompt = brokers.prompt_count();
    let mut tasks = Vec::new();
    for _ in 0..FILLERS {
        let (platform, next, answered) = (platform.clone(), next.clone(), answered.clone());
        let plan = plan.to_owned();
        tasks.push(tokio::spawn(async move {
            let namespace = ResourceName::try_from(NAMESPACE)?;
            let options = ChangeOptions::by(author());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= instances {
                    return Ok::<_, BoxError>(());
                }
                let until = Instant::now() + PATIENCE;
                while number > answered.load(Ordering::Relaxed) + BACKLOG_MAX {
                    pause(until, "creates are not sent").await?;
                }
                let wanted = wanted(number, prompt, &plan)?;
                platform
                    .create_instance(&namespace, &wanted, &options)
                    .await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    let until = Instant::now() + PATIENCE;
    while answered.load(Ordering::Relaxed) < instances {
        pause(until, "creates are not sent").await?;
    }
    Ok(())
}

fn wanted(number: usize, brokers: usize, plan: &str) -> Result<WantedInstance, BoxError> {
    Ok(WantedInstance {
        name: ResourceName::try_from(instance_name(number))?,
        broker: Some(broker_name(number % brokers)?),
        class: CLASS.to_owned(),
        plan: plan.to_owned(),
        maintenance_version: None,
        parameters: Parameters::default(),
        parameter_sources: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        osb_id: None,
    })
}

/// Name of the instance of a number.
pub(super) fn instance_name(number: usize) -> String {
    format!("i-{number}")
}

async fn pause(until: Instant, what: &str) -> Result<(), BoxError> {
    if Instant::now() > until {
        return Err(what.into());
    }
    tokio::time::sleep(LOOK_EVERY).await;
    Ok(())
}

fn author() -> Author {
    Author {
        username: "bench".to_owned(),
        uid: "user:bench".to_owned(),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}
