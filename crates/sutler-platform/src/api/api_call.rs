//! A request as handlers see it: its author may ask it, its head, inputs and body were read within their limits.

use super::access::{AccessSettings, Permission};
use super::path_pattern::PathNames;
use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::request_body::{BodyMedia, OrderBody, read_json, read_order};
use super::request_inputs::RequestInputs;
use crate::author::Author;
use crate::commands::ChangeOptions;
use crate::lifecycle::intent::{IntentNumber, OnFailure};
use crate::platform::Platform;
use crate::records::ResourceName;
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;

/// A request.
pub(super) struct ApiCall<'a> {
    /// What carries it out.
    pub platform: &'a Platform,
    /// Who may do what.
    pub access: &'a AccessSettings,
    /// Who asks.
    pub author: &'a Author,
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
            if_revision: self.inputs.revision(),
            idempotency_key: self.inputs.idempotency_key.clone(),
            on_failure: OnFailure::Skip,
            forced: self.inputs.force,
            dry_run: self.inputs.dry_run,
            ..ChangeOptions::by(self.author.clone())
        }
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
