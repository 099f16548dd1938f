//! Reads everything that a question's wording says.
//!
//! In: a question. Out: one value that every step of recollection takes by reference, so that no step splits or
//! classifies the wording again. It holds no settings, and the same question always gives the same value.

use std::{collections::HashSet, ops::Range};

use super::{
    QuestionForm, QuestionType,
    asked_time::{AskedTime, asks_for_nothing_else},
    first_person,
    keywords::keywords,
    question_form,
    question_names::{NameClass, name_runs, names, opens_sentence},
    question_type::asks_price,
    question_words::{QuestionWord, is_weak_word, is_within, words},
    quoted_ranges::quoted_ranges,
    statement::QuestionClause,
};
use crate::language::{
    multilingual::{LanguageDetection, is_first_person, is_function_word_of, is_weak_word_of, name_forms, told},
    times::find_times_in,
};
use types::model::{Cues, Interval, Language, Question};

/// Words by which askers refer to themselves.
const FIRST_PERSON: [&str; 8] = ["i", "i'm", "i've", "i'd", "i'll", "my", "me", "mine"];

/// A question and all that was read from its wording.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedQuestion<'q> {
    question: &'q Question,
    language: Option<Language>,
    words: Vec<QuestionWord<'q>>,
    /// Where it names times.
    time_ranges: Vec<Range<usize>>,
    question_type: QuestionType,
    form: QuestionForm,
    keywords: Vec<String>,
    cues: Cues,
    asked_time: Option<AskedTime>,
    clause: Option<QuestionClause<'q>>,
}

impl<'q> ParsedQuestion<'q> {
    /// Reads a question.
    #[must_use]
    pub fn of(question: &'q Question) -> Self {
        let text = question.text.as_str();
        let language = match told(text) {
            LanguageDetection::Surely(language) | LanguageDetection::Likely(language) => Some(language),
            LanguageDetection::Nothing => None,
        };
        let read_in = language.unwrap_or_default();
        let mut words = words(text);
        words.retain(|word| !is_function_word_of(&word.lower, read_in));
        let times = find_times_in(text, read_in, question.asked_at);
        let quotes = quoted_ranges(text);
        let mut asked_time = AskedTime::of(question, read_in, &quotes);
        let periods = asked_time.iter().flat_map(|time| time.ranges.clone());
        let mut time_ranges: Vec<Range<usize>> = times.iter().map(|t| t.range.clone()).chain(periods).collect();
        time_ranges.sort_by_key(|range| (range.start, range.end));
        let taken: Vec<Range<usize>> = quotes.iter().chain(&time_ranges).cloned().collect();
        // In English, grammar shows what is a person and what is a place; in other languages, speakers are found by
        // their names as written.
        let runs = if read_in.is_english() { name_runs(text, &words, &taken) } else { Vec::new() };
        let question_type = QuestionType::of_language(text, read_in);
        let (participants, locations) = (names(&runs, NameClass::Person), names(&runs, NameClass::Place));
        if let Some(time) = &mut asked_time {
            time.chooses = participants.is_empty()
                && locations.is_empty()
                && quotes.is_empty()
                && question_type != QuestionType::Time
                && asks_for_nothing_else(&words, read_in, &time_ranges);
        }
        // Two readings of one date are no interval.
        let asked_interval = asked_time.as_ref().filter(|time| !time.words.is_empty()).and_then(AskedTime::interval);
        Self {
            question,
            language,
            question_type,
            form: QuestionForm::of_language(text, read_in),
            keywords: keywords(text, &words, &quotes, &runs, &time_ranges),
            cues: Cues {
                participants,
                locations,
                time: asked_interval.or_else(|| hull(times.iter().map(|t| t.interval))),
            },
            asked_time,
            clause: QuestionClause::of(text).filter(|_| read_in.is_english()),
            words,
            time_ranges,
        }
    }

