//! Tests of Messages' database, each on a database that is written for it.

use std::{fs, path::Path};

use rusqlite::{Connection, params};

use super::{
    body::{ImessageBodyError, words},
    reader::open,
};
use crate::{
    chat::{ChatItem, ConversationPrivacy, FileSample, lines_of, transcript},
    imessage::FORMAT,
    lines::MAX_MESSAGE_BYTES,
};
use types::config::SourceSettings;

/// The tables as macOS 14 has them, without the columns that are not read.
const TABLES: &str = "
    CREATE TABLE handle (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, id TEXT NOT NULL, service TEXT NOT NULL);
    CREATE TABLE chat (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, chat_identifier TEXT, display_name TEXT);
    CREATE TABLE message (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, text TEXT,
        handle_id INTEGER DEFAULT 0, attributedBody BLOB, date INTEGER, is_from_me INTEGER DEFAULT 0,
        item_type INTEGER DEFAULT 0, group_action_type INTEGER DEFAULT 0, associated_message_type INTEGER DEFAULT 0,
        cache_has_attachments INTEGER DEFAULT 0, balloon_bundle_id TEXT, thread_originator_guid TEXT, subject TEXT,
        date_edited INTEGER DEFAULT 0, date_retracted INTEGER DEFAULT 0);
    CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
    CREATE TABLE chat_recoverable_message_join (chat_id INTEGER, message_id INTEGER);
    CREATE TABLE chat_handle_join (chat_id INTEGER, handle_id INTEGER);
    CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY, filename TEXT, transfer_name TEXT);
    CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER);
    INSERT INTO handle (ROWID, id, service) VALUES (1, '+15550100', 'iMessage'), (2, 'bo@b.example', 'iMessage'),
        (3, '+15550100', 'SMS');
    INSERT INTO chat (ROWID, guid, chat_identifier, display_name) VALUES (1, 'iMessage;-;+15550100', '+15550100', ''),
        (2, 'iMessage;+;chat7', 'chat7', 'Club'), (3, 'SMS;-;+15550100', '+15550100', NULL), (4, 'iMessage;+;chat8', 'chat8', '');
    INSERT INTO chat_handle_join VALUES (1, 1), (2, 1), (2, 2), (3, 3), (4, 2), (4, 1);";
/// 2024-05-01T10:00:00Z in seconds since 2001.
const MAY: i64 = 736_250_400;
const NS: i64 = 1_000_000_000;

/// A database of Messages.
struct ImessageTestDatabase(Connection);

impl ImessageTestDatabase {
    fn at(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(TABLES).unwrap();
        Self(connection)
    }

    /// A message `seconds` after 10:00 in a conversation; `more` sets other columns.
    fn message(&self, guid: &str, seconds: i64, chat: i64, handle: i64, text: Option<&str>, more: &str) -> &Self {
        let sql = "INSERT INTO message (guid, date, handle_id, is_from_me, text) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.0.execute(sql, params![guid, (MAY + seconds) * NS, handle, handle == 0, text]).unwrap();
        let number = self.0.last_insert_rowid();
        if chat > 0 {
            self.0.execute("INSERT INTO chat_message_join VALUES (?1, ?2)", [chat, number]).unwrap();
        }
        if !more.is_empty() {
            self.0.execute_batch(&format!("UPDATE message SET {more} WHERE ROWID = {number}")).unwrap();
        }
        self
    }
}

