//! The operator that owns the indexes of every bank on its worker.
//!
//! In: the collection of live units, choices restored from a snapshot, and probes. Out: the exact
//! changes of the choices, as a collection, and results of probes. It holds updates and probes until
//! the frontiers have passed their time, then applies the updates at t before it answers the probes
//! at t: output at t is a function of the set of units at t only.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use differential_dataflow::{AsCollection, Hashable, VecCollection, consolidation::consolidate};
use serde::{Deserialize, Serialize};
use timely::{
    container::CapacityContainerBuilder,
    dataflow::{
        Stream,
        channels::pact::Exchange,
        operators::{
            Capability,
            generic::{OutputBuilder, builder_rc::OperatorBuilder},
        },
    },
};

use super::{
    api::{FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, IndexProbe},
    cue::CueIndex,
    familiarity::Parts,
    kernel,
    lexical::LexicalIndex,
    live::{KnownChoices, LiveUnit, UnitKey},
    postings::Postings,
    score::{Choice, CueSet, GraphChoice, Structural},
    semantic::SemanticIndex,
    words::Words,
};
use crate::{
    config::MemorySettings,
    model::{BankKey, Channel, Score, UnitId},
};

/// The epoch: the time of the whole dataflow.
pub(super) type Epoch = u64;

/// Identifies a probe in flight.
pub(super) type ProbeId = u64;

/// A choice as it leaves the index: the unit that chose, its ordinal, the channel, the choice.
pub(super) type Chosen = (UnitKey, (u32, Channel, Choice));

/// One row of the answer to a probe.
#[derive(Debug, Clone)]
pub(super) enum ProbeResult {
    /// Of a first-hop probe.
    Hit(Hit),
    /// Of a familiarity probe.
    Familiar(FamiliarParts),
}

/// Results, each with the probe that it answers.
pub(super) type Hits<'scope> = Stream<'scope, Epoch, Vec<(ProbeId, ProbeResult)>>;

/// All choices of a bank that is restored as a whole, so that none must be searched.
pub(super) type Known = (BankKey, Arc<Vec<GraphChoice>>);

/// A probe that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PendingProbe<P> {
    /// Identifies it.
    pub id: ProbeId,
    /// The probe.
    pub probe: Arc<P>,
}

/// Updates and probes of one epoch, with the capabilities to send output at it.
#[derive(Default)]
struct Pending {
    choices: Option<Capability<Epoch>>,
    hits: Option<Capability<Epoch>>,
    updates: Vec<((UnitKey, Arc<LiveUnit>), isize)>,
    known: HashMap<BankKey, Arc<Vec<GraphChoice>>>,
    probes: Vec<PendingProbe<IndexProbe>>,
}

