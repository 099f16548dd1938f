//! Limits the reads that are not questions, and how long they wait.
//!
//! In: the caller, the bank, and the work. Out: its result. Tokens take turns, and so do banks, as for questions; a
//! read has a slot while it works, and holds no thread while it waits for one. Once the client leaves, the token ends
//! or the deadline passes, a wait is over, and a scan ends. Short reads have slots of their own, so that no list of a
//! large bank delays them.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};

use super::{
    blocking_work::run_while_awaited,
    problem::{ApiProblem, ProblemCode},
};
use crate::access::{AccessRight, Caller};
use pipeline::Cancellation;
use replica::{FairReadLimiter, QueueKey, charged_to};
use types::model::Bank;

/// Reads that are done at once: units, counts, pages of turns.
const SHORT_AT_ONCE: usize = 8;
/// The minimum number of reads of a whole bank or of its snapshots that are done at once; otherwise one per processor.
const LONG_AT_ONCE: usize = 2;

/// A question that the query queue did not refuse is given up this long after its deadline.
const OVERRUN: Duration = Duration::from_secs(1);

/// How much a read covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadScope {
    /// A little of a bank, or counts of it.
    Little,
    /// All records, units and edges of a bank, or the snapshots of its shard.
    AllOfIt,
}

/// The slots of all reads of a service.
pub(super) struct ReadLimiters {
    short: Arc<FairReadLimiter>,
    long: Arc<FairReadLimiter>,
    /// The longest wait for a slot.
    wait: Duration,
}

impl ReadLimiters {
    pub(super) fn new(wait: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(LONG_AT_ONCE, usize::from);
        let (short, long) = (FairReadLimiter::new(SHORT_AT_ONCE), FairReadLimiter::new(LONG_AT_ONCE.max(processors)));
        Self { short, long, wait }
    }

    /// Does work that reads, once its turn has come.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        lane: &QueueKey,
        reads: ReadScope,
        work: impl FnOnce(&Cancellation) -> Result<T, ApiProblem> + Send + 'static,
    ) -> Result<T, ApiProblem> {
        let places = if reads == ReadScope::Little { &self.short } else { &self.long };
        let late = |_| {
            let detail = "the deadline passed before its turn came among the reads that wait; ask again in a moment";
            ApiProblem::new(ProblemCode::Deadline, detail)
        };
        let place = tokio::time::timeout(self.wait, places.acquire(lane)).await.map_err(late)??;
        let token = lane.token.clone();
        // The work keeps its slot until it ends, even if the client has left.
        run_while_awaited(move |cancellation| {
            let _place = place;
            charged_to(token.as_ref(), || work(cancellation))
        })
        .await
    }
}

/// The queue in which a caller's reads of a bank wait.
pub(super) fn queue_key(who: &Caller, bank: &Bank) -> QueueKey {
    QueueKey { token: who.name().map(Arc::from), bank: bank.clone() }
}

/// The result of a wait. If the caller loses the right in the bank before, the wait ends, and what it held is released.
pub(super) async fn while_allowed<T>(
    who: &Caller,
    right: AccessRight,
    bank: &Bank,
    wait: impl Future<Output = T>,
) -> Result<T, ApiProblem> {
    let Some(mut changes) = who.changes() else { return Ok(wait.await) };
    let mut wait = pin!(wait);
    loop {
        who.still_may_in(right, bank)?;
        let expires = who.expires_in();
        let change = pin!(async {
            let changed = pin!(changes.changed());
            match expires {
                Some(left) => tokio::time::timeout(left, changed).await.is_ok(),
                None => changed.await.is_ok(),
            }
        });
        if let Either::Left((done, _)) = select(wait.as_mut(), change).await {
            return Ok(done);
        }
    }
}

/// The result of a question, or a problem once its deadline has passed: nobody waits for a step that overruns. A
/// question that still waits is refused by the query queue, which knows what it waited for.
pub(super) async fn within_deadline<T>(deadline: Instant, question: impl Future<Output = T>) -> Result<T, ApiProblem> {
    let late = |_| ApiProblem::new(ProblemCode::Deadline, "the deadline passed before it was answered");
    tokio::time::timeout_at((deadline + OVERRUN).into(), question).await.map_err(late)
}
