//! The language-model path against a real model, SmolLM2-135M-Instruct behind llama.cpp's server.
//!
//! It says all kinds of things. Whatever it says: nothing invalid is kept, nothing hangs, nothing is
//! paid for twice, and every refusal is a dead letter with its reason. `make test-model` runs these
//! tests; they are skipped, by name, where pip cannot install the model.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use logs::Topic;
use models::llm::{self, Contract, LlmClient, LlmError, LlmRequest, ReplyPiece, RequestDependency, UsageMeter};
use ripplemem::PipelineDriver;
use serde_json::{Value, json};
use types::{
    config::Pipeline,
    model::{Bank, DeadLetter, MemoryKey, MemoryRecord, TurnEvent},
};

use super::{
    model_proxy::ModelProxy,
    skipped::skip,
    support::{ask, census, data, lines, open, write},
};

/// The longest that one test may wait for the model.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The server, which ends when this process does.
struct RealModel {
    _child: Child,
    endpoint: String,
}

/// The server, started by the first test that needs it; one test at a time uses it. `None` if it cannot be installed.
fn model(test: &str) -> Option<(MutexGuard<'static, Option<RealModel>>, ModelProxy)> {
    static SERVER: Mutex<Option<RealModel>> = Mutex::new(None);
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if server.is_none() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/model_real");
        let fetched = Command::new(&script).args(["fetch", "small"]).output().unwrap();
        if fetched.status.code() == Some(5) {
            skip(test, String::from_utf8_lossy(&fetched.stderr).trim());
            return None;
        }
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
        let mut child = Command::new(&script)
            .args(["serve", "small", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut endpoint = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
        assert!(endpoint.starts_with("http://"), "the server did not start");
        *server = Some(RealModel { _child: child, endpoint: endpoint.trim().to_owned() });
    }
    let proxy = ModelProxy::start(&server.as_ref().unwrap().endpoint);
    Some((server, proxy))
}

fn settings(proxy: &ModelProxy, home: &Path, more: &str) -> Pipeline {
    let text = format!(
        "window.turns = 6\nwindow.overlap = 1\n{more}\n[llm]\nendpoint = \"{}\"\nmodel = \"SmolLM2-135M-Instruct\"\n\
         context_tokens = 8192\nin_flight = 1\ntimeout_seconds = 900\nquestion_seconds = 900\nretries = 1\n\
         completion_tokens.extract = 400\n",
        proxy.endpoint
    );
    super::support::pipeline(home, &text)
}

/// The exit code if some replies could not be used.
const REJECTED: i32 = 3;

const READS: &str = "extract.extractor = \"llm\"";

/// The first turns of the sample, as one file.
fn sample(home: &Path, turns: usize) -> PathBuf {
    let all = fs::read_to_string(data("sample.jsonl")).unwrap();
    let some: String = all.lines().take(turns).map(|line| format!("{line}\n")).collect();
    write(&home.join("turns.jsonl"), some)
}

/// The live records of the memory topic.
fn records(service: &PipelineDriver) -> Vec<(MemoryKey, MemoryRecord)> {
    let mut live = std::collections::BTreeMap::new();
    for record in service.log().read(Topic::Memory, 0, 0, 10_000).unwrap().records {
        let Ok(key) = MemoryKey::from_bytes(&record.key) else { continue };
        match record.value {
            Some(v) => drop(live.insert(record.key, (key, serde_json::from_slice(&v).unwrap()))),
            None => drop(live.remove(&record.key)),
        }
    }
    live.into_values().collect()
}

/// Every record is of the model or of the rules, and each of the rules' has a dead letter with its reason; every
/// unit cites turns of its own window. Gives how many the model read and how many were refused.
fn nothing_invalid_is_kept(service: &PipelineDriver) -> (usize, usize) {
    let letters = service.log().read(Topic::DeadLetters, 0, 0, 1_000).unwrap().records;
    let letters: Vec<DeadLetter> =
        letters.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect();
    let (mut read, mut refused) = (0, 0);
    for (key, record) in records(service) {
        let window = key.window.start;
        assert!(!record.extractor.ends_with(" until llm"), "window {window} still waits: {}", record.extractor);
        if record.extractor.starts_with("llm/") {
            read += 1;
        } else if record.extractor.contains(" instead of llm/") {
            refused += 1;
            let place = format!("window {window}, by llm/");
            let letter = letters.iter().find(|l| l.origin.contains(&place));
            assert!(letter.is_some_and(|l| l.reason.len() > 20), "window {window} has no dead letter: {letters:?}");
        }
        let turns: BTreeSet<&str> = record.turns.iter().map(|t| t.turn.turn.as_str()).collect();
        for unit in &record.units {
            assert!(!unit.restatement.trim().is_empty() && !unit.sources.is_empty(), "{unit:?}");
            assert!(unit.sources.iter().all(|s| turns.contains(s.as_str())), "{unit:?} of {turns:?}");
        }
    }
    assert_eq!(refused, letters.len(), "{letters:?}");
    (read, refused)
}

/// No request was answered to the end twice.
fn nothing_is_paid_twice(proxy: &ModelProxy) {
    let mut answered = BTreeSet::new();
    for (body, ended) in proxy.requests() {
        assert!(!ended || answered.insert(body.to_string()), "answered twice: {body:#}");
    }
}

#[test]
#[ignore = "needs a real model: make test-model"]
fn whatever_a_real_model_says_of_a_window_nothing_invalid_is_kept() {
    let Some((_server, proxy)) = model("whatever_a_real_model_says_of_a_window_nothing_invalid_is_kept") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&proxy, home.path(), READS);
    let mut service = open(&settings);
    super::support::ingest(&mut service, &sample(home.path(), 20));
    let from = Instant::now();
    let done = service.wait_for_model(&mut |_| {}).unwrap();
    assert_eq!((done.left, done.problem), (0, None));
    assert!(from.elapsed() < PATIENCE, "{:?}", from.elapsed());
    let (read, refused) = nothing_invalid_is_kept(&service);
    assert_eq!((read as u64, refused as u64), (done.read as u64, done.refused as u64));
    let (made, sent) = (census(&service), proxy.requests().len());
    println!("{read} windows read, {refused} refused, {sent} requests in {:?}", from.elapsed());
    assert!((read + refused..=2 * (read + refused)).contains(&sent), "at most one repair a window: {sent}");
    drop(service);
    let again = open(&settings);
    assert_eq!((census(&again), proxy.requests().len()), (made, sent), "after a restart nothing is asked again");
    nothing_is_paid_twice(&proxy);
}

