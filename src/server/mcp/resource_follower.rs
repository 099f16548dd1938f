//! One question or profile that a client follows, in this process or in the process that has the directory open.
//!
//! In: a question, or whose profile. Out: a signal each time its evidence, or the profile, changes. Later offsets alone are not a change. A memory in
//! another process is polled. When that process ends, it is followed in the process that opens the directory
//! next, which may be this one; it then counts as changed.

use std::{sync::Arc, time::Duration};

use super::{
    lazy_memory::{AccessHandle, LazyMemory},
    memory_access::{McpMemoryAccess, run_blocking},
    tool_call_error::ToolCallError,
    tool_calls::ToolCalls,
};
use crate::{
    MemoryHttpClient, MemoryHttpError,
    access::Caller,
    api::{MemoryApi, ProblemCode, ProfileEvent, ProfileFollower, ProfileRequest},
    subscriptions::{PollResponse, QuestionSubscriber, SubscribeRequest, SubscriptionEvent},
};
use types::{backoff::Backoff, model::Bank};

/// How long the other process waits for a change before it says that there is none.
const WAIT_MS: u64 = 10_000;
/// How long a subscriber waits before it says that nothing happened.
const QUIET: Duration = Duration::from_secs(3_600);
/// The pauses before another poll after a problem that may be temporary.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// What a client can follow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FollowedResource {
    /// The evidence for a question.
    Question(SubscribeRequest),
    /// What persons said that lasts.
    Profile(ProfileRequest),
}

impl FollowedResource {
    /// The bank of which it is.
    pub(super) fn bank(&self) -> &Bank {
        match self {
            Self::Question(question) => &question.bank,
            Self::Profile(show) => &show.bank,
        }
    }

    async fn follow(
        &self,
        api: &Arc<MemoryApi>,
        who: &Arc<Caller>,
        last: Option<String>,
    ) -> Result<LocalFollower, ToolCallError> {
        Ok(match self {
            Self::Question(question) => {
                let subscribe = SubscribeRequest { last_event_id: last, ..question.clone() };
                LocalFollower::Question(api.subscribe(who, subscribe).await?)
            }
            Self::Profile(show) => LocalFollower::Profile(Box::new(api.follow_profile(who, show.clone(), last).await?)),
        })
    }

    /// Polls once; returns the id of what is known then, and whether it differs from `last`.
    fn poll(&self, reached: &MemoryHttpClient, last: Option<String>) -> Result<(String, bool), MemoryHttpError> {
        match self {
            Self::Question(question) => {
                let subscribe = SubscribeRequest { wait_ms: Some(WAIT_MS), last_event_id: last, ..question.clone() };
                let PollResponse { id, snapshot, delta, .. } = reached.post("/v1/subscribe", &subscribe)?;
                Ok((id, snapshot.is_some() || delta.is_some()))
            }
            Self::Profile(show) => {
                let version = reached.profile(show, last.as_deref(), Some(WAIT_MS))?.version;
                let differs = last.as_ref() != Some(&version);
                Ok((version, differs))
            }
        }
    }
}

/// A follower of the memory in this process.
enum LocalFollower {
    Question(QuestionSubscriber),
    Profile(Box<ProfileFollower>),
}

/// One question or profile that is followed.
pub(super) struct ResourceFollower {
    calls: Arc<ToolCalls>,
    who: Arc<Caller>,
    followed: FollowedResource,
    /// The id of the last event that was received.
    last: Option<String>,
    /// The follower, if the memory is in this process.
    here: Option<LocalFollower>,
    pauses: Backoff,
}

impl ResourceFollower {
    /// Follows a question or a profile, and returns when the first evidence, or the profile, is there.
    ///
    /// # Errors
    /// [`ToolCallError`]: the caller may not read the bank, there are too many subscriptions, or the memory does not
    /// open.
    pub(super) async fn begin(
        calls: Arc<ToolCalls>,
        who: Arc<Caller>,
        followed: FollowedResource,
    ) -> Result<Self, ToolCallError> {
        let mut follower = Self { calls, who, followed, last: None, here: None, pauses: RETRY };
        // What is there at first counts as a change.
        follower.changed().await?;
        Ok(follower)
    }

    /// Waits until the evidence, or the profile, differs from that of the last call.
    ///
    /// # Errors
    /// [`ToolCallError`]: why it can no longer be followed.
    pub(super) async fn changed(&mut self) -> Result<(), ToolCallError> {
        loop {
            let changed = match &mut self.here {
                Some(LocalFollower::Question(subscriber)) => {
                    evidence_changed(subscriber).await?;
                    true
                }
                Some(LocalFollower::Profile(follower)) => {
                    profile_changed(follower).await?;
                    true
                }
                None => self.poll().await?,
            };
            if changed {
                return Ok(());
            }
        }
    }

    /// Finds the memory, and polls once if it is in another process. Returns whether something changed.
    async fn poll(&mut self) -> Result<bool, ToolCallError> {
        let opened = self.calls.memory.get().await?;
        let reached = match &opened.access {
            McpMemoryAccess::Here(api) => {
                self.here = Some(self.followed.follow(api, &self.who, self.last.clone()).await?);
                return Ok(false);
            }
            McpMemoryAccess::There { reached, .. } => Arc::clone(reached),
        };
        let (followed, last) = (self.followed.clone(), self.last.clone());
        let polled = run_blocking(move || Ok(followed.poll(&reached, last))).await?;
        match polled {
            Ok((id, differs)) => {
                self.pauses.reset();
                self.last = Some(id);
                Ok(differs)
            }
            Err(error) if passes(&error, &self.calls.memory, &opened).await => {
                tokio::time::sleep(self.pauses.jittered()).await;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits until a follower has received a different profile.
async fn profile_changed(follower: &mut ProfileFollower) -> Result<(), ToolCallError> {
    loop {
        match follower.next(QUIET).await {
            Some(ProfileEvent::Profile(_)) => return Ok(()),
            Some(ProfileEvent::Quiet) => {}
            Some(ProfileEvent::Problem(problem)) => return Err(problem.into()),
            None => {
                return Err(ToolCallError::Refused("the profile is no longer followed; follow it again".to_owned()));
            }
        }
    }
}

/// Waits until a subscriber has received different evidence, and then the next progress.
async fn evidence_changed(subscriber: &mut QuestionSubscriber) -> Result<(), ToolCallError> {
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
