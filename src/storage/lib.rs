//! What every store on a disk shares.
//!
//! | module | question |
//! |---|---|
//! | [`file_lock`] | Who may write, of several processes? |
//! | [`keyspaces`] | How do the embedded stores keep recent writes? |
//! | [`private_directory`] | Who may read a directory? |

pub mod file_lock;
pub mod keyspaces;
pub mod private_directory;
