//! Writes turns, and says what became of each.
//!
//! In: records, some with conditions. Out: where they lie, which versions were chosen, and which records changed
//! nothing. A record with a condition goes to the log with the name of its request, and the extraction that reads it
//! there decides; its caller waits for the verdict. Nothing is checked before, so no other writer can come in between.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;

use super::{
    api_forms::{PutTurnsRequest, PutTurnsResponse},
    blocking_work::blocking,
    memory_api::{MemoryApi, wait},
    problem::{ApiProblem, ProblemCode, wrong_id},
};
use crate::access::{AccessRight, Caller};
use logs::{Log, LogError, VerdictReceiver, WritePosition, WriteWatch};
use pipeline::PipelineError;
use ripplemem::Memory;
use types::model::{
    Bank, ConditionalWrite, DeadLetter, MAX_GROUP, PERMANENT_VERSION, TurnDeletion, TurnEvent, WriteCondition,
    WriteVerdict,
};

/// Most turns of one call.
const MAX_TURNS: usize = 10_000;
/// Most ids of turns that are not kept, in an answer.
const MAX_FORGOTTEN: usize = 100;
/// How long a caller waits for a verdict, at least.
const VERDICT_WAIT: Duration = Duration::from_secs(30);

/// A record of a request, with what is asked of its write.
type SentRecord = (TurnEvent, WriteCondition);

/// What was written, and what its caller waits for.
struct WrittenRecords {
    position: WritePosition,
    count: u64,
    /// The turns that the same request does not delete.
    said: Vec<RequestedTurnVersion>,
    /// The turns and deletions without a condition, and which of them change nothing; none if nobody waits.
    watched: Vec<(String, u64)>,
    watch: Option<WriteWatch>,
    verdicts: Vec<AwaitedVerdict>,
}

/// A verdict that is yet to come.
pub(super) struct AwaitedVerdict {
    bank: Bank,
    verdict: VerdictReceiver,
}

/// A turn of a request.
struct RequestedTurnVersion {
    bank: Bank,
    /// Its id as it was sent.
    turn: String,
    /// Its id in the form that deletions have.
    form: String,
    version: u64,
}

impl MemoryApi {
    /// Writes turns. Returns once they are durable and, within `wait_ms`, reflected. If one turn is invalid, or in a
    /// bank where the caller lacks the right, none is written. `held` is dropped when the write ends, even if the
    /// caller has left.
    ///
    /// # Errors
    /// [`ApiProblem`] that names the first invalid turn, or the missing right; [`ProblemCode::Conflict`] if a condition
    /// does not hold; [`ProblemCode::Held`] for a deletion in a bank that is held; [`ProblemCode::Failed`] if the log
    /// failed.
    pub async fn put(
        &self,
        who: &Arc<Caller>,
        put: PutTurnsRequest,
        held: impl Send + 'static,
    ) -> Result<PutTurnsResponse, ApiProblem> {
        let PutTurnsRequest { turns, dead_letters, wait_ms, together } = put;
        let wait = wait(Some(wait_ms.unwrap_or_default()))?;
        if turns.len().max(dead_letters.len()) > MAX_TURNS {
            return Err(ApiProblem::invalid(format!("turns, dead_letters: more than {MAX_TURNS}; divide the request")));
        }
        let (memory, who, operations) = (Arc::clone(&self.memory), Arc::clone(who), Arc::clone(&self.operations));
        let write = blocking(move || {
            let records = turns.iter().enumerate().map(|(index, turn)| {
                TurnEvent::from_json_with_condition(turn.get().as_bytes())
                    .map_err(|problem| ApiProblem::invalid(format!("turns[{index}]: {problem}; nothing was written")))
            });
            let records = records.collect::<Result<Vec<SentRecord>, _>>()?;
            check_rights(&memory, &who, &records, together)?;
            if !dead_letters.is_empty() {
                // Most dead letters belong to no bank, so a token for some banks is not enough.
                who.may_everywhere(AccessRight::Admin)?;
            } else if records.is_empty() {
                who.may(AccessRight::Write)?;
            }
            check_group(&records, together)?;
            let count = records.len() as u64;
            let said = turns_kept_by_request(&**memory.log(), &records).map_err(PipelineError::from)?;
            let (events, verdicts) = conditional_events(&memory, records, together)?;
            let watched = if wait.is_zero() { Vec::new() } else { unconditional_writes(&events) };
            let watch = (!watched.is_empty()).then(|| {
                let writes = watched.iter().map(|(bank, turn, version, is)| (bank, turn.as_str(), *version, *is));
                memory.log().outcomes().watch(writes)
            });
            let written = memory.put(events);
            operations.state.note_write(&written);
            let position = written?;
            let cut = |letter: DeadLetter| {
                DeadLetter::new(letter.origin, letter.reason, letter.payload.as_bytes()).in_bank(letter.bank)
            };
            operations.state.metrics.dead_letters.inc_by(dead_letters.len() as u64);
            memory.put_dead_letters(&dead_letters.into_iter().map(cut).collect::<Vec<_>>())?;
            operations.state.metrics.turns_put.inc_by(count);
            drop(held);
            let watched = watched.into_iter().map(|(_, turn, version, _)| (turn, version)).collect();
            Ok(WrittenRecords { position, count, said, watched, watch, verdicts })
        });
        let written = write.await?;
        self.said_of(written, wait).await
    }

