//! The ten endpoints: calls `requests.rs` with the parsed request and builds the response.

use super::error::{ErrorReply, json};
use super::route::{Endpoint, Ids};
use super::{HttpReply, ParsedRequest, PlatformApi};
use crate::lifecycle::Verb;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::refusal::Refusal;
use crate::requests::{ChangeOutcome, LastOperation, RequestError};
use crate::resources::Detail;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::de::DeserializeOwned;
use sutler_journal::OperationId;
use sutler_osb::{
    AsyncBindResponse, BindingId, DeleteResponse, InstanceId, OperationToken, ProvisionResponse,
    UpdateResponse, from_json,
};
use sutler_server::ChunkedBody;

const DELETED_MEANWHILE: &str = "The service binding was deleted before its credentials were read; repeat the request to create it again.";

impl PlatformApi {
    pub(super) async fn call_endpoint(
        &self,
        parsed: ParsedRequest,
        body: &Bytes,
        headers: &HeaderMap,
    ) -> Result<HttpReply, ErrorReply> {
        let ParsedRequest {
            endpoint,
            ids,
            query,
            info,
        } = parsed;
        let requests = &self.requests;
        // Long futures are boxed, so that those of polls and catalogs stay small.
        match (endpoint, ids) {
            (Endpoint::Catalog, _) => Ok(self.catalog(headers)),
            (Endpoint::Provision, Ids::Instance(id)) => {
                let changed = Box::pin(requests.provision(&id, parse(body)?, &info)).await?;
                Ok(provisioned(changed))
            }
            (Endpoint::Update, Ids::Instance(id)) => {
                let changed = Box::pin(requests.update(&id, parse(body)?, &info)).await?;
                Ok(updated(changed))
            }
            (Endpoint::Deprovision, Ids::Instance(id)) => {
                let changed = Box::pin(requests.deprovision(&id, &query, &info)).await?;
                Ok(deleted(&changed))
            }
            (Endpoint::FetchInstance, Ids::Instance(id)) => {
                let fetched = Box::pin(requests.fetch_instance(&id)).await?;
                Ok(json(StatusCode::OK, &fetched))
            }
            (Endpoint::PollInstance, Ids::Instance(id)) => Ok(polled(
                requests
                    .poll_instance(&id, query.operation.as_ref())
                    .await?,
            )),
            (Endpoint::Bind, Ids::Binding(instance, id)) => {
                let changed = Box::pin(requests.bind(&instance, &id, parse(body)?, &info)).await?;
                bound(changed)
            }
            (Endpoint::Unbind, Ids::Binding(instance, id)) => {
                let changed = Box::pin(requests.unbind(&instance, &id, &query, &info)).await?;
                Ok(deleted(&changed))
            }
            (Endpoint::FetchBinding, Ids::Binding(instance, id)) => {
                let fetched = Box::pin(requests.fetch_binding(&instance, &id)).await?;
                Ok(json(StatusCode::OK, &fetched))
            }
            (Endpoint::PollBinding, Ids::Binding(instance, id)) => {
                self.poll_binding(&instance, &id, query.operation.as_ref())
                    .await
            }
            // The router pairs each endpoint with its ids.
            (_, Ids::None | Ids::Instance(_) | Ids::Binding(..)) => Err(ErrorReply::no_such_path()),
        }
    }

    /// B-050, B-052: the prepared body, or 304 if the caller has it.
    fn catalog(&self, headers: &HeaderMap) -> HttpReply {
        let snapshot = self.requests.realm_context.catalog.snapshot();
        let known = headers.get_all(IF_NONE_MATCH).iter().any(|value| {
            let tags = value.to_str().unwrap_or_default();
            tags.split(',')
                .map(|tag| tag.trim().trim_start_matches("W/"))
                .any(|tag| tag == "*" || tag == snapshot.etag)
        });
        let content = if known {
            ChunkedBody::default()
        } else {
            snapshot.content.clone()
        };
        let mut reply = Response::new(content);
        if known {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            let json = HeaderValue::from_static("application/json");
            reply.headers_mut().insert(CONTENT_TYPE, json);
        }
        if let Ok(etag) = HeaderValue::from_str(&snapshot.etag) {
            reply.headers_mut().insert(ETAG, etag);
        }
        reply
    }

