//! Counts the tokens of a request before it is sent.
//!
//! In: texts. Out: counts by the o200k vocabulary, as an upper estimate for the rate limit, the
//! caps, the model's context and `ripplemem estimate`. What was really spent comes from the
//! endpoint's reply.

use super::{chat_completions::LlmMessage, contract::Contract};
use memory::language::token_count::count_tokens;
use types::config::LlmSettings;

/// An upper bound on the tokens that the protocol adds to each message.
const MESSAGE_OVERHEAD_TOKENS: u64 = 16;

/// Tokens of a text.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    count_tokens(text) as u64
}

/// Tokens that the first request of a contract sends for `input`.
#[must_use]
pub fn prompt_tokens(contract: Contract, input: &str) -> u64 {
    sent_tokens(contract, &[LlmMessage::system(contract.prompt()), LlmMessage::user(input)])
}

/// Whether a first request of a contract with a reply of at most `reply_tokens` fits into the model's context.
#[must_use]
pub fn fits(settings: &LlmSettings, contract: Contract, input: &str, reply_tokens: u32) -> bool {
    let messages = [LlmMessage::system(contract.prompt()), LlmMessage::user(input)];
    let reply_tokens = reply_tokens.min(contract.completion_tokens(settings));
    settings.context_tokens == 0
        || context_tokens(&messages) + u64::from(reply_tokens) <= u64::from(settings.context_tokens)
}

/// The number of tokens that messages take in the model's context; for English, an upper estimate. A vocabulary smaller
/// than o200k's needs more tokens for the same text, and may need a token for each digit, while o200k needs one for
/// three.
pub(super) fn context_tokens(messages: &[LlmMessage]) -> u64 {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count() as u64;
    let bound = |text: &str| tokens(text) * 5 / 4 + digits(text) * 2 / 3 + MESSAGE_OVERHEAD_TOKENS;
    messages.iter().map(|m| bound(m.content())).sum()
}

/// Tokens of messages and of the schema that is sent with them.
pub(super) fn sent_tokens(contract: Contract, messages: &[LlmMessage]) -> u64 {
    let sent: u64 = messages.iter().map(|m| tokens(m.content()) + MESSAGE_OVERHEAD_TOKENS).sum();
    sent + tokens(contract.schema_text())
}
