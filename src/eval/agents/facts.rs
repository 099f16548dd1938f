//! What a context is worth for a question about long turns.
//!
//! In: a conversation, a question, and what is quoted for it. Out: the share of its evidence turns that is touched, and
//! the share of its facts that is covered by what is quoted from them. A fact counts only if its evidence turns, read
//! whole, show it, because a sum or a judgement is not in any turn. Never judges the words of an answer.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    chats::{AgentChat, ChatQuestion},
    result::AgentQuote,
    stem_numbers::{StemNumbers, numbers},
};
use memory::language::token_count;

/// The share of a fact's weight that must be quoted, of the weight that its evidence turns hold.
const COVERED: f64 = 0.75;
/// The share of a fact's weight that its evidence turns must hold for it to count.
const SHOWN: f64 = 0.6;
/// A turn is touched if this many of its tokens are quoted, the line break after each quote included; a shorter turn
/// must be quoted whole.
const TOUCHED_TOKENS: usize = 6;
/// The tolerance when sums are compared.
const SLACK: f64 = 1e-9;

/// The words of a conversation, and how rare they are.
pub(super) struct ChatFacts {
    stems: StemNumbers,
    of_turn: Vec<BTreeSet<usize>>,
    numbers_of_turn: Vec<BTreeSet<String>>,
    tokens_of_turn: Vec<usize>,
    /// The weight of each stem.
    weight: Vec<f64>,
    /// The weight of a stem that no turn holds.
    unknown: f64,
}

/// The shares of what a question asks for that are quoted; `None` if it has no evidence turns, or no facts that count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct FactShares {
    /// Share of the evidence turns that are touched.
    pub(super) touched: Option<f64>,
    /// Share of the facts that are covered.
    pub(super) facts: Option<f64>,
}

/// A fact that the evidence turns show.
struct EvidenceFact {
    /// Those of its stems that the evidence turns hold.
    stems: BTreeSet<usize>,
    numbers: BTreeSet<String>,
}

impl ChatFacts {
    /// The words of a conversation. The fewer turns hold a stem, the more it weighs.
    pub(super) fn of(chat: &AgentChat) -> Self {
        let mut stems = StemNumbers::new();
        let of_turn: Vec<BTreeSet<usize>> = chat.turns.iter().map(|turn| stems.of(&turn.text)).collect();
        let all = chat.turns.len() as f64;
        let mut turns_with: Vec<f64> = Vec::new();
        for stem in of_turn.iter().flatten() {
            if turns_with.len() <= *stem {
                turns_with.resize(stem + 1, 0.0);
            }
            if let Some(turns) = turns_with.get_mut(*stem) {
                *turns += 1.0;
            }
        }
        Self {
            stems,
            of_turn,
            numbers_of_turn: chat.turns.iter().map(|turn| numbers(&turn.text)).collect(),
            tokens_of_turn: chat.turns.iter().map(|turn| token_count::count_tokens(&turn.text)).collect(),
            weight: turns_with.into_iter().map(|turns| (1.0 + all / turns).ln()).collect(),
            unknown: (1.0 + all).ln(),
        }
    }

    /// What the quoted passages are worth for a question.
    pub(super) fn judge(&mut self, question: &ChatQuestion, quoted: &[AgentQuote]) -> FactShares {
        let by_turn = by_turn(question, quoted);
        let touched = share(self.touched(question, quoted).into_iter());
        let (mut stems, mut figures) = (BTreeSet::new(), BTreeSet::new());
        for text in by_turn.values().flatten() {
            stems.extend(self.stems.of(text));
            figures.extend(numbers(text));
        }
        let facts = self.facts(question);
        let is_covered = |fact: &EvidenceFact| {
            fact.numbers.is_subset(&figures)
                && self.mass(fact.stems.intersection(&stems)) >= COVERED * self.mass(&fact.stems) - SLACK
        };
        FactShares { touched, facts: share(facts.iter().map(is_covered)) }
    }

    /// For each evidence turn of a question, whether the quoted passages touch it.
    pub(super) fn touched(&self, question: &ChatQuestion, quoted: &[AgentQuote]) -> Vec<bool> {
        let by_turn = by_turn(question, quoted);
        let is_touched = |turn: &usize| {
            let Some(texts) = by_turn.get(turn) else { return false };
            let quoted: usize = texts.iter().map(|text| token_count::count_tokens(text) + 1).sum();
            quoted >= TOUCHED_TOKENS.min(self.tokens_of_turn.get(*turn).copied().unwrap_or_default())
        };
        question.evidence.iter().map(is_touched).collect()
    }

