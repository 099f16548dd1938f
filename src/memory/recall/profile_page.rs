//! A profile as a page: lines of the memory, chosen and as text.
//!
//! In: lines of a bank, its latest sessions if they are asked for, which kinds are asked for, the moment that says which
//! plans are open, and the most tokens. Out: the lines and sessions with their text, in the form of an answer. What was superseded stands only with what superseded it, both
//! with their days. Nothing that was said can be taken for a heading or a line of ours ([`super::turn_quotation`]).

use std::cmp::Reverse;
use std::sync::Arc;

use super::{
    context::day_name,
    turn_quotation::{one_line, quote},
};
use crate::{index::ProfileLine, language::token_count::count_tokens};
use types::model::{EventTime, LaterStatement, LatestSession, StatedLine, Statement, StatementKind};

/// Once this number of lines did not fit, the rest are left out uncounted: a page costs what it shows, not what the
/// bank holds.
const MAX_MISSES: usize = 32;
/// Sessions have at most this part of the tokens.
const SESSION_SHARE_DIVISOR: usize = 4;

/// Which lines of a profile are shown.
#[derive(Debug, Clone)]
pub struct ProfileChoice {
    /// Only these kinds; all if there are none.
    pub kinds: Vec<StatementKind>,
    /// Whether lines that were superseded are shown, and plans whose time has passed.
    pub past: bool,
    /// The moment after which a plan is open.
    pub now: EventTime,
    /// The most tokens of the text.
    pub most_tokens: usize,
}

/// The lines of a profile that fit, their text, its tokens, and how many lines did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfilePage {
    /// The lines.
    pub lines: Vec<StatedLine>,
    /// The sessions.
    pub sessions: Vec<LatestSession>,
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// Lines that did not fit.
    pub left_out: usize,
}

/// The page of some lines, with the sessions behind them that fit into their share of the tokens.
#[must_use]
pub fn profile_page(
    lines: &[Arc<ProfileLine>],
    mut sessions: Vec<LatestSession>,
    choice: &ProfileChoice,
) -> ProfilePage {
    let mut listed = session_list(&sessions);
    while count_tokens(&listed) > choice.most_tokens / SESSION_SHARE_DIVISOR && sessions.pop().is_some() {
        listed = session_list(&sessions);
    }
    // The empty line between the two is one token at most.
    let most_tokens = choice.most_tokens.saturating_sub(count_tokens(&listed) + usize::from(!listed.is_empty()));
    let is_shown = |line: &&Arc<ProfileLine>| {
        let is_asked = choice.kinds.is_empty() || choice.kinds.contains(&line.statement().kind);
        is_asked && (choice.past || line.superseded_by.is_none() && is_open(line, choice.now) != Some(false))
    };
    let mut shown: Vec<&Arc<ProfileLine>> = lines.iter().filter(is_shown).collect();
    shown.sort_by(|one, other| place_of(one).cmp(&place_of(other)));
    let mut page = ProfilePage::default();
    let mut kind = None;
    for (at, line) in shown.iter().enumerate() {
        if page.left_out >= MAX_MISSES {
            page.left_out += shown.len() - at;
            break;
        }
        let line = stated_line(line, choice.now);
        let mut more = String::new();
        if kind != Some(line.kind) {
            let gap = if page.text.is_empty() { "" } else { "\n" };
            more.push_str(&format!("{gap}## {}\n", heading(line.kind)));
        }
        more.push_str(&quoted_line(&line));
        let tokens = count_tokens(&more);
        if page.tokens + tokens > most_tokens {
            page.left_out += 1;
            continue;
        }
        kind = Some(line.kind);
        page.tokens += tokens;
        page.text.push_str(&more);
        page.lines.push(line);
    }
    if !listed.is_empty() {
        let gap = if page.text.is_empty() { "" } else { "\n" };
        page.text.push_str(&format!("{gap}{listed}"));
    }
    page.sessions = sessions;
    page.tokens = count_tokens(&page.text);
    page
}

/// `[2 May 2024, 12 turns] NAME: TITLE`, or the first words with who said them.
fn session_list(sessions: &[LatestSession]) -> String {
    let mut out = String::new();
    for of in sessions {
        if out.is_empty() {
            out.push_str("## Latest sessions\n");
        }
        let quoted = match (&of.title, &of.begins) {
            (Some(title), _) => quote(&of.session, &one_line(title)),
            (None, Some(begins)) => quote(&begins.speaker, &begins.text),
            (None, None) => quote(&of.session, ""),
        };
        let (day, many) = (day_name(of.last.local().date()), if of.turns == 1 { "" } else { "s" });
        out.push_str(&format!("[{day}, {} turn{many}] {}\n", of.turns, quoted.trim_end()));
    }
    out
}

fn heading(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Instruction => "Asked of the assistant",
        StatementKind::Preference => "Preferences",
        StatementKind::Fact => "Facts",
        StatementKind::Plan => "Plans",
    }
}

/// `[2 May 2024] Ann: words`; what was superseded is followed by what superseded it.
fn quoted_line(line: &StatedLine) -> String {
    let day = |at: EventTime| day_name(at.local().date());
    let since = if day(line.since) == day(line.said_at) { String::new() } else { format!("{} to ", day(line.since)) };
    let mut out = format!("[{since}{}] {}\n", day(line.said_at), quote(&line.speaker, &line.text));
    if let Some(later) = &line.superseded_by {
        out.push_str(&format!("[{}, instead] {}\n", day(later.said_at), quote(&line.speaker, &later.text)));
    }
    out
}

/// Where a line stands on a page: by kind, what holds first, the latest first.
fn place_of(line: &ProfileLine) -> (StatementKind, bool, Reverse<EventTime>, &str) {
    let Statement { kind, said_at, text, .. } = line.statement();
    (*kind, line.superseded_by.is_some(), Reverse(*said_at), text)
}

/// Of a plan, whether it holds and its time has not passed.
fn is_open(line: &ProfileLine, now: EventTime) -> Option<bool> {
    let Statement { kind, time, .. } = line.statement();
    let is_plan = *kind == StatementKind::Plan;
    is_plan.then(|| line.superseded_by.is_none() && time.is_none_or(|time| time.end_ms >= now.unix_ms))
}

fn stated_line(line: &ProfileLine, now: EventTime) -> StatedLine {
    let Statement { kind, speaker, subject, relation, object, text, negated, said_at, time, .. } = line.statement();
    let superseded_by = line.superseded_by.as_ref().map(|later| LaterStatement {
        turn: later.statement.turn.clone(),
        said_at: later.statement.said_at,
        text: later.statement.text.clone(),
    });
    StatedLine {
        kind: *kind,
        speaker: speaker.clone(),
        subject: subject.clone(),
        relation: relation.clone(),
        object: object.clone(),
        text: text.clone(),
        negated: *negated,
        said_at: *said_at,
        since: line.since(),
        turns: line.turns().into_iter().map(str::to_owned).collect(),
        time: *time,
        open: is_open(line, now),
        superseded_by,
    }
}
