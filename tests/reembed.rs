//! A memory after a change of the embedding model equals one that had the new model from the start.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use logs::{Log, Topic};
use memory::index::GraphCensus;
use ripplemem::ReembedReport;
use types::{config::Pipeline, model::TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, turn, wait},
    oracle::Dice,
    skipped::skip,
    support::{ask, census, fails, kill_rounds, lines, open, pipeline, ripplemem, write},
    transfer::{BANK, events, feed, large, sample},
};

/// The deterministic embedder under another name and with another template.
pub(crate) const OTHER: &str = "embed.model = \"other\"\n[embed.models.other]\nrunner = \"fixed\"\n\
                     turn_template = \"{speaker} told us {text}\"\nsemantic_threshold = 0.55\nquestion_floor = 0.1\nquestion_ceiling = 0.55\n";

fn with(pipeline: &Pipeline, model: &str) -> Pipeline {
    let mut other = Pipeline::parse(&format!("version = 1\n{model}")).unwrap();
    (other.log, other.snapshot) = (pipeline.log.clone(), pipeline.snapshot.clone());
    (other.extract, other.embed.read_turns) = (pipeline.extract.clone(), pipeline.embed.read_turns);
    other
}

fn reembed(pipeline: &Pipeline) -> ReembedReport {
    ripplemem::reembed(pipeline, false, &mut |_| {}).unwrap()
}

/// The memory of a log that had this model from the start.
fn from_the_start(pipeline: &Pipeline, turns: &[&[TurnEvent]]) -> GraphCensus {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = pipeline.clone();
    pipeline.log.directory = home.path().join("log");
    pipeline.snapshot.directory.clear();
    let mut service = open(&pipeline);
    turns.iter().for_each(|turns| feed(&mut service, turns));
    census(&service)
}

/// A window whose record is divided into parts.
fn documents() -> Vec<TurnEvent> {
    let line = "Harbour report counts in this line some blue boats. ";
    let turns: String = (0..40)
        .map(|n| {
            let turn = serde_json::json!({"bank": "papers", "turn": n.to_string(), "speaker": "Ann", "session": "s",
                "text": format!("{n} {}", line.repeat(1_200)), "time": format!("2024-05-06T09:{n:02}:00Z")});
            format!("{turn}\n")
        })
        .collect();
    events(&turns)
}

#[test]
fn a_memory_moves_to_another_model_and_takes_more_turns() {
    for (extra, snapshots) in [("log.partitions = 2", true), ("extract.unit_turns = 1", true), ("", false)] {
        let home = tempfile::tempdir().unwrap();
        let mut first = pipeline(home.path(), extra);
        // Either a record in parts, or snapshots.
        let papers = if snapshots { Vec::new() } else { documents() };
        if snapshots {
            first.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
        }
        let all = sample();
        let (before, after) = all.split_at(150);
        let mut service = open(&first);
        feed(&mut service, before);
        feed(&mut service, &papers);
        assert_eq!(service.replica().snapshot().unwrap().is_some(), snapshots);
        let (memory, generation) = (census(&service), service.log().generation());
        assert_eq!(generation, 1);
        drop(service);

        // A pipeline with another model writes nothing; its error names the command.
        let second = with(&first, OTHER);
        let mut refused = open(&second);
        let more = events(&lines(BANK, "later", &[("m1", "Ann", "Marta bought a green kayak")]));
        refused.log().append_turns(&more).unwrap();
        let error = refused.catch_up().unwrap_err().to_string();
        assert!(error.contains("ripplemem reembed") && error.contains("fixed ("), "{error}");
        drop(refused);
        let mut service = open(&first);
        assert_eq!(census(&service), memory, "nothing was mixed");
        service.catch_up().unwrap();
        drop(service);

        let done = reembed(&second);
        assert_eq!((done.name.as_str(), done.windows, done.kept), ("memory-2", done.written, true), "{extra}");
        let mut service = open(&second);
        assert_eq!(census(&service), from_the_start(&second, &[before, &papers, &more]), "{extra}");
        feed(&mut service, after);
        feed(&mut service, before);
        let whole = from_the_start(&second, &[before, &papers, &more, after]);
        assert_eq!(census(&service), whole, "{extra}");
        assert!(!ask(&service, BANK, "Which books has Marta recommended?").units.is_empty());
        assert_eq!(service.replica().snapshot().unwrap().is_some(), snapshots);
        drop(service);
        assert_eq!(census(&open(&second)), whole, "from its own snapshots");
        // Vectors of two models are never compared.
        let error = refusal(&first);
        assert!(error.contains("ripplemem reembed") && error.contains("other ("), "{error}");
        // A second run only removes the old generation.
        let again = ripplemem::reembed(&second, true, &mut |_| {}).unwrap();
        assert_eq!((again.from, again.dropped), (None, vec!["memory".to_owned()]));
        assert_eq!(census(&open(&second)), whole);
        // Back to the first model makes a third generation.
        let done = ripplemem::reembed(&first, true, &mut |_| {}).unwrap();
        assert_eq!((done.name.as_str(), done.dropped), ("memory-3", vec!["memory-2".to_owned()]));
        assert_eq!(census(&open(&first)), from_the_start(&first, &[before, &papers, &more, after]));
    }
}

