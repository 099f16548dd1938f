//! One client for chat endpoints that speak OpenAI's protocol.
//!
//! In: what is asked for (one of five contracts), text to be read, and how long to wait. Out:
//! a value that obeys the contract's schema and that its asker accepted; or why there is
//! none. What does not obey is repaired once, by telling the model what was wrong. Whatever
//! was paid for is kept by bank and content, and is not paid for twice. The text is data: no
//! reply is ever run, followed or searched for orders, and no tool is offered.
//!
//! The files: `contract` holds prompts and schemas, `wire` the protocol, `transport` one
//! request, `limits` how many, `cache` what was said, `partial` a text while it streams,
//! `span` times as models write them.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    config::LlmSettings,
    model::{Bank, Window, WindowId},
};

mod cache;
mod contract;
mod limits;
mod partial;
mod span;
mod transport;
mod wire;

pub use contract::Contract;
pub use span::Span;

use cache::{Cache, RequestKey, Response};
use limits::Limits;
use partial::Field;
use transport::{Failed, Transport};
use wire::{Body, Format, Message, Reply, StreamOptions};

/// The longest pause before another attempt that the endpoint did not ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The first pause; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How long something waits that no one waits for.
const PATIENT: Duration = Duration::from_secs(24 * 3_600);
/// How long after a failure that may pass nobody is kept waiting for the endpoint.
const REST: Duration = Duration::from_secs(10);
/// Tokens that a request has beside its messages and its schema, from above.
const FRAME_TOKENS: u64 = 16;

/// Why a model gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// There is no endpoint.
    #[error("no language model is configured; set llm.endpoint and llm.model in the pipeline file")]
    NotSet,
    /// The key is not where the pipeline says.
    #[error("llm.key_env: the environment variable {variable} is not set; export the endpoint's key in it")]
    Key {
        /// The variable.
        variable: String,
    },
    /// The endpoint said no, and will again.
    #[error("{url} refuses model {model:?}: {problem}; check llm.endpoint, llm.model and the key")]
    Refused {
        /// Where it was asked.
        url: String,
        /// The model.
        model: String,
        /// In the endpoint's words.
        problem: String,
    },
    /// The endpoint cannot be reached, or is too busy.
    #[error("{url}: {problem} ({attempts} attempts); is it running? [llm] has timeouts and retries")]
    Away {
        /// Where it was asked.
        url: String,
        /// What happened last.
        problem: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The model's words are not what was asked for, twice.
    #[error("the model's {contract} cannot be used, also after a repair: {problem}")]
    Unusable {
        /// What was asked for.
        contract: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What the model said last.
        said: String,
    },
    /// The money is spent.
    #[error("{key} is reached: {spent} of {cap} are spent; raise it to go on, what was paid for is kept")]
    Cap {
        /// Which cap.
        key: &'static str,
        /// What was spent.
        spent: String,
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

impl LlmError {
    /// Whether the same may go well at another time, without anyone doing anything.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Deadline)
    }
}

/// What calls took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Requests that were sent and answered.
    pub calls: u64,
    /// Tokens that were sent, as the endpoint counts them.
    pub prompt_tokens: u64,
    /// Tokens that came back.
    pub completion_tokens: u64,
    /// Milliseconds from sending to the last byte.
    pub milliseconds: u64,
}

impl Usage {
    /// Tokens of prompts and completions.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.milliseconds += other.milliseconds;
    }
}

/// What was spent on one bank and contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expense {
    /// The bank; empty for those that were forgotten.
    pub bank: String,
    /// What was asked for.
    pub contract: Contract,
    /// What it took.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Something to ask a model for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// What for.
    pub contract: Contract,
    /// Whose dialogue it is.
    pub bank: &'r Bank,
    /// What the text was taken from: when that changes, what was said is let go.
    pub rests_on: RestsOn<'r>,
    /// The text to be read.
    pub input: &'r str,
    /// How long to wait in all; absent, until it is there or has failed.
    pub patience: Option<Duration>,
    /// Ask although the answer is known: deliberately, and paid for again.
    pub anew: bool,
}

