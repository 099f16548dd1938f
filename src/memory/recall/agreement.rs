//! Agreement: are the person and the topic of a question in the same statement?
//!
//! In: the question as read, and the parts of its bank as the first hop scored them. Out: the probability that the
//! memory supports an answer. A question may ask about one person what another person said; its topic is then in the
//! memory, but its answer is not. So the statements of the named person are compared with those of the others. A part
//! that asks is no statement: it names a thing without saying anything about it. What others say of the named person by
//! name counts as that person's, and so does, where "I" asks, what an assistant says. A restated unit counts for the
//! persons among its cues, not for its speaker.
//!
//! If a question names nobody, two things count: whether the best parts together hold its topics, and whether the asker, if the bank's only person, speaks of them. There the asker's questions count
//! too, because people ask an assistant. A task does not need its answer in the memory. Sends no probe.
//!
//! Nothing supports a question about a person who neither speaks nor is named in the bank. A reply that leaves words
//! out ("mine is at the embassy") holds the topics of the turn that it answers. A question for a price is supported by
//! no part without a number.
//!
//! A word may be a topic and belong to a speaker's name, such as "kayak" where an Ann Kayak speaks. It is read as a
//! name where it is written as one. Otherwise, if somebody said it, it is read both ways, and the better reading
//! counts.
//!
//! The constants come from a logistic regression on LoCoMo's dialogues and BEAM's chats. It separates their answerable
//! questions from those without an answer and from questions of other dialogues. The constant of a task is set by hand.
//! `docs/lab/recall.md` says how good the regression is on a dialogue that was left out.

use crate::{
    index::{FamiliarPart, FamiliarityResult, PartBody, QuestionTopic, name_key},
    language::{
        named_in_talk::speaks_of,
        question::{ParsedQuestion, QuestionType},
        replies::leaves_words_out,
    },
};
use types::model::{Interval, SpeakerKind, canonical_name};

/// What a closeness of 1 adds to a statement's fit. The rest of the fit is its share of the topics.
const CLOSENESS: f64 = 0.25;
/// A side's fit is the mean fit of at most this many statements, the best.
const FEW: usize = 3;
/// Statements are searched for among this many of the best parts.
const MAX_PARTS: usize = 80;
/// The topics may lie in several parts, among this many of the best.
const TOGETHER: usize = 10;

const BIAS: f64 = -2.23;
/// The share of the topics, by rarity, that no part of the bank holds.
const ABSENT: f64 = -0.49;
/// The question asks for a time.
const TIME: f64 = 1.27;
/// The question asks for something to be done.
const REQUEST: f64 = 2.0;

/// The question names a person, so two sides are compared.
const ONE_PERSON: f64 = 0.92;
/// The fit of the named person's best statements, and of the others' best statements.
const FIT: f64 = 4.82;
const FIT_OF_OTHERS: f64 = -1.21;
/// The share of the topics that no part of the bank holds, times the closeness of the named person's closest
/// statement, which may say the same in other words.
const SAID_OTHERWISE: f64 = 0.83;
/// The best share of the topics in one statement of another person.
const TOPICS_OF_OTHERS: f64 = -1.86;
/// The question about a person asks for a list or a judgement: such answers rarely use the words of the question.
const LIST: f64 = 0.58;
const INFERENCE: f64 = 1.76;

/// The question names nobody: the fit of the best statements, and the best parts' joint share of the topics.
const FIT_OF_ALL: f64 = 1.33;
const TOPICS_TOGETHER: f64 = 2.12;
/// The fit of the asker's best parts, if the asker is the bank's only person.
const FIT_OF_ASKER: f64 = 1.43;

/// The probability is at most this if the question names a person whom nobody mentions, or asks for a price where the
/// best parts hold no number.
const UNKNOWN: f64 = 0.1;

