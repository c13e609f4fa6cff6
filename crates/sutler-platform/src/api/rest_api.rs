//! The API as one HTTP application: probes, then routes; every check of a request in one order.
//!
//! The order: size, path, authentication, method, permission, inputs, body, a place to run in. So an
//! unauthenticated caller can find out only which paths exist, and a caller without the permission causes no read of the
//! store. What an authenticated caller is refused is in the audit. What is left
//! after the body is in `permitted_request.rs`. A request that waits for the end of its intent gives
//! its place back first. `serve.rs` serves it on a port.

use super::access::{AccessSettings, Permission};
use super::answer::HandlerAnswer;
use super::api_route::{ApiRoute, BASE};
use super::audit_line::{AuditedRequest, audit};
use super::browser_request::{refuse_other_media, refuse_other_sites};
use super::health::PlatformHealth;
use super::on_behalf::represented_person;
use super::path_pattern::PathNames;
use super::permitted_request::PermittedRequest;
use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::request_inputs::RequestInputs;
use super::route_search::{FoundRoute, find};
use crate::author::Author;
use crate::platform::Platform;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::catch_panic;
use sutler_server::metrics::{self, LimitKind};
use sutler_server::{
    Admission, Auth, BodyLimits, Caller, CallerPermit, ErrorResponse, Probes, RequestContext,
    read_body,
};

/// Header with the id of a request, in both directions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Path of the page of metrics.
const METRICS: &str = "/metrics";
/// Longest id of a request that is taken over, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Everything that answers requests.
pub(super) struct RestApi {
    pub platform: Platform,
    pub auth: Auth,
    pub access: Arc<AccessSettings>,
    pub admission: Arc<Admission>,
    pub body: BodyLimits,
    pub probes: Probes,
    pub health: Arc<PlatformHealth>,
}

/// A request whose route and author are known.
struct AuthoredRequest {
    route: &'static ApiRoute,
    names: PathNames,
    author: Author,
    /// Its share of the limits of its caller; none without a caller.
    permit: Option<CallerPermit>,
}

impl AuthoredRequest {
    fn audited<'a>(&'a self, request_id: &'a str) -> AuditedRequest<'a> {
        AuditedRequest::new(self.route, &self.author, &self.names, request_id)
    }
}

impl RestApi {
    /// Answers one request. Never fails, never panics.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        let request_id = request_id(request.headers());
        let context = RequestContext::begin(&request, request_id);
        // Boxed once, here, so that an idle connection reserves no memory for it.
        let answered = Box::pin(self.dispatch(request, &context));
        let mut response = context.observe(answered).await;
        if let Ok(id) = HeaderValue::from_str(context.request_id()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }

    async fn dispatch<B>(
        &self,
        request: Request<B>,
        context: &Arc<RequestContext>,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        let path = request.uri().path();
        if let Some(reply) = self.probes.answer(request.method(), path, context) {
            return reply.map(Body::new);
        }
        let shows_metrics = path == METRICS && request.method() == Method::GET;
        let (parts, body) = request.into_parts();
        if shows_metrics {
            let page = self.metrics(&parts, context).await;
            return page.unwrap_or_else(Response::from);
        }
        match catch_panic(self.respond(&parts, body, context)).await {
            Ok(Ok(response)) => response,
            Ok(Err(problem)) => problem.into(),
            Err(()) => Problem::panicked().into(),
        }
    }

    /// The page of metrics for those who are authenticated, where it is not for everybody.
    async fn metrics(
        &self,
        parts: &Parts,
        context: &RequestContext,
    ) -> Result<Response<Body>, Problem> {
        self.authenticate(parts, context).await?;
        let page = self.probes.metrics(context);
        let page = page.ok_or_else(Problem::no_such_path)?;
        Ok(page.map(Body::new))
    }

