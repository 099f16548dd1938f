//! The name by which a turn greets somebody.
//!
//! In: the words of a turn. Out: the name after its first greeting, capitalised as written. Who is meant is not decided
//! here. "Hi there" and "Thanks for coming" greet nobody by name.

use std::sync::LazyLock;

use regex::Regex;

use super::sentences::is_common_opening;

/// `None` only if the pattern were malformed, which a test rules out.
static GREETING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[.!?]\s+)(?i:hey|hi|hello|(?:good )?morning|good (?:afternoon|evening)|thanks|thank you)[ ,]+(\p{Lu}\p{L}+)",
    )
    .ok()
});

/// The name by which a turn greets somebody.
#[must_use]
pub fn greeted_name(text: &str) -> Option<&str> {
    let found = GREETING.as_ref()?.captures(text)?.get(1)?.as_str();
    (!is_common_opening(&found.to_lowercase())).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_names_whom_it_greets() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(greeted_name(text), expected, "{text}");
        check("Hey Kate! How are you?", Some("Kate"));
        check("hi, Kate", Some("Kate"));
        check("Good morning Jo.", Some("Jo"));
        check("I slept well. Thanks, Mel!", Some("Mel"));
        check("Hi there", None);
        check("Hey There", None);
        check("Thanks for coming, Kate", None);
        check("They say hi Kate", None);
        check("", None);
    }
}
