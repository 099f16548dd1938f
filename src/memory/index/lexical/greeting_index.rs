//! Who is meant by the names by which speakers greet each other.
//!
//! In: the parts of a bank, each with its session, its speaker and the name by which it greets somebody. They come in
//! the order of sessions or, in a large bank, as they are added and removed. Out: names, each with the speaker whom it
//! means. In a session of two, a greeting means the one who does not say it. The result depends on the set of parts
//! only: a deleted greeting leaves nothing behind.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::BuildHasherDefault,
};

use crate::index::id_hasher::IdHasher;
use crate::index::{
    memory_footprint::{map_bytes, tree_bytes},
    units::association_score::NameKey,
};

/// The least number of greetings from which the meaning of a name is learned.
const MIN: u64 = 3;
/// The least share of a name's greetings that must mean the same speaker, in fifths: four in five.
const OF_FIVE: u64 = 4;

/// How often names mean speakers.
#[derive(Default)]
struct NameMeanings(BTreeMap<(NameKey, NameKey), u64>);

impl NameMeanings {
    /// Adds greetings by a name in a session of these two.
    fn add(&mut self, name: NameKey, greeter: NameKey, [a, b]: [NameKey; 2], greetings: u64) {
        *self.0.entry((name, if greeter == a { b } else { a })).or_default() += greetings;
    }

    /// The names with the speakers whom they mean.
    fn speakers_meant(&self) -> Vec<(NameKey, NameKey)> {
        let mut of_name: BTreeMap<NameKey, u64> = BTreeMap::new();
        self.0.iter().for_each(|((name, _), count)| *of_name.entry(*name).or_default() += count);
        let means = |((name, _), count): &(&(NameKey, NameKey), &u64)| {
            **count >= MIN && 5 * **count >= OF_FIVE * of_name.get(name).copied().unwrap_or_default()
        };
        self.0.iter().filter(means).map(|(known, _)| *known).collect()
    }
}

/// The greetings of a bank, in the order of sessions.
#[derive(Default)]
pub(in crate::index) struct BankGreetings {
    session: Option<u64>,
    /// Who speaks in the session: three at most, because more make no difference.
    speakers: Vec<NameKey>,
    /// The names by which somebody is greeted in it, each with the greeter.
    greeted: Vec<(NameKey, NameKey)>,
    meanings: NameMeanings,
}

impl BankGreetings {
    /// Adds a part.
    pub(in crate::index) fn add(&mut self, session: u64, speaker: NameKey, greeted: Option<NameKey>) {
        if self.session != Some(session) {
            self.end_session();
            self.session = Some(session);
        }
        if self.speakers.len() < 3 && !self.speakers.contains(&speaker) {
            self.speakers.push(speaker);
        }
        self.greeted.extend(greeted.map(|name| (name, speaker)));
    }

    fn end_session(&mut self) {
        if let [a, b] = self.speakers[..] {
            for (name, greeter) in &self.greeted {
                self.meanings.add(*name, *greeter, [a, b], 1);
            }
        }
        self.speakers.clear();
        self.greeted.clear();
    }

    /// The names with the speakers whom they mean.
    pub(in crate::index) fn into_meanings(mut self) -> Vec<(NameKey, NameKey)> {
        self.end_session();
        self.meanings.speakers_meant()
    }
}

type NameKeyMap<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// The greetings of a large bank.
#[derive(Debug, Default)]
pub(in crate::index) struct GreetingPostings {
    /// By name, how often somebody greets by it, by session and greeter.
    of_name: NameKeyMap<BTreeMap<(u64, NameKey), u64>>,
    /// By session, in how many parts each speaker speaks.
    speakers: NameKeyMap<BTreeMap<NameKey, u64>>,
}

