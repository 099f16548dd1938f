//! One route: its path and method, what it takes and answers, and the right that it needs.
//!
//! In: a [`RouteEntry`] and a handler of `handlers`. Out: an [`ApiRoute`], which the router serves and the OpenAPI
//! document describes. A handler's types say what the document says, so the two cannot differ. No route checks a right:
//! its call does, wherever the request comes from.

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
    call_response::CallResponse,
    query_parameter::{QueryParameter, values},
    request_body::{BodyReader, MAX_BYTES, RequestBody},
};
use crate::{
    access::{AccessRight, Caller},
    api::ApiProblem,
    quota::QuotaShare,
};

/// The right that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteRight {
    /// A token, with whatever rights.
    Token,
    /// The right in some bank; the answer has what the token reaches.
    Somewhere(AccessRight),
    /// The right in the bank that the request names.
    InBank(AccessRight),
    /// The right in every bank.
    Everywhere(AccessRight),
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteMethod {
    Get,
    Post,
    Put,
    Delete,
}

impl RouteMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// What a row says of its route, beside its handler.
pub(super) struct RouteEntry {
    pub(super) path: &'static str,
    pub(super) needs: RouteRight,
    /// `None` if the document does not have the route.
    pub(super) described: Option<RouteDescription>,
}

/// The description of a route in the OpenAPI document.
pub(super) struct RouteDescription {
    /// The name of the operation.
    pub(super) id: &'static str,
    pub(super) about: &'static str,
    /// What a response is.
    pub(super) answer: &'static str,
    /// The statuses of its problems, beside those of every route.
    pub(super) problems: &'static [&'static str],
}

/// Makes a part of the document.
pub(super) type SchemaFunction = fn(&mut SchemaGenerator) -> Value;
/// Makes the responses of a route from what they are.
pub(super) type ResponsesFunction = fn(&mut SchemaGenerator, &str) -> Value;

/// One route.
pub(super) struct ApiRoute<C> {
    pub(super) entry: RouteEntry,
    pub(super) method: RouteMethod,
    pub(super) parameters: Vec<QueryParameter>,
    pub(super) body: Option<SchemaFunction>,
    pub(super) responses: ResponsesFunction,
    pub(super) serves: MethodRouter<RouteState<C>>,
}

/// What the routes of some calls share.
pub(super) struct RouteState<C> {
    pub(super) calls: Arc<C>,
    pub(super) bodies: BodyReader,
}

impl<C> Clone for RouteState<C> {
    fn clone(&self) -> Self {
        Self { calls: Arc::clone(&self.calls), bodies: self.bodies.clone() }
    }
}

/// A request whose input was read.
pub(super) struct RouteRequest<I> {
    pub(super) who: Arc<Caller>,
    pub(super) headers: HeaderMap,
    pub(super) input: I,
}

/// A body, and its share of the limit on bodies. A call that keeps little of the body drops the share before it waits.
pub(super) struct MeteredBody<B> {
    pub(super) body: B,
    pub(super) room: QuotaShare,
}

/// The caller, which the checks have added to the request.
type CallerExtension = Extension<Arc<Caller>>;

/// A route whose input is the parameters of the query, in the order of the row.
pub(super) fn query<C, F, A, const N: usize>(
    method: RouteMethod,
    entry: RouteEntry,
    parameters: [QueryParameter; N],
    responses: ResponsesFunction,
    call: F,
) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, RouteRequest<[Option<String>; N]>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, ApiProblem>> + Send,
{
    let handler =
        move |Shared(served): Shared<RouteState<C>>, Extension(who): CallerExtension, headers: HeaderMap, uri: Uri| {
            let call = call.clone();
            async move {
                let input = values(&uri, &parameters)?;
                call(served.calls, RouteRequest { who, headers, input }).await.map_err(CallResponse::<()>::Problem)
            }
        };
    let parameters = parameters.into();
    ApiRoute { entry, method, parameters, body: None, responses, serves: on(method.filter(), handler) }
}

