//! Tables of expressions and their meanings, including traps.

use super::{time_reader::FIRST_WORDS, *};
use types::model::{EventTime, Interval};

/// Monday.
const MONDAY: &str = "2023-05-08T13:56:00Z";

fn found(text: &str, anchor: Option<&str>) -> Vec<String> {
    let anchor = anchor.map(|a| EventTime::parse(a).unwrap());
    find_times(text, anchor)
        .iter()
        .map(|m| format!("{} = {}", &text[m.range.clone()], render_interval(&m.interval)))
        .collect()
}

fn check_at(anchor: &str, rows: &[(&str, &[&str])]) {
    for (text, expected) in rows {
        assert_eq!(found(text, Some(anchor)), *expected, "{text:?} at {anchor}");
    }
}

#[test]
fn absolute_dates_need_no_anchor() {
    let rows: &[(&str, &[&str])] = &[
        ("We met on 8 May 2023.", &["8 May 2023 = 8 May 2023"]),
        ("We met on 8 May, 2023.", &["8 May, 2023 = 8 May 2023"]),
        ("It was May 8th, 2023!", &["May 8th, 2023 = 8 May 2023"]),
        ("It was the 8th of May 2023", &["8th of May 2023 = 8 May 2023"]),
        ("due 2023-05-08 or so", &["2023-05-08 = 8 May 2023"]),
        ("due 2023/05/08", &["2023/05/08 = 8 May 2023"]),
        ("at 2023-05-08T13:56 sharp", &["2023-05-08T13:56 = 8 May 2023 13:56"]),
        ("1:56 pm on 8 May, 2023", &["1:56 pm on 8 May, 2023 = 8 May 2023 13:56"]),
        ("on 25/12/2022", &["25/12/2022 = 25 December 2022"]),
        ("on 12/25/2022", &["12/25/2022 = 25 December 2022"]),
        ("on 25.12.2022", &["25.12.2022 = 25 December 2022"]),
        ("back in June 2022", &["June 2022 = June 2022"]),
        ("June, 2022 was hot", &["June, 2022 = June 2022"]),
        ("she moved in 2019.", &["2019 = 2019"]),
        ("from 2019 to 2021", &["2019 to 2021 = 2019 to 2021"]),
        ("the summer of 2021", &["2021 = 2021"]),
        ("8 to 10 May 2023", &["8 to 10 May 2023 = 8 to 10 May 2023"]),
        ("May 8-10, 2023", &["May 8-10, 2023 = 8 to 10 May 2023"]),
        ("Friday, 5 May 2023 it rained", &["Friday, 5 May 2023 = 5 May 2023"]),
        ("the week before 9 June 2023", &["the week before 9 June 2023 = 29 May to 4 June 2023"]),
        ("The Sunday before 25 May 2023", &["The Sunday before 25 May 2023 = 21 May 2023"]),
        ("the day after 31 December 2022", &["the day after 31 December 2022 = 1 January 2023"]),
        ("two days before 1 March 2024", &["two days before 1 March 2024 = 28 February 2024"]),
        ("the weekend before 20 October 2023", &["the weekend before 20 October 2023 = 14 to 15 October 2023"]),
        ("the first weekend of August 2023", &["first weekend of August 2023 = 5 to 6 August 2023"]),
        ("the last Friday of May 2023", &["last Friday of May 2023 = 26 May 2023"]),
        ("29 February 2024 and 29 February 2023", &["29 February 2024 = 29 February 2024"]),
        ("between 1 May 2023 and 3 June 2023", &["1 May 2023 = 1 May 2023", "3 June 2023 = 3 June 2023"]),
    ];
    for (text, expected) in rows {
        assert_eq!(found(text, None), *expected, "{text:?}");
        assert!(find_times(text, None).iter().all(|m| m.complete));
    }
}

