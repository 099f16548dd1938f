//! Which earlier turn a turn answers, if conversations cross.
//!
//! In: a turn, and those before it. Out: the turn that it most likely answers, or none if it begins a conversation.
//! Each choice has features: how far back and how long ago, who speaks, who addresses whom, which words both share, and
//! which conversation the speaker was in. A choice's score is the weighted sum of its features. The highest score wins;
//! among equals, the newest turn wins. The features follow those that Kummerfeld et al. (2019) found useful. They
//! depend little on English: they use a question mark, a few greetings, and common words that do not count as shared.

use std::collections::BTreeSet;

use super::turn_words::TurnWords;

/// How many earlier turns are considered.
pub const REACH: usize = 60;
/// How many features a choice has.
pub const FEATURES: usize = 24;
/// The features of a choice.
pub type AntecedentFeatures = [f64; FEATURES];

/// The weights: `ripplemem-eval conversations DIR --fit` prints them for the annotated logs of a directory. These were
/// fitted on `new-domains`, four channels that are not Ubuntu's.
pub const WEIGHTS: AntecedentFeatures = [
    -1.32, -0.95, -0.32, 1.33, 0.91, 0.25, 2.05, 0.31, 0.89, -1.43, 1.28, 1.07, -1.83, 1.56, -1.13, 4.34, -0.92, 0.81,
    1.41, 1.31, 1.28, -0.93, 1.43, 0.89,
];

/// A turn that was said.
#[derive(Debug, Clone, Copy)]
pub struct ConversationTurn<'a> {
    /// Who spoke, in lower case.
    pub speaker: &'a str,
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// Its words.
    pub words: &'a TurnWords,
    /// The number of its conversation.
    pub conversation: usize,
}

/// Which of the turns `before`, newest first, a turn answers; none if it begins a conversation. The `conversation` of
/// the new turn itself is not used.
#[must_use]
pub fn antecedent(new: &ConversationTurn<'_>, before: &[ConversationTurn<'_>]) -> Option<usize> {
    let score = |features: &AntecedentFeatures| {
        features.iter().zip(&WEIGHTS).map(|(value, weight)| value * weight).sum::<f64>()
    };
    let scores: Vec<f64> = choices(new, before).iter().map(score).collect();
    let mut best = scores.len() - 1;
    for (at, score) in scores.iter().enumerate().rev() {
        if *score >= scores[best] {
            best = at;
        }
    }
    (best < before.len()).then_some(best)
}

/// The features of each choice: one choice per earlier turn, and a last one for "none of them".
#[must_use]
pub fn choices(new: &ConversationTurn<'_>, before: &[ConversationTurn<'_>]) -> Vec<AntecedentFeatures> {
    let me = new.speaker;
    let spoke = |name: &str| before.iter().position(|said| said.speaker == name);
    let addressed = new.words.first.as_deref().filter(|name| *name != me && spoke(name).is_some());
    let names = |words: &TurnWords, name: &str| name.chars().count() > 2 && words.all.contains(name);
    let conversation_of = |name: &str| spoke(name).and_then(|at| before.get(at)).map(|said| said.conversation);
    let (mine, theirs) = (conversation_of(me), addressed.and_then(conversation_of));
    let is = |condition: bool| f64::from(u8::from(condition));

    let (mut speakers, mut conversations) = (BTreeSet::new(), BTreeSet::new());
    let mut was_addressed = false;
    let mut rows = Vec::with_capacity(before.len() + 1);
    for (at, old) in before.iter().enumerate() {
        let words = old.words;
        let is_me = old.speaker == me;
        let is_last_of_speaker = speakers.insert(old.speaker);
        let is_last_of_conversation = conversations.insert(old.conversation);
        let is_addressed = addressed == Some(old.speaker);
        let to = words.first.as_deref().filter(|name| *name != old.speaker && (*name == me || spoke(name).is_some()));
        let is_to_me = to == Some(me) || (!is_me && names(words, me));
        let is_last_to_me = is_to_me && !was_addressed;
        was_addressed |= is_to_me;
        let pause = (1.0 + new.unix_ms.saturating_sub(old.unix_ms).max(0) as f64 / 60_000.0).ln();
        let shared = new.words.topic.intersection(&words.topic).count() as f64;
        let topics = (new.words.topic.len() + words.topic.len()).max(1) as f64;
        rows.push([
            (1.0 + at as f64).ln(),
            is(at == 0),
            is(is_me),
            is(is_me && is_last_of_speaker),
            is(is_me && at == 0),
            is(!is_me && is_last_of_speaker),
            is(is_addressed),
            is(is_addressed && is_last_of_speaker),
            is(is_addressed) * pause,
            is(addressed.is_some() && !is_addressed && !is_me),
            is(!is_addressed && !is_me && names(new.words, old.speaker)),
            is(is_last_to_me),
            is(to.is_some() && !is_to_me && !is_me),
            is(is_me && addressed.is_some() && to == addressed),
            is(is_me && addressed.is_some() && to.is_some() && to != addressed),
            2.0 * shared / topics,
            pause,
            is(words.asks && !is_me && !new.words.asks),
            is(mine == Some(old.conversation)),
            is(theirs == Some(old.conversation)),
            is(is_last_of_conversation),
            0.0,
            0.0,
            0.0,
        ]);
    }
    let mut none = [0.0; FEATURES];
    none[21] = 1.0;
    none[22] = is(new.words.asks || new.words.greets);
    none[23] = is(mine.is_none());
    rows.push(none);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which line answers which. Each line is `speaker> text`, and there is one per minute.
    fn answered(lines: &[&str]) -> Vec<Option<usize>> {
        let said: Vec<(String, TurnWords)> = lines
            .iter()
            .map(|line| line.split_once("> ").unwrap())
            .map(|(speaker, text)| (speaker.to_lowercase(), TurnWords::of(text)))
            .collect();
        let (mut found, mut conversations) = (Vec::new(), Vec::new());
        for (at, (speaker, words)) in said.iter().enumerate() {
            let said = |at: usize, conversation| ConversationTurn {
                speaker: &said[at].0,
                unix_ms: at as i64 * 60_000,
                words: &said[at].1,
                conversation,
            };
            let before: Vec<ConversationTurn<'_>> = (0..at).rev().map(|old| said(old, conversations[old])).collect();
            let new = ConversationTurn { speaker, words, ..said(at, usize::MAX) };
            let taken = antecedent(&new, &before).map(|newer| at - 1 - newer);
            conversations.push(taken.map_or(at, |old| conversations[old]));
            found.push(taken);
        }
        found
    }

    #[test]
    fn conversations_that_cross_are_told_apart() {
        let found = answered(&[
            "Ann> hello, how do I mount a usb stick?",
            "Cy> anyone here with a broken network card?",
            "Bo> Ann: mount /dev/sdb1 /mnt",
            "Dee> Cy: which network card is it?",
            "Ann> Bo: it says permission denied",
            "Cy> Dee: a realtek",
            "Bo> Ann: then use sudo",
        ]);
        assert_eq!(found, [None, None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn a_turn_alone_begins_a_conversation() {
        assert_eq!(answered(&["Ann> bye"]), [None]);
        assert_eq!(
            choices(&ConversationTurn { speaker: "a", unix_ms: 0, words: &TurnWords::of(""), conversation: 0 }, &[])
                .len(),
            1
        );
    }
}
