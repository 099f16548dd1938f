//! The language-model client against a scripted model over HTTP: every way in which an endpoint
//! fails, what is retried, what is charged, and what is cached.

use std::{
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use models::llm::{Contract, LlmClient, LlmError, LlmRequest, ReplyPiece, RequestDependency, UsageMeter};
use serde_json::Value;
use types::{
    config::Pipeline,
    model::{Bank, SessionId, WindowId},
};

use super::model_process::ScriptedModel;

const INPUT: &str = r#"{"question":"Where?","reference":"the red boathouse","answer":"In the red boathouse."}"#;

fn open(endpoint: &str, directory: &Path, model: &str, extra: &str) -> Result<Arc<LlmClient>, LlmError> {
    let text = format!("version = 1\n[llm]\nendpoint = \"{endpoint}\"\nmodel = \"{model}\"\n{extra}");
    let pipeline = Pipeline::parse(&text).unwrap();
    LlmClient::open(&pipeline.llm, Some(directory.to_owned()))
}

fn request<'r>(bank: &'r Bank, input: &'r str) -> LlmRequest<'r> {
    static METER: LazyLock<UsageMeter> = LazyLock::new(UsageMeter::default);
    let (contract, depends_on, deadline, bypass_cache, cacheable) =
        (Contract::Judge, RequestDependency::Nothing, None, false, true);
    let reply_tokens = None;
    LlmRequest { contract, bank, depends_on, input, reply_tokens, deadline, bypass_cache, cacheable, meter: &METER }
}

fn judge(llm: &LlmClient) -> Result<String, LlmError> {
    llm.ask(&request(&Bank::parse("b").unwrap(), INPUT), &mut |value: Value| {
        Ok(value["label"].as_str().unwrap().to_owned())
    })
}

fn calls(llm: &LlmClient) -> u64 {
    llm.spending().iter().map(|(_, usage)| usage.calls).sum()
}

/// Runs one script: the expected reply or error, requests sent, and calls charged.
fn check(model: &str, extra: &str, expected: Result<&str, &str>, requests: usize, charged: u64) -> Duration {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), model, extra).unwrap();
    let from = Instant::now();
    let found = judge(&llm);
    let took = from.elapsed();
    match (&found, expected) {
        (Ok(label), Ok(wanted)) => assert_eq!(label, wanted, "{model}"),
        (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{model}: {error}"),
        _ => panic!("{model}: {found:?}"),
    }
    assert_eq!((server.requests().len(), calls(&llm)), (requests, charged), "{model}");
    took
}

#[test]
fn a_request_has_every_field_of_the_protocol_and_no_error_shows_the_key() {
    let server = ScriptedModel::start(&["--key", "secret"]);
    let home = tempfile::tempdir().unwrap();
    // Every process has this variable, so it can serve as the key.
    let wrong_key = open(&server.endpoint, home.path(), "scripted", "key_env = \"PATH\"").unwrap();
    let refused = judge(&wrong_key).unwrap_err().to_string();
    assert!(refused.contains("401") && refused.contains("[key]"), "the key is masked: {refused}");
    assert!(!refused.contains(&std::env::var("PATH").unwrap()), "{refused}");
    drop(wrong_key);

    let server = ScriptedModel::start(&[]);
    let llm = open(&server.endpoint, home.path(), "scripted", "completion_tokens.judge = 99").unwrap();
    assert_eq!(judge(&llm).unwrap(), "correct");
    let sent = server.requests().remove(0);
    assert_eq!((&sent["temperature"], &sent["max_tokens"]), (&0.into(), &99.into()));
    assert_eq!((&sent["model"], &sent["stream"]), (&"scripted".into(), &true.into()));
    assert_eq!(sent["response_format"]["type"], "json_schema");
    assert_eq!(sent["response_format"]["json_schema"]["schema"], *Contract::Judge.schema());
    assert_eq!(sent["messages"][0]["content"], Contract::Judge.prompt());
    assert_eq!(sent["messages"][1]["content"], INPUT);
    assert!(sent.get("tools").is_none());
    let (_, usage) = llm.spending().remove(Contract::Judge as usize);
    assert!(usage.calls == 1 && usage.prompt_tokens > 100 && usage.completion_tokens > 0, "{usage:?}");
}

