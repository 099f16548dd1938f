//! Selectors at random: which parts they take, and what the probes then find, against the plain reference.

use std::collections::BTreeMap;

use memory::index::{FamiliarPart, FamiliarityResult, MatchProbe, MatchingParts};
use types::model::{
    BankKey, EventTime, Metadata, MetadataCondition, Selector, SpeakerKind, Turn, UnitId, UnitPart, ValueTest,
    WindowTurn,
};

use super::{
    Channel, Dice, FamiliarityProbe, FirstHopProbe, History, Layout, NeighbourhoodProbe, ONE, Operation, Reference,
    Score, Shards, THRESHOLD, familiarity, pipeline, probes, walks,
};

/// The turns of all records, by bank and id.
type Turns = BTreeMap<(BankKey, String), Turn>;

/// Gives every part of a record a turn, with metadata at random.
fn add_turns(operation: &mut Operation, dice: &mut Dice) {
    let key = operation.key.clone();
    let Some(record) = &mut operation.record else { return };
    record.extractor = ["rules/6", "plain/3", "llm/1"][dice.below(3) as usize].to_owned();
    let by_model = record.extractor.starts_with("llm");
    let place = format!("{}/{}/{:?}/{}", key.window.session.0, key.window.start, key.turn, key.part);
    let mut turns: Vec<Turn> = Vec::new();
    for (at, unit) in record.units.iter_mut().enumerate() {
        let is_long = unit.parts.iter().any(|part| part.range.is_some());
        let speaker = unit.parts[0].speaker.clone();
        for (n, part) in unit.parts.iter_mut().enumerate() {
            part.turn = format!("{place}-{at}-{}", if is_long { 0 } else { n });
            if is_long {
                part.speaker.clone_from(&speaker);
            }
            part.kind = [None, Some(SpeakerKind::Tool), Some(SpeakerKind::Person)][part.speaker.len() % 3];
        }
        unit.sources = unit.parts.iter().map(|part| part.turn.clone()).collect();
        unit.sources.dedup();
        let own =
            |part: &UnitPart, text: String, dice: &mut Dice| turn(&key.bank, &key.window.session.0, part, text, dice);
        if by_model && dice.below(2) == 0 {
            // A restated memory of two turns, whose words it does not hold.
            let said = UnitPart { turn: format!("{place}-{at}-other"), ..unit.parts[0].clone() };
            turns.push(own(&unit.parts[0], super::history::words(dice, 3), dice));
            turns.push(own(&said, super::history::words(dice, 3), dice));
            unit.parts.truncate(1);
            unit.parts[0].range = None;
            unit.parts[0].text.clone_from(&unit.restatement);
            unit.sources = vec![unit.parts[0].turn.clone(), said.turn];
        } else if is_long {
            let text = unit.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
            turns.push(own(&unit.parts[0], text, dice));
        } else {
            turns.extend(unit.parts.iter().map(|part| own(part, part.text.clone(), dice)));
        }
    }
    let held = |(ordinal, turn): (u32, Turn)| WindowTurn {
        turn: turn.into(),
        ordinal,
        context: false,
        deleted: false,
        source_offset: 0,
        stored: None,
    };
    record.turns = (0..).zip(turns).map(held).collect();
}