/// A route whose input is the body of a POST.
pub(super) fn body<C, B, F, A>(entry: RouteEntry, responses: ResponsesFunction, call: F) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    B: DeserializeOwned + JsonSchema + Send,
    F: Fn(Arc<C>, RouteRequest<MeteredBody<B>>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, ApiProblem>> + Send,
{
    body_of(RouteMethod::Post, entry, responses, call)
}

fn body_of<C, B, F, A>(method: RouteMethod, entry: RouteEntry, responses: ResponsesFunction, call: F) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    B: DeserializeOwned + JsonSchema + Send,
    F: Fn(Arc<C>, RouteRequest<MeteredBody<B>>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, ApiProblem>> + Send,
{
    let handler = move |Shared(served): Shared<RouteState<C>>,
                        Extension(who): CallerExtension,
                        headers: HeaderMap,
                        body: Body| {
        let call = call.clone();
        async move {
            let input = read_body(&served.bodies, &who, body).await?;
            call(served.calls, RouteRequest { who, headers, input }).await.map_err(CallResponse::<()>::Problem)
        }
    };
    let serves = on(method.filter(), handler);
    ApiRoute { entry, method, parameters: Vec::new(), body: Some(body_schema::<B>), responses, serves }
}

/// A route without an input; it reads no parameter.
pub(super) fn no_input<C, F, A>(
    method: RouteMethod,
    entry: RouteEntry,
    responses: ResponsesFunction,
    call: F,
) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, ApiProblem>> + Send,
{
    let handler = move |Shared(served): Shared<RouteState<C>>, Extension(who): CallerExtension| {
        let call = call.clone();
        async move { call(served.calls, who).await.map_err(CallResponse::<()>::Problem) }
    };
    ApiRoute { entry, method, parameters: Vec::new(), body: None, responses, serves: on(method.filter(), handler) }
}

/// As [`query`], with an answer in JSON.
pub(super) fn query_json<C, F, A, T, const N: usize>(
    method: RouteMethod,
    entry: RouteEntry,
    parameters: [QueryParameter; N],
    call: F,
) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>, [Option<String>; N]) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, ApiProblem>> + Send,
    T: Serialize + JsonSchema,
{
    query(method, entry, parameters, json_response_schema::<T>, move |calls, RouteRequest { who, input, .. }| {
        let answered = call(calls, who, input);
        async move { Ok(CallResponse::Json(answered.await?).into_response()) }
    })
}

/// As [`body`], with an answer in JSON; the body's share is released before the call waits.
pub(super) fn body_json<C, B, F, A, T>(method: RouteMethod, entry: RouteEntry, call: F) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    B: DeserializeOwned + JsonSchema + Send,
    F: Fn(Arc<C>, Arc<Caller>, B) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, ApiProblem>> + Send,
    T: Serialize + JsonSchema,
{
    let handler = move |calls, RouteRequest { who, input: MeteredBody { body, room }, .. }| {
        drop(room);
        let answered = call(calls, who, body);
        async move { Ok(CallResponse::Json(answered.await?).into_response()) }
    };
    body_of(method, entry, json_response_schema::<T>, handler)
}

/// As [`no_input`], with an answer in JSON.
pub(super) fn no_input_json<C, F, A, T>(method: RouteMethod, entry: RouteEntry, call: F) -> ApiRoute<C>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, Arc<Caller>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<T, ApiProblem>> + Send,
    T: Serialize + JsonSchema,
{
    no_input(method, entry, json_response_schema::<T>, move |calls, who| {
        let answered = call(calls, who);
        async move { Ok(CallResponse::Json(answered.await?).into_response()) }
    })
}

async fn read_body<B: DeserializeOwned>(
    bodies: &BodyReader,
    who: &Caller,
    body: Body,
) -> Result<MeteredBody<B>, ApiProblem> {
    let RequestBody { bytes, room } = bodies.read_json(body, who.name(), MAX_BYTES).await?;
    let body = serde_json::from_slice(&bytes).map_err(|e| {
        ApiProblem::invalid(format!("the body is not what this path takes: {e}; /v1/openapi.json says what it takes"))
    })?;
    Ok(MeteredBody { body, room })
}

fn body_schema<B: JsonSchema>(of: &mut SchemaGenerator) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": of.subschema_for::<B>() } } })
}

/// The response of a type, in JSON.
pub(super) fn json_response_schema<T: JsonSchema>(of: &mut SchemaGenerator, about: &str) -> Value {
    json!({ "description": about, "content": { "application/json": { "schema": of.subschema_for::<T>() } } })
}
