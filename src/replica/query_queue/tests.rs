//! Tests the query queue with scripted answers: slow ones, panics, and a memory that reflects what a test says.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    answer_threads::{QueryAnswerer, QueryQueue, unknown_bank_error},
    *,
};
use memory::recall::RecallExplanation;
use snapshots::AsOf;
use types::{
    model::{Bank, Evidence, ExplanationQuery, Question, RefusalCode},
    sync,
};

/// A queue whose questions say how they are answered: `block` waits for the gate, `overrun` for the deadline, `panic`
/// panics, `sleep N` takes N milliseconds.
struct ScriptedQueryQueue {
    queue: QueryQueue,
    gate: Arc<(Mutex<bool>, Condvar)>,
    /// The first offset of turns partition 0 that is not reflected.
    reached: Arc<AtomicU64>,
    /// Whether the shard of the bank `loading` is loading.
    loads: Arc<AtomicBool>,
    /// The texts that were answered.
    begun: Arc<Mutex<Vec<String>>>,
}

/// Answers as the questions' texts say.
struct ScriptedAnswerer {
    gate: Arc<(Mutex<bool>, Condvar)>,
    reached: Arc<AtomicU64>,
    loads: Arc<AtomicBool>,
    begun: Arc<Mutex<Vec<String>>>,
}

