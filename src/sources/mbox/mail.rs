//! Reads one mail.
//!
//! In: the bytes of a mail, and the line that separated it. Out: who wrote it and when, its words, what was attached
//! and which mails it answers; or why it is not a mail. Unknown charsets are read as UTF-8 with replacements. If a mail
//! has both text and HTML, the text is used; if it has neither, text of an unknown type is.

use std::sync::LazyLock;

use mail_parser::{Addr, Address, HeaderName, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{
    mail_date::{MailDate, mail_date},
    own_words::{MailOwnWords, own_words},
};
use crate::{
    chat::{html_to_text, shared_file},
    zone::Zone,
};
use types::model::{Attachment, EventTime};

/// The maximum number of ids that are kept of the earlier mails: the first and the last ones.
const MAX_REFERENCES: usize = 20;
/// The types of content that exist, without their subtypes (IANA's registry of media types).
const TYPES: [&str; 11] =
    ["application", "audio", "example", "font", "haptics", "image", "message", "model", "multipart", "text", "video"];
/// Thunderbird's flag for a mail that was deleted and is still in the file.
const EXPUNGED: u32 = 0x0008;

static SEPARATOR_DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s+[+-]\d{4}|\s+[A-Z]{2,5})?\s+\d{4}",
    )
    .ok()
});
static REPLY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*(\[[^\]]*\]\s*)?(re|aw|sv|antw|antwort|rv|rif|odp|vs|ynt)(\[\d+\])?\s*[:：]").ok()
});

/// What is kept of a mail.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mail {
    pub(super) id: String,
    pub(super) unix_ms: i64,
    pub(super) offset_seconds: i32,
    pub(super) author_id: String,
    pub(super) author: String,
    pub(super) bot: bool,
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    /// The earlier mails in its thread, oldest first; the last one is the mail that it answers.
    pub(super) references: Vec<String>,
    /// The parts of its date that could not be read.
    #[serde(skip)]
    pub(super) doubts: Vec<&'static str>,
    /// What was cut off from its words, by kind.
    #[serde(skip)]
    pub(super) trimmed: Vec<(&'static str, String)>,
}

/// What a mail is.
pub(super) enum MailKind {
    Mail(Box<Mail>),
    /// A mail program's own record, not a mail.
    Internal,
    /// It was deleted and is still in the file.
    Expunged,
    Encrypted,
}

