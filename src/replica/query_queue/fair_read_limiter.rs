//! Permits for reads that are not questions: a few at once, shared as questions are.
//!
//! In: which token reads which bank. Out: a permit, once its turn has come; dropping it frees it for others. Senders
//! take turns as in the [fair queue](super::fair_queue), and none has every permit, however many connections it opens.
//! A caller that drops the future gives up its turn. Holds no thread.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use super::{
    PipelineError,
    fair_queue::{FairQueue, FairQueueLimits, QueueKey, QueueTenant},
    query_queue_state::busy,
};
use types::sync;

/// Reads that wait for a permit. They hold little more than a connection each.
const WAITING: FairQueueLimits =
    FairQueueLimits { of_bank: 1_024, of_bank_bytes: usize::MAX, all: 8_192, all_bytes: usize::MAX };

/// A number of permits, and the reads that wait for one.
#[derive(Debug)]
pub struct FairReadLimiter {
    at_once: usize,
    /// The most permits of one sender.
    of_one: usize,
    state: Mutex<ReadLimiterState>,
}

#[derive(Debug)]
struct ReadLimiterState {
    waiting: FairQueue<oneshot::Sender<ReadPermit>>,
    taken: usize,
    by_sender: HashMap<QueueTenant, usize>,
}

/// A permit, until this is dropped.
#[derive(Debug)]
pub struct ReadPermit {
    places: Arc<FairReadLimiter>,
    sender: QueueTenant,
}

impl FairReadLimiter {
    /// `at_once` permits. A sender has at most three quarters of them, and of two or more leaves one to others.
    #[must_use]
    pub fn new(at_once: usize) -> Arc<Self> {
        let of_one = at_once.saturating_sub((at_once / 4).max(1)).max(1);
        let state = ReadLimiterState { waiting: FairQueue::new(WAITING), taken: 0, by_sender: HashMap::new() };
        Arc::new(Self { at_once: at_once.max(1), of_one, state: Mutex::new(state) })
    }

    /// Takes a permit when its turn has come.
    ///
    /// # Errors
    /// [`PipelineError::Busy`] if too many wait.
    pub async fn acquire(self: &Arc<Self>, lane: &QueueKey) -> Result<ReadPermit, PipelineError> {
        let (out, place) = oneshot::channel();
        {
            let mut state = sync::lock(&self.state);
            // Callers that have left wait no longer.
            state.waiting.take(oneshot::Sender::is_closed);
            state.waiting.push(lane, out, 0).map_err(|(_, full)| busy(full))?;
        }
        self.hand_out();
        // Its channel's sender stays in the queue until it gets a permit.
        place.await.map_err(|_| PipelineError::Cancelled)
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let mut state = sync::lock(&self.state);
        state.waiting.take(oneshot::Sender::is_closed);
        state.waiting.len()
    }

    fn hand_out(self: &Arc<Self>) {
        while let Some((sender, out)) = self.next() {
            // If the caller has left, the permit is dropped here, outside the lock.
            drop(out.send(ReadPermit { places: Arc::clone(self), sender }));
        }
    }

    /// Takes the next waiting read, and counts its permit as taken.
    fn next(&self) -> Option<(QueueTenant, oneshot::Sender<ReadPermit>)> {
        let mut state = sync::lock(&self.state);
        let ReadLimiterState { waiting, taken, by_sender } = &mut *state;
        if *taken >= self.at_once {
            return None;
        }
        let mut pop = || waiting.pop(|lane| by_sender.get(&lane.sender()).is_none_or(|taken| *taken < self.of_one));
        let mut found = pop()?;
        while found.1.is_closed() {
            found = pop()?;
        }
        let (lane, out) = found;
        *taken += 1;
        *by_sender.entry(lane.sender()).or_default() += 1;
        Some((lane.sender(), out))
    }
}

impl Drop for ReadPermit {
    fn drop(&mut self) {
        {
            let mut state = sync::lock(&self.places.state);
            state.taken -= 1;
            if let Some(of_sender) = state.by_sender.get_mut(&self.sender) {
                *of_sender -= 1;
                if *of_sender == 0 {
                    state.by_sender.remove(&self.sender);
                }
            }
        }
        self.places.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use types::model::Bank;

    fn lane(token: &str, bank: &str) -> QueueKey {
        QueueKey { token: Some(Arc::from(token)), bank: Bank::parse(bank).expect("a good name") }
    }

    #[test]
    fn two_tokens_reads_take_turns_and_one_token_never_has_every_place() {
        let places = FairReadLimiter::new(2);
        let (many, one) = (lane("many", "a"), lane("one", "a"));
        let mut flood: Vec<_> = (0..200).map(|_| Box::pin(places.acquire(&many))).collect();
        let taken: Vec<ReadPermit> = flood.iter_mut().filter_map(|waits| waits.now_or_never()).flatten().collect();
        assert_eq!((taken.len(), places.waiting()), (1, 199), "half of the places");
        let other = places.acquire(&one).now_or_never().expect("at once").expect("a place");
        let mut again = Box::pin(places.acquire(&one));
        assert!((&mut again).now_or_never().is_none(), "it has as many places as the others");
        drop(other);
        let again = (&mut again).now_or_never().expect("the next").expect("a place");
        drop((again, taken));
        let mut next = Box::pin(places.acquire(&one));
        assert!((&mut next).now_or_never().is_some(), "199 of the other token wait for longer");
    }

    #[test]
    fn a_tokens_many_banks_are_one_sender_and_banks_without_a_token_are_many() {
        let places = FairReadLimiter::new(1);
        let held = places.acquire(&lane("t", "held")).now_or_never().expect("at once").expect("a place");
        let wide: Vec<QueueKey> = (0..50).map(|n| lane("wide", &format!("b{n}"))).collect();
        let mut flood: Vec<_> = wide.iter().map(|lane| Box::pin(places.acquire(lane))).collect();
        flood.iter_mut().for_each(|waits| assert!(waits.now_or_never().is_none()));
        let of_one = lane("one", "b");
        let mut one = Box::pin(places.acquire(&of_one));
        assert!((&mut one).now_or_never().is_none());
        drop(held);
        let first = flood[0].as_mut().now_or_never().expect("it waited for longest").expect("a place");
        drop(first);
        assert!((&mut one).now_or_never().is_some(), "before the 49 others of the first token");
        let bank = |bank: &str| QueueKey { token: None, ..lane("", bank) };
        assert_ne!(bank("a").sender(), bank("b").sender());
    }

    #[test]
    fn whoever_leaves_gives_up_the_turn_and_a_place_that_was_given_to_nobody_goes_on() {
        let places = FairReadLimiter::new(1);
        let of = lane("t", "a");
        let held = places.acquire(&of).now_or_never().expect("at once").expect("a place");
        let mut leaves = Box::pin(places.acquire(&of));
        let mut given = Box::pin(places.acquire(&of));
        let mut stays = Box::pin(places.acquire(&of));
        for waits in [&mut leaves, &mut given, &mut stays] {
            assert!(waits.now_or_never().is_none());
        }
        drop(leaves);
        assert_eq!(places.waiting(), 2);
        drop(held);
        // The permit was sent to it, and it leaves before it receives it.
        drop(given);
        let place = (&mut stays).now_or_never().expect("the next").expect("a place");
        assert_eq!(places.waiting(), 0);
        assert_eq!(sync::lock(&places.state).taken, 1);
        drop(place);
        assert_eq!(sync::lock(&places.state).taken, 0);
    }
}
