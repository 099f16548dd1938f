//! Where snapshots lie: a directory, or a bucket of S3, Google Cloud Storage or Azure.
//!
//! In: a place and paths in it. Out: whole objects, or none: a reader never sees half of one.
//! A store that is away, or hangs, is an error within seconds, never a wait without end.

use std::{
    error::Error,
    fmt::Display,
    future::Future,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{
    ClientConfigKey, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutMode, PutOptions, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    local::LocalFileSystem,
    path::Path,
    prefix::PrefixStore,
};
use url::Url;

use super::SnapshotError;

/// How long a store may show no progress. A question about the past waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The slowest line that files are brought over, in bytes a second.
const SLOWEST: u64 = 256 << 10;
/// Tries after the first, within [`PATIENCE`].
const RETRIES: usize = 4;
/// Longer than any file takes at [`SLOWEST`]: the library's own limit must not cut it off.
const REQUEST: &str = "15 minutes";
/// Between two snapshots nobody notices that the store has closed a connection.
const IDLE: &str = "5 seconds";
/// Characters of an error: some stores answer with a page.
const LONGEST: usize = 600;

/// What a snapshot asks of its place.
pub(super) trait Objects: Send + Sync {
    /// The whole object; none where there is none.
    fn get(&self, path: &str) -> Result<Option<Bytes>, String>;
    /// Writes an object; with `fresh`, false when there is one already.
    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String>;
    /// The paths of all objects in a directory.
    fn list(&self, directory: &str) -> Result<Vec<String>, String>;
    /// Removes an object; one that is not there is removed already.
    fn delete(&self, path: &str) -> Result<(), String>;
}

/// A place with its name.
pub(super) struct Store {
    objects: Box<dyn Objects>,
    place: String,
    /// Where it is a directory.
    directory: Option<PathBuf>,
}

impl Store {
    /// Opens a directory, which is made, or the URL of a bucket. What a URL does not say, the
    /// library takes from the environment: `AWS_*`, `GOOGLE_*` or `AZURE_*`.
    pub(super) fn open(place: &str) -> Result<Self, SnapshotError> {
        let failed = |problem: &dyn Display| SnapshotError::Place {
            place: place.to_owned(),
            doing: "opening it",
            problem: problem.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
        let url = place.contains("://").then(|| Url::parse(place)).transpose().map_err(|e| failed(&e))?;
        let path = match &url {
            Some(url) if url.scheme() == "file" => url.to_file_path().ok(),
            Some(_) => None,
            None => Some(PathBuf::from(place)),
        };
        let store = match (&path, &url) {
            (None, Some(url)) => bucket(url).map_err(|e| failed(&said(&e)))?,
            (path, _) => directory(path.as_deref().unwrap_or(FilePath::new(place)))?,
        };
        Ok(Self { objects: Box::new(Remote { store, runtime }), place: place.to_owned(), directory: path })
    }

    #[cfg(test)]
    pub(super) fn over(objects: Box<dyn Objects>) -> Self {
        Self { objects, place: "a test's store".to_owned(), directory: None }
    }

    /// Its name.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn get(&self, path: &str) -> Result<Option<Bytes>, SnapshotError> {
        self.objects.get(path).map_err(|problem| self.failed("reading", path, &problem))
    }

    pub(super) fn put(&self, path: &str, bytes: Bytes) -> Result<(), SnapshotError> {
        self.objects.put(path, bytes, false).map(drop).map_err(|problem| self.failed("writing", path, &problem))
    }

    /// Writes an object that must not be there yet; false when it is.
    pub(super) fn put_fresh(&self, path: &str, bytes: Bytes) -> Result<bool, SnapshotError> {
        self.objects.put(path, bytes, true).map_err(|problem| self.failed("writing", path, &problem))
    }

    pub(super) fn list(&self, directory: &str) -> Result<Vec<String>, SnapshotError> {
        self.objects.list(directory).map_err(|problem| self.failed("listing", directory, &problem))
    }

    pub(super) fn delete(&self, path: &str) -> Result<(), SnapshotError> {
        self.objects.delete(path).map_err(|problem| self.failed("removing", path, &problem))
    }

    /// Removes what was left of writes that were killed, in these directories: no list shows it,
    /// and it may hold what is taken back later.
    pub(super) fn sweep(&self, directories: &[&str]) -> Result<(), SnapshotError> {
        let Some(place) = &self.directory else { return Ok(()) };
        for path in directories.iter().map(|directory| place.join(directory)) {
            let failed = |e| SnapshotError::disk(&path, "removing what was left of a write", e);
            let entries = match std::fs::read_dir(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                // As the library calls what it has not renamed yet.
                let name = entry.file_name();
                let number = name.to_str().and_then(|name| name.rsplit_once('#')).map(|(_, number)| number);
                if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                    std::fs::remove_file(entry.path()).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    fn failed(&self, doing: &'static str, path: &str, problem: &str) -> SnapshotError {
        SnapshotError::Place { place: format!("{}: {path}", self.place), doing, problem: problem.to_owned() }
    }
}

fn directory(path: &FilePath) -> Result<Arc<dyn ObjectStore>, SnapshotError> {
    let made = std::fs::create_dir_all(path).and_then(|()| Ok(LocalFileSystem::new_with_prefix(path)?));
    let files = made.map_err(|e| SnapshotError::disk(path, "making the directory", e))?;
    Ok(Arc::new(files.with_fsync(true)))
}

fn bucket(url: &Url) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let (scheme, prefix) = ObjectStoreScheme::parse(url)?;
    // One that is there already is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let retries = RetryConfig { max_retries: RETRIES, retry_timeout: PATIENCE / 2, ..RetryConfig::default() };
    let limits = [(ClientConfigKey::Timeout, REQUEST), (ClientConfigKey::PoolIdleTimeout, IDLE)];
    // Three builders without a trait.
    macro_rules! bounded {
        ($builder:ty, $key:ident) => {{
            let builder = <$builder>::from_env().with_url(url.as_str()).with_retry(retries);
            let limited = limits.into_iter().fold(builder, |b, (key, value)| b.with_config($key::Client(key), value));
            Arc::new(PrefixStore::new(limited.build()?, prefix))
        }};
    }
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => bounded!(AmazonS3Builder, AmazonS3ConfigKey),
        ObjectStoreScheme::GoogleCloudStorage => bounded!(GoogleCloudStorageBuilder, GoogleConfigKey),
        ObjectStoreScheme::MicrosoftAzure => bounded!(MicrosoftAzureBuilder, AzureConfigKey),
        _ => {
            let source = "write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX".into();
            return Err(object_store::Error::Generic { store: "URL", source });
        }
    })
}

/// An object store, asked call by call.
struct Remote {
    store: Arc<dyn ObjectStore>,
    runtime: tokio::runtime::Runtime,
}

impl Objects for Remote {
    fn get(&self, path: &str) -> Result<Option<Bytes>, String> {
        let got = self.runtime.block_on(async {
            let found = within(0, self.store.get(&Path::from(path))).await?;
            within(found.range.end - found.range.start, found.bytes()).await
        });
        match got {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(said(&e)),
        }
    }

    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String> {
        let mode = if fresh { PutMode::Create } else { PutMode::Overwrite };
        let options = PutOptions { mode, ..PutOptions::default() };
        let (path, length) = (Path::from(path), bytes.len() as u64);
        let put = self.store.put_opts(&path, bytes.into(), options);
        match self.runtime.block_on(within(length, put)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) if fresh => Ok(false),
            Err(e) => Err(said(&e)),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let under = Path::from(directory);
        let listed = self.runtime.block_on(within(0, self.store.list(Some(&under)).try_collect::<Vec<_>>()));
        let name = |meta: object_store::ObjectMeta| Some(format!("{directory}/{}", meta.location.filename()?));
        Ok(listed.map_err(|e| said(&e))?.into_iter().filter_map(name).collect())
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        match self.runtime.block_on(within(0, self.store.delete(&Path::from(path)))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(said(&e)),
        }
    }
}

/// What a call gives, unless it takes longer than so many bytes may.
async fn within<T>(bytes: u64, call: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
    let patience = PATIENCE + Duration::from_secs(bytes / SLOWEST);
    tokio::time::timeout(patience, call).await.unwrap_or_else(|_| {
        let source = format!("no answer within {} s", patience.as_secs()).into();
        Err(object_store::Error::Generic { store: "object store", source })
    })
}

/// An error with the causes that it leaves out, on one line.
fn said(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST).collect()
}
