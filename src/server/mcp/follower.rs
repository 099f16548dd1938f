//! One question that a client follows, in this process or in the process that has the directory open.
//!
//! In: a question. Out: a signal each time its evidence changes. Later offsets alone are not a change. A memory in
//! another process is polled. When that process ends, the question is followed in the process that opens the directory
//! next, which may be this one; the evidence then counts as changed.

use std::{sync::Arc, time::Duration};

use super::{
    access::{Access, beside},
    call_error::CallError,
    calls::Calls,
    opened_memory::{Opened, OpenedMemory},
};
use crate::{
    ReachError,
    access::Caller,
    api::Code,
    subscriptions::{Event, Polled, Subscribe, Subscriber},
};
use nouns::backoff::Backoff;

/// How long the other process waits for a change before it says that there is none.
const WAIT_MS: u64 = 10_000;
/// How long a subscriber waits before it says that nothing happened.
const QUIET: Duration = Duration::from_secs(3_600);
/// The pauses before another poll after a problem that may be temporary.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// One question that is followed.
pub(super) struct Follower {
    calls: Arc<Calls>,
    who: Arc<Caller>,
    /// The question, and the id of the last event that was received.
    subscribe: Subscribe,
    /// The subscriber, if the memory is in this process.
    here: Option<Subscriber>,
    pauses: Backoff,
}

impl Follower {
    /// Follows a question, and returns when its first evidence is there.
    ///
    /// # Errors
    /// [`CallError`]: the caller may not read the bank, there are too many subscriptions, or the memory does not open.
    pub(super) async fn begin(calls: Arc<Calls>, who: Arc<Caller>, subscribe: Subscribe) -> Result<Self, CallError> {
        let mut follower = Self { calls, who, subscribe, here: None, pauses: RETRY };
        // The first evidence counts as a change.
        follower.changed().await?;
        Ok(follower)
    }

    /// Waits until the evidence differs from the evidence at the last call.
    ///
    /// # Errors
    /// [`CallError`]: why the question can no longer be followed.
    pub(super) async fn changed(&mut self) -> Result<(), CallError> {
        loop {
            let changed = match &mut self.here {
                Some(subscriber) => {
                    changed(subscriber).await?;
                    true
                }
                None => self.look().await?,
            };
            if changed {
                return Ok(());
            }
        }
    }

    /// Finds the memory, and polls once if it is in another process. Returns whether the evidence changed.
    async fn look(&mut self) -> Result<bool, CallError> {
        let opened = self.calls.memory.get().await?;
        let reached = match &opened.access {
            Access::Here(api) => {
                self.here = Some(api.subscribe(&self.who, self.subscribe.clone()).await?);
                return Ok(false);
            }
            Access::There { reached, .. } => Arc::clone(reached),
        };
        let subscribe = Subscribe { wait_ms: Some(WAIT_MS), ..self.subscribe.clone() };
        let polled = beside(move || Ok(reached.post::<Polled>("/v1/subscribe", &subscribe))).await?;
        match polled {
            Ok(Polled { id, snapshot, delta, .. }) => {
                self.pauses.reset();
                self.subscribe.last_event_id = Some(id);
                Ok(snapshot.is_some() || delta.is_some())
            }
            Err(error) if passes(&error, &self.calls.memory, &opened).await => {
                tokio::time::sleep(self.pauses.jittered()).await;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits until a subscriber has received different evidence, and then the next progress.
async fn changed(subscriber: &mut Subscriber) -> Result<(), CallError> {
    let mut changed = false;
    loop {
        match subscriber.next(QUIET).await {
            Some(Event::Snapshot(_) | Event::Delta(_) | Event::Reset(_)) => changed = true,
            Some(Event::Progress(..)) if changed => return Ok(()),
            Some(Event::Progress(..) | Event::Quiet) => {}
            Some(Event::Problem(problem)) => return Err(problem.into()),
            Some(Event::Lagged(told)) => return Err(CallError::Refused(told.reason)),
            None => return Err(CallError::Refused("the question is no longer followed; follow it again".to_owned())),
        }
    }
}

/// Whether the problem may be temporary: this process or another may answer in a moment.
async fn passes(error: &ReachError, memory: &OpenedMemory, opened: &Arc<Opened>) -> bool {
    match error {
        ReachError::Gone { .. } => {
            memory.lost(opened).await;
            true
        }
        ReachError::Problem(problem) => {
            matches!(problem.code, Code::Deadline | Code::Busy | Code::Loading | Code::Stopping | Code::EndpointAway)
        }
        ReachError::Form { .. } => false,
    }
}