#[test]
fn relative_expressions_follow_the_anchor() {
    check_at(
        MONDAY,
        &[
            ("I ran yesterday.", &["yesterday = 7 May 2023"]),
            ("What a day today", &["today = 8 May 2023"]),
            ("tonight we eat", &["tonight = evening of 8 May 2023"]),
            ("this morning I swam", &["this morning = morning of 8 May 2023"]),
            ("Last night was fun", &["Last night = evening of 7 May 2023"]),
            ("see you tomorrow", &["tomorrow = 9 May 2023"]),
            ("tomorrow at 2pm", &["tomorrow at 2pm = 9 May 2023 14:00"]),
            ("tomorrow at 2:30 p.m.", &["tomorrow at 2:30 p.m. = 9 May 2023 14:30"]),
            ("yesterday morning at 9", &["yesterday morning at 9 = 7 May 2023 09:00"]),
            ("Let's meet at 5 pm tomorrow", &["5 pm tomorrow = 9 May 2023 17:00"]),
            ("the day before yesterday", &["the day before yesterday = 6 May 2023"]),
            ("the day after tomorrow", &["the day after tomorrow = 10 May 2023"]),
            ("last week was hard", &["last week = 1 to 7 May 2023"]),
            ("this week", &["this week = 8 to 14 May 2023"]),
            ("next week", &["next week = 15 to 21 May 2023"]),
            ("last weekend we hiked", &["last weekend = 6 to 7 May 2023"]),
            ("we went camping this weekend", &["this weekend = 6 to 7 May 2023"]),
            ("any plans for this weekend?", &["this weekend = 13 to 14 May 2023"]),
            ("next weekend", &["next weekend = 20 to 21 May 2023"]),
            ("this past weekend", &["this past weekend = 6 to 7 May 2023"]),
            ("this coming weekend", &["this coming weekend = 13 to 14 May 2023"]),
            ("we hiked over the weekend", &["weekend = 6 to 7 May 2023"]),
            ("last month", &["last month = April 2023"]),
            ("next month", &["next month = June 2023"]),
            ("last year's trip", &["last year = 2022"]),
            ("next year", &["next year = 2024"]),
            ("last Friday", &["last Friday = 5 May 2023"]),
            ("last monday", &["last monday = 1 May 2023"]),
            ("next Friday", &["next Friday = 12 May 2023"]),
            ("this Friday", &["this Friday = 12 May 2023"]),
            ("I saw her on Friday", &["Friday = 5 May 2023"]),
            ("I'll see her on Friday", &["Friday = 12 May 2023"]),
            ("we danced Saturday night", &["Saturday night = evening of 6 May 2023"]),
            ("Tuesday of last week", &["Tuesday of last week = 2 May 2023"]),
            ("Friday next week", &["Friday next week = 19 May 2023"]),
            ("two weeks ago", &["two weeks ago = 24 to 30 April 2023"]),
            ("3 days ago", &["3 days ago = 5 May 2023"]),
            ("a week ago", &["a week ago = 1 to 7 May 2023"]),
            ("10 years ago", &["10 years ago = 2013"]),
            ("three months ago", &["three months ago = February 2023"]),
            ("about two weeks ago", &["two weeks ago = 24 to 30 April 2023"]),
            ("two hours ago", &["two hours ago = 8 May 2023 11:56"]),
            ("My exam is in two weeks", &["in two weeks = 22 to 28 May 2023"]),
            ("I'll be there in 3 days", &["in 3 days = 11 May 2023"]),
            ("a month from now", &["a month from now = June 2023"]),
            ("the week before last", &["the week before last = 24 to 30 April 2023"]),
            ("the first Sunday of April", &["first Sunday of April = 2 April 2023"]),
        ],
    );
}

#[test]
fn a_missing_year_is_the_nearest_that_fits() {
    check_at(
        MONDAY,
        &[
            ("I moved in June", &["June = June 2022"]),
            ("The baby is due in June", &["June = June 2023"]),
            ("In August, if the hull is kind to me", &["August = August 2023"]),
            ("It is in December, that fair", &["December = December 2022"]),
            ("I moved in August", &["August = August 2022"]),
            ("in May it rained", &["May = May 2023"]),
            ("I'm going to Peru in June", &["June = June 2023"]),
            ("We will go in March", &["March = March 2024"]),
            ("last June", &["last June = June 2022"]),
            ("last April", &["last April = April 2023"]),
            ("next May", &["next May = May 2024"]),
            ("It happened on 5 May", &["5 May = 5 May 2023"]),
            ("It happened on May 9th.", &["May 9th = 9 May 2022"]),
            ("The party will be on May 20th", &["May 20th = 20 May 2023"]),
            ("in mid-April", &["April = April 2023"]),
            ("Saturday the 17th of August. The crane is booked.", &["Saturday the 17th of August = 17 August 2024"]),
            ("Thursday, 18 May, in the hall", &["Thursday, 18 May = 18 May 2023"]),
            ("5 June, at the pier", &["5 June = 5 June 2023"]),
            ("12 March, at the pier", &["12 March = 12 March 2023"]),
            ("on 3/14 we met", &["3/14 = 14 March 2023"]),
            ("She was born on 29 February", &["29 February = 29 February 2020"]),
            ("I got it on the 5th.", &["the 5th = 5 May 2023"]),
        ],
    );
    assert_eq!(found("I moved in June, on 5 May, yesterday", None), Vec::<String>::new());
}

