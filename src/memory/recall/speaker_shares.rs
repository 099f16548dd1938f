//! Which parts are quoted, by whose words a question asks for (decision 51).
//!
//! In: the most familiar parts of the bank, and the question's form. Out: the parts that an answer quotes. A question
//! in the third person is asked of all parts together, from the best down to the cutoff. Where persons talk with
//! assistants, the other forms say how what persons said and what programs said share the tokens: an assistant says far
//! more than a person, so one ranking of both would mostly quote the assistant. For a task, recent parts count more, and
//! parts in which a person says what is wanted in general or the asker states a preference. The less of a bank is an
//! assistant's, the fewer tokens are shared, so that no single turn changes what is quoted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;

use super::{
    cutoff::{CutoffResult, HEADING_TOKENS, above_cutoff},
    stated_preferences::StatedPreferences,
};
use crate::{
    index::{FamiliarPart, FamiliarityResult, ProfileLine},
    language::{
        question::{ParsedQuestion, QuestionForm, QuestionType},
        token_count,
    },
};
use types::{
    config::{RecallSettings, TokenShareSettings},
    model::{AskedForm, AskedFormName, SpeakerKind},
};

/// If at least this share of a bank's parts is an assistant's, all tokens are shared.
const SHARED_FROM: f64 = 0.25;
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

/// The part of the tokens that persons and assistants share, 0 to 1: 0 for a question in the third person, and in a
/// bank where only persons speak, or only assistants.
#[must_use]
pub fn shared_part(familiar: &FamiliarityResult, form: QuestionForm) -> f64 {
    let FamiliarityResult { assistants, parts_total, .. } = *familiar;
    if form == QuestionForm::General || !(1..parts_total).contains(&assistants) {
        return 0.0;
    }
    (assistants as f64 / parts_total as f64 / SHARED_FROM).min(1.0)
}

/// What the trace says of the question's form; `None` where no assistant speaks.
pub(super) fn asked_form(question: &ParsedQuestion<'_>, familiar: &FamiliarityResult) -> Option<AskedForm> {
    let form = match question.form() {
        QuestionForm::AboutMe => AskedFormName::AboutMe,
        QuestionForm::Order => AskedFormName::Order,
        QuestionForm::Summary => AskedFormName::Summary,
        QuestionForm::Told => AskedFormName::Told,
        QuestionForm::Task => AskedFormName::Task,
        QuestionForm::General => AskedFormName::General,
    };
    let certain = form != AskedFormName::Task || question.is_request();
    (familiar.assistants > 0).then(|| AskedForm { form, certain, shared: shared_part(familiar, question.form()) })
}

/// The settings with the tokens for a question of this form and type.
#[must_use]
pub fn with_form_tokens(form: QuestionForm, question_type: QuestionType, settings: &RecallSettings) -> RecallSettings {
    let shares = &settings.shares;
    let part = match (form, question_type) {
        (QuestionForm::AboutMe, QuestionType::Time) => shares.time_tokens,
        // A count is gathered from several parts.
        (QuestionForm::AboutMe, QuestionType::Single) | (QuestionForm::Told, _) => shares.fact_tokens,
        (QuestionForm::Order | QuestionForm::Summary, _) => shares.overview_tokens,
        _ => 1.0,
    };
    let budget_tokens = ((settings.budget_tokens as f64 * part) as usize).max(1);
    RecallSettings { budget_tokens, ..settings.clone() }
}

/// The parts that are quoted, and whether any were chosen by shares.
pub(super) fn choose_parts(
    familiar: &FamiliarityResult,
    question: &ParsedQuestion<'_>,
    profile: &[Arc<ProfileLine>],
    settings: &RecallSettings,
) -> (CutoffResult, bool) {
    let settings = settings.of_bank(familiar.tokens);
    let (form, question_type) = (question.form(), question.question_type());
    let shared = shared_part(familiar, form);
    if shared <= 0.0 {
        return (above_cutoff(familiar, question_type, &settings), false);
    }
    let mut within = with_form_tokens(form, question_type, &settings);
    within.budget_tokens = ((within.budget_tokens as f64 * shared) as usize).max(1);
    let by_shares = by_shares(familiar, form, profile, &within);
    if shared >= 1.0 {
        return (by_shares, true);
    }
    let above = above_cutoff(familiar, question_type, &settings);
    (join_parts(familiar, by_shares, above, 1.0 - shared), true)
}

