//! Windows written by hand, and the units that the rules make of them.

use std::sync::Arc;

use super::*;
use crate::{
    extract::{TurnLanguages, open_turn::plain_units},
    language::times::{day_of, render_interval},
};
use types::model::{Attachment, Bank, EventTime, Interval, SessionId, SpeakerKind, Turn, WindowId};

fn turn(ordinal: u32, speaker: &str, text: &str) -> WindowTurn {
    let turn = Turn {
        bank: Bank::parse("test").unwrap(),
        turn: format!("t{ordinal}"),
        version: 0,
        speaker: speaker.to_owned(),
        kind: None,
        text: text.to_owned(),
        time: EventTime::parse(&format!("2023-05-08T13:{:02}:00Z", ordinal % 60)).unwrap(),
        session: None,
        thread: None,
        reply_to: None,
        attachments: Vec::new(),
        metadata: None,
        recall: true,
    };
    WindowTurn { turn: Arc::new(turn), ordinal, context: false, deleted: false, source_offset: 0, stored: None }
}

fn with(mut window_turn: WindowTurn, change: impl FnOnce(&mut Turn)) -> WindowTurn {
    change(Arc::make_mut(&mut window_turn.turn));
    window_turn
}

fn window(turns: Vec<WindowTurn>) -> Window {
    let id = WindowId { session: SessionId("caller:a".to_owned()), start: 0 };
    Window { bank: Bank::parse("test").unwrap(), id, turns }
}

fn extract(turns: Vec<WindowTurn>) -> Vec<DraftUnit> {
    rules().extract(&window(turns)).unwrap()
}

fn rules() -> RulesExtractor {
    RulesExtractor::new(&ExtractSettings {
        extractor: "rules".to_owned(),
        unit_turns: 1,
        least_content_words: 1,
        language: Language::En,
    })
}