impl GreetingPostings {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let names = map_bytes::<NameKey, BTreeMap<(u64, NameKey), u64>>(self.of_name.capacity());
        let sessions = map_bytes::<u64, BTreeMap<NameKey, u64>>(self.speakers.capacity());
        let greetings = self.of_name.values().map(|of| tree_bytes::<(u64, NameKey), u64>(of.len())).sum::<usize>();
        let speakers = self.speakers.values().map(|of| tree_bytes::<NameKey, u64>(of.len())).sum::<usize>();
        names + sessions + greetings + speakers
    }

    /// Adds a part.
    pub(in crate::index) fn insert(&mut self, session: u64, speaker: NameKey, greeted: Option<NameKey>) {
        *self.speakers.entry(session).or_default().entry(speaker).or_default() += 1;
        if let Some(name) = greeted {
            *self.of_name.entry(name).or_default().entry((session, speaker)).or_default() += 1;
        }
    }

    /// Removes a part that was added.
    pub(in crate::index) fn delete(&mut self, session: u64, speaker: NameKey, greeted: Option<NameKey>) {
        one_less(&mut self.speakers, session, speaker);
        if let Some(name) = greeted {
            one_less(&mut self.of_name, name, (session, speaker));
        }
    }

    /// Whom these names mean.
    pub(in crate::index) fn meanings(&self, names: &[NameKey]) -> Vec<(NameKey, NameKey)> {
        let mut meanings = NameMeanings::default();
        for name in names.iter().collect::<BTreeSet<_>>() {
            for ((session, greeter), greetings) in self.of_name.get(name).into_iter().flatten() {
                let mut speakers = self.speakers.get(session).into_iter().flat_map(BTreeMap::keys);
                if let (Some(a), Some(b), None) = (speakers.next(), speakers.next(), speakers.next()) {
                    meanings.add(*name, *greeter, [*a, *b], *greetings);
                }
            }
        }
        meanings.speakers_meant()
    }

    /// All entries, in order.
    #[cfg(test)]
    pub(in crate::index) fn listed(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let of_name: BTreeMap<_, _> = self.of_name.iter().map(|(name, of)| (*name, of.clone())).collect();
        let speakers: BTreeMap<_, _> = self.speakers.iter().map(|(session, of)| (*session, of.clone())).collect();
        (of_name, speakers)
    }
}

/// Lowers a count by one, and removes it at zero.
fn one_less<K: Ord>(counts: &mut NameKeyMap<BTreeMap<K, u64>>, of: u64, key: K) {
    let Some(inner) = counts.get_mut(&of) else { return };
    if let Some(count) = inner.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            inner.remove(&key);
        }
    }
    if inner.is_empty() {
        counts.remove(&of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: NameKey = 1;
    const BEN: NameKey = 2;
    const CLEO: NameKey = 3;
    const KATE: NameKey = 9;

    fn check(parts: &[(u64, NameKey, Option<NameKey>)], expected: &[(NameKey, NameKey)]) {
        let mut greetings = BankGreetings::default();
        parts.iter().for_each(|&(session, speaker, greeted)| greetings.add(session, speaker, greeted));
        assert_eq!(greetings.into_meanings(), expected);
        let mut postings = GreetingPostings::default();
        // Other parts are added, also in between, and removed again.
        let gone = [(1, CLEO, Some(KATE)), (2, BEN, Some(KATE)), (6, CLEO, None)];
        for &(session, speaker, greeted) in gone.iter().chain(parts) {
            postings.insert(session, speaker, greeted);
        }
        for (session, speaker, greeted) in gone {
            postings.delete(session, speaker, greeted);
        }
        assert_eq!(postings.meanings(&[KATE, CLEO, KATE]), expected);
    }

    #[test]
    fn a_name_means_the_one_who_is_greeted_by_it_in_sessions_of_two() {
        let greets = |session| [(session, ADA, None), (session, BEN, Some(KATE))];
        check(&[greets(1), greets(2)].concat(), &[]);
        check(&[greets(1), greets(2), greets(3)].concat(), &[(KATE, ADA)]);
        let crowd = [(4, ADA, Some(KATE)), (4, BEN, Some(KATE)), (4, CLEO, Some(KATE))];
        check(&crowd, &[]);
        let back = [(5, BEN, None), (5, ADA, Some(KATE))];
        check(&[&greets(1)[..], &greets(2), &greets(3), &back].concat(), &[]);
        check(&[&greets(1)[..], &greets(2), &greets(3), &greets(4), &back].concat(), &[(KATE, ADA)]);
    }
}