#[test]
#[ignore = "needs a real model: make test-model"]
fn whatever_a_real_model_plans_and_answers_it_is_checked() {
    let Some((_server, proxy)) = model("whatever_a_real_model_plans_and_answers_it_is_checked") else { return };
    let home = tempfile::tempdir().unwrap();
    let more = "recall.planner = \"llm\"\nrecall.cues_by = \"llm\"\nrecall.sufficient = 2.0";
    let settings = settings(&proxy, home.path(), more);
    let mut service = open(&settings);
    super::support::ingest(&mut service, &sample(home.path(), 40));
    for question in ["What did Elias buy from Herr Brodersen?", "Who wants the bunk?", "Where does Marta work?"] {
        let evidence = ask(&service, "sample/harbour", question);
        let cues = &evidence.trace.cues;
        let by_model = |note: &Option<String>| {
            let note = note.as_deref().unwrap();
            assert!(note.starts_with("SmolLM2") || note.starts_with("the rules, because: "), "{note}");
            note.starts_with("SmolLM2")
        };
        let from_model = by_model(&cues.note);
        assert!(cues.keywords.len() <= 6, "{cues:?}");
        for round in &evidence.trace.rounds {
            let known: Vec<_> = evidence.units.iter().map(|u| u.id).collect();
            assert!(round.plan.anchors.len() <= settings.recall.anchors, "{:?}", round.plan);
            println!("{question} cues by the model: {from_model}, plan: {:?}, {} known", round.plan.note, known.len());
        }
        let llm = LlmClient::open(&settings.llm, Some(settings.llm_directory())).unwrap();
        let mut shown = String::new();
        let mut show = |piece: ReplyPiece<'_>| match piece {
            ReplyPiece::Text(text) => shown.push_str(text),
            ReplyPiece::Restart => shown.clear(),
        };
        match llm::answer(&llm, &evidence, Some(Instant::now() + PATIENCE), &UsageMeter::default(), &mut show) {
            Ok(answer) => {
                assert_eq!(shown.trim(), answer.text, "what was shown is what was accepted");
                assert!(answer.citations.iter().all(|c| evidence.context.contains(&c.line)), "{answer:?}");
            }
            Err(error) => assert!(matches!(error, LlmError::InvalidReply { .. }), "{error}"),
        }
        let input = json!({"question": question, "reference": "a boat", "answer": "The old boat."}).to_string();
        let meter = UsageMeter::default();
        let (bank, contract, depends_on) = (Bank::parse("b").unwrap(), Contract::Judge, RequestDependency::Nothing);
        let request = LlmRequest {
            contract,
            bank: &bank,
            depends_on,
            input: &input,
            reply_tokens: None,
            deadline: None,
            bypass_cache: false,
            cacheable: true,
            meter: &meter,
        };
        match llm.ask(&request, &mut |verdict: Value| Ok(verdict["label"].as_str().unwrap().to_owned())) {
            Ok(label) => assert!(["correct", "wrong"].contains(&label.as_str()), "{label}"),
            Err(error) => assert!(matches!(error, LlmError::InvalidReply { .. }), "{error}"),
        }
        let spent: u64 = llm.spending().iter().map(|(_, usage)| usage.completion_tokens).sum();
        println!("{spent} tokens written in all");
    }
    let sent = proxy.requests().len();
    ask(&service, "sample/harbour", "Who wants the bunk?");
    assert_eq!(proxy.requests().len(), sent, "the same question of the same memory is answered from the cache");
    nothing_is_paid_twice(&proxy);
}

