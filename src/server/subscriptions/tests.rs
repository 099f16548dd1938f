//! Tests followed questions and banks on an open memory: which followers share one answer, what a reset says, and which
//! followers are dropped.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BankEvent, BankFollower, QuestionSubscriber, RejectedRecord, SubscriptionEvent, SubscriptionHub,
    evidence_version::EvidenceVersion,
    live_question::{FollowerSlot, FollowerSlotLimits},
};
use crate::{access::Caller, quota::QuotaLimits};
use ripplemem::Memory;
use types::{
    config::Pipeline,
    model::{Bank, DeadLetter, EventTime, PrecedingTurn, Question, Turn},
};

const LONG: Duration = Duration::from_secs(60);

struct Home {
    hub: SubscriptionHub,
    memory: Arc<Memory>,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let pipeline =
            Pipeline::parse(&format!("version = 1\nembed.model = \"fixed\"\nlog.directory = {log:?}\n")).unwrap();
        let memory = Arc::new(Memory::open(&pipeline).unwrap());
        let hub = SubscriptionHub::new(Arc::clone(&memory), LONG, QuotaLimits { all: 1_000, of_one: 1_000 });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { hub, memory, runtime, _directory: directory }
    }

    fn put(&self, id: &str, text: &str) {
        self.put_of("Ann", id, text);
    }

    fn put_of(&self, speaker: &str, id: &str, text: &str) {
        let time = EventTime::parse("2024-05-01T10:00:00Z").unwrap();
        let written = self.memory.put([Turn::new(bank(), id, speaker, text, time)]).unwrap();
        assert!(self.memory.wait_for(&written, Instant::now() + LONG));
    }

    fn follow(&self, text: &str) -> QuestionSubscriber {
        self.follow_question(Question::new(bank(), text))
    }

    fn follow_bank(&self, last_event_id: Option<&str>) -> BankFollower {
        let who = Arc::new(Caller::anybody());
        self.runtime.block_on(self.hub.follow_bank(&who, &bank(), last_event_id)).unwrap()
    }

    fn follow_question(&self, question: Question) -> QuestionSubscriber {
        self.runtime.block_on(self.hub.subscribe(&Arc::new(Caller::anybody()), question, None)).unwrap()
    }

    fn next(&self, subscriber: &mut QuestionSubscriber) -> SubscriptionEvent {
        self.runtime.block_on(subscriber.next(LONG)).expect("it goes on")
    }

    /// The events up to the next progress, by name.
    fn names(&self, subscriber: &mut QuestionSubscriber) -> Vec<&'static str> {
        let mut names = Vec::new();
        loop {
            names.push(match self.next(subscriber) {
                SubscriptionEvent::Snapshot(_) => "snapshot",
                SubscriptionEvent::Delta(_) => "delta",
                SubscriptionEvent::Reset(_) => "reset",
                SubscriptionEvent::Progress(..) => return names,
                other => panic!("{other:?}"),
            });
        }
    }
}

fn bank() -> Bank {
    Bank::parse("a").unwrap()
}

#[test]
fn those_who_follow_the_same_question_share_it_and_nobody_asks_for_those_who_left() {
    let home = Home::new();
    home.put("1", "The red kayak is in the boathouse");
    let mut followers: Vec<QuestionSubscriber> = (0..100).map(|_| home.follow("Where is the red kayak?")).collect();
    let mut other = home.follow("Who has the kayak?");
    assert_eq!(home.hub.questions(), 2);
    for follower in &mut followers {
        assert_eq!(home.names(follower), ["snapshot"]);
    }
    assert_eq!(home.names(&mut other), ["snapshot"]);
    home.put("2", "Marta took the red kayak");
    for follower in &mut followers {
        while home.names(follower) != ["delta"] {}
    }
    while home.names(&mut other) != ["delta"] {}
    drop(followers);
    let asked = home.hub.asked();
    home.put("3", "The red kayak is back");
    while home.names(&mut other) != ["delta"] {}
    assert_eq!(home.hub.asked() - asked, 1, "the question that nobody follows is not asked");
}

