//! Wordings of questions and the intervals that they name. The intervals were worked out by hand.

use jiff::civil::DateTime;

use super::*;
use crate::language::times::render_interval;
use types::model::{EventTime, Interval, Language};

/// A Wednesday morning.
const ASKED: &str = "2026-10-14T09:00:00+02:00";

/// The periods of a text in words; `?` marks one that is not certain.
fn read(text: &str, language: Language, asked: Option<&str>) -> String {
    let asked = asked.map(|asked| EventTime::parse(asked).unwrap());
    let periods = find_periods(text, language, asked);
    periods.iter().map(in_words).collect::<Vec<_>>().join("; ")
}

fn in_words(period: &NamedPeriod) -> String {
    let unix_ms = |at: DateTime| at.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_millisecond();
    let words = |first: DateTime, last: DateTime| {
        render_interval(&Interval { start_ms: unix_ms(first), end_ms: unix_ms(last), offset_seconds: 0 })
    };
    let day = |at: DateTime| {
        if at.time() == jiff::civil::Time::midnight() || at.hour() == 23 {
            words(at.date().at(0, 0, 0, 0), at.date().at(23, 59, 59, 999_000_000))
        } else {
            words(at, at)
        }
    };
    let text = match (period.first, period.last) {
        (Some(first), Some(last)) => words(first, last),
        (Some(first), None) => format!("{} and later", day(first)),
        (None, Some(last)) => format!("{} and earlier", day(last)),
        (None, None) => "always".to_owned(),
    };
    if period.certain { text } else { format!("{text}?") }
}

