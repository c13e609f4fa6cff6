//! Routing: maps a path to its endpoint and ids.
//!
//! Decoded ids may contain any character, even a slash, so the path is split before its segments are decoded
//! (B-020). Leading double slashes, as from a broker URL that ends in a slash, are accepted.

use hyper::Method;
use sutler_osb::{BindingId, InstanceId};
use sutler_server::RequestClass;

/// Patterns for the router: everything below `/v2`, so that unknown paths and empty ids get a description too;
/// also after a URL that ends in a slash.
pub(crate) const PATHS: [&str; 4] = ["/v2", "/v2/", "/v2/{*rest}", "//v2/{*rest}"];

/// The ten endpoints of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `GET /v2/catalog`
    Catalog,
    /// `PUT /v2/service_instances/{id}`
    Provision,
    /// `GET /v2/service_instances/{id}`
    FetchInstance,
    /// `PATCH /v2/service_instances/{id}`
    Update,
    /// `DELETE /v2/service_instances/{id}`
    Deprovision,
    /// `GET /v2/service_instances/{id}/last_operation`
    PollInstance,
    /// `PUT /v2/service_instances/{id}/service_bindings/{id}`
    Bind,
    /// `GET /v2/service_instances/{id}/service_bindings/{id}`
    FetchBinding,
    /// `DELETE /v2/service_instances/{id}/service_bindings/{id}`
    Unbind,
    /// `GET /v2/service_instances/{id}/service_bindings/{id}/last_operation`
    PollBinding,
}

impl Endpoint {
    /// Class of its requests: reads or changes.
    pub(super) fn class(self) -> RequestClass {
        match self {
            Self::Provision | Self::Update | Self::Deprovision | Self::Bind | Self::Unbind => {
                RequestClass::Change
            }
            Self::Catalog
            | Self::FetchInstance
            | Self::PollInstance
            | Self::FetchBinding
            | Self::PollBinding => RequestClass::Read,
        }
    }

    pub(super) fn takes_body(self) -> bool {
        match self {
            Self::Provision | Self::Update | Self::Bind => true,
            Self::Catalog
            | Self::FetchInstance
            | Self::Deprovision
            | Self::PollInstance
            | Self::FetchBinding
            | Self::Unbind
            | Self::PollBinding => false,
        }
    }
}

/// The ids of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    None,
    Instance(InstanceId),
    Binding(InstanceId, BindingId),
}

/// Result of routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouteMatch {
    To(Endpoint, Ids),
    Unknown,
    /// The path exists, but only for these methods.
    OtherMethod(&'static str),
    /// The path contains an invalid id; the sentence has the reason.
    BadId(String),
}

/// Finds the endpoint of a method and a raw path.
pub(super) fn route(method: &Method, path: &str) -> RouteMatch {
    let path = path.trim_start_matches('/');
    let Some(rest) = path.strip_prefix("v2/") else {
        return RouteMatch::Unknown;
    };
    let mut segments = rest.split('/');
    let place = [(); 6].map(|()| segments.next());
    match place {
        [Some("catalog"), None, ..] => choose(
            method,
            Ids::None,
            &[(Method::GET, Endpoint::Catalog)],
            "GET",
        ),
        [Some("service_instances"), Some(instance), None, ..] => {
            let ids = InstanceId::from_path_segment(instance).map(Ids::Instance);
            ids.map_or_else(
                |error| RouteMatch::BadId(error.to_string()),
                |ids| on_instance(method, ids),
            )
        }
        [
            Some("service_instances"),
            Some(instance),
            Some("last_operation"),
            None,
            ..,
        ] => {
            let ids = InstanceId::from_path_segment(instance).map(Ids::Instance);
            let to = |ids| choose(method, ids, &[(Method::GET, Endpoint::PollInstance)], "GET");
            ids.map_or_else(|error| RouteMatch::BadId(error.to_string()), to)
        }
        [
            Some("service_instances"),
            Some(instance),
            Some("service_bindings"),
            Some(binding),
            tail,
            end,
        ] => {
            let ids = InstanceId::from_path_segment(instance)
                .and_then(|i| BindingId::from_path_segment(binding).map(|b| Ids::Binding(i, b)));
            match (ids, tail, end) {
                (Err(error), _, _) => RouteMatch::BadId(error.to_string()),
                (Ok(ids), None, _) => on_binding(method, ids),
                (Ok(ids), Some("last_operation"), None) => {
                    choose(method, ids, &[(Method::GET, Endpoint::PollBinding)], "GET")
                }
                (Ok(_), Some(_), _) => RouteMatch::Unknown,
            }
        }
        _ => RouteMatch::Unknown,
    }
}

