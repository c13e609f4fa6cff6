//! Every parser of external bytes, by name, with the syntax of its inputs.
//!
//! The properties are in the files below: responses of brokers in `broker_responses.rs`, bodies in `bodies.rs`,
//! headers, ids and other short texts in `texts.rs`, catalogs, settings and schemas in `catalogs.rs`,
//! configurations in `configs.rs`, manifests in `manifests.rs`, responses of registries in `registries.rs`,
//! stored bytes in `stored_bytes.rs`, whole requests in `requests.rs`, tokens and their keys in `tokens.rs`. Of the
//! platform: short texts, changes and catalogs in `platform_texts.rs`, whole requests in `platform_requests.rs`.
//! A new parser gets a line here and a directory in `corpus/`.

mod bodies;
mod broker_responses;
mod catalogs;
mod configs;
mod manifests;
mod platform_requests;
mod platform_texts;
mod registries;
mod requests;
mod stored_bytes;
mod texts;
mod tokens;

use crate::mutate::Syntax;

/// Result of an input: the kind of response, or the broken property.
pub type Verdict = Result<String, String>;

/// Checks inputs one after the other.
pub trait Check {
    /// Passes an input to the parser and checks the result.
    fn check(&mut self, input: &[u8]) -> Verdict;
}

/// A parser without state.
struct PlainCheck(fn(&[u8]) -> Verdict);

impl Check for PlainCheck {
    fn check(&mut self, input: &[u8]) -> Verdict {
        (self.0)(input)
    }
}

/// A parser and its check.
pub struct Target {
    /// Its name, and its directory in the corpus.
    pub name: &'static str,
    /// Syntax of its inputs.
    pub(crate) syntax: Syntax,
    /// Words with a meaning for it.
    pub(crate) words: &'static [&'static str],
    /// Creates the check.
    pub(crate) check: fn() -> Box<dyn Check>,
}

macro_rules! plain {
    ($name:literal, $syntax:ident, $words:expr, $check:path) => {
        Target {
            name: $name,
            syntax: Syntax::$syntax,
            words: $words,
            check: || Box::new(PlainCheck($check)),
        }
    };
}

/// All of them.
pub const TARGETS: &[Target] = &[
    plain!(
        "provision_body",
        Json,
        bodies::REQUEST_WORDS,
        bodies::provision
    ),
    plain!("update_body", Json, bodies::REQUEST_WORDS, bodies::update),
    plain!("bind_body", Json, bodies::REQUEST_WORDS, bodies::bind),
    plain!(
        "provision_response",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::provision_response
    ),
    plain!(
        "update_response",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::update_response
    ),
    plain!(
        "bind_response",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::bind_response
    ),
    plain!(
        "operation_response",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::operation_response
    ),
    plain!(
        "fetched_instance",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::fetched_instance
    ),
    plain!(
        "fetched_binding",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::fetched_binding
    ),
    plain!(
        "last_operation",
        Json,
        bodies::RESPONSE_WORDS,
        bodies::last_operation
    ),
    plain!("error_body", Json, bodies::RESPONSE_WORDS, bodies::error),
    plain!("endpoint", Json, bodies::RESPONSE_WORDS, bodies::endpoint),
    plain!("catalog_json", Json, catalogs::WORDS, catalogs::json),
    plain!("catalog_yaml", Lines, catalogs::WORDS, catalogs::yaml),
    plain!(
        "settings_yaml",
        Lines,
        catalogs::SETTING_WORDS,
        catalogs::settings
    ),
    plain!("config_yaml", Lines, configs::WORDS, configs::file),
    plain!(
        "config_variables",
        Lines,
        configs::VARIABLE_WORDS,
        configs::variables
    ),
    plain!(
        "manifest_bundle",
        Lines,
        manifests::WORDS,
        manifests::bundle
    ),
    plain!("manifest_apb", Lines, manifests::WORDS, manifests::apb),
    plain!("registry_image", Json, registries::WORDS, registries::image),
    plain!(
        "registry_streams",
        Json,
        registries::WORDS,
        registries::streams
    ),
    plain!(
        "registry_page",
        Json,
        registries::PAGE_WORDS,
        registries::page
    ),
    plain!(
        "registry_list",
        Lines,
        registries::LIST_WORDS,
        registries::list
    ),
    plain!(
        "registry_header",
        Text,
        registries::HEADER_WORDS,
        registries::header
    ),
    plain!(
        "answer",
        Lines,
        broker_responses::WORDS,
        broker_responses::answer
    ),
    plain!(
        "retry_after",
        Text,
        broker_responses::RETRY_WORDS,
        broker_responses::retry_after
    ),
    plain!("schema", Json, catalogs::SCHEMA_WORDS, catalogs::schema),
    plain!("schedule", Text, texts::SCHEDULE_WORDS, texts::schedule),
    plain!("query", Text, texts::QUERY_WORDS, texts::query),
    plain!("ids", Text, &[], texts::ids),
    plain!("version", Text, &["2.17", ".", "0"], texts::version),
    plain!(
        "originating_identity",
        Text,
        texts::IDENTITY_WORDS,
        texts::originating_identity
    ),
    plain!("request_identity", Text, &[], texts::request_identity),
    plain!(
        "utc_time",
        Text,
        &["T", "Z", ".", "-", "02-29", "12-31"],
        texts::utc_time
    ),
    plain!("port_range", Text, &["-", "65535"], texts::port_range),
    plain!(
        "operation_id",
        Text,
        &["urn:uuid:", "{", "}", "-"],
        texts::operation_id
    ),
    plain!(
        "key_ring",
        Lines,
        stored_bytes::RING_WORDS,
        stored_bytes::key_ring
    ),
    plain!("sealed", Bytes, &["2026", "2025"], stored_bytes::sealed),
    plain!(
        "key_bytes",
        Bytes,
        &["\0", "broker", "instance"],
        stored_bytes::key_bytes
    ),
    Target {
        name: "path",
        syntax: Syntax::Text,
        words: requests::PATH_WORDS,
        check: requests::paths,
    },
    Target {
        name: "authorization",
        syntax: Syntax::Text,
        words: requests::AUTH_WORDS,
        check: requests::authorization,
    },
    Target {
        name: "token",
        syntax: Syntax::Text,
        words: tokens::WORDS,
        check: tokens::tokens,
    },
    plain!("key_set", Json, tokens::KEY_WORDS, tokens::key_set),
    Target {
        name: "content_type",
        syntax: Syntax::Text,
        words: &["application/json", ";", "charset=utf-8", ",", " ", "\t"],
        check: requests::content_type,
    },
    Target {
        name: "request",
        syntax: Syntax::Lines,
        words: requests::WORDS,
        check: requests::whole,
    },
    plain!(
        "platform_restrictions",
        Text,
        platform_texts::RESTRICTION_WORDS,
        platform_texts::restrictions
    ),
    plain!(
        "platform_credential_path",
        Text,
        platform_texts::PATH_WORDS,
        platform_texts::credential_path
    ),
    plain!(
        "platform_transforms",
        Json,
        platform_texts::TRANSFORM_WORDS,
        platform_texts::transforms
    ),
    plain!(
        "platform_changes",
        Json,
        platform_texts::CHANGE_WORDS,
        platform_texts::changes
    ),
    plain!(
        "platform_catalog",
        Json,
        catalogs::WORDS,
        platform_texts::broker_catalog
    ),
    Target {
        name: "platform_request",
        syntax: Syntax::Lines,
        words: platform_requests::WORDS,
        check: platform_requests::whole,
    },
];
