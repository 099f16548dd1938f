//! Turns a window into units with a language model (paper, section 3.2 and its extraction contract).
//!
//! In: a window. Out: units in the model's words, each with its source turns. The turns are sent as data, one JSON
//! array per line, so that no text can pass for another turn or for an instruction. A unit that cites a turn outside
//! the window or a deleted turn is refused. A unit that rests only on leading context is left out, because the previous
//! window has it. A reply without units is refused if the rules find something. A person or place that the window does
//! not name is left out. Equal windows are equal requests, and are paid for once. A window that is longer than the
//! model's context, by our estimate or by the endpoint's reply, is sent as several stretches, each in its own request;
//! if the request for one of them fails, the whole window fails.

use std::{collections::BTreeSet, fmt::Write, ops::Range, sync::Arc};

use serde::Deserialize;

use crate::llm::{self, Contract, LlmClient, LlmError, LlmRequest, ModelTimeSpan, RequestDependency, UsageMeter};
use memory::extract::{DraftPart, DraftUnit, Extractor, caption, rules_extractor::RulesExtractor};
use memory::language::{grounding::GroundingTexts, multilingual::language_of};
use types::{
    config::{ExtractSettings, LlmSettings},
    model::{Cues, EventTime, Interval, Language, ModelUsage, TextFeatures, Window, WindowTurn},
};

/// The number of turns before a later stretch of a window that are sent with it as context.
const CONTEXT_TURNS: usize = 2;
/// The limit of a reply: this base, and [`REPLY_FACTOR`] for each token of the stretch's turns.
const REPLY_TOKENS: u64 = 512;
const REPLY_FACTOR: u64 = 3;
/// The line before the turns that are not context.
const TURNS: &str = "turns\n";
/// The version of how turns are sent and replies are read; the prompt has its own hash.
const VERSION: &str = "llm/1";

/// The extractor that asks a language model.
pub struct LlmExtractor {
    llm: Arc<LlmClient>,
    name: String,
    /// The rules decide whether a window contains anything if the model finds nothing.
    rules: RulesExtractor,
    bypass_cache: bool,
    meter: UsageMeter,
}

impl LlmExtractor {
    /// An extractor that asks `llm`; with `bypass_cache`, also for windows whose replies are cached.
    #[must_use]
    pub fn new(llm: Arc<LlmClient>, rules: &ExtractSettings, bypass_cache: bool) -> Self {
        let name = format!("{VERSION} {} {}", llm.settings().model, Contract::Extract.hash());
        Self { llm, name, rules: RulesExtractor::new(rules), bypass_cache, meter: UsageMeter::default() }
    }

    /// The cost of the windows that it has read.
    #[must_use]
    pub fn usage(&self) -> ModelUsage {
        self.meter.total()
    }
}

impl Extractor for LlmExtractor {
    type Error = LlmError;

    fn name(&self) -> &str {
        &self.name
    }

    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, LlmError> {
        let mut drafts = Vec::new();
        let mut open = stretches(window, self.llm.settings());
        open.reverse();
        while let Some(stretch) = open.pop() {
            let found = match self.ask(window, &stretch) {
                Ok(found) => found,
                // The model's vocabulary needs more tokens than estimated, or the length of its context is not set.
                Err(error) if error.is_too_long() && stretch.turns() > 1 => {
                    open.extend(halves(window, &stretch).into_iter().rev());
                    continue;
                }
                Err(error) => return Err(error),
            };
            for draft in found {
                if !drafts.contains(&draft) {
                    drafts.push(draft);
                }
            }
        }
        Ok(drafts)
    }
}

impl LlmExtractor {
    fn ask(&self, window: &Window, stretch: &WindowExcerpt) -> Result<Vec<DraftUnit>, LlmError> {
        let input = input(window, stretch);
        let says_something = self.says_something(window, stretch);
        let request = LlmRequest {
            contract: Contract::Extract,
            bank: &window.bank,
            depends_on: RequestDependency::Window(&window.id),
            input: &input,
            reply_tokens: Some(reply_tokens(&input)),
            deadline: None,
            bypass_cache: self.bypass_cache,
            cacheable: true,
            meter: &self.meter,
        };
        self.llm.ask(&request, &mut |reply: ExtractionReply| {
            let drafts = read(window, stretch, &reply)?;
            // An empty list would erase what the rules have found.
            if drafts.is_empty() && says_something {
                return Err("units: empty, and the turns say something; write what they state".to_owned());
            }
            Ok(drafts)
        })
    }

