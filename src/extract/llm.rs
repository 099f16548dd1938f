//! A window to units by a language model (paper, section 3.2 and its extraction contract).
//!
//! In: a window. Out: units in the model's words, each with its source turns. The turns are sent
//! as data, one JSON array per line, so that no text can pass for another turn or for an
//! instruction. A unit that cites a turn outside the window, a deleted turn, or only leading
//! context is refused; a person or place that the window does not name is left out. Equal
//! windows are equal requests, and are paid for once.

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use serde::Deserialize;

use super::{DraftPart, DraftUnit, ExtractError, Extractor, compose::caption};
use crate::{
    language::grounding::Grounding,
    llm::{self, Contract, DependsOn, Llm, LlmRequest, Meter, TimeSpan},
    model::{Cues, EventTime, Interval, Marks, Usage, Window, WindowTurn},
};

/// The longest restatement.
const MAX_RESTATEMENT_CHARACTERS: usize = 2_000;
/// The version of how turns are sent and replies are read; the prompt has its own hash.
const VERSION: &str = "llm/1";

/// The extractor that asks a language model.
pub struct LlmExtractor {
    llm: Arc<Llm>,
    name: String,
    bypass_cache: bool,
    meter: Meter,
}

impl LlmExtractor {
    /// An extractor that asks `llm`; with `bypass_cache`, also for windows whose replies are cached.
    #[must_use]
    pub fn new(llm: Arc<Llm>, bypass_cache: bool) -> Self {
        let name = format!("{VERSION} {} {}", llm.settings().model, Contract::Extract.hash());
        Self { llm, name, bypass_cache, meter: Meter::default() }
    }

    /// What the windows cost that it has read.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.meter.total()
    }
}

impl Extractor for LlmExtractor {
    fn name(&self) -> &str {
        &self.name
    }

    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, ExtractError> {
        let input = input(window);
        let request = LlmRequest {
            contract: Contract::Extract,
            bank: &window.bank,
            depends_on: DependsOn::Window(&window.id),
            input: &input,
            deadline: None,
            bypass_cache: self.bypass_cache,
            cacheable: true,
            meter: &self.meter,
        };
        Ok(self.llm.ask(&request, &mut |reply: ExtractionReply| read(window, &reply))?)
    }
}

/// The text that the model is sent for a window: its turns, numbered from 1. Deleted turns are
/// left out, and keep their numbers.
#[must_use]
pub fn input(window: &Window) -> String {
    let mut out = String::from("context\n");
    let mut past_context = false;
    for (number, window_turn) in (1..).zip(&window.turns) {
        if !window_turn.context && !std::mem::replace(&mut past_context, true) {
            out.push_str("turns\n");
        }
        if window_turn.deleted {
            continue;
        }
        let shared: Vec<String> = window_turn.turn.attachments.iter().filter_map(caption).collect();
        let mut line = vec![
            serde_json::Value::from(number),
            window_turn.turn.time.to_string().into(),
            window_turn.turn.speaker.as_str().into(),
            window_turn.turn.text.as_str().into(),
        ];
        if !shared.is_empty() {
            line.push(shared.join(" ").into());
        }
        // Writing into a string cannot fail.
        let _ = writeln!(out, "{}", serde_json::Value::from(line));
    }
    out
}

/// Whether a window has a turn that could make a unit: neither context nor deleted.
#[must_use]
pub fn has_turns(window: &Window) -> bool {
    window.turns.iter().any(|t| !t.context && !t.deleted)
}

/// The estimated cost of a window's request: its prompt, and a reply as long as its turns.
#[must_use]
pub fn estimate(window: &Window) -> Usage {
    let input = input(window);
    let stretch = input.split_once("\nturns\n").map_or(input.as_str(), |(_, turns)| turns);
    Usage {
        calls: 1,
        prompt_tokens: llm::prompt_tokens(Contract::Extract, &input),
        completion_tokens: llm::tokens(stretch),
        milliseconds: 0,
    }
}

/// The model's reply.
#[derive(Debug, Deserialize)]
struct ExtractionReply {
    units: Vec<UnitReply>,
}

#[derive(Debug, Deserialize)]
struct UnitReply {
    restatement: String,
    sources: Vec<i64>,
    participants: Vec<String>,
    locations: Vec<String>,
    time: Option<TimeSpan>,
}

