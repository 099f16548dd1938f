//! What is said of an asker who does not speak in the bank.
//!
//! In: the asker's name, and some who do speak. Out: the notice of the answer, and why a question in the first person has
//! no evidence. Names are on one line, and cut.

use nouns::model::{Notice, NoticeCode};

/// The most characters of a name that a notice repeats.
const NAME_CHARACTERS: usize = 100;

/// A name as a notice shows it: on one line, and cut.
fn named(name: &str) -> String {
    format!("{:?}", name.chars().take(NAME_CHARACTERS).collect::<String>())
}

/// Why recollection stops for a question in the first person whose asker has not spoken.
pub(super) fn no_words_of(asker: &str) -> String {
    format!("the asker {} does not speak in this bank", named(asker))
}

/// The notice that an asker does not speak in the bank, where these do.
pub(super) fn unknown_asker(asker: &str, known: &[String]) -> Notice {
    let known: Vec<String> = known.iter().map(|name| named(name)).collect();
    let who = if known.is_empty() { "nobody does yet".to_owned() } else { format!("there speak {}", known.join(", ")) };
    let message = format!("asker {} does not speak in the bank; {who}", named(asker));
    Notice { code: NoticeCode::UnknownAsker, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_shows_a_name_on_one_line_and_cut() {
        let Notice { message, .. } = unknown_asker(&format!("Cy\n## {}", "x".repeat(1_000)), &["Ann Lee".to_owned()]);
        assert!(
            message.starts_with("asker \"Cy\\n## xxx") && message.ends_with("there speak \"Ann Lee\""),
            "{message}"
        );
        assert!(!message.contains('\n') && message.chars().count() < 200, "{message}");
    }
}
