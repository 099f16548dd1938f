//! Which path is which call.
//!
//! In: requests. Out: JSON, events, or a problem if there is no answer. Every request is checked first: its Host, its
//! Origin and its token. Each call decides what its caller may do. A bank's name may hold slashes, so it is a parameter
//! of the query and never a part of the path.

use std::{str::FromStr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    extract::{MatchedPath, Request, State as Shared},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Serialize, de::DeserializeOwned};
use tracing::Instrument as _;

use super::{
    body::{Bodies, MAX_BYTES, SEND_PLAIN, Whole},
    door::Door,
    event_stream,
    openapi::openapi,
    packed::packed,
};
use crate::{
    access::{Caller, Denied},
    api::{
        Api, Ask, Code, Explain, Forget, ForgetTurns, ListBanks, ListHistory, ListTurns, Operations, Problem,
        ReadRecords, ShowDiff, ShowGraph, ShowUnits, TokenView,
    },
    hosts::Hosts,
    query,
    quota::Share,
    request_trace,
    state::State,
    subscriptions::Subscribe,
    telemetry::RefusedStatus,
};
use nouns::{
    model::{Bank, EventTime, Selector},
    trace_parent::TraceParent,
};
use ripplemem::pipeline::StageTimes;

/// A response must begin within this time, whatever the request waits for. Events may follow for longer.
const TIMEOUT: Duration = Duration::from_secs(660);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What the routes of a memory share.
#[derive(Clone)]
struct V1 {
    api: Arc<Api>,
    bodies: Bodies,
}

/// What checks a request before anything else.
#[derive(Clone)]
pub(super) struct Entrance {
    hosts: Hosts,
    door: Arc<Door>,
    state: Arc<State>,
}

impl Entrance {
    pub(super) fn new(hosts: Hosts, door: Arc<Door>, state: Arc<State>) -> Self {
        Self { hosts, door, state }
    }
}

/// All routes, and `more` routes of other interfaces, behind the checks. Without `api`, `/v1` has only the operations of
/// the service and the OpenAPI document.
pub(super) fn routes(
    api: Option<Arc<Api>>,
    operations: &Arc<Operations>,
    entrance: Entrance,
    bodies: Bodies,
    more: Router,
) -> Router {
    let operated = Router::new()
        .route("/v1/admin/snapshots", get(snapshots).post(take_snapshot))
        .route("/v1/admin/erase", post(erase))
        .route("/v1/admin/dead-letters", post(dead_letters))
        .route("/v1/admin/records", get(records))
        .route("/v1/admin/reextract", post(reextract))
        .route("/v1/status", get(status))
        .route("/metrics", get(metrics))
        .with_state((Arc::clone(operations), bodies.clone()));
    let of_memory = api.map_or_else(Router::new, |api| of_memory(V1 { api, bodies }));
    Router::new()
        .merge(more.with_state(()))
        .merge(of_memory)
        .merge(operated)
        .route("/v1/token", get(token))
        .route("/v1/openapi.json", get(|| async { (StatusCode::OK, [(header::CONTENT_TYPE, JSON)], openapi()) }))
        .method_not_allowed_fallback(|| async { Answer::<()>::Problem(Problem::new(Code::Method, METHODS)) })
        .fallback(|| async { Answer::<()>::Problem(Problem::new(Code::NotFound, PATHS)) })
        .layer(middleware::from_fn(packed))
        .layer(middleware::from_fn(known_encodings))
        .layer(middleware::from_fn_with_state(entrance, checked))
}

/// Refuses a request whose `Content-Encoding` is neither `identity` nor gzip.
async fn known_encodings(request: Request, next: Next) -> Response {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let names = encodings.flat_map(|value| value.to_str().unwrap_or("unreadable").split(',')).map(str::trim);
    let is_known =
        |name: &str| name.is_empty() || ["identity", "gzip", "x-gzip"].iter().any(|k| k.eq_ignore_ascii_case(name));
    let unknown = names.filter(|name| !is_known(name)).map(str::to_owned).next();
    match unknown {
        None => next.run(request).await,
        Some(name) => {
            let detail = format!("content-encoding: a body in {name} is not read; {SEND_PLAIN}");
            Answer::<()>::Problem(Problem::new(Code::MediaType, detail)).into_response()
        }
    }
}