fn on_instance(method: &Method, ids: Ids) -> RouteMatch {
    let endpoints = [
        (Method::PUT, Endpoint::Provision),
        (Method::GET, Endpoint::FetchInstance),
        (Method::PATCH, Endpoint::Update),
        (Method::DELETE, Endpoint::Deprovision),
    ];
    choose(method, ids, &endpoints, "DELETE, GET, PATCH, PUT")
}

fn on_binding(method: &Method, ids: Ids) -> RouteMatch {
    let endpoints = [
        (Method::PUT, Endpoint::Bind),
        (Method::GET, Endpoint::FetchBinding),
        (Method::DELETE, Endpoint::Unbind),
    ];
    choose(method, ids, &endpoints, "DELETE, GET, PUT")
}

fn choose(
    method: &Method,
    ids: Ids,
    endpoints: &[(Method, Endpoint)],
    allow: &'static str,
) -> RouteMatch {
    let found = endpoints.iter().find(|(known, _)| known == method);
    found.map_or(RouteMatch::OtherMethod(allow), |(_, endpoint)| {
        RouteMatch::To(*endpoint, ids)
    })
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Ids, RouteMatch, route};
    use hyper::Method;
    use sutler_osb::{BindingId, InstanceId};

    fn instance(id: &str) -> Ids {
        Ids::Instance(InstanceId::try_from(id).unwrap())
    }

    /// Holds: B-020.
    #[test]
    fn ids_are_decoded_after_the_path_is_split() {
        let found = route(&Method::GET, "/v2/service_instances/a%2Fb%20%C3%A4");
        assert_eq!(
            found,
            RouteMatch::To(Endpoint::FetchInstance, instance("a/b ä"))
        );
        let binding = BindingId::try_from("last_operation").unwrap();
        let ids = Ids::Binding(InstanceId::try_from("service_bindings").unwrap(), binding);
        let path = "/v2/service_instances/service_bindings/service_bindings/last_operation";
        assert_eq!(
            route(&Method::PUT, path),
            RouteMatch::To(Endpoint::Bind, ids)
        );
    }

    #[test]
    fn leading_double_slashes_are_accepted() {
        assert_eq!(
            route(&Method::GET, "//v2/catalog"),
            RouteMatch::To(Endpoint::Catalog, Ids::None)
        );
    }

    #[test]
    fn unknown_paths_have_no_endpoint() {
        for path in [
            "/",
            "/v2",
            "/v2/",
            "/v3/catalog",
            "/v2/catalog/x",
            "/v2/service_instances",
        ] {
            assert_eq!(route(&Method::GET, path), RouteMatch::Unknown, "{path}");
        }
        let deep = "/v2/service_instances/a/service_bindings/b/last_operation/c";
        assert_eq!(route(&Method::GET, deep), RouteMatch::Unknown);
    }

    #[test]
    fn invalid_ids_are_reported() {
        for path in [
            "/v2/service_instances/",
            "/v2/service_instances/%FF",
            "/v2/service_instances/a%00",
        ] {
            assert!(
                matches!(route(&Method::PUT, path), RouteMatch::BadId(_)),
                "{path}"
            );
        }
    }

    #[test]
    fn another_method_gets_the_allowed_methods() {
        let found = route(&Method::POST, "/v2/service_instances/a");
        assert_eq!(found, RouteMatch::OtherMethod("DELETE, GET, PATCH, PUT"));
    }
}
