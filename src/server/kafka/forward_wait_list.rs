//! Questions that wait for a turn whose producer put it into another partition than its bank's.
//!
//! In: such questions. Out: the same questions, after the turn was forwarded. Each then waits for the turn that is last
//! in its bank's partition at that time, because the forwarded turn is not behind it. A question that is cancelled or
//! past its deadline comes back unchanged, and the query queue ends it.

use super::log_events;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crossbeam_channel::Sender;

use super::question_record::KafkaQuestion;
use logs::{KafkaLog, Log, partition_of};
use pipeline::Cancellation;
use replica::Replica;
use types::{backoff::Backoff, sync};

/// The maximum number of questions that wait here. Further ones are refused.
const MAX: usize = 1_024;
/// The longest time until a cancelled question is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The pauses between two attempts to find the end of a partition.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// A question, and how long somebody waits for its answer.
pub(super) type WaitingQuestion = (KafkaQuestion, Cancellation);

/// The questions that wait.
pub(super) struct ForwardWaitList<'a> {
    log: &'a KafkaLog,
    replica: &'a Replica,
    waiting: Mutex<Vec<WaitingQuestion>>,
    found: Sender<WaitingQuestion>,
}

impl<'a> ForwardWaitList<'a> {
    /// Without questions; `found` receives each question when it need not wait here any longer.
    pub(super) fn new(log: &'a KafkaLog, replica: &'a Replica, found: Sender<WaitingQuestion>) -> Self {
        Self { log, replica, waiting: Mutex::default(), found }
    }

    /// Whether this process can know when turns of a partition are forwarded. The turns topic may have more partitions
    /// than the memory.
    pub(super) fn knows(&self, partition: u32) -> bool {
        partition < self.log.partitions() || self.replica.position(partition).is_some()
    }

    /// Takes a question; gives it back if too many wait.
    pub(super) fn add(&self, question: WaitingQuestion) -> Result<(), Box<WaitingQuestion>> {
        let mut waiting = sync::lock(&self.waiting);
        if waiting.len() >= MAX {
            return Err(Box::new(question));
        }
        waiting.push(question);
        drop(waiting);
        self.replica.news().raise();
        Ok(())
    }

    /// Gives questions back until `ended`.
    pub(super) fn release_forwarded(&self, ended: &AtomicBool) {
        let mut pauses = RETRY;
        while !ended.load(Ordering::Relaxed) {
            let seen = self.replica.news().count();
            let failed = self.release_due();
            if failed {
                std::thread::sleep(pauses.jittered());
                continue;
            }
            pauses.reset();
            self.replica.news().wait(seen, CHECK_INTERVAL);
        }
    }

    /// The first offset of a partition from which no turn was forwarded; banks that belong there may be behind it.
    fn forwarded_to(&self, partition: u32) -> Option<u64> {
        self.replica.progress(partition).map(|progress| progress.through)
    }

    /// Gives back every question whose turn was forwarded, and those that are over. Returns whether the cluster failed
    /// to say where a partition ends; those questions stay.
    fn release_due(&self) -> bool {
        let is_forwarded =
            |(request, _): &WaitingQuestion| request.after.is_none_or(|(of, next)| self.forwarded_to(of) >= Some(next));
        let due: Vec<WaitingQuestion> = sync::lock(&self.waiting)
            .extract_if(.., |waiting| waiting.1.check().is_err() || is_forwarded(waiting))
            .collect();
        let (mut ends, mut failed): (BTreeMap<u32, u64>, _) = (BTreeMap::new(), false);
        for (mut request, cancellation) in due {
            if let (Ok(question), true) = (&request.question, cancellation.check().is_ok()) {
                let home = partition_of(&question.bank, self.log.partitions());
                let end = match ends.get(&home) {
                    Some(end) => Ok(*end),
                    None => self.log.end_of_turns(home),
                };
                match end {
                    Ok(end) => {
                        ends.insert(home, end);
                        request.after = Some((home, end)).filter(|_| end > 0);
                    }
                    Err(error) => {
                        log_events::end_asked_again(home, &error);
                        failed = true;
                        sync::lock(&self.waiting).push((request, cancellation));
                        continue;
                    }
                }
            }
            // The receiver is dropped only when the service stops.
            let _ = self.found.send((request, cancellation));
        }
        failed
    }
}
