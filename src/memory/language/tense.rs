//! Whether a clause is about the past or about the future.
//!
//! In: a clause's words in lower case and a place in it. Out: the tense of the nearest wording that has one, or
//! `Unclear`. Nothing outside the given clause is read.

/// The time that a clause is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    /// It happened.
    Past,
    /// It is going to happen.
    Future,
    /// Nothing in the wording shows it.
    Unclear,
}

/// The tense of a sentence: that of its first wording that has one.
#[must_use]
pub fn tense(sentence: &str) -> Tense {
    let lower = sentence.to_lowercase();
    let mut words: Vec<&str> = Vec::new();
    for piece in lower.split_whitespace() {
        // Marks matter only inside a word: "i ' ll".
        words.extend(
            piece
                .split_inclusive(['\'', '’'])
                .flat_map(|p| {
                    let bare = p.trim_matches(|c: char| !c.is_alphanumeric());
                    let mark = p
                        .char_indices()
                        .next_back()
                        .filter(|(_, c)| matches!(c, '\'' | '’'))
                        .and_then(|(i, _)| p.get(i..));
                    [Some(bare), mark]
                })
                .flatten(),
        );
    }
    tense_at(&words, 0)
}

/// The tense of the wording nearest to `at`, an index into the clause's words; if two are equally near, the one before
/// `at` counts.
#[must_use]
pub fn tense_at(clause: &[&str], at: usize) -> Tense {
    let mut best: Option<(usize, Tense)> = None;
    for i in 0..clause.len() {
        if best.is_some_and(|(d, _)| i > at && 2 * (i - at) > d) {
            break;
        }
        let Some(tense) = tense_of(clause, i) else { continue };
        let distance = 2 * i.abs_diff(at) + usize::from(i > at);
        if best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, tense));
        }
    }
    best.map_or(Tense::Unclear, |(_, t)| t)
}

fn tense_of(clause: &[&str], i: usize) -> Option<Tense> {
    let word = |j: usize| clause.get(j).copied().unwrap_or_default();
    let before = |n: usize| i.checked_sub(n).map(word).unwrap_or_default();
    let this = word(i);
    let future = match this {
        "will" | "gonna" | "shall" | "upcoming" | "tomorrow" | "tonight" => true,
        "ll" => is_apostrophe(before(1)),
        "going" => word(i + 1) == "to" && !matches!(before(1), "was" | "were" | "been" | "keep" | "started" | "love"),
        "looking" => word(i + 1) == "forward",
        "wait" => matches!(before(1), "t" | "cannot" | "not"),
        "plan" | "plans" | "planning" | "hope" | "hoping" | "want" | "need" | "intend" | "scheduled" => {
            matches!(word(i + 1), "to" | "for" | "on")
        }
        "let" => word(i + 2) == "s",
        "see" => word(i + 1) == "you" && matches!(before(1), "" | "," | "." | "!" | "to"),
        _ => false,
    };
    if future {
        return Some(Tense::Future);
    }
    if matches!((this, before(1)), ("got", "ve" | "have" | "has")) {
        return None;
    }
    // "is called", "feel loved", "so excited": a descriptive participle is not a past form.
    let describes = matches!(
        before(1),
        "is" | "are"
            | "am"
            | "be"
            | "being"
            | "re"
            | "m"
            | "feel"
            | "feels"
            | "get"
            | "so"
            | "very"
            | "really"
            | "a"
            | "the"
    ) || (before(1) == "s" && is_apostrophe(before(2)));
    let participle = this.len() > 4 && this.ends_with("ed") && !ADJECTIVES.contains(&this) && !describes;
    (PAST.binary_search(&this).is_ok() || participle).then_some(Tense::Past)
}

fn is_apostrophe(word: &str) -> bool {
    matches!(word, "'" | "’")
}

/// Words in -ed that are not past forms.
const ADJECTIVES: &[&str] = &[
    "amazed",
    "ashamed",
    "bored",
    "committed",
    "concerned",
    "confused",
    "dedicated",
    "determined",
    "embarrassed",
    "excited",
    "exceed",
    "exhausted",
    "frustrated",
    "hundred",
    "indeed",
    "inspired",
    "interested",
    "limited",
    "married",
    "motivated",
    "naked",
    "overwhelmed",
    "pleased",
    "prepared",
    "proceed",
    "psyched",
    "pumped",
    "relaxed",
    "relieved",
    "sacred",
    "scared",
    "shocked",
    "speed",
    "stoked",
    "stressed",
    "succeed",
    "supposed",
    "surprised",
    "thrilled",
    "tired",
    "unexpected",
    "united",
    "wicked",
    "worried",
];

/// Past forms that do not end in -ed, sorted. Those that look like the present form are left out.
const PAST: &[&str] = &[
    "ate", "became", "been", "began", "bought", "broke", "brought", "built", "came", "caught", "chose", "did", "died",
    "drank", "drew", "drove", "fell", "felt", "flew", "forgot", "fought", "found", "gave", "got", "grew", "had",
    "heard", "held", "hung", "kept", "knew", "led", "left", "lost", "made", "met", "paid", "ran", "rode", "sang",
    "sat", "saw", "sent", "shot", "slept", "sold", "spent", "spoke", "stood", "swam", "taught", "told", "took",
    "tried", "was", "went", "were", "woke", "won", "wore", "wrote",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(clause: &str, at: &str, expected: Tense) {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let at = words.iter().position(|w| *w == at).unwrap();
        assert_eq!(tense_at(&words, at), expected, "{clause}");
    }

    #[test]
    fn the_nearest_wording_decides() {
        check("we went hiking on friday", "friday", Tense::Past);
        check("i ' ll call you on friday", "friday", Tense::Future);
        check("i went home and will be back on friday", "friday", Tense::Future);
        check("i am excited about friday", "friday", Tense::Unclear);
        check("we are planning to meet on friday", "friday", Tense::Future);
        check("i can ' t wait for friday", "friday", Tense::Future);
        check("she visited us in june", "june", Tense::Past);
    }

    #[test]
    fn a_sentence_has_the_tense_of_its_first_wording() {
        let check = |text: &str, expected| assert_eq!(tense(text), expected, "{text}");
        check("I went home, and I'll rest.", Tense::Past);
        check("I'll rest where I stayed.", Tense::Future);
        check("He’ll be there.", Tense::Future);
        check("It's called Rex.", Tense::Unclear);
        check("I've got a dog.", Tense::Unclear);
        check("I love dogs.", Tense::Unclear);
        check("", Tense::Unclear);
    }

    #[test]
    fn the_word_lists_are_sorted_for_searching() {
        assert!(PAST.is_sorted());
    }
}
