//! The transcripts of a home directory as they grow.
//!
//! In: a home directory, and what was read of it before: size and time of each file. Out: the messages of files that
//! have changed since, oldest first, and what was read after them. A changed file is read whole, and only what is new
//! in it is returned: so it may be appended to, rewritten, cut, moved, compressed or deleted. Files of the same folder
//! are read beside one that is read for the first time, so that copies between them are known. A database counts as
//! changed when its log has. Never reads a clock: the caller says what time it is and when to stop.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    agent_places::{AgentFile, agent_files, agent_folders, aider_files},
    agents::is_own,
    known_messages::KnownMessages,
    pauses::AgentPauses,
    program::TranscriptProgram,
    transcript_reader::{TranscriptFileToRead, TranscriptReader},
};
use crate::{
    SourceError,
    chat::{ChatItem, SortedRecords, TimeSorter, UnorderedReader, UnreadCounts},
};
use types::config::SourceSettings;

/// How long a file must be unchanged if its program rewrites what it is writing.
const SETTLED: Duration = Duration::from_millis(800);
/// How often a file that cannot be read is tried before it is a dead letter.
const TRIES: u32 = 5;
/// After how many scans projects with Aider's files are looked for again.
const AIDER_SCANS: u32 = 100;

/// Size and time of a file and of its log, by which a change is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FileState {
    bytes: u64,
    changed_ns: u64,
    log_bytes: u64,
    log_ns: u64,
}

/// A home directory that is followed.
pub(crate) struct FollowedHome {
    home: PathBuf,
    settings: SourceSettings,
    folders: Vec<(&'static TranscriptProgram, PathBuf)>,
    /// Aider's files as last looked for.
    aider: Vec<AgentFile>,
    scans: u32,
    /// What was read of each file, by the hash of its path.
    read: BTreeMap<u64, FileState>,
    known: KnownMessages,
    /// Folders whose files are known in this process.
    known_folders: HashSet<PathBuf>,
    /// How often each file could not be read.
    failures: HashMap<u64, u32>,
    reading: Option<HomeReading>,
    /// Whether a file waits until its program has written it.
    is_waiting: bool,
}

/// The changed files that are read now.
struct HomeReading {
    reader: TranscriptReader,
    step: ReadingStep,
    found: VecDeque<ChatItem>,
    /// What is read of each file once the reading is over.
    states: BTreeMap<u64, FileState>,
}

enum ReadingStep {
    Collecting(TimeSorter),
    Returning(SortedRecords),
}

/// What was read.
#[derive(Default)]
pub(crate) struct HomeNews {
    pub(crate) items: Vec<ChatItem>,
    pub(crate) unread: UnreadCounts,
    /// Whether the reading is over, so that the position has moved.
    pub(crate) is_over: bool,
}

impl FollowedHome {
    /// A home directory after a position, which [`Self::position`] gave.
    ///
    /// # Errors
    /// [`SourceError`] when a setting is wrong.
    pub(crate) fn new(home: PathBuf, settings: SourceSettings, position: Option<&Value>) -> Result<Self, SourceError> {
        // Checks the settings before anything is read.
        TranscriptReader::of_files(Vec::new(), &settings, String::new())?;
        let folders = agent_folders(&home, is_own(&home));
        let read = position.and_then(|position| position.get("files")).and_then(Value::as_object);
        let read = read
            .into_iter()
            .flatten()
            .filter_map(|(id, state)| Some((u64::from_str_radix(id, 16).ok()?, FileState::read(state.as_str()?)?)));
        Ok(Self {
            home,
            settings,
            folders,
            aider: Vec::new(),
            scans: 0,
            read: read.collect(),
            known: KnownMessages::default(),
            known_folders: HashSet::new(),
            failures: HashMap::new(),
            reading: None,
            is_waiting: false,
        })
    }

    /// The position after everything that was returned, if no reading is going on.
    pub(crate) fn position(&self) -> Value {
        let files = self.read.iter().map(|(id, state)| (format!("{id:016x}"), Value::String(state.written())));
        json!({ "files": files.collect::<serde_json::Map<_, _>>() })
    }

