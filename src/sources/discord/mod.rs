//! Discord: the JSON of DiscordChatExporter, and the data package that Discord itself hands out.
//!
//! In: one JSON file of an export, or a folder or archive of them; or a data package, packed or
//! unpacked. Out: messages with their edits, replies and threads, and what is shared. The data package
//! holds the user's own messages only, as they were last. Deletions are in neither, and reactions are not
//! read. Discord's ids are whole numbers of 64 bits and are never read as floating point.
//!
//! `export` tells the two apart. `exporter` reads the files of DiscordChatExporter, and `message` turns
//! one of their messages into an item, by its `kind`. `package` reads a data package, `csv` its older
//! tables. `gateway` reads messages while they are said. `shared` makes attachments of files, embeds and stickers;
//! `mentions` and `markdown` turn Discord's wording into what a person reads; `snowflake` reads the time that an id
//! holds.

mod csv;
mod export;
mod exporter;
mod gateway;
mod kind;
mod markdown;
mod mentions;
mod message;
mod package;
mod shared;
mod snowflake;

#[cfg(test)]
mod tests;

pub(super) use export::FORMAT;
pub(super) use gateway::Servers;