fn refusal(pipeline: &Pipeline) -> String {
    let question = types::model::Question::new(types::model::Bank::parse(BANK).unwrap(), "Which books?");
    open(pipeline).ask(&question).unwrap_err().to_string()
}

/// A run that was killed at any moment is continued, and until the switch the old memory answers.
#[test]
fn a_killed_reembedding_is_continued() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let origin = tempfile::tempdir().unwrap();
    let mut first = pipeline(origin.path(), "");
    first.embed.read_turns = 400;
    large(&mut open(&first));
    let old = census(&open(&first));
    let home = |name: &str, model: &str| {
        let directory = tempfile::tempdir().unwrap();
        let toml = format!("version = 1\nlog.directory = \"log\"\nlog.fsync = \"system\"\n{model}");
        let file = write(&directory.path().join(name), toml);
        let copied = Command::new("cp").arg("-r").arg(&first.log.directory).arg(directory.path().join("log")).status();
        assert!(copied.unwrap().success());
        (directory, file)
    };
    let start = |file: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        let command = command.args(["reembed", "--pipeline", file.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (started, (undisturbed, file)) = (Instant::now(), home("p.toml", OTHER));
    assert!(start(&file).wait().unwrap().success());
    let takes = started.elapsed().as_millis() as u64;
    let new = census(&open(&Pipeline::read(&file).unwrap()));
    assert_ne!(new, old);
    drop(undisturbed);
    let (mut partial, mut switched) = (0, 0);
    for round in 0..rounds {
        let mut dice = Dice(round);
        let (directory, file) = home("p.toml", OTHER);
        for _ in 0..1 + dice.below(3) {
            let mut child = start(&file);
            std::thread::sleep(Duration::from_millis(dice.below(takes + 1)));
            child.kill().unwrap();
            child.wait().unwrap();
            let mut before = first.clone();
            before.log.directory = directory.path().join("log");
            let service = open(&before);
            if service.log().generation() == 1 {
                assert_eq!(census(&service), old, "round {round}");
                assert!(!ask(&service, BANK, "Who sings in the evening?").units.is_empty(), "round {round}");
            }
        }
        let pipeline = Pipeline::read(&file).unwrap();
        let done = reembed(&pipeline);
        partial += u64::from(done.from.is_some() && done.written < done.windows);
        switched += u64::from(done.from.is_none());
        assert_eq!(census(&open(&pipeline)), new, "round {round}");
    }
    println!("{takes} ms, killed in {rounds} rounds; {partial} were continued in the middle, {switched} had switched");
}

/// From the deterministic embedder to the model that users have.
#[test]
fn a_memory_moves_to_the_real_model() {
    let home = tempfile::tempdir().unwrap();
    let first = pipeline(home.path(), "");
    let second = with(&first, "");
    if let Err(error) = ripplemem::check_model(&second) {
        return skip("reembed::a_memory_moves_to_the_real_model", &error.to_string());
    }
    let turns: Vec<TurnEvent> = sample().into_iter().take(40).collect();
    feed(&mut open(&first), &turns);
    reembed(&second);
    assert_eq!(census(&open(&second)), from_the_start(&second, &[&turns]));
}

/// On Kafka the old service answers and takes turns until the switch. Then it stops, and a service
/// with the new model extracts every turn that the old one had not.
#[test]
fn a_memory_on_kafka_moves_while_turns_arrive() {
    let _turn = turn();
    let Some(broker) = Broker::shared("reembed::a_memory_on_kafka_moves_while_turns_arrive") else { return };
    let home = Home::new(&broker, "anew", "");
    let other = Home::new(&broker, "anew", &OTHER.replace("embed.model = \"other\"\n", ""));
    other.change("embed.model = \"fixed\"", "embed.model = \"other\"");
    let (all, log) = (sample(), home.log());
    let (before, after) = all.split_at(150);
    let service = home.run();
    log.append_turns(before).unwrap();
    home.extracted();
    // A service with the other model writes nothing.
    fails(&ripplemem(&["run", other.path()]), 1, &["ripplemem reembed", "fixed (", "other ("]);
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        let command = command.args(["reembed", "--pipeline", other.path()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut dice = Dice(5);
    for _ in 0..3 {
        let mut child = start();
        std::thread::sleep(Duration::from_millis(100 + dice.below(500)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if home.log().generation() == 1 {
        let asked = ripplemem(&["ask", "Which books?", "--bank", BANK, "--pipeline", home.path()]);
        assert!(asked.status.success(), "{}{}", String::from_utf8_lossy(&asked.stderr), home.told());
    }
    let child = start();
    for some in after.chunks(2) {
        log.append_turns(some).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("memory-2"), "{told}{}", String::from_utf8_lossy(&output.stderr));
    wait(&|| home.told(), || home.told().contains("has moved to anew.memory-2"));
    assert!(home.told().contains("other ("), "{}", home.told());
    service.kill();
    // The old model is refused; the new one extracts the turns that are left.
    fails(&ripplemem(&["run", home.path()]), 1, &["ripplemem reembed", "other ("]);
    let service = other.run();
    other.extracted();
    let mut whole = pipeline(tempfile::tempdir().unwrap().path(), "");
    whole.embed.read_turns = 16;
    assert_eq!(other.census(), from_the_start(&with(&whole, OTHER), &[&all]), "{}", other.told());
    let asked = ripplemem(&["ask", "Which books?", "--bank", BANK, "--pipeline", other.path()]);
    assert!(asked.status.success(), "{}{}", String::from_utf8_lossy(&asked.stderr), other.told());
    let dropped = ripplemem(&["reembed", "--drop-old", "--pipeline", other.path()]);
    let told = String::from_utf8_lossy(&dropped.stdout).into_owned();
    assert!(told.contains("anew.memory: removed"), "{told}{}", String::from_utf8_lossy(&dropped.stderr));
    log.append_turns(&events(&lines(BANK, "later", &[("m1", "Ann", "Marta bought a green kayak")]))).unwrap();
    other.extracted();
    let text = tap(&other);
    assert!(text.contains("green kayak") && other.log().generation() == 2, "{}", other.told());
    assert!(other.log().end(Topic::Memory, 0).is_ok());
    service.stop();
}

fn tap(home: &Home) -> String {
    String::from_utf8(ripplemem(&["tap", "memory", "--pipeline", home.path()]).stdout).unwrap()
}
