//! The client: takes a request, through the cache and at most one repair, to an accepted value.
//!
//! In: requests from any thread. Out: what the caller's `accept` made of a reply. Equal requests run one at a time, so
//! that the later ones find the first one's response in the cache. A response is cached before it is used, unless what
//! it depends on changed during the request. Never repairs a request more than once.

use crate::log_events;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, Weak},
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;

use super::{
    chat_completions::{ChatReply, LlmMessage},
    contract::Contract,
    cost::{ContractExpense, ContractUsage, WindowExpense},
    endpoint_outage::EndpointOutage,
    error::LlmError,
    in_flight_requests::{InFlightRequests, RequestGuard},
    lone_chat_request::{self, LoneChatRequest},
    reply::parse,
    request::{FieldStream, LlmRequest, ReplyPiece},
    response_cache::{self, PaidResponse, RequestKey, ResponseCache},
    stream_field::FieldParser,
    transport::{ChatTransport, SendFailure},
};
use endpoint::{LoneTextFailure, ProbeOutcome, SuspectTexts, TryLimits};
use types::{
    config::LlmSettings,
    model::{Bank, ModelUsage, WindowId},
    sync,
};

/// Timeout of requests without a deadline, which are background requests.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// The least time that a probe may take after a caller's deadline, and for how long a failed probe is not repeated.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// The maximum number of bytes that a repair quotes from a reply that never ended.
const QUOTED_BYTES: usize = 240;

/// A language model behind an endpoint, with its cache of responses.
pub struct LlmClient {
    /// This client, for the thread that sends a probe.
    own: Weak<Self>,
    transport: ChatTransport,
    outage: EndpointOutage,
    /// The requests that the endpoint failed on.
    suspects: SuspectTexts,
    /// When the last probe found the endpoint away, and with which error.
    silent: Mutex<Option<(Instant, LlmError)>>,
    in_flight: InFlightRequests,
    /// Absent if responses are not cached.
    cache: Option<ResponseCache>,
    /// The last warning about the cache, so that it is not logged twice in a row.
    said: Mutex<Option<String>>,
    /// Responses that this process paid for.
    spent: ContractUsage,
    /// Responses that this process used, cached ones included.
    used: ContractUsage,
}

/// A request that is being answered, with its repair.
struct ActiveRequest<'a> {
    request: &'a LlmRequest<'a>,
    /// The windows or turns that it depends on.
    keys: Vec<WindowId>,
    deadline: Instant,
    /// Absent if the response is not cached.
    guard: Option<RequestGuard<'a>>,
}

/// Removes the cache of responses in a directory, which nobody has open, and with it what was spent.
///
/// # Errors
/// [`LlmError::Cache`] when the disk refuses.
pub fn remove_cache(directory: &Path) -> Result<(), LlmError> {
    response_cache::remove(directory)
}

/// The clients of this process, by the directory of their cache.
static OPEN: LazyLock<Mutex<HashMap<Option<PathBuf>, Weak<LlmClient>>>> = LazyLock::new(Mutex::default);

