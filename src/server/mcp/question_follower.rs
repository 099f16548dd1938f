//! One question that a client follows, in this process or in the process that has the directory open.
//!
//! In: a question. Out: a signal each time its evidence changes. Later offsets alone are not a change. A memory in
//! another process is polled. When that process ends, the question is followed in the process that opens the directory
//! next, which may be this one; the evidence then counts as changed.

use std::{sync::Arc, time::Duration};

use super::{
    lazy_memory::{AccessHandle, LazyMemory},
    memory_access::{McpMemoryAccess, run_blocking},
    tool_call_error::ToolCallError,
    tool_calls::ToolCalls,
};
use crate::{
    MemoryHttpError,
    access::Caller,
    api::ProblemCode,
    subscriptions::{PollResponse, QuestionSubscriber, SubscribeRequest, SubscriptionEvent},
};
use types::backoff::Backoff;

/// How long the other process waits for a change before it says that there is none.
const WAIT_MS: u64 = 10_000;
/// How long a subscriber waits before it says that nothing happened.
const QUIET: Duration = Duration::from_secs(3_600);
/// The pauses before another poll after a problem that may be temporary.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// One question that is followed.
pub(super) struct QuestionFollower {
    calls: Arc<ToolCalls>,
    who: Arc<Caller>,
    /// The question, and the id of the last event that was received.
    subscribe: SubscribeRequest,
    /// The subscriber, if the memory is in this process.
    here: Option<QuestionSubscriber>,
    pauses: Backoff,
}

impl QuestionFollower {
    /// Follows a question, and returns when its first evidence is there.
    ///
    /// # Errors
    /// [`ToolCallError`]: the caller may not read the bank, there are too many subscriptions, or the memory does not
    /// open.
    pub(super) async fn begin(
        calls: Arc<ToolCalls>,
        who: Arc<Caller>,
        subscribe: SubscribeRequest,
    ) -> Result<Self, ToolCallError> {
        let mut follower = Self { calls, who, subscribe, here: None, pauses: RETRY };
        // The first evidence counts as a change.
        follower.changed().await?;
        Ok(follower)
    }

    /// Waits until the evidence differs from the evidence at the last call.
    ///
    /// # Errors
    /// [`ToolCallError`]: why the question can no longer be followed.
    pub(super) async fn changed(&mut self) -> Result<(), ToolCallError> {
        loop {
            let changed = match &mut self.here {
                Some(subscriber) => {
                    changed(subscriber).await?;
                    true
                }
                None => self.poll_evidence().await?,
            };
            if changed {
                return Ok(());
            }
        }
    }

    /// Finds the memory, and polls once if it is in another process. Returns whether the evidence changed.
    async fn poll_evidence(&mut self) -> Result<bool, ToolCallError> {
        let opened = self.calls.memory.get().await?;
        let reached = match &opened.access {
            McpMemoryAccess::Here(api) => {
                self.here = Some(api.subscribe(&self.who, self.subscribe.clone()).await?);
                return Ok(false);
            }
            McpMemoryAccess::There { reached, .. } => Arc::clone(reached),
        };
        let subscribe = SubscribeRequest { wait_ms: Some(WAIT_MS), ..self.subscribe.clone() };
        let polled = run_blocking(move || Ok(reached.post::<PollResponse>("/v1/subscribe", &subscribe))).await?;
        match polled {
            Ok(PollResponse { id, snapshot, delta, .. }) => {
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
async fn changed(subscriber: &mut QuestionSubscriber) -> Result<(), ToolCallError> {
    let mut changed = false;
    loop {
        match subscriber.next(QUIET).await {
            Some(SubscriptionEvent::Snapshot(_) | SubscriptionEvent::Delta(_) | SubscriptionEvent::Reset(_)) => {
                changed = true
            }
            Some(SubscriptionEvent::Progress(..)) if changed => return Ok(()),
            Some(SubscriptionEvent::Progress(..) | SubscriptionEvent::Quiet) => {}
            Some(SubscriptionEvent::Problem(problem)) => return Err(problem.into()),
            Some(SubscriptionEvent::Lagged(told)) => return Err(ToolCallError::Refused(told.reason)),
            None => {
                return Err(ToolCallError::Refused("the question is no longer followed; follow it again".to_owned()));
            }
        }
    }
}

/// Whether the problem may be temporary: this process or another may answer in a moment.
async fn passes(error: &MemoryHttpError, memory: &LazyMemory, opened: &Arc<AccessHandle>) -> bool {
    match error {
        MemoryHttpError::Gone { .. } => {
            memory.drop_lost(opened).await;
            true
        }
        MemoryHttpError::Problem(problem) => {
            matches!(
                problem.code,
                ProblemCode::Deadline
                    | ProblemCode::Busy
                    | ProblemCode::Loading
                    | ProblemCode::Stopping
                    | ProblemCode::EndpointAway
            )
        }
        MemoryHttpError::Form { .. } => false,
    }
}
