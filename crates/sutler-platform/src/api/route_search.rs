//! Finds the route of a request.

use super::api_route::{ApiRoute, RouteMethod};
use super::path_pattern::{PathNames, matched};
use super::route_table::ROUTES;
use axum::http::Method;

/// The route of a request.
pub(super) enum FoundRoute {
    /// This one.
    Route(&'static ApiRoute, PathNames),
    /// The path has other methods.
    OtherMethod(String),
    /// There is nothing at the path.
    Unknown,
}

/// Finds the route of a request below `BASE`.
pub(super) fn find(method: &Method, path: &str) -> FoundRoute {
    let method = RouteMethod::of(method);
    let mut others = Vec::new();
    for route in &ROUTES {
        let Some(names) = matched(route.path, path) else {
            continue;
        };
        if Some(route.method) == method {
            return FoundRoute::Route(route, names);
        }
        others.push(route.method.word());
    }
    match others.is_empty() {
        true => FoundRoute::Unknown,
        false => FoundRoute::OtherMethod(others.join(", ")),
    }
}