    async fn poll_binding(
        &self,
        instance: &InstanceId,
        id: &BindingId,
        operation: Option<&OperationToken>,
    ) -> Result<HttpReply, ErrorReply> {
        let mut last = self.requests.poll_binding(instance, id, operation).await?;
        // B-110: the response of a binding has state and description only.
        if let LastOperation::Known { response, .. } = &mut last {
            response.instance_usable = None;
            response.update_repeatable = None;
        }
        Ok(polled(last))
    }
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ErrorReply> {
    from_json(body).map_err(|error| ErrorReply::invalid(error.to_string()))
}

fn token(id: OperationId) -> Option<OperationToken> {
    OperationToken::try_from(id.to_string()).ok()
}

/// B-121, B-122, B-123, B-130.
fn provisioned(changed: ChangeOutcome<Instance>) -> HttpReply {
    let (status, operation, state) = match changed {
        ChangeOutcome::Done(state) => (StatusCode::CREATED, None, state),
        ChangeOutcome::AlreadyDone(state) => (StatusCode::OK, None, state),
        ChangeOutcome::Running(id, state) => (StatusCode::ACCEPTED, token(id), state),
    };
    let instance_data = state.data();
    let body = ProvisionResponse {
        dashboard_url: instance_data.and_then(|it| it.dashboard_url.clone()),
        operation,
        metadata: instance_data.and_then(|it| it.metadata.clone()),
    };
    json(status, &body)
}

/// B-162, B-163, B-171.
fn updated(changed: ChangeOutcome<Instance>) -> HttpReply {
    let (status, operation, state) = match changed {
        ChangeOutcome::Done(state) | ChangeOutcome::AlreadyDone(state) => {
            (StatusCode::OK, None, state)
        }
        ChangeOutcome::Running(id, state) => (StatusCode::ACCEPTED, token(id), state),
    };
    let soon = match &state {
        Instance::Updating { dashboard_url, .. } => dashboard_url.clone(),
        _ => None,
    };
    let instance_data = state.data();
    let body = UpdateResponse {
        dashboard_url: soon.or_else(|| instance_data.and_then(|it| it.dashboard_url.clone())),
        operation,
        metadata: instance_data.and_then(|it| it.metadata.clone()),
    };
    json(status, &body)
}

/// B-242, B-252.
fn deleted<S>(changed: &ChangeOutcome<S>) -> HttpReply {
    let (status, operation) = match changed {
        ChangeOutcome::Done(_) | ChangeOutcome::AlreadyDone(_) => (StatusCode::OK, None),
        ChangeOutcome::Running(id, _) => (StatusCode::ACCEPTED, token(*id)),
    };
    json(status, &DeleteResponse { operation })
}

/// B-182, B-183, B-184: only the operation while it runs.
fn bound(changed: ChangeOutcome<Binding>) -> Result<HttpReply, ErrorReply> {
    let (status, state) = match changed {
        ChangeOutcome::Running(id, _) => {
            let body = AsyncBindResponse {
                operation: token(id),
            };
            return Ok(json(StatusCode::ACCEPTED, &body));
        }
        ChangeOutcome::Done(state) => (StatusCode::CREATED, state),
        ChangeOutcome::AlreadyDone(state) => (StatusCode::OK, state),
    };
    let given = state
        .data()
        .and_then(|binding_data| binding_data.given.clone());
    let Some(given) = given else {
        // Deleted after the operation ended and before it was read. The request that made the binding has failed, one
        // that joined it may be repeated.
        return Err(match status {
            StatusCode::CREATED => RequestError::Failed {
                verb: Verb::Bind,
                detail: Detail {
                    description: Some(DELETED_MEANWHILE.to_owned()),
                    ..Detail::default()
                },
            },
            _ => Refusal::Busy(DELETED_MEANWHILE).into(),
        }
        .into());
    };
    Ok(json(status, &given))
}

/// B-100, B-105, B-107.
fn polled(last: LastOperation) -> HttpReply {
    match last {
        LastOperation::Gone(what) => ErrorReply::from(Refusal::Gone(what)).into(),
        LastOperation::Known {
            response,
            retry_after,
        } => {
            let mut reply = json(StatusCode::OK, &response);
            if let Some(seconds) = retry_after {
                reply
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            reply
        }
    }
}
