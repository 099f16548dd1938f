//! What each route does with its input.
//!
//! In: the calls, the caller, and the parameters or the body of a row of `route_table`. Out: what the call answers.
//! Here parameters become the request of a call; the call decides what its caller may do.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;

use super::{
    api_route::{MeteredBody, RouteRequest},
    call_response::{CallResponse, JSON},
    event_stream,
    query_parameter::{flag, milliseconds, missing_parameter, number, parse_bank, required_bank, selector, several},
};
use crate::{
    access::Caller,
    api::{
        ApiProblem, AskRequest, BankList, BankListRequest, BankStatus, DeadLettersRequest, DeadLettersResponse,
        DiffRequest, DiffResponse, ExplainRequest, ForgetReceipts, ForgetRequest, ForgetResponse, ForgetTurnsRequest,
        ForgetTurnsResponse, GraphRequest, GraphView, HistoryPage, HistoryRequest, ListOrder, MemoryApi, MemoryDigest,
        MemoryStats, NameSessionRequest, NameSessionResponse, ProfileRequest, PutTurnsRequest, RecordPage,
        RecordPageRequest, ReextractBankRequest, ReextractBankResponse, SelectTurnsRequest, ServiceOperations,
        ServiceStatus, SessionList, SessionListRequest, SnapshotList, TokenView, TurnList, TurnListRequest, UnitList,
        UnitListRequest, UnitView,
    },
    subscriptions::SubscribeRequest,
};
use erasure::ErasureReport;
use replica::AnswerStageTimes;
use types::model::{EventTime, Explanation, Selector, StatementKind};

/// A parameter, if it was given.
type ParameterText = Option<String>;
type SharedCaller = Arc<Caller>;

const OF_BANK: &str = "?bank=NAME";

pub(super) async fn put(
    api: Arc<MemoryApi>,
    sent: RouteRequest<MeteredBody<PutTurnsRequest>>,
) -> Result<Response, ApiProblem> {
    let RouteRequest { who, input: MeteredBody { body, room }, .. } = sent;
    Ok(CallResponse::Json(api.put(&who, body, room).await?).into_response())
}

pub(super) async fn ask(
    api: Arc<MemoryApi>,
    sent: RouteRequest<MeteredBody<AskRequest>>,
) -> Result<Response, ApiProblem> {
    let RouteRequest { who, headers, input: MeteredBody { body: ask, room } } = sent;
    drop(room);
    match (ask.answer, event_stream::accepts_events(&headers)) {
        (false, _) => {
            let (evidence, times) = api.ask_timed(&who, ask).await?;
            Ok(with_times(CallResponse::Json(evidence), &times))
        }
        (true, false) => {
            let (answered, times) = api.answer(&who, ask).await?;
            Ok(with_times(CallResponse::Json(answered), &times))
        }
        (true, true) => {
            let (evidence, pieces) = api.stream_answer(&who, ask).await?;
            Ok(event_stream::answer(&evidence, pieces))
        }
    }
}

/// An answer with the times of its stages in the header `Server-Timing`, where they change no answer.
fn with_times(answer: CallResponse<impl Serialize>, times: &AnswerStageTimes) -> Response {
    let total = ("total", times.total().as_secs_f64() * 1_000.0);
    let entry = |(name, milliseconds): (&str, f64)| format!("{name};dur={milliseconds:.3}");
    let entries: Vec<String> = times.milliseconds().chain([total]).map(entry).collect();
    let mut response = answer.into_response();
    if let Ok(value) = HeaderValue::from_str(&entries.join(", ")) {
        response.headers_mut().insert(HeaderName::from_static("server-timing"), value);
    }
    response
}

pub(super) async fn explain(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    explain: ExplainRequest,
) -> Result<Explanation, ApiProblem> {
    api.explain(&who, explain).await
}

