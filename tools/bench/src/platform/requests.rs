//! The load of a platform: kept connections from a separate process, each sends the next request after an answer.

use super::broker_set::broker_name;
use super::fill::{NAMESPACE, instance_name};
use super::stub_brokers::{CLASS, QUICK_PLAN};
use crate::load::{BoxError, LoadResult, UserConnection, spawn_with};
use crate::report::print_line;
use clap::{Args, ValueEnum};
use std::time::{Duration, Instant};

/// Kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequestKind {
    /// Creates that wait until the broker has answered.
    Create,
    /// Creates that are accepted.
    Accept,
    /// One instance.
    Get,
    /// A page of 50 instances.
    Page,
}

/// What is sent.
#[derive(Args, Clone)]
pub(crate) struct RequestArgs {
    #[arg(long)]
    kind: RequestKind,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    seconds: f64,
    #[arg(long)]
    connections: usize,
    /// Creates are spread over the first so many brokers
    #[arg(long)]
    brokers: usize,
    /// Instances that can be read
    #[arg(long)]
    instances: usize,
}

impl RequestArgs {
    /// Creates over brokers that wait for the answers of the brokers.
    pub(super) fn creates(port: u16, seconds: f64, connections: usize, brokers: usize) -> Self {
        Self {
            kind: RequestKind::Create,
            port,
            seconds,
            connections,
            brokers,
            instances: 0,
        }
    }

    /// The same of another kind, where so many instances can be read.
    pub(super) fn of_kind(self, kind: RequestKind, instances: usize) -> Self {
        Self {
            kind,
            instances,
            ..self
        }
    }

    /// Sends them from a process of their own.
    pub(super) fn send(&self) -> Result<LoadResult, BoxError> {
        let kind = self.kind.to_possible_value();
        let kind = kind.map(|it| it.get_name().to_owned()).unwrap_or_default();
        spawn_with(&[
            "platform-requests",
            "--kind",
            &kind,
            "--port",
            &self.port.to_string(),
            "--seconds",
            &self.seconds.to_string(),
            "--connections",
            &self.connections.to_string(),
            "--brokers",
            &self.brokers.to_string(),
            "--instances",
            &self.instances.to_string(),
        ])
    }
}

/// Sends requests and prints what was measured.
pub(crate) async fn run(args: RequestArgs) -> Result<(), BoxError> {
    let began = Instant::now();
    let stop = began + Duration::from_secs_f64(args.seconds);
    let mut tasks = Vec::new();
    for connection in 0..args.connections {
        let args = args.clone();
        tasks.push(tokio::spawn(async move {
            client(&args, connection, stop).await
        }));
    }
    let mut times: Vec<u32> = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let took = began.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place).copied().unwrap_or(0)
    };
    print_line(&format!(
        "{} {} {}",
        times.len() as f64 / took,
        at(0.5),
        at(0.99)
    ));
    Ok(())
}

async fn client(
    args: &RequestArgs,
    connection: usize,
    stop: Instant,
) -> Result<Vec<u32>, BoxError> {
    let mut user = UserConnection::to(args.port).await?;
    let tag = uuid::Uuid::new_v4().simple().to_string();
    let mut times = Vec::new();
    let mut turn = connection * 7919;
    while Instant::now() < stop {
        turn += 104_729;
        let (start, body) = request(args, &format!("{tag}-{turn}"), turn)?;
        let began = Instant::now();
        let (status, answer) = user.send(&start, &body).await?;
        times.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        let expected = match args.kind {
            RequestKind::Create => 201,
            RequestKind::Accept => 202,
            RequestKind::Get | RequestKind::Page => 200,
        };
        if status != expected {
            return Err(format!("answered {status}: {answer}").into());
        }
    }
    Ok(times)
}

fn request(args: &RequestArgs, name: &str, turn: usize) -> Result<(String, String), BoxError> {
    let instances = format!("/api/v1/namespaces/{NAMESPACE}/instances");
    Ok(match args.kind {
        RequestKind::Create => {
            let broker = turn % args.brokers.max(1);
            (
                format!("POST {instances}?wait=30s"),
                create_body(name, broker)?,
            )
        }
        RequestKind::Accept => {
            let broker = turn % args.brokers.max(1);
            (format!("POST {instances}"), create_body(name, broker)?)
        }
        RequestKind::Get => {
            let name = instance_name(turn % args.instances.max(1));
            (format!("GET {instances}/{name}"), String::new())
        }
        RequestKind::Page => (format!("GET {instances}?limit=50"), String::new()),
    })
}

fn create_body(name: &str, broker: usize) -> Result<String, BoxError> {
    let broker = broker_name(broker)?;
    Ok(format!(
        "{{\"name\":\"{name}\",\"broker\":\"{broker}\",\"class\":\"{CLASS}\",\"plan\":\"{QUICK_PLAN}\"}}"
    ))
}

/// Asks for instances of a broker without waiting for them.
pub(super) async fn request_creates(
    port: u16,
    broker: usize,
    number: usize,
) -> Result<(), BoxError> {
    let mut user = UserConnection::to(port).await?;
    for n in 0..number {
        let body = create_body(&format!("late-{broker}-{n}"), broker)?;
        let start = format!("POST /api/v1/namespaces/{NAMESPACE}/instances");
        let (status, answer) = user.send(&start, &body).await?;
        if status != 202 {
            return Err(format!("answered {status}: {answer}").into());
        }
    }
    Ok(())
}
