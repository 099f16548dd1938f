//! Responses as server-sent events.
//!
//! In: a subscriber, a follower of a bank, or an answer that is being generated. Out: the body of a response, made
//! piece by piece as the client reads it. Only progress events have an id, so that a client that comes back never
//! begins in the middle of a change. A comment keeps the connection alive when nothing else was sent for a while. A
//! proxy that honours the headers does not store, compress or delay a stream.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{
    Stream, StreamExt,
    stream::{once, unfold},
};
use serde::Serialize;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    api::{AnswerPiece, AnswerText, ProfileEvent, ProfileFollower},
    subscriptions::{BankEvent, BankFollower, QuestionSubscriber, SubscriptionEvent},
};
use types::model::Evidence;

/// A comment is sent after this time without an event.
const QUIET: Duration = Duration::from_secs(15);

const COMMENT: &[u8] = b": quiet\n\n";

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Tells proxies neither to store a stream nor to compress it, which would hold events back.
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-cache, no-store, no-transform");
/// Asks nginx and other proxies to pass on each event at once.
const BUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The events of a subscriber, as a response.
pub(super) fn subscription(subscriber: QuestionSubscriber) -> Response {
    response(unfold(subscriber, |mut subscriber| async move {
        let event = subscriber.next(QUIET).await?;
        Some((Ok(encode_event(&event)), subscriber))
    }))
}

/// A profile, and again at every change, as a response.
pub(super) fn profile_events(follower: ProfileFollower) -> Response {
    response(unfold(follower, |mut follower| async move {
        let event = match follower.next(QUIET).await? {
            ProfileEvent::Profile(profile) => event("profile", Some(&profile.version), &profile),
            ProfileEvent::Problem(problem) => event("problem", None, &problem),
            ProfileEvent::Quiet => Bytes::from_static(COMMENT),
        };
        Some((Ok(event), follower))
    }))
}

/// What happens in a bank, as a response.
pub(super) fn bank_events(follower: BankFollower) -> Response {
    response(unfold(follower, |mut follower| async move {
        let event = follower.next(QUIET).await?;
        Some((Ok(encode_bank_event(&event)), follower))
    }))
}

/// A response with the evidence, then an answer in words while it is generated.
pub(super) fn answer(evidence: &Evidence, pieces: UnboundedReceiver<AnswerPiece>) -> Response {
    let first = event("evidence", None, evidence);
    let pieces = unfold(pieces, |mut pieces| async move {
        let event = match tokio::time::timeout(QUIET, pieces.recv()).await {
            Err(_) => Bytes::from_static(COMMENT),
            Ok(piece) => match piece? {
                AnswerPiece::Text(text) => event("text", None, &AnswerText { text }),
                AnswerPiece::Restart => event("restart", None, &serde_json::Map::new()),
                AnswerPiece::Answer(answer) => event("answer", None, &answer),
                AnswerPiece::Problem(problem) => event("problem", None, &problem),
            },
        };
        Some((Ok(event), pieces))
    });
    response(once(async { Ok(first) }).chain(pieces))
}

/// Whether a client asks for events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next());
    kinds.any(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// A response from encoded events.
fn response(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    ([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(events)).into_response()
}

/// Adds the headers for proxies to an event stream, whichever interface sends it; false for any other response.
pub(super) fn disable_proxy_buffering(headers: &mut HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_stream = kind.starts_with(EVENTS.as_bytes());
    if is_stream {
        headers.insert(header::CACHE_CONTROL, NOT_KEPT);
        headers.insert(BUFFERED, HeaderValue::from_static("no"));
    }
    is_stream
}

/// An event with a name and data.
fn event(name: &str, id: Option<&str>, data: &impl Serialize) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

fn encode_event(what: &SubscriptionEvent) -> Bytes {
    match what {
        SubscriptionEvent::Snapshot(snapshot) => event("snapshot", None, snapshot),
        SubscriptionEvent::Delta(delta) => event("delta", None, delta),
        SubscriptionEvent::Progress(id, progress) => event("progress", Some(id), progress),
        SubscriptionEvent::Reset(told) => event("reset", None, told),
        SubscriptionEvent::Lagged(told) => event("lagged", None, told),
        SubscriptionEvent::Problem(problem) => event("problem", None, problem),
        SubscriptionEvent::Quiet => Bytes::from_static(COMMENT),
    }
}

fn encode_bank_event(what: &BankEvent) -> Bytes {
    match what {
        BankEvent::Turn(turn) => event("turn", None, turn),
        BankEvent::Window(window) => event("window", None, window),
        BankEvent::UnitAdded(unit) => event("unit_added", None, unit),
        BankEvent::UnitRemoved(unit) => event("unit_removed", None, unit),
        BankEvent::Edges(edges) => event("edges", None, edges),
        BankEvent::Rejected(rejected) => event("rejected", None, rejected),
        BankEvent::Skipped(skipped) => event("skipped", None, skipped),
        BankEvent::Progress(id, progress) => event("progress", Some(id), progress),
        BankEvent::Reset(told) => event("reset", None, told),
        BankEvent::Problem(problem) => event("problem", None, problem),
        BankEvent::Quiet => Bytes::from_static(COMMENT),
    }
}
