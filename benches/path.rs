//! The whole path on a real dialogue, compared with the embedder alone: `cargo bench --bench path`.
//!
//! Needs LoCoMo's file at `RIPPLEMEM_LOCOMO` (`locomo10.json`, or any file of its form) and
//! the set-up's model. Each round runs three things one after the other: one vector per raw turn, the embedder alone on
//! the texts that the path embeds, and the whole path from the file to the last edge. Ratios are within a round.
//! `RIPPLEMEM_BENCH=vectors` instead compares the models and the ways to make vectors of a turn: the time of the whole
//! path, divided by that of one vector per raw turn at full precision.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;

mod figures;
use figures::{median, percentile, seconds};
use ingest::unit_texts;
use logs::Topic;
use memory::index::GraphCensus;
use models::embed::{self, Embedder};
use ripplemem::PipelineDriver;
use types::{
    config::{Pipeline, SourceSettings},
    model::{Bank, MemoryRecord, Question, SpannedText, TurnEvent},
};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 5;

fn main() {
    let Some(file) = std::env::var_os("RIPPLEMEM_LOCOMO").map(PathBuf::from) else {
        println!("SKIPPED path: RIPPLEMEM_LOCOMO names no LoCoMo file");
        return;
    };
    let only = std::env::var("RIPPLEMEM_CONVERSATION").unwrap_or_else(|_| "conv-26".to_owned());
    if std::env::var("RIPPLEMEM_BENCH").is_ok_and(|bench| bench == "vectors") {
        return compare_vectors(&file, &only);
    }
    let pipeline = Pipeline::parse("version = 1").expect("the defaults are valid");
    let mut embedder = embed::open(&pipeline.embed, &pipeline.model()).expect("the set-up has run");
    let turns = raw_turns(&file, &only);
    let (mut raw, mut alone, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for round in 0..=ROUNDS {
        let t_raw = seconds(|| drop(embedder.embed(&turns).expect("the model runs")));
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut service = warm(&pipeline, home.path());
        let mut census = GraphCensus::default();
        let t_whole = seconds(|| census = ingest(&mut service, &file, &only));
        let texts = texts(&service, &pipeline);
        let t_alone = seconds(|| drop(embedder.embed(&texts).expect("the model runs")));
        // The first round only warms caches.
        if round > 0 {
            raw.push(t_raw);
            alone.push(t_alone);
            whole.push(t_whole);
        }
        last = Some((home, service, census, texts.len()));
    }
    let Some((_home, service, census, texts)) = last else { return };
    let ratio = |a: &[f64], b: &[f64]| median(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>());
    println!("{only}: {} turns, {texts} texts embedded by the path, {} units", turns.len(), census.units);
    println!("one vector a raw turn    {:.2} s", median(&raw));
    println!("embedder alone           {:.2} s", median(&alone));
    println!("whole path               {:.2} s", median(&whole));
    println!("whole path / embedder alone on the same texts  {:.3}", ratio(&whole, &alone));
    println!("whole path / one vector a raw turn             {:.3}", ratio(&whole, &raw));
    questions(&service, &mut *embedder, &file, &only);
}

const FULL: &str = "embed.model = \"all-MiniLM-L6-v2\"";
const INT8: &str = "embed.model = \"all-MiniLM-L6-v2-int8\"";
/// One text after the other, each with all threads, instead of texts side by side.
const INT8_IN_TURN: &str = "embed.model = \"all-MiniLM-L6-v2-int8\"\nembed.batch = 1\n\
                            embed.models.all-MiniLM-L6-v2-int8.alone = false";
const TURN: &str = "embed.block_turns = 1\nembed.sentence_words = 0";
const BLOCKS: &str = "embed.block_turns = 2\nembed.sentence_words = 0";
const SENTENCES: &str = "embed.block_turns = 2\nembed.sentence_words = 8";

fn with(settings: &[&str]) -> Pipeline {
    Pipeline::parse(&format!("version = 1\n{}", settings.join("\n"))).expect("the settings are valid")
}

fn compare_vectors(file: &std::path::Path, only: &str) {
    let turns = raw_turns(file, only);
    let open = |pipeline: &Pipeline| embed::open(&pipeline.embed, &pipeline.model()).expect("the set-up has run");
    let mut full = open(&with(&[FULL]));
    let expected = full.embed(&turns).expect("the model runs");

    println!("{only}: {} raw turns, one vector each", turns.len());
    for (name, settings) in
        [("full precision", FULL), ("8 bits, side by side", INT8), ("8 bits, one after the other", INT8_IN_TURN)]
    {
        let mut embedder = open(&with(&[settings]));
        let mut cosines = Vec::new();
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let t_full = timed(|| drop(full.embed(&turns).expect("the model runs")));
            let t = timed(|| {
                let found = embedder.embed(&turns).expect("the model runs");
                cosines =
                    expected.iter().zip(&found).map(|(a, b)| cosine(&a.whole.floats(), &b.whole.floats())).collect();
            });
            wall.push((turns.len() as f64 / t.0, t.0 / t_full.0));
            cpu.push(t.1 / t_full.1);
        }
        println!(
            "  {name:28} {:4.0}/s, over full precision {:.2} (processor {:.2}), cosine mean {:.4}, least {:.4}",
            median(&wall.iter().map(|w| w.0).collect::<Vec<_>>()),
            median(&wall.iter().map(|w| w.1).collect::<Vec<_>>()),
            median(&cpu),
            cosines.iter().sum::<f64>() / cosines.len() as f64,
            cosines.iter().copied().fold(1.0, f64::min),
        );
    }

    println!("whole path over one vector a raw turn at full precision");
    for (model, model_name) in [(FULL, "full precision"), (INT8, "8 bits")] {
        for (way, way_name) in [(TURN, "a turn a pass"), (BLOCKS, "two turns"), (SENTENCES, "two turns, sentences")] {
            let pipeline = with(&[model, way]);
            let (mut wall, mut cpu, mut last) = (Vec::new(), Vec::new(), (0, 0));
            for _ in 0..ROUNDS.min(3) {
                let t_full = timed(|| drop(full.embed(&turns).expect("the model runs")));
                let home = tempfile::tempdir().expect("a temporary directory");
                let mut service = warm(&pipeline, home.path());
                let t = timed(|| drop(ingest(&mut service, file, only)));
                last = count(&service);
                wall.push(t.0 / t_full.0);
                cpu.push(t.1 / t_full.1);
            }
            let (vectors, bytes) = last;
            println!(
                "  {model_name:15} {way_name:21} {:.2} (processor {:.2}), {:.1} vectors a turn, {} KB of records",
                median(&wall),
                median(&cpu),
                vectors as f64 / turns.len() as f64,
                bytes / 1_000,
            );
        }
    }
}

