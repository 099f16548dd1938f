//! Webhooks: requests of platforms on their way to their sources.
//!
//! In: requests to `/sources/NAME`, on a listener that anybody may reach. Out: 200 once everything in the request is
//! durable; 401 if the signature is missing, wrong or old; 503 if this instance does not hold the source, or cannot
//! store now: the platform sends again. A refused request leaves nothing behind, and the body of a request to an
//! unknown source is not read.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Body,
    extract::{Path, State as Shared},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use crossbeam_channel::{Receiver, Sender};
use tokio::sync::oneshot;

use super::{
    api::ApiProblem,
    quota::{Quota, QuotaLimits, QuotaRefusals},
    v1::{BodyReader, RequestBody},
};
use sources::live::{LiveError, SourceWebhook, VerifiedRequest, WebhookDelivery};
use types::config::LiveSourceSettings;

/// Requests of one source that may wait.
const MAX_WAITING: usize = 1_024;
/// How long a request waits to become durable.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Largest body.
const MAX_BYTES: usize = 2 << 20;
/// The sender of their bodies, for the limits on bodies. No token has such a name.
const SENDER: &str = "/sources";

/// The messages when too many requests are being answered.
const REFUSALS: QuotaRefusals = QuotaRefusals {
    all: "requests to /sources are being answered already; send it again in a moment",
    of_one: "requests to this source are being answered already; send it again in a moment",
};

/// Takes what platforms send; a request without its platform's signature is refused. Without a source that takes
/// requests there is no route. The sender of a body is known only once it is whole, so these requests get at most
/// half of the listener's `connections`, and one source a quarter: the rest is left to requests with a token.
pub(super) fn routes(webhooks: Arc<Webhooks>, connections: usize) -> Router {
    if webhooks.0.values().all(|door| door.webhook.is_none()) {
        return Router::new();
    }
    let answering = Quota::new(QuotaLimits { all: connections / 2, of_one: connections / 4 }, REFUSALS);
    let shared = WebhookState { webhooks, bodies: BodyReader::default(), answering };
    Router::new().route("/sources/{name}", post(receive)).with_state(shared)
}

/// What the requests of a listener share.
#[derive(Clone)]
struct WebhookState {
    webhooks: Arc<Webhooks>,
    bodies: BodyReader,
    /// One share for each request that is being answered.
    answering: Arc<Quota>,
}

async fn receive(
    Shared(WebhookState { webhooks, bodies, answering }): Shared<WebhookState>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> (StatusCode, String) {
    let Some((_, webhook)) = webhooks.inbox(&name) else { return unknown() };
    if let Err(problem) = webhook.verify_head(&|name| header(&headers, name)) {
        return (StatusCode::UNAUTHORIZED, format!("{problem}\n"));
    }
    let read = async || {
        let share = answering.take(Some(&name))?;
        Ok::<_, ApiProblem>((share, bodies.read(body, Some(SENDER), MAX_BYTES).await?))
    };
    match read().await {
        Ok((_share, RequestBody { bytes, room: _room })) => webhooks.reply(&name, &headers, &bytes).await,
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, format!("{}\n", problem.detail))
        }
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn unknown() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "no source of this name takes requests\n".to_owned())
}

/// The webhooks of all sources.
#[derive(Debug, Default)]
pub(super) struct Webhooks(BTreeMap<String, SourceInbox>);

/// Where the requests of one source come in.
#[derive(Debug)]
struct SourceInbox {
    /// `None` for a source that asks its platform itself.
    webhook: Option<SourceWebhook>,
    leaving: Sender<WebhookDelivery>,
    arriving: Receiver<WebhookDelivery>,
    /// Whether this instance holds the source.
    is_open: AtomicBool,
}

impl Webhooks {
    /// Reads the secrets.
    ///
    /// # Errors
    /// [`LiveError::Secret`] when one is not set.
    pub(super) fn open(sources: &[LiveSourceSettings]) -> Result<Self, LiveError> {
        let door = |settings: &LiveSourceSettings| {
            let webhook = settings.has_webhook().then(|| SourceWebhook::open(settings)).transpose()?;
            let (leaving, arriving) = crossbeam_channel::bounded(MAX_WAITING);
            Ok((settings.name.clone(), SourceInbox { webhook, leaving, arriving, is_open: AtomicBool::new(false) }))
        };
        sources.iter().map(door).collect::<Result<_, _>>().map(Self)
    }

