//! The sessions in which something was said last, for an agent that begins.
//!
//! In: a log, a bank, and which of its turns count. Out: its latest sessions, each with its title, or else with how it
//! begins. A turn that is kept from recall is quoted nowhere.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use super::turn_locator::{SessionSpan, TurnLocator};
use logs::Log;
use memory::recall::one_line;
use pipeline::{Cancellation, PipelineError, StoredTurn, selected_turns};
use types::model::{Bank, LatestSession, Selector, SessionBeginning, Turn};

/// The most sessions.
const MAX_SESSIONS: usize = 5;
/// The most characters of how one begins.
const BEGINNING: usize = 80;

/// The latest sessions of a bank, the last first. With a selector, of the turns that it takes alone, which reads all
/// records of the bank.
///
/// # Errors
/// [`PipelineError`] if the log failed, or if no one waits any more.
pub(super) fn latest_sessions(
    places: &TurnLocator,
    log: &dyn Log,
    bank: &Bank,
    select: Option<&Selector>,
    cancellation: &Cancellation,
) -> Result<Vec<LatestSession>, PipelineError> {
    let spans = places.sessions(log, bank, "", "", usize::MAX)?;
    let Some(select) = select else {
        let mut latest: Vec<LatestSession> = spans.into_iter().filter_map(of_span).collect();
        take_latest(&mut latest);
        let untitled = latest.iter().filter(|of| of.title.is_none()).map(|of| (of.session.as_str(), of.first));
        let first = places.first_turns(log, bank, &untitled.collect())?;
        let mut first: HashMap<&str, &StoredTurn> =
            first.iter().rev().filter_map(|held| Some((held.turn.session.as_deref()?, held))).collect();
        for of in &mut latest {
            of.begins = first.remove(of.session.as_str()).and_then(|held| beginning(&held.turn));
        }
        return Ok(latest);
    };
    let titles: HashMap<String, String> = spans.into_iter().filter_map(|of| Some((of.session, of.title?))).collect();
    let mut found: BTreeMap<String, LatestSession> = BTreeMap::new();
    for held in selected_turns(log, bank, select, cancellation)? {
        let (turn, time) = (&*held.turn, held.turn.time);
        let Some(session) = turn.session.clone() else { continue };
        let title = titles.get(&session).cloned();
        let begins = if title.is_none() { beginning(turn) } else { None };
        let of = found.entry(session.clone()).or_insert(LatestSession {
            session,
            title,
            begins,
            turns: 0,
            first: time,
            last: time,
        });
        (of.turns, of.last) = (of.turns + 1, time);
    }
    let mut latest: Vec<LatestSession> = found.into_values().collect();
    take_latest(&mut latest);
    Ok(latest)
}

fn take_latest(sessions: &mut Vec<LatestSession>) {
    sessions.sort_by_key(|of| Reverse(of.last));
    sessions.truncate(MAX_SESSIONS);
}

fn of_span(SessionSpan { session, title, turns }: SessionSpan) -> Option<LatestSession> {
    let turns = turns?;
    let (first, last) = (turns.first, turns.last);
    Some(LatestSession { session, title, begins: None, turns: turns.count as u64, first, last })
}

fn beginning(turn: &Turn) -> Option<SessionBeginning> {
    let line = one_line(&turn.text);
    let text = match line.char_indices().nth(BEGINNING - 1) {
        Some((end, last)) if end + last.len_utf8() < line.len() => format!("{}…", line.get(..end).unwrap_or_default()),
        _ => line,
    };
    let (turn_id, speaker) = (turn.turn.clone(), turn.speaker.clone());
    (turn.recall && !text.is_empty()).then_some(SessionBeginning { turn: turn_id, speaker, text })
}
