//! Whole recollections on a memory with scripted answers; and the helpers that this room's tests share.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

use super::*;
use crate::{
    index::{
        DataflowAnswer, FamiliarPart, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, LiveStatement,
        MatchProbe, MatchingParts, Neighbour, NeighbourhoodProbe, PartFields, PathStep, ProfileLine, ProfileProbe,
        QuestionTopic, TurnProbe, UnitBody, UnitFields,
    },
    language::question::ParsedQuestion,
};
use types::{
    config::{ModelSettings, Pipeline, RecallSettings},
    model::{
        Bank, Channel, ConsideredUnit, Cues, EventTime, Evidence, ExplanationQuery, ExplanationStep,
        ExplanationStepName, FamiliarityTerms, Interval, Language, LogPosition, ModelRef, Plan, Provenance, Question,
        QuestionCues, Score, SpeakerKind, Statement, StatementKind, SubjectId, Target, TextFeatures, UnitId, Vector,
    },
};

pub(super) fn settings() -> RecallSettings {
    Pipeline::parse("version = 1\nprofile = \"paper\"\nrecall.sufficient = 0.75").unwrap().recall
}

pub(super) fn model() -> ModelSettings {
    ModelSettings { question_floor: 0.3, question_ceiling: 0.75, ..Pipeline::parse("version = 1").unwrap().model() }
}

pub(super) fn body(id: u64, said: &str, at: &str) -> Arc<UnitBody> {
    Arc::new(UnitBody::from(UnitFields {
        id: UnitId(id),
        restatement: said.to_owned(),
        cues: Cues::default(),
        said_at: EventTime::parse(at).unwrap(),
        session: "auto:0".to_owned(),
        ordinal: 0,
        sources: vec![format!("t{id}")],
        parts: Vec::new(),
    }))
}

/// A copy of the unit with changed fields.
pub(super) fn changed(unit: &UnitBody, change: impl FnOnce(&mut UnitFields)) -> Arc<UnitBody> {
    let mut fields = UnitFields::from(unit.clone());
    change(&mut fields);
    Arc::new(UnitBody::from(fields))
}

/// What Ann stated in a turn, on a day of May.
pub(super) fn statement(kind: StatementKind, turn: &str, day: u32, text: &str) -> Statement {
    Statement {
        turn: turn.to_owned(),
        ordinal: day,
        speaker: "Ann".to_owned(),
        said_at: EventTime::parse(&format!("2024-05-{day:02}T09:00:00Z")).unwrap(),
        kind,
        subject: None,
        relation: "says".to_owned(),
        object: text.to_owned(),
        text: text.to_owned(),
        time: None,
        single: false,
        negated: false,
        replaces: None,
        language: Language::En,
    }
}

/// The line of a statement, and what superseded it.
pub(super) fn profile_line(of: &Arc<LiveStatement>, by: Option<&Arc<LiveStatement>>) -> Arc<ProfileLine> {
    let mut line = ProfileLine::of(of);
    line.superseded_by = by.cloned();
    Arc::new(line)
}

/// A unit of one turn that was said in a session.
pub(super) fn said(id: u64, session: &str, at: &str, speaker: &str, text: &str) -> Arc<UnitBody> {
    let kind = if speaker == "Assistant" { SpeakerKind::Assistant } else { SpeakerKind::Person };
    changed(&body(id, &format!("{speaker} spoke."), at), |unit| {
        unit.session = session.to_owned();
        unit.ordinal = id as u32;
        unit.parts = vec![PartFields {
            turn: format!("t{id}"),
            ordinal: id as u32,
            speaker: speaker.to_owned(),
            kind: Some(kind),
            said_at: unit.said_at,
            text: text.to_owned(),
            range: None,
            marks: TextFeatures::default(),
        }];
    })
}

/// The first part of a unit, with its score.
pub(super) fn familiar_part(unit: &Arc<UnitBody>, score: Score) -> FamiliarPart {
    FamiliarPart {
        unit: unit.clone(),
        part: 0,
        speaker: [0, 0],
        asks: false,
        restated: unit.is_restated(),
        score: score.as_f64(),
        cosine: score,
        topics: 1,
        terms: FamiliarityTerms::default(),
    }
}

