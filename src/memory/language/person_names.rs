//! Names of people in English text.
//!
//! In: a text and the full names of the people known from the dialogue. Out: who is addressed, who is mentioned, and
//! who else is named next to a word such as "sister" or "friend". A nickname counts only as the beginning (three
//! letters or more) of exactly one known first name. Days, months and "I" are never names. A word that is not clearly a
//! person is left out.

use std::ops::Range;

pub use super::name_text::NameText;
use super::{
    calendar::month_number,
    name_runs::{NameRunReader, run_end},
    name_text::{NameWord, is_name_word},
    sentences::is_common_opening,
};

/// Runs of capitalised words that may be names, without a possessive ending. The first word of a sentence counts only
/// if it is not an ordinary word and another capitalised word follows.
#[must_use]
pub fn capitalised_runs(text: &str) -> Vec<Range<usize>> {
    let words = NameText::of(text).words;
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    while let Some(word) = words.get(start) {
        if !is_name_word(word) {
            start += 1;
            continue;
        }
        let end = run_end(&PersonNameRun { words: &words, start }, start);
        let last = words.get(end - 1).unwrap_or(word);
        let lonely_opening = word.opens && end == start + 1;
        if !lonely_opening {
            out.push(word.range.start..last.range.end);
        }
        start = end;
    }
    out
}

/// Runs without small words. A possessive first word does not end its run: "Rex's Park" is one run.
struct PersonNameRun<'w, 't> {
    words: &'w [NameWord<'t>],
    start: usize,
}

impl NameRunReader for PersonNameRun<'_, '_> {
    const MAX_LINKS: usize = 0;

    fn may_be_name(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(is_name_word)
    }

    fn may_link(&self, _: usize) -> bool {
        false
    }

    fn is_joined(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|w| w.follows && !w.opens)
    }

    fn ends_run(&self, at: usize) -> bool {
        at > self.start && self.words.get(at).is_some_and(|w| w.possessive)
    }
}

/// The known people that a text names, by full name, in the order of `known`.
#[must_use]
pub fn mentions(text: &str, known: &[String]) -> Vec<String> {
    NameText::of(text).mentions(known)
}

/// The known person whom a text addresses: "Hey Mel!", "Thanks, Melanie", "Melanie, did you…".
#[must_use]
pub fn addressee(text: &str, known: &[String]) -> Option<String> {
    NameText::of(text).addressee(known)
}

/// People named next to a word for a person: "my sister Sarah", "my friend Tom Hill". Known people are left out.
#[must_use]
pub fn companions(text: &str, known: &[String]) -> Vec<String> {
    NameText::of(text).companions(known)
}

impl NameText<'_> {
    /// See [`mentions`].
    #[must_use]
    pub fn mentions(&self, known: &[String]) -> Vec<String> {
        mentions_among(&self.words, known)
    }

    /// See [`addressee`].
    #[must_use]
    pub fn addressee(&self, known: &[String]) -> Option<String> {
        addressed_person(self.text, &self.words, known)
    }

    /// See [`companions`].
    #[must_use]
    pub fn companions(&self, known: &[String]) -> Vec<String> {
        companions_among(self.text, &self.words, known)
    }
}

fn mentions_among(words: &[NameWord<'_>], known: &[String]) -> Vec<String> {
    let named = |person: &String| {
        words.iter().enumerate().any(|(i, w)| w.capital && name_length(words, i, person, known).is_some())
    };
    known.iter().filter(|p| named(p)).cloned().collect()
}

fn addressed_person(text: &str, words: &[NameWord<'_>], known: &[String]) -> Option<String> {
    for i in 0..words.len() {
        let Some(word) = words.get(i).filter(|w| w.capital && !w.possessive) else { continue };
        let Some((person, length)) = known.iter().find_map(|p| Some((p, name_length(words, i, p, known)?))) else {
            continue;
        };
        let Some(last) = words.get(i + length - 1).filter(|l| !l.possessive) else { continue };
        let before = i.checked_sub(1).and_then(|j| words.get(j));
        let after = text.get(last.range.end..).unwrap_or_default().trim_start();
        let closes = after.is_empty()
            || !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '&' | '/'));
        let greeted = before.is_some_and(|b| GREETINGS.contains(&&*b.lower));
        let gap = before.map_or("", |b| text.get(b.range.end..word.range.start).unwrap_or_default());
        let set_off = gap.contains(',') && !joined_by_and(words, i + length);
        let opens = word.opens && after.starts_with([',', '!', ':', '?']);
        if (greeted && (closes || word.follows)) || opens || (set_off && closes && !follows_listed_name(words, i)) {
            return Some(person.clone());
        }
    }
    None
}

fn companions_among(text: &str, words: &[NameWord<'_>], known: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (i, noun) in words.iter().enumerate() {
        let relation = !noun.capital && !noun.possessive && PERSON_NOUNS.binary_search(&&*noun.lower).is_ok();
        if !relation {
            continue;
        }
        let Some(first) = words.get(i + 1).filter(|w| is_name_word(w) && !w.opens && !is_common_opening(&w.lower))
        else {
            continue;
        };
        let gap = text.get(noun.range.end..first.range.start).unwrap_or_default();
        // "my friend Tom", "my friend, Tom", but not "a partner with Google".
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

/// How many words from `i` on name a person: by full name, first name, or nickname.
fn name_length(words: &[NameWord<'_>], i: usize, person: &str, known: &[String]) -> Option<usize> {
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

/// "…, Anna and Tom": a list, not an address.
fn joined_by_and(words: &[NameWord<'_>], next: usize) -> bool {
    words.get(next).is_some_and(|w| matches!(&*w.lower, "and" | "or"))
}

/// "with Tom, Anna": the word before the comma is a name too.
fn follows_listed_name(words: &[NameWord<'_>], i: usize) -> bool {
    i.checked_sub(1).and_then(|j| words.get(j)).is_some_and(|w| is_name_word(w) && !w.opens)
}

/// Words before the name of the person who is addressed.
const GREETINGS: &[&str] = &[
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
    fn the_addressed_person_is_found() {
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
    fn a_nickname_counts_only_when_it_fits_one_person() {
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
    fn companions_follow_a_word_for_a_person() {
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
            let found: Vec<&str> = capitalised_runs(text).into_iter().map(|r| &text[r]).collect();
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
