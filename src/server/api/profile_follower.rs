//! Profiles that are followed: what one follower is sent next.
//!
//! In: the events of the profile's bank. Out: the whole profile at first and after every change, one per call. Nothing
//! is kept: each is read at the time of the call, so that it holds no words that were deleted before. That a plan's time
//! passes is no change by itself.

use std::{sync::Arc, time::Duration};

use super::{
    memory_api::{MemoryApi, wait},
    problem::{ApiProblem, ProblemCode},
    profile::ProfileRequest,
};
use crate::{
    access::Caller,
    subscriptions::{BankEvent, BankFollower},
};
use types::model::Profile;

/// The pause before a profile is read again after a problem that passes.
const RETRY: Duration = Duration::from_millis(500);

/// What a follower of a profile is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum ProfileEvent {
    /// The profile, which differs from the one before.
    Profile(Profile),
    /// The events end, for this reason.
    Problem(ApiProblem),
    /// Nothing changed in the time of this call.
    Quiet,
}

/// One follower of a profile.
pub struct ProfileFollower {
    api: Arc<MemoryApi>,
    who: Arc<Caller>,
    show: ProfileRequest,
    bank: BankFollower,
    /// The version that was sent last.
    version: Option<String>,
    /// Whether the bank changed since that.
    has_changed: bool,
    has_ended: bool,
}

impl ProfileFollower {
    /// What to send next, at most `quiet` after the last change of the bank; `None` once everything was sent.
    pub async fn next(&mut self, quiet: Duration) -> Option<ProfileEvent> {
        while !self.has_ended {
            if std::mem::take(&mut self.has_changed) {
                match self.api.profile(&self.who, self.show.clone()).await {
                    Ok(profile) if self.version.as_ref() == Some(&profile.version) => {}
                    Ok(profile) => {
                        self.version = Some(profile.version.clone());
                        return Some(ProfileEvent::Profile(profile));
                    }
                    Err(problem) if passes(problem.code) => {
                        self.has_changed = true;
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                    Err(problem) => return Some(self.end(problem)),
                }
            }
            match self.bank.next(quiet).await? {
                // The first event of a bank is its progress, too.
                BankEvent::Progress(..) => self.has_changed = true,
                BankEvent::Problem(problem) => return Some(self.end(problem)),
                BankEvent::Quiet => return Some(ProfileEvent::Quiet),
                _ => {}
            }
        }
        None
    }

    fn end(&mut self, problem: ApiProblem) -> ProfileEvent {
        self.has_ended = true;
        ProfileEvent::Problem(problem)
    }
}

/// Whether a problem passes by itself.
fn passes(code: ProblemCode) -> bool {
    matches!(code, ProblemCode::Busy | ProblemCode::Deadline | ProblemCode::Loading)
}

impl MemoryApi {
    /// Follows a profile: how it is now, unless that is `version`, and again whenever it changed.
    ///
    /// # Errors
    /// [`ApiProblem`]: as [`Self::profile`]; of the past; or too many subscriptions.
    pub async fn follow_profile(
        self: &Arc<Self>,
        who: &Arc<Caller>,
        show: ProfileRequest,
        version: Option<String>,
    ) -> Result<ProfileFollower, ApiProblem> {
        if show.as_of.is_some() {
            return Err(ApiProblem::invalid("as_of: the past does not change; leave it out to follow a profile"));
        }
        // A problem of the request is an answer, and no event.
        self.profile(who, show.clone()).await?;
        let bank = self.follow_bank(who, &show.bank, None, false).await?;
        let (api, who) = (Arc::clone(self), Arc::clone(who));
        Ok(ProfileFollower { api, who, show, bank, version, has_changed: false, has_ended: false })
    }

    /// A profile once it differs from `version`, or as it is after `wait_ms`.
    ///
    /// # Errors
    /// As [`Self::follow_profile`].
    pub async fn poll_profile(
        self: &Arc<Self>,
        who: &Arc<Caller>,
        show: ProfileRequest,
        version: Option<String>,
        wait_ms: u64,
    ) -> Result<Profile, ApiProblem> {
        let until = tokio::time::Instant::now() + wait(Some(wait_ms))?;
        let mut follower = self.follow_profile(who, show.clone(), version).await?;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            match tokio::time::timeout_at(until, follower.next(left)).await {
                Ok(Some(ProfileEvent::Profile(profile))) => return Ok(profile),
                Ok(Some(ProfileEvent::Problem(problem))) => return Err(problem),
                Ok(Some(ProfileEvent::Quiet)) if !left.is_zero() => {}
                Ok(_) | Err(_) => return self.profile(who, show).await,
            }
        }
    }
}
