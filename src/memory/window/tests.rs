//! Tests each rule with a small log, written by hand.
//!
//! A log is text with one event per line, and so are the changes, so that a test reads like a table. Times are in
//! minutes; the gap is 60 unless a test sets another one.

use std::collections::BTreeMap;

use super::{WindowChange, Windower};
use types::{config::WindowSettings, model::*};

/// The memory log's live records by key. A write that the contract does not allow panics.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct RecordLedger(pub(super) BTreeMap<MemoryKey, MemoryRecord>);

impl RecordLedger {
    pub(super) fn write(&mut self, changes: &[WindowChange]) {
        for change in changes {
            let Window { bank, id, turns } = &change.window;
            let key = |turn| MemoryKey { bank: bank.clone(), window: id.clone(), turn, part: 0 };
            for turn in &change.remove_open {
                assert!(self.0.remove(&key(Some(turn.clone()))).is_some(), "{turn} of {id:?} was not in the log");
            }
            if change.closed {
                assert!(change.write_open.is_empty());
                self.put(key(None), WindowState::Final, turns.clone());
            }
            for turn in &change.write_open {
                let own = turns.iter().find(|t| t.turn.turn == *turn && !t.context).expect("an own turn");
                self.put(key(Some(turn.clone())), WindowState::Open, vec![own.clone()]);
            }
        }
    }

    fn put(&mut self, key: MemoryKey, state: WindowState, turns: Vec<WindowTurn>) {
        let record = MemoryRecord {
            schema: SCHEMA_VERSION,
            bank: key.bank.clone(),
            window: key.window.clone(),
            state,
            turns_hash: String::new(),
            extractor: "plain/3".to_owned(),
            cutter: None,
            model: ModelRef { name: "none".to_owned(), hash: String::new() },
            turns,
            units: Vec::new(),
            statements: None,
        };
        // Through JSON, as the log keeps it.
        let json = serde_json::to_vec(&record).unwrap();
        self.0.insert(key, serde_json::from_slice(&json).unwrap());
    }

    pub(super) fn restart(&self, settings: &WindowSettings) -> Windower {
        let mut windower = Windower::new(settings);
        // In reverse, because restoring must not depend on the order of the log.
        for (key, record) in self.0.iter().rev() {
            windower.restore(key, &record.turns);
        }
        windower
    }
}

pub(super) fn settings(turns: u32, overlap: u32) -> WindowSettings {
    WindowSettings { turns, overlap, gap_minutes: 60, sessions: true, crossing: Vec::new() }
}

pub(super) fn minutes(minutes: i64) -> EventTime {
    EventTime { unix_ms: minutes * 60_000, offset_seconds: 0 }
}

pub(super) fn bank() -> Bank {
    Bank::parse("b").unwrap()
}

/// `turn a v1 @10 s=S t=T by=Bo to=b "text"`, `delete a v1`, `end S` or `idle @10`; all but the
/// kind and the name may be left out.
fn event(line: &str) -> TurnEvent {
    let words: Vec<&str> = line.split_whitespace().collect();
    let field = |prefix: &str| words.iter().skip(2).find_map(|w| w.strip_prefix(prefix));
    let time = |word: Option<&str>| minutes(word.map_or(0, |w| w.parse().unwrap()));
    match words[0] {
        "turn" => TurnEvent::Turn(Turn {
            bank: bank(),
            turn: words[1].to_owned(),
            version: field("v").map_or(0, |v| v.parse().unwrap()),
            speaker: field("by=").unwrap_or("Ann").to_owned(),
            kind: None,
            text: line.split('"').nth(1).unwrap_or(words[1]).to_owned(),
            time: time(field("@")),
            session: field("s=").map(str::to_owned),
            thread: field("t=").map(str::to_owned),
            reply_to: field("to=").map(str::to_owned),
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        }),
        "delete" => TurnEvent::Deletion(TurnDeletion {
            bank: bank(),
            turn: words[1].to_owned(),
            version: field("v").map_or(u64::MAX, |v| v.parse().unwrap()),
        }),
        "end" => TurnEvent::SessionEnd(SessionEnd { bank: bank(), session: words[1].to_owned() }),
        "idle" => TurnEvent::Idle(IdleMark { bank: bank(), time: time(words[1].strip_prefix('@')) }),
        other => panic!("unknown event {other}"),
    }
}

