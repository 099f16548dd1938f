//! Where a turn that holds evidence was lost on the way into an answer.
//!
//! In: an answer with its trace, a turn that it does not deliver, the units that hold the turn, and the rank of its
//! best part among all parts of the bank. Out: the step that lost it, and a sentence with the numbers. The result
//! depends on these alone; what the trace does not contain is not guessed.

use std::collections::BTreeMap;

use memory::{
    index::{FamiliarPart, FamiliarityResult},
    language::question::ParsedQuestion,
    recall::{provenance_text, shared_part},
};
use models::embed::{self, Embedder};
use pipeline::PipelineError;
use ripplemem::PipelineDriver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{
    config::{Pipeline, RecallSettings},
    model::{EventTime, Evidence, EvidenceUnit, Provenance, Question, UnitId},
};

/// A step of recollection that can lose a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LostAt")]
pub enum LossStage {
    /// No unit of the memory holds the turn.
    Unit,
    /// The first hop did not see it: no index has it among its best, or it was no candidate for a score.
    Candidate,
    /// The first hop scored it, and quoted others: it is below the cutoff, or their tokens were spent before it.
    Cutoff,
    /// The first hop did not quote it; the walk that followed did not reach it, or did not keep it.
    Walk,
    /// It was found, and left out when the answer was put together: the budget was spent.
    Assembly,
    /// The context quotes a part of it, and not what the evidence needs.
    Context,
}

/// Where and how a turn was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Lost")]
pub struct EvidenceLoss {
    /// The step.
    pub at: LossStage,
    /// What happened there, with its numbers.
    pub sentence: String,
    /// Where its best part stands among all parts of the bank; null where no part of the bank is of this turn.
    pub standing: Option<PartRank>,
}

/// Where the best part of a turn stands among all parts of its bank, as the first hop scores them without a reranker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Standing")]
pub struct PartRank {
    /// The unit that holds the part.
    pub unit: UnitId,
    /// When it was said.
    pub said_at: EventTime,
    /// Its rank, from 1.
    pub rank: u64,
    /// Parts of the bank.
    pub parts: u64,
    /// Its score on the question's scale: 1 is the bank's best part, 0 its background.
    pub share: f64,
    /// The least share of what the first hop quoted; null where it quoted nothing by this score.
    pub last_quoted: Option<f64>,
}

/// Looks up where turns were lost, in the memory that was asked.
pub(crate) struct LossFinder<'p> {
    pipeline: &'p Pipeline,
    /// Opened for the first question that misses a turn.
    embedder: Option<Box<dyn Embedder>>,
}

impl<'p> LossFinder<'p> {
    /// For memories with these settings.
    pub(crate) fn new(pipeline: &'p Pipeline) -> Self {
        Self { pipeline, embedder: None }
    }

    /// Where each of the missed turns was lost, in their order. `held_by` gives the units that hold a turn, if they are
    /// known without the turns' parts.
    ///
    /// # Errors
    /// [`PipelineError`] when the model cannot be opened, or the memory fails.
    pub(crate) fn lost(
        &mut self,
        service: &PipelineDriver,
        question: &Question,
        answer: &Evidence,
        missed: &[&str],
        held_by: impl Fn(&str) -> Vec<UnitId>,
    ) -> Result<Vec<EvidenceLoss>, PipelineError> {
        if missed.is_empty() {
            return Ok(Vec::new());
        }
        let embedder = match &mut self.embedder {
            Some(embedder) => embedder,
            None => self.embedder.insert(embed::open(&self.pipeline.embed, &self.pipeline.model())?),
        };
        let mut embed = |texts: &[&str]| {
            let vectors: Result<Vec<_>, _> = texts.iter().map(|text| embedder.embed_query(text)).collect();
            vectors.map_err(Into::into)
        };
        let settings = &self.pipeline.recall;
        let looks = service.replica().every_part(question, &mut embed, std::slice::from_ref(settings))?;
        let familiar = looks.into_iter().next().unwrap_or_default();
        let places = PartRanks::of(&familiar, answer);
        let lost = |turn: &&str| {
            let standing = places.standing(turn);
            let mut units = held_by(turn);
            if let Some(PartRank { unit, .. }) = standing
                && !units.contains(&unit)
            {
                units.push(unit);
            }
            let by_shares = shared_part(&familiar, ParsedQuestion::of(question).form()) > 0.0;
            let (at, sentence) = loss_stage(answer, turn, &units, standing, by_shares, settings);
            EvidenceLoss { at, sentence, standing }
        };
        Ok(missed.iter().map(lost).collect())
    }
}

