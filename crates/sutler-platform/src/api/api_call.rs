//! A request as handlers see it: its author may ask it, its head, inputs and body were read within their limits.

use super::access::{AccessSettings, Permission};
use super::bodies::SourceBody;
use super::path_pattern::PathNames;
use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::request_body::{BodyMedia, OrderBody, read_json, read_order};
use super::request_inputs::RequestInputs;
use crate::author::Author;
use crate::commands::ChangeOptions;
use crate::lifecycle::instance::Source;
use crate::lifecycle::intent::{IntentNumber, OnFailure};
use crate::lifecycle::request_key::RequestKey;
use crate::platform::Platform;
use crate::records::ResourceName;
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// A request.
pub(super) struct ApiCall<'a> {
    /// What carries it out.
    pub platform: &'a Platform,
    /// Who may do what.
    pub access: &'a AccessSettings,
    /// Who asks.
    pub author: &'a Author,
    /// The name of its route.
    pub route: &'static str,
    /// Names in its path.
    pub names: &'a PathNames,
    /// Parameters and conditions.
    pub inputs: &'a RequestInputs,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Body.
    pub body: &'a [u8],
    /// Whether the path names what is to be created.
    pub creates_by_name: bool,
}

impl ApiCall<'_> {
    /// The namespace in the path.
    pub(super) fn namespace(&self) -> Result<ResourceName, Problem> {
        self.resource("ns")
    }

    /// The name of the resource in the path.
    pub(super) fn name(&self) -> Result<ResourceName, Problem> {
        self.resource("name")
    }

    fn resource(&self, which: &str) -> Result<ResourceName, Problem> {
        ResourceName::try_from(self.names.get(which)).map_err(|error| {
            // What cannot have a name cannot be created, and otherwise is not there.
            let word = match self.creates_by_name {
                true => ProblemWord::Invalid,
                false => ProblemWord::NotFound,
            };
            Problem::new(word, format!("Nothing can have this name: a name {error}."))
        })
    }

    /// The number of the intent in the path.
    pub(super) fn number(&self) -> Result<IntentNumber, Problem> {
        let text = self.names.get("seq");
        let number = text.parse().ok().filter(|number| *number > 0);
        number
            .map(IntentNumber)
            .ok_or_else(|| Problem::no_such("intent", text))
    }

    /// The body, as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        read_json(BodyMedia::Json, self.headers, self.body)
    }

    /// The body, as a merge patch.
    pub(super) fn merge_patch<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        read_json(BodyMedia::MergePatch, self.headers, self.body)
    }

    /// The body of an order; it may be left out.
    pub(super) fn order(&self) -> Result<OrderBody, Problem> {
        read_order(self.headers, self.body)
    }

    /// Who asks for a change, under which conditions.
    pub(super) fn options(&self) -> ChangeOptions {
        ChangeOptions {
            if_uid: self.inputs.entity_tag().map(|tag| tag.uid),
            if_revision: self.inputs.entity_tag().map(|tag| tag.revision),
            idempotency_key: self.request_key(),
            on_failure: OnFailure::Skip,
            forced: self.inputs.force,
            dry_run: self.inputs.dry_run,
            ..ChangeOptions::by(self.author.clone())
        }
    }

    /// The revision that must be shown of the resource with this uid. The tag of another resource is refused.
    pub(super) fn revision_of(&self, uid: Uuid) -> Result<Option<u64>, Problem> {
        match self.inputs.entity_tag() {
            Some(tag) if tag.uid != uid => {
                let detail = "The entity tag is that of an earlier resource of this name.";
                Err(Problem::new(ProblemWord::RevisionChanged, detail))
            }
            tag => Ok(tag.map(|tag| tag.revision)),
        }
    }

    /// The key under which the request is accepted once: it stands for this author, route, path and body, and for nothing
    /// else.
    pub(super) fn request_key(&self) -> Option<RequestKey> {
        let key = self.inputs.idempotency_key.as_ref()?;
        let force: &[u8] = if self.inputs.force { b"force" } else { b"" };
        let names = ["ns", "name", "seq"].map(|it| self.names.get(it).as_bytes());
        let parts = [self.route.as_bytes(), force, self.body];
        let parts: Vec<&[u8]> = parts.into_iter().chain(names).collect();
        Some(RequestKey::of(self.author, key, &parts))
    }

    /// The object of another system that an instance follows. Only front ends name one: it stands for a key.
    pub(super) fn source(&self, body: Option<SourceBody>) -> Result<Option<Source>, Problem> {
        let Some(body) = body else {
            return Ok(None);
        };
        let is_front_end =
            self.author.impersonated_by.is_some() || self.access.may_impersonate(self.author);
        if !is_front_end {
            let detail = "Only front ends that the configuration names may send a source.";
            return Err(Problem::new(ProblemWord::NotAllowed, detail));
        }
        body.source().map(Some)
    }

    /// Refuses a request whose author lacks a permission.
    pub(super) fn require(&self, permission: Permission) -> Result<(), Problem> {
        match self.access.allows(self.author, permission) {
            true => Ok(()),
            false => Err(Problem::lacks(permission)),
        }
    }

    /// Refuses a command about an intent of another author, unless the author may manage those.
    pub(super) fn require_own(&self, author: Option<&Author>) -> Result<(), Problem> {
        match author {
            Some(author) if author.uid == self.author.uid => Ok(()),
            Some(_) | None => self.require(Permission::IntentManage),
        }
    }
}
