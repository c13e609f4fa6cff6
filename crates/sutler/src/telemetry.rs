//! Telemetry of the process: logs, metrics, traces and the audit.
//!
//! [`start`] sets the subscriber and the recorder of the process, once, before the broker
//! starts. JSON lines are in `telemetry/json_log.rs`, the audit file in
//! `telemetry/audit_file.rs`, Prometheus in `telemetry/prometheus.rs`, OpenTelemetry in `telemetry/traces.rs`.

mod audit_file;
mod json_fields;
mod json_log;
mod prometheus;
#[cfg(feature = "otel")]
mod traces;

use audit_file::{AuditLayer, AuditSink};
use std::io;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use sutler::{AuditConfig, FilePath, LogConfig, LogFormat};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Reason why telemetry cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// The level is invalid.
    #[error(
        "the log level {0:?} cannot be used: write error, warn, info, debug or trace, or several such as info,sutler_broker=debug"
    )]
    Level(String),
    /// The audit file cannot be opened.
    #[error(
        "the audit log {0} cannot be opened for writing; make its folder, or give it to this user"
    )]
    Audit(PathBuf, #[source] io::Error),
    /// Logs or metrics are already set up.
    #[error("logs or metrics are already set up in this process; set them up once")]
    Twice,
    /// Traces cannot be sent.
    #[error("traces cannot be sent as the OTEL_ variables say; correct or unset them")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sets up logs, metrics, traces and audit for this process. Can be called once.
pub(crate) fn start(log: &LogConfig, audit: &AuditConfig) -> Result<Telemetry, TelemetryError> {
    Telemetry::start(log, audit)
}

/// Handle of the telemetry of the process.
pub(crate) struct Telemetry {
    level: reload::Handle<EnvFilter, Registry>,
    audit: Option<Arc<AuditSink>>,
    numbers: prometheus::MetricsRecorder,
    #[cfg(feature = "otel")]
    traces: Option<traces::TraceSender>,
}

impl Telemetry {
    fn start(log: &LogConfig, audit: &AuditConfig) -> Result<Self, TelemetryError> {
        let numbers = prometheus::MetricsRecorder::install()?;
        let (filter, level) = reload::Layer::new(filter(&log.level)?);
        let audit = match &audit.file {
            Some(FilePath(path)) => Some(Arc::new(
                AuditSink::open(path).map_err(|e| TelemetryError::Audit(path.clone(), e))?,
            )),
            None => None,
        };
        let mut layers: Vec<BoxedLayer> = Vec::new();
        let log = match log.format {
            LogFormat::Text => text_layer(),
            LogFormat::Json => json_log::JsonLogLayer::new(io::stderr).boxed(),
        };
        let audits = filter_fn(audit_file::is_audit).with_max_level_hint(LevelFilter::INFO);
        match &audit {
            Some(sink) => {
                layers.push(log.with_filter(filter.and(audits.clone().not())).boxed());
                let lines = AuditLayer::new(sink.clone());
                layers.push(lines.with_filter(audits).boxed());
            }
            // Without an audit file, audit lines are part of the log at any level.
            None => layers.push(log.with_filter(filter.or(audits)).boxed()),
        }
        #[cfg(feature = "otel")]
        let traces = match traces::TraceSender::from_environment()? {
            Some((traces, layer)) => {
                layers.push(layer);
                Some(traces)
            }
            None => None,
        };
        let registry = tracing_subscriber::registry().with(layers);
        registry.try_init().map_err(|_| TelemetryError::Twice)?;
        Ok(Self {
            level,
            audit,
            numbers,
            #[cfg(feature = "otel")]
            traces,
        })
    }

    /// Changes the log level.
    ///
    /// # Errors
    /// The level is invalid; the old one stays.
    pub(crate) fn set_level(&self, level: &str) -> Result<(), TelemetryError> {
        let set = self.level.reload(filter(level)?);
        set.map_err(|_| TelemetryError::Twice)
    }

    /// Opens the audit file again, e.g. after log rotation.
    ///
    /// # Errors
    /// The file cannot be opened; the old one stays in use.
    pub(crate) fn reopen_audit(&self) -> Result<(), TelemetryError> {
        let Some(sink) = &self.audit else {
            return Ok(());
        };
        sink.reopen()
            .map_err(|error| TelemetryError::Audit(sink.path().to_owned(), error))
    }

    /// Renders the metrics page for Prometheus.
    pub(crate) fn metrics_page(&self) -> impl Fn() -> String + Send + Sync + 'static {
        self.numbers.page()
    }

    /// Sends pending traces, for at most a few seconds.
    pub(crate) async fn finish(&self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = &self.traces {
            traces.finish().await;
        }
    }
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(level).map_err(|_| TelemetryError::Level(level.to_owned()))
}

fn text_layer() -> BoxedLayer {
    // Fields for the tracer are not printed.
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{value:?}"),
        name if name.starts_with("otel.") => Ok(()),
        name => write!(writer, "{name}={value:?}"),
    });
    tracing_subscriber::fmt::layer()
        .fmt_fields(fields.delimited(" "))
        .with_writer(io::stderr)
        // No colours in files.
        .with_ansi(io::stderr().is_terminal())
        .boxed()
}
