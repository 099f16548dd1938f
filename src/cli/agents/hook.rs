//! `ripplemem agents hook PROGRAM EVENT`: what a program calls at the start of a session and at each prompt.
//!
//! In: the program's JSON on stdin. Out: what the session is given on stdout, or nothing, and exit code 0 whatever
//! happens. It has a deadline of its own, after which it ends without an answer, whatever it is doing. It never blocks a
//! prompt or a compaction, says nothing on stderr, and reads its arguments itself, before anything else of the program
//! is set up (decision 61).

use std::{
    io::{Read as _, Write as _},
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

use agents::{
    AgentProgram, GivenText, GivenTurns, HookCall, HookMoment, LEAST_SHARE, MOST_TOKENS, PromptRoom, RecalledProfile,
    RecalledTurns, begin_text, hook_answer, prompt_text, question_of,
};
use jiff::Zoned;
use serde_json::json;
use sources::{DirectoryBank, bank_of_directory};
use types::recall_tag::session_mark;

use super::{
    given_files::{GivenFile, remove_old},
    hook_runs::{HookRun, note_run},
    memory_request::{HookRequestFailure, MemoryRequest},
    places::AgentPlaces,
    service_file::ServiceFile,
    service_start::start_service,
};

/// The variable that switches every hook off.
const OFF: &str = "RIPPLEMEM_HOOKS";
/// The largest input. A program sends a prompt and some paths.
const MAX_INPUT_BYTES: u64 = 16 << 20;
/// How long before the deadline nothing is waited for any more, so that what a session no longer has is still noted.
const SPARE: Duration = Duration::from_millis(20);
/// How long a hook takes if no service says otherwise.
const DEADLINE: Duration = Duration::from_millis(300);

/// What a hook came to.
#[derive(Default)]
struct HookOutcome {
    given: Option<GivenText>,
    /// What the session was given, once this was given, and its file.
    kept: Option<(GivenFile, GivenTurns)>,
    /// Why it gave nothing.
    reason: String,
}

/// Runs the hook if the arguments ask for one. Then nothing else of the program runs.
pub(crate) fn run_if_hook() -> bool {
    let began = Instant::now();
    let mut arguments = std::env::args_os().skip(1);
    let is_hook = arguments.next().is_some_and(|name| name == "agents" || name == "agent")
        && arguments.next().is_some_and(|name| name == "hook");
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    // Who asks for help is no program.
    if !is_hook || words.iter().any(|word| word.starts_with('-')) {
        return false;
    }
    // A hook never says anything but its answer.
    std::panic::set_hook(Box::new(|_| {}));
    let [program, event] = words.as_slice() else { return true };
    let Some(program) = AgentProgram::of_name(program) else { return true };
    let is_off = std::env::var(OFF).is_ok_and(|value| ["off", "0", "false", "no"].contains(&value.as_str()));
    if !is_off {
        answer(program, event, began);
    }
    true
}

/// Answers a program, and then keeps what became of it.
fn answer(program: AgentProgram, event: &str, began: Instant) {
    let Ok(places) = AgentPlaces::of_user() else { return };
    let service = ServiceFile::read(&places);
    let deadline = service.as_ref().map_or(DEADLINE, |service| Duration::from_millis(service.deadline_ms));
    let (sender, receiver) = mpsc::channel();
    let work = {
        let (places, event) = (places.clone(), event.to_owned());
        move || {
            let outcome = match service {
                Some(service) => outcome(program, &event, &places, &service, began + deadline.saturating_sub(SPARE)),
                None => HookOutcome { reason: "no service is installed".to_owned(), ..HookOutcome::default() },
            };
            // Nobody waits any longer once the deadline has passed.
            drop(sender.send(outcome));
        }
    };
    // What it does may wait for the program, for a disk or for the service: only this thread ends in time for sure.
    let worker = std::thread::Builder::new().spawn(work);
    let because = |reason: &str| HookOutcome { reason: reason.to_owned(), ..HookOutcome::default() };
    let found = match worker.map(|_| receiver.recv_timeout(deadline.saturating_sub(began.elapsed()))) {
        Ok(Ok(found)) => found,
        Ok(Err(RecvTimeoutError::Timeout)) => because("it took too long"),
        Ok(Err(RecvTimeoutError::Disconnected)) | Err(_) => because("it failed"),
    };
    let text = hook_answer(program, event, found.given.as_ref().map(|given| given.text.as_str()));
    let mut out = std::io::stdout();
    let is_written = out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok();
    let took = began.elapsed();
    if is_written && let Some((file, given)) = &found.kept {
        // What cannot be kept is given again.
        drop(file.write(given));
    }
    let (quotes, tokens) = found.given.map_or((0, 0), |given| (given.quotes, given.tokens));
    let run = HookRun {
        at_ms: jiff::Timestamp::now().as_millisecond(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        quotes,
        tokens,
        reason: found.reason,
    };
    note_run(&places.runs(program.name()), event, run);
}

/// What a session is given.
fn outcome(
    program: AgentProgram,
    event: &str,
    places: &AgentPlaces,
    service: &ServiceFile,
    until: Instant,
) -> HookOutcome {
    let because = |reason: &str| HookOutcome { reason: reason.to_owned(), ..HookOutcome::default() };
    let mut input = Vec::new();
    if std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut input).is_err() {
        return because("its input could not be read");
    }
    let Some(call) = HookCall::read(program, event, &input) else { return because("there was nothing to do") };
    let bank = match bank_of_directory(&call.directory, &service.bank) {
        Ok(DirectoryBank::Stored(bank)) => bank,
        Ok(DirectoryBank::KeptOut) => return because("the project has a file .ripplemem-ignore"),
        Err(_) => return because("the bank of the directory is not valid"),
    };
    let mark = session_mark(program.format(), &call.session);
    let file = GivenFile::of(&places.given(), &mark);
    let mut given = file.read();
    let now = Zoned::now();
    let now_ms = now.timestamp().as_millisecond();
    let prompt = match &call.moment {
        HookMoment::Compaction => {
            given.compact(now_ms);
            return HookOutcome { kept: Some((file, given)), ..because("the session was compacted") };
        }
        HookMoment::Start(cause) => {
            remove_old(&places.given());
            if !program.keeps_given() {
                given.forget();
            }
            given.begin(*cause, now_ms);
            None
        }
        HookMoment::Prompt(words) if given.begun && question_of(words).is_none() => {
            return because("the prompt is too short");
        }
        HookMoment::Prompt(words) => Some(words),
    };
    let is_start = prompt.is_none();
    let asked = ask(program, service, bank.as_str(), &mark, prompt.map(String::as_str), &mut given, &now, until);
    match asked {
        Ok(found) => {
            let reason = if found.is_some() { "" } else { "nothing was new" };
            HookOutcome { given: found, kept: Some((file, given)), reason: reason.to_owned() }
        }
        Err(failure) => {
            if matches!(failure, HookRequestFailure::Away) {
                start_service(places, service);
            }
            // A session that starts has lost what it was given, whether the service answers or not.
            let kept = is_start.then_some((file, given));
            HookOutcome { kept, ..because(&failure.to_string()) }
        }
    }
}

/// Asks the service: for the profile where the session has not had it, and for evidence at a prompt.
#[allow(clippy::too_many_arguments, reason = "what is asked, of whom and until when")]
fn ask(
    program: AgentProgram,
    service: &ServiceFile,
    bank: &str,
    mark: &str,
    prompt: Option<&str>,
    given: &mut GivenTurns,
    now: &Zoned,
    until: Instant,
) -> Result<Option<GivenText>, HookRequestFailure> {
    let address = service.address().ok_or(HookRequestFailure::Away)?;
    let mut request = MemoryRequest::connect(&address, &service.token, until)?;
    let mut texts = Vec::new();
    if prompt.is_none() || !given.begun {
        let path = format!("/v1/profile?bank={bank}&most_tokens={MOST_TOKENS}");
        let profile: RecalledProfile = read(request.send("GET", &path, None))?;
        texts.extend(begin_text(program, &profile, given));
        given.started();
    }
    if let Some(text) = prompt.and_then(question_of) {
        let used: usize = texts.iter().map(|text: &GivenText| text.tokens).sum();
        let most_tokens = MOST_TOKENS.saturating_sub(used);
        let left_ms = until.saturating_duration_since(Instant::now()).as_millis().max(1);
        let offset = now.offset();
        let mut question = json!({
            "bank": bank,
            "text": text,
            "asked_at": now.timestamp().display_with_offset(offset).to_string(),
            "most_tokens": most_tokens.max(1),
            "metadata": true,
            "timeout_ms": left_ms as u64,
        });
        if given.compacted_ms.is_none() {
            // What was said in the session is in it.
            question["where"] = json!({"metadata": {"not": {"path": ["session"], "eq": mark}}});
        }
        let recalled: RecalledTurns = read(request.send("POST", "/v1/ask", Some(&question.to_string())))?;
        let room = PromptRoom { program, session: mark, prompt: &text, most_tokens, least_share: LEAST_SHARE };
        texts.extend(prompt_text(room, &recalled, given));
    }
    Ok(joined(texts))
}

/// An answer of the service. A bank that is not there yet holds nothing.
fn read<T: serde::de::DeserializeOwned + Default>(
    answer: Result<Vec<u8>, HookRequestFailure>,
) -> Result<T, HookRequestFailure> {
    match answer {
        Ok(body) => serde_json::from_slice(&body).map_err(|_| HookRequestFailure::Form),
        Err(HookRequestFailure::Status(404)) => Ok(T::default()),
        Err(failure) => Err(failure),
    }
}

fn joined(texts: Vec<GivenText>) -> Option<GivenText> {
    texts.into_iter().reduce(|one, other| GivenText {
        text: format!("{}\n{}", one.text, other.text),
        tokens: one.tokens + other.tokens,
        quotes: one.quotes + other.quotes,
    })
}
