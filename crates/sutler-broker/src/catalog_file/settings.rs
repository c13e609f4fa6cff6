//! Settings of the framework in a catalog file: handling of unknown ids, and cleanup schedules.
//!
//! They are under `com.equalities.osbapi`, nested or dotted, next to the catalog. The defaults of `CleanupSettings`
//! (14 and 3 days) are those of every broker.

use super::duration;
use super::fields::Findings;
use std::time::Duration;
use sutler_records::Schedule;
use sutler_yaml::{Kind, Node};

/// Path of the settings.
const ROOT: [&str; 3] = ["com", "equalities", "osbapi"];

/// Default time that finished operations are kept.
const OPERATIONS_KEPT_DEFAULT: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Default minimum age of a finished operation.
const CLEANUP_AGE_DEFAULT: Duration = Duration::from_secs(3 * 24 * 60 * 60);

const INSTANCES: &str = "service-instances";
const BINDINGS: &str = "service-bindings";

/// Keys of the settings of one kind of resource.
const KEYS: [&str; 5] = [
    "force-delete-unknown",
    "operations.cleanup-age",
    "operations.cleanup-all",
    "operations.cleanup-succeeded",
    "operations.cleanup-failed",
];

/// Settings of a broker that a catalog file may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// For service instances.
    pub instances: KindSettings,
    /// For service bindings.
    pub bindings: KindSettings,
}

/// Settings for service instances, or for service bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindSettings {
    /// Whether deleting an unknown id succeeds.
    pub force_delete_unknown: bool,
    /// When finished operations are removed.
    pub cleanup: CleanupSettings,
}

/// When finished operations are removed. Those that a document refers to stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupSettings {
    /// How long they are kept at most, with or without a schedule; never shorter than `age`.
    pub kept: Duration,
    /// Minimum time since the end of an operation that a schedule removes.
    pub age: Duration,
    /// When all operations of that age are removed.
    pub all: Option<Schedule>,
    /// When those that succeeded are removed.
    pub succeeded: Option<Schedule>,
    /// When those that failed are removed.
    pub failed: Option<Schedule>,
}

impl Default for CleanupSettings {
    fn default() -> Self {
        Self {
            kept: OPERATIONS_KEPT_DEFAULT,
            age: CLEANUP_AGE_DEFAULT,
            all: None,
            succeeded: None,
            failed: None,
        }
    }
}

/// Reads the settings from all documents of a file.
pub(super) fn read(documents: &[&Node], findings: &mut Findings) -> FileSettings {
    let mut settings = FileSettings::default();
    let mut keys_read: Vec<String> = Vec::new();
    for document in documents {
        for (path, node) in sutler_yaml::leaves(document) {
            let Some(path) = below_root(&path) else {
                continue;
            };
            let Some((kind, key)) = known_setting(&path) else {
                warn_of_unknown(&path, node, findings);
                continue;
            };
            let full = format!("{}.{kind}.{key}", ROOT.join("."));
            if keys_read.contains(&full) {
                findings.fault(node.place, full, "is given twice".to_owned(), None);
                continue;
            }
            let target = if kind == INSTANCES {
                &mut settings.instances
            } else {
                &mut settings.bindings
            };
            if let Err(reason) = set(target, key, node) {
                findings.fault(node.place, full.clone(), reason, None);
            }
            keys_read.push(full);
        }
    }
    settings
}

/// The rest of a path that leads to a setting.
fn below_root(path: &[&str]) -> Option<String> {
    let (root, rest) = path.split_at_checked(ROOT.len())?;
    let same = root
        .iter()
        .zip(ROOT)
        .all(|(one, other)| sutler_yaml::plain(one) == other);
    (same && !rest.is_empty()).then(|| rest.join("."))
}

fn known_setting(path: &str) -> Option<(&'static str, &'static str)> {
    let plain = sutler_yaml::plain(path);
    let kinds = [INSTANCES, BINDINGS].into_iter();
    kinds
        .flat_map(|kind| KEYS.into_iter().map(move |key| (kind, key)))
        .find(|(kind, key)| sutler_yaml::plain(&format!("{kind}.{key}")) == plain)
}

fn warn_of_unknown(path: &str, node: &Node, findings: &mut Findings) {
    let all: Vec<String> = [INSTANCES, BINDINGS]
        .into_iter()
        .flat_map(|kind| KEYS.into_iter().map(move |key| format!("{kind}.{key}")))
        .collect();
    // An empty mapping sets nothing, and is not wrong.
    if let Kind::Null = node.kind {
        return;
    }
    let (root, place) = (ROOT.join("."), node.place);
    let shown: String = path.chars().take(120).collect();
    let mut warning = format!("{place}: the unknown key `{root}.{shown}` is ignored");
    if let Some(meant) = sutler_yaml::nearest(path, all.iter().map(String::as_str)) {
        warning.push_str(&format!("; did you mean `{root}.{meant}`?"));
    }
    findings.warnings.push(warning);
}

fn set(settings: &mut KindSettings, key: &str, node: &Node) -> Result<(), String> {
    if matches!(node.kind, Kind::Null) {
        return Ok(());
    }
    let Some(text) = node.text() else {
        return Err(format!(
            "must be a single value, but is {}",
            node.kind_name()
        ));
    };
    let shown: String = text.chars().take(80).collect();
    let cleanup = &mut settings.cleanup;
    let schedule = || Schedule::parse_optional(&text).map_err(|error| error.to_string());
    let wrong = |reason: String| format!("is `{shown}`, but {reason}");
    match key {
        "force-delete-unknown" => {
            let flag = node.boolean();
            let reason = "must be true or false".to_owned();
            settings.force_delete_unknown = flag.ok_or(reason).map_err(wrong)?;
        }
        "operations.cleanup-age" => cleanup.age = duration::parse(&text).map_err(wrong)?,
        "operations.cleanup-all" => cleanup.all = schedule().map_err(without_value)?,
        "operations.cleanup-succeeded" => cleanup.succeeded = schedule().map_err(without_value)?,
        "operations.cleanup-failed" => cleanup.failed = schedule().map_err(without_value)?,
        unknown => return Err(format!("has no setting `{unknown}`")),
    }
    Ok(())
}

/// A schedule's error quotes the value itself.
fn without_value(error: String) -> String {
    format!("must be a schedule: {error}")
}
