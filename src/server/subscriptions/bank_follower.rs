//! What one follower of a bank is sent next.
//!
//! In: the events of the bank, the end of the service, and changes to who may read. Out: one event per call. There is
//! no queue: a follower reads the events that are kept for all, each at the time of the call, so that it holds no words
//! that are withdrawn meanwhile; and one that is late learns how many it missed. The events end when the follower
//! loses the right to read the bank, or when the service ends.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::select;
use tokio::sync::watch;

use super::{
    bank_event_forms::BankEvent,
    bank_feed::{BankFeed, FeedNews, FeedStatus},
    bank_scan::skipped,
    follower_guard::FollowerGuard,
    question_event_forms::StreamNotice,
};
use crate::api::{ApiProblem, ProblemCode};
use pipeline::PipelineError;
use ripplemem::MetadataReader;

/// One follower of a bank.
pub struct BankFollower {
    feed: Arc<BankFeed>,
    newest: watch::Receiver<FeedNews>,
    standing: FollowerGuard,
    resets: u64,
    next: NextBankEvent,
    /// Adds metadata to turns, if the follower asks for them.
    metadata: Option<MetadataReader>,
}

/// What has to be sent.
enum NextBankEvent {
    /// Where it begins.
    Begin,
    /// What happened since this id.
    Since(String),
    /// The event after this many, of the same scan as the last of them; at its end, its progress.
    Within(u64),
    /// The scan after this many events.
    After(u64),
    /// Everything was sent.
    End,
}

impl BankFollower {
    /// A follower; `last_event_id` is the id that it received last.
    pub(super) fn new(feed: Arc<BankFeed>, standing: FollowerGuard, last_event_id: Option<&str>) -> Self {
        let newest = feed.follow();
        let resets = newest.borrow().resets;
        let next = last_event_id.map_or(NextBankEvent::Begin, |id| NextBankEvent::Since(id.to_owned()));
        Self { feed, newest, standing, resets, next, metadata: None }
    }

    /// The same follower, to which turns are reported with their metadata. Each is read from the log when it is sent.
    #[must_use]
    pub fn with_metadata(mut self, reader: MetadataReader) -> Self {
        self.metadata = Some(reader);
        self
    }

    /// Waits for the first scan; returns the problem if there is none.
    pub(super) async fn begun(&mut self) -> Result<(), ApiProblem> {
        let begun = self.newest.wait_for(|news| !matches!(news.value, FeedStatus::Pending)).await;
        match begun.map(|news| news.value.clone()) {
            Ok(FeedStatus::Ended(problem)) => Err(problem),
            Ok(FeedStatus::Moved) => {
                Err(ApiProblem::new(ProblemCode::Failed, "another instance has the bank now; ask again"))
            }
            Ok(FeedStatus::Pending | FeedStatus::Going) => Ok(()),
            Err(_) => Err(ApiProblem::stopping()),
        }
    }

    /// What to send next, at most `quiet` later; `None` once everything was sent.
    pub async fn next(&mut self, quiet: Duration) -> Option<BankEvent> {
        let until = tokio::time::Instant::now() + quiet;
        loop {
            if matches!(self.next, NextBankEvent::End) || self.standing.is_closing() {
                return None;
            }
            let event = self.standing.refusal().map(BankEvent::Problem).or_else(|| self.ready());
            if let Some(event) = event {
                let event = self.complete(event).await;
                if matches!(event, BankEvent::Problem(_)) {
                    self.next = NextBankEvent::End;
                }
                return Some(event);
            }
            if matches!(self.newest.borrow().value, FeedStatus::Moved) {
                // The next request gets the name of the new holder.
                return None;
            }
            let until = self.standing.until(until);
            let waited = tokio::time::timeout_at(until, self.wait_for_change()).await;
            if waited.is_err() && self.standing.refusal().is_none() {
                return Some(BankEvent::Quiet);
            }
        }
    }

    /// An event with the metadata of its turn, if the follower asks for them and the turn still has its words.
    async fn complete(&self, event: BankEvent) -> BankEvent {
        let (BankEvent::Turn(mut turn), Some(reader)) = (event.clone(), self.metadata.clone()) else { return event };
        if turn.deleted || turn.speaker.is_empty() {
            return event;
        }
        let bank = self.feed.bank.clone();
        let read = tokio::task::spawn_blocking(move || {
            turn.metadata = reader.of_turn(&bank, &turn.turn)?;
            Ok::<_, PipelineError>(turn)
        });
        match read.await {
            Ok(Ok(turn)) => BankEvent::Turn(turn),
            Ok(Err(error)) => BankEvent::Problem(error.into()),
            // Blocking work is only cancelled with its runtime, and nobody follows then.
            Err(_) => event,
        }
    }

    /// What can be sent now.
    fn ready(&mut self) -> Option<BankEvent> {
        let FeedNews { resets, value } = self.newest.borrow_and_update().clone();
        if resets != std::mem::replace(&mut self.resets, resets) && !matches!(self.next, NextBankEvent::Begin) {
            self.next = NextBankEvent::Begin;
            return Some(reset("the memory of the bank was moved, or is being loaded again"));
        }
        if let FeedStatus::Ended(problem) = value {
            return Some(BankEvent::Problem(problem));
        }
        match std::mem::replace(&mut self.next, NextBankEvent::Begin) {
            NextBankEvent::Begin => {
                let (told, progress) = self.feed.now()?;
                self.next = NextBankEvent::After(told);
                Some(progress)
            }
            NextBankEvent::Since(id) => {
                if self.feed.now().is_none() {
                    self.next = NextBankEvent::Since(id);
                    return None;
                }
                let told = self.feed.place_of(&id).and_then(|place| self.feed.event_count_at(place));
                let Some(told) = told else { return Some(reset("what happened since is no longer known here")) };
                self.next = NextBankEvent::After(told);
                self.ready()
            }
            NextBankEvent::Within(told) => {
                let Some(event) = self.feed.within(told) else {
                    // The rest of the scan is not kept any more, and counts as left out.
                    self.next = NextBankEvent::After(told);
                    return self.ready();
                };
                let is_end = matches!(event, BankEvent::Progress(..));
                self.next = if is_end { NextBankEvent::After(told) } else { NextBankEvent::Within(told + 1) };
                Some(event)
            }
            NextBankEvent::After(told) => {
                let Some((event, missed)) = self.feed.after(told) else {
                    self.next = NextBankEvent::After(told);
                    return None;
                };
                if missed > 0 {
                    self.next = NextBankEvent::After(told + missed);
                    return skipped(missed);
                }
                self.next = NextBankEvent::Within(told + 1);
                Some(event)
            }
            NextBankEvent::End => {
                self.next = NextBankEvent::End;
                None
            }
        }
    }

    /// Waits until there may be something to send.
    async fn wait_for_change(&mut self) {
        let Self { newest, standing, .. } = self;
        select(pin!(newest.changed()), pin!(standing.changed())).await;
    }
}

impl Drop for BankFollower {
    fn drop(&mut self) {
        self.feed.unfollow();
    }
}

fn reset(reason: &str) -> BankEvent {
    BankEvent::Reset(StreamNotice { reason: reason.to_owned() })
}