/// The parts of both choices: all of the first, and of the second the best with this share of its tokens.
fn join_parts(familiar: &FamiliarityResult, first: CutoffResult, second: CutoffResult, share: f64) -> CutoffResult {
    let tokens =
        |at: usize| familiar.best.get(at).and_then(|part| part.unit.part(part.part)).map_or(0, |b| line_tokens(b.text));
    let most = share * second.parts.iter().map(|(at, _)| tokens(*at)).sum::<usize>() as f64;
    let mut parts = first.parts;
    let chosen: BTreeSet<usize> = parts.iter().map(|(at, _)| *at).collect();
    let mut spent = 0.0;
    for (at, of_best) in second.parts {
        spent += tokens(at) as f64;
        if spent > most {
            break;
        }
        if !chosen.contains(&at) {
            parts.push((at, of_best));
        }
    }
    CutoffResult { parts, cutoff: second.cutoff }
}

/// The parts that are quoted where all tokens are shared.
fn by_shares(
    familiar: &FamiliarityResult,
    form: QuestionForm,
    profile: &[Arc<ProfileLine>],
    settings: &RecallSettings,
) -> CutoffResult {
    let scored = match form {
        QuestionForm::Task => rank_parts(familiar, bonus(familiar, StatedPreferences::of(profile), &settings.shares)),
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
        QuestionForm::Task | QuestionForm::General => settings.task,
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

/// What a task adds to the score of each part: more for a recent session, for a person's words about what is wanted in
/// general, and for what the asker prefers.
fn bonus(
    familiar: &FamiliarityResult,
    preferences: StatedPreferences,
    settings: &TokenShareSettings,
) -> impl Fn(&FamiliarPart) -> f64 {
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
        let wishes = PartWishes {
            stands: is_person(part) && body.is_some_and(|body| is_standing(body.text)),
            prefers: body.is_some_and(|body| preferences.are_in(&body)),
        };
        task_bonus(age, wishes, &settings)
    }
}

/// What a part says of what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartWishes {
    /// Whether a person says in it what is wanted in general.
    pub stands: bool,
    /// Whether the asker states a preference in it that holds.
    pub prefers: bool,
}

