//! How much may be in use at once, in all and by one sender: connections that are kept, answers that are awaited,
//! bytes of bodies.
//!
//! In: who wants a share, and how much. Out: the share, which is free again when it is dropped, or a problem that
//! says what to do.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::api::{ApiProblem, ProblemCode};
use types::sync;

/// The most in use at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimits {
    /// In all.
    pub all: usize,
    /// Of one sender, such as a token.
    pub of_one: usize,
}

impl QuotaLimits {
    /// At most half of these connections in all, and an eighth for one token: a stream keeps its connection, and
    /// other requests need some too.
    #[must_use]
    pub fn within(self, connections: usize) -> Self {
        Self { all: self.all.min(connections / 2), of_one: self.of_one.min(connections / 8) }
    }
}

/// The messages for a full quota; the number of the limit precedes them.
pub struct QuotaRefusals {
    /// In all.
    pub all: &'static str,
    /// For one sender.
    pub of_one: &'static str,
}

/// What is in use, within limits.
pub struct Quota {
    limits: QuotaLimits,
    refusals: QuotaRefusals,
    used: Mutex<UsedShares>,
}

#[derive(Default)]
struct UsedShares {
    all: usize,
    by_sender: HashMap<String, usize>,
}

/// What one request has in use; free again when this is dropped.
pub struct QuotaShare {
    quota: Arc<Quota>,
    /// `None` if only the limit in all applies, as for senders that the service trusts.
    sender: Option<String>,
    used: usize,
}

impl Quota {
    /// A quota of which nothing is in use. `refusals` are the messages when nothing is free.
    #[must_use]
    pub fn new(limits: QuotaLimits, refusals: QuotaRefusals) -> Arc<Self> {
        Arc::new(Self { limits, refusals, used: Mutex::default() })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> QuotaLimits {
        self.limits
    }

    /// An empty share, which can grow. `sender` names its owner, such as a token.
    #[must_use]
    pub fn share(self: &Arc<Self>, sender: Option<&str>) -> QuotaShare {
        QuotaShare { quota: Arc::clone(self), sender: sender.map(str::to_owned), used: 0 }
    }

    /// A share of one.
    ///
    /// # Errors
    /// [`ProblemCode::Busy`] if none is free.
    pub fn take(self: &Arc<Self>, sender: Option<&str>) -> Result<QuotaShare, ApiProblem> {
        let mut share = self.share(sender);
        share.grow(1)?;
        Ok(share)
    }
}

impl QuotaShare {
    /// Takes more.
    ///
    /// # Errors
    /// [`ProblemCode::Busy`] if less than that is free.
    pub fn grow(&mut self, more: usize) -> Result<(), ApiProblem> {
        let Quota { limits, refusals, used } = &*self.quota;
        let mut used = sync::lock(used);
        let full = |most: usize, why: &str| Err(ApiProblem::new(ProblemCode::Busy, format!("{most} {why}")));
        if used.all + more > limits.all {
            return full(limits.all, refusals.all);
        }
        if let Some(sender) = &self.sender {
            let mine = used.by_sender.get(sender).copied().unwrap_or_default() + more;
            if mine > limits.of_one {
                return full(limits.of_one, refusals.of_one);
            }
            used.by_sender.insert(sender.clone(), mine);
        }
        used.all += more;
        self.used += more;
        Ok(())
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let mut used = sync::lock(&self.quota.used);
        used.all -= self.used;
        if let Some(sender) = &self.sender
            && let Some(mine) = used.by_sender.get_mut(sender)
        {
            *mine -= self.used;
            if *mine == 0 {
                used.by_sender.remove(sender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSALS: QuotaRefusals = QuotaRefusals { all: "are in use", of_one: "of this token are in use" };

    #[test]
    fn limits_leave_connections_to_other_requests() {
        let wanted = QuotaLimits { all: 4_096, of_one: 1_024 };
        assert_eq!(wanted.within(8_192), wanted);
        assert_eq!(wanted.within(512), QuotaLimits { all: 256, of_one: 64 });
    }

    #[test]
    fn shares_are_counted_in_all_and_by_sender_and_become_free() {
        let quota = Quota::new(QuotaLimits { all: 30, of_one: 20 }, REFUSALS);
        let detail = |refused: Result<(), ApiProblem>| refused.expect_err("refused").detail;
        let (mut one, mut two) = (quota.share(Some("a")), quota.share(Some("a")));
        one.grow(10).unwrap();
        two.grow(10).unwrap();
        assert_eq!(detail(quota.take(Some("a")).map(drop)), "20 of this token are in use");
        let mut trusted = quota.share(None);
        trusted.grow(9).unwrap();
        let other = quota.take(Some("b")).unwrap();
        assert_eq!(detail(quota.take(Some("b")).map(drop)), "30 are in use");
        drop(one);
        two.grow(10).unwrap();
        assert_eq!(detail(two.grow(1)), "30 are in use");
        drop((two, trusted, other));
        let used = sync::lock(&quota.used);
        assert_eq!((used.all, used.by_sender.len()), (0, 0));
    }
}
