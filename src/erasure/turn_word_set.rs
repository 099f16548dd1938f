//! Whether dead letters hold words of a turn.
//!
//! In: texts of turns. Out: whether another text shares a run of sixteen letters and digits with one of them, or equals
//! a short one, in normal form. Escapes, spaces, marks and punctuation do not count. Dead letters quote turns cut,
//! escaped or inside a sentence of ours, so longer runs would miss some.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

use super::text_normal_form::{BackslashReading, each_normal};
use types::model::Turn;

/// Letters and digits in a run.
const RUN: usize = 16;

/// Words of some turns.
#[derive(Debug, Default)]
pub(super) struct TurnWordSet {
    runs: HashSet<u64>,
    /// Texts shorter than a run.
    short: HashSet<String>,
}

impl TurnWordSet {
    /// Adds the texts of a turn.
    pub(super) fn add_turn(&mut self, turn: &Turn) {
        turn.texts().for_each(|text| self.add(text));
    }

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

    /// Whether no added text has a letter.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.short.is_empty()
    }

    /// Whether a text holds words of an added one.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let letters = letters(text);
        letters.windows(RUN).map(hash).any(|run| self.runs.contains(&run))
            || (letters.len() < RUN && self.short.contains(&letters.into_iter().collect::<String>()))
    }
}

fn letters(text: &str) -> Vec<char> {
    let mut normal = String::new();
    each_normal(text.as_bytes(), BackslashReading::Escape, &mut |_, letter| normal.push(letter));
    // Composed, so that a Korean syllable is one letter, as a Chinese character is.
    normal.nfc().filter(|letter| letter.is_alphanumeric()).collect()
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
        let mut words = TurnWordSet::default();
        words.add("I moved to Lisbon in May,\nwith my cat.");
        words.add("ok");
        words.add("Größere Äpfel für\nC:\\new, 𠀀𠀁!");
        for quote in [
            r#"{"text":"I moved to Lisbon in May,\nwith my c"#,
            "Ann said on 2024-05-06 that i MOVED to  Lisbon in May",
            r#"{"body":"{\"text\":\"I mo\\u0076ed to Lisbon in M\\u0061y"#,
            r"gr\u00f6\u00DFere \u00c4pfel f\u00fcr\nC:\\new, \ud840\uDC00",
            "OK!",
        ] {
            assert!(words.are_in(quote), "{quote}");
        }
        words.add("Hôm qua tôi gặp Nguyễn ở Hà Nội");
        words.add("어제 부산에서 김민수 씨를 만나 함께 점심을 먹었어요");
        for quote in [
            "{\"text\":\"HO\u{302}M QUA TO\u{302}I GA\u{323}\u{306}P NGUYE\u{302}\u{303}N O\u{309} HA\u{300} NO\u{323}\u{302}I\"}".to_owned(),
            "Hôm\u{200b} qua tôi ｇặｐ Ngu\u{ad}yễn ở".to_owned(),
            "부산에서 김민수 씨를 만나 함께 점심을".nfd().collect(),
            format!("{:?}", "김민수 씨를 만나 함께 점심을 먹었어요".nfd().collect::<String>()),
        ] {
            assert!(words.are_in(&quote), "{quote}");
        }
        for other in ["I moved to Porto.", "ok, then", r#"{"speaker":"Ann","text":"I left Lisbon"}"#, ""] {
            assert!(!words.are_in(other), "{other}");
        }
    }
}
