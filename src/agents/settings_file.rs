//! One file of a program: what it has to say with our entries, and what without them.
//!
//! In: the file's text, or nothing where there is no file. Out: the text afterwards, or nothing where no file is left.
//! Never changes what is not ours.

use crate::{
    json_settings::{self, JsonEntry},
    settings_error::SettingsError,
    toml_settings::{self, TomlTable},
    yaml_settings::{self, YamlLines},
};

/// A file with entries of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsFile {
    /// Where it is.
    pub path: std::path::PathBuf,
    /// What of it is ours, in words.
    pub about: &'static str,
    /// What of it is ours.
    pub form: SettingsForm,
}

/// What of a file is ours, by the file's form.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsForm(pub(crate) OwnContent);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnContent {
    Json(Vec<JsonEntry>),
    Toml(TomlTable),
    Yaml(YamlLines),
    /// The whole file is ours.
    Whole {
        text: String,
        is_program: bool,
    },
}

impl SettingsFile {
    /// The text with our entries.
    ///
    /// # Errors
    /// [`SettingsError`] when it is not what the program writes.
    pub fn with_own(&self, text: Option<&str>) -> Result<String, SettingsError> {
        let old = text.unwrap_or_default();
        match &self.form.0 {
            OwnContent::Json(entries) => {
                let with = json_settings::with_entries(old, entries)?;
                Ok(if text.is_none() { format!("{}\n", with.trim_end()) } else { with })
            }
            OwnContent::Toml(table) => toml_settings::with_table(old, table),
            OwnContent::Yaml(lines) => yaml_settings::with_lines(old, lines),
            OwnContent::Whole { text, .. } => Ok(text.clone()),
        }
    }

    /// The text without our entries; `None` where nothing is left of the file.
    ///
    /// # Errors
    /// [`SettingsError`] when it is not what the program writes.
    pub fn without_own(&self, text: &str) -> Result<Option<String>, SettingsError> {
        match &self.form.0 {
            OwnContent::Json(entries) => json_settings::without_entries(text, entries).map(Some),
            OwnContent::Toml(table) => toml_settings::without_table(text, table).map(Some),
            OwnContent::Yaml(_) => Ok(Some(yaml_settings::without_lines(text))),
            OwnContent::Whole { .. } => Ok(None),
        }
    }

    /// Whether it is a program that the system must be allowed to run.
    #[must_use]
    pub fn is_program(&self) -> bool {
        matches!(self.form.0, OwnContent::Whole { is_program: true, .. })
    }
}
