//! Administration API for operators of a broker, under its own prefix.
//!
//! Commands are decided in `lifecycle/` and committed by `requests/admin_command.rs`. Here: the paths
//! (`admin/route.rs`), lists (`admin/list.rs`, `admin/query.rs`), logs (`admin/log.rs`), keys (`admin/rekey.rs`,
//! `admin/key_usage.rs`), the JSON of responses (`admin/view.rs`) and errors (`admin/response.rs`). The audit trail is in `audit.rs`, the API of platforms in
//! `http.rs`.

mod backup;
mod command_body;
mod export;
mod export_format;
mod extension;
mod filtered_page;
mod import;
mod key_usage;
mod key_view;
mod list;
mod log;
mod query;
mod rekey;
mod response;
mod route;
mod view;

pub use backup::Backup;
pub(crate) use backup::BackupSource;
pub use extension::AdminExtension;

use crate::app::PlatformRoute;
use crate::audit::{AuditAction, AuditSubject, TrailEntry};
use crate::broker::BuildError;
use crate::http;
use crate::platform::PrefixError;
use crate::requests::{CommandRequest, RequestHandler};
use axum::body::Body;
use bytes::Bytes;
use command_body::read_reason;
use hyper::{Request, Response, StatusCode};
use import::UnfinishedOperations;
use key_usage::KeyCounter;
use query::Query;
use rekey::RekeyTask;
use response::{AdminError, json};
use route::{ResourcePath, Route};
use secrecy::SecretString;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use sutler_records::{Actor, AuditResult};
use sutler_server::{Auth, AuthConfigError, Caller, Probes, RequestContext, streamed_response};
use tokio_util::sync::CancellationToken;

/// Settings of the administration API: prefix, authentication, pages.
pub struct Admin {
    prefix: String,
    auth: Option<Result<Auth, AuthConfigError>>,
    pages: Vec<(&'static str, Page)>,
}

/// A page that an extension shows to operators.
type Page = Arc<dyn Fn() -> Value + Send + Sync>;

impl Admin {
    /// Administration whose API begins at `{prefix}/v1/`.
    #[must_use]
    pub fn at(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            auth: None,
            pages: Vec::new(),
        }
    }

    /// Requires one user's name and password. Operators should have other credentials than platforms.
    #[must_use]
    pub fn basic_auth(mut self, user: &str, password: impl Into<SecretString>) -> Self {
        self.auth = Some(Auth::basic(user, &password.into()));
        self
    }

    /// Requires the authentication of an [`Auth`], e.g. several operators.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(Ok(auth));
        self
    }

    /// Disables authentication. For tests, and behind a proxy that authenticates.
    #[must_use]
    pub fn without_auth(mut self) -> Self {
        self.auth = Some(Ok(Auth::open()));
        self
    }

    /// Adds a page at `{prefix}/v1/{name}`; paths of the API itself take precedence. It must contain no secret and
    /// be fast to build.
    #[must_use]
    pub fn page(
        mut self,
        name: &'static str,
        page: impl Fn() -> Value + Send + Sync + 'static,
    ) -> Self {
        self.pages.push((name, Arc::new(page)));
        self
    }

    /// Builds the API for the platforms of a broker. `backup`: the store, if it can be copied. `shut_down`: ends
    /// what runs in the background.
    pub(crate) fn build(
        self,
        platforms: &[PlatformRoute],
        backup: Option<BackupSource>,
        shut_down: &CancellationToken,
    ) -> Result<AdminApi, BuildError> {
        let prefix = self.prefix.trim_matches('/').to_owned();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
        if prefix.is_empty() || !prefix.bytes().all(plain) {
            return Err(BuildError::Prefix(self.prefix, PrefixError::Characters));
        }
        let auth = self
            .auth
            .ok_or(BuildError::PlatformWithoutAuth(self.prefix))??;
        // The platform with the shortest prefix is the default one.
        let handlers = platforms.iter().rev().map(|it| it.http.requests.clone());
        Ok(AdminApi {
            prefix,
            auth,
            handlers: handlers.collect(),
            backup,
            rekey: RekeyTask::new(shut_down.clone()),
            key_counter: KeyCounter::new(shut_down.clone()),
            pages: self.pages,
            extension: OnceLock::new(),
        })
    }
}

/// The administration API of a running broker.
pub(crate) struct AdminApi {
    prefix: String,
    auth: Auth,
    /// One handler per realm; the first is the default.
    handlers: Vec<RequestHandler>,
    backup: Option<BackupSource>,
    rekey: RekeyTask,
    key_counter: KeyCounter,
    pages: Vec<(&'static str, Page)>,
    /// Pages and commands that an extension adds after the start.
    extension: OnceLock<Arc<dyn AdminExtension>>,
}

impl AdminApi {
    /// End of the prefix in a path that has it; double slashes are accepted.
    pub(crate) fn ends_at(&self, path: &str) -> Option<usize> {
        let rest = path.trim_start_matches('/').strip_prefix(&self.prefix)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| path.len() - rest.len())
    }

