//! Mattermost's bulk export: JSON Lines of posts with their replies inside, alone or in a zip archive.
//!
//! In: `import.jsonl`. Out: the posts and replies of channels and of direct channels, oldest first. The export has no
//! ids: a post's id is its time and its author. It names accounts and channels by their handles, so one that was
//! renamed counts as a new one. It orders posts by random ids, so everything is read before the first message is
//! returned.
//!
//! `export_lines` defines the format's records; `reader` makes messages from them.

mod export_lines;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
