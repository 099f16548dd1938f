//! `ripplemem ask`.
//!
//! In: a question. Out: its evidence, as an agent reads it, as a ripple, or as JSON; or, with a
//! language model, an answer in words while it is written, with the lines that it rests on.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use ripplemem::{
    config::{LogKind, Pipeline},
    llm::{Llm, Streamed},
    model::{Evidence, Question, Usage},
    recall::{self, Standing},
    serve,
    snapshot::AsOf,
};

use super::{open, print, say};

/// How an answer is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The evidence as an agent reads it.
    Context,
    /// The ripple.
    Trace,
    /// All of it.
    Json,
    /// In words.
    Answer,
}

/// Asks a memory, or a running service.
pub(crate) fn ask(
    pipeline: &Pipeline,
    question: &Question,
    after: Option<(u32, u64)>,
    as_of: Option<AsOf>,
    form: Form,
) -> Result<ExitCode> {
    let evidence = if pipeline.log.kind == LogKind::Kafka {
        serve::ask(pipeline, question, after, as_of)?
    } else {
        let mut service = open(pipeline)?;
        // A reading that a question begins would end with it, half paid for.
        service.pause_model();
        service.catch_up()?;
        service.take_warnings().iter().for_each(|w| say(w));
        match as_of {
            Some(at) => service.ask_as_of(question, at)?,
            None => service.ask(question)?,
        }
    };
    match form {
        Form::Json => print(&format!("{}\n", serde_json::to_string_pretty(&evidence)?))?,
        Form::Trace => print(&recall::trace(&evidence))?,
        Form::Answer if pipeline.llm.is_set() => {
            let mut took = answer(pipeline, &evidence)?;
            told(&evidence);
            took += evidence.trace.llm.unwrap_or_default();
            let seconds = took.milliseconds as f64 / 1_000.0;
            say(&format!(
                "{}: {} calls, {} tokens, {seconds:.1} s, of now or when it was asked before",
                pipeline.llm.model,
                took.calls,
                took.tokens()
            ));
        }
        Form::Context | Form::Answer => {
            print(&evidence.context)?;
            if form == Form::Answer {
                say("no language model is configured: this is the evidence. For an answer in words, write [llm] with \
                     endpoint and model into a pipeline file and name it with --pipeline; pipelines/llm.toml is one");
            }
            told(&evidence);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How good the evidence is, and what it reflects.
fn told(evidence: &Evidence) {
    let reflects: Vec<String> =
        evidence.reflects.iter().map(|p| format!("{}[{}] before {}", p.topic, p.partition, p.next_offset)).collect();
    say(&format!(
        "{} units, sufficiency {:.2}{}, reflects {}",
        evidence.units.len(),
        evidence.sufficiency,
        if evidence.supported { "" } else { " (nothing supports the question)" },
        reflects.join(", ")
    ));
}

/// Prints an answer while it is written, then what it rests on; what it took.
fn answer(pipeline: &Pipeline, evidence: &Evidence) -> Result<Usage> {
    // Nobody here would learn what is taken back later, so that beside a service nothing is kept.
    let directory = (pipeline.log.kind == LogKind::Embedded).then(|| pipeline.llm_directory());
    let llm = Llm::open(&pipeline.llm, directory)?;
    let until = Instant::now() + Duration::from_secs(pipeline.llm.timeout_seconds);
    let (mut printed, mut shown) = (Ok(()), false);
    let answer = recall::answer(&llm, evidence, Some(until), &mut |piece| {
        let text = match piece {
            Streamed::Text(text) => text,
            // What stands there is void: the answer begins again on a line of its own.
            Streamed::Restart if shown => "\n",
            Streamed::Restart => return,
        };
        shown = true;
        if printed.is_ok() {
            printed = print(text);
        }
    });
    printed?;
    print("\n")?;
    let answer = answer?;
    for Standing { line, sources, .. } in &answer.standing {
        print(&format!("  [{}] {line}\n", sources.join(", ")))?;
    }
    if !answer.reasoning.is_empty() {
        say(&answer.reasoning);
    }
    Ok(answer.took)
}