/// Each has an answer of its own, and one that is in all the same shares it.
#[test]
fn a_question_of_another_asker_after_other_words_or_within_other_tokens_is_another_one() {
    let home = Home::new();
    home.put("1", "I keep my kayak in the old boathouse");
    home.put_of("Bo", "2", "I keep my kayak in the cellar at home");
    let question = |asker: Option<&str>, said: Option<&str>, most_tokens: Option<u32>| Question {
        asker: asker.map(str::to_owned),
        said_before: said
            .map(|text| PrecedingTurn { speaker: "Bo".to_owned(), text: text.to_owned() })
            .into_iter()
            .collect(),
        most_tokens,
        ..Question::new(bank(), "Where do I keep my kayak?")
    };
    let (ann, bo) = (question(Some("Ann"), None, None), question(Some("Bo"), None, None));
    let others = [
        question(None, None, None),
        question(Some("Ann"), Some("the cellar?"), None),
        question(Some("Ann"), Some("the boathouse?"), None),
        question(Some("Ann"), None, Some(500)),
    ];
    let first = |subscriber: &mut QuestionSubscriber| {
        let SubscriptionEvent::Snapshot(snapshot) = home.next(subscriber) else { panic!("no snapshot") };
        snapshot.units[0].excerpts[0].turn.clone()
    };
    let mut followers = [ann.clone(), bo].map(|question| home.follow_question(question));
    assert_eq!(home.hub.questions(), 2);
    let [of_ann, of_bo] = &mut followers;
    assert_eq!((first(of_ann), first(of_bo)), ("1".to_owned(), "2".to_owned()));
    let more = others.map(|question| home.follow_question(question));
    assert_eq!(home.hub.questions(), 6);
    let same = home.follow_question(ann);
    assert_eq!((home.hub.questions(), home.hub.asked()), (6, 6), "it shares the answer");
    drop((more, same));
}

#[test]
fn whoever_comes_back_gets_what_the_bank_holds_now_and_nothing_of_before() {
    let home = Home::new();
    home.put("1", "The red kayak is in the boathouse");
    let mut other = home.follow("Who has the kayak?");
    assert_eq!(home.names(&mut other), ["snapshot"]);
    drop(home.follow("Where is the red kayak?"));
    home.put("2", "Marta took the red kayak");
    while home.names(&mut other) != ["delta"] {}
    let mut follower = home.follow("Where is the red kayak?");
    assert_eq!(home.hub.questions(), 2, "it was still known");
    let SubscriptionEvent::Snapshot(snapshot) = home.next(&mut follower) else { panic!("no snapshot") };
    assert_eq!(snapshot.units.len(), 2);
}

#[test]
fn a_shard_that_is_another_one_now_resets_who_follows_its_banks() {
    let home = Home::new();
    home.put("1", "The red kayak is in the boathouse");
    let mut follower = home.follow("Where is the red kayak?");
    assert_eq!(home.names(&mut follower), ["snapshot"]);
    home.memory.replica().changes().note_lost(0);
    while home.names(&mut follower) != ["reset", "snapshot"] {}
}

#[test]
fn a_hub_that_is_closed_ends_its_followers_and_takes_no_other() {
    let home = Home::new();
    let mut follower = home.follow("Where is the red kayak?");
    home.hub.close();
    assert_eq!(home.runtime.block_on(follower.next(LONG)), None);
    let question = Question::new(bank(), "Where?");
    let again = home.runtime.block_on(home.hub.subscribe(&Arc::new(Caller::anybody()), question, None));
    assert!(again.is_err() || home.runtime.block_on(again.unwrap().next(LONG)).is_none());
}

#[test]
fn who_keeps_too_much_or_for_too_long_is_given_up() {
    let version = |number| Arc::new(EvidenceVersion { number, ..EvidenceVersion::empty(Vec::new()) });
    let slot = |held: u64| FollowerSlot { held: Some(version(held)), ..FollowerSlot::default() };
    let patient = FollowerSlotLimits { bytes: 0, behind: LONG };
    let mut current = slot(2);
    patient.drop_if_behind(&mut current, &version(2));
    assert!(current.held.is_some() && current.behind_since.is_none(), "it has the newest version");
    let mut behind = slot(1);
    patient.drop_if_behind(&mut behind, &version(2));
    assert!(behind.held.is_some() && behind.behind_since.is_some() && !behind.lagged, "it has time, and keeps nothing");
    let impatient = FollowerSlotLimits { behind: Duration::ZERO, ..patient };
    std::thread::sleep(Duration::from_millis(1));
    impatient.drop_if_behind(&mut behind, &version(3));
    assert!(behind.held.is_none() && behind.lagged);
}

/// The events up to the next progress, by name, and its id.
fn happened(home: &Home, follower: &mut BankFollower) -> (Vec<&'static str>, String) {
    let mut names = Vec::new();
    loop {
        names.push(match home.runtime.block_on(follower.next(LONG)).expect("it goes on") {
            BankEvent::Turn(_) => "turn",
            BankEvent::Window(_) => "window",
            BankEvent::UnitAdded(_) => "unit_added",
            BankEvent::UnitRemoved(_) => "unit_removed",
            BankEvent::Edges(_) => "edges",
            BankEvent::Rejected(_) => "rejected",
            BankEvent::Skipped(_) => "skipped",
            BankEvent::Reset(_) => "reset",
            BankEvent::Progress(id, _) => return (names, id),
            other => panic!("{other:?}"),
        });
    }
}

