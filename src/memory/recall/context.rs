//! The context: evidence as the text from which an answer is written.
//!
//! In: the units of the answer, whole or in excerpts. Out: plain text: first the whole units, then the excerpts, both
//! in the order of time. Whole units have a heading for each local day, and a line for each unit: its restatement, with
//! the event's own time if that differs from the time of saying. Excerpts have a heading for each session and day, with
//! the time of its first quoted turn. Below it stand the turns, `Name: words`, with their own line breaks
//! ([`super::turn_quotation`]); of a long turn, only the quoted passages. The words of a turn never start a line or a
//! heading. If recollection abstains, the first line says that nothing supports the question (decision 17).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use jiff::civil::Date;

use crate::{
    index::{PartBody, UnitBody},
    language::times::render_interval,
};
use types::model::{EventTime, Interval, Statement};

use super::later_words::LaterWords;
use super::turn_quotation::{one_line, quote, quote_passages};

/// A unit with the indexes of its quoted parts. Without indexes its restatement is quoted.
pub type UnitQuote<'u> = (&'u UnitBody, Option<&'u BTreeSet<usize>>);

/// A context with the ids of the turns that it quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceContext {
    /// The text.
    pub text: String,
    /// For each quote, in the order of the text: the id of its turn, or the ids of all turns of a whole unit.
    pub turns: Vec<Vec<String>>,
}

/// Renders units; `unsupported` is why nothing supports the question, or empty for that note without a reason.
#[must_use]
pub fn render_context<'u>(
    units: impl IntoIterator<Item = UnitQuote<'u>>,
    unsupported: Option<&str>,
) -> EvidenceContext {
    render_with_later(units, unsupported, &LaterWords::default())
}

/// As [`render_context`], with what stands in place of quoted words, each where its time is, under a heading of its own.
#[must_use]
pub(super) fn render_with_later<'u>(
    units: impl IntoIterator<Item = UnitQuote<'u>>,
    unsupported: Option<&str>,
    later: &LaterWords<'_>,
) -> EvidenceContext {
    let units: Vec<UnitQuote<'u>> = units.into_iter().collect();
    let later = later.missing(&quoted_turns(units.iter().copied()));
    let mut out = EvidenceContext::default();
    if let Some(reason) = unsupported {
        let rest = if units.is_empty() { "" } else { " What follows is only the nearest that was found." };
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        out.text.push_str(&format!("Nothing in memory supports this question{reason}.{rest}\n"));
    }
    let (whole, excerpts): (Vec<UnitQuote<'u>>, Vec<UnitQuote<'u>>) =
        units.into_iter().partition(|(unit, excerpt)| excerpt.is_none() || unit.is_restated());
    render_units(whole.into_iter().map(|(unit, _)| unit).collect(), &mut out);
    render_excerpts(&excerpts, &later, &mut out);
    out
}

/// The turns that a context of these units quotes.
pub(super) fn quoted_turns<'u>(units: impl IntoIterator<Item = UnitQuote<'u>>) -> BTreeSet<&'u str> {
    let mut turns = BTreeSet::new();
    for (unit, excerpt) in units {
        match excerpt.filter(|_| !unit.is_restated()) {
            Some(excerpt) => turns.extend(excerpt.iter().filter_map(|at| unit.part(*at)).map(|part| part.turn)),
            None => turns.extend(unit.sources()),
        }
    }
    turns
}

fn heading(out: &mut String, text: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    // Writing into a string cannot fail.
    let _ = writeln!(out, "{gap}## {text}");
}

fn render_units(mut units: Vec<&UnitBody>, out: &mut EvidenceContext) {
    units.sort_by(|a, b| (a.said_at, a.session(), a.ordinal, a.id).cmp(&(b.said_at, b.session(), b.ordinal, b.id)));
    let mut day: Option<Date> = None;
    for unit in units {
        let said = unit.said_at.local();
        if day != Some(said.date()) {
            heading(&mut out.text, &day_name(said.date()));
            day = Some(said.date());
        }
        let words = one_line(unit.restatement());
        let when =
            unit.time.as_deref().and_then(|t| event_time(*t, unit.said_at)).filter(|w| !words.contains(w.as_str()));
        let note = when.map(|w| format!(" ({w})")).unwrap_or_default();
        let _ = writeln!(out.text, "[{}] {words}{note}", said.strftime("%H:%M"));
        out.turns.push(unit.sources().map(str::to_owned).collect());
    }
}

