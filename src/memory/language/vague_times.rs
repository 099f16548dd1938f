//! Whether a text contains a vague expression of time.
//!
//! In: a text. Out: true if it contains wording such as "recently", "a few years ago" or "the other day", which names a
//! time but not an interval. Exact times in the same text do not matter.

use std::sync::LazyLock;

use regex::Regex;

/// Whether a text contains an expression of time that does not name an interval.
#[must_use]
pub fn has_vague_time(text: &str) -> bool {
    VAGUE.as_ref().is_some_and(|r| r.is_match(text))
}

/// `None` only if the pattern were malformed, which the tests rule out.
static VAGUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi-u)\b(?:
            recently | lately | soon | someday | nowadays | formerly | previously | eventually
            | the\ other\ (?:day|night|week) | one\ day | some\ day | these\ days | those\ days | back\ then
            | a\ while\ (?:ago|back) | long\ ago | ages\ ago | (?:days|weeks|months|years|decades)\ (?:ago|back)
            | (?:last|this|next|in\ the)\ (?:spring|summer|fall|autumn|winter)
            | (?:when|since|while)\ i\ was | as\ a\ (?:kid|child|teenager|teen) | growing\ up | in\ the\ past
            | for\ (?:a\ while|years|months|weeks|ages) | used\ to | over\ the\ years | at\ some\ point
        )\b",
    )
    .ok()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_wording_is_recognised() {
        assert!(VAGUE.is_some());
        for text in ["I moved recently.", "a few years ago", "The other day", "When I was ten", "last summer", "Soon!"]
        {
            assert!(has_vague_time(text), "{text}");
        }
        for text in ["yesterday", "one dayroom", "", "I like spring water", "sooner"] {
            assert!(!has_vague_time(text), "{text}");
        }
    }
}
