//! The calls of a memory: from a request to an answer or a problem.
//!
//! In: requests, already read, and who sends each. Out: answers, where the caller has the right in the bank; no
//! call can be made without a caller. A call holds no thread of the caller's runtime while it
//! waits. Whoever drops the future of a question cancels it; a put that has begun ends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    forms::{Ask, Banks, Digest, Forget, Forgotten, Put, Status, WrittenTurns},
    holders::Holders,
    problem::{Code, Problem},
};
use crate::{
    log::Written,
    model::{Bank, Evidence, Question, TurnEvent},
    pipeline::{Asked, Cancellation, Memory, MemoryStatus, PipelineError, parse_as_of},
    serve::access::{Caller, Right},
};

/// Most turns of one call.
const MOST_TURNS: usize = 10_000;
/// Longest wait that a request may ask for.
const LONGEST: Duration = Duration::from_secs(600);
/// How long a deletion or a digest waits until turns are reflected, where the request does not say.
const WAIT: Duration = Duration::from_secs(10);

/// Time between two looks whether turns are reflected.
const LOOK: Duration = Duration::from_millis(5);

/// The calls of one memory.
pub struct Api {
    pub(super) memory: Arc<Memory>,
    /// The deadline of a question that names none.
    deadline: Duration,
    /// Who holds the other banks, where instances divide the memory.
    holders: Option<Arc<Holders>>,
}

impl Api {
    /// The calls of a memory; `deadline` is that of a question that names none. `holders` says who holds
    /// the other banks, where instances divide the memory.
    #[must_use]
    pub fn new(memory: Arc<Memory>, deadline: Duration, holders: Option<Arc<Holders>>) -> Self {
        Self { memory, deadline, holders }
    }

    /// Fails unless the bank answers here: [`Code::Misdirected`] with the URL of who holds it, or
    /// [`Code::Loading`] while its shard moves.
    fn check_here(&self, bank: &Bank) -> Result<(), Problem> {
        let Some(holders) = &self.holders else { return Ok(()) };
        holders.check(bank, self.memory.place_of(bank))
    }

    /// Writes turns; answered when they are durable, or, within a time, reflected. Of turns that are not all
    /// valid, or whose banks the caller does not all reach, none is written.
    ///
    /// # Errors
    /// [`Problem`] that names the first turn that is not valid, or [`Code::Failed`] where the log failed.
    pub async fn put(&self, who: &Arc<Caller>, put: Put) -> Result<WrittenTurns, Problem> {
        let Put { turns, dead_letters, wait_ms } = put;
        let wait = wait(Some(wait_ms.unwrap_or_default()))?;
        if turns.len().max(dead_letters.len()) > MOST_TURNS {
            return Err(Problem::invalid(format!("turns: more than {MOST_TURNS}; divide them among several requests")));
        }
        let (memory, who) = (Arc::clone(&self.memory), Arc::clone(who));
        let write = blocking(move || {
            let events = turns.iter().enumerate().map(|(index, turn)| {
                TurnEvent::from_json(turn.get().as_bytes())
                    .map_err(|problem| Problem::invalid(format!("turns[{index}]: {problem}; nothing was written")))
            });
            let events = events.collect::<Result<Vec<_>, _>>()?;
            for event in &events {
                let right = if matches!(event, TurnEvent::Deletion(_)) { Right::Forget } else { Right::Write };
                who.may_in(right, event.bank())?;
            }
            if events.is_empty() || !dead_letters.is_empty() {
                who.may(Right::Write)?;
            }
            let turns = events.len() as u64;
            memory.put_dead_letters(&dead_letters)?;
            Ok((memory.put(events)?, turns))
        });
        let (written, turns) = write.await?;
        let reflected = self.reflects(&written, wait).await;
        Ok(WrittenTurns { after: written.to_string(), turns, reflected })
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`Problem`]: an unknown bank, a wrong field, a deadline, or too many questions.
    pub async fn ask(&self, who: &Caller, ask: Ask) -> Result<Evidence, Problem> {
        let Ask { bank, text, asked_at, after, as_of, timeout_ms } = ask;
        who.may_in(Right::Read, &bank)?;
        self.check_here(&bank)?;
        let timeout = timeout_ms.map_or(self.deadline, Duration::from_millis);
        if timeout.is_zero() || timeout > LONGEST {
            return Err(Problem::invalid("timeout_ms: not between 1 and 600000"));
        }
        let after = after.map(|after| self.after(&after, &bank)).transpose()?;
        let as_of = as_of.map(|text| {
            parse_as_of(&text).ok_or_else(|| Problem::invalid("as_of: neither an offset nor a time in RFC 3339"))
        });
        let cancellation = Cancellation::at(Instant::now() + timeout);
        let question = Question { bank, text, asked_at };
        let bank = question.bank.clone();
        let asked = self.memory.ask(Asked { question, after, as_of: as_of.transpose()?, cancellation }).await;
        // The shard may have moved meanwhile.
        asked.map_err(|error| match error {
            PipelineError::OtherInstance { .. } => self.check_here(&bank).err().unwrap_or_else(|| error.into()),
            error => error.into(),
        })
    }

