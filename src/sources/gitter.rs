//! Gitter rooms, as Gitter's API and exporters wrote them: a JSON array of messages.
//!
//! In: a file, or a folder or zip archive of files, each a room. Out: messages, oldest first. A message's room is named
//! after its file, because the messages do not name it. A message's words are its Markdown.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, JsonElement, JsonFiles, LIST,
        OBJECT, RecordForm, SkipReason, TEXT, TRUTH, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader,
        UnreadCounts, has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    zone::Zone,
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// Gitter rooms.
pub(super) const FORMAT: SourceFormat = SourceFormat {
    name: "gitter",
    about: "Gitter: JSON arrays of messages, one room per file",
    standard_input: false,
    only: Some("rooms"),
    looks_like: |sample| {
        let is_room = |head: &str| has_json_keys(head, &["fromUser", "sent", "text"]);
        match sample.is_file() {
            true => is_room(sample.head()),
            false => sample.entries().find(|e| e.ends_with(".json")).is_some_and(|e| is_room(&sample.head_of(e))),
        }
    },
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(GitterReader::open(settings)?)))),
};

/// Rooms that are read one after another.
struct GitterReader {
    files: JsonFiles,
    zone: Zone,
    /// By the number of their file.
    rooms: Vec<Arc<Conversation>>,
    /// Hashes of the messages that began a thread.
    roots: HashSet<u64>,
    /// When the first message with an id was sent, by the hash of file and id.
    sent: HashMap<u64, i64>,
    unread: UnreadCounts,
}

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT),
        ("text", TEXT),
        ("sent", TEXT),
        ("parentId", TEXT),
        ("fromUser", OBJECT),
        ("fromUser/id", TEXT),
        ("fromUser/username", TEXT),
        ("fromUser/displayName", TEXT),
    ],
    other: &[
        ("editedAt", TEXT),
        ("status", TRUTH),
        ("mentions", LIST),
        ("mentions[]", OBJECT),
        ("mentions[]/screenName", TEXT),
    ],
    known: &[
        "html",
        "unread",
        "readBy",
        "urls",
        "issues",
        "meta",
        "v",
        "mentions[]/group",
        "mentions[]/announcement",
        "mentions[]/userId",
        "mentions[]/userIds",
        "mentions[]/screenName",
        "fromUser/avatarUrl",
        "fromUser/avatarUrlSmall",
        "fromUser/avatarUrlMedium",
        "fromUser/gv",
        "fromUser/v",
        "fromUser/url",
        "fromUser/staff",
        "fromUser/providers",
        "fromUser/username",
        "threadMessageCount",
        "virtualUser",
        "virtualUser/displayName",
    ],
    remedy: "write it as Gitter does",
};