#[test]
fn years_turn_and_offsets_hold() {
    check_at(
        "2023-01-01T00:30:00+02:00",
        &[
            ("yesterday", &["yesterday = 31 December 2022"]),
            ("last week", &["last week = 19 to 25 December 2022"]),
            ("this week", &["this week = 26 December 2022 to 1 January 2023"]),
            ("last month", &["last month = December 2022"]),
            ("last weekend", &["last weekend = 24 to 25 December 2022"]),
            ("next month", &["next month = February 2023"]),
        ],
    );
    check_at(
        "2023-12-31T23:59:59-08:00",
        &[
            ("tomorrow", &["tomorrow = 1 January 2024"]),
            ("this weekend", &["this weekend = 30 to 31 December 2023"]),
            ("a year ago", &["a year ago = 2022"]),
        ],
    );
    check_at("2024-03-31T10:00:00Z", &[("a month ago", &["a month ago = February 2024"])]);
    let anchor = EventTime::parse("2023-05-08T01:00:00+05:30").unwrap();
    let mentions = find_times("yesterday", Some(anchor));
    assert_eq!(mentions[0].interval.start_ms, EventTime::parse("2023-05-06T18:30:00Z").unwrap().unix_ms);
    assert_eq!(mentions[0].interval.end_ms, EventTime::parse("2023-05-07T18:29:59.999Z").unwrap().unix_ms);
    assert_eq!(mentions[0].interval.offset_seconds, 19_800);
    assert!(!mentions[0].complete);
}

#[test]
fn vague_words_and_look_alikes_are_no_times() {
    let rows = [
        "recently",
        "the other day",
        "soon",
        "sometimes",
        "a few years ago",
        "a few days ago",
        "a couple of weeks ago",
        "several months ago",
        "years ago",
        "long ago",
        "one day",
        "I may go",
        "This may be it",
        "You may 2 of them",
        "we march on",
        "March on, soldiers",
        "the Sun is up",
        "I sat down",
        "the second one",
        "leaves fall",
        "in the fall",
        "last summer",
        "Let it be in march order",
        "the last week of school",
        "over the last year",
        "for the next week",
        "1.5 years ago",
        "2-3 weeks ago",
        "two or three weeks ago",
        "over two years ago",
        "half a year ago",
        "I finished it in two weeks",
        "on Friday",
        "on Fridays I run",
        "every Friday night",
        "on 3/4",
        "3/4 of it",
        "in 2000 words",
        "on the 5th floor",
        "the 1990s",
        "room 2019",
        "a minute ago",
        "a second ago",
        "April told me",
        "with June",
        "May said hi",
        "in 1776",
        "32 May 2023",
        "2023-13-40",
        "last time",
        "next door",
        "this one",
        "last of us",
        "my age is 25",
        "999 years ago",
        "it feels like just yesterday",
        "@today",
    ];
    for text in rows {
        assert_eq!(found(text, Some(MONDAY)), Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn the_first_words_are_sorted_for_searching() {
    assert!(FIRST_WORDS.is_sorted(), "{:?}", FIRST_WORDS.windows(2).find(|w| w[0] >= w[1]));
}

#[test]
fn mentions_are_ordered_and_apart() {
    let text = "Yesterday I ran, last week I swam; on 8 May 2023 at 2pm I rest 🙂 and the day before yesterday too.";
    let mentions = find_times(text, Some(EventTime::parse(MONDAY).unwrap()));
    assert_eq!(mentions.len(), 4);
    assert!(mentions.windows(2).all(|w| w[0].range.end <= w[1].range.start));
}

proptest::proptest! {
    #[test]
    fn nothing_panics(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "in", "on", "the", "last", "next", "this", "May", "8", "31", "2023", "9999", "0", "week", "before",
                "after", "ago", "999", "years", "two", ",", ":", "-", "/", "am", "2pm", "Friday", "weekend", "of",
                "first", "é", "🙂", "’s", "at", "5th", "29", "February", "1900", "2199", "yesterday", ".",
            ]),
            0..14,
        ),
        noise in ".{0,24}",
        unix_ms in -2_208_988_800_000i64..7_258_118_399_000,
        offset_minutes in -840i32..840,
    ) {
        let text = format!("{} {noise}", words.join(" "));
        let glued = words.concat();
        let anchor = EventTime::new(unix_ms, offset_minutes * 60).ok();
        for text in [text, glued] {
            for m in find_times(&text, anchor).into_iter().chain(find_times(&text, None)) {
                proptest::prop_assert!(text.get(m.range.clone()).is_some_and(|t| !t.is_empty()));
                proptest::prop_assert!(m.interval.start_ms <= m.interval.end_ms);
                let json = serde_json::to_string(&m.interval).unwrap();
                proptest::prop_assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), m.interval);
            }
        }
    }
}

#[test]
fn what_was_arranged_is_still_to_come() {
    check_at(
        "2026-04-10T10:00:00Z",
        &[
            ("I've booked the hut for them, 20 to 22 November", &["20 to 22 November = 20 to 22 November 2026"]),
            ("The hall is reserved for 3 March.", &["3 March = 3 March 2027"]),
            ("We bought tickets for 5 June", &["5 June = 5 June 2026"]),
            ("I booked it on 20 November.", &["20 November = 20 November 2025"]),
            ("We were there on 20 November.", &["20 November = 20 November 2025"]),
        ],
    );
}
