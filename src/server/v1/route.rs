//! One route: its path and method, what it takes and answers, and the right that it needs.
//!
//! In: an [`Entry`] and a handler of `handlers`. Out: a [`Route`], which the router serves and the OpenAPI document
//! describes. A handler's types say what the document says, so the two cannot differ. No route checks a right: its call
//! does, wherever the request comes from.

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::State as Shared,
    http::{HeaderMap, Uri},
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    body::{Bodies, MAX_BYTES, Whole},
    parameter::{Parameter, values},
};
use crate::{
    access::{Caller, Right},
    api::Problem,
    quota::Share,
};

/// The right that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A token, with whatever rights.
    Token,
    /// The right in some bank; the answer has what the token reaches.
    Somewhere(Right),
    /// The right in the bank that the request names.
    InBank(Right),
    /// The right in every bank.
    Everywhere(Right),
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// What a row says of its route, beside its handler.
pub(super) struct Entry {
    pub(super) path: &'static str,
    pub(super) needs: Needs,
    /// `None` if the document does not have the route.
    pub(super) described: Option<Described>,
}

/// What the document says of a route in words.
pub(super) struct Described {
    /// The name of the operation.
    pub(super) id: &'static str,
    pub(super) about: &'static str,
    /// What a response is.
    pub(super) answer: &'static str,
    /// The statuses of its problems, beside those of every route.
    pub(super) problems: &'static [&'static str],
}

/// Makes a part of the document.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Value;
/// Makes the responses of a route from what they are.
pub(super) type ResponsesOf = fn(&mut SchemaGenerator, &str) -> Value;

/// One route.
pub(super) struct Route<C> {
    pub(super) entry: Entry,
    pub(super) method: Method,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<SchemaOf>,
    pub(super) responses: ResponsesOf,
    pub(super) serves: MethodRouter<Served<C>>,
}

/// What the routes of some calls share.
pub(super) struct Served<C> {
    pub(super) calls: Arc<C>,
    pub(super) bodies: Bodies,
}

impl<C> Clone for Served<C> {
    fn clone(&self) -> Self {
        Self { calls: Arc::clone(&self.calls), bodies: self.bodies.clone() }
    }
}

/// A request whose input was read.
pub(super) struct Sent<I> {
    pub(super) who: Arc<Caller>,
    pub(super) headers: HeaderMap,
    pub(super) input: I,
}

/// A body, and its share of the room. A call that keeps little of the body drops the share before it waits.
pub(super) struct Held<B> {
    pub(super) body: B,
    pub(super) room: Share,
}

/// The caller, which the checks have added to the request.
type Who = Extension<Arc<Caller>>;

/// A route whose input is the parameters of the query, in the order of the row.
pub(super) fn query<C, F, A, const N: usize>(
    method: Method,
    entry: Entry,
    parameters: [Parameter; N],
    responses: ResponsesOf,
    call: F,
) -> Route<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Sent<[Option<String>; N]>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send,
{
    let names = parameters.each_ref().map(|parameter| parameter.name);
    let handler = move |Shared(served): Shared<Served<C>>, Extension(who): Who, headers: HeaderMap, uri: Uri| {
        let call = call.clone();
        async move {
            let input = values(&uri, names)?;
            call(served.calls, Sent { who, headers, input }).await.map_err(Answer::<()>::Problem)
        }
    };
    let parameters = parameters.into();
    Route { entry, method, parameters, body: None, responses, serves: on(method.filter(), handler) }
}

/// A route whose input is the body of a POST.
pub(super) fn body<C, B, F, A>(entry: Entry, responses: ResponsesOf, call: F) -> Route<C>
where
    C: Send + Sync + 'static,
    B: DeserializeOwned + JsonSchema + Send,
    F: Fn(Arc<C>, Sent<Held<B>>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send,
{
    let handler = move |Shared(served): Shared<Served<C>>, Extension(who): Who, headers: HeaderMap, body: Body| {
        let call = call.clone();
        async move {
            let input = read(&served.bodies, &who, body).await?;
            call(served.calls, Sent { who, headers, input }).await.map_err(Answer::<()>::Problem)
        }
    };
    let method = Method::Post;
    let serves = on(method.filter(), handler);
    Route { entry, method, parameters: Vec::new(), body: Some(body_of::<B>), responses, serves }
}

/// A route without an input; it looks at no parameter.
pub(super) fn order<C, F, A>(method: Method, entry: Entry, responses: ResponsesOf, call: F) -> Route<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send,
{
    let handler = move |Shared(served): Shared<Served<C>>, Extension(who): Who| {
        let call = call.clone();
        async move { call(served.calls, who).await.map_err(Answer::<()>::Problem) }
    };
    Route { entry, method, parameters: Vec::new(), body: None, responses, serves: on(method.filter(), handler) }
}

/// As [`query`], with an answer in JSON.
pub(super) fn query_json<C, F, A, T, const N: usize>(
    method: Method,
    entry: Entry,
    parameters: [Parameter; N],
    call: F,
) -> Route<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>, [Option<String>; N]) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, Problem>> + Send,
    T: Serialize + JsonSchema,
{
    query(method, entry, parameters, json_of::<T>, move |calls, Sent { who, input, .. }| {
        let answered = call(calls, who, input);
        async move { Ok(Answer::Json(answered.await?).into_response()) }
    })
}

/// As [`body`], with an answer in JSON and without holding the body's room.
pub(super) fn body_json<C, B, F, A, T>(entry: Entry, call: F) -> Route<C>
where
    C: Send + Sync + 'static,
    B: DeserializeOwned + JsonSchema + Send,
    F: Fn(Arc<C>, Arc<Caller>, B) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, Problem>> + Send,
    T: Serialize + JsonSchema,
{
    body(entry, json_of::<T>, move |calls, Sent { who, input: Held { body, room }, .. }| {
        drop(room);
        let answered = call(calls, who, body);
        async move { Ok(Answer::Json(answered.await?).into_response()) }
    })
}

/// As [`order`], with an answer in JSON.
pub(super) fn order_json<C, F, A, T>(method: Method, entry: Entry, call: F) -> Route<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, Problem>> + Send,
    T: Serialize + JsonSchema,
{
    order(method, entry, json_of::<T>, move |calls, who| {
        let answered = call(calls, who);
        async move { Ok(Answer::Json(answered.await?).into_response()) }
    })
}

async fn read<B: DeserializeOwned>(bodies: &Bodies, who: &Caller, body: Body) -> Result<Held<B>, Problem> {
    let Whole { bytes, room } = bodies.read_json(body, who.name(), MAX_BYTES).await?;
    let body = serde_json::from_slice(&bytes).map_err(|e| {
        Problem::invalid(format!("the body is not what this path takes: {e}; /v1/openapi.json says what it takes"))
    })?;
    Ok(Held { body, room })
}

fn body_of<B: JsonSchema>(of: &mut SchemaGenerator) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": of.subschema_for::<B>() } } })
}

/// The response of a type, in JSON.
pub(super) fn json_of<T: JsonSchema>(of: &mut SchemaGenerator, about: &str) -> Value {
    json!({ "description": about, "content": { "application/json": { "schema": of.subschema_for::<T>() } } })
}
