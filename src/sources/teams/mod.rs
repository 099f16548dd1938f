//! Microsoft Teams: chats and channels as Microsoft Graph returns them.
//!
//! In: JSON files of `chatMessage` objects, as an array, under `value` or `messages`, or one alone, with names in
//! camelCase or, from PowerShell, in PascalCase; one chat or channel per file, or several. Out: messages, oldest first.
//! Graph returns them newest first, with replies inside their post or next to it. A post and its replies are a thread.
//! Graph does not say whether a channel is private.
//!
//! `message` reads the fields of a message in either form, `body` reads its words, `reader` puts messages together.

mod body;
mod message;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
