//! Why a turn is quoted in the answer to a question, or why not.
//!
//! In: a question with a turn or a unit, and the caller. Out: the twelve steps between them, if the caller may ask the
//! bank. The question waits among the others, with the same deadline.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

use super::{
    api_forms::AskRequest,
    memory_api::MemoryApi,
    problem::ApiProblem,
    read_limiters::ReadScope,
    short_ids::{is_shortened, resolve_turn_id},
};
use crate::{
    access::{AccessRight, Caller},
    request_trace,
};
use pipeline::Cancellation;
use types::{
    model::{Bank, EventTime, Explanation, ExplanationQuery, PrecedingTurn, Question, Selector, SubjectId, UnitId},
    null_fields::null_as_default,
};

/// A question, and the turn or unit of which it is explained why it is quoted or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Explain")]
pub struct ExplainRequest {
    /// The bank that is asked.
    pub bank: Bank,
    /// The question, at most 8,192 bytes.
    pub text: String,
    /// The id of the turn, or its short id where the log lists turns. Either this or `unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The unit, as an answer names it. Either this or `turn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitId>,
    /// Only the part with this index among the parts of its unit; without it, the one that is quoted, or else the most
    /// familiar one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Whether a part that the first hop did not score gets its rank among every part of the bank. In a large bank that
    /// takes long.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub every_part: bool,
    /// When it is asked, in RFC 3339; relative times such as "yesterday" need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The last turns of the running conversation, oldest first; at most 8,192 bytes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PrecedingTurn>>")]
    pub said_before: Vec<PrecedingTurn>,
    /// Most tokens (o200k) of the context; `recall.stop.most_tokens` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub most_tokens: Option<u32>,
    /// The profile whose recall settings apply, in place of those of the pipeline file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The turns that may be quoted.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// The `after` of turns of this bank: the explanation waits until it reflects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Asks the memory as it was: an offset of the bank's partition of the memory log, or a time of
    /// appending in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Most milliseconds until the explanation; `serve.deadline_ms` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
}

impl ExplainRequest {
    /// A request about this question, with the default for everything else.
    #[must_use]
    pub fn of(question: Question, subject: ExplanationQuery) -> Self {
        let Question { bank, text, asked_at, asker, said_before, most_tokens, profile, select, .. } = question;
        let ExplanationQuery { id, part, every_part } = subject;
        let (turn, unit) = match id {
            SubjectId::Turn(turn) => (Some(turn), None),
            SubjectId::Unit(unit) => (None, Some(unit)),
        };
        let (after, as_of, timeout_ms) = (None, None, None);
        Self {
            bank,
            text,
            turn,
            unit,
            part,
            every_part,
            asked_at,
            asker,
            said_before,
            most_tokens,
            profile,
            select,
            after,
            as_of,
            timeout_ms,
        }
    }

    /// The question, and what is asked about.
    fn parse(self) -> Result<(AskRequest, ExplanationQuery), ApiProblem> {
        let Self { bank, text, turn, unit, part, every_part, asked_at, asker, said_before, most_tokens, .. } = self;
        let Self { profile, select, after, as_of, timeout_ms, .. } = self;
        let id = match (turn, unit) {
            (Some(turn), None) => SubjectId::Turn(turn),
            (None, Some(unit)) => SubjectId::Unit(unit),
            _ => return Err(ApiProblem::invalid("turn: name either a turn or a unit, as `turn` or as `unit`")),
        };
        let question =
            Question { asked_at, asker, said_before, most_tokens, profile, select, ..Question::new(bank, text) };
        Ok((
            AskRequest { after, as_of, timeout_ms, ..AskRequest::of(question) },
            ExplanationQuery { id, part, every_part },
        ))
    }
}

impl MemoryApi {
    /// Explains why a turn is quoted in the answer to a question, or why not.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn explain(&self, who: &Caller, explain: ExplainRequest) -> Result<Explanation, ApiProblem> {
        let (ask, mut subject) = explain.parse()?;
        let bank = ask.bank.clone();
        who.may_in(AccessRight::Read, &bank)?;
        if let SubjectId::Turn(turn) = &mut subject.id
            && is_shortened(turn)
        {
            self.check_here(&bank)?;
            let (memory, of, short) = (Arc::clone(&self.memory), bank.clone(), turn.clone());
            let named = move |cancellation: &Cancellation| Ok(resolve_turn_id(&memory, &of, &short, cancellation)?.0);
            *turn = self.read(who, &bank, ReadScope::AllOfIt, named).await?;
        }
        let trace = request_trace::current();
        let span = request_trace::question_span(&bank, trace.as_ref());
        let explained =
            self.question(who, ask, trace, |asked| self.memory.explain(asked, subject)).instrument(span).await?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        self.read(who, &bank, ReadScope::Little, move |_| Ok(memory.complete(&of, explained)?)).await
    }
}
