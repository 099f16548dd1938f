//! `ripplemem ingest`.
//!
//! In: a source. Out: its turns in the memory; with the log on Kafka, in the turns topic, from
//! which a running service takes them; with `--dry-run`, only a report of what would come. Agents' transcripts are
//! stored once the user has seen that report and agrees. Exit code 3 when something was rejected.

use std::{
    collections::BTreeMap,
    io::{BufRead, IsTerminal},
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use ingest::{IngestReport, ModelExtractionReport};
use logs::Topic;
use pipeline::Progress;
use serde_json::value::to_raw_value;
use server::{
    MemoryHttpClient,
    api::{MemoryDigest, PutTurnsRequest, PutTurnsResponse, ServiceStatus},
};
use sources::{AGENTS, AgentPauses, SourceSummary, TurnSource};
use terminal::{REJECTED, print, say, with_progress};
use types::config::{LogKind, Pipeline, SourceSettings};

use super::{
    digest::{digest_of, digest_text},
    language_counting_source::LanguageCountingSource,
    memory_access::{MemoryAccess, open_or_reach, status_of},
    memory_args::MemoryArgs,
    reading_report::print_reading,
    source_args::SourceArgs,
};

/// The maximum number of turns in a request to another process.
const SENT_TURNS: usize = 1_000;
/// The number of bytes after which such a request is sent; its last turn may exceed this.
const SENT_BYTES: usize = 4 << 20;
/// How often another process is asked what the language model has read.
const MODEL_LOOK: Duration = Duration::from_millis(100);

/// Read turns from a file or from standard input into the memory.
#[derive(Args)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Store nothing and open no log: print how many turns would come, with banks, speakers and
    /// times, and what would be left out and why.
    #[arg(long)]
    dry_run: bool,
    /// Agents: store without asking.
    #[arg(long)]
    yes: bool,
    /// With --dry-run: print JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
}

impl IngestArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let settings = self.source.settings()?;
        let pipeline = self.memory.pipeline()?;
        if self.dry_run {
            return dry_run(&pipeline, &settings, self.json);
        }
        if settings.format == AGENTS {
            let pauses = AgentPauses::of(&settings.path)?;
            if let Some(since) = pauses.since() {
                bail!("reading is paused since {since}; `ripplemem agents resume` ends the pause");
            }
            if !self.yes && !agrees(&pipeline, &settings)? {
                print("nothing was stored\n")?;
                return Ok(ExitCode::SUCCESS);
            }
        }
        ingest(&pipeline, &settings)
    }
}

