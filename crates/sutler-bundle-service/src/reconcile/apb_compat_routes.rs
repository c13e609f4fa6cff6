//! Routes that Automation Broker had below `/v2` in addition to the specification; for compatibility mode.
//!
//! `POST bootstrap` refreshes registries; `POST apb` and `DELETE apb` push and delete services of developers. The
//! actions are in `catalog_publisher.rs` and `catalog_publisher/push.rs`; this file only parses and answers.

use super::catalog_publisher::CatalogPublisher;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::sync::Arc;
use sutler_broker::{
    AuditEntry, AuditOutcome, Error, ExtensionRequest, ExtensionResponse, ExtensionRoutes, Result,
    audit,
};

/// Form field that holds the manifest of a pushed service.
const FIELD: &str = "apbSpec";
/// Content type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// Routes of Automation Broker.
pub struct ApbCompatRoutes(Option<Arc<CatalogPublisher>>);

impl ApbCompatRoutes {
    /// Routes over this publisher; `None`: the broker has no registry, and accepts no pushes.
    #[must_use]
    pub fn new(publisher: Option<Arc<CatalogPublisher>>) -> Self {
        Self(publisher)
    }

    /// The publisher, if it accepts pushes.
    fn push_publisher(&self) -> Option<&Arc<CatalogPublisher>> {
        self.0.as_ref().filter(|it| it.takes_pushes())
    }

    async fn bootstrap(&self) -> Result<ExtensionResponse> {
        let Some(publisher) = self.0.as_ref().filter(|it| it.has_registry()) else {
            return Err(Error::invalid(
                "There is no registry that could be asked: add one under `registry` of the configuration. \
                 Folders of bundles are looked at all the time.",
            ));
        };
        publisher.refresh().await?;
        Ok(ExtensionResponse::Json(
            json!({ "msg": "Bootstrap job started" }),
        ))
    }

    async fn push(&self, request: &ExtensionRequest) -> Result<ExtensionResponse> {
        let Some(publisher) = self.push_publisher() else {
            return Ok(not_there());
        };
        let manifest = pushed(request.content_type.as_deref(), &request.body);
        let manifest = manifest.map_err(Error::invalid)?;
        Ok(ExtensionResponse::Json(publisher.push(&manifest).await?))
    }

    async fn delete(&self, service_id: &str) -> Result<ExtensionResponse> {
        let Some(publisher) = self.push_publisher() else {
            return Ok(not_there());
        };
        match publisher.unpush(service_id).await? {
            Some(_) => Ok(ExtensionResponse::Empty),
            None => Ok(ExtensionResponse::Absent(format!(
                "No service with the id {service_id:?} was pushed; see the ids in the catalog."
            ))),
        }
    }

    async fn delete_all(&self) -> Result<ExtensionResponse> {
        let Some(publisher) = self.push_publisher() else {
            return Ok(not_there());
        };
        publisher.unpush_all().await?;
        Ok(ExtensionResponse::Empty)
    }
}

#[async_trait]
impl ExtensionRoutes for ApbCompatRoutes {
    fn methods(&self, path: &[String]) -> Option<&'static str> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match *path {
            ["bootstrap"] => Some("POST"),
            ["apb"] if self.push_publisher().is_some() => Some("DELETE, POST"),
            ["apb", _] if self.push_publisher().is_some() => Some("DELETE"),
            _ => None,
        }
    }

    async fn answer(&self, request: ExtensionRequest) -> Result<ExtensionResponse> {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let (verb, answer) = match (request.method.as_str(), &*path) {
            ("POST", ["bootstrap"]) => ("bootstrap", self.bootstrap().await),
            ("POST", ["apb"]) => ("push", self.push(&request).await),
            ("DELETE", ["apb"]) => ("delete-pushed", self.delete_all().await),
            ("DELETE", ["apb", id]) => ("delete-pushed", self.delete(id).await),
            _ => return Ok(not_there()),
        };
        let outcome = match &answer {
            Ok(ExtensionResponse::Json(_) | ExtensionResponse::Empty) => AuditOutcome::Accepted,
            Ok(ExtensionResponse::Absent(_)) | Err(_) => AuditOutcome::Refused,
        };
        let entry = AuditEntry {
            caller: Some(&request.caller.name),
            note: path.get(1).copied(),
            ..AuditEntry::default()
        };
        audit(verb, outcome, &entry);
        answer
    }
}

fn not_there() -> ExtensionResponse {
    ExtensionResponse::Absent("There is nothing at this path.".to_owned())
}

/// Decodes the manifest in a form.
fn pushed(content_type: Option<&str>, body: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let media = content_type.unwrap_or(FORM);
    let media = media.split(';').next().unwrap_or_default();
    if !media.trim().eq_ignore_ascii_case(FORM) {
        return Err(format!("Content-Type must be {FORM}."));
    }
    let mut fields = form_urlencoded::parse(body);
    let Some((_, text)) = fields.find(|(name, _)| name == FIELD) else {
        return Err(format!(
            "The form has no field {FIELD}: send the manifest in it, in base64."
        ));
    };
    // An unencoded plus arrives as a space; some clients wrap lines.
    let plain = |letter: char| match letter {
        '\r' | '\n' => None,
        ' ' => Some('+'),
        other => Some(other),
    };
    let text: String = text.chars().filter_map(plain).collect();
    let decoded = STANDARD.decode(text);
    decoded.map_err(|why| format!("The field {FIELD} is not base64 ({why}): encode the manifest."))
}

#[cfg(test)]
mod tests {
    use super::{FIELD, pushed};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn a_manifest_is_read_however_its_form_was_encoded() {
        // Two characters of its base64 form are `+`.
        let manifest = "name: a>>>b???\u{fb}\u{ff}";
        let text = STANDARD.encode(manifest);
        assert!(text.contains('+'), "{text}");
        let encoded = text.replace('+', "%2B").replace('/', "%2F");
        let wrapped = format!("{}%0A{}\r\n", &encoded[..4], &encoded[4..]);
        for body in [&text, &encoded, &wrapped] {
            let body = format!("other=1&{FIELD}={body}");
            let form = Some("application/x-www-form-urlencoded; charset=utf-8");
            let read = pushed(form, body.as_bytes());
            assert_eq!(read.as_deref(), Ok(manifest.as_bytes()), "{body}");
        }
    }

    #[test]
    fn an_invalid_form_is_refused_with_a_hint() {
        let form = Some("application/x-www-form-urlencoded");
        for (content_type, body, expected) in [
            (Some("application/json"), "{}", "Content-Type must be"),
            (form, "", "has no field apbSpec"),
            (form, "apbSpec=%", "is not base64"),
            (None, "apbSpec=a", "is not base64"),
        ] {
            let fault = pushed(content_type, body.as_bytes()).expect_err("nothing to read");
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
