//! Decides which item is next: tokens take turns, then the banks of a token; a bank's oldest item comes first.
//!
//! In: items of lanes, with their size. Out: the next item, from the sender that had no turn for the longest time, and
//! of its banks likewise. If the queue is full, for the bank, for the token or in total, the item is returned. Between
//! two turns of a sender with waiting items, every other sender has at most one turn, however many items, connections
//! and banks it has. Without a token, each bank is a separate sender (decision 38).

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use types::model::Bank;

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairQueueLimits {
    /// Items of one lane.
    pub(super) of_bank: usize,
    /// Bytes of one lane's items.
    pub(super) of_bank_bytes: usize,
    /// Items in all; of one token, half of them.
    pub(super) all: usize,
    /// Bytes of all items; of one token, half of them.
    pub(super) all_bytes: usize,
}

/// Which limit an item would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueLimitScope {
    /// That of its bank.
    Bank,
    /// That of its token.
    Token,
    /// That of all.
    All,
}

/// The token and the bank of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// The name of the caller's token; `None` without one, as on Kafka and for the commands of this machine.
    pub token: Option<Arc<str>>,
    /// The bank.
    pub bank: Bank,
}

/// A sender that takes turns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum QueueTenant {
    Token(Arc<str>),
    Bank(Bank),
}

impl QueueKey {
    /// The sender that takes turns for these items.
    pub(super) fn sender(&self) -> QueueTenant {
        self.token.clone().map_or_else(|| QueueTenant::Bank(self.bank.clone()), QueueTenant::Token)
    }
}

/// Items that wait, by sender and bank.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    limits: FairQueueLimits,
    senders: HashMap<QueueTenant, TenantQueue<T>>,
    /// Every sender with an item, the next one first.
    turns: VecDeque<QueueTenant>,
    len: usize,
    bytes: usize,
}

#[derive(Debug)]
struct TenantQueue<T> {
    banks: HashMap<Bank, BankQueue<T>>,
    /// Every bank with an item, the next one first.
    turns: VecDeque<Bank>,
    len: usize,
    bytes: usize,
}

