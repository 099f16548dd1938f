//! Whether words speak of a person by name, or call that person.
//!
//! In: the words of a turn, and which words are the person's names. Out: whether it says something of the person:
//! "Greta's birthday", "Greta plays", "my friend Greta". A name that is called has a mark on a side, or a greeting
//! before it: "Thanks, Greta!", "Greta, look", "hey Greta how are you".

/// Words before a name that is called.
const CALLS: &[&str] = &[
    "afternoon",
    "bye",
    "congrats",
    "dear",
    "evening",
    "goodbye",
    "hello",
    "hey",
    "hi",
    "morning",
    "night",
    "ok",
    "okay",
    "thanks",
    "wow",
    "yes",
    "you",
];

/// Whether words speak of a person whose names `is_name` knows.
#[must_use]
pub fn speaks_of(text: &str, is_name: impl Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        let (name, ending) = word.split_at(word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len()));
        if !name.starts_with(char::is_uppercase) || !is_name(name) {
            return false;
        }
        let before = at.checked_sub(1).and_then(|at| words.get(at)).copied();
        let calls = |word: &str| CALLS.binary_search(&word.to_lowercase().as_str()).is_ok();
        let is_called = before.is_some_and(|word| word.ends_with([',', '!', '.', '?']) || calls(word));
        let goes_on = words.get(at + 1).is_some_and(|next| next.starts_with(char::is_lowercase));
        let is_led_to = before.is_some_and(|word| {
            word.starts_with(char::is_lowercase) && word.ends_with(char::is_alphanumeric) && !calls(word)
        });
        matches!(ending, "'s" | "’s" | "'" | "’") || ending.is_empty() && goes_on && !is_called || is_led_to
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_spoken_of_or_called() {
        assert!(CALLS.is_sorted());
        for (text, expected) in [
            ("Greta's birthday is on 3 May.", true),
            ("Greta plays the trombone.", true),
            ("My friend Greta works there.", true),
            ("I met Greta.", true),
            ("Thanks, Greta!", false),
            ("Hey Greta how are you?", false),
            ("Greta, look at this.", false),
            ("That is great, Greta so glad.", false),
            ("The greta is a river.", false),
            ("Gretas are rare.", false),
            ("", false),
        ] {
            assert_eq!(speaks_of(text, |word| word == "Greta" || word == "greta"), expected, "{text}");
        }
    }
}
