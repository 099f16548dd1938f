//! Agreement: do the person and the topic of a question stand in the same statement?
//!
//! In: the question as read, and the parts of its bank as the first hop scored them. Out: the
//! probability that the memory supports an answer. A question that asks one person for what another
//! one said finds its topic in the memory all the same. So the statements of the person whom it names
//! are compared with those of the others. A part that asks is no statement: whoever asks about a
//! thing names it too. A restated unit tells of the persons among its cues, whoever spoke. Pure
//! arithmetic over the probe's answer; looks nothing up.
//!
//! The constants are a logistic regression on LoCoMo's development dialogues, its adversarial
//! questions against the others. `docs/evaluation.md` says how good it is on a dialogue that was left
//! out.

use crate::{
    language::question::{QuestionType, ReadQuestion},
    memory::{FamiliarPart, FamiliarParts, name_key},
};

/// What a closeness of 1 adds to a statement's fit, beside its share of the topics.
const CLOSENESS: f64 = 0.25;
/// A side's fit is the mean of this many statements.
const FEW: usize = 3;
/// The rank of the part that a leading statement is compared with.
const BACKGROUND: usize = 20;

const BIAS: f64 = 1.85;
/// The best share of the topics in one statement of the named person, and of another.
const TOPICS: f64 = 0.39;
const TOPICS_OF_OTHERS: f64 = -2.98;
/// The fit of the named person's best statements, and of the others'.
const FIT: f64 = 6.26;
const FIT_OF_OTHERS: f64 = -1.91;
/// How far the named person's best statement leads the bank's background.
const LEAD: f64 = 0.47;
/// A single person is named: both sides are compared.
const ONE_PERSON: f64 = -2.83;
/// What a question wants: times, lists and judgements rarely stand in the words of the question.
const TIME: f64 = 2.43;
const LIST: f64 = 0.64;
const INFERENCE: f64 = 2.67;

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
    let fit = |part: &FamiliarPart| part.coverage + CLOSENESS * closeness(part.cosine.as_f64());
    let named = Named::of(question, persons, familiar);
    let (mut own, mut others) = (Side::default(), Side::default());
    let mut all: Vec<f64> = Vec::with_capacity(familiar.best.len());
    for part in &familiar.best {
        let fit = fit(part);
        all.push(fit);
        // A question among the parts counts for the background, for neither side.
        match &named {
            _ if part.asks => {}
            None => {
                own.add(part.coverage, fit);
                others.add(part.coverage, fit);
            }
            Some(named) if named.tells(part) => own.add(part.coverage, fit),
            Some(_) => others.add(part.coverage, fit),
        }
    }
    all.sort_by(|a, b| b.total_cmp(a));
    let background = all.get(BACKGROUND).or(all.last()).copied().unwrap_or_default();
    let of_type = match question.question_type() {
        QuestionType::Time => TIME,
        QuestionType::List => LIST,
        QuestionType::Inference => INFERENCE,
        _ => 0.0,
    };
    let sum = BIAS
        + TOPICS * own.coverage
        + TOPICS_OF_OTHERS * others.coverage
        + FIT * own.mean()
        + FIT_OF_OTHERS * others.mean()
        + LEAD * (own.best() - background)
        + if named.is_some() { ONE_PERSON } else { 0.0 }
        + of_type;
    1.0 / (1.0 + (-sum).exp())
}

/// The person whom the question asks about, where it is one of the speakers: the keys of each name, whole and
/// the first word.
struct Named(Vec<[u64; 2]>);

impl Named {
    /// The only speaker that the question names, or the one of several who acts.
    fn of(question: &ReadQuestion<'_>, persons: &[String], familiar: &FamiliarParts) -> Option<Self> {
        let words: Vec<u64> = question.words().chain(persons.iter().map(String::as_str)).map(name_key).collect();
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
    /// The best fits, best first.
    best: Vec<f64>,
}

impl Side {
    fn add(&mut self, coverage: f64, fit: f64) {
        self.coverage = self.coverage.max(coverage);
        let at = self.best.partition_point(|known| *known >= fit);
        if at < FEW {
            self.best.insert(at, fit);
            self.best.truncate(FEW);
        }
    }

    fn best(&self) -> f64 {
        self.best.first().copied().unwrap_or_default()
    }

    fn mean(&self) -> f64 {
        self.best.iter().sum::<f64>() / self.best.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::PartFields,
        recall::{
            cues::read,
            tests::{candidate, changed},
        },
    };
    use nouns::model::{Bank, FamiliarityTerms, Marks, Question, Score, canonical_name};

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
        FamiliarPart { unit, part: 0, speaker, asks, restated: false, score, cosine, coverage, terms }
    }

    fn of(text: &str, parts: &[FamiliarPart]) -> f64 {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let read = read(&question).unwrap();
        let persons = read.cues().participants.clone();
        let familiar =
            FamiliarParts { best: parts.to_vec(), zero: 0.0, parts_total: parts.len(), ..FamiliarParts::default() };
        agreement(&read, &persons, &familiar, &|cosine| cosine)
    }

    const QUESTION: &str = "What did Ines paint in the harbour?";

    #[test]
    fn the_named_persons_statement_supports_and_anothers_does_not() {
        let beside = |id, speaker| part(id, speaker, false, 0.0, 0.1);
        let statement = |speaker| [part(1, speaker, false, 0.9, 0.9), beside(2, "Ines"), beside(3, "Paul")];
        let (own, others) = (of(QUESTION, &statement("Ines")), of(QUESTION, &statement("Paul")));
        assert!(own > 0.8 && others < 0.3, "{own} {others}");
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
