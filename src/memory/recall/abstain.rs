//! When recollection abstains: the decision that nothing in memory supports a question (decision 17).
//!
//! In: the evidence in its final order, the probability that the memory supports an answer, and the topics of the
//! question. Out: the reason in words if memory supports no answer. The context then begins with that reason, and the
//! evidence that was found follows it (`context.rs`).
//!
//! To make it abstain more or less often, set `recall.supported`. `agreement.rs` computes the probability.

use super::RankedCandidate;
use crate::index::QuestionTopic;
use types::config::RecallSettings;

/// The reason if every topic of the question is mentioned in the bank.
const NO_AGREEMENT: &str = "no statement fits its person and topic";
/// Most words of a question that a reason names.
const NAMED_WORDS: usize = 5;

/// Why memory supports no answer: nothing was found, which `stop_reason` explains, or `sufficiency` lies below
/// `settings.supported`. `None` if memory supports an answer.
pub(super) fn abstention(
    ranked: &[RankedCandidate],
    stop_reason: &str,
    sufficiency: f64,
    topics: &[QuestionTopic],
    settings: &RecallSettings,
) -> Option<String> {
    match ranked {
        [] => Some(stop_reason.to_owned()),
        _ => (sufficiency < settings.supported).then(|| missing_topics_text(topics)),
    }
}

/// The topics of the question that nobody mentions, in words.
fn missing_topics_text(topics: &[QuestionTopic]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for topic in topics.iter().filter(|topic| topic.parts == 0) {
        if !words.contains(&topic.word.as_str()) {
            words.push(&topic.word);
        }
    }
    if words.is_empty() {
        return NO_AGREEMENT.to_owned();
    }
    let more = if words.len() > NAMED_WORDS { ", …" } else { "" };
    words.truncate(NAMED_WORDS);
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("nobody mentions {}{more}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::{candidate, settings};

    #[test]
    fn it_abstains_without_evidence_and_below_the_bar() {
        let found = [RankedCandidate { candidate: candidate(1, "said", "2024-01-01T00:00:00Z"), rho: 1.0 }];
        let settings = RecallSettings { supported: 0.5, ..settings() };
        let topic =
            |word: &str, parts| QuestionTopic { word: word.to_owned(), parts, rarity: 1.0, is_name: word == "hugo" };
        let topics = [topic("soup", 2), topic("mongolia", 0), topic("mongolia", 0), topic("capital", 0)];
        let of = |ranked: &[RankedCandidate], sufficiency, topics: &[QuestionTopic]| {
            abstention(ranked, "round budget reached", sufficiency, topics, &settings)
        };
        assert_eq!(of(&[], 1.0, &topics).as_deref(), Some("round budget reached"));
        assert_eq!(of(&found, 0.49, &topics[..1]).as_deref(), Some(NO_AGREEMENT));
        assert_eq!(of(&found, 0.49, &topics).as_deref(), Some("nobody mentions \"mongolia\", \"capital\""));
        assert_eq!(of(&found, 0.49, &[topic("hugo", 0)]).as_deref(), Some("nobody mentions \"hugo\""));
        assert_eq!(of(&found, 0.5, &topics), None);
        let many: Vec<QuestionTopic> = ["a", "b", "c", "d", "e", "f"].map(|word| topic(word, 0)).into();
        assert!(of(&found, 0.0, &many).is_some_and(|reason| reason.ends_with("\"e\", …")));
    }
}
