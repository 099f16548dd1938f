//! What each route does with its input.
//!
//! In: the calls, the caller, and the parameters or the body of a row of `table`. Out: what the call answers. Here
//! parameters become the request of a call; the call decides what its caller may do.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;

use super::{
    answer::{Answer, JSON},
    event_stream,
    parameter::{flag, milliseconds, missing, needed_bank, number, the_bank},
    route::{Held, Sent},
};
use crate::{
    access::Caller,
    api::{
        Api, Ask, BankStatus, Banks, DeadLetters, Diff, Digest, Explain, Forget, ForgetTurns, Forgets, Forgotten,
        ForgottenTurns, Graph, History, ListBanks, ListHistory, ListTurns, Operations, Problem, Put, ReadRecords,
        Records, Reextract, Reextracted, SelectLetters, ShowDiff, ShowGraph, ShowUnits, SnapshotList, Stats, Status,
        TokenView, Turns, UnitView, Units,
    },
    subscriptions::Subscribe,
};
use nouns::model::{EventTime, Explanation, Selector};
use ripplemem::pipeline::{Erased, StageTimes};

/// A parameter, if it was given.
type Given = Option<String>;
type Who = Arc<Caller>;

const OF_BANK: &str = "?bank=NAME";

pub(super) async fn put(api: Arc<Api>, sent: Sent<Held<Put>>) -> Result<Response, Problem> {
    let Sent { who, input: Held { body, room }, .. } = sent;
    Ok(Answer::Json(api.put(&who, body, room).await?).into_response())
}

pub(super) async fn ask(api: Arc<Api>, sent: Sent<Held<Ask>>) -> Result<Response, Problem> {
    let Sent { who, headers, input: Held { body: ask, room } } = sent;
    drop(room);
    match (ask.answer, event_stream::is_accepted(&headers)) {
        (false, _) => {
            let (evidence, times) = api.ask_timed(&who, ask).await?;
            Ok(with_times(Answer::Json(evidence), &times))
        }
        (true, false) => {
            let (answered, times) = api.answer(&who, ask).await?;
            Ok(with_times(Answer::Json(answered), &times))
        }
        (true, true) => {
            let (evidence, pieces) = api.speak(&who, ask).await?;
            Ok(event_stream::answer(&evidence, pieces))
        }
    }
}

/// An answer with the times of its stages in the header `Server-Timing`, where they change no answer.
fn with_times(answer: Answer<impl Serialize>, times: &StageTimes) -> Response {
    let total = ("total", times.total().as_secs_f64() * 1_000.0);
    let entry = |(name, milliseconds): (&str, f64)| format!("{name};dur={milliseconds:.3}");
    let entries: Vec<String> = times.milliseconds().chain([total]).map(entry).collect();
    let mut response = answer.into_response();
    if let Ok(value) = HeaderValue::from_str(&entries.join(", ")) {
        response.headers_mut().insert(HeaderName::from_static("server-timing"), value);
    }
    response
}

pub(super) async fn explain(api: Arc<Api>, who: Who, explain: Explain) -> Result<Explanation, Problem> {
    api.explain(&who, explain).await
}

/// Subscribes without a body, because a browser's `EventSource` can only send a GET.
pub(super) async fn subscribe(api: Arc<Api>, sent: Sent<[Given; 7]>) -> Result<Response, Problem> {
    const QUERY: &str = "?bank=NAME&text=QUESTION";
    let Sent { who, headers, input: [bank, text, asked_at, asker, most_tokens, last_event_id, wait] } = sent;
    let asked_at = asked_at.map(|time| EventTime::parse(&time).map_err(|e| Problem::invalid(format!("asked_at: {e}"))));
    let subscribe = Subscribe {
        bank: needed_bank(bank, QUERY)?,
        text: text.ok_or_else(|| missing("text", QUERY))?,
        asked_at: asked_at.transpose()?,
        asker,
        said_before: Vec::new(),
        most_tokens: number("most_tokens", most_tokens)?,
        last_event_id,
        wait_ms: milliseconds(wait)?,
    };
    subscribed(&api, &who, subscribe, &headers).await
}