    async fn respond<B>(
        &self,
        parts: &Parts,
        body: B,
        context: &Arc<RequestContext>,
    ) -> Result<Response<Body>, Problem>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        let authored = self.authored(parts, context).await?;
        let (inputs, body) = match self.permitted(&authored, parts, body).await {
            Ok(read) => read,
            Err(problem) => {
                audit(&authored.audited(context.request_id()), Err(&problem));
                return Err(problem);
            }
        };
        let wait = inputs.wait;
        let request = PermittedRequest {
            platform: self.platform.clone(),
            access: self.access.clone(),
            admission: self.admission.clone(),
            route: authored.route,
            names: authored.names,
            author: authored.author,
            permit: authored.permit,
            request_id: context.request_id().to_owned(),
            inputs,
            headers: parts.headers.clone(),
            body,
        };
        let (answer, permit) = request.answer().await;
        match answer? {
            HandlerAnswer::Ready(response) => Ok(response),
            HandlerAnswer::Accepted(change) => {
                let operation = change.resource.operation(&self.platform, change.number);
                if let Some((_, operation)) = operation {
                    context.set_operation(operation.0);
                }
                let pending = change.pending(&self.platform);
                let waited = |within| change.waited(&self.platform, within);
                self.wait(wait, permit, pending, waited).await
            }
            HandlerAnswer::Syncing(sync) => {
                let pending = sync.pending(&self.platform);
                let waited = |within| sync.waited(&self.platform, within);
                self.wait(wait, permit, pending, waited).await
            }
        }
    }

    /// Size, path, authentication, method.
    async fn authored(
        &self,
        parts: &Parts,
        context: &RequestContext,
    ) -> Result<AuthoredRequest, Problem> {
        self.check_size(parts)?;
        let path = parts.uri.path().strip_prefix(BASE).unwrap_or_default();
        let (route, names) = match find(&parts.method, path) {
            FoundRoute::Route(route, names) => (route, names),
            FoundRoute::Unknown => return Err(Problem::no_such_path()),
            FoundRoute::OtherMethod(allowed) => {
                self.authenticate(parts, context).await?;
                return Err(Problem::method_not_allowed(&allowed));
            }
        };
        context.set_route(&route.metrics);
        let (author, permit) = if route.permission == Permission::Public {
            (Author::of_caller(&Caller::anonymous()), None)
        } else {
            let (caller, permit) = self.caller(parts, context).await?;
            let author = match self.acting(parts, &caller) {
                Ok(author) => author,
                Err(problem) => {
                    let refused = AuditedRequest {
                        author: &caller,
                        acts_for_others: true,
                        ..AuditedRequest::new(route, &caller, &names, context.request_id())
                    };
                    audit(&refused, Err(&problem));
                    return Err(problem);
                }
            };
            (author, Some(permit))
        };
        Ok(AuthoredRequest {
            route,
            names,
            author,
            permit,
        })
    }

    /// Checks permission and inputs, and reads the body.
    async fn permitted<B>(
        &self,
        request: &AuthoredRequest,
        parts: &Parts,
        body: B,
    ) -> Result<(RequestInputs, Bytes), Problem>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        let route = request.route;
        let is_read = route.method.is_read();
        if !self.access.allows(&request.author, route.permission) {
            return Err(Problem::lacks(route.permission));
        }
        if !is_read {
            refuse_other_sites(parts)?;
        }
        let query = parts.uri.query().unwrap_or_default();
        let inputs = RequestInputs::parse(route.inputs, query, &parts.headers, is_read)?;
        let bytes = match &request.permit {
            Some(permit) if !is_read => {
                let mut budget = self.admission.body_budget(permit);
                read_body(body, self.body, &mut budget).await?
            }
            Some(_) | None => Bytes::new(),
        };
        refuse_other_media(parts, &bytes)?;
        Ok((inputs, bytes))
    }

    /// Who asks, for whom; counted against the limits of the one who is authenticated.
    async fn authenticate(
        &self,
        parts: &Parts,
        context: &RequestContext,
    ) -> Result<(Author, CallerPermit), Problem> {
        let (caller, permit) = self.caller(parts, context).await?;
        Ok((self.acting(parts, &caller)?, permit))
    }

    /// Who is authenticated.
    async fn caller(
        &self,
        parts: &Parts,
        context: &RequestContext,
    ) -> Result<(Author, CallerPermit), Problem> {
        let caller = self.auth.admit(&parts.headers, &parts.extensions).await?;
        context.set_caller(&caller);
        let caller = Author::of_caller(&caller);
        let permit = self.admission.admit_caller(&caller.uid).await?;
        Ok((caller, permit))
    }

    /// For whom a caller asks.
    fn acting(&self, parts: &Parts, caller: &Author) -> Result<Author, Problem> {
        match represented_person(&parts.headers)? {
            None => Ok(caller.clone()),
            Some(person) if self.access.may_impersonate(caller) => {
                Ok(caller.clone().acting_for(person))
            }
            Some(_) => {
                let detail = "Only front ends that the configuration names may act for others.";
                Err(Problem::new(ProblemWord::NotAllowed, detail))
            }
        }
    }

    fn check_size(&self, parts: &Parts) -> Result<(), Problem> {
        let limits = self.admission.limits();
        let uri = parts.uri.path_and_query();
        if uri.map_or(0, |it| it.as_str().len()) > limits.uri_bytes_max {
            metrics::limited(LimitKind::HeaderSize);
            let refusal = ErrorResponse::uri_too_long(limits.uri_bytes_max);
            return Err(Problem::of_server(ProblemWord::UriTooLong, refusal));
        }
        if parts.headers.len() > limits.headers_max {
            metrics::limited(LimitKind::HeaderSize);
            let refusal = ErrorResponse::too_many_headers(limits.headers_max);
            return Err(Problem::of_server(ProblemWord::HeadersTooLarge, refusal));
        }
        Ok(())
    }

    /// Answers what was accepted: at once, or after its end if the caller waits. One that may not wait is answered at once:
    /// it is accepted all the same. A server that drains answers those who wait.
    async fn wait<W>(
        &self,
        wait: Option<Duration>,
        permit: Option<CallerPermit>,
        pending: impl Future<Output = Result<Response<Body>, Problem>>,
        waited: impl FnOnce(Duration) -> W,
    ) -> Result<Response<Body>, Problem>
    where
        W: Future<Output = Result<Response<Body>, Problem>>,
    {
        let wait = wait.filter(|wait| !wait.is_zero());
        let (Some(wait), Some(permit)) = (wait, permit) else {
            return pending.await;
        };
        let Ok(place) = self.admission.acquire_long_slot(permit).await else {
            return pending.await;
        };
        match place.until_drain(waited(wait)).await {
            Some(response) => response,
            None => pending.await,
        }
    }
}

/// The sender's id of a request, if it can be logged and returned.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = text.bytes().all(|it| it.is_ascii_graphic());
    let fits = is_plain && (1..=REQUEST_ID_BYTES_MAX).contains(&text.len());
    fits.then(|| text.to_owned())
}
