//! A synthetic dialogue.
//!
//! In: a seed, a number of turns and of banks. Out: the turns; the same seed gives the same turns. Their lengths are
//! like those of messages between people: one to three sentences of five to fifteen words. The words are English and as
//! unevenly frequent as in real language. There are names, places, times, questions, and sessions of a few dozen turns
//! on different days.

use sources::{SourceBatch, SourceError, SourceProgress, TurnSource};
use types::model::{Bank, EventTime, Turn, TurnEvent};

/// English words, one per line, the most frequent first.
const WORDS: &str = include_str!("words.txt");
const NAMES: [&str; 24] = [
    "Ann", "Ben", "Clara", "David", "Elena", "Frank", "Grace", "Hugo", "Ines", "Jack", "Karin", "Leo", "Maria", "Nils",
    "Olga", "Paul", "Rosa", "Sam", "Tara", "Uwe", "Vera", "Will", "Yara", "Zoe",
];
const PLACES: [&str; 12] = [
    "Lisbon", "Berlin", "Boston", "Kyoto", "Madrid", "Oslo", "Prague", "Rome", "Seattle", "Toronto", "Vienna", "Zurich",
];
const TIMES: [&str; 10] = [
    "yesterday",
    "last week",
    "tomorrow",
    "next month",
    "on 5 May",
    "two days ago",
    "last summer",
    "in March",
    "tonight",
    "next Friday",
];
const OPENERS: [&str; 12] =
    ["I", "We", "My sister", "They", "You", "He", "She", "Our team", "The kids", "My boss", "Everyone", "Somebody"];
const QUESTIONS: [&str; 8] = [
    "When did",
    "What about",
    "Do you remember",
    "Who told you about",
    "Where is",
    "How was",
    "Why did",
    "Have you seen",
];
const SMALL_WORDS: [&str; 16] =
    ["the", "a", "to", "of", "and", "with", "for", "about", "my", "in", "that", "was", "is", "from", "on", "really"];
/// 1 January 2020.
const FIRST_MS: i64 = 1_577_836_800_000;
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Turns that are made as they are read.
pub(super) struct SyntheticDialogue {
    seed: u64,
    dice: fastrand::Rng,
    /// The most frequent ones first.
    words: Vec<&'static str>,
    turns: u64,
    banks: u64,
    made: u64,
    /// The bank of the last turn.
    bank: u64,
    people: Vec<&'static str>,
    now_ms: i64,
    left_in_session: u32,
}

impl SyntheticDialogue {
    /// A dialogue of `turns`, divided into `banks`.
    pub(super) fn new(seed: u64, turns: u64, banks: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut words: Vec<&str> = WORDS.lines().collect();
        dice.shuffle(&mut words);
        let (bank, people) = (u64::MAX, Vec::new());
        Self { seed, dice, words, turns, banks, made: 0, bank, people, now_ms: FIRST_MS, left_in_session: 0 }
    }

    fn turn(&mut self) -> Option<Turn> {
        let bank = (u128::from(self.made) * u128::from(self.banks) / u128::from(self.turns.max(1))) as u64;
        if bank != self.bank {
            self.bank = bank;
            let mut names = NAMES;
            self.dice.shuffle(&mut names);
            let people = self.dice.usize(2..=4);
            self.people = names.into_iter().take(people).collect();
            (self.now_ms, self.left_in_session) = (FIRST_MS, 0);
        }
        if self.left_in_session == 0 {
            self.left_in_session = self.dice.u32(15..45);
            self.now_ms += self.dice.i64(1..=3) * DAY_MS + self.dice.i64(0..600) * MINUTE_MS;
        }
        self.left_in_session -= 1;
        self.now_ms += self.dice.i64(10_000..90_000);
        let id = self.made.to_string();
        self.made += 1;
        let speaker = one_of(&mut self.dice, &self.people.clone());
        let text = self.text();
        let time = EventTime::new(self.now_ms, 0).ok()?;
        Some(Turn::new(Bank::parse(&format!("bench/{bank}")).ok()?, &id, speaker, &text, time))
    }

    fn text(&mut self) -> String {
        let sentences = [1, 1, 1, 1, 2, 2, 2, 3, 3][self.dice.usize(0..9)];
        let asks = self.dice.u8(0..100) < 15;
        let sentence = |at| self.sentence(asks && at + 1 == sentences);
        (0..sentences).map(sentence).collect::<Vec<_>>().join(" ")
    }

    fn sentence(&mut self, asks: bool) -> String {
        let mut words = vec![one_of(&mut self.dice, if asks { &QUESTIONS } else { &OPENERS })];
        for _ in 0..self.dice.usize(3..=7) {
            if self.dice.bool() {
                words.push(one_of(&mut self.dice, &SMALL_WORDS));
            }
            // The n-th word is about n times as rare as the first.
            let rank = (self.words.len().max(1) as f64).powf(self.dice.f64()) as usize - 1;
            words.extend(self.words.get(rank).copied());
        }
        for (often, before, list) in [(15, "with", &NAMES[..]), (10, "in", &PLACES), (15, "", &TIMES)] {
            if self.dice.u8(0..100) < often {
                words.extend([before, one_of(&mut self.dice, list)].into_iter().filter(|word| !word.is_empty()));
            }
        }
        words.join(" ") + if asks { "?" } else { "." }
    }
}

impl TurnSource for SyntheticDialogue {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let most = limit.max(1).min(usize::try_from(self.turns - self.made).unwrap_or(usize::MAX));
        let events: Vec<TurnEvent> = (0..most).map_while(|_| self.turn().map(TurnEvent::from)).collect();
        Ok(Some(SourceBatch { events, rejects: Vec::new() }).filter(|batch| !batch.events.is_empty()))
    }

    fn describe(&self) -> String {
        format!("synthetic dialogue, seed {}", self.seed)
    }

    fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.made, total: Some(self.turns), unit: "turns" }
    }
}

fn one_of(dice: &mut fastrand::Rng, list: &[&'static str]) -> &'static str {
    dice.choice(list).copied().unwrap_or_default()
}
