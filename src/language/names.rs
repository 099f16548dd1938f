//! Names of people in English text.
//!
//! In: a text and the full names of the people known from the dialogue. Out: who is called,
//! who is mentioned, and who else is named beside a word such as "sister" or "friend". A
//! nickname counts only as a beginning (three letters or more) of exactly one known first
//! name. Days, months and "I" are never names. What is not clearly a person is left out.

use std::{borrow::Cow, ops::Range};

pub use super::places::locations;
use super::{
    calendar::{month_number, weekday_number},
    sentences::is_common_opening,
};

/// Runs of capitalised words that may be names, without a possessive ending. The first
/// word of a sentence counts only when it is no ordinary word and another capital follows.
#[must_use]
pub fn capitalised(text: &str) -> Vec<Range<usize>> {
    let words = name_words(text);
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut i = 0;
    while let Some(word) = words.get(i) {
        let mut next = i + 1;
        if !is_name_word(word) {
            i = next;
            continue;
        }
        while let Some(more) = words.get(next).filter(|w| is_name_word(w) && w.follows && !w.opens) {
            next += 1;
            if more.possessive {
                break;
            }
        }
        let last = words.get(next - 1).unwrap_or(word);
        let lonely_opening = word.opens && next == i + 1;
        if !lonely_opening {
            out.push(word.range.start..last.range.end);
        }
        i = next;
    }
    out
}

/// The known people that a text names, by full name, in the order of `known`.
#[must_use]
pub fn mentions(text: &str, known: &[String]) -> Vec<String> {
    NameText::of(text).mentions(known)
}

/// The known person that a text calls: "Hey Mel!", "Thanks, Melanie", "Melanie, did you…".
#[must_use]
pub fn addressee(text: &str, known: &[String]) -> Option<String> {
    NameText::of(text).addressee(known)
}

/// People named beside a word for a person: "my sister Sarah", "my friend Tom Hill".
/// Known people are left out.
#[must_use]
pub fn companions(text: &str, known: &[String]) -> Vec<String> {
    NameText::of(text).companions(known)
}

/// A text split once, for a caller that asks several things of it.
pub struct NameText<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<NameWord<'t>>,
}

impl<'t> NameText<'t> {
    /// Splits a text.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        Self { text, words: name_words(text) }
    }

    /// See [`mentions`].
    #[must_use]
    pub fn mentions(&self, known: &[String]) -> Vec<String> {
        mentioned(&self.words, known)
    }

    /// See [`addressee`].
    #[must_use]
    pub fn addressee(&self, known: &[String]) -> Option<String> {
        called(self.text, &self.words, known)
    }

    /// See [`companions`].
    #[must_use]
    pub fn companions(&self, known: &[String]) -> Vec<String> {
        accompanying(self.text, &self.words, known)
    }
}

fn mentioned(words: &[NameWord<'_>], known: &[String]) -> Vec<String> {
    let named =
        |person: &String| words.iter().enumerate().any(|(i, w)| w.capital && calls(words, i, person, known).is_some());
    known.iter().filter(|p| named(p)).cloned().collect()
}

fn called(text: &str, words: &[NameWord<'_>], known: &[String]) -> Option<String> {
    for i in 0..words.len() {
        let Some(word) = words.get(i).filter(|w| w.capital && !w.possessive) else { continue };
        let Some((person, length)) = known.iter().find_map(|p| Some((p, calls(words, i, p, known)?))) else { continue };
        let Some(last) = words.get(i + length - 1).filter(|l| !l.possessive) else { continue };
        let before = i.checked_sub(1).and_then(|j| words.get(j));
        let after = text.get(last.range.end..).unwrap_or_default().trim_start();
        let closes = after.is_empty()
            || !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '&' | '/'));
        let greeted = before.is_some_and(|b| CALLS.contains(&&*b.lower));
        let gap = before.map_or("", |b| text.get(b.range.end..word.range.start).unwrap_or_default());
        let set_off = gap.contains(',') && !joined_by_and(words, i + length);
        let opens = word.opens && after.starts_with([',', '!', ':', '?']);
        if (greeted && (closes || word.follows)) || opens || (set_off && closes && !lists(words, i)) {
            return Some(person.clone());
        }
    }
    None
}