    /// What became of written records, once the verdicts are known and, within `wait`, answers reflect what lies in the
    /// log up to them.
    async fn said_of(&self, written: WrittenRecords, wait: Duration) -> Result<PutTurnsResponse, ApiProblem> {
        let WrittenRecords { position, count, said, watched, watch, verdicts } = written;
        let verdicts = match self.verdicts(verdicts, wait).await {
            Err(problem) if problem.code != ProblemCode::Conflict => return Err(problem),
            decided => decided,
        };
        // Also after a conflict: its caller reads next what stands, and what refused the write lies before it in the log.
        let reflected = self.reflects(&position, wait).await;
        let verdicts = verdicts?;
        let stale_versions = watch.map(|watch| watch.stale()).unwrap_or_default();
        let (mut versions, mut stale) = (BTreeMap::new(), Vec::new());
        let outdated = watched.into_iter().zip(stale_versions).filter(|(_, is_stale)| *is_stale);
        stale.extend(outdated.map(|((turn, _), _)| turn));
        for decided in verdicts.into_iter().flat_map(|verdict| verdict.written) {
            stale.extend(decided.stale.then(|| decided.turn.clone()));
            // The version of a deletion for good is above every other, and above what many clients can read.
            if decided.version != PERMANENT_VERSION {
                versions.insert(decided.turn, decided.version);
            }
        }
        let deletions = self.memory.log().deletions();
        let is_gone = |said: &RequestedTurnVersion| {
            // A chosen version is that of the turn, or above every deletion.
            let version = versions.get(&said.turn).copied().unwrap_or(said.version);
            deletions.covers(&said.bank, &said.form, version)
        };
        let mut forgotten: Vec<String> = said.into_iter().filter(is_gone).map(|said| said.turn).collect();
        let not_kept = forgotten.len() as u64;
        let known: HashSet<&str> = stale.iter().map(String::as_str).collect();
        let more: Vec<String> = forgotten.iter().filter(|id| !known.contains(id.as_str())).cloned().collect();
        stale.extend(more);
        forgotten.truncate(MAX_FORGOTTEN);
        let after = position.to_string();
        Ok(PutTurnsResponse { after, turns: count, reflected, not_kept, forgotten, stale, versions })
    }

