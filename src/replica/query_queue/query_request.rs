//! A question as a transport submits it, and how a transport writes points in time.

use std::sync::Arc;

use super::{AnswerStageTimes, Cancellation, fair_queue::QueueKey};
use logs::WritePosition;
use models::embed::QuestionVectorCache;
use snapshots::AsOf;
use types::{model::Question, trace_parent::TraceParent};

/// A question, and what its answer must reflect.
#[derive(Debug, Clone)]
pub struct QueryRequest {
    /// The question.
    pub question: Question,
    /// The name of the token that asks: tokens take turns. `None` without a token; then banks take turns.
    pub token: Option<Arc<str>>,
    /// A turns partition, and the first offset of it that the answer need not reflect.
    pub after: Option<(u32, u64)>,
    /// The point of the past, for a question about the past.
    pub as_of: Option<AsOf>,
    /// How long someone waits for the answer.
    pub cancellation: Cancellation,
    /// The vectors from earlier runs of the same question, for a question that is asked again.
    pub kept: Option<Arc<QuestionVectorCache>>,
    /// The trace that the question belongs to; the requests made for its answer continue it.
    pub trace: Option<TraceParent>,
    /// Where the times of its stages are added, if the caller asks for them.
    pub times: Option<Arc<AnswerStageTimes>>,
}

impl QueryRequest {
    /// The same question, whose answer also reflects these turns.
    #[must_use]
    pub fn after(self, written: &WritePosition) -> Self {
        let after = written.of(&self.question.bank).or(self.after);
        Self { after, ..self }
    }

    /// A question about the present, with no deadline.
    #[must_use]
    pub fn now(question: Question) -> Self {
        let cancellation = Cancellation::default();
        Self { question, token: None, after: None, as_of: None, cancellation, kept: None, trace: None, times: None }
    }

    /// Where it waits.
    pub(super) fn lane(&self) -> QueueKey {
        QueueKey { token: self.token.clone(), bank: self.question.bank.clone() }
    }
}

/// `PARTITION:OFFSET` of a turn.
#[must_use]
pub fn parse_after(text: &str) -> Option<(u32, u64)> {
    let (partition, offset) = text.trim().split_once(':')?;
    Some((partition.parse().ok()?, offset.parse().ok()?))
}

/// An offset, or a time in RFC 3339.
#[must_use]
pub fn parse_as_of(text: &str) -> Option<AsOf> {
    let text = text.trim();
    let offset = text.parse().ok().map(AsOf::Offset);
    offset.or_else(|| Some(AsOf::Time(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())))
}