    /// Admits the requests of a source from now on; returns where they arrive.
    pub(super) fn admit(&self, source: &str) -> Receiver<WebhookDelivery> {
        match self.0.get(source) {
            Some(door) => {
                door.is_open.store(true, Ordering::Relaxed);
                door.arriving.clone()
            }
            None => crossbeam_channel::never(),
        }
    }

    /// Refuses the requests of a source from now on, and those that wait.
    pub(super) fn refuse(&self, source: &str) {
        if let Some(door) = self.0.get(source) {
            door.is_open.store(false, Ordering::Relaxed);
            door.arriving.try_iter().for_each(drop);
        }
    }

    /// Where the requests of a source come in, if it takes any.
    fn inbox(&self, source: &str) -> Option<(&SourceInbox, &SourceWebhook)> {
        let door = self.0.get(source)?;
        Some((door, door.webhook.as_ref()?))
    }

    /// The reply to a request.
    pub(super) async fn reply(&self, source: &str, headers: &HeaderMap, body: &[u8]) -> (StatusCode, String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Some((door, webhook)) = self.inbox(source) else { return unknown() };
        match webhook.verify(&|name| header(headers, name), body, i64::try_from(now).unwrap_or(i64::MAX)) {
            Err(problem) => return (StatusCode::UNAUTHORIZED, format!("{problem}\n")),
            Ok(VerifiedRequest::Reply(text)) => return (StatusCode::OK, text),
            Ok(VerifiedRequest::TooMany(problem)) => return (StatusCode::PAYLOAD_TOO_LARGE, format!("{problem}\n")),
            Ok(VerifiedRequest::Deliver) => {}
        }
        let again = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}; send it again\n"));
        if !door.is_open.load(Ordering::Relaxed) {
            return again("this process does not follow this source now");
        }
        let (durable, is_durable) = oneshot::channel();
        if door.leaving.try_send(WebhookDelivery { body: body.to_vec(), durable }).is_err() {
            return again("too many requests wait");
        }
        match tokio::time::timeout(TIMEOUT, is_durable).await {
            Ok(Ok(())) => (StatusCode::OK, "stored\n".to_owned()),
            _ => again("not stored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpStream},
    };

    use axum::routing::get;

    use super::*;
    use crate::v1::listen;
    use types::config::Pipeline;

    const CONNECTIONS: usize = 8;

    fn send(address: SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        // This time passes only if the answer is wrong.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn status(mut stream: TcpStream) -> u16 {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap()
    }

    /// Neither a secret nor a token is needed to begin a body, and nobody knows whose it is until it is whole.
    #[test]
    fn bodies_that_do_not_end_leave_connections_to_other_sources_and_to_other_requests() {
        let source = |name: &str| {
            format!(
                "[[source]]\nname = \"{name}\"\nplatform = \"webhook\"\ndelivery = \"webhook\"\nsecret_env = \"PATH\"\n\
                 bank = \"{name}\"\n"
            )
        };
        let pipeline = Pipeline::parse(&format!("version = 1\n{}{}", source("desk"), source("door"))).unwrap();
        let webhooks = Arc::new(Webhooks::open(&pipeline.live).unwrap());
        let routes = |_| routes(webhooks, CONNECTIONS).route("/ping", get(async || "pong"));
        let listening = listen("http.listen", "127.0.0.1:0", None, CONNECTIONS, routes).unwrap();
        let address = listening.address;
        let slow = |source: &str, more: &str| {
            let head = format!("POST /sources/{source} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000\r\n");
            send(address, &format!("{head}{more}\r\n"))
        };
        let let_in = |source: &str| {
            let mut stream = slow(source, "Expect: 100-continue\r\n");
            let mut answer = [0; 25];
            stream.read_exact(&mut answer).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&answer));
            stream.write_all(b"{").unwrap();
            stream
        };
        let mut held = vec![let_in("desk"), let_in("desk")];
        assert_eq!(status(slow("desk", "")), 429, "a source has a quarter");
        held.extend([let_in("door"), let_in("door")]);
        assert_eq!(status(slow("door", "")), 429);
        let ping = || send(address, &format!("GET /ping HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
        for _ in 0..CONNECTIONS {
            assert_eq!(status(slow("desk", "")), 429);
            assert_eq!(status(ping()), 200);
        }
        drop(held);
    }
}
