//! Reads the rows of Messages' database, oldest first.
//!
//! In: the path of `chat.db`. Out: items, page by page. SQLite sorts the row numbers by time, on disk if there are
//! many; the rows themselves are read in that order. Rows of the same time come in the order of `message.ROWID`.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use rusqlite::Connection;

use super::{
    columns::{ImessageColumns, REMEDY, damaged},
    row::{ImessageChat, ImessageRow, MAX_BODY_BYTES, integer, text},
};
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, Conversation, ConversationPrivacy, shared_file},
    sqlite_copy::SqliteCopy,
    turn_source::SourceProgress,
};
use types::{
    config::SourceSettings,
    model::{Attachment, MAX_ATTACHMENTS},
};

/// How many rows are held at once.
const PAGE_ROWS: i64 = 32;
/// At most this many people are part of a conversation's name.
const MAX_PARTICIPANTS: usize = 64;
/// The suffix of the files that Messages keeps for a link's preview.
const LINK_PREVIEW: &str = ".pluginPayloadAttachment";
/// imessage-exporter's name for the conversation of messages that belong to no conversation.
const ORPHANED: &str = "orphaned";

/// Opens a database.
///
/// # Errors
/// [`SourceError`] when it cannot be copied, is damaged, or is not Messages'.
pub(in crate::imessage) fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    let path = settings.path.clone();
    let copied = SqliteCopy::of(&path, REMEDY)?;
    let tables = ImessageColumns::of(&copied.connection).map_err(|e| damaged(&path, &e))?;
    if let Some(lacking) = tables.lacking() {
        return Err(SourceError::Format {
            path,
            line: 1,
            column: 1,
            problem: format!("this SQLite database is not Messages': it lacks {lacking}"),
            remedy: "name chat.db, which is in ~/Library/Messages on a Mac",
        });
    }
    let (total, privacy) = sort(&copied.connection, &tables).map_err(|e| damaged(&path, &e))?;
    Ok(Box::new(ImessageDatabaseReader {
        rows_sql: rows_sql(&tables),
        path,
        copied,
        tables,
        privacy,
        chats: HashMap::new(),
        found: VecDeque::new(),
        place: 0,
        total,
        is_done: false,
    }))
}

/// Messages' database.
struct ImessageDatabaseReader {
    path: PathBuf,
    copied: SqliteCopy,
    tables: ImessageColumns,
    privacy: ConversationPrivacy,
    rows_sql: String,
    chats: HashMap<Option<i64>, Arc<ImessageChat>>,
    found: VecDeque<ChatItem>,
    /// The last row that was read, as its place in the order of time.
    place: i64,
    total: u64,
    is_done: bool,
}

impl ImessageDatabaseReader {
    /// Reads a page of rows; returns false at the end.
    fn read(&mut self) -> rusqlite::Result<bool> {
        let rows: Vec<ImessageRow> = {
            let mut statement = self.copied.connection.prepare(&self.rows_sql)?;
            let rows = statement.query_map([self.place, PAGE_ROWS], |row| Ok(ImessageRow::of(row)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let origin = self.path.display().to_string();
        let is_end = rows.is_empty();
        for row in rows {
            self.place = row.place;
            if let Some(skip) = row.skip() {
                self.found.push_back(ChatItem::Skip(skip));
                continue;
            }
            let chat = self.chat(row.chat.or(row.deleted_from))?;
            let attachments = if row.shares == Some(false) { Vec::new() } else { self.attachments(row.number)? };
            self.found.push_back(row.item(&chat, attachments, &origin));
        }
        Ok(!is_end)
    }

    fn chat(&mut self, number: Option<i64>) -> rusqlite::Result<Arc<ImessageChat>> {
        if let Some(known) = self.chats.get(&number) {
            return Ok(Arc::clone(known));
        }
        let (id, name, participants) = match number {
            None => (ORPHANED.to_owned(), ORPHANED.to_owned(), Vec::new()),
            Some(number) => self.named(number)?,
        };
        let conversation = Arc::new(Conversation { workspace: None, id, name, privacy: self.privacy });
        let chat = Arc::new(ImessageChat { conversation, participants });
        self.chats.insert(number, Arc::clone(&chat));
        Ok(chat)
    }

    /// The id and the name of a conversation, and who takes part. A person's iMessage and SMS chats have the same
    /// `chat_identifier`, and are one conversation.
    fn named(&self, number: i64) -> rusqlite::Result<(String, String, Vec<String>)> {
        let connection = &self.copied.connection;
        let mut participants: Vec<String> = Vec::new();
        if self.tables.has("chat_handle_join") {
            let sql = "SELECT DISTINCT h.id FROM chat_handle_join j JOIN handle h ON h.ROWID = j.handle_id \
                       WHERE j.chat_id = ?1 ORDER BY h.ROWID LIMIT ?2";
            let mut statement = connection.prepare(sql)?;
            let limit = i64::try_from(MAX_PARTICIPANTS).unwrap_or(i64::MAX);
            let mut rows = statement.query([number, limit])?;
            while let Some(row) = rows.next()? {
                participants.extend(text(row, 0).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()));
            }
        }
        let (mut identifier, mut display_name) = (None, None);
        if self.tables.has("chat") {
            let columns = [self.tables.of_chat("chat_identifier"), self.tables.of_chat("display_name")].join(", ");
            let mut statement = connection.prepare(&format!("SELECT {columns} FROM chat WHERE ROWID = ?1"))?;
            let mut rows = statement.query([number])?;
            if let Some(row) = rows.next()? {
                (identifier, display_name) = (text(row, 0), text(row, 1));
            }
        }
        let some = |name: Option<String>| name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let id = some(identifier).unwrap_or_else(|| number.to_string());
        let name = some(display_name)
            .or_else(|| (!participants.is_empty()).then(|| participants.join(", ")))
            .unwrap_or_else(|| id.clone());
        Ok((id, name, participants))
    }

    fn attachments(&self, message: i64) -> rusqlite::Result<Vec<Attachment>> {
        if !(self.tables.has("message_attachment_join") && self.tables.has("attachment")) {
            return Ok(Vec::new());
        }
        let sql = "SELECT coalesce(a.transfer_name, a.filename) FROM message_attachment_join j \
                   JOIN attachment a ON a.ROWID = j.attachment_id WHERE j.message_id = ?1 ORDER BY a.ROWID LIMIT ?2";
        let mut statement = self.copied.connection.prepare(sql)?;
        let limit = i64::try_from(MAX_ATTACHMENTS).unwrap_or(i64::MAX);
        let mut rows = statement.query([message, limit])?;
        let mut shared = Vec::new();
        while let Some(row) = rows.next()? {
            let name = text(row, 0).unwrap_or_default();
            if !name.ends_with(LINK_PREVIEW) {
                shared.push(shared_file(&name, None));
            }
        }
        Ok(shared)
    }
}

impl ChatReader for ImessageDatabaseReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.found.pop_front() {
                return Ok(Some(item));
            }
            if self.is_done {
                return Ok(None);
            }
            match self.read() {
                Ok(is_more) => self.is_done = !is_more,
                Err(error) => {
                    self.is_done = true;
                    return Err(damaged(&self.path, &error));
                }
            }
        }
    }

    fn describe(&self) -> String {
        format!("iMessage from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        let done = u64::try_from(self.place).unwrap_or(0);
        SourceProgress { done, total: Some(self.total), unit: "messages" }
    }
}

