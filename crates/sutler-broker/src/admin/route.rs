//! Routing of the administration API. No I/O.
//!
//! Decoded ids may contain any character, so the path is split before decoding. The path of a binding contains its
//! instance, because binding ids are unique per instance only.

use super::response::AdminError;
use crate::requests::CommandKind;
use hyper::Method;
use percent_encoding::percent_decode_str;
use sutler_journal::OperationId;
use sutler_osb::{BindingId, InstanceId};

/// An instance or a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourcePath {
    Instance(InstanceId),
    Binding(InstanceId, BindingId),
}

/// Route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Instances,
    Bindings,
    Operations,
    Audit,
    Show(ResourcePath),
    Operation(OperationId),
    Log(OperationId),
    Command(ResourcePath, CommandKind),
    Stats,
    Drain,
    Resume,
    Export,
    Import,
    Backup,
    Keys,
    RekeyState,
    Rekey,
    /// A page of an extension.
    Page(String),
    /// A page of an extension at a longer path.
    Extension(Vec<String>),
    /// A command of an extension.
    ExtensionCommand(Vec<String>),
}

/// First segments of the API itself: extensions have no paths below these.
const OWN: [&str; 12] = [
    "instances",
    "bindings",
    "operations",
    "audit",
    "stats",
    "export",
    "import",
    "backup",
    "drain",
    "resume",
    "keys",
    "rekey",
];

/// Query parameters of every list.
const PAGING: [&str; 3] = ["realm", "limit", "after"];

impl Route {
    /// Query parameters of this route, in addition to those of every list.
    pub(crate) fn parameters(&self) -> Vec<&'static str> {
        let own: &[&'static str] = match self {
            Self::Instances => &[
                "service",
                "plan",
                "lifecycle",
                "order",
                "version",
                "upgradable",
            ],
            Self::Bindings => &["service", "plan", "lifecycle", "instance", "order"],
            Self::Operations => &["instance", "binding", "state", "verb", "outcome"],
            Self::Audit => &["instance", "verb", "who", "outcome"],
            Self::Log(_) => &[],
            Self::Import => return vec!["realm", "unfinished"],
            Self::Show(_)
            | Self::Operation(_)
            | Self::Command(..)
            | Self::Stats
            | Self::Drain
            | Self::Resume
            | Self::Export
            | Self::Backup
            | Self::Keys
            | Self::RekeyState
            | Self::Rekey
            | Self::Page(_)
            | Self::Extension(_)
            | Self::ExtensionCommand(_) => return vec!["realm"],
        };
        PAGING.iter().chain(own).copied().collect()
    }
}

pub(crate) fn route(method: &Method, path: &str) -> Result<Route, AdminError> {
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let Some((&"v1", rest)) = segments.split_first() else {
        return Err(AdminError::no_such_path());
    };
    let (route, takes) = match *rest {
        ["instances"] => (Route::Instances, Method::GET),
        ["bindings"] => (Route::Bindings, Method::GET),
        ["operations"] => (Route::Operations, Method::GET),
        ["audit"] => (Route::Audit, Method::GET),
        ["stats"] => (Route::Stats, Method::GET),
        ["export"] => (Route::Export, Method::GET),
        ["import"] => (Route::Import, Method::POST),
        ["backup"] => (Route::Backup, Method::POST),
        ["keys"] => (Route::Keys, Method::GET),
        ["rekey"] if *method == Method::GET => (Route::RekeyState, Method::GET),
        ["rekey"] => (Route::Rekey, Method::POST),
        ["drain"] => (Route::Drain, Method::POST),
        ["resume"] => (Route::Resume, Method::POST),
        ["instances", id] => (Route::Show(instance(id)?), Method::GET),
        ["instances", id, verb] => (Route::Command(instance(id)?, command(verb)?), Method::POST),
        ["bindings", of, id] => (Route::Show(binding(of, id)?), Method::GET),
        ["bindings", of, id, verb] => (
            Route::Command(binding(of, id)?, command(verb)?),
            Method::POST,
        ),
        ["operations", id] => (Route::Operation(operation(id)?), Method::GET),
        ["operations", id, "log"] => (Route::Log(operation(id)?), Method::GET),
        [name] if *method == Method::GET => (Route::Page(name.to_owned()), Method::GET),
        [first, ..] if !OWN.contains(&first) && *method == Method::POST => {
            (Route::ExtensionCommand(all_decoded(rest)?), Method::POST)
        }
        [first, ..] if !OWN.contains(&first) => (Route::Extension(all_decoded(rest)?), Method::GET),
        _ => return Err(AdminError::no_such_path()),
    };
    match (takes == *method, takes == Method::POST) {
        (true, _) => Ok(route),
        (false, true) => Err(AdminError::method_not_allowed("POST")),
        (false, false) => Err(AdminError::method_not_allowed("GET")),
    }
}

