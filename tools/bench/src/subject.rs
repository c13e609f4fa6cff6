//! Subjects of measurements, each in a separate process: bare hyper, the skeletons, the broker.

use crate::load::BoxError;
use crate::{baseline, broker, bundles, platform};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The user of every measurement.
pub(crate) const USER: &str = "bench";
/// Its password.
pub(crate) const PASSWORD: &str = "a password of usual length";

/// Subject to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Hyper and the catalog's bytes, nothing else.
    BareCatalog,
    /// Hyper and a poll's bytes.
    BarePoll,
    /// Hyper and a provision's bytes.
    BareProvision,
    /// Hyper, authentication, a bare SELECT.
    SkeletonPoll,
    /// Hyper, authentication, two group commits.
    SkeletonProvision,
    /// The broker.
    Broker,
    /// The broker, with operations that never end.
    StuckBroker,
    /// The broker, with bundles that are run as processes.
    Bundles,
    /// The platform.
    Platform,
    /// Any number of brokers of a platform.
    StubBrokers,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(long)]
    subject: Subject,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    dir: PathBuf,
}

pub(crate) async fn serve(args: ServeArgs) -> Result<(), BoxError> {
    let ServeArgs { subject, port, dir } = args;
    match subject {
        Subject::BareCatalog | Subject::BarePoll | Subject::BareProvision => {
            baseline::bare(subject, port).await
        }
        Subject::SkeletonPoll => baseline::skeleton_poll(port, &dir).await,
        Subject::SkeletonProvision => baseline::skeleton_provision(port, &dir).await,
        Subject::Broker => broker::serve(port, &dir, broker::ResponseMode::AtOnce).await,
        Subject::StuckBroker => broker::serve(port, &dir, broker::ResponseMode::Never).await,
        Subject::Bundles => bundles::serve(port, &dir).await,
        Subject::Platform => platform::serve(port, &dir).await,
        Subject::StubBrokers => platform::serve_brokers(port).await,
    }
}

/// A running subject; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Time from the start of the process to the first response.
    pub(crate) ready: Duration,
}

impl Server {
    /// Starts a subject and waits for its first response.
    pub(crate) async fn start(subject: Subject, dir: &Path) -> Result<Self, BoxError> {
        let port = free_port()?;
        let name = subject
            .to_possible_value()
            .map(|it| it.get_name().to_owned())
            .unwrap_or_default();
        let started = Instant::now();
        let child = Command::new(std::env::current_exe()?)
            .args([
                "serve",
                "--subject",
                &name,
                "--port",
                &port.to_string(),
                "--dir",
            ])
            .arg(dir)
            .stdin(Stdio::null())
            .spawn()?;
        let mut server = Self {
            child,
            port,
            ready: Duration::ZERO,
        };
        while !crate::load::answers(port).await {
            if started.elapsed() > Duration::from_secs(120) {
                return Err(format!("{name} did not start").into());
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("{name} ended: {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.ready = started.elapsed();
        Ok(server)
    }

    /// Kills it without a clean shut-down.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it, until [`Server::resume`]. Its lease goes on meanwhile.
    pub(crate) fn pause(&self) -> Result<(), BoxError> {
        self.signal("-STOP")
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) -> Result<(), BoxError> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), BoxError> {
        let process = self.id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status()?;
        match sent.success() {
            true => Ok(()),
            false => Err(format!("kill {signal} failed").into()),
        }
    }

    /// Its resident memory in MB.
    pub(crate) fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap_or_default();
        let kb: f64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse().ok())
            .unwrap_or(f64::NAN);
        kb / 1024.0
    }

    /// The processor time it has used, in microseconds; the kernel counts in hundredths of a second.
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.ticks(11) + self.ticks(12)
    }

    /// The same of its ended children, and of theirs.
    pub(crate) fn cpu_micros_of_children(&self) -> f64 {
        self.ticks(13) + self.ticks(14)
    }

    /// One of the times that the kernel records for it, in microseconds.
    fn ticks(&self, nth: usize) -> f64 {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = rest.split(' ').nth(nth).and_then(|it| it.parse().ok());
        ticks.unwrap_or(0.0) * 10_000.0
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}
