//! Explains what the answer to a question did to a turn, step by step.

use std::sync::Arc;

use super::{
    explained_part,
    explained_part::{explained_parts, with_neighbours},
    first_hop_recorder::FirstHopRecorder,
    part_explainer::PartExplainer,
    sentence,
};
use crate::{
    index::UnitBody,
    recall::{
        BoxError, Planner, RecallError, RecallMemory, RecallModels, first_hop, recollect::recollection,
        recollection::Recollection,
    },
};
use types::{
    config::{FirstHopMethod, RecallSettings},
    model::{
        ExplainedSubject, Explanation, ExplanationQuery, ExplanationStep, ExplanationStepName, ExplanationStepState,
        LogPosition, Question, SiblingPart, SubjectId, UnitId,
    },
};

/// The number of units per channel that are read to rank a unit that the first hop did not take.
const MAX_HITS: usize = 1_000;

/// What recollection did to a turn: the steps from its unit on.
#[derive(Debug, Clone)]
pub struct RecallExplanation {
    question: Question,
    /// The turn or unit as the caller named it, with what was found of it.
    subject: ExplainedSubject,
    /// The unit that holds it, and the index of its part; `None` if the memory holds none.
    unit: Option<(Arc<UnitBody>, usize)>,
    steps: Vec<ExplanationStep>,
    others: Vec<SiblingPart>,
    supported: bool,
    vector_hash: String,
    settings_hash: String,
    reflects: Vec<LogPosition>,
}

/// Explains what the answer to a question did to a turn, or to a unit.
///
/// The question is recollected as by [`crate::recall::recollect()`].
///
/// # Errors
/// As [`crate::recall::recollect()`]; [`RecallError::UnknownAsker`] if the question says "I" and its asker does not
/// speak in the bank.
pub fn explain(
    memory: &dyn RecallMemory,
    models: RecallModels<'_>,
    question: &Question,
    planner: &dyn Planner,
    settings: &RecallSettings,
    subject: &ExplanationQuery,
) -> Result<RecallExplanation, RecallError> {
    let whole = FirstHopRecorder::new(memory);
    let model = models.model;
    let found = recollection(&whole, models, question, planner, settings)?;
    if let (Some(known), Some(asker)) = (&found.first.familiar.unknown_asker, &question.asker)
        && found.read.is_in_first_person()
    {
        return Err(RecallError::UnknownAsker { asker: asker.clone(), known: known.join(", ") });
    }
    let rest = whole.into_rest();
    let failed = |what: &'static str| {
        let bank = question.bank.to_string();
        move |source: BoxError| RecallError::Memory { bank, what: what.to_owned(), source }
    };
    let parts = explained_parts(memory, &found, &rest, subject).map_err(failed("look for the turn"))?;
    let others = explained_part::sibling_parts(&found, &parts);
    let (subject_found, unit, steps) = match parts.first() {
        None => (unfound_subject(subject), None, unknown_unit(subject)),
        Some(part) => {
            let linked = with_neighbours(memory, &found, question.bank.key(), part.unit.id);
            let linked = linked.map_err(failed("look for the unit's edges"))?;
            let mut explaining = PartExplainer {
                found: &found,
                part,
                linked: linked.map(|linked| linked.neighbours).unwrap_or_default(),
                model,
                hits: Vec::new(),
                rank_of_every_part: None,
            };
            if found.settings.first_hop == FirstHopMethod::Channels {
                explaining.hits = more_hits(memory, &found).map_err(failed("look at the indexes"))?;
            }
            if subject.every_part && part.scored.is_none() {
                let rank = rank(memory, &found, part.unit.id, part.at);
                explaining.rank_of_every_part = rank.map_err(failed("look at every part"))?;
            }
            (part.subject(subject), Some((Arc::clone(&part.unit), part.at)), explaining.steps())
        }
    };
    Ok(RecallExplanation {
        question: question.clone(),
        subject: subject_found,
        unit,
        steps,
        others,
        supported: found.evidence.supported,
        vector_hash: found.evidence.trace.vector_hash.clone(),
        settings_hash: settings_hash(&found.settings),
        reflects: found.evidence.reflects.clone(),
    })
}

impl RecallExplanation {
    /// The unit that holds the turn, and the index of its part; `None` if the memory holds none.
    #[must_use]
    pub fn unit(&self) -> Option<(&UnitBody, usize)> {
        self.unit.as_ref().map(|(unit, part)| (&**unit, *part))
    }

