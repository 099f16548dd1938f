//! Requests that are being answered now.
//!
//! In: a cacheable request and what it depends on. Out: a guard, once no equal request is in flight. The guard decides
//! whether the response may still be cached: it may not if a turn or window that it depends on changed while the model
//! wrote. No response is cached while an eviction runs.

use std::{
    sync::{Condvar, Mutex, MutexGuard},
    time::Instant,
};

use super::{error::LlmError, response_cache::RequestKey};
use types::{
    model::{Bank, WindowId},
    sync,
};

/// The requests in flight.
#[derive(Default)]
pub(super) struct InFlightRequests {
    requests: Mutex<Vec<PendingRequest>>,
    removed: Condvar,
}

struct PendingRequest {
    bank: Bank,
    key: RequestKey,
    depends_on: Vec<WindowId>,
    /// Something that it depends on has changed.
    stale: bool,
}

/// One request in flight, removed when this is dropped.
pub(super) struct RequestGuard<'i> {
    all: &'i InFlightRequests,
    bank: Bank,
    key: RequestKey,
}

impl InFlightRequests {
    /// Waits until no equal request is in flight; `None` when `deadline` passes first.
    pub(super) fn enter(
        &self,
        bank: &Bank,
        key: &RequestKey,
        depends_on: &[WindowId],
        deadline: Instant,
    ) -> Option<RequestGuard<'_>> {
        let mut requests = self.lock();
        while requests.iter().any(|pending| pending.bank == *bank && pending.key == *key) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            requests = sync::wait_timeout(&self.removed, requests, left);
        }
        requests.push(PendingRequest { bank: bank.clone(), key: *key, depends_on: depends_on.to_vec(), stale: false });
        Some(RequestGuard { all: self, bank: bank.clone(), key: *key })
    }

    /// Marks the requests that depend on one of `changed` as stale, except those for which `keep` is true, and runs
    /// `evict` before any response can be cached.
    pub(super) fn invalidate<T>(
        &self,
        bank: &Bank,
        changed: &[WindowId],
        keep: impl Fn(&RequestKey, &WindowId) -> bool,
        evict: impl FnOnce() -> T,
    ) -> T {
        let mut requests = self.lock();
        for pending in requests.iter_mut().filter(|pending| pending.bank == *bank) {
            let depends = |key: &WindowId| pending.depends_on.contains(key) && !keep(&pending.key, key);
            pending.stale |= changed.iter().any(depends);
        }
        evict()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PendingRequest>> {
        sync::lock(&self.requests)
    }
}

impl RequestGuard<'_> {
    /// Runs `store` unless the request is stale; no eviction runs during that time.
    pub(super) fn run_if_valid(&self, store: impl FnOnce() -> Result<(), LlmError>) -> Result<(), LlmError> {
        let requests = self.all.lock();
        let stale = requests.iter().any(|pending| self.is(pending) && pending.stale);
        if stale { Ok(()) } else { store() }
    }

    fn is(&self, pending: &PendingRequest) -> bool {
        pending.bank == self.bank && pending.key == self.key
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.all.lock().retain(|pending| !self.is(pending));
        self.all.removed.notify_all();
    }
}
