//! The steps of an explanation that are read from the log: stored, reflected, window.
//!
//! In: a log, how far the memory has read it, and what recollection found of a turn. Out: three steps of its
//! explanation. If the memory holds the turn, only the records of its window are read; otherwise the records of its
//! bank, and then the turns topic. On Kafka the turns topic is not searched: if the memory has no record of the turn,
//! the steps are unknown there.

use std::ops::ControlFlow;

use serde::Deserialize;

use super::{PipelineError, Replica};
use logs::{Log, LogError, LogRecord, ReadBatch, Topic, partition_of};
use memory::recall::RecallExplanation;
use types::model::{
    Bank, DeadLetter, ExplanationStep, ExplanationStepName, ExplanationStepState, InputPosition, MemoryKey, SessionId,
    Turn, TurnEvent, WindowId, WindowState, WindowTurn,
};

/// Records that are read at once.
const READ_RECORDS: usize = 1_024;
/// Ordinals before a turn at which its window may begin.
const MAX_WINDOW: u32 = 1_000;

/// The fields of a memory record that are read.
#[derive(Deserialize)]
struct RecordWindowFields {
    state: WindowState,
    extractor: String,
    turns: Vec<WindowTurn>,
}

/// A turn in a record of the memory.
struct MemoryRecordTurn {
    /// The offset of the record in the memory topic.
    record_offset: u64,
    window: WindowId,
    state: WindowState,
    extractor: String,
    turns_of_record: usize,
    turn: WindowTurn,
}

/// A turn in the turns topic.
struct LoggedTurn {
    offset: u64,
    append_ms: i64,
    event: TurnEvent,
}

/// The steps of the turn that the explanation is about.
///
/// # Errors
/// [`PipelineError`] if the log failed.
pub(super) fn log_steps(
    log: &dyn Log,
    replica: &Replica,
    bank: &Bank,
    explained: &RecallExplanation,
) -> Result<[ExplanationStep; 3], PipelineError> {
    let Some(turn) = explained.turn() else {
        return Ok([ExplanationStepName::Stored, ExplanationStepName::Reflected, ExplanationStepName::Window].map(
            |step| {
                ExplanationStep::new(
                    step,
                    ExplanationStepState::Unknown,
                    "No turn is named, and no unit of it is held.",
                )
            },
        ));
    };
    let steps = LogSteps { log, replica, bank, turn, partition: partition_of(bank, log.partitions()) };
    match explained.unit() {
        Some((unit, at)) => {
            let ordinal = unit.part(at).map_or(unit.ordinal, |part| part.ordinal);
            let recorded = steps.in_session(unit.session(), ordinal)?;
            Ok([steps.stored(recorded.as_ref())?, steps.reflected()?, steps.window(recorded.as_ref())])
        }
        None => steps.not_held(explained),
    }
}

struct LogSteps<'l> {
    log: &'l dyn Log,
    replica: &'l Replica,
    bank: &'l Bank,
    turn: &'l str,
    partition: u32,
}