#[derive(Debug)]
struct BankQueue<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> TenantQueue<T> {
    fn lane(sender: &QueueTenant, bank: &Bank) -> QueueKey {
        let token = if let QueueTenant::Token(name) = sender { Some(Arc::clone(name)) } else { None };
        QueueKey { token, bank: bank.clone() }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn new(limits: FairQueueLimits) -> Self {
        Self { limits, senders: HashMap::new(), turns: VecDeque::new(), len: 0, bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is space for a small item of another sender.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.limits.all && self.bytes < self.limits.all_bytes
    }

    /// Whether at least half of the shared capacity is used.
    pub(super) fn is_half_full(&self) -> bool {
        2 * self.len >= self.limits.all || 2 * self.bytes >= self.limits.all_bytes
    }

    /// Whether `fits` is true for any bank with an item.
    pub(super) fn any(&self, fits: impl Fn(&Bank) -> bool) -> bool {
        self.senders.values().flat_map(|of| &of.turns).any(fits)
    }

    /// Adds an item after its lane's others; returns it if there is no space.
    pub(super) fn push(&mut self, lane: &QueueKey, item: T, bytes: usize) -> Result<(), (T, QueueLimitScope)> {
        let FairQueueLimits { of_bank, of_bank_bytes, all, all_bytes } = self.limits;
        let sender = lane.sender();
        let of = self.senders.get(&sender);
        let (senders, senders_bytes) = of.map_or((0, 0), |of| (of.len, of.bytes));
        let of = of.and_then(|of| of.banks.get(&lane.bank));
        let (held, held_bytes) = of.map_or((0, 0), |of| (of.items.len(), of.bytes));
        if held >= of_bank || held_bytes + bytes > of_bank_bytes {
            return Err((item, QueueLimitScope::Bank));
        }
        if lane.token.is_some() && (2 * senders >= all || 2 * (senders_bytes + bytes) > all_bytes) {
            return Err((item, QueueLimitScope::Token));
        }
        if self.len >= all || self.bytes + bytes > all_bytes {
            return Err((item, QueueLimitScope::All));
        }
        if senders == 0 {
            self.turns.push_back(sender.clone());
        }
        let new = || TenantQueue { banks: HashMap::new(), turns: VecDeque::new(), len: 0, bytes: 0 };
        let of_sender = self.senders.entry(sender).or_insert_with(new);
        if held == 0 {
            of_sender.turns.push_back(lane.bank.clone());
        }
        let new = || BankQueue { items: VecDeque::new(), bytes: 0 };
        let of = of_sender.banks.entry(lane.bank.clone()).or_insert_with(new);
        of.items.push_back((item, bytes));
        of.bytes += bytes;
        of_sender.len += 1;
        of_sender.bytes += bytes;
        self.len += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// The next item of a lane for which `may` is true. Afterwards its sender comes after every other sender, and its
    /// bank after every other bank of that sender.
    pub(super) fn pop(&mut self, mut may: impl FnMut(&QueueKey) -> bool) -> Option<(QueueKey, T)> {
        let senders = &self.senders;
        let (at, bank_at, lane) = self.turns.iter().enumerate().find_map(|(at, sender)| {
            let banks = senders.get(sender)?.turns.iter().enumerate();
            let mut lanes = banks.map(|(bank_at, bank)| (bank_at, TenantQueue::<T>::lane(sender, bank)));
            lanes.find(|(_, lane)| may(lane)).map(|(bank_at, lane)| (at, bank_at, lane))
        })?;
        let sender = self.turns.remove(at)?;
        let of_sender = self.senders.get_mut(&sender)?;
        of_sender.turns.remove(bank_at);
        let of = of_sender.banks.get_mut(&lane.bank)?;
        let (item, bytes) = of.items.pop_front()?;
        of.bytes -= bytes;
        of_sender.len -= 1;
        of_sender.bytes -= bytes;
        self.len -= 1;
        self.bytes -= bytes;
        if of.items.is_empty() {
            of_sender.banks.remove(&lane.bank);
        } else {
            of_sender.turns.push_back(lane.bank.clone());
        }
        if of_sender.len == 0 {
            self.senders.remove(&sender);
        } else {
            self.turns.push_back(sender);
        }
        Some((lane, item))
    }

    /// Takes out every item that fits, in order within each lane.
    pub(super) fn take(&mut self, mut fits: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for of_sender in self.senders.values_mut() {
            let before = taken.len();
            for of in of_sender.banks.values_mut() {
                if !of.items.iter().any(|(item, _)| fits(item)) {
                    continue;
                }
                for (item, bytes) in std::mem::take(&mut of.items) {
                    if fits(&item) {
                        of.bytes -= bytes;
                        of_sender.bytes -= bytes;
                        self.bytes -= bytes;
                        taken.push(item);
                    } else {
                        of.items.push_back((item, bytes));
                    }
                }
            }
            if taken.len() > before {
                of_sender.len -= taken.len() - before;
                of_sender.banks.retain(|_, of| !of.items.is_empty());
                let banks = &of_sender.banks;
                of_sender.turns.retain(|bank| banks.contains_key(bank));
            }
        }
        self.len -= taken.len();
        if !taken.is_empty() {
            self.senders.retain(|_, of| of.len > 0);
            let senders = &self.senders;
            self.turns.retain(|sender| senders.contains_key(sender));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDE: FairQueueLimits =
        FairQueueLimits { of_bank: 1_000, of_bank_bytes: 1_000, all: 10_000, all_bytes: 10_000 };

    fn bank(n: usize) -> QueueKey {
        QueueKey { token: None, bank: Bank::parse(&format!("bank-{n}")).expect("a good name") }
    }

    fn lane(token: &str, n: usize) -> QueueKey {
        QueueKey { token: Some(Arc::from(token)), ..bank(n) }
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
        let limits = FairQueueLimits { of_bank: 2, of_bank_bytes: 10, all: 3, all_bytes: 16 };
        let mut queue = FairQueue::new(limits);
        queue.push(&bank(0), 'a', 4).expect("room");
        assert_eq!(queue.push(&bank(0), 'b', 7), Err(('b', QueueLimitScope::Bank)), "too many bytes");
        queue.push(&bank(0), 'c', 4).expect("room");
        assert_eq!(queue.push(&bank(0), 'd', 0), Err(('d', QueueLimitScope::Bank)), "too many items");
        assert_eq!(queue.push(&bank(1), 'e', 9), Err(('e', QueueLimitScope::All)), "too many bytes in all");
        assert!(queue.has_room());
        queue.push(&bank(1), 'f', 1).expect("room");
        assert!(!queue.has_room() && queue.is_half_full());
        assert_eq!(queue.push(&bank(2), 'g', 0), Err(('g', QueueLimitScope::All)), "too many items in all");
        // A bank that is skipped keeps its turn.
        assert_eq!(queue.pop(|of| *of != bank(0)), Some((bank(1), 'f')));
        assert_eq!(queue.take(|item| *item == 'a'), ['a']);
        assert_eq!(queue.pop(|_| true), Some((bank(0), 'c')));
        assert_eq!((queue.pop(|_| true), queue.len(), queue.bytes), (None, 0, 0));
    }

    fn order(queue: &mut FairQueue<char>) -> String {
        std::iter::from_fn(|| queue.pop(|_| true)).map(|(_, item)| item).collect()
    }

    #[test]
    fn tokens_take_turns_however_many_items_and_banks_one_of_them_has() {
        let mut queue = FairQueue::new(WIDE);
        // One token asks for one bank a hundred times, and for a hundred banks; another asks for one of them twice.
        (0..100).for_each(|_| queue.push(&lane("many", 0), 'm', 1).expect("room"));
        (1..100).for_each(|n| queue.push(&lane("many", n), 'w', 1).expect("room"));
        (0..2).for_each(|_| queue.push(&lane("one", 0), 'o', 1).expect("room"));
        queue.push(&bank(7), 'k', 1).expect("room");
        let order = order(&mut queue);
        assert!(order.starts_with("mokwow"), "{order}");
        assert_eq!((order.len(), queue.len(), queue.bytes, queue.senders.len()), (202, 0, 0, 0));
    }

    #[test]
    fn a_tokens_banks_take_turns_and_one_that_is_passed_over_keeps_its_turn() {
        let mut queue = FairQueue::new(WIDE);
        (0..3).for_each(|_| queue.push(&lane("t", 0), 'a', 1).expect("room"));
        queue.push(&lane("t", 1), 'b', 1).expect("room");
        queue.push(&lane("u", 1), 'c', 1).expect("room");
        assert_eq!(queue.pop(|lane| lane.bank != bank(0).bank), Some((lane("t", 1), 'b')));
        assert!(queue.any(|of| *of == bank(0).bank));
        assert_eq!(queue.pop(|_| true), Some((lane("u", 1), 'c')));
        assert_eq!(order(&mut queue), "aaa");
    }

    #[test]
    fn a_token_leaves_half_of_the_places_to_others() {
        let mut queue = FairQueue::new(FairQueueLimits { of_bank: 2, of_bank_bytes: 99, all: 8, all_bytes: 99 });
        for n in 0..4 {
            queue.push(&lane("t", n), 'a', 1).expect("room");
        }
        assert_eq!(queue.push(&lane("t", 9), 'b', 1), Err(('b', QueueLimitScope::Token)));
        for n in 0..4 {
            queue.push(&lane("u", n), 'c', 1).expect("room");
        }
        assert_eq!(queue.push(&lane("v", 0), 'd', 1), Err(('d', QueueLimitScope::All)));
        assert_eq!(queue.take(|item| *item == 'a').len(), 4);
        assert_eq!(order(&mut queue), "cccc");
    }
}
