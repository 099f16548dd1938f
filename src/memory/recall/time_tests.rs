//! Questions with a time, asked of a memory of 400 days that the rules and the dataflow make; and of turns whose dates
//! lie before, in and after the day on which they were said. Vectors are counts of words, so no model is needed.

use std::sync::Arc;

use jiff::civil::{Date, date};

use super::{EmbedFunction, RecallModels, RulesPlanner, recollect};
use crate::{
    extract::{DraftUnit, Extractor, rules_extractor::RulesExtractor},
    index::{ChangeListeners, RecordKey, RecordLoad, RecordUnits, ShardHandle, ShardThreadPool},
};
use types::{
    config::Pipeline,
    model::{
        Bank, EventTime, Evidence, MemoryKey, MemoryRecord, ModelRef, PeriodReading, PeriodSubject, PeriodUse,
        Question, SCHEMA_VERSION, Score, SessionId, Turn, Unit, UnitId, UnitPart, Vector, Window, WindowId,
        WindowState, WindowTurn,
    },
};

const WIDTH: usize = 64;
const BANK: &str = "days";

/// Counts of the words of a text, by a hash of each.
fn vector(text: &str) -> Vector {
    let mut counts = vec![0.01_f32; WIDTH];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let hash = word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        counts[hash % WIDTH] += 1.0;
    }
    let length = counts.iter().map(|x| x * x).sum::<f32>().sqrt();
    Vector::from(counts.iter().map(|x| x / length).collect::<Vec<f32>>())
}

fn turn(id: &str, ordinal: u32, at: &str, speaker: &str, text: &str) -> WindowTurn {
    let turn = Turn {
        bank: Bank::parse(BANK).unwrap(),
        turn: id.to_owned(),
        version: 0,
        speaker: speaker.to_owned(),
        kind: None,
        text: text.to_owned(),
        time: EventTime::parse(at).unwrap(),
        session: None,
        thread: None,
        reply_to: None,
        attachments: Vec::new(),
        metadata: None,
        recall: true,
    };
    WindowTurn { turn: Arc::new(turn), ordinal, context: false, deleted: false, source_offset: 0, stored: None }
}

/// The units of a window in which these turns were said, as a record of the memory log.
fn record(session: &str, turns: Vec<WindowTurn>) -> MemoryRecord {
    let (bank, pipeline) = (Bank::parse(BANK).unwrap(), Pipeline::parse("version = 1").unwrap());
    let id = WindowId { session: SessionId(session.to_owned()), start: 0 };
    let window = Window { bank: bank.clone(), id: id.clone(), turns };
    let drafts = RulesExtractor::new(&pipeline.extract).extract(&window).unwrap();
    let unit = |draft: DraftUnit| Unit {
        id: UnitId::of(&bank, &id, &draft.sources, &draft.restatement, &draft.cues),
        vector: vector(&draft.restatement),
        restatement: draft.restatement,
        cues: draft.cues,
        said_at: draft.said_at,
        ordinal: draft.ordinal,
        sources: draft.sources,
        parts: draft
            .parts
            .into_iter()
            .map(|part| UnitPart {
                vectors: vec![vector(&part.text)],
                pair: None,
                turn: part.turn,
                ordinal: part.ordinal,
                speaker: part.speaker,
                kind: part.kind,
                said_at: part.said_at,
                text: part.text,
                range: part.range,
                marks: part.marks,
            })
            .collect(),
    };
    MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: bank.clone(),
        window: id.clone(),
        state: WindowState::Final,
        turns_hash: String::new(),
        extractor: "rules".to_owned(),
        cutter: None,
        model: ModelRef { name: "words".to_owned(), hash: "0".to_owned() },
        turns: Vec::new(),
        units: drafts.into_iter().map(unit).collect(),
        statements: None,
    }
}

fn memory(records: &[MemoryRecord], candidates_from: usize) -> ShardHandle {
    let threads = ShardThreadPool::start(1).unwrap();
    let mut settings = Pipeline::parse("version = 1").unwrap().memory;
    settings.candidates_from_parts = candidates_from;
    let memory = ShardHandle::start_on(&threads, &settings, Score::from_f64(0.9), ChangeListeners::default()).unwrap();
    let change = |record: &MemoryRecord| {
        let key = MemoryKey { bank: record.bank.clone(), window: record.window.clone(), turn: None, part: 0 };
        (RecordKey::from(&key), Some(Arc::new(RecordUnits::new(record, WIDTH).unwrap())))
    };
    memory.load(RecordLoad { changes: records.iter().map(change).collect(), ..RecordLoad::default() }).unwrap();
    memory
}

