//! Which path is which call.
//!
//! In: requests. Out: JSON; a problem where there is no answer. Every request is checked first: its Host
//! and its Origin. A bank holds slashes, so it is a parameter of the query and never a part of a path.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State as Shared},
    http::{HeaderValue, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{body::Bodies, openapi::openapi};
use crate::{
    model::Bank,
    serve::{
        api::{Api, Code, Forget, Problem},
        hosts::Hosts,
    },
};

/// A request is over after this time, whatever it waits for.
const TIMEOUT: Duration = Duration::from_secs(660);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What the routes share.
#[derive(Clone)]
struct V1 {
    api: Arc<Api>,
    hosts: Arc<Hosts>,
    bodies: Bodies,
}

/// Every route, behind the check.
pub(in crate::serve) fn routes(api: Arc<Api>, hosts: Hosts) -> Router {
    let v1 = V1 { api, hosts: Arc::new(hosts), bodies: Bodies::new() };
    Router::new()
        .route("/v1/turns", post(put).delete(forget))
        .route("/v1/ask", post(ask))
        .route("/v1/banks", get(banks))
        .route("/v1/digest", get(digest))
        .route("/v1/status", get(status))
        .route("/v1/openapi.json", get(|| async { (StatusCode::OK, [(header::CONTENT_TYPE, JSON)], openapi()) }))
        .method_not_allowed_fallback(|| async { Answer::<()>::Problem(Problem::new(Code::Method, METHODS)) })
        .fallback(|| async { Answer::<()>::Problem(Problem::new(Code::NotFound, PATHS)) })
        .layer(middleware::from_fn_with_state(v1.clone(), checked))
        .with_state(v1)
}

const PATHS: &str = "the paths are in /v1/openapi.json";
const METHODS: &str = "the methods of each path are in /v1/openapi.json";

async fn checked(Shared(v1): Shared<V1>, request: Request, next: Next) -> Response {
    if let Some(problem) = v1.hosts.refusal(request.headers()) {
        return Answer::<()>::Problem(Problem::new(Code::Forbidden, problem)).into_response();
    }
    match tokio::time::timeout(TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Answer::<()>::Problem(Problem::new(Code::Deadline, "the request took too long")).into_response(),
    }
}

async fn put(Shared(v1): Shared<V1>, body: Body) -> Answer<impl Serialize> {
    with_body(&v1, body, async |put| v1.api.put(put).await).await.into()
}

async fn ask(Shared(v1): Shared<V1>, body: Body) -> Answer<impl Serialize> {
    with_body(&v1, body, async |ask| v1.api.ask(ask).await).await.into()
}

async fn forget(Shared(v1): Shared<V1>, uri: Uri) -> Answer<impl Serialize> {
    let forget = async || {
        let [bank, turn, wait] = parameters(&uri, ["bank", "turn", "wait_ms"])?;
        let bank = the_bank(&bank.ok_or_else(|| Problem::invalid("bank: missing; write ?bank=NAME&turn=ID"))?)?;
        let turn = turn.ok_or_else(|| Problem::invalid("turn: missing; write ?bank=NAME&turn=ID"))?;
        v1.api.forget(Forget { bank, turn, wait_ms: milliseconds(wait)? }).await
    };
    forget().await.into()
}

async fn banks(Shared(v1): Shared<V1>) -> Answer<impl Serialize> {
    Answer::Json(v1.api.banks())
}

async fn digest(Shared(v1): Shared<V1>, uri: Uri) -> Answer<impl Serialize> {
    let digest = async || {
        let [bank, after, wait] = parameters(&uri, ["bank", "after", "wait_ms"])?;
        v1.api.digest(bank.as_deref().map(the_bank).transpose()?, after.as_deref(), milliseconds(wait)?).await
    };
    digest().await.into()
}

async fn status(Shared(v1): Shared<V1>) -> Answer<impl Serialize> {
    v1.api.status().await.into()
}

/// Reads the body and calls.
async fn with_body<R: DeserializeOwned, T>(
    v1: &V1,
    body: Body,
    call: impl AsyncFnOnce(R) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let whole = v1.bodies.read(body).await?;
    let request = serde_json::from_slice(&whole.bytes)
        .map_err(|e| Problem::invalid(format!("the body is not what this path takes: {e}; see /v1/openapi.json")))?;
    call(request).await
}

/// The parameters of the query, each at most once and no others.
fn parameters<const N: usize>(uri: &Uri, names: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let mut found = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        let place = names.iter().position(|known| *known == name).and_then(|at| found.get_mut(at));
        match place {
            Some(place @ None) => *place = Some(value.into_owned()),
            Some(Some(_)) => return Err(Problem::invalid(format!("{name}: stands twice"))),
            None => {
                let known = names.join(", ");
                return Err(Problem::invalid(format!("{name:?}: not a parameter of this path; it takes {known}")));
            }
        }
    }
    Ok(found)
}

fn milliseconds(wait: Option<String>) -> Result<Option<u64>, Problem> {
    wait.map(|ms| ms.parse().map_err(|_| Problem::invalid("wait_ms: not a number of milliseconds"))).transpose()
}

fn the_bank(name: &str) -> Result<Bank, Problem> {
    Bank::parse(name).map_err(|invalid| Problem::invalid(invalid.to_string()))
}

/// What a call gave, on its way out.
enum Answer<T> {
    Json(T),
    Problem(Problem),
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
        let (status, kind, body) = match self {
            Self::Json(value) => (200, JSON, serde_json::to_vec(&value)),
            Self::Problem(problem) => (problem.status, PROBLEM, serde_json::to_vec(&problem)),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let Ok(body) = body else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
