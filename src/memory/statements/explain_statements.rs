//! What each sentence of a turn states, and why a sentence states nothing.
//!
//! In: a turn, and the language for a text that shows none. Out: its sentences in order, each with its statements, or
//! with a reason. An order counts as if an assistant were spoken to.

use super::{
    find_statements::{find_statements, is_ironic},
    own_words::own_lines,
    phrase_table::PhraseTable,
};
use crate::language::{
    multilingual::language_of,
    sentences::{is_question, sentences},
};
use types::model::{Language, SpeakerKind, Statement, Turn};

/// A sentence of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedSentence {
    /// Its words.
    pub text: String,
    /// What it states.
    pub stated: Vec<Statement>,
    /// Why it states nothing.
    pub reason: Option<&'static str>,
}

/// The sentences of a turn.
#[must_use]
pub fn explain_statements(turn: &Turn, otherwise: Language) -> Vec<StatedSentence> {
    let language = language_of(&turn.text, otherwise);
    let found = find_statements(turn, language, true);
    let language = found.first().map_or(language, |of| of.language);
    let table = PhraseTable::of(language);
    let own = table.map(|table| own_lines(&turn.text, language, table)).unwrap_or_default();
    let is_person = turn.speaker_kind().is_none_or(|kind| kind == SpeakerKind::Person);
    let (mut out, mut at) = (Vec::new(), 0);
    for line in turn.text.split_inclusive('\n') {
        let (start, words) = (at, line.trim_end());
        at += line.len();
        for range in sentences(words) {
            // Of a line with a text that is handed over, only the beginning is the speaker's.
            let is_own = own.iter().any(|own| (own.start..=own.end).contains(&(start + range.end)));
            let text = words.get(range).unwrap_or_default();
            let stated: Vec<Statement> = found.iter().filter(|of| text.contains(&of.text)).cloned().collect();
            let reason = match table {
                _ if !stated.is_empty() => None,
                _ if !is_person => Some("no person says it"),
                None => Some("there are no rules for its language"),
                Some(_) if !is_own => Some("it is quoted, pasted, code or a table, or the text is too long"),
                Some(table) if is_ironic(text, table) => Some("it has a mark of irony"),
                Some(_) if is_question(text) => Some("it asks"),
                Some(_) => Some("no clause of it begins as a lasting statement does, or its words leave it in doubt"),
            };
            out.push(StatedSentence { text: text.to_owned(), stated, reason });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, EventTime};

    #[test]
    fn each_sentence_has_statements_or_a_reason() {
        let time = EventTime::parse("2024-01-15T10:00:00Z").expect("a time");
        let text = "- I live in Oslo. Do you?\n> I live in Rome.\nIt rains. Proofread this. I live in Bern.";
        let turn = Turn::new(Bank::parse("b").expect("a name"), "t", "Ann", text, time);
        let found: Vec<(String, usize, Option<&str>)> = explain_statements(&turn, Language::En)
            .into_iter()
            .map(|of| (of.text, of.stated.len(), of.reason.map(|reason| &reason[..7])))
            .collect();
        let expected = [
            ("- I live in Oslo.", 1, None),
            ("Do you?", 0, Some("it asks")),
            ("> I live in Rome.", 0, Some("it is q")),
            ("It rains.", 0, Some("no clau")),
            ("Proofread this.", 0, Some("no clau")),
            ("I live in Bern.", 0, Some("it is q")),
        ];
        assert_eq!(found, expected.map(|(text, stated, reason)| (text.to_owned(), stated, reason)));
    }
}