#[test]
fn transient_failures_are_retried() {
    check("scripted+error=2", "", Ok("correct"), 3, 1);
    check("scripted+dropped=1", "", Ok("correct"), 2, 1);
    let took = check("scripted+limited=1", "", Ok("correct"), 2, 1);
    assert!(took >= Duration::from_secs(1), "Retry-After: 1 was not honoured: {took:?}");
    let took = check("scripted+limited_date=1", "", Ok("correct"), 2, 1);
    assert!(took >= Duration::from_millis(500), "Retry-After with a date was not honoured: {took:?}");
    // The probe is sent twice; it shows that the endpoint is the cause, not the text.
    check("scripted+error", "retries = 1", Err("status 500: The server had an error"), 4, 0);
    check("scripted+slow=3000", "timeout_seconds = 1\nretries = 0", Err("no reply in time (1 attempts)"), 2, 0);
}

#[test]
fn a_failure_inside_a_stream_is_the_endpoints_and_thoughts_are_no_reply() {
    check("scripted+failing=1", "", Ok("correct"), 2, 1);
    check("scripted+bare=1", "", Ok("correct"), 2, 1);
    let failed = "the endpoint failed with 502: worker limit reached";
    check("scripted+failing", "retries = 1", Err(failed), 4, 0);
    check("scripted+bare", "retries = 1", Err("the stream ended without a completion"), 4, 0);
    check("scripted+thinking", "", Ok("correct"), 1, 1);
    check("scripted+reasoning", "", Ok("correct"), 1, 1);
}

#[test]
fn permanent_failures_are_not_retried() {
    let expected = Err("refuses model \"gpt-17\": status 404: The model `gpt-17` does not exist");
    check("gpt-17", "", expected, 2, 0);
    check("scripted+broke", "", Err("exceeded your current quota"), 2, 0);
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+picky", "").unwrap();
    let bank = Bank::parse("b").unwrap();
    let rejected = llm.ask(&request(&bank, "forbidden"), &mut |value: Value| Ok(value)).unwrap_err();
    assert!(matches!(&rejected, LlmError::Rejected { problem, .. } if problem.contains("filtered")), "{rejected}");
    assert_eq!(judge(&llm).unwrap(), "correct", "other requests are answered");
    assert_eq!(server.requests().len(), 3, "with the probe");
}

/// However the endpoint fails on a text, it is the text's fault as long as a probe is answered.
#[test]
fn a_text_on_which_the_endpoint_fails_every_time_is_rejected() {
    for fault in ["500", "502", "403", "closed"] {
        let server = ScriptedModel::start(&[]);
        let home = tempfile::tempdir().unwrap();
        let llm = open(&server.endpoint, home.path(), &format!("scripted+bad={fault}"), "retries = 0").unwrap();
        let bank = Bank::parse("b").unwrap();
        let ask = || llm.ask(&request(&bank, "forbidden"), &mut |value: Value| Ok(value)).unwrap_err();
        let rejected = ask();
        let said = "while it answers other requests";
        assert!(matches!(&rejected, LlmError::Rejected { problem, .. } if problem.contains(said)), "{rejected}");
        // It is known now: asked again, the probe alone is sent.
        let sent = server.requests().len();
        assert_eq!((ask(), server.requests().len()), (rejected, sent + 1), "{fault}");
        assert_eq!(judge(&llm).unwrap(), "correct", "{fault}");
    }
    // A busy endpoint says nothing about a text.
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+bad=503", "retries = 1").unwrap();
    let error = llm.ask(&request(&Bank::parse("b").unwrap(), "forbidden"), &mut |value: Value| Ok(value)).unwrap_err();
    assert!(matches!(error, LlmError::Unavailable { .. }) && server.requests().len() == 2, "{error}");
}

/// A caller with a deadline whose text the endpoint fails on makes no other caller fail fast.
#[test]
fn a_question_on_which_the_endpoint_fails_stops_no_other_question() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+bad=500", "retries = 0").unwrap();
    let bank = Bank::parse("b").unwrap();
    let within = |input: &str| {
        let deadline = Some(Instant::now() + Duration::from_secs(30));
        llm.ask(&LlmRequest { deadline, ..request(&bank, input) }, &mut |value: Value| Ok(value)).map(drop)
    };
    assert!(matches!(within("forbidden"), Err(LlmError::Unavailable { .. })));
    assert_eq!(within(INPUT), Ok(()));
    while server.requests().len() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(within("{}"), Ok(()), "after the probe as well");
}

