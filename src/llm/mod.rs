//! One client for chat endpoints that speak OpenAI's protocol.
//!
//! In: what is asked for (one of six contracts), text to be read, and how long to wait. Out:
//! a value that obeys the contract's schema and that its asker accepted; or why there is
//! none. What does not obey is repaired once, by telling the model what was wrong. Whatever
//! was paid for is kept by bank and content, and is not paid for twice. The text is data: no
//! reply is ever run, followed or searched for orders, and no tool is offered.
//!
//! The files: `contract` holds prompts and schemas, `wire` the protocol, `limits` how many, `in_flight` which, `cache` what was said, `partial` a text while it streams,
//! `span` times as models write them.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, Weak},
    time::{Duration, Instant},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    config::LlmSettings,
    endpoint::{Endpoint, Failure, backoff},
    model::{Bank, Usage, WindowId},
    sync,
};

mod cache;
mod contract;
mod in_flight;
mod limits;
mod partial;
mod span;
mod wire;

pub use contract::Contract;
pub use span::Span;

use cache::{RequestKey, Response, ResponseCache};
use in_flight::{InFlight, Ticket};
use limits::Limits;
use partial::Field;
use wire::{Body, Format, Message, Reply, StreamOptions};

/// How long something waits that no one waits for.
const PATIENT: Duration = Duration::from_secs(24 * 3_600);
/// How long after a failure that may pass nobody is kept waiting for the endpoint.
const REST: Duration = Duration::from_secs(10);
/// The longest silence that an endpoint asks for and gets while somebody waits.
const LONGEST_QUIET: Duration = Duration::from_secs(60);
/// Tokens that a request has beside its messages and its schema, from above.
const FRAME_TOKENS: u64 = 16;

/// Why a model gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// There is no endpoint.
    #[error("no language model is configured; set llm.endpoint and llm.model in the pipeline file")]
    NotConfigured,
    /// The key is not where the pipeline says.
    #[error("llm.key_env: the environment variable {variable} is not set; export the endpoint's key in it")]
    MissingKey {
        /// The variable.
        variable: String,
    },
    /// The endpoint said no, and will again.
    #[error("{url} refuses model {model:?}: {problem}; check llm.endpoint, llm.model and the key")]
    Permanent {
        /// Where it was asked.
        url: String,
        /// The model.
        model: String,
        /// In the endpoint's words.
        problem: String,
    },
    /// The endpoint does not take this request; it may take others.
    #[error("{url} does not take this request: {problem}")]
    Rejected {
        /// Where it was asked.
        url: String,
        /// In the endpoint's words.
        problem: String,
    },
    /// The endpoint cannot be reached, or is too busy.
    #[error("{url}: {problem} ({attempts} attempts); is it running? [llm] has timeouts and retries")]
    Unavailable {
        /// Where it was asked.
        url: String,
        /// What happened last.
        problem: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The model's words are not what was asked for, twice.
    #[error("the model's {contract} cannot be used, also after a repair: {problem}")]
    InvalidReply {
        /// What was asked for.
        contract: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What the model said last.
        reply: String,
    },
    /// The money is spent.
    #[error(
        "{key} is reached: {spent} of {cap} are spent, and the next request may take {next}; raise it to go on, what \
         was paid for is kept"
    )]
    CapReached {
        /// Which cap.
        key: &'static str,
        /// What was spent.
        spent: String,
        /// What the next request may take.
        next: String,
        /// What may be.
        cap: String,
    },
    /// Nothing came in the time that there was.
    #[error("the model did not answer in time; llm.question_seconds and llm.timeout_seconds allow more")]
    Deadline,
    /// The cache of responses cannot be used.
    #[error("{path}: the cache of responses: {problem}")]
    Cache {
        /// The cache's directory.
        path: PathBuf,
        /// Why, with what to do.
        problem: String,
    },
}

/// What was spent on one bank and contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expense {
    /// The bank.
    pub bank: String,
    /// What was asked for.
    pub contract: Contract,
    /// What it took.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What was spent on one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowExpense {
    /// The bank.
    pub bank: String,
    /// The window.
    #[serde(flatten)]
    pub window: WindowId,
    /// What it took.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Something to ask a model for.