impl QueryAnswerer for ScriptedAnswerer {
    fn answer(&self, asked: &QueryRequest) -> Result<Evidence, PipelineError> {
        sync::lock(&self.begun).push(asked.question.text.clone());
        let mut words = asked.question.text.split(' ');
        match words.next() {
            Some("block") => {
                let mut open = sync::lock(&self.gate.0);
                while !*open {
                    open = sync::wait(&self.gate.1, open);
                }
            }
            Some("overrun") => {
                while asked.cancellation.check().is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Some("panic") => panic!("asked to panic"),
            Some("sleep") => {
                let ms = words.next().and_then(|ms| ms.parse().ok()).unwrap_or_default();
                std::thread::sleep(Duration::from_millis(ms));
            }
            _ => {}
        }
        Ok(evidence(&asked.question))
    }

    fn explain(&self, _: &QueryRequest, _: &ExplanationQuery) -> Result<RecallExplanation, PipelineError> {
        Err(PipelineError::Cancelled)
    }

    fn reached(&self, partition: u32, _: &Bank) -> Option<u64> {
        (partition == 0).then(|| self.reached.load(Ordering::Relaxed))
    }

    fn is_loading(&self, bank: &Bank) -> bool {
        bank.as_str() == "loading" && self.loads.load(Ordering::Relaxed)
    }

    fn embedded_texts(&self) -> u64 {
        0
    }

    fn endpoint_problem(&self) -> Option<String> {
        None
    }
}

impl ScriptedQueryQueue {
    fn new(threads: usize) -> Self {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (reached, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
        let loads = Arc::new(AtomicBool::new(true));
        let answerer = ScriptedAnswerer {
            gate: Arc::clone(&gate),
            reached: Arc::clone(&reached),
            loads: Arc::clone(&loads),
            begun: Arc::clone(&begun),
        };
        let queue = QueryQueue::with(Box::new(answerer), Arc::default(), threads).expect("threads");
        Self { queue, gate, reached, loads, begun }
    }

    fn open_gate(&self) {
        *sync::lock(&self.gate.0) = true;
        self.gate.1.notify_all();
    }

    fn begun(&self) -> Vec<String> {
        sync::lock(&self.begun).clone()
    }

    /// Waits until a question with this text is being answered.
    fn until_begun(&self, text: &str) {
        self.until(|| self.begun().iter().any(|found| found == text), text);
    }

    fn until(&self, reached: impl Fn() -> bool, what: &str) {
        let begun = Instant::now();
        while !reached() {
            assert!(begun.elapsed() < PATIENCE, "{what} is not taken up");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Submits a question; the receiver gets its outcome.
    fn submit(&self, asked: QueryRequest) -> crossbeam_channel::Receiver<Result<Evidence, PipelineError>> {
        let (out, answer) = crossbeam_channel::bounded(1);
        self.queue.submit(asked, move |result| drop(out.send(result)));
        answer
    }
}

impl Drop for ScriptedQueryQueue {
    fn drop(&mut self) {
        self.open_gate();
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

fn asked(bank: &str, text: &str) -> QueryRequest {
    QueryRequest::now(Question::new(Bank::parse(bank).expect("a good name"), text))
}

fn within(milliseconds: u64) -> Cancellation {
    Cancellation::at(Instant::now() + Duration::from_millis(milliseconds))
}

fn evidence(question: &Question) -> Evidence {
    let empty = serde_json::json!({
        "schema": 1, "question": question, "context": "", "units": [], "sufficiency": 0.0, "supported": false,
        "stop_reason": "", "reflects": [],
        "trace": {
            "cues": {"semantic_query": "", "keywords": [], "participants": [], "locations": [], "time": null},
            "vector_hash": "", "first_hop": [], "rounds": [],
        },
    });
    serde_json::from_value(empty).expect("an empty answer")
}

#[test]
fn another_tokens_question_waits_behind_one_of_a_flood_over_many_banks() {
    let scripted = ScriptedQueryQueue::new(1);
    let of = |token: &str, bank: &str, text: &str| QueryRequest { token: Some(Arc::from(token)), ..asked(bank, text) };
    let first = scripted.submit(of("flood", "b0", "block"));
    scripted.until_begun("block");
    let flood: Vec<_> = (0..200).map(|n| scripted.submit(of("flood", &format!("b{}", n % 50), "flood"))).collect();
    // In one of the same banks, and in another.
    let one: Vec<_> = ["b1", "own"].map(|bank| scripted.submit(of("one", bank, "one"))).into();
    scripted.open_gate();
    for answer in one.iter().chain(&flood).chain([&first]) {
        answer.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    }
    assert_eq!(scripted.begun()[..5], ["block", "flood", "one", "flood", "one"]);
}

#[test]
fn one_tokens_questions_leave_a_thread_to_others_whatever_their_banks() {
    let scripted = ScriptedQueryQueue::new(4);
    let of = |token: &str, bank: &str, text: &str| QueryRequest { token: Some(Arc::from(token)), ..asked(bank, text) };
    let flood: Vec<_> = (0..8).map(|n| scripted.submit(of("flood", &format!("b{n}"), "block"))).collect();
    scripted.until(|| scripted.begun().len() == 3, "three of four threads");
    let other = scripted.submit(of("one", "b9", "one"));
    other.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    assert_eq!(scripted.begun().iter().filter(|text| *text == "block").count(), 3);
    scripted.open_gate();
    flood.iter().for_each(|answer| drop(answer.recv_timeout(PATIENCE).expect("answered").expect("evidence")));
}

#[test]
fn an_answer_after_the_deadline_is_refused() {
    let scripted = ScriptedQueryQueue::new(1);
    let late = scripted.submit(QueryRequest { cancellation: within(500), ..asked("b", "overrun") });
    let error = late.recv_timeout(PATIENCE).expect("it ends").expect_err("it was too late");
    assert!(matches!(error, PipelineError::Deadline { .. }), "{error}");
    scripted.queue.ask_and_wait(asked("b", "good")).expect("evidence");
}

#[test]
fn another_banks_question_waits_behind_one_of_a_flood() {
    let scripted = ScriptedQueryQueue::new(1);
    let flood: Vec<_> = std::iter::once("block")
        .chain(std::iter::repeat_n("flood", 500))
        .map(|text| scripted.submit(asked("hostile", text)))
        .collect();
    scripted.until_begun("block");
    let good = scripted.submit(asked("good", "good"));
    scripted.open_gate();
    good.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    for answer in flood {
        answer.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    }
    let place = scripted.begun().iter().position(|text| text == "good").expect("it was answered");
    assert!(place <= 2, "behind {place} of the flood");
}

#[test]
fn a_flood_is_refused_by_its_own_bank_alone() {
    let scripted = ScriptedQueryQueue::new(1);
    let mut flood = vec![scripted.submit(asked("hostile", "block"))];
    scripted.until_begun("block");
    flood.extend((0..2_000).map(|_| scripted.submit(asked("hostile", "flood"))));
    let refused: Vec<PipelineError> = flood.iter().filter_map(|answer| answer.try_recv().ok()?.err()).collect();
    assert_eq!(refused.len(), 2_000 - 1_024);
    assert!(matches!(refused[0], PipelineError::Busy { whose: "of this bank" }));
    assert_eq!(refusal(&refused[0]).code, types::model::RefusalCode::Busy);
    let good = scripted.submit(asked("good", "good"));
    scripted.open_gate();
    good.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    let too_long = scripted.submit(asked("good", &"x".repeat(8_193))).recv().expect("refused").expect_err("too long");
    assert_eq!(refusal(&too_long).code, types::model::RefusalCode::Invalid);
}

#[test]
fn a_question_ends_at_its_deadline_and_costs_nothing() {
    let scripted = ScriptedQueryQueue::new(1);
    let first = scripted.submit(asked("a", "block"));
    scripted.until_begun("block");
    let late = scripted.submit(QueryRequest { cancellation: within(30), ..asked("b", "late") });
    let error = late.recv_timeout(PATIENCE).expect("the thread that answers is still busy").expect_err("refused");
    assert!(matches!(&error, PipelineError::Deadline { .. }), "{error}");
    let waiting = within(60_000);
    let cancelled = scripted.submit(QueryRequest { cancellation: waiting.clone(), ..asked("b", "cancelled") });
    waiting.cancel();
    let error = cancelled.recv_timeout(PATIENCE).expect("refused at once").expect_err("cancelled");
    assert!(matches!(error, PipelineError::Cancelled));
    scripted.open_gate();
    first.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    scripted.queue.ask_and_wait(asked("b", "after")).expect("evidence");
    assert_eq!(scripted.begun(), ["block", "after"]);
}

#[test]
fn whoever_drops_the_future_cancels_the_question() {
    let scripted = ScriptedQueryQueue::new(1);
    let first = scripted.submit(asked("a", "block"));
    scripted.until_begun("block");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let asking = scripted.queue.ask(asked("b", "dropped"));
        assert!(tokio::time::timeout(Duration::from_millis(20), asking).await.is_err(), "no thread is free");
    });
    scripted.open_gate();
    first.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    let answer = runtime.block_on(scripted.queue.ask(asked("b", "kept")));
    assert_eq!(answer.expect("evidence").question.text, "kept");
    assert_eq!(scripted.begun(), ["block", "kept"]);
}

#[test]
fn a_panic_is_the_refusal_of_its_question_alone() {
    let scripted = ScriptedQueryQueue::new(2);
    for _ in 0..4 {
        let error = scripted.queue.ask_and_wait(asked("a", "panic")).expect_err("it panicked");
        assert!(matches!(error, PipelineError::Panicked), "{error}");
    }
    scripted.queue.submit(asked("a", "a transport panics"), |_| panic!("over its answer"));
    for bank in ["a", "b"] {
        scripted.queue.ask_and_wait(asked(bank, "good")).expect("the threads go on");
    }
    assert_eq!(scripted.queue.panics(), 5);
}

#[test]
fn questions_that_wait_for_a_turn_hold_up_nobody() {
    let scripted = ScriptedQueryQueue::new(1);
    let after =
        |next| QueryRequest { after: Some((0, next)), cancellation: within(3_600_000), ..asked("hostile", "after") };
    let never: Vec<_> = (0..1_000).map(|_| scripted.submit(after(u64::MAX))).collect();
    let refused = never.iter().filter_map(|answer| answer.try_recv().ok()).filter(Result::is_err).count();
    assert_eq!(refused, 1_000 - 256, "a bank has 256 places");
    scripted.queue.ask_and_wait(asked("hostile", "good")).expect("the same bank's others go on");
    let soon = scripted.submit(QueryRequest { after: Some((0, 7)), ..asked("good", "soon") });
    assert_eq!(scripted.queue.load().parked, 257);
    let late = scripted.submit(QueryRequest { after: Some((0, 9)), cancellation: within(30), ..asked("good", "late") });
    let error = late.recv_timeout(PATIENCE).expect("it ends at its deadline").expect_err("not reflected");
    assert!(error.to_string().contains("turns/0 was remembered up to offset 8"), "{error}");
    assert!(soon.try_recv().is_err());
    scripted.reached.store(7, Ordering::Relaxed);
    soon.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    assert!(scripted.queue.has_room());
    assert_eq!(scripted.begun(), ["good", "soon"]);
}

/// Several banks of one shard would otherwise take every thread.
#[test]
fn questions_of_a_shard_that_is_loading_wait_and_occupy_no_thread() {
    let scripted = ScriptedQueryQueue::new(1);
    let waiting = scripted.submit(asked("loading", "waits"));
    let long = scripted.submit(asked("loading", &"long ".repeat(300)));
    let late = scripted.submit(QueryRequest { cancellation: within(30), ..asked("loading", "late") });
    for n in 0..3 {
        scripted.queue.ask_and_wait(asked("good", &format!("good {n}"))).expect("others are answered");
        scripted.queue.ask_and_wait(asked("good", &"good ".repeat(300))).expect("long ones too");
    }
    let error = late.recv_timeout(PATIENCE).expect("it ends at its deadline").expect_err("refused");
    assert!(matches!(error, PipelineError::Deadline { .. }), "{error}");
    assert!(waiting.try_recv().is_err() && long.try_recv().is_err());
    scripted.loads.store(false, Ordering::Relaxed);
    for answer in [waiting, long] {
        answer.recv_timeout(PATIENCE).expect("woken when it is loaded").expect("evidence");
    }
    assert!(!scripted.begun().contains(&"late".to_owned()));
}

#[test]
fn questions_about_the_past_and_long_ones_occupy_no_thread_of_the_others() {
    let scripted = ScriptedQueryQueue::new(1);
    let past = |bank: &str| QueryRequest { as_of: Some(AsOf::Offset(1)), ..asked(bank, "block") };
    let mut waiting: Vec<_> = ["a", "a", "b", "c", "d"].map(|bank| scripted.submit(past(bank))).into();
    waiting.push(scripted.submit(asked("a", &format!("block{}", " long".repeat(300)))));
    for bank in ["a", "b", "c", "d"] {
        scripted.queue.ask_and_wait(asked(bank, "now")).expect("evidence");
    }
    let at_once = || scripted.begun().iter().filter(|text| text.starts_with("block")).count();
    scripted.until(|| at_once() >= 2, "two of those that wait apart");
    let late = scripted.submit(QueryRequest { cancellation: within(30), ..past("e") });
    let error = late.recv_timeout(PATIENCE).expect("it ends at its deadline").expect_err("refused");
    assert!(matches!(error, PipelineError::Deadline { .. }));
    assert_eq!(at_once(), 2, "at once: {:?}", scripted.begun());
    scripted.open_gate();
    for answer in waiting {
        answer.recv_timeout(PATIENCE).expect("answered").expect("evidence");
    }
}

#[test]
fn a_banks_questions_are_answered_in_their_order() {
    let scripted = ScriptedQueryQueue::new(4);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (out, done) = crossbeam_channel::unbounded();
    for n in 0..120usize {
        let (order, out, bank) = (Arc::clone(&order), out.clone(), n % 3);
        // The earlier of two questions often takes longer.
        let text = format!("sleep {}", (n * 7) % 5);
        scripted.queue.submit(asked(&format!("bank-{bank}"), &text), move |result| {
            result.expect("evidence");
            sync::lock(&order).push((bank, n));
            let _ = out.send(());
        });
    }
    (0..120).for_each(|_| done.recv_timeout(PATIENCE).expect("answered"));
    for bank in 0..3 {
        let of_bank: Vec<usize> = sync::lock(&order).iter().filter(|(of, _)| *of == bank).map(|(_, n)| *n).collect();
        assert!(of_bank.is_sorted(), "{of_bank:?}");
        assert_eq!(of_bank.len(), 40);
    }
}

#[test]
fn a_bank_whose_first_turns_may_wait_for_the_endpoint_is_not_called_unknown() {
    let bank = || Bank::parse("new").expect("a good name");
    let code = |asked: &QueryRequest, problem: Option<&str>, is_behind: bool| {
        let unknown = PipelineError::UnknownBank { bank: bank(), known: String::new() };
        refusal(&unknown_bank_error(unknown, asked, || problem.map(str::to_owned), &|_| is_behind)).code
    };
    let (now, away) = (QueryRequest::now(Question::new(bank(), "Who?")), Some("http://a: refused"));
    assert_eq!(code(&now, away, true), RefusalCode::EndpointAway);
    assert_eq!(code(&now, away, false), RefusalCode::UnknownBank);
    assert_eq!(code(&now, None, true), RefusalCode::UnknownBank);
    let past = QueryRequest { as_of: Some(AsOf::Offset(0)), ..now };
    assert_eq!(code(&past, away, true), RefusalCode::UnknownBank);
}
