//! How many tokens a request sends, before it is sent.
//!
//! In: texts. Out: counts by the o200k vocabulary, as an upper estimate for the rate limit, the
//! caps and `ripplemem estimate`. What was really spent comes from the endpoint's reply.

use super::{contract::Contract, wire::ChatMessage};

/// An upper bound on the tokens that the protocol adds to each message.
const MESSAGE_OVERHEAD_TOKENS: u64 = 16;

/// Tokens of a text.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

/// Tokens that the first request of a contract sends for `input`.
#[must_use]
pub fn prompt_tokens(contract: Contract, input: &str) -> u64 {
    sent_tokens(contract, &[ChatMessage::system(contract.prompt()), ChatMessage::user(input)])
}

/// Tokens of messages and of the schema that is sent with them.
pub(super) fn sent_tokens(contract: Contract, messages: &[ChatMessage]) -> u64 {
    let sent: u64 = messages.iter().map(|m| tokens(m.content()) + MESSAGE_OVERHEAD_TOKENS).sum();
    sent + tokens(contract.schema_text())
}
