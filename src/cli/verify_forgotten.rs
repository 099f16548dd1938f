//! Whether words are gone from every stored byte: `ripplemem forget --verify`.
//!
//! In: words, from arguments or standard input. Out: gone, pending or stored, each with its exit code, and where they
//! lie. The words are neither printed nor written.

use std::{io::BufRead as _, process::ExitCode, time::Instant};

use anyhow::Result;
use nouns::config::Pipeline;
use ripplemem::pipeline::{Found, Verdict, Verified, stored_receipts, verify};
use server::api::Forgets;

use super::{
    forgets::ensure_embedded,
    output::{print, say},
    reached::holder_of,
};

/// The exit code while words are still to be erased in time.
const PENDING: u8 = 3;

/// Looks for words, and says what became of them.
pub(super) fn verified(pipeline: &Pipeline, given: Vec<String>) -> Result<ExitCode> {
    ensure_embedded(pipeline)?;
    let mut words = Vec::new();
    for word in given {
        if word == "-" {
            let lines = std::io::stdin().lock().lines().collect::<std::io::Result<Vec<String>>>()?;
            words.extend(lines.into_iter().filter(|line| !line.trim().is_empty()));
        } else {
            words.push(word);
        }
    }
    // The log is closed again before its files are read.
    let receipts = match stored_receipts(pipeline) {
        Ok(receipts) => receipts,
        Err(error) => match holder_of(&error) {
            Some(reached) => reached.get::<Forgets>("/v1/forgets", &[])?.forgets,
            None => return Err(error.into()),
        },
    };
    let started = Instant::now();
    let Verified { verdict, search } = verify(pipeline, &words, &receipts, jiff::Timestamp::now())?;
    for Found { file, at } in &search.found {
        print(&format!("{}: {at}\n", file.display()))?;
    }
    for (file, problem) in &search.unread {
        say(&format!("{}: not read whole: {problem}", file.display()));
    }
    let megabytes = search.bytes as f64 / 1e6;
    let rate = megabytes / started.elapsed().as_secs_f64().max(1e-9);
    let read = format!("{} files, {megabytes:.1} MB read at {rate:.0} MB/s", search.files);
    let places = search.found.len();
    let (line, code) = match verdict {
        Verdict::Gone if search.unread.is_empty() => (format!("gone: {read}"), ExitCode::SUCCESS),
        Verdict::Gone => (format!("not found, but not every file could be read: {read}"), ExitCode::FAILURE),
        Verdict::Pending { due } => {
            (format!("pending: in {places} places, to be erased by {due:.0}; {read}"), ExitCode::from(PENDING))
        }
        Verdict::Stored => (format!("still stored: in {places} places; {read}"), ExitCode::FAILURE),
    };
    print(&format!("{line}\n"))?;
    Ok(code)
}
