//! Fingerprints of what is forgotten, by which `ripplemem forget --verify` finds it without its words.
//!
//! In: an operation, before it deletes; the turns log and the memory's records; the operator's key. Out: a file for
//! each operation in `forget.fingerprints`, with an HMAC-SHA256, cut to 16 bytes, of each run of eight words of its
//! turns, in every version in the log, and in the version that came with an imported bank. A text of three to seven
//! words has one for all its words; a shorter one has none. Each vector of the turns in live memory records has one, of
//! the first words of its base64 form. Next to each HMAC is a keyed hash of 32 bits, so that few runs of the searched
//! bytes need an HMAC. A file states the form in which its words are compared: older files, from before there was a
//! normal form, use another one. The file is removed once a search finds none of its fingerprints.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use ring::hmac;
use serde::{Deserialize, Serialize};

use super::{
    Cancellation, PipelineError,
    ledger::LedgerLine,
    operator_key::{failed, hex, key_of},
    storage_search::StoragePattern,
    vector_forms::json_of,
    word_runs::{MIN, RUN, RecentWordBuffer, WordHasher, each_word, each_word_as_typed},
};
use logs::{Log, partition_of};
use pipeline::each_record;
use storage::private_directory::create_private;
use types::{
    config::ForgetSettings,
    model::{Bank, MemoryKey, Turn, TurnEvent, Unit, Vector, WindowTurn},
};

/// The extension of a file of fingerprints.
const EXTENSION: &str = "fingerprints";
/// The text whose HMAC identifies the key of a file. No run of words has a colon.
const KEY_CHECK: &[u8] = b"ripplemem: fingerprints";
/// The text whose HMAC is the key for hashes of words.
const WORD_KEY: &[u8] = b"ripplemem: words";
/// Bytes that are searched again together with those that follow.
const OVERLAP_BYTES: usize = 4_096;
/// Bits of [`WordFormRuns::bits`] for each fingerprint.
const BITS_EACH: usize = 32;

/// The form in which words are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WordForm {
    /// In lower case, as they were typed. Files without a form have this one.
    #[default]
    AsTyped,
    /// The normal form.
    Normal,
}

impl WordForm {
    fn each_word(self, bytes: &[u8], each: impl FnMut(usize, &[u8])) {
        match self {
            Self::AsTyped => each_word_as_typed(bytes, each),
            Self::Normal => each_word(bytes, each),
        }
    }
}

/// A file of fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FingerprintFile {
    operation: String,
    #[serde(default)]
    words: WordForm,
    /// The HMAC of [`KEY_CHECK`].
    key: String,
    /// Turns of the operation that have no fingerprint.
    without: u64,
    runs: RunFingerprints,
}

/// The hash and the HMAC of each run, as hexadecimal digits, by the number of its words.
type RunFingerprints = BTreeMap<usize, BTreeSet<String>>;

/// Makes fingerprints.
struct FingerprintMaker {
    key: hmac::Key,
    words: WordHasher,
}

impl FingerprintMaker {
    fn new(key: hmac::Key) -> Self {
        let mut words = [0; 32];
        words.copy_from_slice(hmac::sign(&key, WORD_KEY).as_ref());
        Self { key, words: WordHasher::new(words) }
    }

    fn check(&self) -> String {
        hex(hmac::sign(&self.key, KEY_CHECK).as_ref())
    }

    /// The HMAC of a run of words, cut to 16 bytes.
    fn tag(&self, run: &[u8]) -> u128 {
        hmac::sign(&self.key, run).as_ref().iter().take(16).fold(0, |tag, byte| tag << 8 | u128::from(*byte))
    }

    /// Adds the fingerprints of a text; returns whether it has any.
    fn add(&self, text: &str, runs: &mut RunFingerprints) -> bool {
        self.add_first(text, usize::MAX, runs)
    }

    /// Adds the fingerprints of the first words of a text; returns whether it has any.
    fn add_first(&self, text: &str, most: usize, runs: &mut RunFingerprints) -> bool {
        let mut last = RecentWordBuffer::new(&self.words);
        let mut note = |last: &RecentWordBuffer<'_>, length: usize| {
            let Some(hash) = last.hash_of_last(length) else { return };
            let (_, run) = last.last(length);
            runs.entry(length).or_default().insert(format!("{hash:08x}{:032x}", self.tag(&run)));
        };
        each_word(text.as_bytes(), |start, word| {
            last.push(start, word);
            if last.count() <= most {
                note(&last, RUN);
            }
        });
        let count = last.count();
        if (MIN..RUN).contains(&count) {
            note(&last, count);
        }
        count >= MIN
    }
}