pub(super) fn candidate(id: u64, said: &str, at: &str) -> EvidenceCandidate {
    EvidenceCandidate {
        unit: body(id, said, at),
        alignment: Score::ZERO,
        provenance: Vec::new(),
        anchor: false,
        familiarity: 0.0,
        excerpt: None,
    }
}

/// A memory that returns scripted answers and records the probes.
#[derive(Default)]
struct ScriptedMemory {
    hits: Vec<FirstHopHit>,
    neighbours: Vec<Neighbour>,
    fails: bool,
    first: RefCell<Vec<FirstHopProbe>>,
    walks: RefCell<Vec<NeighbourhoodProbe>>,
}

fn answered<T>(value: T) -> DataflowAnswer<T> {
    DataflowAnswer {
        value,
        epoch: 1,
        reflects: vec![LogPosition { topic: "memory".into(), partition: 0, next_offset: 8 }],
    }
}

impl RecallMemory for ScriptedMemory {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError> {
        self.first.borrow_mut().push(probe);
        if self.fails { Err("the dataflow has stopped".into()) } else { Ok(answered(self.hits.clone())) }
    }

    fn familiar(&self, _: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError> {
        if self.fails {
            return Err("the dataflow has stopped".into());
        }
        let hits = self.hits.iter().map(|h| (&h.unit, h.alignment));
        let known = hits.chain(self.neighbours.iter().map(|n| (&n.unit, n.semantic_match)));
        let mut best: Vec<FamiliarPart> = known.map(|(unit, cosine)| familiar_part(unit, cosine)).collect();
        best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.unit.id.cmp(&b.unit.id)));
        Ok(answered(FamiliarityResult {
            parts_total: best.len(),
            scored: best.len(),
            best,
            zero: 0.30,
            topics: vec![QuestionTopic { word: "word".to_owned(), parts: 1, rarity: 1.0, is_name: false }],
            ..FamiliarityResult::default()
        }))
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError> {
        let found = self.neighbours.iter().filter(|n| !probe.anchors.contains(&n.unit.id)).cloned().collect();
        self.walks.borrow_mut().push(probe);
        Ok(answered(found))
    }

