//! Delivered or not, and what that adds up to.
//!
//! In: what a context quotes, and the turns that hold a question's evidence. Out: which of
//! them were delivered, and means over questions. A turn is delivered when a unit of the
//! context names it as a source and the words which that unit quotes of the turn hold every
//! sentence of the turn that has a content word, and every caption; and so does the text of
//! the context itself. A unit in a language model's words quotes nothing: it delivers the turns
//! that it names, as far as the model can be believed, where the context holds its words. Texts are compared without regard to case, white space and resolved
//! dates in square brackets.

use std::collections::BTreeMap;

use super::{
    generated_answer::Spoken,
    result::{BySecondRound, Figures, QuestionResult},
};
use crate::{
    language::{
        sentences::{has_content, sentences},
        shared::named,
    },
    model::EvidenceUnit,
};

/// What of a turn a context must hold for the turn to count as delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// The sentences of a turn that have a content word, and its captions.
    pub(crate) fn of(text: &str, captions: &[&str]) -> Self {
        let line = one_line(text);
        let said = sentences(&line).into_iter().filter_map(|r| line.get(r)).filter(|s| has_content(s, 1));
        Self(said.chain(captions.iter().copied()).map(normalised).filter(|s| !s.is_empty()).collect())
    }

    /// Whether these words hold all of it.
    fn is_in(&self, words: &Comparable) -> bool {
        self.0.iter().all(|s| words.0.contains(s.as_str()))
    }
}

/// A text in the form in which it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Comparable(String);

impl Comparable {
    /// The text's.
    pub(crate) fn of(text: &str) -> Self {
        Self(normalised(text))
    }

    fn holds(&self, words: &str) -> bool {
        self.0.contains(&normalised(words))
    }
}

/// What a context shows of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown<'a> {
    /// The turns that it names as sources.
    pub(crate) sources: &'a [String],
    /// The words that it quotes, by turn.
    pub(crate) quoted: Vec<(&'a str, &'a str)>,
    /// What it says, where that is nobody's words.
    pub(crate) restated: Option<&'a str>,
}

impl<'a> From<&'a EvidenceUnit> for Shown<'a> {
    fn from(unit: &'a EvidenceUnit) -> Self {
        let quoted = unit.excerpts.iter().map(|e| (e.turn.as_str(), e.text.as_str())).collect();
        let restated = match unit.excerpts.as_slice() {
            [only] if only.text == unit.restatement => Some(unit.restatement.as_str()),
            _ => None,
        };
        Self { sources: &unit.sources, quoted, restated }
    }
}

/// Whether one of these units delivers the turn, and the context that was made of them
/// really holds what the unit says it quotes.
pub(crate) fn delivered(turn: &str, wanted: &Wanted, units: &[Shown<'_>], context: &Comparable) -> bool {
    let named = || units.iter().filter(|u| u.sources.iter().any(|s| s == turn));
    if named().filter_map(|u| u.restated).any(|words| context.holds(words)) {
        return true;
    }
    let quotes = named().any(|u| {
        let quoted: Vec<&str> = u.quoted.iter().filter(|(t, _)| *t == turn).map(|(_, text)| *text).collect();
        !quoted.is_empty() && wanted.is_in(&Comparable::of(&quoted.join(" ")))
    });
    quotes && wanted.is_in(context)
}

/// The text as it is compared: lower case, single spaces, no resolved dates.
fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            // A resolved date has no name and colon in front of it, as what was shared has.
            Some((inside, tail)) if !inside.contains(['[', '\n']) && named(&format!("[{inside}]")).is_none() => {
                out.truncate(out.trim_end().len());
                rest = tail;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    one_line(&out).to_lowercase()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One question's figures, whoever retrieved for it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Scored {
    /// Share of the evidence turns delivered; absent when none are known.
    pub(crate) recall: Option<f64>,
    /// Tokens of the context.
    pub(crate) tokens: usize,
    /// Units in it.
    pub(crate) units: usize,
    /// What only recollection has.
    pub(crate) recollected: Option<Recollected>,
    /// The marks of an answer in words.
    pub(crate) marks: Marks,
}

/// The marks of an answer in words; absent where none was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Marks {
    f1: Option<f64>,
    bleu1: Option<f64>,
    correct: Option<bool>,
}

impl From<&Spoken> for Marks {
    fn from(spoken: &Spoken) -> Self {
        Self { f1: spoken.f1, bleu1: spoken.bleu1, correct: spoken.correct }
    }
}

/// What only recollection has.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Recollected {
    pub(crate) first_hop_recall: Option<f64>,
    pub(crate) first_hop_tokens: usize,
    pub(crate) second_round: bool,
    pub(crate) sufficiency: f64,
}

