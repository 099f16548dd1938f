//! The plain reference: all answers from the final set, by brute force.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use memory::index::{
    CensusProbe, CueSet, EdgeChoice, FirstHopHit, FirstHopProbe, GraphCensus, GraphEdge, LiveUnit, MatchingParts,
    Neighbour, NeighbourhoodProbe, PathStep, RecordUnits, StructuralScorer, TermAnalyzer, UnitKey, VectorRows,
    dot_reference,
};
use tantivy::fieldnorm::FieldNormReader;
use types::{
    config::Pipeline,
    model::{Bank, BankKey, Channel, MemoryKey, MemoryRecord, Score, Statement, UnitId, WindowState},
};

use super::history::DIMENSIONS;

pub(super) struct Reference {
    pipeline: Pipeline,
    units: BTreeMap<UnitKey, Arc<LiveUnit>>,
    statements: Vec<(BankKey, Statement)>,
    edges: BTreeSet<GraphEdge>,
    structural: StructuralScorer,
}

type Expected = Vec<(Score, Score, UnitId)>;

/// The best cosine of a question with the stored vectors of parts; `None` if there is none.
pub(super) fn cosine(query: &[i16], rows: VectorRows<'_>) -> Option<Score> {
    let Some(bytes) = rows.in_bytes() else {
        return rows.in_16_bits().map(|row| Score(dot_reference(query, &row))).max();
    };
    let of_row = |row: &[i8]| {
        let product: i64 = query.iter().zip(row).map(|(x, y)| i64::from(*x) * i64::from(*y)).sum();
        let square: i64 = row.iter().map(|y| i64::from(*y) * i64::from(*y)).sum();
        Score((product as f64 * 32_767.0 / (square.max(1) as f64).sqrt()) as i32)
    };
    bytes.map(of_row).max()
}

impl Reference {
    pub(super) fn window_words(&self) -> u32 {
        self.pipeline.memory.window_words
    }

    pub(super) fn new(live: &BTreeMap<MemoryKey, MemoryRecord>, pipeline: &Pipeline, threshold: Score) -> Self {
        let closed: BTreeSet<_> = live
            .iter()
            .filter(|(_, r)| r.state == WindowState::Final)
            .map(|(k, _)| (k.bank.clone(), k.window.clone()))
            .collect();
        let (mut units, mut statements) = (BTreeMap::new(), Vec::new());
        for (key, record) in live {
            let hidden = record.state == WindowState::Open && closed.contains(&(key.bank.clone(), key.window.clone()));
            if !hidden {
                let stated = record.statements.iter().flat_map(|of| &of.found);
                statements.extend(stated.map(|of| (key.bank.key(), of.clone())));
                for unit in RecordUnits::new(record, DIMENSIONS).unwrap().units {
                    units.insert(UnitKey { bank: key.bank.key(), id: unit.id }, unit);
                }
            }
        }
        let structural = StructuralScorer::new(&pipeline.memory);
        let mut this = Self { pipeline: pipeline.clone(), units, statements, edges: BTreeSet::new(), structural };
        let mut edges = BTreeSet::new();
        for (key, unit) in &this.units {
            let semantic = this.bank(key.bank).filter(|o| o.id != key.id).filter_map(|o| {
                let score = Score(dot_reference(&unit.vector(), &o.vector()));
                (score >= threshold)
                    .then(|| (Channel::Semantic, EdgeChoice::new(score, &unit.position, &o.position, o.id)))
            });
            let near = this.near(key.bank, unit);
            let structural = near.iter().filter_map(|o| {
                let score = this.structural.score(&unit.cues, &o.cues)?;
                (score >= this.structural.threshold())
                    .then(|| (Channel::Structural, EdgeChoice::new(score, &unit.position, &o.position, o.id)))
            });
            let memory = &pipeline.memory;
            for (choices, most) in [
                (semantic.collect::<BTreeSet<_>>(), memory.semantic_edges),
                (structural.collect(), memory.structural_edges),
            ] {
                for (channel, choice) in choices.into_iter().take(most) {
                    let (a, b) = (key.id.min(choice.id), key.id.max(choice.id));
                    edges.insert(GraphEdge { bank: key.bank, channel, a, b, weight: choice.weight() });
                }
            }
        }
        this.edges = edges;
        this
    }

