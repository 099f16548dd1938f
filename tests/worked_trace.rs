//! A worked trace through the real dataflow, after the paper's case study (table of the
//! write-to-read trace): four recommended titles, three of them only reached by expansion.
//!
//! Units and vectors are written by hand. The golden file is the rendered trace; `REWRITE=1`
//! rewrites it, then review the change.

use std::{fs, sync::Arc};

use memory::{
    index::{ChangeListeners, RecordKey, RecordLoad, RecordUnits, ShardHandle},
    recall::{self, RulesPlanner},
};
use types::{
    config::Pipeline,
    model::{
        Bank, Cues, EventTime, Interval, LogPosition, MemoryKey, MemoryRecord, ModelRef, Question, SCHEMA_VERSION,
        Score, SessionId, TextFeatures, Unit, UnitId, UnitPart, Vector, WindowId, WindowState,
    },
};

use super::support::data;

const QUESTION: &str = "Which books has Mira recommended to Tom?";

/// Axes of the vectors: the question, the missing titles, the dialogue of June, and one for each unit.
const AXES: usize = 10;

/// Session, time, people, place on the first three axes, restatement.
type Row = (&'static str, &'static str, &'static [&'static str], [f32; 3], &'static str);

const UNITS: [Row; 7] = [
    (
        "april",
        "2024-04-12T18:20:00Z",
        &["mira", "tom"],
        [0.62, 0.0, 0.0],
        "Mira recommended the book The Glass Orchard to Tom and praised its first chapter.",
    ),
    (
        "june",
        "2024-06-03T20:05:00Z",
        &["mira", "tom"],
        [0.58, 0.45, 0.65],
        "Tom asked Mira which book series she loves most and would recommend.",
    ),
    (
        "june",
        "2024-06-03T20:06:00Z",
        &["mira"],
        [0.30, 0.45, 0.75],
        "Mira named Salt Road and The Ninth Lantern as her favourites, and Harbour of Crows for those who like the sea.",
    ),
    (
        "june",
        "2024-06-03T20:08:00Z",
        &["mira"],
        [0.05, 0.60, 0.70],
        "Mira called Harbour of Crows the widest story that she knows.",
    ),
    (
        "june",
        "2024-06-03T20:10:00Z",
        &["mira", "tom"],
        [0.55, 0.10, 0.78],
        "Tom thanked Mira for the recommendations and asked why they are her favourites.",
    ),
    ("may", "2024-05-01T19:00:00Z", &["mira", "tom"], [0.15, 0.0, 0.0], "Tom cooked lentil soup for Mira."),
    ("may2", "2024-05-20T23:40:00Z", &["mira"], [0.10, 0.0, 0.0], "Mira missed the last tram."),
];

fn vector(i: usize, axes: [f32; 3]) -> Vector {
    let mut v = [0.0; AXES];
    v[..3].copy_from_slice(&axes);
    // The rest of the unit length lies on this unit's own axis.
    v[3 + i] = (1.0 - axes.iter().map(|x| x * x).sum::<f32>()).max(0.0).sqrt();
    Vector::from(v)
}

fn load(memory: &ShardHandle, bank: &Bank) {
    for session in ["april", "may", "may2", "june"] {
        let window = WindowId { session: SessionId(format!("caller:{session}")), start: 0 };
        let of_session = UNITS.iter().enumerate().filter(|(_, u)| u.0 == session).enumerate();
        let units = of_session.map(|(ordinal, (i, (_, at, people, axes, said)))| {
            let said_at = EventTime::parse(at).unwrap();
            let participants = people.iter().map(|p| (*p).to_owned()).collect();
            let cues = Cues { participants, locations: Vec::new(), time: Some(Interval::at(said_at)) };
            let sources = vec![format!("{session}:{}", ordinal + 1)];
            let part = UnitPart {
                turn: sources[0].clone(),
                ordinal: ordinal as u32,
                speaker: people[people.len() - 1].to_owned(),
                kind: None,
                said_at,
                text: (*said).to_owned(),
                range: None,
                marks: TextFeatures::default(),
                vectors: Vec::new(),
                pair: None,
            };
            Unit {
                id: UnitId::of(bank, &window, &sources, said, &cues),
                restatement: (*said).to_owned(),
                vector: vector(i, *axes),
                cues,
                said_at,
                sources,
                ordinal: ordinal as u32,
                parts: vec![part],
            }
        });
        let record = MemoryRecord {
            schema: SCHEMA_VERSION,
            bank: bank.clone(),
            window: window.clone(),
            state: WindowState::Final,
            turns_hash: String::new(),
            extractor: "by hand".into(),
            cutter: None,
            model: ModelRef { name: "by hand".into(), hash: "0".into() },
            turns: Vec::new(),
            units: units.collect(),
            statements: None,
        };
        let key = RecordKey::from(&MemoryKey { bank: bank.clone(), window, turn: None, part: 0 });
        let extraction = Arc::new(RecordUnits::new(&record, AXES).unwrap());
        let reflects = vec![LogPosition { topic: "memory".into(), partition: 0, next_offset: 4 }];
        memory.load(RecordLoad { changes: vec![(key, Some(extraction))], reflects, ..RecordLoad::default() }).unwrap();
    }
}

#[test]
fn three_of_four_titles_are_only_reached_by_expansion() {
    let mut pipeline = Pipeline::parse("version = 1\nprofile = \"paper\"").unwrap();
    // A first hop that is as narrow for seven units as the paper's is for a whole dialogue.
    (pipeline.recall.semantic, pipeline.recall.lexical, pipeline.recall.cue) = (3, 2, 3);
    let model = types::config::ModelSettings { semantic_threshold: 0.75, ..pipeline.model() };
    let memory =
        ShardHandle::start(&pipeline.memory, Score::from_f64(model.semantic_threshold), ChangeListeners::default())
            .unwrap();
    let bank = Bank::parse("readers").unwrap();
    load(&memory, &bank);

    let question = Question::new(bank, QUESTION.to_owned());
    let model_ref = ModelRef { name: "by hand".into(), hash: "0".into() };
    let axes = |text: &str| if text == QUESTION { [1.0, 0.0, 0.0] } else { [0.6, 0.8, 0.0] };
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(|text| vector(0, axes(text))).collect());
    let planner = RulesPlanner::new(&model);
    let models = recall::RecallModels { embed: &mut embed, model: &model_ref, rerank: None };
    let evidence = recall::recollect(&memory, models, &question, &planner, &pipeline.recall).unwrap();

    let page = format!("{}\n----\n{}", recall::render_trace(&evidence), evidence.context);
    let golden = data("golden/worked_trace.txt");
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&golden, &page).unwrap();
    }
    assert_eq!(page, fs::read_to_string(&golden).unwrap_or_default(), "{} differs", golden.display());

    let first: Vec<&str> = evidence.trace.first_hop.iter().map(|s| s.restatement.as_str()).collect();
    assert!(first.iter().any(|s| s.contains("The Glass Orchard")));
    for title in ["Salt Road", "The Ninth Lantern", "Harbour of Crows"] {
        assert!(!first.iter().any(|s| s.contains(title)), "{title} came with the first hop");
        assert!(evidence.context.contains(title), "{title} was not found");
    }
    assert!(!evidence.context.contains("tram"));
}
