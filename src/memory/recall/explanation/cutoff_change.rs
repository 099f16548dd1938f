//! What would have changed a cutoff.
//!
//! In: a first hop by familiarity, and a part that it did not quote. Out: the settings with which it would quote the
//! part. The same choice is made again with other settings; no formula is repeated here.

use crate::{
    index::FamiliarityResult,
    recall::{
        asked_time,
        first_hop::{FirstHopResult, PartChoice},
        recollection::Recollection,
        speaker_shares,
    },
};
use types::config::RecallSettings;

/// The lowest `recall.stop.share` that is tried.
const LOWEST_SHARE: f64 = -1.0;
/// How often the range of shares is halved, until it is narrower than a share's last digit.
const SHARE_STEPS: u32 = 24;
/// A share is written with this many steps to one.
const SHARE_DIGITS: f64 = 10_000.0;

/// The changes with which the first hop would quote a part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CutoffChange {
    /// The least `recall.budget_tokens`.
    pub(super) budget_tokens: Option<usize>,
    /// The greatest `recall.stop.share`.
    pub(super) share: Option<f64>,
}

impl CutoffChange {
    /// The changes for the part at index `at` of `familiar.best`.
    pub(super) fn of(found: &Recollection<'_>, at: usize) -> Self {
        let FirstHopResult { familiar, chosen, .. } = &found.first;
        let settings = &found.settings;
        let quotes = |settings: &RecallSettings| quotes(found, familiar, chosen, settings, at);
        if at >= familiar.best.len() {
            return Self::default();
        }
        let (least, bound) = (settings.budget_tokens, settings.stop.bound_tokens);
        let within = |budget_tokens: usize| quotes(&RecallSettings { budget_tokens, ..settings.clone() });
        let budget_tokens = (least < bound && within(bound)).then(|| {
            let (mut too_few, mut enough) = (least, bound);
            while enough - too_few > 1 {
                let middle = too_few.midpoint(enough);
                if within(middle) { enough = middle } else { too_few = middle }
            }
            enough
        });
        let with_share = |share: f64| {
            let mut changed = settings.clone();
            changed.stop.share = share;
            quotes(&changed)
        };
        let by_cutoff = matches!(chosen, PartChoice::AboveCutoff(..));
        let share = (by_cutoff && with_share(LOWEST_SHARE)).then(|| {
            let (mut enough, mut too_high) = (LOWEST_SHARE, settings.stop.share);
            for _ in 0..SHARE_STEPS {
                let middle = enough.midpoint(too_high);
                if with_share(middle) { enough = middle } else { too_high = middle }
            }
            (enough * SHARE_DIGITS).floor() / SHARE_DIGITS
        });
        Self { budget_tokens, share }
    }

    /// The same in words; `None` if no such change is enough.
    pub(super) fn in_words(self) -> Option<String> {
        let tokens = self.budget_tokens.map(|tokens| format!("with recall.budget_tokens of {tokens} or more"));
        let share = self.share.map(|share| format!("with recall.stop.share of {share} or less"));
        let ways: Vec<String> = tokens.into_iter().chain(share).collect();
        (!ways.is_empty()).then(|| format!("The first hop would quote it {}.", ways.join(", or ")))
    }
}

/// Whether a first hop with these settings quotes a part.
fn quotes(
    found: &Recollection<'_>,
    familiar: &FamiliarityResult,
    chosen: &PartChoice,
    settings: &RecallSettings,
    at: usize,
) -> bool {
    let quoted = match chosen {
        PartChoice::ByChannels => return false,
        PartChoice::ByShares(_) | PartChoice::AboveCutoff(..) => {
            let of_time = asked_time::parts_of_time(familiar);
            let (familiar, profile) = (of_time.as_ref().unwrap_or(familiar), &found.first.profile);
            speaker_shares::choose_parts(familiar, &found.read, profile, settings).0
        }
    };
    quoted.parts.iter().any(|(quoted, _)| *quoted == at)
}
