//! One text field of a JSON object that is still being written.
//!
//! In: an object's text, piece by piece, cut anywhere. Out: what of the field's string each
//! piece adds, escapes resolved. What follows an error is nothing; the whole text is read
//! against its schema afterwards.

/// Follows one field.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    depth: u32,
    /// Inside a string: what it holds so far, and whether it is the field's value.
    string: Option<(String, bool)>,
    escape: Escape,
    /// The last string at the top that may be a key.
    key: Option<String>,
    /// A colon came after that key: its value follows.
    value: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// Digits of `\uXXXX`, and the first half of a pair before them.
    Code(String, Option<u32>),
    /// The first half of a pair: the second must follow.
    Half(u32),
    HalfBegun(u32),
}

impl Field {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, depth: 0, string: None, escape: Escape::None, key: None, value: false }
    }

    /// What a piece adds to the field.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        if self.string.is_none() {
            match c {
                '"' => {
                    let wanted = self.depth == 1 && self.value && self.key.as_deref() == Some(self.name);
                    self.string = Some((String::new(), wanted));
                }
                '{' | '[' => self.depth += 1,
                '}' | ']' => self.depth = self.depth.saturating_sub(1),
                ':' if self.depth == 1 => self.value = true,
                ',' if self.depth == 1 => (self.key, self.value) = (None, false),
                _ => {}
            }
            return;
        }
        let resolved = match std::mem::replace(&mut self.escape, Escape::None) {
            Escape::None if c == '"' => {
                if let Some((held, false)) = self.string.take()
                    && self.depth == 1
                    && !self.value
                {
                    self.key = Some(held);
                }
                None
            }
            Escape::None if c == '\\' => self.then(Escape::Begun),
            Escape::None => Some(c),
            Escape::Begun if c == 'u' => self.then(Escape::Code(String::new(), None)),
            Escape::Begun => Some(plain(c)),
            Escape::Half(first) if c == '\\' => self.then(Escape::HalfBegun(first)),
            Escape::HalfBegun(first) if c == 'u' => self.then(Escape::Code(String::new(), Some(first))),
            Escape::Half(_) | Escape::HalfBegun(_) => Some(char::REPLACEMENT_CHARACTER),
            Escape::Code(mut digits, first) => {
                digits.push(c);
                if digits.len() < 4 { self.then(Escape::Code(digits, first)) } else { self.code(&digits, first) }
            }
        };
        if let (Some(resolved), Some((held, wanted))) = (resolved, &mut self.string) {
            if *wanted { out.push(resolved) } else { held.push(resolved) }
        }
    }

    fn then(&mut self, escape: Escape) -> Option<char> {
        self.escape = escape;
        None
    }

    fn code(&mut self, digits: &str, first: Option<u32>) -> Option<char> {
        let code = u32::from_str_radix(digits, 16).unwrap_or(0xFFFD);
        match first {
            None if (0xD800..0xDC00).contains(&code) => self.then(Escape::Half(code)),
            None => Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            Some(first) => {
                let second = code.checked_sub(0xDC00).filter(|second| *second < 0x400);
                let both = second.map(|second| 0x10000 + ((first - 0xD800) << 10) + second);
                Some(both.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

fn plain(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn followed(text: &str, cuts: usize) -> String {
        let mut field = Field::new("answer");
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(cuts).map(|piece| field.push(&piece.iter().collect::<String>())).collect()
    }

    #[test]
    fn only_the_field_at_the_top_counts() {
        let text = r#"{"reasoning": "the \"answer\": no", "lines": [1, {"answer": "x"}], "answer": "A\u00e9 \ud83d\ude00\n\\"}"#;
        for cuts in 1..9 {
            assert_eq!(followed(text, cuts), "Aé 😀\n\\", "{cuts}");
        }
        assert_eq!(followed(r#"{"answers": "x", "b": "answer"}"#, 3), "");
        assert_eq!(followed(r#"{"answer": "cut he"#, 3), "cut he");
        assert_eq!(followed(r#"{"answer": "\ud83d\u0041 \ud83d\ud83d"}"#, 4), "\u{fffd} \u{fffd}");
        assert_eq!(followed("no json, \"answer\": \"x\"", 3), "");
    }

    proptest! {
        #[test]
        fn any_answer_is_followed_letter_by_letter(answer in any::<String>(), other in any::<String>(), cuts in 1usize..7) {
            let text = serde_json::json!({"a": other, "answer": answer, "z": [other]}).to_string();
            prop_assert_eq!(followed(&text, cuts), answer);
        }
    }
}
