//! Properties that hold for every log: redelivery, batching, restarts, tiling, deletion.
//!
//! In: random logs of turns, edits, deletions, duplicates, marks and late turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::{collection::vec, prelude::*, sample::Index};

use super::{
    UNSEEN_SESSION, Windower,
    tests::{RecordLedger, bank, minutes},
};
use types::{config::WindowSettings, model::*};

const SESSIONS: [Option<&str>; 4] = [None, None, Some("S"), Some("R")];

/// The text of a version; `variant` differs between texts of the same version number.
fn words(turn: &str, version: u64, variant: u8) -> String {
    format!("<{turn} v{version} variant{variant}>")
}

fn any_bank() -> impl Strategy<Value = Bank> {
    prop_oneof![3 => Just(bank()), 1 => Just(Bank::parse("other").unwrap())]
}

/// A turn with one of few ids, so that edits and late deletions are frequent. `variants` above 1
/// allows different texts under one version.
fn any_turn(variants: u8) -> impl Strategy<Value = TurnEvent> {
    let names = (0..SESSIONS.len(), prop::option::weighted(0.15, Just("T")));
    (any_bank(), 0..14u8, 0..3u64, 0..variants, 0..40i64, names).prop_map(
        |(bank, id, version, variant, time, (session, thread))| {
            let turn = format!("t{id}");
            let text = words(&turn, version, variant);
            // If each version has only one text, the other fields depend only on id and version, too.
            let seed = i64::from(id) * 7 + version as i64;
            let time = if variant == 0 { seed * 11 % 40 } else { time };
            let session = if variant == 0 { seed as usize % SESSIONS.len() } else { session };
            let caption = Attachment { caption: Some(text.clone()), ..Attachment::default() };
            TurnEvent::Turn(Turn {
                bank,
                turn,
                version,
                speaker: "Ann".to_owned(),
                kind: None,
                text,
                time: minutes(time * 10),
                session: SESSIONS[session].map(str::to_owned),
                thread: thread.filter(|_| variant > 0).map(str::to_owned),
                reply_to: None,
                attachments: vec![caption],
                metadata: None,
                recall: true,
            })
        },
    )
}

/// A turn with a fresh id: the common case.
fn fresh_turn() -> impl Strategy<Value = TurnEvent> {
    (any_bank(), any::<u32>(), 0..60i64, 0..SESSIONS.len()).prop_map(|(bank, id, time, session)| {
        TurnEvent::Turn(Turn {
            bank,
            turn: format!("fresh{id}"),
            version: 0,
            speaker: "Bob".to_owned(),
            kind: None,
            text: words(&format!("fresh{id}"), 0, 0),
            time: minutes(time * 7),
            session: SESSIONS[session].map(str::to_owned),
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        })
    })
}

fn any_deletion() -> impl Strategy<Value = TurnEvent> {
    let version = prop_oneof![4 => 0..4u64, 1 => Just(u64::MAX)];
    (any_bank(), 0..16u8, version)
        .prop_map(|(bank, id, version)| TurnEvent::Deletion(TurnDeletion { bank, turn: format!("t{id}"), version }))
}

fn any_mark() -> impl Strategy<Value = TurnEvent> {
    prop_oneof![
        (any_bank(), prop::sample::select(vec!["S", "R", "T"]))
            .prop_map(|(bank, session)| TurnEvent::SessionEnd(SessionEnd { bank, session: session.to_owned() })),
        (any_bank(), 0..60i64).prop_map(|(bank, time)| TurnEvent::Idle(IdleMark { bank, time: minutes(time * 10) })),
    ]
}

fn any_log(variants: u8) -> impl Strategy<Value = Vec<TurnEvent>> {
    let event = prop_oneof![
        6 => any_turn(variants),
        4 => fresh_turn(),
        3 => any_deletion(),
        2 => any_mark(),
    ];
    // A duplicate repeats an earlier event, as a source does that reads an export again.
    vec((event, prop::option::weighted(0.15, any::<Index>())), 1..70).prop_map(|drawn| {
        let mut log: Vec<TurnEvent> = Vec::new();
        for (event, again) in drawn {
            let event = again.filter(|_| !log.is_empty()).map_or(event, |index| log[index.index(log.len())].clone());
            log.push(event);
        }
        log
    })
}

