//! What clients of revision 2025-11-25 follow over HTTP, by session.
//!
//! In: requests with a session's id. Out: the session's notifications, as server-sent events. A session holds only
//! subscriptions. All other requests are independent, so after a restart of the service a client loses only its
//! subscriptions, and gets an error that says so. A session belongs to one token: the same id with another token is
//! another session. A session ends after a while without an open stream.
//!
//! They are not the sessions of `rmcp` (3.11), whose `LocalSessionManager` puts every request of a client into a
//! session: after a restart all of them fail unless a store brings it back, a session's id serves any token, and their
//! number has no limit. Its streams resume from a buffer of events; here the addresses that changed are a set, which a
//! new stream repeats whole.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{
    future::{Either, select},
    stream::unfold,
};
use rmcp::model::ResourceUpdatedNotificationParam;
use serde_json::json;

use super::{
    resource_follower::FollowedResource, resource_notifier::ResourceNotifier, tool_call_error::ToolCallError,
    tool_calls::ToolCalls,
};
use crate::{
    access::Caller,
    api::{ApiProblem, MemoryApi},
    quota::QuotaShare,
};
use types::sync;

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";
/// How long a session stays without an open stream.
const LINGER: Duration = Duration::from_secs(60);
/// A comment is sent after this time without an event.
const QUIET: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b": quiet\n\n";

/// The sessions of a service.
pub(super) struct McpSessions {
    api: Arc<MemoryApi>,
    calls: Arc<ToolCalls>,
    /// The beginning of every id of this run, which differs from that of earlier runs.
    run: String,
    known: Mutex<HashMap<SessionKey, Arc<McpSession>>>,
}

/// The id of a session, and the name of its token.
type SessionKey = (String, Option<String>);

/// One session.
struct McpSession {
    listener: Arc<ResourceNotifier>,
    presence: Mutex<StreamPresence>,
}

/// The open streams of a session.
struct StreamPresence {
    streams: usize,
    absent_since: Instant,
}

/// Whether a request begins a session.
#[derive(Clone, Default)]
pub(super) struct SessionStart(Arc<AtomicBool>);

impl SessionStart {
    /// Notes that the request is an `initialize`.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a request has no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionError {
    /// The request names no session.
    #[error("no session: over HTTP, clients of this revision send the Mcp-Session-Id that initialize returned")]
    Missing,
    /// Its session ended.
    #[error("the session ended; initialize again, and subscribe again")]
    Ended,
}

impl From<SessionError> for ToolCallError {
    fn from(why: SessionError) -> Self {
        Self::Refused(why.to_string())
    }
}

impl McpSessions {
    pub(super) fn new(api: Arc<MemoryApi>, calls: Arc<ToolCalls>) -> Arc<Self> {
        let run = format!("{:016x}", fastrand::u64(..));
        Arc::new(Self { api, calls, run, known: Mutex::default() })
    }

    /// Follows what is at an address, in the session of a request.
    ///
    /// # Errors
    /// [`ToolCallError`], as of [`ResourceNotifier::follow`], or if the request has no session.
    pub(super) async fn follow(
        self: &Arc<Self>,
        headers: &HeaderMap,
        who: &Arc<Caller>,
        address: &str,
        resource: FollowedResource,
    ) -> Result<(), ToolCallError> {
        let key = self.key(headers, who)?;
        let session = self.session(key.clone(), who);
        let followed = session.listener.follow(address, resource).await;
        if followed.is_err() {
            self.end_unused(&key, &session);
        }
        followed
    }

    /// Stops following an address, in the session of a request.
    ///
    /// # Errors
    /// [`ToolCallError`] if the request has no session.
    pub(super) fn unfollow(&self, headers: &HeaderMap, who: &Caller, address: &str) -> Result<(), ToolCallError> {
        let session = sync::lock(&self.known).get(&self.key(headers, who)?).cloned();
        if let Some(session) = session {
            session.listener.unfollow(address);
        }
        Ok(())
    }

    fn key(&self, headers: &HeaderMap, who: &Caller) -> Result<SessionKey, SessionError> {
        let id = headers.get(SESSION).ok_or(SessionError::Missing)?.to_str().map_err(|_| SessionError::Ended)?;
        let is_ours = id.len() == 2 * self.run.len() && id.starts_with(&self.run);
        if is_ours { Ok((id.to_owned(), who.name().map(str::to_owned))) } else { Err(SessionError::Ended) }
    }

