//! A line of the audit for every requested change, and for every read of credentials.
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
use crate::records::REALM;
use sutler_journal::Outcome;
use sutler_records::{AuditLine, AuditOutcome, audit_enabled, log_audit};

/// A request as the audit names it.
pub(super) struct AuditedRequest<'a> {
    pub route: &'a ApiRoute,
    pub author: &'a Author,
    pub names: &'a PathNames,
    pub request_id: &'a str,
}

/// Writes a line, if the request is one that is audited.
pub(super) fn audit(
    request: &AuditedRequest<'_>,
    answered: Result<(&HandlerAnswer, &Platform), &Problem>,
) {
    if !is_audited(request.route) || !audit_enabled() {
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
    let subject = subject(request.names);
    let note = note(request.author, refusal);
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

fn is_audited(route: &ApiRoute) -> bool {
    !route.method.is_read() || route.permission == Permission::Credentials
}

/// What the request is about, by the names in its path.
fn subject(names: &PathNames) -> String {
    let parts = ["ns", "name", "id", "seq"].map(|name| names.get(name));
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn note(author: &Author, refusal: Option<&str>) -> Option<String> {
    let front_end = author.impersonated_by.as_ref();
    let front_end = front_end.map(|front_end| format!("sent by {front_end}"));
    let parts: Vec<String> = refusal
        .map(str::to_owned)
        .into_iter()
        .chain(front_end)
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
