//! Tells one client which followed resources have changed.
//!
//! In: the addresses of followed questions and profiles. Out: the addresses of those that changed, one per call. Changed
//! addresses that were not fetched yet are kept as a set, so a slow client delays nothing and gets each address once.
//! An address is reported a last time when it can no longer be followed: reading it then gives the reason.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{sync::Notify, task::AbortHandle};

use super::{
    resource_follower::{FollowedResource, ResourceFollower},
    tool_call_error::ToolCallError,
    tool_calls::ToolCalls,
};
use crate::access::Caller;
use types::sync;

/// Most resources that one client follows.
const MAX: usize = 256;

/// One client.
pub(super) struct ResourceNotifier {
    calls: Arc<ToolCalls>,
    who: Arc<Caller>,
    state: Mutex<NotifierState>,
    noted: Notify,
}

#[derive(Default)]
struct NotifierState {
    followed: HashMap<String, AbortHandle>,
    /// Changed addresses that the client has not fetched yet.
    changed: BTreeSet<String>,
}

impl ResourceNotifier {
    /// A client that follows nothing yet.
    pub(super) fn new(calls: Arc<ToolCalls>, who: Arc<Caller>) -> Arc<Self> {
        Arc::new(Self { calls, who, state: Mutex::default(), noted: Notify::new() })
    }

    /// Follows what is at an address, and returns when its first state is there. Does nothing if the address is
    /// followed already.
    ///
    /// # Errors
    /// [`ToolCallError`], as of [`ResourceFollower::begin`], or if the client follows too many resources.
    pub(super) async fn follow(
        self: &Arc<Self>,
        address: &str,
        followed: FollowedResource,
    ) -> Result<(), ToolCallError> {
        {
            let state = self.state();
            if state.followed.contains_key(address) {
                return Ok(());
            }
            if state.followed.len() >= MAX {
                let why = format!("{MAX} resources are followed already; unsubscribe from one");
                return Err(ToolCallError::Refused(why));
            }
        }
        let mut follower = ResourceFollower::begin(Arc::clone(&self.calls), Arc::clone(&self.who), followed).await?;
        let (listener, at) = (Arc::downgrade(self), address.to_owned());
        let work = async move {
            loop {
                let ended = follower.changed().await.is_err();
                let Some(listener) = listener.upgrade() else { return };
                listener.note_change(&at, ended);
                if ended {
                    return;
                }
            }
        };
        // The lock is held until the address is in the table, because the task looks for it there.
        let mut state = self.state();
        if let Some(other) = state.followed.insert(address.to_owned(), tokio::spawn(work).abort_handle()) {
            other.abort();
        }
        Ok(())
    }

    /// Stops following an address.
    pub(super) fn unfollow(&self, address: &str) {
        let mut state = self.state();
        state.changed.remove(address);
        if let Some(work) = state.followed.remove(address) {
            work.abort();
        }
    }

    /// Stops following every address.
    pub(super) fn unfollow_all(&self) {
        let mut state = self.state();
        state.changed.clear();
        state.followed.drain().for_each(|(_, work)| work.abort());
    }

    /// The next address that changed.
    pub(super) async fn next(&self) -> String {
        loop {
            let noted = self.noted.notified();
            if let Some(address) = self.state().changed.pop_first() {
                return address;
            }
            noted.await;
        }
    }

    /// Whether nothing is followed and no change is left to report.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.followed.is_empty() && state.changed.is_empty()
    }

    /// Counts every followed address as changed, because notifications to the client may be lost.
    pub(super) fn note_all(&self) {
        let mut state = self.state();
        let all: Vec<String> = state.followed.keys().cloned().collect();
        state.changed.extend(all);
    }

    /// Counts an address as changed, if it is followed.
    pub(super) fn note_change(&self, address: &str, ended: bool) {
        let mut state = self.state();
        let is_followed =
            if ended { state.followed.remove(address).is_some() } else { state.followed.contains_key(address) };
        // The client may have stopped following it meanwhile.
        if !is_followed {
            return;
        }
        state.changed.insert(address.to_owned());
        self.noted.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, NotifierState> {
        sync::lock(&self.state)
    }
}

impl Drop for ResourceNotifier {
    fn drop(&mut self) {
        self.unfollow_all();
    }
}