/// The parts of a bank by their turns.
struct PartRanks<'f> {
    familiar: &'f FamiliarityResult,
    /// The rank of the best part of each turn, from 0.
    best_of_turn: BTreeMap<&'f str, usize>,
    last_quoted: Option<f64>,
}

impl<'f> PartRanks<'f> {
    fn of(familiar: &'f FamiliarityResult, answer: &Evidence) -> Self {
        let quoting: BTreeMap<UnitId, &EvidenceUnit> =
            answer.units.iter().filter(|unit| unit.provenance.iter().any(is_familiar)).map(|u| (u.id, u)).collect();
        let mut best_of_turn = BTreeMap::new();
        let mut last_quoted = None;
        for (rank, part) in familiar.best.iter().enumerate() {
            let Some(body) = part.unit.part(part.part) else { continue };
            best_of_turn.entry(body.turn).or_insert(rank);
            let is_quoted = quoting
                .get(&part.unit.id)
                .is_some_and(|unit| unit.excerpts.iter().any(|e| e.turn == body.turn && e.range == body.range));
            if is_quoted {
                last_quoted = Some(familiar.share(part.score));
            }
        }
        Self { familiar, best_of_turn, last_quoted }
    }

    fn standing(&self, turn: &str) -> Option<PartRank> {
        let rank = *self.best_of_turn.get(turn)?;
        let FamiliarPart { unit, score, .. } = self.familiar.best.get(rank)?;
        Some(PartRank {
            unit: unit.id,
            said_at: unit.said_at,
            rank: rank as u64 + 1,
            parts: self.familiar.parts_total as u64,
            share: self.familiar.share(*score),
            last_quoted: self.last_quoted,
        })
    }
}

fn is_familiar(provenance: &Provenance) -> bool {
    matches!(provenance, Provenance::Familiar { .. })
}

/// The step at which the answer lost the turn, and what happened there.
fn loss_stage(
    answer: &Evidence,
    turn: &str,
    units: &[UnitId],
    standing: Option<PartRank>,
    shares_tokens: bool,
    settings: &RecallSettings,
) -> (LossStage, String) {
    if units.is_empty() {
        return (LossStage::Unit, "No unit of the memory holds this turn.".to_owned());
    }
    if answer.units.iter().flat_map(|unit| &unit.excerpts).any(|excerpt| excerpt.turn == turn) {
        return (LossStage::Context, "The context quotes a part of it, not all that counts.".to_owned());
    }
    let trace = &answer.trace;
    let is_held = |id: &UnitId| units.contains(id);
    let is_answered = |id: UnitId| answer.units.iter().any(|unit| unit.id == id);
    if let Some(seen) = trace.first_hop.iter().find(|seen| is_held(&seen.id) && !is_answered(seen.id)) {
        let sentence = format!(
            "The first hop found it ({}); it was left out of the finished answer.",
            provenance_text(&seen.provenance)
        );
        return (LossStage::Assembly, sentence);
    }
    let by_score = trace.first_hop.iter().any(|seen| is_familiar(&seen.provenance));
    let in_first_hop = match standing.filter(|_| by_score) {
        None => (LossStage::Candidate, "No index of the first hop has it among its best.".to_owned()),
        Some(PartRank { rank, parts, share, last_quoted, .. }) => {
            let stands = format!("Number {rank} of {parts} parts with share {share:.2}");
            match last_quoted {
                _ if shares_tokens => (
                    LossStage::Cutoff,
                    format!("{stands}; the tokens, which persons and assistants share, were spent before it."),
                ),
                Some(last) if share > last && trace.first_hop.len() >= settings.budget => {
                    (LossStage::Assembly, format!("{stands}; {} units were quoted already.", settings.budget))
                }
                Some(last) if share > last => (
                    LossStage::Candidate,
                    format!("{stands}, which is more than the {last:.2} of the last one quoted; it was no candidate."),
                ),
                Some(last) => (LossStage::Cutoff, format!("{stands}; the last one quoted has {last:.2}.")),
                None => (LossStage::Cutoff, format!("{stands}; nothing was quoted by its score.")),
            }
        }
    };
    let walked = trace.rounds.iter().filter(|round| round.plan.proceed).collect::<Vec<_>>();
    if walked.is_empty() || in_first_hop.0 == LossStage::Assembly {
        return in_first_hop;
    }
    let considered = walked.iter().flat_map(|round| &round.support).find(|seen| is_held(&seen.id));
    let walk = match considered {
        Some(seen) => format!("The walk considered it ({}) and did not keep it.", provenance_text(&seen.provenance)),
        None => {
            let reached: usize = walked.iter().map(|round| round.reached).sum();
            format!("The walk reached {reached} units, and this one is not among its best.")
        }
    };
    (LossStage::Walk, format!("{} {walk}", in_first_hop.1))
}