/// Checks the restatement, sources and participants of each unit.
fn check(turns: Vec<WindowTurn>, expected: &[(&str, &[&str], &[&str])]) {
    let units = extract(turns);
    let found: Vec<(&str, Vec<&str>, Vec<&str>)> = units
        .iter()
        .map(|u| {
            (
                u.restatement.as_str(),
                u.sources.iter().map(String::as_str).collect(),
                u.cues.participants.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    let expected: Vec<(&str, Vec<&str>, Vec<&str>)> =
        expected.iter().map(|(r, s, p)| (*r, s.to_vec(), p.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_answer_is_joined_with_its_question() {
    check(
        vec![turn(0, "Ann", "What do you paint, Bo?"), turn(1, "Bo", "Mostly sunsets.")],
        &[("Ann asked Bo: \"What do you paint, Bo?\" Bo answered: \"Mostly sunsets.\"", &["t0", "t1"], &["ann", "bo"])],
    );
}

#[test]
fn an_answer_without_content_still_answers() {
    check(
        vec![turn(0, "Ann", "Do you paint?"), turn(1, "Bo", "Yes!")],
        &[("Ann asked Bo: \"Do you paint?\" Bo answered: \"Yes!\"", &["t0", "t1"], &["ann", "bo"])],
    );
}

#[test]
fn a_question_with_a_statement_keeps_its_own_unit() {
    let units = extract(vec![turn(0, "Ann", "I adopted a cat. Do you have pets?"), turn(1, "Bo", "Two dogs.")]);
    assert_eq!(units.len(), 2);
    assert_eq!(units[0].sources, ["t0"]);
    assert_eq!(units[1].sources, ["t0", "t1"]);
    assert_eq!(units[1].parts[0].text, "Do you have pets?");
    assert_eq!(units[1].restatement, "Ann asked Bo: \"Do you have pets?\" Bo answered: \"Two dogs.\"");
    assert_eq!((units[1].ordinal, units[1].said_at), (0, units[1].parts[1].said_at));
}

#[test]
fn an_unanswered_question_is_a_unit() {
    check(vec![turn(0, "Ann", "Who baked this cake?")], &[("Ann asked: \"Who baked this cake?\"", &["t0"], &["ann"])]);
}

#[test]
fn a_chain_of_questions_loses_nothing() {
    let turns = vec![turn(0, "Ann", "Do you swim?"), turn(1, "Bo", "Every day. And you?"), turn(2, "Ann", "I run.")];
    let units = extract(turns);
    let sources: Vec<&[String]> = units.iter().map(|u| u.sources.as_slice()).collect();
    assert_eq!(sources, [["t0", "t1"], ["t1", "t2"]]);
}

#[test]
fn a_context_question_is_only_a_source() {
    let mut question = turn(0, "Ann", "Where do you live?");
    question.context = true;
    let units = extract(vec![question, turn(1, "Bo", "In Oslo these days.")]);
    assert_eq!(units.len(), 1);
    assert_eq!(units[0].sources, ["t0", "t1"]);
    assert_eq!(units[0].cues.locations, ["oslo"]);
    assert_eq!(units[0].cues.time, None, "a vague time stays empty");
}

#[test]
fn a_deleted_turn_makes_no_unit() {
    let mut deleted = turn(1, "Cy", "");
    deleted.deleted = true;
    let units = extract(vec![turn(0, "Ann", "What do you paint?"), deleted, turn(2, "Bo", "Mostly sunsets.")]);
    assert_eq!(units.len(), 1);
    assert_eq!(units[0].sources, ["t0", "t2"]);
}

#[test]
fn a_reply_joins_its_target_across_other_turns() {
    let reply = with(turn(2, "Bo", "Mostly sunsets."), |t| t.reply_to = Some("t0".to_owned()));
    let units = extract(vec![turn(0, "Ann", "What paintings?"), turn(1, "Cy", "Which bus?"), reply]);
    assert_eq!(units.iter().map(|u| u.sources.join(" ")).collect::<Vec<_>>(), ["t1", "t0 t2"]);
    let elsewhere = with(turn(1, "Bo", "Mostly sunsets."), |t| t.reply_to = Some("far".to_owned()));
    assert_eq!(extract(vec![turn(0, "Ann", "Which bus?"), elsewhere]).len(), 2);
}

#[test]
fn you_names_a_person_only_between_two_people() {
    let pair = vec![turn(0, "Ann", "Your garden looks green."), turn(1, "Bo", "Roses grow slowly.")];
    check(
        pair,
        &[
            ("Ann said to Bo: \"Your garden looks green.\"", &["t0"], &["ann", "bo"]),
            ("Bo said: \"Roses grow slowly.\"", &["t1"], &["bo"]),
        ],
    );
    let three = vec![
        turn(0, "Ann", "Your garden looks green."),
        turn(1, "Bo", "Roses grow slowly."),
        turn(2, "Cy", "Bo, tulips grow fast."),
    ];
    check(
        three,
        &[
            ("Ann said: \"Your garden looks green.\"", &["t0"], &["ann"]),
            ("Bo said: \"Roses grow slowly.\"", &["t1"], &["bo"]),
            ("Cy said to Bo: \"Bo, tulips grow fast.\"", &["t2"], &["bo", "cy"]),
        ],
    );
}

#[test]
fn nicknames_and_companions_are_participants() {
    let turns = vec![
        turn(0, "Melanie Reed", "Pottery class started."),
        turn(1, "Caroline", "Hey Mel! My sister Ruth loves pottery."),
    ];
    let units = extract(turns);
    assert_eq!(units[1].cues.participants, ["caroline", "melanie reed", "ruth"]);
    assert!(units[1].restatement.starts_with("Caroline said to Melanie Reed: "));
}

#[test]
fn captions_count_as_content() {
    let photo = |text: &str, caption: &str| {
        with(turn(0, "Ann", text), |t| {
            t.attachments =
                vec![Attachment { kind: Some("image".to_owned()), caption: Some(caption.to_owned()), url: None }];
        })
    };
    let units = extract(vec![photo("Look!", "a red kite")]);
    assert_eq!(units[0].restatement, "Ann said: \"Look!\" and shared a photo: a red kite");
    assert_eq!(units[0].parts[0].text, "Look! [photo: a red kite]");
    let units = extract(vec![photo("", "a red kite in Brazil")]);
    assert_eq!(units[0].restatement, "Ann shared a photo: a red kite in Brazil");
    assert_eq!(units[0].cues.locations, ["brazil"]);
    assert!(extract(vec![photo("Wow!", "  ")]).is_empty());
}

#[test]
fn times_are_resolved_in_words_and_cues() {
    let time = |text: &str| {
        let mut units = extract(vec![turn(0, "Ann", text)]);
        assert_eq!(units.len(), 1, "{text}");
        let unit = units.remove(0);
        (unit.restatement, unit.cues.time)
    };
    let (words, at) = time("I ran yesterday's race. On 1 May 2023 I rested.");
    assert_eq!(words, "Ann said: \"I ran yesterday's [7 May 2023] race. On 1 May 2023 I rested.\"");
    assert_eq!(at.map(|i| render_interval(&i)).as_deref(), Some("7 May 2023"));
    let now = EventTime::parse("2023-05-08T13:00:00Z").unwrap();
    assert_eq!(time("Pottery calms me.").1, Some(Interval::at(now)));
    assert_eq!(time("Who baked this cake?").1, Some(Interval::at(now)));
    assert_eq!(time("I baked today.").1, Some(day_of(now)));
    assert_eq!(time("I moved recently.").1, None);
    assert_eq!(time("I started pottery a few years ago.").1, None);
    assert_eq!(time("My mom gave me this necklace.").1, None);
}

#[test]
fn an_undated_answer_has_the_time_of_its_question() {
    let units = extract(vec![turn(0, "Ann", "What was cooked last night?"), turn(1, "Bo", "We made soup.")]);
    assert_eq!(units[0].cues.time.map(|i| render_interval(&i)).as_deref(), Some("evening of 7 May 2023"));
    assert!(units[0].restatement.contains("last night [evening of 7 May 2023]?"));
}

#[test]
fn fillers_make_no_unit_and_equal_units_are_one() {
    assert!(extract(vec![turn(0, "Ann", "Wow, thanks!"), turn(1, "Bo", "Yeah, sure :)")]).is_empty());
    let mut again = turn(1, "Ann", "Kites fly.");
    again.turn = turn(0, "Ann", "Kites fly.").turn;
    let units = rules().extract(&window(vec![turn(0, "Ann", "Kites fly."), again])).unwrap();
    assert_eq!(units.iter().enumerate().filter(|(i, u)| units[..*i].contains(u)).count(), 0);
}

#[test]
fn turns_out_of_order_are_refused() {
    let error = rules().extract(&window(vec![turn(3, "Ann", "Kites."), turn(3, "Bo", "Cats.")])).unwrap_err();
    assert!(error.to_string().contains("\"t3\" at ordinal 3"), "{error}");
}

#[test]
fn a_long_turn_stands_alone_and_a_person_may_say_more_in_one_piece_than_an_assistant() {
    let units_of = |kind: Option<SpeakerKind>, text: &str, caption: Option<&str>| {
        let long = with(turn(1, "Ai", text), |t| {
            t.kind = kind;
            t.attachments = caption
                .map(|c| Attachment { kind: None, caption: Some(c.to_owned()), url: None })
                .into_iter()
                .collect();
        });
        grouped(vec![turn(0, "Ann", "I sold my car."), long, turn(2, "Ann", "It was in Norway.")]).len()
    };
    let (short, long) = ("kayak ".repeat(80), "kayak ".repeat(200));
    let check = |kind, expected: [usize; 2]| {
        assert_eq!([&short, &long].map(|text| units_of(kind, text, None)), expected, "{kind:?}");
    };
    check(None, [1, 3]);
    check(Some(SpeakerKind::Person), [1, 3]);
    check(Some(SpeakerKind::Assistant), [3, 3]);
    check(Some(SpeakerKind::Tool), [3, 3]);
    assert_eq!(units_of(None, "Look!", Some(&long)), 3, "what is shared counts");
    assert_eq!(units_of(None, &format!("kayak{}", " ".repeat(2_000)), None), 1, "white space does not");
}

#[test]
fn the_plain_unit_is_the_rules_unit_of_a_turn_alone() {
    let turns = vec![turn(0, "Ann", "Hey Bo! I sold my car last week."), turn(1, "Bo", "Nice car it was in Norway.")];
    let people = ["Ann".to_owned(), "Bo".to_owned()];
    let units = extract(turns.clone());
    let plain: Vec<DraftUnit> =
        turns.iter().flat_map(|t| plain_units(t, &TurnLanguages::default(), &people, 1)).collect();
    assert_eq!(plain, units);
    assert_eq!(plain.len(), 2);
    let mut hidden = turns[0].clone();
    hidden.context = true;
    assert_eq!(plain_units(&hidden, &TurnLanguages::default(), &people, 1), []);
    hidden = turns[0].clone();
    hidden.deleted = true;
    assert_eq!(plain_units(&hidden, &TurnLanguages::default(), &people, 1), []);
    assert_eq!(plain_units(&turn(2, "Bo", "Wow!"), &TurnLanguages::default(), &people, 1), []);
}

proptest::proptest! {
    #[test]
    fn any_window_gives_grounded_units(
        lines in proptest::collection::vec(
            (
                0usize..3,
                proptest::prop_oneof![
                    ".{0,60}",
                    "[A-Z][a-z]{1,6}( [a-z]{1,8}){0,6}[.!?…]( 🎉)?( (Hey|Thanks,) (Ann|Bo)!?)?( last week| in May| at 2pm)?",
                ],
                proptest::option::of(0u32..12),
                0u8..8,
            ),
            0..12,
        ),
        least in 0u32..3,
    ) {
        let speakers = ["Ann Lee", "Bo", "İ ẞ"];
        let turns: Vec<WindowTurn> = lines
            .iter()
            .enumerate()
            .map(|(i, (who, text, reply, flags))| {
                let mut window_turn = with(turn(i as u32, speakers[*who], text), |t| {
                    t.reply_to = reply.map(|r| format!("t{r}"));
                    if *flags == 3 {
                        t.attachments = vec![Attachment { kind: None, caption: Some(text.clone()), url: None }];
                    }
                });
                window_turn.context = i < 2;
                window_turn.deleted = *flags == 0;
                window_turn
            })
            .collect();
        let settings = ExtractSettings { extractor: "rules".to_owned(), unit_turns: 1, least_content_words: least, language: Language::En };
        let units = RulesExtractor::new(&settings).extract(&window(turns.clone())).unwrap();
        for (i, unit) in units.iter().enumerate() {
            proptest::prop_assert!(!units[..i].contains(unit));
            let sources: Vec<&WindowTurn> =
                unit.sources.iter().map(|s| turns.iter().find(|t| t.turn.turn == *s).unwrap()).collect();
            proptest::prop_assert!(sources.iter().any(|t| !t.context));
            proptest::prop_assert!(sources.iter().all(|t| !t.deleted));
            proptest::prop_assert!(sources.windows(2).all(|w| w[0].ordinal < w[1].ordinal));
            proptest::prop_assert_eq!(unit.ordinal, sources[0].ordinal);
            proptest::prop_assert_eq!(unit.said_at, sources.last().unwrap().turn.time);
            proptest::prop_assert_eq!(unit.parts.len(), sources.len());
            proptest::prop_assert!(unit.cues.participants.is_sorted() && unit.cues.locations.is_sorted());
        }
        for window_turn in &turns {
            for unit in plain_units(window_turn, &TurnLanguages::default(), &[], least) {
                proptest::prop_assert_eq!(&unit.sources, std::slice::from_ref(&window_turn.turn.turn));
            }
        }
    }
}

fn grouped(turns: Vec<WindowTurn>) -> Vec<DraftUnit> {
    let settings = ExtractSettings {
        extractor: "rules".to_owned(),
        unit_turns: 4,
        least_content_words: 1,
        language: Language::En,
    };
    RulesExtractor::new(&settings).extract(&window(turns)).unwrap()
}

fn sources(units: &[DraftUnit]) -> Vec<Vec<&str>> {
    units.iter().map(|u| u.sources.iter().map(String::as_str).collect()).collect()
}

#[test]
fn consecutive_turns_are_one_unit_with_a_part_each() {
    let mut turns: Vec<WindowTurn> =
        (0..8).map(|i| turn(i, if i % 2 == 0 { "Ann" } else { "Bo" }, "I sold a boat.")).collect();
    turns[0].context = true;
    let units = grouped(turns.clone());
    assert_eq!(sources(&units), [vec!["t1", "t2", "t3", "t4"], vec!["t5", "t6", "t7"]]);
    let before: Vec<Option<&str>> = units.iter().map(|u| u.before.as_ref().map(|b| b.turn.as_str())).collect();
    assert_eq!(before, [Some("t0"), Some("t4")]);
    assert!(units.iter().all(|u| u.parts.len() == u.sources.len()));
    assert_eq!(units[0].parts[1].ordinal, 2);
    assert!(
        units[0].restatement.starts_with("Bo said to Ann: \"I sold a boat.\" Ann said"),
        "{}",
        units[0].restatement
    );

    // A deletion changes only its turn's unit; the next unit only has another turn before it.
    turns[4].deleted = true;
    let after = grouped(turns);
    assert_eq!(sources(&after), [vec!["t1", "t2", "t3"], vec!["t5", "t6", "t7"]]);
    assert_eq!(after[1], DraftUnit { before: after[1].before.clone(), ..units[1].clone() });
    assert_eq!(after[1].before.as_ref().map(|b| b.turn.as_str()), Some("t3"));
}

#[test]
fn turns_without_content_join_units_but_make_none() {
    let units = grouped(vec![
        turn(0, "Ann", "Hey Bo!"),
        turn(1, "Bo", "I sold a boat."),
        turn(4, "Ann", "Wow!"),
        turn(5, "Bo", "Bye!"),
    ]);
    assert_eq!(sources(&units), [["t0", "t1"]]);
    assert!(grouped(Vec::new()).is_empty());
}

/// A turn that shows no language has the language of the turn before it in the window, not counting deleted turns.
#[test]
fn a_part_states_the_language_that_it_is_read_in() {
    let languages = |turns: Vec<WindowTurn>| -> Vec<Language> {
        grouped(turns).iter().flat_map(|unit| unit.parts.iter().map(|part| part.marks.language)).collect()
    };
    let mut turns = vec![
        turn(0, "Ann", "Ich habe gestern mit meiner Schwester gekocht."),
        turn(1, "Bo", "Prima, Risotto!"),
        turn(2, "Ann", "where did you put the pan?"),
        turn(3, "Bo", "Keller"),
    ];
    assert_eq!(languages(turns.clone()), [Language::De, Language::De, Language::En, Language::En]);
    turns[0].deleted = true;
    assert_eq!(languages(turns), [Language::En; 3]);
    let chinese = grouped(vec![turn(0, "Ann", "你昨天去哪里了？"), turn(1, "Bo", "我去了北京。")]);
    let marks: Vec<(Language, bool)> =
        chinese[0].parts.iter().map(|part| (part.marks.language, part.marks.asks)).collect();
    assert_eq!(marks, [(Language::Zh, true), (Language::Zh, false)]);
}

/// "In Ruhe" is not a place, in spite of its capital.
#[test]
fn german_nouns_are_no_places() {
    let places = |text: &str| grouped(vec![turn(0, "Ann", text)])[0].cues.locations.clone();
    assert_eq!(places("Ich habe das Buch in Ruhe gelesen."), Vec::<String>::new());
    assert_eq!(places("We had dinner in Lisbon."), ["lisbon"]);
}
