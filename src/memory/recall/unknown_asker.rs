//! The notice for an asker who does not speak in the bank.
//!
//! In: the asker's name, and the names of some speakers. Out: the answer's notice, and the reason why a question in the
//! first person has no evidence. Names are put on one line, and cut.

use types::model::{EvidenceNotice, NoticeCode};

/// The most characters of a name that a notice repeats.
const NAME_CHARACTERS: usize = 100;

/// A name as a notice shows it: on one line, and cut.
fn shown_name(name: &str) -> String {
    format!("{:?}", name.chars().take(NAME_CHARACTERS).collect::<String>())
}

/// Why recollection stops for a question in the first person whose asker has not spoken.
pub(super) fn no_words_of(asker: &str) -> String {
    format!("the asker {} does not speak in this bank", shown_name(asker))
}

/// The notice that an asker does not speak in the bank. `known` are some who do.
pub(super) fn unknown_asker_notice(asker: &str, known: &[String]) -> EvidenceNotice {
    let known: Vec<String> = known.iter().map(|name| shown_name(name)).collect();
    let who = if known.is_empty() { "nobody does yet".to_owned() } else { format!("there speak {}", known.join(", ")) };
    let message = format!("asker {} does not speak in the bank; {who}", shown_name(asker));
    EvidenceNotice { code: NoticeCode::UnknownAsker, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_shows_a_name_on_one_line_and_cut() {
        let EvidenceNotice { message, .. } =
            unknown_asker_notice(&format!("Cy\n## {}", "x".repeat(1_000)), &["Ann Lee".to_owned()]);
        assert!(
            message.starts_with("asker \"Cy\\n## xxx") && message.ends_with("there speak \"Ann Lee\""),
            "{message}"
        );
        assert!(!message.contains('\n') && message.chars().count() < 200, "{message}");
    }
}
