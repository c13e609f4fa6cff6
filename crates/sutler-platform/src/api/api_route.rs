//! A route: method, path, inputs, permission, name, handler.

use super::access::Permission;
use super::answer::HandlerAnswer;
use super::api_call::ApiCall;
use super::problem::Problem;
use super::request_inputs::Input;
use axum::http::Method;
use std::future::Future;
use std::pin::Pin;
use sutler_server::metrics::Route;

/// Path before every route.
pub(super) const BASE: &str = "/api/v1";

/// What a handler promises.
pub(super) type HandlerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<HandlerAnswer, Problem>> + Send + 'a>>;

/// Answers a request.
pub(super) type RouteHandler = for<'a> fn(&'a ApiCall<'a>) -> HandlerFuture<'a>;

/// Methods that routes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteMethod {
    /// Reads.
    Get,
    /// Creates or replaces what the path names.
    Put,
    /// Creates, or gives an order.
    Post,
    /// Changes by a merge patch.
    Patch,
    /// Deletes.
    Delete,
}

/// A route.
pub(super) struct ApiRoute {
    /// Method.
    pub method: RouteMethod,
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

/// A row of the table.
pub(super) const fn route(
    (method, path, inputs): (RouteMethod, &'static str, &'static [Input]),
    (permission, name): (Permission, &'static str),
    handler: RouteHandler,
) -> ApiRoute {
    ApiRoute {
        method,
        path,
        inputs,
        permission,
        name,
        handler,
        metrics: Route::new(name, path),
    }
}

impl RouteMethod {
    /// The method of a request. HEAD is answered as GET.
    pub(super) fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::GET | Method::HEAD => Some(Self::Get),
            Method::PUT => Some(Self::Put),
            Method::POST => Some(Self::Post),
            Method::PATCH => Some(Self::Patch),
            Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }

    /// The method as it is written.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether its requests only read.
    pub(super) fn is_read(self) -> bool {
        match self {
            Self::Get => true,
            Self::Put | Self::Post | Self::Patch | Self::Delete => false,
        }
    }
}
