//! Windows on Kafka whose record is larger than a topic takes: written as several records in one
//! transaction, read as one window, also by an instance that starts again.

use std::collections::BTreeMap;

use logs::{Log, Topic, partition_of};
use types::model::{Bank, MemoryKey, MemoryRecord, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, turn},
    support::{ask, census, ingest, open, pipeline, ripplemem, write},
};

/// The largest record of the memory topic, `max.message.bytes`.
const LARGEST: usize = 8 << 20;
/// No larger than it has to be: every turn costs the test half a second.
const WINDOW: &str = "window.turns = 28";

/// Twenty-eight pasted documents are one window: its record is divided by ranges of units.
#[test]
fn a_window_past_the_largest_record_is_written_as_several_and_read_as_one() {
    let _turn = turn();
    let test = "kafka_oversize::a_window_past_the_largest_record_is_written_as_several_and_read_as_one";
    let Some(broker) = Broker::shared(test) else { return };
    let home = Home::new(&broker, "pasted", WINDOW);
    let line = "Harbour report counts in this line some blue boats. ";
    let turns: String = (0..28)
        .map(|n| {
            let text = format!("{n} {}", line.repeat(2_400));
            let turn = serde_json::json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": text,
                "time": format!("2024-05-06T09:{n:02}:00Z"), "session": "s"});
            format!("{turn}\n")
        })
        .collect();
    let file = write(&home.directory.path().join("turns.jsonl"), turns);
    let output = ripplemem(&["ingest", "jsonl", file.to_str().unwrap(), "--pipeline", home.path()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let service = home.run();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut whole = open(&pipeline(elsewhere.path(), &format!("embed.read_turns = 16\n{WINDOW}")));
    ingest(&mut whole, &file);
    home.extracted();
    assert_eq!(home.census(), census(&whole));

    // The live records of each window.
    let partition = partition_of(&Bank::parse("b").unwrap(), 2);
    let mut windows: BTreeMap<Vec<u8>, BTreeMap<u32, Vec<u8>>> = BTreeMap::new();
    for record in home.log().read(Topic::Memory, partition, 0, 1_000).unwrap().records {
        let key = MemoryKey::from_bytes(&record.key).unwrap();
        let window = MemoryKey { part: 0, turn: None, ..key.clone() }.to_bytes();
        let parts = windows.entry(window).or_default();
        match record.value {
            Some(value) if key.turn.is_none() => drop(parts.insert(key.part, value)),
            _ => drop(parts.remove(&key.part)),
        }
    }
    let oversize = windows.values().find(|parts| parts.values().map(Vec::len).sum::<usize>() > LARGEST).unwrap();
    assert!(oversize.len() > 2 && oversize.values().all(|part| part.len() < LARGEST));
    let units: Vec<usize> =
        oversize.values().map(|part| serde_json::from_slice::<MemoryRecord>(part).unwrap().units.len()).collect();
    assert!(units.iter().filter(|units| **units > 0).count() > 1, "units are divided: {units:?}");

    // An instance that starts again reads the parts as one window, and a deletion reaches all of them.
    service.stop();
    let service = home.run();
    let deletion = r#"{"type": "deletion", "bank": "b", "turn": "7", "version": 1}"#;
    let deletion = TurnEvent::from_json(deletion.as_bytes()).unwrap();
    home.log().append_turns(std::slice::from_ref(&deletion)).unwrap();
    home.extracted();
    whole.log().append_turns(&[deletion]).unwrap();
    whole.catch_up().unwrap();
    assert_eq!(home.census(), census(&whole), "{}", home.told());
    let evidence = ask(&whole, "b", "Which boats does the harbour report count?");
    let asked = ["ask", "Which boats does the harbour report count?", "--bank", "b", "--pipeline", home.path()];
    let answer = ripplemem(&asked);
    assert_eq!(String::from_utf8_lossy(&answer.stdout), evidence.context, "{answer:?}{}", home.told());
    service.kill();
}
