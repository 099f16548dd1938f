//! Questions to one large bank: `cargo bench --bench large`.
//!
//! All of the IRC below the folder that `RIPPLEMEM_DATA` names becomes one bank, through the real
//! windows and rules. Each question, a line of the chat that asks something, is answered three times in
//! turn: from candidates, from candidates without the neighbours along edges, and by the full score of
//! every part. Prints percentiles without the time of embedding, their ratio, and how much of what the
//! full score quotes the candidates quote, too. `RIPPLEMEM_LARGE_LOG` names a directory that keeps the
//! log for the next run, `RIPPLEMEM_LARGE_TURNS` a number of turns, `RIPPLEMEM_LARGE_MODEL` a model;
//! without it the deterministic embedder makes the vectors. `RIPPLEMEM_LARGE_WAYS=1` answers from
//! candidates only, for a profile: `perf record -p PID` once the units are counted.
//! `RIPPLEMEM_LARGE_COPIES=5` makes a million turns: each turn is repeated with other names, words and vectors. Then
//! only units with a cosine of 0.95 or more are linked, so that loading ends.
#![allow(clippy::print_stdout)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::percentile;
use logs::Topic;
use memory::{
    index::{CensusProbe, ChangeListeners, RecordKey, RecordLoad, RecordUnits, ShardHandle},
    recall::{RecallModels, RulesPlanner, recollect},
};
use models::embed::{self, Embedder};
use ripplemem::PipelineDriver;
use sources::{SourceBatch, SourceError, TurnSource};
use types::{
    config::{Pipeline, RecallSettings, SourceSettings},
    model::{Bank, Cues, Evidence, MemoryKey, MemoryRecord, Question, TurnEvent, UnitId, Vector},
};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const QUESTIONS: usize = 300;
const BANK: &str = "irc";

fn main() {
    let Some(data) = std::env::var_os("RIPPLEMEM_DATA").map(PathBuf::from).filter(|d| d.join("chat/irc").is_dir())
    else {
        println!("SKIPPED large: RIPPLEMEM_DATA names no folder with chat/irc");
        return;
    };
    let home = tempfile::tempdir().expect("a temporary directory");
    let kept = std::env::var_os("RIPPLEMEM_LARGE_LOG").map(PathBuf::from);
    let turns = std::env::var("RIPPLEMEM_LARGE_TURNS").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let model = std::env::var("RIPPLEMEM_LARGE_MODEL").unwrap_or_else(|_| "fixed".to_owned());
    let file = format!("version = 1\nembed.model = \"{model}\"\nlog.fsync = \"system\"");
    let mut pipeline = Pipeline::parse(&file).expect("valid settings");
    pipeline.log.directory = kept.unwrap_or_else(|| home.path().join("log"));
    ingest(&pipeline, &data, home.path(), turns);
    let mut embedder = embed::open(&pipeline.embed, &pipeline.model()).expect("the set-up has run");
    let (memory, questions) = load(&pipeline, embedder.dimensions());
    let mut modes = [
        Mode::new("candidates", &pipeline, |_| {}),
        Mode::new("without neighbours", &pipeline, |recall| recall.familiarity.linked_units = 0),
        Mode::new("every part", &pipeline, |recall| recall.familiarity.candidates = 0),
    ];
    let ways = std::env::var("RIPPLEMEM_LARGE_WAYS").ok().and_then(|n| n.parse().ok()).unwrap_or(modes.len());
    for (n, question) in questions.iter().enumerate() {
        for mode in modes.iter_mut().take(ways) {
            mode.ask(&memory, &mut *embedder, &pipeline, question, n >= 5);
        }
    }
    let [candidates, .., every] = &modes;
    for mode in modes.iter().take(ways) {
        println!(
            "{:<20} p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms; {:.0} bytes a question",
            mode.name,
            percentile(&mode.times, 50),
            percentile(&mode.times, 90),
            percentile(&mode.times, 99),
            mode.bytes as f64 / questions.len() as f64
        );
    }
    if ways < modes.len() {
        return;
    }
    for mode in &modes {
        println!("{:<20} quotes {:.1} % of what every part quotes", mode.name, 100.0 * mode.agreement(every));
    }
    println!("ratio of the medians {:.1}", percentile(&every.times, 50) / percentile(&candidates.times, 50));
}

