//! HTTP below `/v1`: the calls of [`super::api`] as JSON.
//!
//! In: a listener, who may send requests, and an [`super::api::Api`]. Out: answers; problems as
//! `application/problem+json`. A client that is slow, stays silent, or sends without end costs bounded time and memory,
//! and delays no other client. Nothing here decides what a call means.
//!
//! - `listener`: connections, and their graceful end; `places`: how many there are, and which give way.
//! - `start`: starts the listener of a service.
//! - `table`: the routes, one row each; `handlers`: what each does with its input. To add one, touch these two.
//! - `routes`: serves the table behind the checks; `route`: what a row is made of; `parameter`: the parameters of a
//!   query; `answer`: a result as a response.
//! - `door`: who may send requests, and the audit log.
//! - `body`: a request's body, within limits on its size and time and on all bodies together.
//! - `event_stream`: responses as server-sent events.
//! - `packed`: long answers in gzip.
//! - `openapi`: the document (`schemas/openapi.v1.json`), from the table; `responses`: responses of several types in it.

mod answer;
mod body;
mod door;
mod event_stream;
mod handlers;
mod listener;
mod openapi;
mod packed;
mod parameter;
mod places;
mod responses;
mod route;
mod routes;
mod start;
mod table;

pub(super) use body::{Bodies, MAX_BYTES, Whole};
pub(super) use listener::{Listening, listen};
pub use openapi::openapi;
#[cfg(feature = "console")]
pub(super) use packed::reads_gzip;
pub(super) use places::most;
pub use route::Needs;
pub(super) use start::{HttpServer, ServedParts, start};
pub use table::{RequiredRight, required_rights};
