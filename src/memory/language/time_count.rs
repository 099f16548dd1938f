//! How many expressions of time a text has, including vague ones.
//!
//! In: English text. Out: a count; nothing is resolved. A question about a time prefers texts that say when something
//! was, even vaguely.

use std::sync::LazyLock;

use regex::Regex;

const WEEKDAYS: &str = "monday|tuesday|wednesday|thursday|friday|saturday|sunday";
const SEASONS: &str = "summer|winter|spring|fall|autumn";
const MONTHS: &str = "january|february|march|april|june|july|august|september|october|november|december";
const UNITS: &str = "minutes?|hours?|days?|weeks?|weekends?|months?|years?|decades?";
const NUMBERS: &str = r"\d+|a|an|one|two|three|four|five|six|seven|eight|nine|ten|few|couple of|several|many";

/// `None` only if the pattern were malformed, which the tests rule out.
static EXPRESSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|previous|coming) (?:night|week|weekend|month|year|{SEASONS}|{WEEKDAYS}|{MONTHS}|may|few (?:days|weeks|months|years))|(?:{NUMBERS}) (?:{UNITS})(?: ago)?|(?:on |last |next )?(?:{WEEKDAYS})s?|{MONTHS}|in may|(?:19|20)\d\d|recently|lately|since|ago|weekend|this morning|\d{{1,2}}(?:st|nd|rd|th)|\d{{1,2}} ?(?:am|pm)|(?:in|since|during) (?:{SEASONS})|christmas|thanksgiving|halloween|birthday|anniversary)\b"
    ))
    .ok()
});

/// The number of expressions of time in a text.
#[must_use]
pub fn count_times(text: &str) -> usize {
    EXPRESSION.as_ref().map_or(0, |pattern| pattern.find_iter(text).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_and_vague_expressions_count() {
        let check = |text: &str, expected| assert_eq!(count_times(text), expected, "{text}");
        check("We sailed last week, since Tuesdays are free", 3);
        check("Three years ago, in May, on my birthday", 3);
        check("I sold it at 5 pm on the 3rd", 2);
        check("I may march on", 1);
        check("The boat is red.", 0);
    }
}
