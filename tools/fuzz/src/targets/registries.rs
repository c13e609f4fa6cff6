//! Responses of registries: manifests of images, headers, lists, pages of listings, tokens, image streams.

use super::Verdict;
use crate::properties::{kind_of, sentence};
use sutler_registry::fuzzing;

pub(super) const WORDS: &[&str] = &[
    "schemaVersion",
    "config",
    "manifests",
    "digest",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "platform",
    "linux",
    "amd64",
    "annotations",
    "Labels",
    "com.redhat.apb.spec",
    "dmVyc2lvbjogMS4wCg==",
    "dockerImageReference",
    "continue",
    "latest",
];

pub(super) const HEADER_WORDS: &[&str] = &[
    "Bearer ",
    "Basic ",
    "realm=",
    "service=",
    "scope=",
    "<",
    ">",
    "; rel=next",
    "https://",
    "//other.example",
    "\\",
    "\"",
    ",",
];

pub(super) const LIST_WORDS: &[&str] = &[
    "bundles:",
    "- name: ",
    "tag: ",
    "image: ",
    "@sha256:",
    "manifest: |",
    "file: ",
    "runtime: ",
    "../",
    "&a ",
    "*a",
];

pub(super) fn image(input: &[u8]) -> Verdict {
    verdict_of(fuzzing::image(input))
}

pub(super) const PAGE_WORDS: &[&str] = &[
    "repositories",
    "results",
    "name",
    "kind",
    "image",
    "count",
    "next",
    "next_page",
    "https://other.example/",
    "?page=2",
    "null",
    "token",
    "access_token",
    "expires_in",
];

pub(super) fn list(input: &[u8]) -> Verdict {
    verdict_of(fuzzing::list(input))
}

pub(super) fn streams(input: &[u8]) -> Verdict {
    verdict_of(fuzzing::streams(input))
}

pub(super) fn page(input: &[u8]) -> Verdict {
    verdict_of(fuzzing::page(input))
}

pub(super) fn header(input: &[u8]) -> Verdict {
    verdict_of(fuzzing::header(&String::from_utf8_lossy(input)))
}

fn verdict_of(result: Result<String, String>) -> Verdict {
    match result {
        Ok(words) => Ok(words),
        Err(message) if message.starts_with("BROKEN") => Err(message),
        Err(message) => {
            sentence(&message)?;
            Ok(kind_of(&message))
        }
    }
}