    /// The facts of a question that its evidence turns show.
    fn facts(&mut self, question: &ChatQuestion) -> Vec<EvidenceFact> {
        let turns = || question.evidence.iter();
        let held: BTreeSet<usize> = turns().filter_map(|turn| self.of_turn.get(*turn)).flatten().copied().collect();
        let figures: BTreeSet<String> =
            turns().filter_map(|turn| self.numbers_of_turn.get(*turn)).flatten().cloned().collect();
        let mut facts = Vec::new();
        let mut seen = BTreeSet::new();
        for text in question.facts.iter().filter(|text| seen.insert(text.as_str())) {
            let (all, numbers) = (self.stems.of(text), numbers(text));
            if all.is_empty() && numbers.is_empty() {
                continue;
            }
            let stems: BTreeSet<usize> = all.intersection(&held).copied().collect();
            if numbers.is_subset(&figures) && self.mass(&stems) >= SHOWN * self.mass(&all) {
                facts.push(EvidenceFact { stems, numbers });
            }
        }
        facts
    }

    fn mass<'s>(&self, stems: impl IntoIterator<Item = &'s usize>) -> f64 {
        stems.into_iter().map(|stem| self.weight.get(*stem).copied().unwrap_or(self.unknown)).sum()
    }
}

/// What is quoted of each evidence turn.
fn by_turn<'q>(question: &ChatQuestion, quoted: &'q [AgentQuote]) -> BTreeMap<usize, Vec<&'q str>> {
    let mut by_turn: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for quote in quoted.iter().filter(|quote| question.evidence.contains(&quote.turn)) {
        by_turn.entry(quote.turn).or_default().push(&quote.text);
    }
    by_turn
}

fn share(met: impl Iterator<Item = bool>) -> Option<f64> {
    crate::score::share(&met.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::chats::ChatTurn;

    /// Four turns; "kettle" occurs in one of them, "copper" in two.
    fn chat() -> AgentChat {
        let texts = [
            "I bought a copper kettle for 40 euros on March 3 and I use it daily",
            "Nice.",
            "Polish copper with lemon",
            "The harbour opens at dawn",
        ];
        let turn = |text: &&str| ChatTurn {
            session: 0,
            role: "user".to_owned(),
            day: jiff::civil::date(2024, 3, 3),
            text: (*text).to_owned(),
            captions: Vec::new(),
        };
        AgentChat { name: "1".to_owned(), turns: texts.iter().map(turn).collect(), questions: Vec::new() }
    }

    fn question(evidence: &[usize], facts: &[&str]) -> ChatQuestion {
        ChatQuestion {
            kind: "information_extraction".to_owned(),
            text: "What did I buy?".to_owned(),
            asker: None,
            evidence: evidence.to_vec(),
            facts: facts.iter().map(|f| (*f).to_owned()).collect(),
            before: 4,
            answerable: true,
        }
    }

    fn judge(question: &ChatQuestion, quoted: &[(usize, &str)]) -> (Option<f64>, Option<f64>) {
        let quoted: Vec<_> =
            quoted.iter().map(|(turn, text)| AgentQuote { turn: *turn, text: (*text).to_owned() }).collect();
        let FactShares { touched, facts } = ChatFacts::of(&chat()).judge(question, &quoted);
        (touched, facts)
    }

    #[test]
    fn a_turn_is_touched_by_six_tokens_or_by_all_of_a_shorter_one() {
        let asked = question(&[0, 1], &[]);
        assert_eq!(judge(&asked, &[]), (Some(0.0), None));
        assert_eq!(judge(&asked, &[(1, "Nice.")]), (Some(0.5), None), "two tokens are all of it");
        assert_eq!(judge(&asked, &[(0, "copper kettle")]), (Some(0.0), None));
        assert_eq!(judge(&asked, &[(0, "I bought a copper kettle for 40 euros")]), (Some(0.5), None));
    }

    #[test]
    fn a_fact_is_covered_by_its_numbers_and_three_quarters_of_its_weight() {
        // kettle weighs ln 5 and copper ln 3, so kettle alone has a share of 0.594.
        let asked = question(&[0], &["a copper kettle"]);
        assert_eq!(judge(&asked, &[(0, "kettle")]).1, Some(0.0));
        assert_eq!(judge(&asked, &[(0, "kettle, copper")]).1, Some(1.0));
        assert_eq!(judge(&asked, &[(2, "kettle, copper")]).1, Some(0.0), "quoted of another turn");
        let priced = question(&[0], &["kettle for 40", "bought on 3 March", "bought on 3 March"]);
        assert_eq!(judge(&priced, &[(0, "I bought a kettle")]).1, Some(0.0), "no number");
        assert_eq!(judge(&priced, &[(0, "a kettle for 40")]).1, Some(0.5));
    }

    #[test]
    fn facts_that_the_evidence_does_not_show_do_not_count() {
        // The turns do not hold 80, and hold only a third of "kettle harbour dawn".
        let asked = question(&[0], &["kettle for 80", "kettle harbour dawn", "copper kettle"]);
        assert_eq!(judge(&asked, &[(0, "copper kettle")]).1, Some(1.0));
        assert_eq!(judge(&question(&[0], &["kettle for 80"]), &[(0, "kettle for 80")]).1, None);
    }
}