/// A way to answer, with its results.
struct Mode {
    name: &'static str,
    settings: RecallSettings,
    times: Vec<f64>,
    quoted: Vec<BTreeSet<String>>,
    bytes: usize,
}

impl Mode {
    fn new(name: &'static str, pipeline: &Pipeline, change: impl FnOnce(&mut RecallSettings)) -> Self {
        let mut settings = pipeline.recall.clone();
        change(&mut settings);
        Self { name, settings, times: Vec::new(), quoted: Vec::new(), bytes: 0 }
    }

    fn ask(
        &mut self,
        memory: &ShardHandle,
        embedder: &mut dyn Embedder,
        pipeline: &Pipeline,
        question: &Question,
        counts: bool,
    ) {
        let planner = RulesPlanner::new(&pipeline.model());
        let model = embedder.model().clone();
        let mut embedding = Duration::ZERO;
        let started = Instant::now();
        let evidence = recollect(
            memory,
            RecallModels {
                embed: &mut |texts: &[&str]| {
                    let started = Instant::now();
                    let vectors = texts.iter().map(|text| embedder.embed_query(text)).collect::<Result<_, _>>()?;
                    embedding += started.elapsed();
                    Ok(vectors)
                },
                model: &model,
                rerank: None,
            },
            question,
            &planner,
            &self.settings,
        )
        .expect("an answer");
        if counts {
            self.times.push((started.elapsed() - embedding).as_secs_f64() * 1e3);
        }
        self.bytes += evidence.context.len();
        self.quoted.push(quoted(&evidence));
    }

    /// The mean share of what the other mode quotes that this one quotes, too.
    fn agreement(&self, other: &Self) -> f64 {
        let share = |(own, other): (&BTreeSet<String>, &BTreeSet<String>)| {
            own.intersection(other).count() as f64 / other.len().max(1) as f64
        };
        self.quoted.iter().zip(&other.quoted).map(share).sum::<f64>() / self.quoted.len().max(1) as f64
    }
}

fn quoted(evidence: &Evidence) -> BTreeSet<String> {
    evidence.units.iter().flat_map(|unit| &unit.excerpts).map(|excerpt| excerpt.turn.clone()).collect()
}

/// Some turns of a source, in one bank.
struct OneBank {
    source: Box<dyn TurnSource>,
    left: usize,
}

impl TurnSource for OneBank {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.source.next(limit.min(self.left))? else { return Ok(None) };
        self.left -= batch.events.len().min(self.left);
        for event in &mut batch.events {
            if let TurnEvent::Turn(turn) = event {
                turn.bank = Bank::parse(BANK).expect("a good name");
            }
        }
        batch.events.retain(|event| matches!(event, TurnEvent::Turn(_)));
        Ok(Some(batch))
    }

    fn describe(&self) -> String {
        self.source.describe()
    }

    fn progress(&self) -> sources::SourceProgress {
        self.source.progress()
    }
}

/// Fills the log, if it is empty.
fn ingest(pipeline: &Pipeline, data: &Path, home: &Path, turns: usize) {
    let mut service = PipelineDriver::open(pipeline, &mut |_| {}).expect("a log");
    if service.log().end(Topic::Memory, 0).expect("a log") > 0 {
        return;
    }
    let from = home.join("train");
    std::fs::create_dir(&from).expect("a directory");
    let archive = data.join("chat/irc/train-raw.tar.gz");
    assert!(Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(&from).status().expect("tar").success());
    let mut settings = SourceSettings::new("irc", &from);
    BANK.clone_into(&mut settings.bank);
    let mut source = OneBank { source: sources::open(&settings).expect("logs of IRC"), left: turns };
    let started = Instant::now();
    service.ingest(&mut source, &mut |_| {}).expect("the path runs");
    println!("ingested in {:.0} s", started.elapsed().as_secs_f64());
}

