//! Log block: the log, the audit file and the metrics page.

use crate::config::findings::CheckFindings;
use crate::config::value_types::FilePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// What the broker writes about its work.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Log")]
pub struct LogConfig {
    /// How much: `error`, `warn`, `info`, `debug`, `trace`, or several such as
    /// `info,sutler_broker=debug`. Taken over at a reload.
    pub level: String,
    /// One line of text for people, or of JSON for programs.
    pub format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Format")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Who changed what.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Audit")]
pub struct AuditConfig {
    /// The file that lines are added to; without one they are part of the log. Opened again at a
    /// reload.
    pub file: Option<FilePath>,
}

/// Numbers for Prometheus.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Metrics")]
pub struct MetricsConfig {
    /// Whether everybody who can reach the port may read them; otherwise only the administration shows them.
    pub public: bool,
}

impl LogConfig {
    /// Checks that the level is a filter that the log can use.
    pub(in crate::config) fn check(&self, path: &str, findings: &mut CheckFindings) {
        let level = EnvFilter::try_new(&self.level);
        if level.is_err() || self.level.trim().is_empty() {
            let reason = "must be `error`, `warn`, `info`, `debug` or `trace`, or several such as \
                          `info,sutler_broker=debug`";
            findings.fault(format!("{path}.level"), reason);
        }
    }
}