fn of_memory(v1: V1) -> Router {
    Router::new()
        .route("/v1/turns", get(list).post(put).delete(forget))
        .route("/v1/forget", post(forget_turns))
        .route("/v1/forgets", get(forgets))
        .route("/v1/ask", post(ask))
        .route("/v1/explain", post(explain))
        .route("/v1/subscribe", get(subscribe).post(subscribe_with_body))
        .route("/v1/events", get(events))
        .route("/v1/units", get(unit).post(units))
        .route("/v1/graph", get(graph))
        .route("/v1/banks", get(banks))
        .route("/v1/bank", get(bank))
        .route("/v1/history", get(history))
        .route("/v1/diff", get(diff))
        .route("/v1/digest", get(digest))
        .route("/v1/stats", get(stats))
        .with_state(v1)
}

/// The caller, which the checks have added to the request.
type Who = Extension<Arc<Caller>>;

const PATHS: &str = "the paths are in /v1/openapi.json";
const METHODS: &str = "the methods of each path are in /v1/openapi.json";

async fn checked(Shared(entrance): Shared<Entrance>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("unknown path", MatchedPath::as_str);
    let shown = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let trace = shown.and_then(TraceParent::parse);
    let span = request_trace::request_span(request.method().as_str(), path, trace.as_ref());
    let mut response = request_trace::within(trace, answered(&entrance, request, next)).instrument(span).await;
    // A browser must not treat remembered text as a script or a page.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Nor to keep it: a token may end, and what was said may be deleted.
    if !event_stream::pass_on_at_once(response.headers_mut()) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let status @ (401 | 403 | 429) = response.status().as_u16() {
        entrance.state.metrics.requests_refused.get_or_create(&RefusedStatus { status }).inc();
    }
    response
}

async fn answered(entrance: &Entrance, mut request: Request, next: Next) -> Response {
    let mut noted = entrance.door.begin(&request);
    if let Some(problem) = entrance.hosts.refusal(&request) {
        let response = Answer::<()>::Problem(Problem::new(Code::Forbidden, problem)).into_response();
        noted.end(response.status());
        return response;
    }
    let caller = match entrance.door.caller(&request) {
        Ok(caller) => Arc::new(caller),
        Err(denied) => {
            noted.is_denied(&denied);
            let response = refused(denied);
            noted.end(response.status());
            return response;
        }
    };
    noted.is_by(&caller);
    let _share = match entrance.door.enter(&caller) {
        Ok(share) => share,
        Err(problem) => {
            let response = Answer::<()>::Problem(problem).into_response();
            noted.end(response.status());
            return response;
        }
    };
    request.extensions_mut().insert(caller);
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let mut response = match tokio::time::timeout(TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Answer::<()>::Problem(Problem::new(Code::Deadline, "the request took too long")).into_response(),
    };
    if let Some(Elsewhere(holder)) = response.extensions().get()
        && let Ok(location) = HeaderValue::from_str(&format!("{}{target}", holder.trim_end_matches('/')))
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    noted.end(response.status());
    response
}

/// The URL of the instance that holds the bank of a request.
#[derive(Clone)]
struct Elsewhere(String);

fn refused(denied: Denied) -> Response {
    let retry_after = if let Denied::TooMany { retry_after, .. } = &denied { Some(*retry_after) } else { None };
    let mut response = Answer::<()>::Problem(denied.into()).into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(after) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs() + 1));
    }
    response
}

async fn put(Shared(v1): Shared<V1>, Extension(who): Who, body: Body) -> Answer<impl Serialize> {
    let put = async || {
        let (put, room) = read(&v1.bodies, &who, body).await?;
        v1.api.put(&who, put, room).await
    };
    put().await.into()
}