/// Subscribes without a body, because a browser's `EventSource` can only send a GET.
pub(super) async fn subscribe(
    api: Arc<MemoryApi>,
    sent: RouteRequest<[ParameterText; 9]>,
) -> Result<Response, ApiProblem> {
    const QUERY: &str = "?bank=NAME&text=QUESTION";
    let RouteRequest { who, headers, input } = sent;
    let [bank, text, asked_at, asker, most_tokens, select, metadata, last_event_id, wait] = input;
    let asked_at =
        asked_at.map(|time| EventTime::parse(&time).map_err(|e| ApiProblem::invalid(format!("asked_at: {e}"))));
    let subscribe = SubscribeRequest {
        bank: required_bank(bank, QUERY)?,
        text: text.ok_or_else(|| missing_parameter("text", QUERY))?,
        asked_at: asked_at.transpose()?,
        asker,
        said_before: Vec::new(),
        most_tokens: number("most_tokens", most_tokens)?,
        select: select.map(|json| selector(&json)).transpose()?,
        metadata: metadata.map_or(Ok(false), |text| flag("metadata", &text))?,
        last_event_id,
        wait_ms: milliseconds(wait)?,
    };
    subscription_response(&api, &who, subscribe, &headers).await
}

pub(super) async fn subscribe_with_body(
    api: Arc<MemoryApi>,
    sent: RouteRequest<MeteredBody<SubscribeRequest>>,
) -> Result<Response, ApiProblem> {
    let RouteRequest { who, headers, input: MeteredBody { body, room } } = sent;
    drop(room);
    subscription_response(&api, &who, body, &headers).await
}

async fn subscription_response(
    api: &MemoryApi,
    who: &SharedCaller,
    mut subscribe: SubscribeRequest,
    headers: &HeaderMap,
) -> Result<Response, ApiProblem> {
    subscribe.last_event_id = last_event_id(headers).or(subscribe.last_event_id);
    if subscribe.wait_ms.is_some() {
        return Ok(CallResponse::Json(api.poll(who, subscribe).await?).into_response());
    }
    Ok(event_stream::subscription(api.subscribe(who, subscribe).await?))
}

pub(super) async fn events(
    api: Arc<MemoryApi>,
    sent: RouteRequest<[ParameterText; 3]>,
) -> Result<Response, ApiProblem> {
    let RouteRequest { who, headers, input: [bank, last, metadata] } = sent;
    let bank = required_bank(bank, OF_BANK)?;
    let last = last_event_id(&headers).or(last);
    let metadata = metadata.map_or(Ok(false), |text| flag("metadata", &text))?;
    Ok(event_stream::bank_events(api.follow_bank(&who, &bank, last.as_deref(), metadata).await?))
}

fn last_event_id(headers: &HeaderMap) -> ParameterText {
    headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned)
}

pub(super) async fn forget(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, turn, expected, wait]: [ParameterText; 4],
) -> Result<ForgetResponse, ApiProblem> {
    const QUERY: &str = "?bank=NAME&turn=ID";
    let bank = required_bank(bank, QUERY)?;
    let turn = turn.ok_or_else(|| missing_parameter("turn", QUERY))?;
    let expected_version = number("expected_version", expected)?;
    api.forget(&who, ForgetRequest { bank, turn, expected_version, wait_ms: milliseconds(wait)? }).await
}

pub(super) async fn forget_turns(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    forget: ForgetTurnsRequest,
) -> Result<ForgetTurnsResponse, ApiProblem> {
    api.forget_turns(&who, forget).await
}

pub(super) async fn forgets(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank]: [ParameterText; 1],
) -> Result<ForgetReceipts, ApiProblem> {
    api.forgets(&who, bank.as_deref().map(parse_bank).transpose()?).await
}

pub(super) async fn turns(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    given: [ParameterText; 12],
) -> Result<TurnList, ApiProblem> {
    let [bank, turns, speaker, mentions, since, until, session, session_prefix, thread, order, before, limit] = given;
    let bank = required_bank(bank, OF_BANK)?;
    let limit = number("limit", limit)?;
    let time = |name: &str, text: ParameterText| {
        let time = text.map(|text| EventTime::parse(&text)).transpose();
        time.map_err(|problem| ApiProblem::invalid(format!("{name}: {problem}")))
    };
    let (since, until) = (time("since", since)?, time("until", until)?);
    let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
    let order = match order.as_deref() {
        None | Some("latest") => ListOrder::Latest,
        Some("oldest") => ListOrder::Oldest,
        Some(other) => return Err(ApiProblem::invalid(format!("order: {other:?}; write latest or oldest"))),
    };
    let select = Selector { speakers, since, until, session, session_prefix, thread, mentions, ..Selector::default() };
    api.list(&who, TurnListRequest { bank, turns: several(turns), select, order, before, limit }).await
}