impl LlmClient {
    /// The client for a cache directory. All callers of this process share it, and with it the
    /// limits and the cache. Without a directory nothing is cached, and a cap counts only what
    /// this process spends. Connects to nothing yet.
    ///
    /// # Errors
    /// [`LlmError::NotConfigured`] without an endpoint; [`LlmError::Cache`] when the directory
    /// cannot be used.
    pub fn open(settings: &LlmSettings, directory: Option<PathBuf>) -> Result<Arc<Self>, LlmError> {
        if cfg!(not(feature = "llm")) {
            return Err(LlmError::NotBuilt);
        }
        if !settings.is_set() {
            return Err(LlmError::NotConfigured);
        }
        let mut open = sync::lock(&OPEN);
        if let Some(llm) = open.get(&directory).and_then(Weak::upgrade) {
            if llm.settings() == settings {
                return Ok(llm);
            }
            let problem = "this process has it open with other settings; close that first".to_owned();
            return Err(LlmError::Cache { path: directory.unwrap_or_default(), problem });
        }
        let (cache, warning) = directory.as_deref().map(ResponseCache::open).transpose()?.unzip();
        warning.flatten().iter().for_each(|problem| log_events::response_cache_warned(problem));
        let mut total = ModelUsage::default();
        for (_, _, usage) in cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::expenses)? {
            total += usage;
        }
        let llm = Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            transport: ChatTransport::new(settings, total),
            outage: EndpointOutage::default(),
            suspects: SuspectTexts::default(),
            silent: Mutex::default(),
            in_flight: InFlightRequests::default(),
            cache,
            said: Mutex::default(),
            spent: ContractUsage::default(),
            used: ContractUsage::default(),
        });
        open.retain(|_, client| client.strong_count() > 0);
        open.insert(directory, Arc::downgrade(&llm));
        Ok(llm)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &LlmSettings {
        self.transport.settings()
    }

    /// The URL that requests are sent to.
    #[must_use]
    pub fn url(&self) -> &str {
        self.transport.url()
    }

    /// Fails if the key is missing, as the first request would.
    ///
    /// # Errors
    /// [`LlmError::MissingKey`].
    pub fn check_key(&self) -> Result<(), LlmError> {
        self.transport.check_key()
    }

    /// Asks the model. `accept` turns a reply that matches the schema into the result, or says
    /// what is wrong with it.
    ///
    /// # Errors
    /// [`LlmError`]; [`LlmError::InvalidReply`] when the repaired reply is not accepted either.
    pub fn ask<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        accept: &mut dyn FnMut(T) -> Result<U, String>,
    ) -> Result<U, LlmError> {
        self.run(request, accept, None)
    }

    /// Asks the model; `show` receives the reply's text field `field` while it is written.
    ///
    /// # Errors
    /// Those of [`Self::ask`]; the text that was shown is void then.
    pub fn stream<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        field: &'static str,
        show: &mut dyn FnMut(ReplyPiece<'_>),
        accept: &mut dyn FnMut(T) -> Result<U, String>,
    ) -> Result<U, LlmError> {
        self.run(request, accept, Some((field, show)))
    }

    fn run<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        accept: &mut dyn FnMut(T) -> Result<U, String>,
        mut stream: Option<FieldStream<'_>>,
    ) -> Result<U, LlmError> {
        let contract = request.contract;
        let mut messages = vec![LlmMessage::system(contract.prompt()), LlmMessage::user(request.input)];
        let hash = self.hash(contract, request.input);
        let deadline = request.deadline.unwrap_or_else(|| Instant::now() + BACKGROUND_TIMEOUT);
        let keys = request.depends_on.keys();
        // Equal requests wait for the first one's cached response; without a cache there is no reason to wait.
        let first = RequestKey { contract, hash, step: 0 };
        let guard = request.cacheable.then(|| self.in_flight.enter(request.bank, &first, &keys, deadline));
        let guard = guard.map(|entered| entered.ok_or(LlmError::Deadline)).transpose()?;
        let active = ActiveRequest { request, keys, deadline, guard };
        // The cached repair belongs to the cached reply, so it is not looked up after a new reply.
        let mut cached = request.cacheable && !request.bypass_cache;
        // The replies, and what is wrong with the last of them.
        let (mut replies, mut wrong) = (Vec::<(RequestKey, PaidResponse)>::new(), String::new());
        let mut step = 0;
        loop {
            let key = RequestKey { contract, hash, step };
            let shown = stream.as_mut().map(|(field, show)| (*field, &mut **show as &mut dyn FnMut(ReplyPiece<'_>)));
            let asked = self.response(&active, &key, &messages, shown, cached);
            let (response, fresh) = match (asked, replies.pop()) {
                // The reason for the repair says more than the fact that it does not fit into the context.
                (Err(error), Some((_, reply))) if error.is_too_long() => {
                    let problem = format!("{wrong}; {error}");
                    return Err(LlmError::InvalidReply { contract: contract.name(), problem, reply: reply.text });
                }
                (asked, before) => {
                    replies.extend(before);
                    asked?
                }
            };
            cached &= !fresh;
            let problem = match parse(contract, &response).and_then(&mut *accept) {
                Ok(accepted) => {
                    replies.push((key, response));
                    if request.bypass_cache {
                        // The cached responses are overwritten only now that there is a better one.
                        replies.iter().for_each(|(key, response)| self.warn(self.store(&active, key, response)));
                    }
                    return Ok(accepted);
                }
                Err(problem) => problem,
            };
            if step > 0 {
                return Err(LlmError::InvalidReply { contract: contract.name(), problem, reply: response.text });
            }
            step += 1;
            messages.push(LlmMessage::assistant(quoted(&response)));
            messages.push(LlmMessage::user(&format!(
                "That cannot be used: {problem}\nWrite the whole JSON object again, with this put right."
            )));
            wrong = problem;
            replies.push((key, response));
            if let Some((_, show)) = &mut stream {
                show(ReplyPiece::Restart);
            }
        }
    }

    /// The response to messages, and whether it is new. With `cached` it may come from the cache.
    fn response(
        &self,
        active: &ActiveRequest<'_>,
        key: &RequestKey,
        messages: &[LlmMessage],
        mut stream: Option<FieldStream<'_>>,
        cached: bool,
    ) -> Result<(PaidResponse, bool), LlmError> {
        let ActiveRequest { request, keys, deadline, .. } = active;
        if cached && let Some(response) = self.lookup(request, key, keys)? {
            if let Some((field, show)) = &mut stream {
                show(ReplyPiece::Text(&FieldParser::new(field).push(&response.text)));
            }
            self.count_used(request, response.usage);
            return Ok((response, false));
        }
        let mut usage = ModelUsage::default();
        let limit = self.completion_tokens(request);
        let sent = if request.deadline.is_some() {
            self.send_in_time(request, messages, limit, *deadline, stream, &mut usage)
        } else {
            self.send_until_clear(active, key, messages, limit, stream, &mut usage)
        };
        self.count_used(request, usage);
        let mut stored = self.pay(request.bank, key.contract, usage);
        let response = sent.map(|reply| {
            let cut_at = reply.cut.then_some(limit);
            PaidResponse { text: reply.text, cut_at, repeats: reply.repeats, stopped: reply.stopped, usage }
        });
        if let (Ok(response), false) = (&response, request.bypass_cache) {
            stored = stored.and(self.store(active, key, response));
        }
        self.warn(stored);
        Ok((response?, true))
    }

    /// Sends a request whose caller waits. If its text may have caused a failure, a probe finds the cause for later
    /// callers.
    fn send_in_time(
        &self,
        request: &LlmRequest<'_>,
        messages: &[LlmMessage],
        limit: u32,
        deadline: Instant,
        stream: Option<FieldStream<'_>>,
        usage: &mut ModelUsage,
    ) -> Result<ChatReply, LlmError> {
        let (budget, retries) = (deadline.saturating_duration_since(Instant::now()), self.settings().retries);
        self.outage.check(budget)?;
        let sent = self.transport.send(request.contract, messages, limit, deadline, stream, retries, usage);
        let failure = match sent {
            Ok(reply) => {
                self.outage.note_answer();
                return Ok(reply);
            }
            Err(failure) => failure,
        };
        match &failure.error {
            LlmError::Unavailable { .. } | LlmError::Deadline if failure.may_be_of_text() => {
                self.probe_apart(request, budget, failure.error.clone());
            }
            LlmError::Unavailable { .. } => self.outage.note_failure(budget, &failure.error),
            _ => {}
        }
        Err(failure.error)
    }

    /// Sends the probe in a thread of its own, unless one was sent just now.
    fn probe_apart(&self, request: &LlmRequest<'_>, budget: Duration, error: LlmError) {
        if !self.outage.may_probe() {
            return;
        }
        let (own, bank, contract) = (Weak::clone(&self.own), request.bank.clone(), request.contract);
        let probe = move || {
            let Some(llm) = own.upgrade() else { return };
            let (from, mut usage) = (Instant::now(), ModelUsage::default());
            let until = from + budget.max(PROBE_TIME);
            match llm.probe(contract, until, &mut usage) {
                // A caller with less time than the probe took would wait in vain.
                Ok(_) => llm.outage.note_failure(from.elapsed(), &LlmError::Deadline),
                Err(LlmError::CapReached { .. }) => {}
                Err(_) => llm.outage.note_failure(budget, &error),
            }
            llm.warn(llm.pay(&bank, contract, usage));
        };
        // Without a thread nothing is known, and later callers try.
        drop(std::thread::Builder::new().name("llm probe".to_owned()).spawn(probe));
    }

    /// Sends a request for which nobody waits. If its text may have caused a failure, the probe finds the cause: the
    /// endpoint or, after some more tries, the text.
    fn send_until_clear(
        &self,
        active: &ActiveRequest<'_>,
        key: &RequestKey,
        messages: &[LlmMessage],
        limit: u32,
        mut stream: Option<FieldStream<'_>>,
        usage: &mut ModelUsage,
    ) -> Result<ChatReply, LlmError> {
        let (contract, deadline) = (active.request.contract, active.deadline);
        let mut text = key.hash;
        text[0] ^= key.step;
        if active.request.bypass_cache {
            self.suspects.forget(&text);
        }
        let mut failed = None;
        if !self.suspects.has(&text) {
            let shown = stream.as_mut().map(|(field, show)| (*field, &mut **show as &mut dyn FnMut(ReplyPiece<'_>)));
            let retries = self.settings().retries;
            let sent = self.transport.send(contract, messages, limit, deadline, shown, retries, usage);
            let failure = match sent {
                Ok(reply) => {
                    self.outage.note_answer();
                    return Ok(reply);
                }
                Err(failure) if failure.may_be_of_text() => failure,
                Err(SendFailure { error, .. }) => return Err(error),
            };
            let failure = lone_chat_request::failure(failure);
            // If the text was refused, the probe is sent below.
            if !matches!(failure, LoneTextFailure::Refused(_))
                && let Err(away) = self.probe(contract, deadline, usage)
            {
                self.suspects.add([text]);
                return Err(away);
            }
            failed = Some(failure);
        }
        let probe = |usage: &mut ModelUsage| self.probe(contract, deadline, usage);
        let (transport, probe) =
            (&self.transport, &probe as &dyn Fn(&mut ModelUsage) -> Result<ProbeOutcome, LlmError>);
        let mut lone = LoneChatRequest { probe, transport, contract, messages, limit, deadline, stream, usage };
        let taken = self.suspects.alone(&text, TryLimits::WHOLE, &mut lone, failed)?;
        taken.map(|taken| taken.reply).map_err(|problem| LlmError::Rejected {
            url: self.url().to_owned(),
            problem: format!("{problem}, while it answers other requests"),
        })
    }

    /// Sends the probe. While the endpoint is away, one probe serves all requests that need one.
    fn probe(&self, contract: Contract, deadline: Instant, usage: &mut ModelUsage) -> Result<ProbeOutcome, LlmError> {
        let mut silent = sync::lock(&self.silent);
        if let Some((at, error)) = &*silent
            && at.elapsed() < PROBE_TIME
        {
            return Err(error.clone());
        }
        let found = lone_chat_request::probe(&self.transport, contract, deadline, usage);
        *silent = found.as_ref().err().map(|error| (Instant::now(), error.clone()));
        found
    }

    /// Counts what a request cost.
    fn pay(&self, bank: &Bank, contract: Contract, usage: ModelUsage) -> Result<(), LlmError> {
        self.spent.add(contract, usage);
        let cache = self.cache.as_ref().filter(|_| usage != ModelUsage::default());
        cache.map_or(Ok(()), |cache| cache.spend(bank, contract, usage))
    }

    /// The maximum number of tokens in a request's reply.
    fn completion_tokens(&self, request: &LlmRequest<'_>) -> u32 {
        let limit = request.contract.completion_tokens(self.settings());
        request.reply_tokens.map_or(limit, |tokens| tokens.min(limit))
    }

    fn count_used(&self, request: &LlmRequest<'_>, usage: ModelUsage) {
        self.used.add(request.contract, usage);
        request.meter.add(usage);
    }

    /// The cached response. A response that was cut off at a lower limit than the present one is not used.
    fn lookup(
        &self,
        request: &LlmRequest<'_>,
        key: &RequestKey,
        keys: &[WindowId],
    ) -> Result<Option<PaidResponse>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(None), |cache| cache.lookup(request.bank, key, keys))?;
        let limit = self.completion_tokens(request);
        Ok(found.filter(|response| response.cut_at.is_none_or(|at| at >= limit)))
    }

    /// Caches a response, unless what it depends on changed while the model wrote it.
    fn store(&self, active: &ActiveRequest<'_>, key: &RequestKey, response: &PaidResponse) -> Result<(), LlmError> {
        let (Some(cache), Some(guard)) = (&self.cache, &active.guard) else { return Ok(()) };
        guard.run_if_valid(|| cache.store(active.request.bank, key, &active.keys, response))
    }

    /// A paid response is used even if it cannot be cached.
    fn warn(&self, stored: Result<(), LlmError>) {
        if let Err(error) = stored {
            let warning = format!("{error}; the paid response is used once and not cached");
            let mut said = sync::lock(&self.said);
            if said.as_ref() != Some(&warning) {
                log_events::spending_warned(&warning);
                *said = Some(warning);
            }
        }
    }

    /// The identity of a request: the model, the prompt with its schema, and the text.
    fn hash(&self, contract: Contract, input: &str) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        for field in [self.settings().model.as_str(), contract.hash(), input] {
            hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
        }
        *hash.finalize().as_bytes()
    }

    /// What this process spent, by contract.
    #[must_use]
    pub fn spending(&self) -> Vec<(Contract, ModelUsage)> {
        self.spent.by_contract()
    }

    /// The cost of the responses that this process used, by contract, cached ones included.
    #[must_use]
    pub fn used_response_cost(&self) -> Vec<(Contract, ModelUsage)> {
        self.used.by_contract()
    }

    /// What all processes spent on this directory, by bank and contract.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when it cannot be read.
    pub fn expenses(&self) -> Result<Vec<ContractExpense>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::expenses)?;
        Ok(found.into_iter().map(|(bank, contract, usage)| ContractExpense { bank, contract, usage }).collect())
    }

    /// Writes the cache of responses into new files, without what was evicted.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; the cache is as before then.
    pub fn rewrite_cache(&self) -> Result<(), LlmError> {
        self.cache.as_ref().map_or(Ok(()), ResponseCache::rewrite)
    }

    /// What the cached responses about each window cost.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when it cannot be read.
    pub fn window_expenses(&self) -> Result<Vec<WindowExpense>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::windows)?;
        Ok(found.into_iter().map(|(bank, window, usage)| WindowExpense { bank, window, usage }).collect())
    }

    /// Evicts the responses about a window that was rewritten, except for the extraction from the texts in `keep`.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is evicted then.
    pub fn evict_window(&self, bank: &Bank, window: &WindowId, keep: &[String]) -> Result<(), LlmError> {
        let keep: Vec<_> = keep.iter().map(|input| self.hash(Contract::Extract, input)).collect();
        self.evict(bank, std::slice::from_ref(window), |key, _| keep.contains(&key.hash))
    }

    /// Evicts every response that depends on one of these turns, which were edited or deleted.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is evicted then.
    pub fn evict_turns<'t>(&self, bank: &Bank, turns: impl Iterator<Item = &'t str>) -> Result<(), LlmError> {
        self.evict(bank, &turns.map(response_cache::turn_key).collect::<Vec<_>>(), |_, _| false)
    }

    /// Evicts the responses of every bank that is not `ours`.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses.
    pub fn retain_banks(&self, ours: impl Fn(&Bank) -> bool) -> Result<(), LlmError> {
        self.cache.as_ref().map_or(Ok(()), |cache| cache.retain_banks(ours))
    }

    fn evict(
        &self,
        bank: &Bank,
        keys: &[WindowId],
        keep: impl Fn(&RequestKey, &WindowId) -> bool,
    ) -> Result<(), LlmError> {
        let Some(cache) = self.cache.as_ref().filter(|_| !keys.is_empty()) else { return Ok(()) };
        self.in_flight.invalidate(bank, keys, &keep, || cache.evict(bank, keys, &keep))
    }
}

/// The part of the reply that a repair quotes. A small model repeats a loop that it is shown, so the rest of a reply
/// that never ended is left out.
fn quoted(response: &PaidResponse) -> &str {
    if !response.repeats && response.cut_at.is_none() {
        return &response.text;
    }
    &response.text[..response.text.floor_char_boundary(QUOTED_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::ModelUsage;

    #[test]
    fn a_repair_quotes_a_whole_reply_and_only_the_start_of_one_that_never_ended() {
        let text = "ä".repeat(1_000);
        let response = |cut_at, repeats| {
            let (text, usage) = (text.clone(), ModelUsage::default());
            PaidResponse { text, cut_at, repeats, stopped: None, usage }
        };
        assert_eq!(quoted(&response(None, false)), text);
        for endless in [response(Some(16), false), response(None, true)] {
            assert_eq!(quoted(&endless), "ä".repeat(QUOTED_BYTES / 2));
        }
    }
}
