//! What is being asked at this moment.
//!
//! In: a request on its way, and what it rests on. Out: leave to ask it, once nobody asks the
//! very same; and, when its response is there, whether it may be kept: not when what it rests
//! on has changed meanwhile.

use std::{
    sync::{Condvar, Mutex, MutexGuard},
    time::Instant,
};

use super::cache::RequestKey;
use crate::model::{Bank, WindowId};
use crate::sync;

/// Requests that are being asked.
#[derive(Default)]
pub(super) struct InFlight {
    requests: Mutex<Vec<PendingRequest>>,
    fewer: Condvar,
}

struct PendingRequest {
    bank: Bank,
    key: RequestKey,
    places: Vec<WindowId>,
    /// What it rests on has changed.
    void: bool,
}

/// One of them; gone when it is dropped.
pub(super) struct Ticket<'i> {
    all: &'i InFlight,
    bank: Bank,
    key: RequestKey,
}

impl InFlight {
    /// Waits until nobody asks the same, at most until `until`; none then.
    pub(super) fn enter(
        &self,
        bank: &Bank,
        key: &RequestKey,
        places: &[WindowId],
        until: Instant,
    ) -> Option<Ticket<'_>> {
        let mut requests = self.lock();
        while requests.iter().any(|asked| asked.bank == *bank && asked.key == *key) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            requests = sync::wait_timeout(&self.fewer, requests, left);
        }
        requests.push(PendingRequest { bank: bank.clone(), key: *key, places: places.to_vec(), void: false });
        Some(Ticket { all: self, bank: bank.clone(), key: *key })
    }

    /// Does `work` while nothing can be kept; what rests on one of `places`, and is not `kept`,
    /// is not kept later either.
    pub(super) fn evict<T>(
        &self,
        bank: &Bank,
        places: &[WindowId],
        kept: impl Fn(&RequestKey, &WindowId) -> bool,
        work: impl FnOnce() -> T,
    ) -> T {
        let mut requests = self.lock();
        for asked in requests.iter_mut().filter(|asked| asked.bank == *bank) {
            let rests = |place: &WindowId| asked.places.contains(place) && !kept(&asked.key, place);
            asked.void |= places.iter().any(rests);
        }
        work()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PendingRequest>> {
        sync::lock(&self.requests)
    }
}

impl Ticket<'_> {
    /// Does `work`, which is told whether the response may be kept, while nothing is released.
    pub(super) fn keep<T>(&self, work: impl FnOnce(bool) -> T) -> T {
        let requests = self.all.lock();
        work(!requests.iter().any(|asked| self.is(asked) && asked.void))
    }

    fn is(&self, asked: &PendingRequest) -> bool {
        asked.bank == self.bank && asked.key == self.key
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.all.lock().retain(|asked| !self.is(asked));
        self.all.fewer.notify_all();
    }
}