/// The probability that the memory supports an answer; 0 for an empty bank. `closeness` puts a cosine
/// on the model's scale: 0 if the two are unrelated, 1 if one answers the other.
pub(super) fn agreement(
    question: &ParsedQuestion<'_>,
    persons: &[String],
    familiar: &FamiliarityResult,
    closeness: &dyn Fn(f64) -> f64,
) -> f64 {
    if familiar.best.is_empty() {
        return 0.0;
    }
    let with_topics = with_answered_topics(familiar);
    let familiar = with_topics.as_ref().unwrap_or(familiar);
    let most = if asks_for_unknown(question, persons, familiar) { UNKNOWN } else { 1.0 };
    let as_names = agreement_of_reading(question, persons, familiar, &[], closeness).min(most);
    let Some((topics, words)) = speaker_names_as_topics(question, persons, familiar) else { return as_names };
    as_names.max(agreement_of_reading(question, persons, &topics, &words, closeness).min(most))
}

/// Whether the question, if it is no task, asks what a person does or has whom nobody mentions, or asks for a price
/// where none of the best parts holds a number.
fn asks_for_unknown(question: &ParsedQuestion<'_>, persons: &[String], familiar: &FamiliarityResult) -> bool {
    let is_absent =
        |word: &str| familiar.topics.iter().any(|topic| topic.is_name && topic.parts == 0 && topic.word == word);
    let is_unknown = |person: &String| person.split(' ').all(is_absent) && question.is_of_person(person);
    let holds_number = |part: &FamiliarPart| {
        part.unit.part(part.part).is_some_and(|body| body.text.contains(|c: char| c.is_numeric()))
    };
    let best = familiar.best.get(..TOGETHER).unwrap_or(&familiar.best);
    !question.is_request()
        && (persons.iter().any(is_unknown) || question.asks_price() && !best.iter().any(holds_number))
}

/// The parts, of which each reply that leaves words out also holds the topics of the turn that it answers; `None` if
/// there is no such reply among the best.
fn with_answered_topics(familiar: &FamiliarityResult) -> Option<FamiliarityResult> {
    let best = familiar.best.get(..MAX_PARTS).unwrap_or(&familiar.best);
    let is_reply = |part: &FamiliarPart| {
        !part.asks && !part.restated && whole_turn(part).is_some_and(|body| leaves_words_out(body.text))
    };
    let answered = |reply: &FamiliarPart| {
        let place = whole_turn(reply)?.ordinal.checked_sub(1)?;
        let is_answered = |part: &&FamiliarPart| {
            let is_beside = part.unit.session() == reply.unit.session() && part.speaker != reply.speaker;
            is_beside && whole_turn(part).is_some_and(|body| body.ordinal == place)
        };
        best.iter().find(is_answered).map(|part| part.topics)
    };
    let replies = best.iter().enumerate().filter(|(_, part)| is_reply(part));
    let held: Vec<(usize, u64)> = replies.filter_map(|(at, reply)| Some((at, answered(reply)?))).collect();
    if held.is_empty() {
        return None;
    }
    let mut with = familiar.clone();
    for (at, topics) in held {
        if let Some(part) = with.best.get_mut(at) {
            part.topics |= topics;
        }
    }
    Some(with)
}

fn is_by_assistant(part: &FamiliarPart) -> bool {
    part.unit.part(part.part).is_some_and(|body| body.kind == Some(SpeakerKind::Assistant))
}

/// A part that is a whole turn.
fn whole_turn(part: &FamiliarPart) -> Option<PartBody<'_>> {
    part.unit.part(part.part).filter(|body| body.range.is_none())
}

