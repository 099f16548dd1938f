//! The scale of a question, and the best parts that its answer does not quote.
//!
//! In: the first hop, and which parts an answer quotes. Out: what its trace says of both. Changes no answer.

use super::{
    evidence_candidate::shown_restatement,
    first_hop::{FirstHopResult, PartChoice},
    recollection::QuotedUnits,
};
use crate::index::{FamiliarPart, FamiliarityResult, MatchingParts};
use types::model::{FamiliarityScale, NearMiss, ScoringScope};

/// The scale of a first hop; `None` if the bank has no parts.
pub(super) fn familiarity_scale(first: &FirstHopResult) -> Option<FamiliarityScale> {
    let FamiliarityResult { best, zero, parts_total, scored, .. } = &first.familiar;
    let best = best.first()?.score;
    let cutoff = match &first.chosen {
        PartChoice::AboveCutoff(_, cutoff) => Some(*cutoff),
        PartChoice::ByChannels | PartChoice::ByShares(_) => None,
    };
    Some(FamiliarityScale {
        zero: *zero,
        best,
        cutoff,
        floor: Some(first.floor).filter(|floor| floor.is_finite()),
        parts_total: *parts_total as u64,
        scored: if scored == parts_total { ScoringScope::EveryPart } else { ScoringScope::Candidates },
    })
}

/// The best parts that are not quoted, at most `most`.
pub(super) fn near_misses(
    familiar: &FamiliarityResult,
    quoted: &QuotedUnits,
    matching: Option<&MatchingParts>,
    most: usize,
) -> Vec<NearMiss> {
    let missed = (1..).zip(&familiar.best).filter(|(_, part)| !is_quoted(quoted, part));
    missed.take(most).filter_map(|(rank, part)| near_miss(familiar, matching, rank, part)).collect()
}

/// Whether an answer quotes a part.
pub(super) fn is_quoted(quoted: &QuotedUnits, part: &FamiliarPart) -> bool {
    quoted.get(&part.unit.id).is_some_and(|parts| parts.as_ref().is_none_or(|parts| parts.contains(&part.part)))
}

fn near_miss(
    familiar: &FamiliarityResult,
    matching: Option<&MatchingParts>,
    rank: u32,
    part: &FamiliarPart,
) -> Option<NearMiss> {
    let body = part.unit.part(part.part)?;
    Some(NearMiss {
        id: part.unit.id,
        restatement: shown_restatement(&part.unit, matching),
        part: part.part as u32,
        turn: body.turn.to_owned(),
        speaker: body.speaker.to_owned(),
        said_at: body.said_at,
        text: body.text.to_owned(),
        rank,
        score: part.score,
        share: familiar.share(part.score),
        terms: part.terms,
    })
}
