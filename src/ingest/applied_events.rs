//! Applies events to the windows of a stage, and tells what they did.
//!
//! In: events of a bank, in the order of the log; groups of conditional records. Out: changed windows, the verdicts on
//! the groups, and which writes changed nothing.

use logs::{DecidedGroup, Log};
use memory::window::{GroupDecision, WriteEffect};
use types::model::{ConditionalWrite, TurnEvent};

use super::{
    PipelineError, extraction_stage::ExtractionStage, pending_turns::ReadEvent, transaction_work::TransactionWork,
    write_groups::WriteGroups,
};

impl ExtractionStage {
    /// Applies an event that was read; a conditional record once its group is whole.
    pub(super) fn apply_read(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        read: ReadEvent,
        groups: &mut WriteGroups,
    ) -> Result<(), PipelineError> {
        if self.windower.lacks_salt_for(&read.event) {
            self.windower.set_id_salt(log.id_salt()?);
        }
        work.bytes += read.bytes;
        work.step.events += 1;
        work.step.append_ms = work.step.append_ms.max(Some(read.append_ms));
        match read.event {
            TurnEvent::Conditional(write) => match groups.add(read.offset, *write) {
                Some(group) => self.decide(work, log, read.append_ms, &group),
                None => Ok(()),
            },
            event => self.apply(work, log, (read.offset, read.append_ms), &event),
        }
    }

    /// Applies an event, and notes what it did.
    fn apply(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        (offset, append_ms): (u64, i64),
        event: &TurnEvent,
    ) -> Result<(), PipelineError> {
        work.step.not_kept += u64::from(log.deletions().note_event(event, |id| log.deleted_form(id))?);
        if self.windower.apply_stored(offset, Some(append_ms), event) == WriteEffect::Stale {
            work.step.stale += 1;
            match event {
                TurnEvent::Turn(turn) => log.outcomes().note_stale(&turn.bank, &turn.turn, turn.version, false),
                TurnEvent::Deletion(of) => log.outcomes().note_stale(&of.bank, &of.turn, of.version, true),
                _ => {}
            }
        }
        Ok(())
    }

    /// Decides a group of conditional records, and tells the verdict to its caller. Nothing need be durable first: the
    /// verdict is a function of the log.
    fn decide(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        append_ms: i64,
        group: &[(u64, ConditionalWrite)],
    ) -> Result<(), PipelineError> {
        let decision = self.windower.decide_stored(Some(append_ms), group);
        let Some(GroupDecision { verdict, changes }) = decision else { return Ok(()) };
        let events: Vec<Option<TurnEvent>> = changes.into_iter().map(|change| change.map(TurnEvent::from)).collect();
        for event in events.iter().flatten() {
            work.step.not_kept += u64::from(log.deletions().note_event(event, |id| log.deleted_form(id))?);
        }
        work.step.stale += verdict.written.iter().filter(|of| of.stale).count() as u64;
        log.outcomes().tell(&verdict);
        let records = group.iter().map(|(offset, _)| *offset).zip(events).collect();
        work.transaction.decided.push(DecidedGroup { verdict, records });
        Ok(())
    }
}
