//! Source of each value of a configuration, and diagnostics with it.

use super::tree::nearest_to;
use std::fmt;
use sutler_yaml::{Location, Node, one_line};

/// Source of a value; later variants override earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// Not set.
    Default,
    /// The file, at a line.
    File(String, Location),
    /// A variable of the environment.
    Variable(String),
    /// A flag on the command line.
    Flag(&'static str),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name, place) => write!(f, "{name}:{}", place.line),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One fault of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDiagnostic {
    /// The place: `sutler.yaml:3:7`, a variable or a flag.
    pub at: String,
    /// The path of the value, e.g. `users[0].name`; may be empty.
    pub path: String,
    /// The fault and how to fix it. Never quotes a value that could be a secret.
    pub reason: String,
}

impl fmt::Display for ConfigDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", one_line(&self.at))?;
        }
        if !self.path.is_empty() {
            write!(f, "{} ", one_line(&self.path))?;
        }
        f.write_str(&one_line(&self.reason))
    }
}

/// All faults of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<ConfigDiagnostic>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "fault" } else { "faults" };
        write!(f, "the configuration has {} {plural}:", self.0.len())?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for ConfigError {}

/// The tree of values, and the paths that variables and flags changed.
#[derive(Clone, Debug)]
pub struct ConfigSources {
    pub(super) file: Option<String>,
    pub(super) root: Node,
    pub(super) changed: Vec<(String, ValueOrigin)>,
}

impl ConfigSources {
    /// The source of the value at a path.
    pub fn origin(&self, path: &str) -> ValueOrigin {
        if let Some(origin) = self.changed_at(path) {
            return origin.clone();
        }
        match (nearest_to(&self.root, path), &self.file) {
            ((node, true), Some(name)) if node.place.line > 0 => {
                ValueOrigin::File(name.clone(), node.begins())
            }
            ((_, true | false), _) => ValueOrigin::Default,
        }
    }

    /// Whether a value is set at this path.
    pub fn is_set(&self, path: &str) -> bool {
        nearest_to(&self.root, path).1
    }

    fn changed_at(&self, path: &str) -> Option<&ValueOrigin> {
        let covers = |changed: &str| {
            path.strip_prefix(changed)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let latest = self.changed.iter().rev();
        latest
            .into_iter()
            .find(|(changed, _)| covers(changed))
            .map(|(_, origin)| origin)
    }

    /// A diagnostic for a path; its place is the node at the path, or the nearest one above it.
    pub(super) fn fault(&self, path: &str, reason: impl Into<String>) -> ConfigDiagnostic {
        let (node, _) = nearest_to(&self.root, path);
        self.fault_at(path, Some(node.place), reason)
    }

    /// A diagnostic with a known place in the file.
    pub(super) fn fault_at(
        &self,
        path: &str,
        place: Option<Location>,
        reason: impl Into<String>,
    ) -> ConfigDiagnostic {
        let at = match (self.changed_at(path), &self.file) {
            (Some(origin), _) => origin.to_string(),
            (None, Some(name)) => at(name, place),
            (None, None) => String::new(),
        };
        ConfigDiagnostic {
            at,
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// `sutler.yaml:3:7`.
pub(super) fn at(name: &str, place: Option<Location>) -> String {
    match place.filter(|place| place.line > 0) {
        Some(place) => format!("{name}:{}:{}", place.line, place.column),
        None => name.to_owned(),
    }
}
