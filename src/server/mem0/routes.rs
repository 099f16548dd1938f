//! Maps the paths of Mem0's platform to calls.
//!
//! In: requests, already checked for their token. Out: JSON; failures as [`Failure`] writes them, including those of
//! the token check. A path that the client knows but this memory does not offer answers 501.

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

use super::{calls::Calls, failure::Failure, fields::Fields};
use crate::{
    access::Caller,
    api::Api,
    quota::Share,
    v1::{Bodies, MAX_BYTES, Whole},
};

/// What the routes share.
#[derive(Clone)]
struct Mem0 {
    calls: Arc<Calls>,
    bodies: Bodies,
}

/// Who sends the request; the check has put it there.
type Who = Extension<Arc<Caller>>;
type Answer = Result<Json, Failure>;

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
pub(crate) fn routes(api: &Arc<Api>, bodies: Bodies) -> Router {
    let mem0 = Mem0 { calls: Arc::new(Calls { api: Arc::clone(api) }), bodies };
    let offered = Router::new()
        .route("/v1/ping/", get(|| async { Json(json!({"status": "ok", "org_id": OWNER, "project_id": OWNER})) }))
        .route("/v3/memories/add/", post(add))
        .route("/v3/memories/search/", post(search))
        .route("/v3/memories/", post(list))
        .route("/v1/memories/", delete(delete_all))
        .route("/v1/memories/{id}/", get(one).put(update).delete(delete_one))
        .route("/v1/memories/{id}/history/", get(history))
        .route("/v1/batch/", put(batch_update).delete(batch_delete))
        .route("/v1/entities/", get(entities))
        .route("/v2/entities/{kind}/{id}/", delete(delete_entity));
    let not_offered = |uri: Uri| async move { Failure::unsupported(uri.path()) };
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

async fn add(Shared(mem0): Shared<Mem0>, Extension(who): Who, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.add(&who, fields).await?))
}

async fn search(Shared(mem0): Shared<Mem0>, Extension(who): Who, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.search(&who, fields).await?))
}

async fn list(Shared(mem0): Shared<Mem0>, Extension(who): Who, uri: Uri, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.list(&who, query(&uri)?, fields).await?))
}

async fn one(Shared(mem0): Shared<Mem0>, Extension(who): Who, Path(id): Path<String>) -> Answer {
    Ok(Json(mem0.calls.get(&who, &id).await?))
}

async fn update(Shared(mem0): Shared<Mem0>, Extension(who): Who, Path(id): Path<String>, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.update(&who, &id, fields).await?))
}

async fn delete_one(Shared(mem0): Shared<Mem0>, Extension(who): Who, Path(id): Path<String>, uri: Uri) -> Answer {
    Ok(Json(mem0.calls.delete(&who, &id, query(&uri)?).await?))
}

async fn delete_all(Shared(mem0): Shared<Mem0>, Extension(who): Who, uri: Uri) -> Answer {
    Ok(Json(mem0.calls.delete_all(&who, query(&uri)?).await?))
}

async fn history(Shared(mem0): Shared<Mem0>, Extension(who): Who, Path(id): Path<String>) -> Answer {
    Ok(Json(mem0.calls.history(&who, &id).await?))
}

async fn batch_update(Shared(mem0): Shared<Mem0>, Extension(who): Who, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.batch_update(&who, fields).await?))
}

async fn batch_delete(Shared(mem0): Shared<Mem0>, Extension(who): Who, body: Body) -> Answer {
    let (fields, _room) = mem0.fields(&who, body).await?;
    Ok(Json(mem0.calls.batch_delete(&who, fields).await?))
}

async fn entities(Shared(mem0): Shared<Mem0>, Extension(who): Who, uri: Uri) -> Answer {
    Ok(Json(mem0.calls.entities(&who, query(&uri)?).await?))
}

async fn delete_entity(
    Shared(mem0): Shared<Mem0>,
    Extension(who): Who,
    Path((kind, id)): Path<(String, String)>,
) -> Answer {
    Ok(Json(mem0.calls.delete_entity(&who, &kind, &id).await?))
}

impl Mem0 {
    /// The fields of a body, and the share of memory that is reserved for them: a search keeps all of its fields, too.
    async fn fields(&self, who: &Caller, body: Body) -> Result<(Fields, Share), Failure> {
        let Whole { bytes, room } = self.bodies.read_json(body, who.name(), MAX_BYTES).await?;
        Ok((Fields::of_body(&bytes)?, room))
    }
}

fn query(uri: &Uri) -> Result<Fields, Failure> {
    Fields::of_query(uri.query().unwrap_or_default())
}

/// An answer.
struct Json(Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}
