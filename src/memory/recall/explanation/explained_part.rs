//! The parts of a turn, or of a unit, that an explanation is about.
//!
//! In: a subject, what the first hop scored, which parts are quoted. Out: its parts: the quoted ones first, then the
//! most familiar. The memory is asked for the subject's units only if the first hop scored none of them.

use std::sync::Arc;

use crate::{
    index::{FamiliarPart, NeighbourhoodProbe, TurnProbe, UnitBody, UnitNeighbourhood},
    recall::{BoxError, RecallMemory, familiarity_scale::is_quoted, recollection::Recollection},
};
use types::model::{BankKey, Cues, ExplainedSubject, ExplanationQuery, SiblingPart, SubjectId, UnitId};

/// A part that is explained.
pub(super) struct ExplainedPart {
    /// Its unit.
    pub(super) unit: Arc<UnitBody>,
    /// Its index among the unit's parts.
    pub(super) at: usize,
    /// Its rank among the scored parts, from 1, and its score; `None` if the first hop did not score it.
    pub(super) scored: Option<(usize, FamiliarPart)>,
    /// Whether the answer quotes it.
    pub(super) is_quoted: bool,
}

impl ExplainedPart {
    fn of(unit: &Arc<UnitBody>, at: usize) -> Self {
        Self { unit: Arc::clone(unit), at, scored: None, is_quoted: false }
    }

    /// Its score, if it has one.
    pub(super) fn score(&self) -> Option<&FamiliarPart> {
        self.scored.as_ref().map(|(_, part)| part)
    }

    /// What an explanation says of it.
    pub(super) fn subject(&self, subject: &ExplanationQuery) -> ExplainedSubject {
        let body = self.unit.part(self.at);
        let asked = match &subject.id {
            SubjectId::Turn(turn) => Some(turn.clone()),
            SubjectId::Unit(_) => None,
        };
        ExplainedSubject {
            turn: asked.or_else(|| Some(body?.turn.to_owned())),
            unit: Some(self.unit.id),
            part: Some(self.at as u32),
            speaker: body.map(|body| body.speaker.to_owned()),
            said_at: body.map(|body| body.said_at),
            text: body.map(|body| body.text.to_owned()),
        }
    }
}

/// The parts of a subject, the one that is explained first.
pub(super) fn explained_parts(
    memory: &dyn RecallMemory,
    found: &Recollection<'_>,
    rest: &[FamiliarPart],
    subject: &ExplanationQuery,
) -> Result<Vec<ExplainedPart>, BoxError> {
    let scored = (1..).zip(found.first.familiar.best.iter().chain(rest));
    let mut parts: Vec<ExplainedPart> = scored
        .filter(|(_, part)| matches_subject(subject, &part.unit, part.part))
        .map(|(rank, part)| ExplainedPart {
            unit: Arc::clone(&part.unit),
            at: part.part,
            scored: Some((rank, part.clone())),
            is_quoted: is_quoted(&found.quoted, part),
        })
        .collect();
    if parts.is_empty() {
        let bank = found.read.question().bank.key();
        let units = match &subject.id {
            SubjectId::Turn(turn) => memory.units_of_turn(TurnProbe { bank, turn: turn.clone() })?.value,
            SubjectId::Unit(id) => {
                with_neighbours(memory, found, bank, *id)?.map(|found| found.unit).into_iter().collect()
            }
        };
        parts = units.iter().flat_map(|unit| (0..unit.parts().len()).map(|at| ExplainedPart::of(unit, at))).collect();
        parts.retain(|part| matches_subject(subject, &part.unit, part.at));
        for part in &mut parts {
            let quoted = found.quoted.get(&part.unit.id);
            part.is_quoted = quoted.is_some_and(|parts| parts.as_ref().is_none_or(|parts| parts.contains(&part.at)));
        }
    }
    // Of several quoted parts, the one that the first hop took first comes first: its rank is the unit's in the trace.
    let taken = found.first.chosen.quoted();
    parts.sort_by_key(|part| {
        let rank = part.scored.as_ref().map_or(usize::MAX, |(rank, _)| *rank);
        let place = taken.iter().position(|(at, _)| at + 1 == rank).filter(|_| part.is_quoted);
        (!part.is_quoted, place.unwrap_or(usize::MAX), rank)
    });
    Ok(parts)
}

/// The other parts that were scored.
pub(super) fn sibling_parts(found: &Recollection<'_>, parts: &[ExplainedPart]) -> Vec<SiblingPart> {
    let others = parts.iter().skip(1).filter_map(|part| Some((part, part.score()?)));
    let other = |(part, score): (&ExplainedPart, &FamiliarPart)| SiblingPart {
        unit: part.unit.id,
        part: part.at as u32,
        share: found.first.familiar.share(score.score),
        quoted: part.is_quoted,
    };
    others.map(other).collect()
}

fn matches_subject(subject: &ExplanationQuery, unit: &UnitBody, at: usize) -> bool {
    let is_named = match &subject.id {
        SubjectId::Turn(turn) => unit.is_of_turn(at, turn),
        SubjectId::Unit(id) => unit.id == *id,
    };
    is_named && subject.part.is_none_or(|part| part as usize == at)
}

/// A unit with the units that its edges lead to.
pub(super) fn with_neighbours(
    memory: &dyn RecallMemory,
    found: &Recollection<'_>,
    bank: BankKey,
    id: UnitId,
) -> Result<Option<UnitNeighbourhood>, BoxError> {
    let probe = NeighbourhoodProbe {
        bank,
        anchors: vec![id],
        hops: 1,
        mixed: false,
        question: found.vector.clone(),
        target: found.vector.clone(),
        target_cues: Cues::default(),
        itself: true,
        matching: None,
    };
    let (itself, neighbours): (Vec<_>, Vec<_>) =
        memory.neighbourhood(probe)?.value.into_iter().partition(|near| near.path.is_empty());
    Ok(itself.into_iter().next().map(|found| UnitNeighbourhood { unit: found.unit, neighbours }))
}