#[derive(Debug, Clone, Copy)]
pub struct LlmRequest<'r> {
    /// What for.
    pub contract: Contract,
    /// Whose dialogue it is.
    pub bank: &'r Bank,
    /// What the text was taken from: when that changes, what was said is let go.
    pub depends_on: DependsOn<'r>,
    /// The text to be read.
    pub input: &'r str,
    /// When to give up; absent, when it is there or has failed.
    pub deadline: Option<Instant>,
    /// Ask although the answer is known: deliberately, and paid for again.
    pub bypass_cache: bool,
    /// Keep the answer, so that it is not paid for again: where this process learns what is
    /// taken back of what it rests on.
    pub cacheable: bool,
    /// What it takes is added here, too.
    pub meter: &'r Meter,
}

/// Adds up what several requests took: what was spent on their responses now, or before.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Usage>);

impl Meter {
    /// What they took so far.
    #[must_use]
    pub fn total(&self) -> Usage {
        *sync::lock(&self.0)
    }
}

/// What a request's text was taken from.
#[derive(Debug, Clone, Copy)]
pub enum DependsOn<'r> {
    /// The question alone.
    Nothing,
    /// A window's turns.
    Window(&'r WindowId),
    /// Turns, by id, that a question found.
    Turns(&'r [String]),
}

impl DependsOn<'_> {
    fn places(self) -> Vec<WindowId> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Window(window) => vec![window.clone()],
            Self::Turns(turns) => turns.iter().map(|turn| cache::turn_place(turn)).collect(),
        }
    }
}

/// A request on its way, with its repair.
struct Asking<'a> {
    request: &'a LlmRequest<'a>,
    /// What it rests on.
    places: Vec<WindowId>,
    until: Instant,
    /// Absent where the answer is not to be kept.
    ticket: Option<Ticket<'a>>,
}

/// A field of the answer, and who sees it while it is written.
type Show<'s> = (&'static str, &'s mut (dyn FnMut(Streamed<'_>) + 's));

/// What a stream brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streamed<'s> {
    /// More of the text.
    Text(&'s str),
    /// What came so far is void; the text begins again.
    Restart,
}

/// A language model, its limits, and what it said before.
pub struct Llm {
    settings: LlmSettings,
    endpoint: Endpoint,
    limits: Limits,
    in_flight: InFlight,
    /// Absent where nothing is kept.
    cache: Option<ResponseCache>,
    warnings: Mutex<Vec<String>>,
    /// What this process spent, by contract.
    spent: Mutex<[Usage; Contract::ALL.len()]>,
    /// What this process used, by contract: what was spent, now or before, on each response.
    used: Mutex<[Usage; Contract::ALL.len()]>,
    /// What all processes spent on this directory, this one included.
    total: Mutex<Usage>,
    /// When the endpoint was last found to be away, by whom who had how much time, and how.
    away: Mutex<Option<(Instant, Duration, LlmError)>>,
}

/// The clients of this process, by the directory of their responses.
static OPEN: LazyLock<Mutex<HashMap<Option<PathBuf>, Weak<Llm>>>> = LazyLock::new(Mutex::default);

impl Llm {
    /// The client of a directory: one for all that ask in this process, so that they share
    /// its limits and what was paid for. Without a directory nothing is kept, and a cap counts
    /// what this process spends. Connects to nothing yet.
    ///
    /// # Errors
    /// [`LlmError`] when there is no endpoint, or the directory cannot be used.
    pub fn open(settings: &LlmSettings, directory: Option<PathBuf>) -> Result<Arc<Self>, LlmError> {
        if !settings.is_set() {
            return Err(LlmError::NotConfigured);
        }
        let mut open = sync::lock(&OPEN);
        if let Some(llm) = open.get(&directory).and_then(Weak::upgrade) {
            if llm.settings == *settings {
                return Ok(llm);
            }
            let problem = "this process has it open with other settings; close that first".to_owned();
            return Err(LlmError::Cache { path: directory.unwrap_or_default(), problem });
        }
        let endpoint = Endpoint::new(&settings.endpoint, "chat/completions", &settings.key_env);
        let (cache, warning) = directory.as_deref().map(ResponseCache::open).transpose()?.unzip();
        let mut total = Usage::default();
        for (_, _, usage) in cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::expenses)? {
            total += usage;
        }
        let llm = Arc::new(Self {
            settings: settings.clone(),
            endpoint,
            limits: Limits::new(settings),
            in_flight: InFlight::default(),
            cache,
            warnings: Mutex::new(warning.flatten().into_iter().collect()),
            spent: Mutex::default(),
            used: Mutex::default(),
            total: Mutex::new(total),
            away: Mutex::default(),
        });
        open.retain(|_, held| held.strong_count() > 0);
        open.insert(directory, Arc::downgrade(&llm));
        Ok(llm)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &LlmSettings {
        &self.settings
    }

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// Fails where the key is missing, as the first request would.
    ///
    /// # Errors
    /// [`LlmError::MissingKey`].
    pub fn check_key(&self) -> Result<(), LlmError> {
        let missing = self.endpoint.missing_key();
        missing.map_or(Ok(()), |variable| Err(LlmError::MissingKey { variable: variable.to_owned() }))
    }

