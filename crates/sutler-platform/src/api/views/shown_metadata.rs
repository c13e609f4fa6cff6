//! Metadata of brokers as people see it: without links and pictures that could act in the name of who opens them.
//!
//! A broker chooses the text. Pages make links and pictures of it, so of links only those to web pages are left, and of
//! pictures inside of the text only small ones that contain no script. Everything else is shown as it is.

use serde_json::{Map, Value};

/// Largest picture inside of metadata, in bytes of its text.
const PICTURE_BYTES_MAX: usize = 64 * 1000;
/// Beginnings of pictures without script.
const RASTER_PICTURES: [&str; 4] = [
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/gif;base64,",
    "data:image/webp;base64,",
];
/// Beginnings of links to web pages.
const WEB_LINKS: [&str; 2] = ["https://", "http://"];
/// Ends of the names of fields that hold links, e.g. `imageUrl`.
const LINK_FIELDS: [&str; 4] = ["url", "uri", "href", "link"];
/// Schemes of links that are no web pages, wherever they are.
const OTHER_SCHEMES: [&str; 7] = [
    "javascript:",
    "vbscript:",
    "data:",
    "blob:",
    "file:",
    "filesystem:",
    "about:",
];

/// Metadata without the links and pictures that are not shown.
pub(super) fn shown_metadata(metadata: Map<String, Value>) -> Map<String, Value> {
    let shown = |(name, value): (String, Value)| {
        let value = shown_value(&name, value)?;
        Some((name, value))
    };
    metadata.into_iter().filter_map(shown).collect()
}

fn shown_value(field: &str, value: Value) -> Option<Value> {
    match value {
        Value::String(text) => is_shown(field, &text).then_some(Value::String(text)),
        Value::Object(object) => Some(Value::Object(shown_metadata(object))),
        Value::Array(items) => {
            let items = items.into_iter();
            Some(items.filter_map(|it| shown_value(field, it)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value),
    }
}

fn is_shown(field: &str, text: &str) -> bool {
    let start = as_browsers_read(text);
    let begins_with = |beginnings: &[&str]| beginnings.iter().any(|it| start.starts_with(it));
    if begins_with(&RASTER_PICTURES) {
        return text.len() <= PICTURE_BYTES_MAX;
    }
    if begins_with(&OTHER_SCHEMES) {
        return false;
    }
    let field = field.to_ascii_lowercase();
    let is_link = LINK_FIELDS.iter().any(|it| field.ends_with(it));
    !is_link || begins_with(&WEB_LINKS)
}

/// The beginning of a text as the parser of URLs in a browser reads it: without spaces before it and control characters.
fn as_browsers_read(text: &str) -> String {
    /// Longer than every beginning that is looked for.
    const BEGINNING_CHARS: usize = 32;
    let visible = text.chars().filter(|it| !it.is_control());
    let visible = visible.skip_while(|it| it.is_whitespace());
    let beginning: String = visible.take(BEGINNING_CHARS).collect();
    beginning.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{PICTURE_BYTES_MAX, shown_metadata};
    use serde_json::{Value, json};

    fn check(field: &str, text: &str, is_shown: bool) {
        for metadata in [
            json!({ field: text }),
            json!({"more": {field: [text]}}),
            json!({ field: {"x": [{ field: text }]} }),
        ] {
            let Value::Object(metadata) = metadata else {
                panic!("an object")
            };
            let shown = Value::from(shown_metadata(metadata)).to_string();
            let json = Value::from(text).to_string();
            assert_eq!(shown.contains(&json), is_shown, "{field}: {text:?}");
        }
    }

    #[test]
    fn links_lead_to_web_pages_only() {
        for text in [
            "https://docs.example/a?b#c",
            "http://x",
            "HTTPS://X",
            " https://x",
        ] {
            check("documentationUrl", text, true);
        }
        for text in [
            "javascript:alert(1)",
            "//evil.example",
            "/v2/catalog",
            "ftp://x",
            "mailto:a@b.example",
            "",
        ] {
            check("documentationUrl", text, false);
            check("support_URL", text, false);
        }
    }

    #[test]
    fn a_link_with_script_is_not_shown_in_any_field_and_spelling() {
        for text in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "\u{1}\n java\tscript\n:alert(1)",
            "vbscript:x",
            "data:text/html;base64,PHNjcmlwdD4=",
            "data:,x",
            "file:///etc/passwd",
        ] {
            for field in ["displayName", "imageUrl", "x"] {
                check(field, text, false);
            }
        }
        for text in ["Data services: a choice", "about us", "JavaScript runtime"] {
            check("longDescription", text, true);
        }
    }

    #[test]
    fn pictures_are_small_and_without_script() {
        let png = "data:image/png;base64,";
        for (text, is_shown) in [
            (format!("{png}AAAA"), true),
            ("data:image/webp;base64,AAAA".to_owned(), true),
            ("data:image/svg+xml;base64,PHN2Zz4=".to_owned(), false),
            ("data:image/svg+xml,<svg onload=alert(1)>".to_owned(), false),
            ("data:image/png,AAAA".to_owned(), false),
            (format!("{png}{}", "A".repeat(PICTURE_BYTES_MAX)), false),
        ] {
            check("imageUrl", &text, is_shown);
        }
    }
}
