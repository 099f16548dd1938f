//! The lines of a turn that its speaker says in their own words.
//!
//! In: the text of a turn. Out: byte ranges of lines without code, tables, quoted lines, the lines of a transcript, and
//! everything behind the mark of a forwarded message or a pasted text, or behind a request to work on a text
//! ("Proofread this. …"). A very long text is a document: it has none.

use std::ops::Range;

use super::{
    clauses::behind_openers,
    phrase_pattern::begins_with,
    phrase_table::PhraseTable,
    text_tokens::{TextToken, text_tokens},
};
use crate::language::sentences::sentences;
use types::model::Language;

/// A longer text, in bytes, is a document that was pasted, not something that a person typed.
const MAX_TYPED_BYTES: usize = 4_000;

/// The ranges of the speaker's own lines, without marks of a list in front.
pub(super) fn own_lines(text: &str, language: Language, table: &PhraseTable) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    if text.len() > MAX_TYPED_BYTES {
        return lines;
    }
    let (mut at, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code || trimmed.is_empty() || trimmed.starts_with(['>', '|', '[', '<', '{', '}']) {
            continue;
        }
        let lower = trimmed.to_lowercase();
        if table.forwards.iter().any(|mark| lower.starts_with(mark.as_str())) {
            break;
        }
        if line.starts_with("    ") || line.starts_with('\t') {
            continue;
        }
        let body = trimmed.trim_start_matches(['-', '*', '+', '•', '#', ' ']);
        let number = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let body = match body.get(number..) {
            Some(rest)
                if number > 0 && rest.starts_with([')', '.']) && rest.get(1..).is_some_and(|r| r.starts_with(' ')) =>
            {
                rest.get(2..).unwrap_or_default().trim_start()
            }
            _ => body,
        };
        let end = start + line.trim_end().len();
        let range = end - body.len()..end;
        if let Some(length) = own_length(body, language, table) {
            lines.push(range.start..range.start + length);
            break;
        }
        if !names_a_speaker(trimmed, table) {
            lines.push(range);
        }
    }
    lines
}

/// How much of a line is its speaker's own if the rest of the turn is a text that the speaker hands over.
fn own_length(line: &str, language: Language, table: &PhraseTable) -> Option<usize> {
    sentences(line).into_iter().find_map(|range| {
        let sentence = line.get(range.clone())?;
        let tokens = text_tokens(sentence, language);
        let colon = tokens.iter().find(|token| matches!(token.lower.as_str(), ":" | "：")).map(|token| token.range.end);
        let head = tokens.iter().take_while(|token| colon.is_none_or(|colon| token.range.end < colon)).count();
        let has = |list: &[Vec<String>], at: usize| list.iter().any(|words| begins_with(&tokens, at, words));
        let asked = behind_request(&tokens, table);
        let names = |list: &[Vec<String>]| (0..head).any(|at| has(list, at));
        let (presents, is_colon_last) = (names(&table.presents), colon.is_some() && head + 1 == tokens.len());
        let is_handed = has(&table.tasks, asked)
            || colon.is_some() && (presents || has(&table.texts, asked))
            || (presents || is_colon_last) && names(&table.handed);
        is_handed.then(|| range.start + colon.unwrap_or(sentence.len()))
    })
}

/// The token behind "can you please" and what else stands before a request.
fn behind_request(tokens: &[TextToken], table: &PhraseTable) -> usize {
    let mut at = behind_openers(tokens, 0, table);
    while let Some(words) = table.requests.iter().find(|words| begins_with(tokens, at, words)) {
        at += words.len();
    }
    at
}

/// Whether a line is one of a transcript: "Ann: I live in Oslo". A label ("Note:") names no speaker.
fn names_a_speaker(line: &str, table: &PhraseTable) -> bool {
    let Some((name, rest)) = line.split_once([':', '：']) else { return false };
    let name = name.trim_matches(['*', '_', ' ']);
    let words = name.split_whitespace().count();
    let is_name = words <= 3 && name.chars().count() <= 30 && name.chars().next().is_some_and(char::is_uppercase);
    let is_label = table.labels.iter().any(|label| name.to_lowercase().ends_with(label.as_str()));
    is_name && !is_label && !rest.trim().is_empty() && !rest.starts_with("//") && words > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_said_is_left_out() {
        let table = PhraseTable::of(Language::En).expect("a table");
        let check = |text: &str, expected: &[&str]| {
            let own = own_lines(text, Language::En, table);
            let found: Vec<&str> = own.into_iter().map(|line| &text[line]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("Hi.\n> I live in Oslo.\nOk.", &["Hi.", "Ok."]);
        check("See:\n```\nalways use tabs\n```\nThanks", &["See:", "Thanks"]);
        check("Here is the mail:\nI live in Oslo.", &["Here is the mail:"]);
        check("My notes on the code:\nalways use tabs", &["My notes on the code:"]);
        check("Begin forwarded message:\nI live in Oslo.", &[]);
        check("Ok. Proofread this. I live in Oslo.\nAnd in Rome.", &["Ok. Proofread this."]);
        check("Can you please translate? I live in Oslo.", &["Can you please translate?"]);
        check("Improve this letter: I live in Oslo.", &["Improve this letter:"]);
        check("Write a poem that begins with: I live in Oslo.", &["Write a poem that begins with:"]);
        check("The README says the following. Always use tabs.", &["The README says the following."]);
        check("Here is the page: always use tabs.", &["Here is the page:"]);
        check("I write a diary. My rule: always use tabs.", &["I write a diary. My rule: always use tabs."]);
        check("Ann: I live in Oslo.\nNote: I live in Rome.", &["Note: I live in Rome."]);
        check("- Always use tabs\n2. Never guess", &["Always use tabs", "Never guess"]);
        check("| I live | in Oslo |\n", &[]);
        check(&"I live in Oslo. ".repeat(400), &[]);
    }
}
