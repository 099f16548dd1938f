//! Which dead letters hold words of a turn.
//!
//! In: texts of turns. Out: whether another text shares a run of sixteen letters and digits with one of them, or is a
//! short one as a whole. Escapes, spaces, capitals and punctuation do not count. Dead letters quote turns cut, escaped
//! or inside a sentence of ours, so nothing longer would find them all.

use std::collections::HashSet;

/// Letters and digits of a run.
const RUN: usize = 16;

/// Words of some turns.
#[derive(Debug, Default)]
pub(super) struct SharedWords {
    runs: HashSet<u64>,
    /// Texts shorter than a run.
    short: HashSet<String>,
}

impl SharedWords {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) {
        let letters = letters(text);
        if letters.len() < RUN {
            if !letters.is_empty() {
                self.short.insert(letters.into_iter().collect());
            }
            return;
        }
        self.runs.extend(letters.windows(RUN).map(hash));
    }

    /// Whether a text holds words of one that was added.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let letters = letters(text);
        letters.windows(RUN).map(hash).any(|run| self.runs.contains(&run))
            || (letters.len() < RUN && self.short.contains(&letters.into_iter().collect::<String>()))
    }
}

fn letters(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn hash(run: &[char]) -> u64 {
    let mut hash = xxhash_rust::xxh3::Xxh3Default::new();
    run.iter().for_each(|letter| hash.update(&u32::from(*letter).to_le_bytes()));
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_cut_escaped_or_inside_a_sentence() {
        let mut words = SharedWords::default();
        words.add("I moved to Lisbon in May,\nwith my cat.");
        words.add("ok");
        for quote in [
            r#"{"text":"I moved to Lisbon in May,\nwith my c"#,
            "Ann said on 2024-05-06 that i MOVED to  Lisbon in May",
            "OK!",
        ] {
            assert!(words.are_in(quote), "{quote}");
        }
        for other in ["I moved to Porto.", "ok, then", r#"{"speaker":"Ann","text":"I left Lisbon"}"#, ""] {
            assert!(!words.are_in(other), "{other}");
        }
    }
}
