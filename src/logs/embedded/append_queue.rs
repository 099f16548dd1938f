//! The appends that wait while another write is under way; the next write takes them together.
//!
//! In: turn events, dead letters and entries of `positions`. They are encoded before they wait: if one cannot be
//! encoded, only its call fails. Out: groups, in order of arrival. A group that could not be written waits again.

use std::collections::VecDeque;

use super::record_encoding::json_of;
use crate::{LogError, Topic, partition_of};
use types::model::{Bank, DeadLetter, TurnEvent};

/// Most bytes of the turns in a group, unless one append alone has more.
const GROUP_BYTES: usize = 8 << 20;

/// An entry of `positions`: its key, and its value; `None` removes it.
pub(super) type PositionEntry = (Vec<u8>, Option<Vec<u8>>);

/// What one call appends.
pub(super) struct QueuedAppend {
    ticket: u64,
    pub(super) turns: Vec<EncodedTurn>,
    pub(super) dead_letters: Vec<Vec<u8>>,
    pub(super) positions: Vec<PositionEntry>,
    /// Bytes of the turns.
    pub(super) bytes: usize,
}

/// A turn event as it is stored.
pub(super) struct EncodedTurn {
    pub(super) partition: u32,
    pub(super) bank: Bank,
    pub(super) json: Vec<u8>,
}

impl QueuedAppend {
    /// Encodes what a call appends.
    pub(super) fn of(
        partitions: u32,
        events: &[TurnEvent],
        dead_letters: &[DeadLetter],
        positions: Vec<PositionEntry>,
    ) -> Result<Self, LogError> {
        let encoded = events.iter().enumerate().map(|(index, event)| {
            let partition = partition_of(event.bank(), partitions);
            let json = json_of(Topic::Turns, partition, index, event)?;
            Ok(EncodedTurn { partition, bank: event.bank().clone(), json })
        });
        let turns = encoded.collect::<Result<Vec<EncodedTurn>, LogError>>()?;
        let bytes = turns.iter().map(|turn| turn.json.len()).sum();
        Ok(Self { ticket: 0, turns, dead_letters: encoded_letters(dead_letters)?, positions, bytes })
    }

    /// The ticket with which its caller finds what was written.
    pub(super) fn ticket(&self) -> u64 {
        self.ticket
    }
}

/// Dead letters as they are stored.
pub(super) fn encoded_letters(letters: &[DeadLetter]) -> Result<Vec<Vec<u8>>, LogError> {
    letters.iter().enumerate().map(|(index, letter)| json_of(Topic::DeadLetters, 0, index, letter)).collect()
}

/// The appends that wait.
#[derive(Default)]
pub(super) struct AppendQueue {
    appends: VecDeque<QueuedAppend>,
    tickets: u64,
}

impl AppendQueue {
    /// Adds an append to the queue, and returns its ticket.
    pub(super) fn push(&mut self, append: QueuedAppend) -> u64 {
        self.tickets += 1;
        self.appends.push_back(QueuedAppend { ticket: self.tickets, ..append });
        self.tickets
    }

    /// Takes the appends of the next write.
    pub(super) fn group(&mut self) -> Vec<QueuedAppend> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some(next) = self.appends.pop_front() {
            bytes += next.bytes;
            if bytes > GROUP_BYTES && !group.is_empty() {
                self.appends.push_front(next);
                break;
            }
            group.push(next);
        }
        group
    }

    /// Puts a group back first in the queue.
    pub(super) fn put_back(&mut self, group: Vec<QueuedAppend>) {
        group.into_iter().rev().for_each(|append| self.appends.push_front(append));
    }

    /// Removes an append, if it still waits.
    pub(super) fn withdraw(&mut self, ticket: u64) {
        self.appends.retain(|append| append.ticket != ticket);
    }

    /// The number of appends that wait.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.appends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_came_first_and_is_not_too_large() {
        let append = |bytes| QueuedAppend { bytes, ..QueuedAppend::of(1, &[], &[], Vec::new()).unwrap() };
        let mut waiting = AppendQueue::default();
        for bytes in [GROUP_BYTES + 1, GROUP_BYTES - 1, 1, 1] {
            waiting.push(append(bytes));
        }
        let mut tickets = || waiting.group().iter().map(QueuedAppend::ticket).collect::<Vec<_>>();
        assert_eq!((tickets(), tickets(), tickets(), tickets()), (vec![1], vec![2, 3], vec![4], vec![]));
        waiting.push(append(1));
        waiting.push(append(1));
        let group = waiting.group();
        waiting.push(append(1));
        waiting.put_back(group);
        waiting.withdraw(6);
        assert_eq!(waiting.group().iter().map(QueuedAppend::ticket).collect::<Vec<_>>(), [5, 7]);
    }
}
