//! HTTP below `/v1`: the calls of [`super::api`] as JSON.
//!
//! In: a listener, who may send requests, and a [`super::api::MemoryApi`]. Out: answers; problems as
//! `application/problem+json`. A client that is slow, stays silent, or sends without end costs bounded time and memory,
//! and delays no other client. Nothing here decides what a call means.
//!
//! - `http_listener`: connections, and their graceful end; `connection_limit`: how many there are, and which give way.
//! - `http_server`: starts the listener of a service.
//! - `route_table`: the routes, one row each; `handlers`: what each does with its input. To add one, touch these two.
//! - `router`: serves the table behind the checks; `api_route`: what a row is made of; `query_parameter`: the
//!   parameters of a query; `call_response`: a result as a response.
//! - `auth_layer`: who may send requests, and the audit log.
//! - `request_body`: a request's body, within limits on its size and time and on all bodies together.
//! - `event_stream`: responses as server-sent events.
//! - `response_gzip`: long answers in gzip.
//! - `openapi`: the document (`schemas/openapi.v1.json`), from the table; `response_schemas`: responses of several
//!   types in it.

mod api_route;
mod auth_layer;
mod call_response;
mod connection_limit;
mod cross_origin;
mod event_stream;
mod handlers;
mod http_listener;
mod http_server;
mod openapi;
mod query_parameter;
mod request_body;
mod response_gzip;
mod response_schemas;
mod route_table;
mod router;

pub use api_route::RouteRight;
pub(super) use connection_limit::connection_limit;
pub(super) use http_listener::{HttpListener, listen};
pub(super) use http_server::{HttpServer, ServerParts, start};
pub use openapi::openapi;
pub(super) use request_body::{BodyReader, MAX_BYTES, RequestBody};
#[cfg(feature = "console")]
pub(super) use response_gzip::reads_gzip;
pub use route_table::{RequiredRight, required_rights};
