//! Splits a memory record into values that fit into the log (decision 30).
//!
//! In: a record, a limit in bytes. Out: its JSON, or that of several records with the same head, among which the turns,
//! each with its statements, and then the units are divided. A value exceeds the limit only if a single turn or unit does. A record with a unit
//! that no log takes keeps only its turns. Pure arithmetic.

use types::model::{MemoryRecord, RecordStatements, Statement, Unit, WindowTurn};

/// Limit of a value, in bytes: half of the largest record of a topic. A single turn or unit may
/// exceed it.
pub const MAX_VALUE_BYTES: usize = 4 << 20;

/// The values of a record, in the order of its parts.
///
/// # Errors
/// A turn or unit that has no JSON form.
pub fn values(record: &MemoryRecord, limit_bytes: usize) -> Result<Vec<Vec<u8>>, serde_json::Error> {
    let whole = serde_json::to_vec(record)?;
    if whole.len() <= limit_bytes {
        return Ok(vec![whole]);
    }
    let none_found = record.statements.as_ref().map(|of| RecordStatements { by: of.by.clone(), found: Vec::new() });
    let head = MemoryRecord { turns: Vec::new(), units: Vec::new(), statements: none_found, ..record.clone() };
    let empty = serde_json::to_vec(&head)?.len();
    let (mut parts, mut bytes) = (vec![head.clone()], empty);
    let mut room = |parts: &mut Vec<MemoryRecord>, more: usize| {
        let full = parts.last().is_none_or(|part| !(part.turns.is_empty() && part.units.is_empty()));
        if full && bytes + more > limit_bytes {
            parts.push(head.clone());
            bytes = empty;
        }
        // The comma before the next element.
        bytes += more + 1;
    };
    for turn in &record.turns {
        let stated = record.statements.iter().flat_map(|of| &of.found).filter(|of| of.turn == turn.turn.turn);
        let stated: Vec<Statement> = stated.cloned().collect();
        let bytes_of_stated = if stated.is_empty() { 0 } else { serde_json::to_vec(&stated)?.len() };
        room(&mut parts, serde_json::to_vec::<WindowTurn>(turn)?.len() + bytes_of_stated);
        parts.last_mut().into_iter().for_each(|part| {
            part.turns.push(turn.clone());
            part.statements.iter_mut().for_each(|of| of.found.extend(stated.iter().cloned()));
        });
    }
    for unit in &record.units {
        room(&mut parts, serde_json::to_vec::<Unit>(unit)?.len());
        parts.last_mut().into_iter().for_each(|part| part.units.push(unit.clone()));
    }
    parts.iter().map(serde_json::to_vec).collect()
}

/// The values of a record as far as a log takes them.
pub(super) struct StorableValues {
    pub(super) values: Vec<Vec<u8>>,
    /// The size of the record's largest value, if no log takes that value: then the values have no units.
    pub(super) too_large_bytes: Option<usize>,
}

/// The values of a record, none of which exceeds `largest_bytes`.
///
/// # Errors
/// A turn or unit that has no JSON form.
pub(super) fn storable(
    record: &MemoryRecord,
    limit_bytes: usize,
    largest_bytes: usize,
) -> Result<StorableValues, serde_json::Error> {
    let whole = values(record, limit_bytes)?;
    let bytes = whole.iter().map(Vec::len).max().unwrap_or_default();
    if bytes <= largest_bytes {
        return Ok(StorableValues { values: whole, too_large_bytes: None });
    }
    // The size of a turn is limited, unlike that of a unit.
    let turns_only = MemoryRecord { units: Vec::new(), ..record.clone() };
    Ok(StorableValues { values: values(&turns_only, limit_bytes)?, too_large_bytes: Some(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{
        Bank, Cues, EventTime, MemoryKey, ModelRef, SCHEMA_VERSION, SessionId, TurnEvent, UnitId, WindowId, WindowState,
    };

    /// A unit whose text has this many bytes.
    fn unit(text_bytes: usize) -> Unit {
        Unit {
            id: UnitId(1),
            restatement: "u".repeat(text_bytes),
            vector: std::iter::once(1.0).collect(),
            cues: Cues::default(),
            said_at: EventTime::parse("2024-05-06T09:00:00Z").unwrap(),
            sources: vec!["0".to_owned()],
            ordinal: 0,
            parts: Vec::new(),
        }
    }

    fn record(turns: usize) -> MemoryRecord {
        let key = MemoryKey {
            bank: Bank::parse("b").unwrap(),
            window: WindowId { session: SessionId("s".to_owned()), start: 0 },
            turn: None,
            part: 0,
        };
        let turn = |n: usize| {
            let text = format!(
                r#"{{"bank": "b", "turn": "{n}", "speaker": "A", "text": "{}", "time": "2024-05-06T09:00:00Z"}}"#,
                "word ".repeat(20 + n)
            );
            let TurnEvent::Turn(turn) = TurnEvent::from_json(text.as_bytes()).unwrap() else { panic!("not a turn") };
            WindowTurn {
                turn: turn.into(),
                ordinal: n as u32,
                context: false,
                deleted: false,
                source_offset: n as u64,
                stored: None,
            }
        };
        MemoryRecord {
            schema: SCHEMA_VERSION,
            bank: key.bank,
            window: key.window,
            state: WindowState::Final,
            turns_hash: String::new(),
            extractor: "none/1".to_owned(),
            cutter: None,
            model: ModelRef { name: "none".to_owned(), hash: String::new() },
            turns: (0..turns).map(turn).collect(),
            units: Vec::new(),
            statements: None,
        }
    }

    #[test]
    fn a_record_with_a_unit_that_no_log_takes_keeps_its_turns() {
        let turns_only = record(3);
        let whole = MemoryRecord { units: vec![unit(9_000)], ..turns_only.clone() };
        let whole_bytes = serde_json::to_vec(&whole).unwrap().len();
        let read = |stored: &StorableValues| -> MemoryRecord {
            let parts: Vec<MemoryRecord> = stored.values.iter().map(|v| serde_json::from_slice(v).unwrap()).collect();
            let turns = parts.iter().flat_map(|part| part.turns.clone()).collect();
            let units = parts.iter().flat_map(|part| part.units.clone()).collect();
            MemoryRecord { turns, units, ..parts[0].clone() }
        };
        let stored = storable(&whole, 700, whole_bytes).unwrap();
        assert_eq!((read(&stored), stored.too_large_bytes), (whole.clone(), None));
        let stored = storable(&whole, 700, 8_000).unwrap();
        assert!(stored.too_large_bytes.is_some_and(|bytes| bytes > 9_000));
        assert!(stored.values.iter().all(|value| value.len() <= 8_000));
        assert_eq!(read(&stored), turns_only);
    }

    #[test]
    fn parts_fit_the_limit_and_add_up_to_the_record() {
        let whole = record(12);
        for limit in [0, 700, 1_500, 1 << 20] {
            let values = values(&whole, limit).unwrap();
            let parts: Vec<MemoryRecord> = values.iter().map(|v| serde_json::from_slice(v).unwrap()).collect();
            assert!(values.iter().zip(&parts).all(|(v, part)| v.len() <= limit || part.turns.len() == 1), "{limit}");
            let joined = parts.iter().flat_map(|part| part.turns.clone()).collect();
            assert_eq!(MemoryRecord { turns: joined, ..parts[0].clone() }, whole, "{limit}");
            let expected = match limit {
                0 => 12,
                l if l > 100_000 => 1,
                _ => parts.len().clamp(2, 11),
            };
            assert_eq!(parts.len(), expected, "{limit}");
        }
    }
}