/// `caller:S/3 closed (a) b c- wrote b removed c`: context in brackets, deleted with a dash.
fn show(change: &WindowChange) -> String {
    let mut out = format!("{}/{}", change.window.id.session.0, change.window.id.start);
    out.push_str(if change.closed { " closed" } else { " open" });
    for turn in &change.window.turns {
        let name = format!("{}{}", turn.turn.turn, if turn.deleted { "-" } else { "" });
        out.push_str(&if turn.context { format!(" ({name})") } else { format!(" {name}") });
    }
    for (label, turns) in [("wrote", &change.write_open), ("removed", &change.remove_open)] {
        if !turns.is_empty() {
            out.push_str(&format!(" {label} {}", turns.join(" ")));
        }
    }
    out
}

fn drained(windower: &mut Windower) -> String {
    windower.drain().iter().map(show).collect::<Vec<_>>().join("\n")
}

/// Applies a log, drains at each line `--` and at the end, and compares the drains, which are also separated by `--`.
/// This is done once straight through, and once with a restart from the records after every drain: no rule may depend
/// on state that a restart loses.
fn check(settings: &WindowSettings, log: &str, expected: &str) {
    let tidy = |text: &str| text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    for restart in [false, true] {
        let mut windower = Windower::new(settings);
        let mut ledger = RecordLedger::default();
        let mut found = Vec::new();
        for (offset, line) in (0..).zip(log.lines().map(str::trim).filter(|l| !l.is_empty()).chain(["--"])) {
            if line == "--" {
                let changes = windower.drain();
                ledger.write(&changes);
                found.push(changes.iter().map(show).collect::<Vec<_>>().join("\n"));
                if restart {
                    windower = ledger.restart(settings);
                }
            } else {
                windower.apply(offset, &event(line));
            }
        }
        assert_eq!(tidy(&found.join("\n--\n")), tidy(expected), "restart: {restart}");
        assert_eq!(windower.drain(), [], "restart: {restart}");
    }
}

#[test]
fn a_full_window_closes_and_the_next_one_leads_with_the_overlap() {
    check(
        &settings(3, 1),
        "turn a s=S
         turn b s=S
         --
         turn c s=S
         turn d s=S
         turn e s=S
         turn f s=S",
        "caller:S/0 open a b wrote a b
         --
         caller:S/0 closed a b c removed a b
         caller:S/3 closed (c) d e
         caller:S/5 open (e) f wrote f",
    );
}

#[test]
fn a_window_that_fills_within_one_drain_is_written_once_as_final() {
    check(&settings(2, 0), "turn a s=S\nturn b s=S", "caller:S/0 closed a b");
}

#[test]
fn a_rest_that_is_only_overlap_gives_no_window() {
    check(
        &settings(2, 1),
        "turn a s=S
         turn b s=S
         --
         end S
         idle @9999",
        "caller:S/0 closed a b
         --",
    );
}

#[test]
fn the_end_of_a_session_closes_the_callers_and_the_thread_of_that_name() {
    check(
        &settings(9, 2),
        "turn a s=S
         turn b t=S
         turn c s=R
         turn d
         --
         end S
         end S
         --
         turn e s=S",
        "auto:0/0 open d wrote d
         caller:R/0 open c wrote c
         caller:S/0 open a wrote a
         thread:S/0 open b wrote b
         --
         caller:S/0 closed a removed a
         thread:S/0 closed b removed b
         --
         caller:S/1 open (a) e wrote e",
    );
}

#[test]
fn a_thread_takes_precedence_over_a_session() {
    check(&settings(9, 0), "turn a s=S t=T", "thread:T/0 open a wrote a");
}

#[test]
fn a_silence_longer_than_the_gap_closes_the_window_of_its_session() {
    check(
        &settings(9, 1),
        "turn a s=S @0
         turn b s=S @60
         turn c s=S @121",
        "caller:S/0 closed a b
         caller:S/2 open (b) c wrote c",
    );
}

#[test]
fn a_later_turn_of_another_session_closes_a_silent_window() {
    check(
        &settings(9, 0),
        "turn a s=S @0
         turn b s=R @60
         --
         turn c s=R @61",
        "caller:R/0 open b wrote b
         caller:S/0 open a wrote a
         --
         caller:R/0 open b c wrote c
         caller:S/0 closed a removed a",
    );
}

#[test]
fn an_old_export_after_newer_turns_does_not_become_windows_of_one_turn() {
    check(
        &settings(9, 0),
        "turn z s=live @5000
         turn a s=old @0
         turn b s=old @1
         turn c s=old @2
         turn d s=old @100
         --
         turn y s=live @5001",
        "caller:live/0 open z wrote z
         caller:old/0 closed a b c
         caller:old/3 open d wrote d
         --
         caller:live/0 open z y wrote y
         caller:old/3 closed d removed d",
    );
}

