//! Tests banks that sleep: they answer, change and are listed as those that are awake.

use crate::{
    PipelineDriver,
    shard_tests::{bank, pipeline},
};
use pipeline::PipelineError;
use replica::{QueryRequest, Replica};
use types::{
    config::Pipeline,
    model::{Question, TurnEvent},
};

/// Sleep is on, and no bank falls asleep by itself.
const SLEEP: &str = "memory.sleep_after_seconds = 100000";

fn open(pipeline: &Pipeline) -> PipelineDriver {
    PipelineDriver::open(pipeline, &mut |_| {}).expect("a service")
}

/// Turns of a session that stays open.
fn turns(bank: &str, session: &str, numbers: std::ops::Range<usize>) -> Vec<TurnEvent> {
    let turn = |n: usize| {
        format!(
            r#"{{"type": "turn", "bank": "{bank}", "session": "{session}", "turn": "{session}-{n}", "speaker": "Ann",
            "time": "2024-05-0{}T10:{:02}:00Z", "text": "I keep the {n}. kayak of {session} in Bremen."}}"#,
            1 + n / 60,
            n % 60
        )
    };
    let parsed = |line: String| TurnEvent::from_json(line.replace('\n', " ").as_bytes()).expect("a good turn");
    numbers.map(|n| parsed(turn(n))).collect()
}

fn deletion(bank: &str, turn: &str) -> TurnEvent {
    let line = format!(r#"{{"type": "deletion", "bank": "{bank}", "turn": "{turn}", "version": 9}}"#);
    TurnEvent::from_json(line.as_bytes()).expect("a deletion")
}

fn put(service: &mut PipelineDriver, events: &[TurnEvent]) {
    service.log().append_turns(events).expect("room");
    service.catch_up().expect("extracted");
}

fn sleep(service: &mut PipelineDriver, name: &str) {
    service.replica().request_sleep(&bank(name));
    service.catch_up().expect("nothing to do");
    assert!(service.replica().is_asleep(&bank(name)), "{name} sleeps");
}

fn hash(replica: &Replica, name: &str) -> Result<u128, PipelineError> {
    Ok(replica.digest(Some(&bank(name)))?.value.hash)
}

fn answer(service: &PipelineDriver, name: &str) -> String {
    let question = Question::new(bank(name), "Where is the 3. kayak?");
    let found = service.ask(&question).expect("an answer");
    let units: Vec<_> = found.units.iter().map(|unit| (unit.id, unit.restatement.clone())).collect();
    format!("{units:?} {}", found.context)
}

#[test]
fn a_bank_answers_and_changes_as_one_that_never_slept() {
    for snapshots in [false, true] {
        let home = tempfile::tempdir().expect("a directory");
        let awake = pipeline(&home.path().join("awake"), snapshots, "log.partitions = 2");
        let sleeps = pipeline(&home.path().join("sleeps"), snapshots, &format!("log.partitions = 2\n{SLEEP}"));
        let (mut awake, mut sleeping) = (open(&awake), open(&sleeps));
        let steps: Vec<Vec<TurnEvent>> = vec![
            [turns("a", "s", 0..5), turns("b", "s", 0..9)].concat(),
            turns("a", "s", 5..23),
            vec![deletion("a", "s-3"), deletion("a", "unseen-1")],
            turns("a", "t", 0..4),
            turns("a", "unseen", 0..3),
            turns("a", "s", 2..7),
        ];
        for events in &steps {
            put(&mut awake, events);
            put(&mut sleeping, events);
            let (ours, theirs) = (sleeping.replica(), awake.replica());
            assert_eq!(hash(ours, "a").expect("known"), hash(theirs, "a").expect("known"));
            let counted = theirs.counts(&bank("a")).expect("known").value;
            sleep(&mut sleeping, "a");
            let ours = sleeping.replica();
            let kept = ours.counts(&bank("a")).expect("known").value;
            assert_eq!(
                (kept.units, kept.semantic_edges, kept.languages),
                (counted.units, counted.semantic_edges, counted.languages)
            );
            assert_eq!(ours.banks(&|_| true), awake.replica().banks(&|_| true));
            assert!(ours.last_append_ms(&bank("a")).is_some());
            assert!(ours.is_asleep(&bank("a")), "listings and counts wake no bank");
            assert!(!ours.is_asleep(&bank("b")));
        }
        assert_eq!(answer(&sleeping, "a"), answer(&awake, "a"));
        assert!(!sleeping.replica().is_asleep(&bank("a")));
        sleep(&mut sleeping, "a");
        sleep(&mut sleeping, "b");
        let whole = |service: &PipelineDriver| service.replica().digest(None).expect("counts").value.hash;
        assert_eq!(whole(&sleeping), whole(&awake));
        let status = sleeping.replica().sleep_status().expect("banks sleep");
        assert!(status.wakes >= 8, "{status:?}");
        assert_eq!(awake.replica().sleep_status(), None);
        // A snapshot that is taken while all sleep restores all.
        sleep(&mut sleeping, "a");
        sleep(&mut sleeping, "b");
        sleeping.replica().snapshot().expect("written");
        drop(sleeping);
        let again = open(&sleeps);
        for name in ["a", "b"] {
            assert_eq!(hash(again.replica(), name).expect("known"), hash(awake.replica(), name).expect("known"));
        }
        assert_eq!(answer(&again, "a"), answer(&awake, "a"));
    }
}

#[test]
fn a_bank_that_is_watched_stays_awake() {
    let home = tempfile::tempdir().expect("a directory");
    let mut service = open(&pipeline(home.path(), false, SLEEP));
    put(&mut service, &turns("a", "s", 0..5));
    let watched = service.replica().changes().watch(&bank("a"));
    service.replica().request_sleep(&bank("a"));
    service.catch_up().expect("nothing to do");
    assert!(!service.replica().is_asleep(&bank("a")));
    drop(watched);
    sleep(&mut service, "a");
    assert!(matches!(hash(service.replica(), "unknown"), Err(PipelineError::UnknownBank { .. })));
}

#[test]
fn a_sleeping_bank_without_turns_counts_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let mut service = open(&pipeline(home.path(), false, SLEEP));
    put(&mut service, &[turns("a", "s", 0..2), turns("b", "s", 0..2)].concat());
    put(&mut service, &[deletion("a", "s-0"), deletion("a", "s-1")]);
    sleep(&mut service, "a");
    let whole = service.replica().digest(None).expect("counts").value;
    assert_eq!(whole.hash, hash(service.replica(), "b").expect("known"));
}

