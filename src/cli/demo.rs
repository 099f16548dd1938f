//! `ripplemem demo`.
//!
//! In: two sample dialogues, which are part of the program. Out: three questions with the context that an agent gets.
//! The first is about a conversation with an assistant, from which passages are quoted. The second is about the chats
//! of three friends: its evidence is in several turns, and all of them are quoted. The third is for the paper's
//! profile, whose first hop is narrow: it misses a part of the evidence, and the expansion finds the rest. The command
//! fails if no question of a sample shows this, so that the demo never claims what it does not show. With `--console`
//! both dialogues are then served, in each profile, until a signal ends it. Writes only below a temporary directory.

use std::{collections::BTreeSet, fs, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use memory::recall;
use models::embed::{asset_paths, setup};
use ripplemem::PipelineDriver;
use serde::Deserialize;
use terminal::{open_memory, print, say, with_progress};
use types::{
    config::{Pipeline, SourceSettings},
    model::{Bank, Evidence, Excerpt, Provenance, Question},
};

#[cfg(feature = "console")]
use super::demo_console::serve;

/// Show the sample: ingest two dialogues, and answer three questions about them.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Show for every question how each piece of its evidence was reached.
    #[arg(long)]
    trace: bool,
    /// Then serve both dialogues with the console, a page that shows all this, until Ctrl-C.
    #[cfg(feature = "console")]
    #[arg(long)]
    console: bool,
}

/// A dialogue, with questions about it.
struct DemoDialogue {
    turns: &'static str,
    questions: &'static str,
}

const ASSISTANT: DemoDialogue = DemoDialogue {
    turns: include_str!("../../tests/data/assistant.jsonl"),
    questions: include_str!("../../tests/data/assistant_questions.json"),
};
const FRIENDS: DemoDialogue = DemoDialogue {
    turns: include_str!("../../tests/data/sample.jsonl"),
    questions: include_str!("../../tests/data/sample_questions.json"),
};
/// The profile of the paper, and the model that it uses.
const PAPER: &str = "paper";
const PAPER_MODEL: &str = "all-MiniLM-L6-v2";

#[derive(Deserialize)]
struct DemoQuestions {
    bank: Bank,
    questions: Vec<DemoQuestion>,
}

#[derive(Deserialize)]
struct DemoQuestion {
    question: String,
    answer: String,
    evidence: BTreeSet<String>,
}

/// What an answer shows, in words; `None` if it does not show that.
type DemoVerdict = fn(&Evidence, &BTreeSet<String>) -> Option<String>;

