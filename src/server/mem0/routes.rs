//! Maps the paths of Mem0's platform to calls.
//!
//! In: requests, already checked for their token. Out: JSON; failures as [`Mem0Failure`] writes them, including those
//! of the token check. A path that the client knows but this memory does not offer answers 501.

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, Request, State as Shared},
    http::{HeaderValue, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::{any, delete, get, post, put},
};
use serde_json::{Value, json};

use super::{mem0_calls::Mem0Calls, mem0_failure::Mem0Failure, request_fields::RequestFields};
use crate::{
    access::Caller,
    api::MemoryApi,
    quota::QuotaShare,
    v1::{BodyReader, MAX_BYTES, RequestBody},
};

/// What the routes share.
#[derive(Clone)]
struct Mem0State {
    calls: Arc<Mem0Calls>,
    bodies: BodyReader,
}

/// Who sends the request; the check has put it there.
type Mem0Caller = Extension<Arc<Caller>>;
type Mem0Response = Result<JsonAnswer, Mem0Failure>;

/// Paths that the client knows but that are not offered here.
const NOT_OFFERED: [&str; 10] = [
    "/v1/event/{*rest}",
    "/v1/events/",
    "/v1/exports/",
    "/v1/exports/get/",
    "/v1/feedback/",
    "/v1/summary/",
    "/v2/entities/user/{id}/profile/",
    "/v2/profiles/{*rest}",
    "/api/{*rest}",
    "/v2/memories/{*rest}",
];

/// The organisation and the project, without which the client does not start.
const OWNER: &str = "ripplemem";

/// The routes.
pub(crate) fn routes(api: &Arc<MemoryApi>, bodies: BodyReader) -> Router {
    let mem0 = Mem0State { calls: Arc::new(Mem0Calls { api: Arc::clone(api) }), bodies };
    let offered = Router::new()
        .route("/v1/ping/", get(|| async { JsonAnswer(json!({"status": "ok", "org_id": OWNER, "project_id": OWNER})) }))
        .route("/v3/memories/add/", post(add))
        .route("/v3/memories/search/", post(search))
        .route("/v3/memories/", post(list))
        .route("/v1/memories/", delete(delete_all))
        .route("/v1/memories/{id}/", get(one).put(update).delete(delete_one))
        .route("/v1/memories/{id}/history/", get(history))
        .route("/v1/batch/", put(batch_update).delete(batch_delete))
        .route("/v1/entities/", get(entities))
        .route("/v2/entities/{kind}/{id}/", delete(delete_entity));
    let not_offered = |uri: Uri| async move { Mem0Failure::unsupported(uri.path()) };
    NOT_OFFERED.into_iter().fold(offered, |routes, path| routes.route(path, any(not_offered))).with_state(mem0)
}

/// Gives problems of the token check the content type that the client reads.
pub(crate) async fn problems_as_json(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // All of the client's paths end in a slash, and none of our other paths do.
    let is_clients = path.ends_with('/') && path != "/";
    let mut response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE);
    if is_clients && kind.is_some_and(|kind| kind == "application/problem+json") {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}

async fn add(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, body: Body) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.add(&who, fields).await?))
}

async fn search(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, body: Body) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.search(&who, fields).await?))
}

async fn list(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, uri: Uri, body: Body) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.list(&who, query(&uri)?, fields).await?))
}

async fn one(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, Path(id): Path<String>) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.get(&who, &id).await?))
}

async fn update(
    Shared(mem0): Shared<Mem0State>,
    Extension(who): Mem0Caller,
    Path(id): Path<String>,
    body: Body,
) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.update(&who, &id, fields).await?))
}

async fn delete_one(
    Shared(mem0): Shared<Mem0State>,
    Extension(who): Mem0Caller,
    Path(id): Path<String>,
    uri: Uri,
) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.delete(&who, &id, query(&uri)?).await?))
}

async fn delete_all(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, uri: Uri) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.delete_all(&who, query(&uri)?).await?))
}

async fn history(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, Path(id): Path<String>) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.history(&who, &id).await?))
}

async fn batch_update(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, body: Body) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.batch_update(&who, fields).await?))
}

async fn batch_delete(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, body: Body) -> Mem0Response {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(JsonAnswer(mem0.calls.batch_delete(&who, fields).await?))
}

async fn entities(Shared(mem0): Shared<Mem0State>, Extension(who): Mem0Caller, uri: Uri) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.entities(&who, query(&uri)?).await?))
}

async fn delete_entity(
    Shared(mem0): Shared<Mem0State>,
    Extension(who): Mem0Caller,
    Path((kind, id)): Path<(String, String)>,
) -> Mem0Response {
    Ok(JsonAnswer(mem0.calls.delete_entity(&who, &kind, &id).await?))
}

impl Mem0State {
    /// The fields of a body, and the share of memory that is reserved for them: a search keeps all of its fields, too.
    async fn fields(&self, who: &Caller, body: Body) -> Result<(RequestFields, QuotaShare), Mem0Failure> {
        let RequestBody { bytes, room } = self.bodies.read_json(body, who.name(), MAX_BYTES).await?;
        Ok((RequestFields::of_body(&bytes)?, room))
    }
}

fn query(uri: &Uri) -> Result<RequestFields, Mem0Failure> {
    RequestFields::of_query(uri.query().unwrap_or_default())
}

/// An answer.
struct JsonAnswer(Value);

impl IntoResponse for JsonAnswer {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}
