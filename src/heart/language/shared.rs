//! Attachments inside the text of a part: how they are written and parsed.
//!
//! In: words, and the attachments shared with them. Out: `words [photo: caption]`, and the reverse. Text that a speaker
//! typed in this format is parsed as an attachment.

/// For each kind, its opening in brackets and the words by which a sentence names it.
const KINDS: [(&str, &str); 3] = [("[photo: ", "a photo: "), ("[file: ", "a file: "), ("[shared: ", "something: ")];

/// An attachment of a kind with a caption, as it is written inside a text.
#[must_use]
pub fn shared(kind: Option<&str>, caption: &str) -> String {
    match kind.map(str::trim) {
        Some("image" | "photo" | "picture") => format!("[photo: {caption}]"),
        Some(kind) if !kind.is_empty() => format!("[file: {kind}: {caption}]"),
        _ => format!("[shared: {caption}]"),
    }
}

/// A text's words, and its attachments in brackets.
#[must_use]
pub fn split(text: &str) -> (&str, Vec<&str>) {
    let mut things = Vec::new();
    let mut words = text.trim_end();
    while let Some((before, thing)) = last_thing(words) {
        things.push(thing);
        words = before.trim_end();
    }
    things.reverse();
    (words, things)
}

/// An attachment in brackets, as a sentence names it: `a photo: caption`.
#[must_use]
pub fn named(thing: &str) -> Option<String> {
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

fn last_thing(text: &str) -> Option<(&str, &str)> {
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
        let (kite, plan) = (shared(Some("image"), "a red kite"), shared(Some("pdf"), "a plan [draft]"));
        assert_eq!((kite.as_str(), plan.as_str()), ("[photo: a red kite]", "[file: pdf: a plan [draft]]"));
        assert_eq!(split(&format!("Look! {kite} {plan}")), ("Look!", vec![kite.as_str(), plan.as_str()]));
        assert_eq!(split(&kite), ("", vec![kite.as_str()]));
        assert_eq!(split("no [photo: of it"), ("no [photo: of it", vec![]));
        assert_eq!(split(""), ("", vec![]));
        assert_eq!(named(&kite).as_deref(), Some("a photo: a red kite"));
        assert_eq!(named(&shared(None, "x")).as_deref(), Some("something: x"));
        assert_eq!((named("kite"), caption("kite"), caption(&kite)), (None, None, Some("a red kite")));
    }
}