/// A memory of the log's records alone, and questions: lines of the chat that ask.
fn load(pipeline: &Pipeline, dimensions: usize) -> (ShardHandle, Vec<Question>) {
    let service_log = logs::open(&pipeline.log).expect("a log");
    let copies: usize = std::env::var("RIPPLEMEM_LARGE_COPIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let threshold = if copies > 1 { 0.95 } else { pipeline.model().semantic_threshold };
    let threshold = types::model::Score::from_f64(threshold);
    let memory = ShardHandle::start(&pipeline.memory, threshold, ChangeListeners::default()).expect("threads start");
    let started = Instant::now();
    let (mut asking, mut turns, mut from) = (Vec::new(), BTreeSet::new(), 0);
    loop {
        let records = service_log.read(Topic::Memory, 0, from, 512).expect("a log").records;
        let Some(last) = records.last() else { break };
        from = last.offset + 1;
        let mut load = RecordLoad::default();
        for record in &records {
            let Ok(key) = MemoryKey::from_bytes(&record.key) else { continue };
            let value = record.value.as_deref().map(|v| serde_json::from_slice::<MemoryRecord>(v).expect("a record"));
            for turn in value.iter().flat_map(|record| &record.turns).map(|of_window| &of_window.turn) {
                if turns.insert(turn.turn.clone()) && turn.text.len() > 60 && turn.text.ends_with('?') {
                    asking.push(turn.text.clone());
                }
            }
            for copy in 0..copies {
                let (key, value) = (copied_key(&key, copy), value.as_ref().map(|value| copied(value, copy)));
                let extraction = value.map(|v| Arc::new(RecordUnits::new(&v, dimensions).expect("good vectors")));
                load.changes.push((RecordKey::from(&key), extraction));
            }
        }
        memory.load(load).expect("the memory runs");
    }
    memory.wait_for_loads().expect("the memory runs");
    let bank = Bank::parse(BANK).expect("a good name");
    let probe = CensusProbe { bank: Some(bank.key()), hashing: true, listing: false };
    let units = memory.census(probe).expect("the memory runs").value.units;
    println!("{units} units of {} turns, loaded in {:.1} s", copies * turns.len(), started.elapsed().as_secs_f64());
    let step = (asking.len() / QUESTIONS).max(1);
    let question = |text: String| Question::new(bank.clone(), text);
    (memory, asking.into_iter().step_by(step).take(QUESTIONS).map(question).collect())
}

/// The key of a copy of a record.
fn copied_key(key: &MemoryKey, copy: usize) -> MemoryKey {
    let mut key = key.clone();
    if copy > 0 {
        key.window.session.0.push_str(&format!("-{copy}"));
        key.turn = key.turn.map(|turn| format!("{turn}-{copy}"));
    }
    key
}

/// A record with other names, words and vectors; the first copy is the record itself.
fn copied(record: &MemoryRecord, copy: usize) -> MemoryRecord {
    let mut record = record.clone();
    if copy == 0 {
        return record;
    }
    record.window.session.0.push_str(&format!("-{copy}"));
    record.turns.clear();
    // Short words are kept, because every text has them.
    let word = |word: &str| if word.len() > 4 { format!("{word}{copy}") } else { word.to_owned() };
    let words = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let turned = |vector: &Vector| {
        let mut components = vector.floats().into_owned();
        components.rotate_right(copy * 7);
        Vector::from(components)
    };
    for unit in &mut record.units {
        unit.restatement = words(&unit.restatement);
        unit.sources.iter_mut().for_each(|turn| turn.push_str(&format!("-{copy}")));
        unit.vector = turned(&unit.vector);
        let name = |names: &mut Vec<String>| names.iter_mut().for_each(|name| name.push_str(&copy.to_string()));
        let Cues { participants, locations, .. } = &mut unit.cues;
        [participants, locations].into_iter().for_each(name);
        for part in &mut unit.parts {
            part.turn.push_str(&format!("-{copy}"));
            part.speaker.push_str(&copy.to_string());
            part.text = words(&part.text);
            part.vectors.iter_mut().chain(&mut part.pair).for_each(|vector| *vector = turned(vector));
        }
        unit.id = UnitId::of(&record.bank, &record.window, &unit.sources, &unit.restatement, &unit.cues);
    }
    record
}
