//! Finds what a message is from its text.
//!
//! In: everything after the sender, as it is in the file. Out: words and what was shared; or that the message was
//! deleted, is a notice from the app, or has no text form. The app marks its own texts with U+200E: a marked text that
//! is in no list is a notice, never somebody's words.

use super::{
    header::{is_mark, is_space},
    phrases::PHRASES,
};
use crate::chat::shared_file;
use types::model::Attachment;

/// The direction mark that the app writes before its own texts.
const APP_MARK: char = '\u{200e}';
/// The longest text that is compared with the lists.
const MAX_PHRASE_BYTES: usize = 400;
/// The marks that begin a quotation, each with those that may end it.
const QUOTES: [(char, &[char]); 4] = [('“', &['”']), ('„', &['“', '”']), ('«', &['»']), ('"', &['"'])];
/// The longest notice in whose lines the end of a quotation is looked for; the app's descriptions are shorter.
const MAX_NOTICE_BYTES: usize = 64 << 10;
/// How much of a text is compared with the beginnings of notices; the longest beginning has 59 characters.
const NOTICE_CHARACTERS: usize = 80;

/// What a message is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WhatsappBody {
    /// The app's own notice: somebody joined, a call ended.
    Notice,
    /// Deleted by its author or an administrator.
    Deleted,
    /// Not decrypted yet when the chat was exported.
    Waiting,
    /// Nothing.
    Empty,
    /// A message that can be opened once, written as `null`.
    Unsupported,
    /// Words, or something shared.
    Said(WhatsappContent),
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct WhatsappContent {
    pub(super) text: String,
    pub(super) edited: bool,
    pub(super) attachments: Vec<Attachment>,
    /// The names that `text` mentions.
    pub(super) mentions: Vec<String>,
}

/// Finds what a message is.
pub(super) fn body(raw: &str) -> WhatsappBody {
    let (raw, edited) = without_edit_mark(raw);
    let by_app = raw.trim_start().starts_with(APP_MARK);
    let phrase = (raw.len() <= MAX_PHRASE_BYTES).then(|| phrase(raw));
    if let Some(phrase) = phrase.as_deref() {
        if PHRASES.deleted.contains(phrase) || PHRASES.deleted_by.iter().any(|p| phrase.starts_with(p)) {
            return WhatsappBody::Deleted;
        }
        if PHRASES.waiting.contains(phrase) {
            return WhatsappBody::Waiting;
        }
        if phrase == "null" {
            return WhatsappBody::Unsupported;
        }
        if let Some(attachment) = omitted(phrase) {
            return said("", edited, vec![attachment]);
        }
        if is_call(phrase) {
            return WhatsappBody::Notice;
        }
    }
    let shared = attached(raw).or_else(|| omitted_behind_title(raw)).or_else(|| omitted_before_caption(raw));
    if let Some((text, attachments)) = shared {
        return said(&text, edited, attachments);
    }
    if let Some(choices) = by_app.then(|| choices(raw)).flatten() {
        return said(&choices, edited, Vec::new());
    }
    if by_app && raw.contains("https://maps.") {
        return said(raw, edited, Vec::new());
    }
    if by_app || is_notice(raw) {
        return WhatsappBody::Notice;
    }
    said(raw, edited, Vec::new())
}

/// Whether the text before a colon is the beginning of a notice rather than a name.
pub(super) fn is_notice_start(name: &str) -> bool {
    let quotes = name.chars().filter(|c| *c == '"').count();
    let opened = name.contains(['“', '„', '«']) && !name.contains(['”', '»']);
    name.chars().count() > 100
        || quotes % 2 == 1
        || opened
        || name.contains("://")
        || PHRASES.notice_verbs.iter().any(|verb| name.contains(verb))
}

