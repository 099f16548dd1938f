//! Which parts are quoted in a bank where persons talk with assistants (decision 51).
//!
//! In: the most familiar parts of the bank, and the question's form. Out: the parts that an answer quotes. What persons
//! said and what programs said is ranked apart, and the form decides how they share the tokens, `recall.budget_tokens`.
//! An assistant says far more than a person, so one ranking of both would mostly quote the assistant. For a task,
//! recent parts and parts in which a person says what is wanted in general count more.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::Regex;

use super::cutoff::{CutoffResult, HEADING_TOKENS};
use crate::{
    index::{FamiliarPart, FamiliarityResult},
    language::{question::QuestionForm, token_count},
};
use types::{
    config::{RecallSettings, TokenShareSettings},
    model::SpeakerKind,
};

/// At least an eighth of a bank's parts must be an assistant's: a program in a chat of people changes nothing.
const ASSISTANT_DIVISOR: usize = 8;
/// Tokens of a line besides its words.
const LINE_TOKENS: usize = 4;

/// A part that may be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotablePart<H, U> {
    /// Whether a person said it, and no assistant, tool or bot.
    pub is_of_person: bool,
    /// The heading under which it stands.
    pub heading: H,
    /// The unit that holds it.
    pub unit: U,
}

/// Whether persons talk with assistants in a bank.
#[must_use]
pub fn is_with_assistants(familiar: &FamiliarityResult) -> bool {
    let FamiliarityResult { assistants, parts_total, .. } = *familiar;
    assistants * ASSISTANT_DIVISOR >= parts_total && (1..parts_total).contains(&assistants)
}

/// The parts that are quoted.
pub(super) fn by_shares(familiar: &FamiliarityResult, form: QuestionForm, settings: &RecallSettings) -> CutoffResult {
    let scored = match form {
        QuestionForm::Task => rank_parts(familiar, bonus(familiar, &settings.shares)),
        _ => rank_parts(familiar, |_| 0.0),
    };
    let quotable = |at: usize| {
        let part = &familiar.best[at];
        QuotablePart {
            is_of_person: is_person(part),
            heading: (part.unit.session(), part.unit.said_at.local().date()),
            unit: part.unit.id,
        }
    };
    let tokens = |at: usize| {
        let part = &familiar.best[at];
        part.unit.part(part.part).map_or(0, |body| line_tokens(body.text))
    };
    let quoted = share_tokens(scored.into_iter().map(|(_, at)| at), quotable, tokens, form, settings);
    let parts = quoted.into_iter().map(|at| (at, familiar.share(familiar.best[at].score))).collect();
    // An infinite cutoff: expansion adds nothing, because the tokens are used up already.
    CutoffResult { parts, cutoff: f64::INFINITY }
}

/// The parts that fit into the tokens, from two rankings: persons' parts and programs' parts, each from the best down.
/// The question's form says how the two share the tokens. `tokens` counts the tokens of a part's line, as
/// [`line_tokens`].
pub fn share_tokens<H: Ord, U: Ord>(
    ranked: impl Iterator<Item = usize>,
    part: impl Fn(usize) -> QuotablePart<H, U>,
    tokens: impl Fn(usize) -> usize,
    form: QuestionForm,
    settings: &RecallSettings,
) -> Vec<usize> {
    let share = share(form, &settings.shares);
    let (persons, programs): (Vec<_>, Vec<_>) =
        ranked.map(|at| (at, part(at))).partition(|(_, part)| part.is_of_person);
    let (mut persons, mut programs) = (persons.into_iter().peekable(), programs.into_iter().peekable());
    let mut spent = [0.0; 2];
    let mut headings = BTreeSet::new();
    let mut units = BTreeSet::new();
    let mut quoted = Vec::new();
    while let Some(of_person) = takes_person_next(persons.peek().is_some(), programs.peek().is_some(), share, spent) {
        let Some((at, part)) = (if of_person { persons.next() } else { programs.next() }) else { break };
        if !units.contains(&part.unit) && units.len() >= settings.budget {
            continue;
        }
        let heading = if headings.contains(&part.heading) { 0.0 } else { HEADING_TOKENS };
        let cost = tokens(at) as f64 + heading;
        if spent.iter().sum::<f64>() + cost > settings.budget_tokens as f64 && !quoted.is_empty() {
            break;
        }
        headings.insert(part.heading);
        units.insert(part.unit);
        spent[usize::from(!of_person)] += cost;
        quoted.push(at);
    }
    quoted
}