    /// What a user should know; each is said once.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut sync::lock(&self.warnings))
    }

    /// Asks. `accept` makes of what obeys the schema what is wanted, or says what is wrong with it.
    ///
    /// # Errors
    /// [`LlmError`]; [`LlmError::InvalidReply`] after a repair that was no better.
    pub fn ask<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        accept: &mut dyn FnMut(T) -> Result<U, String>,
    ) -> Result<U, LlmError> {
        self.asked(request, accept, None)
    }

    /// Asks, showing the text field `field` of the answer while it is written.
    ///
    /// # Errors
    /// As [`Self::ask`]; what was shown then is not to be trusted.
    pub fn stream<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        field: &'static str,
        show: &mut dyn FnMut(Streamed<'_>),
        accept: &mut dyn FnMut(T) -> Result<U, String>,
    ) -> Result<U, LlmError> {
        self.asked(request, accept, Some((field, show)))
    }

    fn asked<T: DeserializeOwned, U>(
        &self,
        request: &LlmRequest<'_>,
        accept: &mut dyn FnMut(T) -> Result<U, String>,
        mut show: Option<Show<'_>>,
    ) -> Result<U, LlmError> {
        let contract = request.contract;
        let mut messages = vec![Message::system(contract.prompt()), Message::user(request.input)];
        let hash = self.hash(contract, request.input);
        let until = request.deadline.unwrap_or_else(|| Instant::now() + PATIENT);
        let places = request.depends_on.places();
        // One at a time: the others find it in the cache. Where nothing is kept they would not.
        let first = RequestKey { contract, hash, step: 0 };
        let ticket = request.cacheable.then(|| self.in_flight.enter(request.bank, &first, &places, until));
        let ticket = ticket.map(|entered| entered.ok_or(LlmError::Deadline)).transpose()?;
        let asking = Asking { request, places, until, ticket };
        // What follows a new response is new, too.
        let (mut known, mut replacing) = (request.cacheable && !request.bypass_cache, Vec::new());
        let mut step = 0;
        loop {
            let key = RequestKey { contract, hash, step };
            let shown = show.as_mut().map(|(field, show)| (*field, &mut **show as &mut dyn FnMut(Streamed<'_>)));
            let (response, fresh) = self.response(&asking, &key, &messages, shown, known)?;
            known &= !fresh;
            let problem = match parsed(contract, &response).and_then(&mut *accept) {
                Ok(found) => {
                    replacing.push((key, response));
                    if request.bypass_cache {
                        // In the place of those that were known, now that the last is accepted.
                        replacing.iter().for_each(|(key, response)| self.warn(self.keep(&asking, key, response)));
                    }
                    return Ok(found);
                }
                Err(problem) => problem,
            };
            if step > 0 {
                return Err(LlmError::InvalidReply { contract: contract.name(), problem, reply: response.text });
            }
            step += 1;
            messages.push(Message::assistant(&response.text));
            messages.push(Message::user(&format!(
                "That cannot be used: {problem}\nWrite the whole JSON object again, with this put right."
            )));
            replacing.push((key, response));
            if let Some((_, show)) = &mut show {
                show(Streamed::Restart);
            }
        }
    }

    /// The response to messages, and whether it is new: from the endpoint, and not, as may be
    /// where it is `known`, from the cache.
    fn response(
        &self,
        asking: &Asking<'_>,
        key: &RequestKey,
        messages: &[Message],
        mut show: Option<Show<'_>>,
        known: bool,
    ) -> Result<(Response, bool), LlmError> {
        let Asking { request, places, until, .. } = asking;
        if known && let Some(response) = self.lookup(request.bank, key, places)? {
            if let Some((field, show)) = &mut show {
                show(Streamed::Text(&Field::new(field).push(&response.text)));
            }
            self.count_used(request, response.usage);
            return Ok((response, false));
        }
        // Whoever had as much time came before, and found that nobody answers.
        if request.deadline.is_some()
            && let Some((since, had, error)) = &*sync::lock(&self.away)
            && since.elapsed() < REST
            && until.saturating_duration_since(Instant::now()) <= *had
        {
            return Err(error.clone());
        }
        let had = until.saturating_duration_since(Instant::now());
        let mut usage = Usage::default();
        let completed = self.complete(request, messages, *until, show, &mut usage);
        add(&self.spent, key.contract, usage);
        self.count_used(request, usage);
        match &completed {
            Ok(_) => *sync::lock(&self.away) = None,
            Err(error @ (LlmError::Unavailable { .. } | LlmError::Deadline)) => {
                *sync::lock(&self.away) = Some((Instant::now(), had, error.clone()));
            }
            Err(_) => {}
        }
        let spent = self.cache.as_ref().filter(|_| usage != Usage::default());
        let mut kept = spent.map_or(Ok(()), |cache| cache.spend(request.bank, key.contract, usage));
        let response = completed.map(|reply| {
            let cut_at = reply.cut.then_some(self.settings.most_completion_tokens);
            Response { text: reply.text, cut_at, usage }
        });
        if let (Ok(response), false) = (&response, request.bypass_cache) {
            kept = kept.and(self.keep(asking, key, response));
        }
        self.warn(kept);
        Ok((response?, true))
    }

    fn count_used(&self, request: &LlmRequest<'_>, usage: Usage) {
        add(&self.used, request.contract, usage);
        *sync::lock(&request.meter.0) += usage;
    }

    /// What was said before; nothing where it was cut shorter than is allowed now.
    fn lookup(&self, bank: &Bank, key: &RequestKey, places: &[WindowId]) -> Result<Option<Response>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(None), |cache| cache.lookup(bank, key, places))?;
        Ok(found.filter(|response| response.cut_at.is_none_or(|at| at >= self.settings.most_completion_tokens)))
    }

    /// Keeps a response, unless it is not to be kept, or what it rests on has changed meanwhile.
    fn keep(&self, asking: &Asking<'_>, key: &RequestKey, response: &Response) -> Result<(), LlmError> {
        let (Some(cache), Some(ticket)) = (&self.cache, &asking.ticket) else { return Ok(()) };
        let store = || cache.store(asking.request.bank, key, &asking.places, response);
        ticket.keep(|may| if may { store() } else { Ok(()) })
    }

    /// What was paid for is used, also where it cannot be kept.
    fn warn(&self, kept: Result<(), LlmError>) {
        if let Err(error) = kept {
            let told = format!("{error}; what was paid for is used once and not kept");
            let mut warnings = sync::lock(&self.warnings);
            if !warnings.contains(&told) {
                warnings.push(told);
            }
        }
    }

    /// Sends until there is a reply, or no hope or no time for one; `usage` takes what it cost,
    /// also what came to nothing.
    fn complete(
        &self,
        request: &LlmRequest<'_>,
        messages: &[Message],
        until: Instant,
        mut show: Option<Show<'_>>,
        usage: &mut Usage,
    ) -> Result<Reply, LlmError> {
        self.check_key()?;
        let body = self.body(request.contract, messages, show.is_some())?;
        let prompt_tokens = sent_tokens(request.contract, messages);
        let away = |problem: String, attempts| LlmError::Unavailable { url: self.url().to_owned(), problem, attempts };
        let mut attempts = 0;
        loop {
            let quiet = self.limits.quiet();
            if !quiet.is_zero() && (quiet > LONGEST_QUIET || Instant::now() + quiet >= until) {
                return Err(away("it asks to be left alone for a while".to_owned(), attempts));
            }
            std::thread::sleep(quiet);
            let leave = self.limits.enter(&self.settings, || *sync::lock(&self.total), prompt_tokens, until)?;
            let from = Instant::now();
            let timeout = Duration::from_secs(self.settings.timeout_seconds).min(until.saturating_duration_since(from));
            if timeout.is_zero() {
                return Err(LlmError::Deadline);
            }
            let sent = match &mut show {
                None => self.endpoint.post(&body, timeout, wire::read_all),
                Some((field, show)) => {
                    let mut field = Field::new(field);
                    let mut each = |piece: &str| {
                        let more = field.push(piece);
                        if !more.is_empty() {
                            show(Streamed::Text(&more));
                        }
                    };
                    self.endpoint.post(&body, timeout, |reader| wire::read_stream(reader, &mut each))
                }
            };
            attempts += 1;
            let milliseconds = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut took = |calls, (prompt_tokens, completion_tokens)| {
                // Added before leave is given back: in between, a cap would not see it.
                let took = Usage { calls, prompt_tokens, completion_tokens, milliseconds };
                *sync::lock(&self.total) += took;
                *usage += took;
            };
            let (problem, after, retries) = match sent {
                Ok(reply) => {
                    took(1, reply.tokens.unwrap_or_else(|| (prompt_tokens, tokens(&reply.text))));
                    return Ok(reply);
                }
                Err(Failure::Rejected(problem)) => {
                    return Err(LlmError::Rejected { url: self.url().to_owned(), problem });
                }
                Err(Failure::Permanent(problem)) => {
                    let (url, model) = (self.url().to_owned(), self.settings.model.clone());
                    return Err(LlmError::Permanent { url, model, problem });
                }
                Err(Failure::Transient { problem, after, charged }) => {
                    if charged {
                        // What it wrote is not known: at least it read.
                        took(0, (prompt_tokens, 0));
                    }
                    // What is charged for nothing, or takes all its time, is tried once more.
                    (problem, after, if charged { self.settings.retries.min(1) } else { self.settings.retries })
                }
            };
            drop(leave);
            if Instant::now() >= until {
                return Err(LlmError::Deadline);
            }
            if let Some(after) = after {
                self.limits.rest(after);
            }
            let pause = backoff(attempts);
            if attempts > retries || Instant::now() + pause >= until {
                return Err(away(problem, attempts));
            }
            if let Some((_, show)) = &mut show {
                show(Streamed::Restart);
            }
            std::thread::sleep(pause);
        }
    }

    fn body(&self, contract: Contract, messages: &[Message], stream: bool) -> Result<Vec<u8>, LlmError> {
        let defect = |e: serde_json::Error| LlmError::InvalidReply {
            contract: contract.name(),
            problem: format!("the request has no JSON form: {e}; this is a defect, please report it"),
            reply: String::new(),
        };
        let schema: &RawValue = serde_json::from_str(contract.schema_text()).map_err(defect)?;
        let body = Body {
            model: &self.settings.model,
            messages,
            temperature: 0,
            max_tokens: self.settings.most_completion_tokens,
            response_format: Format::schema(contract.name(), schema),
            stream,
            stream_options: stream.then_some(StreamOptions { include_usage: true }),
        };
        serde_json::to_vec(&body).map_err(defect)
    }

    /// The identity of a request: the model, the prompt and its schema, and the text.
    fn hash(&self, contract: Contract, input: &str) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        for field in [self.settings.model.as_str(), contract.hash(), input] {
            hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
        }
        *hash.finalize().as_bytes()
    }

    /// What this process spent, by contract.
    #[must_use]
    pub fn spent(&self) -> Vec<(Contract, Usage)> {
        Contract::ALL.into_iter().zip(*sync::lock(&self.spent)).collect()
    }

    /// What this process used, by contract: also what an earlier one paid for.
    #[must_use]
    pub fn used(&self) -> Vec<(Contract, Usage)> {
        Contract::ALL.into_iter().zip(*sync::lock(&self.used)).collect()
    }

    /// What was ever spent on this directory, by bank and contract.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when it cannot be read.
    pub fn expenses(&self) -> Result<Vec<Expense>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::expenses)?;
        Ok(found.into_iter().map(|(bank, contract, usage)| Expense { bank, contract, usage }).collect())
    }

    /// What the responses about each window took, of those that are kept.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when it cannot be read.
    pub fn window_expenses(&self) -> Result<Vec<WindowExpense>, LlmError> {
        let found = self.cache.as_ref().map_or(Ok(Vec::new()), ResponseCache::windows)?;
        Ok(found.into_iter().map(|(bank, window, usage)| WindowExpense { bank, window, usage }).collect())
    }

    /// Lets go of what was said about a window that was written anew, except for extraction
    /// from the text `keep`.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is released then.
    pub fn evict_window(&self, bank: &Bank, window: &WindowId, keep: Option<&str>) -> Result<(), LlmError> {
        let keep = keep.map(|input| self.hash(Contract::Extract, input));
        self.evict(bank, std::slice::from_ref(window), |key, _| Some(key.hash) == keep)
    }

    /// Lets go of everything that rests on turns that were said differently, or taken back.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is released then.
    pub fn evict_turns<'t>(&self, bank: &Bank, turns: impl Iterator<Item = &'t str>) -> Result<(), LlmError> {
        self.evict(bank, &turns.map(cache::turn_place).collect::<Vec<_>>(), |_, _| false)
    }

    /// Lets go of all responses of other banks than these.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses.
    pub fn retain_banks(&self, ours: impl Fn(&Bank) -> bool) -> Result<(), LlmError> {
        self.cache.as_ref().map_or(Ok(()), |cache| cache.retain_banks(ours))
    }

    fn evict(
        &self,
        bank: &Bank,
        places: &[WindowId],
        kept: impl Fn(&RequestKey, &WindowId) -> bool,
    ) -> Result<(), LlmError> {
        let Some(cache) = self.cache.as_ref().filter(|_| !places.is_empty()) else { return Ok(()) };
        self.in_flight.evict(bank, places, &kept, || cache.evict(bank, places, &kept))
    }
}