#[test]
fn a_text_of_a_later_time_closes_silent_windows_and_a_deletion_does_not() {
    check(
        &settings(9, 0),
        "turn z s=live @5000
         turn y s=live @5001
         turn a s=old @0
         --
         delete z
         --
         turn y v1 s=live @5001",
        "caller:live/0 open z y wrote z y
         caller:old/0 open a wrote a
         --
         caller:live/0 open z- y wrote z
         --
         caller:live/0 open z- y wrote y
         caller:old/0 closed a removed a",
    );
}

#[test]
fn an_idle_mark_closes_only_windows_whose_gap_has_passed() {
    check(
        &settings(9, 0),
        "turn a s=S @0
         turn b s=R @1
         --
         idle @59
         --
         idle @60
         --
         turn c s=Q @30",
        "caller:R/0 open b wrote b
         caller:S/0 open a wrote a
         --
         --
         caller:S/0 closed a removed a
         --
         caller:Q/0 open c wrote c",
    );
}

#[test]
fn turns_without_a_session_join_the_first_session_that_is_near_in_time() {
    check(
        &settings(9, 0),
        "turn a @0
         turn b @200
         turn c @60
         turn d @140
         turn e @120
         turn f @500 s=S
         turn g @261",
        "auto:0/0 closed a
         auto:0/1 closed c
         auto:0/2 closed e
         auto:1/0 closed b d
         auto:2/0 open g wrote g
         caller:S/0 open f wrote f",
    );
}

#[test]
fn a_late_turn_takes_the_last_ordinal_of_its_session() {
    check(
        &settings(3, 1),
        "turn a @10
         turn b @20
         turn c @30
         turn late @15",
        "auto:0/0 closed a b c
         auto:0/3 open (c) late wrote late",
    );
}

#[test]
fn the_papers_profile_counts_across_the_bank() {
    check(
        &WindowSettings { sessions: false, ..settings(3, 1) },
        "turn a s=S @0
         turn b t=T @9999
         end S
         --
         turn c @1
         turn d s=R @3
         idle @62
         --
         idle @63",
        "bank/0 open a b wrote a b
         --
         bank/0 closed a b c removed a b
         bank/3 open (c) d wrote d
         --
         bank/3 closed (c) d removed d",
    );
}

#[test]
fn an_edit_writes_every_closed_window_that_holds_the_turn_again() {
    check(
        &settings(3, 2),
        "turn a s=S
         turn b s=S
         turn c s=S
         turn d s=S
         turn e s=S
         end S
         turn f s=S
         --
         turn c v1 s=other
         --
         turn e v1
         --
         turn b v1",
        "caller:S/0 closed a b c
         caller:S/3 closed (b) (c) d
         caller:S/4 closed (c) (d) e
         caller:S/5 closed (d) (e) f
         --
         caller:S/0 closed a b c
         caller:S/3 closed (b) (c) d
         caller:S/4 closed (c) (d) e
         --
         caller:S/4 closed (c) (d) e
         caller:S/5 closed (d) (e) f
         --
         caller:S/0 closed a b c
         caller:S/3 closed (b) (c) d",
    );
}

#[test]
fn an_edit_in_an_open_window_writes_an_own_turn_but_no_context_turn() {
    check(
        &settings(4, 2),
        "turn a s=S
         turn b s=S
         end S
         turn c s=S
         --
         turn c v1
         --
         turn b v1",
        "caller:S/0 closed a b
         caller:S/2 open (a) (b) c wrote c
         --
         caller:S/2 open (a) (b) c wrote c
         --
         caller:S/0 closed a b",
    );
}

#[test]
fn a_deletion_leaves_an_empty_turn_and_moves_no_window() {
    check(
        &settings(2, 1),
        "turn a s=S
         turn b s=S
         turn c s=S
         turn d s=S
         --
         delete b
         delete d
         --
         turn e s=S",
        "caller:S/0 closed a b
         caller:S/2 closed (b) c
         caller:S/3 closed (c) d
         --
         caller:S/0 closed a b-
         caller:S/2 closed (b-) c
         caller:S/3 closed (c) d-
         --
         caller:S/4 closed (d-) e",
    );
}

