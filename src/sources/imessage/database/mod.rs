//! Messages' database, `chat.db`, which is SQLite.
//!
//! In: the path of a database. Out: messages with their edits, deletions and skips, oldest first, in memory that grows
//! with the conversations and never with the messages. The user's file is never written to, and nothing is created next
//! to it.
//!
//! `columns` says which tables and columns this version of it has, `reader` reads rows of a copy, `row` makes an item
//! from a row, `body` finds the words in an archived string.

mod body;
mod columns;
mod reader;
mod row;

#[cfg(test)]
mod tests;

pub(super) use columns::is_messages;
pub(super) use reader::open;