    /// The visible statements of a bank.
    pub(super) fn statements(&self, bank: &Bank) -> Vec<Statement> {
        self.statements.iter().filter(|(of, _)| *of == bank.key()).map(|(_, of)| of.clone()).collect()
    }

    pub(super) fn census(&self) -> GraphCensus {
        let (mut census, probe) = (GraphCensus::default(), CensusProbe { bank: None, hashing: true, listing: true });
        self.units.iter().for_each(|(key, unit)| census.count_unit(key, unit, &probe));
        self.edges.iter().for_each(|edge| census.count_edge(*edge, &probe));
        census
    }

    pub(super) fn bank(&self, bank: BankKey) -> impl Iterator<Item = &Arc<LiveUnit>> {
        self.units.iter().filter(move |(k, _)| k.bank == bank).map(|(_, u)| u)
    }

    /// Decision 12: the nearest before and after in the order of every cue value, and in that of time.
    fn near(&self, bank: BankKey, unit: &LiveUnit) -> Vec<Arc<LiveUnit>> {
        let order = |u: &LiveUnit| (u.position.start_ms, u.position.ordinal, u.id);
        let mut found = BTreeMap::new();
        let mut window = |share: &dyn Fn(&CueSet) -> bool| {
            let mut sorted: Vec<&Arc<LiveUnit>> = self.bank(bank).filter(|u| share(&u.cues)).collect();
            sorted.sort_by_key(|u| order(u));
            let at = sorted.iter().position(|u| u.id == unit.id).unwrap();
            let n = self.pipeline.memory.cue_neighbours;
            for other in &sorted[at.saturating_sub(n)..(at + n + 1).min(sorted.len())] {
                if other.id != unit.id {
                    found.insert(other.id, (*other).clone());
                }
            }
        };
        for p in &unit.cues.participants {
            window(&|c: &CueSet| c.participants.contains(p));
        }
        for l in &unit.cues.locations {
            window(&|c: &CueSet| c.locations.contains(l));
        }
        window(&|_| true);
        found.into_values().collect()
    }

    fn alignment(&self, query: &[i16], unit: &LiveUnit) -> Score {
        unit.vectors().into_iter().filter_map(|rows| cosine(query, rows)).max().unwrap()
    }

    pub(super) fn first_hop(&self, probe: &FirstHopProbe) -> Vec<(Channel, Expected)> {
        let cues = CueSet::from(&probe.cues);
        let mut semantic = Vec::new();
        let mut cued = Vec::new();
        for unit in self.bank(probe.bank) {
            let alignment = self.alignment(&probe.vector, unit);
            semantic.push((alignment, alignment, unit.id));
            if let Some(score) = self.structural.score(&cues, &unit.cues).filter(|s| *s > Score::ZERO) {
                cued.push((score, alignment, unit.id));
            }
        }
        let best = |mut list: Expected, most: usize| {
            list.sort_by(|x, y| (y.0, y.1).cmp(&(x.0, x.1)).then(x.2.cmp(&y.2)));
            list.truncate(most);
            list
        };
        vec![
            (Channel::Semantic, best(semantic, probe.semantic)),
            (Channel::Lexical, Vec::new()),
            (Channel::Structural, best(cued, probe.cue)),
        ]
    }