fn all_decoded(segments: &[&str]) -> Result<Vec<String>, AdminError> {
    segments.iter().map(|it| decoded(it)).collect()
}

fn operation(segment: &str) -> Result<OperationId, AdminError> {
    OperationId::parse(segment)
        .ok_or_else(|| AdminError::invalid("An operation's id is a UUID in lower case."))
}

fn command(word: &str) -> Result<CommandKind, AdminError> {
    let mut all = CommandKind::ALL.into_iter();
    all.find(|it| it.word() == word).ok_or_else(|| {
        AdminError::not_found("There is no such order; use retry, cancel, abandon or purge.")
    })
}

fn instance(segment: &str) -> Result<ResourcePath, AdminError> {
    instance_id(segment).map(ResourcePath::Instance)
}

fn binding(of: &str, segment: &str) -> Result<ResourcePath, AdminError> {
    let id = BindingId::try_from(decoded(segment)?).map_err(|error| {
        AdminError::invalid(format!("The binding's id cannot be used: {error}."))
    })?;
    Ok(ResourcePath::Binding(instance_id(of)?, id))
}

fn instance_id(segment: &str) -> Result<InstanceId, AdminError> {
    InstanceId::try_from(decoded(segment)?)
        .map_err(|error| AdminError::invalid(format!("The instance's id cannot be used: {error}.")))
}

fn decoded(segment: &str) -> Result<String, AdminError> {
    percent_decode_str(segment)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| {
            AdminError::invalid("An id in the path is not UTF-8; percent-encode it again.")
        })
}

#[cfg(test)]
mod tests {
    use super::{ResourcePath, Route, route};
    use crate::requests::CommandKind;
    use hyper::Method;
    use sutler_osb::{BindingId, InstanceId};

    fn instance(id: &str) -> InstanceId {
        InstanceId::try_from(id).expect("a valid id")
    }

    #[test]
    fn ids_are_decoded_after_the_path_is_split() {
        let found = route(&Method::GET, "//v1/instances/a%2Fb").ok();
        assert_eq!(
            found,
            Some(Route::Show(ResourcePath::Instance(instance("a/b"))))
        );
        let binding = BindingId::try_from("b c").expect("a valid id");
        let found = route(&Method::POST, "/v1/bindings/a/b%20c/purge").ok();
        let wanted = Route::Command(
            ResourcePath::Binding(instance("a"), binding),
            CommandKind::Purge,
        );
        assert_eq!(found, Some(wanted));
    }

    #[test]
    fn unknown_paths_are_not_found() {
        for path in [
            "",
            "/",
            "/v2/instances",
            "/v1",
            "/v1/instances/a/b/c",
            "/v1/operations/a/log/b",
        ] {
            assert!(route(&Method::GET, path).is_err(), "{path}");
        }
        assert!(route(&Method::POST, "/v1/instances/a/explode").is_err());
        assert!(route(&Method::GET, "/v1/operations/not-a-uuid").is_err());
        // The extension decides whether there is such a page.
        let page = vec!["things".to_owned(), "a/b".to_owned()];
        assert_eq!(
            route(&Method::GET, "/v1/things/a%2Fb").ok(),
            Some(Route::Extension(page))
        );
    }

    #[test]
    fn reads_use_get_and_commands_use_post() {
        assert!(route(&Method::POST, "/v1/instances").is_err());
        assert!(route(&Method::GET, "/v1/instances/a/purge").is_err());
        assert!(route(&Method::DELETE, "/v1/instances/a").is_err());
        let rekey = |method| route(&method, "/v1/rekey").ok();
        assert_eq!(rekey(Method::GET), Some(Route::RekeyState));
        assert_eq!(rekey(Method::POST), Some(Route::Rekey));
        assert_eq!(rekey(Method::DELETE), None);
    }
}