#[test]
fn nothing_is_kept_of_what_a_sleeping_bank_held_in_memory() {
    let home = tempfile::tempdir().expect("a directory");
    let mut service = open(&pipeline(home.path(), false, SLEEP));
    put(&mut service, &[turns("a", "s", 0..40), turns("b", "s", 0..3)].concat());
    let before = service.replica().footprint(None).expect("bytes").value;
    sleep(&mut service, "a");
    let after = service.replica().footprint(None).expect("bytes").value;
    let of_b = service.replica().footprint(Some(&bank("b"))).expect("bytes").value;
    assert_eq!(after, of_b, "of {before:?}");
}

#[test]
fn the_token_with_most_in_memory_frees_its_own_banks_first() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = pipeline(home.path(), false, SLEEP);
    let mut service = open(&settings);
    let names: Vec<String> = (0..12).map(|n| format!("x{n}")).chain(["busy".to_owned()]).collect();
    for name in &names {
        put(&mut service, &turns(name, "s", 0..12));
    }
    // About four of the thirteen fit.
    let bytes = service.replica().sleep_status().expect("banks sleep").awake_bytes * 9 / 26;
    drop(service);
    let mut limited = settings.clone();
    limited.memory.most_bytes = bytes;
    let mut service = open(&limited);
    let ask = |service: &PipelineDriver, name: &str, token: &str| {
        let question = Question::new(bank(name), "Where is the 3. kayak?");
        let asked = QueryRequest { token: Some(token.into()), ..QueryRequest::now(question) };
        service.query_queue().expect("a queue").ask_and_wait(asked).expect("an answer");
    };
    assert_eq!(service.replica().sleep_status().expect("banks sleep").awake, 0);
    ask(&service, "busy", "tenant");
    for name in &names[..12] {
        ask(&service, name, "crawler");
        service.catch_up().expect("nothing to do");
        assert!(!service.replica().is_asleep(&bank("busy")), "{name}");
    }
    let status = service.replica().sleep_status().expect("banks sleep");
    assert!(status.asleep >= 8 && status.awake_bytes <= bytes, "{status:?}");
}

