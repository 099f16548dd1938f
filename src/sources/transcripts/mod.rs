//! Transcripts: conversations with assistants, as their programs keep or export them.
//!
//! In: a program's files. Out: what a person typed and what an assistant answered, once each, whatever was forked,
//! resumed or compacted. Tool calls and their output, thinking, summaries, system text, what hooks injected, slash
//! commands, interrupts and the work of subagents are counted by their kind and left out, and so are branches that the
//! person gave up. A file that cannot be read in part is no error: each such record is a dead letter.
//!
//! Each program has a file with a constant `FORMAT` and one function that reads a file of it; `program` says what such
//! a constant states, and `databases` has the programs with a database, which `database` reads. `transcript_reader`
//! makes turns of all of them in one way. `transcript_file` gives lines and values, `file_names` their names,
//! `findings` takes what is found, `content_blocks` reads the words of blocks, `kept_branch` says which messages of a
//! tree count, `injected_text` takes out of a person's words what programs put into them, `project` names the project of
//! a directory and `project_bank` its bank, `project_choice` says which projects are read, `known_messages` knows copies, and
//! `tool_calls` writes calls of tools in few words. `agents` reads all programs of a home directory, whose places are in
//! `agent_places`, `pauses` keeps when nothing is read, and `followed_home` reads what changes there.

mod agent_places;
mod agents;
mod aider;
mod chatgpt;
mod claude_ai;
mod claude_code;
mod cline;
mod codex;
mod content_blocks;
mod continue_dev;
mod copilot_cli;
#[cfg(feature = "opencode")]
mod database;
mod databases;
mod file_names;
mod findings;
mod followed_home;
mod gemini_cli;
mod injected_text;
mod kept_branch;
mod known_messages;
mod librechat;
mod open_webui;
mod pauses;
mod pi;
mod program;
mod project;
mod project_bank;
mod project_choice;
mod qwen_code;
mod sillytavern;
mod tool_calls;
mod transcript_file;
mod transcript_reader;
#[cfg(not(feature = "opencode"))]
mod without_database;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod home_tests;
#[cfg(test)]
mod repetition_tests;
#[cfg(test)]
mod tests;

pub(super) use agents::FORMAT as AGENTS;
pub(super) use aider::FORMAT as AIDER;
pub(super) use chatgpt::FORMAT as CHATGPT;
pub(super) use claude_ai::FORMAT as CLAUDE_AI;
pub(super) use claude_code::FORMAT as CLAUDE_CODE;
pub(super) use cline::FORMAT as CLINE;
pub(super) use codex::FORMAT as CODEX;
pub(super) use continue_dev::FORMAT as CONTINUE_DEV;
pub(super) use copilot_cli::FORMAT as COPILOT_CLI;
pub(super) use databases::{CURSOR, GOOSE, OPENCODE, ZED};
pub(super) use followed_home::{FollowedHome, HomeNews};
pub(super) use gemini_cli::FORMAT as GEMINI_CLI;
pub(super) use librechat::FORMAT as LIBRECHAT;
pub(super) use open_webui::FORMAT as OPEN_WEBUI;
pub use pauses::AgentPauses;
pub(super) use pi::FORMAT as PI;
pub use project_bank::{DirectoryBank, bank_of_directory};
pub(super) use qwen_code::FORMAT as QWEN_CODE;
pub(super) use sillytavern::FORMAT as SILLYTAVERN;
pub(super) use transcript_reader::{DEFAULT_BANK, DEFAULT_REDACTION};
