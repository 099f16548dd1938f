//! Why there is no answer: a problem in the form of RFC 9457.
//!
//! In: an error of the pipeline, or what is wrong with a request. Out: a code for programs, an HTTP status, and a
//! sentence for people. Never: the name of another bank.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AccessDenial;
use pipeline::PipelineError;
use replica::refusal;
use types::model::{Bank, QuestionRefusal, RefusalCode, RefusedWrite};

/// A problem (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ApiProblem {
    /// `urn:ripplemem:` and the code.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The code in words.
    pub title: Box<str>,
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong, where, and what to do.
    pub detail: String,
    /// For programs.
    pub code: ProblemCode,
    /// With `misdirected`: the URL of the instance that holds the bank. Send the request there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// With `conflict`: the turn whose condition does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<str>>,
    /// With `conflict`: the version of that turn that stands; 0 if it is absent or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Code")]
pub enum ProblemCode {
    /// The request is wrong.
    Invalid,
    /// The request shows no token, or one that is not valid.
    Unauthorised,
    /// The token lacks the right or the bank, or the request comes from a page of another site.
    Forbidden,
    /// There is no such path.
    NotFound,
    /// The path does not take this method.
    Method,
    /// The request did not arrive in time.
    Slow,
    /// The request is too large.
    TooLarge,
    /// The body is packed in a way that is not read.
    MediaType,
    /// The bank holds nothing.
    UnknownBank,
    /// The bank has no such unit, or not any more.
    UnknownUnit,
    /// A record of the bank cannot be read; the bank answers nothing until that is mended.
    Quarantined,
    /// A hold covers the bank: nothing may be deleted there.
    Held,
    /// Another version of a turn stands than the one that was expected; nothing was written.
    Conflict,
    /// No language model is set, so there are no answers in words.
    NoModel,
    /// The deadline passed before the answer was ready.
    Deadline,
    /// Too much waits already; a retry in a moment may succeed.
    Busy,
    /// Another instance holds the bank.
    Misdirected,
    /// The bank's shard is being loaded; a retry in a moment may succeed.
    Loading,
    /// The service is stopping; a retry in a moment may reach the next one.
    Stopping,
    /// The endpoint of the model does not answer; a retry succeeds once it does.
    EndpointAway,
    /// The service failed; a retry may succeed.
    Failed,
}

impl ProblemCode {
    /// Its JSON form, its status and its title.
    fn parts(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Invalid => ("invalid", 400, "The request is wrong"),
            Self::Unauthorised => ("unauthorised", 401, "No valid token"),
            Self::Forbidden => ("forbidden", 403, "The request is not allowed"),
            Self::NotFound => ("not_found", 404, "There is no such path"),
            Self::Method => ("method", 405, "The path does not take this method"),
            Self::Slow => ("slow", 408, "The request did not arrive in time"),
            Self::TooLarge => ("too_large", 413, "The request is too large"),
            Self::MediaType => ("media_type", 415, "The body is packed in a way that is not read"),
            Self::UnknownBank => ("unknown_bank", 404, "The bank holds nothing"),
            Self::UnknownUnit => ("unknown_unit", 404, "The bank has no such unit"),
            Self::Quarantined => ("quarantined", 409, "The bank is quarantined"),
            Self::Held => ("held", 409, "The bank is held"),
            Self::Conflict => ("conflict", 409, "Another version stands"),
            Self::NoModel => ("no_model", 422, "No language model is set"),
            Self::Deadline => ("deadline", 504, "The deadline passed"),
            Self::Busy => ("busy", 429, "Too much waits already"),
            Self::Misdirected => ("misdirected", 421, "Another instance holds the bank"),
            Self::Loading => ("loading", 503, "The bank's shard is being loaded"),
            Self::Stopping => ("stopping", 503, "The service is stopping"),
            Self::EndpointAway => ("endpoint_away", 503, "The model's endpoint does not answer"),
            Self::Failed => ("failed", 500, "The service failed"),
        }
    }
}

impl ApiProblem {
    /// A problem with the status and the title of its code.
    #[must_use]
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let (name, status, title) = code.parts();
        let kind = format!("urn:ripplemem:{name}");
        Self {
            kind: kind.into(),
            title: title.into(),
            status,
            detail: detail.into(),
            code,
            holder: None,
            turn: None,
            version: None,
        }
    }

    /// Another instance holds the bank.
    pub(super) fn misdirected(bank: &Bank, partition: u32, holder: String) -> Self {
        let detail = format!("bank {bank}: the instance at {holder} holds its shard, {partition}; ask there");
        Self { holder: Some(holder), ..Self::new(ProblemCode::Misdirected, detail) }
    }

    /// Nothing was written, because another version stands than the expected one.
    pub(super) fn conflict(refused: &RefusedWrite) -> Self {
        let RefusedWrite { turn, version, forgotten } = refused;
        let stands = match version {
            _ if *forgotten => "it was deleted for good; use another id".to_owned(),
            0 => "it is absent, deleted, or has version 0".to_owned(),
            version => format!("version {version} stands"),
        };
        let detail = format!("turn {turn:?}: {stands}; nothing was written: read the turn, and decide again");
        let (turn, version) = (Some(turn.as_str().into()), Some(*version));
        Self { turn, version, ..Self::new(ProblemCode::Conflict, detail) }
    }

    /// The service is being stopped before there is an answer.
    #[must_use]
    pub(crate) fn stopping() -> Self {
        Self::new(ProblemCode::Stopping, "the service is being stopped; ask again in a moment")
    }

    /// Its code as a word, such as `deadline`.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        self.code.parts().0
    }

    /// The request is wrong: [`ProblemCode::Invalid`].
    #[must_use]
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Invalid, detail)
    }
}

impl From<AccessDenial> for ApiProblem {
    fn from(denied: AccessDenial) -> Self {
        let code = match denied {
            AccessDenial::Missing | AccessDenial::Unknown | AccessDenial::Ended { .. } => ProblemCode::Unauthorised,
            AccessDenial::Right { .. } | AccessDenial::Bank { .. } | AccessDenial::Everywhere { .. } => {
                ProblemCode::Forbidden
            }
            AccessDenial::TooMany { .. } => ProblemCode::Busy,
        };
        Self::new(code, denied.to_string())
    }
}

impl From<PipelineError> for ApiProblem {
    fn from(error: PipelineError) -> Self {
        if matches!(error, PipelineError::Turn { .. }) {
            return Self::invalid(error.to_string());
        }
        if matches!(error, PipelineError::Loading { .. } | PipelineError::OtherInstance { .. }) {
            return Self::new(ProblemCode::Loading, error.to_string());
        }
        let QuestionRefusal { code, message, .. } = refusal(&error);
        let code = match code {
            RefusalCode::Invalid | RefusalCode::ReplyTopic => ProblemCode::Invalid,
            RefusalCode::UnknownBank => ProblemCode::UnknownBank,
            RefusalCode::Quarantined => ProblemCode::Quarantined,
            RefusalCode::Held => ProblemCode::Held,
            RefusalCode::Deadline => ProblemCode::Deadline,
            RefusalCode::Busy => ProblemCode::Busy,
            RefusalCode::EndpointAway => ProblemCode::EndpointAway,
            RefusalCode::Failed => ProblemCode::Failed,
        };
        Self::new(code, message)
    }
}

/// An id that no turn can have is the caller's mistake.
pub(super) fn wrong_id(error: PipelineError) -> ApiProblem {
    match error {
        PipelineError::Turn { problem, .. } => ApiProblem::invalid(problem.to_string()),
        other => other.into(),
    }
}