fn add(to: &Mutex<[Usage; Contract::ALL.len()]>, contract: Contract, usage: Usage) {
    sync::lock(to)[contract as usize] += usage;
}

/// What was said, if it obeys the schema.
fn parsed<T: DeserializeOwned>(contract: Contract, response: &Response) -> Result<T, String> {
    if response.cut_at.is_some() {
        return Err("it was cut off at the limit of its length; be shorter".to_owned());
    }
    // Some models put their JSON between fences whatever they are told.
    let text = response.text.trim();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let problems = contract.problems(&value);
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    serde_json::from_value(value).map_err(|e| e.to_string())
}

/// Tokens of messages, as the o200k vocabulary counts them; the schema is sent with them.
fn sent_tokens(contract: Contract, messages: &[Message]) -> u64 {
    let said: u64 = messages.iter().map(|m| tokens(m.content()) + FRAME_TOKENS).sum();
    said + tokens(contract.schema_text())
}

/// Tokens of a text, as the o200k vocabulary counts them.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

/// Tokens that a request would send.
#[must_use]
pub fn prompt_tokens(contract: Contract, input: &str) -> u64 {
    sent_tokens(contract, &[Message::system(contract.prompt()), Message::user(input)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_obey_is_told() {
        let check = |text: &str, cut: bool, word: Option<&str>| {
            let response = Response { text: text.to_owned(), cut_at: cut.then_some(16), usage: Usage::default() };
            match (parsed::<serde_json::Value>(Contract::Judge, &response), word) {
                (Ok(_), None) => {}
                (Err(problem), Some(word)) => assert!(problem.contains(word), "{problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check(r#"{"label": "wrong"}"#, false, None);
        check("```json\n{\"label\": \"wrong\"}\n```", false, None);
        check(r#"{"label": "wrong"}"#, true, Some("cut off"));
        check(r#"{"label": "wro"#, false, Some("not JSON"));
        check(r#"{"label": 3}"#, false, Some("/label"));
        check(r#"{}"#, false, Some("label"));
    }
}
