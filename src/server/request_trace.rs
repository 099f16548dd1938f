//! The trace of the request that a task answers, and the spans of log lines.
//!
//! In: headers and banks. Out: spans with the id of the client's trace. No span holds a word of a question.

use tracing::{Span, field::Empty, info_span};

use types::{logged_bank::LoggedBank, model::Bank, trace_parent::TraceParent};

tokio::task_local! {
    static TRACE: Option<TraceParent>;
}

/// Answers a request of a trace.
pub(super) async fn with_trace<T>(trace: Option<TraceParent>, answer: impl Future<Output = T>) -> T {
    TRACE.scope(trace, answer).await
}

/// The trace of the request that this task answers.
pub(super) fn current() -> Option<TraceParent> {
    TRACE.try_with(Clone::clone).ok().flatten()
}

/// The span of a request over HTTP. It names only the pattern of the path, because a query names banks.
pub(super) fn request_span(method: &str, path: &str, trace: Option<&TraceParent>) -> Span {
    let span = info_span!("request", method, path, trace_id = Empty);
    record(&span, trace);
    span
}

/// The span of a question.
pub(super) fn question_span(bank: &Bank, trace: Option<&TraceParent>) -> Span {
    let span = info_span!("question", bank = %LoggedBank(bank), trace_id = Empty);
    record(&span, trace);
    span
}

fn record(span: &Span, trace: Option<&TraceParent>) {
    let Some(trace) = trace else { return };
    span.record("trace_id", trace.trace_id());
    #[cfg(feature = "otlp")]
    join(span, trace);
}

/// Makes a span one of the client's trace, for a collector.
#[cfg(feature = "otlp")]
fn join(span: &Span, trace: &TraceParent) {
    use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    let (Ok(trace_id), Ok(parent)) = (TraceId::from_hex(trace.trace_id()), SpanId::from_hex(trace.parent_id())) else {
        return;
    };
    let flags = TraceFlags::new(trace.flags());
    let context = SpanContext::new(trace_id, parent, flags, true, TraceState::NONE);
    // A span that no collector takes has no parent.
    let _ = span.set_parent(opentelemetry::Context::new().with_remote_span_context(context));
}
