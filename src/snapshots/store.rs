//! The place of snapshots: a directory, or a bucket of S3, Google Cloud Storage or Azure.
//!
//! In: a place and paths in it. Out: complete objects, or none: a reader never sees a partial one. An
//! unavailable or hanging store is an error within seconds, never an endless wait.

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
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, local::LocalFileSystem, path::Path};
use url::Url;

use super::{SnapshotError, bucket::bucket};
use storage::private_directory::create_private;

/// Timeout of a request, not counting the transfer of its bytes. An as-of question waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The slowest transfer rate that is allowed, in bytes per second.
const MIN_BYTES_PER_SECOND: u64 = 256 << 10;
/// The longest error message in characters: some stores answer with a whole page.
const MESSAGE_CHARACTERS: usize = 600;

/// The operations that snapshots need from a place.
pub(super) trait ObjectBackend: Send + Sync {
    /// The complete object; `None` if it does not exist.
    fn get(&self, path: &str) -> Result<Option<Bytes>, String>;
    /// Writes an object. With `fresh`, an existing one is kept, and this returns false.
    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String>;
    /// The paths of all objects in a directory.
    fn list(&self, directory: &str) -> Result<Vec<String>, String>;
    /// Deletes an object; it is no error if the object does not exist.
    fn delete(&self, path: &str) -> Result<(), String>;
}

/// A place, with its name for messages.
pub(super) struct SnapshotStore {
    objects: Box<dyn ObjectBackend>,
    place: String,
    /// Its path, if it is a directory.
    directory: Option<PathBuf>,
}

impl SnapshotStore {
    /// Opens a directory, which is created, or the URL of a bucket. The library takes keys and options
    /// that are not in the URL from the environment: `AWS_*`, `GOOGLE_*` or `AZURE_*`.
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
            (None, Some(url)) => bucket(url, TIMEOUT).map_err(|e| failed(&message(&e)))?,
            (path, _) => directory(path.as_deref().unwrap_or(FilePath::new(place)))?,
        };
        Ok(Self { objects: Box::new(RemoteObjectBackend { store, runtime }), place: place.to_owned(), directory: path })
    }

    #[cfg(test)]
    pub(super) fn over(objects: Box<dyn ObjectBackend>) -> Self {
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

    /// Writes a new object; false if it exists.
    pub(super) fn put_fresh(&self, path: &str, bytes: Bytes) -> Result<bool, SnapshotError> {
        self.objects.put(path, bytes, true).map_err(|problem| self.failed("writing", path, &problem))
    }

    pub(super) fn list(&self, directory: &str) -> Result<Vec<String>, SnapshotError> {
        self.objects.list(directory).map_err(|problem| self.failed("listing", directory, &problem))
    }

    pub(super) fn delete(&self, path: &str) -> Result<(), SnapshotError> {
        self.objects.delete(path).map_err(|problem| self.failed("deleting", path, &problem))
    }

    /// Deletes the temporary files that interrupted writes left in these directories. No listing shows these files, and
    /// they may hold turns that are deleted later.
    pub(super) fn sweep(&self, directories: &[String]) -> Result<(), SnapshotError> {
        let Some(place) = &self.directory else { return Ok(()) };
        for path in directories.iter().map(|directory| place.join(directory)) {
            let failed = |e| SnapshotError::disk(&path, "deleting the leftovers of a write", e);
            let entries = match std::fs::read_dir(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                // The library writes to `NAME#NUMBER` and renames.
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

/// Calls `each` with the path and the bytes of every object of a bucket, whatever wrote it. One that is replaced
/// meanwhile is left out. Writes nothing.
///
/// # Errors
/// [`SnapshotError::Place`] when the bucket, or one of its objects, cannot be read.
pub fn each_object(place: &str, each: &mut dyn FnMut(&str, Bytes)) -> Result<(), SnapshotError> {
    let failed = |problem: &dyn Display| SnapshotError::Place {
        place: place.to_owned(),
        doing: "reading all of it",
        problem: problem.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
    let url = Url::parse(place).map_err(|e| failed(&e))?;
    let remote = RemoteObjectBackend { store: bucket(&url, TIMEOUT).map_err(|e| failed(&message(&e)))?, runtime };
    let listing = remote.store.list(None).try_collect::<Vec<_>>();
    let listed = remote.runtime.block_on(within(0, listing)).map_err(|e| failed(&message(&e)))?;
    for meta in listed {
        let path = meta.location.to_string();
        if let Some(bytes) = remote.get(&path).map_err(|problem| failed(&format!("{path}: {problem}")))? {
            each(&path, bytes);
        }
    }
    Ok(())
}

fn directory(path: &FilePath) -> Result<Arc<dyn ObjectStore>, SnapshotError> {
    let opened = create_private(path).and_then(|()| Ok(LocalFileSystem::new_with_prefix(path)?));
    let files = opened.map_err(|e| SnapshotError::disk(path, "creating the directory", e))?;
    Ok(Arc::new(files.with_fsync(true)))
}

/// An object store, called synchronously.
struct RemoteObjectBackend {
    store: Arc<dyn ObjectStore>,
    runtime: tokio::runtime::Runtime,
}

impl ObjectBackend for RemoteObjectBackend {
    fn get(&self, path: &str) -> Result<Option<Bytes>, String> {
        let got = self.runtime.block_on(async {
            let object = within(0, self.store.get(&Path::from(path))).await?;
            within(object.range.end - object.range.start, object.bytes()).await
        });
        match got {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(message(&e)),
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
            Err(e) => Err(message(&e)),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let under = Path::from(directory);
        let listed = self.runtime.block_on(within(0, self.store.list(Some(&under)).try_collect::<Vec<_>>()));
        let name = |meta: object_store::ObjectMeta| Some(format!("{directory}/{}", meta.location.filename()?));
        Ok(listed.map_err(|e| message(&e))?.into_iter().filter_map(name).collect())
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        match self.runtime.block_on(within(0, self.store.delete(&Path::from(path)))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(message(&e)),
        }
    }
}

/// The result of a call, or an error if it takes longer than the transfer of `bytes` may.
async fn within<T>(bytes: u64, call: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
    let timeout = TIMEOUT + Duration::from_secs(bytes / MIN_BYTES_PER_SECOND);
    tokio::time::timeout(timeout, call).await.unwrap_or_else(|_| {
        let source = format!("no answer within {} s", timeout.as_secs()).into();
        Err(object_store::Error::Generic { store: "object store", source })
    })
}

/// An error with its causes, on one line.
fn message(error: &object_store::Error) -> String {
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
    words.join(" ").chars().take(MESSAGE_CHARACTERS).collect()
}
