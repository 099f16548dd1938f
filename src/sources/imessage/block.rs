//! Reads the lines of one message.
//!
//! In: the lines after a date, without the date. Out: the sender, the words of the last version, what was shared, and
//! the answers that the exporter prints below the message. The exporter marks things only by position and wording: a
//! line that is a path or a file's name is a file, a line below `Tapbacks:` is a reaction, and indented lines are an
//! answer.

use jiff::civil::DateTime;

use super::time::{date_time, span_ms};
use crate::chat::shared_file;
use types::model::Attachment;

/// The indentation of an answer below the message that it answers.
const INDENT: &str = "    ";
const RESPONDED: &str = "This message responded to an earlier message.";
const DELETED: &str = "This message was deleted from the conversation!";
/// Effects with which the app showed a message.
const EFFECTS: [&str; 13] = [
    "Confetti",
    "Echo",
    "Fireworks",
    "Balloons",
    "Heart",
    "Lasers",
    "Shooting Star",
    "Sparkles",
    "Spotlight",
    "Slam",
    "Loud",
    "Gentle",
    "Invisible Ink",
];

/// One message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ImessageBlock {
    pub(super) sender: String,
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    /// How long after it was sent the message was last edited or partly unsent, in milliseconds.
    pub(super) changed_after_ms: Option<u64>,
    /// Whether the account's owner deleted it on this computer.
    pub(super) deleted: bool,
    /// Whether a part of it was unsent.
    pub(super) unsent: bool,
    pub(super) is_answer: bool,
    /// The messages that answer it. The exporter prints them here and once more at their own time.
    pub(super) answers: Vec<(DateTime, ImessageBlock)>,
}

/// A part of the message's body.
enum ImessageBlockPart {
    Words(Vec<String>),
    /// The latest version so far of a part that was edited.
    Version(Vec<String>),
}

impl ImessageBlock {
    /// Reads the lines after the date: the sender and the body.
    pub(super) fn of(lines: &[&str]) -> Self {
        let mut block = Self { sender: lines.first().map_or("", |line| line.trim()).to_owned(), ..Self::default() };
        let mut parts: Vec<ImessageBlockPart> = Vec::new();
        let mut at = 1;
        while let Some(line) = lines.get(at).copied() {
            at += 1;
            if let Some((time, _)) = line.strip_prefix(INDENT).and_then(header) {
                let end = end_of_answer(lines, at);
                let inner: Vec<&str> = lines.get(at..end).unwrap_or_default().iter().map(dedent).collect();
                block.answers.push((time, Self::of(&inner)));
                at = end;
            } else if matches!(line, "Tapbacks:" | "Reactions:") {
                while lines.get(at).is_some_and(|line| is_reaction(line)) {
                    at += 1;
                }
            } else if !block.line(line, &mut parts) {
                match parts.last_mut() {
                    Some(ImessageBlockPart::Words(words) | ImessageBlockPart::Version(words)) => {
                        words.push(line.to_owned())
                    }
                    None => parts.push(ImessageBlockPart::Words(vec![line.to_owned()])),
                }
            }
        }
        let words = parts.into_iter().flat_map(|part| match part {
            ImessageBlockPart::Words(words) | ImessageBlockPart::Version(words) => words,
        });
        block.text = words.collect::<Vec<_>>().join("\n").replace('\u{fffc}', "").trim().to_owned();
        block
    }

    /// Handles a line that is not plain words; returns false for words.
    fn line(&mut self, line: &str, parts: &mut Vec<ImessageBlockPart>) -> bool {
        if line == RESPONDED {
            self.is_answer = true;
        } else if line == DELETED {
            self.deleted = true;
        } else if line.strip_prefix("Sent with ").is_some_and(|effect| EFFECTS.contains(&effect)) {
            // The effect with which a message was shown is not part of its words.
        } else if let Some(after_ms) = taken_back(line) {
            self.unsent = true;
            self.changed_after_ms = self.changed_after_ms.max(after_ms);
            parts.push(ImessageBlockPart::Words(Vec::new()));
        } else if let Some((_, first)) = date_time(line).filter(|(_, rest)| rest.starts_with(' ')) {
            parts.push(ImessageBlockPart::Version(vec![first.get(1..).unwrap_or_default().to_owned()]));
        } else if let (Some((after_ms, words)), Some(ImessageBlockPart::Version(version))) =
            (edited(line), parts.last_mut())
        {
            *version = vec![words.to_owned()];
            self.changed_after_ms = Some(self.changed_after_ms.unwrap_or(0).saturating_add(after_ms));
        } else if let Some(attachment) = attachment(line) {
            self.attachments.push(attachment);
            parts.push(ImessageBlockPart::Words(Vec::new()));
        } else {
            return false;
        }
        true
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.attachments.is_empty()
    }

