//! Transcripts that coding agents write in a home directory, followed while they grow.
//!
//! In: a home directory. Out: what is said to agents and by them, soon after its program has written it down; before
//! that, everything that was said while nobody read. The position is what was read of each file. The system reports
//! changes; folders that it cannot watch, and changes that it does not report, are looked for. While reading is
//! paused, nothing is read and the position stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, RemoveKind},
};
use serde_json::Value;

use super::{
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
};
use crate::{
    SourceError,
    transcripts::{FollowedHome, HomeNews},
};
use types::config::LiveSourceSettings;

/// How many items one arrival has at most, about.
const ITEMS: usize = 500;
/// How long files are read before what was found is stored.
const READING: Duration = Duration::from_millis(500);
/// How long after a change files are scanned, so that one scan finds several changes.
const SOON: Duration = Duration::from_millis(100);
/// How often files are scanned without a reported change.
const SCAN_PAUSE: Duration = Duration::from_secs(10);
/// The same where a folder cannot be watched, or a file waits to be written.
const UNWATCHED_SCAN_PAUSE: Duration = Duration::from_secs(1);
/// The share of the time that scanning and reading take at most: one part in this many.
const SHARE: u32 = 4;

/// A home directory as a feed.
pub(super) struct TranscriptsFeed {
    home: FollowedHome,
    watch: Option<FolderWatch>,
    /// When files are scanned next, and the earliest time for it.
    next_scan: Instant,
    earliest: Instant,
    /// How long the reading that is going on has taken.
    spent: Duration,
    notices: Vec<String>,
}

impl TranscriptsFeed {
    /// # Errors
    /// [`LiveError::Settings`] when there is no home directory, or a setting is wrong.
    pub(super) fn open(settings: &LiveSourceSettings, cursor: Option<&Value>) -> Result<Self, LiveError> {
        let wrong = |error| LiveError::of_settings(&settings.name, error);
        let home = settings.home.clone().or_else(std::env::home_dir).ok_or_else(|| {
            let problem = "missing, and the system does not say where home is; name the directory".to_owned();
            wrong(SourceError::Settings { key: "home", problem })
        })?;
        let mut export = settings.as_export();
        export.path.clone_from(&home);
        let home = FollowedHome::new(home, export, cursor).map_err(wrong)?;
        let now = Instant::now();
        Ok(Self { home, watch: None, next_scan: now, earliest: now, spent: Duration::ZERO, notices: Vec::new() })
    }

    /// Finds which files have changed.
    fn scan(&mut self) -> Result<bool, LiveError> {
        let began = Instant::now();
        let watch = self.watch.get_or_insert_with(FolderWatch::new);
        // What changes from now on is reported, so that nothing falls between this scan and the next one.
        self.notices.extend(watch.watch(self.home.home(), &self.home.watched()));
        let has_news = self.home.scan(SystemTime::now()).map_err(lost)?;
        self.spent = began.elapsed();
        self.rest();
        Ok(has_news)
    }

    /// Says when files are scanned next.
    fn rest(&mut self) {
        let now = Instant::now();
        let is_watched = self.watch.as_ref().is_some_and(FolderWatch::is_whole);
        let pause = if is_watched && !self.home.is_waiting() { SCAN_PAUSE } else { UNWATCHED_SCAN_PAUSE };
        self.earliest = now + SOON.max(self.spent * (SHARE - 1));
        self.next_scan = (now + pause).max(self.earliest);
    }

    /// Reads on in the files that have changed.
    fn read(&mut self) -> Result<FeedArrival, LiveError> {
        let began = Instant::now();
        let HomeNews { items, unread, is_over } =
            self.home.read_on(ITEMS, &|| began.elapsed() >= READING).map_err(lost)?;
        self.spent += began.elapsed();
        if is_over {
            self.rest();
        }
        let notices = std::mem::take(&mut self.notices);
        let moved = is_over || !items.is_empty();
        Ok(FeedArrival { items, unread, notices, moved, ..FeedArrival::default() })
    }
}

impl LiveFeed for TranscriptsFeed {
    fn next(&mut self, wait: Duration) -> Result<FeedArrival, LiveError> {
        let until = Instant::now() + wait;
        loop {
            if self.home.is_reading() {
                return self.read();
            }
            let now = Instant::now();
            if now >= self.next_scan {
                self.scan()?;
                continue;
            }
            if now >= until {
                return Ok(FeedArrival::default());
            }
            let pause = self.next_scan.min(until) - now;
            if self.watch.as_mut().is_some_and(|watch| watch.wait(pause)) {
                self.next_scan = self.next_scan.min((Instant::now() + SOON).max(self.earliest));
            }
        }
    }

