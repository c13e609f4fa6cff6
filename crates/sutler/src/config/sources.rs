//! Where each value came from, and faults that say it.

use super::tree::nearest_to;
use std::fmt;
use sutler_yaml::{Location, Node, one_line};

/// Where a value came from; later ones win over earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The file, at a line.
    File(String, Location),
    /// A variable of the environment.
    Variable(String),
    /// A flag on the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
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
pub struct ConfigFault {
    /// Where: `sutler.yaml:3:7`, a variable or a flag.
    pub at: String,
    /// About what, e.g. `users[0].name`; may be empty.
    pub path: String,
    /// What is wrong and what to do. Quotes no value that could be a secret.
    pub reason: String,
}

impl fmt::Display for ConfigFault {
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

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "fault" } else { "faults" };
        write!(f, "the configuration has {} {plural}:", self.0.len())?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for ConfigFaults {}

/// The tree that everything was read from, and who changed it.
#[derive(Clone, Debug)]
pub struct Sources {
    pub(super) file: Option<String>,
    pub(super) root: Node,
    pub(super) changed: Vec<(String, Origin)>,
}

impl Sources {
    /// Where the value at a path came from.
    pub fn origin(&self, path: &str) -> Origin {
        if let Some(origin) = self.changed_at(path) {
            return origin.clone();
        }
        match (nearest_to(&self.root, path), &self.file) {
            ((node, true), Some(name)) if node.place.line > 0 => {
                Origin::File(name.clone(), node.begins())
            }
            ((_, true | false), _) => Origin::Default,
        }
    }

    /// Whether somebody said something at this path.
    pub fn says(&self, path: &str) -> bool {
        nearest_to(&self.root, path).1
    }

    fn changed_at(&self, path: &str) -> Option<&Origin> {
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

    /// A fault at a path; its place is where the path leads, or as far as it leads.
    pub(super) fn fault(&self, path: &str, reason: impl Into<String>) -> ConfigFault {
        let (node, _) = nearest_to(&self.root, path);
        self.fault_at(path, Some(node.place), reason)
    }

    /// A fault whose place in the file is known.
    pub(super) fn fault_at(
        &self,
        path: &str,
        place: Option<Location>,
        reason: impl Into<String>,
    ) -> ConfigFault {
        let at = match (self.changed_at(path), &self.file) {
            (Some(origin), _) => origin.to_string(),
            (None, Some(name)) => at(name, place),
            (None, None) => String::new(),
        };
        ConfigFault {
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