#[test]
fn an_edit_of_the_time_changes_when_the_window_closes() {
    check(
        &settings(9, 0),
        "turn a s=S @0
         turn b s=S @50
         turn x s=R @100
         turn b v1 s=S @10
         --
         turn y s=R @101",
        "caller:R/0 open x wrote x
         caller:S/0 open a b wrote a b
         --
         caller:R/0 open x y wrote y
         caller:S/0 closed a b removed a b",
    );
}

#[test]
fn a_version_wins_by_number_then_as_a_deletion_then_by_offset() {
    let texts = |log: &[&str]| {
        let mut windower = Windower::new(&settings(9, 0));
        for (offset, line) in (0..).zip(log) {
            windower.apply(offset, &event(line));
        }
        let changes = windower.drain();
        let turn = &changes[0].window.turns[0];
        format!(
            "{}{} v{} @{}",
            turn.turn.text,
            if turn.deleted { "-" } else { "" },
            turn.turn.version,
            turn.source_offset
        )
    };
    assert_eq!(texts(&["turn a v1 \"x\"", "turn a v0 \"y\""]), "x v1 @0");
    assert_eq!(texts(&["turn a v1 \"x\"", "turn a v2 \"y\""]), "y v2 @1");
    assert_eq!(texts(&["turn a v1 \"x\"", "turn a v1 \"x\""]), "x v1 @0");
    assert_eq!(texts(&["turn a v1 \"x\"", "turn a v1 \"y\"", "turn a v1 \"x\""]), "x v1 @2");
    assert_eq!(texts(&["turn a v1 \"x\"", "delete a v0"]), "x v1 @0");
    assert_eq!(texts(&["turn a v1 \"x\"", "delete a v1", "turn a v1 \"x\"", "delete a v1"]), "- v1 @1");
    assert_eq!(texts(&["turn a v1 \"x\"", "delete a v1", "delete a v3", "turn a v2 \"y\""]), "- v3 @2");
    assert_eq!(texts(&["turn a v1 \"x\"", "delete a v1", "turn a v2 \"y\""]), "y v2 @2");
    assert_eq!(
        texts(&["turn a \"x\"", "delete a", "turn a v18446744073709551615 \"x\""]),
        format!("- v{} @1", u64::MAX)
    );
}

#[test]
fn a_deletion_removes_the_text_and_its_speaker_everywhere() {
    let mut windower = Windower::new(&settings(9, 0));
    let attachments = vec![Attachment { caption: Some("secret".to_owned()), ..Attachment::default() }];
    let TurnEvent::Turn(turn) = event("turn a s=S \"secret\"") else { unreachable!() };
    let (speaker, reply_to) = ("secret".to_owned(), Some("secret".to_owned()));
    windower.apply(0, &TurnEvent::Turn(Turn { speaker, attachments, reply_to, ..turn }));
    windower.apply(1, &event("delete a v4"));
    assert!(!format!("{windower:?}").contains("secret"));
    let changes = windower.drain();
    assert_eq!(show(&changes[0]), "caller:S/0 open a- wrote a");
    assert!(!format!("{changes:?}").contains("secret"));
}

#[test]
fn a_deletion_that_arrives_before_its_turn_survives_restarts() {
    check(
        &settings(9, 0),
        "delete a v3
         delete b v3
         --
         turn a v3 s=S
         delete a v2
         --
         delete a v4
         --
         turn a v4 s=S
         turn b v4 s=S
         --
         turn a v5 s=S
         --
         delete a v4
         turn b v3 s=S",
        "deleted:/0 open a- b- wrote a b
         --
         --
         deleted:/0 open a- wrote a
         --
         caller:S/0 open b wrote b
         deleted:/0 open removed b
         --
         caller:S/0 open b a wrote a
         deleted:/0 open removed a
         --",
    );
    check(&settings(9, 0), "delete a v1\nturn a v2 s=S", "caller:S/0 open a wrote a");
}

#[test]
fn an_offset_that_was_applied_is_not_applied_again() {
    let log = ["turn a s=S", "end S", "turn b s=S", "turn c s=S \"x\"", "turn c s=S \"y\""].map(event);
    let mut windower = Windower::new(&settings(9, 1));
    for expected in ["caller:S/0 closed a\ncaller:S/1 open (a) b c wrote b c", ""] {
        for (offset, event) in (7..).zip(&log) {
            windower.apply(offset, event);
        }
        assert_eq!(drained(&mut windower), expected);
    }
}

#[test]
fn marks_for_an_unknown_bank_or_session_do_nothing() {
    check(&settings(9, 0), "end S\nidle @5\n--\nturn a s=S\nend R", "--\ncaller:S/0 open a wrote a");
}