impl From<&QuestionResult> for Scored {
    fn from(q: &QuestionResult) -> Self {
        Self {
            recall: q.recall(),
            tokens: q.context_tokens,
            units: q.answer.units.len(),
            recollected: Some(Recollected {
                first_hop_recall: q.first_hop_recall(),
                first_hop_tokens: q.first_hop_tokens,
                second_round: q.second_round,
                sufficiency: q.answer.sufficiency,
            }),
            marks: q.spoken.as_ref().map(Marks::from).unwrap_or_default(),
        }
    }
}

/// Means over questions.
pub(crate) fn figures<'s>(scored: impl IntoIterator<Item = &'s Scored>) -> Figures {
    let all: Vec<&Scored> = scored.into_iter().collect();
    let recollected: Vec<Recollected> = all.iter().filter_map(|s| s.recollected).collect();
    let recalls: Vec<f64> = all.iter().filter_map(|s| s.recall).collect();
    let first: Vec<f64> = recollected.iter().filter_map(|r| r.first_hop_recall).collect();
    Figures {
        questions: all.len() as u64,
        scored: recalls.len() as u64,
        evidence_recall: mean(recalls.iter().copied()),
        full_evidence: mean(recalls.iter().map(|r| full(*r))),
        context_tokens: mean(all.iter().map(|s| s.tokens as f64)),
        units: mean(all.iter().map(|s| s.units as f64)),
        first_hop_recall: mean(first.iter().copied()),
        first_hop_full_evidence: mean(first.iter().map(|r| full(*r))),
        first_hop_tokens: mean(recollected.iter().map(|r| r.first_hop_tokens as f64)),
        second_round_rate: mean(recollected.iter().map(|r| f64::from(u8::from(r.second_round)))),
        sufficiency: mean(recollected.iter().map(|r| r.sufficiency)),
        f1: mean(all.iter().filter_map(|s| s.marks.f1)),
        bleu1: mean(all.iter().filter_map(|s| s.marks.bleu1)),
        judge_accuracy: mean(all.iter().filter_map(|s| s.marks.correct).map(|c| f64::from(u8::from(c)))),
    }
}

/// A share of turns is a whole only when it is all of them.
fn full(recall: f64) -> f64 {
    f64::from(u8::from(recall >= 1.0))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u64), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// Figures by a key.
pub(crate) fn figures_by<'s, 'k>(scored: impl IntoIterator<Item = (&'k str, &'s Scored)>) -> BTreeMap<String, Figures> {
    let mut groups: BTreeMap<&str, Vec<&Scored>> = BTreeMap::new();
    for (key, one) in scored {
        groups.entry(key).or_default().push(one);
    }
    groups.into_iter().map(|(key, group)| (key.to_owned(), figures(group))).collect()
}

/// Figures by whether a second round ran.
pub(crate) fn by_second_round(scored: &[&Scored]) -> BySecondRound {
    let of =
        |ran: bool| figures(scored.iter().copied().filter(|s| s.recollected.is_some_and(|r| r.second_round == ran)));
    BySecondRound { ran: of(true), stopped: of(false) }
}

/// The chance that a figure of `high` is greater than one of `low`, ties counted half: the
/// area under the curve of Mann and Whitney. Absent when one of them is empty.
#[must_use]
pub fn auc(high: &[f64], low: &[f64]) -> Option<f64> {
    if high.is_empty() || low.is_empty() {
        return None;
    }
    let mut sorted = low.to_vec();
    sorted.sort_by(f64::total_cmp);
    let wins: f64 = high
        .iter()
        .map(|h| {
            let below = sorted.partition_point(|l| l < h);
            let equal = sorted.partition_point(|l| l <= h) - below;
            below as f64 + equal as f64 / 2.0
        })
        .sum();
    Some(wins / (high.len() as f64 * low.len() as f64))
}

