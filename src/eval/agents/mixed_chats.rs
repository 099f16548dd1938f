//! Conversations that merge the talk of two people with the talk of one of them with an assistant.
//!
//! In: a dialogue of two people and a chat with an assistant, each with its questions. Out: both as one conversation in
//! the order of time, and the same chat alone. Whole sessions of the chat are left out until its assistant's passages
//! have the wanted share of all. A question stays if every turn of its evidence stays.

use std::collections::{BTreeMap, BTreeSet};

use super::chats::{AgentChat, ChatQuestion, ChatTurn};
use memory::extract::passages::{PASSAGE_BYTES, WHOLE_BYTES, cut_passages};

/// The role of an assistant's turns.
const ASSISTANT: &str = "assistant";

/// The chat with only some of its sessions, and the share of the passages of both conversations that its assistant
/// then has: `share`, or a little less. The seed draws the sessions.
pub(super) fn cut_chat(chat: &AgentChat, people: &AgentChat, share: f64, seed: u64) -> (AgentChat, f64) {
    let mut sessions: Vec<usize> = chat.turns.iter().map(|turn| turn.session).collect();
    sessions.dedup();
    fastrand::Rng::with_seed(seed).shuffle(&mut sessions);
    let (mut persons, mut assistants) = (people.turns.iter().map(passages).sum::<usize>(), 0);
    let mut kept = BTreeSet::new();
    for session in sessions {
        let (own, others): (Vec<_>, Vec<_>) =
            chat.turns.iter().filter(|turn| turn.session == session).partition(|turn| turn.role == ASSISTANT);
        let [answered, said] = [own, others].map(|turns| turns.into_iter().map(passages).sum::<usize>());
        if (assistants + answered) as f64 <= share * (persons + said + assistants + answered) as f64 {
            (persons, assistants) = (persons + said, assistants + answered);
            kept.insert(session);
        }
    }
    let order = chat.turns.iter().enumerate().filter(|(_, turn)| kept.contains(&turn.session)).map(|(at, _)| (0, at));
    (arrange(&[(chat, None)], order.collect()), assistants as f64 / (persons + assistants).max(1) as f64)
}

/// Both in one conversation, session by session in the order of their days. The user of the chat is called `user`, and
/// asks its questions.
pub(super) fn merge(people: &AgentChat, chat: &AgentChat, user: &str) -> AgentChat {
    let mut chat = chat.clone();
    chat.turns.iter_mut().filter(|turn| turn.role != ASSISTANT).for_each(|turn| user.clone_into(&mut turn.role));
    let both = [people, &chat];
    let mut order = Vec::new();
    for (of, one) in both.into_iter().enumerate() {
        let mut days = BTreeMap::new();
        for (at, turn) in one.turns.iter().enumerate() {
            order.push((*days.entry(turn.session).or_insert(turn.day), of, at));
        }
    }
    order.sort_unstable();
    let order = order.into_iter().map(|(_, of, at)| (of, at)).collect();
    arrange(&[(people, None), (&chat, Some(user))], order)
}

/// A conversation of these turns, each with the number of its source and its place there, and of the questions whose
/// evidence is among them. A source's questions are asked by the person beside it.
fn arrange(sources: &[(&AgentChat, Option<&str>)], order: Vec<(usize, usize)>) -> AgentChat {
    let names: Vec<&str> = sources.iter().map(|(chat, _)| chat.name.as_str()).collect();
    let mut places: Vec<Vec<Option<usize>>> = sources.iter().map(|(chat, _)| vec![None; chat.turns.len()]).collect();
    let mut turns: Vec<ChatTurn> = Vec::new();
    let (mut last, mut session) = (None, 0);
    for (of, at) in order {
        let Some(turn) = sources.get(of).and_then(|(chat, _)| chat.turns.get(at)) else { continue };
        let own = (of, turn.session);
        session += usize::from(last.replace(own).is_some_and(|last| last != own));
        if let Some(place) = places.get_mut(of).and_then(|places| places.get_mut(at)) {
            *place = Some(turns.len());
        }
        turns.push(ChatTurn { session, ..turn.clone() });
    }
    let before = turns.len();
    let mut questions = Vec::new();
    for ((chat, asker), places) in sources.iter().zip(&places) {
        let place = |turn: &usize| places.get(*turn).copied().flatten();
        questions.extend(chat.questions.iter().filter(|question| question.answerable).filter_map(|question| {
            let evidence = question.evidence.iter().map(place).collect::<Option<Vec<usize>>>()?;
            Some(ChatQuestion { evidence, before, asker: asker.map(str::to_owned), ..question.clone() })
        }));
    }
    AgentChat { name: names.join("+"), turns, questions }
}

