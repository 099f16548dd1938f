//! What the exports of all chat platforms share: their types, and the way from a message to a turn.
//!
//! In: what a platform's reader found, message by message. Out: turn events. A platform's module knows only its own
//! format; everything that all platforms share is here, once.
//!
//! `message` defines the types, `reader` is the interface that a platform's module implements, `turn_maker` makes turns
//! from what was found, and `chat_source` makes a [`super::Source`] from a reader. `assigned` keeps the names that a
//! live source has given. `routing` chooses which conversations are read and which bank each goes to; `people` gives
//! each account one name; `redaction` removes what must not be stored; `names` keeps ids within their limits. `tree`
//! opens a file, a directory or an archive alike (`tarball` opens tar archives); `sample` reads its beginning;
//! `elements` reads the values of a large JSON file one by one, and `json_files` those of several; `form` says which kinds of values the fields of a
//! record may hold, and `unlisted` finds fields that it does not name; `unread` counts those. `positional_id` makes ids for platforms that have none; `media` names shared files; `months` reads
//! foreign month names; `markup` turns HTML into text. For an export that is not in order of time, `reordered` returns
//! the messages oldest first, using `time_order`.

mod assigned;
mod chat_source;
mod elements;
mod field_list;
mod form;
mod json_files;
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
mod unlisted;
mod unread;

#[cfg(test)]
pub(crate) mod transcript;

pub(crate) use assigned::Assigned;
pub(crate) use chat_source::{ChatSource, first_names};
pub(crate) use elements::{Element, Elements};
pub(crate) use form::{Form, LIST, NUMBER, OBJECT, OddFields, TEXT, TRUTH};
pub(crate) use json_files::{FileStep, JsonFiles};
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
pub(crate) use sample::begins_with_key;
pub use sample::{Sample, has_json_keys};
pub(crate) use time_order::{TimeOrder, TimedRecord};
pub(crate) use tree::Tree;
pub(crate) use turn_maker::TurnMaker;
pub(crate) use unread::Unread;
