//! Telegram Desktop's export of one chat or of a whole account, as JSON or as HTML.
//!
//! In: `result.json`, the pages `messages*.html`, or a folder or archive that holds them. Out: messages with their
//! edits, replies and topics, and what is shared; notices from the platform and messages of unknown kinds as skips;
//! unreadable messages as rejects. Deletions are not in the export: Telegram leaves deleted messages out. Reactions are
//! not read.
//!
//! `export_format` opens either form, `json` reads `result.json`, and `html` reads the pages. `message` turns one JSON
//! message into an item, with `message_text` for its words, `attachments` for what is shared and `topics` for the topic
//! that it belongs to. `bot_api` turns a message of the Bot API into the same. `json_repair` corrects invalid JSON that
//! Telegram Desktop writes.

mod attachments;
mod bot_api;
mod export_format;
mod html;
mod json;
mod json_repair;
mod message;
mod message_text;
mod rich_message;
mod topics;

#[cfg(test)]
mod tests;

pub(super) use bot_api::bot_item;
pub(super) use export_format::FORMAT;