    fn cursor(&self) -> Value {
        self.home.position()
    }
}

fn lost(error: SourceError) -> LiveError {
    LiveError::Lost(error.to_string())
}

/// What has happened in a watched folder.
enum FolderChange {
    Change,
    /// A folder is gone, so what was watched may be another one now.
    FolderGone,
}

/// The folders that the system watches.
struct FolderWatch {
    /// `None` if the system watches nothing.
    watcher: Option<RecommendedWatcher>,
    changes: Receiver<FolderChange>,
    /// Each with whether the folders below are watched, too.
    watched: BTreeMap<PathBuf, bool>,
    /// Folders that cannot be watched.
    refused: BTreeSet<PathBuf>,
    is_stale: bool,
}

impl FolderWatch {
    fn new() -> Self {
        let (tells, changes) = crossbeam_channel::bounded(64);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| tell(&tells, event)).ok();
        Self { watcher, changes, watched: BTreeMap::new(), refused: BTreeSet::new(), is_stale: false }
    }

    /// Whether every change is reported.
    fn is_whole(&self) -> bool {
        self.watcher.is_some() && self.refused.is_empty()
    }

    /// Watches folders: the first ones with all below them, the second ones alone. Of a folder that does not exist, the
    /// nearest one above it is watched, not above `home`. Returns what the user should know.
    fn watch(&mut self, home: &Path, folders: &[BTreeSet<PathBuf>; 2]) -> Option<String> {
        let mut wanted: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let [deep, single] = folders;
        for (folder, is_deep) in deep.iter().map(|path| (path, true)).chain(single.iter().map(|path| (path, false))) {
            let found = if folder.is_dir() {
                Some((folder.as_path(), is_deep))
            } else {
                let mut above = folder.ancestors().skip(1).take_while(|above| above.starts_with(home));
                above.find(|above| above.is_dir()).map(|above| (above, false))
            };
            if let Some((path, is_deep)) = found {
                *wanted.entry(path.to_owned()).or_default() |= is_deep;
            }
        }
        let watcher = self.watcher.as_mut()?;
        let is_stale = std::mem::take(&mut self.is_stale);
        let old: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(path, is_deep)| is_stale || wanted.get(*path) != Some(*is_deep))
            .map(|(path, _)| path.clone())
            .collect();
        for path in old {
            // A folder that is gone is not watched any more.
            drop(watcher.unwatch(&path));
            self.watched.remove(&path);
        }
        self.refused.retain(|path| wanted.contains_key(path));
        let mut notice = None;
        for (path, is_deep) in wanted {
            if self.watched.contains_key(&path) {
                continue;
            }
            let mode = if is_deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match watcher.watch(&path, mode) {
                Ok(()) => {
                    self.refused.remove(&path);
                    self.watched.insert(path, is_deep);
                }
                Err(error) => {
                    if self.refused.insert(path.clone()) && path.is_dir() {
                        let every = UNWATCHED_SCAN_PAUSE.as_secs();
                        notice = Some(format!(
                            "{} cannot be watched ({error}), so files are scanned every {every} s",
                            path.display()
                        ));
                    }
                }
            }
        }
        notice
    }

    /// Waits for a change. Returns whether there was one.
    fn wait(&mut self, pause: Duration) -> bool {
        match self.changes.recv_timeout(pause) {
            Ok(first) => {
                let all = std::iter::once(first).chain(self.changes.try_iter());
                self.is_stale |= all.fold(false, |gone, change| gone | matches!(change, FolderChange::FolderGone));
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(pause);
                false
            }
        }
    }
}

/// Tells a change. Reading a file is none, or this source would tell itself to read.
fn tell(tells: &Sender<FolderChange>, event: notify::Result<Event>) {
    let change = match event.map(|event| event.kind) {
        Ok(EventKind::Access(kind)) if kind != AccessKind::Close(AccessMode::Write) => return,
        Ok(EventKind::Remove(RemoveKind::Folder)) => FolderChange::FolderGone,
        _ => FolderChange::Change,
    };
    // Where nobody has taken the changes before, one scan is due in any case.
    drop(tells.try_send(change));
}
