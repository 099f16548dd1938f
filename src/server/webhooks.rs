//! Webhooks: requests of platforms on their way to their sources.
//!
//! In: requests to `/sources/NAME`, on a listener that anybody may reach. Out: 200 once everything in the request is durable; 401 where the
//! signature is missing, wrong or old; 503 where this instance does not hold the source, or cannot
//! store now: the platform sends again. A refused request leaves nothing behind, and nothing is read of one
//! to a source that is not there.

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

use super::v1::{Bodies, Whole};
use nouns::config::LiveSettings;
use sources::live::{Delivered, LiveError, Verified, Webhook};

/// Requests of one source that may wait.
const MOST_WAITING: usize = 1_024;
/// How long a request waits to become durable.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Largest body.
const MAX_BYTES: usize = 2 << 20;
/// Whose their bodies are, to the limits of all bodies. No token has such a name.
const SENDER: &str = "/sources";

/// Takes what platforms send; a request without its platform's signature is refused. No route where no source
/// takes requests.
pub(super) fn routes(webhooks: Arc<Webhooks>) -> Router {
    if webhooks.0.values().all(|door| door.webhook.is_none()) {
        return Router::new();
    }
    let bodies = Bodies::default();
    let taken = async |Shared((webhooks, bodies)): Shared<(Arc<Webhooks>, Bodies)>,
                       Path(name): Path<String>,
                       headers: HeaderMap,
                       body: Body| {
        if webhooks.door(&name).is_none() {
            return unknown();
        }
        match bodies.read(body, Some(SENDER), MAX_BYTES).await {
            Ok(Whole { bytes, room: _room }) => webhooks.reply(&name, &headers, &bytes).await,
            Err(problem) => {
                let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
                (status, format!("{}\n", problem.detail))
            }
        }
    };
    Router::new().route("/sources/{name}", post(taken)).with_state((webhooks, bodies))
}

fn unknown() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "no source of this name takes requests\n".to_owned())
}

/// The webhooks of all sources.
#[derive(Debug, Default)]
pub(super) struct Webhooks(BTreeMap<String, Door>);

/// Where the requests of one source come in.
#[derive(Debug)]
struct Door {
    /// None for a source that asks its platform itself.
    webhook: Option<Webhook>,
    leaving: Sender<Delivered>,
    arriving: Receiver<Delivered>,
    /// Whether this instance holds the source.
    is_open: AtomicBool,
}

impl Webhooks {
    /// Reads the secrets.
    ///
    /// # Errors
    /// [`LiveError::Secret`] when one is not set.
    pub(super) fn open(sources: &[LiveSettings]) -> Result<Self, LiveError> {
        let door = |settings: &LiveSettings| {
            let webhook = settings.has_webhook().then(|| Webhook::open(settings)).transpose()?;
            let (leaving, arriving) = crossbeam_channel::bounded(MOST_WAITING);
            Ok((settings.name.clone(), Door { webhook, leaving, arriving, is_open: AtomicBool::new(false) }))
        };
        sources.iter().map(door).collect::<Result<_, _>>().map(Self)
    }

    /// Lets the requests of a source in from now on; returns where they arrive.
    pub(super) fn admit(&self, source: &str) -> Receiver<Delivered> {
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
    fn door(&self, source: &str) -> Option<(&Door, &Webhook)> {
        let door = self.0.get(source)?;
        Some((door, door.webhook.as_ref()?))
    }

    /// The reply to a request.
    pub(super) async fn reply(&self, source: &str, headers: &HeaderMap, body: &[u8]) -> (StatusCode, String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let Some((door, webhook)) = self.door(source) else { return unknown() };
        match webhook.verify(&header, body, i64::try_from(now).unwrap_or(i64::MAX)) {
            Err(problem) => return (StatusCode::UNAUTHORIZED, format!("{problem}\n")),
            Ok(Verified::Reply(text)) => return (StatusCode::OK, text),
            Ok(Verified::Deliver) => {}
        }
        let again = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}; send it again\n"));
        if !door.is_open.load(Ordering::Relaxed) {
            return again("this process does not follow this source now");
        }
        let (durable, is_durable) = oneshot::channel();
        if door.leaving.try_send(Delivered { body: body.to_vec(), durable }).is_err() {
            return again("too many requests wait");
        }
        match tokio::time::timeout(TIMEOUT, is_durable).await {
            Ok(Ok(())) => (StatusCode::OK, "stored\n".to_owned()),
            _ => again("not stored"),
        }
    }
}
