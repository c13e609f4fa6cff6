//! Texts for strings of a schema: by format, by pattern, by length. Patterns: `pattern.rs`.

use super::flatten::FlatSchema;
use super::limits::TEXT_MAX;
use super::pattern;
use super::valid_sample::size;

/// Default texts.
const WORDS: [&str; 3] = ["sutler-check", "sutler-other", "abc"];

/// Texts that probably fit, without duplicates.
pub(super) fn texts(flat: &FlatSchema) -> Vec<String> {
    let least = size(flat, "minLength").unwrap_or(0);
    let most = size(flat, "maxLength").unwrap_or(usize::MAX);
    if least > TEXT_MAX || least > most {
        return Vec::new();
    }
    let mut all: Vec<String> = Vec::new();
    if let Some(pattern) = flat.get("pattern").and_then(|it| it.as_str()) {
        all.extend(pattern::texts(pattern, least, most));
    }
    let format = flat.get("format").and_then(|it| it.as_str());
    let formatted = format.map(of_format).unwrap_or_default();
    all.extend(formatted.iter().map(|it| (*it).to_owned()));
    let plain = if most == 0 { 1 } else { WORDS.len() };
    all.extend(WORDS.iter().take(plain).map(|it| cut(it, least, most)));
    all.retain(|it| (least..=most).contains(&it.chars().count()));
    let mut kept: Vec<String> = Vec::new();
    for text in all {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}

/// A word with a length in this range.
fn cut(word: &str, least: usize, most: usize) -> String {
    let letters = word.chars().cycle();
    let length = word.len().clamp(least, most.max(least));
    letters.take(length).collect()
}

fn of_format(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" => &["2030-01-02T03:04:05Z", "2031-01-02T03:04:05Z"],
        "date" => &["2030-01-02", "2031-01-02"],
        "time" => &["03:04:05Z", "04:04:05Z"],
        "duration" => &["P1D", "PT1H"],
        "email" | "idn-email" => &["check@sutler.example", "other@sutler.example"],
        "hostname" | "idn-hostname" => &["check.sutler.example", "other.sutler.example"],
        "ipv4" => &["192.0.2.1", "192.0.2.2"],
        "ipv6" => &["2001:db8::1", "2001:db8::2"],
        "uri" | "iri" | "uri-reference" | "iri-reference" | "url" => &[
            "https://sutler.example/check",
            "https://sutler.example/other",
        ],
        "uri-template" => &["https://sutler.example/{check}"],
        "uuid" => &[
            "2f1c2f6c-5d0a-4d3c-9a52-0c8a4a8f1a01",
            "2f1c2f6c-5d0a-4d3c-9a52-0c8a4a8f1a02",
        ],
        "regex" => &["^a$", "^b$"],
        "json-pointer" => &["/a", "/b"],
        "relative-json-pointer" => &["0/a", "0/b"],
        _ => &[],
    }
}
