//! A memory that stays open keeps writing its snapshots.

use std::time::{Duration, Instant};

use super::Memory;
use nouns::{config::Pipeline, model::TurnEvent};

fn turn(number: usize) -> TurnEvent {
    let turn = serde_json::json!({"bank": "b", "turn": number.to_string(), "speaker": "Ann", "session": "s",
        "text": format!("Report {number} counts the boats"), "time": format!("2024-05-06T09:{number:02}:00Z")});
    TurnEvent::from_json(turn.to_string().as_bytes()).expect("a turn")
}

/// Recording stops here as it does if the place of the snapshots is away until too much waits for it.
#[test]
fn a_shard_that_is_recorded_no_more_is_recorded_again() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\nsnapshot.interval_seconds = 1";
    let mut pipeline = Pipeline::parse(settings).expect("a pipeline");
    pipeline.log.directory = home.path().join("log");
    pipeline.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let memory = Memory::open(&pipeline).expect("opened");
    let until = Instant::now() + Duration::from_secs(120);
    let put = |number| {
        let written = memory.put([turn(number)]).expect("put");
        assert!(memory.wait_for(&written, until));
    };
    put(0);
    memory.replica.revoke(&[0]);
    memory.replica.assign(&[0], false);
    put(1);
    let recorded = || {
        let newest = memory.replica.snapshots();
        newest.is_ok_and(|newest| newest.into_iter().flatten().map(|manifest| manifest.live.records).sum::<u64>() == 2)
    };
    while !recorded() {
        assert!(Instant::now() < until, "{:?}", memory.problem());
        std::thread::sleep(Duration::from_millis(50));
    }
    put(2);
    assert_eq!(memory.replica().digest(None).expect("counted").value.units, 3);
}