impl LogSteps<'_> {
    /// The record of the turn, by its session and ordinal.
    fn in_session(&self, session: &str, ordinal: u32) -> Result<Option<MemoryRecordTurn>, PipelineError> {
        for start in (ordinal.saturating_sub(MAX_WINDOW)..=ordinal).rev() {
            let window = WindowId { session: SessionId(session.to_owned()), start };
            let key = MemoryKey { bank: self.bank.clone(), window, turn: None, part: 0 };
            let (found, is_window) = self.recorded(&key.to_bytes())?;
            if is_window {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The record that holds the turn, among those whose keys begin with `prefix`; and whether there are any.
    fn recorded(&self, prefix: &[u8]) -> Result<(Option<MemoryRecordTurn>, bool), PipelineError> {
        // Most records do not hold the turn, and parsing one takes far longer than searching its bytes for the id.
        let id = serde_json::to_string(self.turn).unwrap_or_default();
        let (mut found, mut problem, mut any) = (None, None, false);
        self.log.live_records(self.partition, prefix, &mut |_, _| true, &mut |record| {
            any = true;
            let value = record.value.as_deref().unwrap_or_default();
            if !std::str::from_utf8(value).is_ok_and(|text| text.contains(&id)) {
                return ControlFlow::Continue(());
            }
            let read = serde_json::from_slice::<RecordWindowFields>(value).map_err(|error| error.to_string());
            match (read, MemoryKey::from_bytes(&record.key)) {
                (Ok(RecordWindowFields { state, extractor, turns }), Ok(key)) => {
                    let turns_of_record = turns.len();
                    let own = turns.into_iter().find(|turn| !turn.context && turn.turn.turn == self.turn);
                    found = own.map(|turn| MemoryRecordTurn {
                        record_offset: record.offset,
                        window: key.window,
                        state,
                        extractor,
                        turns_of_record,
                        turn,
                    });
                }
                (Err(error), _) => problem = Some((record.offset, error)),
                (_, Err(error)) => problem = Some((record.offset, error.to_string())),
            }
            if found.is_some() || problem.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match problem {
            Some((offset, problem)) => Err(PipelineError::Record { partition: self.partition, offset, problem }),
            None => Ok((found, any)),
        }
    }

    /// The step `stored`, for a turn that the memory holds.
    fn stored(&self, recorded: Option<&MemoryRecordTurn>) -> Result<ExplanationStep, PipelineError> {
        let Some(recorded) = recorded else {
            let sentence = "The memory holds it, so the log took it; its record cannot be looked up here.";
            return Ok(ExplanationStep::new(ExplanationStepName::Stored, ExplanationStepState::Passed, sentence));
        };
        let WindowTurn { turn, source_offset, .. } = &recorded.turn;
        let read = match self.log.read(Topic::Turns, self.partition, *source_offset, 1) {
            Ok(read) => read,
            // Its record has outlived the retention of the turns topic; the memory holds the turn all the same.
            Err(LogError::Expired { .. }) => ReadBatch::default(),
            Err(error) => return Err(error.into()),
        };
        let appended = read.records.first().filter(|record| record.offset == *source_offset);
        Ok(stored(*source_offset, appended.map(|record| record.append_ms), turn))
    }

    /// The step `reflected`, for a turn that the memory holds and has read.
    fn reflected(&self) -> Result<ExplanationStep, PipelineError> {
        let (reached, behind) = self.reached()?;
        let sentence = match behind {
            0 => "The memory reflects it, and every other turn of its partition.".to_owned(),
            behind => format!("The memory reflects it; {behind} later turns of its partition are not read in yet."),
        };
        Ok(self.reflects(ExplanationStepState::Passed, sentence, reached, behind))
    }

    fn reflects(&self, state: ExplanationStepState, sentence: String, reached: u64, behind: u64) -> ExplanationStep {
        ExplanationStep::new(ExplanationStepName::Reflected, state, sentence)
            .with("complete_through", reached.to_string())
            .with("behind", behind)
            .with("partition", self.partition)
    }

    /// The first offset of the turns that is not reflected, and how many turns follow it.
    fn reached(&self) -> Result<(u64, u64), PipelineError> {
        let read_to = self.replica.read_to(self.bank);
        let reached = read_to.iter().find(|at| at.topic == "turns").map_or(0, |at| at.next_offset);
        Ok((reached, self.log.lag(self.partition, reached)?))
    }

    /// The step `window` of a turn.
    fn window(&self, recorded: Option<&MemoryRecordTurn>) -> ExplanationStep {
        let Some(recorded) = recorded else {
            return ExplanationStep::new(
                ExplanationStepName::Window,
                ExplanationStepState::Passed,
                "Its window has units.",
            );
        };
        let MemoryRecordTurn { window, state, extractor, turns_of_record, .. } = recorded;
        let sentence = match state {
            WindowState::Final => format!("Its window is closed; {extractor} has read its {turns_of_record} turns."),
            WindowState::Open => format!(
                "Its window is still open; until it closes, {extractor} gives the turn a unit of its own, at once."
            ),
        };
        ExplanationStep::new(ExplanationStepName::Window, ExplanationStepState::Passed, sentence)
            .with("session", window.session.0.as_str())
            .with("start", window.start)
            .with("open", *state == WindowState::Open)
            .with("extractor", extractor.as_str())
            .with("turns", *turns_of_record)
            .with("record_offset", recorded.record_offset.to_string())
    }

    /// The steps of a turn without a unit in the memory.
    fn not_held(&self, explained: &RecallExplanation) -> Result<[ExplanationStep; 3], PipelineError> {
        let (recorded, _) = self.recorded(&MemoryKey::prefix(self.bank))?;
        match recorded {
            Some(recorded) => self.recorded_without_unit(&recorded, explained),
            None if self.log.erasable().is_some() => self.unrecorded(),
            None => {
                let sentence = "The memory has no record of it; look for it with `ripplemem tap turns`.";
                Ok([ExplanationStepName::Stored, ExplanationStepName::Reflected, ExplanationStepName::Window]
                    .map(|step| ExplanationStep::new(step, ExplanationStepState::Unknown, sentence)))
            }
        }
    }

    /// The steps of a turn that the memory has read, but of which it holds no unit as of the point asked for.
    fn recorded_without_unit(
        &self,
        recorded: &MemoryRecordTurn,
        explained: &RecallExplanation,
    ) -> Result<[ExplanationStep; 3], PipelineError> {
        let of_turn = self.stored(Some(recorded))?;
        let next = [ExplanationStepName::Reflected, ExplanationStepName::Window].map(ExplanationStep::not_reached);
        if recorded.turn.deleted {
            let sentence = "It was deleted; the memory keeps only that, so that no later copy brings it back.";
            let deleted =
                ExplanationStep { state: ExplanationStepState::Failed, sentence: sentence.to_owned(), ..of_turn };
            let [reflected, window] = next;
            return Ok([deleted, reflected, window]);
        }
        let memory = explained.reflects().iter().find(|at| at.topic == "memory");
        if let Some(asked) = memory.filter(|asked| recorded.record_offset >= asked.next_offset) {
            let sentence = format!(
                "The memory was asked as of offset {}, before the turn: its record has offset {}.",
                asked.next_offset.saturating_sub(1),
                recorded.record_offset
            );
            let (reached, behind) = self.reached()?;
            let reflected = self.reflects(ExplanationStepState::Failed, sentence, reached, behind);
            let reflected = reflected.change("Ask without as_of, or as of a later point.");
            let [_, window] = next;
            return Ok([of_turn, reflected, window]);
        }
        Ok([of_turn, self.reflected()?, self.window(Some(recorded))])
    }

    /// The steps of a turn without a record in the memory: it waits, it was refused, or it does not exist.
    fn unrecorded(&self) -> Result<[ExplanationStep; 3], PipelineError> {
        let (reached, behind) = self.reached()?;
        let [reflected, window] =
            [ExplanationStepName::Reflected, ExplanationStepName::Window].map(ExplanationStep::not_reached);
        let step = |sentence: String, change: &str| {
            ExplanationStep::new(ExplanationStepName::Stored, ExplanationStepState::Failed, sentence).change(change)
        };
        let Some(logged) = self.logged()? else {
            let sentence = format!("The log holds no turn {} of bank {}.", self.turn, self.bank);
            let change = "Check the bank and the id, which `ripplemem turns` lists; or put the turn.";
            return Ok([step(sentence, change), reflected, window]);
        };
        let LoggedTurn { offset, append_ms, event } = logged;
        let turn = match event {
            TurnEvent::Turn(turn) => turn,
            _ => {
                let sentence =
                    format!("Its deletion lies in the log, at offset {offset}, and the memory never held it.");
                return Ok([step(sentence, "A turn that was deleted for good does not come back."), reflected, window]);
            }
        };
        if offset >= reached {
            let sentence = format!("{behind} turns of its partition are not read in yet, and it is among them.");
            let waits = self.reflects(ExplanationStepState::Failed, sentence, reached, behind);
            let waits = waits.change("Ask with the `after` of the turn, which waits until it is reflected.");
            return Ok([stored(offset, Some(append_ms), &turn), waits, window]);
        }
        let refused = match self.dead_letter(offset)? {
            Some(letter) => step(format!("It was refused: {}", letter.reason), "Put it again without that."),
            None => step(
                format!("The log has it at offset {offset}, but the memory took no record of it."),
                "It may be a copy of a turn that was deleted.",
            ),
        };
        Ok([refused.with("offset", offset.to_string()), reflected, window])
    }

    /// The last event of the turn in the turns topic.
    fn logged(&self) -> Result<Option<LoggedTurn>, PipelineError> {
        let id = serde_json::to_string(self.turn).unwrap_or_default();
        let (mut at, mut last) = (0, None);
        loop {
            let batch = self.log.read(Topic::Turns, self.partition, at, READ_RECORDS)?;
            let of_bank = |record: &&LogRecord| record.key == self.bank.as_str().as_bytes();
            for LogRecord { offset, append_ms, value, .. } in batch.records.iter().filter(of_bank) {
                let value = value.as_deref().unwrap_or_default();
                if !std::str::from_utf8(value).is_ok_and(|text| text.contains(&id)) {
                    continue;
                }
                let Ok(event) = TurnEvent::from_log(value) else { continue };
                let of_turn = match &event {
                    TurnEvent::Turn(turn) => &turn.turn,
                    TurnEvent::Deletion(deletion) => &deletion.turn,
                    _ => continue,
                };
                if of_turn == self.turn {
                    last = Some(LoggedTurn { offset: *offset, append_ms: *append_ms, event });
                }
            }
            if batch.next == at {
                return Ok(last);
            }
            at = batch.next;
        }
    }

    /// Why a record of the turns topic was refused.
    fn dead_letter(&self, offset: u64) -> Result<Option<DeadLetter>, PipelineError> {
        let place = InputPosition { partition: self.partition, offset };
        let mut at = 0;
        loop {
            let batch = self.log.read(Topic::DeadLetters, 0, at, READ_RECORDS)?;
            let letters = batch.records.iter().filter_map(|record| record.value.as_deref());
            let mut letters = letters.filter_map(|value| serde_json::from_slice::<DeadLetter>(value).ok());
            if let Some(letter) = letters.find(|letter| letter.position == Some(place)) {
                return Ok(Some(letter));
            }
            if batch.next == at {
                return Ok(None);
            }
            at = batch.next;
        }
    }
}

/// The step `stored` of a turn in the turns topic.
fn stored(offset: u64, append_ms: Option<i64>, turn: &Turn) -> ExplanationStep {
    let sentence = match turn.version {
        0 => format!("The log holds it, at offset {offset}."),
        version => format!("The log holds it, at offset {offset}, as last edited: version {version}."),
    };
    ExplanationStep::new(ExplanationStepName::Stored, ExplanationStepState::Passed, sentence)
        .with("offset", offset.to_string())
        .with("version", turn.version.to_string())
        .with("append_ms", append_ms)
        .with("speaker", turn.speaker.as_str())
        .with("said_at", turn.time.to_string())
}
