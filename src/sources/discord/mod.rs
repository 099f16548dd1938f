//! Discord: the JSON of DiscordChatExporter, and the data package that Discord itself provides.
//!
//! In: one JSON file of an export, or a folder or archive of them; or a data package, packed or unpacked. Out: messages
//! with their edits, replies and threads, and what is shared. The data package holds only the user's own messages, in
//! their last version. Neither export holds deletions, and reactions are not read. Discord's ids are 64-bit integers
//! and are never read as floating point.
//!
//! `export_format` tells the two apart. `exporter` reads the files of DiscordChatExporter, and `message` turns one of
//! their messages into an item, depending on its `message_kind`. `package` reads a data package; `csv` reads its older
//! tables. `gateway` reads messages live. `attachments` makes attachments of files, embeds and stickers; `mentions` and
//! `markdown` turn Discord's wording into what a person reads; `snowflake` reads the time that an id holds.

mod attachments;
mod csv;
mod export_format;
mod exporter;
mod gateway;
mod markdown;
mod mentions;
mod message;
mod message_kind;
mod package;
mod snowflake;

#[cfg(test)]
mod tests;

pub(super) use export_format::FORMAT;
pub(super) use gateway::DiscordServers;
