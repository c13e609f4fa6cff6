//! A line of the audit for every requested change, for every read of credentials, and for every refused request to act for
//! another person.
//!
//! Lines name route, caller, subject and outcome; they hold no body, no reason and no secret. The program chooses where
//! they go (`sutler_records::log_audit`).

use super::access::Permission;
use super::answer::HandlerAnswer;
use super::api_route::ApiRoute;
use super::path_pattern::PathNames;
use super::problem::Problem;
use crate::author::Author;
use crate::platform::Platform;
use crate::records::{REALM, ResourceName};
use sutler_journal::Outcome;
use sutler_records::{AuditLine, AuditOutcome, audit_enabled, log_audit};

/// A request as the audit names it.
pub(super) struct AuditedRequest<'a> {
    pub route: &'a ApiRoute,
    pub author: &'a Author,
    pub names: &'a PathNames,
    pub request_id: &'a str,
    /// The name of what it creates, if that is not in its path.
    pub created: Option<ResourceName>,
    /// Nothing is written.
    pub is_dry_run: bool,
    /// Its author wants to act for somebody else, and may not: that is audited of reads, too.
    pub acts_for_others: bool,
}

impl<'a> AuditedRequest<'a> {
    /// A request of this route.
    pub(super) fn new(
        route: &'a ApiRoute,
        author: &'a Author,
        names: &'a PathNames,
        request_id: &'a str,
    ) -> Self {
        Self {
            route,
            author,
            names,
            request_id,
            created: None,
            is_dry_run: false,
            acts_for_others: false,
        }
    }

    fn is_audited(&self) -> bool {
        let is_change = !self.route.method.is_read();
        is_change || self.route.permission == Permission::Credentials || self.acts_for_others
    }

    /// What the request is about, by the names in its path, and by the name of what it creates.
    fn subject(&self) -> String {
        let created = self.created.as_ref().map_or("", ResourceName::as_str);
        let [namespace, name, id, number] =
            ["ns", "name", "id", "seq"].map(|it| self.names.get(it));
        let parts = [namespace, name, created, id, number].into_iter();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }

    fn note(&self, refusal: Option<&str>) -> Option<String> {
        let front_end = self.author.impersonated_by.as_ref();
        let notes = [
            refusal.map(str::to_owned),
            self.is_dry_run.then(|| "dry run".to_owned()),
            self.acts_for_others
                .then(|| "wants to act for somebody else".to_owned()),
            front_end.map(|front_end| format!("sent by {front_end}")),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// Writes a line, if the request is one that is audited.
pub(super) fn audit(
    request: &AuditedRequest<'_>,
    answered: Result<(&HandlerAnswer, &Platform), &Problem>,
) {
    if !request.is_audited() || !audit_enabled() {
        return;
    }
    let (outcome, operation, refusal) = match answered {
        Ok((HandlerAnswer::Accepted(change), platform)) => {
            let operation = change.resource.operation(platform, change.number);
            (AuditOutcome::Accepted, operation.map(|(_, id)| id), None)
        }
        Ok((HandlerAnswer::Syncing(_), _)) => (AuditOutcome::Accepted, None, None),
        Ok((HandlerAnswer::Ready(_), _)) => (AuditOutcome::Ended(Outcome::Succeeded), None, None),
        Err(problem) => (AuditOutcome::Refused, None, Some(problem.word().word())),
    };
    let subject = request.subject();
    let note = request.note(refusal);
    let is_binding = request.route.path.contains("/bindings");
    let line = AuditLine {
        caller: Some(&request.author.uid),
        realm: Some(REALM),
        instance: (!is_binding).then_some(subject.as_str()),
        binding: is_binding.then_some(subject.as_str()),
        operation,
        request_id: Some(request.request_id),
        note: note.as_deref(),
        ..AuditLine::default()
    };
    log_audit(request.route.name, outcome, &line);
}