/// The number of vectors of the parts, and the bytes of the records.
fn count(service: &PipelineDriver) -> (usize, usize) {
    let records = service.log().read(Topic::Memory, 0, 0, 100_000).expect("a log").records;
    let values: Vec<&[u8]> = records.iter().filter_map(|r| r.value.as_deref()).collect();
    let read = |value: &&[u8]| serde_json::from_slice::<MemoryRecord>(value).expect("a record").units;
    let parts: Vec<_> = values.iter().flat_map(read).flat_map(|unit| unit.parts).collect();
    let vectors = parts.iter().map(|part| part.vectors.len() + usize::from(part.pair.is_some())).sum();
    (vectors, values.iter().map(|value| value.len()).sum())
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// Wall-clock seconds, and seconds of processor time, which other load on the machine affects less.
fn timed(work: impl FnOnce()) -> (f64, f64) {
    let before = processor_seconds();
    let wall = seconds(work);
    (wall, processor_seconds() - before)
}

/// User and system time of this process, in Linux's hundredths; 0 elsewhere.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    fields.get(11..13).map_or(0.0, |times| times.iter().sum::<f64>() / 100.0)
}

fn questions(service: &PipelineDriver, embedder: &mut dyn Embedder, file: &std::path::Path, only: &str) {
    let data: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON");
    let conversation = data.as_array().expect("a list").iter().find(|c| c["sample_id"] == only).expect("a name");
    let bank = Bank::parse(&format!("locomo/{only}")).expect("a good name");
    let (mut stopped, mut went_on, mut embedding) = (Vec::new(), Vec::new(), Vec::new());
    for qa in conversation["qa"].as_array().expect("a list") {
        let text = qa["question"].as_str().unwrap_or_default().to_owned();
        embedding.push(seconds(|| drop(embedder.embed_query(&text).expect("the model runs"))) * 1e3);
        let question = Question::new(bank.clone(), text);
        let mut rounds = 0;
        let ms = seconds(|| {
            let evidence = service.ask(&question).expect("an answer");
            rounds = evidence.trace.rounds.iter().filter(|r| r.plan.proceed).count();
        }) * 1e3;
        if rounds == 0 { stopped.push(ms) } else { went_on.push(ms) }
    }
    let share = stopped.len() as f64 / (stopped.len() + went_on.len()) as f64;
    println!("question embedding alone p50 {:.2} ms", median(&embedding));
    println!(
        "question, stops after the first hop ({:.0} %): p50 {:.2} ms, p99 {:.2} ms",
        share * 100.0,
        median(&stopped),
        percentile(&stopped, 99)
    );
    println!(
        "question, with a second round ({:.0} %): p50 {:.2} ms, p99 {:.2} ms",
        100.0 - share * 100.0,
        median(&went_on),
        percentile(&went_on, 99)
    );
}