/// The parts with the words of speakers' names as topics, and these words: those that somebody said and that the
/// question does not write as names. `None` if there are none.
fn speaker_names_as_topics(
    question: &ParsedQuestion<'_>,
    persons: &[String],
    familiar: &FamiliarityResult,
) -> Option<(FamiliarityResult, Vec<String>)> {
    let own = familiar.own_topics().len();
    let is_topic = |topic: &QuestionTopic| {
        let is_person = persons.iter().any(|person| person.split(' ').any(|name| name == topic.word));
        topic.parts > 0 && !is_person && !question.is_written_as_name(&topic.word)
    };
    let of_speakers = familiar.topics.get(own..)?;
    let words: Vec<String> =
        of_speakers.iter().filter(|topic| is_topic(topic)).map(|topic| topic.word.clone()).collect();
    if words.is_empty() {
        return None;
    }
    let mut topics = FamiliarityResult { speaker_topics: 0, ..familiar.clone() };
    for topic in topics.topics.iter_mut().skip(own).filter(|topic| !words.contains(&topic.word)) {
        topic.rarity = 0.0;
    }
    Some((topics, words))
}

/// The probability if these words are no names.
fn agreement_of_reading(
    question: &ParsedQuestion<'_>,
    persons: &[String],
    familiar: &FamiliarityResult,
    no_names: &[String],
    closeness: &dyn Fn(f64) -> f64,
) -> f64 {
    let best = familiar.best.get(..MAX_PARTS).unwrap_or(&familiar.best);
    // If a time is its only topic, the parts that were said at that time hold it.
    let only_time = familiar.own_topics().is_empty() && question.names_time();
    let coverage = |part: &FamiliarPart| {
        if only_time { f64::from(u8::from(was_said_then(part, question))) } else { familiar.coverage(part.topics) }
    };
    let side = |is_of_side: &dyn Fn(&FamiliarPart) -> bool| {
        let mut side = AgreementSide::default();
        for part in best.iter().filter(|part| is_of_side(part)) {
            side.add(coverage(part), closeness(part.cosine.as_f64()));
        }
        side
    };
    let when = |holds: bool, worth: f64| if holds { worth } else { 0.0 };
    let asks_for = question.question_type();
    let mut sum = BIAS + when(asks_for == QuestionType::Time, TIME) + when(question.is_request(), REQUEST);
    let absent = familiar.absent_share();
    sum += ABSENT * absent;
    let persons = others_than_only_person(question, persons, familiar);
    if let Some(named) = NamedPerson::of(question, &persons, familiar, no_names) {
        // What an assistant says is meant for the asker.
        let asker = question.question().asker.as_deref().filter(|_| question.is_in_first_person());
        let to_asker = asker.is_some_and(|asker| named.has(name_key(&canonical_name(asker))));
        let is_own = |part: &FamiliarPart| named.is_by_or_about(part) || to_asker && is_by_assistant(part);
        let (mut own, mut others) = (AgreementSide::default(), AgreementSide::default());
        for part in best.iter().filter(|part| !part.asks) {
            let of = if is_own(part) { &mut own } else { &mut others };
            of.add(coverage(part), closeness(part.cosine.as_f64()));
        }
        sum += ONE_PERSON + FIT * own.mean() + FIT_OF_OTHERS * others.mean() + TOPICS_OF_OTHERS * others.coverage;
        sum += SAID_OTHERWISE * absent * own.closeness;
        sum += when(asks_for == QuestionType::List, LIST) + when(asks_for == QuestionType::Inference, INFERENCE);
    } else {
        let together = best.get(..TOGETHER).unwrap_or(best);
        let held_together = if only_time {
            together.iter().map(&coverage).fold(0.0, f64::max)
        } else {
            familiar.coverage(together.iter().fold(0, |held, part| held | part.topics))
        };
        sum += FIT_OF_ALL * side(&|part| !part.asks).mean();
        sum += TOPICS_TOGETHER * held_together;
        let asker = familiar.only_person.as_deref().filter(|_| question.is_in_first_person());
        if let Some(asker) = asker.map(|name| name_key(&canonical_name(name))) {
            sum += FIT_OF_ASKER * side(&|part| part.speaker.contains(&asker)).mean();
        }
    }
    1.0 / (1.0 + (-sum).exp())
}

