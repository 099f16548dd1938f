//! Decides which question is next: banks take turns, and within a bank the oldest comes first.
//!
//! In: items of banks, with their size. Out: the next item, from the bank whose last turn is the longest ago. If the
//! queue is full, for the bank or in total, the item is returned. Between two turns of a bank that has items waiting,
//! every other bank has at most one turn, however many items it has.

use std::collections::{HashMap, VecDeque};

use nouns::model::Bank;

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Items of one bank.
    pub(super) of_bank: usize,
    /// Bytes of one bank's items.
    pub(super) of_bank_bytes: usize,
    /// Items of all banks.
    pub(super) all: usize,
    /// Bytes of all items.
    pub(super) all_bytes: usize,
}

/// Which limit an item would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// That of its bank.
    Bank,
    /// That of all banks.
    All,
}

/// Items that wait, by bank.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    limits: Limits,
    banks: HashMap<Bank, OfBank<T>>,
    /// Every bank with an item, the next one first.
    turns: VecDeque<Bank>,
    len: usize,
    bytes: usize,
}

#[derive(Debug)]
struct OfBank<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> FairQueue<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, banks: HashMap::new(), turns: VecDeque::new(), len: 0, bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is space for a small item of another bank.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.limits.all && self.bytes < self.limits.all_bytes
    }

    /// Whether at least half of the places of all banks are taken.
    pub(super) fn is_half_full(&self) -> bool {
        2 * self.len >= self.limits.all || 2 * self.bytes >= self.limits.all_bytes
    }

    /// Whether any bank with an item fits.
    pub(super) fn any(&self, fits: impl Fn(&Bank) -> bool) -> bool {
        self.turns.iter().any(fits)
    }

    /// Adds an item after its bank's others; returns it if there is no space.
    pub(super) fn push(&mut self, bank: &Bank, item: T, bytes: usize) -> Result<(), (T, Full)> {
        let Limits { of_bank, of_bank_bytes, all, all_bytes } = self.limits;
        let (held, held_bytes) = self.banks.get(bank).map_or((0, 0), |of| (of.items.len(), of.bytes));
        if held >= of_bank || held_bytes + bytes > of_bank_bytes {
            return Err((item, Full::Bank));
        }
        if self.len >= all || self.bytes + bytes > all_bytes {
            return Err((item, Full::All));
        }
        if held == 0 {
            self.turns.push_back(bank.clone());
        }
        let of = self.banks.entry(bank.clone()).or_insert_with(|| OfBank { items: VecDeque::new(), bytes: 0 });
        of.items.push_back((item, bytes));
        of.bytes += bytes;
        self.len += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// The next item of a bank for which `may` is true; that bank's next turn comes after every other bank's.
    pub(super) fn pop(&mut self, may: impl FnMut(&Bank) -> bool) -> Option<(Bank, T)> {
        let at = self.turns.iter().position(may)?;
        let bank = self.turns.remove(at)?;
        let of = self.banks.get_mut(&bank)?;
        let (item, bytes) = of.items.pop_front()?;
        of.bytes -= bytes;
        self.len -= 1;
        self.bytes -= bytes;
        if of.items.is_empty() {
            self.banks.remove(&bank);
        } else {
            self.turns.push_back(bank.clone());
        }
        Some((bank, item))
    }

    /// Takes out every item that fits, those of a bank in their order.
    pub(super) fn take(&mut self, mut fits: impl FnMut(&T) -> bool) -> Vec<(Bank, T)> {
        let mut taken = Vec::new();
        for (bank, of) in &mut self.banks {
            if !of.items.iter().any(|(item, _)| fits(item)) {
                continue;
            }
            for (item, bytes) in std::mem::take(&mut of.items) {
                if fits(&item) {
                    of.bytes -= bytes;
                    self.len -= 1;
                    self.bytes -= bytes;
                    taken.push((bank.clone(), item));
                } else {
                    of.items.push_back((item, bytes));
                }
            }
        }
        if !taken.is_empty() {
            self.banks.retain(|_, of| !of.items.is_empty());
            let banks = &self.banks;
            self.turns.retain(|bank| banks.contains_key(bank));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDE: Limits = Limits { of_bank: 1_000, of_bank_bytes: 1_000, all: 10_000, all_bytes: 10_000 };

    fn bank(n: usize) -> Bank {
        Bank::parse(&format!("bank-{n}")).expect("a good name")
    }

    proptest! {
        /// Between an arrival and its turn, each other bank has at most as many turns as the bank
        /// itself has items before it, and one more.
        #[test]
        fn a_bank_waits_behind_at_most_one_item_of_another_for_each_of_its_own(
            pushed in prop::collection::vec((0usize..6, prop::bool::weighted(0.3)), 1..200)
        ) {
            let mut queue = FairQueue::new(WIDE);
            let (mut popped, mut waiting): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), vec![0; 6]);
            let mut arrivals = Vec::new();
            let pop = |queue: &mut FairQueue<(usize, usize)>, popped: &mut Vec<(usize, usize)>, waiting: &mut Vec<usize>| {
                if let Some((_, item)) = queue.pop(|_| true) {
                    waiting[item.0] -= 1;
                    popped.push(item);
                }
            };
            for (n, (of, take)) in pushed.iter().enumerate() {
                queue.push(&bank(*of), (*of, n), 1).expect("there is room");
                arrivals.push((*of, n, waiting[*of], popped.len()));
                waiting[*of] += 1;
                if *take {
                    pop(&mut queue, &mut popped, &mut waiting);
                }
            }
            while queue.len() > 0 {
                pop(&mut queue, &mut popped, &mut waiting);
            }
            prop_assert_eq!(popped.len(), pushed.len());
            for (of, n, before, from) in arrivals {
                let turn = popped.iter().position(|item| *item == (of, n)).expect("everything is popped");
                for other in (0..6).filter(|other| *other != of) {
                    let turns = popped[from..turn].iter().filter(|(bank, _)| *bank == other).count();
                    prop_assert!(turns <= before + 1, "bank {of} waited behind {turns} of bank {other}");
                }
                let own = popped[..turn].iter().filter(|(bank, item)| *bank == of && *item > n).count();
                prop_assert_eq!(own, 0, "in order within the bank");
            }
        }
    }

    #[test]
    fn a_full_bank_leaves_room_for_others() {
        let limits = Limits { of_bank: 2, of_bank_bytes: 10, all: 3, all_bytes: 16 };
        let mut queue = FairQueue::new(limits);
        queue.push(&bank(0), 'a', 4).expect("room");
        assert_eq!(queue.push(&bank(0), 'b', 7), Err(('b', Full::Bank)), "too many bytes");
        queue.push(&bank(0), 'c', 4).expect("room");
        assert_eq!(queue.push(&bank(0), 'd', 0), Err(('d', Full::Bank)), "too many items");
        assert_eq!(queue.push(&bank(1), 'e', 9), Err(('e', Full::All)), "too many bytes in all");
        assert!(queue.has_room());
        queue.push(&bank(1), 'f', 1).expect("room");
        assert!(!queue.has_room() && queue.is_half_full());
        assert_eq!(queue.push(&bank(2), 'g', 0), Err(('g', Full::All)), "too many items in all");
        // A bank that is passed over keeps its place.
        assert_eq!(queue.pop(|of| *of != bank(0)), Some((bank(1), 'f')));
        assert_eq!(queue.take(|item| *item == 'a'), [(bank(0), 'a')]);
        assert_eq!(queue.pop(|_| true), Some((bank(0), 'c')));
        assert_eq!((queue.pop(|_| true), queue.len(), queue.bytes), (None, 0, 0));
    }
}