/// The least value that at least this share of the values do not exceed; 0 of none.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_by_hand() {
        // Pairs: 0.9 beats both, 0.5 beats 0.2 and ties with 0.5: 3.5 of 4.
        assert_eq!(auc(&[0.9, 0.5], &[0.5, 0.2]), Some(0.875));
        assert_eq!(auc(&[0.1], &[0.2]), Some(0.0));
        assert_eq!(auc(&[0.3, 0.3], &[0.3]), Some(0.5));
        assert_eq!(auc(&[], &[0.3]), None);
    }

    #[test]
    fn percentiles_by_hand() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((percentile(&values, 0.5), percentile(&values, 0.99)), (50.0, 99.0));
        assert_eq!((percentile(&[7.0], 0.5), percentile(&[7.0], 0.99), percentile(&[], 0.5)), (7.0, 7.0, 0.0));
    }

    fn check(text: &str, captions: &[&str], quoted: &[(&str, &str)], expected: bool) {
        let sources = ["t1".to_owned()];
        let shown = [Shown { sources: &sources, quoted: quoted.to_vec(), restated: None }];
        let wanted = Wanted::of(text, captions);
        let lines: Vec<String> = quoted.iter().map(|(_, words)| format!("[13:56] Ada: {words}\n")).collect();
        let context = Comparable::of(&lines.concat());
        assert_eq!(delivered("t1", &wanted, &shown, &context), expected, "{text} by {quoted:?}");
        assert!(!delivered("t2", &wanted, &shown, &context), "another turn is not delivered");
        let empty = Comparable::of("## 8 May 2023\n");
        assert!(!delivered("t1", &wanted, &shown, &empty), "what the context does not hold is not delivered");
    }

    #[test]
    fn a_turn_is_delivered_when_a_unit_that_names_it_quotes_its_informative_sentences() {
        let said = "Oh wow! I bought a red kayak yesterday. It leaks.";
        check(said, &[], &[("t1", "Oh wow! I bought a red kayak yesterday. It leaks.")], true);
        check(said, &[], &[("t1", "i bought  a red KAYAK\nyesterday [7 May 2023]. It leaks.")], true);
        check(said, &[], &[("t1", "I bought a red kayak [the one] yesterday. It leaks.")], true);
        check(said, &[], &[("t1", "I bought a red kayak yesterday.")], false);
        check(said, &[], &[("t1", "I bought a red kayak yesterday."), ("t1", "It leaks.")], true);
        check(said, &[], &[("t0", said)], false);
        check(said, &[], &[], false);
        check("Wait [what? A kayak sank.", &[], &[("t1", "Wait [what? A kayak sank."), ("t1", "[14:02] Yes")], true);
        check("Look at this", &["a photo of a boat"], &[("t1", "Look at this")], false);
        check("Look at this", &["a photo of a boat"], &[("t1", "Look at this [photo: a photo of a boat]")], true);
    }

    #[test]
    fn a_restatement_delivers_the_turns_that_it_names() {
        let sources = ["t1".to_owned(), "t2".to_owned()];
        let said = "Ada bought a red kayak on 7 May 2023.";
        let shown = [Shown { sources: &sources, quoted: vec![("t1", said)], restated: Some(said) }];
        let wanted = Wanted::of("I bought a red kayak yesterday.", &[]);
        let context = Comparable::of(&format!("## 8 May 2023\n[13:56] {said} (7 May 2023)\n"));
        assert!(delivered("t1", &wanted, &shown, &context) && delivered("t2", &wanted, &shown, &context));
        assert!(!delivered("t3", &wanted, &shown, &context));
        assert!(!delivered("t1", &wanted, &shown, &Comparable::of("[13:56] Ada bought a kayak.")));
    }

    fn scored(recall: Option<f64>, tokens: usize, second: bool) -> Scored {
        let recollected = Recollected {
            first_hop_recall: recall.map(|r| r / 2.0),
            first_hop_tokens: tokens / 2,
            second_round: second,
            sufficiency: 0.5,
        };
        let marks = Marks { f1: recall, bleu1: None, correct: recall.map(|r| r >= 1.0) };
        Scored { recall, tokens, units: 3, recollected: Some(recollected), marks }
    }

    #[test]
    fn means_by_hand() {
        let all = [scored(Some(1.0), 100, true), scored(Some(0.5), 200, false), scored(None, 300, false)];
        let f = figures(&all);
        assert_eq!((f.questions, f.scored), (3, 2));
        assert_eq!((f.evidence_recall, f.full_evidence, f.context_tokens), (Some(0.75), Some(0.5), Some(200.0)));
        assert_eq!((f.first_hop_recall, f.first_hop_full_evidence), (Some(0.375), Some(0.0)));
        assert!((f.second_round_rate.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((f.f1, f.bleu1, f.judge_accuracy), (Some(0.75), None, Some(0.5)), "over those that were marked");
        let split = by_second_round(&all.iter().collect::<Vec<_>>());
        assert_eq!((split.ran.questions, split.stopped.questions), (1, 2));
        assert_eq!(split.ran.evidence_recall, Some(1.0));
        assert_eq!(figures(&[]), Figures::default(), "nothing was measured: null, not zero");
        let by = figures_by([("a", &all[0]), ("b", &all[1]), ("a", &all[2])]);
        assert_eq!((by["a"].questions, by["b"].evidence_recall), (2, Some(0.5)));
    }
}
