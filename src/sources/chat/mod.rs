//! What the exports of all chat platforms share: their nouns, and the way from a message to a turn.
//!
//! In: what a platform's reader found, message by message. Out: turn events. A platform's file
//! knows its format and nothing else; here lies what holds for all of them, said once.
//!
//! `message` is the vocabulary, `reader` the interface that a platform's file implements, `turn_maker`
//! makes turns of what was found, and `chat_source` makes a [`super::Source`] of a reader. `assigned`
//! keeps the names that a live source has given. `routing` chooses which conversations are
//! read and which bank each goes to, `people` gives each account one name, `redaction` removes
//! what must not be stored, `names` keeps ids within their limits. `tree` opens a file, a directory
//! or an archive alike (`tarball` the tar archives), `sample` looks at its beginning, `elements` splits a JSON array
//! without holding it, `form` says what the fields of a record hold, `positional_id` makes ids for platforms that have
//! none, `media` names shared files, `months` reads foreign names of months, `markup` turns HTML into text, `reordered`
//! returns the messages of an export that is not in order of time oldest first, by `time_order`.

mod assigned;
mod chat_source;
mod elements;
mod form;
mod markup;
mod media;
mod message;
mod months;
mod names;
mod people;
mod positional_id;
mod reader;
mod redaction;
#[cfg(test)]
mod rendered_item;
mod reordered;
mod routing;
mod sample;
mod tarball;
mod time_order;
mod tree;
mod turn_maker;

#[cfg(test)]
pub(crate) mod transcript;

pub(crate) use assigned::Assigned;
pub(crate) use chat_source::ChatSource;
pub(crate) use elements::{Element, Elements};
pub(crate) use form::{Form, LIST, NUMBER, OBJECT, OddFields, TEXT, TRUTH, Unread};
pub(crate) use markup::{html_to_text, resolve_entities};
pub(crate) use media::{media_kind, shared_file};
pub(crate) use message::{Account, ChatItem, ChatMessage, Conversation, Privacy, Skip};
pub(crate) use months::foreign_month;
pub(crate) use positional_id::PositionalIds;
pub(crate) use reader::ChatReader;
#[cfg(test)]
pub(crate) use rendered_item::{items_of, lines_of};
pub(crate) use reordered::{Reordered, Unordered};
pub(crate) use routing::names_conversation;
pub use sample::{Sample, has_json_keys};
pub(crate) use time_order::{TimeOrder, TimedRecord};
pub(crate) use tree::Tree;
pub(crate) use turn_maker::TurnMaker;