/// What a request's text was taken from.
#[derive(Debug, Clone, Copy)]
pub enum RestsOn<'r> {
    /// The question alone.
    Nothing,
    /// A window's turns.
    Window(&'r WindowId),
    /// Turns, by id, that a question found.
    Turns(&'r [String]),
}

impl RestsOn<'_> {
    fn places(self) -> Vec<WindowId> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Window(window) => vec![window.clone()],
            Self::Turns(turns) => turns.iter().map(|turn| cache::turn_place(turn)).collect(),
        }
    }
}

/// A field of the answer, and who sees it while it is written.
type Show<'s> = (&'static str, &'s mut (dyn FnMut(Streamed<'_>) + 's));

/// What a stream brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streamed<'s> {
    /// More of the text.
    Text(&'s str),
    /// What came so far is void; the text begins again.
    Again,
}

/// A language model, its limits, and what it said before.
pub struct Llm {
    settings: LlmSettings,
    transport: Transport,
    limits: Limits,
    /// Taken out only while it is scrubbed.
    cache: Mutex<Option<Cache>>,
    warning: Mutex<Option<String>>,
    /// What this process spent, by contract.
    spent: Mutex<[Usage; Contract::ALL.len()]>,
    /// What all processes spent on this directory, this one included.
    total: Mutex<Usage>,
    /// When the endpoint was last found to be away, and how.
    away: Mutex<Option<(Instant, LlmError)>>,
}

/// The clients of this process, by the directory of their responses.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Llm>>>> = LazyLock::new(Mutex::default);

