//! HTTP below `/v1`: the calls of [`super::api`] as JSON.
//!
//! In: a listener, who may send requests, and an [`super::api::Api`]. Out: answers; problems as
//! `application/problem+json`. A client that is slow, stays silent, or sends without end costs bounded time and memory,
//! and delays no other client. Nothing here decides what a call means.
//!
//! - `listener`: connections, and their graceful end; `places`: how many there are, and which give way.
//! - `start`: starts the listener of a service.
//! - `routes`: which path is which call.
//! - `door`: who may send requests, and the audit log.
//! - `body`: a request's body, within limits on its size and time and on all bodies together.
//! - `event_stream`: responses as server-sent events.
//! - `packed`: long answers in gzip.
//! - `openapi`: the document (`schemas/openapi.v1.json`), from the types of the calls.

mod body;
mod door;
mod event_stream;
mod listener;
mod openapi;
mod packed;
mod places;
mod routes;
mod start;

pub(super) use body::{Bodies, MAX_BYTES, Whole};
pub(super) use listener::{Listening, listen};
pub use openapi::openapi;
#[cfg(feature = "console")]
pub(super) use packed::reads_gzip;
pub(super) use places::most;
pub(super) use start::{HttpServer, ServedParts, start};
