//! Renders a unit's parts as one text with a span for each.
//!
//! In: each part's speaker and text, with what was shared, and the model's template. Out: the rendered parts joined by
//! one space, and the byte range of each. Braces in a speaker's name or a text are never taken for placeholders.

use memory::language::attachment_text::{attachment_phrase, split_attachments};
use types::model::SpannedText;

/// Renders each part by `template`, in which `{speaker}` and `{text}` are replaced.
#[must_use]
pub fn render_parts(template: &str, parts: &[(&str, &str)]) -> SpannedText {
    let mut text = String::new();
    let mut spans = Vec::with_capacity(parts.len());
    for (speaker, words) in parts {
        if !text.is_empty() {
            text.push(' ');
        }
        let start = text.len();
        render(template, speaker, words, &mut text);
        spans.push(start..text.len());
    }
    SpannedText { text, spans }
}

/// Renders the words by the template, then describes what was shared with them.
fn render(template: &str, speaker: &str, text: &str, out: &mut String) {
    let (words, things) = split_attachments(text);
    if !words.is_empty() || things.is_empty() {
        fill(template, speaker, words, out);
    }
    let things = things.into_iter().filter_map(attachment_phrase).collect::<Vec<_>>().join(" and ");
    if !things.is_empty() {
        out.push_str(if words.is_empty() { speaker } else { " and" });
        out.push_str(" shared ");
        out.push_str(&things);
        out.push('.');
    }
}

fn fill(template: &str, speaker: &str, words: &str, out: &mut String) {
    let mut rest = template;
    while let Some(place) = rest.find('{') {
        let (before, from) = rest.split_at(place);
        out.push_str(before);
        let (value, taken) = if from.starts_with("{speaker}") {
            (speaker, "{speaker}".len())
        } else if from.starts_with("{text}") {
            (words, "{text}".len())
        } else {
            ("{", 1)
        };
        out.push_str(value);
        rest = from.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, parts: &[(&str, &str)], expected: &[&str]) {
        let rendered = render_parts(template, parts);
        assert_eq!(rendered.text, expected.join(" "));
        let found: Vec<&str> = rendered.spans.iter().map(|s| &rendered.text[s.clone()]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_part_has_the_span_that_it_covers() {
        let template = "{speaker} said, \"{text}\"";
        check(template, &[], &[]);
        check(template, &[("Ana", "Où?"), ("Bo", "Here.")], &["Ana said, \"Où?\"", "Bo said, \"Here.\""]);
        check("{text}", &[("Ana", "Hi"), ("Bo", "Yo")], &["Hi", "Yo"]);
    }

    #[test]
    fn braces_of_the_speaker_or_the_text_stay() {
        check("{speaker}: {text}", &[("{text}", "a {speaker} b")], &["{text}: a {speaker} b"]);
        check("{who} {speaker} {", &[("A", "t")], &["{who} A {"]);
    }

    #[test]
    fn shared_items_follow_the_words() {
        let template = "{speaker} said, \"{text}\"";
        check(
            template,
            &[("Ana", "Look! [photo: a kite]"), ("Bo", "[photo: a cat] [shared: a song]")],
            &["Ana said, \"Look!\" and shared a photo: a kite.", "Bo shared a photo: a cat and something: a song."],
        );
    }
}
