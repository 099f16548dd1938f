//! Coding agents: what their settings say, what their hooks read, and what a session is given.
//!
//! In: the bytes of a program's settings, what a hook got on stdin, what a memory answered. Out: settings with our
//! entries and without them, an answer that the program understands, and what a session was given. Pure: reads no file,
//! no clock and no socket. The tag round what is given is `types::recall_tag`, which the readers of transcripts share.
//!
//! - `program`: which programs there are, and what each of them needs.
//! - `hook_call`, `hook_answer`: what a program says to its hook, and what the hook answers; `question`: what of a prompt
//!   is asked.
//! - `recalled`: what a memory answered, `given`: what a session was given, `given_text`: what of the one is new in the
//!   other, as text within the program's limit.
//! - `entries`: our entries in each program's settings; `settings_file`: one file before and after, with
//!   `settings_error`; `json_settings`,
//!   `toml_settings`, `yaml_settings`: editing that keeps the rest as it is; `plugins`: files that are ours alone.

mod entries;
mod given;
mod given_text;
mod hook_answer;
mod hook_call;
mod json_settings;
mod plugins;
mod program;
mod question;
mod recalled;
mod settings_error;
mod settings_file;
mod toml_settings;
mod yaml_settings;

pub use entries::{OwnCommands, ProgramHome, settings_of};
pub use given::{GivenTurns, StartCause};
pub use given_text::{GivenText, LEAST_SHARE, MOST_TOKENS, PromptRoom, begin_text, prompt_quotes, prompt_text};
pub use hook_answer::{HookAnswer, hook_answer};
pub use hook_call::{HookCall, HookMoment};
pub use program::{AgentProgram, TextLimit, text_mark};
pub use question::question_of;
pub use recalled::{RecalledPassage, RecalledProfile, RecalledTurns};
pub use settings_error::SettingsError;
pub use settings_file::{SettingsFile, SettingsForm};