/// The lines after a notice, and how many lines the notice has: its first line, the lines of a quotation that it opens
/// (a description, a subject), and lines that the app marks. Any other line may be somebody's words after a date that
/// cannot be read.
pub(super) fn behind_notice(raw: &str) -> Option<(u64, &str)> {
    if raw.len() > MAX_NOTICE_BYTES {
        return raw.split_once('\n').map(|(_, behind)| (1, behind.trim_end())).filter(|(_, behind)| !behind.is_empty());
    }
    let mut rest = raw;
    loop {
        let line = rest.split('\n').next().unwrap_or_default();
        let quotation = line.char_indices().find_map(|(at, c)| {
            let (_, ends) = QUOTES.iter().find(|(begin, _)| *begin == c)?;
            rest.get(at + c.len_utf8()..)?.split_once(*ends)
        });
        if let Some((_, behind)) = quotation {
            rest = behind;
            continue;
        }
        let next = rest.strip_prefix(line)?.strip_prefix('\n')?;
        let is_marked = next.strip_prefix(APP_MARK).is_some_and(|line| !line.starts_with('['));
        if !is_marked && !next.is_empty() && !next.starts_with('\n') {
            let before = raw.matches('\n').count() - next.matches('\n').count();
            return Some((before as u64, next.trim_end()));
        }
        rest = next;
    }
}

fn said(text: &str, edited: bool, attachments: Vec<Attachment>) -> WhatsappBody {
    let (text, mentions) = with_mentions(text);
    let text = words(&text);
    if text.is_empty() && attachments.is_empty() {
        WhatsappBody::Empty
    } else {
        WhatsappBody::Said(WhatsappContent { text, edited, attachments, mentions })
    }
}

/// A text with its mentions as names. The app writes mentions between marks, with `~` before people who are not
/// contacts.
fn with_mentions(text: &str) -> (String, Vec<String>) {
    const BEFORE: &str = "@\u{2068}";
    const BEHIND: char = '\u{2069}';
    let mut parts = text.split(BEFORE);
    let mut written = parts.next().unwrap_or_default().to_owned();
    let mut names = Vec::new();
    for part in parts {
        written.push('@');
        let Some((name, rest)) = part.split_once(BEHIND) else {
            written.push_str(part);
            continue;
        };
        let name = clean_name(name);
        written.push_str(&name);
        written.push_str(rest);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    (written, names)
}

/// A name without marks, with plain spaces, and without the `~` before people who are not contacts.
pub(super) fn clean_name(raw: &str) -> String {
    let name = words(raw);
    let name = name.strip_prefix('~').unwrap_or(&name);
    name.split(is_space).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text without the app's marks. U+200F stays: right-to-left texts need it.
pub(super) fn words(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_mark(*c) || *c == '\u{200f}').collect();
    text.trim().to_owned()
}

/// A text in the form of the lists: lower case, no marks, single spaces, no full stop.
pub(super) fn phrase(text: &str) -> String {
    let mut phrase = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_mark(*c)) {
        if is_space(c) {
            if !phrase.ends_with(' ') {
                phrase.push(' ');
            }
        } else if c == '’' {
            phrase.push('\'');
        } else {
            phrase.extend(c.to_lowercase().filter(|c| *c != '\u{307}'));
        }
    }
    phrase.trim().trim_end_matches(['.', '。', '।', '!']).trim_end().to_owned()
}

/// Whether a text begins as one of the app's notices does.
fn is_notice(raw: &str) -> bool {
    let start: String = raw.chars().take(NOTICE_CHARACTERS).collect();
    let start = phrase(&start);
    PHRASES.notices.iter().any(|notice| start.starts_with(notice))
}

