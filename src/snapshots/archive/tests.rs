//! Tests archives whose writer is dropped at any moment; the Parquet library's reader reads them back.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use arrow_array::{Array, BinaryArray, Int32Array, Int64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::{
    Archive,
    hashed_file::HashedFile,
    index::index_of,
    writer::{ArchiveLimits, LIMITS},
};
use crate::{ArchiveTable, SnapshotError, TopicRow};

const DAY_MS: i64 = 86_400_000;

/// An archive's directory in a folder of its own, since its index and its lock are beside it.
struct ArchiveHome(tempfile::TempDir);

impl ArchiveHome {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("turns")
    }
}

fn row(partition: u32, offset: u64, day: i64, bank: &str, filler: usize) -> TopicRow {
    let text = format!("{offset}{}", " word".repeat(filler));
    let value = format!(
        r#"{{"bank": "{bank}", "turn": "{offset}", "speaker": "Ann", "text": "{text}", "time": "2024-05-06T09:00:00Z"}}"#
    );
    let headers = vec![("h".to_owned(), None), ("h".to_owned(), Some(offset.to_be_bytes().to_vec()))];
    let (key, value) = (bank.as_bytes().to_vec(), Some(value.into_bytes()));
    TopicRow::new(ArchiveTable::Turns, partition, offset, day * DAY_MS + offset as i64, key, value, headers)
}

fn open(directory: &Path, by_bank: bool, limits: ArchiveLimits) -> Archive {
    let mut archive = Archive::open(directory, ArchiveTable::Turns, "t.turns", by_bank, None).unwrap();
    archive.limits = limits;
    archive
}

/// (partition, offset, value) of every row of every complete file, in the index or not.
fn rows(directory: &Path) -> Vec<(i32, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
                for batch in reader.build().unwrap() {
                    let batch = batch.unwrap();
                    let column = |name| batch.column_by_name(name).unwrap();
                    let partitions = column("partition").as_any().downcast_ref::<Int32Array>().unwrap();
                    let offsets = column("offset").as_any().downcast_ref::<Int64Array>().unwrap();
                    let values = column("value").as_any().downcast_ref::<BinaryArray>().unwrap();
                    found.extend(
                        (0..batch.num_rows())
                            .map(|i| (partitions.value(i), offsets.value(i), values.value(i).to_vec())),
                    );
                    assert_eq!(column("headers").null_count() + column("text").null_count(), 0);
                }
            }
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// An archive that is dropped at any row, with or without `finish`, and with files of any size, has every row once.
    #[test]
    fn no_row_is_lost_or_duplicated_wherever_a_run_ends(
        by_bank: bool,
        sizes in (1usize..40_000, 1usize..20_000, 1usize..4),
        cuts in proptest::collection::vec((0usize..150, any::<bool>()), 0..6),
        seed in 0u64..1_000,
    ) {
        let home = ArchiveHome::new();
        let limits = ArchiveLimits { buffered_bytes: sizes.0, file_bytes: sizes.1, open_files: sizes.2 };
        // Two partitions; days and banks alternate.
        let all: Vec<TopicRow> = (0..300u64)
            .map(|n| {
                let (partition, dice) = ((n % 2) as u32, n.wrapping_mul(seed + 7) >> 2);
                row(partition, 10 + n / 2 * 3, (dice % 3) as i64, ["a", "a/b", "c"][(dice % 3) as usize], (dice % 50) as usize)
            })
            .collect();
        let feed = |archive: &mut Archive, most: usize| {
            let mut taken = 0;
            for row in &all {
                if archive.next(row.partition).is_none_or(|next| row.offset >= next) && taken < most {
                    archive.push(row.clone()).unwrap();
                    taken += 1;
                }
            }
        };
        for (most, finished) in cuts {
            let mut archive = open(&home.path(), by_bank, limits);
            feed(&mut archive, most);
            if finished {
                archive.finish().unwrap();
            }
        }
        let mut archive = open(&home.path(), by_bank, limits);
        feed(&mut archive, usize::MAX);
        archive.finish().unwrap();
        let mut expected: Vec<_> =
            all.iter().map(|r| (r.partition as i32, r.offset as i64, r.value.clone().unwrap())).collect();
        expected.sort();
        prop_assert_eq!(rows(&home.path()), expected);
        let index = archive.index().clone();
        prop_assert_eq!(index.files.iter().map(|f| f.rows).sum::<u64>(), 300);
        for file in &index.files {
            let bytes = fs::read(home.path().join(&file.path)).unwrap();
            prop_assert_eq!(blake3::hash(&bytes).to_hex().to_string(), file.blake3.clone());
            prop_assert_eq!(bytes.len() as u64, file.bytes);
        }
        drop(archive);
        let again = open(&home.path(), by_bank, limits);
        prop_assert_eq!(again.index(), &index);
    }
}