#[derive(Deserialize)]
struct GitterSentTime {
    sent: Option<String>,
    #[serde(rename = "parentId")]
    parent: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GitterMessage {
    id: String,
    text: Option<String>,
    edited_at: Option<String>,
    parent_id: Option<String>,
    /// Whether it is written as `/me`.
    #[serde(default)]
    status: bool,
    from_user: Option<GitterUser>,
    #[serde(default)]
    mentions: Vec<GitterMention>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GitterUser {
    id: Option<String>,
    username: Option<String>,
    display_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GitterMention {
    screen_name: Option<String>,
    user_id: Option<Value>,
}

impl GitterReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let entries = tree.entries().iter().filter(|e| tree.is_file() || e.name.ends_with(".json"));
        let rooms = entries.map(|e| {
            let name = e.name.rsplit_once('.').map_or(e.name.as_str(), |(stem, _)| stem).to_owned();
            let privacy = ConversationPrivacy::Open;
            let room = Conversation { workspace: None, id: name.clone(), name, privacy };
            (e.name.clone(), Arc::new(room))
        });
        let (names, rooms): (Vec<_>, Vec<_>) = rooms.unzip();
        if names.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file that ends in .json".to_owned(),
                remedy: "name a file of a room's messages, or a folder of them",
            });
        }
        Ok(Self {
            zone: Zone::parse(&settings.zone)?,
            files: JsonFiles::new(tree, names, &["*"]),
            rooms,
            roots: HashSet::new(),
            sent: HashMap::new(),
            unread: UnreadCounts::default(),
        })
    }

    fn time(&self, text: &str) -> Option<EventTime> {
        EventTime::read(text).ok().or_else(|| self.zone.moment(text.parse().ok()?))
    }

    fn take(
        &mut self,
        file: usize,
        element: JsonElement,
        order: &mut TimeSorter,
    ) -> Result<Option<ChatItem>, SourceError> {
        let origin = self.files.origin(file);
        let conversation = self.rooms.get(file).cloned();
        let read = element
            .parse::<Value>(&origin)
            .and_then(|value| FORM.read::<GitterSentTime>(value).map_err(|reason| element.reject(&origin, reason)));
        let head = match read {
            Ok((head, _)) => head,
            Err(letter) => return Ok(Some(ChatItem::Reject { conversation, letter })),
        };
        let Some(time) = head.sent.as_deref().and_then(|sent| self.time(sent)) else {
            let reason = "sent: missing or not a time; write it as Gitter does".to_owned();
            return Ok(Some(ChatItem::Reject { conversation, letter: element.reject(&origin, reason) }));
        };
        if let Some(parent) = head.parent {
            self.roots.insert(hash(file, &parent));
        }
        let file = u32::try_from(file).unwrap_or(u32::MAX);
        order.add(TimedRecord { unix_ms: time.unix_ms, file, line: element.line, payload: element.bytes })?;
        Ok(None)
    }

    fn message(&mut self, record: &TimedRecord) -> Result<ChatItem, String> {
        let (message, odd) = FORM.read::<GitterMessage>(serde_json::from_slice(&record.payload).unwrap_or_default())?;
        let item = self.said(message, record)?;
        odd.judge(item, &mut self.unread)
    }

    fn said(&mut self, message: GitterMessage, record: &TimedRecord) -> Result<ChatItem, String> {
        let file = record.file as usize;
        let user = message.from_user.ok_or("fromUser: missing; write who it was")?;
        let handle = user.username.filter(|name| !name.trim().is_empty());
        let name = user.display_name.filter(|name| !name.trim().is_empty()).or_else(|| handle.clone());
        let id = user.id.or_else(|| handle.clone()).or_else(|| name.clone());
        let (Some(name), Some(id)) = (name, id) else { return Err("fromUser: no name; write one".to_owned()) };
        let author = Account { id, name, handle, bot: false };
        let time = self.zone.at_unix_ms(record.unix_ms).ok_or("sent: out of range; write a date")?;
        let conversation = self.rooms.get(file).ok_or("the file is not known; read it again")?;
        let text = message.text.unwrap_or_default().trim().to_owned();
        if text.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        let text = if message.status { format!("{} {}", author.name, text.trim_start_matches("/me ")) } else { text };
        // Two messages with the same id but different times are both kept.
        let key = hash(file, &message.id);
        let first = *self.sent.entry(key).or_insert(record.unix_ms);
        let id = if first == record.unix_ms { message.id } else { format!("{}@{}", message.id, record.unix_ms) };
        let mentions = message.mentions.into_iter().filter_map(|mention| {
            let name = mention.screen_name?;
            let id = mention.user_id.as_ref().and_then(Value::as_str).unwrap_or(&name).to_owned();
            Some(Account { id, handle: Some(name.clone()), name, bot: false })
        });
        let version = message.edited_at.as_deref().map_or(0, |edited| {
            // An edit without a readable time is still an edit.
            self.time(edited).and_then(|t| u64::try_from(t.unix_ms).ok()).unwrap_or(1)
        });
        Ok(ChatItem::Message(Box::new(ChatMessage {
            conversation: conversation.clone(),
            thread: message.parent_id.clone().or_else(|| self.roots.contains(&key).then(|| id.clone())),
            reply_to: message.parent_id,
            id,
            version,
            author,
            text,
            time,
            attachments: Vec::new(),
            mentions: mentions.collect(),
        })))
    }
}

impl UnorderedReader for GitterReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some((file, element)) = self.files.next()? else { return Ok(false) };
        found.extend(self.take(file, element, order)?);
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        self.message(&record).unwrap_or_else(|reason| {
            let file = record.file as usize;
            ChatItem::Reject {
                conversation: self.rooms.get(file).cloned(),
                letter: DeadLetter::new(
                    format!("{}:{}", self.files.origin(file), record.line),
                    reason,
                    &record.payload,
                ),
            }
        })
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn describe(&self) -> String {
        format!("Gitter's messages in {}", self.files.tree().path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        self.files.bytes()
    }
}

