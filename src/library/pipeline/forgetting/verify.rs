//! Whether words are gone from every stored byte.
//!
//! In: a pipeline, words, and the receipts of its operations. Out: gone, pending with the time by which they will be,
//! or where they lie although they should be gone. Reads the files while others have them open, and the objects of a
//! bucket, and writes nothing.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use url::Url;

use super::{
    ForgetStage, PipelineError, Receipt,
    search::{Search, Searcher, Words},
};
use crate::snapshot::each_object;
use nouns::config::{LogKind, Pipeline};

/// What became of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// They are in no byte that was read.
    Gone,
    /// They are stored, and operations are to erase theirs by this time at the latest.
    Pending {
        /// The latest time.
        due: Timestamp,
    },
    /// They are stored, and no operation is to erase them, or one should have.
    Stored,
}

/// The result of looking.
#[derive(Debug, Clone)]
pub struct Verified {
    /// What became of the words.
    pub verdict: Verdict,
    /// What was read, and where they lie.
    pub search: Search,
}

/// Looks for words in everything that the memory of a pipeline stores.
///
/// # Errors
/// [`PipelineError::NotEmbedded`] on Kafka; [`PipelineError::Forget`] for words that cannot be looked for.
pub fn verify(
    pipeline: &Pipeline,
    words: &[String],
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<Verified, PipelineError> {
    if pipeline.log.kind == LogKind::Kafka {
        return Err(PipelineError::NotEmbedded);
    }
    let words = Words::new(words)?;
    let mut searcher = Searcher::new(&words);
    let (places, bucket) = places(pipeline);
    places.iter().for_each(|place| searcher.below(place));
    if let Some(place) = bucket.map(Path::new) {
        let read = each_object(&pipeline.snapshot.directory, &mut |path, bytes| {
            searcher.object(&place.join(path), &bytes);
        });
        if let Err(error) = read {
            searcher.not_read(place, &error);
        }
    }
    let search = searcher.done();
    let verdict = if search.found.is_empty() { Verdict::Gone } else { pending(receipts, now) };
    Ok(Verified { verdict, search })
}

/// Whether operations will erase what is found. Which of them the words belong to is not known: one that is late
/// counts.
fn pending(receipts: &[Receipt], now: Timestamp) -> Verdict {
    let waiting: Vec<Option<Timestamp>> =
        receipts.iter().filter(|receipt| receipt.stage != ForgetStage::Erased).map(|receipt| receipt.due).collect();
    let due = waiting.iter().copied().collect::<Option<Vec<Timestamp>>>();
    match due.filter(|due| due.iter().all(|due| *due >= now)).and_then(|due| due.into_iter().max()) {
        Some(due) => Verdict::Pending { due },
        None => Verdict::Stored,
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
