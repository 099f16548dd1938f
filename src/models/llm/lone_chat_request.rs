//! A request that failed in a way that its text may cause.
//!
//! In: the failure of a request, and a way to send it again. Out: how a probe was answered, which is a short request
//! with the same instructions; and for [`SuspectTexts`](endpoint::SuspectTexts) the outcome of another try. A request
//! has no shorter form: if half of a text were sent, the loss of the other half would go unnoticed.

use endpoint::{LoneText, LoneTextFailure, ProbeOutcome, TextSuspicion};
use std::time::Instant;
use types::model::ModelUsage;

use super::{
    chat_completions::{ChatReply, LlmMessage},
    contract::Contract,
    error::LlmError,
    request::{FieldStream, ReplyPiece},
    transport::{ChatTransport, SendFailure},
};

/// The text of the probe, which shows whether the endpoint works at all.
const PROBE: &str = "The ferry leaves at noon, and Ana waits on the pier for a friend.";
/// The limit of the probe's reply, which is not read.
const PROBE_TOKENS: u32 = 64;

/// A request that is sent again.
pub(super) struct LoneChatRequest<'r, 's> {
    pub(super) probe: &'r dyn Fn(&mut ModelUsage) -> Result<ProbeOutcome, LlmError>,
    pub(super) transport: &'r ChatTransport,
    pub(super) contract: Contract,
    pub(super) messages: &'r [LlmMessage],
    pub(super) limit: u32,
    pub(super) deadline: Instant,
    pub(super) stream: Option<FieldStream<'s>>,
    pub(super) usage: &'r mut ModelUsage,
}

impl LoneText for LoneChatRequest<'_, '_> {
    type Reply = ChatReply;
    type Error = LlmError;

    fn has(&self, halvings: u32) -> bool {
        halvings == 0
    }

    fn send(&mut self, _: u32) -> Result<ChatReply, LoneTextFailure<LlmError>> {
        let mut stream: Option<FieldStream<'_>> = None;
        if let Some((field, show)) = &mut self.stream {
            show(ReplyPiece::Restart);
            stream = Some((field, &mut **show));
        }
        let sent = self.transport.send(self.contract, self.messages, self.limit, self.deadline, stream, 0, self.usage);
        sent.map_err(failure)
    }

    fn probe(&mut self) -> Result<ProbeOutcome, LlmError> {
        (self.probe)(self.usage)
    }
}

/// What the failure of a request shows about its text.
pub(super) fn failure(failed: SendFailure) -> LoneTextFailure<LlmError> {
    let SendFailure { error, suspicion } = failed;
    match (error, suspicion) {
        (LlmError::Rejected { problem, .. }, _) => LoneTextFailure::Refused(problem),
        (LlmError::Permanent { problem, .. }, _) => LoneTextFailure::Lasting(problem),
        (LlmError::Unavailable { problem, .. }, TextSuspicion::Text) => LoneTextFailure::Failed(problem),
        (LlmError::Unavailable { problem, .. }, TextSuspicion::SlowText) => LoneTextFailure::Slow(problem),
        (error, _) => LoneTextFailure::Away(error),
    }
}

/// Sends the probe of a contract, and once more if it fails before its timeout; its cost is added to `usage`.
///
/// # Errors
/// Why the endpoint answers nothing.
pub(super) fn probe(
    transport: &ChatTransport,
    contract: Contract,
    deadline: Instant,
    usage: &mut ModelUsage,
) -> Result<ProbeOutcome, LlmError> {
    let messages = [LlmMessage::system(contract.prompt()), LlmMessage::user(PROBE)];
    let mut send = || transport.send(contract, &messages, PROBE_TOKENS, deadline, None, 0, usage);
    let failed = match send() {
        Ok(_) => return Ok(ProbeOutcome::AtOnce),
        Err(failed) if failed.suspicion == TextSuspicion::Text => match send() {
            Ok(_) => return Ok(ProbeOutcome::AfterFailures),
            Err(failed) => failed,
        },
        Err(failed) => failed,
    };
    Err(match failed.error {
        // An endpoint that rejects everything has the wrong model, or other settings.
        LlmError::Rejected { url, problem } => {
            LlmError::Permanent { url, model: transport.settings().model.clone(), problem }
        }
        error => error,
    })
}