fn accompanying(text: &str, words: &[NameWord<'_>], known: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (i, noun) in words.iter().enumerate() {
        let relation = !noun.capital && !noun.possessive && PERSON_NOUNS.binary_search(&&*noun.lower).is_ok();
        // "a partner with Google", "my friend, Tom" : the name follows at once or after a comma.
        if !relation {
            continue;
        }
        let Some(first) = words.get(i + 1).filter(|w| is_name_word(w) && !w.opens && !is_common_opening(&w.lower))
        else {
            continue;
        };
        let gap = text.get(noun.range.end..first.range.start).unwrap_or_default();
        if !matches!(gap, " " | ", " | " - ") {
            continue;
        }
        let mut name = first.text(text).to_owned();
        let second = words.get(i + 2).filter(|w| !first.possessive && is_name_word(w) && w.follows && !w.opens);
        if let Some(second) = second.filter(|_| gap == " ") {
            name = format!("{name} {}", second.text(text));
        }
        if known.iter().any(|p| same_first_name(p, &name)) || out.contains(&name) {
            continue;
        }
        out.push(name);
    }
    out
}

/// A word of a text, apostrophes inside kept, a possessive ending left out.
pub(super) struct NameWord<'t> {
    pub(super) range: Range<usize>,
    pub(super) lower: Cow<'t, str>,
    pub(super) capital: bool,
    pub(super) possessive: bool,
    /// Whether it opens a sentence or a quotation.
    pub(super) opens: bool,
    /// Whether one space is all that stands between it and the word before it.
    pub(super) follows: bool,
}

impl NameWord<'_> {
    pub(super) fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.range.clone()).unwrap_or_default()
    }
}

fn name_words(text: &str) -> Vec<NameWord<'_>> {
    let mut out: Vec<NameWord<'_>> = Vec::with_capacity(text.len() / 5);
    let mut end_before = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if !c.is_alphanumeric() {
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some(&(i, c)) = rest.peek() {
            let inner = matches!(c, '\'' | '’' | '-' | '.')
                && text.get(i + c.len_utf8()..).and_then(|t| t.chars().next()).is_some_and(char::is_alphabetic)
                && !(c == '.' && end - start > 1);
            if !c.is_alphanumeric() && !inner {
                break;
            }
            end = i + c.len_utf8();
            rest.next();
        }
        let whole = text.get(start..end).unwrap_or_default();
        let bare = ["'s", "’s", "'S"].iter().find_map(|s| whole.strip_suffix(s)).unwrap_or(whole);
        let gap = text.get(end_before..start).unwrap_or_default();
        let opens = out.is_empty()
            || gap != " "
                && (gap.contains(['.', '!', '?', '…', '\n', '"', '“', ':', '*'])
                    || gap.chars().any(|c| c as u32 > 0x2fff));
        out.push(NameWord {
            range: start..start + bare.len(),
            lower: lower_case(bare),
            capital: c.is_uppercase(),
            possessive: bare.len() < whole.len(),
            opens,
            follows: gap == " ",
        });
        end_before = end;
    }
    out
}

fn lower_case(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase())
    }
}

/// Whether a word looks like a part of a name.
pub(super) fn is_name_word(word: &NameWord<'_>) -> bool {
    if !word.capital {
        return false;
    }
    let lower = &*word.lower;
    let pronoun = lower == "i" || lower.starts_with("i'") || lower.starts_with("i’");
    !pronoun
        && weekday_number(lower).is_none()
        && (month_number(lower).is_none() || lower == "may")
        && !(word.opens && is_common_opening(lower))
}

