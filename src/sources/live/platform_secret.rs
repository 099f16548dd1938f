//! Reads secrets from environment variables.
//!
//! In: the name of a variable. Out: its value, which messages never show.

use super::error::LiveError;
use types::config::LiveSourceSettings;

/// A token or a key. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PlatformSecret(String);

impl PlatformSecret {
    /// Reads the variable that `key` of the settings names.
    ///
    /// # Errors
    /// [`LiveError::Secret`] when it is not set or empty.
    pub(super) fn read(settings: &LiveSourceSettings, key: &'static str, variable: &str) -> Result<Self, LiveError> {
        let value = std::env::var(variable).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let missing = || LiveError::Secret { name: settings.name.clone(), variable: variable.to_owned(), key };
        value.map(Self).ok_or_else(missing)
    }

    /// The value, for the platform only.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text in which the value is masked.
    pub(super) fn mask(&self, text: &str) -> String {
        text.replace(&self.0, "[token]")
    }
}

impl std::fmt::Debug for PlatformSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
