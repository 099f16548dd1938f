//! When recollection abstains: the decision that nothing in memory supports a question (decision 17).
//!
//! In: the evidence in its final order, and how sure the planner is that the memory supports an
//! answer. Out: the reason, where the answer says that memory supports nothing. Evidence that was
//! found is returned all the same, below that note (`context.rs`).
//!
//! To make it abstain more or less often, set `recall.supported`; how the figure comes about
//! stands in `agreement.rs`.

use super::Ranked;
use nouns::config::RecallSettings;

/// Why an answer is not supported though something was found.
const NO_AGREEMENT: &str = "no statement fits its person and topic";

/// Why memory supports no answer: nothing was found, which `stop_reason` explains, or the figure lies
/// below `settings.supported`. `None` where memory supports one.
pub(super) fn abstention<'r>(
    ranked: &[Ranked],
    stop_reason: &'r str,
    sufficiency: f64,
    settings: &RecallSettings,
) -> Option<&'r str> {
    match ranked {
        [] => Some(stop_reason),
        _ => (sufficiency < settings.supported).then_some(NO_AGREEMENT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::{candidate, settings};

    #[test]
    fn it_abstains_without_evidence_and_below_the_bar() {
        let found = [Ranked { candidate: candidate(1, "said", "2024-01-01T00:00:00Z"), rho: 1.0 }];
        let settings = RecallSettings { supported: 0.5, ..settings() };
        let check = |ranked: &[Ranked], sufficiency, expected| {
            assert_eq!(abstention(ranked, "round budget reached", sufficiency, &settings), expected, "{sufficiency}");
        };
        check(&[], 1.0, Some("round budget reached"));
        check(&found, 0.49, Some(NO_AGREEMENT));
        check(&found, 0.5, None);
    }
}
