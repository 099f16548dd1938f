//! `[snapshot]`: where snapshots of the memory are kept, and how often they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Snapshots of the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSettings {
    /// A directory, relative to the pipeline file, or a bucket: `s3://BUCKET/PREFIX`,
    /// `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`; empty: no snapshots are
    /// written or read. Credentials and endpoints of a bucket are environment variables (`AWS_*`,
    /// `GOOGLE_*`, `AZURE_*`).
    pub directory: String,
    /// Time between two snapshots of a running service. A smaller value shortens a restart, which
    /// reads the log from the newest snapshot on, and writes more.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub interval_seconds: u64,
    /// How far back as-of questions can be answered; older history is deleted. 0: no limit.
    #[schemars(range(min = 0, max = 100_000))]
    pub history_days: u64,
}

impl SnapshotSettings {
    /// Checks a place for snapshots: a directory, or `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX` or `file:///DIRECTORY`. Credentials and endpoints are environment
    /// variables.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead.
    pub fn check(place: &str) -> Result<(), String> {
        let Some((scheme, _)) = place.split_once("://") else { return Ok(()) };
        let refused = |problem: &str| {
            let forms = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY";
            Err(format!("{problem}; write {forms}, or a directory"))
        };
        let url = match url::Url::parse(place) {
            Ok(url) => url,
            // The message does not repeat it, because it may contain a password.
            Err(e) => return refused(&format!("a URL that cannot be read ({e})")),
        };
        let secret = !url.username().is_empty() || url.password().is_some();
        if secret || url.query().is_some() || url.fragment().is_some() {
            return refused("a URL with a user, a password, ? or #; credentials belong in environment variables");
        }
        let host = url.host_str().unwrap_or_default();
        match scheme {
            "s3" | "gs" | "az" if host.is_empty() => refused(&format!("{place:?} names no bucket")),
            "s3" | "gs" | "az" if url.port().is_some() => refused(&format!(
                "{place:?} has a port, but a bucket has none; name another store in an environment variable, such \
                 as AWS_ENDPOINT"
            )),
            "s3" | "gs" | "az" => Ok(()),
            "file" if url.to_file_path().is_ok() => Ok(()),
            "file" => refused(&format!("{place:?} names no directory on this machine")),
            other => refused(&format!("{other}:// is not supported")),
        }
    }
}