/// What a task adds to the score of a part whose session is `age` sessions before the last one.
#[must_use]
pub fn task_bonus(age: usize, wishes: PartWishes, settings: &TokenShareSettings) -> f64 {
    let TokenShareSettings { recent, half_sessions, standing, preferred, .. } = settings;
    let of = |is_said: bool, worth: f64| if is_said { worth } else { 0.0 };
    recent * (-(age as f64) / half_sessions).exp2() + of(wishes.stands, *standing) + of(wishes.prefers, *preferred)
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
    use crate::recall::{
        question_cues::parse_question,
        tests::{familiar_part, said, settings},
    };
    use types::model::{Bank, Question, Score};

    /// What is quoted of parts, (session, time, speaker, text, score), by their numbers.
    fn quoted(parts: &[(&str, &str, &str, &str, f64)], form: QuestionForm, settings: &RecallSettings) -> Vec<usize> {
        let part = |(n, (session, at, speaker, text, score)): (usize, &(&str, &str, &str, &str, f64))| {
            familiar_part(&said(n as u64, session, at, speaker, text), Score::from_f64(*score))
        };
        let best = parts.iter().enumerate().map(part).collect();
        let familiar = FamiliarityResult { parts_total: parts.len(), best, ..FamiliarityResult::default() };
        by_shares(&familiar, form, &[], settings).parts.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn for_a_task_what_was_said_lately_and_what_is_wanted_in_general_come_first() {
        let settings = settings();
        let TokenShareSettings { recent, half_sessions, standing, .. } = settings.shares;
        assert_eq!((recent, half_sessions, standing), (0.6, 20.0, 0.3));
        let of = |age, stands| task_bonus(age, PartWishes { stands, prefers: false }, &settings.shares);
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
        let prefers = |prefers| task_bonus(40, PartWishes { stands: false, prefers }, &settings.shares);
        assert!((prefers(true) - prefers(false) - 0.6).abs() < 1e-12);
    }

    /// Parts of `persons` persons' turns and `assistants` of an assistant, in the order of their scores.
    fn mixed(persons: usize, assistants: usize) -> FamiliarityResult {
        let text = "The ferry leaves the northern pier at noon and is back in the harbour by evening.";
        let part = |at: usize, speaker: &str| {
            let score = 1.0 - at as f64 / 200.0;
            familiar_part(&said(at as u64, "s", "2024-05-01T10:00:00Z", speaker, text), Score::from_f64(score))
        };
        let mut best: Vec<FamiliarPart> = (0..persons).map(|at| part(2 * at, "Ann")).collect();
        best.extend((0..assistants).map(|at| part(2 * at + 1, "Assistant")));
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        let parts_total = best.len();
        FamiliarityResult { parts_total, best, assistants, tokens: 1e6, zero: 0.0, ..FamiliarityResult::default() }
    }

    fn chosen(familiar: &FamiliarityResult, text: &str) -> BTreeSet<u64> {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let read = parse_question(&question).unwrap();
        let (CutoffResult { parts, .. }, _) = choose_parts(familiar, &read, &[], &settings());
        parts.into_iter().map(|(at, _)| familiar.best[at].unit.id.0).collect()
    }

    #[test]
    fn one_more_turn_of_an_assistant_changes_little_of_what_is_quoted() {
        for text in ["When did I take the ferry?", "Write me a plan for the ferry.", "When does the ferry leave?"] {
            let mut before = chosen(&mixed(90, 0), text);
            for assistants in 1..90 {
                let now = chosen(&mixed(90, assistants), text);
                let changed = now.symmetric_difference(&before).count();
                assert!(changed <= 6, "{text} {assistants}: {changed} of {} changed", now.len());
                before = now;
            }
        }
    }

    #[test]
    fn a_question_in_the_third_person_is_asked_of_all_parts_together() {
        let familiar = mixed(40, 60);
        assert_eq!(shared_part(&familiar, QuestionForm::General), 0.0);
        assert_eq!(shared_part(&familiar, QuestionForm::AboutMe), 1.0);
        assert_eq!(shared_part(&mixed(90, 10), QuestionForm::AboutMe), 0.4);
        assert_eq!(shared_part(&mixed(0, 10), QuestionForm::AboutMe), 0.0, "only an assistant speaks");
        let quoted = chosen(&familiar, "When does the ferry leave?");
        let best: BTreeSet<u64> = familiar.best.iter().take(quoted.len()).map(|part| part.unit.id.0).collect();
        assert_eq!(quoted, best);
        let of_me = chosen(&familiar, "Where did I take the ferry?");
        assert!(of_me.iter().filter(|id| *id % 2 == 0).count() * 10 >= of_me.len() * 8, "{of_me:?}");
    }

    #[test]
    fn a_fact_has_fewer_tokens_than_a_summary_and_a_small_bank_fewer_than_a_large_one() {
        let settings = settings();
        let of = |form, question_type| with_form_tokens(form, question_type, &settings).budget_tokens;
        use QuestionForm::{AboutMe, Summary, Task, Told};
        assert_eq!(of(AboutMe, QuestionType::Time), 736);
        assert_eq!([of(AboutMe, QuestionType::Single), of(Told, QuestionType::List)], [1_104; 2]);
        assert_eq!([of(AboutMe, QuestionType::Count), of(Task, QuestionType::Single)], [1_472; 2]);
        assert_eq!(of(Summary, QuestionType::Inference), 1_766);
        let small = settings.of_bank(settings.familiarity.scale_tokens as f64 / 4.0);
        assert_eq!((small.budget_tokens, small.stop.most_tokens), (736, 1_500));
        assert_eq!(settings.of_bank(1e9), settings);
        assert_eq!(settings.of_bank(1.0).stop.most_tokens, settings.stop.least_tokens);
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