    /// Whether it is a notice from the app rather than somebody's words.
    pub(super) fn is_notice(&self) -> bool {
        let notices = ["SharePlay Message\nEnded", "Started sharing location!", "Stopped sharing location!"];
        self.attachments.is_empty() && notices.contains(&self.text.as_str())
    }
}

/// A line that is a date, alone or with the time at which the message was read.
pub(super) fn header(line: &str) -> Option<(DateTime, &str)> {
    let (time, rest) = date_time(line)?;
    let is_read = rest.starts_with(" (Read by ") && rest.trim_end().ends_with(')');
    (rest.is_empty() || is_read).then_some((time, rest))
}

/// The end of an answer that begins before `from`: the next answer, or a line that is not indented.
fn end_of_answer(lines: &[&str], from: usize) -> usize {
    let mut end = from;
    while let Some(line) = lines.get(end) {
        let indented = line.strip_prefix(INDENT);
        let blank = line.trim().is_empty()
            && lines.get(end + 1).is_some_and(|next| next.starts_with(INDENT) && !next.trim().is_empty());
        if indented.and_then(header).is_some() || (indented.is_none() && !blank) {
            break;
        }
        end += 1;
    }
    end
}

fn dedent<'a>(line: &&'a str) -> &'a str {
    line.strip_prefix(INDENT).unwrap_or(line)
}

/// `Loved by Ann`, `☕️ by Ann`, `Sticker from Ann: …`, with or without indentation.
fn is_reaction(line: &str) -> bool {
    let reaction = line.trim();
    if line.strip_prefix(INDENT).and_then(header).is_some() {
        return false;
    }
    let known = ["Loved", "Liked", "Disliked", "Laughed", "Laughed at", "Emphasized", "Questioned"];
    reaction.starts_with("Sticker from ")
        || reaction.split_once(" by ").is_some_and(|(kind, _)| {
            known.contains(&kind) || (kind.chars().count() <= 12 && !kind.chars().any(|c| c.is_ascii_alphanumeric()))
        })
}

/// `You unsent this message part 1 hour after sending!`, and the words of older versions.
fn taken_back(line: &str) -> Option<Option<u64>> {
    if matches!(line, "You deleted a message." | "They deleted a message.") {
        return Some(None);
    }
    let (_, rest) = line.strip_suffix('!')?.split_once(" unsent this message part")?;
    if rest.is_empty() {
        return Some(None);
    }
    Some(span_ms(rest.strip_suffix(" after sending")?.trim()))
}

/// `Edited 1 minute, 5 seconds later: words`.
fn edited(line: &str) -> Option<(u64, &str)> {
    let (span, words) = line.strip_prefix("Edited ")?.split_once(" later: ")?;
    Some((span_ms(span)?, words))
}

/// A line that is the path or the name of a file, or says that an attachment is missing.
fn attachment(line: &str) -> Option<Attachment> {
    if line == "Attachment missing!" {
        return Some(labelled("file", "file"));
    }
    if let Some((_, path)) = line.strip_prefix("Sticker from ").and_then(|rest| rest.split_once(": ")) {
        let path = path.split(" (App: ").next().unwrap_or(path);
        return Some(labelled("sticker", path.rsplit('/').next().unwrap_or(path)));
    }
    let name = line.rsplit('/').next().unwrap_or(line);
    let (stem, ending) = name.rsplit_once('.')?;
    if stem.is_empty() || !(2..=5).contains(&ending.len()) || !ending.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let is_path = line.contains("/Library/Messages/")
        || line.contains("/Library/SMS/")
        || line.starts_with("attachments/")
        || (line.contains("/attachments/") && !line.contains(' '));
    let bare = !line.contains([' ', '/']) && is_media(ending);
    if line.contains("://") || !(is_path || bare) {
        return None;
    }
    Some(shared_file(name, None))
}

fn is_media(ending: &str) -> bool {
    const MEDIA: [&str; 26] = [
        "jpg", "jpeg", "png", "gif", "heic", "heif", "heics", "webp", "tif", "tiff", "mov", "mp4", "m4v", "3gp", "caf",
        "amr", "m4a", "mp3", "aac", "wav", "pdf", "vcf", "zip", "docx", "xlsx", "pptx",
    ];
    MEDIA.contains(&ending.to_ascii_lowercase().as_str())
}

fn labelled(kind: &str, caption: &str) -> Attachment {
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption.to_owned()), url: None }
}
