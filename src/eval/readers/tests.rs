//! Tests of invalid settings, and the function that the readers' tests share.

use sources::{SourceBatch, TurnSource};

use super::open;
use types::config::SourceSettings;

/// Everything in a source, `limit` at a time.
pub(super) fn drain(source: &mut dyn TurnSource, limit: usize) -> SourceBatch {
    let mut all = SourceBatch::default();
    while let Some(batch) = source.next(limit).unwrap() {
        let size = batch.events.len() + batch.rejects.len();
        assert!((1..=limit).contains(&size), "{size} of at most {limit}");
        all.events.extend(batch.events);
        all.rejects.extend(batch.rejects);
    }
    assert_eq!(source.next(limit).unwrap(), None, "the end is final");
    all
}

#[test]
fn invalid_settings_are_named() {
    let settings = |format: &str, path: &str, zone: &str| SourceSettings {
        zone: zone.to_owned(),
        ..SourceSettings::new(format, path)
    };
    for (settings, expected) in [
        (settings("locomo", "-", "Z"), "source.path: locomo is read from a file"),
        (settings("realtalk", "-", "Z"), "source.path: realtalk is read from a file"),
        (settings("longmemeval", "-", "Z"), "source.path: longmemeval is read from a file"),
        (settings("evermembench", "-", "Z"), "source.path: evermembench is read from a file"),
        (settings("longmemeval", "none.json", "noon"), "source.zone: \"noon\" is not an offset or a zone"),
        (settings("locomo", "none.json", "Berlin"), "source.zone: \"Berlin\" is not an offset or a zone"),
        (settings("evermembench", "none.json", "Z"), "none.json: cannot be read after line 0"),
        (settings("locomo", "none.json", "Z"), "none.json: cannot be read after line 0"),
        (settings("csv", "none.json", "Z"), "source.format: \"csv\" is not known"),
    ] {
        let message = open(&settings).err().unwrap().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}