    /// Folders in which a change may be news, whether they exist or not; the second is that of a single file, whose
    /// folders below do not count.
    pub(crate) fn watched(&self) -> [BTreeSet<PathBuf>; 2] {
        let projects = self.aider.iter().filter_map(|file| Some(file.path.parent()?.to_owned()));
        let folders = |is_single: bool| {
            let folders = self.folders.iter().filter(move |(program, _)| program.is_database == is_single);
            folders.map(|(_, path)| path.clone())
        };
        [folders(false).collect(), folders(true).chain(projects).collect()]
    }

    /// The home directory.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Whether changed files are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether a file waits until its program has written it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Finds which files have changed. Returns whether a reading has begun.
    ///
    /// # Errors
    /// [`SourceError`] when the pauses cannot be read.
    pub(crate) fn scan(&mut self, now: SystemTime) -> Result<bool, SourceError> {
        let pauses = AgentPauses::of(&self.home)?;
        if pauses.since().is_some() {
            return Ok(false);
        }
        if self.scans.is_multiple_of(AIDER_SCANS) {
            self.aider = aider_files(&self.home);
        }
        self.scans = self.scans.wrapping_add(1);
        let mut files = agent_files(&self.folders);
        files.extend(self.aider.iter().cloned());
        let found: Vec<(u64, AgentFile, FileState, SystemTime)> = files
            .into_iter()
            .filter_map(|file| {
                let (state, changed) = FileState::of(&file)?;
                Some((id_of(&self.home, &file.path), file, state, changed))
            })
            .collect();
        let present: HashSet<u64> = found.iter().map(|(id, ..)| *id).collect();
        let gone: Vec<u64> = self.read.keys().filter(|id| !present.contains(id)).copied().collect();
        self.is_waiting = false;
        let (mut states, mut folders) = (BTreeMap::new(), BTreeSet::new());
        let mut to_read = Vec::new();
        for (id, file, state, changed) in &found {
            if self.read.get(id) == Some(state) {
                continue;
            }
            // A file of the future, on a disk with another clock, would never settle.
            let is_settled = now.duration_since(*changed).is_ok_and(|age| age >= SETTLED) || *changed > now;
            if file.program.is_rewritten && !is_settled {
                self.is_waiting = true;
                continue;
            }
            states.insert(*id, *state);
            if let Some(file) = TranscriptFileToRead::alone(file.program, &file.path, short(*id)) {
                let was_read = self.read.contains_key(id);
                to_read.push(if was_read { file.read_again() } else { file });
            }
            folders.extend(file.path.parent().map(Path::to_owned));
        }
        if states.is_empty() {
            return Ok(false);
        }
        for (id, file, state, _) in &found {
            let folder = file.path.parent().unwrap_or(Path::new(""));
            let is_beside = folders.contains(folder) && !self.known_folders.contains(folder);
            if is_beside && self.read.get(id) == Some(state) && !file.program.is_database {
                let file = TranscriptFileToRead::alone(file.program, &file.path, short(*id));
                to_read.extend(file.map(TranscriptFileToRead::only_known));
            }
        }
        self.known_folders.extend(folders);
        gone.iter().for_each(|id| {
            self.known.note(short(*id), false);
            self.read.remove(id);
        });
        present.iter().for_each(|id| self.known.note(short(*id), true));
        let known = std::mem::take(&mut self.known);
        let description = format!("transcripts in {}", self.home.display());
        let reader = TranscriptReader::of_files(to_read, &self.settings, description)?.without(pauses).after(known);
        let step = ReadingStep::Collecting(TimeSorter::new());
        self.reading = Some(HomeReading { reader, step, found: VecDeque::new(), states });
        Ok(true)
    }

