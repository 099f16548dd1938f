//! The service on a real broker that is lost for a while, has deleted what was not read, or brings more than can be
//! read at once.

use std::time::{Duration, Instant};

use logs::{Log, LogRecord, Topic, partition_of};
use rdkafka::{Offset, TopicPartitionList};
use types::model::{Bank, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, administer, load, sample, turn, turns, uninterrupted, wait},
    kafka_http::http_of,
    oracle::Dice,
    support::{fails, memory_kib, ripplemem},
};

/// Mostly idle, so it runs beside other tests. The broker is away until the service has left the partitions, because
/// the group's session has passed; `make soak` leaves it away for half a minute more.
#[test]
fn the_service_outlives_the_loss_of_its_broker() {
    let Some(broker) = Broker::start("kafka_outages::the_service_outlives_the_loss_of_its_broker", &[]) else {
        return;
    };
    let more_seconds = std::env::var("RIPPLEMEM_OUTAGE_SECONDS").map_or(0, |seconds| seconds.parse().unwrap());
    let home = Home::with(&broker, "outlived", "", "[http]\nlisten = \"127.0.0.1:0\"\n");
    // How long a commit waits for the broker: it is away for longer.
    home.change("timeout_seconds = 120", "timeout_seconds = 15");
    let _service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    load(&home);
    let http = http_of(&home, 1);
    let known = http.get("/v1/status")["after"].clone();
    assert!(known.as_str().unwrap().contains(':'), "{known}");
    broker.act("kill", None);
    // A request to the cluster may take longer.
    let asked = Instant::now();
    let status = http.get("/v1/status");
    assert_eq!(status["after"], known, "what was known");
    assert!(status["problem"].is_string(), "{status}");
    assert_eq!(http.send("GET", "/v1/forgets", "", b"").0, 500);
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    wait(&|| home.told(), || home.told().matches("another instance extracts the partition").count() == 2);
    std::thread::sleep(Duration::from_secs(more_seconds));
    broker.act("restart", None);
    let back = Instant::now();
    home.extracted();
    println!("extracted {:.1} s after the broker was back", back.elapsed().as_secs_f64());
    home.reaches(&uninterrupted());
}

/// The broker is killed at moments of a load and comes back before anyone gives a request up. Whatever was open then is
/// whole afterwards. `make soak` has more rounds.
#[test]
fn a_broker_killed_at_any_moment_leaves_the_memory_whole() {
    let name = "kafka_outages::a_broker_killed_at_any_moment_leaves_the_memory_whole";
    let Some(broker) = Broker::start(name, &[]) else { return };
    let rounds = std::env::var("RIPPLEMEM_BROKER_KILL_ROUNDS").map_or(2, |rounds| rounds.parse().unwrap());
    let expected = uninterrupted();
    for round in 0..rounds {
        let mut dice = Dice(round);
        let home = Home::new(&broker, &format!("kills-{round}"), "embed.read_turns = 2\n");
        home.change("embed.read_turns = 16\n", "");
        let _service = home.run();
        wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
        load(&home);
        std::thread::sleep(Duration::from_millis(dice.below(1_000)));
        broker.act("kill", None);
        std::thread::sleep(Duration::from_millis(dice.below(6_000)));
        broker.act("restart", None);
        let back = Instant::now();
        home.extracted();
        let extracted = back.elapsed().as_secs_f64();
        home.reaches(&expected);
        let left = home.told().matches("the cluster left a transaction open").count();
        println!("round {round}: extracted {extracted:.1} s after the broker was back; {left} left open");
    }
}

/// The cluster forgets how the last transactions ended. Nobody has written anything since, and a reader that comes then
/// is shown all of it.
#[test]
fn what_the_cluster_left_open_is_ended_by_a_running_service() {
    let name = "kafka_outages::what_the_cluster_left_open_is_ended_by_a_running_service";
    let Some(broker) = Broker::start(name, &[]) else { return };
    let home = Home::new(&broker, "left", "");
    let _service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    load(&home);
    home.extracted();
    let expected = home.census();
    let written = (0..2).filter(|p| sample().iter().any(|e| partition_of(e.bank(), 2) == *p));
    broker.kill_without_markers(&written.map(|partition| format!("left.memory-{partition}")).collect::<Vec<_>>());
    broker.act("restart", None);
    home.reaches(&expected);
    assert!(home.told().contains("the cluster left a transaction open"), "{}", home.told());
}

/// The broker that leads most partitions is killed while turns arrive, and restarted later.
#[test]
fn the_service_survives_the_loss_of_one_of_three_brokers() {
    let _turn = turn();
    let Some(broker) =
        Broker::start("kafka_outages::the_service_survives_the_loss_of_one_of_three_brokers", &["--brokers", "3"])
    else {
        return;
    };
    let home = Home::with(&broker, "three", "", "replication = 3\n");
    let _service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    let (log, events) = (home.log(), sample());
    let (before, after) = events.split_at(events.len() / 3);
    log.append_turns(before).unwrap();
    broker.act("kill", Some(1));
    for event in after {
        log.append_turns(std::slice::from_ref(event)).unwrap();
    }
    home.extracted();
    home.reaches(&uninterrupted());
    broker.act("restart", Some(1));
    log.append_turns(&events).unwrap();
    home.extracted();
    home.reaches(&uninterrupted());
    // Turns acknowledged without that broker are in the topic once.
    let there = turns(&log);
    assert_eq!(there.len(), 2 * events.len());
}

