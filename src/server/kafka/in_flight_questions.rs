//! Which questions of a partition are answered, and how that is committed.
//!
//! In: questions as they are read and answered, and what was committed before. Out: the offset to commit, before which
//! every question is answered, with a note of the later ones that are answered. A question may wait for an hour:
//! without the note, the next owner of the partition would answer again everything that came since. A question without
//! an answer is never skipped. A note has a size limit; questions that it cannot hold are answered again.

use std::collections::{BTreeMap, BTreeSet};

use pipeline::Cancellation;

/// The first word of a note: its form.
const FORM: &str = "1";
/// The maximum size of a note in bytes. Brokers accept 4,096 by default.
const NOTE_BYTES: usize = 2_048;

/// The questions of each partition.
#[derive(Debug, Default)]
pub(super) struct InFlightQuestions(BTreeMap<u32, QuestionProgress>);

/// How far a partition is.
#[derive(Debug, Default)]
struct QuestionProgress {
    /// The questions in progress, by offset.
    open: BTreeMap<u64, Cancellation>,
    /// Questions that were not answered when the partition was taken over, and are not read yet.
    unread: BTreeSet<u64>,
    /// All others before this offset were answered by then.
    answered_to: u64,
    /// The offset after the last question that was read.
    next: u64,
}

/// What is committed of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommittedOffset {
    /// Everything before it is answered.
    pub(super) offset: u64,
    /// Which later questions are answered: the distances from `offset` to the next unanswered one, from there to the
    /// next, and so on. Nothing is known from the last one on. Empty if no later question is answered.
    pub(super) note: String,
}

impl InFlightQuestions {
    /// Takes note of what was committed for a partition that is taken over. A note in another form is ignored.
    pub(super) fn take_over(&mut self, partition: u32, committed: &CommittedOffset) {
        self.0.insert(partition, QuestionProgress::of(committed).unwrap_or_default());
    }

    /// Takes note of a question that was read; false if it is answered already.
    pub(super) fn take(&mut self, partition: u32, offset: u64, cancellation: Cancellation) -> bool {
        let progress = self.0.entry(partition).or_default();
        progress.next = progress.next.max(offset + 1);
        // Unread questions before it have expired.
        progress.unread = progress.unread.split_off(&offset);
        let is_answered = offset < progress.answered_to && !progress.unread.remove(&offset);
        if !is_answered {
            progress.open.insert(offset, cancellation);
        }
        !is_answered
    }

    /// Cancels all questions.
    pub(super) fn revoke_all(&mut self) {
        let all: Vec<u32> = self.0.keys().copied().collect();
        self.revoke(&all);
    }

    /// Cancels the questions of partitions that this instance no longer has.
    pub(super) fn revoke(&mut self, partitions: &[u32]) {
        for progress in partitions.iter().filter_map(|partition| self.0.remove(partition)) {
            progress.open.values().for_each(Cancellation::cancel);
        }
    }

    /// Takes note of an answered question. Returns what to commit, if there is something.
    pub(super) fn done(&mut self, partition: u32, offset: u64) -> Option<CommittedOffset> {
        let progress = self.0.get_mut(&partition)?;
        progress.open.remove(&offset);
        Some(progress.committed()).filter(|committed| committed.offset > 0 || !committed.note.is_empty())
    }
}

impl QuestionProgress {
    fn of(CommittedOffset { offset, note }: &CommittedOffset) -> Option<Self> {
        let mut words = note.split(' ');
        words.next().filter(|form| *form == FORM)?;
        let (mut unread, mut at) = (BTreeSet::new(), *offset);
        for word in words {
            unread.insert(at);
            at = at.checked_add(word.parse().ok().filter(|distance| *distance > 0)?)?;
        }
        Some(Self { unread, answered_to: at, ..Self::default() })
    }