    /// The prefix, without slashes around it.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Answers one request. `at`: end of the prefix in the path. Never fails, never panics.
    pub(crate) async fn handle<B>(
        &self,
        request: Request<B>,
        at: usize,
        context: &Arc<RequestContext>,
        probes: &Probes,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let caller = match self
            .auth
            .admit(request.headers(), request.extensions())
            .await
        {
            Ok(caller) => caller,
            Err(rejection) => return http::rejected(rejection).map(Body::new),
        };
        context.set_caller(&caller);
        if request.method() == hyper::Method::GET
            && let Some(rest) = request.uri().path().get(at..)
            && rest.trim_start_matches('/') == "metrics"
            && let Some(page) = probes.metrics(context)
        {
            return page.map(Body::new);
        }
        let answered =
            sutler_journal::catch_panic(self.answer(request, at, &caller, context)).await;
        match answered {
            Ok(Ok(response)) => response,
            Ok(Err(fault)) => fault.into(),
            Err(()) => AdminError::internal("a panic").into(),
        }
    }

    async fn answer<B>(
        &self,
        request: Request<B>,
        at: usize,
        caller: &Caller,
        context: &Arc<RequestContext>,
    ) -> Result<Response<Body>, AdminError>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let who = caller.name.to_string();
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().get(at..).unwrap_or_default();
        let route = route::route(&parts.method, path)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default(), route.parameters())?;
        let requests = self.requests(query.realm.as_deref())?;
        match route {
            Route::Instances => json(StatusCode::OK, &list::instances(requests, &query).await?),
            Route::Bindings => json(StatusCode::OK, &list::bindings(requests, &query).await?),
            Route::Operations => json(StatusCode::OK, &list::operations(requests, &query).await?),
            Route::Audit => json(StatusCode::OK, &list::audit(requests, &query).await?),
            Route::Show(ResourcePath::Instance(id)) => {
                json(StatusCode::OK, &list::instance(requests, &id).await?)
            }
            Route::Show(ResourcePath::Binding(instance, id)) => json(
                StatusCode::OK,
                &list::binding(requests, &instance, &id).await?,
            ),
            Route::Operation(id) => json(StatusCode::OK, &list::operation(requests, id).await?),
            Route::Log(id) => json(StatusCode::OK, &log::read(requests, id, &query).await?),
            Route::Stats => json(StatusCode::OK, &view::stats(requests).await?),
            Route::Page(name) => self.page(name).await,
            Route::Extension(path) => self.extension(&path).await,
            Route::ExtensionCommand(path) => {
                let reason = read_reason(body).await?;
                self.run_extension_command(requests, &path, Actor { who, reason })
                    .await
            }
            Route::Drain | Route::Resume => {
                let reason = read_reason(body).await?;
                self.drain(requests, route == Route::Drain, Actor { who, reason })
                    .await
            }
            Route::Export => self.export(requests, who).await,
            Route::Import => self.import(requests, body, &query, who).await,
            Route::Backup => {
                let reason = read_reason(body).await?;
                self.backup(requests, Actor { who, reason }).await
            }
            Route::Keys => self.key_counter.answer(requests).await,
            Route::RekeyState => json(StatusCode::OK, &self.rekey.view()),
            Route::Rekey => {
                let reason = read_reason(body).await?;
                let by = Actor { who, reason };
                json(StatusCode::ACCEPTED, &self.rekey.start(requests, by).await?)
            }
            Route::Command(resource, command) => {
                let reason = read_reason(body).await?;
                let command_request = CommandRequest {
                    command,
                    by: Actor { who, reason },
                    context: Some(context.clone()),
                };
                run_command(requests, resource, &command_request).await
            }
        }
    }

    /// Streams an export of the realm, after noting it in the audit trail.
    async fn export(
        &self,
        requests: &RequestHandler,
        who: String,
    ) -> Result<Response<Body>, AdminError> {
        let actor = Actor::without_reason(who);
        self.note(requests, AuditAction::Export, actor, None)
            .await?;
        let (response, pieces) = streamed_response("application/x-ndjson");
        tokio::spawn(export::write(requests.clone(), pieces));
        Ok(response)
    }

    /// Adds the documents of an export.
    async fn import<B>(
        &self,
        requests: &RequestHandler,
        body: B,
        query: &Query,
        who: String,
    ) -> Result<Response<Body>, AdminError>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let unfinished = match query.word("unfinished", &["run"])? {
            Some(_) => UnfinishedOperations::Run,
            None => UnfinishedOperations::Refuse,
        };
        let by = Actor::without_reason(who);
        let done = import::run(requests, body, unfinished, &by).await?;
        json(StatusCode::OK, &done)
    }

    /// Streams a copy of the store, after noting it in the audit trail.
    async fn backup(
        &self,
        requests: &RequestHandler,
        by: Actor,
    ) -> Result<Response<Body>, AdminError> {
        let backup = self.backup.as_ref().ok_or_else(AdminError::no_backup)?;
        self.note(requests, AuditAction::Backup, by, None).await?;
        backup.send().await
    }

    /// A page of an extension: one added to [`Admin`], or one added after the start.
    async fn page(&self, name: String) -> Result<Response<Body>, AdminError> {
        let found = self.pages.iter().find(|(it, _)| *it == name);
        match found {
            Some((_, page)) => json(StatusCode::OK, &page()),
            None => self.extension(&[name]).await,
        }
    }

    /// A page of an extension that was added after the start.
    async fn extension(&self, path: &[String]) -> Result<Response<Body>, AdminError> {
        let pages = self.extension.get().ok_or_else(AdminError::no_such_path)?;
        let answered = pages
            .read(path)
            .await
            .ok_or_else(AdminError::no_such_path)?;
        json(
            StatusCode::OK,
            &answered.map_err(extension::to_admin_error)?,
        )
    }

    /// Runs a command of an extension.
    async fn run_extension_command(
        &self,
        requests: &RequestHandler,
        path: &[String],
        by: Actor,
    ) -> Result<Response<Body>, AdminError> {
        let pages = self.extension.get().filter(|it| it.has_command(path));
        let pages = pages.ok_or_else(AdminError::no_such_path)?;
        self.note(
            requests,
            AuditAction::ExtensionCommand,
            by,
            Some(path.join(" ")),
        )
        .await?;
        let answered = pages
            .run_command(path)
            .await
            .ok_or_else(AdminError::no_such_path)?;
        json(
            StatusCode::OK,
            &answered.map_err(extension::to_admin_error)?,
        )
    }

    /// Writes the audit entry of a command for the whole broker.
    async fn note(
        &self,
        requests: &RequestHandler,
        action: AuditAction,
        by: Actor,
        message: Option<String>,
    ) -> Result<(), AdminError> {
        let mut entry = TrailEntry::new(action, AuditSubject::broker(), &by, AuditResult::Done);
        entry.message = message;
        requests.file(&entry).await?;
        Ok(())
    }

    /// Stops or resumes claiming and accepting, in this process.
    async fn drain(
        &self,
        requests: &RequestHandler,
        drains: bool,
        by: Actor,
    ) -> Result<Response<Body>, AdminError> {
        let (action, result) = match (drains, requests.engine.is_paused()) {
            (true, false) => (AuditAction::Drain, AuditResult::Done),
            (true, true) => (AuditAction::Drain, AuditResult::NothingToDo),
            (false, true) => (AuditAction::Resume, AuditResult::Done),
            (false, false) => (AuditAction::Resume, AuditResult::NothingToDo),
        };
        let entry = TrailEntry::new(action, AuditSubject::broker(), &by, result);
        requests.file(&entry).await?;
        if drains {
            requests.engine.pause();
        } else {
            requests.engine.resume();
        }
        json(StatusCode::OK, &view::stats(requests).await?)
    }

    fn requests(&self, realm: Option<&str>) -> Result<&RequestHandler, AdminError> {
        let realm_of =
            |requests: &RequestHandler| requests.realm_context.records.realm.as_str().to_owned();
        let found = match realm {
            None => self.handlers.first(),
            Some(name) => self
                .handlers
                .iter()
                .find(|requests| realm_of(requests) == name),
        };
        found.ok_or_else(|| {
            let known: Vec<String> = self.handlers.iter().map(realm_of).collect();
            AdminError::invalid(format!(
                "There is no such realm; use one of: {}.",
                known.join(", ")
            ))
        })
    }
}

/// Runs a command for one resource.
async fn run_command(
    requests: &RequestHandler,
    of: ResourcePath,
    command_request: &CommandRequest,
) -> Result<Response<Body>, AdminError> {
    let result = match of {
        ResourcePath::Instance(id) => requests.order_instance(&id, command_request).await,
        ResourcePath::Binding(instance, id) => {
            requests
                .order_binding(&instance, &id, command_request)
                .await
        }
    };
    json(StatusCode::OK, &view::CommandView::of(requests, &result?))
}
