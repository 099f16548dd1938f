//! What of a prompt is asked.
//!
//! In: what a person typed. Out: whether it can be asked about at all, and a question that a memory takes: the beginning
//! and the end of a long prompt.

/// How much of a long prompt is asked: of its beginning, and of its end.
const QUESTION_BYTES: (usize, usize) = (1_400, 600);

/// The question of a prompt; `None` for "yes", "go on" and the like, which call nothing to mind.
#[must_use]
pub fn question_of(prompt: &str) -> Option<String> {
    let asks = if prompt.is_ascii() { prompt.split_whitespace().count() >= 3 } else { prompt.chars().count() >= 4 };
    if !asks {
        return None;
    }
    let (first, last) = QUESTION_BYTES;
    if prompt.len() <= first + last {
        return Some(prompt.to_owned());
    }
    let head = prompt.get(..prompt.floor_char_boundary(first)).unwrap_or_default();
    let tail = prompt.get(prompt.floor_char_boundary(prompt.len() - last)..).unwrap_or_default();
    Some(format!("{head}\n{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_prompts_ask_nothing_and_long_ones_are_cut() {
        for (prompt, asks) in
            [("yes", false), ("go on", false), ("who owns it?", true), ("谁拥有传感器", true), ("", false)]
        {
            assert_eq!(question_of(prompt).is_some(), asks, "{prompt}");
        }
        let long = question_of(&"ä".repeat(5_000)).unwrap();
        assert!(long.len() <= 2_001 && long.contains('\n'));
        assert_eq!(question_of("Who owns it?").unwrap(), "Who owns it?");
    }
}