#[test]
fn a_reply_that_a_filter_stopped_says_so() {
    let stopped = "it was stopped (finish_reason \"content_filter\"): it is empty";
    check("scripted+filtered", "", Err(stopped), 2, 2);
    check("scripted+filtered=1", "", Ok("correct"), 2, 2);
    check("scripted+truncated", "", Err("(finish_reason \"length\")"), 2, 2);
}

#[test]
fn an_invalid_reply_is_repaired_once() {
    check("scripted+malformed=1", "", Ok("correct"), 2, 2);
    check("scripted+violating=1", "", Ok("correct"), 2, 2);
    check("scripted+truncated=1", "", Ok("correct"), 2, 2);
    check(
        "scripted+malformed",
        "",
        Err("the model's judge reply is invalid, even after a repair: it is not JSON; it says: Certainly! Here is"),
        2,
        2,
    );
    check("scripted+violating", "", Err("/label"), 2, 2);
    check("scripted+truncated", "", Err("cut off"), 2, 2);
    // A repair that the endpoint finds too long says what was wrong with the reply.
    let short = format!("scripted+malformed+short={}", INPUT.len() + 1);
    check(&short, "", Err("it is not JSON"), 3, 2);

    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+violating=1", "").unwrap();
    judge(&llm).unwrap();
    let sent = server.requests().remove(1);
    let content = |at: usize| sent["messages"][at]["content"].as_str().unwrap().to_owned();
    assert!(
        content(2).contains("perhaps") && content(3).contains("/label"),
        "the model is told what was wrong: {sent:#}"
    );
}

/// A model that never ends costs a few hundred tokens, and learns what was wrong.
#[test]
fn a_reply_that_repeats_itself_is_stopped_and_repaired() {
    check("scripted+repeating=1", "", Ok("correct"), 2, 2);
    check("scripted+repeating", "", Err("it repeats the same text over and over"), 2, 2);
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+repeating=1", "").unwrap();
    judge(&llm).unwrap();
    let (_, usage) = llm.spending().remove(Contract::Judge as usize);
    assert!((50..600).contains(&usage.completion_tokens), "what it had written is counted: {usage:?}");
    assert!(server.requests()[1]["messages"][3]["content"].as_str().unwrap().contains("over and over"));
}

#[test]
fn a_request_that_does_not_fit_into_the_models_context_is_not_sent() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted", "context_tokens = 100").unwrap();
    let error = judge(&llm).unwrap_err();
    assert!(matches!(error, LlmError::TooLong { context: 100, .. }), "{error}");
    assert!(error.to_string().contains("the judge request needs") && server.requests().is_empty(), "{error}");
}

/// The schemas bound strings and lists; an endpoint that refuses bounds on strings gets none.
#[test]
fn bounds_on_strings_are_left_out_where_the_settings_say_so() {
    let server = ScriptedModel::start(&[]);
    for (bounded, home) in [(true, tempfile::tempdir().unwrap()), (false, tempfile::tempdir().unwrap())] {
        let llm = open(&server.endpoint, home.path(), "scripted", &format!("bounded_strings = {bounded}")).unwrap();
        let bank = Bank::parse("b").unwrap();
        llm.ask(&LlmRequest { contract: Contract::Cues, ..request(&bank, "{}") }, &mut |v: Value| Ok(v)).unwrap();
        let sent = server.requests().pop().unwrap()["response_format"].to_string();
        assert_eq!((sent.contains("maxLength"), sent.contains("maxItems")), (bounded, true), "{sent}");
    }
}

#[test]
fn an_unreachable_endpoint_is_named_in_the_error() {
    let home = tempfile::tempdir().unwrap();
    let llm = open("http://127.0.0.1:9/v1", home.path(), "m", "retries = 0").unwrap();
    let error = judge(&llm).unwrap_err();
    assert!(
        matches!(error, LlmError::Unavailable { .. })
            && error.to_string().contains("http://127.0.0.1:9/v1/chat/completions"),
        "{error}"
    );
    drop(llm);
    let llm = open("http://127.0.0.1:9/v1", home.path(), "m", "key_env = \"NO_SUCH_KEY_HERE\"").unwrap();
    let missing = judge(&llm).unwrap_err();
    assert!(missing.to_string().contains("NO_SUCH_KEY_HERE is not set"), "{missing}");
}