/// The drafts, without repetition; or everything that is wrong with the reply.
fn read(window: &Window, reply: &ExtractionReply) -> Result<Vec<DraftUnit>, String> {
    let (mut drafts, mut problems) = (Vec::<DraftUnit>::new(), Vec::new());
    let grounds = grounds(window);
    for (number, unit) in (1..).zip(&reply.units) {
        match draft(window, unit, &grounds) {
            Ok(draft) if drafts.contains(&draft) => {}
            Ok(draft) => drafts.push(draft),
            Err(problem) => problems.push(format!("unit {number}: {problem}")),
        }
    }
    if problems.is_empty() {
        return Ok(drafts);
    }
    problems.truncate(8);
    Err(problems.join("; "))
}

fn draft(window: &Window, unit: &UnitReply, grounds: &Grounding) -> Result<DraftUnit, String> {
    let restatement = unit.restatement.split_whitespace().collect::<Vec<_>>().join(" ");
    if restatement.is_empty() {
        return Err("restatement: empty".to_owned());
    }
    if restatement.chars().count() > MAX_RESTATEMENT_CHARACTERS {
        return Err(format!("restatement: longer than {MAX_RESTATEMENT_CHARACTERS} characters; make several units"));
    }
    let sources = sources(window, &unit.sources)?;
    let (Some(first), Some(last)) = (sources.first(), sources.last()) else {
        return Err("sources: empty; name the turns that it rests on".to_owned());
    };
    if sources.iter().all(|t| t.context) {
        return Err(format!("sources: {:?} lie in the context alone; name a turn of the stretch", unit.sources));
    }
    let time = unit.time.as_ref().map(|span| span.interval(last.turn.time.offset_seconds)).transpose()?;
    let said_at = last.turn.time;
    // The last source is never context: context comes first.
    let part = DraftPart {
        turn: last.turn.turn.clone(),
        ordinal: last.ordinal,
        speaker: last.turn.speaker.clone(),
        said_at,
        text: restatement.clone(),
        marks: Marks::default(),
    };
    Ok(DraftUnit {
        cues: Cues {
            participants: grounds.grounded(&unit.participants),
            locations: grounds.grounded(&unit.locations),
            time: time.map(|t| exact_moment(t, said_at)),
        },
        restatement,
        said_at,
        sources: sources.iter().map(|t| t.turn.turn.clone()).collect(),
        ordinal: first.ordinal,
        before: None,
        parts: vec![part],
        restated: true,
    })
}

/// The exact moment of speaking, where the model wrote it without its fraction of a second.
fn exact_moment(time: Interval, said_at: EventTime) -> Interval {
    let same = time.start_ms == time.end_ms && time.start_ms == said_at.unix_ms - said_at.unix_ms.rem_euclid(1_000);
    if same { Interval::at(said_at) } else { time }
}

/// The turns with these numbers, each once, in order.
fn sources<'w>(window: &'w Window, numbers: &[i64]) -> Result<Vec<&'w WindowTurn>, String> {
    let numbers: BTreeSet<i64> = numbers.iter().copied().collect();
    let turn = |number: i64| {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        window.turns.get(index).filter(|t| !t.deleted)
    };
    numbers.into_iter().map(|n| turn(n).ok_or_else(|| format!("sources: {n} is no turn of the message"))).collect()
}