/// The persons, without the asker if the asker is the bank's only person: "I" then means the same, whether the question
/// names its asker or not.
fn others_than_only_person(
    question: &ParsedQuestion<'_>,
    persons: &[String],
    familiar: &FamiliarityResult,
) -> Vec<String> {
    let asker = question.question().asker.as_deref().filter(|_| question.is_in_first_person()).map(canonical_name);
    let only = familiar.only_person.as_deref().map(canonical_name).unwrap_or_default();
    let is_only = |name: &String| *name == only || only.split(' ').next() == Some(name.as_str());
    let asker = asker.filter(is_only);
    persons.iter().filter(|person| Some(*person) != asker.as_ref()).cloned().collect()
}

/// Whether a part was said at a time that the question names, or a few days after a day that it names.
fn was_said_then(part: &FamiliarPart, question: &ParsedQuestion<'_>) -> bool {
    let said_ms = part.unit.part_said_at(part.part).unix_ms;
    let is_within = |time: Interval| (time.start_ms..=time.end_ms).contains(&said_ms);
    part.terms.month > 0.0 || question.cues().time.is_some_and(is_within)
}

/// The speaker about whom the question asks: for each name of that speaker, the keys of the whole name and of its
/// first word.
struct NamedPerson(Vec<[u64; 2]>);

impl NamedPerson {
    /// The only speaker whom the question names, or, if it names several, the one who acts. `no_names` are words of
    /// the question that name nobody.
    fn of(
        question: &ParsedQuestion<'_>,
        persons: &[String],
        familiar: &FamiliarityResult,
        no_names: &[String],
    ) -> Option<Self> {
        let names = question.names_without(no_names).chain(persons.iter().cloned());
        let words: Vec<u64> = names.map(|name| name_key(&name)).collect();
        let is_named = |speaker: &[u64; 2]| speaker.iter().any(|key| words.contains(key));
        let mut names: Vec<[u64; 2]> = Vec::new();
        for speaker in familiar.best.iter().map(|part| part.speaker).filter(is_named) {
            if !names.contains(&speaker) {
                names.push(speaker);
            }
        }
        if names.len() != 1 {
            let subject = name_key(&question.subject(persons)?);
            names.retain(|speaker| speaker.contains(&subject));
        }
        (!names.is_empty()).then_some(Self(names))
    }

    /// Whether this is the key of one of the person's names.
    fn has(&self, key: u64) -> bool {
        self.0.iter().flatten().any(|own| *own == key)
    }

    /// Whether a part is this person's words, or speaks of this person by name.
    fn is_by_or_about(&self, part: &FamiliarPart) -> bool {
        if !part.restated {
            let is_own_name = |word: &str| self.has(name_key(&word.to_lowercase()));
            let is_about = || part.unit.part(part.part).is_some_and(|body| speaks_of(body.text, is_own_name));
            return self.0.contains(&part.speaker) || is_about();
        }
        part.unit.participants().map(name_key).any(|person| self.0.iter().any(|name| name.contains(&person)))
    }
}

/// The parts of one side.
#[derive(Default)]
struct AgreementSide {
    /// The best share of the topics in one part.
    coverage: f64,
    /// The closeness of the closest part.
    closeness: f64,
    /// The best fits, best first.
    best: Vec<f64>,
}

impl AgreementSide {
    fn add(&mut self, coverage: f64, closeness: f64) {
        let fit = coverage + CLOSENESS * closeness;
        (self.coverage, self.closeness) = (self.coverage.max(coverage), self.closeness.max(closeness));
        let at = self.best.partition_point(|known| *known >= fit);
        if at < FEW {
            self.best.insert(at, fit);
            self.best.truncate(FEW);
        }
    }

    fn mean(&self) -> f64 {
        self.best.iter().sum::<f64>() / self.best.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index::PartFields,
        recall::{
            question_cues::parse_question,
            tests::{candidate, changed},
        },
    };
    use types::model::{Bank, FamiliarityTerms, Question, Score, TextFeatures, canonical_name};

    const TOPICS_OF_TESTS: usize = 10;