    /// The question.
    #[must_use]
    pub fn question(&self) -> &'q Question {
        self.question
    }

    /// Its wording.
    #[must_use]
    pub fn text(&self) -> &'q str {
        &self.question.text
    }

    /// The language that its wording shows.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.language
    }

    /// Whether it says "I" or "my".
    #[must_use]
    pub fn is_in_first_person(&self) -> bool {
        match self.language {
            Some(language) if !language.is_english() => is_first_person(self.text(), language),
            _ => self.words().any(|word| FIRST_PERSON.contains(&word)),
        }
    }

    /// The words that may be the name of a speaker: all its words and, in languages other than English, also their
    /// forms without endings.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.names_without(&[])
    }

    /// As [`Self::names`], without these words and their forms.
    pub fn names_without(&self, left_out: &[String]) -> impl Iterator<Item = String> {
        let language = self.language.unwrap_or_default();
        let others: HashSet<String> = left_out.iter().flat_map(|word| name_forms(word, language)).collect();
        let left_out: HashSet<String> = left_out.iter().cloned().collect();
        let forms = name_forms(self.text(), language).into_iter().filter(move |form| !others.contains(form));
        let words: Vec<String> = self.words().map(str::to_owned).collect();
        words.into_iter().chain(forms).filter(move |name| !left_out.contains(name))
    }

    /// Whether a word, in lower case, is written as a person's name: with a capital, though it begins no sentence and
    /// names no place. In German every noun is written so, and scripts without capitals show no names.
    #[must_use]
    pub fn is_written_as_name(&self, word: &str) -> bool {
        let read_in = self.language.unwrap_or_default();
        let with_capital =
            |one: &QuestionWord<'_>| one.lower == word && one.capitalised() && !opens_sentence(self.text(), one);
        let is_place = self.cues.locations.iter().any(|place| place.split(' ').any(|name| name == word));
        read_in != Language::De && !is_place && self.words.iter().any(with_capital)
    }

    /// Its words in lower case, in order, without possessive endings.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|w| w.lower.as_str())
    }

    /// The words that show what it is about, without times and words that are too common to be selective. If all of
    /// them are too common and it names no time, all of them.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let language = self.language.unwrap_or_default();
        let asks_for_time = self.asked_time.as_ref().is_some_and(|time| time.chooses);
        let is_weak =
            move |word: &QuestionWord<'_>| is_weak_word(&word.lower) || is_weak_word_of(&word.lower, language);
        let takes_weak = self.time_ranges.is_empty() && self.words.iter().all(is_weak);
        let untimed = self.words.iter().filter(|word| !is_within(&word.range, &self.time_ranges));
        untimed.filter(move |word| !asks_for_time && (takes_weak || !is_weak(word))).map(|word| word.lower.as_str())
    }

    /// Whether it names a time.
    #[must_use]
    pub fn names_time(&self) -> bool {
        !self.time_ranges.is_empty()
    }

    /// Whether it asks for something to be done, such as advice or a text; what was said helps with that, but does not
    /// hold the answer.
    #[must_use]
    pub fn is_request(&self) -> bool {
        question_form::is_request(self.text())
    }

    /// Whether it asks what a person does, is or has: "What did Zoe say?", "Zoe's passport". Other words with a capital
    /// may be no person's.
    #[must_use]
    pub fn is_of_person(&self, person: &str) -> bool {
        first_person::is_of_person(&self.words, person)
    }

    /// Whether it asks what something costs.
    #[must_use]
    pub fn asks_price(&self) -> bool {
        self.language.unwrap_or_default().is_english() && asks_price(self.text())
    }

    /// What kind of answer it wants.
    #[must_use]
    pub fn question_type(&self) -> QuestionType {
        self.question_type
    }

    /// Whose words it asks for, in a memory of conversations with an assistant.
    #[must_use]
    pub fn form(&self) -> QuestionForm {
        self.form
    }

    /// Its most selective words: at most six, in order, as written in the question.
    #[must_use]
    pub fn keywords(&self) -> &[String] {
        &self.keywords
    }

    /// The persons and places that it names, canonical and sorted, and the smallest interval that holds its times.
    #[must_use]
    pub fn cues(&self) -> &Cues {
        &self.cues
    }

    /// The time that it names.
    #[must_use]
    pub fn asked_time(&self) -> Option<&AskedTime> {
        self.asked_time.as_ref()
    }

    /// Its wording without the words of its time, which are not searched: "2026-07-25" is not section 25.
    #[must_use]
    pub fn searched_text(&self) -> String {
        let mut text = self.text().to_owned();
        for range in self.asked_time.iter().flat_map(AskedTime::unsearched).rev() {
            text.replace_range(range.clone(), " ");
        }
        text
    }

    /// Which of the persons acts, by canonical name; absent if fewer than two are named, if two act together, or if
    /// grammar does not show it.
    #[must_use]
    pub fn subject(&self, persons: &[String]) -> Option<String> {
        first_person::acting_person(&self.words, persons)
    }

    /// The question as a statement, with a general word in the place of the answer; with `more`, a word for others of
    /// the same kind. Absent if its grammar is not plain.
    #[must_use]
    pub fn statement(&self, more: bool) -> Option<String> {
        self.clause.as_ref().and_then(|clause| clause.statement(more))
    }
}

/// The smallest interval that holds all of them, in the offset of the first.
fn hull(intervals: impl Iterator<Item = Interval>) -> Option<Interval> {
    intervals.reduce(|a, b| Interval {
        start_ms: a.start_ms.min(b.start_ms),
        end_ms: a.end_ms.max(b.end_ms),
        offset_seconds: a.offset_seconds,
    })
}
