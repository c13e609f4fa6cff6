//! Traces for OpenTelemetry, configured by the standard `OTEL_` variables.
//!
//! Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. Spans are
//! sent in batches by a separate thread, over HTTP; a collector that is down does not slow requests, and spans
//! that cannot be sent are dropped. The spans themselves are defined in `sutler-broker`.

use super::{BoxedLayer, TelemetryError};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;
use sutler_broker::{AUDIT_TARGET, Propagation, TraceParent, propagate_with};
use tracing::{Level, Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, filter_fn};

/// Variables with the endpoint: the one for traces first, then the general one.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// Timeout of the last batch at shutdown.
const FINISH_WITHIN: Duration = Duration::from_secs(3);
/// Crates that send traces are not traced: that would create traces without end.
const SILENT: [&str; 7] = [
    "opentelemetry",
    "hyper",
    "h2",
    "reqwest",
    "rustls",
    "tower",
    "tonic",
];

/// Whether traces are sent.
#[derive(Debug, PartialEq, Eq)]
enum TraceExport {
    Off,
    Send,
    /// A protocol that is not built in.
    UnsupportedProtocol(String),
}

fn export_mode(variable: impl Fn(&str) -> Option<String>) -> TraceExport {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let is_set_to =
        |name: &str, word: &str| set(name).is_some_and(|it| it.eq_ignore_ascii_case(word));
    if !ENDPOINTS.iter().any(|name| set(name).is_some())
        || is_set_to("OTEL_SDK_DISABLED", "true")
        || is_set_to("OTEL_TRACES_EXPORTER", "none")
    {
        return TraceExport::Off;
    }
    let protocol =
        set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| set("OTEL_EXPORTER_OTLP_PROTOCOL"));
    match protocol {
        Some(protocol) if protocol != "http/protobuf" => TraceExport::UnsupportedProtocol(protocol),
        Some(_) | None => TraceExport::Send,
    }
}

/// Sends traces to a collector.
pub(super) struct TraceSender(SdkTracerProvider);

impl TraceSender {
    /// Sets up traces as the environment configures them; `None` if they are off.
    pub(super) fn from_environment() -> Result<Option<(Self, BoxedLayer)>, TelemetryError> {
        match export_mode(|name| std::env::var(name).ok()) {
            TraceExport::Off => return Ok(None),
            TraceExport::UnsupportedProtocol(protocol) => {
                let sentence = format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and only http/protobuf is supported"
                );
                return Err(TelemetryError::Traces(sentence.into()));
            }
            TraceExport::Send => {}
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .build()
            .map_err(|error| TelemetryError::Traces(error.into()))?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            // The name of a span cannot be changed after it was entered.
            .with_context_activation(false)
            .with_tracer(provider.tracer("sutler"))
            .with_filter(filter_fn(is_traced).with_max_level_hint(LevelFilter::INFO));
        propagate_with(W3cPropagation);
        Ok(Some((Self(provider), layer.boxed())))
    }

    /// Sends the last batch, within a timeout.
    pub(super) async fn finish(&self) {
        let provider = self.0.clone();
        let sending =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FINISH_WITHIN));
        match tokio::time::timeout(FINISH_WITHIN, sending).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the last traces were not sent"),
            Ok(Err(_)) | Err(_) => tracing::warn!("the last traces were not sent in time"),
        }
    }
}

/// The service name: from `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES`, else `sutler`.
fn resource() -> Resource {
    let named = std::env::var("OTEL_SERVICE_NAME").is_ok_and(|it| !it.is_empty())
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|it| it.contains("service.name="));
    let builder = Resource::builder();
    if named {
        builder.build()
    } else {
        builder.with_service_name("sutler").build()
    }
}

fn is_traced(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let level = if metadata.is_span() {
        Level::INFO
    } else {
        Level::WARN
    };
    *metadata.level() <= level
        && target != AUDIT_TARGET
        && !SILENT.iter().any(|name| target.starts_with(name))
}

/// Connects spans by W3C trace contexts.
struct W3cPropagation;

impl Propagation for W3cPropagation {
    fn join(&self, span: &Span, parent: &TraceParent) {
        if let Some(context) = remote(parent.as_str()) {
            let parent = opentelemetry::Context::new().with_remote_span_context(context);
            // Fails only for a span that has begun; the spans of requests have not.
            let _ = span.set_parent(parent);
        }
    }

    fn context_of(&self, span: &Span) -> Option<TraceParent> {
        let context = span.context();
        let span = context.span();
        let own = span.span_context();
        if !own.is_valid() {
            return None;
        }
        TraceParent::parse(&format!(
            "00-{}-{}-{:02x}",
            own.trace_id(),
            own.span_id(),
            own.trace_flags().to_u8()
        ))
    }
}

fn remote(parent: &str) -> Option<SpanContext> {
    let mut parts = parent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(parts.next()?, 16).ok()?);
    Some(SpanContext::new(
        trace,
        span,
        flags,
        true,
        TraceState::default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::{TraceExport, export_mode, remote};

    fn with(variables: &[(&str, &str)]) -> TraceExport {
        export_mode(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn traces_are_off_without_an_endpoint() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(with(&[]), TraceExport::Off);
        assert_eq!(
            with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]),
            TraceExport::Off
        );
        assert_eq!(with(&[endpoint]), TraceExport::Send);
        assert_eq!(
            with(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x")]),
            TraceExport::Send
        );
        assert_eq!(
            with(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]),
            TraceExport::Off
        );
        assert_eq!(
            with(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]),
            TraceExport::Off
        );
        assert_eq!(
            with(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]),
            TraceExport::UnsupportedProtocol("grpc".to_owned())
        );
    }

    #[test]
    fn a_remote_context_keeps_its_ids_and_flags() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = remote(text).unwrap();
        assert!(context.is_remote() && context.is_sampled());
        assert_eq!(context.trace_id().to_string(), &text[3..35]);
        assert_eq!(context.span_id().to_string(), &text[36..52]);
    }
}