/// An archived string as Messages writes one.
fn archived(text: &str) -> Vec<u8> {
    let mut bytes = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00\x84\x84\x08NSObject\x00\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+".to_vec();
    match text.len() {
        length @ 0..=0x7f => bytes.push(length as u8),
        length @ 0x80..=0xffff => bytes.extend([&[0x81][..], &(length as u16).to_le_bytes()].concat()),
        length => bytes.extend([&[0x82][..], &(length as u32).to_le_bytes()].concat()),
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(b"\x86\x84\x02iI\x01\x03\x92\x84\x84\x84\x0cNSDictionary\x00\x94\x86");
    bytes
}

fn archived_sql(text: &str) -> String {
    let hex: String = archived(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("attributedBody = x'{hex}'")
}

fn lines(path: &Path) -> Vec<String> {
    lines_of(&mut *open(&SourceSettings::new("imessage", path)).unwrap())
}

/// Checks the items of a database whose messages `write` adds.
fn check(write: impl Fn(&ImessageTestDatabase), expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    write(&ImessageTestDatabase::at(&path));
    assert_eq!(lines(&path), expected);
}

#[test]
fn messages_have_their_sender_time_and_words_and_the_owner_is_me() {
    check(
        |w| {
            w.message("A", 0, 1, 1, Some("Hello"), "");
            w.message("B", 60, 1, 0, None, &archived_sql("Hi Ann, you’re early"));
            w.message("C", 90, 1, 1, Some(""), &archived_sql(&"long ".repeat(60)));
            w.message("D", 120, 1, 1, Some("Yes"), "thread_originator_guid = 'B'");
        },
        &[
            "A 2024-05-01T10:00:00Z +15550100: Hello",
            "B 2024-05-01T10:01:00Z Me: Hi Ann, you’re early",
            &format!("C 2024-05-01T10:01:30Z +15550100: {}", "long ".repeat(60)),
            "D 2024-05-01T10:02:00Z +15550100: Yes | reply=B",
        ],
    );
}

#[test]
fn a_subject_is_the_first_line_and_a_text_is_read_whole() {
    let (long, archived_long) = ("long ".repeat(40_000), "long ".repeat(120_000));
    let taken_back = format!("subject = 'Dinner', date_edited = {}", (MAY + 9) * NS);
    check(
        |w| {
            w.message("A", 0, 1, 1, None, "subject = 'Only a subject'");
            w.message("B", 1, 1, 1, Some("at eight"), "subject = 'Dinner'");
            w.message("C", 2, 1, 1, None, &taken_back);
            w.message("D", 3, 1, 1, Some("before\0after"), "");
            w.message("E", 4, 1, 1, Some(&long), "");
            w.message("F", 5, 1, 1, None, "");
            let body = archived(&archived_long);
            w.0.execute("UPDATE message SET attributedBody = ?1 WHERE guid = 'F'", params![body]).unwrap();
        },
        &[
            "A 2024-05-01T10:00:00Z +15550100: Only a subject",
            "B 2024-05-01T10:00:01Z +15550100: Dinner\nat eight",
            "deletion C Some(1714557609000)",
            "D 2024-05-01T10:00:03Z +15550100: before\0after",
            &format!("E 2024-05-01T10:00:04Z +15550100: {long}"),
            &format!("F 2024-05-01T10:00:05Z +15550100: {archived_long}"),
        ],
    );
}

#[test]
fn times_are_nanoseconds_or_in_older_databases_seconds() {
    check(
        |w| {
            w.message("A", 0, 1, 1, Some("old"), &format!("date = {MAY}"));
            w.message("B", 0, 1, 1, Some("new"), &format!("date = {}", MAY * NS + 500_000_000));
            w.message("C", 0, 1, 1, Some("never"), "date = 0");
            w.message("D", 0, 1, 1, Some("late"), &format!("date = {}", i64::MAX));
        },
        &[
            "reject chat.db: message 3: its date is missing or out of range; the message cannot be read",
            "A 2024-05-01T10:00:00Z +15550100: old",
            "B 2024-05-01T10:00:00.5Z +15550100: new",
            "reject chat.db: message 4: its date is missing or out of range; the message cannot be read",
        ],
    );
}

#[test]
fn edits_are_versions_and_what_was_taken_back_or_deleted_is_a_deletion() {
    let at = |seconds| (MAY + seconds) * NS;
    check(
        |w| {
            w.message("A", 0, 1, 1, Some("Now right"), &format!("date_edited = {}", at(30)));
            w.message("B", 1, 1, 1, None, &format!("date_edited = {}", at(40)));
            w.message("C", 2, 1, 0, Some("gone"), &format!("date_retracted = {}", at(50)));
            w.message("D", 3, 0, 1, Some("in the bin"), "");
            w.0.execute("INSERT INTO chat_recoverable_message_join VALUES (1, 4)", []).unwrap();
        },
        &[
            "A 2024-05-01T10:00:00Z +15550100: Now right | v=1714557630000",
            "deletion B Some(1714557640000)",
            "deletion C Some(1714557650000)",
            "deletion D None",
        ],
    );
}

#[test]
fn tapbacks_notices_and_what_has_no_words_are_skipped() {
    check(
        |w| {
            w.message("A", 0, 1, 1, Some("Loved “Hello”"), "associated_message_type = 2000");
            w.message("B", 1, 1, 1, Some("Removed a heart"), "associated_message_type = 3007");
            w.message("C", 2, 2, 1, None, "item_type = 2");
            w.message("D", 3, 2, 1, None, "group_action_type = 1");
            w.message("E", 4, 1, 1, None, "");
            w.message("F", 5, 1, 1, Some("\u{fffc}"), "balloon_bundle_id = 'com.example.game'");
        },
        &[
            "skip unsupported",
            "skip unsupported",
            "skip service message",
            "skip service message",
            "skip empty",
            "skip unsupported",
        ],
    );
}

#[test]
fn shared_files_are_named_and_previews_of_links_are_left_out() {
    check(
        |w| {
            w.message("A", 0, 1, 1, Some("\u{fffc}Look"), "cache_has_attachments = 1");
            w.0.execute_batch(
                "INSERT INTO attachment VALUES (1, '~/Library/a/IMG_1.heic', 'IMG_1.heic'), (2, '~/b/call.m4a', NULL), \
                 (3, NULL, 'X.pluginPayloadAttachment'); INSERT INTO message_attachment_join VALUES (1, 1), (1, 2), (1, 3)",
            )
            .unwrap();
        },
        &["A 2024-05-01T10:00:00Z +15550100: Look | image: IMG_1.heic | audio: call.m4a"],
    );
}

#[test]
fn what_cannot_be_read_is_rejected_with_its_row_and_the_rest_goes_on() {
    check(
        |w| {
            w.message("A", 0, 1, 1, None, "attributedBody = x'040b73747265616d7479706564'");
            w.message("B", 1, 2, 9, Some("from nobody"), "");
            w.message("C", 2, 1, 9, Some("from the only other"), "");
        },
        &[
            "reject chat.db: message 1: attributedBody holds no string; the message cannot be read",
            "reject chat.db: message 2: it names no sender; the message cannot be read",
            "C 2024-05-01T10:00:02Z +15550100: from the only other",
        ],
    );
}

#[test]
fn messages_come_oldest_first_and_many_pages_lose_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let written = ImessageTestDatabase::at(&path);
    for n in 0..200 {
        written.message(&format!("{n:03}"), 1000 - n, 1, 1, Some("x"), "");
    }
    let mut expected: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    expected.reverse();
    let found: Vec<String> = lines(&path).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_person_has_one_conversation_and_groups_have_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let written = ImessageTestDatabase::at(&path);
    for (n, chat) in [(0, 1), (1, 3), (2, 2), (3, 4), (4, 0)] {
        written.message(&n.to_string(), n, chat, 1, Some("x"), "");
    }
    let (found, notice) =
        transcript::items(&|settings| open(settings), &SourceSettings::new("imessage", &path)).unwrap();
    assert_eq!(notice, None);
    let conversations: Vec<_> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => (m.conversation.id.as_str(), m.conversation.name.as_str(), m.conversation.privacy),
            other => panic!("{other:?}"),
        })
        .collect();
    let direct = ConversationPrivacy::Direct;
    let ann = ("+15550100", "+15550100", direct);
    assert_eq!(
        conversations,
        [
            ann,
            ann,
            ("chat7", "Club", direct),
            ("chat8", "+15550100, bo@b.example", direct),
            ("orphaned", "orphaned", direct)
        ]
    );
}

