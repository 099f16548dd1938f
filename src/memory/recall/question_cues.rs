//! The cues by which a question is looked up (paper, section 3.4, and the cue contract of its appendix).
//!
//! In: a question. Out: the question as read, or why it cannot be asked; and its cues by rules. The cues are the
//! wording with nothing deleted, at most six keywords, and the persons, places and time that the question
//! names. Nothing is invented: a field that the question does not ground is empty.

use super::RecallError;
use crate::language::question::ParsedQuestion;
use types::model::{MAX_QUESTION_BYTES, Question, QuestionCues, canonical_name};

/// Reads a question, once for all steps of a recollection.
///
/// # Errors
/// [`RecallError::EmptyQuestion`] if it holds no word and no other symbol, and [`RecallError::LongQuestion`] if it is
/// longer than [`MAX_QUESTION_BYTES`].
pub fn parse_question(question: &Question) -> Result<ParsedQuestion<'_>, RecallError> {
    let bytes = question.text.len();
    if bytes > MAX_QUESTION_BYTES {
        return Err(RecallError::LongQuestion { bytes });
    }
    // A symbol such as an emoji is a question too: its vector has a meaning.
    let asks = |c: char| !c.is_whitespace() && !c.is_ascii_punctuation() && !c.is_control();
    if !question.text.chars().any(asks) {
        return Err(RecallError::EmptyQuestion);
    }
    Ok(ParsedQuestion::of(question))
}

/// The cues of a question, by rules.
#[must_use]
pub fn question_cues(question: &ParsedQuestion<'_>) -> QuestionCues {
    QuestionCues {
        semantic_query: question.text().trim().to_owned(),
        keywords: question.keywords().to_vec(),
        cues: question.cues().clone(),
        note: None,
    }
}

/// Adds the asker to the persons of the cues if the question says "I" or "my".
pub(super) fn with_asker(mut cues: QuestionCues, question: &ParsedQuestion<'_>) -> QuestionCues {
    let asker = question.question().asker.as_deref().filter(|_| question.is_in_first_person());
    let names = &mut cues.cues.participants;
    names.extend(asker.map(canonical_name));
    names.sort_unstable();
    names.dedup();
    cues
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::Bank;

    fn question(text: &str) -> Question {
        Question::new(Bank::parse("b").unwrap(), text)
    }

    #[test]
    fn a_question_without_a_word_is_rejected() {
        for text in ["", "   ", "?!"] {
            let error = parse_question(&question(text)).unwrap_err();
            assert!(matches!(error, RecallError::EmptyQuestion), "{text:?}");
            assert!(error.to_string().contains("empty"), "{error}");
        }
        for text in ["🍜", "饺子", "?🍜", "⌘"] {
            assert!(parse_question(&question(text)).is_ok(), "{text:?}");
        }
        let long = "a ".repeat(MAX_QUESTION_BYTES);
        assert!(matches!(parse_question(&question(&long)).unwrap_err(), RecallError::LongQuestion { .. }));
    }

    #[test]
    fn nothing_is_deleted_from_the_wording() {
        let question = question(" What is Priya's favourite soup? ");
        assert_eq!(
            question_cues(&parse_question(&question).unwrap()).semantic_query,
            "What is Priya's favourite soup?"
        );
    }
}
