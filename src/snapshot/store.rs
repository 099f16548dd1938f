//! Where snapshots lie: a directory, by way of the interface of object stores.
//!
//! In: a place and paths in it. Out: whole objects, or none: a reader never sees half of one.

use std::{fmt::Display, path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, local::LocalFileSystem, path::Path};

use super::SnapshotError;

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
}

impl Store {
    /// Opens a directory, which is made.
    pub(super) fn open(place: &str) -> Result<Self, SnapshotError> {
        let failed = |problem: &dyn Display| SnapshotError::Place {
            place: place.to_owned(),
            doing: "opening it",
            problem: problem.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
        std::fs::create_dir_all(place)
            .map_err(|e| SnapshotError::disk(FilePath::new(place), "making the directory", e))?;
        let files = LocalFileSystem::new_with_prefix(place).map_err(|e| failed(&e))?;
        let store = Arc::new(files.with_fsync(true));
        Ok(Self { objects: Box::new(Remote { store, runtime }), place: place.to_owned() })
    }

    #[cfg(test)]
    pub(super) fn over(objects: Box<dyn Objects>) -> Self {
        Self { objects, place: "a test's store".to_owned() }
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

    fn failed(&self, doing: &'static str, path: &str, problem: &str) -> SnapshotError {
        SnapshotError::Place { place: format!("{}: {path}", self.place), doing, problem: problem.to_owned() }
    }
}

/// An object store, asked call by call.
struct Remote {
    store: Arc<dyn ObjectStore>,
    runtime: tokio::runtime::Runtime,
}

impl Objects for Remote {
    fn get(&self, path: &str) -> Result<Option<Bytes>, String> {
        self.runtime.block_on(async {
            match self.store.get(&Path::from(path)).await {
                Ok(found) => found.bytes().await.map(Some).map_err(|e| e.to_string()),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(e) => Err(e.to_string()),
            }
        })
    }

    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String> {
        let mode = if fresh { PutMode::Create } else { PutMode::Overwrite };
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.runtime.block_on(self.store.put_opts(&Path::from(path), bytes.into(), options)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) if fresh => Ok(false),
            Err(e) => Err(e.to_string()),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let under = Path::from(directory);
        let metas: Result<Vec<_>, _> = self.runtime.block_on(self.store.list(Some(&under)).try_collect());
        let metas = metas.map_err(|e| e.to_string())?;
        let name = |meta: object_store::ObjectMeta| Some(format!("{directory}/{}", meta.location.filename()?));
        Ok(metas.into_iter().filter_map(name).collect())
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        match self.runtime.block_on(self.store.delete(&Path::from(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    }
}