fn ask(memory: &ShardHandle, text: &str, asked_at: &str) -> Evidence {
    let pipeline = Pipeline::parse("version = 1").unwrap();
    let mut question = Question::new(Bank::parse(BANK).unwrap(), text);
    question.asked_at = Some(EventTime::parse(asked_at).unwrap());
    let model = ModelRef { name: "words".to_owned(), hash: "0".to_owned() };
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(|text| vector(text)).collect());
    let embed: &mut EmbedFunction<'_> = &mut embed;
    let models = RecallModels { embed, model: &model, rerank: None };
    recollect(memory, models, &question, &RulesPlanner::new(&pipeline.model()), &pipeline.recall).unwrap()
}

/// The days of the quoted turns, whose ids begin with them.
fn quoted_days(evidence: &Evidence) -> Vec<Date> {
    evidence.context_turns.iter().flatten().map(|turn| turn[..10].parse().unwrap()).collect()
}

/// Three turns on each of 400 days, up to and with 14 October 2026.
fn days() -> Vec<MemoryRecord> {
    const THINGS: [&str; 7] = ["kayak", "boathouse", "orchard", "kiln", "ferry", "violin", "beehive"];
    const DONE: [&str; 5] = ["painted", "repaired", "cleaned", "measured", "moved"];
    let last = date(2026, 10, 14);
    (0..400_usize)
        .map(|back| {
            let day = last.checked_sub(jiff::Span::new().days(back as i64)).unwrap();
            let said = |part: usize| {
                let (thing, done) = (THINGS[(back * 3 + part) % 7], DONE[(back + part * 2) % 5]);
                let text = format!("We {done} the {thing} and it took longer than we thought.");
                let at = format!("{day}T{:02}:00:00Z", 8 + part * 5);
                turn(&format!("{day}-{part}"), part as u32, &at, ["Ann", "Bo"][part % 2], &text)
            };
            record(&format!("s{back}"), (0..3).map(said).collect())
        })
        .collect()
}

/// Wordings, and the first and last day of what they name.
const WORDINGS: [(&str, &str, &str); 44] = [
    ("yesterday", "2026-10-13", "2026-10-13"),
    ("today", "2026-10-14", "2026-10-14"),
    ("the day before yesterday", "2026-10-12", "2026-10-12"),
    ("yesterday evening", "2026-10-13", "2026-10-13"),
    ("last week", "2026-10-05", "2026-10-11"),
    ("this week", "2026-10-12", "2026-10-14"),
    ("two weeks ago", "2026-09-28", "2026-10-04"),
    ("a fortnight ago", "2026-09-28", "2026-10-04"),
    ("a few weeks ago", "2026-09-07", "2026-10-04"),
    ("last month", "2026-09-01", "2026-09-30"),
    ("this month", "2026-10-01", "2026-10-14"),
    ("a month ago", "2026-09-01", "2026-09-30"),
    ("last year", "2025-09-10", "2025-12-31"),
    ("in 2025", "2025-09-10", "2025-12-31"),
    ("in the past 7 days", "2026-10-07", "2026-10-14"),
    ("over the last 10 days", "2026-10-04", "2026-10-14"),
    ("in the past two weeks", "2026-09-30", "2026-10-14"),
    ("in the last few days", "2026-10-08", "2026-10-14"),
    ("in the last 24 hours", "2026-10-13", "2026-10-14"),
    ("in the past month", "2026-09-14", "2026-10-14"),
    ("since Monday", "2026-10-12", "2026-10-14"),
    ("since 5 October 2026", "2026-10-05", "2026-10-14"),
    ("after July 25, 2026", "2026-07-26", "2026-10-14"),
    ("before 5 October 2025", "2025-09-10", "2025-10-04"),
    ("between June and August 2026", "2026-06-01", "2026-08-31"),
    ("on the 25th and 26th of July", "2026-07-25", "2026-07-26"),
    ("on 25/26 July", "2026-07-25", "2026-07-26"),
    ("from July 25 to 26", "2026-07-25", "2026-07-26"),
    ("in July", "2026-07-01", "2026-07-31"),
    ("in September 2026", "2026-09-01", "2026-09-30"),
    ("in 2026-07", "2026-07-01", "2026-07-31"),
    ("on 2026-07-25", "2026-07-25", "2026-07-25"),
    ("in Q3", "2026-07-01", "2026-09-30"),
    ("in the first quarter of 2026", "2026-01-01", "2026-03-31"),
    ("last quarter", "2026-07-01", "2026-09-30"),
    ("in week 30", "2026-07-20", "2026-07-26"),
    ("in 2026-W30", "2026-07-20", "2026-07-26"),
    ("in the second week of September", "2026-09-08", "2026-09-14"),
    ("in the summer of 2026", "2026-06-01", "2026-08-31"),
    ("last weekend", "2026-10-10", "2026-10-11"),
    ("on Monday", "2026-10-12", "2026-10-12"),
    ("at Christmas", "2025-12-24", "2025-12-26"),
    ("on New Year's Eve", "2025-12-31", "2025-12-31"),
    ("so far this year", "2026-01-01", "2026-10-14"),
];

