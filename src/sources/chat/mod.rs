//! What the exports of all chat platforms share: their types, and the way from a message to a turn.
//!
//! In: what a platform's reader found, message by message. Out: turn events. A platform's module knows only its own
//! format; everything that all platforms share is here, once.
//!
//! `chat_item` defines the types, `chat_reader` is the interface that a platform's module implements, `turn_maker`
//! makes turns from what was found, and `chat_source` makes a [`super::TurnSource`] from a reader. `assigned_names`
//! keeps the names that a live source has given. `routing` chooses which conversations are read and into which banks;
//! `speaker_names` gives each account one name; `redaction` removes what must not be stored
//! (`secret_rules` knows keys); `call_line` makes one line of an assistant's calls of tools; `name_limits` keeps ids
//! within their limits. `export_tree` opens a file, a directory or an archive alike (`tarball` opens tar archives);
//! `file_sample` reads its beginning; `json_elements` reads the values of a large JSON file one by one, and
//! `json_files` those of several. `record_form` lists the fields of a format's records, `record_check` checks a record
//! against that list, and `unlisted_fields` finds fields that are not in it; `unread_counts` counts unread fields.
//! `positional_ids` makes ids for platforms that have none; `shared_file` names shared files; `foreign_months` reads
//! foreign month names; `html_text` turns HTML into text; `transcript_message` is a message that an assistant's program
//! wrote down. For an export that is not in order of time,
//! `time_ordered_reader` returns the messages oldest first, using `time_sorter`.

mod assigned_names;
mod call_line;
mod chat_item;
mod chat_reader;
mod chat_source;
mod export_tree;
mod file_sample;
mod foreign_months;
mod html_text;
mod json_elements;
mod json_files;
mod name_limits;
mod positional_ids;
mod record_check;
mod record_form;
mod redaction;
#[cfg(test)]
mod rendered_item;
mod routing;
mod secret_rules;
mod shared_file;
mod speaker_names;
mod tarball;
mod time_ordered_reader;
mod time_sorter;
mod transcript_message;
mod turn_maker;
mod unlisted_fields;
mod unread_counts;

#[cfg(test)]
pub(crate) mod transcript;

pub(crate) use assigned_names::AssignedNames;
pub(crate) use chat_item::{Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, SkipReason};
pub(crate) use chat_reader::{ChatReader, UnknownNames};
pub(crate) use chat_source::{ChatSource, first_names};
pub(crate) use export_tree::ExportTree;
pub(crate) use file_sample::begins_with_key;
pub use file_sample::{FileSample, has_json_keys};
pub(crate) use foreign_months::foreign_month;
pub(crate) use html_text::{html_to_text, resolve_entities};
pub(crate) use json_elements::{JsonElement, JsonElements};
pub(crate) use json_files::{JsonFileItem, JsonFiles};
pub(crate) use positional_ids::PositionalIds;
pub(crate) use record_check::{LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH, UnreadFields};
#[cfg(test)]
pub(crate) use rendered_item::{items_of, lines_of};
pub(crate) use routing::{names_conversation, project_bank};
pub(crate) use shared_file::{media_kind, shared_file};
pub(crate) use time_ordered_reader::{TimeOrderedReader, UnorderedReader};
pub(crate) use time_sorter::{SortedRecords, TimeSorter, TimedRecord};
pub(crate) use transcript_message::{TranscriptMessage, TranscriptRole};
pub(crate) use turn_maker::TurnMaker;
pub(crate) use unread_counts::UnreadCounts;