    /// The session with this key; a new one if there is none.
    fn session(self: &Arc<Self>, key: SessionKey, who: &Arc<Caller>) -> Arc<McpSession> {
        let mut known = sync::lock(&self.known);
        if let Some(session) = known.get(&key) {
            return Arc::clone(session);
        }
        let session = Arc::new(McpSession {
            listener: ResourceNotifier::new(Arc::clone(&self.calls), Arc::clone(who)),
            presence: Mutex::new(StreamPresence { streams: 0, absent_since: Instant::now() }),
        });
        known.insert(key.clone(), Arc::clone(&session));
        tokio::spawn(forget_absent(Arc::downgrade(self), key));
        session
    }

    /// Ends a session that follows nothing, if nobody but the caller uses it.
    fn end_unused(&self, key: &SessionKey, session: &Arc<McpSession>) {
        let mut known = sync::lock(&self.known);
        // Two references: the table's and the caller's. Others are only made under this lock.
        if Arc::strong_count(session) == 2 && session.listener.is_idle() {
            known.remove(key);
        }
    }

    /// Ends a session.
    fn end(&self, key: &SessionKey) {
        let ended = sync::lock(&self.known).remove(key);
        if let Some(session) = ended {
            session.listener.unfollow_all();
        }
    }
}

/// Ends a session once it has had no open stream for [`LINGER`].
async fn forget_absent(sessions: Weak<McpSessions>, key: SessionKey) {
    loop {
        tokio::time::sleep(LINGER).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let session = sync::lock(&sessions.known).get(&key).cloned();
        let Some(session) = session else { return };
        let is_absent = {
            let presence = sync::lock(&session.presence);
            presence.streams == 0 && presence.absent_since.elapsed() >= LINGER
        };
        if is_absent {
            sessions.end(&key);
            return;
        }
    }
}

/// Adds the id of a new session to the response to an `initialize`.
pub(super) async fn add_session_id(
    State(sessions): State<Arc<McpSessions>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = SessionStart::default();
    request.extensions_mut().insert(begun.clone());
    let mut response = next.run(request).await;
    let id = format!("{}{:016x}", sessions.run, fastrand::u64(..));
    if begun.0.load(Ordering::Relaxed)
        && let Ok(id) = HeaderValue::from_str(&id)
    {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// The notifications of a session, until the service or the token ends.
pub(super) async fn stream(
    State(sessions): State<Arc<McpSessions>>,
    Extension(who): Extension<Arc<Caller>>,
    headers: HeaderMap,
) -> Response {
    let key = match sessions.key(&headers, &who) {
        Ok(key) => key,
        Err(why) => return refused(why),
    };
    let share = match sessions.api.share(&who) {
        Ok(share) => share,
        Err(ApiProblem { detail, .. }) => return (StatusCode::TOO_MANY_REQUESTS, detail).into_response(),
    };
    let session = sessions.session(key.clone(), &who);
    sync::lock(&session.presence).streams += 1;
    let stream = SessionStream { sessions, key, session, who, _share: share };
    let events = unfold(stream, |stream| async move { Some((Ok::<_, Infallible>(stream.next().await?), stream)) });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// Ends a session on the client's request.
pub(super) async fn end(
    State(sessions): State<Arc<McpSessions>>,
    Extension(who): Extension<Arc<Caller>>,
    headers: HeaderMap,
) -> Response {
    match sessions.key(&headers, &who) {
        Ok(key) => {
            sessions.end(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(why) => refused(why),
    }
}

fn refused(why: SessionError) -> Response {
    match why {
        SessionError::Missing => {
            (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")], why.to_string()).into_response()
        }
        SessionError::Ended => (StatusCode::NOT_FOUND, why.to_string()).into_response(),
    }
}

/// An open stream of a session's notifications.
struct SessionStream {
    sessions: Arc<McpSessions>,
    key: SessionKey,
    session: Arc<McpSession>,
    who: Arc<Caller>,
    /// The stream's place among the subscriptions, free again when this is dropped.
    _share: QuotaShare,
}

impl SessionStream {
    /// What to send next; `None` at the end.
    async fn next(&self) -> Option<Bytes> {
        let told = pin!(tokio::time::timeout(QUIET, self.session.listener.next()));
        let event = match select(told, pin!(self.sessions.api.subscriptions_ended())).await {
            Either::Left((Ok(address), _)) => update_event(&address),
            Either::Left((Err(_), _)) => Bytes::from_static(COMMENT),
            Either::Right(_) => return None,
        };
        self.who.is_still_valid().then_some(event)
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        {
            let mut presence = sync::lock(&self.session.presence);
            presence.streams -= 1;
            presence.absent_since = Instant::now();
        }
        // The last notifications may not have arrived, so the next stream repeats all.
        self.session.listener.note_all();
        self.sessions.end_unused(&self.key, &self.session);
    }
}

/// The notification that a resource has changed.
fn update_event(address: &str) -> Bytes {
    let params = ResourceUpdatedNotificationParam::new(address);
    let message = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
    format!("event: message\ndata: {message}\n\n").into()
}