    /// A part of a speaker that asks or states, with its coverage and cosine.
    fn part(id: u64, speaker: &str, asks: bool, coverage: f64, cosine: f64) -> FamiliarPart {
        part_saying("words", None, (id, speaker, asks, coverage, cosine))
    }

    fn part_saying(
        text: &str,
        kind: Option<SpeakerKind>,
        (id, speaker, asks, coverage, cosine): (u64, &str, bool, f64, f64),
    ) -> FamiliarPart {
        let made = candidate(id, "said: words", "2024-01-01T00:00:00Z").unit;
        let one = PartFields {
            turn: "t".to_owned(),
            ordinal: 0,
            speaker: speaker.to_owned(),
            kind,
            said_at: made.said_at,
            text: text.to_owned(),
            range: None,
            marks: TextFeatures { asks, ..TextFeatures::default() },
        };
        let (unit, terms) = (changed(&made, |unit| unit.parts = vec![one]), FamiliarityTerms::default());
        let speaker = [name_key(&canonical_name(speaker)); 2];
        let cosine = Score::from_f64(cosine);
        let score = cosine.as_f64();
        // One bit for each of ten equally rare topics.
        let topics = (1 << (coverage * TOPICS_OF_TESTS as f64).round() as u64) - 1;
        FamiliarPart { unit, part: 0, speaker, asks, restated: false, score, cosine, topics, terms }
    }

    fn of(text: &str, parts: &[FamiliarPart]) -> f64 {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let read = parse_question(&question).unwrap();
        let persons = read.cues().participants.clone();
        let topics =
            vec![QuestionTopic { word: "word".to_owned(), parts: 1, rarity: 1.0, is_name: false }; TOPICS_OF_TESTS];
        let familiar = FamiliarityResult {
            best: parts.to_vec(),
            topics,
            parts_total: parts.len(),
            ..FamiliarityResult::default()
        };
        agreement(&read, &persons, &familiar, &|cosine| cosine)
    }

    const QUESTION: &str = "What did Ines paint in the harbour?";

    #[test]
    fn what_others_say_of_a_person_by_name_counts_as_hers() {
        let said = |text: &str| {
            let of_ines = part(2, "Ines", false, 0.0, 0.1);
            of(QUESTION, &[part_saying(text, None, (1, "Omar", false, 1.0, 0.5)), of_ines])
        };
        let (of_her, to_her) = (said("Ines painted the ferry."), said("Thanks, Ines! I painted the ferry."));
        assert!(of_her > 0.5 && to_her < 0.2, "{of_her} {to_her}");
    }

    #[test]
    fn what_an_assistant_says_is_said_to_whoever_asks() {
        let by = |kind: Option<SpeakerKind>| {
            let mut question = Question::new(Bank::parse("b").unwrap(), "How should I send the letter?");
            question.asker = Some("Ines".to_owned());
            let read = parse_question(&question).unwrap();
            let told = part_saying("By registered mail.", kind, (1, "Other", false, 1.0, 0.5));
            let best = vec![told, part(2, "Ines", false, 0.0, 0.1), part(3, "Omar", false, 0.0, 0.1)];
            let topics = vec![
                QuestionTopic { word: "letter".to_owned(), parts: 1, rarity: 1.0, is_name: false };
                TOPICS_OF_TESTS
            ];
            let familiar = FamiliarityResult { best, topics, parts_total: 3, ..FamiliarityResult::default() };
            agreement(&read, &["ines".to_owned()], &familiar, &|cosine| cosine)
        };
        let (assistant, person) = (by(Some(SpeakerKind::Assistant)), by(None));
        assert!(assistant > 0.5 && person < 0.2, "{assistant} {person}");
    }

    #[test]
    fn what_was_said_then_supports_a_question_about_nothing_but_a_time() {
        let of = |text: &str, cosine: f64| {
            let question = Question::new(Bank::parse("b").unwrap(), text);
            let familiar =
                FamiliarityResult { best: vec![part(1, "Ines", false, 0.0, cosine)], ..FamiliarityResult::default() };
            agreement(&parse_question(&question).unwrap(), &[], &familiar, &|cosine| cosine)
        };
        // The part was said on the first day of 2024.
        assert!(of("What happened on 1 January 2024?", 0.1) > 0.6);
        assert!(of("What happened in 2024?", 0.1) > 0.6);
        assert!(of("What happened on 3 January 2023?", 0.9) < 0.3);
        assert!(of("What happened?", 0.1) < 0.3);
    }