#[test]
fn a_bank_tells_what_happens_in_it_and_a_shard_that_is_another_one_resets_that() {
    let home = Home::new();
    let mut follower = home.follow_bank(None);
    assert_eq!(happened(&home, &mut follower).0, [""; 0], "it holds nothing yet");
    home.put("1", "The red kayak is in the boathouse");
    let (names, id) = happened(&home, &mut follower);
    assert_eq!(names, ["turn", "unit_added"]);
    drop(follower);
    // Nobody follows, and nothing is lost.
    home.put("2", "Marta took the red kayak");
    let mut again = home.follow_bank(Some(&id));
    let (names, _) = happened(&home, &mut again);
    assert_eq!(names[..2], ["turn", "unit_added"]);
    home.memory.replica().changes().note_lost(0);
    assert_eq!(happened(&home, &mut again).0, ["reset"]);
    home.hub.close();
    assert_eq!(home.runtime.block_on(again.next(LONG)), None);
}

/// The deletion itself may not be reported yet, as nobody followed when it came.
#[test]
fn who_comes_back_to_a_bank_is_sent_no_words_that_were_deleted_meanwhile() {
    let home = Home::new();
    home.put("1", "The blue canoe is in the attic");
    let mut follower = home.follow_bank(None);
    let (_, begin) = happened(&home, &mut follower);
    home.put("2", "The red kayak is in the boathouse");
    assert_eq!(happened(&home, &mut follower).0[..2], ["turn", "unit_added"]);
    drop(follower);
    let deleted = home.memory.forget(&bank(), "2").unwrap();
    assert!(home.memory.wait_for(&deleted.written, Instant::now() + LONG));
    let mut again = home.follow_bank(Some(&begin));
    let mut silent = 0;
    loop {
        let event = home.runtime.block_on(again.next(LONG)).expect("it goes on");
        assert!(!format!("{event:?}").contains("kayak"), "{event:?}");
        match event {
            BankEvent::Turn(turn) if turn.deleted => break,
            BankEvent::Turn(turn) => silent += usize::from(turn.text.is_empty()),
            BankEvent::UnitAdded(unit) => silent += usize::from(unit.label.is_empty()),
            _ => {}
        }
    }
    assert_eq!(silent, 2, "that it was said stays");
}

#[test]
fn a_rejected_record_is_told_to_its_bank_alone_and_once_to_who_comes_back() {
    let home = Home::new();
    let mut follower = home.follow_bank(None);
    let (_, begin) = happened(&home, &mut follower);
    let letter = |bank: Option<Bank>| {
        let payload = br#"{"turn":"3","text":"secret"}"#;
        DeadLetter::new("f:3".to_owned(), "no time".to_owned(), payload).in_bank(bank)
    };
    let other = Bank::parse("other").unwrap();
    home.memory.put_dead_letters(&[letter(None), letter(Some(other)), letter(Some(bank()))]).unwrap();
    let rejected = RejectedRecord { offset: 2, turn: Some("3".to_owned()), reason: "no time".to_owned() };
    assert_eq!(home.runtime.block_on(follower.next(LONG)), Some(BankEvent::Rejected(rejected)));
    let (nothing, id) = happened(&home, &mut follower);
    assert_eq!(nothing, [""; 0]);
    drop(follower);
    assert_eq!(happened(&home, &mut home.follow_bank(Some(&begin))).0, ["rejected"]);
    let mut later = home.follow_bank(Some(&id));
    home.put("1", "The red kayak is in the boathouse");
    assert_eq!(happened(&home, &mut later).0, ["turn", "unit_added"]);
}

/// One who does not read keeps nothing: the events that are kept are those of all.
#[test]
fn who_reads_too_slowly_is_told_that_something_is_left_out() {
    let home = Home::new();
    let (mut slow, mut quick) = (home.follow_bank(None), home.follow_bank(None));
    assert_eq!(happened(&home, &mut slow), happened(&home, &mut quick));
    let time = EventTime::parse("2024-05-01T10:00:00Z").unwrap();
    let mut turns = 0;
    for round in 0..12 {
        let said = (0..100).map(|n| Turn::new(bank(), &format!("{round}-{n}"), "Ann", "The tide turns", time));
        home.memory.put(said).unwrap();
        while turns < 100 * (round + 1) {
            turns += happened(&home, &mut quick).0.iter().filter(|name| **name == "turn").count();
        }
    }
    assert_eq!(happened(&home, &mut slow).0[0], "skipped");
}
