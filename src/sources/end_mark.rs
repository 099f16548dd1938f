//! The idle mark at the end of a file.
//!
//! In: a bank and the time of its last turn. Out: an idle mark that closes the bank's open windows. Its
//! time stays within the valid years.

use jiff::SignedDuration;

use types::model::{Bank, EventTime, IdleMark, TurnEvent};

/// An idle mark, which says that the source is silent until 366 days after the bank's last turn. That is longer than
/// any gap that the configuration allows. The mark is never later than the last valid day.
#[must_use]
pub fn end_mark(bank: &Bank, last: EventTime) -> TurnEvent {
    const LAST_DAY_MS: i64 = 7_258_032_000_000; // 2199-12-31T00:00:00Z
    let year_ms = SignedDuration::from_hours(366 * 24).as_millis() as i64;
    let wanted = last.unix_ms.saturating_add(year_ms).min(LAST_DAY_MS.max(last.unix_ms));
    let time = EventTime::new(wanted, last.offset_seconds).unwrap_or(last);
    TurnEvent::Idle(IdleMark { bank: bank.clone(), time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_mark_is_a_year_later_and_stays_in_range() {
        for (last, expected) in [
            ("2023-05-08T13:56:00Z", "2024-05-08T13:56:00Z"),
            ("2023-01-01T00:00:00+02:00", "2024-01-02T00:00:00+02:00"),
            ("2199-06-01T00:00:00Z", "2199-12-31T00:00:00Z"),
            ("2199-06-01T00:00:00+23:00", "2199-12-31T23:00:00+23:00"),
            ("2199-12-31T20:00:00Z", "2199-12-31T20:00:00Z"),
            ("2199-12-31T23:59:59-20:00", "2199-12-31T23:59:59-20:00"),
        ] {
            let bank = Bank::parse("b").unwrap();
            let TurnEvent::Idle(idle) = end_mark(&bank, EventTime::parse(last).unwrap()) else { panic!("not idle") };
            assert_eq!(idle.time, EventTime::parse(expected).unwrap(), "{last}");
        }
    }
}