fn hash(file: usize, id: &str) -> u64 {
    xxh3_64(format!("{file}/{id}").as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chat::{ChatReader, FileSample, items_of, lines_of};

    fn open(json: &str) -> (tempfile::TempDir, Box<dyn ChatReader>) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("rust.json");
        std::fs::write(&path, json).unwrap();
        assert!(!json.contains("fromUser") || (FORMAT.looks_like)(&FileSample::of(&path).unwrap()), "{json}");
        let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
        let reader = open(&SourceSettings::new("gitter", path)).unwrap();
        (folder, reader)
    }

    fn check(json: &str, expected: &[&str]) {
        let (_folder, mut reader) = open(json);
        assert_eq!(lines_of(&mut *reader), expected, "{json}");
    }

    fn said(id: &str, second: u32, fields: &str) -> String {
        format!(
            r#"{{"id": "{id}", "sent": "2016-06-02T20:54:{second:02}.5Z", "html": "x", "fromUser": {{"id": "u1",
                "username": "ann", "displayName": "Ann Lee"}}, "mentions": [], {fields}}}"#
        )
    }

    #[test]
    fn messages_come_oldest_first_with_edits_and_threads() {
        let reply = said("b", 9, r#""text": "re", "parentId": "a", "editedAt": "2016-06-02T21:00:00Z""#);
        let me = said("c", 3, r#""text": "waves", "status": true"#);
        let list = [reply, said("a", 1, r#""text": "**root**""#), me, said("d", 4, r#""text": " ""#)];
        check(
            &format!("[{}]", list.join(",")),
            &[
                "a 2016-06-02T20:54:01.5Z Ann Lee: **root** | thread=a",
                "c 2016-06-02T20:54:03.5Z Ann Lee: Ann Lee waves",
                "skip empty",
                "b 2016-06-02T20:54:09.5Z Ann Lee: re | v=1464901200000 | thread=a | reply=a",
            ],
        );
    }

    #[test]
    fn two_messages_with_one_id_are_both_kept() {
        let list = [said("a", 1, r#""text": "one""#), said("a", 2, r#""text": "two""#)];
        check(
            &format!("[{}]", list.join(",")),
            &["a 2016-06-02T20:54:01.5Z Ann Lee: one", "a@1464900842500 2016-06-02T20:54:02.5Z Ann Lee: two"],
        );
    }

    #[test]
    fn a_damaged_record_is_rejected_and_the_rest_is_read() {
        for (bad, line) in [
            (r#"{"id": "x", "text": "y"}"#, "reject rust.json:2: sent: missing or not a time"),
            (r#"{"id": "x", "text": "y", "sent": "2016-06-02T20:00:00Z"}"#, "reject rust.json:2: fromUser: missing"),
            (
                r#"{"id": 7, "text": "y", "sent": "2016-06-02T20:00:00Z"}"#,
                "reject rust.json:2: id: a number where a text belongs",
            ),
            ("null", "reject rust.json:2: invalid type"),
        ] {
            let (_folder, mut reader) = open(&format!("[\n{bad},\n{}]", said("a", 1, r#""text": "good""#)));
            let lines = lines_of(&mut *reader);
            assert_eq!(lines.len(), 2, "{bad}: {lines:?}");
            assert!(lines[0].starts_with(line), "{bad}: {lines:?}");
            assert!(lines[1].ends_with(": good"), "{lines:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn mutated_files_are_read_or_rejected(at in 0usize..300, with in "[\\PC\"{}\\[\\]:,0-9\\\\]{0,6}", cut in 0usize..20) {
            let mut json = format!("[{}]", said("a", 1, r#""text": "x""#));
            let at = json.floor_char_boundary(at % json.len());
            let end = json.floor_char_boundary((at + cut).min(json.len()));
            json.replace_range(at..end, &with);
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("rust.json");
            std::fs::write(&path, json).unwrap();
            let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
            items_of(&mut *open(&SourceSettings::new("gitter", path)).unwrap());
        }
    }
}
