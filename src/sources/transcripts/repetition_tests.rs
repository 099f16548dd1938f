//! Transcripts that are read again, in other pieces, in another order, compressed, or under other names.
//!
//! In: the transcripts written by hand. Out: the same turns, once each, with their earliest time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::tests::{FOLDERS, copied, is_without_database, read};
use crate::{AUTO, tests::drain};
use types::{
    config::SourceSettings,
    model::{Turn, TurnEvent},
};

/// The turns of all files of a folder, each read alone, the last one first: by id, with the earliest time.
fn one_by_one(folder: &Path) -> BTreeMap<(String, String), (i64, String)> {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    let mut paths = Vec::new();
    files(folder, &mut paths);
    paths.sort_by(|a, b| b.cmp(a));
    let mut turns = BTreeMap::new();
    for path in paths {
        // Files that lie beside the transcripts are not recognised.
        for turn in read(AUTO, &path).map(|(turns, _)| turns).unwrap_or_default() {
            keep(&mut turns, turn);
        }
    }
    turns
}

fn keep(turns: &mut BTreeMap<(String, String), (i64, String)>, turn: Turn) {
    let time = turn.time.unix_ms;
    let kept = turns.entry((turn.bank.to_string(), turn.turn)).or_insert((time, turn.text));
    kept.0 = kept.0.min(time);
}

#[test]
fn files_that_are_read_alone_and_in_another_order_add_nothing() {
    for (name, format) in FOLDERS.iter().filter(|(name, _)| !is_without_database(name)) {
        let folder = copied(name);
        let (turns, _) = read(format, folder.path()).unwrap();
        let count = turns.len();
        let mut whole = BTreeMap::new();
        turns.into_iter().for_each(|turn| keep(&mut whole, turn));
        assert_eq!(whole.len(), count, "{name}: an id comes twice");
        assert_eq!(one_by_one(folder.path()), whole, "{name}");
    }
}

#[test]
fn a_compressed_rollout_is_the_same_as_the_plain_one() {
    let folder = copied("codex");
    let (turns, _) = read("codex", folder.path()).unwrap();
    let plain = folder.path().join("sessions/2026/05/04/rollout-2026-05-04T12-00-00-th-a.jsonl");
    let packed = zstd::encode_all(&fs::read(&plain).unwrap()[..], 3).unwrap();
    fs::write(plain.with_extension("jsonl.zst"), packed).unwrap();
    assert_eq!(read("codex", folder.path()).unwrap().0, turns, "both are there");
    fs::remove_file(&plain).unwrap();
    assert_eq!(read("codex", folder.path()).unwrap().0, turns);
    assert_eq!(read(AUTO, &plain.with_extension("jsonl.zst")).unwrap().0.len(), 4);
}

#[test]
fn a_bank_may_be_named_and_the_person_too() {
    let folder = copied("qwen-code");
    let aliases = folder.path().join("aliases.toml");
    fs::write(&aliases, "User = \"Odalys\"\n").unwrap();
    let mut settings = SourceSettings::new("qwen-code", folder.path());
    (settings.bank, settings.aliases) = ("mine/{project}".to_owned(), Some(aliases));
    let batch = drain(&mut *crate::open(&settings).unwrap(), 10);
    let TurnEvent::Turn(turn) = &batch.events[0] else { panic!("{batch:?}") };
    assert!(turn.bank.as_str().starts_with("mine/kite-") && turn.speaker == "Odalys", "{turn:?}");
}