#[test]
fn what_lies_in_the_log_beside_it_is_read_and_the_users_files_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let writing = Connection::open(&path).unwrap();
    writing.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;").unwrap();
    writing.execute_batch(TABLES).unwrap();
    let written = ImessageTestDatabase(writing);
    written.message("A", 0, 1, 1, Some("only in the log"), "");
    let files = || {
        let mut files: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap(), path))
            .collect();
        files.sort_by(|a, b| a.2.cmp(&b.2));
        files
    };
    let before = files();
    assert_eq!(before.len(), 3, "the log and its index lie beside it");
    assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()));
    assert_eq!(lines(&path), ["A 2024-05-01T10:00:00Z +15550100: only in the log"]);
    assert!(before == files(), "the user's files have changed");
}

#[test]
fn an_older_database_without_the_later_columns_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT);
             CREATE TABLE message (ROWID INTEGER PRIMARY KEY, guid TEXT, text TEXT, handle_id INTEGER, date INTEGER, is_from_me INTEGER);
             CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
             INSERT INTO handle VALUES (5, 'ann@a.example');
             INSERT INTO message VALUES (1, 'A', 'Hello', 5, {MAY}, 0);
             INSERT INTO chat_message_join VALUES (1, 1);"
        ))
        .unwrap();
    assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), "by its tables, whatever its name");
    assert_eq!(lines(&path), ["A 2024-05-01T10:00:00Z ann@a.example: Hello"]);
}

