//! Attachments inside the text of a part: how they are written and parsed.
//!
//! In: words, and the attachments shared with them. Out: `words [photo: caption]`, and the reverse. Text that a speaker
//! typed in this format is parsed as an attachment.

/// For each kind, its opening in brackets and the words by which a sentence names it.
const KINDS: [(&str, &str); 3] = [("[photo: ", "a photo: "), ("[file: ", "a file: "), ("[shared: ", "something: ")];

/// An attachment of a kind with a caption, as it is written inside a text.
#[must_use]
pub fn attachment_text(kind: Option<&str>, caption: &str) -> String {
    match kind.map(str::trim) {
        Some("image" | "photo" | "picture") => format!("[photo: {caption}]"),
        Some(kind) if !kind.is_empty() => format!("[file: {kind}: {caption}]"),
        _ => format!("[shared: {caption}]"),
    }
}

/// A text's words, and its attachments in brackets.
#[must_use]
pub fn split_attachments(text: &str) -> (&str, Vec<&str>) {
    let mut things = Vec::new();
    let mut words = text.trim_end();
    while let Some((before, thing)) = last_attachment(words) {
        things.push(thing);
        words = before.trim_end();
    }
    things.reverse();
    (words, things)
}

/// An attachment in brackets, as a sentence names it: `a photo: caption`.
#[must_use]
pub fn attachment_phrase(thing: &str) -> Option<String> {
    parts(thing).map(|(name, caption)| format!("{name}{caption}"))
}

/// The caption of an attachment in brackets.
#[must_use]
pub fn caption(thing: &str) -> Option<&str> {
    parts(thing).map(|(_, caption)| caption)
}

fn parts(thing: &str) -> Option<(&'static str, &str)> {
    KINDS.iter().find_map(|(open, name)| Some((*name, thing.strip_prefix(open)?.strip_suffix(']')?)))
}

fn last_attachment(text: &str) -> Option<(&str, &str)> {
    if !text.ends_with(']') {
        return None;
    }
    let at = KINDS.iter().filter_map(|(open, _)| text.rfind(open)).max()?;
    text.split_at_checked(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let (kite, plan) =
            (attachment_text(Some("image"), "a red kite"), attachment_text(Some("pdf"), "a plan [draft]"));
        assert_eq!((kite.as_str(), plan.as_str()), ("[photo: a red kite]", "[file: pdf: a plan [draft]]"));
        assert_eq!(split_attachments(&format!("Look! {kite} {plan}")), ("Look!", vec![kite.as_str(), plan.as_str()]));
        assert_eq!(split_attachments(&kite), ("", vec![kite.as_str()]));
        assert_eq!(split_attachments("no [photo: of it"), ("no [photo: of it", vec![]));
        assert_eq!(split_attachments(""), ("", vec![]));
        assert_eq!(attachment_phrase(&kite).as_deref(), Some("a photo: a red kite"));
        assert_eq!(attachment_phrase(&attachment_text(None, "x")).as_deref(), Some("something: x"));
        assert_eq!((attachment_phrase("kite"), caption("kite"), caption(&kite)), (None, None, Some("a red kite")));
    }
}
