//! A request that failed in a way that its text may cause.
//!
//! In: the failure of a request, and a way to send it again. Out: how a probe was answered, which is a short request with
//! the same instructions; and for [`Suspects`](endpoint::Suspects) what another try came to. A request has no shorter
//! form: what a model leaves out of half a text would be missed nowhere.

use endpoint::{Failure, LoneText, Probed, Suspicion};
use nouns::model::Usage;
use std::time::Instant;

use super::{
    contract::Contract,
    error::LlmError,
    request::{FieldStream, Streamed},
    transport::{SendFailure, Transport},
    wire::{ChatMessage, ChatReply},
};

/// The text that shows whether the endpoint works at all.
const PROBE: &str = "The ferry leaves at noon, and Ana waits on the pier for a friend.";
/// The limit of its reply, which is not read.
const PROBE_TOKENS: u32 = 64;

/// A request that is sent again.
pub(super) struct LoneRequest<'r, 's> {
    pub(super) probe: &'r dyn Fn(&mut Usage) -> Result<Probed, LlmError>,
    pub(super) transport: &'r Transport,
    pub(super) contract: Contract,
    pub(super) messages: &'r [ChatMessage],
    pub(super) limit: u32,
    pub(super) deadline: Instant,
    pub(super) stream: Option<FieldStream<'s>>,
    pub(super) usage: &'r mut Usage,
}

impl LoneText for LoneRequest<'_, '_> {
    type Reply = ChatReply;
    type Error = LlmError;

    fn has(&self, halvings: u32) -> bool {
        halvings == 0
    }

    fn send(&mut self, _: u32) -> Result<ChatReply, Failure<LlmError>> {
        let mut stream: Option<FieldStream<'_>> = None;
        if let Some((field, show)) = &mut self.stream {
            show(Streamed::Restart);
            stream = Some((field, &mut **show));
        }
        let sent = self.transport.send(self.contract, self.messages, self.limit, self.deadline, stream, 0, self.usage);
        sent.map_err(failure)
    }

    fn probe(&mut self) -> Result<Probed, LlmError> {
        (self.probe)(self.usage)
    }
}

/// What a failed request says of its text.
pub(super) fn failure(failed: SendFailure) -> Failure<LlmError> {
    let SendFailure { error, suspicion } = failed;
    match (error, suspicion) {
        (LlmError::Rejected { problem, .. }, _) => Failure::Refused(problem),
        (LlmError::Permanent { problem, .. }, _) => Failure::Lasting(problem),
        (LlmError::Unavailable { problem, .. }, Suspicion::Text) => Failure::Failed(problem),
        (LlmError::Unavailable { problem, .. }, Suspicion::SlowText) => Failure::Slow(problem),
        (error, _) => Failure::Away(error),
    }
}

/// Sends the probe of a contract, and once more if it fails before its timeout; its cost is added to `usage`.
///
/// # Errors
/// Why the endpoint answers nothing.
pub(super) fn probe(
    transport: &Transport,
    contract: Contract,
    deadline: Instant,
    usage: &mut Usage,
) -> Result<Probed, LlmError> {
    let messages = [ChatMessage::system(contract.prompt()), ChatMessage::user(PROBE)];
    let mut send = || transport.send(contract, &messages, PROBE_TOKENS, deadline, None, 0, usage);
    let failed = match send() {
        Ok(_) => return Ok(Probed::AtOnce),
        Err(failed) if failed.suspicion == Suspicion::Text => match send() {
            Ok(_) => return Ok(Probed::AfterFailures),
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
