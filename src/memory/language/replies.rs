//! Replies that leave words out: "Mine is at the embassy", "Me too", "So did I".
//!
//! In: the text of a turn. Out: whether it can only be understood with the turn that it answers. A table of forms in
//! five languages; in another language no reply is recognised.

use std::sync::LazyLock;

use regex::Regex;

/// Such a form stands within this many characters.
const LOOKED_AT: usize = 60;

/// Whether a turn leaves out a noun or a verb of the turn that it answers.
#[must_use]
pub fn leaves_words_out(text: &str) -> bool {
    let beginning: String = text.trim().chars().take(LOOKED_AT).collect();
    let plain = beginning.to_lowercase().replace('\u{2019}', "'");
    LEFT_OUT.as_ref().is_some_and(|pattern| pattern.is_match(&plain))
}

/// `None` only if the pattern were malformed, which a test rules out.
static LEFT_OUT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        ^(?:(?:and|but|oh|well|no|yes|yeah)[,\s]+)*
        (?:
            (?:mine|ours|hers|theirs)\b
            | (?:me|us)\ (?:too|neither|either)\b | same\ here\b
            | (?:so|neither|nor)\ (?:do|did|am|was|have|had|will|would|can|could)\ (?:i|we)\b
            | i\ (?:do|did|don't|didn't|am|was|have|haven't|would|wouldn't|will|won't|can|can't)
                (?:\ (?:too|not|neither|either))?\s*(?:[.,!;]|$)
            | (?:ich|wir)\ (?:auch|nicht)\b | (?:meiner|meins|unserer|unseres)\b
            | meine\ (?:ist|sind|liegt|liegen|war|waren|steht|stehen)\b
            | (?:moi|nous)\ (?:aussi|non\ plus)\b | (?:le\ mien|la\ mienne|les\ mien(?:ne)?s)\b
            | (?:yo|nosotros|nosotras)\ (?:también|tampoco)\b | (?:el\ mío|la\ mía|los\ míos|las\ mías)\b
            | 我也 | 我的(?:在|是)
        )",
    )
    .ok()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_need_the_turn_before() {
        assert!(LEFT_OUT.is_some());
        for (text, left_out) in [
            ("Mine is at the embassy.", true),
            ("Oh, mine broke last year.", true),
            ("Me too!", true),
            ("So did I, on Friday.", true),
            ("I don't.", true),
            ("Meiner liegt in der Botschaft.", true),
            ("Ich auch, seit Mai.", true),
            ("Moi aussi.", true),
            ("La mía está en casa.", true),
            ("我的在大使馆。", true),
            ("My passport is in the drawer.", false),
            ("The mine closed in 1990.", false),
            ("I don't like coffee.", false),
            ("Meine Mutter ist in Rom.", false),
            ("", false),
        ] {
            assert_eq!(leaves_words_out(text), left_out, "{text}");
        }
    }
}
