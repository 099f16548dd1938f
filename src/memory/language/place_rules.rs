//! Which words show that a place follows, in questions and in turns of dialogue.
//!
//! In: the words before a capitalised phrase. Out: whether a place follows. The readers of questions and of turns share
//! the tables. Each row names the readers for which its word counts: a question is short and formal, so its rules look
//! further back; a turn is informal, so its rules require nearer words. Rows affect answers: measure before you change
//! one.

/// The readers for which the word of a row counts.
type ReaderMask = u8;
/// A word, in lower case, and the readers for which it counts. Tables are sorted by word.
type PlaceWordRow = (&'static str, ReaderMask);

/// Counts in a question. In [`MOTION`]: at most [`MOTION_REACH`] words before "to" or "from".
pub(super) const QUESTION: ReaderMask = 1;
/// Counts in a turn of dialogue.
pub(super) const TURN: ReaderMask = 1 << 1;
/// Counts in a question, directly before "from".
const QUESTION_FROM: ReaderMask = 1 << 2;
/// Counts in a turn, directly before "to" or with one word in between.
const TURN_TO: ReaderMask = 1 << 3;
/// Counts in a turn, directly before "from".
const TURN_FROM: ReaderMask = 1 << 4;
/// Counts in a turn, directly before "around".
const TURN_AROUND: ReaderMask = 1 << 5;

/// How many words before the "to" or "from" of a question a verb of motion may be.
const MOTION_REACH: usize = 5;

/// Whether a table holds a word for a reader.
fn holds_word(table: &[PlaceWordRow], word: &str, reader: ReaderMask) -> bool {
    table.binary_search_by_key(&word, |(w, _)| *w).is_ok_and(|at| table.get(at).is_some_and(|(_, r)| r & reader != 0))
}

/// Whether a word, in lower case, is the name of a holiday, which is a time and neither a person nor a place.
pub(super) fn is_holiday(word: &str, reader: ReaderMask) -> bool {
    holds_word(FEASTS, word, reader)
}

/// Whether the words before a capitalised phrase of a question say that a place follows.
/// `back(1)` is the word before the phrase, without an article; words are in lower case and
/// empty before the first.
pub(super) fn question_leads_to_place<'w>(back: impl Fn(usize) -> &'w str) -> bool {
    let (leading, governor) = (back(1), back(2));
    if holds_word(PREPOSITIONS, leading, QUESTION) {
        return !holds_word(NOT_BEFORE_PLACES, governor, QUESTION);
    }
    if matches!(leading, "to" | "from") {
        let moved = (2..2 + MOTION_REACH).any(|n| holds_word(MOTION, back(n), QUESTION));
        return moved || (leading == "from" && holds_word(MOTION, governor, QUESTION_FROM));
    }
    holds_word(VISITS, leading, QUESTION)
}

/// Whether the words before a capitalised phrase of a turn say that a place follows. `back` is as for
/// [`question_leads_to_place`]; `article` says whether "the" was in between. The last argument says whether the phrase
/// ends in a word such as "park".
pub(super) fn turn_leads_to_place<'w>(
    article: bool,
    back: impl Fn(usize) -> &'w str,
    ends_in_place_noun: impl FnOnce() -> bool,
) -> bool {
    let (leading, governor) = (back(1), back(2));
    match leading {
        "in" => !holds_word(NOT_BEFORE_PLACES, governor, TURN),
        "through" => article,
        "around" => holds_word(MOTION, governor, TURN_AROUND),
        // "at", "to" and "from" also precede people, companies and works, so they need a verb of motion or the article.
        "to" => holds_word(MOTION, governor, TURN_TO) || holds_word(MOTION, back(3), TURN_TO),
        "from" => holds_word(MOTION, governor, TURN_FROM),
        "at" => article || ends_in_place_noun(),
        _ => holds_word(PREPOSITIONS, leading, TURN) || holds_word(VISITS, leading, TURN),
    }
}

/// Prepositions that a place follows. In a turn, "in", "at", "around" and "through" have rules of their own.
const PREPOSITIONS: &[PlaceWordRow] = &[
    ("across", QUESTION | TURN),
    ("around", QUESTION),
    ("at", QUESTION),
    ("downtown", TURN),
    ("in", QUESTION),
    ("inside", QUESTION),
    ("into", QUESTION),
    ("near", QUESTION | TURN),
    ("outside", QUESTION | TURN),
    ("throughout", QUESTION | TURN),
    ("toward", TURN),
    ("towards", TURN),
    ("within", QUESTION),
];

/// Verbs whose object is a place.
const VISITS: &[PlaceWordRow] = &[
    ("explore", QUESTION | TURN),
    ("explored", QUESTION | TURN),
    ("exploring", TURN),
    ("reached", TURN),
    ("tour", QUESTION),
    ("toured", QUESTION | TURN),
    ("visit", QUESTION | TURN),
    ("visited", QUESTION | TURN),
    ("visiting", QUESTION | TURN),
    ("visits", QUESTION),
];

