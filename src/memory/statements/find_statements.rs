//! The statements of a turn, by the rules of its language's table.
//!
//! In: a turn, its language, and whether an assistant is spoken to. Out: its statements, in the order of its words. A
//! turn of an assistant, a tool or a bot has none.

use std::ops::Range;

use super::{
    clauses::{clause_starts, object_end, stated_end},
    own_words::own_lines,
    phrase_pattern::begins_with,
    phrase_table::{PhraseTable, StatementPattern},
    text_tokens::{TextToken, text_tokens},
};
use crate::language::{
    multilingual::{LanguageDetection, told},
    sentences::{is_question, sentences},
    times::{find_periods, find_times_in},
};
use types::model::{Language, RecordStatements, SpeakerKind, Statement, StatementKind, Turn, WindowTurn};

/// Name and version of the rules, as a record states it.
const RULES: &str = "statements/2";

/// The most statements of a turn, and the longest sentence in bytes.
const MAX_STATEMENTS: usize = 32;
const MAX_SENTENCE_BYTES: usize = 600;

/// Whether statements were found by other rules than these, so that a record is to be read again.
#[must_use]
pub fn is_outdated(statements: Option<&RecordStatements>) -> bool {
    statements.is_none_or(|statements| statements.by != RULES)
}

/// The statements of the turns of a record, without context, deleted turns and those that cannot be recalled. `window` are all turns of its window,
/// which say whether an assistant is spoken to; `languages` gives the language of a turn.
#[must_use]
pub fn record_statements(
    turns: &[WindowTurn],
    window: &[WindowTurn],
    languages: impl Fn(&WindowTurn) -> Language,
) -> RecordStatements {
    let live = || window.iter().filter(|turn| !turn.deleted);
    let answers = |turn: &WindowTurn| turn.turn.speaker_kind() == Some(SpeakerKind::Assistant);
    let is_assisted = live().any(answers);
    let of_turn = |turn: &WindowTurn| {
        let addressed = is_assisted || is_called_user(&turn.turn.speaker);
        let found = find_statements(&turn.turn, languages(turn), addressed);
        let ordinal = turn.ordinal;
        found.into_iter().map(move |statement| Statement { ordinal, ..statement })
    };
    let said = turns.iter().filter(|turn| !turn.deleted && !turn.context && turn.turn.recall);
    RecordStatements { by: RULES.to_owned(), found: said.flat_map(of_turn).collect() }
}

/// Whether a speaker is called `user`: that one speaks to an assistant, even before it answers.
#[must_use]
pub fn is_called_user(speaker: &str) -> bool {
    speaker.eq_ignore_ascii_case("user")
}

/// The statements of a turn, with the ordinal 0. `language` is that of what was said before; a turn that shows none of
/// its own ("Vivo en Bilbao.") may be in another. `addressed`: whether an assistant is spoken to, so that an order may
/// be meant for it.
#[must_use]
pub fn find_statements(turn: &Turn, language: Language, addressed: bool) -> Vec<Statement> {
    let shows_none = told(&turn.text) == LanguageDetection::Nothing;
    let others = PhraseTable::languages().filter(|other| shows_none && *other != language);
    let mut found = std::iter::once(language).chain(others).map(|language| statements_in(turn, language, addressed));
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// The statements of a turn in a language.
fn statements_in(turn: &Turn, language: Language, addressed: bool) -> Vec<Statement> {
    let is_person = turn.speaker_kind().is_none_or(|kind| kind == SpeakerKind::Person);
    let Some(table) = PhraseTable::of(language).filter(|_| is_person) else { return Vec::new() };
    let mut found = Vec::new();
    for range in own_lines(&turn.text, language, table) {
        let line = turn.text.get(range).unwrap_or_default();
        LineReader { turn, language, addressed, table, line }.read(&mut found);
    }
    found.truncate(MAX_STATEMENTS);
    found
}

/// Reads one line of a turn.
struct LineReader<'t> {
    turn: &'t Turn,
    language: Language,
    addressed: bool,
    table: &'static PhraseTable,
    line: &'t str,
}