    /// The verdicts of requests whose records are durable.
    async fn verdicts(&self, awaited: Vec<AwaitedVerdict>, wait: Duration) -> Result<Vec<WriteVerdict>, ApiProblem> {
        if awaited.is_empty() {
            return Ok(Vec::new());
        }
        let all = join_all(awaited.into_iter().map(|AwaitedVerdict { bank, verdict }| async move {
            verdict.await.map_err(|_| undecided_problem(&bank))
        }));
        let within = tokio::time::timeout(VERDICT_WAIT.max(wait), all);
        let decided = self.until_service_stops(within, || true).await?.map_err(|_| {
            ApiProblem::new(
                ProblemCode::Deadline,
                "the records are durable, but no extraction has read them yet, so it is not known whether they are \
                 written; read the turns in a moment, and send them again if need be",
            )
        })?;
        let decided = decided.into_iter().collect::<Result<Vec<_>, _>>()?;
        match decided.iter().find_map(|verdict| verdict.refused.as_ref()) {
            Some(refused) => Err(ApiProblem::conflict(refused)),
            None => Ok(decided),
        }
    }

    /// Deletes a turn for good if its version is the expected one; see [`MemoryApi::forget`].
    pub(super) async fn delete_expected(&self, bank: &Bank, turn: &str, expected: u64) -> Result<(), ApiProblem> {
        let (memory, bank, turn) = (Arc::clone(&self.memory), bank.clone(), turn.to_owned());
        let written = blocking(move || {
            // What the deletion that follows would refuse is refused before anything is deleted.
            memory.check_deletion(&bank, std::slice::from_ref(&turn))?;
            let deletion = TurnEvent::Deletion(TurnDeletion::permanent(bank, turn));
            let condition = WriteCondition { expected_version: Some(expected), chooses_version: false };
            let (events, verdicts) = conditional_events(&memory, vec![(deletion, condition)], false)?;
            memory.put(events).map_err(wrong_id)?;
            Ok(verdicts)
        });
        self.verdicts(written.await?, Duration::ZERO).await.map(drop)
    }
}

/// Checks the caller's rights, and that no hold covers what is deleted.
fn check_rights(memory: &Memory, who: &Caller, records: &[SentRecord], together: bool) -> Result<(), ApiProblem> {
    for (event, condition) in records {
        let is_deletion = matches!(event, TurnEvent::Deletion(_));
        let right = if is_deletion { AccessRight::Forget } else { AccessRight::Write };
        who.may_in(right, event.bank())?;
        if together || !condition.is_none() {
            // A verdict says which version stands.
            who.may_in(AccessRight::Read, event.bank())?;
        }
    }
    let mut deleting: BTreeMap<&Bank, Vec<String>> = BTreeMap::new();
    for (event, _) in records {
        if let TurnEvent::Deletion(deletion) = event {
            deleting.entry(&deletion.bank).or_default().push(deletion.turn.clone());
        }
    }
    Ok(deleting.into_iter().try_for_each(|(bank, turns)| memory.check_holds(bank, &turns))?)
}

/// Checks what is written together, and that a condition stands alone otherwise.
fn check_group(records: &[SentRecord], together: bool) -> Result<(), ApiProblem> {
    if !together {
        let is_conditional = records.iter().any(|(_, condition)| condition.expected_version.is_some());
        if is_conditional && records.len() > 1 {
            return Err(ApiProblem::invalid(
                "expected_version: it decides over the whole request; send the record alone, or set `together`",
            ));
        }
        return Ok(());
    }
    if records.len() > MAX_GROUP {
        return Err(ApiProblem::invalid(format!("turns: more than {MAX_GROUP} together; divide the request")));
    }
    let (mut ids, first) = (HashSet::new(), records.first().map(|(event, _)| event.bank()));
    for (index, (event, _)) in records.iter().enumerate() {
        let id = match event {
            TurnEvent::Turn(turn) => &turn.turn,
            TurnEvent::Deletion(deletion) => &deletion.turn,
            _ => {
                let detail = format!("turns[{index}]: only turns and deletions are written together; send it alone");
                return Err(ApiProblem::invalid(detail));
            }
        };
        if Some(event.bank()) != first {
            let detail = format!("turns[{index}]: another bank; what is written together is of one bank");
            return Err(ApiProblem::invalid(detail));
        }
        if !ids.insert(id) {
            return Err(ApiProblem::invalid(format!("turns[{index}]: turn {id:?} is written twice; send it once")));
        }
    }
    Ok(())
}