#[test]
fn a_complete_file_that_is_not_in_the_index_is_written_again() {
    let home = ArchiveHome::new();
    let mut archive = open(&home.path(), false, LIMITS);
    archive.push(row(0, 5, 0, "a", 1)).unwrap();
    archive.finish().unwrap();
    archive.push(row(0, 6, 0, "a", 1)).unwrap();
    let group = archive.groups.keys().next().unwrap().clone();
    archive.close(&group).unwrap();
    // Killed before it wrote the index.
    drop(archive);
    assert_eq!(rows(&home.path()).len(), 2);
    let mut archive = open(&home.path(), false, LIMITS);
    assert_eq!((rows(&home.path()).len(), archive.next(0)), (1, Some(6)));
    archive.push(row(0, 6, 0, "a", 1)).unwrap();
    archive.finish().unwrap();
    assert_eq!(rows(&home.path()).len(), 2);
}

#[test]
fn another_topic_layout_or_writer_and_a_damaged_index_are_refused() {
    let home = ArchiveHome::new();
    let mut archive = open(&home.path(), false, LIMITS);
    archive.push(row(0, 5, 0, "a", 1)).unwrap();
    archive.finish().unwrap();
    let again = |topic, by_bank, from| {
        Archive::open(&home.path(), ArchiveTable::Turns, topic, by_bank, from).map(|_| ()).unwrap_err().to_string()
    };
    assert!(again("t.turns", false, None).contains("another process"));
    drop(archive);
    assert!(again("u.turns", false, None).contains("it holds t.turns, not u.turns"));
    assert!(again("t.turns", true, None).contains("no directories for banks"));
    assert!(again("t.turns", false, Some("17")).contains("a replay from earliest"));
    Archive::open(&home.path(), ArchiveTable::Turns, "t.turns", false, Some("earliest")).unwrap();
    let list = index_of(&home.path());
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, text.replace("\"version\": 1", "\"version\": 2")).unwrap();
    assert!(again("t.turns", false, None).contains("version 2 is not 1"));
    fs::write(&list, &text[..20]).unwrap();
    assert!(again("t.turns", false, None).contains("not a list of files"));
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let full = Path::new("/dev/full");
    let mut file = HashedFile::new(OpenOptions::new().write(true).open(full).unwrap());
    let error = SnapshotError::disk(full, "writing", file.write_all(&[0; 8_192]).unwrap_err());
    assert!(error.to_string().contains("make room on the disk"), "{error}");
}

/// An invalid record becomes a row with its bytes and the reason.
#[test]
fn invalid_records_are_kept_with_the_reason() {
    let home = ArchiveHome::new();
    let mut archive = open(&home.path(), true, LIMITS);
    let value = Some(vec![0xff, 0xfe]);
    archive.push(TopicRow::new(ArchiveTable::Turns, 0, 1, -1, b"key".to_vec(), value, Vec::new())).unwrap();
    archive.push(TopicRow::new(ArchiveTable::Turns, 0, 2, i64::MAX, Vec::new(), None, Vec::new())).unwrap();
    archive.finish().unwrap();
    let paths: Vec<&str> = archive.index().files.iter().map(|f| f.path.as_str()).collect();
    let day = "date=1969-12-31/__HIVE_DEFAULT_PARTITION__/0-00000000000000000001.parquet";
    let never = "date=__HIVE_DEFAULT_PARTITION__/__HIVE_DEFAULT_PARTITION__/0-00000000000000000002.parquet";
    assert_eq!(paths, [day, never]);
    let reader = File::open(home.path().join(day)).unwrap();
    let batch = ParquetRecordBatchReaderBuilder::try_new(reader).unwrap().build().unwrap().next().unwrap().unwrap();
    let problems = batch.column_by_name("problem").unwrap();
    let problems = problems.as_any().downcast_ref::<arrow_array::StringArray>().unwrap();
    assert!(problems.value(0).contains("not UTF-8"), "{}", problems.value(0));
}

#[test]
fn a_bank_of_digits_stays_text_and_nothing_but_parquet_lies_below() {
    let home = ArchiveHome::new();
    let mut archive = open(&home.path(), true, LIMITS);
    for (offset, bank) in [(1, "007"), (2, "42"), (3, "a/b")] {
        archive.push(row(0, offset, 0, bank, 1)).unwrap();
    }
    // Also while files are open.
    let groups: Vec<_> = archive.groups.keys().cloned().collect();
    archive.close(&groups[0]).unwrap();
    let below = || {
        let (mut names, mut folders) = (Vec::new(), vec![home.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    names.push(path.strip_prefix(home.path()).unwrap().to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        names
    };
    assert!(below().iter().all(|name| name.ends_with(".parquet")), "{:?}", below());
    archive.finish().unwrap();
    let expected = ["007/0-00000000000000000001", "42/0-00000000000000000002", "a%2Fb/0-00000000000000000003"];
    assert_eq!(below(), expected.map(|name| format!("date=1970-01-01/{name}.parquet")));
    let reader = File::open(home.path().join(&below()[0])).unwrap();
    let batch = ParquetRecordBatchReaderBuilder::try_new(reader).unwrap().build().unwrap().next().unwrap().unwrap();
    let banks = batch.column_by_name("bank").unwrap();
    assert_eq!(banks.as_any().downcast_ref::<arrow_array::StringArray>().unwrap().value(0), "007");
}