fn check(language: Language, question: &str, rows: &[(&str, &str)], least: usize) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(words, expected)| {
            let found = read(&question.replace("{}", words), language, Some(ASKED));
            (found != *expected).then(|| format!("{words}: {found}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() >= least);
}

#[test]
fn english_wordings_name_their_interval() {
    let rows = [
        ("yesterday", "13 October 2026"),
        ("today", "14 October 2026"),
        ("the day before yesterday", "12 October 2026"),
        ("last night", "evening of 13 October 2026"),
        ("this morning", "morning of 14 October 2026"),
        ("yesterday evening", "evening of 13 October 2026"),
        ("last week", "5 to 11 October 2026"),
        ("this week", "12 to 18 October 2026"),
        ("two weeks ago", "28 September to 4 October 2026"),
        ("a fortnight ago", "28 September to 4 October 2026"),
        ("the week before last", "28 September to 4 October 2026"),
        ("three days ago", "11 October 2026"),
        ("a few weeks ago", "7 September to 4 October 2026?"),
        ("last month", "September 2026"),
        ("this month", "October 2026"),
        ("a month ago", "September 2026"),
        ("two months ago", "August 2026"),
        ("last year", "2025"),
        ("in 2025", "2025"),
        ("in the past 7 days", "7 to 14 October 2026"),
        ("in the last seven days", "7 to 14 October 2026"),
        ("over the last 10 days", "4 to 14 October 2026"),
        ("in the past two weeks", "30 September to 14 October 2026"),
        ("during the last few days", "9 to 14 October 2026?"),
        ("in the last 24 hours", "13 October 2026 09:00 to 14 October 2026 23:59"),
        ("in the past month", "14 September to 14 October 2026"),
        ("over the last three months", "14 July to 14 October 2026"),
        ("in the past year", "14 October 2025 to 14 October 2026"),
        ("since Monday", "12 to 14 October 2026?"),
        ("since yesterday", "13 to 14 October 2026"),
        ("since 5 October 2026", "5 to 14 October 2026"),
        ("since June", "1 June to 14 October 2026?"),
        ("after July 25, 2026", "26 July 2026 and later"),
        ("before 5 October 2025", "4 October 2025 and earlier"),
        ("before May 2026", "30 April 2026 and earlier"),
        ("until the end of June 2026", "30 June 2026 and earlier?"),
        ("between June and August 2026", "June to August 2026"),
        ("from June to August", "June to August 2026?"),
        ("between the 5th and the 9th of October", "5 to 9 October 2026?"),
        ("from July 25 to 26", "25 to 26 July 2026?"),
        ("on the 25th and 26th of July", "25 to 26 July 2026?"),
        ("on 25/26 July 2026", "25 to 26 July 2026"),
        ("from 25 July to 3 August 2026", "25 July to 3 August 2026"),
        ("in July", "July 2026?"),
        ("in July and August 2026", "July to August 2026"),
        ("in July last year", "July 2025"),
        ("in 2026-07", "July 2026"),
        ("on 2026-07-25", "25 July 2026"),
        ("in 07/2026", "July 2026"),
        ("in Q3", "July to September 2026?"),
        ("in the third quarter of 2025", "July to September 2025"),
        ("last quarter", "July to September 2026"),
        ("in the first half of 2026", "January to June 2026"),
        ("in week 30", "20 to 26 July 2026?"),
        ("in 2026-W30", "20 to 26 July 2026"),
        ("in the week of 5 October 2026", "5 to 11 October 2026"),
        ("in the second week of September 2026", "8 to 14 September 2026"),
        ("in the last week of June 2026", "24 to 30 June 2026"),
        ("in the summer of 2026", "June to August 2026?"),
        ("last winter", "December 2025 to February 2026?"),
        ("in early June 2026", "1 to 10 June 2026?"),
        ("on Monday", "12 October 2026?"),
        ("on Monday evening", "evening of 12 October 2026?"),
        ("last Friday", "9 October 2026"),
        ("last weekend", "10 to 11 October 2026"),
        ("over the weekend", "10 to 11 October 2026?"),
        ("on the evening of 5 October 2026", "evening of 5 October 2026"),
        ("on the 5th", "5 October 2026?"),
        ("at Christmas", "24 to 26 December 2025?"),
        ("on New Year's Eve 2025", "31 December 2025"),
        ("at Easter 2026", "3 to 6 April 2026"),
        ("so far this year", "1 January to 14 October 2026"),
        ("earlier this week", "12 to 14 October 2026"),
    ];
    check(Language::En, "What happened {}?", &rows, 60);
}

#[test]
fn what_is_to_come_lies_ahead() {
    let rows = [
        ("next week", "19 to 25 October 2026"),
        ("tomorrow", "15 October 2026"),
        ("on Friday", "16 October 2026?"),
        ("in November", "November 2026?"),
        ("in March", "March 2027?"),
        ("at Christmas", "24 to 26 December 2026?"),
        ("in the next 10 days", "14 to 24 October 2026"),
        ("from 20 to 22 November", "20 to 22 November 2026?"),
        ("next quarter", "January to March 2027"),
        ("next summer", "June to August 2027?"),
    ];
    check(Language::En, "What will we do {}?", &rows, 10);
}

#[test]
fn without_a_clock_only_what_is_complete_is_read() {
    let check = |words: &str, expected: &str| {
        assert_eq!(read(&format!("What happened {words}?"), Language::En, None), expected, "{words}");
    };
    check("last week", "");
    check("in July", "");
    check("in July 2023", "July 2023");
    check("on 7 May 2023", "7 May 2023");
    check("between May and June 2023", "May to June 2023");
    check("in the summer of 2022", "June to August 2022?");
}

#[test]
fn other_words_are_no_time() {
    for text in [
        "Who is April?",
        "What did May say to June?",
        "What is in section 25?",
        "Where did I put the second key?",
        "Where is the Christmas tree?",
        "What does the spring in the clock weigh?",
        "Which fall hurt Ann?",
        "What did we do before the party?",
        "May I march on?",
        "Which H2 heading is too long?",
        "What is the last thing that Ann said?",
        "How many people came to the match?",
        "What is the next step by the way?",
        "Since when has Ann rowed?",
        "Is version 1.2.3 out?",
        "What are the first three rules of the house?",
    ] {
        assert_eq!(read(text, Language::En, Some(ASKED)), "", "{text}");
    }
}

#[test]
fn german_wordings_name_their_interval() {
    let rows = [
        ("gestern Abend", "evening of 13 October 2026"),
        ("letzte Woche", "5 to 11 October 2026"),
        ("im letzten Monat", "September 2026"),
        ("in den letzten 7 Tagen", "7 to 14 October 2026"),
        ("in den letzten zwei Wochen", "30 September to 14 October 2026"),
        ("vor zwei Wochen", "28 September to 4 October 2026"),
        ("seit Montag", "12 to 14 October 2026?"),
        ("seit dem 5. Oktober 2026", "5 to 14 October 2026"),
        ("vor dem 5. Oktober 2025", "4 October 2025 and earlier"),
        ("nach dem 25. Juli 2026", "26 July 2026 and later"),
        ("zwischen dem 5. und dem 9. Oktober 2026", "5 to 9 October 2026"),
        ("vom 20. bis 22. September", "20 to 22 September 2026?"),
        ("am 25. und 26. Juli", "25 to 26 July 2026?"),
        ("im dritten Quartal 2026", "July to September 2026"),
        ("in KW 30", "20 to 26 July 2026?"),
        ("im Sommer 2026", "June to August 2026?"),
        ("letztes Wochenende", "10 to 11 October 2026"),
        ("an Weihnachten 2025", "24 to 26 December 2025"),
        ("im Juli", "July 2026?"),
        ("im Jahr 2025", "2025"),
    ];
    check(Language::De, "Was ist {} passiert?", &rows, 10);
}

#[test]
fn french_wordings_name_their_interval() {
    let rows = [
        ("hier soir", "evening of 13 October 2026"),
        ("la semaine dernière", "5 to 11 October 2026"),
        ("le mois dernier", "September 2026"),
        ("l'année dernière", "2025"),
        ("au cours des 7 derniers jours", "7 to 14 October 2026"),
        ("les deux dernières semaines", "30 September to 14 October 2026"),
        ("depuis lundi", "12 to 14 October 2026?"),
        ("avant le 5 octobre 2025", "4 October 2025 and earlier"),
        ("après le 25 juillet 2026", "26 July 2026 and later"),
        ("entre le 5 et le 9 octobre 2026", "5 to 9 October 2026"),
        ("du 20 au 22 septembre", "20 to 22 September 2026?"),
        ("les 25 et 26 juillet", "25 to 26 July 2026?"),
        ("au troisième trimestre 2026", "July to September 2026"),
        ("l'été dernier", "June to August 2026?"),
        ("le week-end dernier", "10 to 11 October 2026"),
        ("à Noël 2025", "24 to 26 December 2025"),
        ("en 2025", "2025"),
    ];
    check(Language::Fr, "Que s'est-il passé {} ?", &rows, 10);
}

#[test]
fn spanish_wordings_name_their_interval() {
    let rows = [
        ("ayer por la tarde", "afternoon of 13 October 2026"),
        ("anoche", "evening of 13 October 2026"),
        ("la semana pasada", "5 to 11 October 2026"),
        ("el mes pasado", "September 2026"),
        ("en los últimos 7 días", "7 to 14 October 2026"),
        ("en las últimas dos semanas", "30 September to 14 October 2026"),
        ("desde el lunes", "12 to 14 October 2026?"),
        ("antes del 5 de octubre de 2025", "4 October 2025 and earlier"),
        ("después del 25 de julio de 2026", "26 July 2026 and later"),
        ("entre el 5 y el 9 de octubre de 2026", "5 to 9 October 2026"),
        ("del 20 al 22 de septiembre", "20 to 22 September 2026?"),
        ("el 25 y 26 de julio", "25 to 26 July 2026?"),
        ("en el tercer trimestre de 2026", "July to September 2026"),
        ("el verano pasado", "June to August 2026?"),
        ("el fin de semana pasado", "10 to 11 October 2026"),
        ("en 2025", "2025"),
    ];
    check(Language::Es, "¿Qué pasó {}?", &rows, 10);
}

#[test]
fn chinese_wordings_name_their_interval() {
    let rows = [
        ("昨天晚上", "evening of 13 October 2026"),
        ("上周", "5 to 11 October 2026"),
        ("上个月", "September 2026"),
        ("去年", "2025"),
        ("过去7天", "7 to 14 October 2026"),
        ("最近两周", "30 September to 14 October 2026"),
        ("周一以来", "12 to 14 October 2026?"),
        ("2025年10月5日之前", "4 October 2025 and earlier"),
        ("2026年7月25日之后", "26 July 2026 and later"),
        ("9月20日到22日", "20 to 22 September 2026?"),
        ("2026年第三季度", "July to September 2026"),
        ("去年夏天", "June to August 2025?"),
        ("上周末", "10 to 11 October 2026"),
        ("2026年7月", "July 2026"),
        ("2025年", "2025"),
        ("去年圣诞节", "24 to 26 December 2025"),
    ];
    check(Language::Zh, "{}发生了什么？", &rows, 10);
}