#[test]
fn a_deadline_holds_whatever_the_endpoint_does() {
    for model in ["scripted+slow=5000", "scripted+limited"] {
        let server = ScriptedModel::start(&[]);
        let home = tempfile::tempdir().unwrap();
        let llm = open(&server.endpoint, home.path(), model, "").unwrap();
        let bank = Bank::parse("b").unwrap();
        let request =
            LlmRequest { deadline: Some(Instant::now() + Duration::from_millis(700)), ..request(&bank, INPUT) };
        // Without a deadline the first would answer, and the second be asked without end.
        let error = llm.ask(&request, &mut |value: Value| Ok(value)).unwrap_err();
        assert!(matches!(error, LlmError::Unavailable { .. } | LlmError::Deadline), "{model}: {error}");
    }
}

#[test]
fn every_request_honours_the_retry_after_of_another() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+hour=1", "").unwrap();
    let bank = Bank::parse("b").unwrap();
    for input in ["one", "two", "three"] {
        let error = llm.ask(&request(&bank, input), &mut |value: Value| Ok(value)).unwrap_err();
        assert!(matches!(error, LlmError::Unavailable { .. }), "{error}");
        assert_eq!(server.requests().len(), 1, "{input}");
    }
}

#[test]
fn a_meter_counts_its_callers_usage_cached_responses_included() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+violating=1", "").unwrap();
    let (bank, mut seen) = (Bank::parse("b").unwrap(), Vec::new());
    for input in [INPUT, INPUT, "another"] {
        let meter = UsageMeter::default();
        llm.ask(&LlmRequest { meter: &meter, ..request(&bank, input) }, &mut |value: Value| Ok(value)).unwrap();
        seen.push(meter.total());
    }
    assert_eq!((seen[0].calls, seen[2].calls, calls(&llm)), (2, 1, 3), "the first was repaired");
    assert_eq!(seen[0], seen[1], "the second response came from the cache");
    assert_eq!(
        seen[0].tokens() + seen[2].tokens(),
        llm.spending().iter().map(|(_, usage)| usage.tokens()).sum::<u64>()
    );
}

#[test]
fn a_cached_response_is_not_paid_for_again() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+violating=1", "").unwrap();
    assert_eq!(judge(&llm).unwrap(), "correct");
    assert_eq!((judge(&llm).unwrap().as_str(), calls(&llm)), ("correct", 2), "the repair is cached as well");
    assert!(Arc::ptr_eq(&llm, &open(&server.endpoint, home.path(), "scripted+violating=1", "").unwrap()));
    drop(llm);
    let llm = open(&server.endpoint, home.path(), "scripted+violating=1", "").unwrap();
    assert_eq!((judge(&llm).unwrap().as_str(), calls(&llm)), ("correct", 0), "also after a restart");
    let other = Bank::parse("other").unwrap();
    llm.ask(&request(&other, INPUT), &mut |value: Value| Ok(value)).unwrap();
    assert_eq!(calls(&llm), 1, "another bank does not share the cache");
    let expenses: Vec<_> = llm.expenses().unwrap().into_iter().map(|e| (e.bank, e.usage.calls)).collect();
    assert_eq!(expenses, [("b".to_owned(), 2), ("other".to_owned(), 1)]);
    llm.retain_banks(|bank| *bank != other).unwrap();
    llm.ask(&request(&other, INPUT), &mut |value: Value| Ok(value)).unwrap();
    assert_eq!(calls(&llm), 2, "an evicted response is paid for again");
    let bank = Bank::parse("b").unwrap();
    llm.ask(&LlmRequest { bypass_cache: true, ..request(&bank, INPUT) }, &mut |value: Value| Ok(value)).unwrap();
    assert_eq!(calls(&llm), 3, "bypass_cache asks again");
    let unusable =
        llm.ask(&LlmRequest { bypass_cache: true, ..request(&bank, INPUT) }, &mut |_: Value| Err::<(), _>("no".into()));
    assert!(unusable.is_err());
    assert_eq!((judge(&llm).unwrap().as_str(), calls(&llm)), ("correct", 5), "the valid response stays cached");
    let uncached = LlmRequest { cacheable: false, ..request(&bank, "{}") };
    for paid in [6, 7] {
        llm.ask(&uncached, &mut |value: Value| Ok(value)).unwrap();
        assert_eq!(calls(&llm), paid);
    }
}