    fn committed(&self) -> CommittedOffset {
        let end = self.next.max(self.answered_to);
        let unanswered: BTreeSet<u64> = self.open.keys().chain(&self.unread).copied().collect();
        let Some(&offset) = unanswered.first() else { return CommittedOffset { offset: end, note: String::new() } };
        let (mut note, mut at) = (FORM.to_owned(), offset);
        for next in unanswered.into_iter().skip(1).chain([end]) {
            let distance = format!(" {}", next - at);
            if note.len() + distance.len() > NOTE_BYTES {
                break;
            }
            note.push_str(&distance);
            at = next;
        }
        // If no question after the first one is answered, no note is needed.
        let says_nothing = note.split(' ').skip(1).all(|distance| distance == "1");
        CommittedOffset { offset, note: if says_nothing { String::new() } else { note } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::CancellationReason;

    fn committed(offset: u64, note: &str) -> Option<CommittedOffset> {
        Some(CommittedOffset { offset, note: note.to_owned() })
    }

    #[test]
    fn an_offset_is_committed_when_all_before_it_are_answered() {
        let mut in_flight = InFlightQuestions::default();
        (3..6).for_each(|offset| assert!(in_flight.take(0, offset, Cancellation::default())));
        assert_eq!(in_flight.done(0, 4), committed(3, "1 2 1"), "3 is not done, and neither is 5");
        assert_eq!(in_flight.done(0, 3), committed(5, ""));
        assert_eq!(in_flight.done(0, 5), committed(6, ""));
    }

    #[test]
    fn questions_of_a_revoked_partition_are_cancelled_and_commit_nothing() {
        let mut in_flight = InFlightQuestions::default();
        let (gone, kept) = (Cancellation::default(), Cancellation::default());
        in_flight.take(0, 3, gone.clone());
        in_flight.take(1, 3, kept.clone());
        in_flight.revoke(&[0, 2]);
        assert_eq!((gone.check(), kept.check()), (Err(CancellationReason::Cancelled), Ok(())));
        assert_eq!(in_flight.done(0, 3), None, "another instance commits it");
        assert_eq!(in_flight.done(1, 3), committed(4, ""));
        // The partition comes back, from what was committed last.
        in_flight.take(0, 2, Cancellation::default());
        assert_eq!(in_flight.done(0, 3), committed(2, ""), "answered before it was revoked; 2 is not done");
    }

    #[test]
    fn a_note_that_is_none_of_ours_says_nothing() {
        for note in ["", "1", "2 5", "1 0", "1 x", "1 18446744073709551615 1", "made by a tool"] {
            let mut in_flight = InFlightQuestions::default();
            in_flight.take_over(0, &CommittedOffset { offset: 7, note: note.to_owned() });
            assert!((7..20).all(|offset| in_flight.take(0, offset, Cancellation::default())), "{note:?}");
        }
    }

    #[test]
    fn a_question_that_expired_unread_holds_nothing_back() {
        let mut in_flight = InFlightQuestions::default();
        in_flight.take_over(0, &CommittedOffset { offset: 3, note: "1 5".to_owned() });
        assert!(!in_flight.take(0, 6, Cancellation::default()), "it was answered");
        assert!(in_flight.take(0, 9, Cancellation::default()));
        assert_eq!(in_flight.done(0, 9), committed(10, ""));
    }

    /// Instances that take a partition over from one another, at any moment, and answer in any order.
    #[test]
    fn every_question_is_answered_and_only_those_behind_a_note_again() {
        let mut random = fastrand::Rng::with_seed(21);
        for questions in [5, 60, 3_000] {
            let (mut answers, mut before) = (vec![0; questions], CommittedOffset { offset: 0, note: String::new() });
            let mut most = 0;
            while before.offset < questions as u64 {
                let mut in_flight = InFlightQuestions::default();
                in_flight.take_over(0, &before);
                let (mut waiting, mut at) = (Vec::new(), before.offset);
                for _ in 0..random.usize(1..2 * questions) {
                    if at < questions as u64 && random.u8(..) < 140 {
                        if in_flight.take(0, at, Cancellation::default()) {
                            waiting.push(at);
                        }
                        at += 1;
                    } else if !waiting.is_empty() {
                        let answered = waiting.swap_remove(random.usize(..waiting.len()));
                        answers[answered as usize] += 1;
                        if let Some(committed) = in_flight.done(0, answered) {
                            assert!(committed.note.len() <= NOTE_BYTES && committed.offset >= before.offset);
                            most = most.max(committed.note.len());
                            before = committed;
                        }
                    }
                }
            }
            assert!(answers.iter().all(|count| *count > 0), "{questions}: none is passed over");
            let again = answers.iter().filter(|count| **count > 1).count();
            assert_eq!(again == 0, most < NOTE_BYTES - 8, "{questions}: {again} again, {most} bytes of note");
        }
    }
}
