//! Renders what a reader finds as lines that a test compares.
//!
//! In: files by name with their contents, and how they are opened. Out: one line for each item, and the notice. Files
//! are written to a temporary folder whose path is left out of the lines.

use std::{fs, path::Path};

use super::{
    chat_item::{ChatItem, ChatMessage},
    chat_reader::ChatReader,
};
use crate::SourceError;
use types::config::SourceSettings;

/// How a reader is opened.
pub(crate) type OpenReader<'a> = &'a dyn Fn(&SourceSettings) -> Result<Box<dyn ChatReader>, SourceError>;

/// Files in a folder of their own.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// The items of a single file.
pub(crate) fn file_items(open: OpenReader<'_>, name: &str, content: &str) -> Vec<ChatItem> {
    let folder = folder(&[(name, content)]);
    items(open, &SourceSettings::new("x", folder.path().join(name))).unwrap().0
}

/// The items of a path and the notice.
pub(crate) fn items(
    open: OpenReader<'_>,
    settings: &SourceSettings,
) -> Result<(Vec<ChatItem>, Option<String>), SourceError> {
    let mut reader = open(settings)?;
    let notice = reader.notice();
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next()?, None, "the end is final");
    let progress = reader.progress();
    assert_eq!(Some(progress.done), progress.total, "everything was read");
    Ok((items, notice))
}

/// One line for each item.
pub(crate) fn transcript(items: &[ChatItem]) -> Vec<String> {
    items.iter().map(line).collect()
}

fn line(item: &ChatItem) -> String {
    match item {
        ChatItem::Message(message) => said(message),
        ChatItem::Deletion { id, version: None, .. } => format!("deleted {id}"),
        ChatItem::Deletion { id, version: Some(version), .. } => format!("deleted {id} at {version}"),
        ChatItem::Transcript { .. } => panic!("no transcript"),
        ChatItem::Skip(skip) => format!("skipped: {}", skip.name()),
        ChatItem::Reject { letter, .. } => {
            let place = Path::new(&letter.origin).file_name().unwrap().to_string_lossy().into_owned();
            format!("rejected {place}: {}", letter.reason)
        }
    }
}

fn said(message: &ChatMessage) -> String {
    let mut line = format!("{} {}: {}", message.time, message.author.name, message.text);
    for attachment in &message.attachments {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        line.push_str(&format!(" [{}: {}]", part(&attachment.kind), part(&attachment.caption)));
    }
    if message.version > 0 {
        line.push_str(&format!(" (version {})", message.version));
    }
    if let Some(reply_to) = &message.reply_to {
        line.push_str(&format!(" (answers {reply_to})"));
    }
    line
}

/// The ids of messages and deletions.
pub(crate) fn ids(items: &[ChatItem]) -> Vec<String> {
    let id = |item: &ChatItem| match item {
        ChatItem::Message(message) => Some(message.id.clone()),
        ChatItem::Deletion { id, .. } => Some(id.clone()),
        _ => None,
    };
    items.iter().filter_map(id).collect()
}

/// A tar archive of these files.
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        if name.len() > 90 {
            return archive.append_data(&mut header, name, content).unwrap();
        }
        // The builder itself refuses names that lead outside the folder.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, content).unwrap();
    };
    add("export/", tar::EntryType::Directory, b"");
    files.iter().for_each(|(name, content)| add(name, tar::EntryType::Regular, content));
    archive.into_inner().unwrap()
}
