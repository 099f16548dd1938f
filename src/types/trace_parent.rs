//! The trace that a request belongs to, as W3C Trace Context writes it.
//!
//! In: a header `traceparent`, such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`. Out: the ids. A
//! malformed header is ignored, and the answer does not mention it.

use std::{cell::RefCell, fmt};

/// The position of a request in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    trace: String,
    parent: String,
    flags: u8,
}

impl TraceParent {
    /// Parses the value of a header; `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let (version, trace, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_hex = |field: &str, digits: usize| {
            field.len() == digits && field.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_zero = |field: &str| field.bytes().all(|b| b == b'0');
        // Later versions may have further fields; version ff is invalid.
        let known = is_hex(version, 2) && version != "ff" && (version != "00" || fields.next().is_none());
        let ids = is_hex(trace, 32) && !is_zero(trace) && is_hex(parent, 16) && !is_zero(parent);
        let flags = u8::from_str_radix(flags, 16).ok().filter(|_| is_hex(flags, 2))?;
        (known && ids).then(|| Self { trace: trace.to_owned(), parent: parent.to_owned(), flags })
    }

    /// The id of the whole trace: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.trace
    }

    /// The id of the span that sent the request: 16 hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        &self.parent
    }

    /// The flags; the lowest bit says that the trace is recorded.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The same trace, for a request that this process sends as a part of it.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { parent: format!("{:016x}", fastrand::u64(1..)), ..self.clone() }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.parent, self.flags)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<TraceParent>> = const { RefCell::new(None) };
}

/// The trace of the request that this thread works on.
#[must_use]
pub fn current_trace() -> Option<TraceParent> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` as a part of a trace, or of none.
pub fn run_in_trace<T>(trace: Option<TraceParent>, work: impl FnOnce() -> T) -> T {
    struct TraceGuard(Option<TraceParent>);
    impl Drop for TraceGuard {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    // The earlier trace is restored even if the work panics.
    let _before = TraceGuard(CURRENT.replace(trace));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_is_read_and_written_and_a_malformed_one_is_none() {
        let trace = TraceParent::parse(TEXT).unwrap();
        assert_eq!((trace.to_string().as_str(), trace.trace_id()), (TEXT, "0af7651916cd43dd8448eb211c80319c"));
        assert!(TraceParent::parse(&TEXT.replacen("00", "cc", 1).replace("-01", "-01-what-comes")).is_some());
        for wrong in [
            "",
            "00-x-y-01",
            &TEXT[1..],
            &TEXT.to_uppercase(),
            &TEXT.replacen("00", "ff", 1),
            &format!("{TEXT}-more"),
            &TEXT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &TEXT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &TEXT.replace("-01", "-0g"),
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_child_belongs_to_the_trace_and_is_another_span() {
        let trace = TraceParent::parse(TEXT).unwrap();
        let child = run_in_trace(Some(trace.clone()), || current_trace().unwrap().child());
        assert_eq!((child.trace_id(), child.flags), (trace.trace_id(), 1));
        assert_ne!(child.parent, trace.parent);
        assert_eq!(TraceParent::parse(&child.to_string()), Some(child));
        assert_eq!(current_trace(), None);
    }
}