/// Builds the operator.
pub(super) fn bank_index<'scope>(
    units: VecCollection<'scope, Epoch, (UnitKey, Arc<LiveUnit>), isize>,
    known: Stream<'scope, Epoch, Vec<Known>>,
    probes: Stream<'scope, Epoch, Vec<PendingProbe<IndexProbe>>>,
    settings: &MemorySettings,
    semantic_threshold: Score,
) -> (VecCollection<'scope, Epoch, Chosen, isize>, Hits<'scope>) {
    let mut builder = OperatorBuilder::new("BankIndex".to_owned(), units.scope());
    let mut units_in =
        builder.new_input(units.inner, Exchange::new(|u: &((UnitKey, Arc<LiveUnit>), Epoch, isize)| u.0.0.hashed()));
    let mut known_in =
        builder.new_input(known, Exchange::new(|known: &Known| UnitKey { bank: known.0, id: UnitId(0) }.hashed()));
    let mut probes_in = builder.new_input(
        probes,
        Exchange::new(|asked: &PendingProbe<IndexProbe>| UnitKey { bank: asked.probe.bank(), id: UnitId(0) }.hashed()),
    );
    let (choices_out, choices) = builder.new_output::<Vec<(Chosen, Epoch, isize)>>();
    let (hits_out, hits) = builder.new_output::<Vec<(ProbeId, ProbeResult)>>();
    let mut choices_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(choices_out);
    let mut hits_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(hits_out);
    let mut banks = Banks::new(settings, semantic_threshold);
    // The initial capabilities are dropped here: held, they would stop the frontier.
    builder.build(move |_capabilities| {
        let mut pending: BTreeMap<Epoch, Pending> = BTreeMap::new();
        move |frontiers| {
            units_in.for_each(|capability, updates| {
                for (unit, epoch, change) in updates.drain(..) {
                    let entry = pending.entry(epoch).or_default();
                    entry.choices.get_or_insert_with(|| capability.delayed(&epoch, 0));
                    entry.updates.push((unit, change));
                }
            });
            known_in.for_each(|capability, known| {
                pending.entry(*capability.time()).or_default().known.extend(known.drain(..));
            });
            probes_in.for_each(|capability, probes| {
                let epoch = *capability.time();
                let entry = pending.entry(epoch).or_default();
                entry.hits.get_or_insert_with(|| capability.delayed(&epoch, 1));
                entry.probes.append(probes);
            });
            while let Some(entry) = pending.first_entry() {
                let epoch = *entry.key();
                if frontiers.iter().any(|frontier| frontier.less_equal(&epoch)) {
                    break;
                }
                let Pending { choices, hits, updates, known, probes } = entry.remove();
                if let Some(capability) = choices {
                    let mut output = choices_out.activate();
                    let mut session = output.session(&capability);
                    banks.apply(updates, &known, |chosen, change| session.give((chosen, epoch, change)));
                }
                if let Some(capability) = hits {
                    let mut output = hits_out.activate();
                    let mut session = output.session(&capability);
                    for asked in probes {
                        match &*asked.probe {
                            IndexProbe::FirstHop(probe) => {
                                banks.first_hop(probe, |hit| session.give((asked.id, ProbeResult::Hit(hit))));
                            }
                            IndexProbe::Familiarity(probe) => {
                                let familiar = banks.familiar(probe);
                                session.give((asked.id, ProbeResult::Familiar(familiar)));
                            }
                        }
                    }
                }
            }
        }
    });
    (choices.as_collection(), hits)
}

/// All banks of a worker.
struct Banks {
    settings: MemorySettings,
    semantic_threshold: Score,
    structural: Structural,
    words: Words,
    postings: Postings,
    banks: HashMap<BankKey, BankState>,
}

struct BankState {
    semantic: SemanticIndex,
    cue: CueIndex,
    lexical: LexicalIndex,
    parts: Parts,
}

impl Banks {
    fn new(settings: &MemorySettings, semantic_threshold: Score) -> Self {
        Self {
            settings: settings.clone(),
            semantic_threshold,
            structural: Structural::new(settings),
            words: Words::default(),
            postings: Postings::default(),
            banks: HashMap::new(),
        }
    }

    fn apply(
        &mut self,
        mut updates: Vec<((UnitKey, Arc<LiveUnit>), isize)>,
        known: &HashMap<BankKey, Arc<Vec<GraphChoice>>>,
        mut emit: impl FnMut(Chosen, isize),
    ) {
        consolidate(&mut updates);
        let mut changes = Vec::new();
        let mut commit = false;
        for of_bank in updates.chunk_by(|a, b| a.0.0.bank == b.0.0.bank) {
            let Some(bank) = of_bank.first().map(|u| u.0.0.bank) else { continue };
            let deleted: Vec<UnitId> = of_bank.iter().filter(|u| u.1 < 0).map(|u| u.0.0.id).collect();
            let inserted: Vec<Arc<LiveUnit>> = of_bank.iter().filter(|u| u.1 > 0).map(|u| u.0.1.clone()).collect();
            let state = self.banks.entry(bank).or_insert_with(|| BankState {
                semantic: SemanticIndex::new(
                    self.settings.semantic_pool,
                    self.settings.semantic_edges,
                    self.semantic_threshold,
                ),
                cue: CueIndex::new(self.settings.cue_neighbours, self.settings.structural_edges),
                lexical: LexicalIndex::default(),
                parts: Parts::default(),
            });
            of_bank.iter().filter(|u| u.1 < 0).for_each(|u| state.parts.delete(&u.0.1));
            for id in &deleted {
                state.lexical.delete(*id);
                self.postings.delete(bank, *id);
            }
            for unit in &inserted {
                let bag = Arc::new(self.words.count(&unit.body.restatement));
                let ticket = self.postings.insert(bank, unit.id, &bag);
                state.lexical.insert(unit.id, bag, ticket);
                state.parts.insert(unit, &mut self.words);
            }
            let restored = known
                .get(&bank)
                .filter(|_| state.semantic.is_empty() && deleted.is_empty())
                .and_then(|known| by_chooser(known, &inserted));
            match &restored {
                Some([semantic, _]) => state.semantic.restore(&inserted, semantic, &mut changes),
                None => state.semantic.apply(&deleted, &inserted, &mut changes),
            }
            for (id, ordinal, choice, change) in changes.drain(..) {
                emit((UnitKey { bank, id }, (ordinal, Channel::Semantic, choice)), change);
            }
            match &restored {
                Some([_, structural]) => state.cue.restore(&inserted, structural, &mut changes),
                None => state.cue.apply(&self.structural, &deleted, &inserted, &mut changes),
            }
            for (id, ordinal, choice, change) in changes.drain(..) {
                emit((UnitKey { bank, id }, (ordinal, Channel::Structural, choice)), change);
            }
            commit |= state.lexical.wants_commit(self.settings.lexical_tail, &self.postings);
            if state.semantic.is_empty() {
                self.banks.remove(&bank);
            }
        }
        if commit {
            self.postings.commit();
        }
    }

