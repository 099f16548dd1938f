//! Sends spans to an OpenTelemetry collector over HTTP.
//!
//! In: `OTEL_EXPORTER_OTLP_ENDPOINT`, such as `http://127.0.0.1:4318`; without it, nothing is sent. Out: the spans of
//! requests, questions and steps, with the same fields as log lines. No span contains a word of what was said.

use std::sync::OnceLock;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use terminal::SpanLayer;

/// The variable that names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The layer that sends spans, or why it cannot be used; `None` if no collector is named.
pub(crate) fn layer() -> Result<Option<SpanLayer>, String> {
    if std::env::var_os(ENDPOINT).is_none() {
        return Ok(None);
    }
    // The exporter's client takes the cryptography that the process has installed; an earlier one stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    let exporter = SpanExporter::builder().with_http().build();
    let exporter = exporter.map_err(|problem| format!("{ENDPOINT}: no spans are sent: {problem}"))?;
    let resource = Resource::builder().with_service_name("ripplemem").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let provider = PROVIDER.get_or_init(|| provider);
    Ok(Some(Box::new(tracing_opentelemetry::layer().with_tracer(provider.tracer("ripplemem")))))
}

/// Sends the remaining spans.
pub(crate) fn end() {
    if let Some(provider) = PROVIDER.get() {
        // If the collector is unavailable, the last spans are lost.
        let _ = provider.shutdown();
    }
}
