//! The command line: the only place that prints and exits.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit
//! code: 0 done; 1 failed; 2 wrong usage; 3 done, but some input was rejected; 78 the
//! pipeline file is not valid.

use std::{
    io::{IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ripplemem::{
    config::{ConfigError, Fsync, LogKind, Pipeline, RULES, SourceSettings},
    eval::{self, Calibration},
    log::{KafkaLog, Log, Topic},
    memory::{GraphEdge, LiveUnit, UnitBody},
    model::{Bank, EventTime, ExportDigest, Question},
    pipeline::{self, Exported, Finished, Imported, Ingested, Progress, Reembedded, Replay, ReplayRequest, Service},
    schema, serve,
    snapshot::{AsOf, Diff, Table},
    source::{self, Source},
};

mod arguments;
#[path = "main/ask.rs"]
mod ask;
#[path = "main/llm.rs"]
mod llm;

use arguments::{Cli, Command, MemoryArgs, point};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REJECTED: u8 = 3;
const BAD_CONFIGURATION: u8 = 78;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            if !closed_pipe(&error) {
                say(&format!("{error:#}"));
            }
            ExitCode::from(if error.is::<ConfigError>() { BAD_CONFIGURATION } else { 1 })
        }
    }
}

/// Whether the reader of our output went away, which is no failure to speak of.
fn closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run { pipeline } => {
            let pipeline = Pipeline::read(&pipeline)?;
            if pipeline.log.kind == LogKind::Kafka {
                return run_service(&pipeline);
            }
            let settings = pipeline.source.clone().context("source: missing; name a [source], or use `ingest`")?;
            ingest(&pipeline, &settings, None)
        }
        Command::Ingest { source, memory } => {
            let (source, bank) = source.settings()?;
            ingest(&memory.pipeline()?, &source, bank.as_ref())
        }
        Command::Ask { question, bank, at, after, as_of, trace, json, answer, memory } => {
            let asked_at = at.as_deref().map(EventTime::parse).transpose()?;
            let question = Question { bank: Bank::parse(&bank)?, text: question, asked_at };
            let after = after
                .map(|text| {
                    serve::parse_after(&text).with_context(|| format!("--after {text:?}: not PARTITION:OFFSET"))
                })
                .transpose()?;
            let as_of = as_of.as_deref().map(|text| point("--as-of", text)).transpose()?;
            let form = match (json, trace, answer) {
                (true, ..) => ask::Form::Json,
                (_, true, _) => ask::Form::Trace,
                (.., true) => ask::Form::Answer,
                _ => ask::Form::Context,
            };
            ask::ask(&memory.pipeline()?, &question, after, as_of, form)
        }
        Command::Reextract { bank, memory } => llm::reextract(&memory.pipeline()?, &Bank::parse(&bank)?),
        Command::Estimate { source, pipeline, json } => {
            let (source, bank) = source.settings()?;
            let pipeline = MemoryArgs { pipeline, data: None, snapshots: None }.pipeline()?;
            llm::estimate(&pipeline, &source, bank.as_ref(), json)
        }
        Command::Cost { bank, windows, json, memory } => {
            let bank = bank.as_deref().map(Bank::parse).transpose()?;
            llm::cost(&memory.pipeline()?, bank.as_ref(), windows, json)
        }
        Command::Snapshot { memory } => snapshot(&memory.pipeline()?),
        Command::Diff { bank, from, to, json, memory } => {
            let to = to.as_deref().map_or(Ok(AsOf::Offset(u64::MAX)), |text| point("--to", text))?;
            diff(&memory.pipeline()?, &Bank::parse(&bank)?, point("--from", &from)?, to, json)
        }
        Command::Export { bank, to, memory } => export(&memory.pipeline()?, &Bank::parse(&bank)?, &to),
        Command::Import { file, memory } => import(&memory.pipeline()?, &file),
        Command::Reembed { drop_old, memory } => reembed(&memory.pipeline()?, drop_old),
        Command::Calibrate { files, format, bank, zone, pipeline, target, json } => {
            let bank = bank.as_deref().map(Bank::parse).transpose()?;
            let source = |path: &PathBuf| SourceSettings {
                format: format.clone(),
                path: path.clone(),
                zone: zone.clone(),
                only: Vec::new(),
            };
            let sources: Vec<SourceSettings> = files.iter().map(source).collect();
            let mut pipeline = MemoryArgs { pipeline, data: None, snapshots: None }.pipeline()?;
            if let Some(target) = target {
                pipeline.memory.target_semantic_choices = target;
            }
            calibrate(pipeline, &sources, bank.as_ref(), json)
        }
        Command::Digest { bank, json, memory } => {
            let bank = bank.as_deref().map(Bank::parse).transpose()?;
            let service = open(&memory.pipeline()?)?;
            print(&digest(&service, bank.as_ref(), json)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Tap { topic, last, follow, memory } => tap(&memory.pipeline()?, &topic, last, follow),
        Command::Replay { to, from, topic, partition, by_bank, memory } => {
            let table = Table::parse(&topic).with_context(|| {
                let known: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
                format!("--topic {topic:?} cannot be replayed; write one of {}", known.join(", "))
            })?;
            let request = ReplayRequest { table, to: &to, partition, from: from.as_deref(), by_bank };
            replay(&memory.pipeline()?, &request)
        }
        Command::Lag { json, memory } => {
            let lags = serve::lag(&memory.pipeline()?)?;
            if json {
                print(&format!("{}\n", serde_json::to_string(&lags)?))?;
            } else {
                print("partition     position          end          lag\n")?;
                for serve::Lag { partition, position, end, lag } in lags {
                    print(&format!("{partition:>9} {position:>12} {end:>12} {lag:>12}\n"))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Health { url } => health(&url),
        Command::Eval(args) => {
            let (json, report, calibration) = (args.json, args.report.clone(), args.calibration.clone());
            evaluate(&args.request()?, json, report.as_deref(), calibration.as_deref())
        }
        Command::Validate { pipeline: path, file_only } => {
            let pipeline = Pipeline::read(&path)?;
            print(&format!("{}: valid (profile {})\n", path.display(), pipeline.profile))?;
            if !file_only {
                print(&format!("model: {}\n", pipeline::check_model(&pipeline)?))?;
                llm::validate(&pipeline)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Synonyms { write, pipeline } => {
            let pipeline = MemoryArgs { pipeline, data: None, snapshots: None }.pipeline()?;
            let table = pipeline::synonym_table(&pipeline)?;
            std::fs::write(&write, table).with_context(|| write.display().to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema { topic, write } => schemas(topic.as_deref(), write.as_deref()),
    }
}

fn open(pipeline: &Pipeline) -> Result<Service> {
    let bar = Bar::new();
    let service = Service::open(pipeline, &mut |p| bar.show(p));
    bar.clear();
    let mut service = service?;
    service.take_warnings().iter().for_each(|w| say(w));
    Ok(service)
}

/// Starts this process anew with two arenas of the system's allocator, unless it was told
/// otherwise. A Kafka client has threads of its own, each thread gets an arena, and an arena
/// keeps what a client leaves behind: with every partition that is taken over, more.
#[cfg(target_os = "linux")]
fn limit_arenas() -> Result<()> {
    use std::os::unix::process::CommandExt;
    const ARENAS: &str = "MALLOC_ARENA_MAX";
    if std::env::var_os(ARENAS).is_none() {
        let mut arguments = std::env::args_os();
        let mut anew = std::process::Command::new(std::env::current_exe()?);
        anew.arg0(arguments.next().unwrap_or_default()).args(arguments).env(ARENAS, "2");
        return Err(anew.exec()).context("the service could not be started anew; set MALLOC_ARENA_MAX=2");
    }
    Ok(())
}

/// A service on Kafka, until the process is told to end.
fn run_service(pipeline: &Pipeline) -> Result<ExitCode> {
    #[cfg(target_os = "linux")]
    limit_arenas()?;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    ctrlc::set_handler(|| stop.store(true, Ordering::Relaxed)).context("signals cannot be handled")?;
    serve::run(pipeline, stop, &|text| say(text))?;
    say("stopped");
    Ok(ExitCode::SUCCESS)
}

fn tap(pipeline: &Pipeline, topic: &str, last: Option<usize>, follow: bool) -> Result<ExitCode> {
    let known = if pipeline.log.kind == LogKind::Kafka { &serve::TOPICS[..] } else { &serve::TOPICS[..3] };
    if !known.contains(&topic) {
        anyhow::bail!("{topic:?} is not a topic of this log; write one of {}", known.join(", "));
    }
    let mut told = Ok(());
    serve::tap(pipeline, topic, last, follow, &mut |record| {
        told = serde_json::to_string(record).map_err(Into::into).and_then(|line| print(&format!("{line}\n")));
        told.is_ok()
    })?;
    told.map(|()| ExitCode::SUCCESS)
}

fn replay(pipeline: &Pipeline, request: &ReplayRequest<'_>) -> Result<ExitCode> {
    let mut replay = Replay::open(&pipeline.log, request)?;
    if let Some(notice) = replay.notice() {
        say(notice);
    }
    let bar = Bar::new();
    let (total, before) = (replay.left(), replay.held().files.len());
    let mut rows = 0;
    loop {
        let read = replay.step(false)?;
        if read == 0 {
            break;
        }
        rows += read;
        let done = total.saturating_sub(replay.left());
        bar.show(Progress { doing: "replaying", done, total: Some(total), unit: "offsets" });
    }
    replay.finish()?;
    bar.clear();
    let held = replay.held();
    let next: Vec<String> = held.next.iter().map(|(partition, next)| format!("{partition}:{next}")).collect();
    print(&format!(
        "{}: {rows} records read, {} files more, {} rows in {} files in all; goes on at {}\n",
        held.topic,
        held.files.len() - before,
        held.files.iter().map(|file| file.rows).sum::<u64>(),
        held.files.len(),
        next.join(", ")
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Nobody listens at an address.
#[derive(Debug, thiserror::Error)]
#[error("{address}: nobody answers")]
struct Unanswered {
    address: String,
    source: std::io::Error,
}

/// How long a health check may take.
const HEALTH: Duration = Duration::from_secs(5);
/// How long a service may take for what it is asked to do.
const WORK: Duration = Duration::from_secs(600);

/// What a service answers. By hand: one request needs no client library.
fn request(method: &str, url: &str, body: &str, patience: Duration) -> Result<String> {
    let rest = url.strip_prefix("http://").with_context(|| format!("--url {url:?}: not http://ADDRESS:PORT/PATH"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let unanswered = |source| Unanswered { address: address.to_owned(), source };
    let mut stream = std::net::TcpStream::connect(address).map_err(unanswered)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("{address}: no whole answer"))?;
    let word = answer.split("\r\n\r\n").nth(1).unwrap_or_default().trim();
    if answer.starts_with("HTTP/1.1 200") {
        return Ok(word.to_owned());
    }
    anyhow::bail!("{url}: {}", if word.is_empty() { "not an answer of this service" } else { word })
}

fn health(url: &str) -> Result<ExitCode> {
    print(&format!("{}\n", request("GET", url, "", HEALTH)?))?;
    Ok(ExitCode::SUCCESS)
}

fn ingest(pipeline: &Pipeline, settings: &SourceSettings, bank: Option<&Bank>) -> Result<ExitCode> {
    let mut source = source::open(settings, bank)?;
    if let Some(notice) = source.notice() {
        say(&notice);
    }
    if pipeline.log.kind == LogKind::Kafka {
        return load(pipeline, &mut *source);
    }
    let mut service = open(pipeline)?;
    let bar = Bar::new();
    let done = service.ingest(&mut *source, &mut |p| bar.show(p));
    bar.clear();
    service.take_warnings().iter().for_each(|w| say(w));
    let Ingested { events, rejects, windows, units, by_model, refused } = done.with_context(|| source.describe())?;
    print(&format!(
        "{}: {events} events, {windows} windows closed, {units} units written, {rejects} rejected\n",
        source.describe()
    ))?;
    let bar = Bar::new();
    let read = service.finish(&mut |p| bar.show(p));
    bar.clear();
    service.take_warnings().iter().for_each(|w| say(w));
    service.snapshot()?;
    let read = read?;
    let read = Finished { read: read.read + by_model, refused: read.refused + refused, ..read };
    let whole = llm::finished(pipeline, &read, "the rules' units stand in, the next run goes on")?;
    print(&digest(&service, None, false)?)?;
    if !whole {
        say("some windows' units could not be used; the dead-letter topic says why");
    }
    if rejects > 0 {
        say(&format!(
            "{rejects} records were rejected; the dead-letter topic in {} says why",
            pipeline.log.directory.display()
        ));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}

/// Hands a source to the turns topic; a running service remembers it.
fn load(pipeline: &Pipeline, source: &mut dyn Source) -> Result<ExitCode> {
    let log = KafkaLog::open(&pipeline.log)?;
    let bar = Bar::new();
    let (mut events, mut rejects) = (0, 0);
    while let Some(batch) = source.next(pipeline.embed.read_turns).with_context(|| source.describe())? {
        log.append_dead_letters(&batch.rejects)?;
        log.append_turns(&batch.events)?;
        events += batch.events.len();
        rejects += batch.rejects.len();
        let at = source.progress();
        bar.show(Progress { doing: "loading", done: at.done, total: at.total, unit: at.unit });
    }
    bar.clear();
    print(&format!("{}: {events} events in the turns topic, {rejects} rejected\n", source.describe()))?;
    for partition in 0..log.partitions() {
        if let Some(last) = log.end(Topic::Turns, partition)?.checked_sub(1) {
            say(&format!("to ask when all of partition {partition} is remembered: --after {partition}:{last}"));
        }
    }
    if rejects > 0 {
        say(&format!("{rejects} records were rejected; `ripplemem tap dead-letters` says why"));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds a memory of the sources in a directory of its own, which is gone afterwards.
fn calibrate(mut pipeline: Pipeline, sources: &[SourceSettings], bank: Option<&Bank>, json: bool) -> Result<ExitCode> {
    let directory = tempfile::tempdir().context("no temporary directory could be made; set TMPDIR")?;
    pipeline.log.kind = LogKind::Embedded;
    pipeline.log.directory = directory.path().join("log");
    pipeline.log.fsync = Fsync::System;
    pipeline.snapshot.directory.clear();
    // No threshold depends on a language model: nothing is spent.
    RULES.clone_into(&mut pipeline.extract.extractor);
    let mut opened = sources.iter().map(|s| source::open(s, bank)).collect::<Result<Vec<_>, _>>()?;
    let mut service = open(&pipeline)?;
    let mut rejects = 0;
    for source in &mut opened {
        let bar = Bar::new();
        let done = service.ingest(&mut **source, &mut |p| bar.show(p));
        bar.clear();
        service.take_warnings().iter().for_each(|w| say(w));
        rejects += done.with_context(|| source.describe())?.rejects;
    }
    let (model, memory) = (&pipeline.embed.model, &pipeline.memory);
    let mut embedder = ripplemem::embed::open(&pipeline.embed, &pipeline.model())?;
    let units = eval::samples(service.log(), &mut |text| embedder.embed_query(text))?;
    let calibration = eval::calibrate(model, &units, memory.semantic_edges, memory.target_semantic_choices)?;
    if json {
        print(&format!("{}\n", serde_json::to_string_pretty(&calibration)?))?;
    } else {
        let Calibration { units, banks, choices, target_choices, chance, questions, .. } = &calibration;
        print(&calibration.table())?;
        print(&format!(
            "\n# {units} units of {banks} banks: {choices:.2} semantic choices a unit (target {target_choices}).\n\
             # {:.0} % of random pairs of one of {questions} questions and a unit match at or below the floor;\n\
             # as many of those questions find no unit of another turn above the ceiling.\n{}",
            chance * 100.0,
            calibration.toml(!pipeline.embed.models.contains_key(model))
        ))?;
    }
    if rejects > 0 {
        say(&format!("{rejects} records were rejected and left out; `ingest` keeps them as dead letters"));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn snapshot(pipeline: &Pipeline) -> Result<ExitCode> {
    let place = &pipeline.snapshot.directory;
    if place.is_empty() {
        anyhow::bail!("snapshot.directory: empty; name a place in the pipeline file, or with --snapshots");
    }
    let listen = &pipeline.metrics.listen;
    if pipeline.log.kind == LogKind::Kafka && !listen.is_empty() {
        // Two that write into one place disturb each other.
        match request("POST", &format!("http://{listen}/snapshot"), "", WORK) {
            Err(error) if error.is::<Unanswered>() => say(&format!("{error:#}; no service is asked for it")),
            told => return told.and_then(|told| print(&format!("{told}\n"))).map(|()| ExitCode::SUCCESS),
        }
    }
    let bar = Bar::new();
    let taken = pipeline::take_snapshot(pipeline, &mut |what| say(what), &mut |p| bar.show(p));
    bar.clear();
    print(&format!("{place}: {}\n", taken?.summary()))?;
    Ok(ExitCode::SUCCESS)
}

fn diff(pipeline: &Pipeline, bank: &Bank, from: AsOf, to: AsOf, json: bool) -> Result<ExitCode> {
    let Diff { from, to, units_came, units_went, edges_came, edges_went } =
        pipeline::diff(pipeline, bank, from, to, &mut |what| say(what))?;
    if json {
        let units = |units: &[Arc<LiveUnit>]| units.iter().map(|unit| (*unit.body).clone()).collect::<Vec<UnitBody>>();
        let edges = |edges: &[GraphEdge]| -> Vec<serde_json::Value> {
            let edge = |e: &GraphEdge| serde_json::json!({ "channel": e.channel, "a": e.a, "b": e.b, "weight": e.weight.as_f64() });
            edges.iter().map(edge).collect()
        };
        let value = serde_json::json!({
            "bank": bank, "from": from, "to": to,
            "units_came": units(&units_came), "units_went": units(&units_went),
            "edges_came": edges(&edges_came), "edges_went": edges(&edges_went),
        });
        print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (sign, units) in [("+", &units_came), ("-", &units_went)] {
        for unit in units {
            print(&format!("{sign} unit {} {}\n", unit.id, unit.body.restatement))?;
        }
    }
    for (sign, edges) in [("+", &edges_came), ("-", &edges_went)] {
        for GraphEdge { channel, a, b, weight, .. } in edges {
            print(&format!("{sign} {channel} edge {a} {b} {:.3}\n", weight.as_f64()))?;
        }
    }
    say(&format!(
        "from offset {from} to offset {to}: units +{} -{}, edges +{} -{}",
        units_came.len(),
        units_went.len(),
        edges_came.len(),
        edges_went.len()
    ));
    Ok(ExitCode::SUCCESS)
}

fn export(pipeline: &Pipeline, bank: &Bank, to: &Path) -> Result<ExitCode> {
    let bar = Bar::new();
    let done = pipeline::export(pipeline, bank, to, &mut |p| bar.show(p));
    bar.clear();
    let Exported { records, digest, behind } = done?;
    let bytes = std::fs::metadata(to).map_or(0, |file| file.len());
    print(&format!(
        "{}: bank {bank}: {records} records, {:.1} MB; {}\n",
        to.display(),
        bytes as f64 / 1e6,
        told(&digest)
    ))?;
    if behind > 0 {
        say(&format!(
            "up to {behind} turns of the bank's partition are not extracted yet; those of this bank are not in the file: \
             export again once `ripplemem lag` says 0"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn import(pipeline: &Pipeline, file: &Path) -> Result<ExitCode> {
    let bar = Bar::new();
    let done = pipeline::import(pipeline, file, &mut |p| bar.show(p));
    bar.clear();
    let Imported { header, written, there, digest, exported, differing } = done?;
    let bank = &header.bank;
    print(&format!("bank {bank}: {written} records written, {there} were there; {}\n", told(&digest)))?;
    if digest == exported {
        print("the same digest as where it comes from\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
    let settings: Vec<String> = differing
        .iter()
        .map(|(name, there, here)| format!("{name} ({} there, {} here)", number(*there), number(*here)))
        .collect();
    print(&format!(
        "the same units (hash {}); its edges are decided by settings that differ: {}. There it was: {}\n",
        digest.units_hash,
        settings.join(", "),
        told(&exported)
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn reembed(pipeline: &Pipeline, drop_old: bool) -> Result<ExitCode> {
    let bar = Bar::new();
    let done = pipeline::reembed(pipeline, drop_old, &mut |p| bar.show(p));
    bar.clear();
    let Reembedded { from, to, name, windows, written, dropped, kept } = done?;
    match from {
        Some(from) => print(&format!(
            "{name}: {windows} records with vectors of {} instead of {}, {written} of them written now\n",
            to.name, from.name
        ))?,
        None => print(&format!("{name}: nothing to do, no vector is of another model than {}\n", to.name))?,
    }
    for name in dropped {
        print(&format!("{name}: removed\n"))?;
    }
    if kept {
        say(
            "the memory of the old model is still there, with what will be taken back from now on: remove it, once you \
             do not want it back, by `ripplemem reembed --drop-old` with the same pipeline, and its snapshots by hand",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn told(digest: &ExportDigest) -> String {
    let ExportDigest { units, semantic_edges, structural_edges, hash, .. } = digest;
    format!("{units} units, {semantic_edges} semantic edges, {structural_edges} structural edges, hash {hash}")
}

fn evaluate(
    request: &eval::EvalRequest,
    json: bool,
    report: Option<&Path>,
    calibration: Option<&Path>,
) -> Result<ExitCode> {
    // Read before the work of minutes, so that a wrong file is told at once.
    let calibration: Option<Calibration> = calibration
        .map(|path| {
            let text = std::fs::read(path).with_context(|| path.display().to_string())?;
            let problem = || format!("{}: not what `calibrate --json` prints", path.display());
            serde_json::from_slice(&text).with_context(problem)
        })
        .transpose()?;
    let bar = Bar::new();
    let run = eval::evaluate(request, &mut |p| bar.show(p));
    bar.clear();
    let run = run?;
    if let Some(directory) = report {
        eval::report::write(directory, &run, calibration.as_ref())?;
        say(&format!("the report is {}", directory.join("report.md").display()));
    }
    if json {
        print(&format!("{}\n", serde_json::to_string_pretty(&run.result)?))?;
    } else {
        print(&eval::table(&run.result))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn digest(service: &Service, bank: Option<&Bank>, json: bool) -> Result<String> {
    let census = service.digest(bank)?.value;
    let hash = format!("{:032x}", census.hash);
    Ok(if json {
        let value = serde_json::json!({
            "units": census.units, "semantic_edges": census.semantic_edges,
            "structural_edges": census.structural_edges, "hash": hash,
        });
        format!("{value}\n")
    } else {
        format!(
            "memory: {} units, {} semantic edges, {} structural edges, hash {hash}\n",
            census.units, census.semantic_edges, census.structural_edges
        )
    })
}

fn schemas(topic: Option<&str>, write: Option<&Path>) -> Result<ExitCode> {
    if topic == Some("eval") {
        print(&schema::text(&schema::eval()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if topic == Some("bank") {
        print(&schema::text(&schema::bank()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = schema::schemas();
    if let Some(directory) = write {
        for (name, schema) in &all {
            let path = directory.join(format!("{name}.v1.json"));
            std::fs::write(&path, schema::text(schema)).with_context(|| path.display().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    match topic {
        None => print(&format!("{}\n", names.join("\n")))?,
        Some(topic) => {
            let (_, schema) = all
                .iter()
                .find(|(name, _)| *name == topic)
                .with_context(|| format!("{topic:?} is not a topic; write one of {}", names.join(", ")))?;
            print(&schema::text(schema))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// To a person, beside the results; a closed stderr is no reason to stop.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "ripplemem: {text}"));
}

/// A progress bar on stderr, when it is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let shown = std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(ProgressBar::with_draw_target(None, target))
    }

    fn show(&self, progress: Progress) {
        if let Some(total) = progress.total
            && self.0.length() != Some(total)
        {
            self.0.set_length(total);
            let shape = format!("{} {{wide_bar}} {{pos}}/{{len}} {} {{eta}}", progress.doing, progress.unit);
            self.0.set_style(ProgressStyle::with_template(&shape).unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        self.0.set_position(progress.done);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}
