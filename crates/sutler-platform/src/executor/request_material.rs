//! What requests are made of besides their resource: the namespace, secrets, and the author.
//!
//! Secrets are read at the first attempt of an intent, and nowhere else: repeated attempts send the bytes that were
//! written down.

use super::run_error::RunError;
use crate::author::Author;
use crate::broker_request::{
    NamespaceContext, RequestCause, SecretContent, SecretReference, originating_identity,
    resolve_parameters,
};
use crate::brokers::BrokerView;
use crate::context::PlatformContext;
use crate::lifecycle::instance::PARAMETERS_BYTES_MAX;
use crate::lifecycle::intent::OperationId;
use crate::records::{NamespaceRecord, Record, ResourceName, SecretRecord};
use crate::spec::ParameterSource;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use sutler_client::RequestBuilder;
use sutler_journal::{Commit, Key, Version};

/// Why parameters are not sent that cannot be written down together with the answer to them.
const TOO_LARGE: &str =
    "the parameters have more than 128 kB, those of secrets included; make them smaller";

/// Why an intent cannot be sent now. Both wait for a person.
pub(super) enum Obstacle {
    /// A secret that its parameters name cannot be read; the sentence names it.
    Unresolved(String),
    /// The request does not fit; the sentences say why.
    Unfit(Vec<String>),
}

impl Obstacle {
    /// One sentence why a request does not fit.
    pub(super) fn unfit(sentence: impl ToString) -> Self {
        Self::Unfit(vec![sentence.to_string()])
    }
}

/// The namespace and the secrets that a request is made of.
pub(super) struct RequestMaterial {
    namespace: NamespaceRecord,
    secrets: BTreeMap<String, SecretContent>,
    read: ReadSecrets,
}

/// The secrets that a request was made of, or that it lacks. The commit that writes the request down, or that puts its
/// intent on hold, expects that none of them has changed: otherwise a change between the two would be lost.
#[derive(Clone, Default)]
pub(super) struct ReadSecrets(Vec<(Key, Option<Version>)>);

impl ReadSecrets {
    /// Adds the expectations to a commit.
    pub(super) fn expect(self, commit: Commit) -> Commit {
        let secrets = self.0.into_iter();
        secrets.fold(commit, |commit, (key, version)| match version {
            Some(version) => commit.unchanged(key, version),
            None => commit.absent(key),
        })
    }
}

impl RequestMaterial {
    /// Reads a namespace and those of its secrets that parameters come from.
    ///
    /// # Errors
    /// A record cannot be read. An obstacle: there is no such namespace.
    pub(super) async fn read<'s>(
        context: &PlatformContext,
        namespace: &str,
        sources: impl Iterator<Item = &'s ParameterSource>,
    ) -> Result<Result<Self, Obstacle>, RunError> {
        let records = &context.records;
        let Ok(name) = ResourceName::try_from(namespace) else {
            return Ok(Err(Obstacle::unfit("the namespace has no valid name")));
        };
        let key = records.keys.namespace(&name);
        let found = match records.load::<NamespaceRecord>(&key).await?.state {
            Record::Present(found) => *found,
            Record::Newer(_) => return Err(RunError::NewerVersion),
            Record::Absent => return Ok(Err(Obstacle::unfit("the namespace does not exist"))),
        };
        let names: BTreeSet<&str> = sources.map(|source| source.secret.as_str()).collect();
        let mut secrets = BTreeMap::new();
        let mut read = ReadSecrets::default();
        for name in names {
            let key = records.keys.secret(namespace, name);
            let found = records.load::<SecretRecord>(&key).await?;
            read.0.push((key, found.version));
            match found.state {
                Record::Present(secret) => {
                    secrets.insert(name.to_owned(), secret.content());
                }
                Record::Newer(_) => return Err(RunError::NewerVersion),
                Record::Absent => {}
            }
        }
        Ok(Ok(Self {
            namespace: found,
            secrets,
            read,
        }))
    }

    /// The secrets that were read.
    pub(super) fn read_secrets(&self) -> ReadSecrets {
        self.read.clone()
    }

    /// The namespace as the broker sees it.
    ///
    /// # Errors
    /// It lacks a fact that the broker's profile demands.
    pub(super) fn namespace(&self, view: &BrokerView) -> Result<NamespaceContext<'_>, Obstacle> {
        let profile = view.registration.profile;
        NamespaceContext::new(profile, &self.namespace.facts).map_err(Obstacle::unfit)
    }

    /// Parameters with those of secrets.
    ///
    /// # Errors
    /// A secret cannot be used.
    pub(super) fn resolve(
        &self,
        parameters: &Map<String, Value>,
        sources: &[ParameterSource],
    ) -> Result<Map<String, Value>, Obstacle> {
        let sources = sources.iter().map(|source| SecretReference {
            secret: &source.secret,
            key: source.key.as_deref(),
        });
        let sources: Vec<_> = sources.collect();
        let resolved = resolve_parameters(parameters, &sources, &self.secrets)
            .map_err(|error| Obstacle::Unresolved(error.to_string()))?;
        let bytes = serde_json::to_vec(&resolved.0).map_or(usize::MAX, |json| json.len());
        match bytes <= PARAMETERS_BYTES_MAX {
            true => Ok(resolved.0),
            false => Err(Obstacle::unfit(TOO_LARGE)),
        }
    }
}

/// The builder of all requests of an intent: with the id of its operation, in the name of its author.
pub(super) fn request_builder(
    operation: OperationId,
    author: &Author,
    view: &BrokerView,
) -> RequestBuilder {
    let builder = RequestBuilder::from_uuid(operation.0);
    let cause = RequestCause::Author(author);
    match originating_identity(view.registration.profile, cause) {
        Some(identity) => builder.on_behalf_of(identity),
        None => builder,
    }
}
