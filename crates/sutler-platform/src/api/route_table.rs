//! What a route of the API is, and how that of a request is found. The table itself is `routes.rs`.
//!
//! The router, the check of permissions, metrics and the audit follow from it, and so will the description of the API. A
//! route that is not here does not exist; one without a permission cannot be written down.

use super::access::Permission;
use super::answer::ApiAnswer;
use super::api_call::ApiCall;
use super::path_pattern::{PathNames, matched};
use super::problem::Problem;
use super::request_inputs::Input;
use super::routes::ROUTES;
use axum::http::Method;
use std::future::Future;
use std::pin::Pin;
use sutler_server::metrics::Route;

/// Path before every route.
pub(super) const BASE: &str = "/api/v1";

/// What a handler promises.
pub(super) type HandlerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ApiAnswer, Problem>> + Send + 'a>>;

/// Answers a request.
pub(super) type RouteHandler = for<'a> fn(&'a ApiCall<'a>) -> HandlerFuture<'a>;

/// A route.
pub(super) struct ApiRoute {
    /// Method.
    pub method: Method,
    /// Path below [`BASE`].
    pub path: &'static str,
    /// Parameters and conditions that it has.
    pub inputs: &'static [Input],
    /// What its caller needs.
    pub permission: Permission,
    /// Its name, for metrics, the audit and the description of the API.
    pub name: &'static str,
    /// Answers its requests.
    pub handler: RouteHandler,
    /// Its metrics.
    pub metrics: Route,
}

/// The route of a request.
pub(super) enum FoundRoute {
    /// This one.
    Route(&'static ApiRoute, PathNames),
    /// The path has other methods.
    OtherMethod(String),
    /// There is nothing at the path.
    Unknown,
}

/// Finds the route of a request below [`BASE`]. HEAD is answered as GET.
pub(super) fn find(method: &Method, path: &str) -> FoundRoute {
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let mut others = Vec::new();
    for route in &ROUTES {
        let Some(names) = matched(route.path, path) else {
            continue;
        };
        if route.method == *method {
            return FoundRoute::Route(route, names);
        }
        others.push(route.method.as_str());
    }
    match others.is_empty() {
        true => FoundRoute::Unknown,
        false => FoundRoute::OtherMethod(others.join(", ")),
    }
}

#[cfg(test)]
mod tests;
