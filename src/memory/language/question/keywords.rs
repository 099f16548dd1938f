//! The two to six most selective words of a question (the cue contract in the paper's appendix).
//!
//! In: the question's words, quotations, names and times. Out: keywords in the order of the question, each as written
//! there. No word is ever invented.

use std::{collections::BTreeSet, ops::Range};

use super::{
    question_names::{NameClass, NameRun},
    question_words::{QuestionWord, is_weak_word, is_within},
};
use crate::language::sentences::is_function_word;

/// The maximum number of keywords of a question (the cue contract in the paper's appendix).
pub(super) const MAX_KEYWORDS: usize = 6;
/// With fewer keywords than this, common verbs are taken too (the same contract).
const FEWEST_KEYWORDS: usize = 2;

/// The keywords of a question.
pub(super) fn keywords(
    text: &str,
    words: &[QuestionWord<'_>],
    quotes: &[Range<usize>],
    runs: &[NameRun<'_>],
    times: &[Range<usize>],
) -> Vec<String> {
    // The classes, most selective first: titles; what the question is about; names and dates, which the cue channel
    // looks up as well; common verbs.
    const TITLE: u8 = 0;
    const TOPIC: u8 = 1;
    const NAMED: u8 = 2;
    const WEAK: u8 = 3;
    let mut keywords: Vec<(usize, u8, String)> = Vec::new();
    for quote in quotes {
        if let Some(title) = text.get(quote.clone()) {
            keywords.push((quote.start, TITLE, title.trim().to_owned()));
        }
    }
    for run in runs {
        let class = if run.class == NameClass::Person { NAMED } else { TITLE };
        let start = words.get(run.words.start).map_or(0, |w| w.range.start);
        keywords.push((start, class, run.text.to_owned()));
    }
    for (i, word) in words.iter().enumerate() {
        let in_phrase = is_within(&word.range, quotes) || runs.iter().any(|r| r.words.contains(&i));
        if in_phrase || is_function_word(&word.lower) {
            continue;
        }
        let contraction = word.lower.contains('\'');
        let class = if is_within(&word.range, times) {
            NAMED
        } else if is_weak_word(&word.lower) || contraction {
            WEAK
        } else {
            TOPIC
        };
        keywords.push((word.range.start, class, word.text.to_owned()));
    }
    keywords.retain(|(_, _, k)| !k.is_empty());
    keywords.sort_by_key(|&(start, class, _)| (class, start));
    let mut seen = BTreeSet::new();
    keywords.retain(|(_, _, k)| seen.insert(k.to_lowercase()));
    let strong = keywords.iter().filter(|&&(_, class, _)| class < WEAK).count();
    keywords.truncate(strong.clamp(FEWEST_KEYWORDS, MAX_KEYWORDS));
    keywords.sort_by_key(|&(start, ..)| start);
    keywords.into_iter().map(|(_, _, keyword)| keyword).collect()
}
