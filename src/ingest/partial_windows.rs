//! The units that a closed window keeps when some of its turns are forgotten.
//!
//! In: the record of a closed window, and the drafts of its units by the rules now. Out: the record with its current
//! turns, and only those units that the current drafts still contain, with unchanged vectors. This needs no model, so
//! many windows can forget at once; the missing units come when the window is extracted again. No unit by a language
//! model is kept: the model read the whole window.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::ControlFlow,
};

use super::PipelineError;
use logs::Log;
use memory::{
    extract::{DraftPart, DraftUnit, TurnLanguages, rules_extractor::drafts_from_record},
    statements::record_statements,
    window::WindowChange,
};
use types::record_value::read_value;
use types::{
    config::ExtractSettings,
    model::{Bank, IN_PART, MemoryKey, MemoryRecord, Window, WindowTurn},
};

/// Which of these changes delete turns of a closed window; `revised` has the edited and the deleted turns, by bank.
pub(super) fn deletes_closed_turns(changes: &[WindowChange], revised: &[(Bank, BTreeSet<String>)]) -> Vec<bool> {
    let revised: HashMap<&Bank, &BTreeSet<String>> = revised.iter().map(|(bank, turns)| (bank, turns)).collect();
    let forgets = |WindowChange { window, closed, remove_open, .. }: &WindowChange| {
        let revised = revised.get(&window.bank).filter(|_| *closed && remove_open.is_empty());
        let is_gone = |of: &WindowTurn| of.deleted && revised.is_some_and(|turns| turns.contains(&of.turn.turn));
        window.turns.iter().any(is_gone)
    };
    changes.iter().map(forgets).collect()
}

/// The last record of a key; `None` if there is none that can be read.
pub(super) fn last_record(
    log: &dyn Log,
    partition: u32,
    key: &MemoryKey,
) -> Result<Option<MemoryRecord>, PipelineError> {
    let (key, mut value) = (key.to_bytes(), None);
    log.live_records(partition, &key, &mut |of, _| of == key, &mut |record| {
        value.clone_from(&record.value);
        ControlFlow::Break(())
    })?;
    Ok(value.and_then(|value| read_value(&value).ok()))
}