impl Llm {
    /// The client of a directory: one for all that ask in this process, so that they share
    /// its limits and what was paid for. Connects to nothing yet.
    ///
    /// # Errors
    /// [`LlmError`] when there is no endpoint, or the directory cannot be used.
    pub fn open(settings: &LlmSettings, directory: PathBuf) -> Result<Arc<Self>, LlmError> {
        if !settings.is_set() {
            return Err(LlmError::NotSet);
        }
        let mut open = lock(&OPEN);
        if let Some(llm) = open.get(&directory).and_then(Weak::upgrade) {
            if llm.settings == *settings {
                return Ok(llm);
            }
            let problem = "this process has it open with other settings; close that first".to_owned();
            return Err(LlmError::Cache { path: directory, problem });
        }
        let transport = Transport::new(settings);
        let (cache, warning) = Cache::open(&directory)?;
        let mut total = Usage::default();
        cache.expenses()?.into_iter().for_each(|(_, _, usage)| total += usage);
        let llm = Arc::new(Self {
            settings: settings.clone(),
            transport,
            limits: Limits::new(settings),
            cache: Mutex::new(Some(cache)),
            warning: Mutex::new(warning),
            spent: Mutex::default(),
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
        self.transport.url()
    }

    /// Fails where the key is missing, as the first request would.
    ///
    /// # Errors
    /// [`LlmError::Key`].
    pub fn check_key(&self) -> Result<(), LlmError> {
        self.transport.check_key()
    }

    /// What a user should know, once.
    #[must_use]
    pub fn take_warning(&self) -> Option<String> {
        lock(&self.warning).take()
    }

    /// Asks. `accept` makes of what obeys the schema what is wanted, or says what is wrong with it.
    ///
    /// # Errors
    /// [`LlmError`]; [`LlmError::Unusable`] after a repair that was no better.
    pub fn ask<T: DeserializeOwned, U>(
        &self,
        request: &Request<'_>,
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
        request: &Request<'_>,
        field: &'static str,
        show: &mut dyn FnMut(Streamed<'_>),
        accept: &mut dyn FnMut(T) -> Result<U, String>,
    ) -> Result<U, LlmError> {
        self.asked(request, accept, Some((field, show)))
    }

    fn asked<T: DeserializeOwned, U>(
        &self,
        request: &Request<'_>,
        accept: &mut dyn FnMut(T) -> Result<U, String>,
        mut show: Option<Show<'_>>,
    ) -> Result<U, LlmError> {
        let contract = request.contract;
        let mut messages = vec![Message::system(contract.prompt()), Message::user(request.input)];
        let hash = self.hash(contract, request.input);
        let until = Instant::now() + request.patience.unwrap_or(PATIENT);
        let mut step = 0;
        loop {
            let key = RequestKey { contract, hash, step };
            let shown = show.as_mut().map(|(field, show)| (*field, &mut **show as &mut dyn FnMut(Streamed<'_>)));
            let response = self.response(request, &key, &messages, until, shown)?;
            let problem = match parsed(contract, &response).and_then(&mut *accept) {
                Ok(found) => return Ok(found),
                Err(problem) => problem,
            };
            if step > 0 {
                return Err(LlmError::Unusable { contract: contract.name(), problem, said: response.text });
            }
            step += 1;
            messages.push(Message::assistant(&response.text));
            messages.push(Message::user(&format!(
                "That cannot be used: {problem}\nWrite the whole JSON object again, with this put right."
            )));
            if let Some((_, show)) = &mut show {
                show(Streamed::Again);
            }
        }
    }

    /// The response to messages, from the cache or from the endpoint.
    fn response(
        &self,
        request: &Request<'_>,
        key: &RequestKey,
        messages: &[Message],
        until: Instant,
        mut show: Option<Show<'_>>,
    ) -> Result<Response, LlmError> {
        let places = request.rests_on.places();
        if !request.anew
            && let Some(known) = self.with_cache(|cache| cache.lookup(request.bank, key, &places))?
        {
            if let Some((field, show)) = &mut show {
                show(Streamed::Text(&Field::new(field).push(&known.text)));
            }
            return Ok(known);
        }
        // Someone waits: whoever came before has found that nobody answers.
        if request.patience.is_some()
            && let Some((since, error)) = &*lock(&self.away)
            && since.elapsed() < REST
        {
            return Err(error.clone());
        }
        let completed = self.complete(request, messages, until, show);
        match &completed {
            Ok(_) => *lock(&self.away) = None,
            Err(error @ LlmError::Away { .. }) => *lock(&self.away) = Some((Instant::now(), error.clone())),
            Err(_) => {}
        }
        let (reply, usage) = completed?;
        let response = Response { text: reply.text, cut: reply.cut };
        self.note(key.contract, usage);
        self.with_cache(|cache| cache.store(request.bank, key, &places, &response, usage))?;
        Ok(response)
    }

    /// Sends until there is a reply, or no hope or no time for one.
    fn complete(
        &self,
        request: &Request<'_>,
        messages: &[Message],
        until: Instant,
        mut show: Option<Show<'_>>,
    ) -> Result<(Reply, Usage), LlmError> {
        self.check_key()?;
        let body = self.body(request.contract, messages, show.is_some())?;
        let prompt_tokens = sent_tokens(request.contract, messages);
        let mut attempts = 0;
        loop {
            let leave = self.limits.enter(&self.settings, || *lock(&self.total), prompt_tokens, until)?;
            let from = Instant::now();
            let timeout = Duration::from_secs(self.settings.timeout_seconds).min(until.saturating_duration_since(from));
            if timeout.is_zero() {
                return Err(LlmError::Deadline);
            }
            let sent = match &mut show {
                None => self.transport.send(&body, timeout, None),
                Some((field, show)) => {
                    let mut field = Field::new(field);
                    let mut each = |piece: &str| {
                        let more = field.push(piece);
                        if !more.is_empty() {
                            show(Streamed::Text(&more));
                        }
                    };
                    self.transport.send(&body, timeout, Some(&mut each))
                }
            };
            attempts += 1;
            let (problem, after) = match sent {
                Ok(reply) => {
                    let counted = || (prompt_tokens, tokens(&reply.text));
                    let (prompt_tokens, completion_tokens) = reply.tokens.unwrap_or_else(counted);
                    let milliseconds = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
                    // Added before leave is given back: in between, a cap would not see it.
                    let usage = Usage { calls: 1, prompt_tokens, completion_tokens, milliseconds };
                    *lock(&self.total) += usage;
                    return Ok((reply, usage));
                }
                Err(Failed::Lasting(problem)) => {
                    let (url, model) = (self.url().to_owned(), self.settings.model.clone());
                    return Err(LlmError::Refused { url, model, problem });
                }
                Err(Failed::Passing { problem, after }) => (problem, after),
            };
            drop(leave);
            let pause = after.unwrap_or_else(|| pause(attempts));
            let in_time = Instant::now() + pause < until;
            if attempts > self.settings.retries || !in_time {
                return Err(LlmError::Away { url: self.url().to_owned(), problem, attempts });
            }
            if let Some((_, show)) = &mut show {
                show(Streamed::Again);
            }
            std::thread::sleep(pause);
        }
    }

    fn body(&self, contract: Contract, messages: &[Message], stream: bool) -> Result<Vec<u8>, LlmError> {
        let defect = |e: serde_json::Error| LlmError::Unusable {
            contract: contract.name(),
            problem: format!("the request has no JSON form: {e}; this is a defect, please report it"),
            said: String::new(),
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

    fn note(&self, contract: Contract, usage: Usage) {
        lock(&self.spent)[contract as usize] += usage;
    }

    /// What this process spent, by contract.
    #[must_use]
    pub fn spent(&self) -> Vec<(Contract, Usage)> {
        Contract::ALL.into_iter().zip(*lock(&self.spent)).collect()
    }

    /// What was ever spent on this directory, by bank and contract.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when it cannot be read.
    pub fn expenses(&self) -> Result<Vec<Expense>, LlmError> {
        let found = self.with_cache(Cache::expenses)?;
        Ok(found.into_iter().map(|(bank, contract, usage)| Expense { bank, contract, usage }).collect())
    }

    /// Lets go of what was said about a window, except for extraction from the text `keep`,
    /// and of everything that rests on one of its turns. For a window that changed, or that is
    /// no more (`keep` absent then).
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is released then.
    pub fn release(&self, window: &Window, keep: Option<&str>) -> Result<(), LlmError> {
        let keep = keep.map(|input| self.hash(Contract::Extract, input));
        let turns = window.turns.iter().map(|held| held.turn.turn.as_str());
        self.with_cache(|cache| cache.release(&window.bank, &window.id, turns, keep.as_ref()))
    }

    /// Drops everything that was said about a bank; what it cost stays, under no name. Old
    /// files may still hold it until [`Self::scrub`].
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; nothing is dropped then.
    pub fn forget(&self, bank: &Bank) -> Result<(), LlmError> {
        self.with_cache(|cache| cache.forget(bank))
    }

    /// Rewrites the files, so that none holds what was released or forgotten before.
    ///
    /// # Errors
    /// [`LlmError::Cache`] when the disk refuses; open the client again then.
    pub fn scrub(&self) -> Result<(), LlmError> {
        let mut held = lock(&self.cache);
        if let Some(cache) = held.take() {
            *held = Some(cache.scrub()?);
        }
        Ok(())
    }

    fn with_cache<T>(&self, work: impl FnOnce(&Cache) -> Result<T, LlmError>) -> Result<T, LlmError> {
        match lock(&self.cache).as_ref() {
            Some(cache) => work(cache),
            None => Err(LlmError::Cache {
                path: PathBuf::new(),
                problem: "a scrub failed; open the client again".to_owned(),
            }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was said, if it obeys the schema.
fn parsed<T: DeserializeOwned>(contract: Contract, response: &Response) -> Result<T, String> {
    if response.cut {
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

/// A pause before the next attempt: twice the one before, between half of it and all.
fn pause(attempts: u32) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + fastrand::f64() / 2.0)
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
    fn pauses_grow_with_jitter_and_have_an_end() {
        for (attempts, low, high) in [(1, 250, 500), (2, 500, 1_000), (5, 4_000, 8_000), (40, 15_000, 30_000)] {
            for _ in 0..50 {
                let found = pause(attempts).as_millis();
                assert!((low..=high).contains(&found), "{attempts}: {found}");
            }
        }
    }

    #[test]
    fn what_does_not_obey_is_told() {
        let check = |text: &str, cut: bool, word: Option<&str>| {
            let response = Response { text: text.to_owned(), cut };
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