    #[test]
    fn an_asker_who_is_the_only_person_is_no_other_person_for_being_named() {
        let of = |asker: Option<&str>, only: Option<&str>| {
            let mut question = Question::new(Bank::parse("b").unwrap(), "Where did I move?");
            question.asker = asker.map(str::to_owned);
            let persons: Vec<String> = asker.map(canonical_name).into_iter().collect();
            let topics = vec![QuestionTopic { word: "move".to_owned(), parts: 1, rarity: 1.0, is_name: false }];
            let best = vec![part(1, "Nora Berg", false, 0.1, 0.6), part(2, "Bot", false, 0.1, 0.5)];
            let only_person = only.map(str::to_owned);
            let familiar = FamiliarityResult { best, topics, only_person, ..FamiliarityResult::default() };
            agreement(&parse_question(&question).unwrap(), &persons, &familiar, &|cosine| cosine)
        };
        let only = Some("Nora Berg");
        assert_eq!(of(Some("Nora Berg"), only), of(None, only));
        assert_eq!(of(Some("nora"), only), of(None, only));
        assert!((of(Some("Nora Berg"), None) - of(None, None)).abs() > 0.01, "one of several is named");
    }

    #[test]
    fn the_named_persons_statement_supports_and_anothers_does_not() {
        let beside = |id, speaker| part(id, speaker, false, 0.0, 0.1);
        let statement = |speaker| [part(1, speaker, false, 0.9, 0.9), beside(2, "Ines"), beside(3, "Paul")];
        let (own, others) = (of(QUESTION, &statement("Ines")), of(QUESTION, &statement("Paul")));
        assert!(own > 0.75 && others < 0.3, "{own} {others}");
    }

    #[test]
    fn a_restatement_is_a_statement_of_the_person_whom_it_tells_of() {
        let told_by_paul = |person: &str| {
            let mut told = part(1, "Paul", false, 0.9, 0.9);
            told.restated = true;
            told.unit = changed(&told.unit, |unit| {
                unit.restatement = unit.parts[0].text.clone();
                unit.cues.participants = vec![person.to_owned()];
            });
            of(QUESTION, &[told, part(2, "Ines", false, 0.0, 0.1)])
        };
        let (own, others) = (told_by_paul("ines"), told_by_paul("paul"));
        assert!(own > 0.8 && others < 0.3, "{own} {others}");
    }

    #[test]
    fn a_question_of_another_person_is_no_statement() {
        let own = part(1, "Ines", false, 0.6, 0.6);
        let with = |asks| of(QUESTION, &[own.clone(), part(2, "Paul", asks, 0.9, 0.9)]);
        assert!(with(true) > with(false));
        assert!((with(true) - of(QUESTION, &[own.clone(), part(2, "Paul", true, 0.0, 0.0)])).abs() < 0.1);
    }