/// Writes the order of the rows, and each row's conversation, to a temporary table. Returns the number of rows and
/// their privacy: a database of a single conversation is the user's own choice, like a file of one.
fn sort(connection: &Connection, tables: &ImessageColumns) -> rusqlite::Result<(u64, ConversationPrivacy)> {
    let mut joins = String::new();
    let mut join = |table: &str, name: &str| {
        if !tables.has(table) {
            return "NULL".to_owned();
        }
        joins.push_str(&format!(
            " LEFT JOIN (SELECT message_id, min(chat_id) AS chat FROM {table} GROUP BY message_id) {name} \
             ON {name}.message_id = m.ROWID"
        ));
        format!("{name}.chat")
    };
    let chat = join("chat_message_join", "held");
    let deleted_from = join("chat_recoverable_message_join", "gone");
    connection.execute_batch(&format!(
        "CREATE TEMP TABLE by_time AS SELECT m.ROWID AS message, {chat} AS chat, {deleted_from} AS deleted_from \
         FROM message m{joins} ORDER BY m.date, m.ROWID"
    ))?;
    let sql = "SELECT count(*), count(DISTINCT coalesce(chat, deleted_from, -1)) FROM temp.by_time";
    connection.query_row(sql, [], |row| {
        let number = |at| integer(row, at).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        Ok((number(0), if number(1) > 1 { ConversationPrivacy::Direct } else { ConversationPrivacy::Open }))
    })
}

/// The query for a page of rows after a place, with columns in the order that [`ImessageRow::of`] expects.
fn rows_sql(tables: &ImessageColumns) -> String {
    let body = match tables.of_message("attributedBody").as_str() {
        "NULL" => "NULL".to_owned(),
        column => format!("substr({column}, 1, {MAX_BODY_BYTES})"),
    };
    let optional = [
        "thread_originator_guid",
        "date_edited",
        "date_retracted",
        "item_type",
        "group_action_type",
        "associated_message_type",
        "cache_has_attachments",
        "balloon_bundle_id",
        "subject",
    ];
    let optional = optional.map(|name| tables.of_message(name)).join(", ");
    // `CROSS JOIN` keeps SQLite from changing the order of the loops. SQLite's `substr` would drop what comes after a
    // NUL in a text.
    format!(
        "SELECT t.rowid, t.message, t.chat, t.deleted_from, m.guid, m.text, {body}, m.date, m.is_from_me, h.id, \
         {optional} FROM temp.by_time t CROSS JOIN message m ON m.ROWID = t.message \
         LEFT JOIN handle h ON h.ROWID = m.handle_id WHERE t.rowid > ?1 ORDER BY t.rowid LIMIT ?2"
    )
}