    fn matching(&self, _: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError> {
        Err("nothing is selected".into())
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError> {
        let units = self.hits.iter().map(|hit| &hit.unit).chain(self.neighbours.iter().map(|near| &near.unit));
        Ok(answered(units.filter(|unit| unit.is_of_turn(0, &probe.turn)).cloned().collect()))
    }

    fn profile(&self, _: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError> {
        Ok(answered(Vec::new()))
    }
}

fn ask_with(
    memory: &ScriptedMemory,
    text: &str,
    planner: &dyn Planner,
    settings: &RecallSettings,
) -> Result<Evidence, RecallError> {
    let question = Question::new(Bank::parse("readers").unwrap(), text);
    let model_ref = ModelRef { name: "by hand".to_owned(), hash: "0".to_owned() };
    let vector = |text: &&str| Vector::from([text.len() as f32 / 1_000.0, 0.5]);
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(vector).collect());
    let models = RecallModels { embed: &mut embed, model: &model_ref, rerank: None };
    recollect(memory, models, &question, planner, settings)
}

fn ask(memory: &ScriptedMemory, text: &str) -> Evidence {
    ask_with(memory, text, &RulesPlanner::new(&model()), &settings()).unwrap()
}

fn hit(unit: &Arc<UnitBody>, channel: Channel, rank: u32, score: f64, alignment: f64) -> FirstHopHit {
    let (score, alignment) = (Score::from_f64(score), Score::from_f64(alignment));
    FirstHopHit { unit: unit.clone(), channel, rank, score, alignment }
}

// ---------------------------------------------------------------- a recollection

const QUESTION: &str = "Which books has Mira recommended to Tom?";

/// A unit with persons as its participants (decision 9). Its time is the time of saying.
fn unit(id: u64, said: &str, at: &str, session: &str, persons: &[&str]) -> Arc<UnitBody> {
    changed(&body(id, said, at), |unit| {
        unit.session = session.to_owned();
        unit.cues.participants = persons.iter().map(|&p| p.to_owned()).collect();
        unit.cues.time = Some(Interval::at(unit.said_at));
    })
}

/// Four recommended titles: one is in the first hop, three are only linked to a question about books.
fn library() -> ScriptedMemory {
    let orchard = unit(
        0x11,
        "Mira recommended the book The Glass Orchard to Tom and praised its first chapter.",
        "2024-04-12T18:20:00Z",
        "caller:april",
        &["mira", "tom"],
    );
    let asked = unit(
        0x22,
        "Tom asked Mira which book series she loves most and would recommend.",
        "2024-06-03T20:05:00Z",
        "caller:june",
        &["mira", "tom"],
    );
    let series = unit(
        0x33,
        "Mira named Salt Road and The Ninth Lantern as her favourites, and Harbour of Crows for those who like the sea.",
        "2024-06-03T20:06:00Z",
        "caller:june",
        &["mira"],
    );
    let crows = unit(
        0x44,
        "Mira called Harbour of Crows the widest story that she knows.",
        "2024-06-03T20:08:00Z",
        "caller:june",
        &["mira"],
    );
    let thanks = unit(
        0x55,
        "Tom thanked Mira for the recommendations and asked why they are her favourites.",
        "2024-06-03T20:10:00Z",
        "caller:june",
        &["mira", "tom"],
    );
    let soup = unit(0x66, "Tom cooked lentil soup for Mira.", "2024-05-01T19:00:00Z", "caller:may", &["mira", "tom"]);
    let tram = unit(0x77, "Mira missed the last tram.", "2024-05-20T23:40:00Z", "caller:may2", &["mira"]);

    let step = |from: &Arc<UnitBody>, to: &Arc<UnitBody>, channel, weight| PathStep {
        from: from.id,
        to: to.id,
        channel,
        weight: Score::from_f64(weight),
    };
    let near = |to: &Arc<UnitBody>, path: Vec<PathStep>, semantic, structural: f64, alignment| Neighbour {
        unit: to.clone(),
        channel: path[0].channel,
        path_weight: Score::from_f64(path.iter().map(|s| s.weight.as_f64()).product()),
        path,
        semantic_match: Score::from_f64(semantic),
        structural_match: Some(Score::from_f64(structural)),
        alignment: Score::from_f64(alignment),
    };
    use Channel::{Lexical, Semantic, Structural};
    ScriptedMemory {
        hits: vec![
            hit(&orchard, Semantic, 1, 0.62, 0.62),
            hit(&asked, Semantic, 2, 0.58, 0.58),
            hit(&thanks, Semantic, 3, 0.55, 0.55),
            hit(&orchard, Lexical, 1, 0.48, 0.62),
            hit(&asked, Lexical, 2, 0.40, 0.58),
            hit(&orchard, Structural, 1, 1.0, 0.62),
            hit(&asked, Structural, 2, 1.0, 0.58),
            hit(&thanks, Structural, 3, 1.0, 0.55),
        ],
        neighbours: vec![
            near(&series, vec![step(&asked, &series, Semantic, 0.91)], 0.52, 0.50, 0.41),
            near(
                &crows,
                vec![step(&asked, &series, Semantic, 0.91), step(&series, &crows, Semantic, 0.82)],
                0.39,
                0.50,
                0.30,
            ),
            near(&tram, vec![step(&thanks, &tram, Semantic, 0.76)], 0.18, 0.50, 0.12),
            near(&series, vec![step(&asked, &series, Structural, 0.69)], 0.52, 0.50, 0.41),
            near(&soup, vec![step(&orchard, &soup, Structural, 0.64)], 0.15, 1.0, 0.14),
            near(&thanks, vec![step(&asked, &thanks, Structural, 1.0)], 0.50, 1.0, 0.55),
        ],
        ..ScriptedMemory::default()
    }
}

#[test]
fn three_titles_are_only_reached_by_expansion() {
    let memory = library();
    let evidence = ask(&memory, QUESTION);
    let first: Vec<&ConsideredUnit> = evidence.trace.first_hop.iter().collect();
    let support = &evidence.trace.rounds[0].support;
    for title in ["Salt Road", "The Ninth Lantern", "Harbour of Crows"] {
        assert!(!first.iter().any(|s| s.restatement.contains(title)), "{title} came with the first hop");
        assert!(support.iter().any(|s| s.kept && s.restatement.contains(title)), "{title} was not found");
        assert!(evidence.context.contains(title));
    }
    assert!(first.iter().any(|s| s.restatement.contains("The Glass Orchard")));
    assert!(!support.iter().any(|s| s.kept && s.restatement.contains("tram")));
    assert!(evidence.units.iter().all(|u| !u.provenance.is_empty() && !u.sources.is_empty()));
}

#[test]
fn expansion_starts_at_anchors_of_the_evidence_and_carries_the_target() {
    let memory = library();
    let evidence = ask(&memory, QUESTION);
    let probe = &memory.first.borrow()[0];
    assert_eq!(
        (probe.words.as_str(), probe.semantic, probe.lexical, probe.cue),
        ("books Mira recommended Tom", 10, 5, 5)
    );
    let walks = memory.walks.borrow();
    let [walk] = walks.as_slice() else { panic!("{} walks", walks.len()) };
    assert_eq!(walk.anchors, evidence.trace.rounds[0].plan.anchors);
    assert_eq!(walk.target_cues.participants, ["mira", "tom"]);
    assert_ne!(walk.target, walk.question);
    let anchors: Vec<UnitId> = evidence.units.iter().filter(|u| u.anchor).map(|u| u.id).collect();
    assert_eq!(anchors.len(), walk.anchors.len());
}

// ---------------------------------------------------------------- how the loop ends

#[test]
fn without_cues_the_cue_channel_is_not_asked() {
    let memory = library();
    ask(&memory, "Which books were recommended?");
    assert_eq!(memory.first.borrow()[0].cue, 0);
    ask(&memory, "Who is it?");
    assert_eq!(memory.first.borrow()[1].lexical, 0);
}

#[test]
fn the_loop_ends_when_a_round_brings_no_support() {
    let mut memory = library();
    for n in &mut memory.neighbours {
        n.semantic_match = Score::from_f64(0.1);
        n.structural_match = None;
    }
    let many = RecallSettings { rounds: 4, ..settings() };
    let evidence = ask_with(&memory, QUESTION, &RulesPlanner::new(&model()), &many).unwrap();
    assert_eq!(evidence.stop_reason, "no new support");
    assert_eq!((evidence.trace.rounds.len(), memory.walks.borrow().len()), (1, 1));
    assert!(evidence.trace.rounds[0].support.iter().all(|s| !s.kept || evidence.units.iter().any(|u| u.id == s.id)));
    assert_eq!(evidence.units.len(), 3);
}

#[test]
fn rounds_end_with_the_budget_or_without_new_support() {
    let memory = library();
    let one = ask(&memory, QUESTION);
    assert_eq!(one.stop_reason, "round budget reached");
    let many = RecallSettings { rounds: 4, ..settings() };
    let more = ask_with(&memory, QUESTION, &RulesPlanner::new(&model()), &many).unwrap();
    assert_eq!(more.stop_reason, "no new support");
    assert_eq!(more.trace.rounds.len(), 2);
    let none =
        ask_with(&memory, QUESTION, &RulesPlanner::new(&model()), &RecallSettings { rounds: 0, ..settings() }).unwrap();
    assert_eq!((none.trace.rounds.len(), none.units.len()), (0, 3));
}

#[test]
fn a_direct_answer_stops_after_the_first_hop() {
    let memory = ScriptedMemory {
        hits: vec![hit(&library().hits[0].unit, Channel::Semantic, 1, 0.8, 0.8)],
        ..ScriptedMemory::default()
    };
    let evidence = ask(&memory, "Did Mira recommend The Glass Orchard to Tom?");
    assert_eq!(evidence.stop_reason, "the evidence covers the question");
    assert!(evidence.supported && memory.walks.borrow().is_empty());
    assert!(evidence.context.starts_with("## 12 April 2024\n"));
}

#[test]
fn recollection_abstains_on_an_empty_memory() {
    let evidence = ask(&ScriptedMemory::default(), QUESTION);
    assert!(!evidence.supported && evidence.units.is_empty());
    assert_eq!(evidence.stop_reason, "no evidence to start from");
    assert!(evidence.context.starts_with("Nothing in memory supports this question"));
    assert!(render_trace(&evidence).contains("not supported by memory"));
}

/// Sixty turns, each less familiar than the one before.
fn ferries() -> ScriptedMemory {
    let unit = |n: u64| {
        let text = format!("Ferry number {n} leaves the northern pier at noon and is back in the harbour by evening.");
        said(n, "s", "2024-05-01T10:00:00Z", "Ann", &text)
    };
    let score = |n: u64| 1.0 - n as f64 / 100.0;
    let hits = (0..60).map(|n| hit(&unit(n), Channel::Semantic, n as u32 + 1, score(n), score(n))).collect();
    ScriptedMemory { hits, ..ScriptedMemory::default() }
}

#[test]
fn most_tokens_are_a_ceiling_alone() {
    let memory = ferries();
    let settings = Pipeline::parse("version = 1\nrecall.budget = 60").unwrap().recall;
    let quoted = |most_tokens: Option<u32>| {
        let question =
            Question { most_tokens, ..Question::new(Bank::parse("readers").unwrap(), "When does the ferry leave?") };
        let model_ref = ModelRef { name: "by hand".to_owned(), hash: "0".to_owned() };
        let mut embed = |texts: &[&str]| Ok(texts.iter().map(|_| Vector::from([0.5, 0.5])).collect());
        let planner = RulesPlanner::new(&model());
        let models = RecallModels { embed: &mut embed, model: &model_ref, rerank: None };
        let found = recollect(&memory, models, &question, &planner, &settings).unwrap();
        assert!(found.tokens.spent <= found.tokens.most);
        assert_eq!(found.context.matches("Ann: ").count(), found.units.len());
        found.units.iter().map(|unit| unit.id).collect::<BTreeSet<_>>()
    };
    let (little, usual, much) = (quoted(Some(300)), quoted(None), quoted(Some(12_000)));
    assert_eq!(quoted(Some(settings.stop.most_tokens as u32)), usual, "what stands in the settings");
    assert!(!little.is_empty() && little.len() < usual.len() && little.is_subset(&usual), "{little:?} {usual:?}");
    assert_eq!(usual, much, "nothing more is quoted than without a limit");
}

#[test]
fn an_answer_that_has_no_room_is_no_answer_that_nothing_supports() {
    let memory = ScriptedMemory {
        hits: vec![hit(&library().hits[0].unit, Channel::Semantic, 1, 0.8, 0.8)],
        ..ScriptedMemory::default()
    };
    let question = Question {
        most_tokens: Some(3),
        ..Question::new(Bank::parse("readers").unwrap(), "Did Mira recommend The Glass Orchard to Tom?")
    };
    let model_ref = ModelRef { name: "by hand".to_owned(), hash: "0".to_owned() };
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(|_| Vector::from([0.5, 0.5])).collect());
    let planner = RulesPlanner::new(&model());
    let models = RecallModels { embed: &mut embed, model: &model_ref, rerank: None };
    let found = recollect(&memory, models, &question, &planner, &settings()).unwrap();
    assert_eq!((found.context.as_str(), found.units.len(), found.supported), ("", 0, true));
    assert!(found.tokens.spent == 0 && found.trace.first_hop.iter().all(|seen| !seen.kept));
}

// ---------------------------------------------------------------- a reranker

/// A reranker with scripted logits, or that fails; it records what it reads.
struct ScriptedReranker {
    model: ModelRef,
    logits: Result<Vec<f32>, &'static str>,
    read: RefCell<Vec<(String, Vec<String>)>>,
}

impl ScriptedReranker {
    fn new(logits: Result<Vec<f32>, &'static str>) -> Self {
        let model = ModelRef { name: "scripted".to_owned(), hash: "1".to_owned() };
        Self { model, logits, read: RefCell::default() }
    }
}

impl Reranker for ScriptedReranker {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn logits(&self, question: &str, passages: &[String]) -> Result<Vec<f32>, BoxError> {
        self.read.borrow_mut().push((question.to_owned(), passages.to_vec()));
        self.logits.clone().map_err(Into::into)
    }
}

/// Four turns of scores 0.9, 0.8, 0.7 and 0.6; the zero of the scale is 0.3.
fn boats() -> ScriptedMemory {
    let turns = [(1, "The boat is red.", 0.9), (2, "We sold it.", 0.8), (3, "It leaks.", 0.7), (4, "Good night.", 0.6)];
    let hits = turns.map(|(id, text, score)| {
        let unit = said(id, "s", "2024-05-01T10:00:00Z", "Ann", text);
        hit(&unit, Channel::Semantic, id as u32, score, score)
    });
    ScriptedMemory { hits: hits.into(), ..ScriptedMemory::default() }
}

/// Asks about the boats, with a reranker that reads three parts and counts twice.
fn ask_about_boats(text: &str, reranker: Option<&ScriptedReranker>) -> Evidence {
    let file = "version = 1\nrecall.rerank = { model = \"scripted\", pairs = 3, weight = 2.0 }";
    let settings = Pipeline::parse(file).unwrap().recall;
    let question = Question::new(Bank::parse("readers").unwrap(), text);
    let model_ref = ModelRef { name: "by hand".to_owned(), hash: "0".to_owned() };
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(|_| Vector::from([0.5, 0.5])).collect());
    let rerank = reranker.map(|reranker| reranker as &dyn Reranker);
    let models = RecallModels { embed: &mut embed, model: &model_ref, rerank };
    let planner = RulesPlanner::new(&model());
    let boats = boats();
    let evidence = recollect(&boats, models, &question, &planner, &settings).unwrap();
    // An explanation of the same question shows the same logits.
    let subject = ExplanationQuery { id: SubjectId::Turn("t2".to_owned()), part: None, every_part: false };
    let models = RecallModels { embed: &mut embed, model: &model_ref, rerank };
    let explained = explain(&boats, models, &question, &planner, &settings, &subject).unwrap();
    let before = [ExplanationStepName::Stored, ExplanationStepName::Reflected, ExplanationStepName::Window]
        .map(ExplanationStep::not_reached);
    let explanation = explained.complete(before);
    let score = explanation.step(ExplanationStepName::Score).unwrap();
    let reranked = evidence.trace.rerank.as_ref();
    let logit = reranked.and_then(|reranked| reranked.logits.get(1)).map(|second| second.logit);
    assert_eq!(score.numbers.get("logit").and_then(|logit| logit.as_f64()), logit);
    let problem = reranked.and_then(|reranked| reranked.problem.clone()).unwrap_or_default();
    assert!(score.sentence.contains(&problem), "{}", score.sentence);
    evidence
}

