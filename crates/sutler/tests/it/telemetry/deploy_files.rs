//! The files in `deploy/`, compared with the existing metrics, and checked by promtool.

use super::tool;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use sutler_broker::metrics::{self, MetricKind};
use sutler_bundle_service::REGISTRY_METRICS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// All names in a text that look like our metrics.
fn named_in(text: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !part(c))
        .filter(|word| word.starts_with("sutler_"))
        .map(str::to_owned)
        .collect()
}

/// All names by which a query can find a metric.
fn known() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = REGISTRY_METRICS.iter().map(ToString::to_string).collect();
    for metric in metrics::metrics() {
        match metric.sort {
            MetricKind::Counter | MetricKind::Gauge => drop(names.insert(metric.name.to_owned())),
            MetricKind::Histogram => {
                for ending in ["_bucket", "_count", "_sum"] {
                    names.insert(format!("{}{ending}", metric.name));
                }
            }
        }
    }
    names
}

#[test]
fn dashboard_and_alerts_query_only_existing_metrics() {
    let known = known();
    for file in ["grafana/sutler.json", "prometheus/sutler.rules.yml"] {
        let text = std::fs::read_to_string(folder().join(file)).expect("it is there");
        let named = named_in(&text);
        assert!(named.len() > 5, "{file} names only {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
}

#[test]
fn every_metric_is_on_the_dashboard() {
    let text = std::fs::read_to_string(folder().join("grafana/sutler.json")).expect("it is there");
    serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    let names = metrics::metrics().map(|metric| metric.name);
    let missing: Vec<_> = names
        .chain(REGISTRY_METRICS)
        .filter(|name| !text.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn promtool_accepts_the_alerts_and_they_fire_as_expected() {
    let Some(promtool) = tool("promtool") else {
        return;
    };
    for arguments in [
        ["check", "rules", "sutler.rules.yml"],
        ["test", "rules", "sutler.rules.test.yml"],
    ] {
        let mut command = Command::new(&promtool);
        command
            .args(arguments)
            .current_dir(folder().join("prometheus"));
        let output = command.output().expect("promtool runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
}