    fn familiar(&mut self, probe: &FamiliarityProbe) -> FamiliarParts {
        let Some(state) = self.banks.get(&probe.bank) else { return FamiliarParts::default() };
        state.parts.familiar(probe, &mut self.words)
    }

    fn first_hop(&mut self, probe: &FirstHopProbe, mut emit: impl FnMut(Hit)) {
        let Some(state) = self.banks.get_mut(&probe.bank) else { return };
        let alignments = state.semantic.alignments(&probe.vector);
        let mut give = |channel, ranked: Vec<(Score, usize)>| {
            for (rank, (score, at)) in ranked.into_iter().enumerate() {
                let (unit, alignment) = alignments[at];
                emit(Hit { unit: unit.body.clone(), channel, rank: rank as u32 + 1, score, alignment });
            }
        };
        let nearest = alignments.iter().enumerate().map(|(at, (unit, score))| ((*score, Score::ZERO), unit.id, at));
        give(Channel::Semantic, best(nearest, probe.semantic));
        let words = self.words.count(&probe.words);
        let worded = state.lexical.search(probe.bank, &words, probe.lexical, &self.postings);
        give(
            Channel::Lexical,
            worded.into_iter().filter_map(|(s, id)| Some((s, state.semantic.slot_of_unit(id)?))).collect(),
        );
        let cues = CueSet::from(&probe.cues);
        let cued = alignments.iter().enumerate().filter_map(|(at, (unit, alignment))| {
            let score = self.structural.score(&cues, &unit.cues).filter(|s| *s > Score::ZERO)?;
            Some(((score, *alignment), unit.id, at))
        });
        give(Channel::Structural, best(cued, probe.cue));
    }
}

/// The choices of each unit, semantic and structural; none when a choice names a missing unit.
fn by_chooser(known: &[GraphChoice], units: &[Arc<LiveUnit>]) -> Option<[KnownChoices; 2]> {
    let mut semantic: KnownChoices = units.iter().map(|unit| (unit.id, Vec::new())).collect();
    let mut structural = semantic.clone();
    for GraphChoice { channel, from, to, weight } in known {
        let of = match channel {
            Channel::Semantic => &mut semantic,
            Channel::Structural | Channel::Lexical => &mut structural,
        };
        if !of.contains_key(to) {
            return None;
        }
        of.get_mut(from)?.push((*to, *weight));
    }
    Some([semantic, structural])
}

/// The `limit` best by score, then by the second score, then by the least id; with their indexes.
fn best(scored: impl Iterator<Item = ((Score, Score), UnitId, usize)>, limit: usize) -> Vec<(Score, usize)> {
    if limit == 0 {
        return Vec::new();
    }
    let mut ranked: Vec<_> = scored.map(|(score, id, at)| (std::cmp::Reverse(score), id, at)).collect();
    if ranked.len() > limit {
        ranked.select_nth_unstable(limit - 1);
        ranked.truncate(limit);
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(std::cmp::Reverse((score, _)), _, at)| (score, at)).collect()
}

/// The best cosine of the query with the unit's vector or one of its parts'.
#[must_use]
pub fn best_part(query: &[i16], unit: &LiveUnit) -> Score {
    let mut best = i32::MIN;
    kernel::scan(&[query], &unit.vectors, i32::MIN, &mut |_, _, score| best = best.max(score));
    if best == i32::MIN { Score::ZERO } else { Score(best) }
}