    #[test]
    fn topics_count_where_nobody_is_named_and_more_where_the_asker_speaks_of_them() {
        let topic = |parts| QuestionTopic { word: "word".to_owned(), parts, rarity: 1.0, is_name: false };
        let of = |text: &str, held: [bool; 2], speaker: &str| {
            let topics = held.map(|held| topic(usize::from(held))).to_vec();
            let cosine = held.iter().filter(|held| **held).count() as f64 / 2.0;
            let mut best = part(1, speaker, false, 0.0, cosine);
            best.topics = held.iter().enumerate().map(|(at, held)| u64::from(*held) << at).sum();
            let (question, only_person) = (Question::new(Bank::parse("b").unwrap(), text), Some("Ann".to_owned()));
            let familiar = FamiliarityResult {
                best: vec![best],
                parts_total: 1,
                topics,
                only_person,
                ..FamiliarityResult::default()
            };
            agreement(&parse_question(&question).unwrap(), &[], &familiar, &|cosine| cosine)
        };
        let plain = "Which town has a ferry?";
        let [none, half, both] = [[false, false], [true, false], [true, true]].map(|held| of(plain, held, "Bot"));
        assert!(none < 0.1 && none < half && half < both && both > 0.5, "{none} {half} {both}");
        let mine = "Which is my town with a ferry?";
        assert!(of(mine, [true, true], "Ann") > of(mine, [true, true], "Bot"));
        assert!(of(plain, [true, true], "Ann") < of(mine, [true, true], "Ann"));
        assert!(of("Should I take a ferry?", [false, false], "Bot") > 0.3, "what helps a task is enough");
    }

    #[test]
    fn nothing_supports_a_question_about_somebody_whom_nobody_mentions() {
        let of = |text: &str, mentioned: usize| {
            let question = Question::new(Bank::parse("b").unwrap(), text);
            let read = parse_question(&question).unwrap();
            let persons = read.cues().participants.clone();
            let topic =
                |word: &str, parts, is_name| QuestionTopic { word: word.to_owned(), parts, rarity: 1.0, is_name };
            let topics = vec![topic("passport", 1, false), topic("zoe", mentioned, true)];
            let mut best = part(1, "Ann", false, 0.0, 0.9);
            best.topics = 1;
            let familiar =
                FamiliarityResult { best: vec![best], topics, parts_total: 1, ..FamiliarityResult::default() };
            agreement(&read, &persons, &familiar, &|cosine| cosine)
        };
        assert!(of("Where is Zoe's passport?", 0) <= UNKNOWN);
        assert!(of("Where is Zoe's passport?", 1) > UNKNOWN);
        assert!(of("What did Zoe do with the passport?", 0) <= UNKNOWN);
        assert!(of("Which passport has the Zoe stamp?", 0) > UNKNOWN, "no person does or has anything");
        assert!(of("Write a mail to Zoe about the passport.", 0) > UNKNOWN, "a task needs no mention");
    }

    #[test]
    fn a_reply_that_leaves_words_out_holds_what_the_turn_before_it_says() {
        let said = |id, speaker, ordinal, text: &str, topics| {
            let mut one = part(id, speaker, false, 0.0, 0.5);
            one.unit = changed(&one.unit, |unit| {
                unit.parts[0].ordinal = ordinal;
                text.clone_into(&mut unit.parts[0].text);
            });
            one.topics = topics;
            one
        };
        let of = |reply: &str| {
            let best = vec![said(1, "Ann", 0, "My passport is in the drawer.", 1), said(2, "Bob", 1, reply, 0)];
            let topics = vec![QuestionTopic { word: "passport".to_owned(), parts: 1, rarity: 1.0, is_name: false }];
            let question = Question::new(Bank::parse("b").unwrap(), "Where is Bob's passport?");
            let read = parse_question(&question).unwrap();
            let familiar = FamiliarityResult { best, topics, parts_total: 2, ..FamiliarityResult::default() };
            agreement(&read, &read.cues().participants.clone(), &familiar, &|cosine| cosine)
        };
        let (mine, other) = (of("Mine is at the embassy."), of("The embassy is closed."));
        assert!(mine > other + 0.3, "{mine} {other}");
    }

    #[test]
    fn nothing_supports_a_question_of_an_empty_bank_and_every_figure_is_a_probability() {
        assert_eq!(of(QUESTION, &[]), 0.0);
        for cosine in [-1.0, 0.0, 1.0] {
            for text in [QUESTION, "When was it?", "What do Ines and Paul like?"] {
                let found = of(text, &[part(1, "Ines", false, 1.0, cosine), part(2, "Paul", true, 0.0, cosine)]);
                assert!((0.0..=1.0).contains(&found), "{text} {found}");
            }
        }
    }
}
