//! The words with which phones write the halves of the day.
//!
//! In: a word in lower case, without dots and spaces. Out: the half of the day that it names. The words are those of
//! Unicode's CLDR (the day periods `am` and `pm`, in its present and earlier versions), and those that older phones
//! wrote; `phrases.toml` lists them.

use super::phrases::PHRASES;

/// The half of the day that an AM/PM marker names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhatsappHalfDay {
    Morning,
    /// Around noon: 11, 12, 1 or 2 o'clock.
    Noon,
    Afternoon,
}

/// The half of the day for a marker in lower case, without dots and spaces.
pub(super) fn half_of(word: &str) -> Option<WhatsappHalfDay> {
    match word {
        "中午" => Some(WhatsappHalfDay::Noon),
        _ if PHRASES.morning.contains(word) => Some(WhatsappHalfDay::Morning),
        _ if PHRASES.afternoon.contains(word) => Some(WhatsappHalfDay::Afternoon),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_names_both_halves() {
        let (morning, afternoon) = (&PHRASES.morning, &PHRASES.afternoon);
        assert!(morning.is_disjoint(afternoon), "{:?}", morning.intersection(afternoon));
        for (words, half) in [(morning, WhatsappHalfDay::Morning), (afternoon, WhatsappHalfDay::Afternoon)] {
            assert!(words.iter().all(|word| half_of(word) == Some(half)));
        }
    }
}