pub(super) async fn subscribe_with_body(api: Arc<Api>, sent: Sent<Held<Subscribe>>) -> Result<Response, Problem> {
    let Sent { who, headers, input: Held { body, room } } = sent;
    drop(room);
    subscribed(&api, &who, body, &headers).await
}

async fn subscribed(api: &Api, who: &Who, mut subscribe: Subscribe, headers: &HeaderMap) -> Result<Response, Problem> {
    subscribe.last_event_id = last_event_id(headers).or(subscribe.last_event_id);
    if subscribe.wait_ms.is_some() {
        return Ok(Answer::Json(api.poll(who, subscribe).await?).into_response());
    }
    Ok(event_stream::subscription(api.subscribe(who, subscribe).await?))
}

pub(super) async fn events(api: Arc<Api>, sent: Sent<[Given; 2]>) -> Result<Response, Problem> {
    let Sent { who, headers, input: [bank, last] } = sent;
    let bank = needed_bank(bank, OF_BANK)?;
    let last = last_event_id(&headers).or(last);
    Ok(event_stream::bank_events(api.follow_bank(&who, &bank, last.as_deref()).await?))
}

fn last_event_id(headers: &HeaderMap) -> Given {
    headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned)
}

pub(super) async fn forget(api: Arc<Api>, who: Who, [bank, turn, wait]: [Given; 3]) -> Result<Forgotten, Problem> {
    const QUERY: &str = "?bank=NAME&turn=ID";
    let bank = needed_bank(bank, QUERY)?;
    let turn = turn.ok_or_else(|| missing("turn", QUERY))?;
    api.forget(&who, Forget { bank, turn, wait_ms: milliseconds(wait)? }).await
}

pub(super) async fn forget_turns(api: Arc<Api>, who: Who, forget: ForgetTurns) -> Result<ForgottenTurns, Problem> {
    api.forget_turns(&who, forget).await
}

pub(super) async fn forgets(api: Arc<Api>, who: Who, [bank]: [Given; 1]) -> Result<Forgets, Problem> {
    api.forgets(&who, bank.as_deref().map(the_bank).transpose()?).await
}

pub(super) async fn turns(api: Arc<Api>, who: Who, given: [Given; 10]) -> Result<Turns, Problem> {
    let [bank, turn, speaker, mentions, since, until, session, thread, before, limit] = given;
    let bank = needed_bank(bank, OF_BANK)?;
    let limit = number("limit", limit)?;
    let time = |name: &str, text: Given| {
        let time = text.map(|text| EventTime::parse(&text)).transpose();
        time.map_err(|problem| Problem::invalid(format!("{name}: {problem}")))
    };
    let (since, until) = (time("since", since)?, time("until", until)?);
    let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
    let select = Selector { speakers, since, until, session, thread, mentions, ..Selector::default() };
    api.list(&who, ListTurns { bank, turn, select, before, limit }).await
}

pub(super) async fn unit(api: Arc<Api>, who: Who, [bank, id]: [Given; 2]) -> Result<UnitView, Problem> {
    const QUERY: &str = "?bank=NAME&id=UNIT";
    let bank = needed_bank(bank, QUERY)?;
    api.unit(&who, bank, &id.ok_or_else(|| missing("id", QUERY))?).await
}

pub(super) async fn units(api: Arc<Api>, who: Who, show: ShowUnits) -> Result<Units, Problem> {
    api.units(&who, show).await
}

pub(super) async fn graph(api: Arc<Api>, who: Who, [bank, around, limit]: [Given; 3]) -> Result<Graph, Problem> {
    let bank = needed_bank(bank, OF_BANK)?;
    api.graph(&who, ShowGraph { bank, around, limit: number("limit", limit)? }).await
}

