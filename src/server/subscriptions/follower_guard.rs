//! Whether a stream may go on.
//!
//! In: who follows a bank, changes to who may read it, the end of the service. Out: a problem once the bank may no
//! longer be read, and a wait that ends when that may be so. Holds the follower's share of the subscriptions.

use std::{pin::pin, sync::Arc};

use futures_util::future::{pending, select};
use tokio::{sync::watch, time::Instant};

use crate::{
    access::{AccessRight, Caller},
    api::ApiProblem,
    quota::QuotaShare,
};
use types::model::Bank;

/// The right of a follower to go on.
pub(super) struct FollowerGuard {
    who: Arc<Caller>,
    bank: Bank,
    access: Option<watch::Receiver<()>>,
    closing: watch::Receiver<bool>,
    /// Releases the follower's share when it is dropped.
    _share: QuotaShare,
}

impl FollowerGuard {
    pub(super) fn new(who: Arc<Caller>, bank: Bank, closing: watch::Receiver<bool>, share: QuotaShare) -> Self {
        let access = who.changes();
        Self { who, bank, access, closing, _share: share }
    }

    /// Whether the service is ending.
    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Why the follower may no longer read the bank.
    pub(super) fn refusal(&self) -> Option<ApiProblem> {
        self.who.still_may_in(AccessRight::Read, &self.bank).err().map(ApiProblem::from)
    }

    /// `until`, or the time at which the token expires if that is earlier.
    pub(super) fn until(&self, until: Instant) -> Instant {
        self.who.expires_in().map_or(until, |left| until.min(Instant::now() + left))
    }

    /// Waits until the token's rights may have changed, or the service is ending.
    pub(super) async fn changed(&mut self) {
        let Self { access, closing, .. } = self;
        let access = async {
            if let Some(access) = access
                && access.changed().await.is_ok()
            {
                return;
            }
            // Nothing changes any more.
            pending().await
        };
        select(pin!(closing.changed()), pin!(access)).await;
    }
}
