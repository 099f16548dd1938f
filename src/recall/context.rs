//! Evidence to the text that an answerer reads.
//!
//! In: the units of the answer. Out: plain text in the order of time, one heading a
//! local day, one line a unit, with the event's own time where it differs from the time
//! of saying. What was said never makes a line or a heading of its own. When nothing
//! supports the question the first line says so (decision 17).

use std::fmt::Write;

use jiff::civil::Date;

use crate::{
    language::times::render_interval,
    memory::UnitBody,
    model::{EventTime, Interval},
};

/// Renders units; `unsupported` is the stop reason when nothing supports the question.
#[must_use]
pub fn context<'u>(units: impl IntoIterator<Item = &'u UnitBody>, unsupported: Option<&str>) -> String {
    let mut units: Vec<&UnitBody> = units.into_iter().collect();
    units.sort_by(|a, b| (a.said_at, &a.session, a.ordinal, a.id).cmp(&(b.said_at, &b.session, b.ordinal, b.id)));
    let mut out = String::new();
    if let Some(reason) = unsupported {
        let rest = if units.is_empty() { "" } else { " What follows is only the nearest that was found." };
        out.push_str(&format!("Nothing in memory supports this question ({reason}).{rest}\n"));
    }
    let mut day: Option<Date> = None;
    for unit in units {
        let said = unit.said_at.local();
        if day != Some(said.date()) {
            let gap = if out.is_empty() { "" } else { "\n" };
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{gap}## {}", day_name(said.date()));
            day = Some(said.date());
        }
        let words = unit.restatement.split_whitespace().collect::<Vec<_>>().join(" ");
        let when = unit.cues.time.and_then(|t| event_time(t, unit.said_at)).filter(|w| !words.contains(w.as_str()));
        let note = when.map(|w| format!(" ({w})")).unwrap_or_default();
        let _ = writeln!(out, "[{}] {words}{note}", said.strftime("%H:%M"));
    }
    out
}

fn day_name(day: Date) -> String {
    day.strftime("%-d %B %Y").to_string()
}

/// An event's time in words; absent when the line already tells it.
fn event_time(time: Interval, said_at: EventTime) -> Option<String> {
    let (start, end): (EventTime, EventTime) = time.into();
    if start.unix_ms == said_at.unix_ms && end.unix_ms == said_at.unix_ms {
        return None;
    }
    let named = render_interval(&time);
    (named != day_name(said_at.local().date())).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::body;

    fn said(id: u64, text: &str, at: &str, time: Option<(&str, &str)>) -> UnitBody {
        let mut unit = (*body(id, text, at)).clone();
        unit.cues.time =
            time.map(|(a, b)| (EventTime::parse(a).unwrap(), EventTime::parse(b).unwrap()).try_into().unwrap());
        unit
    }

    #[test]
    fn by_day_and_time_with_events_resolved() {
        let units = [
            said(
                3,
                "Omar said he will sail in June",
                "2024-05-02T09:05:00+02:00",
                Some(("2024-06-01T00:00:00+02:00", "2024-06-30T23:59:59.999+02:00")),
            ),
            said(
                1,
                "Priya swam yesterday",
                "2024-05-01T18:00:00+02:00",
                Some(("2024-04-30T00:00:00+02:00", "2024-04-30T23:59:59.999+02:00")),
            ),
            said(
                2,
                "Omar\n## laughed",
                "2024-05-01T18:00:00+02:00",
                Some(("2024-05-01T18:00:00+02:00", "2024-05-01T18:00:00+02:00")),
            ),
            said(
                4,
                "Priya was born in 1999",
                "2024-05-02T09:06:00+02:00",
                Some(("1999-01-01T00:00:00+02:00", "1999-12-31T23:59:59.999+02:00")),
            ),
        ];
        assert_eq!(
            context(&units, None),
            "## 1 May 2024\n[18:00] Priya swam yesterday (30 April 2024)\n[18:00] Omar ## laughed\n\n\
             ## 2 May 2024\n[09:05] Omar said he will sail in June (June 2024)\n[09:06] Priya was born in 1999\n"
        );
    }

    #[test]
    fn what_is_not_known_is_said_first() {
        assert_eq!(
            context([], Some("no evidence to start from")),
            "Nothing in memory supports this question (no evidence to start from).\n"
        );
        let near = said(1, "Priya swam", "2024-05-01T18:00:00Z", None);
        let text = context([&near], Some("no new support"));
        assert!(text.starts_with("Nothing in memory supports this question (no new support). What follows"), "{text}");
        assert!(text.ends_with("\n\n## 1 May 2024\n[18:00] Priya swam\n"), "{text}");
    }
}