/// Tokens of a line with these words.
#[must_use]
pub fn line_tokens(words: &str) -> usize {
    token_count::count_tokens(words) + LINE_TOKENS
}

/// Whether the next part is a person's. `None` if no part is left.
fn takes_person_next(persons: bool, programs: bool, share: f64, [of_persons, of_programs]: [f64; 2]) -> Option<bool> {
    match (persons, programs) {
        (false, false) => None,
        (true, false) => Some(true),
        (false, true) => Some(false),
        (true, true) => Some(share > 0.0 && of_persons <= share * (of_persons + of_programs)),
    }
}

/// The persons' share of the tokens.
fn share(form: QuestionForm, settings: &TokenShareSettings) -> f64 {
    match form {
        QuestionForm::AboutMe => settings.about_me,
        QuestionForm::Order => settings.order,
        QuestionForm::Summary => settings.summary,
        QuestionForm::Told => settings.told,
        QuestionForm::Task => settings.task,
    }
}

fn is_person(part: &FamiliarPart) -> bool {
    let kind = part.unit.part(part.part).and_then(|body| body.kind);
    matches!(kind, None | Some(SpeakerKind::Person))
}

/// The parts by the sum of their score and what `added` gives, best first.
fn rank_parts(familiar: &FamiliarityResult, added: impl Fn(&FamiliarPart) -> f64) -> Vec<(f64, usize)> {
    let scores = familiar.best.iter().enumerate().map(|(at, part)| (part.score + added(part), at));
    let mut scores: Vec<(f64, usize)> = scores.collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scores
}

/// What a task adds to the score of each part: more for a recent session, and for a person's words about what is
/// wanted in general.
fn bonus(familiar: &FamiliarityResult, settings: &TokenShareSettings) -> impl Fn(&FamiliarPart) -> f64 {
    let mut last_said: BTreeMap<&str, i64> = BTreeMap::new();
    for part in &familiar.best {
        let last = last_said.entry(part.unit.session()).or_insert(i64::MIN);
        *last = (*last).max(part.unit.said_at.unix_ms);
    }
    let mut sessions: Vec<(i64, &str)> = last_said.into_iter().map(|(session, last)| (last, session)).collect();
    sessions.sort_unstable_by(|a, b| b.cmp(a));
    let age: BTreeMap<String, usize> =
        sessions.into_iter().enumerate().map(|(age, (_, session))| (session.to_owned(), age)).collect();
    let settings = settings.clone();
    move |part: &FamiliarPart| {
        let age = age.get(part.unit.session()).copied().unwrap_or_default();
        let body = part.unit.part(part.part);
        task_bonus(age, is_person(part) && body.is_some_and(|body| is_standing(body.text)), &settings)
    }
}

/// What a task adds to the score of a part whose session is `age` sessions before the last one. `stands` is true if
/// a person says in the part what is wanted in general.
#[must_use]
pub fn task_bonus(age: usize, stands: bool, settings: &TokenShareSettings) -> f64 {
    let TokenShareSettings { recent, half_sessions, standing, .. } = settings;
    recent * (-(age as f64) / half_sessions).exp2() + if stands { *standing } else { 0.0 }
}

