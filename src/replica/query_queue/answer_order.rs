//! Delivers the answers of a bank, which are computed in parallel, in the order of its questions.
//!
//! In: a ticket for each question that is taken up, and its answer once it is done. Out: the answers that may be
//! delivered now. One thread delivers a bank's answers at a time.

use std::collections::{BTreeMap, HashMap};

use types::model::Bank;

/// The answers of every bank with a question in progress.
#[derive(Debug)]
pub(super) struct AnswerOrder<T> {
    banks: HashMap<Bank, BankAnswers<T>>,
}

#[derive(Debug)]
struct BankAnswers<T> {
    /// The ticket of the next question that is taken up.
    next: u64,
    /// The ticket of the next answer to deliver.
    due: u64,
    done: BTreeMap<u64, T>,
    in_progress: usize,
    handing_over: bool,
}

impl<T> Default for AnswerOrder<T> {
    fn default() -> Self {
        Self { banks: HashMap::new() }
    }
}

impl<T> AnswerOrder<T> {
    /// Questions of a bank that are being answered.
    pub(super) fn in_progress(&self, bank: &Bank) -> usize {
        self.banks.get(bank).map_or(0, |of| of.in_progress)
    }

    /// Questions of all banks that are being answered.
    pub(super) fn all_in_progress(&self) -> usize {
        self.banks.values().map(|of| of.in_progress).sum()
    }

    /// Takes up a bank's next question.
    pub(super) fn begin(&mut self, bank: &Bank) -> u64 {
        let of = self.banks.entry(bank.clone()).or_insert_with(|| BankAnswers {
            next: 0,
            due: 0,
            done: BTreeMap::new(),
            in_progress: 0,
            handing_over: false,
        });
        of.next += 1;
        of.in_progress += 1;
        of.next - 1
    }

    /// Notes an answer. The caller then delivers what [`Self::next`] returns, until it returns `None`.
    pub(super) fn note_answer(&mut self, bank: &Bank, ticket: u64, answer: T) {
        if let Some(of) = self.banks.get_mut(bank) {
            of.in_progress -= 1;
            of.done.insert(ticket, answer);
        }
    }

    /// The next answer to deliver. `again`: whether this thread has just delivered one. Without `again`, returns `None`
    /// while another thread delivers.
    pub(super) fn next(&mut self, bank: &Bank, again: bool) -> Option<T> {
        let of = self.banks.get_mut(bank)?;
        if of.handing_over && !again {
            return None;
        }
        let found = of.done.remove(&of.due);
        of.handing_over = found.is_some();
        of.due += u64::from(found.is_some());
        if found.is_none() && of.in_progress == 0 && of.done.is_empty() {
            self.banks.remove(bank);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_handed_over_in_order_by_one_thread_at_a_time() {
        let bank = Bank::parse("b").expect("a good name");
        let mut order = AnswerOrder::default();
        let tickets: Vec<u64> = (0..3).map(|_| order.begin(&bank)).collect();
        assert_eq!(order.in_progress(&bank), 3);
        order.note_answer(&bank, tickets[1], 'b');
        assert_eq!(order.next(&bank, false), None, "the first is not done");
        order.note_answer(&bank, tickets[0], 'a');
        assert_eq!(order.next(&bank, false), Some('a'));
        order.note_answer(&bank, tickets[2], 'c');
        assert_eq!(order.next(&bank, false), None, "another thread hands over");
        assert_eq!(order.next(&bank, true), Some('b'));
        assert_eq!(order.next(&bank, true), Some('c'));
        assert_eq!(order.next(&bank, true), None);
        assert!(order.banks.is_empty(), "a bank without a question takes no room");
    }
}