fn render_excerpts(units: &[UnitQuote<'_>], later: &[(&str, &Statement)], out: &mut EvidenceContext) {
    // A turn that two units quote appears once. One of them may quote only its questions, so the longer quote stays.
    let mut days: BTreeMap<(Date, &str), DayTurns<'_>> = BTreeMap::new();
    for (unit, excerpt) in units {
        let Some(excerpt) = excerpt else { continue };
        for part in excerpt.iter().filter_map(|at| unit.part(*at)) {
            let day = days.entry((part.said_at.local().date(), unit.session())).or_default();
            let start = part.range.map_or(0, |range| range.start);
            let quoted = day.entry((part.ordinal, part.turn)).or_default().entry(start).or_insert(part);
            if quoted.text.len() < part.text.len() {
                *quoted = part;
            }
        }
    }
    let of_day = |((date, session), lines): ((Date, _), DayTurns<'_>)| {
        let quoted =
            |((_, turn), parts): (&(u32, &str), &TurnParts<'_>)| Some(((*turn).to_owned(), quoted_turn(parts)?));
        Some(((first_said(&lines)?, date, session), lines.iter().filter_map(quoted).collect()))
    };
    let mut days: Vec<QuotedDay<'_>> = days.into_iter().filter_map(of_day).collect();
    days.extend(later.iter().map(|(_, of)| {
        let date = of.said_at.local().date();
        ((of.said_at, date, ""), vec![(of.turn.clone(), quote(&of.speaker, &of.text))])
    }));
    days.sort_by_key(|(first, _)| *first);
    for ((said_at, date, _), lines) in days {
        heading(&mut out.text, &format!("{}, {}", day_name(date), said_at.local().strftime("%H:%M")));
        for (turn, quoted) in lines {
            let _ = writeln!(out.text, "{quoted}");
            out.turns.push(vec![turn]);
        }
    }
}

/// When the first of a day's quotes was said, its day and its session; and of each quote the turn and the line.
type QuotedDay<'u> = ((EventTime, Date, &'u str), Vec<(String, String)>);
/// The quoted turns of a day, by ordinal and id.
type DayTurns<'u> = BTreeMap<(u32, &'u str), TurnParts<'u>>;
/// The quoted parts of a turn, by the byte at which they begin.
type TurnParts<'u> = BTreeMap<u32, PartBody<'u>>;

fn first_said(lines: &DayTurns<'_>) -> Option<EventTime> {
    lines.values().flat_map(BTreeMap::values).map(|part| part.said_at).min()
}

/// A quoted turn: the whole of it, or its quoted passages. Adjacent passages become one text.
fn quoted_turn(parts: &TurnParts<'_>) -> Option<String> {
    let first = parts.values().next()?;
    let mut runs: Vec<(bool, String)> = Vec::new();
    let mut end = 0;
    let mut total = 0;
    for part in parts.values() {
        let Some(range) = part.range else { return Some(quote(part.speaker, part.text)) };
        // A passage may begin with words that it repeats from earlier in the turn.
        let repeated = part.text.len().saturating_sub(range.bytes());
        match runs.last_mut().filter(|_| range.start == end) {
            Some((_, run)) => run.push_str(part.text.get(repeated..).unwrap_or_default()),
            None => runs.push((range.start > end, part.text.to_owned())),
        }
        (end, total) = (range.end, range.total);
    }
    Some(quote_passages(first.speaker, runs.iter().map(|(left_out, run)| (*left_out, run.as_str())), end < total))
}

/// A day in words: `8 May 2023`.
#[must_use]
pub fn day_name(day: Date) -> String {
    day.strftime("%-d %B %Y").to_string()
}

