//! What a caller asks a language model for.
//!
//! In: a contract, a text, and what the text was taken from. Out: one value that the client accepts, and the pieces of
//! a reply for a caller that shows it while it is written.

use std::time::Instant;

use super::{contract::Contract, cost::UsageMeter, response_cache};
use types::model::{Bank, WindowId};

/// One request to a language model.
#[derive(Debug, Clone, Copy)]
pub struct LlmRequest<'r> {
    /// Which instructions and schema.
    pub contract: Contract,
    /// The bank that the text belongs to; nothing is cached across banks.
    pub bank: &'r Bank,
    /// What the text was taken from; when that changes, the cached response is evicted.
    pub depends_on: RequestDependency<'r>,
    /// The text to read.
    pub input: &'r str,
    /// The maximum number of tokens that a good reply to this text needs, if the caller knows it; the contract's
    /// setting limits the reply as well.
    pub reply_tokens: Option<u32>,
    /// When to give up; absent for background work, which retries until it succeeds or fails.
    pub deadline: Option<Instant>,
    /// Ask the endpoint although a response is cached, and pay again.
    pub bypass_cache: bool,
    /// Whether the response may be read from the cache and stored there. Only a process that
    /// learns when the sources are edited or deleted may set this.
    pub cacheable: bool,
    /// The usage is added here, too.
    pub meter: &'r UsageMeter,
}

/// What a request's text was taken from.
#[derive(Debug, Clone, Copy)]
pub enum RequestDependency<'r> {
    /// The question alone.
    Nothing,
    /// A window's turns.
    Window(&'r WindowId),
    /// Turns, by id, that a question found.
    Turns(&'r [String]),
}

impl RequestDependency<'_> {
    /// The keys under which the cache lists the response.
    pub(super) fn keys(self) -> Vec<WindowId> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Window(window) => vec![window.clone()],
            Self::Turns(turns) => turns.iter().map(|turn| response_cache::turn_key(turn)).collect(),
        }
    }
}

/// A piece of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPiece<'s> {
    /// The next piece of the text.
    Text(&'s str),
    /// Everything shown so far is void; the text restarts from its beginning.
    Restart,
}

/// A text field of a reply, and the callback that receives it while the model writes it.
pub(super) type FieldStream<'s> = (&'static str, &'s mut (dyn FnMut(ReplyPiece<'_>) + 's));
