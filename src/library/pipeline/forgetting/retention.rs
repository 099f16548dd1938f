//! Retention: turns that rules no longer keep, forgotten as if somebody had asked for it.
//!
//! In: the rules, the banks that a memory holds, the log, and the time. Out: what no rule keeps, and operations that
//! forget it, some turns at a time. A replay repeats them, because they are deletions in the turns log. The time comes
//! in from outside, so a look at the same log at the same time gives the same turns. Banks that are held are left out.
//! Turns that are durable and not extracted yet are not seen: a later look finds them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::{
    Forgets, PipelineError, Replica,
    engine::{HeldTurn, append_ms, held_turns},
    logged::logged,
    operation::DELETED_AT_ONCE,
    rule::RetentionRule,
};
use crate::log::{Log, Written};
use nouns::{
    config::{KeepSettings, KeptBy, Pipeline, RetentionSettings},
    model::Bank,
};

const DAY_MS: i64 = 86_400_000;
/// The time between two looks at all banks.
const LOOKS_EVERY: Duration = Duration::from_secs(86_400);
/// The longest time until a stop is noticed.
const LOOK: Duration = Duration::from_millis(250);
/// The pause after something failed: a bank with a record that cannot be read fails until somebody mends it.
const PAUSE: Duration = Duration::from_secs(3_600);
/// How many times as long as it worked a pass rests before it goes on, so that questions have the machine.
const RESTS: u32 = 4;
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// The longest wait until answers reflect some deletions.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Turns of a bank that rules no longer keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlived {
    /// The bank.
    pub bank: Bank,
    /// Their ids, by rule in the order of the pipeline file. A turn that several rules name stands with the first of
    /// them.
    pub by_rule: Vec<(RetentionRule, BTreeSet<String>)>,
}

/// What retention did in this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionStatus {
    /// How many turns it has deleted.
    pub deleted_turns: u64,
    /// When it had looked at every bank the last time; the next look begins a day later. Absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub looked: Option<Timestamp>,
    /// Why it failed last; it is tried again after an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What the thread of retention tells.
pub(in crate::pipeline) enum RetentionNews {
    /// Turns were deleted.
    Deleted(u64),
    /// All banks were looked at.
    Looked(Timestamp),
    /// Why it failed; it is tried again.
    Failed(String),
}

/// The rules of a pipeline, over its memory.
pub(in crate::pipeline) struct Retention<'r> {
    forgets: Forgets<'r>,
    log: &'r dyn Log,
    replica: &'r Replica,
    rules: &'r [RetentionSettings],
}

impl<'r> Retention<'r> {
    /// That of a pipeline; none on Kafka.
    pub(in crate::pipeline) fn of(pipeline: &'r Pipeline, log: &'r dyn Log, replica: &'r Replica) -> Option<Self> {
        log.erasable()?;
        Some(Self { forgets: Forgets::of(log, &pipeline.forget), log, replica, rules: &pipeline.retention })
    }

    /// What no rule keeps at this time, bank by bank; banks in which all turns stay are left out.
    pub(in crate::pipeline) fn look(&self, now_ms: i64) -> Result<Vec<Outlived>, PipelineError> {
        let mut all = Vec::new();
        for bank in self.banks() {
            all.extend(self.look_at(bank, now_ms)?);
        }
        Ok(all)
    }

    /// Deletes what a look found, in operations of at most a thousand turns of one rule, and returns once that is
    /// durable.
    pub(in crate::pipeline) fn delete(&self, outlived: &Outlived, now_ms: i64) -> Result<(), PipelineError> {
        outlived.parts().try_for_each(|(rule, turns)| self.delete_some(&outlived.bank, rule, turns, now_ms).map(drop))
    }

    fn delete_some(
        &self,
        bank: &Bank,
        rule: &RetentionRule,
        turns: Vec<String>,
        now_ms: i64,
    ) -> Result<Written, PipelineError> {
        Ok(self.forgets.begin(bank, turns, now_ms, Some(rule.clone()))?.written)
    }

    /// The banks that a rule covers and nothing holds.
    fn banks(&self) -> BTreeSet<Bank> {
        let settings = self.forgets.settings;
        self.replica.banks(&|bank| settings.hold_of(bank).is_none() && self.rules.iter().any(|rule| rule.covers(bank)))
    }