fn turn(bank: &types::model::Bank, session: &str, part: &UnitPart, text: String, dice: &mut Dice) -> Turn {
    let metadata = match dice.below(4) {
        0 => None,
        1 => Metadata::from_json(&format!(r#"{{"n":{},"tags":["x"]}}"#, dice.below(4))),
        2 => Metadata::from_json(&format!(r#"{{"n":{}.5,"deep":{{"k":"v{}"}}}}"#, dice.below(4), dice.below(3))),
        _ => Metadata::from_json(r#"{"n":"2","tags":"x"}"#),
    };
    let own_session = session.strip_prefix("caller:").map(str::to_owned);
    let (session, thread) = match dice.below(3) {
        0 => (Some("elsewhere".to_owned()), Some("t".to_owned())),
        _ => (own_session, None),
    };
    let said = Turn::new(bank.clone(), &part.turn, &part.speaker, &text, part.said_at);
    Turn { kind: part.kind, metadata, session, thread, ..said }
}

fn selector(dice: &mut Dice, turns: &Turns) -> Selector {
    let mut select = Selector::default();
    let some_turn = turns.values().nth(dice.below(turns.len() as u64) as usize);
    for _ in 0..1 + dice.below(2) {
        match dice.below(9) {
            0 => select.session = Some(["0", "1", "elsewhere"][dice.below(3) as usize].to_owned()),
            1 => select.session_prefix = Some(["else", "1", "x"][dice.below(3) as usize].to_owned()),
            2 => select.thread = Some("t".to_owned()),
            3 => select.kinds = vec![[SpeakerKind::Tool, SpeakerKind::Person][dice.below(2) as usize]],
            4 => select.speakers = vec![["ANN", "bo  lee", "kit"][dice.below(3) as usize].to_owned()],
            5 => select.mentions = vec![["hull", "seeds tenor", "Oslo"][dice.below(3) as usize].to_owned()],
            6 => select.since = EventTime::new(1_700_000_000_000 + dice.below(40) as i64 * 36_000_000, 0).ok(),
            7 => select.turns = some_turn.map(|turn| turn.turn.clone()).into_iter().collect(),
            _ => select.metadata = Some(condition(dice, 2)),
        }
    }
    select
}

fn condition(dice: &mut Dice, levels: u32) -> MetadataCondition {
    let path = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let n = |test: ValueTest| MetadataCondition::Field { path: path(&["n"]), test };
    let bound = (dice.below(4) as f64).into();
    match dice.below(if levels > 0 { 9 } else { 6 }) {
        0 => n(ValueTest::Eq(bound)),
        1 => n(ValueTest::Gt(bound)),
        2 => n(ValueTest::In(vec![bound, "2".into()])),
        3 => n(ValueTest::Exists(dice.below(2) == 0)),
        4 => MetadataCondition::Field { path: path(&["tags"]), test: ValueTest::Has("x".into()) },
        5 => MetadataCondition::Field { path: path(&["deep", "k"]), test: ValueTest::Gte("v1".into()) },
        6 => MetadataCondition::Not(Box::new(condition(dice, levels - 1))),
        7 => MetadataCondition::All(vec![condition(dice, levels - 1), condition(dice, levels - 1)]),
        _ => MetadataCondition::Any(vec![condition(dice, levels - 1), condition(dice, levels - 1)]),
    }
}

/// Which parts of a bank a selector takes, by the turns themselves.
fn expected(reference: &Reference, bank: BankKey, select: &Selector, turns: &Turns) -> BTreeMap<UnitId, Vec<bool>> {
    let select = select.compile().unwrap();
    let takes = |turn: &str| select.takes(&turns[&(bank, turn.to_owned())]);
    let of_unit = |body: &memory::index::UnitBody| {
        if body.is_restated() {
            return vec![body.sources().all(takes)];
        }
        body.parts().map(|part| takes(part.turn)).collect()
    };
    reference.bank(bank).map(|unit| (unit.id, of_unit(&unit.body))).collect()
}

fn check(seed: u64, operations: usize, layout: Layout) -> [usize; 2] {
    let mut history = History::new(seed, operations);
    let mut dice = Dice(seed ^ 0x5E1E);
    history.operations.iter_mut().for_each(|operation| add_turns(operation, &mut dice));
    let live = history.live();
    let of = |record: &types::model::MemoryRecord| {
        let turns = record.turns.iter().map(|held| (*held.turn).clone());
        turns.map(|turn| ((record.bank.key(), turn.turn.clone()), turn)).collect::<Vec<_>>()
    };
    let turns: Turns = live.values().flat_map(of).collect();
    let reference = Reference::new(&live, &pipeline(), Score::from_f64(THRESHOLD));
    let memory = Shards::start(layout);
    memory.load(&history.operations);
    let (mut some, mut walked) = (0, 0);
    for (i, probe) in probes(&history.banks, &mut dice).iter().enumerate() {
        let bank = history.banks.iter().find(|bank| bank.key() == probe.bank).unwrap();
        let shard = memory.of(bank);
        let select = selector(&mut dice, &turns);
        let expected = expected(&reference, probe.bank, &select, &turns);
        let matching = shard.matching_parts(MatchProbe { bank: probe.bank, select: select.clone() }).unwrap().value;
        for (unit, parts) in &expected {
            for (at, taken) in parts.iter().enumerate() {
                assert_eq!(matching.takes(*unit, at as u32), *taken, "seed {seed}: {unit} part {at} of {select:?}");
            }
            some += usize::from(parts.contains(&true) && parts.contains(&false));
        }
        let within = Some(std::sync::Arc::clone(&matching));
        check_first_hop(&reference, shard, &FirstHopProbe { matching: within.clone(), ..probe.clone() }, &matching);
        for (candidates, linked_units) in [(0, 0), (14, 2)] {
            let all = FamiliarityProbe { limit: usize::MAX, candidates: 0, ..familiarity(probe) };
            let all = shard.familiar_parts(all).unwrap().value;
            let asked = FamiliarityProbe { candidates, linked_units, matching: within.clone(), ..familiarity(probe) };
            check_familiar(&asked, &all, &shard.familiar_parts(asked.clone()).unwrap().value, &matching);
        }
        let hits = shard.first_hop(probe.clone()).unwrap().value;
        let walk = NeighbourhoodProbe { matching: within, ..walks(probe, &hits, i % 2 == 1) };
        let found = shard.neighbourhood(walk.clone()).unwrap().value;
        assert_eq!(found, reference.neighbourhood(&walk), "seed {seed}: neighbours of probe {i}");
        assert!(found.iter().all(|near| matching.takes_any(near.unit.id)));
        walked += found.len();
    }
    [some, walked]
}

fn check_first_hop(
    reference: &Reference,
    shard: &memory::index::ShardHandle,
    probe: &FirstHopProbe,
    matching: &MatchingParts,
) {
    let hits = shard.first_hop(probe.clone()).unwrap().value;
    let every = FirstHopProbe { semantic: 10_000, lexical: 10_000, cue: 10_000, matching: None, ..probe.clone() };
    let every_hit = shard.first_hop(every.clone()).unwrap().value;
    for (channel, most) in
        [(Channel::Semantic, probe.semantic), (Channel::Lexical, probe.lexical), (Channel::Structural, probe.cue)]
    {
        let got: Vec<_> =
            hits.iter().filter(|hit| hit.channel == channel).map(|hit| (hit.score, hit.unit.id)).collect();
        let mut expected: Vec<(Score, UnitId)> = match channel {
            Channel::Lexical => {
                every_hit.iter().filter(|hit| hit.channel == channel).map(|hit| (hit.score, hit.unit.id)).collect()
            }
            _ => {
                let of_all = reference.first_hop(&every);
                let found = of_all.into_iter().find(|(of, _)| *of == channel).map(|(_, found)| found);
                found.into_iter().flatten().map(|(score, _, unit)| (score, unit)).collect()
            }
        };
        expected.retain(|(_, unit)| matching.takes_any(*unit));
        expected.truncate(most);
        assert_eq!(got, expected, "{channel}");
    }
}

/// The parts that match are ranked as in the whole bank, on a scale of their own; of a large bank, only they are
/// candidates.
fn check_familiar(
    probe: &FamiliarityProbe,
    all: &FamiliarityResult,
    got: &FamiliarityResult,
    matching: &MatchingParts,
) {
    let takes = |part: &&FamiliarPart| matching.takes(part.unit.id, part.part as u32);
    let taken: Vec<&FamiliarPart> = all.best.iter().filter(takes).collect();
    assert!(got.best.iter().all(|part| takes(&part)));
    assert_eq!(got.best.len(), taken.len().min(probe.limit).min(got.best.len().max(1)), "none is missing");
    let tokens = |parts: &[&FamiliarPart]| -> f64 {
        let bytes =
            |part: &&FamiliarPart| part.unit.part(part.part).map_or(0, |body| body.speaker.len() + body.text.len());
        2.0 * parts.len() as f64 + parts.iter().map(bytes).sum::<usize>() as f64 / 4.2
    };
    assert!((got.tokens - tokens(&taken)).abs() < 1e-9);
    if probe.candidates > 0 {
        return;
    }
    let named = |part: &FamiliarPart| (part.unit.id, part.part, Score::from_f64(part.score / 16.0));
    let expected: Vec<_> = taken.iter().take(probe.limit).map(|part| named(part)).collect();
    assert_eq!(got.best.iter().map(named).collect::<Vec<_>>(), expected);
    if !taken.is_empty() {
        let wanted = probe.zero * tokens(&taken).min(probe.scale_tokens as f64);
        let above = (1..=taken.len()).find(|n| tokens(&taken[..*n]) >= wanted).unwrap_or(taken.len()).min(1_000);
        assert_eq!(named(taken[above - 1]).2, Score::from_f64(got.zero / 16.0));
    }
}

/// Which turns a selector takes, and what is found among them, equal what the reference finds from the turns.
#[test]
fn a_selector_takes_what_the_turns_themselves_say_and_nothing_else_is_found() {
    let mut seen = [0, 0];
    for seed in 0..10 {
        let layout = if seed % 2 == 0 { ONE } else { Layout { shards: 2, threads: 2, slice: 1 } };
        let of_seed = check(seed, 80, layout);
        seen = [seen[0] + of_seed[0], seen[1] + of_seed[1]];
    }
    let of_large = check(77, 300, ONE);
    assert!(seen[0] + of_large[0] > 20, "units of which a part matches: {seen:?}");
    assert!(seen[1] + of_large[1] > 20, "units that are walked over: {seen:?}");
}