/// The events of a request: records with a condition, and those that are written together, are conditional records of
/// the log. Also the verdicts to wait for.
fn conditional_events(
    memory: &Memory,
    records: Vec<SentRecord>,
    together: bool,
) -> Result<(Vec<TurnEvent>, Vec<AwaitedVerdict>), ApiProblem> {
    let (mut events, mut verdicts) = (Vec::with_capacity(records.len()), Vec::new());
    let (mut banks, mut requests) = (BTreeSet::new(), Vec::new());
    let mut group: Option<String> = None;
    let count = if together { records.len() as u32 } else { 1 };
    for (index, (event, condition)) in records.into_iter().enumerate() {
        if !together && condition.is_none() {
            events.push(event);
            continue;
        }
        let bank = event.bank().clone();
        // Only turns and deletions come here.
        let Some(change) = event.into_change() else { continue };
        let request = match &group {
            Some(request) => request.clone(),
            None => {
                let request = new_request_name()?;
                verdicts.push(AwaitedVerdict { bank: bank.clone(), verdict: memory.await_verdict(&request) });
                banks.insert(bank.clone());
                requests.push(request.clone());
                request
            }
        };
        if together {
            group = Some(request.clone());
        }
        let index = if together { index as u32 } else { 0 };
        let WriteCondition { expected_version, chooses_version } = condition;
        let write = ConditionalWrite { bank, request, index, count, expected_version, chooses_version, change };
        events.push(TurnEvent::Conditional(Box::new(write)));
    }
    memory.follow_verdicts(&banks, &requests)?;
    Ok((events, verdicts))
}

/// The bank, id and version of each turn and deletion without a condition, and whether it is a deletion.
fn unconditional_writes(events: &[TurnEvent]) -> Vec<(Bank, String, u64, bool)> {
    let of = |event: &TurnEvent| match event {
        TurnEvent::Turn(turn) => Some((turn.bank.clone(), turn.turn.clone(), turn.version, false)),
        TurnEvent::Deletion(of) => Some((of.bank.clone(), of.turn.clone(), of.version, true)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The bank, the id and the version of each turn that the same request does not delete.
fn turns_kept_by_request(log: &dyn Log, records: &[SentRecord]) -> Result<Vec<RequestedTurnVersion>, LogError> {
    let mut deleted = HashSet::new();
    for (event, _) in records {
        if let TurnEvent::Deletion(deletion) = event {
            deleted.insert((&deletion.bank, log.deleted_form(&deletion.turn)?));
        }
    }
    let mut said = Vec::new();
    for (event, _) in records {
        let TurnEvent::Turn(turn) = event else { continue };
        let form = log.deleted_form(&turn.turn)?;
        if !deleted.contains(&(&turn.bank, Cow::Borrowed(form.as_ref()))) {
            let form = form.into_owned();
            said.push(RequestedTurnVersion {
                bank: turn.bank.clone(),
                turn: turn.turn.clone(),
                form,
                version: turn.version,
            });
        }
    }
    Ok(said)
}

/// A name that no other request has.
fn new_request_name() -> Result<String, ApiProblem> {
    let mut bits = [0_u8; 16];
    let failed = |e| ApiProblem::new(ProblemCode::Failed, format!("the system provides no random numbers: {e}"));
    getrandom::fill(&mut bits).map_err(failed)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn undecided_problem(bank: &Bank) -> ApiProblem {
    let detail = format!("bank {bank}: the wait for the verdict ended; read the turns, and send them again if need be");
    ApiProblem::new(ProblemCode::Failed, detail)
}
