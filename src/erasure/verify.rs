//! Whether words are gone from every stored byte.
//!
//! In: a pipeline, the receipts of its operations, and words or the fingerprints of operations. Out: gone; or pending,
//! with the time by which they will be gone; or where they are although they should be gone. Reads the files while
//! others have them open, on as many threads as there are processors, and the objects of a bucket. Writes nothing;
//! removes the fingerprints of operations that are erased and gone.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use url::Url;

use super::{
    ForgetStage, PipelineError, Receipt,
    fingerprints::FingerprintSet,
    storage_search::{StoragePattern, StorageSearchReport, StorageSearcher, search_files},
    word_pattern::WordPattern,
};
use snapshots::each_object;
use types::config::{LogKind, Pipeline};

/// The most threads that read: each holds a few blocks of 8 MiB.
const MAX_THREADS: usize = 8;

/// What became of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureVerdict {
    /// They are in no byte that was read.
    Gone,
    /// They are stored, and operations are to erase them by this time at the latest.
    Pending {
        /// The latest time.
        due: Timestamp,
    },
    /// They are stored, and no operation is to erase them, or one is late.
    Stored,
}

/// The result of a search for words.
#[derive(Debug, Clone)]
pub struct WordVerification {
    /// What became of the words.
    pub verdict: ErasureVerdict,
    /// What was read, and where the words are.
    pub search: StorageSearchReport,
}

/// What became of the words of an operation, by their fingerprints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationVerification {
    /// The operation's id.
    pub operation: String,
    /// What became of the words.
    pub verdict: ErasureVerdict,
    /// The number of its turns without a fingerprint: the log did not hold them, or they have fewer than three words.
    pub without: u64,
    /// Whether its fingerprints were removed, because it is erased and none of them was found.
    pub removed: bool,
}

/// The result of a search for fingerprints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationReport {
    /// Each operation that had fingerprints.
    pub operations: Vec<OperationVerification>,
    /// What was read, and where fingerprints were found. Nothing is read if no operation has fingerprints.
    pub search: StorageSearchReport,
}

/// Searches for words in everything that the memory of a pipeline stores.
///
/// # Errors
/// [`PipelineError::NotEmbedded`] on Kafka; [`PipelineError::Forget`] for words that cannot be searched.
pub fn verify(
    pipeline: &Pipeline,
    words: &[String],
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<WordVerification, PipelineError> {
    if pipeline.log.kind == LogKind::Kafka {
        return Err(PipelineError::NotEmbedded);
    }
    let words = WordPattern::new(words)?;
    let search = searched(pipeline, &words);
    let verdict = if search.found.is_empty() { ErasureVerdict::Gone } else { pending(receipts, now) };
    Ok(WordVerification { verdict, search })
}

/// Searches for the fingerprints of all operations, and removes those of an erased operation if the search read
/// everything and found none of them.
///
/// # Errors
/// [`PipelineError::NotEmbedded`] on Kafka; [`PipelineError::Forget`] if the settings name no directory of
/// fingerprints, or if a file of them cannot be read or removed, or was made with another key.
pub fn verify_operations(
    pipeline: &Pipeline,
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<VerificationReport, PipelineError> {
    if pipeline.log.kind == LogKind::Kafka {
        return Err(PipelineError::NotEmbedded);
    }
    let forget = &pipeline.forget;
    let Some((directory, key_file)) = forget.fingerprints.as_deref().zip(forget.key_file.as_deref()) else {
        let (what, problem) =
            ("--verify", "give --words, or set forget.fingerprints and forget.key_file before deleting");
        return Err(PipelineError::Forget { what: what.to_owned(), problem: problem.to_owned() });
    };
    let fingerprints = FingerprintSet::read(directory, key_file)?;
    if fingerprints.operations.is_empty() {
        return Ok(VerificationReport { operations: Vec::new(), search: StorageSearchReport::default() });
    }
    let search = searched(pipeline, &fingerprints);
    let mut operations = Vec::new();
    for prints in &fingerprints.operations {
        let of_this: Vec<Receipt> =
            receipts.iter().filter(|receipt| receipt.operation == prints.operation).cloned().collect();
        let is_found = search.operations.contains(&prints.operation);
        let verdict = if is_found { pending(&of_this, now) } else { ErasureVerdict::Gone };
        let is_erased = of_this.iter().all(|receipt| receipt.stage == ForgetStage::Erased);
        let removed = !is_found && is_erased && search.unread.is_empty();
        if removed {
            prints.remove()?;
        }
        let (operation, without) = (prints.operation.clone(), prints.without);
        operations.push(OperationVerification { operation, verdict, without, removed });
    }
    Ok(VerificationReport { operations, search })
}

/// Searches every place where the memory of a pipeline stores words.
fn searched(pipeline: &Pipeline, needles: &dyn StoragePattern) -> StorageSearchReport {
    let (places, bucket) = places(pipeline);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut search = search_files(needles, &places, threads);
    if let Some(place) = bucket.map(Path::new) {
        let mut searcher = StorageSearcher::new(needles);
        let read = each_object(&pipeline.snapshot.directory, &mut |path, bytes| {
            searcher.object(&place.join(path), &bytes);
        });
        if let Err(error) = read {
            searcher.not_read(place, &error);
        }
        search.add(searcher.done());
    }
    search
}

/// Whether operations will erase what was found. It is unknown to which of them the words belong, so one late operation
/// is enough to count as late.
fn pending(receipts: &[Receipt], now: Timestamp) -> ErasureVerdict {
    let waiting: Vec<Option<Timestamp>> =
        receipts.iter().filter(|receipt| receipt.stage != ForgetStage::Erased).map(|receipt| receipt.due).collect();
    let due = waiting.iter().copied().collect::<Option<Vec<Timestamp>>>();
    match due.filter(|due| due.iter().all(|due| *due >= now)).and_then(|due| due.into_iter().max()) {
        Some(due) => ErasureVerdict::Pending { due },
        None => ErasureVerdict::Stored,
    }
}

/// The directories and files where the memory stores words, each once; and the bucket of its snapshots, if they are in
/// one.
fn places(pipeline: &Pipeline) -> (Vec<PathBuf>, Option<&str>) {
    let (mut places, mut bucket) = (Vec::new(), None);
    let mut add = |path: &Path| {
        let is_within = places.iter().any(|place: &PathBuf| path.starts_with(place));
        if path.exists() && !is_within {
            places.push(path.to_owned());
        }
    };
    add(&pipeline.log.directory);
    add(&pipeline.llm_directory());
    add(&pipeline.replay.directory);
    let snapshots = &pipeline.snapshot.directory;
    match Url::parse(snapshots) {
        Ok(url) if url.scheme() == "file" => {
            if let Ok(path) = url.to_file_path() {
                add(&path);
            }
        }
        Ok(_) if snapshots.contains("://") => bucket = Some(snapshots.as_str()),
        _ if snapshots.is_empty() => {}
        _ => add(Path::new(snapshots)),
    }
    let files = [&pipeline.forget.ledger, &pipeline.access.audit_file];
    files.into_iter().flatten().for_each(|file| add(file));
    (places, bucket)
}