    fn look_at(&self, bank: Bank, now_ms: i64) -> Result<Option<Outlived>, PipelineError> {
        let held = held_turns(self.log, &bank, &|_| true, usize::MAX)?;
        let (mut named, mut by_rule) = (BTreeSet::new(), Vec::new());
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.covers(&bank)) {
            let turns = outlived(rule, &held, now_ms, &mut |offset| append_ms(self.log, &bank, offset))?;
            let turns: BTreeSet<String> = turns.into_iter().filter(|turn| named.insert(turn.clone())).collect();
            if !turns.is_empty() {
                by_rule.push((RetentionRule::at(index, rule), turns));
            }
        }
        Ok((!by_rule.is_empty()).then_some(Outlived { bank, by_rule }))
    }

    /// Looks and deletes once a day until `stopping`, whose thread may be unparked.
    pub(in crate::pipeline) fn retain_in_time(&self, stopping: &AtomicBool, tell: &dyn Fn(RetentionNews)) {
        let goes_on = || !stopping.load(Ordering::Relaxed);
        while goes_on() {
            let next = match self.retain(&goes_on, tell) {
                Ok(()) => LOOKS_EVERY,
                Err(error) => {
                    let problem = logged(&error);
                    warn!(problem, "retention stopped; it will be tried again");
                    tell(RetentionNews::Failed(error.to_string()));
                    PAUSE
                }
            };
            rest(next, &goes_on);
        }
    }

    fn retain(&self, goes_on: &dyn Fn() -> bool, tell: &dyn Fn(RetentionNews)) -> Result<(), PipelineError> {
        let mut failed = None;
        for bank in self.banks() {
            let begun = Instant::now();
            let looked = self.look_at(bank, now_ms());
            rest((begun.elapsed() * RESTS).min(LONGEST_REST), goes_on);
            let outlived = match looked {
                Ok(Some(outlived)) => outlived,
                Ok(None) => continue,
                // The other banks have rules, too.
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            for (rule, turns) in outlived.parts() {
                if !goes_on() {
                    return Ok(());
                }
                let (begun, count) = (Instant::now(), turns.len() as u64);
                let written = self.delete_some(&outlived.bank, rule, turns, now_ms())?;
                info!(turns = count, "retention has deleted turns");
                tell(RetentionNews::Deleted(count));
                // The work that the deletions make counts, too.
                let reflects = |until| written.places().all(|(p, next)| self.replica.wait_for(p, next, until));
                while goes_on() && begun.elapsed() < LONGEST_WAIT && !reflects(Instant::now() + LOOK) {}
                rest((begun.elapsed() * RESTS).min(LONGEST_REST), goes_on);
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if goes_on() {
            tell(RetentionNews::Looked(Timestamp::now()));
        }
        Ok(())
    }
}

impl Outlived {
    /// Its turns with their rule, as many at once as an operation forgets.
    fn parts(&self) -> impl Iterator<Item = (&RetentionRule, Vec<String>)> {
        self.by_rule.iter().flat_map(|(rule, turns)| {
            let mut turns = turns.iter();
            std::iter::from_fn(move || {
                let some: Vec<String> = turns.by_ref().take(DELETED_AT_ONCE).cloned().collect();
                (!some.is_empty()).then_some((rule, some))
            })
        })
    }
}

/// The ids of the turns that a rule does not keep, of all turns of a bank in the order of time. `stored_ms` says when
/// the record at an offset of the turns log was appended; it is only asked about turns that go, and one that stays.
fn outlived(
    rule: &RetentionSettings,
    held: &[HeldTurn],
    now_ms: i64,
    stored_ms: &mut dyn FnMut(u64) -> Result<Option<i64>, PipelineError>,
) -> Result<Vec<String>, PipelineError> {
    let select = rule.selector();
    let mut taken: Vec<&HeldTurn> = held.iter().filter(|held| select.takes(&held.turn)).collect();
    if rule.by == KeptBy::Stored {
        taken.sort_by_key(|held| held.offset);
    }
    let KeepSettings { days, turns } = rule.keep;
    let mut going = 0;
    if let Some(turns) = turns {
        going = taken.len().saturating_sub(usize::try_from(turns).unwrap_or(usize::MAX));
    }
    if let Some(days) = days {
        let until_ms = now_ms.saturating_sub(i64::from(days) * DAY_MS);
        for held in taken.iter().skip(going) {
            let at_ms = match rule.by {
                KeptBy::Said => Some(held.turn.time.unix_ms),
                KeptBy::Stored => stored_ms(held.offset)?,
            };
            // The order is that of these times, so the first turn that stays ends the others.
            if at_ms.is_none_or(|at_ms| at_ms > until_ms) {
                break;
            }
            going += 1;
        }
    }
    taken.truncate(going);
    Ok(taken.into_iter().map(|held| held.turn.turn.clone()).collect())
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Waits, unless it is to stop.
fn rest(time: Duration, goes_on: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while goes_on() && begun.elapsed() < time {
        std::thread::park_timeout(LOOK.min(time.saturating_sub(begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use nouns::model::{EventTime, Turn};

    const NOW: &str = "2024-06-30T00:00:00Z";

    fn ms(time: &str) -> i64 {
        EventTime::parse(time).unwrap().unix_ms
    }

    /// Turns in the order in which they were said; they were stored in another one, a day apart from 1 June on.
    fn held() -> Vec<HeldTurn> {
        let said = [
            ("a", "Ann", "2024-05-01T00:00:00Z", 3),
            ("b", "Bo", "2024-05-31T00:00:00Z", 0),
            ("c", "Ann", "2024-05-31T00:00:00.001Z", 1),
            ("d", "Bo", "2024-06-20T00:00:00Z", 2),
        ];
        let held = said.map(|(id, speaker, time, offset)| {
            let turn = Turn::new(Bank::parse("b").unwrap(), id, speaker, "x", EventTime::parse(time).unwrap());
            HeldTurn { turn: Arc::new(turn), offset }
        });
        held.to_vec()
    }

    fn gone(keys: &str) -> Vec<String> {
        let file = format!("version = 1\n[[retention]]\nbank = \"b\"\n{keys}\n");
        let rules = Pipeline::parse(&file).unwrap().retention;
        let mut stored = |offset: u64| Ok(Some(ms("2024-06-01T00:00:00Z") + offset as i64 * DAY_MS));
        outlived(&rules[0], &held(), ms(NOW), &mut stored).unwrap()
    }

    #[test]
    fn a_rule_takes_exactly_the_turns_that_are_older_or_more_than_it_keeps() {
        // Exactly as old as what is kept: it goes.
        assert_eq!(gone("keep = { days = 30 }\nby = \"said\""), ["a", "b"]);
        assert_eq!(gone("keep = { days = 29 }\nby = \"stored\""), ["b"]);
        assert_eq!(gone("keep = { days = 27 }"), ["b", "c", "d"], "stored is the default");
        assert_eq!(gone("keep = { days = 30 }"), [""; 0]);
        assert_eq!(gone("keep = { turns = 3 }\nby = \"said\""), ["a"]);
        assert_eq!(gone("keep = { turns = 1 }"), ["b", "c", "d"]);
        assert_eq!(gone("keep = { turns = 4 }"), [""; 0]);
        assert_eq!(gone("keep = { turns = 1 }\nspeakers = [\"ann\"]"), ["c"], "of the turns that it takes");
        assert_eq!(gone("keep = { days = 1 }\nspeakers = [\"Cy\"]"), [""; 0]);
    }

    #[test]
    fn only_the_turns_that_go_and_one_more_are_looked_up() {
        let file = "version = 1\n[[retention]]\nbank = \"b\"\nkeep = { days = 29 }\n";
        let rules = Pipeline::parse(file).unwrap().retention;
        let mut asked = Vec::new();
        let mut stored = |offset: u64| {
            asked.push(offset);
            Ok(Some(ms("2024-06-01T00:00:00Z") + offset as i64 * DAY_MS))
        };
        outlived(&rules[0], &held(), ms(NOW), &mut stored).unwrap();
        assert_eq!(asked, [0, 1]);
    }
}