#[test]
fn turns_that_expired_unread_stop_a_start_until_the_user_accepts_it() {
    let _turn = turn();
    let test = "kafka_outages::turns_that_expired_unread_stop_a_start_until_the_user_accepts_it";
    let Some(broker) = Broker::shared(test) else { return };
    let home = Home::new(&broker, "expired", "");
    let service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    let (log, events) = (home.log(), sample());
    let (first, second) = events.split_at(40);
    log.append_turns(first).unwrap();
    home.extracted();
    service.stop();
    log.append_turns(second).unwrap();
    let partition = partition_of(events[0].bank(), 2);
    let end = log.end(Topic::Turns, partition).unwrap();
    let position = home.log().read_position(partition).unwrap();
    assert!(position < end - 10);
    administer(&broker, async |admin, options| {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset("expired.turns", partition as i32, Offset::Offset(end as i64 - 10)).unwrap();
        admin.delete_records(&list, options).await.unwrap();
    });
    let refused = ripplemem(&["run", home.path()]);
    fails(&refused, 1, &["have expired unread", "log.kafka.expired", &format!("is at offset {position}")]);
    home.change("[log.kafka]", "[log.kafka]\nexpired = \"earliest\"");
    let _service = home.run();
    home.extracted();
    let left = home.log().read(Topic::Turns, partition, end - 10, 100).unwrap().records;
    assert_eq!(left.len(), 10);
    assert_eq!(home.log().read_position(partition).unwrap(), end, "extracted to the end");
    let text = |record: &LogRecord| match TurnEvent::from_json(record.value.as_deref().unwrap()).unwrap() {
        TurnEvent::Turn(turn) => Some(serde_json::to_string(&turn.text).unwrap()),
        _ => None,
    };
    let last = left.iter().filter_map(text).next_back().unwrap();
    let memory = home.log().read(Topic::Memory, partition, 0, 1_000).unwrap().records;
    let said =
        |record: &LogRecord| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).contains(&last);
    assert!(memory.iter().any(said), "the remaining turns are remembered");
}

/// The service's memory does not grow with its lag, and a new turn is extracted after the flood.
#[test]
fn a_flood_is_read_in_bounded_memory() {
    let _turn = turn();
    const GROWTH_MEGABYTES: u64 = 128;
    const MAX: u64 = 500_000;
    let Some(broker) = Broker::shared("kafka_outages::a_flood_is_read_in_bounded_memory") else { return };
    let seconds = std::env::var("RIPPLEMEM_FLOOD_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    let home = Home::new(&broker, "flood", "");
    home.change("embed.read_turns = 16", "embed.read_turns = 512");
    let service = home.run();
    let peak_megabytes = || memory_kib(service.0.id(), "VmHWM:") / 1_024;
    let mut events = Vec::new();
    for n in 0..10 {
        for mut event in sample() {
            if let TurnEvent::Turn(turn) = &mut event {
                turn.bank = Bank::parse(&format!("flood/{n}")).unwrap();
                events.push(event);
            }
        }
    }
    let log = home.log();
    // Twice, so that the peak before the flood includes known turns.
    for _ in 0..2 {
        log.append_turns(&events).unwrap();
        home.extracted();
    }
    let (before, remembered) = (peak_megabytes(), home.census());
    let begun = Instant::now();
    let (mut sent, mut waiting, mut looked) = (2 * events.len() as u64, 0, Instant::now());
    let read = || (0..2).map(|p| log.read_position(p).unwrap()).sum::<u64>();
    // On a busy machine a lag takes longer to build up.
    let least = 4 * events.len() as u64;
    while begun.elapsed() < Duration::from_secs(seconds) || waiting <= least {
        assert!(begun.elapsed() < Duration::from_secs(60 + seconds), "no flood: only {waiting} turns were waiting");
        log.append_turns(&events).unwrap();
        sent += events.len() as u64;
        if looked.elapsed() > Duration::from_secs(1) {
            let left = sent - read();
            waiting = waiting.max(left);
            // A larger lag would only prolong the test.
            std::thread::sleep(if left > MAX { Duration::from_secs(5) } else { Duration::ZERO });
            looked = Instant::now();
        }
    }
    let flooded = begun.elapsed().as_secs_f64();
    while read() < sent {
        assert!(begun.elapsed() < Duration::from_secs(120 + 10 * seconds), "timed out: {}", home.told());
        std::thread::sleep(Duration::from_millis(500));
    }
    let peak = peak_megabytes();
    println!(
        "{sent} turns in a flood of {flooded:.0} s, a lag of up to {waiting}, read after {:.0} s; \
         {before} MB before, up to {peak} MB",
        begun.elapsed().as_secs_f64()
    );
    assert!(peak < before + GROWTH_MEGABYTES, "{before} MB grew to {peak} MB");
    assert_eq!(home.census(), remembered);
    let turn = serde_json::json!({"bank": "flood/1", "turn": "new", "speaker": "Ann", "text": "The lighthouse is green.",
        "time": "2024-05-06T09:00:00Z"});
    log.append_turns(&[TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()]).unwrap();
    let partition = partition_of(&Bank::parse("flood/1").unwrap(), 2);
    let after = format!("{partition}:{}", log.end(Topic::Turns, partition).unwrap() - 1);
    let arguments = ["ask", "What is green?", "--bank", "flood/1", "--after", &after, "--pipeline", home.path()];
    let answered = ripplemem(&arguments);
    assert!(String::from_utf8_lossy(&answered.stdout).contains("lighthouse"), "{answered:?}{}", home.told());
}