/// A service with its own log, whose model is loaded.
fn warm(pipeline: &Pipeline, home: &std::path::Path) -> PipelineDriver {
    let mut pipeline = pipeline.clone();
    pipeline.log.directory = home.join("log");
    let mut service = PipelineDriver::open(&pipeline, &mut |_| {}).expect("a log");
    let turn = br#"{"bank":"warm","turn":"1","speaker":"Ann","text":"A first turn opens the model","time":"2024-01-01T00:00:00Z"}"#;
    service.log().append_turns(&[TurnEvent::from_json(turn).expect("a turn")]).expect("a write");
    service.catch_up().expect("the model runs");
    service
}

fn ingest(service: &mut PipelineDriver, file: &std::path::Path, only: &str) -> GraphCensus {
    let mut source = open_source(file, only);
    service.ingest(&mut *source, &mut |_| {}).expect("the path runs");
    service
        .replica()
        .digest(Some(&Bank::parse(&format!("locomo/{only}")).expect("a good name")))
        .expect("a memory")
        .value
}

fn open_source(file: &std::path::Path, only: &str) -> Box<dyn sources::TurnSource> {
    let settings = SourceSettings { only: vec![only.to_owned()], ..SourceSettings::new("locomo", file) };
    eval::readers::open(&settings).expect("a LoCoMo file")
}

fn raw_turns(file: &std::path::Path, only: &str) -> Vec<SpannedText> {
    let mut source = open_source(file, only);
    let mut texts = Vec::new();
    while let Some(batch) = source.next(1_000).expect("a readable file") {
        for event in batch.events {
            if let TurnEvent::Turn(turn) = event {
                let captions: Vec<&str> = turn.captions().collect();
                let text = format!("{} said, \"{} {}\"", turn.speaker, turn.text, captions.join(" "));
                texts.push(SpannedText { text, spans: Vec::new() });
            }
        }
    }
    texts
}

/// The texts of the final records, in the form that the path embedded.
fn texts(service: &PipelineDriver, pipeline: &Pipeline) -> Vec<SpannedText> {
    let template = pipeline.model().turn_template;
    let records = service.log().read(Topic::Memory, 0, 0, 100_000).expect("a log").records;
    let records = records.iter().filter_map(|r| serde_json::from_slice::<MemoryRecord>(r.value.as_deref()?).ok());
    records
        .filter(|r| r.bank.as_str() != "warm")
        .flat_map(|r| r.units)
        .flat_map(|unit| {
            let parts: Vec<(&str, &str)> = unit.parts.iter().map(|p| (p.speaker.as_str(), p.text.as_str())).collect();
            unit_texts(&pipeline.embed, &template, &parts)
        })
        .collect()
}