impl LineReader<'_> {
    fn read(&self, found: &mut Vec<Statement>) {
        let quoted = quoted_ranges(self.line);
        let sentences = sentences(self.line);
        for (at, range) in sentences.iter().enumerate() {
            let next = sentences.get(at + 1).and_then(|next| self.line.get(next.clone()));
            let behind = next.filter(|next| next.split_whitespace().count() <= 3);
            let sentence = self.line.get(range.clone());
            let ironic = sentence.into_iter().chain(behind).any(|text| is_ironic(text, self.table));
            if range.len() <= MAX_SENTENCE_BYTES && !ironic {
                self.read_sentence(range, &quoted, found);
            }
        }
    }

    fn read_sentence(&self, range: &Range<usize>, quoted: &[Range<usize>], found: &mut Vec<Statement>) {
        let sentence = self.line.get(range.clone()).unwrap_or_default();
        let tokens = text_tokens(sentence, self.language);
        let Some(end) = stated_end(&tokens, is_question(sentence), self.table) else { return };
        let mut from = 0;
        for start in clause_starts(&tokens, end, self.table) {
            if start.at < from {
                continue;
            }
            let begins = [start.at, start.opened];
            let begins = if start.at == start.opened { &begins[..1] } else { &begins[..] };
            let statement = begins.iter().find_map(|at| {
                let word = &tokens.get(*at)?.lower;
                let patterns = self.table.by_first.get(word)?.iter().filter_map(|n| self.table.patterns.get(*n));
                let may = |pattern: &&StatementPattern| {
                    (start.is_first || !pattern.first) && (self.addressed || !pattern.addressed)
                };
                let in_quotes = |at: usize| {
                    let byte = range.start + tokens.get(at).map_or(0, |token| token.range.start);
                    quoted.iter().any(|quoted| quoted.contains(&byte))
                };
                patterns.filter(may).find_map(|pattern| {
                    let text_from = if start.is_first { start.at } else { *at };
                    self.statement(pattern, (sentence, &tokens), (text_from, *at, end), &in_quotes)
                })
            });
            if let Some((statement, ends)) = statement {
                from = ends;
                found.push(statement);
            }
        }
    }

    /// The statement of a pattern that begins at token `at`, and the token behind it.
    fn statement(
        &self,
        pattern: &StatementPattern,
        (sentence, tokens): (&str, &[TextToken]),
        (text_from, at, end): (usize, usize, usize),
        in_quotes: &dyn Fn(usize) -> bool,
    ) -> Option<(Statement, usize)> {
        let has = |list: &[Vec<String>], range: Range<usize>| {
            range.into_iter().any(|at| list.iter().any(|words| begins_with(tokens, at, words)))
        };
        let matched = pattern.pattern.find(tokens, at, end)?;
        let is_order = pattern.kind == StatementKind::Instruction;
        if matched.words.iter().any(|at| in_quotes(*at))
            || !is_order && (has(&self.table.doubts, 0..at) || has(&self.table.reports, 0..at))
            || is_order && has(&self.table.reports, 0..at)
        {
            return None;
        }
        let object = matched.object.clone().unwrap_or(matched.end..matched.end);
        let is_last_gap =
            matched.old.is_none() && !matched.is_closed && !object.is_empty() && matched.end == object.end;
        let object_ends = if is_last_gap {
            object_end(tokens, object.start, object.end, pattern.single, self.table)
        } else {
            object.end
        };
        let old = matched.old.clone().map(|old| old.start..object_end(tokens, old.start, old.end, true, self.table));
        let ends =
            old.as_ref().map_or(0, |old| old.end).max(object_ends).max(if is_last_gap { 0 } else { matched.end });
        let bytes = |range: Range<usize>| {
            let range = range.start..trimmed_end(tokens, &range);
            let (first, last) = (tokens.get(range.start)?, tokens.get(range.end.checked_sub(1)?)?);
            (first.range.start < last.range.end).then_some(first.range.start..last.range.end)
        };
        let words = |range: Range<usize>| sentence.get(bytes(range)?);
        let empty = |(name, words): &(String, Vec<String>)| {
            (*name == pattern.kind.name() || *name == pattern.relation) && begins_with(tokens, object.start, words)
        };
        if !is_order && has(&self.table.doubts, at..ends)
            || matched.object.is_some() && self.table.empty.iter().any(empty)
        {
            return None;
        }
        let object_words = words(object.start..object_ends).unwrap_or_default();
        let subject = matched.subject.and_then(words).map(str::to_lowercase);
        let text = with_full_stop(sentence, bytes(text_from..ends)?, ends >= end);
        let times = find_times_in(text, self.language, Some(self.turn.time));
        // "By Friday" may be the last one or the next: it is a time, but none that a record can state.
        let names_time = || !times.is_empty() || !find_periods(text, self.language, Some(self.turn.time)).is_empty();
        let is_value =
            |words: &str| words.starts_with(char::is_uppercase) || words.contains(|c: char| c.is_ascii_digit());
        if pattern.valued && !is_value(object_words)
            || pattern.timed && !names_time()
            || object_words.is_empty() && matched.object.is_some()
        {
            return None;
        }
        let replaces = old.and_then(words).or_else(|| self.replaced(tokens, ends, object.start..object_ends, &words));
        let statement = Statement {
            turn: self.turn.turn.clone(),
            ordinal: 0,
            speaker: self.turn.speaker.clone(),
            said_at: self.turn.time,
            kind: pattern.kind,
            subject,
            relation: pattern.relation.clone(),
            object: object_words.to_owned(),
            text: text.to_owned(),
            time: times.first().map(|time| time.interval).filter(|_| pattern.kind == StatementKind::Plan),
            single: pattern.single,
            negated: pattern.negated,
            replaces: replaces.map(str::to_owned),
            language: self.language,
        };
        Some((statement, ends))
    }

    /// What the words of an object say to be over: what follows "instead of", or the object itself where the sentence
    /// says that something was changed.
    fn replaced<'s>(
        &self,
        tokens: &[TextToken],
        ends: usize,
        object: Range<usize>,
        words: &dyn Fn(Range<usize>) -> Option<&'s str>,
    ) -> Option<&'s str> {
        let named = object.clone().find_map(|at| {
            let phrase = self.table.instead.iter().find(|words| begins_with(tokens, at, words))?;
            let from = at + phrase.len();
            words(from..object_end(tokens, from, object.end, true, self.table))
        });
        let changed = || {
            let says = |at: usize| self.table.changed.iter().any(|words| begins_with(tokens, at, words));
            (0..ends).any(says).then(|| words(object.clone())).flatten()
        };
        named.or_else(changed)
    }
}