    /// Reads on until `is_due`, or until there are `most` items. A pause that has begun since ends the reading: its files
    /// are read again afterwards, without what was returned before.
    ///
    /// # Errors
    /// [`SourceError`] when the pauses cannot be read or the temporary file for sorting fails; then nothing of this
    /// reading is over.
    pub(crate) fn read_on(&mut self, most: usize, is_due: &dyn Fn() -> bool) -> Result<HomeNews, SourceError> {
        let mut news = HomeNews::default();
        let Some(mut reading) = self.reading.take() else { return Ok(news) };
        loop {
            news.items.extend(reading.found.drain(..));
            if news.items.len() >= most || is_due() {
                break;
            }
            match &mut reading.step {
                ReadingStep::Collecting(order) => {
                    let pauses = AgentPauses::of(&self.home)?;
                    if pauses.since().is_some() {
                        self.known = reading.reader.into_known();
                        return Ok(news);
                    }
                    reading.reader.leave_out(pauses);
                    if !reading.reader.collect(order, &mut reading.found)? {
                        let order = std::mem::replace(order, TimeSorter::new());
                        reading.step = ReadingStep::Returning(order.oldest_first()?);
                    }
                }
                ReadingStep::Returning(records) => match records.next()? {
                    Some(record) => news.items.extend(reading.reader.news(record)),
                    None => {
                        self.finish(reading, &mut news);
                        return Ok(news);
                    }
                },
            }
        }
        self.reading = Some(reading);
        Ok(news)
    }

    /// Ends a reading: what was read of its files is the position now.
    fn finish(&mut self, reading: HomeReading, news: &mut HomeNews) {
        let HomeReading { mut reader, states, .. } = reading;
        news.is_over = true;
        news.unread = reader.take_unread();
        let failed: HashMap<u32, _> = reader.take_failures().into_iter().collect();
        for (id, state) in states {
            match failed.get(&short(id)) {
                None => {
                    self.failures.remove(&id);
                    self.read.insert(id, state);
                }
                Some(letter) => {
                    let tries = self.failures.entry(id).or_default();
                    *tries += 1;
                    if *tries >= TRIES {
                        self.failures.remove(&id);
                        self.read.insert(id, state);
                        news.items.push(ChatItem::Reject { conversation: None, letter: letter.clone() });
                    } else {
                        self.is_waiting = true;
                    }
                }
            }
        }
        self.known = reader.into_known();
    }
}

impl FileState {
    fn of(file: &AgentFile) -> Option<(Self, SystemTime)> {
        let found = fs::metadata(&file.path).ok()?;
        let changed = found.modified().ok()?;
        let (bytes, changed_ns) = size_and_time(&found);
        let mut name = file.path.clone().into_os_string();
        name.push("-wal");
        let log = if file.program.is_database { fs::metadata(name).ok() } else { None };
        let (log_bytes, log_ns) = log.as_ref().map(size_and_time).unwrap_or_default();
        Some((Self { bytes, changed_ns, log_bytes, log_ns }, changed))
    }

    /// Size and time, and those of its log if it has one, in hexadecimal digits.
    fn written(&self) -> String {
        let Self { bytes, changed_ns, log_bytes, log_ns } = self;
        if (*log_bytes, *log_ns) == (0, 0) {
            return format!("{bytes:x} {changed_ns:x}");
        }
        format!("{bytes:x} {changed_ns:x} {log_bytes:x} {log_ns:x}")
    }

    fn read(written: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = written.split(' ').map(|part| u64::from_str_radix(part, 16).ok()).collect();
        match numbers?.as_slice() {
            [bytes, changed_ns] => Some(Self { bytes: *bytes, changed_ns: *changed_ns, ..Self::default() }),
            [bytes, changed_ns, log_bytes, log_ns] => {
                Some(Self { bytes: *bytes, changed_ns: *changed_ns, log_bytes: *log_bytes, log_ns: *log_ns })
            }
            _ => None,
        }
    }
}

fn size_and_time(found: &Metadata) -> (u64, u64) {
    let since = found.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    (found.len(), since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or_default())
}

/// What distinguishes a file: a hash of its path below the home directory.
fn id_of(home: &Path, path: &Path) -> u64 {
    let below = path.strip_prefix(home).unwrap_or(path);
    xxh3_64(below.to_string_lossy().as_bytes())
}

fn short(id: u64) -> u32 {
    (id >> 32) as u32
}
