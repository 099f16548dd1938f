//! SillyTavern: one file of JSON lines for each chat.
//!
//! In: the folder `chats`, with a folder for each character, or a chat's file. Out: what the person and the characters
//! said, in the swipe that was kept. Lines have no ids: a message is known by its character, its number, its date and
//! its words, which a branch of a chat copies. Each character is a project.

use jiff::civil::DateTime;
use serde_json::Value;

use super::{
    content_blocks::add,
    findings::{Findings, kind},
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, unix_time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, NUMBER, RecordForm, TEXT, TRUTH, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
    zone::Zone,
};
use types::model::EventTime;

/// SillyTavern.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "sillytavern",
    speaker: "Character",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".jsonl"),
    has_head: |head| {
        let is_chat = names(head, "is_user") && names(head, "mes");
        head.trim_start().starts_with('{') && (is_chat || (names(head, "character_name") && names(head, "user_name")))
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "sillytavern",
    about: "SillyTavern: the folder chats, or a chat's file",
    standard_input: false,
    only: Some("characters"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[("name", TEXT), ("is_user", TRUTH), ("mes", TEXT), ("send_date", TEXT | NUMBER)],
    other: &[("is_system", TRUTH), ("swipes", LIST), ("swipe_id", NUMBER)],
    known: &[
        "swipes[]",
        "swipe_info",
        "extra",
        "force_avatar",
        "original_avatar",
        "gen_started",
        "gen_finished",
        "title",
        "variables",
    ],
    remedy: "write it as SillyTavern does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let folder = file.folder();
    let (mut character, mut number) = (None, 0);
    file.each_line(found, |found, TranscriptRecord { line, value }| {
        if value.get("mes").is_none() && value.get("user_name").or_else(|| value.get("chat_metadata")).is_some() {
            character = filled(&value, "character_name").filter(|name| name != "unused");
            found.not_talk(kind::RECORD);
            return Ok(());
        }
        number += 1;
        let character = character.as_ref().or(folder.as_ref()).cloned().unwrap_or_else(|| file.stem().to_owned());
        found.begins_in(Some(&character));
        said(file, found, (line, number), &character, value)
    })
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    (line, number): (u64, u64),
    character: &str,
    value: Value,
) -> Result<(), String> {
    let (value, odd) = FORM.read::<Value>(value)?;
    let is_set = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
    if is_set("is_system") {
        found.not_talk(kind::SYSTEM);
        return Ok(());
    }
    let role = if is_set("is_user") { TranscriptRole::Person } else { TranscriptRole::Assistant };
    let before = found.skipped.len();
    let mut words = String::new();
    add(&mut words, text(&value, "mes").unwrap_or_default(), role, found);
    if words.is_empty() && found.skipped.len() > before {
        return Ok(());
    }
    let date = value.get("send_date").unwrap_or(&Value::Null);
    let time = sent(date, file.zone).ok_or("send_date: missing or not a time; write it as SillyTavern does")?;
    let message = TranscriptMessage {
        place: format!("{character}/{number}/{date}"),
        speaker: filled(&value, "name"),
        ..file.message(&format!("{character}/{}", file.stem()), role, time, words)
    };
    found.said(line, message, &odd)
}

/// The time of a message: ISO with a zone, milliseconds, or one of the local forms of earlier versions.
fn sent(date: &Value, zone: &Zone) -> Option<EventTime> {
    let Some(text) = date.as_str() else { return unix_time(Some(date), "send_date").ok() };
    if let Ok(time) = EventTime::read(text).or_else(|_| unix_time(Some(date), "send_date").map_err(|_| ())) {
        return Some(time);
    }
    // `June 19, 2023 2:20pm`, and `2023-06-19 @14h 20m 05s 123ms`.
    let upper = text.replace("am", " AM").replace("pm", " PM");
    let spoken = || DateTime::strptime("%B %d, %Y %I:%M %p", &upper).ok();
    let dated = || {
        let (date, clock) = text.split_once('@')?;
        let mut parts = clock.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let mut next = || parts.next()?.parse::<i16>().ok();
        let (hour, minute, second) = (next()?, next()?, next().unwrap_or(0));
        let date: jiff::civil::Date = date.trim().parse().ok()?;
        let small = |number: i16| i8::try_from(number).ok();
        let time = jiff::civil::Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()?;
        Some(date.to_datetime(time))
    };
    zone.moment(spoken().or_else(dated).or_else(|| text.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dates_of_all_versions_are_read() {
        let zone = Zone::parse("+02:00").unwrap();
        for (date, expected) in [
            (json!("2026-05-04T10:00:00.000Z"), "2026-05-04T10:00:00Z"),
            (json!(1_777_888_800_000_i64), "2026-05-04T10:00:00Z"),
            (json!("May 4, 2026 12:00pm"), "2026-05-04T12:00:00+02:00"),
            (json!("2026-05-04 @12h 00m 07s 123ms"), "2026-05-04T12:00:07+02:00"),
            (json!("2026-5-4 at noon"), ""),
            (json!(null), ""),
        ] {
            let found = sent(&date, &zone).map(|time| time.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{date}");
        }
    }
}