pub(super) async fn select_turns(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    list: SelectTurnsRequest,
) -> Result<TurnList, ApiProblem> {
    api.list_selected(&who, list).await
}

pub(super) async fn sessions(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, prefix, from, limit]: [ParameterText; 4],
) -> Result<SessionList, ApiProblem> {
    let (bank, limit) = (required_bank(bank, OF_BANK)?, number("limit", limit)?);
    api.sessions(&who, SessionListRequest { bank, prefix, from, limit }).await
}

pub(super) async fn name_session(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    name: NameSessionRequest,
) -> Result<NameSessionResponse, ApiProblem> {
    api.name_session(&who, name).await
}

pub(super) async fn unit(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, id]: [ParameterText; 2],
) -> Result<UnitView, ApiProblem> {
    const QUERY: &str = "?bank=NAME&id=UNIT";
    let bank = required_bank(bank, QUERY)?;
    api.unit(&who, bank, &id.ok_or_else(|| missing_parameter("id", QUERY))?).await
}

pub(super) async fn units(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    show: UnitListRequest,
) -> Result<UnitList, ApiProblem> {
    api.units(&who, show).await
}

pub(super) async fn graph(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, around, limit]: [ParameterText; 3],
) -> Result<GraphView, ApiProblem> {
    let bank = required_bank(bank, OF_BANK)?;
    api.graph(&who, GraphRequest { bank, around, limit: number("limit", limit)? }).await
}

pub(super) async fn profile(
    api: Arc<MemoryApi>,
    sent: RouteRequest<[ParameterText; 10]>,
) -> Result<Response, ApiProblem> {
    let RouteRequest { who, headers, input } = sent;
    let [bank, person, kinds, past, begin, select, as_of, most_tokens, version, wait] = input;
    let bank = required_bank(bank, OF_BANK)?;
    let kind = |name: &str| {
        let known = || StatementKind::ALL.map(StatementKind::name).join(", ");
        let wrong = || ApiProblem::invalid(format!("kinds: {name:?} is none of {}", known()));
        StatementKind::of_name(name.trim()).ok_or_else(wrong)
    };
    let kinds = kinds
        .iter()
        .flat_map(|kinds| kinds.split(','))
        .filter(|name| !name.is_empty())
        .map(kind)
        .collect::<Result<_, _>>()?;
    let past = past.map_or(Ok(false), |past| flag("past", &past))?;
    let begin = begin.map_or(Ok(false), |begin| flag("begin", &begin))?;
    let select = select.map(|json| selector(&json)).transpose()?;
    let most_tokens = number("most_tokens", most_tokens)?;
    let show = ProfileRequest { bank, person, kinds, past, begin, select, as_of, most_tokens };
    let version = last_event_id(&headers).or(version);
    if event_stream::accepts_events(&headers) {
        return Ok(event_stream::profile_events(api.follow_profile(&who, show, version).await?));
    }
    let shown = match milliseconds(wait)? {
        Some(wait) => api.poll_profile(&who, show, version, wait).await?,
        None => api.profile(&who, show).await?,
    };
    Ok(CallResponse::Json(shown).into_response())
}

pub(super) async fn banks(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [counts, prefix, from, limit]: [ParameterText; 4],
) -> Result<BankList, ApiProblem> {
    let counts = counts.map_or(Ok(false), |counts| flag("counts", &counts))?;
    api.list_banks(&who, BankListRequest { counts, prefix, from, limit: number("limit", limit)? }).await
}

pub(super) async fn bank(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank]: [ParameterText; 1],
) -> Result<BankStatus, ApiProblem> {
    api.bank(&who, required_bank(bank, OF_BANK)?).await
}