    /// Deletes a turn, and waits until no answer reflects it.
    ///
    /// # Errors
    /// [`Problem`] for a wrong field, or where the log failed.
    pub async fn forget(&self, who: &Caller, forget: Forget) -> Result<Forgotten, Problem> {
        let Forget { bank, turn, wait_ms } = forget;
        who.may_in(Right::Forget, &bank)?;
        // While the shard moves, the deletion is written at least.
        self.check_here(&bank).or_else(|problem| if problem.holder.is_some() { Err(problem) } else { Ok(()) })?;
        let (wait, memory) = (wait(wait_ms)?, Arc::clone(&self.memory));
        let (from, id) = (bank.clone(), turn.clone());
        let written = blocking(move || {
            memory.forget(&from, &id).map_err(|error| match error {
                PipelineError::Turn { problem, .. } => Problem::invalid(problem.to_string()),
                other => other.into(),
            })
        });
        let written = written.await?;
        let gone = self.reflects(&written, wait).await;
        Ok(Forgotten { bank, turn, after: written.to_string(), gone })
    }

    /// The banks that hold something, as far as the caller reaches.
    ///
    /// # Errors
    /// [`Problem`] without the right to read.
    pub fn banks(&self, who: &Caller) -> Result<Banks, Problem> {
        who.may(Right::Read)?;
        let mut banks = self.memory.banks();
        banks.retain(|bank| who.reaches(bank));
        Ok(Banks { banks })
    }

    /// Counts of one bank, or of all; with `after`, once they reflect those turns.
    ///
    /// # Errors
    /// [`Problem`] for an unknown bank, or where the wait was too short.
    pub async fn digest(
        &self,
        who: &Caller,
        bank: Option<Bank>,
        after: Option<&str>,
        wait_ms: Option<u64>,
    ) -> Result<Digest, Problem> {
        match &bank {
            Some(bank) => {
                who.may_in(Right::Read, bank)?;
                self.check_here(bank)?;
            }
            None => who.may_everywhere(Right::Read)?,
        }
        let wait = wait(wait_ms)?;
        if let Some(after) = after
            && !self.reflects(&self.written(after)?, wait).await
        {
            let detail = format!("the deadline passed before {after} was reflected; ask again, or allow more time");
            return Err(Problem::new(Code::Deadline, detail));
        }
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            let counted = memory.digest(bank.as_ref())?;
            Ok(Digest::of(bank, counted))
        })
        .await
    }

    /// How the memory is.
    ///
    /// # Errors
    /// [`Problem`] without the right to read or to write, or where the log failed.
    pub async fn status(&self, who: &Caller) -> Result<Status, Problem> {
        who.may(Right::Write).or_else(|_| who.may(Right::Read))?;
        let sees_all = who.may_everywhere(Right::Read).is_ok();
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            let after = memory.end()?.to_string();
            let MemoryStatus { behind, written, waiting_for_model, problem } = memory.status();
            Ok(Status {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                partitions: memory.partitions(),
                after,
                behind,
                waiting_for_model,
                windows: written.windows,
                units: written.units,
                rejected: written.rejects,
                read_by_model: written.by_model,
                refused_by_model: written.refused,
                // It may name a bank.
                problem: problem.filter(|_| sees_all),
            })
        })
        .await
    }

    /// Whether the memory reflects turns, within a time.
    pub(super) async fn reflects(&self, written: &Written, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            let now = Instant::now();
            if self.memory.wait_for(written, now) {
                return true;
            }
            // What another instance follows is never reflected here.
            if now >= until || !self.memory.follows(written) {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn written(&self, after: &str) -> Result<Written, Problem> {
        Written::parse(after, self.memory.partitions())
            .ok_or_else(|| Problem::invalid("after: not PARTITION:OFFSET; send the `after` of turns as it came"))
    }

    /// The place in the bank's partition that an `after` names.
    fn after(&self, text: &str, bank: &Bank) -> Result<(u32, u64), Problem> {
        self.written(text)?.of(bank).ok_or_else(|| {
            Problem::invalid(format!(
                "after: {text} names no turn of the partition of bank {bank}; send that of its turns"
            ))
        })
    }
}

/// The wait that a request allows.
fn wait(wait_ms: Option<u64>) -> Result<Duration, Problem> {
    let wait = wait_ms.map_or(WAIT, Duration::from_millis);
    if wait > LONGEST { Err(Problem::invalid("wait_ms: more than 600000")) } else { Ok(wait) }
}

/// Does blocking work beside the runtime's thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::new(Code::Failed, "the request panicked; this is a defect, please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
