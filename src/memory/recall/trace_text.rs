//! A trace as a text that explains the evidence.
//!
//! In: evidence with its trace. Out: plain text: the first hop, each round's plan with its anchors
//! and target, the units that each round considered with the edges to them, and the evidence in its
//! final order. Units are named m1, m2, … in the order in which they appear; each is quoted in full
//! where it first appears. The same evidence always gives the same text.

use std::{collections::BTreeMap, fmt::Write};

use super::asked_time::period_text;
use crate::language::times::render_interval;
use types::model::{
    ConsideredUnit, Cues, EdgeStep, Evidence, FamiliarityTerms, Provenance, RecallRound, RerankResult, UnitId,
};

/// Renders evidence with its trace.
#[must_use]
pub fn render_trace(evidence: &Evidence) -> String {
    let mut page = TraceText { out: String::new(), names: BTreeMap::new() };
    page.question(evidence);
    page.first_hop(&evidence.trace.first_hop, evidence.trace.rerank.as_ref());
    for (number, round) in (1..).zip(&evidence.trace.rounds) {
        page.round(number, round);
    }
    page.order(evidence);
    page.out
}

struct TraceText {
    out: String,
    names: BTreeMap<UnitId, usize>,
}

impl TraceText {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn name(&self, id: UnitId) -> String {
        self.names.get(&id).map_or_else(|| format!("({id})"), |n| format!("m{n}"))
    }

