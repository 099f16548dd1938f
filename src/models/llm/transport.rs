//! Sends messages to the endpoint, with retries, until there is a reply or no time for one.
//!
//! In: messages, a contract and a deadline. Out: the reply and what it cost, or only the cost if the request failed
//! after the endpoint had worked on it. A failure says whether the text may be the cause. Never retries what the
//! endpoint rejects or refuses, and never sends before the endpoint's `Retry-After` is over.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{
    chat_completions::{self, ChatReply, ChatRequestBody, LlmMessage, ResponseFormat, StreamOptions},
    contract::Contract,
    error::LlmError,
    limits::RequestLimits,
    request::{FieldStream, ReplyPiece},
    stream_field::FieldParser,
    tokens::{context_tokens, sent_tokens, tokens},
};
use endpoint::{Endpoint, RequestFailure, TextSuspicion, backoff};
use types::{config::LlmSettings, model::ModelUsage, sync};

/// The number of messages in a first request: the instructions and the text. A repair has more.
const FIRST_MESSAGES: usize = 2;
/// The longest `Retry-After` that a request waits for; with a longer one, the request fails.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// A repair is sent if at least the limit on its reply, divided by this, still fits into the model's context.
const REPAIR_SHARE: u32 = 4;
/// Retries of a request for which the endpoint may have charged; each retry may cost its tokens again.
const CHARGED_RETRIES: u32 = 1;

/// Why a request has no reply.
#[derive(Debug)]
pub(super) struct SendFailure {
    pub(super) error: LlmError,
    /// Whether its text may be the cause.
    pub(super) suspicion: TextSuspicion,
}

impl SendFailure {
    /// Whether the request's text may be the cause, so that a probe has to find out.
    pub(super) fn may_be_of_text(&self) -> bool {
        let is_declined = matches!(self.error, LlmError::Rejected { .. } | LlmError::Permanent { .. });
        is_declined || self.suspicion != TextSuspicion::None
    }
}

impl From<LlmError> for SendFailure {
    fn from(error: LlmError) -> Self {
        // The reply may have taken longer than another would.
        let suspicion = if error == LlmError::Deadline { TextSuspicion::SlowText } else { TextSuspicion::None };
        Self { error, suspicion }
    }
}

/// Sends requests to the endpoint.
pub(super) struct ChatTransport {
    settings: LlmSettings,
    endpoint: Endpoint,
    limits: RequestLimits,
    /// What all processes spent on this directory, this one included. It counts against the caps.
    total: Mutex<ModelUsage>,
}

impl ChatTransport {
    /// Does not connect yet. `spent` is what earlier processes spent.
    pub(super) fn new(settings: &LlmSettings, spent: ModelUsage) -> Self {
        Self {
            settings: settings.clone(),
            endpoint: Endpoint::new(&settings.endpoint, "chat/completions", &settings.key_env),
            limits: RequestLimits::new(settings),
            total: Mutex::new(spent),
        }
    }

    pub(super) fn settings(&self) -> &LlmSettings {
        &self.settings
    }

    pub(super) fn url(&self) -> &str {
        self.endpoint.url()
    }

    pub(super) fn check_key(&self) -> Result<(), LlmError> {
        let missing = self.endpoint.missing_key();
        missing.map_or(Ok(()), |variable| Err(LlmError::MissingKey { variable: variable.to_owned() }))
    }

    /// The maximum number of tokens in the reply: `limit`, or what the model's context leaves for it.
    ///
    /// # Errors
    /// [`LlmError::TooLong`] if the context leaves less than `limit`, or, for a repair, too little.
    fn room(&self, contract: Contract, messages: &[LlmMessage], limit: u32) -> Result<u32, LlmError> {
        let context = self.settings.context_tokens;
        if context == 0 {
            return Ok(limit);
        }
        let prompt = context_tokens(messages);
        let room = u32::try_from(u64::from(context).saturating_sub(prompt)).unwrap_or(u32::MAX);
        let least = if messages.len() > FIRST_MESSAGES { limit / REPAIR_SHARE } else { limit };
        if room < least {
            let needed = prompt + u64::from(least);
            return Err(LlmError::TooLong { contract: contract.name(), needed, context });
        }
        Ok(limit.min(room))
    }

