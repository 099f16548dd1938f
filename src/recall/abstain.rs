//! When recollection abstains: the decision that nothing in memory supports a question (decision 17).
//!
//! In: the evidence in its final order, why the loop stopped, and how well the evidence covers
//! the question. Out: whether the answer says that memory supports nothing. Evidence that was
//! found is returned all the same, below that note (`context.rs`).
//!
//! To make it abstain more or less often, set `recall.supported`; how the figure comes about
//! stands in `rules_planner.rs`.

use super::{Ranked, planner::COVERED};
use crate::config::RecallSettings;

/// Whether memory supports no answer: nothing was found, or the evidence covers the question less
/// than `settings.supported`. A planner that stopped because the evidence covers the question
/// overrules the figure.
pub(super) fn abstains(ranked: &[Ranked], stop_reason: &str, sufficiency: f64, settings: &RecallSettings) -> bool {
    let covered = stop_reason == COVERED || sufficiency >= settings.supported;
    ranked.is_empty() || !covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::{candidate, settings};

    #[test]
    fn it_abstains_without_evidence_and_below_the_bar_unless_the_planner_finds_it_covered() {
        let found = [Ranked { candidate: candidate(1, "said", "2024-01-01T00:00:00Z"), rho: 1.0 }];
        let settings = RecallSettings { supported: 0.5, ..settings() };
        let check = |ranked: &[Ranked], stop_reason: &str, sufficiency, expected| {
            assert_eq!(abstains(ranked, stop_reason, sufficiency, &settings), expected, "{stop_reason} {sufficiency}");
        };
        check(&[], COVERED, 1.0, true);
        check(&found, "round budget reached", 0.49, true);
        check(&found, "round budget reached", 0.5, false);
        check(&found, COVERED, 0.1, false);
    }
}
