//! A memory that stays open keeps writing its snapshots, and lists its turns by pages.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{Memory, TurnPage, TurnPageRequest, TurnSpan};
use pipeline::{StoredTurn, stored_turns};
use types::{
    config::Pipeline,
    model::{Bank, TurnEvent},
};

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

/// A memory with these events, in a directory that is kept as long as it is.
struct ListedMemory {
    memory: Memory,
    banks: [Bank; 2],
    _home: tempfile::TempDir,
}

impl ListedMemory {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let settings = "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"";
        let mut pipeline = Pipeline::parse(settings).expect("a pipeline");
        pipeline.log.directory = home.path().join("log");
        let banks = ["a", "b"].map(|name| Bank::parse(name).expect("a name"));
        Self { memory: Memory::open(&pipeline).expect("opened"), banks, _home: home }
    }

    fn put(&self, events: impl Iterator<Item = serde_json::Value>) {
        let events = events.map(|event| TurnEvent::from_json(event.to_string().as_bytes()).expect("an event"));
        let written = self.memory.put(events.collect::<Vec<_>>()).expect("put");
        assert!(self.memory.wait_for(&written, Instant::now() + Duration::from_secs(300)));
        // Records of windows that lost many turns are written once more.
        while self.banks.iter().any(|bank| self.memory.replica().is_in_part(bank)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// All turns of some banks, from their records alone.
    fn all(&self, banks: &[Bank]) -> Vec<StoredTurn> {
        let of = |bank| stored_turns(&**self.memory.log(), bank, &|_| true, usize::MAX).expect("read");
        let mut all: Vec<StoredTurn> = banks.iter().flat_map(of).collect();
        all.sort_by_key(|held| held.turn.time);
        all
    }

    fn page(&self, banks: &[Bank], until_ms: Option<i64>, skip: usize, limit: usize) -> TurnPage {
        self.memory.page_of_turns(banks, TurnPageRequest { until_ms, skip, limit }).expect("a page")
    }

    /// How many records this reads.
    fn records_read(&self, work: impl FnOnce()) -> usize {
        let read = || self.memory.places.records_read.load(Ordering::Relaxed);
        let before = read();
        work();
        read() - before
    }
}

/// Turn `number`: every second one at the moment of the one before, in sessions that overlap.
fn overlapping(bank: &str, number: usize, version: u64, minute: usize) -> serde_json::Value {
    let time = format!("2024-05-{:02}T{:02}:{:02}:00Z", 1 + minute / 1_440, minute / 60 % 24, minute % 60);
    serde_json::json!({"bank": bank, "turn": format!("t{number}"), "version": version, "speaker": "Ann",
        "session": format!("s{}", number % 7), "text": format!("Report {number}.{version} counts the boats"), "time": time})
}

#[test]
fn pages_are_parts_of_the_whole_list_whatever_is_edited_and_deleted() {
    let listed = ListedMemory::new();
    let mut random = fastrand::Rng::with_seed(7);
    listed.put((0..120).map(|n| overlapping(if n % 3 == 0 { "a" } else { "b" }, n, 0, n / 2 * 9)));
    for round in 1..=6 {
        let changed: Vec<usize> = (0..8).map(|_| random.usize(0..120)).collect();
        listed.put(changed.into_iter().enumerate().map(|(index, n)| {
            let bank = if n % 3 == 0 { "a" } else { "b" };
            match index % 2 {
                0 => overlapping(bank, n, round, random.usize(0..600)),
                _ => serde_json::json!({"type": "deletion", "bank": bank, "turn": format!("t{n}"), "version": round}),
            }
        }));
        for banks in [&listed.banks[..], &listed.banks[1..]] {
            let all = listed.all(banks);
            for _ in 0..40 {
                let (skip, limit) = (random.usize(0..130), random.usize(1..30));
                let end = all.len().saturating_sub(skip);
                let page = listed.page(banks, None, skip, limit);
                assert_eq!(page, TurnPage { turns: all[end.saturating_sub(limit)..end].to_vec(), count: all.len() });
                let until = all[random.usize(0..all.len())].turn.time.unix_ms;
                let count = all.partition_point(|held| held.turn.time.unix_ms <= until);
                let ties = all[..count].iter().filter(|held| held.turn.time.unix_ms == until).count();
                let first = count.saturating_sub(limit + ties);
                let page = listed.page(banks, Some(until), 0, limit);
                assert_eq!(page, TurnPage { turns: all[first..count].to_vec(), count });
            }
            for bank in banks {
                let all = listed.all(std::slice::from_ref(bank));
                let span = TurnSpan { count: all.len(), first: all[0].turn.time, last: all[all.len() - 1].turn.time };
                assert_eq!(listed.memory.span_of_turns(bank).expect("a span"), Some(span));
                let ids: Vec<String> = (0..10).map(|_| format!("t{}", random.usize(0..150))).collect();
                let held = all.into_iter().filter(|held| ids.contains(&held.turn.turn));
                assert_eq!(listed.memory.turns_by_ids(bank, &ids).expect("turns"), held.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_page_and_a_turn_read_their_own_records_and_those_that_are_new() {
    let listed = ListedMemory::new();
    let bank = std::slice::from_ref(&listed.banks[1]);
    listed.put((0..400).map(|n| overlapping("b", n, 0, n / 2 * 9)));
    let all = listed.records_read(|| assert_eq!(listed.page(bank, None, 0, 1).count, 400));
    assert!(all > 60, "only {all} records hold 400 turns");
    for skip in [0, 200, 380] {
        let few = listed.records_read(|| assert_eq!(listed.page(bank, None, skip, 20).turns.len(), 20));
        assert!((1..=40).contains(&few), "{few} of {all} records for 20 turns behind {skip}");
    }
    let one = listed.records_read(|| assert!(listed.memory.turn(&bank[0], "t7").expect("looked up").is_some()));
    assert_eq!(one, 1);
    let none = listed.records_read(|| {
        assert!(listed.memory.turn(&bank[0], "t400").expect("looked up").is_none());
        assert_eq!(listed.memory.span_of_turns(&bank[0]).expect("a span").map(|span| span.count), Some(400));
    });
    assert_eq!(none, 0);
    listed.put(std::iter::once(overlapping("b", 7, 1, 27)));
    let edited = listed.records_read(|| {
        let held = listed.memory.turn(&bank[0], "t7").expect("looked up").expect("it is there");
        assert!(held.turn.text.starts_with("Report 7.1"));
    });
    assert!((2..=12).contains(&edited), "{edited} of {all} records after an edit");
}