/// Shows what would be stored of agents' transcripts, and asks whether it may.
///
/// # Errors
/// When there is no terminal to ask on.
fn agrees(pipeline: &Pipeline, settings: &SourceSettings) -> Result<bool> {
    let summary = summary_of(pipeline, settings)?;
    print(&summary.text())?;
    let (turns, banks) = (summary.turns, summary.banks.len());
    let input = std::io::stdin();
    ensure!(
        input.is_terminal(),
        "nothing was stored; --yes stores these {turns} turns, --only and --except choose programs, projects and \
         directories"
    );
    say(&format!("store these {turns} turns in {banks} banks? Type yes."));
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// Counts what a source holds.
fn dry_run(pipeline: &Pipeline, settings: &SourceSettings, json: bool) -> Result<ExitCode> {
    let summary = summary_of(pipeline, settings)?;
    match json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(&summary)?))?,
        false => print(&summary.text())?,
    }
    Ok(if summary.rejected > 0 { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

fn summary_of(pipeline: &Pipeline, settings: &SourceSettings) -> Result<SourceSummary> {
    let mut source = sources::open(settings)?;
    let mut heard = LanguageCountingSource::of(&mut *source);
    let mut summary = with_progress(|progress| {
        SourceSummary::of(&mut heard, |at| {
            progress(Progress { doing: "reading", done: at.done, total: at.total, unit: at.unit });
        })
    })
    .with_context(|| heard.describe())?;
    summary.notices.extend(heard.notices(pipeline));
    Ok(summary)
}

/// Reads a source to its end.
pub(crate) fn ingest(pipeline: &Pipeline, settings: &SourceSettings) -> Result<ExitCode> {
    let mut source = sources::open(settings)?;
    source.hide_ids(logs::id_salt(&pipeline.log)?);
    if let Some(notice) = source.notice() {
        say(&notice);
    }
    if pipeline.log.kind == LogKind::Kafka {
        return hand_on(pipeline, &mut *source, |source| append_to_kafka(pipeline, source));
    }
    let mut service = match open_or_reach(pipeline)? {
        MemoryAccess::Here(service) => service,
        MemoryAccess::There(reached) => {
            return hand_on(pipeline, &mut *source, |source| send(&reached, pipeline, source));
        }
    };
    let ingested = with_progress(|progress| service.ingest(&mut *source, progress));
    print_left_out(&*source);
    let IngestReport { events, rejects, not_kept, stale, windows, units, by_model, refused } =
        ingested.with_context(|| source.describe())?;
    print(&format!(
        "{}: {events} events, {windows} windows closed, {units} units written, {rejects} rejected\n",
        source.describe()
    ))?;
    say_not_kept(not_kept, stale);
    let finished = with_progress(|progress| service.wait_for_model(progress));
    service.replica().snapshot()?;
    let finished = finished?;
    let finished =
        ModelExtractionReport { read: finished.read + by_model, refused: finished.refused + refused, ..finished };
    let all_usable = print_reading(pipeline, &finished, "these windows keep the rules' units; the next run continues")?;
    print(&digest_text(&digest_of(&service, None)?, false))?;
    finish(pipeline, rejects, all_usable)
}

/// Passes turns on to another process. Which turns its model does not read is only in that process's log lines, so this
/// command prints it, too.
fn hand_on(
    pipeline: &Pipeline,
    source: &mut dyn TurnSource,
    hand: impl FnOnce(&mut dyn TurnSource) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let mut heard = LanguageCountingSource::of(source);
    let code = hand(&mut heard);
    heard.notices(pipeline).iter().for_each(|notice| say(notice));
    code
}

/// Reports what was rejected or not usable; returns the exit code.
fn finish(pipeline: &Pipeline, rejects: u64, all_usable: bool) -> Result<ExitCode> {
    if !all_usable {
        say("some responses of the language model could not be used; the dead-letter topic says why");
    }
    if rejects > 0 {
        say(&format!(
            "{rejects} records were rejected; the dead-letter topic in {} says why",
            pipeline.log.directory.display()
        ));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(if all_usable { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}

/// Sends a source to the process that has the memory open, and waits until its answers reflect it. The counts of
/// windows, units and rejected turns include everything that the process made in that time, even from other senders.
fn send(reached: &MemoryHttpClient, pipeline: &Pipeline, source: &mut dyn TurnSource) -> Result<ExitCode> {
    let before = status_of(reached)?;
    let (mut events, mut rejects) = (0, 0);
    with_progress(|progress| -> Result<()> {
        while let Some(batch) = source.next(pipeline.embed.read_turns).with_context(|| source.describe())? {
            events += batch.events.len();
            rejects += batch.rejects.len() as u64;
            let mut put = PutTurnsRequest { dead_letters: batch.rejects, ..PutTurnsRequest::default() };
            let mut bytes = 0;
            for event in &batch.events {
                let turn = to_raw_value(event)?;
                bytes += turn.get().len();
                put.turns.push(turn);
                if bytes > SENT_BYTES || put.turns.len() == SENT_TURNS {
                    let _: PutTurnsResponse = reached.post("/v1/turns", &std::mem::take(&mut put))?;
                    bytes = 0;
                }
            }
            let _: PutTurnsResponse = reached.post("/v1/turns", &put)?;
            let at = source.progress();
            progress(Progress { doing: "sending", done: at.done, total: at.total, unit: at.unit });
        }
        Ok(())
    })?;
    print_left_out(source);
    let after = status_of(reached)?.after;
    let after = Some(after.as_str()).filter(|after| !after.is_empty());
    wait_until_reflected(reached, after)?;
    let mut now = status_of(reached)?;
    while now.waiting_for_model > 0 && now.problem.is_none() {
        std::thread::sleep(MODEL_LOOK);
        now = status_of(reached)?;
    }
    rejects += now.rejected - before.rejected;
    print(&format!(
        "{}: {events} events, {} windows closed, {} units written, {rejects} rejected\n",
        source.describe(),
        now.windows - before.windows,
        now.units - before.units,
    ))?;
    say_not_kept(now.not_kept - before.not_kept, now.stale - before.stale);
    let finished = ModelExtractionReport {
        read: now.read_by_model - before.read_by_model,
        refused: now.refused_by_model - before.refused_by_model,
        left: now.waiting_for_model,
        problem: now.problem,
    };
    let all_usable = print_reading(pipeline, &finished, "these windows keep the rules' units until it is over")?;
    print(&digest_text(&reached.get("/v1/digest", &[])?, false))?;
    finish(pipeline, rejects, all_usable)
}

/// Waits until answers reflect what was sent. A problem that delays the service, such as an unavailable endpoint, is
/// reported once, while the service tries again.
fn wait_until_reflected(reached: &MemoryHttpClient, after: Option<&str>) -> Result<()> {
    let (waits, is_over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut said = None;
            while is_over.recv_timeout(MODEL_LOOK) == Err(RecvTimeoutError::Timeout) {
                let Ok(ServiceStatus { behind, problem: Some(problem), .. }) = status_of(reached) else { continue };
                if said.as_ref() != Some(&problem) {
                    say(&format!("{behind} turns wait in the service, which tries again: {problem}"));
                    said = Some(problem);
                }
            }
        });
        let reflected = reached.get::<MemoryDigest>("/v1/digest", &[("after", after), ("wait_ms", Some("600000"))]);
        drop(waits);
        reflected.map(drop)?;
        Ok(())
    })
}

/// Reports what the source left out or changed; `--dry-run` reports more.
fn print_left_out(source: &dyn TurnSource) {
    let counts = source.counts();
    let redacted = counts.redacted.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    for (what, counts) in [("skipped", counts.skipped_by_kind()), ("unread", counts.unread), ("redacted", redacted)] {
        let counts: BTreeMap<String, u64> = counts;
        let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if !parts.is_empty() {
            say(&format!("{what}: {}", parts.join(", ")));
        }
    }
    if !counts.trimmed.is_empty() {
        say(&format!("trimmed: {}; a dry run shows some of it", counts.trimmed.counts()));
    }
    if counts.cut > 0 {
        say(&format!("{} texts were cut, because they are too long for a turn", counts.cut));
    }
    for warning in &counts.warnings {
        say(warning);
    }
}

/// Says how many turns were not kept, and how many records changed nothing else.
fn say_not_kept(not_kept: u64, stale: u64) {
    let outdated = stale.saturating_sub(not_kept);
    if outdated > 0 {
        say(&format!(
            "{outdated} records changed nothing, because a newer version or the deletion of their turn stands already"
        ));
    }
    if not_kept > 0 {
        say(&format!(
            "{not_kept} turns were not kept, because turns with their ids were forgotten; what is to be kept all the \
             same needs another id, or after a platform's deletion a higher version"
        ));
    }
}

/// Appends a source to the turns topic.
fn append_to_kafka(pipeline: &Pipeline, source: &mut dyn TurnSource) -> Result<ExitCode> {
    let log = logs::open(&pipeline.log)?;
    let (mut events, mut rejects) = (0, 0);
    with_progress(|progress| -> Result<()> {
        while let Some(batch) = source.next(pipeline.embed.read_turns).with_context(|| source.describe())? {
            log.append_dead_letters(&batch.rejects)?;
            log.append_turns(&batch.events)?;
            events += batch.events.len();
            rejects += batch.rejects.len();
            let at = source.progress();
            progress(Progress { doing: "loading", done: at.done, total: at.total, unit: at.unit });
        }
        Ok(())
    })?;
    print_left_out(source);
    print(&format!("{}: {events} events in the turns topic, {rejects} rejected\n", source.describe()))?;
    for partition in 0..log.partitions() {
        if let Some(last) = log.end(Topic::Turns, partition)?.checked_sub(1) {
            say(&format!("an answer includes all of partition {partition} with: ask --after {partition}:{last}"));
        }
    }
    if rejects > 0 {
        say(&format!("{rejects} records were rejected; `ripplemem tap dead-letters` says why"));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(ExitCode::SUCCESS)
}
