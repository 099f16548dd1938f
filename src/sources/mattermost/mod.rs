//! Mattermost's bulk export: JSON Lines of posts with their replies inside, alone or in a zip archive.
//!
//! In: `import.jsonl`. Out: the posts and replies of channels and of direct channels, oldest first.
//! The export has no ids: a post's id is its time and its author. It names accounts and channels by
//! their handles, so that one that was renamed counts as another one. It orders posts by ids that
//! are random, so that everything is read before the first message comes.
//!
//! `export` is the format's records, `reader` makes messages of them.

mod export;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