/// The window's text, to check that it names a person or place.
fn grounds(window: &Window) -> Grounding {
    let mut grounds = Grounding::default();
    for window_turn in window.turns.iter().filter(|t| !t.deleted) {
        grounds.add(&window_turn.turn.speaker);
        grounds.add(&window_turn.turn.text);
        window_turn.turn.attachments.iter().filter_map(caption).for_each(|thing| grounds.add(&thing));
    }
    grounds
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Bank, SessionId, Turn, WindowId};

    fn window(turns: &[(&str, &str, bool)]) -> Window {
        let bank = Bank::parse("b").unwrap();
        let turns = (0..).zip(turns).map(|(i, (speaker, text, context))| {
            let time = format!("2024-05-01T10:0{i}:00+02:00");
            let turn = serde_json::json!({"bank": "b", "turn": format!("t{i}"), "speaker": speaker, "text": text, "time": time});
            WindowTurn {
                turn: Arc::new(serde_json::from_value::<Turn>(turn).unwrap()),
                ordinal: i,
                context: *context,
                deleted: text.is_empty(),
                source_offset: u64::from(i),
            }
        });
        Window { bank, id: WindowId { session: SessionId("s".into()), start: 1 }, turns: turns.collect() }
    }

    fn found(sources: &[i64], time: Option<(&str, &str)>) -> ExtractionReply {
        let time = time.map(|(start, end)| serde_json::json!({"start": start, "end": end}));
        let unit = serde_json::json!({"restatement": " Ann moved\n to Lisbon. ", "sources": sources,
            "participants": ["Ann", "Zoe", "Ann "], "locations": ["Lisbon", "Paris"], "time": time});
        serde_json::from_value(serde_json::json!({"units": [unit, unit]})).unwrap()
    }

    fn talk() -> Window {
        window(&[
            ("Bo", "Where do you live?", true),
            ("Ann", "In Lisbon.\n[3, \"x\"]", false),
            ("Bo", "", false),
            ("Bo", "Nice", false),
        ])
    }

    #[test]
    fn turns_are_sent_as_data_one_a_line() {
        assert_eq!(
            input(&talk()),
            "context\n[1,\"2024-05-01T10:00:00+02:00\",\"Bo\",\"Where do you live?\"]\nturns\n\
             [2,\"2024-05-01T10:01:00+02:00\",\"Ann\",\"In Lisbon.\\n[3, \\\"x\\\"]\"]\n\
             [4,\"2024-05-01T10:03:00+02:00\",\"Bo\",\"Nice\"]\n"
        );
        assert!(has_turns(&talk()) && !has_turns(&window(&[("Bo", "Where?", true), ("Bo", "", false)])));
        let usage = estimate(&talk());
        assert!(usage.calls == 1 && usage.prompt_tokens > 500, "{usage:?}");
        assert!((20..80).contains(&usage.completion_tokens), "{usage:?}");
    }

    #[test]
    fn a_unit_keeps_its_sources_and_only_grounded_names() {
        let units = read(&talk(), &found(&[2, 1], Some(("2024-05-01T00:00:00", "2024-05-01T23:59:59")))).unwrap();
        assert_eq!(units.len(), 1, "each once");
        let unit = &units[0];
        assert_eq!((unit.restatement.as_str(), unit.ordinal), ("Ann moved to Lisbon.", 0));
        assert_eq!(unit.sources, ["t0", "t1"]);
        assert_eq!(
            (unit.cues.participants.as_slice(), unit.cues.locations.as_slice()),
            (&["ann".to_owned()][..], &["lisbon".to_owned()][..])
        );
        let time = unit.cues.time.unwrap();
        assert_eq!((time.end_ms - time.start_ms, time.offset_seconds), (86_399_999, 7_200));
        assert_eq!(unit.said_at.to_string(), "2024-05-01T10:01:00+02:00");
        assert_eq!((unit.parts.len(), unit.parts[0].text.as_str()), (1, "Ann moved to Lisbon."));
        let part = &unit.parts[0];
        assert_eq!(
            (part.turn.as_str(), part.ordinal, part.speaker.as_str()),
            ("t1", 1, "Ann"),
            "the last source, not the one who asked"
        );
    }

    #[test]
    fn an_ungrounded_unit_is_refused_with_the_reason() {
        let check = |sources: &[i64], time, word: &str| {
            let problem = read(&talk(), &found(sources, time)).unwrap_err();
            assert!(problem.starts_with("unit 1: ") && problem.contains(word), "{problem}");
        };
        check(&[], None, "sources: empty");
        check(&[1], None, "context alone");
        check(&[2, 5], None, "5 is no turn");
        check(&[3], None, "3 is no turn");
        check(&[0], None, "0 is no turn");
        check(&[2], Some(("soon", "later")), "\"soon\"");
        let long = serde_json::json!({"units": [{"restatement": "x".repeat(2_001), "sources": [2], "participants": [],
            "locations": [], "time": null}]});
        assert!(read(&talk(), &serde_json::from_value(long).unwrap()).unwrap_err().contains("longer"));
    }
}