/// An event's time in words. `None` if it is the time of saying.
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
    use crate::{
        index::{PartFields, UnitFields},
        recall::tests::body,
    };

    fn whole(units: &[UnitBody]) -> impl Iterator<Item = UnitQuote<'_>> {
        units.iter().map(|u| (u, None))
    }

    #[test]
    fn excerpts_are_grouped_by_session_and_each_turn_stands_once() {
        let part = |turn: &str, ordinal, at: &str, text: &str| PartFields {
            turn: turn.to_owned(),
            ordinal,
            speaker: "Priya".to_owned(),
            kind: None,
            said_at: EventTime::parse(at).unwrap(),
            text: text.to_owned(),
            range: None,
            marks: types::model::TextFeatures::default(),
        };
        let mut first = UnitFields::from(said(1, "", "2024-05-01T18:02:00Z", None));
        first.parts = vec![
            part("a", 0, "2024-05-01T18:00:00Z", "I swam\n## twice"),
            part("b", 1, "2024-05-01T18:01:00Z", "Cold!"),
            part("c", 2, "2024-05-01T18:02:00Z", "Tea now"),
        ];
        first.parts[2].speaker = "## 9 May".to_owned();
        let mut second = first.clone();
        second.session = "later".to_owned();
        second.parts = vec![part("z", 0, "2024-05-01T20:30:00Z", "Good night")];
        let [first, second] = [first, second].map(UnitBody::from);
        let (some, all) = (BTreeSet::from([2, 0, 9]), BTreeSet::from([0]));
        assert_eq!(
            render_context([(&second, Some(&all)), (&first, Some(&some)), (&first, Some(&all))], None).text,
            "## 1 May 2024, 18:00\nPriya: I swam\n    ## twice\n\"## 9 May\": Tea now\n\n## 1 May 2024, 20:30\nPriya: Good night\n"
        );
        let quoted = render_context([(&second, Some(&all)), (&first, Some(&some))], None).turns;
        assert_eq!(quoted, [["a"], ["c"], ["z"]], "in the order of the text");
    }

    #[test]
    fn a_turn_that_one_unit_quotes_in_part_and_another_whole_stands_whole() {
        let quotes = |text: &str| {
            let mut unit = UnitFields::from(said(1, "", "2024-05-01T18:00:00Z", None));
            unit.parts = vec![PartFields {
                turn: "a".to_owned(),
                ordinal: 0,
                speaker: "Priya".to_owned(),
                kind: None,
                said_at: EventTime::parse("2024-05-01T18:00:00Z").unwrap(),
                text: text.to_owned(),
                range: None,
                marks: types::model::TextFeatures::default(),
            }];
            UnitBody::from(unit)
        };
        let (whole, part, all) = (quotes("I swam. And you?"), quotes("And you?"), BTreeSet::from([0]));
        for order in [[&whole, &part], [&part, &whole]] {
            let EvidenceContext { text, turns } = render_context(order.map(|unit| (unit, Some(&all))), None);
            assert_eq!(turns, [["a"]]);
            assert_eq!(text, "## 1 May 2024, 18:00\nPriya: I swam. And you?\n");
        }
    }

    fn said(id: u64, text: &str, at: &str, time: Option<(&str, &str)>) -> UnitBody {
        let mut unit = (*body(id, text, at)).clone();
        unit.time = time
            .map(|(a, b)| Box::new((EventTime::parse(a).unwrap(), EventTime::parse(b).unwrap()).try_into().unwrap()));
        unit
    }

    #[test]
    fn restatements_are_grouped_by_day_with_the_times_of_their_events() {
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
            render_context(whole(&units), None).text,
            "## 1 May 2024\n[18:00] Priya swam yesterday (30 April 2024)\n[18:00] Omar ## laughed\n\n\
             ## 2 May 2024\n[09:05] Omar said he will sail in June (June 2024)\n[09:06] Priya was born in 1999\n"
        );
    }

    #[test]
    fn an_abstention_stands_in_the_first_line() {
        assert_eq!(
            render_context([], Some("no evidence to start from")).text,
            "Nothing in memory supports this question (no evidence to start from).\n"
        );
        let near = said(1, "Priya swam", "2024-05-01T18:00:00Z", None);
        let text = render_context([(&near, None)], Some("no new support")).text;
        assert!(text.starts_with("Nothing in memory supports this question (no new support). What follows"), "{text}");
        assert!(text.ends_with("\n\n## 1 May 2024\n[18:00] Priya swam\n"), "{text}");
    }
}