/// Reads a mail.
///
/// # Errors
/// What is missing.
pub(super) fn read(bytes: &[u8], separator: Option<&str>, zone: &Zone) -> Result<MailKind, String> {
    // Dates are not parsed here: the parser misreads dates that are not in the form of RFC 5322, and may swallow the
    // header after one. They stay texts, for `date`.
    let parser = MessageParser::new()
        .with_mime_headers()
        .with_address_headers()
        .with_message_ids()
        .header_text(HeaderName::Subject);
    let parsed = parser.parse(bytes).filter(|mail| !mail.parts.is_empty());
    let mail = parsed.ok_or("no headers; write them as RFC 5322 does")?;
    let header = |name: &'static str| {
        let raw = mail.header_raw(name)?;
        Some(raw.trim()).filter(|raw| !raw.is_empty())
    };
    let subject = mail.subject().map(str::trim).unwrap_or_default();
    if subject.contains("FOLDER INTERNAL DATA") || header("X-IMAPbase").is_some() && mail.message_id().is_none() {
        return Ok(MailKind::Internal);
    }
    let flags = header("X-Mozilla-Status").and_then(|flags| u32::from_str_radix(flags, 16).ok());
    if flags.is_some_and(|flags| flags & EXPUNGED != 0) {
        return Ok(MailKind::Expunged);
    }
    let mut body = body(&mail);
    let is_type_unknown = body.is_empty();
    if is_type_unknown {
        body = texts_of_unknown_types(&mail);
    }
    let is_encrypted = mail.content_type().is_some_and(|kind| {
        kind.ctype().eq_ignore_ascii_case("multipart")
            && kind.subtype().is_some_and(|s| s.eq_ignore_ascii_case("encrypted"))
    });
    if is_encrypted || body.trim_start().starts_with("-----BEGIN PGP MESSAGE-----") {
        return Ok(MailKind::Encrypted);
    }
    if body.is_empty() && has_stray_line(bytes) {
        return Err("a line among its headers is none; write a blank line in front of its words".to_owned());
    }
    let (address, name) = author(&mail, separator).ok_or("From: missing; write the author's address")?;
    let (time, mut doubts) =
        time(&mail, separator, zone).ok_or("Date: missing or not a date; write it as RFC 5322 does")?;
    if is_type_unknown && !body.is_empty() {
        doubts.push("Content-Type");
    }
    let references = references(&mail);
    let MailOwnWords { mut text, trimmed } = own_words(&body);
    let answers = !references.is_empty() || REPLY.as_ref().is_some_and(|reply| reply.is_match(subject));
    // The subject is added only to the mail that begins a thread.
    if !answers && !subject.is_empty() {
        text = format!("{subject}\n\n{text}").trim_end().to_owned();
    }
    let id = mail.message_id().map(str::trim).filter(|id| !id.is_empty()).map_or_else(
        || {
            // Mails are never edited, so the content can serve as an id.
            let content = format!("{}\n{address}\n{subject}\n{body}", time.unix_ms);
            format!("no-id-{}", &blake3::hash(content.as_bytes()).to_hex()[..32])
        },
        str::to_owned,
    );
    let local = address.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let is_automatic = header("Auto-Submitted").is_some_and(|value| !value.eq_ignore_ascii_case("no"));
    let is_daemon = matches!(local.as_str(), "mailer-daemon" | "postmaster") || is_no_reply(&local);
    Ok(MailKind::Mail(Box::new(Mail {
        id,
        unix_ms: time.unix_ms,
        offset_seconds: time.offset_seconds,
        author_id: account_id(&address, &name, &local),
        author: name,
        bot: is_automatic || is_daemon,
        text,
        attachments: mail.attachments().filter_map(attachment).collect(),
        references,
        doubts,
        trimmed,
    })))
}

/// The words of a mail: its texts, or its HTML if there is no text.
fn body(mail: &Message<'_>) -> String {
    let texts = mail.text_bodies().filter_map(|part| match &part.body {
        PartType::Text(text) => Some(text.clone().into_owned()),
        PartType::Html(html) => Some(html_to_text(html)),
        _ => None,
    });
    joined(texts)
}

/// The words of parts without a file name whose type is an unknown type of text or does not exist.
fn texts_of_unknown_types(mail: &Message<'_>) -> String {
    let exists = |part: &MessagePart<'_>| {
        part.content_type().is_some_and(|kind| TYPES.iter().any(|known| kind.ctype().eq_ignore_ascii_case(known)))
    };
    let unnamed = mail.parts.iter().filter(|part| part.attachment_name().is_none());
    joined(unnamed.filter_map(|part| match &part.body {
        PartType::Text(text) => Some(text.clone().into_owned()),
        PartType::Binary(bytes) if !exists(part) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }))
}

/// Texts one below the other, without blank ones.
fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// Whether a line in front of the first blank line is neither a header nor the continuation of one.
fn has_stray_line(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .take_while(|line| !line.is_empty())
        .any(|line| !line.starts_with(b" ") && !line.starts_with(b"\t") && !line.contains(&b':'))
}

/// The author's address in lower case, and name.
fn author(mail: &Message<'_>, separator: Option<&str>) -> Option<(String, String)> {
    let first = |address: Option<&Address<'_>>| {
        let address: &Addr<'_> = address?.first()?;
        let text = |value: Option<&str>| value.map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
        let (name, address) = (text(address.name()), text(address.address()));
        Some((address.clone().or_else(|| name.clone())?, name))
    };
    let envelope = || {
        let address = separator?.strip_prefix("From ")?.split_whitespace().next()?;
        address.contains('@').then(|| (address.to_owned(), None))
    };
    let (address, name) = first(mail.from()).or_else(|| first(mail.sender())).or_else(envelope)?;
    let address = address.to_lowercase();
    let name = name.map(|name| name.trim_matches(['"', '\'']).trim().to_owned()).filter(|name| !name.is_empty());
    // Mailing lists that send on Ann's behalf write `Ann via dev`.
    let name = name.map(|name| name.split(" via ").next().unwrap_or(&name).trim().to_owned());
    let name = name
        .filter(|n| !n.is_empty())
        .unwrap_or_else(|| address.split('@').next().filter(|n| !n.is_empty()).unwrap_or(&address).to_owned());
    Some((address, name.chars().filter(|c| !c.is_control()).collect()))
}