#[test]
#[ignore = "needs a real model: make test-model"]
fn killed_while_a_real_model_writes_nothing_is_paid_twice() {
    let Some((_server, proxy)) = model("killed_while_a_real_model_writes_nothing_is_paid_twice") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(&proxy, home.path(), READS);
    settings.log.fsync = types::config::FsyncPolicy::Commit;
    let turns = sample(home.path(), 20);
    let toml = write(&home.path().join("p.toml"), toml::to_string(&settings).unwrap());
    let ingest = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.args(["ingest", "jsonl", turns.to_str().unwrap(), "--pipeline", toml.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut child = ingest().spawn().unwrap();
    let from = Instant::now();
    // One reply is paid for, and the next one is being written.
    while proxy.answered() < 1 || proxy.requests().len() < 2 {
        assert!(from.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let code = ingest().status().unwrap().code();
    assert!(matches!(code, Some(0 | REJECTED)), "{code:?}");
    let service = open(&settings);
    let (read, refused) = nothing_invalid_is_kept(&service);
    assert!(read + refused >= 2, "{read} and {refused}");
    nothing_is_paid_twice(&proxy);
}

#[test]
#[ignore = "needs a real model: make test-model"]
fn streams_of_a_real_model_that_break_are_asked_again_once() {
    let Some((_server, proxy)) = model("streams_of_a_real_model_that_break_are_asked_again_once") else { return };
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&proxy, home.path(), "");
    let mut service = open(&settings);
    super::support::ingest(&mut service, &sample(home.path(), 20));
    let evidence = ask(&service, "sample/harbour", "What did Elias buy from Herr Brodersen?");
    let llm = LlmClient::open(&settings.llm, Some(settings.llm_directory())).unwrap();
    let answer = || {
        let mut shown = String::new();
        let mut show = |piece: ReplyPiece<'_>| match piece {
            ReplyPiece::Text(text) => shown.push_str(text),
            ReplyPiece::Restart => shown.clear(),
        };
        // Without a deadline: one with a deadline fails fast while the endpoint was just found down.
        let found = llm::answer(&llm, &evidence, None, &UsageMeter::default(), &mut show);
        found.map(|answer| assert_eq!(answer.text, shown.trim(), "nothing is left of the broken stream"))
    };
    for after in [40, 700, 1_500] {
        proxy.cut(2, after);
        let sent = proxy.requests().len();
        let error = answer().unwrap_err();
        assert!(matches!(error, LlmError::Unavailable { attempts: 2, .. }), "after {after} bytes: {error}");
        assert_eq!(proxy.requests().len(), sent + 2);
    }
    proxy.cut(1, 700);
    if let Err(error) = answer() {
        assert!(matches!(error, LlmError::InvalidReply { .. }), "{error}");
    }
    let sent = proxy.requests().len();
    drop(answer());
    assert_eq!(proxy.requests().len(), sent, "the reply that arrived is in the cache");
    nothing_is_paid_twice(&proxy);
}

#[test]
#[ignore = "needs a real model: make test-model"]
fn a_window_longer_than_a_real_models_context_is_split_or_refused_before_it_is_sent() {
    let test = "a_window_longer_than_a_real_models_context_is_split_or_refused_before_it_is_sent";
    let Some((_server, proxy)) = model(test) else { return };
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(&proxy, home.path(), READS);
    settings.llm.context_tokens = 1_400;
    let said = "The harbour office opens at nine and Marta waits for the key with her brother. ";
    let long = said.repeat(200);
    let short = said.repeat(9);
    let turns =
        lines("b", "s", &[1, 2, 3, 4, 5, 6].map(|n| (["1", "2", "3", "4", "5", "6"][n - 1], "Ann", short.as_str())));
    let mut service = open(&settings);
    let events =
        |text: &str| -> Vec<TurnEvent> { text.lines().map(|l| TurnEvent::from_json(l.as_bytes()).unwrap()).collect() };
    service.log().append_turns(&events(&turns)).unwrap();
    let done = service.wait_for_model(&mut |_| {}).unwrap();
    assert_eq!((done.read + done.refused, done.left), (1, 0), "{done:?}");
    let sent = proxy.requests();
    assert!(sent.len() > 1, "one request for a window that does not fit");
    service.log().append_turns(&events(&lines("b", "t", &[("7", "Bo", &long)]))).unwrap();
    let end = r#"{"type":"session_end","bank":"b","session":"t"}"#;
    service.log().append_turns(&events(end)).unwrap();
    let done = service.wait_for_model(&mut |_| {}).unwrap();
    assert_eq!((done.read, done.refused, done.left), (0, 1, 0), "{done:?}");
    assert_eq!(proxy.requests().len(), sent.len(), "it was refused before it was sent");
    nothing_invalid_is_kept(&service);
}
