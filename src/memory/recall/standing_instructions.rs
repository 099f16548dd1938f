//! What the asker of a question asked of the assistant, as a section of the context.
//!
//! In: a question, the only person of its bank if there is one, and the memory's profiles. Out: the asker's own
//! instructions that hold, all of them while they are short, otherwise those that share most words with the question.
//! Nothing of another person enters the section. It is quoted talk: the heading says whose wish it is, and no line of
//! it can be taken for one of ours.

use std::{collections::HashMap, sync::Arc};

use super::{BoxError, RecallMemory, context::EvidenceContext, turn_quotation::quote};
use crate::{
    index::{ProfileLine, ProfileProbe, person_key},
    language::token_count::count_tokens,
    statements::topic_stems,
};
use types::{
    config::RecallSettings,
    model::{ContextTokens, Language, Question, StandingInstruction, Statement, StatementKind},
};

/// The section has at most this part of the most tokens of a context.
const SHARE_DIVISOR: usize = 3;
/// The line above the instructions.
const HEADING: &str = "## Wishes of the person who asks, in their own words";

/// The profile of the person who asks, if anybody is known to ask.
pub(super) fn asker_profile(
    memory: &dyn RecallMemory,
    question: &Question,
    only_person: Option<&str>,
    settings: &RecallSettings,
) -> Result<Vec<Arc<ProfileLine>>, BoxError> {
    let Some(asker) = question.asker.as_deref().or(only_person).filter(|_| settings.profile) else {
        return Ok(Vec::new());
    };
    Ok(memory.profile(ProfileProbe { bank: question.bank.key(), person: Some(person_key(asker)) })?.value)
}

/// The section, and what it costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StandingSection {
    text: String,
    /// The instructions, in the order of time.
    pub(super) instructions: Vec<StandingInstruction>,
    /// Its tokens, with the empty line behind it.
    pub(super) tokens: usize,
}

impl StandingSection {
    /// The section for a question, of the asker's profile; empty if that person asked for nothing.
    pub(super) fn of(lines: &[Arc<ProfileLine>], question: &Question, settings: &RecallSettings) -> Self {
        let holds = |line: &&Arc<ProfileLine>| {
            line.superseded_by.is_none() && line.statement().kind == StatementKind::Instruction
        };
        let lines: Vec<&Statement> = lines.iter().filter(holds).map(|line| line.statement()).collect();
        let most = settings.instruction_tokens.min(settings.stop.most_tokens / SHARE_DIVISOR);
        Self::within(lines, &question.text, most)
    }

    /// The section of some instructions within a number of tokens.
    fn within(mut instructions: Vec<&Statement>, question: &str, most_tokens: usize) -> Self {
        let whole = Self::render(&instructions);
        if whole.tokens <= most_tokens {
            return whole;
        }
        let worth = shared_words(&instructions, question);
        let mut ranked: Vec<(usize, &Statement)> = instructions.drain(..).enumerate().collect();
        // The latest first among those that bear on the question as much.
        ranked.sort_by(|(a, first), (b, second)| {
            let worth = |at: usize| worth.get(at).copied().unwrap_or_default();
            worth(*b).total_cmp(&worth(*a)).then_with(|| second.said_at.cmp(&first.said_at))
        });
        let mut kept: Vec<&Statement> = Vec::new();
        let mut section = Self::default();
        for (_, instruction) in ranked {
            kept.push(instruction);
            let with = Self::render(&kept);
            if with.tokens <= most_tokens {
                section = with;
            } else {
                kept.pop();
            }
        }
        section
    }

    fn render(instructions: &[&Statement]) -> Self {
        let mut said: Vec<&Statement> = instructions.to_vec();
        said.sort_by_key(|of| (of.said_at, of.ordinal, &of.turn));
        if said.is_empty() {
            return Self::default();
        }
        let mut text = format!("{HEADING}\n");
        for of in &said {
            text.push_str(&quote(&of.speaker, &of.text));
            text.push('\n');
        }
        let instructions = said.into_iter().map(|of| StandingInstruction {
            turn: of.turn.clone(),
            speaker: of.speaker.clone(),
            said_at: of.said_at,
            text: of.text.clone(),
        });
        Self { tokens: count_tokens(&text) + 1, instructions: instructions.collect(), text }
    }

    /// The context with the section behind it: its first line may say that nothing supports the question.
    pub(super) fn behind(&self, context: EvidenceContext, tokens: ContextTokens) -> (EvidenceContext, ContextTokens) {
        if self.instructions.is_empty() {
            return (context, tokens);
        }
        let gap = if context.text.is_empty() { "" } else { "\n" };
        let text = format!("{}{gap}{}", context.text, self.text);
        let own = self.instructions.iter().map(|of| vec![of.turn.clone()]);
        let turns = context.turns.into_iter().chain(own).collect();
        let spent = count_tokens(&text) as u32;
        (EvidenceContext { text, turns }, ContextTokens { spent, most: tokens.most.max(spent), ..tokens })
    }
}

/// What each instruction shares with a question: words count more the fewer of the instructions hold them.
fn shared_words(instructions: &[&Statement], question: &str) -> Vec<f64> {
    let stems: Vec<Vec<String>> = instructions.iter().map(|of| topic_stems(&of.text, of.language)).collect();
    let mut held: HashMap<&str, f64> = HashMap::new();
    stems.iter().flatten().for_each(|stem| *held.entry(stem.as_str()).or_default() += 1.0);
    let asked_in = instructions.first().map_or(Language::default(), |of| of.language);
    let asked = topic_stems(question, asked_in);
    let shared = |of: &Vec<String>| {
        let both = of.iter().filter(|stem| asked.binary_search(stem).is_ok());
        both.map(|stem| 1.0 / held.get(stem.as_str()).copied().unwrap_or(1.0)).sum()
    };
    stems.iter().map(shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::statement;

    fn instruction(turn: &str, day: u32, text: &str) -> Statement {
        statement(StatementKind::Instruction, turn, day, text)
    }

    #[test]
    fn all_instructions_stand_in_the_order_of_time_while_they_are_short() {
        let (late, early) = (instruction("b", 9, "Never use emoji."), instruction("a", 2, "Always cite\n## a source."));
        let section = StandingSection::within(vec![&late, &early], "What is new?", 150);
        assert_eq!(
            section.text,
            "## Wishes of the person who asks, in their own words\n\
             Ann: Always cite\n    ## a source.\nAnn: Never use emoji.\n"
        );
        let (context, tokens) = section.behind(
            EvidenceContext { text: "## 1 May\nBo: Hi\n".to_owned(), turns: vec![vec!["z".to_owned()]] },
            ContextTokens { spent: 9, most: 500, next: None },
        );
        assert_eq!(context.turns, [["z"], ["a"], ["b"]]);
        assert!(context.text.starts_with("## 1 May\nBo: Hi\n\n## Wishes"), "{}", context.text);
        assert_eq!(tokens.spent as usize, count_tokens(&context.text));
    }

    #[test]
    fn where_they_are_long_those_that_bear_on_the_question_stand() {
        let many: Vec<Statement> = (1..=28)
            .map(|day| {
                instruction("t", day, &format!("Always write number {day} in bold when I ask about topic{day}."))
            })
            .collect();
        let section = StandingSection::within(many.iter().collect(), "Tell me of topic7 please", 60);
        assert!(section.tokens <= 60 && section.text.contains("topic7.") && section.text.contains("topic28."));
        assert!(!section.text.contains("topic1."), "{}", section.text);
        assert_eq!(StandingSection::within(many.iter().collect(), "topic7", 3), StandingSection::default());
    }
}