async fn ask(
    Shared(v1): Shared<V1>,
    Extension(who): Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer<()>> {
    let (ask, _) = read::<Ask>(&v1.bodies, &who, body).await?;
    let asked = async || match (ask.answer, event_stream::is_accepted(&headers)) {
        (false, _) => {
            let (evidence, times) = v1.api.ask_timed(&who, ask).await?;
            Ok(with_times(Answer::Json(evidence), &times))
        }
        (true, false) => {
            let (answered, times) = v1.api.answer(&who, ask).await?;
            Ok(with_times(Answer::Json(answered), &times))
        }
        (true, true) => {
            let (evidence, pieces) = v1.api.speak(&who, ask).await?;
            Ok(event_stream::answer(&evidence, pieces))
        }
    };
    asked().await.map_err(Answer::Problem)
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

async fn explain(Shared(v1): Shared<V1>, Extension(who): Who, body: Body) -> Answer<impl Serialize> {
    let explain = async || {
        let (explain, _) = read::<Explain>(&v1.bodies, &who, body).await?;
        v1.api.explain(&who, explain).await
    };
    explain().await.into()
}

/// Subscribes without a body, because a browser's `EventSource` can only send a GET.
async fn subscribe(
    Shared(v1): Shared<V1>,
    Extension(who): Who,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Answer<()>> {
    let names = ["bank", "text", "asked_at", "asker", "most_tokens", "last_event_id", "wait_ms"];
    let [bank, text, asked_at, asker, most_tokens, last_event_id, wait] = parameters(&uri, names)?;
    let missing = |name: &str| Problem::invalid(format!("{name}: missing; write ?bank=NAME&text=QUESTION"));
    let asked_at = asked_at.map(|time| EventTime::parse(&time).map_err(|e| Problem::invalid(format!("asked_at: {e}"))));
    let subscribe = Subscribe {
        bank: the_bank(&bank.ok_or_else(|| missing("bank"))?)?,
        text: text.ok_or_else(|| missing("text"))?,
        asked_at: asked_at.transpose()?,
        asker,
        said_before: Vec::new(),
        most_tokens: number("most_tokens", most_tokens)?,
        last_event_id,
        wait_ms: milliseconds(wait)?,
    };
    subscribed(&v1, &who, subscribe, &headers).await.map_err(Answer::Problem)
}

async fn subscribe_with_body(
    Shared(v1): Shared<V1>,
    Extension(who): Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer<()>> {
    let (subscribe, _) = read(&v1.bodies, &who, body).await?;
    subscribed(&v1, &who, subscribe, &headers).await.map_err(Answer::Problem)
}

async fn subscribed(
    v1: &V1,
    who: &Arc<Caller>,
    mut subscribe: Subscribe,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    subscribe.last_event_id = last.or(subscribe.last_event_id);
    if subscribe.wait_ms.is_some() {
        return Ok(Answer::Json(v1.api.poll(who, subscribe).await?).into_response());
    }
    Ok(event_stream::subscription(v1.api.subscribe(who, subscribe).await?))
}

async fn events(
    Shared(v1): Shared<V1>,
    Extension(who): Who,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Answer<()>> {
    let [bank, last_event_id] = parameters(&uri, ["bank", "last_event_id"])?;
    let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME"))?)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned).or(last_event_id);
    let follower = v1.api.follow_bank(&who, &bank, last.as_deref()).await?;
    Ok(event_stream::bank_events(follower))
}

async fn forget(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let forget = async || {
        let [bank, turn, wait] = parameters(&uri, ["bank", "turn", "wait_ms"])?;
        let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME&turn=ID"))?)?;
        let turn = turn.ok_or_else(|| Problem::invalid("turn: missing; write ?bank=NAME&turn=ID"))?;
        v1.api.forget(&who, Forget { bank, turn, wait_ms: milliseconds(wait)? }).await
    };
    forget().await.into()
}

async fn forget_turns(Shared(v1): Shared<V1>, Extension(who): Who, body: Body) -> Answer<impl Serialize> {
    let forget = async || {
        let (forget, _) = read::<ForgetTurns>(&v1.bodies, &who, body).await?;
        v1.api.forget_turns(&who, forget).await
    };
    forget().await.into()
}

async fn forgets(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let forgets = async || {
        let [bank] = parameters(&uri, ["bank"])?;
        v1.api.forgets(&who, bank.as_deref().map(the_bank).transpose()?).await
    };
    forgets().await.into()
}

async fn list(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let list = async || {
        let names = ["bank", "turn", "speaker", "mentions", "since", "until", "session", "thread", "before", "limit"];
        let [bank, turn, speaker, mentions, since, until, session, thread, before, limit] = parameters(&uri, names)?;
        let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME"))?)?;
        let limit = number("limit", limit)?;
        let time = |name: &str, text: Option<String>| {
            let time = text.map(|text| EventTime::parse(&text)).transpose();
            time.map_err(|problem| Problem::invalid(format!("{name}: {problem}")))
        };
        let (since, until) = (time("since", since)?, time("until", until)?);
        let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
        let select = Selector { speakers, since, until, session, thread, mentions, ..Selector::default() };
        v1.api.list(&who, ListTurns { bank, turn, select, before, limit }).await
    };
    list().await.into()
}

async fn unit(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let unit = async || {
        let [bank, id] = parameters(&uri, ["bank", "id"])?;
        let missing = |name: &str| Problem::invalid(format!("{name}: missing; write ?bank=NAME&id=UNIT"));
        let bank = the_bank(&bank.ok_or_else(|| missing("bank"))?)?;
        v1.api.unit(&who, bank, &id.ok_or_else(|| missing("id"))?).await
    };
    unit().await.into()
}

async fn units(Shared(v1): Shared<V1>, Extension(who): Who, body: Body) -> Answer<impl Serialize> {
    let units = async || {
        let (show, _) = read::<ShowUnits>(&v1.bodies, &who, body).await?;
        v1.api.units(&who, show).await
    };
    units().await.into()
}

async fn graph(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let graph = async || {
        let [bank, around, limit] = parameters(&uri, ["bank", "around", "limit"])?;
        let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME"))?)?;
        v1.api.graph(&who, ShowGraph { bank, around, limit: number("limit", limit)? }).await
    };
    graph().await.into()
}

async fn banks(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let banks = async || {
        let [counts, prefix, from, limit] = parameters(&uri, ["counts", "prefix", "from", "limit"])?;
        let counts = counts.map_or(Ok(false), |counts| flag("counts", &counts))?;
        v1.api.list_banks(&who, ListBanks { counts, prefix, from, limit: number("limit", limit)? }).await
    };
    banks().await.into()
}

async fn history(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let history = async || {
        let [bank, before, limit] = parameters(&uri, ["bank", "before", "limit"])?;
        let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME"))?)?;
        let (before, limit) = (number("before", before)?, number("limit", limit)?);
        v1.api.history(&who, ListHistory { bank, before, limit }).await
    };
    history().await.into()
}

async fn diff(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let diff = async || {
        let [bank, from, to] = parameters(&uri, ["bank", "from", "to"])?;
        let missing = |name: &str| Problem::invalid(format!("{name}: missing; write ?bank=NAME&from=OFFSET"));
        let bank = the_bank(&bank.ok_or_else(|| missing("bank"))?)?;
        v1.api.diff(&who, ShowDiff { bank, from: from.ok_or_else(|| missing("from"))?, to }).await
    };
    diff().await.into()
}

async fn token(Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    parameters(&uri, []).and_then(|[]| TokenView::of(&who)).into()
}

async fn bank(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let bank = async || {
        let [bank] = parameters(&uri, ["bank"])?;
        let bank = bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME"))?;
        v1.api.bank(&who, the_bank(&bank)?).await
    };
    bank().await.into()
}

/// The operations of the service, and the limits on bodies.
type Operated = Shared<(Arc<Operations>, Bodies)>;

async fn snapshots(Shared((operations, _)): Operated, Extension(who): Who) -> Answer<impl Serialize> {
    operations.snapshots(&who).await.into()
}

async fn take_snapshot(Shared((operations, _)): Operated, Extension(who): Who) -> Answer<impl Serialize> {
    operations.take_snapshot(&who).await.into()
}

async fn erase(Shared((operations, _)): Operated, Extension(who): Who) -> Answer<impl Serialize> {
    operations.erase(&who).await.into()
}

async fn records(Shared((operations, _)): Operated, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let records = async || {
        let [topic, partition, from, since_ms, limit, bank] =
            parameters(&uri, ["topic", "partition", "from", "since_ms", "limit", "bank"])?;
        let topic = topic.ok_or_else(|| Problem::invalid("topic: missing; write ?topic=turns"))?;
        let (partition, from) = (number("partition", partition)?, number("from", from)?);
        let (since_ms, limit) = (number("since_ms", since_ms)?, number("limit", limit)?);
        let bank = bank.as_deref().map(the_bank).transpose()?;
        operations.records(&who, ReadRecords { topic, partition, from, since_ms, limit, bank }).await
    };
    records().await.into()
}

async fn dead_letters(
    Shared((operations, bodies)): Operated,
    Extension(who): Who,
    body: Body,
) -> Answer<impl Serialize> {
    let letters = async || {
        let (asked, _) = read(&bodies, &who, body).await?;
        operations.dead_letters(&who, asked).await
    };
    letters().await.into()
}

async fn reextract(Shared((operations, bodies)): Operated, Extension(who): Who, body: Body) -> Answer<impl Serialize> {
    let reextract = async || {
        let (reextract, _) = read(&bodies, &who, body).await?;
        operations.reextract(&who, reextract).await
    };
    reextract().await.into()
}

async fn metrics(Shared((operations, _)): Operated, Extension(who): Who) -> Result<String, Answer<()>> {
    operations.metrics(&who).map_err(Answer::Problem)
}

async fn digest(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let digest = async || {
        let [bank, after, wait] = parameters(&uri, ["bank", "after", "wait_ms"])?;
        v1.api.digest(&who, bank.as_deref().map(the_bank).transpose()?, after.as_deref(), milliseconds(wait)?).await
    };
    digest().await.into()
}

async fn stats(Shared(v1): Shared<V1>, Extension(who): Who, uri: Uri) -> Answer<impl Serialize> {
    let stats = async || {
        let [bank, ids] = parameters(&uri, ["bank", "ids"])?;
        let ids = ids.as_deref().map(|text| flag("ids", text)).transpose()?.unwrap_or_default();
        v1.api.stats(&who, bank.as_deref().map(the_bank).transpose()?, ids).await
    };
    stats().await.into()
}

async fn status(Shared((operations, _)): Operated, Extension(who): Who) -> Answer<impl Serialize> {
    operations.status(&who).await.into()
}

/// The request in a body, and the body's share of the room. A call that keeps little of the body drops the share before
/// it waits.
async fn read<R: DeserializeOwned>(bodies: &Bodies, who: &Caller, body: Body) -> Result<(R, Share), Problem> {
    let Whole { bytes, room } = bodies.read_json(body, who.name(), MAX_BYTES).await?;
    let request = serde_json::from_slice(&bytes).map_err(|e| {
        Problem::invalid(format!("the body is not what this path takes: {e}; /v1/openapi.json says what it takes"))
    })?;
    Ok((request, room))
}

/// The parameters of the query. Each may be given once, and no others.
fn parameters<const N: usize>(uri: &Uri, names: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let mut found = [const { None }; N];
    for (name, value) in query::parameters(uri.query().unwrap_or_default()).map_err(Problem::invalid)? {
        let place = names.iter().position(|known| *known == name).and_then(|at| found.get_mut(at));
        match place {
            Some(place @ None) => *place = Some(value),
            Some(Some(_)) => return Err(Problem::invalid(format!("{name}: is given twice"))),
            None => {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(Problem::invalid(format!("{name:?}: not a parameter of this path; it takes {known}")));
            }
        }
    }
    Ok(found)
}

/// A parameter that is a whole number.
fn number<N: FromStr>(name: &str, text: Option<String>) -> Result<Option<N>, Problem> {
    let wrong = |text: &str| Problem::invalid(format!("{name}: {text:?} is not a whole number"));
    text.map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
}

/// A parameter that says yes or no.
fn flag(name: &str, text: &str) -> Result<bool, Problem> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Problem::invalid(format!("{name}: {text:?}; write true or false"))),
    }
}

fn milliseconds(wait: Option<String>) -> Result<Option<u64>, Problem> {
    wait.map(|ms| ms.parse().map_err(|_| Problem::invalid("wait_ms: not a whole number of milliseconds"))).transpose()
}

fn the_bank(name: &str) -> Result<Bank, Problem> {
    Bank::parse(name).map_err(|invalid| Problem::invalid(invalid.to_string()))
}

/// The result of a call, as a response.
enum Answer<T> {
    Json(T),
    Problem(Problem),
}

impl From<Problem> for Answer<()> {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl<T> From<Result<T, Problem>> for Answer<T> {
    fn from(result: Result<T, Problem>) -> Self {
        match result {
            Ok(value) => Self::Json(value),
            Err(problem) => Self::Problem(problem),
        }
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let holder = if let Self::Problem(problem) = &self { problem.holder.clone() } else { None };
        let (status, kind, body) = match self {
            Self::Json(value) => (200, JSON, serde_json::to_vec(&value)),
            Self::Problem(problem) => (problem.status, PROBLEM, serde_json::to_vec(&problem)),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let Ok(body) = body else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if let Some(holder) = holder {
            response.extensions_mut().insert(Elsewhere(holder));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