#[test]
fn equal_requests_at_the_same_time_are_one() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+slow=300", "").unwrap();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..3).map(|_| scope.spawn(|| judge(&llm).unwrap())).collect();
        asking.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), "correct"));
    });
    assert_eq!((calls(&llm), server.requests().len()), (1, 1));
}

#[test]
fn a_response_whose_source_changed_meanwhile_is_not_cached() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+slow=600", "").unwrap();
    let bank = Bank::parse("b").unwrap();
    let (turns, window) = (["t".to_owned()], WindowId { session: SessionId("s".into()), start: 0 });
    let cases = [
        (RequestDependency::Turns(&turns), false),
        (RequestDependency::Window(&window), false),
        (RequestDependency::Window(&window), true),
    ];
    for (depends_on, bypass_cache) in cases {
        let before = calls(&llm);
        let ask = |bypass_cache| {
            let request = LlmRequest { depends_on, bypass_cache, ..request(&bank, INPUT) };
            llm.ask(&request, &mut |value: Value| Ok(value)).unwrap()
        };
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| ask(bypass_cache));
            while server.requests().len() as u64 == before {
                std::thread::sleep(Duration::from_millis(5));
            }
            llm.evict_turns(&bank, turns.iter().map(String::as_str)).unwrap();
            llm.evict_window(&bank, &window, &["other turns".to_owned()]).unwrap();
            asking.join().unwrap();
        });
        ask(false);
        assert_eq!(calls(&llm), before + 2, "{depends_on:?}, bypass_cache: {bypass_cache}");
        llm.retain_banks(|_| false).unwrap();
    }
}

#[test]
fn a_truncated_response_is_requested_again_under_a_higher_token_limit() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let model = "scripted+truncated=2";
    let llm = open(&server.endpoint, home.path(), model, "completion_tokens.judge = 20").unwrap();
    assert!(judge(&llm).is_err() && judge(&llm).is_err());
    assert_eq!(server.requests().len(), 2, "under the same limit the cached response serves");
    drop(llm);
    let llm = open(&server.endpoint, home.path(), model, "completion_tokens.judge = 200").unwrap();
    assert_eq!(judge(&llm).unwrap(), "correct");
}

/// A caller with more time than the one that timed out still tries.
#[test]
fn a_short_deadline_that_passed_fails_only_shorter_ones_fast() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted+slow=900", "").unwrap();
    let bank = Bank::parse("b").unwrap();
    let within = |ms: u64, input: &str| {
        let request =
            LlmRequest { deadline: Some(Instant::now() + Duration::from_millis(ms)), ..request(&bank, input) };
        llm.ask(&request, &mut |value: Value| Ok(value)).map(drop)
    };
    assert_eq!(within(300, "{}"), Err(LlmError::Deadline));
    let (_, usage) = llm.spending().remove(Contract::Judge as usize);
    assert!(
        usage.calls == 0 && usage.prompt_tokens > 100,
        "the endpoint read the prompt of the failed request: {usage:?}"
    );
    // The probe that follows takes as long: what is known of the endpoint is not known from one text.
    while llm.spending().iter().map(|(_, usage)| usage.calls).sum::<u64>() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent_before = server.requests().len();
    assert_eq!(within(200, "[]"), Err(LlmError::Deadline));
    assert_eq!(server.requests().len(), sent_before, "with less time nothing is sent");
    assert_eq!(within(30_000, INPUT), Ok(()));
    assert_eq!(calls(&llm), 2, "with the probe");
}

