//! The shorter forms of a text that a model does not take whole.
//!
//! In: a text with a model's prefix, and how many times it is halved. Out: the prefix with a half, a quarter and so on
//! of the text, which depend on the text alone. A remembered text keeps its beginning; a question keeps its beginning
//! and its end, because the actual question may come last. An embedder that uses a shorter form reports it here, where
//! it is counted and logged.

use crate::log_events;
use std::sync::atomic::{AtomicU64, Ordering};

/// A text is not shortened below this length, not counting its prefix.
pub(super) const MIN_BYTES: usize = 64;

/// How many texts this process has embedded in a shorter form.
static SHORTENED: AtomicU64 = AtomicU64::new(0);

/// Which part of a text its shorter forms keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruncationKind {
    /// Its beginning.
    Beginning,
    /// Half of it from its beginning, and half from its end.
    Ends,
}

/// A text, halved `halvings` times behind its prefix of `prefix_bytes` bytes; `None` if the result would be too short.
pub(crate) fn truncated_text(text: &str, prefix_bytes: usize, halvings: u32, keeps: TruncationKind) -> Option<String> {
    if halvings == 0 {
        return Some(text.to_owned());
    }
    let (prefix, content) = text.split_at_checked(prefix_bytes)?;
    let bytes = content.len().checked_shr(halvings).filter(|bytes| *bytes >= MIN_BYTES)?;
    let beginning = |bytes| content.get(..content.floor_char_boundary(bytes)).unwrap_or_default();
    let kept = match keeps {
        TruncationKind::Beginning => beginning(bytes).to_owned(),
        TruncationKind::Ends => {
            let end = content.get(content.ceil_char_boundary(content.len() - bytes / 2)..).unwrap_or_default();
            format!("{} {end}", beginning(bytes / 2))
        }
    };
    (!kept.trim().is_empty()).then(|| format!("{prefix}{kept}"))
}

/// Counts and logs that a text of this many bytes was embedded in a shorter form.
pub(super) fn note_shortened(model: &str, bytes: usize, halvings: u32) {
    if SHORTENED.fetch_add(1, Ordering::Relaxed) == 0 {
        log_events::first_text_truncated(model, bytes, halvings);
    } else {
        log_events::text_truncated(model, bytes, halvings);
    }
}

/// How many texts this process has embedded in a shorter form, because their model did not take them whole.
#[must_use]
pub fn shortened_texts() -> u64 {
    SHORTENED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_the_prefix_and_the_beginning_or_both_ends() {
        let content = format!("{}{}", "a".repeat(128), "é".repeat(64));
        let text = format!("query: {content}");
        let check = |halvings, keeps, expected: Option<String>| {
            assert_eq!(truncated_text(&text, "query: ".len(), halvings, keeps), expected, "{halvings} {keeps:?}");
        };
        check(0, TruncationKind::Ends, Some(text.clone()));
        check(1, TruncationKind::Beginning, Some(format!("query: {}", "a".repeat(128))));
        check(1, TruncationKind::Ends, Some(format!("query: {} {}", "a".repeat(64), "é".repeat(32))));
        check(2, TruncationKind::Beginning, Some(format!("query: {}", "a".repeat(64))));
        check(3, TruncationKind::Beginning, None);
        check(40, TruncationKind::Ends, None);
        assert_eq!(truncated_text(&" ".repeat(400), 0, 1, TruncationKind::Beginning), None, "there is nothing in it");
        assert_eq!(
            truncated_text(&"é".repeat(65), 0, 1, TruncationKind::Beginning),
            Some("é".repeat(32)),
            "whole characters"
        );
    }
}