    /// The turn that is explained, if its id is known.
    #[must_use]
    pub fn turn(&self) -> Option<&str> {
        self.subject.turn.as_deref()
    }

    /// The offsets that it reflects.
    #[must_use]
    pub fn reflects(&self) -> &[LogPosition] {
        &self.reflects
    }

    /// The whole explanation. `before` has the steps that precede the unit's: stored, reflected, window.
    #[must_use]
    pub fn complete(self, before: [ExplanationStep; 3]) -> Explanation {
        let Self { question, subject, unit, mut steps, others, supported, vector_hash, settings_hash, reflects } = self;
        let is_lost = before.iter().any(|step| step.state == ExplanationStepState::Failed);
        if let (None, true, Some(first)) = (&unit, is_lost, steps.first_mut()) {
            *first = ExplanationStep::not_reached(first.step);
        }
        let steps: Vec<ExplanationStep> = before.into_iter().chain(steps).collect();
        let sentence = sentence::summary_sentence(&subject, &steps, supported);
        let memory = reflects.iter().find(|at| at.topic == "memory" && at.next_offset > 0);
        Explanation {
            subject: Some(subject),
            others,
            as_of: memory.map(|at| (at.next_offset - 1).to_string()),
            vector_hash: Some(vector_hash),
            settings_hash: Some(settings_hash),
            reflects,
            ..Explanation::of(question.bank.to_string(), sentence, steps)
        }
    }
}

/// What is known of a subject that no unit holds.
fn unfound_subject(subject: &ExplanationQuery) -> ExplainedSubject {
    match &subject.id {
        SubjectId::Turn(turn) => ExplainedSubject { turn: Some(turn.clone()), ..ExplainedSubject::default() },
        SubjectId::Unit(unit) => ExplainedSubject { unit: Some(*unit), ..ExplainedSubject::default() },
    }
}

/// The steps if the memory holds no unit of a subject.
fn unknown_unit(subject: &ExplanationQuery) -> Vec<ExplanationStep> {
    let part = subject.part.map(|part| format!(" part {part} of")).unwrap_or_default();
    let (sentence, change) = match &subject.id {
        SubjectId::Turn(turn) => (
            format!("No unit of the memory holds{part} turn {turn}."),
            "What reads the turns made no unit of it: `ripplemem reextract` has a language model read it again.",
        ),
        SubjectId::Unit(unit) => (
            format!("The memory has no{part} unit {unit}."),
            "An edit or a deletion may have replaced it; take the id from an answer of now.",
        ),
    };
    let first = ExplanationStep::new(ExplanationStepName::Unit, ExplanationStepState::Failed, sentence).change(change);
    let later = ExplanationStepName::ALL
        .into_iter()
        .filter(|step| *step > ExplanationStepName::Unit)
        .map(ExplanationStep::not_reached);
    std::iter::once(first).chain(later).collect()
}

/// The hits of a first hop by channels, including those that it did not take.
fn more_hits(memory: &dyn RecallMemory, found: &Recollection<'_>) -> Result<Vec<crate::index::FirstHopHit>, BoxError> {
    let asked = found.first_hop_query();
    let more = |most: usize| if most == 0 { 0 } else { most.max(MAX_HITS) };
    let settings = &found.settings;
    let settings = RecallSettings {
        semantic: more(settings.semantic),
        lexical: more(settings.lexical),
        cue: more(settings.cue),
        ..settings.clone()
    };
    Ok(memory.first_hop(first_hop::channel_probe(&asked, &settings))?.value)
}

/// A part's rank among all parts of the bank, and its share.
fn rank(
    memory: &dyn RecallMemory,
    found: &Recollection<'_>,
    unit: UnitId,
    part: usize,
) -> Result<Option<(usize, f64)>, BoxError> {
    let every = first_hop::every_part(memory, &found.first_hop_query(), &found.settings)?;
    let at = every.best.iter().position(|other| other.unit.id == unit && other.part == part);
    Ok(at.map(|at| (at + 1, every.share(every.best[at].score))))
}

/// Hash of every setting of recall.
fn settings_hash(settings: &RecallSettings) -> String {
    // The scale of the cosines is not among the keys of the settings.
    let json = serde_json::to_vec(&(settings, settings.familiarity.cosines)).unwrap_or_default();
    blake3::hash(&json).to_hex().to_string()
}
