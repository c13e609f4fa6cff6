//! The load: raw HTTP/1.1 on kept-alive connections, from a separate process.

use crate::broker::{PLAN, SERVICE};
use crate::subject::{PASSWORD, USER};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_servers::http::HttpConnection;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The catalog.
    Catalog,
    /// The last operation of instances that a file lists.
    Poll,
    /// New instances, synchronously.
    Provision,
    /// New instances, asynchronously.
    Accept,
}

#[derive(Args, Clone)]
pub(crate) struct LoadArgs {
    #[arg(long)]
    kind: Kind,
    #[arg(long)]
    port: u16,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Stop after this many requests
    #[arg(long, default_value_t = usize::MAX)]
    count: usize,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Lines `instance operation` to poll, or to which accepted ones are added
    #[arg(long)]
    list: Option<PathBuf>,
}

/// Result of a load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadResult {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// Starts a load process and reads its measurements.
pub(crate) fn spawn(
    kind: Kind,
    port: u16,
    seconds: f64,
    connections: usize,
    list: Option<&std::path::Path>,
) -> Result<LoadResult, BoxError> {
    let word = kind
        .to_possible_value()
        .map(|it| it.get_name().to_owned())
        .unwrap_or_default();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["load", "--kind", &word, "--port", &port.to_string()]);
    command.args([
        "--seconds",
        &seconds.to_string(),
        "--connections",
        &connections.to_string(),
    ]);
    if let Some(list) = list {
        command.arg("--list").arg(list);
    }
    measured(command)
}

/// Starts this executable as a load process with other arguments, and reads its measurements.
pub(crate) fn spawn_with(args: &[&str]) -> Result<LoadResult, BoxError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args);
    measured(command)
}

fn measured(mut command: Command) -> Result<LoadResult, BoxError> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [per_second, p50_us, p99_us] => Ok(LoadResult {
            per_second,
            p50_us,
            p99_us,
        }),
        _ => Err(format!("the load process failed: {text}").into()),
    }
}

pub(crate) async fn run(args: LoadArgs) -> Result<(), BoxError> {
    let targets = Arc::new(targets(&args)?);
    let began = Instant::now();
    let stop = began + Duration::from_secs_f64(args.seconds);
    let each = args.count / args.connections;
    let mut tasks = Vec::new();
    for connection in 0..args.connections {
        let (args, targets) = (args.clone(), targets.clone());
        tasks.push(tokio::spawn(async move {
            client(&args, connection, &targets, stop, each).await
        }));
    }
    let mut times: Vec<u32> = Vec::new();
    let mut accepted = String::new();
    for task in tasks {
        let (mine, lines) = task.await?.map_err(|error| error.to_string())?;
        times.extend(mine);
        accepted.push_str(&lines);
    }
    let took = began.elapsed().as_secs_f64();
    if let (Some(list), Kind::Accept) = (&args.list, args.kind) {
        std::fs::write(list, accepted)?;
    }
    times.sort_unstable();
    let at = |share: f64| {
        times
            .get((times.len() as f64 * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    crate::report::print_line(&format!(
        "{} {} {}",
        times.len() as f64 / took,
        at(0.5),
        at(0.99)
    ));
    Ok(())
}

fn targets(args: &LoadArgs) -> Result<Vec<String>, BoxError> {
    match (&args.list, args.kind) {
        (Some(list), Kind::Poll) => {
            let text = std::fs::read_to_string(list)?;
            let path = |line: &str| {
                let (instance, operation) = line.split_once(' ').unwrap_or((line, ""));
                format!("/v2/service_instances/{instance}/last_operation?operation={operation}")
            };
            Ok(text.lines().map(path).collect())
        }
        _ => Ok(Vec::new()),
    }
}

async fn client(
    args: &LoadArgs,
    connection: usize,
    targets: &[String],
    stop: Instant,
    most: usize,
) -> Result<(Vec<u32>, String), BoxError> {
    let mut http = HttpConnection::connect(("127.0.0.1", args.port)).await?;
    let (mut times, mut lines) = (Vec::new(), String::new());
    let tag = uuid::Uuid::new_v4().simple().to_string();
    let mut n = 0usize;
    while n < most && Instant::now() < stop {
        let id = format!("{tag}-{connection}-{n}");
        let request = request(args.kind, &id, targets, connection * 7919 + n * 104_729);
        let began = Instant::now();
        let response = http.send(request.as_bytes()).await?;
        times.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        let body = String::from_utf8_lossy(response.body);
        if !(200..300).contains(&response.status) {
            return Err(format!("answered {}: {body}", response.status).into());
        }
        if args.kind == Kind::Accept {
            let operation = body.split('"').nth(3).unwrap_or_default();
            lines.push_str(&format!("{id} {operation}\n"));
        }
        n += 1;
    }
    Ok((times, lines))
}

fn request(kind: Kind, id: &str, targets: &[String], turn: usize) -> String {
    let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let head =
        format!("Host: bench\r\nX-Broker-API-Version: 2.17\r\nAuthorization: Basic {login}\r\n");
    match kind {
        Kind::Catalog => format!("GET /v2/catalog HTTP/1.1\r\n{head}\r\n"),
        Kind::Poll => {
            let path = targets
                .get(turn % targets.len().max(1))
                .map_or("/v2/catalog", String::as_str);
            format!("GET {path} HTTP/1.1\r\n{head}\r\n")
        }
        Kind::Provision | Kind::Accept => {
            let body = format!(
                "{{\"service_id\":\"{SERVICE}\",\"plan_id\":\"{PLAN}\",\"organization_guid\":\"o\",\"space_guid\":\"s\",\"context\":{{\"platform\":\"cloudfoundry\"}}}}"
            );
            let query = if kind == Kind::Accept {
                "?accepts_incomplete=true"
            } else {
                ""
            };
            format!(
                "PUT /v2/service_instances/{id}{query} HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    }
}

/// A kept connection of a user of the broker.
pub(crate) struct UserConnection(HttpConnection);

impl UserConnection {
    pub(crate) async fn to(port: u16) -> Result<Self, BoxError> {
        Ok(Self(HttpConnection::connect(("127.0.0.1", port)).await?))
    }

    /// Sends a request; `start` is method and path.
    pub(crate) async fn send(
        &mut self,
        start: &str,
        body: &str,
    ) -> Result<(u16, String), BoxError> {
        let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        let length = body.len();
        let request = format!(
            "{start} HTTP/1.1\r\nHost: bench\r\nX-Broker-API-Version: 2.17\r\nAuthorization: Basic {login}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let response = self.0.send(request.as_bytes()).await?;
        let body = String::from_utf8_lossy(response.body).into_owned();
        Ok((response.status, body))
    }
}

/// Whether a server responds on a port.
pub(crate) async fn answers(port: u16) -> bool {
    let request = request(Kind::Catalog, "", &[], 0);
    match HttpConnection::connect(("127.0.0.1", port)).await {
        Ok(mut connection) => connection.send(request.as_bytes()).await.is_ok(),
        Err(_) => false,
    }
}