/// Words after which no place follows: in a question if they precede any preposition, in a turn if they precede "in".
const NOT_BEFORE_PLACES: &[PlaceWordRow] = &[
    ("angry", QUESTION),
    ("believe", QUESTION | TURN),
    ("believed", QUESTION),
    ("believes", QUESTION),
    ("confide", QUESTION),
    ("confided", QUESTION),
    ("confidence", TURN),
    ("degree", TURN),
    ("dressed", QUESTION),
    ("enrol", QUESTION),
    ("enroll", QUESTION),
    ("enrolled", QUESTION),
    ("faith", TURN),
    ("fluent", QUESTION),
    ("good", QUESTION),
    ("interest", QUESTION),
    ("interested", QUESTION | TURN),
    ("invest", QUESTION),
    ("invested", QUESTION),
    ("laugh", QUESTION),
    ("laughed", QUESTION),
    ("look", QUESTION),
    ("looked", QUESTION),
    ("mad", QUESTION),
    ("major", QUESTION | TURN),
    ("majored", QUESTION),
    ("participate", QUESTION),
    ("participated", QUESTION),
    ("put", TURN),
    ("shout", QUESTION),
    ("shouted", QUESTION),
    ("sign", TURN),
    ("signed", TURN),
    ("smile", QUESTION),
    ("smiled", QUESTION),
    ("trust", QUESTION | TURN),
    ("yell", QUESTION),
    ("yelled", QUESTION),
];

/// Words of motion or origin, after which "to", "from" or "around" is followed by a place.
const MOTION: &[PlaceWordRow] = &[
    ("am", TURN_FROM),
    ("are", QUESTION_FROM),
    ("back", QUESTION | TURN_TO | TURN_FROM),
    ("backpacking", TURN_AROUND),
    ("be", QUESTION_FROM),
    ("been", QUESTION | TURN_TO),
    ("came", QUESTION | TURN_TO | TURN_FROM),
    ("come", QUESTION | TURN_TO | TURN_FROM),
    ("coming", QUESTION | TURN_TO),
    ("commute", TURN_TO),
    ("drive", QUESTION | TURN_TO),
    ("driven", QUESTION),
    ("driving", TURN_TO),
    ("drove", QUESTION | TURN_TO | TURN_AROUND),
    ("emigrate", QUESTION),
    ("emigrated", QUESTION),
    ("family", TURN_FROM),
    ("flew", QUESTION | TURN_TO | TURN_FROM),
    ("flight", QUESTION | TURN_TO),
    ("flown", QUESTION),
    ("fly", QUESTION | TURN_TO),
    ("flying", TURN_TO),
    ("get", TURN_TO),
    ("getaway", TURN_TO),
    ("go", QUESTION | TURN_TO),
    ("goes", QUESTION),
    ("going", QUESTION | TURN_TO),
    ("gone", QUESTION | TURN_TO),
    ("got", TURN_TO),
    ("head", QUESTION),
    ("headed", QUESTION | TURN_TO),
    ("heading", TURN_TO),
    ("hiked", TURN_AROUND),
    ("hometown", TURN_FROM),
    ("i'm", TURN_FROM),
    ("immigrate", QUESTION),
    ("immigrated", QUESTION),
    ("is", QUESTION_FROM | TURN_FROM),
    ("i’m", TURN_FROM),
    ("journey", QUESTION | TURN_TO),
    ("move", QUESTION | TURN_TO),
    ("moved", QUESTION | TURN_TO | TURN_FROM),
    ("moves", QUESTION),
    ("moving", QUESTION | TURN_TO),
    ("originally", QUESTION | TURN_FROM),
    ("relocate", QUESTION | TURN_TO),
    ("relocated", QUESTION | TURN_TO | TURN_FROM),
    ("return", QUESTION | TURN_TO),
    ("returned", QUESTION | TURN_TO),
    ("returning", QUESTION),
    ("road-trip", TURN_TO | TURN_AROUND),
    ("run", TURN_TO),
    ("sail", QUESTION),
    ("sailed", QUESTION | TURN_TO),
    ("tour", QUESTION),
    ("travel", QUESTION | TURN_TO | TURN_AROUND),
    ("traveled", QUESTION | TURN_TO | TURN_AROUND),
    ("traveling", QUESTION | TURN_TO | TURN_AROUND),
    ("travelled", QUESTION | TURN_TO | TURN_AROUND),
    ("travelling", QUESTION | TURN_TO | TURN_AROUND),
    ("travels", QUESTION),
    ("trip", QUESTION | TURN_TO | TURN_AROUND),
    ("trips", QUESTION | TURN_TO),
    ("vacation", QUESTION | TURN_TO),
    ("visit", TURN_TO),
    ("walk", TURN_AROUND),
    ("walked", TURN_TO | TURN_AROUND),
    ("was", QUESTION_FROM),
    ("welcome", TURN_TO),
    ("went", QUESTION | TURN_TO),
    ("were", QUESTION_FROM),
];

/// Holidays.
const FEASTS: &[PlaceWordRow] = &[
    ("christmas", QUESTION | TURN),
    ("diwali", QUESTION),
    ("easter", QUESTION | TURN),
    ("eid", QUESTION),
    ("halloween", QUESTION | TURN),
    ("hanukkah", QUESTION | TURN),
    ("passover", QUESTION),
    ("ramadan", QUESTION | TURN),
    ("thanksgiving", QUESTION | TURN),
    ("valentine", QUESTION | TURN),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_for_searching() {
        for table in [PREPOSITIONS, VISITS, NOT_BEFORE_PLACES, MOTION, FEASTS] {
            assert!(table.windows(2).all(|w| w[0].0 < w[1].0), "{:?}", table.windows(2).find(|w| w[0].0 >= w[1].0));
        }
    }

    #[test]
    fn a_row_counts_only_for_its_readers() {
        assert!(holds_word(MOTION, "moves", QUESTION) && !holds_word(MOTION, "moves", TURN_TO));
        assert!(holds_word(MOTION, "welcome", TURN_TO) && !holds_word(MOTION, "welcome", QUESTION));
        assert!(is_holiday("diwali", QUESTION) && !is_holiday("diwali", TURN));
        assert!(!holds_word(MOTION, "", QUESTION) && !holds_word(MOTION, "sat", TURN_TO));
    }
}
