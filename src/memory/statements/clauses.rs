//! Where a statement may begin in a sentence, and where its object ends.
//!
//! In: the tokens of a sentence and the table of its language. Out: token indexes. A statement begins where a clause
//! does: at the beginning of the sentence, after a mark, or after a word such as "and"; what is in the middle of a
//! clause ("she says I live there") begins nothing. Of a question only what comes before its asking clause is read.

use super::{phrase_pattern::begins_with, phrase_table::PhraseTable, text_tokens::TextToken};

/// The most phrases that are skipped in front of a statement, and the most tokens of an object.
const MAX_OPENERS: usize = 4;
const MAX_OBJECT: usize = 48;

/// Where a clause begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClauseStart {
    /// Its first token.
    pub at: usize,
    /// The first token behind what may stand in front of a statement ("and", "also", "by the way").
    pub opened: usize,
    /// Whether the sentence begins here.
    pub is_first: bool,
}

/// The end of what a sentence states: its asking clause, if it has one. `None` if all of it asks.
pub(super) fn stated_end(tokens: &[TextToken], asks: bool, table: &PhraseTable) -> Option<usize> {
    let last = tokens.iter().rposition(|token| !token.is_mark)?;
    let ends_asking =
        |words: &Vec<String>| (last + 1).checked_sub(words.len()).is_some_and(|at| begins_with(tokens, at, words));
    let asks = asks || table.asking_ends.iter().any(ends_asking);
    let asking = clause_starts(tokens, tokens.len(), table).into_iter().find(|start| {
        let here = |at: usize| table.asking.iter().any(|words| begins_with(tokens, at, words));
        // A statement may begin with the words of a question only where the sentence does: "Do not ever …".
        (asks || !start.is_first) && (here(start.at) || here(start.opened))
    });
    match asking {
        Some(start) => (start.at > 0).then_some(start.at),
        None => (!asks).then_some(tokens.len()),
    }
}

/// The starts of the clauses before token `end`, in order.
pub(super) fn clause_starts(tokens: &[TextToken], end: usize, table: &PhraseTable) -> Vec<ClauseStart> {
    let mut starts = Vec::new();
    let mut add = |at: usize, is_first: bool| {
        let at = (at..end).find(|at| tokens.get(*at).is_some_and(|token| !token.is_mark));
        if let Some(at) = at {
            starts.push(ClauseStart { at, opened: behind_openers(tokens, at, table), is_first });
        }
    };
    add(0, true);
    for at in 1..end {
        let before = tokens.get(at - 1);
        let is_mark =
            before.is_some_and(|token| token.is_mark && !matches!(token.lower.as_str(), "'" | "-" | "/" | "*" | "_"));
        let divider = table.dividers.iter().find(|words| begins_with(tokens, at, words));
        if is_mark {
            add(at, false);
        } else if let Some(words) = divider {
            add(at + words.len(), false);
        }
    }
    starts.dedup_by_key(|start| start.at);
    starts
}

/// The token behind the phrases that may stand in front of a statement.
pub(super) fn behind_openers(tokens: &[TextToken], start: usize, table: &PhraseTable) -> usize {
    let mut at = start;
    for _ in 0..MAX_OPENERS {
        let Some(words) = table.openers.iter().find(|words| begins_with(tokens, at, words)) else { break };
        at += words.len();
        while tokens.get(at).is_some_and(|token| token.is_mark) {
            at += 1;
        }
    }
    at
}

/// The token before which an object ends that begins at `start`; `single` values end earlier.
pub(super) fn object_end(tokens: &[TextToken], start: usize, end: usize, single: bool, table: &PhraseTable) -> usize {
    let any = |list: &[Vec<String>], at: usize| list.iter().any(|words| begins_with(tokens, at, words));
    let mut at = start + 1;
    while at < end.min(start + MAX_OBJECT) {
        let Some(token) = tokens.get(at) else { break };
        let is_comma = matches!(token.lower.as_str(), "," | "，");
        let is_end = matches!(token.lower.as_str(), ";" | "；" | "—" | "–" | "(" | "（" | "。" | "!" | "！" | "…");
        if is_end || any(&table.breaks, at) || single && (is_comma || any(&table.stops, at)) {
            return at;
        }
        // A clause with a subject of its own: ", and I …", "and I …".
        let after = if is_comma { at + 1 } else { at };
        let divider = table.dividers.iter().find(|words| begins_with(tokens, after, words));
        let follows = after + divider.map_or(0, Vec::len);
        if follows > at && (any(&table.subjects, follows) || any(&table.breaks, follows)) {
            return at;
        }
        at += 1;
    }
    at.min(end)
}