    /// BM25 in floating point: fixed-point scores must be close to it, and no better unit missing.
    /// The formula is written out here on purpose: it must not share a mistake with `memory/index/lexical/bm25.rs`.
    pub(super) fn check_lexical(&self, probe: &FirstHopProbe, got: &[&FirstHopHit]) {
        let mut words = TermAnalyzer::default();
        let bags: BTreeMap<UnitId, HashMap<u64, u16>> =
            self.bank(probe.bank).map(|u| (u.id, words.count(u.body.restatement()).terms().collect())).collect();
        let length = |bag: &HashMap<u64, u16>| bag.values().map(|c| u32::from(*c)).sum::<u32>();
        let mean = bags.values().map(|b| f64::from(length(b))).sum::<f64>() / bags.len() as f64;
        let mut scores: BTreeMap<UnitId, f64> = BTreeMap::new();
        for (term, _) in words.count(&probe.words).terms() {
            let with = bags.values().filter(|b| b.contains_key(&term)).count() as f64;
            let rarity = (1.0 + (bags.len() as f64 - with + 0.5) / (with + 0.5)).ln();
            for (id, bag) in &bags {
                if let Some(count) = bag.get(&term) {
                    let norm = FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(length(bag)));
                    let tf = f64::from(*count);
                    *scores.entry(*id).or_default() +=
                        rarity * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * f64::from(norm) / mean));
                }
            }
        }
        assert_eq!(got.len(), scores.len().min(probe.lexical));
        let mut best: Vec<f64> = scores.values().copied().collect();
        best.sort_by(|a, b| b.total_cmp(a));
        for (rank, hit) in got.iter().enumerate() {
            let score = hit.score.as_f64() * 16.0;
            assert!((score - best[rank]).abs() < 1e-4, "rank {rank}: {score} {}", best[rank]);
            assert!((score - scores[&hit.unit.id]).abs() < 1e-4);
        }
    }

    /// The edges of a unit that a walk takes. What a selector does not take uses up no place.
    fn steps(&self, bank: BankKey, from: UnitId, matching: Option<&MatchingParts>) -> Vec<PathStep> {
        let unit = &self.units[&UnitKey { bank, id: from }];
        let mut edges: Vec<(Channel, EdgeChoice)> = Vec::new();
        for edge in self.edges.iter().filter(|e| e.bank == bank && (e.a == from || e.b == from)) {
            let to = if edge.a == from { edge.b } else { edge.a };
            if matching.is_some_and(|matching| !matching.takes_any(to)) {
                continue;
            }
            let other = &self.units[&UnitKey { bank, id: to }];
            edges.push((edge.channel, EdgeChoice::new(edge.weight, &unit.position, &other.position, to)));
        }
        edges.sort();
        let mut walked = Vec::new();
        for channel in Channel::EDGES {
            let of_channel = edges.iter().filter(|(c, _)| *c == channel).take(self.pipeline.memory.fan_out);
            walked.extend(of_channel.map(|(channel, choice)| PathStep {
                from,
                to: choice.id,
                channel: *channel,
                weight: choice.weight(),
            }));
        }
        walked
    }

    pub(super) fn neighbourhood(&self, probe: &NeighbourhoodProbe) -> Vec<Neighbour> {
        let product = |a: Score, b: Score| Score((i64::from(a.0) * i64::from(b.0) / i64::from(Score::ONE.0)) as i32);
        let matching = probe.matching.as_deref();
        // By (channel, unit): (hops, −weight, path); the least is the best.
        let mut best: BTreeMap<(Channel, UnitId), (usize, i32, Vec<PathStep>)> = BTreeMap::new();
        for hop in 1..=2 {
            let mut next = Vec::new();
            if hop == 1 {
                for anchor in &probe.anchors {
                    for step in self.steps(probe.bank, *anchor, matching) {
                        next.push((step.weight, vec![step]));
                    }
                }
            } else {
                for (weight, path) in best.values().map(|(_, w, p)| (Score(-w), p.clone())).collect::<Vec<_>>() {
                    let last = path[path.len() - 1];
                    for step in self.steps(probe.bank, last.to, matching) {
                        if probe.mixed || step.channel == last.channel {
                            let mut path = path.clone();
                            path.push(step);
                            next.push((product(weight, step.weight), path));
                        }
                    }
                }
            }
            for (weight, path) in next {
                let last = path[path.len() - 1];
                if probe.anchors.contains(&last.to) {
                    continue;
                }
                let candidate = (hop, -weight.0, path);
                let entry = best.entry((last.channel, last.to)).or_insert_with(|| candidate.clone());
                if candidate < *entry {
                    *entry = candidate;
                }
            }
        }
        best.into_iter()
            .map(|((channel, id), (_, weight, path))| {
                let unit = &self.units[&UnitKey { bank: probe.bank, id }];
                Neighbour {
                    unit: unit.body.clone(),
                    channel,
                    path,
                    path_weight: Score(-weight),
                    semantic_match: self.alignment(&probe.target, unit),
                    structural_match: self.structural.score(&CueSet::from(&probe.target_cues), &unit.cues),
                    alignment: self.alignment(&probe.question, unit),
                }
            })
            .collect()
    }
}
