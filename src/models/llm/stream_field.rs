//! One text field of a JSON object that is still being written.
//!
//! In: an object's text, piece by piece, cut anywhere. Out: the part of the field's string that each piece adds, with
//! escapes resolved. Malformed text adds nothing, because the finished text is checked against its schema afterwards.

/// Extracts one field.
#[derive(Debug)]
pub(super) struct FieldParser {
    name: &'static str,
    depth: u32,
    /// Inside a string: its text so far, and whether it is the field's value.
    string: Option<(String, bool)>,
    escape: EscapeState,
    /// The last string at the top level that may be a key.
    key: Option<String>,
    /// Whether a colon followed that key, so that the value comes next.
    value: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum EscapeState {
    None,
    Backslash,
    /// The digits of `\uXXXX` so far, and the high surrogate before them, if any.
    Code(String, Option<u32>),
    /// A high surrogate; the low one must follow.
    High(u32),
    HighBackslash(u32),
}

impl FieldParser {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, depth: 0, string: None, escape: EscapeState::None, key: None, value: false }
    }

    /// The text that a piece adds to the field.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            self.read(c, &mut out);
        }
        out
    }

    fn read(&mut self, c: char, out: &mut String) {
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
        let resolved = match std::mem::replace(&mut self.escape, EscapeState::None) {
            EscapeState::None if c == '"' => {
                if let Some((text, false)) = self.string.take()
                    && self.depth == 1
                    && !self.value
                {
                    self.key = Some(text);
                }
                None
            }
            EscapeState::None if c == '\\' => self.enter(EscapeState::Backslash),
            EscapeState::None => Some(c),
            EscapeState::Backslash if c == 'u' => self.enter(EscapeState::Code(String::new(), None)),
            EscapeState::Backslash => Some(unescape(c)),
            EscapeState::High(first) if c == '\\' => self.enter(EscapeState::HighBackslash(first)),
            EscapeState::HighBackslash(first) if c == 'u' => self.enter(EscapeState::Code(String::new(), Some(first))),
            EscapeState::High(_) | EscapeState::HighBackslash(_) => Some(char::REPLACEMENT_CHARACTER),
            EscapeState::Code(mut digits, first) => {
                digits.push(c);
                if digits.len() < 4 { self.enter(EscapeState::Code(digits, first)) } else { self.code(&digits, first) }
            }
        };
        if let (Some(resolved), Some((text, wanted))) = (resolved, &mut self.string) {
            if *wanted { out.push(resolved) } else { text.push(resolved) }
        }
    }

    fn enter(&mut self, escape: EscapeState) -> Option<char> {
        self.escape = escape;
        None
    }

    fn code(&mut self, digits: &str, first: Option<u32>) -> Option<char> {
        let code = u32::from_str_radix(digits, 16).unwrap_or(0xFFFD);
        match first {
            None if (0xD800..0xDC00).contains(&code) => self.enter(EscapeState::High(code)),
            None => Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            Some(first) => {
                let second = code.checked_sub(0xDC00).filter(|second| *second < 0x400);
                let both = second.map(|second| 0x10000 + ((first - 0xD800) << 10) + second);
                Some(both.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

fn unescape(c: char) -> char {
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

    fn extract(text: &str, cuts: usize) -> String {
        let mut field = FieldParser::new("answer");
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(cuts).map(|piece| field.push(&piece.iter().collect::<String>())).collect()
    }

    #[test]
    fn only_the_field_at_the_top_level_counts() {
        let text = r#"{"reasoning": "the \"answer\": no", "lines": [1, {"answer": "x"}], "answer": "A\u00e9 \ud83d\ude00\n\\"}"#;
        for cuts in 1..9 {
            assert_eq!(extract(text, cuts), "Aé 😀\n\\", "{cuts}");
        }
        assert_eq!(extract(r#"{"answers": "x", "b": "answer"}"#, 3), "");
        assert_eq!(extract(r#"{"answer": "cut he"#, 3), "cut he");
        assert_eq!(extract(r#"{"answer": "\ud83d\u0041 \ud83d\ud83d"}"#, 4), "\u{fffd} \u{fffd}");
        assert_eq!(extract("no json, \"answer\": \"x\"", 3), "");
    }

    proptest! {
        #[test]
        fn any_answer_is_extracted_whatever_the_pieces(answer in any::<String>(), other in any::<String>(), cuts in 1usize..7) {
            let text = serde_json::json!({"a": other, "answer": answer, "z": [other]}).to_string();
            prop_assert_eq!(extract(&text, cuts), answer);
        }
    }
}
