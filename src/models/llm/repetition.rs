//! Notices a reply that repeats itself while it is written.
//!
//! In: a reply's text, piece by piece. Out: whether its end is the same text many times over, and where the second copy
//! began. Numbers outside JSON strings count as equal, because a runaway model often keeps counting; so do runs of
//! white space, because models indent their JSON. Numbers inside a string are part of its content: units that differ
//! only in a number are different. A copy is at most [`MAX_PERIOD`] such characters long: a longer loop runs until the
//! completion limit. Ordinary lists and laughter are never flagged, because they do not reach the required length.

/// The longest copy that is looked for, in bytes, with each number and each run of white space counted as one: long
/// enough for an indented unit with the longest restatement, its people and its places.
const MAX_PERIOD: usize = 1_200;
/// How many copies make a repetition.
const COPIES: usize = 4;
/// How many copies are enough if the text is as long as [`LONG`].
const LONG_COPIES: usize = 3;
/// The length of a text that does not repeat by chance.
const LONG: usize = 200;
/// The minimum number of bytes that the copies fill together.
const MIN_BYTES: usize = 320;
/// The longest number or run of white space that counts as one byte; a longer one is itself a repetition.
const MAX_RUN: usize = 64;

/// Reads a reply as it arrives.
#[derive(Debug)]
pub(super) struct RepetitionGuard {
    /// The text with each number and each run of white space as one byte, and where each byte ends in the text itself.
    bytes: Vec<(u8, usize)>,
    length: usize,
    /// How many bytes of the text the last one represents.
    run: usize,
    /// Whether the text ends inside a JSON string, and whether the next byte there is escaped.
    in_string: bool,
    escaped: bool,
    /// For each period, how many of the last bytes equal the byte one period earlier.
    equal: Vec<usize>,
}

impl Default for RepetitionGuard {
    fn default() -> Self {
        let equal = vec![0; MAX_PERIOD + 1];
        Self { bytes: Vec::new(), length: 0, run: 0, in_string: false, escaped: false, equal }
    }
}

impl RepetitionGuard {
    /// Adds a piece. Once the text repeats itself, returns the length in bytes of the text before the second copy,
    /// which may end within a character.
    pub(super) fn push(&mut self, piece: &str) -> Option<usize> {
        for byte in piece.bytes() {
            self.length += 1;
            (self.in_string, self.escaped) = match byte {
                _ if self.escaped => (self.in_string, false),
                b'"' => (!self.in_string, false),
                b'\\' => (self.in_string, self.in_string),
                _ => (self.in_string, false),
            };
            let byte = match byte {
                b'0'..=b'9' if !self.in_string => b'0',
                b' ' | b'\n' | b'\r' | b'\t' => b' ',
                other => other,
            };
            let joins = (byte == b' ' || byte == b'0' && !self.in_string) && self.run < MAX_RUN;
            if let Some(last) = self.bytes.last_mut().filter(|last| joins && last.0 == byte) {
                last.1 = self.length;
                self.run += 1;
                continue;
            }
            if self.bytes.last().is_none_or(|last| last.0 != byte) {
                self.run = 1;
            }
            self.bytes.push((byte, self.length));
            if let Some(period) = self.repeated_period() {
                let first = self.bytes.len() - self.equal[period];
                return self.bytes.get(first.saturating_sub(1)).map(|(_, end)| *end);
            }
        }
        None
    }