/// In a bank whose every part is scored, and in one with an index of candidates.
#[test]
fn nine_in_ten_quotes_lie_in_the_time_however_it_is_worded() {
    let records = days();
    for candidates_from in [usize::MAX, 200] {
        let memory = memory(&records, candidates_from);
        let mut wrong = Vec::new();
        for (words, first, last) in WORDINGS {
            let (first, last): (Date, Date) = (first.parse().unwrap(), last.parse().unwrap());
            let evidence = ask(&memory, &format!("What happened {words}?"), "2026-10-14T20:00:00Z");
            let quoted = quoted_days(&evidence);
            let inside = quoted.iter().filter(|day| (first..=last).contains(day)).count();
            if quoted.is_empty() || inside * 10 < quoted.len() * 9 || !evidence.supported {
                wrong.push(format!(
                    "{words}: {inside} of {}, supported {}, {:?}",
                    quoted.len(),
                    evidence.supported,
                    evidence.trace.period
                ));
            }
        }
        assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), WORDINGS.len(), wrong.join("\n"));
    }
}

#[test]
fn a_topic_beside_a_time_is_found_outside_it_too() {
    let memory = memory(&days(), usize::MAX);
    let evidence = ask(&memory, "Who painted the kayak last month?", "2026-10-14T20:00:00Z");
    let period = evidence.trace.period.clone().unwrap();
    assert_eq!((period.used, period.reading), (PeriodUse::Weighs, PeriodReading::Certain));
    assert!(evidence.context.contains("kayak"), "{}", evidence.context);
    let september = (date(2026, 9, 1)..=date(2026, 9, 30), quoted_days(&evidence));
    assert!(september.1.iter().any(|day| september.0.contains(day)), "{:?}", september.1);
}

/// Turns of 10 April 2026 about other days, among quiet days.
fn dated() -> ShardHandle {
    let about = [
        ("before", "Yesterday the pump broke and we repaired it with a spoon."),
        ("now", "Today the roof of the shed was painted in a bright green."),
        ("after", "I've booked the hut for them, 20 to 22 November, with a stove."),
    ];
    let said = |(at, (_, text)): (usize, &(&str, &str))| {
        turn(&format!("2026-04-10-{at}"), at as u32, &format!("2026-04-10T1{at}:00:00Z"), "Ann", text)
    };
    let mut records = vec![record("dated", about.iter().enumerate().map(said).collect())];
    records.extend([date(2026, 2, 1), date(2026, 6, 1), date(2026, 8, 20)].into_iter().enumerate().map(|(at, day)| {
        let text = "The garden was quiet and the bees were lazy in the sun.";
        record(&format!("quiet{at}"), vec![turn(&format!("{day}-0"), 0, &format!("{day}T10:00:00Z"), "Bo", text)])
    }));
    memory(&records, usize::MAX)
}

#[test]
fn a_turn_is_found_by_the_day_that_it_tells_of() {
    let memory = dated();
    let quoted = |text: &str| {
        let evidence = ask(&memory, text, "2026-12-01T10:00:00Z");
        (evidence.context.clone(), evidence.trace.period.clone().unwrap(), evidence.supported)
    };
    for (text, holds, lacks) in [
        ("What happened on 9 April 2026?", "pump", "hut"),
        ("What happened on 21 November 2026?", "hut", "pump"),
        ("What happened in November 2026?", "hut", "pump"),
        ("What happened from 20 to 22 November?", "hut", "roof"),
    ] {
        let (context, period, supported) = quoted(text);
        assert!(context.contains(holds) && !context.contains(lacks) && supported, "{text}: {context}");
        assert_eq!((period.parts, period.of), (1, PeriodSubject::SaidOrHappened), "{text}");
    }
    let (context, period, _) = quoted("What happened on 10 April 2026?");
    assert_eq!(period.parts, 3, "all three were said then: {context}");
    let (context, period, supported) = quoted("What did we talk about on 21 November 2026?");
    assert_eq!((period.parts, period.of, supported), (0, PeriodSubject::Said, false));
    let first = context.lines().next().unwrap_or_default();
    assert!(first.contains("nothing was said in the time 21 November 2026"), "{context}");
}

#[test]
fn a_period_that_holds_nothing_is_said_in_the_first_line() {
    let memory = dated();
    let first = |text: &str| {
        let evidence = ask(&memory, text, "2026-12-01T10:00:00Z");
        assert!(evidence.tokens.spent <= evidence.tokens.most);
        evidence.context.lines().next().unwrap_or_default().to_owned()
    };
    let nothing = "nothing was said or happened in the time March 2026";
    assert!(first("What happened in March 2026?").contains(nothing));
    assert!(first("Who repaired the pump in March 2026?").contains(nothing));
    // Which October is inferred, so nothing is claimed.
    assert!(!first("Who repaired the pump in October?").contains("nothing was said"));
    assert!(!first("Who repaired the pump?").contains("nothing was said"));
}
