//! `ripplemem ask`.
//!
//! In: a question. Out: its evidence, as an agent reads it, as a trace, or as JSON; or the
//! language model's answer, with the lines that support it. On a terminal the answer is printed
//! while it is generated. Elsewhere it is printed when it is complete, so that a pipe never holds
//! text that the model took back.

use std::{
    io::IsTerminal,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Args;
use memory::recall;
use models::llm::{self, Citation, LlmAnswer, LlmClient, ReplyPiece, UsageMeter};
use serde::Serialize;
use server::{MemoryHttpClient, api};
use snapshots::AsOf;
use terminal::{print, say};
use types::{
    config::{LogKind, Pipeline},
    model::{Bank, EventTime, Evidence, ModelUsage, PrecedingTurn, Question},
};

use super::{
    as_of_argument::parse_as_of,
    memory_access::{MemoryAccess, durable_end, open_or_reach},
    memory_args::MemoryArgs,
    selector_args::parse_selector,
};

/// Retrieve the evidence for a question.
#[derive(Args)]
pub(crate) struct AskArgs {
    /// The question.
    question: String,
    /// The bank to ask.
    #[arg(long)]
    bank: String,
    /// The time of the question, in RFC 3339. Words such as "yesterday" need it.
    #[arg(long)]
    at: Option<String>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[arg(long)]
    asker: Option<String>,
    /// A turn of the running conversation, as SPEAKER: TEXT; once for each of the last turns, oldest first.
    #[arg(long, value_name = "SPEAKER: TEXT")]
    said_before: Vec<String>,
    /// The maximum number of tokens of the context. Without it, recall.stop.most_tokens.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    most_tokens: Option<u32>,
    /// A turn that the answer must reflect, as PARTITION:OFFSET of the turns topic (log on Kafka).
    #[arg(long)]
    after: Option<String>,
    /// Ask the memory as it was: up to an offset of the bank's partition of the memory topic, or a time of
    /// appending in RFC 3339; rounded down to the end of a read.
    #[arg(long)]
    as_of: Option<String>,
    /// Quote only turns that this selector takes, as JSON: {"session_prefix": "team/", "metadata": {"path": ["k"], "eq":
    /// 1}}.
    #[arg(long = "where", value_name = "JSON")]
    select: Option<String>,
    /// Show the trace: first hop, plan, what each hop added, what was kept.
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Print the evidence as JSON (schemas/topics/answers.v1.json). With --answer it has one more field, `answer`: the
    /// words, the lines that support them, and the model's usage.
    #[arg(long)]
    json: bool,
    /// Have the language model of [llm] answer in words, with the lines that support the answer.
    #[arg(long, conflicts_with = "trace")]
    answer: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// How long another process may take for an answer, in milliseconds.
pub(super) const ANSWER_TIMEOUT_MS: u64 = 600_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum AskFormat {
    Context,
    Trace,
    Json,
    Answer,
    AnswerJson,
}

/// Evidence with the model's answer.
#[derive(Serialize)]
struct AnswerOutput<'e> {
    #[serde(flatten)]
    evidence: &'e Evidence,
    answer: &'e LlmAnswer,
}

impl AskArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let format = self.format();
        let asked_at = self.at.as_deref().map(EventTime::parse).transpose()?;
        let question = Question {
            asked_at,
            asker: self.asker,
            said_before: self.said_before.iter().map(|said| said_before(said)).collect::<Result<_>>()?,
            most_tokens: self.most_tokens,
            select: self.select.as_deref().map(parse_selector).transpose()?,
            ..Question::new(Bank::parse(&self.bank)?, self.question)
        };
        let after = self
            .after
            .map(|text| replica::parse_after(&text).with_context(|| format!("--after {text:?}: not PARTITION:OFFSET")));
        let as_of = self.as_of.as_deref().map(|text| parse_as_of("--as-of", text));
        let (after, as_of) = (after.transpose()?, as_of.transpose()?);
        let pipeline = self.memory.pipeline()?;
        let (evidence, cache) = evidence(&pipeline, &question, after, as_of)?;
        match format {
            AskFormat::AnswerJson if pipeline.llm.is_set() => {
                let answer = answer(&pipeline, cache, &evidence, &mut |_| {})?;
                print_json(&AnswerOutput { evidence: &evidence, answer: &answer })?;
            }
            AskFormat::Json | AskFormat::AnswerJson => print_json(&evidence)?,
            AskFormat::Trace => print(&recall::render_trace(&evidence))?,
            AskFormat::Answer if pipeline.llm.is_set() => {
                let mut usage = print_answer(&pipeline, cache, &evidence)?;
                print_summary(&evidence);
                usage += evidence.trace.llm.unwrap_or_default();
                print_usage(&pipeline, usage);
            }
            AskFormat::Context | AskFormat::Answer => {
                print(&evidence.context)?;
                print_summary(&evidence);
            }
        }
        if matches!(format, AskFormat::Answer | AskFormat::AnswerJson) && !pipeline.llm.is_set() {
            say(
                "no language model is configured: this is the evidence. For an answer in words, write [llm] with endpoint \
                 and model into a pipeline file and name it with --pipeline; pipelines/llm.toml is one",
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn format(&self) -> AskFormat {
        match (self.json, self.trace, self.answer) {
            (true, _, true) => AskFormat::AnswerJson,
            (true, ..) => AskFormat::Json,
            (_, true, _) => AskFormat::Trace,
            (.., true) => AskFormat::Answer,
            _ => AskFormat::Context,
        }
    }
}

fn said_before(said: &str) -> Result<PrecedingTurn> {
    let (speaker, text) =
        said.split_once(": ").with_context(|| format!("--said-before {said:?}: not SPEAKER: TEXT"))?;
    Ok(PrecedingTurn { speaker: speaker.to_owned(), text: text.to_owned() })
}

/// Asks the running service, or the memory of an embedded log. Also returns the cache of the language model's responses
/// if this process may use it. A process that does not see later deletions must not use it, and if another process has
/// the log open, that process has the cache open, too.
fn evidence(
    pipeline: &Pipeline,
    question: &Question,
    after: Option<(u32, u64)>,
    as_of: Option<AsOf>,
) -> Result<(Evidence, Option<PathBuf>)> {
    if pipeline.log.kind == LogKind::Kafka {
        return Ok((server::ask(pipeline, question, after, as_of)?, None));
    }
    let mut service = match open_or_reach(pipeline)? {
        MemoryAccess::Here(service) => service,
        MemoryAccess::There(reached) => return Ok((ask_there(&reached, question, after, as_of)?, None)),
    };
    // This process ends with the answer, so a window that the model started to read would be paid for in vain.
    service.pause_model();
    service.catch_up()?;
    let evidence = match as_of {
        Some(at) => service.ask_as_of(question, at)?,
        None => service.ask(question)?,
    };
    Ok((evidence, Some(pipeline.llm_directory())))
}

/// Asks the process that has the memory open; like an answer here, its answer reflects every turn that is durable.
fn ask_there(
    reached: &MemoryHttpClient,
    question: &Question,
    after: Option<(u32, u64)>,
    as_of: Option<AsOf>,
) -> Result<Evidence> {
    let after = match after {
        Some((partition, offset)) => Some(format!("{partition}:{offset}")),
        None => durable_end(reached, &question.bank)?,
    };
    let as_of = as_of.map(as_of_text);
    let ask =
        api::AskRequest { after, as_of, timeout_ms: Some(ANSWER_TIMEOUT_MS), ..api::AskRequest::of(question.clone()) };
    Ok(reached.post("/v1/ask", &ask)?)
}

/// A point of the past as a request names it.
pub(super) fn as_of_text(at: AsOf) -> String {
    match at {
        AsOf::Offset(offset) => offset.to_string(),
        AsOf::Time(ms) => jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default(),
    }
}

/// Prints how good the evidence is, and which offsets it reflects.
fn print_summary(evidence: &Evidence) {
    let reflects: Vec<String> =
        evidence.reflects.iter().map(|p| format!("{}[{}] before {}", p.topic, p.partition, p.next_offset)).collect();
    say(&format!(
        "{} units, sufficiency {:.2}{}, reflects {}",
        evidence.units.len(),
        evidence.sufficiency,
        if evidence.supported { "" } else { " (nothing supports the question)" },
        reflects.join(", ")
    ));
    if let Some(notice) = &evidence.notice {
        say(&notice.message);
    }
    if let Some(forgotten) = evidence.forgotten {
        say(&format!("not shown: {forgotten} turns that the bank held then were forgotten since"));
    }
}

fn print_usage(pipeline: &Pipeline, usage: ModelUsage) {
    say(&format!(
        "{}: {} calls, {} tokens, {:.1} s, counting cached responses",
        pipeline.llm.model,
        usage.calls,
        usage.tokens(),
        usage.milliseconds as f64 / 1_000.0
    ));
}

/// The model's answer; `show` receives its words while they are generated.
fn answer(
    pipeline: &Pipeline,
    cache: Option<PathBuf>,
    evidence: &Evidence,
    show: &mut dyn FnMut(ReplyPiece<'_>),
) -> Result<LlmAnswer> {
    let llm = LlmClient::open(&pipeline.llm, cache)?;
    let until = Instant::now() + Duration::from_secs(pipeline.llm.timeout_seconds);
    Ok(llm::answer(&llm, evidence, Some(until), &UsageMeter::default(), show)?)
}

/// Prints the answer, then the lines that support it. Returns its usage.
fn print_answer(pipeline: &Pipeline, cache: Option<PathBuf>, evidence: &Evidence) -> Result<ModelUsage> {
    let terminal = std::io::stdout().is_terminal();
    let (mut printed, mut shown) = (Ok(()), false);
    let answer = answer(pipeline, cache, evidence, &mut |piece| {
        let text = match piece {
            ReplyPiece::Text(text) => text,
            // The text so far no longer counts: the answer starts over on a new line.
            ReplyPiece::Restart if shown => "\n",
            ReplyPiece::Restart => return,
        };
        if terminal && printed.is_ok() {
            shown = true;
            printed = print(text);
        }
    });
    printed?;
    if shown {
        // This also happens if the answer failed: the message starts on its own line.
        print("\n")?;
    }
    let answer = answer?;
    if !terminal {
        print(&format!("{}\n", answer.text))?;
    }
    for Citation { line, sources, .. } in &answer.citations {
        print(&format!("  [{}] {line}\n", sources.join(", ")))?;
    }
    if !answer.reasoning.is_empty() {
        say(&answer.reasoning);
    }
    Ok(answer.usage)
}

fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}