/// The rank, score and term of the reranker of each part of the first hop, by unit.
fn reranked_parts(evidence: &Evidence) -> Vec<(u64, u32, f64, f64)> {
    let part = |seen: &ConsideredUnit| match seen.provenance {
        Provenance::Familiar { rank, score, terms, .. } => (seen.id.0, rank, score, terms.rerank),
        _ => panic!("found by an index"),
    };
    evidence.trace.first_hop.iter().map(part).collect()
}

#[test]
fn a_reranker_orders_the_parts_that_it_reads_by_score_and_logit() {
    let reranker = ScriptedReranker::new(Ok(vec![-4.0, 6.0, 1.0]));
    let evidence = ask_about_boats("What happened to the boat?", Some(&reranker));
    // The least logit adds nothing, each further ten add the weight: 0.8 + 2 · 10/10, 0.7 + 2 · 5/10, 0.9, and 0.6.
    let expected = [(2, 1, 2.8, 2.0), (3, 2, 1.7, 1.0), (1, 3, 0.9, 0.0), (4, 4, 0.6, 0.0)];
    let found = reranked_parts(&evidence);
    assert_eq!(found.len(), expected.len());
    for ((id, rank, score, term), of) in found.into_iter().zip(expected) {
        assert_eq!((id, rank), (of.0, of.1));
        assert!((score - of.2).abs() < 1e-8 && (term - of.3).abs() < 1e-12, "{id}: {score}, {term}");
    }
    assert_eq!(evidence.units.iter().map(|unit| unit.id.0).collect::<Vec<_>>(), [2, 3, 1, 4]);
    let scale = evidence.trace.scale.unwrap();
    assert!((scale.best - 2.8).abs() < 1e-8 && scale.zero == 0.3, "{scale:?}");

    let read = reranker.read.borrow();
    let parts = ["Ann: The boat is red.", "Ann: We sold it.", "Ann: It leaks."].map(str::to_owned).to_vec();
    assert_eq!(read[0], ("What happened to the boat?".to_owned(), parts));
    let told = evidence.trace.rerank.as_ref().unwrap();
    assert_eq!((told.model.as_str(), told.model_hash.as_str(), told.weight), ("scripted", "1", 2.0));
    let logits: Vec<(u64, u32, f64)> = told.logits.iter().map(|of| (of.id.0, of.part, of.logit)).collect();
    assert_eq!(logits, [(1, 0, -4.0), (2, 0, 6.0), (3, 0, 1.0)]);
    assert!(told.problem.is_none() && render_trace(&evidence).contains("reranker scripted: 3 parts read, weight 2"));
}