    /// Whether the rules find something in a stretch.
    fn says_something(&self, window: &Window, stretch: &WindowExcerpt) -> bool {
        let turns = window.turns.get(stretch.start..stretch.shown.end).unwrap_or_default();
        let drafts = self.rules.extract(window).unwrap_or_default();
        drafts.iter().any(|draft| turns.iter().any(|turn| draft.sources.contains(&turn.turn.turn)))
    }
}

/// A part of a window that is sent in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WindowExcerpt {
    /// The turns that are sent, context included, as indexes into the window's turns.
    shown: Range<usize>,
    /// The index of the first turn that is not context.
    start: usize,
}

impl WindowExcerpt {
    /// How many turns it has that are not context.
    fn turns(&self) -> usize {
        self.shown.end - self.start
    }
}

/// The texts that the model is sent for a window, one for each request.
#[must_use]
pub fn inputs(window: &Window, settings: &LlmSettings) -> Vec<String> {
    stretches(window, settings).iter().map(|stretch| input(window, stretch)).collect()
}

/// The whole window if that fits into the model's context, otherwise its halves, and so on down to single turns. A turn
/// that does not fit by itself is still a stretch, which is refused before it is sent.
fn stretches(window: &Window, settings: &LlmSettings) -> Vec<WindowExcerpt> {
    let start = window.turns.iter().position(|t| !t.context).unwrap_or(window.turns.len());
    let (mut found, mut open) = (Vec::new(), live(window, [WindowExcerpt { shown: 0..window.turns.len(), start }]));
    while let Some(stretch) = open.pop() {
        let text = input(window, &stretch);
        if stretch.turns() < 2 || llm::fits(settings, Contract::Extract, &text, reply_tokens(&text)) {
            found.push(stretch);
        } else {
            open.extend(halves(window, &stretch).into_iter().rev());
        }
    }
    found
}

/// Splits a stretch of two turns or more into two, each with the turns before it.
fn halves(window: &Window, stretch: &WindowExcerpt) -> Vec<WindowExcerpt> {
    let middle = stretch.start + stretch.turns() / 2;
    let first = WindowExcerpt { shown: stretch.shown.start..middle, start: stretch.start };
    let second = WindowExcerpt { shown: middle.saturating_sub(CONTEXT_TURNS)..stretch.shown.end, start: middle };
    live(window, [first, second])
}

/// The stretches that have a turn to read: neither deleted nor kept from recall.
fn live<const N: usize>(window: &Window, stretches: [WindowExcerpt; N]) -> Vec<WindowExcerpt> {
    let has_turns = |s: &WindowExcerpt| window.turns[s.start..s.shown.end].iter().any(WindowTurn::is_recalled);
    stretches.into_iter().filter(has_turns).collect()
}

