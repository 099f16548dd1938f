//! The tables of phrases, one for each language.
//!
//! In: `phrases/*.tsv`, written by hand. A line begins with its role:
//! - `macro NAME WORDS`: words that patterns name as `@NAME`.
//! - `pattern KIND RELATION FLAGS PATTERN`: what makes a statement (`phrase_pattern`). Flags: `first` (only at the
//!   beginning of a sentence), `addressed` (only if an assistant is spoken to), `single`, `negated`, `timed` (only with
//!   a time), `valued` (only if the object begins with a capital or holds a number).
//! - `opener`, `divider`, `asking`, `asking_end`, `break`, `stop`, `subject`: words by which `clauses` divides a sentence.
//! - `doubt`, `report`, `irony`, `instead`, `changed`: words that `find_statements` reads.
//! - `forward`, `label`, `request`, `task`, `text`, `presents`, `handed`: what `own_words` reads.
//! - `empty KIND-OR-RELATION WORDS`: objects that begin with these words say nothing that lasts.
//!
//! Words stand between `|`, those of one phrase between `_`. Out: the table of a language. Each is read once; a wrong
//! line is a mistake that the tests find, and is left out.

use std::{collections::HashMap, sync::LazyLock};

use super::{phrase_pattern::PhrasePattern, text_tokens::phrase_words};
use types::model::{Language, StatementKind};

/// A pattern and what its statement is.
#[derive(Debug)]
pub(super) struct StatementPattern {
    pub kind: StatementKind,
    pub relation: String,
    /// Only at the beginning of a sentence.
    pub first: bool,
    /// Only where an assistant is spoken to.
    pub addressed: bool,
    pub single: bool,
    pub negated: bool,
    /// Only with a time.
    pub timed: bool,
    /// Only if the object begins with a capital or holds a number.
    pub valued: bool,
    pub pattern: PhrasePattern,
}

/// The phrases of a language.
#[derive(Debug, Default)]
pub(super) struct PhraseTable {
    pub patterns: Vec<StatementPattern>,
    /// The patterns that may begin with a word, in their order.
    pub by_first: HashMap<String, Vec<usize>>,
    /// Phrases that may stand before a statement.
    pub openers: Vec<Vec<String>>,
    /// Words at which a clause begins without a comma.
    pub dividers: Vec<Vec<String>>,
    /// Phrases with which the asking clause of a question begins.
    pub asking: Vec<Vec<String>>,
    /// The last words of a question without a mark.
    pub asking_ends: Vec<Vec<String>>,
    /// Words that end every object.
    pub breaks: Vec<Vec<String>>,
    /// Words that end a single value.
    pub stops: Vec<Vec<String>>,
    /// The words with which a clause of its own begins.
    pub subjects: Vec<Vec<String>>,
    /// Words of doubt, before a statement or in it.
    pub doubts: Vec<Vec<String>>,
    /// Words before a statement with which somebody else says it, or a condition holds.
    pub reports: Vec<Vec<String>>,
    /// Phrases with which a person says that they changed their mind.
    pub changed: Vec<Vec<String>>,
    /// Words of irony.
    pub irony: Vec<String>,
    /// Phrases before what is replaced.
    pub instead: Vec<Vec<String>>,
    pub forwards: Vec<String>,
    pub labels: Vec<String>,
    /// What stands before a request: "can you", "please".
    pub requests: Vec<Vec<String>>,
    /// Requests to work on a text, which follows: "proofread", "make this sound".
    pub tasks: Vec<Vec<String>>,
    /// Requests for a text, which may follow behind a colon: "write a".
    pub texts: Vec<Vec<String>>,
    /// Words that present somebody's text, which follows behind a colon, or where a text is named: "here is", "says".
    pub presents: Vec<Vec<String>>,
    /// Texts that are presented, also by the colon at the end of a line alone: "page", "the following".
    pub handed: Vec<Vec<String>>,
    /// By kind or relation, the beginnings of objects that say nothing that lasts.
    pub empty: Vec<(String, Vec<String>)>,
}

/// The text of each table.
const SOURCES: [(Language, &str); 5] = [
    (Language::En, include_str!("phrases/en.tsv")),
    (Language::De, include_str!("phrases/de.tsv")),
    (Language::Fr, include_str!("phrases/fr.tsv")),
    (Language::Es, include_str!("phrases/es.tsv")),
    (Language::Zh, include_str!("phrases/zh.tsv")),
];