impl DemoArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let directory =
            tempfile::tempdir().context("a temporary directory cannot be made; set TMPDIR to one with space")?;
        let settings = Pipeline::parse("version = 1").map_err(anyhow::Error::msg)?.embed;
        show(directory.path(), "default", &ASSISTANT, passages, self.trace)?;
        show(directory.path(), "default", &FRIENDS, quoted, self.trace)?;
        let has_paper = asset_paths::model_directory(&settings, PAPER_MODEL).is_ok();
        if has_paper {
            show(directory.path(), PAPER, &FRIENDS, completed, true)?;
        } else {
            say(&format!(
                "left out: a question for the paper's profile, whose model {PAPER_MODEL} is not here; \
                 `ripplemem setup --model {PAPER_MODEL} --model {}` installs it",
                setup::DEFAULT_MODEL
            ));
        }
        #[cfg(feature = "console")]
        if self.console {
            let profiles = if has_paper { &["default", PAPER][..] } else { &["default"] };
            serve(directory.path(), profiles, &[ASSISTANT.turns, FRIENDS.turns])?;
        } else {
            print("`ripplemem demo --console` shows all this in a browser, step by step.\n")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Ingests a sample, then shows the first of its questions that has a verdict.
fn show(directory: &Path, profile: &str, sample: &DemoDialogue, verdict: DemoVerdict, trace: bool) -> Result<()> {
    let DemoQuestions { bank, questions } = serde_json::from_str(sample.questions).context("the sample's questions")?;
    let pipeline = format!("version = 1\nprofile = {profile:?}\n");
    let mut pipeline = Pipeline::parse(&pipeline).map_err(anyhow::Error::msg)?;
    pipeline.log.directory = directory.join(profile);
    let mut service = open_memory(&pipeline)?;
    let turns = ingest(&mut service, directory, sample.turns)?;
    print(&format!("{bank}: {turns} turns are read (profile {profile})\n\n"))?;
    for DemoQuestion { question, answer, evidence } in questions {
        let found = service.ask(&Question::new(bank.clone(), question.clone()))?;
        let Some(finding) = verdict(&found, &evidence) else { continue };
        print(&if trace { recall::render_trace(&found) } else { found.context })?;
        print(&format!("\nQuestion: {question}\nExpected: {answer}\n{finding}\n\n"))?;
        return Ok(());
    }
    bail!("none of the questions of {bank} shows the behaviour that the {profile} profile is meant to show")
}

/// Reads a sample to its end; returns how many turns it has.
fn ingest(service: &mut PipelineDriver, directory: &Path, turns: &str) -> Result<u64> {
    let path = directory.join("turns.jsonl");
    fs::write(&path, turns).with_context(|| format!("{}: cannot be written", path.display()))?;
    let mut source = sources::open(&SourceSettings::new("jsonl", &path))?;
    let ingested = with_progress(|progress| service.ingest(&mut *source, progress))?;
    Ok(ingested.events)
}

/// All turns of evidence are in the context, and a long turn is quoted by passages.
fn passages(found: &Evidence, evidence: &BTreeSet<String>) -> Option<String> {
    let long: BTreeSet<&String> = excerpts(found).filter(|e| e.range.is_some()).map(|e| &e.turn).collect();
    if long.is_empty() || !evidence.is_subset(&quoted_turns(found)) {
        return None;
    }
    Some(format!(
        "The evidence is quoted ({}); of {} long turns, only the passages that fit the question.\n\
         The context has {} tokens, of {} at most.",
        listed(evidence),
        long.len(),
        found.tokens.spent,
        found.tokens.most,
    ))
}

/// All of several turns of evidence are in the context.
fn quoted(found: &Evidence, evidence: &BTreeSet<String>) -> Option<String> {
    let turns = quoted_turns(found);
    (evidence.len() > 1 && evidence.is_subset(&turns)).then(|| {
        format!(
            "All {} turns of evidence are quoted ({}), of {} in the context.",
            evidence.len(),
            listed(evidence),
            turns.len()
        )
    })
}

/// The first hop misses a part of the evidence, and the expansion finds the rest.
fn completed(found: &Evidence, evidence: &BTreeSet<String>) -> Option<String> {
    let (mut first, mut later) = (BTreeSet::new(), BTreeSet::new());
    for unit in &found.units {
        let by_expansion = unit.provenance.iter().all(|p| matches!(p, Provenance::Expansion { .. }));
        let turns = unit.excerpts.iter().map(|e| e.turn.clone()).filter(|turn| evidence.contains(turn));
        if by_expansion { later.extend(turns) } else { first.extend(turns) }
    }
    let rest: BTreeSet<String> = later.difference(&first).cloned().collect();
    (!rest.is_empty() && first.len() + rest.len() == evidence.len()).then(|| {
        format!(
            "The first hop found {} of {} turns of evidence ({}).\n\
             The expansion found the rest, along edges from the anchors: {}.",
            first.len(),
            evidence.len(),
            listed(&first),
            listed(&rest)
        )
    })
}

fn excerpts(found: &Evidence) -> impl Iterator<Item = &Excerpt> {
    found.units.iter().flat_map(|unit| &unit.excerpts)
}

fn quoted_turns(found: &Evidence) -> BTreeSet<String> {
    excerpts(found).map(|excerpt| excerpt.turn.clone()).collect()
}

fn listed(turns: &BTreeSet<String>) -> String {
    if turns.is_empty() { "none".to_owned() } else { turns.iter().cloned().collect::<Vec<_>>().join(", ") }
}