#[test]
fn a_start_leaves_banks_asleep_until_they_are_used() {
    for snapshots in [false, true] {
        let home = tempfile::tempdir().expect("a directory");
        let awake = pipeline(&home.path().join("awake"), snapshots, "log.partitions = 2");
        let sleeps = pipeline(&home.path().join("sleeps"), snapshots, &format!("log.partitions = 2\n{SLEEP}"));
        let (mut theirs, mut ours) = (open(&awake), open(&sleeps));
        let both = |ours: &mut PipelineDriver, theirs: &mut PipelineDriver, events: Vec<TurnEvent>| {
            put(ours, &events);
            put(theirs, &events);
        };
        let names = ["a", "b", "c", "d"];
        for name in names {
            both(&mut ours, &mut theirs, turns(name, "s", 0..21));
        }
        both(&mut ours, &mut theirs, vec![deletion("d", "s-2")]);
        ours.replica().snapshot().expect("written");
        // The snapshot lacks these.
        both(&mut ours, &mut theirs, turns("b", "s", 21..24));
        both(&mut ours, &mut theirs, (0..21).map(|n| deletion("c", &format!("s-{n}"))).collect());
        drop(ours);
        let mut ours = open(&sleeps);
        let asleep: Vec<bool> = names.iter().map(|name| ours.replica().is_asleep(&bank(name))).collect();
        let expected = if snapshots { [true, false, false, true] } else { [true; 4] };
        assert_eq!(asleep, expected, "with snapshots: {snapshots}");
        assert_eq!(ours.replica().banks(&|_| true), theirs.replica().banks(&|_| true));
        let deleted = |service: &PipelineDriver| service.log().deletions().covers(&bank("d"), "s-2", 3);
        assert!(deleted(&ours), "what was deleted is known without waking its bank");
        assert_eq!(answer(&ours, "a"), answer(&theirs, "a"));
        assert!(ours.replica().is_asleep(&bank("d")), "the first answer comes while others sleep");
        both(&mut ours, &mut theirs, [turns("d", "s", 21..40), vec![deletion("b", "s-1")]].concat());
        both(&mut ours, &mut theirs, turns("d", "s", 0..3));
        let hashes = |service: &PipelineDriver| -> Vec<Option<u128>> {
            names.iter().map(|name| hash(service.replica(), name).ok()).collect()
        };
        assert_eq!(hashes(&ours), hashes(&theirs));
        // Without sleep, the snapshot that was continued by sleeping banks restores the same.
        ours.replica().snapshot().expect("written");
        drop(ours);
        let again = open(&Pipeline { memory: awake.memory.clone(), ..sleeps.clone() });
        assert_eq!(hashes(&again), hashes(&theirs));
        assert_eq!(answer(&again, "d"), answer(&theirs, "d"));
    }
}

/// Random events, sleeps, questions, snapshots and starts: the memory stays the one that never slept.
#[test]
fn random_sleeps_wakes_and_starts_change_nothing() {
    for seed in 0..3_u64 {
        let home = tempfile::tempdir().expect("a directory");
        let snapshots = seed % 2 == 0;
        let awake = pipeline(&home.path().join("awake"), false, "log.partitions = 2");
        let sleeps = pipeline(&home.path().join("sleeps"), snapshots, &format!("log.partitions = 2\n{SLEEP}"));
        let (mut theirs, mut ours) = (open(&awake), open(&sleeps));
        let mut state = seed;
        let mut below = |n: u64| {
            // SplitMix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z ^ (z >> 31)) % n
        };
        let names = ["a", "b", "c"];
        let mut slept = 0;
        for _ in 0..40 {
            let name = names[below(3) as usize];
            let (first, session) = (below(30) as usize, ["s", "t"][below(2) as usize]);
            match below(10) {
                0..=3 => {
                    let events = turns(name, session, first..first + 1 + below(9) as usize);
                    put(&mut ours, &events);
                    put(&mut theirs, &events);
                }
                4 => {
                    let events = [deletion(name, &format!("{session}-{first}"))];
                    put(&mut ours, &events);
                    put(&mut theirs, &events);
                }
                5..=7 => {
                    ours.replica().request_sleep(&bank(name));
                    ours.catch_up().expect("nothing to do");
                    slept += usize::from(ours.replica().is_asleep(&bank(name)));
                }
                8 if below(3) == 0 => {
                    drop(ours);
                    ours = open(&sleeps);
                }
                8 => drop(ours.replica().snapshot().expect("written")),
                _ => assert_eq!(hash(ours.replica(), name).ok(), hash(theirs.replica(), name).ok(), "seed {seed}"),
            }
        }
        for name in names {
            assert_eq!(hash(ours.replica(), name).ok(), hash(theirs.replica(), name).ok(), "seed {seed}: {name}");
        }
        assert!(slept > 3, "seed {seed}: {slept}");
        // What was recorded in between restores the same without sleep.
        ours.replica().snapshot().expect("written");
        drop(ours);
        let again = open(&Pipeline { memory: awake.memory.clone(), ..sleeps.clone() });
        for name in names {
            assert_eq!(hash(again.replica(), name).ok(), hash(theirs.replica(), name).ok(), "seed {seed}: {name}");
        }
    }
}