#[test]
fn a_bank_has_turns_until_the_last_one_is_deleted() {
    let mut windower = Windower::new(&settings(1, 0));
    let log = [("delete b", false), ("turn a", true), ("turn b", true), ("delete a", false), ("turn c", true)];
    for (offset, (line, expected)) in (0..).zip(log) {
        windower.apply(offset, &event(line));
        assert_eq!(windower.has_turns(&bank()), expected, "{line}");
    }
}

#[test]
fn banks_share_nothing_and_drain_in_order() {
    let mut windower = Windower::new(&settings(2, 0));
    for (offset, (name, line)) in (0..).zip([("b/2", "turn a @0"), ("b/10", "turn a @0"), ("b/2", "turn b @9999")]) {
        let TurnEvent::Turn(turn) = event(line) else { unreachable!() };
        windower.apply(offset, &TurnEvent::Turn(Turn { bank: Bank::parse(name).unwrap(), ..turn }));
    }
    let found: Vec<_> = windower.drain().iter().map(|c| format!("{} {}", c.window.bank, show(c))).collect();
    let expected = ["b/10 auto:0/0 open a wrote a", "b/2 auto:0/0 closed a", "b/2 auto:1/0 open b wrote b"];
    assert_eq!(found, expected);
}

/// Writes a log's records, damages them, and shows the first drain after a restart.
fn after_restart(
    before: &WindowSettings,
    log: &str,
    break_it: impl Fn(&mut RecordLedger),
    after: &WindowSettings,
) -> String {
    let mut windower = Windower::new(before);
    let mut ledger = RecordLedger::default();
    for (offset, line) in (0..).zip(log.lines().map(str::trim)) {
        windower.apply(offset, &event(line));
        ledger.write(&windower.drain());
    }
    break_it(&mut ledger);
    let mut windower = ledger.restart(after);
    let changes = windower.drain();
    ledger.write(&changes);
    assert_eq!(ledger.restart(after).drain(), [], "the repair is complete");
    changes.iter().map(show).collect::<Vec<_>>().join("\n")
}

/// The records as they are after a crash before the final record of a window was written: its open records are live.
fn reopen(ledger: &mut RecordLedger, keep_final: bool) {
    let finals: Vec<_> =
        ledger.0.iter().filter(|(key, _)| key.turn.is_none()).map(|(k, r)| (k.clone(), r.clone())).collect();
    for (key, record) in finals {
        for turn in record.turns.iter().filter(|t| !t.context) {
            let open = MemoryKey { turn: Some(turn.turn.turn.clone()), ..key.clone() };
            let record = MemoryRecord { state: WindowState::Open, turns: vec![turn.clone()], ..record.clone() };
            ledger.0.insert(open, record);
        }
        if !keep_final {
            ledger.0.remove(&key);
        }
    }
}

#[test]
fn a_restart_finishes_windows_that_closed_without_a_final_record() {
    let same = settings(2, 1);
    let by_count = after_restart(&same, "turn a s=S\nturn b s=S", |l| reopen(l, false), &same);
    assert_eq!(by_count, "caller:S/0 closed a b removed a b");
    let by_follower =
        after_restart(&settings(9, 1), "turn a s=S\nend S\nturn b s=S", |l| reopen(l, false), &settings(9, 1));
    assert_eq!(by_follower, "caller:S/0 closed a removed a");
    let by_gap = after_restart(&settings(9, 1), "turn a s=S\nturn b s=R @61", |l| reopen(l, false), &settings(9, 1));
    assert_eq!(by_gap, "caller:S/0 closed a removed a");
}

#[test]
fn a_restart_under_smaller_settings_closes_the_windows_that_are_due_under_them() {
    let log = "turn a s=S @0\nturn b s=S @10\nturn c s=R @25";
    assert_eq!(after_restart(&settings(9, 0), log, |_| {}, &settings(2, 0)), "caller:S/0 closed a b removed a b");
    let gap = WindowSettings { gap_minutes: 14, ..settings(9, 0) };
    assert_eq!(after_restart(&settings(9, 0), log, |_| {}, &gap), "caller:S/0 closed a b removed a b");
    assert_eq!(after_restart(&settings(9, 0), log, |_| {}, &WindowSettings { sessions: false, ..gap }), "");
}

#[test]
fn a_final_record_wins_over_open_records_left_beside_it() {
    let same = settings(2, 0);
    let found = after_restart(&same, "turn a s=S\nturn b s=S\nturn c s=S", |l| reopen(l, true), &same);
    assert_eq!(found, "caller:S/0 closed a b removed a b");
}