/// The turns and units of a memory record.
#[derive(Deserialize)]
struct TurnsAndUnits {
    turns: Vec<WindowTurn>,
    units: Vec<Unit>,
}

/// The vectors of turns in live records: of units that were made only from these turns, and of the turns' parts. Texts
/// of fewer than three words are left out, because others say the same. Calls `each` with the turns themselves, too:
/// those of an imported bank are stored nowhere else.
fn vectors_of(
    log: &dyn Log,
    bank: &Bank,
    turns: &BTreeSet<String>,
    each: &mut dyn FnMut(&Turn),
) -> Result<Vec<Vector>, PipelineError> {
    let mut vectors = Vec::new();
    let all = &mut |_: &[u8], _| true;
    log.live_records(partition_of(bank, log.partitions()), &MemoryKey::prefix(bank), all, &mut |record| {
        // A record that cannot be read quarantines its bank, which says so.
        let read = serde_json::from_slice(record.value.as_deref().unwrap_or_default());
        let Ok(TurnsAndUnits { turns: held, units }) = read else { return ControlFlow::Continue(()) };
        let held = held.iter().map(|held| &*held.turn);
        held.filter(|turn| turns.contains(&turn.turn)).for_each(&mut *each);
        for unit in units {
            if has_words(&unit.restatement) && unit.sources.iter().all(|turn| turns.contains(turn)) {
                vectors.push(unit.vector);
            }
            for part in unit.parts.into_iter().filter(|part| turns.contains(&part.turn) && has_words(&part.text)) {
                vectors.extend(part.vectors.into_iter().chain(part.pair));
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(vectors)
}

fn has_words(text: &str) -> bool {
    let mut count = 0;
    each_word(text.as_bytes(), |_, _| count += 1);
    count >= MIN
}

/// Writes the fingerprints of turns that are to be forgotten, if the settings name a directory for them. On return they
/// are on the disk.
pub(super) fn keep_fingerprints(
    settings: &ForgetSettings,
    log: &dyn Log,
    forgotten: &LedgerLine,
) -> Result<(), PipelineError> {
    let LedgerLine { operation, bank, turns, .. } = forgotten;
    let Some((directory, key_file)) = settings.fingerprints.as_deref().zip(settings.key_file.as_deref()) else {
        return Ok(());
    };
    let maker = FingerprintMaker::new(key_of(key_file)?);
    let (mut runs, mut with) = (RunFingerprints::new(), BTreeSet::new());
    let mut add = |turn: &Turn| {
        for text in turn.texts() {
            if maker.add(text, &mut runs) {
                with.insert(turn.turn.clone());
            }
        }
    };
    each_record(log, bank, u64::MAX, &Cancellation::default(), &mut |record| {
        let event = TurnEvent::from_log(record.value.as_deref().unwrap_or_default());
        if let Ok(TurnEvent::Turn(turn)) = event
            && turns.contains(&turn.turn)
        {
            add(&turn);
        }
    })?;
    let vectors = vectors_of(log, bank, turns, &mut add)?;
    for vector in vectors {
        maker.add_first(&json_of(&vector), RUN, &mut runs);
    }
    let without = (turns.len() - with.len()) as u64;
    let words = WordForm::Normal;
    let file = FingerprintFile { operation: operation.clone(), words, key: maker.check(), without, runs };
    write(directory, &file).map_err(|e| unkept(directory, &e))
}

/// Writes a file atomically, readable only by its owner.
fn write(directory: &Path, file: &FingerprintFile) -> io::Result<()> {
    create_private(directory)?;
    let path = directory.join(&file.operation).with_extension(EXTENSION);
    let unfinished = path.with_extension("unfinished");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut to = options.open(&unfinished)?;
    to.write_all(&serde_json::to_vec(file)?)?;
    to.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(directory)?.sync_all()
}

fn unkept(path: &Path, problem: &dyn std::fmt::Display) -> PipelineError {
    let what = format!("forget.fingerprints {}", path.display());
    PipelineError::Forget { what, problem: problem.to_string() }
}

/// The fingerprints of all operations that are still to be verified.
pub(super) struct FingerprintSet {
    maker: FingerprintMaker,
    pub(super) operations: Vec<OperationFingerprints>,
    /// Their runs, by the form of their words.
    runs: Vec<WordFormRuns>,
}

/// The runs of words in one form.
struct WordFormRuns {
    form: WordForm,
    /// The lengths of the runs, in words.
    lengths: BTreeSet<usize>,
    /// A bit for the hash of each run: for most of the searched bytes, checking it is enough.
    bits: Vec<u64>,
    /// The operations of each run, by its HMAC.
    operations: HashMap<u128, Vec<usize>>,
}

impl WordFormRuns {
    /// Makes it from the hash, the HMAC and the operation of each run.
    fn of(form: WordForm, lengths: BTreeSet<usize>, runs: &[(u32, u128, usize)]) -> Self {
        let mut bits = vec![0u64; (runs.len() * BITS_EACH).next_power_of_two().div_ceil(64)];
        let mut operations = HashMap::<u128, Vec<usize>>::new();
        for (hash, tag, operation) in runs {
            let (word, bit) = bit_of(*hash, bits.len());
            bits[word] |= bit;
            operations.entry(*tag).or_default().push(*operation);
        }
        Self { form, lengths, bits, operations }
    }
}

/// An operation that has fingerprints.
pub(super) struct OperationFingerprints {
    pub(super) operation: String,
    /// The number of its turns that have none.
    pub(super) without: u64,
    path: PathBuf,
}

impl FingerprintSet {
    /// Reads the fingerprints of a directory. If it is missing, there are none.
    ///
    /// # Errors
    /// [`PipelineError::Forget`]: a file cannot be read, or was made with another key.
    pub(super) fn read(directory: &Path, key_file: &Path) -> Result<Self, PipelineError> {
        let maker = FingerprintMaker::new(key_of(key_file)?);
        let mut paths = match fs::read_dir(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed
                .and_then(|entries| {
                    entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()
                })
                .map_err(|e| unkept(directory, &e))?,
        };
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort();
        let mut operations = Vec::new();
        let mut by_form = [WordForm::AsTyped, WordForm::Normal].map(|form| (form, BTreeSet::new(), Vec::new()));
        for path in paths {
            let read = fs::read(&path).map_err(|e| unkept(&path, &e))?;
            let file: FingerprintFile = serde_json::from_slice(&read).map_err(|e| unkept(&path, &e))?;
            if file.key != maker.check() {
                let of = path.display();
                let problem = format!("{of} was made with another key; put that key back, or remove that file");
                return Err(failed(key_file, problem));
            }
            let Some((_, lengths, runs)) = by_form.iter_mut().find(|(form, _, _)| *form == file.words) else {
                continue;
            };
            for (length, of_length) in file.runs {
                if !(MIN..=RUN).contains(&length) {
                    return Err(unkept(&path, &format!("{length} words in a run; remove that file")));
                }
                lengths.insert(length);
                for digits in of_length {
                    let parts = digits.split_at_checked(8);
                    let run = parts.and_then(|(hash, tag)| {
                        Some((u32::from_str_radix(hash, 16).ok()?, u128::from_str_radix(tag, 16).ok()?))
                    });
                    let (hash, tag) =
                        run.ok_or_else(|| unkept(&path, &"a fingerprint is damaged; remove that file"))?;
                    runs.push((hash, tag, operations.len()));
                }
            }
            operations.push(OperationFingerprints { operation: file.operation, without: file.without, path });
        }
        let runs = by_form.into_iter().filter(|(_, _, runs)| !runs.is_empty());
        let runs = runs.map(|(form, lengths, runs)| WordFormRuns::of(form, lengths, &runs)).collect();
        Ok(Self { maker, operations, runs })
    }
}

impl OperationFingerprints {
    /// Removes its fingerprints.
    pub(super) fn remove(&self) -> Result<(), PipelineError> {
        fs::remove_file(&self.path).map_err(|e| unkept(&self.path, &e))
    }
}

/// The position of a hash's bit among `words` of 64 bits; `words` is a power of two.
fn bit_of(hash: u32, words: usize) -> (usize, u64) {
    ((hash >> 6) as usize & (words - 1), 1 << (hash & 63))
}

impl StoragePattern for FingerprintSet {
    fn longest(&self) -> usize {
        OVERLAP_BYTES
    }

    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>)) {
        let mut seen = BTreeSet::new();
        for WordFormRuns { form, lengths, bits, operations } in &self.runs {
            let mut last = RecentWordBuffer::new(&self.maker.words);
            form.each_word(bytes, |start, word| {
                last.push(start, word);
                for length in lengths {
                    let Some(hash) = last.hash_of_last(*length) else { break };
                    let (word, bit) = bit_of(hash, bits.len());
                    if bits[word] & bit == 0 {
                        continue;
                    }
                    let (begin, run) = last.last(*length);
                    for operation in operations.get(&self.maker.tag(&run)).into_iter().flatten() {
                        // One match in these bytes is enough.
                        if seen.insert(*operation) {
                            found(begin, Some(self.operations[*operation].operation.as_str()));
                        }
                    }
                }
            });
        }
    }

    fn has_vectors(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker() -> FingerprintMaker {
        FingerprintMaker::new(hmac::Key::new(hmac::HMAC_SHA256, b"secret"))
    }

    fn kept(home: &Path, operation: &str, texts: &[&str]) {
        let mut runs = RunFingerprints::new();
        let with = texts.iter().filter(|text| maker().add(text, &mut runs)).count();
        let without = (texts.len() - with) as u64;
        let words = WordForm::Normal;
        let file = FingerprintFile { operation: operation.to_owned(), words, key: maker().check(), without, runs };
        write(home, &file).unwrap();
    }

    #[test]
    fn words_are_found_however_they_were_typed_and_those_of_older_files_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let (directory, key_file) = (home.path().join("prints"), home.path().join("key"));
        fs::write(&key_file, "secret\n").unwrap();
        kept(&directory, "new", &["Ärzte sagten, Groß & Söhne zögen nach Köln und Zürich."]);
        // The file of an earlier build: without a form, with the words as they were typed.
        let maker = maker();
        let (mut runs, mut last) = (RunFingerprints::new(), RecentWordBuffer::new(&maker.words));
        each_word_as_typed("Nous étions à la plage, hier soir, ensemble".as_bytes(), |at, word| last.push(at, word));
        let (_, run) = last.last(RUN);
        let hash = last.hash_of_last(RUN).unwrap();
        runs.entry(RUN).or_default().insert(format!("{hash:08x}{:032x}", maker.tag(&run)));
        let file = serde_json::json!({ "operation": "old", "key": maker.check(), "without": 0, "runs": runs });
        fs::write(directory.join("old.fingerprints"), file.to_string()).unwrap();
        let prints = FingerprintSet::read(&directory, &key_file).unwrap();
        let of = |text: &str| {
            let mut found = BTreeSet::new();
            prints.find(text.as_bytes(), &mut |_, operation| found.extend(operation.map(str::to_owned)));
            found.into_iter().collect::<Vec<_>>()
        };
        for text in [
            "ÄRZTE SAGTEN: GROSS & SÖHNE ZÖGEN NACH KÖLN UND ZÜRICH",
            "A\u{308}rzte sagten gro\u{df} so\u{308}hne zo\u{308}gen nach Ko\u{308}ln und Z\\u00fcrich",
        ] {
            assert_eq!(of(text), ["new"], "{text}");
        }
        assert_eq!(of("NOUS ÉTIONS à la plage hier soir ensemble"), ["old"]);
        assert_eq!(of("nous e\u{301}tions a\u{300} la plage hier soir ensemble"), [""; 0]);
    }

    #[test]
    fn a_run_of_a_forgotten_text_is_found_and_others_are_not() {
        let home = tempfile::tempdir().unwrap();
        let (directory, key_file) = (home.path().join("prints"), home.path().join("key"));
        fs::write(&key_file, "secret\n").unwrap();
        assert!(FingerprintSet::read(&directory, &key_file).unwrap().operations.is_empty());
        let long = "I saw the vermilion submarine of Zanzibar, yesterday, near the old harbour of the town.";
        kept(&directory, "1", &[long, "ok then"]);
        kept(&directory, "2", &["Tea with Bo?", "ok"]);
        let prints = FingerprintSet::read(&directory, &key_file).unwrap();
        let of = |text: &str| {
            let mut found = Vec::new();
            prints.find(text.as_bytes(), &mut |at, operation| found.push((at, operation.unwrap().to_owned())));
            found
        };
        assert_eq!(of(&format!("xyz {long}")), [(4, "1".to_owned())]);
        assert_eq!(of("... THE VERMILION\\nsubmarine of zanzibar yesterday near the, and"), [(4, "1".to_owned())]);
        assert_eq!(of("the vermilion submarine of Zanzibar, yesterday, near a"), [], "seven words of a longer text");
        assert_eq!(of("she had tea with Bo."), [(8, "2".to_owned())]);
        assert_eq!(of("ok then, tea with Ann"), []);
        assert_eq!(prints.operations.iter().map(|of| of.without).collect::<Vec<_>>(), [1, 1]);
        for file in fs::read_dir(&directory).unwrap() {
            let path = file.unwrap().path();
            assert!(!fs::read_to_string(&path).unwrap().to_lowercase().contains("harbour"));
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
        fs::write(&key_file, "another").unwrap();
        let problem = FingerprintSet::read(&directory, &key_file).err().unwrap().to_string();
        assert!(problem.contains("another key"), "{problem}");
    }
}