#[test]
fn a_reranker_that_fails_leaves_the_answer_as_it_was_and_the_answer_says_so() {
    let text = "What happened to the boat?";
    let without = ask_about_boats(text, None);
    assert_eq!(reranked_parts(&without).iter().map(|part| part.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(without.trace.rerank.is_none());
    for (logits, expected) in [
        (Err("it was late"), "it was late"),
        (Ok(vec![1.0, 2.0]), "the model gave 2 logits for 3 parts"),
        (Ok(vec![1.0, f32::NAN, 2.0]), "the model gave a logit that is not a number"),
    ] {
        let mut found = ask_about_boats(text, Some(&ScriptedReranker::new(logits)));
        assert!(render_trace(&found).contains(&format!("reranker scripted: without it: {expected}")));
        let told = found.trace.rerank.take().unwrap();
        assert_eq!((told.problem.as_deref(), told.logits.len()), (Some(expected), 0));
        assert_eq!(found, without);
    }
    let reranker = ScriptedReranker::new(Ok(vec![1.0, 2.0, 3.0]));
    let told = ask_about_boats("这条船怎么了？", Some(&reranker)).trace.rerank.unwrap();
    assert!(told.problem.is_some_and(|problem| problem.contains("in zh, which")) && told.logits.is_empty());
    assert!(reranker.read.borrow().is_empty(), "a language that it does not read");
}

/// A planner that breaks the rules of a plan.
struct RuleBreakingPlanner;

impl Planner for RuleBreakingPlanner {
    fn plan(
        &self,
        _: &ParsedQuestion<'_>,
        _: &QuestionCues,
        evidence: &[EvidenceCandidate],
        _: u32,
        _: &RecallSettings,
    ) -> Plan {
        let known: Vec<UnitId> = evidence.iter().take(1).map(|c| c.unit.id).collect();
        Plan {
            proceed: true,
            sufficiency: 7.0,
            reason: "because".to_owned(),
            anchors: [UnitId(0xdead)].into_iter().chain(known.iter().copied()).chain(known.iter().copied()).collect(),
            target: Some(Target { goal: "g".into(), sentence: "Mira read.".into(), cues: Cues::default() }),
            note: None,
        }
    }

    fn agreement(&self, _: &ParsedQuestion<'_>, _: &QuestionCues, _: &FamiliarityResult) -> f64 {
        7.0
    }
}

#[test]
fn an_anchor_outside_the_evidence_is_impossible() {
    let memory = library();
    let evidence = ask_with(&memory, QUESTION, &RuleBreakingPlanner, &settings()).unwrap();
    assert_eq!(memory.walks.borrow()[0].anchors, [UnitId(0x11)]);
    assert_eq!(evidence.sufficiency, 1.0);
    let nothing = ScriptedMemory::default();
    let evidence = ask_with(&nothing, QUESTION, &RuleBreakingPlanner, &settings()).unwrap();
    assert!(nothing.walks.borrow().is_empty());
    assert_eq!(evidence.stop_reason, "no evidence to start from");
}

// ---------------------------------------------------------------- errors and identity

#[test]
fn errors_name_the_step_that_failed_and_keep_the_cause() {
    use std::error::Error;
    let failing = ScriptedMemory { fails: true, ..ScriptedMemory::default() };
    let error = ask_with(&failing, QUESTION, &RulesPlanner::new(&model()), &settings()).unwrap_err();
    assert_eq!(error.to_string(), "bank readers: the memory did not answer the first hop");
    assert_eq!(error.source().unwrap().to_string(), "the dataflow has stopped");
    assert!(matches!(
        ask_with(&failing, " ", &RulesPlanner::new(&model()), &settings()),
        Err(RecallError::EmptyQuestion)
    ));
}

#[test]
fn the_order_of_hits_changes_nothing() {
    let memory = library();
    let mut turned = library();
    turned.hits.reverse();
    turned.neighbours.reverse();
    assert_eq!(ask(&memory, QUESTION), ask(&turned, QUESTION));
}
