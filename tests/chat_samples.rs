//! Real exports of chat platforms, held to what they contain.
//!
//! In: `tests/data/chat_samples.json`, a row for each sample: its `path` below the data folder, its
//! `format`, `options` as in `[source]`, and what a dry run must count: `turns`, `edits`,
//! `deletions`, `rejected`, and `skipped` by reason. What a row leaves out is 0. The numbers are
//! counted in the samples by other means than the readers. A row with `"auto": false` is a file that
//! other formats share; one with `"by_hand": true` lies in `tests/data` and was written after the platform's
//! documentation, because no sample is at hand. The others are skipped by name where `RIPPLEMEM_DATA` names no folder.
//! `make test-data` runs this file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sources::{AUTO, SourceSummary};
use types::config::SourceSettings;

use super::{skipped::skip, support::data};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    path: String,
    format: String,
    #[serde(default)]
    options: serde_json::Map<String, serde_json::Value>,
    #[serde(default = "yes")]
    auto: bool,
    #[serde(default)]
    by_hand: bool,
    turns: u64,
    #[serde(default)]
    edits: u64,
    #[serde(default)]
    deletions: u64,
    #[serde(default)]
    rejected: u64,
    #[serde(default)]
    skipped: BTreeMap<String, u64>,
}

fn yes() -> bool {
    true
}

/// What is wrong with a sample; nothing if it is read as its row says.
fn check(folder: &Path, sample: &Sample, format: &str) -> Result<(), String> {
    let mut settings = sample.options.clone();
    settings.insert("format".to_owned(), format.into());
    settings.insert("path".to_owned(), folder.join(&sample.path).to_string_lossy().into());
    let settings: SourceSettings = serde_json::from_value(settings.into()).map_err(|e| e.to_string())?;
    let mut source = sources::open(&settings).map_err(|e| e.to_string())?;
    let summary = SourceSummary::of(&mut *source, |_| {}).map_err(|e| e.to_string())?;
    // Rows count what is not supported whatever its kind.
    let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in &summary.skipped {
        *skipped.entry(name.split(": ").next().unwrap_or(name).to_owned()).or_default() += count;
    }
    let found = (summary.turns, summary.edits, summary.deletions, summary.rejected, &skipped);
    let expected = (sample.turns, sample.edits, sample.deletions, sample.rejected, &sample.skipped);
    if found == expected {
        return Ok(());
    }
    Err(format!("(turns, edits, deletions, rejected, skipped) are {found:?}, not {expected:?}; {:?}", summary.reasons))
}

#[test]
fn every_sample_holds_what_its_row_says() {
    let samples: Vec<Sample> = serde_json::from_slice(&fs::read(data("chat_samples.json")).unwrap()).unwrap();
    let folder = std::env::var_os("RIPPLEMEM_DATA").map(PathBuf::from);
    if folder.is_none() {
        skip(
            "chat_samples::every_sample_holds_what_its_row_says",
            "RIPPLEMEM_DATA names no folder; files by hand are read",
        );
    }
    let mut wrong = Vec::new();
    let by_hand = data("");
    for sample in &samples {
        let folder = if sample.by_hand { Some(&by_hand) } else { folder.as_ref() };
        let Some(folder) = folder else { continue };
        let formats = [Some(sample.format.as_str()), sample.auto.then_some(AUTO)];
        for format in formats.into_iter().flatten() {
            if let Err(problem) = check(folder, sample, format) {
                wrong.push(format!("{} as {format}: {problem}", sample.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} samples\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}