pub(super) async fn history(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, before, limit]: [ParameterText; 3],
) -> Result<HistoryPage, ApiProblem> {
    let bank = required_bank(bank, OF_BANK)?;
    let (before, limit) = (number("before", before)?, number("limit", limit)?);
    api.history(&who, HistoryRequest { bank, before, limit }).await
}

pub(super) async fn diff(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, from, to]: [ParameterText; 3],
) -> Result<DiffResponse, ApiProblem> {
    const QUERY: &str = "?bank=NAME&from=OFFSET";
    let bank = required_bank(bank, QUERY)?;
    api.diff(&who, DiffRequest { bank, from: from.ok_or_else(|| missing_parameter("from", QUERY))?, to }).await
}

pub(super) async fn digest(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, after, wait]: [ParameterText; 3],
) -> Result<MemoryDigest, ApiProblem> {
    let bank = bank.as_deref().map(parse_bank).transpose()?;
    api.digest(&who, bank, after.as_deref(), milliseconds(wait)?).await
}

pub(super) async fn stats(
    api: Arc<MemoryApi>,
    who: SharedCaller,
    [bank, plain_ids]: [ParameterText; 2],
) -> Result<MemoryStats, ApiProblem> {
    let plain_ids = plain_ids.map_or(Ok(false), |text| flag("plain_ids", &text))?;
    api.stats(&who, bank.as_deref().map(parse_bank).transpose()?, plain_ids).await
}

pub(super) async fn token(
    _: Arc<ServiceOperations>,
    who: SharedCaller,
    []: [ParameterText; 0],
) -> Result<TokenView, ApiProblem> {
    TokenView::of(&who)
}

pub(super) async fn snapshots(
    operations: Arc<ServiceOperations>,
    who: SharedCaller,
) -> Result<SnapshotList, ApiProblem> {
    operations.snapshots(&who).await
}

pub(super) async fn take_snapshot(
    operations: Arc<ServiceOperations>,
    who: SharedCaller,
) -> Result<SnapshotList, ApiProblem> {
    operations.take_snapshot(&who).await
}

pub(super) async fn erase(operations: Arc<ServiceOperations>, who: SharedCaller) -> Result<ErasureReport, ApiProblem> {
    operations.erase(&who).await
}

pub(super) async fn dead_letters(
    operations: Arc<ServiceOperations>,
    who: SharedCaller,
    asked: DeadLettersRequest,
) -> Result<DeadLettersResponse, ApiProblem> {
    operations.dead_letters(&who, asked).await
}

pub(super) async fn records(
    operations: Arc<ServiceOperations>,
    who: SharedCaller,
    given: [ParameterText; 6],
) -> Result<RecordPage, ApiProblem> {
    let [topic, partition, from, since_ms, limit, bank] = given;
    let topic = topic.ok_or_else(|| missing_parameter("topic", "?topic=turns"))?;
    let (partition, from) = (number("partition", partition)?, number("from", from)?);
    let (since_ms, limit) = (number("since_ms", since_ms)?, number("limit", limit)?);
    let bank = bank.as_deref().map(parse_bank).transpose()?;
    operations.records(&who, RecordPageRequest { topic, partition, from, since_ms, limit, bank }).await
}

pub(super) async fn reextract(
    operations: Arc<ServiceOperations>,
    who: SharedCaller,
    asked: ReextractBankRequest,
) -> Result<ReextractBankResponse, ApiProblem> {
    operations.reextract(&who, asked).await
}

pub(super) async fn status(operations: Arc<ServiceOperations>, who: SharedCaller) -> Result<ServiceStatus, ApiProblem> {
    operations.status(&who).await
}

pub(super) async fn metrics(operations: Arc<ServiceOperations>, who: SharedCaller) -> Result<Response, ApiProblem> {
    Ok(operations.metrics(&who)?.into_response())
}

pub(super) async fn document(text: fn() -> &'static str) -> Result<Response, ApiProblem> {
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, JSON)], text()).into_response())
}