/// The passages that the memory makes of a turn.
fn passages(turn: &ChatTurn) -> usize {
    let whole = if turn.role == ASSISTANT { PASSAGE_BYTES } else { WHOLE_BYTES };
    if turn.text.len() <= whole { 1 } else { cut_passages(&turn.text).len() }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn chat(name: &str, turns: &[(usize, &str, i8)], evidence: &[&[usize]]) -> AgentChat {
        let turn = |(session, role, day): &(usize, &str, i8)| ChatTurn {
            session: *session,
            role: (*role).to_owned(),
            day: date(2024, 5, *day),
            text: format!("{role} on day {day}"),
            captions: Vec::new(),
        };
        let question = |evidence: &&[usize]| ChatQuestion {
            kind: "detail".to_owned(),
            text: "What?".to_owned(),
            asker: None,
            evidence: evidence.to_vec(),
            facts: Vec::new(),
            before: 1,
            answerable: true,
        };
        let questions = evidence.iter().map(question).collect();
        AgentChat { name: name.to_owned(), turns: turns.iter().map(turn).collect(), questions }
    }

    fn people() -> AgentChat {
        chat("people", &[(0, "Ann", 2), (0, "Bo", 2), (1, "Ann", 9)], &[&[0, 2]])
    }

    fn assisted() -> AgentChat {
        let turns = [(0, "user", 1), (0, "assistant", 1), (1, "user", 5), (1, "assistant", 5)];
        chat("assisted", &turns, &[&[0], &[1, 3]])
    }

    #[test]
    fn both_stand_in_the_order_of_time_and_questions_keep_their_turns() {
        let merged = merge(&people(), &assisted(), "Bo");
        let turns: Vec<_> = merged.turns.iter().map(|turn| (turn.session, turn.text.as_str())).collect();
        let expected = [
            (0, "user on day 1"),
            (0, "assistant on day 1"),
            (1, "Ann on day 2"),
            (1, "Bo on day 2"),
            (2, "user on day 5"),
            (2, "assistant on day 5"),
            (3, "Ann on day 9"),
        ];
        assert_eq!(turns, expected);
        assert_eq!(merged.turns[0].role, "Bo");
        let asked: Vec<_> =
            merged.questions.iter().map(|q| (q.asker.as_deref(), q.evidence.clone(), q.before)).collect();
        assert_eq!(asked, [(None, vec![2, 6], 7), (Some("Bo"), vec![0], 7), (Some("Bo"), vec![1, 5], 7)]);
    }

    #[test]
    fn a_cut_chat_loses_whole_sessions_and_the_questions_about_them() {
        // With one session, one part of five is the assistant's; with both, two of seven.
        let (cut, share) = cut_chat(&assisted(), &people(), 0.25, 1);
        assert_eq!((cut.turns.len(), share), (2, 0.2));
        assert!(cut.questions.len() < 2 && cut.questions.iter().all(|q| q.evidence == [0]));
        let (all, share) = cut_chat(&assisted(), &people(), 0.5, 1);
        assert_eq!((all.turns.len(), all.questions.len(), share), (4, 2, 2.0 / 7.0));
        assert_eq!(cut_chat(&assisted(), &people(), 0.1, 1).0.turns.len(), 0);
    }
}
