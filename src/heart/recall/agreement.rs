//! Agreement: do the person and the topic of a question stand in the same statement?
//!
//! In: the question as read, and the parts of its bank as the first hop scored them. Out: the
//! probability that the memory supports an answer. A question that asks one person for what another
//! one said finds its topic in the memory all the same. So the statements of the person whom it names
//! are compared with those of the others. A question is no statement: asking about a thing
//! names it too. A restated unit is about the persons among its cues, not about its speaker. Where a question names
//! nobody, what counts is whether the best parts hold its topics together, and whether the asker, who is the bank's
//! only person, speaks of them; an assistant is asked with questions, so that those count. For a task, what was said
//! only helps. Pure arithmetic over the probe's answer; looks nothing up.
//!
//! The constants are a logistic regression on LoCoMo's dialogues and BEAM's chats, on their questions without an answer
//! and questions of other dialogues against the others; that of a task is set by hand. `docs/lab/recall.md` says how
//! good it is on a dialogue that was left out.

use crate::{
    language::question::{QuestionType, ReadQuestion},
    memory::{FamiliarPart, FamiliarParts, name_key},
};
use nouns::model::canonical_name;

/// What a closeness of 1 adds to a statement's fit, beside its share of the topics.
const CLOSENESS: f64 = 0.25;
/// A side's fit is the mean of this many statements.
const FEW: usize = 3;
/// Statements are looked for among this many of the best parts.
const LOOKED_AT: usize = 80;
/// The topics are looked for together in this many of the best parts.
const TOGETHER: usize = 10;

const BIAS: f64 = -2.23;
/// The share of the topics, by rarity, that no part of the bank holds.
const ABSENT: f64 = -0.49;
/// It asks for a time.
const TIME: f64 = 1.27;
/// It asks for something to be done.
const REQUEST: f64 = 2.0;

/// A person is named: both sides are compared.
const ONE_PERSON: f64 = 0.92;
/// The fit of the named person's best statements, and of the others'.
const FIT: f64 = 4.82;
const FIT_OF_OTHERS: f64 = -1.21;
/// The share of the topics that no part of the bank holds, by the closeness of the named person's closest statement,
/// which may say the same in other words.
const SAID_OTHERWISE: f64 = 0.83;
/// The best share of the topics in one statement of another person.
const TOPICS_OF_OTHERS: f64 = -1.86;
/// What a question about a person wants: lists and judgements rarely stand in the words of the question.
const LIST: f64 = 0.58;
const INFERENCE: f64 = 1.76;

/// Nobody is named: the fit of the best statements, and the share of the topics that the best parts hold together.
const FIT_OF_ALL: f64 = 1.33;
const TOPICS_TOGETHER: f64 = 2.12;
/// The fit of what the asker said, who is the bank's only person.
const FIT_OF_ASKER: f64 = 1.43;

/// The probability that the memory supports an answer; 0 for an empty bank. `closeness` is a cosine
/// on the model's scale, 0 where it tells nothing and 1 where it answers.
pub(super) fn agreement(
    question: &ReadQuestion<'_>,
    persons: &[String],
    familiar: &FamiliarParts,
    closeness: &dyn Fn(f64) -> f64,
) -> f64 {
    if familiar.best.is_empty() {
        return 0.0;
    }
    let best = familiar.best.get(..LOOKED_AT).unwrap_or(&familiar.best);
    let side = |is_of_side: &dyn Fn(&FamiliarPart) -> bool| {
        let mut side = Side::default();
        for part in best.iter().filter(|part| is_of_side(part)) {
            side.add(familiar.coverage(part.topics), closeness(part.cosine.as_f64()));
        }
        side
    };
    let when = |holds: bool, worth: f64| if holds { worth } else { 0.0 };
    let asks_for = question.question_type();
    let mut sum = BIAS + when(asks_for == QuestionType::Time, TIME) + when(question.is_request(), REQUEST);
    let absent = familiar.absent();
    sum += ABSENT * absent;
    if let Some(named) = NamedPerson::of(question, persons, familiar) {
        let own = side(&|part| !part.asks && named.tells(part));
        let others = side(&|part| !part.asks && !named.tells(part));
        sum += ONE_PERSON + FIT * own.mean() + FIT_OF_OTHERS * others.mean() + TOPICS_OF_OTHERS * others.coverage;
        sum += SAID_OTHERWISE * absent * own.closeness;
        sum += when(asks_for == QuestionType::List, LIST) + when(asks_for == QuestionType::Inference, INFERENCE);
    } else {
        let together = best.iter().take(TOGETHER).fold(0, |held, part| held | part.topics);
        sum += FIT_OF_ALL * side(&|part| !part.asks).mean();
        sum += TOPICS_TOGETHER * familiar.coverage(together);
        let asker = familiar.only_person.as_deref().filter(|_| question.is_in_first_person());
        if let Some(asker) = asker.map(|name| name_key(&canonical_name(name))) {
            sum += FIT_OF_ASKER * side(&|part| part.speaker.contains(&asker)).mean();
        }
    }
    1.0 / (1.0 + (-sum).exp())
}