pub(super) async fn banks(
    api: Arc<Api>,
    who: Who,
    [counts, prefix, from, limit]: [Given; 4],
) -> Result<Banks, Problem> {
    let counts = counts.map_or(Ok(false), |counts| flag("counts", &counts))?;
    api.list_banks(&who, ListBanks { counts, prefix, from, limit: number("limit", limit)? }).await
}

pub(super) async fn bank(api: Arc<Api>, who: Who, [bank]: [Given; 1]) -> Result<BankStatus, Problem> {
    api.bank(&who, needed_bank(bank, OF_BANK)?).await
}

pub(super) async fn history(api: Arc<Api>, who: Who, [bank, before, limit]: [Given; 3]) -> Result<History, Problem> {
    let bank = needed_bank(bank, OF_BANK)?;
    let (before, limit) = (number("before", before)?, number("limit", limit)?);
    api.history(&who, ListHistory { bank, before, limit }).await
}

pub(super) async fn diff(api: Arc<Api>, who: Who, [bank, from, to]: [Given; 3]) -> Result<Diff, Problem> {
    const QUERY: &str = "?bank=NAME&from=OFFSET";
    let bank = needed_bank(bank, QUERY)?;
    api.diff(&who, ShowDiff { bank, from: from.ok_or_else(|| missing("from", QUERY))?, to }).await
}

pub(super) async fn digest(api: Arc<Api>, who: Who, [bank, after, wait]: [Given; 3]) -> Result<Digest, Problem> {
    let bank = bank.as_deref().map(the_bank).transpose()?;
    api.digest(&who, bank, after.as_deref(), milliseconds(wait)?).await
}

pub(super) async fn stats(api: Arc<Api>, who: Who, [bank, plain_ids]: [Given; 2]) -> Result<Stats, Problem> {
    let plain_ids = plain_ids.map_or(Ok(false), |text| flag("plain_ids", &text))?;
    api.stats(&who, bank.as_deref().map(the_bank).transpose()?, plain_ids).await
}

pub(super) async fn token(_: Arc<Operations>, who: Who, []: [Given; 0]) -> Result<TokenView, Problem> {
    TokenView::of(&who)
}

pub(super) async fn snapshots(operations: Arc<Operations>, who: Who) -> Result<SnapshotList, Problem> {
    operations.snapshots(&who).await
}

pub(super) async fn take_snapshot(operations: Arc<Operations>, who: Who) -> Result<SnapshotList, Problem> {
    operations.take_snapshot(&who).await
}

pub(super) async fn erase(operations: Arc<Operations>, who: Who) -> Result<Erased, Problem> {
    operations.erase(&who).await
}

pub(super) async fn dead_letters(
    operations: Arc<Operations>,
    who: Who,
    asked: SelectLetters,
) -> Result<DeadLetters, Problem> {
    operations.dead_letters(&who, asked).await
}

pub(super) async fn records(operations: Arc<Operations>, who: Who, given: [Given; 6]) -> Result<Records, Problem> {
    let [topic, partition, from, since_ms, limit, bank] = given;
    let topic = topic.ok_or_else(|| missing("topic", "?topic=turns"))?;
    let (partition, from) = (number("partition", partition)?, number("from", from)?);
    let (since_ms, limit) = (number("since_ms", since_ms)?, number("limit", limit)?);
    let bank = bank.as_deref().map(the_bank).transpose()?;
    operations.records(&who, ReadRecords { topic, partition, from, since_ms, limit, bank }).await
}

pub(super) async fn reextract(operations: Arc<Operations>, who: Who, asked: Reextract) -> Result<Reextracted, Problem> {
    operations.reextract(&who, asked).await
}

pub(super) async fn status(operations: Arc<Operations>, who: Who) -> Result<Status, Problem> {
    operations.status(&who).await
}

pub(super) async fn metrics(operations: Arc<Operations>, who: Who) -> Result<Response, Problem> {
    Ok(operations.metrics(&who)?.into_response())
}

pub(super) async fn document(text: fn() -> &'static str) -> Result<Response, Problem> {
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, JSON)], text()).into_response())
}
