//! The log as JSON: one flat object per line, with the ids of the request and the operation.
//!
//! An object has the fields of its event and of the spans around it; inner ones override outer ones. One filter
//! on `operation.id` finds everything. Text lines are written by `tracing-subscriber`.

use super::json_fields::{JsonFieldVisitor, timestamp};
use serde_json::{Map, Value};
use std::io::Write;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// The fields of a span.
struct SpanFields(Map<String, Value>);

/// Writes events as lines of JSON.
pub(super) struct JsonLogLayer<M>(M);

impl<M> JsonLogLayer<M> {
    pub(super) fn new(writer: M) -> Self {
        Self(writer)
    }
}

impl<S, M, W> Layer<S> for JsonLogLayer<M>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    M: Fn() -> W + 'static,
    W: Write,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Map::new();
        attributes.record(&mut JsonFieldVisitor(&mut fields));
        span.extensions_mut().insert(SpanFields(fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<SpanFields>() {
            values.record(&mut JsonFieldVisitor(&mut fields.0));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), timestamp().into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|it| it.from_root())
        {
            if let Some(fields) = span.extensions().get::<SpanFields>() {
                line.extend(fields.0.clone());
            }
        }
        event.record(&mut JsonFieldVisitor(&mut line));
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        // If standard error is closed, the error cannot be reported.
        let _ = (self.0)().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::JsonLogLayer;
    use serde_json::Value;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(work: impl FnOnce()) -> Vec<Value> {
        let buffer = SharedBuffer::default();
        let writer = buffer.clone();
        let subscriber =
            tracing_subscriber::registry().with(JsonLogLayer::new(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, work);
        let bytes = buffer.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_has_the_ids_of_all_surrounding_spans() {
        let lines = written(|| {
            let outer =
                tracing::info_span!("request", request.id = "r", caller = tracing::field::Empty);
            outer.record("caller", "cf");
            let _outer = outer.enter();
            let _inner =
                tracing::info_span!("operation", operation.id = "o", otel.name = "x").entered();
            tracing::warn!(attempt = 2, "said \"so\"\nand so");
        });
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(line["request.id"], "r");
        assert_eq!(line["caller"], "cf");
        assert_eq!(line["operation.id"], "o");
        assert_eq!(line["attempt"], 2);
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "said \"so\"\nand so");
        assert!(line.get("otel.name").is_none());
    }

    #[test]
    fn a_long_field_is_cut() {
        let lines = written(|| tracing::info!(text = "ä".repeat(100_000), "long"));
        assert!(lines[0]["text"].as_str().unwrap().chars().count() < 10_000);
    }
}