/// The person whom the question asks about, where it is one of the speakers: the keys of each name, whole and
/// the first word.
struct NamedPerson(Vec<[u64; 2]>);

impl NamedPerson {
    /// The only speaker that the question names, or the one of several who acts.
    fn of(question: &ReadQuestion<'_>, persons: &[String], familiar: &FamiliarParts) -> Option<Self> {
        let words: Vec<u64> = { question.names().chain(persons.iter().cloned()).map(|name| name_key(&name)).collect() };
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

    /// Whether a part is a statement of this person, or a restatement that tells of them.
    fn tells(&self, part: &FamiliarPart) -> bool {
        if !part.restated {
            return self.0.contains(&part.speaker);
        }
        part.unit.participants().map(name_key).any(|person| self.0.iter().any(|name| name.contains(&person)))
    }
}

/// The statements of one side.
#[derive(Default)]
struct Side {
    coverage: f64,
    /// That of the closest.
    closeness: f64,
    /// The best fits, best first.
    best: Vec<f64>,
}

impl Side {
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
        memory::{PartFields, Topic},
        recall::{
            cues::read,
            tests::{candidate, changed},
        },
    };
    use nouns::model::{Bank, FamiliarityTerms, Marks, Question, Score, canonical_name};

    const TOPICS_OF_TESTS: usize = 10;

    /// A part of a speaker that asks or states, with its coverage and cosine.
    fn part(id: u64, speaker: &str, asks: bool, coverage: f64, cosine: f64) -> FamiliarPart {
        let made = candidate(id, "said: words", "2024-01-01T00:00:00Z").unit;
        let one = PartFields {
            turn: "t".to_owned(),
            ordinal: 0,
            speaker: speaker.to_owned(),
            kind: None,
            said_at: made.said_at,
            text: "words".to_owned(),
            range: None,
            marks: Marks { asks, ..Marks::default() },
        };
        let (unit, terms) = (changed(&made, |unit| unit.parts = vec![one]), FamiliarityTerms::default());
        let speaker = [name_key(&canonical_name(speaker)); 2];
        let cosine = Score::from_f64(cosine);
        let score = cosine.as_f64();
        // Of ten topics that are equally rare.
        let topics = (1 << (coverage * TOPICS_OF_TESTS as f64).round() as u64) - 1;
        FamiliarPart { unit, part: 0, speaker, asks, restated: false, score, cosine, topics, terms }
    }

    fn of(text: &str, parts: &[FamiliarPart]) -> f64 {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let read = read(&question).unwrap();
        let persons = read.cues().participants.clone();
        let topics = vec![Topic { word: "word".to_owned(), parts: 1, rarity: 1.0, is_name: false }; TOPICS_OF_TESTS];
        let familiar =
            FamiliarParts { best: parts.to_vec(), topics, parts_total: parts.len(), ..FamiliarParts::default() };
        agreement(&read, &persons, &familiar, &|cosine| cosine)
    }

    const QUESTION: &str = "What did Ines paint in the harbour?";

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
        let topic = |parts| Topic { word: "word".to_owned(), parts, rarity: 1.0, is_name: false };
        let of = |text: &str, held: [bool; 2], speaker: &str| {
            let topics = held.map(|held| topic(usize::from(held))).to_vec();
            let cosine = held.iter().filter(|held| **held).count() as f64 / 2.0;
            let mut best = part(1, speaker, false, 0.0, cosine);
            best.topics = held.iter().enumerate().map(|(at, held)| u64::from(*held) << at).sum();
            let (question, only_person) = (Question::new(Bank::parse("b").unwrap(), text), Some("Ann".to_owned()));
            let familiar =
                FamiliarParts { best: vec![best], parts_total: 1, topics, only_person, ..FamiliarParts::default() };
            agreement(&read(&question).unwrap(), &[], &familiar, &|cosine| cosine)
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
