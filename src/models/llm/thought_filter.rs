//! Removes the thoughts that a model writes before its reply.
//!
//! In: a completion's text, piece by piece, cut anywhere. Out: the text without the block of thoughts that it may begin
//! with, such as `<think>…</think>`. A mark inside the reply is part of the reply. Holds a few bytes, never the whole
//! thoughts.

/// The marks with which thoughts begin and end.
const MARKS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Reads a completion as it arrives.
#[derive(Debug, Default)]
pub(super) struct ThoughtFilter {
    /// Text that is not decided yet: the beginning of the reply, or the end of the thoughts so far.
    held: String,
    place: ThoughtState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ThoughtState {
    #[default]
    Start,
    /// Inside thoughts that end with this mark.
    Thinking(&'static str),
    Saying,
}

impl ThoughtFilter {
    /// The text that a piece adds to the reply.
    pub(super) fn visible_text(&mut self, piece: &str) -> String {
        if self.place == ThoughtState::Saying {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.place == ThoughtState::Start {
            let begun = self.held.trim_start();
            if MARKS.iter().any(|(start, _)| start.len() > begun.len() && start.starts_with(begun)) {
                return String::new();
            }
            let Some((start, end)) = MARKS.into_iter().find(|(start, _)| begun.starts_with(start)) else {
                self.place = ThoughtState::Saying;
                return std::mem::take(&mut self.held);
            };
            self.held = begun.get(start.len()..).unwrap_or_default().to_owned();
            self.place = ThoughtState::Thinking(end);
        }
        let ThoughtState::Thinking(end) = self.place else { return String::new() };
        if let Some((_, said)) = self.held.split_once(end) {
            let said = said.trim_start().to_owned();
            self.held.clear();
            // The next piece may also begin with white space, which does no harm.
            self.place = ThoughtState::Saying;
            return said;
        }
        // The end mark may be split between pieces, so its beginning is kept.
        let kept = self.held.ceil_char_boundary(self.held.len().saturating_sub(end.len()));
        self.held.drain(..kept);
        String::new()
    }

    /// The text left at the end: a beginning that turned out not to be a thought.
    pub(super) fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if self.place == ThoughtState::Start { held } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_in_front_are_left_out_however_they_are_cut() {
        for (text, expected) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("<think>\nI see {\"units\": 1}.\n</think>\n\n{\"a\": 1}", "{\"a\": 1}"),
            ("  <thinking>é</thinking>done", "done"),
            ("<think></think>x", "x"),
            ("<this is no thought", "<this is no thought"),
            ("a <think>b</think>", "a <think>b</think>"),
            ("<thi", "<thi"),
            ("<think>never ends", ""),
            ("", ""),
        ] {
            for size in [1, 2, 3, 7, 100] {
                let mut thoughts = ThoughtFilter::default();
                let characters: Vec<char> = text.chars().collect();
                let mut said: String = characters
                    .chunks(size)
                    .map(|piece| thoughts.visible_text(&piece.iter().collect::<String>()))
                    .collect();
                said.push_str(&thoughts.end());
                assert_eq!(said.trim_start(), expected.trim_start(), "{text} by {size}");
            }
        }
    }
}
