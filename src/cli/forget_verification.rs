//! Whether words are gone from every stored byte: `ripplemem forget --verify`.
//!
//! In: words, from arguments or standard input; without words, the fingerprints that operations left. Out: gone,
//! pending or stored, each with its exit code, and where they were found. The words are neither printed nor written.

use std::{io::BufRead as _, process::ExitCode, time::Instant};

use anyhow::Result;
use erasure::{
    ErasureVerdict, OperationVerification, Receipt, StorageMatch, StorageSearchReport, VerificationReport,
    WordVerification, stored_receipts, verify, verify_operations,
};
use server::api::ForgetReceipts;
use terminal::{print, say};
use types::config::Pipeline;

use super::{forget_receipts::ensure_embedded, memory_access::lock_holder};

/// The exit code while words are still to be erased in time.
const PENDING: u8 = 3;

/// Looks for words, or for fingerprints if none are given, and prints whether they are gone.
pub(super) fn verified(pipeline: &Pipeline, given: Vec<String>) -> Result<ExitCode> {
    ensure_embedded(pipeline)?;
    let by_fingerprints = given.is_empty();
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
        Err(error) => match lock_holder(&error) {
            Some(reached) => reached.get::<ForgetReceipts>("/v1/forgets", &[])?.forgets,
            None => return Err(error.into()),
        },
    };
    if by_fingerprints {
        return operations_verified(pipeline, &receipts);
    }
    let started = Instant::now();
    let WordVerification { verdict, search } = verify(pipeline, &words, &receipts, jiff::Timestamp::now())?;
    let (read, places) = (shown(&search, started)?, search.found.len());
    let (line, code) = match verdict {
        ErasureVerdict::Gone if search.unread.is_empty() => (format!("gone: {read}"), ExitCode::SUCCESS),
        ErasureVerdict::Gone => (format!("not found, but not every file could be read: {read}"), ExitCode::FAILURE),
        ErasureVerdict::Pending { due } => {
            (format!("pending: in {places} places, to be erased by {due:.0}; {read}"), ExitCode::from(PENDING))
        }
        ErasureVerdict::Stored => (format!("still stored: in {places} places; {read}"), ExitCode::FAILURE),
    };
    print(&format!("{line}\n"))?;
    Ok(code)
}

/// Looks for the fingerprints of all operations, and prints a line for each. The worst of them is the exit code.
fn operations_verified(pipeline: &Pipeline, receipts: &[Receipt]) -> Result<ExitCode> {
    let started = Instant::now();
    let VerificationReport { operations, search } = verify_operations(pipeline, receipts, jiff::Timestamp::now())?;
    if operations.is_empty() {
        print("nothing to look for: no operation has fingerprints that are still to be verified\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let read = shown(&search, started)?;
    let is_whole = search.unread.is_empty();
    for OperationVerification { operation, verdict, without, removed } in &operations {
        let state = match verdict {
            ErasureVerdict::Gone if *removed => "gone; its fingerprints are removed".to_owned(),
            ErasureVerdict::Gone if !is_whole => "not found, but not every file could be read".to_owned(),
            ErasureVerdict::Gone => "gone; its fingerprints stay until it is erased".to_owned(),
            ErasureVerdict::Pending { due } => format!("pending, to be erased by {due:.0}"),
            ErasureVerdict::Stored => "still stored".to_owned(),
        };
        let without = match *without {
            0 => String::new(),
            turns => format!("; turns without a fingerprint: {turns}"),
        };
        print(&format!("{operation}  {state}{without}\n"))?;
    }
    if !search.found.is_empty() {
        say("what others said with the same eight words, or with all words of a shorter turn, is found, too");
    }
    print(&format!("{read}\n"))?;
    let is = |stored: bool| {
        operations.iter().any(|of| match of.verdict {
            ErasureVerdict::Gone => false,
            ErasureVerdict::Pending { .. } => !stored,
            ErasureVerdict::Stored => stored,
        })
    };
    Ok(match (is(true) || !is_whole, is(false)) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(PENDING),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Prints where something was found, and what could not be read; returns how much was read.
fn shown(search: &StorageSearchReport, started: Instant) -> Result<String> {
    let megabytes = search.bytes as f64 / 1e6;
    let rate = megabytes / started.elapsed().as_secs_f64().max(1e-9);
    for StorageMatch { file, at, operation } in &search.found {
        let of = operation.as_ref().map(|operation| format!(" (operation {operation})")).unwrap_or_default();
        print(&format!("{}: {at}{of}\n", file.display()))?;
    }
    for (file, problem) in &search.unread {
        say(&format!("{}: not read whole: {problem}", file.display()));
    }
    Ok(format!("{} files, {megabytes:.1} MB read at {rate:.0} MB/s", search.files))
}
