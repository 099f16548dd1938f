//! Microsoft Teams: chats and channels as Microsoft Graph writes them.
//!
//! In: JSON files of `chatMessage` objects, as an array, under `value` or `messages`, or one alone,
//! with names in camelCase or, from PowerShell, in PascalCase; one chat or channel a file, or several. Out:
//! messages, oldest first. Graph returns them newest first, with replies inside their post or beside
//! it. A post and its replies are a thread. What Graph never says is whether a channel is private.
//!
//! `message` is one message whichever way it is written, `body` its words, `reader` puts them
//! together.

mod body;
mod message;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