    /// The shortest period that repeats often enough at the end of the text, once its last byte has been counted.
    fn repeated_period(&mut self) -> Option<usize> {
        let last = self.bytes.len() - 1;
        let mut found = None;
        for period in 1..=MAX_PERIOD.min(last) {
            let equal = &mut self.equal[period];
            *equal = if self.bytes[last].0 == self.bytes[last - period].0 { *equal + 1 } else { 0 };
            let copies = if period < LONG { COPIES } else { LONG_COPIES };
            if found.is_none() && *equal + period >= MIN_BYTES.max(copies * period) {
                found = Some(period);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the text up to the second copy, if the guard stops it, and the number of bytes read by then.
    fn stopped(text: &str) -> Option<(usize, usize)> {
        let mut guard = RepetitionGuard::default();
        text.char_indices().find_map(|(at, c)| {
            let kept = guard.push(c.encode_utf8(&mut [0; 4]))?;
            Some((text.floor_char_boundary(kept), at + c.len_utf8()))
        })
    }

    #[test]
    fn a_runaway_is_stopped_within_a_few_hundred_tokens() {
        let start = "{\"units\": [{\"restatement\": \"";
        let unit = "Ann said that she likes to go to the sea with Bo, and that Bo likes it as well. ";
        let (kept, read) = stopped(&format!("{start}{}", unit.repeat(99))).expect("a repetition");
        assert_eq!(kept, start.len() + unit.len(), "the first copy is kept");
        assert!(read <= start.len() + 5 * unit.len(), "{read}");
        let counted: String = (1..999).map(|n| format!("{n}, ")).collect();
        assert!(stopped(&counted).is_some_and(|(_, read)| read < 600), "numbers that count on");
        let objects: String =
            (1..99).map(|n| format!("{{\"sources\": [{n}], \"restatement\": \"{unit}\"}},")).collect();
        assert!(stopped(&objects).is_some_and(|(_, read)| read < 800));
        assert!(stopped(&" ".repeat(999)).is_some_and(|(_, read)| read < 400));
        let object = |n: usize| {
            format!(
                "    {{\n      \"restatement\": \"{unit}\",\n      \"sources\": [\n        {n}\n      ],\n      \"participants\": [\n        \"Ann\",\n        \"Bo\"\n      ],\n      \"locations\": [],\n      \"time\": {{\n        \"start\": \"2024-03-02T09:15:00+01:00\",\n        \"end\": \"2024-03-02T09:15:00+01:00\"\n      }}\n    }},\n"
            )
        };
        let indented: String = (1..99).map(object).collect();
        assert!(stopped(&indented).is_some_and(|(_, read)| read < 5 * object(99).len()), "indented objects");
        assert!(stopped(&"äöü ".repeat(99)).is_some());
        let words: String = (0..120).map(|n| format!("{:04} ", n * 7_919 % 10_000)).collect();
        let longest = object(0).replace(unit, &words);
        let read = stopped(&longest.repeat(9)).map(|(_, read)| read);
        assert!(
            read.is_some_and(|read| read <= 3 * longest.len() + 9),
            "a unit with the longest restatement: {read:?}"
        );
    }

    #[test]
    fn ordinary_replies_pass() {
        let units: String = (1..40)
            .map(|n| {
                let thing = ["boat", "mallet", "choir", "harbour", "plank"][n % 5];
                let said = "sold bought lent painted lost".split(' ').nth(n / 5 % 5).unwrap_or("found");
                format!(
                    "{{\"sources\": [{n}], \"restatement\": \"Elias {said} the {thing}.\", \"participants\": [\"elias\"], \
                     \"locations\": [], \"time\": null}}, "
                )
            })
            .collect();
        let counted: String = (1..11)
            .map(|n| {
                format!(
                    "{{\"restatement\": \"On day {n} Ann ran {} kilometres with Bo in Lisbon.\", \"sources\": [{n}], \
                     \"participants\": [\"Ann\", \"Bo\"], \"locations\": [\"Lisbon\"], \"time\": null}}, ",
                    n + 4
                )
            })
            .collect();
        let links: String = (1..41).map(|n| format!("{{\"label\": \"{n}\", \"kind\": \"semantic\"}}, ")).collect();
        for text in [
            units.as_str(),
            counted.as_str(),
            links.as_str(),
            "{\"restatement\": \"She said \\\"no\\\" 1 2 3 4 5 6 7 8 9 10 11 12 times\"}",
            "hahahahahahahahahahahahahahahahahaha that is so funny",
            "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]",
            "no no no no no no no, he said, no no no no no no no",
        ] {
            assert_eq!(stopped(text), None, "{text}");
        }
    }
}