    /// The unit's name; the first time, with its words.
    fn introduce(&mut self, id: UnitId, restatement: &str) -> String {
        if self.names.contains_key(&id) {
            return self.name(id);
        }
        self.names.insert(id, self.names.len() + 1);
        let words = restatement.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}  {words}", self.name(id))
    }

    fn question(&mut self, evidence: &Evidence) {
        let cues = &evidence.trace.cues;
        self.line(0, &format!("question   {}", evidence.question.text.trim()));
        self.line(0, &format!("bank       {}", evidence.question.bank));
        self.line(0, &format!("keywords   {}", list_text(&cues.keywords)));
        self.line(0, &format!("cues       {}", cue_text(&cues.cues)));
        if let Some(note) = &cues.note {
            self.line(0, &format!("cues by    {note}"));
        }
        if let Some(form) = &evidence.trace.form {
            let sure = if form.certain { "" } else { ", as no other form was recognised" };
            let shared = (100.0 * form.shared).round();
            self.line(0, &format!("form       {}{sure}; {shared} % of the tokens shared by it", form.form.in_words()));
        }
        if let Some(period) = &evidence.trace.period {
            self.line(0, &format!("time       {}", period_text(period)));
        }
        if let Some(asker) = &evidence.trace.asker {
            self.line(0, &format!("asker      {}", asker));
        }
        self.line(0, &format!("vector     {}", evidence.trace.vector_hash));
    }

    fn first_hop(&mut self, seen: &[ConsideredUnit], reranked: Option<&RerankResult>) {
        self.line(0, "\nfirst hop");
        if let Some(RerankResult { model, weight, logits, problem, .. }) = reranked {
            let said = match problem {
                Some(problem) => format!("without it: {problem}"),
                None => format!("{} parts read, weight {weight}", logits.len()),
            };
            self.line(2, &format!("reranker {model}: {said}"));
        }
        let is_reranked = reranked.is_some_and(|reranked| !reranked.logits.is_empty());
        if seen.is_empty() {
            self.line(2, "nothing");
        }
        let mut last = None;
        for s in seen {
            if let Provenance::Familiar { rank, score, terms, .. } = s.provenance {
                if rank == 1 {
                    let further = if is_reranked { " + rerank" } else { "" };
                    self.line(
                        2,
                        &format!(
                            "familiar: score = meaning + pair + words + speaker + time + marks + around + \
                             session{further}"
                        ),
                    );
                }
                let unit = self.introduce(s.id, &s.restatement);
                let FamiliarityTerms { meaning, pair, words, speaker, month, marks, around, session, rerank } = terms;
                let mut sum = vec![meaning, pair, words, speaker, month, marks, around, session];
                sum.extend(is_reranked.then_some(rerank));
                let sum: Vec<String> = sum.iter().map(|term| format!("{term:.2}")).collect();
                self.line(4, &format!("{rank:>3}  {score:.2} = {}  {unit}{}", sum.join(" + "), dropped_mark(s)));
                continue;
            }
            let Provenance::FirstHop { channel, rank, score } = s.provenance else { continue };
            if last != Some(channel) {
                self.line(2, channel.first_hop_name());
                last = Some(channel);
            }
            let unit = self.introduce(s.id, &s.restatement);
            self.line(4, &format!("{rank:>2}  {score:.2}  {unit}{}", dropped_mark(s)));
        }
    }

    fn round(&mut self, number: u32, round: &RecallRound) {
        let plan = &round.plan;
        self.line(0, &format!("\nround {number}"));
        let verdict = if plan.proceed { "goes on" } else { "stops" };
        self.line(2, &format!("{verdict}: {} (sufficiency {:.2})", plan.reason, plan.sufficiency));
        if let Some(note) = &plan.note {
            self.line(2, &format!("planned by {note}"));
        }
        if !plan.proceed {
            return;
        }
        let anchors: Vec<String> = plan.anchors.iter().map(|&a| self.name(a)).collect();
        self.line(2, &format!("anchors: {}", list_text(&anchors)));
        if let Some(target) = &plan.target {
            self.line(2, &format!("target: {}", target.goal));
            self.line(4, &target.sentence);
            self.line(4, &cue_text(&target.cues));
        }
        self.line(2, &format!("reached: {} not in the evidence yet", round.reached));
        let mut last = None;
        for s in &round.support {
            let Provenance::Expansion { channel, rank, score, familiarity, target_match, path, path_weight, .. } =
                &s.provenance
            else {
                continue;
            };
            if last != Some(*channel) {
                self.line(2, &format!("over {} edges", channel.name()));
                last = Some(*channel);
            }
            let unit = self.introduce(s.id, &s.restatement);
            self.line(
                4,
                &format!(
                    "{rank:>2}  familiar {familiarity:.2} × path {path_weight:.2} = {score:.2}, target {target_match:.2}  {unit}{}",
                    dropped_mark(s)
                ),
            );
            let walked = self.path(path);
            self.line(8, &walked);
        }
        if round.support.is_empty() {
            self.line(2, "support: none");
        }
    }

    fn path(&self, path: &[EdgeStep]) -> String {
        let mut text = path.first().map_or_else(|| "no edge".to_owned(), |s| self.name(s.from));
        for step in path {
            let _ = write!(text, " —{} {:.2}→ {}", step.channel.name(), step.weight, self.name(step.to));
        }
        text
    }

    fn order(&mut self, evidence: &Evidence) {
        self.line(0, &format!("\nevidence   {} units", evidence.units.len()));
        for (place, unit) in (1..).zip(&evidence.units) {
            let name = self.introduce(unit.id, &unit.restatement);
            let anchor = if unit.anchor { "  anchor" } else { "" };
            let ways: Vec<String> = unit.provenance.iter().map(provenance_text).collect();
            self.line(4, &format!("{place:>2}  ρ {:.3}  {name}  {}{anchor}", unit.rho, list_text(&ways)));
        }
        let verdict = if evidence.supported { "supported" } else { "not supported by memory" };
        self.line(0, &format!("stopped    {}", evidence.stop_reason));
        if let Some(took) = &evidence.trace.llm {
            self.line(0, &format!("model      {} calls, {} tokens", took.calls, took.tokens()));
        }
        self.line(0, &format!("verdict    {verdict} (sufficiency {:.2})", evidence.sufficiency));
    }
}

/// How a unit was reached, in a few words.
#[must_use]
pub fn provenance_text(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Familiar { rank, .. } => format!("familiar {rank}"),
        Provenance::FirstHop { channel, rank, .. } => format!("{} {rank}", channel.first_hop_name()),
        Provenance::Expansion { channel, rank, hops, .. } => {
            format!("{channel} expansion {rank} ({hops} hop{})", if *hops == 1 { "" } else { "s" })
        }
    }
}

/// The mark of a unit that did not enter the evidence this way; another way may still have let it in.
fn dropped_mark(seen: &ConsideredUnit) -> &'static str {
    if seen.kept { "" } else { "  [not let in this way]" }
}

fn list_text(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// The persons, places and time of some cues, in words.
#[must_use]
pub fn cue_text(cues: &Cues) -> String {
    let time = cues.time.map_or_else(|| "none".to_owned(), |t| render_interval(&t));
    format!("persons: {}; places: {}; time: {time}", list_text(&cues.participants), list_text(&cues.locations))
}
