//! Limits the number of connections; idle connections give way.
//!
//! In: new connections, and their requests. Out: a permit for each connection. When none is free, the connection that
//! has been idle for longest is ended: one that sends nothing, or has sent only a part of a request's headers. A
//! connection keeps its permit while a request is being answered, and until the response is read.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

use axum::body::{Body, Bytes, HttpBody};
use tokio::sync::Notify;

use types::sync;

/// Most connections at once.
const MAX: usize = 8_192;
/// Most connections of a second listener, for the commands on this machine.
const BESIDE: usize = 64;
/// Fewest connections, whatever the system's limit.
const FEWEST: usize = 4;

/// The connections of a listener, and how many there may be.
pub(super) struct ConnectionLimit {
    most: usize,
    taken: Mutex<OpenConnections>,
    /// Notified when a permit is released.
    freed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_number: BTreeMap<u64, Arc<HttpConnection>>,
}

/// An open connection.
pub(super) struct HttpConnection {
    requests: AtomicUsize,
    idle_since: Mutex<Instant>,
    ending: AtomicBool,
    end: Notify,
}

/// A permit for one connection, released when it is dropped.
pub(super) struct ConnectionPermit {
    places: Arc<ConnectionLimit>,
    number: u64,
    pub(super) connection: Arc<HttpConnection>,
}

impl ConnectionLimit {
    /// A limit of `most` connections, none of them open.
    pub(super) fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a permit; waits until one is free.
    pub(super) async fn take(self: &Arc<Self>) -> ConnectionPermit {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_take() {
                return place;
            }
            freed.await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let mut taken = sync::lock(&self.taken);
        if taken.by_number.len() < self.most {
            let number = taken.next;
            taken.next += 1;
            let connection = Arc::new(HttpConnection {
                requests: AtomicUsize::new(0),
                idle_since: Mutex::new(Instant::now()),
                ending: AtomicBool::new(false),
                end: Notify::new(),
            });
            taken.by_number.insert(number, Arc::clone(&connection));
            return Some(ConnectionPermit { places: Arc::clone(self), number, connection });
        }
        let idle = taken.by_number.values().filter(|connection| connection.is_idle());
        if let Some(longest) = idle.min_by_key(|connection| *sync::lock(&connection.idle_since)) {
            longest.ending.store(true, Ordering::Relaxed);
            longest.end.notify_one();
        }
        None
    }

    /// Waits until every permit is released.
    pub(super) async fn all_free(&self) {
        loop {
            let freed = self.freed.notified();
            if sync::lock(&self.taken).by_number.is_empty() {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        sync::lock(&self.places.taken).by_number.remove(&self.number);
        self.places.freed.notify_waiters();
    }
}

impl HttpConnection {
    /// Counts a request that begins, until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> BusyConnection {
        self.requests.fetch_add(1, Ordering::Relaxed);
        BusyConnection(Arc::clone(self))
    }

    /// Waits until the connection has to give way.
    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Whether no request is being answered.
    pub(super) fn is_unused(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    fn is_idle(&self) -> bool {
        self.is_unused() && !self.ending.load(Ordering::Relaxed)
    }
}

/// A request that is being answered.
pub(super) struct BusyConnection(Arc<HttpConnection>);

impl BusyConnection {
    /// Counts the request until its response is read or dropped.
    pub(super) fn until_read(self, body: Body) -> Body {
        Body::new(TrackedBody { body, _busy: self })
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        *sync::lock(&self.0.idle_since) = Instant::now();
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response that is being read.
struct TrackedBody {
    body: Body,
    _busy: BusyConnection,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// The number of connections: half of the system's limit on open files, because the other half stays for the store.
pub(crate) fn connection_limit() -> usize {
    limit_of_files(open_files().unwrap_or(2 * MAX))
}

/// The number of connections of a second listener, for the commands on this machine.
pub(super) fn second_listener_limit() -> usize {
    (connection_limit() / 4).clamp(FEWEST, BESIDE)
}

fn limit_of_files(files: usize) -> usize {
    (files / 2).clamp(FEWEST, MAX)
}

/// How many files this process may open; `None` if the system does not say.
fn open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn half_of_the_files_stay_for_the_store_however_few_there_are() {
        for (files, places) in [(64, 32), (100, 50), (1_024, 512), (1_048_576, MAX), (1, FEWEST)] {
            assert_eq!(limit_of_files(files), places, "{files} files");
        }
    }

    #[test]
    fn the_connection_that_was_idle_for_longest_gives_way_and_a_busy_one_does_not() {
        let places = ConnectionLimit::of(3);
        let take = || places.try_take();
        let (first, second, third) = (take().unwrap(), take().unwrap(), take().unwrap());
        let busy = first.connection.begin();
        let idle_for = |place: &ConnectionPermit, seconds| {
            *sync::lock(&place.connection.idle_since) = Instant::now() - Duration::from_secs(seconds);
        };
        idle_for(&first, 9);
        idle_for(&second, 1);
        idle_for(&third, 2);
        let ending = |place: &ConnectionPermit| place.connection.ending.load(Ordering::Relaxed);
        assert!(take().is_none() && ending(&third) && !ending(&second) && !ending(&first));
        assert!(take().is_none() && ending(&second) && !ending(&first), "each is told once");
        drop(third);
        assert!(take().is_some());
        drop(busy);
        assert!(first.connection.is_idle());
    }
}