#[test]
fn another_database_is_an_error_that_says_what_it_lacks() {
    for (tables, expected) in [
        ("CREATE TABLE notes (x)", "it lacks a table `message`"),
        ("CREATE TABLE message (guid)", "it lacks a table `handle` with a column `id`"),
        (
            "CREATE TABLE message (guid, text, handle_id, date); CREATE TABLE handle (id)",
            "it lacks a column `is_from_me` of the table `message`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        Connection::open(&path).unwrap().execute_batch(tables).unwrap();
        assert!(!(FORMAT.looks_like)(&FileSample::of(&path).unwrap()), "{tables}");
        let error = open(&SourceSettings::new("imessage", &path)).err().unwrap().to_string();
        assert!(error.contains("notes.db") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_string_is_read_whole_or_not_at_all() {
    for text in ["", "a", "héllo 👀", &"x".repeat(0x7f), &"x".repeat(0x80), &"x".repeat(0x1_0000)] {
        let whole = archived(text);
        assert_eq!(words(&whole), Ok(text));
        let end = whole.len() - archived("").len() + whole.iter().position(|b| *b == b'+').unwrap();
        for cut in [0, 5, 40, end] {
            assert!(words(&whole[..cut.min(whole.len())]).is_err(), "{cut}");
        }
    }
    // A string that is too long is cut to its beginning.
    let longer = format!("a{}", "é".repeat(MAX_MESSAGE_BYTES));
    assert_eq!(words(&archived(&longer)), Ok(&longer[..MAX_MESSAGE_BYTES - 1]));
    let mutable = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x0fNSMutableString\x01\x84\x84\x08NSString\x01\x95\x84\x01+\x02Hi\x86";
    assert_eq!(words(mutable), Ok("Hi"));
    let mut latin = archived("ab");
    let at = latin.windows(2).position(|two| two == b"ab").unwrap();
    latin[at] = 0xe9;
    assert_eq!(words(&latin), Err(ImessageBodyError::Utf8));
    assert_eq!(words(b"bplist00"), Err(ImessageBodyError::Header));
}

/// A seeded number below `bound`.
fn below(seed: &mut u64, bound: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % bound.max(1)
}

#[test]
fn no_byte_makes_the_reader_of_strings_panic() {
    let whole = archived("a message of some length, with é and 👀");
    let mut seed = 7;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=below(&mut seed, 4) {
            let at = below(&mut seed, bytes.len());
            bytes[at] = below(&mut seed, 256) as u8;
        }
        bytes.truncate(bytes.len() - below(&mut seed, 30));
        let _ = words(&bytes);
    }
}

#[test]
fn no_damage_to_a_database_makes_the_reader_panic_or_stop_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let written = ImessageTestDatabase::at(&path);
    for n in 0..120 {
        written.message(&format!("{n}"), n, 1 + n % 4, n % 3, None, &archived_sql(&format!("message {n}")));
    }
    drop(written);
    let whole = fs::read(&path).unwrap();
    let (mut seed, mut items, mut errors) = (11, 0, 0);
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=below(&mut seed, 12) {
            // The file's header is damaged in some rounds only, because little can be read after that.
            let from = if round % 8 == 0 { 0 } else { 100 };
            let at = from + below(&mut seed, bytes.len() - from);
            bytes[at] = below(&mut seed, 256) as u8;
        }
        if round % 10 == 0 {
            bytes.truncate(below(&mut seed, bytes.len()).max(16));
        }
        fs::write(&path, &bytes).unwrap();
        let mut failed = |error: crate::SourceError| {
            assert!(error.to_string().contains("chat.db"), "{error}");
            errors += 1;
        };
        (FORMAT.looks_like)(&FileSample::of(&path).unwrap());
        match open(&SourceSettings::new("imessage", &path)) {
            Ok(mut reader) => loop {
                match reader.next() {
                    Ok(Some(_)) => items += 1,
                    Ok(None) => break,
                    Err(error) => failed(error),
                }
            },
            Err(error) => failed(error),
        }
    }
    assert!(items > 5_000 && errors > 20, "{items} items, {errors} errors");
}