/// The text before `<This message was edited>`, and whether that note was found.
fn without_edit_mark(raw: &str) -> (&str, bool) {
    let whole = raw.trim_end_matches(|c: char| c.is_whitespace() || is_mark(c));
    let Some((before, inner)) = whole.strip_suffix('>').and_then(|w| w.rsplit_once('<')) else { return (raw, false) };
    if inner.len() > MAX_PHRASE_BYTES || inner.contains('\n') {
        return (raw, false);
    }
    // In a language that is not in the list, the note is recognised by the app's mark between the words and `<…>`.
    let unknown = || {
        let has_words = !words(before).is_empty();
        let plain = inner.chars().all(|c| c.is_alphabetic() || is_space(c) || matches!(c, '.' | '\'' | '’'));
        before.ends_with(APP_MARK) && has_words && plain
    };
    let inner_phrase = phrase(inner);
    let omitted_or_attached =
        PHRASES.omitted_in_brackets.contains(&inner_phrase) || PHRASES.attached_in_brackets.contains(&inner_phrase);
    if PHRASES.edited.contains(&inner_phrase) || (!omitted_or_attached && unknown()) {
        (before.trim_end_matches(|c: char| is_space(c) || is_mark(c)), true)
    } else {
        (raw, false)
    }
}

fn omitted(phrase: &str) -> Option<Attachment> {
    if let Some(inner) = phrase.strip_prefix('<').and_then(|p| p.strip_suffix('>')) {
        let inner = inner.trim().trim_end_matches('.');
        let known = PHRASES.omitted_in_brackets.contains(inner);
        return known.then(|| left_out(PHRASES.kind_of_omitted(inner).unwrap_or("media"), None));
    }
    PHRASES.kind_of_omitted(phrase).map(|kind| left_out(kind, None))
}

fn left_out(kind: &str, title: Option<String>) -> Attachment {
    let caption = title.unwrap_or_else(|| kind.to_owned());
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption), url: None }
}

/// `Report.pdf • ‎3 pages ‎document omitted`: a title, the app's mark, and what was left out.
fn omitted_behind_title(raw: &str) -> Option<(String, Vec<Attachment>)> {
    let (before, last) = raw.rsplit_once(APP_MARK)?;
    let kind = (last.len() <= MAX_PHRASE_BYTES).then(|| PHRASES.kind_of_omitted(&phrase(last)))??;
    let title = words(before);
    // Before a file, the text is a title; before a picture, it is words.
    if kind == "file" || kind == "contact" {
        return Some((String::new(), vec![left_out(kind, Some(title).filter(|t| !t.is_empty()))]));
    }
    Some((title, vec![left_out(kind, None)]))
}

/// `<Media omitted>` on the first line, and words on the lines after it.
fn omitted_before_caption(raw: &str) -> Option<(String, Vec<Attachment>)> {
    let (first, caption) = raw.split_once('\n')?;
    let attachment = (first.len() <= MAX_PHRASE_BYTES).then(|| omitted(&phrase(first)))??;
    Some((caption.to_owned(), vec![attachment]))
}

/// The words and files of a message whose files are next to the export.
fn attached(raw: &str) -> Option<(String, Vec<Attachment>)> {
    let mut text = String::new();
    let mut attachments = Vec::new();
    for line in raw.lines() {
        let file = in_brackets(line).or_else(|| in_parentheses(line));
        let Some((file, words)) = file else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let mut attachment = shared(&file);
        // `Report.pdf • 3 pages` before a file is its title.
        if words.contains(" • ") || (!words.is_empty() && file.ends_with(&words)) {
            attachment.caption = Some(words);
        } else {
            text.push_str(&words);
            text.push('\n');
        }
        attachments.push(attachment);
    }
    if attachments.is_empty() {
        return None;
    }
    // The app repeats the name of a file as its words.
    let repeats = attachments.iter().any(|a| a.caption.as_deref() == Some(words(&text).as_str()));
    Some((if repeats { String::new() } else { text }, attachments))
}

