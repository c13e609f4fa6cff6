//! The broker under measurement: the `sutler` executable in the directory of this one, on SQLite.

use super::BoxError;
use crate::load;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PASSWORD: &str = "only on this machine";
/// Interval at which the end of a refresh is checked.
const LOOK: Duration = Duration::from_millis(10);
/// Time limit of one refresh.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// A running broker; killed when dropped.
pub(super) struct Broker {
    child: Child,
    http: reqwest::Client,
    pub(super) port: u16,
    /// Time from the start of the process to the first response.
    pub(super) ready: Duration,
}

impl Broker {
    /// Starts a broker with this registry, over the data that an earlier one left in the directory.
    pub(super) async fn start(dir: &Path, registry: &str) -> Result<Self, BoxError> {
        let config = format!(
            "auth: none\nstore: {{url: 'sqlite:sutler.db'}}\n\
             admin: {{users: [{{name: root, password: '{PASSWORD}'}}]}}\n\
             bundles: {{work: work}}\nlog: {{level: warn}}\n\
             refresh: {{every: 1d}}\nregistry:\n  - {registry}\n"
        );
        fs::write(dir.join("sutler.yaml"), config)?;
        let program = std::env::current_exe()?.with_file_name("sutler");
        if !program.is_file() {
            return Err("build the executable first: cargo build --profile bench -p sutler".into());
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let began = Instant::now();
        let child = Command::new(program)
            .args(["broker", "--config", "sutler.yaml", "--listen"])
            .arg(format!("127.0.0.1:{port}"))
            .current_dir(dir)
            .stdin(Stdio::null())
            .stderr(File::create(dir.join("log.txt"))?)
            .spawn()?;
        let mut broker = Self {
            child,
            http: reqwest::Client::builder().no_proxy().build()?,
            port,
            ready: Duration::ZERO,
        };
        while !load::answers(port).await {
            if let Some(status) = broker.child.try_wait()? {
                let log = fs::read_to_string(dir.join("log.txt"))?;
                return Err(format!("the broker ended: {status}: {log}").into());
            }
            within(began)?;
            tokio::time::sleep(LOOK).await;
        }
        broker.ready = began.elapsed();
        Ok(broker)
    }

    async fn ask(&self, method: reqwest::Method, path: &str) -> Result<Value, BoxError> {
        let url = format!("http://127.0.0.1:{}/admin/v1/{path}", self.port);
        let prepared = self.http.request(method, url);
        let answer = prepared.basic_auth("root", Some(PASSWORD)).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        match status.is_success() {
            true => Ok(serde_json::from_str(&text)?),
            false => Err(format!("{path}: {status} {text}").into()),
        }
    }

    /// Requests a refresh, and returns its duration.
    pub(super) async fn refresh(&self) -> Result<Duration, BoxError> {
        let began = Instant::now();
        let order = self
            .ask(reqwest::Method::POST, "registries/refresh")
            .await?;
        let number = order["number"].as_u64().ok_or("no number")?;
        loop {
            let refresh = &self.ask(reqwest::Method::GET, "registries").await?["refresh"];
            if refresh["served"].as_u64() >= Some(number) && refresh["running_since"].is_null() {
                return match refresh["failure"].as_str() {
                    None => Ok(began.elapsed()),
                    Some(failure) => Err(failure.to_owned().into()),
                };
            }
            within(began)?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the refresh of the start is over.
    pub(super) async fn settled(&self) -> Result<(), BoxError> {
        self.refresh().await.map(drop)
    }

    /// Waits until this many services are offered.
    pub(super) async fn until_offered(&self, count: usize) -> Result<(), BoxError> {
        let began = Instant::now();
        loop {
            let shown = self.ask(reqwest::Method::GET, "registries").await?;
            let bundle = shown["registries"][0]["offered"].as_u64();
            if bundle == Some(count as u64) {
                return Ok(());
            }
            within(began)?;
            tokio::time::sleep(10 * LOOK).await;
        }
    }

    pub(super) async fn catalog_mb(&self) -> Result<f64, BoxError> {
        let url = format!("http://127.0.0.1:{}/v2/catalog", self.port);
        let prepared = self.http.get(url).header("X-Broker-API-Version", "2.17");
        let bytes = prepared.send().await?.bytes().await?;
        Ok(bytes.len() as f64 / 1e6)
    }

    /// Its peak memory, in MB.
    pub(super) fn peak_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
        let kb = line.and_then(|it| it.trim().split(' ').next()?.parse::<f64>().ok());
        kb.unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn within(began: Instant) -> Result<(), BoxError> {
    match began.elapsed() < PATIENCE {
        true => Ok(()),
        false => Err("it takes too long; see log.txt in its directory".into()),
    }
}