#[test]
fn a_record_that_missed_a_deletion_is_written_again_without_the_text() {
    let stale = |ledger: &mut RecordLedger| {
        for (key, record) in &mut ledger.0 {
            for turn in record.turns.iter_mut().filter(|t| key.window.start == 2 && t.context) {
                let TurnEvent::Turn(old) = event("turn b s=S \"secret\"") else { unreachable!() };
                *turn = WindowTurn { turn: old.into(), deleted: false, source_offset: 1, ..turn.clone() };
            }
        }
    };
    let log = "turn a s=S\nturn b s=S \"secret\"\nturn c s=S\nturn d s=S\ndelete b";
    let found = after_restart(&settings(2, 1), log, stale, &settings(2, 1));
    assert_eq!(found, "caller:S/2 closed (b-) c");
}

#[test]
fn a_deletion_reaches_a_context_that_was_made_under_a_larger_overlap() {
    let log = "turn a s=S\nturn b s=S\nturn c s=S";
    let mut windower = Windower::new(&settings(2, 1));
    let mut ledger = RecordLedger::default();
    for (offset, line) in (0..).zip(log.lines()) {
        windower.apply(offset, &event(line));
    }
    ledger.write(&windower.drain());
    let mut windower = ledger.restart(&settings(2, 0));
    windower.apply(3, &event("delete b"));
    assert_eq!(drained(&mut windower), "caller:S/0 closed a b-\ncaller:S/2 closed (b-) c");
}

/// A log of two rooms in which conversations cross, and a thread.
const CROSSING: &str = "turn a @0 s=S by=Ann \"hello, how do I mount a usb stick?\"
    turn b @0 s=S by=Cy \"anyone here with a broken network card?\"
    turn c @1 s=S by=Bo \"Ann: mount /dev/sdb1 /mnt\"
    turn d @1 s=R by=Eve \"Ann: elsewhere\"
    turn e @2 s=S by=Dee \"Cy: which network card is it?\"
    turn f @3 s=S t=T by=Eve \"in a thread\"
    turn g @3 s=S by=Eve to=b \"the stick is nice\"
    turn h @100 s=S by=Ann \"Bo: permission denied\"
    end S";

fn crossing() -> WindowSettings {
    WindowSettings { crossing: vec!["b".to_owned()], ..settings(9, 0) }
}

#[test]
fn conversations_that_cross_in_a_room_are_sessions_of_their_own() {
    check(
        &crossing(),
        CROSSING,
        "talk:0:S/0 closed a c
         talk:1:S/0 closed b e g
         talk:2:R/0 closed d
         talk:3:S/0 closed h
         thread:T/0 closed f",
    );
}

#[test]
fn conversations_go_on_after_a_restart_as_if_there_had_been_none() {
    let log: Vec<TurnEvent> = CROSSING.lines().map(|line| event(line.trim())).collect();
    for stop in 0..log.len() {
        let mut windower = Windower::new(&crossing());
        let mut ledger = RecordLedger::default();
        for (offset, event) in (0..).zip(&log) {
            if offset == stop as u64 {
                ledger.write(&windower.drain());
                windower = ledger.restart(&crossing());
            }
            windower.apply(offset, event);
        }
        ledger.write(&windower.drain());
        let sessions: Vec<String> =
            ledger.0.keys().map(|key| format!("{}/{}", key.window.session.0, key.window.start)).collect();
        assert_eq!(sessions, ["talk:0:S/0", "talk:1:S/0", "talk:2:R/0", "talk:3:S/0", "thread:T/0"], "{stop}");
    }
}

#[test]
fn an_edit_moves_no_turn_to_another_conversation() {
    // The speaker of the deleted turn is forgotten, so nothing connects the last turn with it.
    let log = "turn a @0 by=Ann \"hello, how do I mount a usb stick?\"
        turn b @0 by=Cy \"anyone here with a broken network card?\"
        --
        turn b v1 @0 by=Cy \"the usb stick, too, Ann\"
        delete a
        --
        turn c @1 by=Bo \"Ann: mount /dev/sdb1 /mnt\"";
    check(
        &crossing(),
        log,
        "talk:0:/0 open a wrote a
         talk:1:/0 open b wrote b
         --
         talk:0:/0 open a- wrote a
         talk:1:/0 open b wrote b
         --
         talk:1:/0 open b c wrote c",
    );
}