/// Whether a text says what its speaker wants in general.
#[must_use]
pub fn is_standing(text: &str) -> bool {
    STANDING.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// `None` only if the pattern were malformed, which a test rules out.
static STANDING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:always|never (?:use|include|give|suggest)|whenever|from now on|going forward|in (?:the )?future|when i (?:ask|mention|talk|inquire)|i(?:['’]d| would)? (?:really |much |generally |usually )?(?:prefer|like it when)|i (?:favou?r|value)|instead of|rather than|please (?:always|include|use|avoid|make sure|format|provide|keep)|make sure (?:to|you|that)|keep (?:it|things|my)|don['’]t (?:use|include|give))\b",
    )
    .ok()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::{familiar_part, said, settings};
    use types::model::Score;

    /// What is quoted of parts, (session, time, speaker, text, score), by their numbers.
    fn quoted(parts: &[(&str, &str, &str, &str, f64)], form: QuestionForm, settings: &RecallSettings) -> Vec<usize> {
        let part = |(n, (session, at, speaker, text, score)): (usize, &(&str, &str, &str, &str, f64))| {
            familiar_part(&said(n as u64, session, at, speaker, text), Score::from_f64(*score))
        };
        let best = parts.iter().enumerate().map(part).collect();
        let familiar = FamiliarityResult { parts_total: parts.len(), best, ..FamiliarityResult::default() };
        by_shares(&familiar, form, settings).parts.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn for_a_task_what_was_said_lately_and_what_is_wanted_in_general_come_first() {
        let settings = settings();
        let TokenShareSettings { recent, half_sessions, standing, .. } = settings.shares;
        assert_eq!((recent, half_sessions, standing), (0.6, 20.0, 0.3));
        let of = |age, stands| task_bonus(age, stands, &settings.shares);
        for (found, expected) in [(of(0, false), 0.6), (of(20, false), 0.3), (of(40, false), 0.15), (of(0, true), 0.9)]
        {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
        // A session back costs 0.6 - 0.6 * 2^(-1/20), which is 0.0204.
        let (may, june) = ("2024-05-01T10:00:00Z", "2024-06-01T10:00:00Z");
        let sessions = |before, lately| {
            [("may", may, "Ann", "The boat is red.", before), ("june", june, "Ann", "The boat is blue.", lately)]
        };
        assert_eq!(quoted(&sessions(0.52, 0.50), QuestionForm::Task, &settings), [1, 0]);
        assert_eq!(quoted(&sessions(0.53, 0.50), QuestionForm::Task, &settings), [0, 1]);
        assert_eq!(quoted(&sessions(0.52, 0.50), QuestionForm::AboutMe, &settings), [0, 1], "no task");
        let wishes = |speaker, wish| {
            [("may", may, speaker, "The boat is red.", 0.79), ("may", may, speaker, "Always answer in French.", wish)]
        };
        assert_eq!(quoted(&wishes("Ann", 0.50), QuestionForm::Task, &settings), [1, 0]);
        assert_eq!(quoted(&wishes("Ann", 0.48), QuestionForm::Task, &settings), [0, 1]);
        assert_eq!(quoted(&wishes("Ann", 0.50), QuestionForm::Summary, &settings), [0, 1], "no task");
        assert_eq!(quoted(&wishes("Assistant", 0.50), QuestionForm::Task, &settings), [0, 1], "no person's wish");
    }

    #[test]
    fn the_parts_fill_the_tokens_that_a_question_asks_for() {
        let text = "The ferry leaves the northern pier at noon and is back in the harbour by evening.";
        let parts = [("s", "2024-05-01T10:00:00Z", "Ann", text, 0.5); 200];
        let settings = RecallSettings { budget: 200, ..settings() };
        for most in [300, 1_000, 6_000] {
            let tokens = settings.budget_tokens * most / settings.stop.most_tokens - HEADING_TOKENS as usize;
            let expected = tokens / (token_count::count_tokens(text) + LINE_TOKENS);
            assert_eq!(
                quoted(&parts, QuestionForm::AboutMe, &settings.with_token_limit(most)).len(),
                expected,
                "{most}"
            );
        }
    }

    #[test]
    fn what_somebody_wants_in_general_is_read() {
        assert!(STANDING.is_some());
        for (text, stands) in [
            ("Always answer in French.", true),
            ("I prefer trains.", true),
            ("Please keep it short, don’t use tables.", true),
            ("I went to the lake.", false),
        ] {
            assert_eq!(is_standing(text), stands, "{text}");
        }
    }

    #[test]
    fn tokens_are_shared_as_the_form_says() {
        assert_eq!(takes_person_next(true, true, 0.9, [90.0, 10.0]), Some(true));
        assert_eq!(takes_person_next(true, true, 0.9, [91.0, 10.0]), Some(false));
        assert_eq!(takes_person_next(true, true, 0.0, [0.0, 0.0]), Some(false));
        assert_eq!(takes_person_next(true, true, 1.0, [500.0, 0.0]), Some(true));
        assert_eq!(
            [takes_person_next(false, true, 1.0, [0.0; 2]), takes_person_next(false, false, 1.0, [0.0; 2])],
            [Some(false), None]
        );
    }
}