/// The text that the model is sent for a stretch: its turns, with their numbers in the window, from
/// 1. Deleted turns, and those that are not to be recalled, are left out, but the numbers of the others do not change.
fn input(window: &Window, stretch: &WindowExcerpt) -> String {
    let mut out = String::from("context\n");
    for (index, window_turn) in window.turns.iter().enumerate().take(stretch.shown.end).skip(stretch.shown.start) {
        if index == stretch.start {
            out.push_str(TURNS);
        }
        if !window_turn.is_recalled() {
            continue;
        }
        let number = index + 1;
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

/// The maximum number of tokens that a good reply to a text needs.
fn reply_tokens(input: &str) -> u32 {
    let turns = input.split_once(TURNS).map_or(input, |(_, turns)| turns);
    u32::try_from(REPLY_TOKENS + REPLY_FACTOR * llm::tokens(turns)).unwrap_or(u32::MAX)
}

/// Whether a window has a turn that could make a unit: neither context, nor deleted, nor kept from recall.
#[must_use]
pub fn has_turns(window: &Window) -> bool {
    window.turns.iter().any(|t| !t.context && t.is_recalled())
}

/// The estimated cost of a window's requests, if each reply is as long as its turns.
#[must_use]
pub fn estimate(window: &Window, settings: &LlmSettings) -> ModelUsage {
    let mut usage = ModelUsage::default();
    for input in inputs(window, settings) {
        let turns = input.split_once(TURNS).map_or(input.as_str(), |(_, turns)| turns);
        usage += ModelUsage {
            calls: 1,
            prompt_tokens: llm::prompt_tokens(Contract::Extract, &input),
            completion_tokens: llm::tokens(turns),
            milliseconds: 0,
        };
    }
    usage
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
    time: Option<ModelTimeSpan>,
}

/// The drafts, without duplicates; or everything that is wrong with the reply.
fn read(window: &Window, stretch: &WindowExcerpt, reply: &ExtractionReply) -> Result<Vec<DraftUnit>, String> {
    let (mut drafts, mut problems) = (Vec::<DraftUnit>::new(), Vec::new());
    let grounds = grounds(window);
    for (number, unit) in (1..).zip(&reply.units) {
        match draft(window, stretch, unit, &grounds) {
            Ok(draft) if draft.as_ref().is_none_or(|draft| drafts.contains(draft)) => {}
            Ok(draft) => drafts.extend(draft),
            Err(problem) => problems.push(format!("unit {number}: {problem}")),
        }
    }
    if problems.is_empty() {
        return Ok(drafts);
    }
    problems.truncate(8);
    Err(problems.join("; "))
}

/// The draft of a unit; `None` if it rests only on turns of the previous window or stretch, which states it itself.
fn draft(
    window: &Window,
    stretch: &WindowExcerpt,
    unit: &UnitReply,
    grounds: &GroundingTexts,
) -> Result<Option<DraftUnit>, String> {
    let restatement = unit.restatement.split_whitespace().collect::<Vec<_>>().join(" ");
    if restatement.is_empty() {
        return Err("restatement: empty".to_owned());
    }
    let sources = sources(window, stretch, &unit.sources)?;
    let (Some((_, first)), Some((last_index, last))) = (sources.first(), sources.last()) else {
        return Err("sources: empty; name the turns that it rests on".to_owned());
    };
    if *last_index < stretch.start {
        return Ok(None);
    }
    let time = unit.time.as_ref().map(|span| span.interval(last.turn.time.offset_seconds)).transpose()?;
    let said_at = last.turn.time;
    // The last source is never context: context comes first in a stretch.
    let part = DraftPart {
        turn: last.turn.turn.clone(),
        ordinal: last.ordinal,
        speaker: last.turn.speaker.clone(),
        kind: last.turn.speaker_kind(),
        said_at,
        text: restatement.clone(),
        range: None,
        marks: TextFeatures { language: language_of(&restatement, Language::En), ..TextFeatures::default() },
    };
    Ok(Some(DraftUnit {
        cues: Cues {
            participants: grounds.grounded(&unit.participants),
            locations: grounds.grounded(&unit.locations),
            time: time.map(|t| exact_moment(t, said_at)),
        },
        restatement,
        said_at,
        sources: sources.iter().map(|(_, t)| t.turn.turn.clone()).collect(),
        ordinal: first.ordinal,
        before: None,
        parts: vec![part],
        restated: true,
    }))
}

/// The exact moment of speaking, if the model wrote it without its fraction of a second.
fn exact_moment(time: Interval, said_at: EventTime) -> Interval {
    let same = time.start_ms == time.end_ms && time.start_ms == said_at.unix_ms - said_at.unix_ms.rem_euclid(1_000);
    if same { Interval::at(said_at) } else { time }
}

/// The turns of a stretch with these numbers, each once, in order, with their indexes.
fn sources<'w>(
    window: &'w Window,
    stretch: &WindowExcerpt,
    numbers: &[i64],
) -> Result<Vec<(usize, &'w WindowTurn)>, String> {
    let numbers: BTreeSet<i64> = numbers.iter().copied().collect();
    let turn = |number: i64| {
        let index = usize::try_from(number.checked_sub(1)?).ok().filter(|index| stretch.shown.contains(index))?;
        window.turns.get(index).filter(|t| t.is_recalled()).map(|turn| (index, turn))
    };
    numbers.into_iter().map(|n| turn(n).ok_or_else(|| format!("sources: {n} is no turn of the message"))).collect()
}

/// The window's text, to check that it names a person or place.
fn grounds(window: &Window) -> GroundingTexts {
    let mut grounds = GroundingTexts::default();
    for window_turn in window.turns.iter().filter(|t| t.is_recalled()) {
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
    use types::model::{Bank, SessionId, Turn, WindowId};

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
                stored: None,
            }
        });
        Window { bank, id: WindowId { session: SessionId("s".into()), start: 1 }, turns: turns.collect() }
    }

    /// Settings for a model with a context of `context_tokens`; 0 means no limit.
    fn settings(context_tokens: u32) -> LlmSettings {
        let text =
            format!("version = 1\n[llm]\nendpoint = \"http://x/v1\"\nmodel = \"m\"\ncontext_tokens = {context_tokens}");
        types::config::Pipeline::parse(&text).unwrap().llm
    }

    fn whole(window: &Window) -> WindowExcerpt {
        stretches(window, &settings(0)).remove(0)
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
            inputs(&talk(), &settings(0)).concat(),
            "context\n[1,\"2024-05-01T10:00:00+02:00\",\"Bo\",\"Where do you live?\"]\nturns\n\
             [2,\"2024-05-01T10:01:00+02:00\",\"Ann\",\"In Lisbon.\\n[3, \\\"x\\\"]\"]\n\
             [4,\"2024-05-01T10:03:00+02:00\",\"Bo\",\"Nice\"]\n"
        );
        assert!(has_turns(&talk()) && !has_turns(&window(&[("Bo", "Where?", true), ("Bo", "", false)])));
        let usage = estimate(&talk(), &settings(0));
        assert!(usage.calls == 1 && usage.prompt_tokens > 500, "{usage:?}");
        assert!((20..80).contains(&usage.completion_tokens), "{usage:?}");
    }

    #[test]
    fn a_unit_keeps_its_sources_and_only_grounded_names() {
        let units =
            read(&talk(), &whole(&talk()), &found(&[2, 1], Some(("2024-05-01T00:00:00", "2024-05-01T23:59:59"))))
                .unwrap();
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
            let problem = read(&talk(), &whole(&talk()), &found(sources, time)).unwrap_err();
            assert!(problem.starts_with("unit 1: ") && problem.contains(word), "{problem}");
        };
        check(&[], None, "sources: empty");
        check(&[2, 5], None, "5 is no turn");
        check(&[3], None, "3 is no turn");
        check(&[0], None, "0 is no turn");
        check(&[2], Some(("soon", "later")), "\"soon\"");
    }

    #[test]
    fn a_unit_of_the_context_alone_is_left_out_and_the_others_stay() {
        let mut reply = found(&[1], None);
        assert_eq!(read(&talk(), &whole(&talk()), &reply), Ok(Vec::new()));
        reply.units.extend(found(&[1, 2], None).units);
        assert_eq!(read(&talk(), &whole(&talk()), &reply).unwrap().len(), 1);
    }

    #[test]
    fn a_window_longer_than_the_models_context_is_sent_in_stretches() {
        let said =
            "The harbour office opens at nine, and Marta waits for the key with her brother and the dog. ".repeat(6);
        let turns: Vec<(&str, &str, bool)> = (0..9).map(|i| ("Ann", said.as_str(), i == 0)).collect();
        let window = window(&turns);
        assert_eq!(stretches(&window, &settings(0)), [WindowExcerpt { shown: 0..9, start: 1 }]);
        let small = settings(3_000);
        let parts = stretches(&window, &small);
        assert!(parts.len() > 1, "{parts:?}");
        let mut next = 1;
        for part in &parts {
            assert_eq!(part.start, next, "every turn is in one stretch: {parts:?}");
            assert!(part.shown.start < part.start, "with context: {parts:?}");
            next = part.shown.end;
            let text = input(&window, part);
            assert!(llm::fits(&small, Contract::Extract, &text, reply_tokens(&text)), "{part:?}");
            assert!(text.contains(&format!("turns\n[{},", part.start + 1)), "numbers are the window's: {text}");
        }
        assert_eq!(next, 9);
        let second = &parts[1];
        let cites =
            |numbers: &[i64]| read(&window, second, &found(numbers, None)).map_err(|problem| problem.to_owned());
        assert_eq!(cites(&[second.start as i64, second.start as i64 + 1]).unwrap()[0].sources.len(), 2);
        assert_eq!(cites(&[second.start as i64]), Ok(Vec::new()), "the stretch before has it");
        assert!(cites(&[1]).unwrap_err().contains("1 is no turn"), "what was not sent is no source");
        let tiny = stretches(&window, &settings(64));
        assert_eq!(tiny.len(), 8, "down to single turns");
    }
}