/// How many words from `i` on call a person: the full name, the first name, or a nickname.
fn calls(words: &[NameWord<'_>], i: usize, person: &str, known: &[String]) -> Option<usize> {
    let said = &words.get(i)?.lower;
    let mut names = person.split_whitespace().map(str::to_lowercase);
    let first = names.next()?;
    if **said == *first {
        let more = names.enumerate().take_while(|(n, name)| words.get(i + 1 + n).is_some_and(|w| *w.lower == **name));
        return Some(1 + more.count());
    }
    let begins = |p: &str| p.split_whitespace().next().is_some_and(|f| f.to_lowercase().starts_with(&**said));
    let nickname =
        said.chars().count() >= 3 && begins(person) && !is_common_opening(said) && month_number(said).is_none();
    let clear = nickname && known.iter().filter(|p| begins(p)).count() == 1;
    clear.then_some(1)
}

fn same_first_name(person: &str, name: &str) -> bool {
    let first = |n: &str| n.split_whitespace().next().unwrap_or_default().to_lowercase();
    first(person) == first(name)
}

/// "…, Anna and Tom": a list, not a call.
fn joined_by_and(words: &[NameWord<'_>], next: usize) -> bool {
    words.get(next).is_some_and(|w| matches!(&*w.lower, "and" | "or"))
}

/// "with Tom, Anna": the word before the comma is a name too.
fn lists(words: &[NameWord<'_>], i: usize) -> bool {
    i.checked_sub(1).and_then(|j| words.get(j)).is_some_and(|w| is_name_word(w) && !w.opens)
}

/// Words that are said before the name of the person one speaks to.
const CALLS: &[&str] = &[
    "bye",
    "congrats",
    "congratulations",
    "dear",
    "goodbye",
    "hello",
    "hey",
    "hi",
    "morning",
    "ok",
    "okay",
    "oh",
    "sorry",
    "thanks",
    "thank",
    "thx",
    "welcome",
    "wow",
    "yeah",
    "yes",
    "yo",
    "you",
];

/// Words for a person that a name may follow, sorted.
const PERSON_NOUNS: &[&str] = &[
    "aunt",
    "boss",
    "boyfriend",
    "brother",
    "buddy",
    "classmate",
    "coach",
    "colleague",
    "cousin",
    "coworker",
    "dad",
    "daughter",
    "father",
    "fiance",
    "fiancee",
    "fiancé",
    "fiancée",
    "friend",
    "girlfriend",
    "granddaughter",
    "grandfather",
    "grandma",
    "grandmother",
    "grandpa",
    "grandson",
    "husband",
    "manager",
    "mentor",
    "mom",
    "mother",
    "mum",
    "neighbor",
    "neighbour",
    "nephew",
    "niece",
    "partner",
    "roommate",
    "sister",
    "son",
    "stepbrother",
    "stepfather",
    "stepmother",
    "stepsister",
    "teacher",
    "teammate",
    "therapist",
    "uncle",
    "wife",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> Vec<String> {
        ["Caroline", "Melanie", "Tom Hill"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_person_called_is_found() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(addressee(text, &people()).as_deref(), expected, "{text}");
        };
        check("Hey Mel! Good to see you!", Some("Melanie"));
        check("Thanks, Melanie", Some("Melanie"));
        check("Thanks Melanie for the cake", Some("Melanie"));
        check("Melanie, did you see it?", Some("Melanie"));
        check("That's great, Caroline!", Some("Caroline"));
        check("I agree, Mel. It was fun.", Some("Melanie"));
        check("Tom Hill, are you there?", Some("Tom Hill"));
        check("Thank you, Tom!", Some("Tom Hill"));
        check("I met Melanie at the park.", None);
        check("Melanie went home.", None);
        check("With Caroline, Melanie and Tom", None);
        check("Melanie's cat, of course", None);
        check("Thanks, Me", None);
        check("hello there", None);
        check("", None);
    }

    #[test]
    fn a_nickname_counts_only_when_it_is_one_persons() {
        let people = ["Melanie", "Melissa"].map(str::to_owned);
        assert_eq!(addressee("Hey Mel!", &people), None);
        assert_eq!(addressee("Hey Melan!", &people).as_deref(), Some("Melanie"));
        assert_eq!(mentions("I saw Mel", &people), Vec::<String>::new());
    }

    #[test]
    fn known_people_are_mentioned_by_full_name() {
        let check = |text: &str, expected: &[&str]| assert_eq!(mentions(text, &people()), expected, "{text}");
        check("I saw Melanie's kids with Tom.", &["Melanie", "Tom Hill"]);
        check("melanie is written small", &[]);
        check("Tomorrow I go. Mel too.", &["Melanie"]);
        check("nobody", &[]);
    }

    #[test]
    fn others_are_named_beside_a_word_for_a_person() {
        let check = |text: &str, expected: &[&str]| assert_eq!(companions(text, &people()), expected, "{text}");
        check("I went with my sister Sarah to the lake", &["Sarah"]);
        check("my friend, Bob Stone, and my wife Ann", &["Bob", "Ann"]);
        check("my friend Bob Stone came", &["Bob Stone"]);
        check("my friend Melanie came", &[]);
        check("my friend. Then we left", &[]);
        check("my sister Sarah's house", &["Sarah"]);
        check("my brother on Friday and my friend I like", &[]);
        check("Sarah is nice", &[]);
    }

    #[test]
    fn capitalised_runs_leave_out_days_months_and_openings() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = capitalised(text).into_iter().map(|r| &text[r]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("We saw Lake Tahoe on Friday in June", &["Lake Tahoe"]);
        check("The dog met Rex's owner", &["Rex"]);
        check("Running is fun. I think I'm ok", &[]);
        check("Grand Hotel is full", &["Grand Hotel"]);
    }

    #[test]
    fn the_word_lists_are_sorted_for_searching() {
        assert!(PERSON_NOUNS.is_sorted(), "{:?}", PERSON_NOUNS.windows(2).find(|w| w[0] >= w[1]));
    }
}
