//! Converts fields of spans and events into JSON.

use serde_json::{Map, Value};
use std::fmt;
use tracing::field::{Field, Visit};

/// Maximum length of one field, in characters; the rest is cut.
const FIELD_CHARS_MAX: usize = 8 * 1024;

/// Collects fields into a JSON object, without the fields for the tracer.
pub(super) struct JsonFieldVisitor<'a>(pub(super) &'a mut Map<String, Value>);

impl JsonFieldVisitor<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        if !field.name().starts_with("otel.") {
            self.0.insert(field.name().to_owned(), value);
        }
    }
}

fn cut(text: &str) -> Value {
    match text.char_indices().nth(FIELD_CHARS_MAX) {
        Some((end, _)) => Value::String(format!("{}…", &text[..end])),
        None => Value::String(text.to_owned()),
    }
}

impl Visit for JsonFieldVisitor<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, cut(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        self.put(field, cut(&text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, cut(&format!("{value:?}")));
    }
}

/// The current time in UTC, in the format of RFC 3339.
pub(super) fn timestamp() -> String {
    use tracing_subscriber::fmt::format::Writer;
    use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}