/// Several people may write under the address of a notifier or a list, so the name becomes part of the id.
fn account_id(address: &str, name: &str, local: &str) -> String {
    let is_shared = local.starts_with("notification") || is_no_reply(local);
    if is_shared { format!("{name} <{address}>") } else { address.to_owned() }
}

fn is_no_reply(local: &str) -> bool {
    let plain: String = local.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.starts_with("noreply") || plain.starts_with("donotreply")
}

/// When it was sent, from its date, else from the last server that received it, else from the separator. A server's
/// time takes precedence over a date whose weekday does not match. Also returns the parts to report: a date that was
/// not used, or an unknown zone.
fn time(mail: &Message<'_>, separator: Option<&str>, zone: &Zone) -> Option<(EventTime, Vec<&'static str>)> {
    let header = |name| match mail.header(name) {
        Some(HeaderValue::Text(text)) => Some(text.as_ref()),
        _ => None,
    };
    let date = header(HeaderName::Date).and_then(|date| mail_date(date, zone));
    let is_written = header(HeaderName::Date).is_some_and(|date| !date.trim().is_empty());
    let told = |found: MailDate, is_date: bool| {
        let doubts = [("Date", is_written && !is_date), ("zone of Date", is_date && !found.has_zone)];
        (found.time, doubts.into_iter().filter(|(_, is_so)| *is_so).map(|(name, _)| name).collect())
    };
    if let Some(date) = date.filter(|date| !date.is_contradicted) {
        return Some(told(date, true));
    }
    let received = || mail_date(header(HeaderName::Received)?.rsplit(';').next()?, zone);
    let separated = || mail_date(SEPARATOR_DATE.as_ref()?.find(separator?)?.as_str(), zone);
    match received() {
        Some(received) => Some(told(received, false)),
        None => date.map(|date| told(date, true)).or_else(|| Some(told(separated()?, false))),
    }
}

/// The ids of the earlier mails in the thread, oldest first.
fn references(mail: &Message<'_>) -> Vec<String> {
    let ids = |value: &HeaderValue<'_>| -> Vec<String> {
        let ids = match value {
            HeaderValue::Text(id) => vec![id.as_ref()],
            HeaderValue::TextList(ids) => ids.iter().map(AsRef::as_ref).collect(),
            _ => Vec::new(),
        };
        ids.into_iter().map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    };
    let mut references = ids(mail.references());
    // If it names several mails, it is not known which of them it answers.
    if let [answered] = &ids(mail.in_reply_to())[..]
        && references.last() != Some(answered)
    {
        references.retain(|id| id != answered);
        references.push(answered.clone());
    }
    if references.len() > MAX_REFERENCES {
        let half = MAX_REFERENCES / 2;
        references.drain(half..references.len() - half);
    }
    references
}

fn attachment(part: &MessagePart<'_>) -> Option<Attachment> {
    if let PartType::Message(forwarded) = &part.body {
        let subject = forwarded.subject().map(str::trim).filter(|s| !s.is_empty()).unwrap_or("mail");
        return Some(Attachment { kind: Some("mail".to_owned()), caption: Some(subject.to_owned()), url: None });
    }
    let kind = part.content_type().map(|kind| kind.ctype().to_ascii_lowercase()).unwrap_or_default();
    let name = part.attachment_name().map(str::trim).filter(|name| !name.is_empty());
    // Leaves out signatures and layout pictures, which have no names.
    if name.is_none() && (kind != "image" || part.content_id().is_some()) {
        return None;
    }
    let mut shared = shared_file(name.unwrap_or_default(), None);
    if matches!(kind.as_str(), "image" | "video" | "audio") {
        if name.is_none() {
            shared.caption = Some(kind.clone());
        }
        shared.kind = Some(kind);
    }
    Some(shared)
}