fn any_settings() -> impl Strategy<Value = WindowSettings> {
    let crossing = prop::option::weighted(0.3, Just("b".to_owned()));
    (1..6u32, 0..5u32, 10..90u32, prop::bool::weighted(0.8), crossing).prop_map(
        |(turns, overlap, gap_minutes, sessions, crossing)| WindowSettings {
            turns,
            overlap: overlap.min(turns - 1),
            gap_minutes,
            sessions,
            crossing: crossing.into_iter().collect(),
        },
    )
}

fn apply_all(windower: &mut Windower, from: u64, log: &[TurnEvent]) {
    for (offset, event) in (from..).zip(log) {
        windower.apply(offset, event);
    }
}

/// Folds a log, draining after each event.
fn step_by_step(settings: &WindowSettings, log: &[TurnEvent]) -> (Windower, RecordLedger) {
    let mut windower = Windower::new(settings);
    let mut ledger = RecordLedger::default();
    for (offset, event) in (0..).zip(log) {
        windower.apply(offset, event);
        ledger.write(&windower.drain());
    }
    (windower, ledger)
}

/// The winning version of every turn by decision 4: (version, deleted, text).
fn winners(log: &[TurnEvent]) -> BTreeMap<(Bank, String), (u64, bool, String)> {
    let mut winners: BTreeMap<(Bank, String), (u64, bool, String)> = BTreeMap::new();
    for event in log {
        let (bank, turn, new) = match event {
            TurnEvent::Turn(t) => (&t.bank, &t.turn, (t.version, false, t.text.clone())),
            TurnEvent::Deletion(d) => (&d.bank, &d.turn, (d.version, true, String::new())),
            _ => continue,
        };
        let key = (bank.clone(), turn.clone());
        if winners.get(&key).is_none_or(|old| (old.0, old.1) <= (new.0, new.1)) {
            winners.insert(key, new);
        }
    }
    winners
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_a_prefix_of_the_log_again_changes_nothing(
        settings in any_settings(), log in any_log(3), cut in any::<Index>(),
    ) {
        let (mut windower, _) = step_by_step(&settings, &log);
        apply_all(&mut windower, 0, &log[..=cut.index(log.len())]);
        prop_assert_eq!(windower.drain(), []);
    }

    #[test]
    fn an_export_that_is_appended_again_changes_nothing(
        settings in any_settings(), log in any_log(1), cut in any::<Index>(), restart: bool,
    ) {
        let (mut windower, ledger) = step_by_step(&settings, &log);
        if restart {
            windower = ledger.restart(&settings);
        }
        // An export holds turns and deletions; a repeated mark would be a new mark.
        let mut again = log[..=cut.index(log.len())].to_vec();
        again.retain(|event| matches!(event, TurnEvent::Turn(_) | TurnEvent::Deletion(_)));
        apply_all(&mut windower, log.len() as u64, &again);
        prop_assert_eq!(windower.drain(), []);
    }

    #[test]
    fn any_number_of_drains_leaves_the_same_records(
        settings in any_settings(), log in any_log(3), drains in vec(any::<bool>(), 70),
    ) {
        let (_, stepped) = step_by_step(&settings, &log);
        let mut once = (Windower::new(&settings), RecordLedger::default());
        let mut sometimes = (Windower::new(&settings), RecordLedger::default());
        for ((offset, event), drain) in (0..).zip(&log).zip(drains) {
            once.0.apply(offset, event);
            sometimes.0.apply(offset, event);
            if drain {
                sometimes.1.write(&sometimes.0.drain());
            }
        }
        for (windower, ledger) in [&mut once, &mut sometimes] {
            let changes = windower.drain();
            ledger.write(&changes);
        }
        prop_assert_eq!(&once.1, &stepped);
        prop_assert_eq!(&sometimes.1, &stepped);
    }

    #[test]
    fn a_restart_changes_nothing_that_is_drained_later(
        settings in any_settings(), log in any_log(3), cut in any::<Index>(), drains in vec(any::<bool>(), 70),
    ) {
        let cut = cut.index(log.len());
        let mut windower = Windower::new(&settings);
        apply_all(&mut windower, 0, &log[..cut]);
        let mut ledger = RecordLedger::default();
        ledger.write(&windower.drain());
        let mut restarted = ledger.restart(&settings);
        prop_assert_eq!(ledger.restart(&settings).drain(), []);
        for ((offset, event), drain) in (cut as u64..).zip(&log[cut..]).zip(drains) {
            windower.apply(offset, event);
            restarted.apply(offset, event);
            if drain {
                prop_assert_eq!(windower.drain(), restarted.drain());
            }
        }
        prop_assert_eq!(windower.drain(), restarted.drain());
    }

    #[test]
    fn windows_tile_their_session(settings in any_settings(), log in any_log(3)) {
        let (_, ledger) = step_by_step(&settings, &log);
        let mut sessions: BTreeMap<(Bank, SessionId), BTreeMap<u32, Window>> = BTreeMap::new();
        let mut open = BTreeSet::new();
        for (key, record) in ledger.0.iter().filter(|(key, _)| key.window.session.0 != UNSEEN_SESSION) {
            let windows = sessions.entry((key.bank.clone(), key.window.session.clone())).or_default();
            let window = windows.entry(key.window.start).or_insert_with(|| Window {
                bank: key.bank.clone(),
                id: key.window.clone(),
                turns: Vec::new(),
            });
            prop_assert_eq!(record.state == WindowState::Open, key.turn.is_some());
            if key.turn.is_some() {
                open.insert((key.bank.clone(), key.window.clone()));
            }
            window.turns.extend(record.turns.iter().cloned());
            window.turns.sort_by_key(|turn| turn.ordinal);
        }
        for windows in sessions.values() {
            let mut turns: Vec<Arc<Turn>> = Vec::new();
            for window in windows.values() {
                prop_assert_eq!(window.id.start as usize, turns.len(), "no hole, no overlap of own ranges");
                let is_open = open.contains(&(window.bank.clone(), window.id.clone()));
                let (context, own): (Vec<_>, Vec<_>) = window.turns.iter().cloned().partition(|turn| turn.context);
                let leading = if is_open { 0 } else { window.id.start.min(settings.overlap) };
                prop_assert_eq!(context.len(), leading as usize);
                for (turn, ordinal) in context.iter().zip(window.id.start - leading..) {
                    prop_assert_eq!(turn.ordinal, ordinal);
                    prop_assert_eq!(&turn.turn, &turns[ordinal as usize]);
                }
                prop_assert!(!own.is_empty() && window.turns.len() <= settings.turns as usize);
                for turn in &own {
                    prop_assert_eq!(turn.ordinal as usize, turns.len());
                    turns.push(Arc::clone(&turn.turn));
                }
                prop_assert!(!is_open || Some(&window.id.start) == windows.keys().last(), "only the last is open");
            }
        }
    }

    #[test]
    fn records_hold_the_winning_versions_and_no_other_text(settings in any_settings(), log in any_log(3)) {
        let (windower, ledger) = step_by_step(&settings, &log);
        let winners = winners(&log);
        let mut own = BTreeSet::new();
        for (key, record) in &ledger.0 {
            for turn in &record.turns {
                let id = (key.bank.clone(), turn.turn.turn.clone());
                let found = (turn.turn.version, turn.deleted, turn.turn.text.clone());
                prop_assert_eq!(Some(&found), winners.get(&id));
                prop_assert!(!turn.deleted || turn.turn.attachments.is_empty());
                if !turn.context {
                    prop_assert!(own.insert(id), "{} is in two places", turn.turn.turn);
                }
            }
        }
        prop_assert_eq!(own, winners.keys().cloned().collect::<BTreeSet<_>>(), "none lost, none invented");
        let kept: BTreeSet<(&Bank, &str)> =
            winners.iter().map(|((bank, _), (_, _, text))| (bank, text.as_str())).collect();
        for name in [bank(), Bank::parse("other").unwrap()] {
            let records: Vec<_> = ledger.0.values().filter(|record| record.bank == name).collect();
            let stored = format!("{records:?} {:?}", windower.banks.get(&name));
            for event in log.iter().filter(|event| *event.bank() == name) {
                if let TurnEvent::Turn(turn) = event {
                    prop_assert_eq!(stored.contains(&turn.text), kept.contains(&(&name, turn.text.as_str())));
                }
            }
        }
    }
}