/// `<attached: FILE>` or `FILE <attached>`, with the words before it.
fn in_brackets(line: &str) -> Option<(String, String)> {
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || is_mark(c));
    let (before, inner) = line.strip_suffix('>')?.rsplit_once('<')?;
    let known = |word: &str| PHRASES.attached_in_brackets.contains(&phrase(word));
    if let Some((word, file)) = inner.split_once([':', '：']) {
        let file = words(file);
        let by_app = before.ends_with(APP_MARK) || line.starts_with(APP_MARK);
        let is_file = has_extension(&file) && !file.starts_with("//");
        return (is_file && (known(word) || by_app)).then(|| (file, words(before)));
    }
    let file = words(before);
    (known(inner) && has_extension(&file)).then(|| (file, String::new()))
}

/// `FILE (file attached)`.
fn in_parentheses(line: &str) -> Option<(String, String)> {
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || is_mark(c));
    let (before, inner) = line.strip_suffix(')')?.rsplit_once('(')?;
    let file = words(before);
    let known = PHRASES.attached_in_parentheses.contains(&phrase(inner));
    let named_by_app = is_named_by_app(&file) && !inner.chars().any(|c| c.is_ascii_digit());
    let is_file = has_extension(&file) || is_named_by_app(&file);
    (is_file && (known || named_by_app)).then(|| (file, String::new()))
}

/// A name such as `IMG-20210428-WA0001.jpg`.
fn is_named_by_app(file: &str) -> bool {
    let known = ["IMG-", "VID-", "PTT-", "AUD-", "STK-", "DOC-"].iter().any(|start| file.starts_with(start));
    known && file.contains("-WA") && !file.contains(char::is_whitespace)
}

fn has_extension(file: &str) -> bool {
    let Some((name, extension)) = file.rsplit_once('.') else { return false };
    !name.is_empty() && (1..=8).contains(&extension.len()) && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

fn shared(file: &str) -> Attachment {
    let mut attachment = shared_file(file, None);
    let upper = file.to_uppercase();
    let kind = if upper.contains("-STICKER-") || upper.starts_with("STK-") {
        "sticker"
    } else if upper.contains("-GIF-") || upper.ends_with(".GIF") {
        "gif"
    } else if upper.ends_with(".VCF") {
        "contact"
    } else {
        return attachment;
    };
    attachment.kind = Some(kind.to_owned());
    attachment
}

/// `Voice call - 5 minutes`, `Missed voice call, Tap to call back` and the like.
fn is_call(phrase: &str) -> bool {
    if PHRASES.calls.contains(phrase) {
        return true;
    }
    let kinds =
        ["voice call", "video call", "group call", "missed voice call", "missed video call", "missed group call"];
    kinds.iter().filter_map(|kind| phrase.strip_prefix(kind)).any(|rest| {
        let behind = rest.trim_start_matches([' ', '-', ',', '.', '(']);
        rest.starts_with([' ', ',', '.', '('])
            && (behind.starts_with("tap to call back")
                || behind == "no answer"
                || (behind.starts_with(|c: char| c.is_ascii_digit())
                    && behind.split([' ', ')']).filter(|w| !w.is_empty()).all(is_length_of_time)))
    })
}

fn is_length_of_time(word: &str) -> bool {
    let word = word.trim_matches([',', '.', '\u{200e}']);
    word.chars().all(|c| c.is_ascii_digit() || c == ':')
        || [
            "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "hr", "hrs", "hour", "hours",
            "joined",
        ]
        .contains(&word)
}

/// A poll or an event, without its vote counts, which change from export to export.
fn choices(raw: &str) -> Option<String> {
    let mut lines = raw.lines();
    let first = words(lines.next()?);
    let title = first.strip_suffix(':')?;
    let shouted = title.chars().any(char::is_alphabetic) && !title.chars().any(char::is_lowercase);
    if !shouted || title.chars().count() > 40 {
        return None;
    }
    let mut text = first.clone();
    for line in lines {
        text.push('\n');
        let count = line.rsplit_once('(').filter(|(_, count)| {
            line.starts_with(APP_MARK) && count.ends_with(')') && count.contains(|c: char| c.is_numeric())
        });
        text.push_str(&words(count.map_or(line, |(before, _)| before)));
    }
    (text.len() > first.len()).then_some(text)
}