static TABLES: LazyLock<HashMap<Language, PhraseTable>> = LazyLock::new(|| {
    SOURCES.iter().map(|(language, source)| (*language, PhraseTable::read(source, *language, &mut |_| {}))).collect()
});

impl PhraseTable {
    /// The table of a language; `None` if there is none.
    pub(super) fn of(language: Language) -> Option<&'static Self> {
        TABLES.get(&language)
    }

    /// The languages that have one.
    pub(super) fn languages() -> impl Iterator<Item = Language> {
        SOURCES.iter().map(|(language, _)| *language)
    }

    /// Reads a table; `wrong` is called with each line that has no meaning.
    fn read(source: &str, language: Language, wrong: &mut dyn FnMut(&str)) -> Self {
        let mut table = Self::default();
        let mut macros: HashMap<&str, &str> = HashMap::new();
        for line in source.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            match columns.as_slice() {
                ["macro", name, words] => drop(macros.insert(name, words)),
                ["pattern", kind, relation, flags, pattern] => {
                    let kind = StatementKind::of_name(kind);
                    let pattern = PhrasePattern::read(pattern, &macros, language);
                    let (Some(kind), Some(pattern)) = (kind, pattern) else {
                        wrong(line);
                        continue;
                    };
                    let has = |flag: &str| flags.split(',').any(|of| of == flag);
                    for word in pattern.first_words() {
                        table.by_first.entry(word).or_default().push(table.patterns.len());
                    }
                    table.patterns.push(StatementPattern {
                        kind,
                        relation: (*relation).to_owned(),
                        first: has("first"),
                        addressed: has("addressed"),
                        single: has("single"),
                        negated: has("negated"),
                        timed: has("timed"),
                        valued: has("valued"),
                        pattern,
                    });
                }
                ["empty", name, words] => {
                    table.empty.extend(phrases(words, language).into_iter().map(|words| ((*name).to_owned(), words)));
                }
                [role, words] => match *role {
                    "opener" => table.openers.extend(phrases(words, language)),
                    "divider" => table.dividers.extend(phrases(words, language)),
                    "asking" => table.asking.extend(phrases(words, language)),
                    "asking_end" => table.asking_ends.extend(phrases(words, language)),
                    "break" => table.breaks.extend(phrases(words, language)),
                    "subject" => table.subjects.extend(phrases(words, language)),
                    "report" => table.reports.extend(phrases(words, language)),
                    "changed" => table.changed.extend(phrases(words, language)),
                    "request" => table.requests.extend(phrases(words, language)),
                    "task" => table.tasks.extend(phrases(words, language)),
                    "text" => table.texts.extend(phrases(words, language)),
                    "presents" => table.presents.extend(phrases(words, language)),
                    "handed" => table.handed.extend(phrases(words, language)),
                    "stop" => table.stops.extend(phrases(words, language)),
                    "doubt" => table.doubts.extend(phrases(words, language)),
                    "instead" => table.instead.extend(phrases(words, language)),
                    "irony" => table.irony.extend(texts(words)),
                    "forward" => table.forwards.extend(texts(words)),
                    "label" => table.labels.extend(texts(words)),
                    _ => wrong(line),
                },
                _ => wrong(line),
            }
        }
        // Longer phrases first.
        for list in [&mut table.openers, &mut table.asking, &mut table.dividers, &mut table.instead] {
            list.sort_by_key(|words| std::cmp::Reverse(words.len()));
        }
        table
    }
}

/// Phrases between `|`, each as the tokens of its words.
fn phrases(words: &str, language: Language) -> Vec<Vec<String>> {
    words.split('|').map(|phrase| phrase_words(phrase, language)).filter(|words| !words.is_empty()).collect()
}

fn texts(words: &str) -> impl Iterator<Item = String> {
    words.split('|').map(|text| text.replace('_', " ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_table_has_a_meaning() {
        for (language, source) in SOURCES {
            let mut wrong = Vec::new();
            let table = PhraseTable::read(source, language, &mut |line| wrong.push(line.to_owned()));
            assert!(wrong.is_empty(), "{language:?}: {wrong:#?}");
            for kind in StatementKind::ALL {
                assert!(table.patterns.iter().any(|pattern| pattern.kind == kind), "{language:?} lacks {kind:?}");
            }
        }
    }
}
