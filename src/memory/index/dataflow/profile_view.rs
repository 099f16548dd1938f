//! The view of what holds of each person: from the visible statements to the lines of their profiles (decision 60).
//!
//! In: the statements of visible records, probes. Out: an arrangement of lines by bank, and the lines that a probe asks
//! for, as of its epoch. Each change touches the statements of its place and the lines of its person only. A line is
//! superseded by the next value of its place, or by the first later statement that says it to be over. The shape:
//! ```text
//! statements ─ by place ─ runs ─┬─ by person ─ join with those that replace ─► superseded pairs ─┐
//!                               └───────────────────────────────────────────────────────────────┴─ first ─► Profile
//! ```

use std::sync::Arc;

use differential_dataflow::{
    VecCollection,
    operators::arrange::{Arranged, TraceAgent},
    trace::implementations::ValSpine,
};
use serde::{Deserialize, Serialize};
use timely::dataflow::{Stream, operators::vec::Map};

use super::{
    bank_index::{Epoch, PendingProbe, ProbeId},
    lookup::lookup,
};
use crate::index::profile::{
    live_statement::LiveStatement,
    profile_line::{ProfileLine, lines_of_place},
};
use types::model::BankKey;

/// Asks for the lines of a bank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfileProbe {
    /// The bank.
    pub bank: BankKey,
    /// Only those of one person ([`person_key`](crate::index::person_key)), or of all.
    pub person: Option<u128>,
}

/// The lines of every bank.
pub(in crate::index) type ProfileArrangement<'scope> =
    Arranged<'scope, TraceAgent<ValSpine<BankKey, Arc<ProfileLine>, Epoch, isize>>>;

/// A line, or a statement that supersedes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum LineOrChange {
    Line(Arc<ProfileLine>),
    Change(Arc<LiveStatement>),
}

/// The lines of all persons, by bank.
pub(in crate::index) fn profile<'scope>(
    statements: VecCollection<'scope, Epoch, (BankKey, Arc<LiveStatement>), isize>,
) -> ProfileArrangement<'scope> {
    let runs = statements
        .clone()
        .map(|(bank, statement)| ((bank, statement.place()), statement))
        .reduce_named("StatementRuns", |_, statements, lines| {
            let statements = statements.iter().map(|(statement, _)| *statement);
            lines.extend(lines_of_place(statements).into_iter().map(|line| (Arc::new(line), 1)));
        })
        .map(|((bank, place), line)| ((bank, place.person), line));
    let changes = statements
        .filter(|(_, statement)| statement.replaces())
        .map(|(bank, statement)| ((bank, statement.person()), statement));
    let open = runs.clone().filter(|(_, line)| line.superseded_by.is_none());
    let over = open.join_map(changes, |(bank, person), line, change| {
        let supersedes = change.supersedes(&line.newest);
        supersedes.then(|| ((*bank, *person, Arc::clone(&line.newest)), LineOrChange::Change(Arc::clone(change))))
    });
    // A run is known by its newest statement: no two runs share one.
    let lines = runs.map(|((bank, person), line)| {
        let newest = Arc::clone(&line.newest);
        ((bank, person, newest), LineOrChange::Line(line))
    });
    lines
        .concat(over.flat_map(|pair| pair))
        .reduce_named("SupersededLines", |_, found, lines| {
            // Lines come before changes, and changes in their order.
            let change = found.iter().find_map(|(found, _)| match found {
                LineOrChange::Change(change) => Some(change),
                LineOrChange::Line(_) => None,
            });
            lines.extend(found.iter().filter_map(|(found, _)| match found {
                LineOrChange::Line(line) if line.superseded_by.is_some() || change.is_none() => {
                    Some((Arc::clone(line), 1))
                }
                LineOrChange::Line(line) => {
                    let mut superseded = (**line).clone();
                    superseded.superseded_by = change.map(Arc::clone);
                    Some((Arc::new(superseded), 1))
                }
                LineOrChange::Change(_) => None,
            }));
        })
        .map(|((bank, ..), line)| (bank, line))
        .arrange_by_key_named("Profile")
}

/// Answers probes with the lines that they ask for.
pub(in crate::index) fn profile_lines<'scope>(
    probes: Stream<'scope, Epoch, Vec<PendingProbe<ProfileProbe>>>,
    profile: ProfileArrangement<'scope>,
) -> Stream<'scope, Epoch, Vec<(ProbeId, Arc<ProfileLine>)>> {
    let keyed = probes.map(|PendingProbe { id, probe }| (probe.bank, (id, probe.person)));
    lookup("ProfileLines", keyed, profile, |_, (id, person), lines: &[Arc<ProfileLine>], out| {
        let asked = |line: &&Arc<ProfileLine>| person.is_none_or(|person| line.newest.person() == person);
        out.extend(lines.iter().filter(asked).map(|line| (id, Arc::clone(line))));
    })
}