/// Whether a text has a mark of irony.
pub(super) fn is_ironic(text: &str, table: &PhraseTable) -> bool {
    let lower = text.to_lowercase();
    table.irony.iter().any(|mark| lower.contains(mark.as_str()))
}

/// The end of a range without the marks at its end.
fn trimmed_end(tokens: &[TextToken], range: &Range<usize>) -> usize {
    let is_mark = |at: &usize| {
        let token = tokens.get(*at);
        token.is_some_and(|token| token.is_mark && !matches!(token.lower.as_str(), ")" | "\"" | "”" | "»" | "」" | "’"))
    };
    let last = range.clone().rev().find(|at| !is_mark(at));
    last.map_or(range.start, |last| last + 1)
}

/// The text of a range, with the mark that ends its sentence if it reaches the end.
fn with_full_stop(sentence: &str, range: Range<usize>, reaches_end: bool) -> &str {
    let rest = sentence.get(range.end..).unwrap_or_default();
    let mark = rest.chars().next().filter(|mark| reaches_end && matches!(mark, '.' | '!' | '。' | '！'));
    sentence.get(range.start..range.end + mark.map_or(0, char::len_utf8)).unwrap_or_default()
}

/// Byte ranges between double quotation marks of any script; a mark that is never closed quotes the rest.
fn quoted_ranges(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, [char; 2])> = None;
    for (at, c) in line.char_indices() {
        match open {
            Some((start, close)) if close.contains(&c) => {
                found.push(start..at);
                open = None;
            }
            Some(_) => {}
            None => {
                let close = match c {
                    '"' => ['"', '"'],
                    '“' => ['”', '”'],
                    '„' => ['“', '”'],
                    '«' => ['»', '»'],
                    '»' => ['«', '«'],
                    '「' => ['」', '」'],
                    '『' => ['』', '』'],
                    _ => continue,
                };
                open = Some((at, close));
            }
        }
    }
    found.extend(open.map(|(start, _)| start..line.len()));
    found
}
