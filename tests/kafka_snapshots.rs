//! Snapshots of a running service on request.

use super::{
    broker_process::Broker,
    kafka::{Home, load, turn, uninterrupted, wait},
    support::{fails, ripplemem},
};

/// A running service writes the snapshot, as the place's only writer; without one, the command does.
#[test]
fn a_service_writes_a_snapshot_on_request() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_snapshots::a_service_writes_a_snapshot_on_request") else { return };
    let tables = "[http]\nlisten = \"127.0.0.1:0\"\n[snapshot]\ndirectory = \"snapshots\"\ninterval_seconds = 100000\n";
    let home = Home::with(&broker, "asked", "", tables);
    let units = uninterrupted().units;
    let service = home.run();
    wait(&|| home.told(), || home.told().contains("ready: "));
    load(&home);
    home.extracted();
    let mut numbers = Vec::new();
    let ask = || {
        let output = ripplemem(&["snapshot", "--pipeline", home.path()]);
        fails(&output, 0, &[]);
        assert!(!String::from_utf8_lossy(&output.stderr).contains("no service answers"), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    wait(&|| home.told(), || {
        numbers.push(ask());
        numbers.last().is_some_and(|told| told.contains(&format!(" {units} units")))
    });
    assert_eq!(Some(&ask()), numbers.last(), "nothing has changed");
    // Reading history writes no snapshot.
    let output = ripplemem(&["diff", "--bank", "sample/harbour", "--from", "0", "--pipeline", home.path()]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("another process"), "{output:?}");
    assert_eq!(Some(&ask()), numbers.last());
    assert!(!home.told().contains("no snapshot is written"), "{}", home.told());
    service.stop();
    let output = ripplemem(&["snapshot", "--pipeline", home.path()]);
    fails(&output, 0, &["no service answers"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!(" {units} units")), "{output:?}");
    assert_eq!(home.census(), uninterrupted());
}