#[test]
fn without_a_directory_nothing_is_cached() {
    let server = ScriptedModel::start(&[]);
    let text = format!("version = 1\n[llm]\nendpoint = \"{}\"\nmodel = \"scripted\"", server.endpoint);
    let llm = LlmClient::open(&Pipeline::parse(&text).unwrap().llm, None).unwrap();
    assert_eq!((judge(&llm).unwrap(), judge(&llm).unwrap()), ("correct".to_owned(), "correct".to_owned()));
    assert_eq!((calls(&llm), llm.expenses().unwrap()), (2, Vec::new()));
}

#[test]
fn a_caller_may_reject_a_reply_that_matches_the_schema() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = open(&server.endpoint, home.path(), "scripted", "").unwrap();
    let bank = Bank::parse("b").unwrap();
    let error = llm.ask(&request(&bank, INPUT), &mut |_: Value| Err::<(), _>("too kind".to_owned())).unwrap_err();
    assert!(error.to_string().contains("too kind"), "{error}");
    assert!(server.requests()[1]["messages"][3]["content"].as_str().unwrap().contains("too kind"));
}

#[test]
fn spending_stops_below_the_cap_also_after_a_restart() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let bank = Bank::parse("b").unwrap();
    let cap = "cap_tokens = 2500\ncompletion_tokens.judge = 100";
    let mut paid = 0;
    for _ in 0..2 {
        let llm = open(&server.endpoint, home.path(), "scripted", cap).unwrap();
        let stopped = (0..20).find_map(|i| {
            let outcome = llm.ask(&request(&bank, &format!("{{\"n\": {i}, \"paid\": {paid}}}")), &mut |v: Value| Ok(v));
            outcome.err()
        });
        let error = stopped.expect("the cap is reached").to_string();
        assert!(error.contains("llm.cap_tokens is reached") && error.contains("2500"), "{error}");
        paid += calls(&llm);
        let spent: u64 = llm.expenses().unwrap().iter().map(|e| e.usage.tokens()).sum();
        assert!(spent > 1_000 && spent <= 2_500, "{spent}");
    }
    assert_eq!(paid, server.requests().len() as u64);
    assert!(paid >= 2, "{paid}");
}

#[test]
fn an_answer_streams_piece_by_piece_and_restarts_when_the_stream_breaks() {
    let context = "question: \"Where?\"\nmemories\n1 Ann: \"in the boathouse\", \u{1f600}\n";
    for (model, again) in [("scripted", 0), ("scripted+dropped=1", 1), ("scripted+truncated=1", 1)] {
        let server = ScriptedModel::start(&[]);
        let home = tempfile::tempdir().unwrap();
        let llm = open(&server.endpoint, home.path(), model, "").unwrap();
        let bank = Bank::parse("b").unwrap();
        let turns = ["t1".to_owned(), "t2".to_owned()];
        let request = LlmRequest {
            contract: Contract::Answer,
            depends_on: RequestDependency::Turns(&turns),
            ..request(&bank, context)
        };
        let stream = |llm: &LlmClient| {
            let (mut shown, mut pieces, mut restarts) = (String::new(), 0, 0);
            let mut show = |piece: ReplyPiece<'_>| match piece {
                ReplyPiece::Text(text) => {
                    shown.push_str(text);
                    pieces += 1;
                }
                ReplyPiece::Restart => {
                    shown.clear();
                    restarts += 1;
                }
            };
            let found = llm.stream(&request, "answer", &mut show, &mut |v: Value| Ok(v)).unwrap();
            assert_eq!(found["answer"], "Ann: \"in the boathouse\", \u{1f600}");
            assert_eq!(found["answer"], shown.as_str());
            (pieces, restarts)
        };
        let (pieces, restarts) = stream(&llm);
        assert!(pieces > 3 && restarts == again, "{model}: {pieces} pieces, {restarts} restarts");
        assert_eq!(server.requests()[0]["stream_options"]["include_usage"], true);
        let (_, usage) = llm.spending().remove(Contract::Answer as usize);
        assert!(usage.prompt_tokens > 100, "the stream's usage is counted: {usage:?}");
        let (pieces, _) = stream(&llm);
        assert!(pieces <= 2, "a cached response is one piece: {pieces}");
        llm.evict_turns(&bank, ["t2"].into_iter()).unwrap();
        stream(&llm);
        assert!(llm.spending()[Contract::Answer as usize].1.calls > usage.calls, "one of its turns changed");
    }
}