/// The record of a window with its current turns, and without the units that differ from the current drafts.
pub(super) fn partial_record(
    mut record: MemoryRecord,
    window: Window,
    drafts: &[DraftUnit],
    settings: &ExtractSettings,
) -> MemoryRecord {
    let before = drafts_from_record(&record, settings);
    let alone = |draft: &DraftUnit| DraftUnit { before: None, ..draft.clone() };
    let alone_now: Vec<DraftUnit> = drafts.iter().map(alone).collect();
    // A part whose unit has changed was embedded with other text beside it.
    let said = |part: &'_ DraftPart| (part.turn.clone(), part.text.clone());
    let mut changed = HashSet::new();
    for draft in before.iter().filter(|draft| !alone_now.contains(&alone(draft))) {
        changed.extend(draft.parts.iter().map(said));
    }
    let mut stays = before.iter().map(|draft| {
        let is_beside_changed = draft.before.as_ref().is_some_and(|part| changed.contains(&said(part)));
        !is_beside_changed && drafts.contains(draft)
    });
    record.units.retain(|_| stays.next().unwrap_or(false));
    record.turns_hash = window.turns_hash();
    let languages = TurnLanguages::of(&window.turns, settings.language);
    record.statements = Some(record_statements(&window.turns, &window.turns, |turn| languages.of_turn(turn)));
    record.turns = window.turns;
    if !record.is_in_part() {
        record.extractor.push_str(IN_PART);
    }
    record
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path, sync::Arc};

    use super::{
        super::{CachedEmbedder, ExtractionStage, ExtractorSet, WindowDrafts, sharing_tests::live},
        *,
    };
    use logs::EmbeddedLog;
    use memory::extract::{Extractor as _, rules_extractor::RulesExtractor};
    use types::{
        config::Pipeline,
        model::{EventTime, SCHEMA_VERSION, SessionId, Turn, TurnDeletion, TurnEvent, WindowId, WindowState},
    };

    const SPEAKERS: [&str; 3] = ["Ann", "Bo", "Dee"];
    const SAID: [&str; 12] = [
        "Where is the red kayak?",
        "It is in the boathouse behind the mill.",
        "ok",
        "Dee sold the old canoe to Cy last Friday. Cy paid in cash.",
        "Who repaired the roof? And when do we meet?",
        "Ann did, in May. We meet on Monday at the harbour of Lisbon.",
        "Wir treffen uns am Montag im Hafen, und Dee bringt die Karte mit.",
        "Bo, did you call your sister in Oslo?",
        "Yes.",
        "ja",
        "I will paint the boat next week, if the weather in Porto allows it.",
        "[shares a photo of a green tent on the beach]",
    ];

    struct WindowDice(u64);

    impl WindowDice {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    fn pipeline(directory: &Path, unit_turns: u32) -> Pipeline {
        let text = format!(
            "version = 1\nembed.model = \"fixed\"\nextract.unit_turns = {unit_turns}\nlog.directory = {:?}",
            directory.display().to_string()
        );
        Pipeline::parse(&text).expect("a pipeline")
    }

    fn bank() -> Bank {
        Bank::parse("b").expect("a name")
    }

    fn said(n: usize, dice: &mut WindowDice) -> Turn {
        let time = EventTime::new(1_700_000_000_000 + 60_000 * n as i64, 0).expect("a time");
        let mut turn = Turn::new(bank(), &n.to_string(), SPEAKERS[dice.below(3)], SAID[dice.below(SAID.len())], time);
        if dice.below(6) == 0 {
            turn.text = SAID.map(|said| said.repeat(2)).join("\n\n");
        }
        if n > 0 && dice.below(5) == 0 {
            turn.reply_to = Some(dice.below(n).to_string());
        }
        turn
    }

    fn window(turns: &[Turn], gone: &BTreeSet<usize>) -> Window {
        let turn = |(at, turn): (usize, &Turn)| {
            let deleted = gone.contains(&at);
            let text = if deleted { String::new() } else { turn.text.clone() };
            WindowTurn {
                turn: Arc::new(Turn { text, ..turn.clone() }),
                ordinal: at as u32,
                context: at < 2,
                deleted,
                source_offset: at as u64,
                stored: None,
            }
        };
        let id = WindowId { session: SessionId("s".to_owned()), start: 2 };
        Window { bank: bank(), id, turns: turns.iter().enumerate().map(turn).collect() }
    }

    fn record(window: &Window, drafts: Vec<DraftUnit>, vectors: &mut CachedEmbedder) -> MemoryRecord {
        let (bank, id) = (window.bank.clone(), window.id.clone());
        let drafted = WindowDrafts { bank: bank.clone(), window: id.clone(), drafts, asked_again: false };
        let mut embedded = vectors.units(&[drafted]).expect("no model to fail");
        MemoryRecord {
            schema: SCHEMA_VERSION,
            bank,
            window: id,
            state: WindowState::Final,
            turns_hash: window.turns_hash(),
            extractor: "rules/5".to_owned(),
            cutter: None,
            model: embedded.model,
            turns: window.turns.clone(),
            units: embedded.units.pop().expect("one window"),
            statements: None,
        }
    }

    #[test]
    fn what_stays_is_what_the_window_has_once_it_is_extracted_again() {
        let home = tempfile::tempdir().expect("a directory");
        let (mut stayed, mut missing, mut followed) = (0, 0, 0);
        for seed in 0..60 {
            let pipeline = pipeline(home.path(), 1 + seed as u32 % 4);
            let (rules, mut vectors) = (RulesExtractor::new(&pipeline.extract), CachedEmbedder::new(&pipeline));
            let dice = &mut WindowDice(seed);
            let turns: Vec<Turn> = (0..18).map(|n| said(n, dice)).collect();
            let whole = window(&turns, &BTreeSet::new());
            let drafts = rules.extract(&whole).expect("drafts");
            let mut lacking = record(&whole, drafts, &mut vectors);
            let mut gone = BTreeSet::new();
            for _ in 0..3 {
                gone.extend((0..1 + dice.below(2)).map(|_| dice.below(turns.len())));
                let now = window(&turns, &gone);
                let drafts = rules.extract(&now).expect("drafts");
                let made_before = drafts_from_record(&lacking, &pipeline.extract);
                lacking = partial_record(lacking, now.clone(), &drafts, &pipeline.extract);
                for draft in drafts_from_record(&lacking, &pipeline.extract) {
                    let Some(before) = &draft.before else { continue };
                    // A model reads the parts of a unit together, so the unit of the turn before is whole, too.
                    let Some(beside) = made_before.iter().find(|of| of.parts.contains(before)) else { continue };
                    assert!(
                        drafts.iter().any(|of| of.parts == beside.parts),
                        "seed {seed}, without {gone:?}: {draft:?}"
                    );
                    followed += 1;
                }
                let again = record(&now, drafts, &mut vectors);
                for unit in &lacking.units {
                    assert!(again.units.contains(unit), "seed {seed}, without {gone:?}: {unit:?}");
                }
                assert_eq!(lacking.extractor, "rules/5 in part");
                assert_eq!((&lacking.turns, &lacking.turns_hash), (&again.turns, &again.turns_hash));
                stayed += lacking.units.len();
                missing += again.units.len() - lacking.units.len();
            }
        }
        assert!(stayed > missing && missing > 100 && followed > 20, "{stayed} {missing} {followed}");
    }

    /// The live records of a log, by key.
    #[test]
    fn many_windows_forget_in_one_step_and_are_whole_after_a_restart() {
        let turns: Vec<TurnEvent> = {
            let dice = &mut WindowDice(7);
            let end = r#"{"type": "session_end", "bank": "b", "session": ""}"#;
            let end = TurnEvent::from_json(end.as_bytes());
            (0..1_200).map(|n| TurnEvent::Turn(said(n, dice))).chain(end).collect()
        };
        let by_dee = |event: &TurnEvent| match event {
            TurnEvent::Turn(turn) if turn.speaker == "Dee" => Some(turn.turn.clone()),
            _ => None,
        };
        let deletions: Vec<TurnEvent> = turns
            .iter()
            .filter_map(by_dee)
            .map(|turn| TurnEvent::Deletion(TurnDeletion::permanent(bank(), turn)))
            .collect();
        let home = tempfile::tempdir().expect("a directory");
        let open = |name: &str| {
            let pipeline = pipeline(&home.path().join(name), 4);
            let log = EmbeddedLog::open(&pipeline.log).expect("a log");
            (pipeline, log)
        };
        let run = |pipeline: &Pipeline, log: &EmbeddedLog, steps: usize| {
            let extractors = ExtractorSet::new(pipeline, log.news()).expect("no model to fail");
            let mut vectors = CachedEmbedder::new(pipeline);
            vectors.embedder().expect("a model");
            let mut stage = ExtractionStage::take_over(0, pipeline, log, vectors.model()).expect("a stage");
            let mut step = || stage.step(log, &extractors, &mut vectors, 4_096).expect("a step");
            (0..steps).take_while(|_| step().is_some()).count()
        };
        let (pipeline, log) = open("once");
        log.append_turns(&turns).expect("room");
        run(&pipeline, &log, usize::MAX);
        let before = live(&log);
        log.append_turns(&deletions).expect("room");
        run(&pipeline, &log, 1);
        let hidden = live(&log);
        let is_of_dee = |turn: &str| turns.iter().filter_map(by_dee).any(|of| of == turn);
        let units = |live: &BTreeMap<Vec<u8>, MemoryRecord>| live.values().map(|of| of.units.len()).sum::<usize>();
        for record in hidden.values() {
            let mut sources = record.units.iter().flat_map(|unit| &unit.sources);
            assert!(sources.all(|turn| !is_of_dee(turn)), "{record:?}");
            let said_by_dee = |of: &WindowTurn| is_of_dee(&of.turn.turn);
            assert!(record.turns.iter().filter(|of| said_by_dee(of)).all(|of| of.deleted && of.turn.text.is_empty()));
        }
        let lacking = hidden.values().filter(|record| record.is_in_part()).count();
        assert!(lacking >= 20 && units(&hidden) > 0 && units(&hidden) < units(&before), "{lacking}");
        let steps = run(&pipeline, &log, usize::MAX);
        assert!(steps > 1, "some windows at a time");
        let whole = live(&log);
        assert!(units(&whole) > units(&hidden));

        let (pipeline, other) = open("at-once");
        other.append_turns(&[turns.clone(), deletions].concat()).expect("room");
        run(&pipeline, &other, usize::MAX);
        let at_once = live(&other);
        assert_eq!(at_once.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        // The units of an open turn name the speakers that its window had when it was read.
        let are_closed = |(of, _): &(&MemoryRecord, &MemoryRecord)| of.state == WindowState::Final;
        for (at_once, whole) in at_once.values().zip(whole.values()).filter(are_closed) {
            assert_eq!(at_once, whole, "as if the turns had been deleted before they were extracted");
        }
    }
}
