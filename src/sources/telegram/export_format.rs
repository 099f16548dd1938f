//! Recognises the form of a Telegram export, and opens it.
//!
//! In: a path. Out: a reader of the JSON, or of the pages if there is no JSON; an error that names the JSON export if
//! there is neither.

use super::{html::TelegramHtmlReader, json::TelegramJsonReader};
use crate::{
    SourceError,
    chat::{ChatReader, ExportTree, FileSample, has_json_keys},
    format::{FormatOpener, SourceFormat},
};
use types::config::SourceSettings;

/// Telegram Desktop's export.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "telegram",
    about: "Telegram Desktop's export of a chat or an account",
    standard_input: false,
    only: Some("chats"),
    looks_like,
    open: FormatOpener::Chat(open),
};

const REMEDY: &str = "in Telegram Desktop open the chat, choose Export chat history and the format Machine-readable \
                      JSON, and name result.json";
/// Some of the chat types that Telegram Desktop writes.
const TYPES: [&str; 9] = [
    "personal_chat",
    "bot_chat",
    "saved_messages",
    "private_group",
    "private_supergroup",
    "public_supergroup",
    "private_channel",
    "public_channel",
    "verification_codes",
];

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_json(sample.head()) || is_page(sample.head());
    }
    let found = |wanted: fn(&str) -> bool, is_one: fn(&str) -> bool| {
        sample.entries().find(|name| wanted(name)).is_some_and(|name| is_one(&sample.head_of(name)))
    };
    found(is_json_name, is_json) || found(is_page_name, is_page)
}

fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    let tree = ExportTree::open(&settings.path)?;
    let names = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        let names = tree.entries().iter().map(|entry| entry.name.clone());
        names.filter(|name| wanted(name)).collect()
    };
    let is_single = tree.is_file();
    let mut files = names(&|name| is_json_name(name) || is_single && !is_page_name(name));
    if is_single && FileSample::of(&settings.path)?.head().trim_start().starts_with('<') {
        files.clear();
    }
    if files.is_empty() && !is_single {
        files = names(&|name| name.ends_with(".json"));
        let sample = FileSample::of(&settings.path)?;
        files.retain(|name| is_json(&sample.head_of(name)));
    }
    if !files.is_empty() {
        if is_single && !FileSample::of(&settings.path)?.head().trim_start().starts_with('{') {
            return Err(unknown(settings, "not an export of Telegram Desktop"));
        }
        return Ok(Box::new(TelegramJsonReader::open(tree, files, &settings.zone)?));
    }
    let pages = names(&|name| is_page_name(name) || is_single);
    if pages.is_empty() {
        return Err(unknown(settings, "holds no result.json"));
    }
    Ok(Box::new(TelegramHtmlReader::open(tree, pages, &settings.zone)?))
}

fn unknown(settings: &SourceSettings, problem: &str) -> SourceError {
    SourceError::Format { path: settings.path.clone(), line: 1, column: 1, problem: problem.to_owned(), remedy: REMEDY }
}

/// Whether a file begins like `result.json`.
fn is_json(head: &str) -> bool {
    let is_account = has_json_keys(head, &["about"])
        && ["personal_information", "chats", "left_chats", "contacts"].iter().any(|key| has_json_keys(head, &[key]));
    let has_type = || TYPES.iter().any(|kind| head.contains(&format!("\"{kind}\"")));
    let is_chat = has_json_keys(head, &["messages", "type"])
        && (has_json_keys(head, &["date_unixtime"]) || has_json_keys(head, &["from_id"]) || has_type());
    is_account || is_chat
}

/// Whether a file begins like a page of messages.
fn is_page(head: &str) -> bool {
    head.contains("class=\"page_wrap\"") && head.contains("chat_page")
}

fn is_json_name(name: &str) -> bool {
    file_name(name) == "result.json"
}

fn is_page_name(name: &str) -> bool {
    let number = file_name(name).strip_prefix("messages").and_then(|rest| rest.strip_suffix(".html"));
    number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