    /// Sends messages, and again at most `retries` times, until there is a reply of at most `limit` tokens. The cost of
    /// every attempt is added to `usage`.
    #[allow(clippy::too_many_arguments, reason = "each is something else")]
    pub(super) fn send(
        &self,
        contract: Contract,
        messages: &[LlmMessage],
        limit: u32,
        deadline: Instant,
        mut stream: Option<FieldStream<'_>>,
        retries: u32,
        usage: &mut ModelUsage,
    ) -> Result<ChatReply, SendFailure> {
        self.check_key()?;
        let limit = self.room(contract, messages, limit)?;
        let body = self.body(contract, messages, limit)?;
        let prompt_tokens = sent_tokens(contract, messages);
        let estimate = (prompt_tokens, u64::from(limit));
        let unavailable =
            |problem: String, attempts| LlmError::Unavailable { url: self.url().to_owned(), problem, attempts };
        let mut attempts = 0;
        loop {
            let wait = self.limits.not_before.remaining();
            if !wait.is_zero() && (wait > MAX_RETRY_AFTER || Instant::now() + wait >= deadline) {
                return Err(
                    unavailable("it asked not to be called for a while (Retry-After)".to_owned(), attempts).into()
                );
            }
            std::thread::sleep(wait);
            let permit = self.limits.acquire(&self.settings, || *sync::lock(&self.total), estimate, deadline)?;
            let from = Instant::now();
            let timeout =
                Duration::from_secs(self.settings.timeout_seconds).min(deadline.saturating_duration_since(from));
            if timeout.is_zero() {
                return Err(LlmError::Deadline.into());
            }
            let mut parser = stream.as_ref().map(|(field, _)| FieldParser::new(field));
            let mut each = |piece: &str| {
                if let (Some(parser), Some((_, show))) = (&mut parser, &mut stream) {
                    let text = parser.push(piece);
                    if !text.is_empty() {
                        show(ReplyPiece::Text(&text));
                    }
                }
            };
            let outcome = self.endpoint.post(&body, timeout, |reader| chat_completions::read_stream(reader, &mut each));
            attempts += 1;
            let milliseconds = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut charge = |calls, (prompt_tokens, completion_tokens)| {
                // The cost is added before the permit is dropped; in between, the cap would count neither.
                let cost = ModelUsage { calls, prompt_tokens, completion_tokens, milliseconds };
                *sync::lock(&self.total) += cost;
                *usage += cost;
            };
            let (problem, after, suspicion, retries) = match outcome {
                Ok(reply) => {
                    charge(
                        1,
                        reply.tokens.unwrap_or_else(|| (prompt_tokens, tokens(&reply.text) + tokens(&reply.unread))),
                    );
                    return Ok(reply);
                }
                Err(RequestFailure::Rejected(problem)) => {
                    return Err(LlmError::Rejected { url: self.url().to_owned(), problem }.into());
                }
                Err(RequestFailure::Permanent(problem)) => {
                    let (url, model) = (self.url().to_owned(), self.settings.model.clone());
                    return Err(LlmError::Permanent { url, model, problem }.into());
                }
                Err(RequestFailure::Transient { problem, after, charged, suspicion }) => {
                    if charged {
                        // It is unknown how much the endpoint wrote, but it read at least the prompt.
                        charge(0, (prompt_tokens, 0));
                    }
                    (problem, after, suspicion, if charged { retries.min(CHARGED_RETRIES) } else { retries })
                }
            };
            drop(permit);
            if Instant::now() >= deadline {
                return Err(LlmError::Deadline.into());
            }
            if let Some(after) = after {
                self.limits.not_before.postpone(after);
            }
            let pause = backoff(attempts);
            if attempts > retries || Instant::now() + pause >= deadline {
                return Err(SendFailure { error: unavailable(problem, attempts), suspicion });
            }
            if let Some((_, show)) = &mut stream {
                show(ReplyPiece::Restart);
            }
            std::thread::sleep(pause);
        }
    }

    fn body(&self, contract: Contract, messages: &[LlmMessage], limit: u32) -> Result<Vec<u8>, LlmError> {
        let defect = |problem: &dyn std::fmt::Display| LlmError::InvalidReply {
            contract: contract.name(),
            problem: format!("the request has no JSON form: {problem}; this is a defect, please report it"),
            reply: String::new(),
        };
        let schema = contract.sent_schema(&self.settings).ok_or_else(|| defect(&"its schema is malformed"))?;
        let body = ChatRequestBody {
            model: &self.settings.model,
            messages,
            temperature: 0,
            max_tokens: limit,
            response_format: ResponseFormat::schema(contract.name(), schema),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        };
        serde_json::to_vec(&body).map_err(|e| defect(&e))
    }
}
