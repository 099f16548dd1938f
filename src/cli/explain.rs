//! `ripplemem explain`.
//!
//! In: a question, and a turn or a unit. Out: why the answer quotes it, or why not: the twelve steps from the stored
//! turn to its line, each with its state and a sentence, or all of it as JSON.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use server::{MemoryHttpClient, api};
use snapshots::AsOf;
use terminal::print;
use types::{
    config::{LogKind, Pipeline},
    model::{
        Bank, EventTime, Explanation, ExplanationQuery, ExplanationStep, ExplanationStepState, Question, SubjectId,
        UnitId,
    },
};

use super::{
    as_of_argument::parse_as_of,
    ask::{ANSWER_TIMEOUT_MS, as_of_text},
    memory_access::{MemoryAccess, durable_end, open_or_reach, service_on_kafka},
    memory_args::MemoryArgs,
    selector_args::parse_selector,
    turn_ids::whole_id,
};

/// Explain why the answer to a question quotes a turn, or why not.
#[derive(Args)]
#[command(group(ArgGroup::new("subject").required(true).args(["turn", "unit"])))]
pub(crate) struct ExplainArgs {
    /// The question.
    question: String,
    /// The bank to ask.
    #[arg(long)]
    bank: String,
    /// The id of the turn.
    #[arg(long)]
    turn: Option<String>,
    /// The unit, as an answer names it.
    #[arg(long)]
    unit: Option<UnitId>,
    /// Only the part with this index among the parts of its unit. Without it, the part that is quoted, or else the most
    /// familiar one.
    #[arg(long)]
    part: Option<u32>,
    /// Have a part that the first hop did not score ranked among every part of the bank. In a large bank that takes
    /// long.
    #[arg(long)]
    every_part: bool,
    /// The time of the question, in RFC 3339. Words such as "yesterday" need it.
    #[arg(long)]
    at: Option<String>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[arg(long)]
    asker: Option<String>,
    /// The maximum number of tokens of the context. Without it, recall.stop.most_tokens.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    most_tokens: Option<u32>,
    /// Ask the memory as it was: up to an offset of the bank's partition of the memory topic, or a time of
    /// appending in RFC 3339; rounded down to the end of a read.
    #[arg(long)]
    as_of: Option<String>,
    /// Quote only turns that this selector takes, as JSON: {"session_prefix": "team/", "metadata": {"path": ["k"], "eq":
    /// 1}}.
    #[arg(long = "where", value_name = "JSON")]
    select: Option<String>,
    /// Print the explanation as JSON, with the numbers of each step.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ExplainArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let question = Question {
            asked_at: self.at.as_deref().map(EventTime::parse).transpose()?,
            asker: self.asker,
            most_tokens: self.most_tokens,
            select: self.select.as_deref().map(parse_selector).transpose()?,
            ..Question::new(Bank::parse(&self.bank)?, self.question)
        };
        let id = match (self.turn, self.unit) {
            (Some(turn), _) => SubjectId::Turn(turn),
            (None, Some(unit)) => SubjectId::Unit(unit),
            (None, None) => bail!("name a turn with --turn, or a unit with --unit"),
        };
        let subject = ExplanationQuery { id, part: self.part, every_part: self.every_part };
        let as_of = self.as_of.as_deref().map(|text| parse_as_of("--as-of", text)).transpose()?;
        let explanation = explanation(&self.memory.pipeline()?, &question, subject, as_of)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&explanation)?))?;
        } else {
            print(&page(&explanation))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Asks the running service, or the memory of an embedded log.
fn explanation(
    pipeline: &Pipeline,
    question: &Question,
    subject: ExplanationQuery,
    as_of: Option<AsOf>,
) -> Result<Explanation> {
    if pipeline.log.kind == LogKind::Kafka {
        let reached = service_on_kafka(pipeline)?;
        let reached = reached.context(
            "an explanation comes from a running service; start `ripplemem run FILE` with http.listen on this machine",
        )?;
        return explanation_there(&reached, question, subject, as_of);
    }
    let mut service = match open_or_reach(pipeline)? {
        MemoryAccess::Here(service) => service,
        MemoryAccess::There(reached) => return explanation_there(&reached, question, subject, as_of),
    };
    // This process ends with the explanation, so a window that the model started to read would be paid for in vain.
    service.pause_model();
    service.catch_up()?;
    let id = match subject.id {
        SubjectId::Turn(turn) => SubjectId::Turn(whole_id(service.log(), &question.bank, turn)?),
        unit => unit,
    };
    let subject = ExplanationQuery { id, ..subject };
    Ok(service.explain(question, subject, as_of)?)
}

/// Asks the process that has the memory open; like an explanation here, it reflects every turn that is durable.
fn explanation_there(
    reached: &MemoryHttpClient,
    question: &Question,
    subject: ExplanationQuery,
    as_of: Option<AsOf>,
) -> Result<Explanation> {
    let explain = api::ExplainRequest {
        after: durable_end(reached, &question.bank)?,
        as_of: as_of.map(as_of_text),
        timeout_ms: Some(ANSWER_TIMEOUT_MS),
        ..api::ExplainRequest::of(question.clone(), subject)
    };
    Ok(reached.post("/v1/explain", &explain)?)
}

/// The explanation for people.
fn page(explanation: &Explanation) -> String {
    let Explanation { sentence, change, steps, others, .. } = explanation;
    let mut lines = vec![sentence.clone()];
    lines.extend(change.clone());
    lines.push(String::new());
    for ExplanationStep { step, state, sentence, .. } in steps {
        let mark = match state {
            ExplanationStepState::Passed => "+",
            ExplanationStepState::Failed => "!",
            ExplanationStepState::NotReached => "-",
            ExplanationStepState::Unknown => "?",
        };
        lines.push(format!("{mark} {:<10} {sentence}", step.name()));
    }
    for other in others {
        let quoted = if other.quoted { ", quoted" } else { "" };
        lines.push(format!("  part {} of unit {}: share {:.2}{quoted}", other.part, other.unit, other.share));
    }
    lines.push(String::new());
    lines.join("\n")
}
