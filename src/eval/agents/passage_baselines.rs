//! What people build instead: passages ranked by meaning, by words, and by both.
//!
//! In: chats and the embedder of the pipeline. Out: for each way to cut turns and each way to rank, what is quoted for
//! each question at a mean number of tokens. Each question has the same cap, chosen so that the mean is that number.
//! The tokens include a heading for each session and a label for each turn. Never uses code of recollection.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    chats::AgentChat,
    passages::{ChatPassage, PassageSplit},
    result::AgentQuote,
};
use crate::{
    EvalError,
    comparisons::baselines::{
        bm25,
        corpus::{BaselineQuery, dot, ranked},
        fusion::fused,
    },
};
use memory::index::TermAnalyzer;
use models::embed::{self, EmbedError, Embedder};
use pipeline::Progress;
use types::{config::Pipeline, model::SpannedText};

/// Tokens of the heading of a session.
const HEADING_TOKENS: usize = 14;
/// Tokens of the speaker before a turn.
const LABEL_TOKENS: usize = 3;
/// The maximum number of passages of a ranking that are quoted.
const MAX: usize = 400;
/// The maximum number of letters of a passage that are embedded.
const EMBEDDED_LETTERS: usize = 2_000;
/// The number of passages embedded at once.
const AT_ONCE: usize = 128;
/// How often the range of the cap is halved.
const HALVINGS: usize = 20;

/// A way to rank passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassageRanking {
    Dense,
    Bm25,
    Fusion,
}

impl PassageRanking {
    pub(super) const ALL: [Self; 3] = [Self::Dense, Self::Bm25, Self::Fusion];

    /// Its name in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Bm25 => "bm25",
            Self::Fusion => "rank-fusion",
        }
    }
}

/// What a rival quotes for all questions.
pub(super) struct PassageBaseline {
    pub(super) ranking: PassageRanking,
    pub(super) split: PassageSplit,
    /// The maximum number of tokens for a question.
    pub(super) cap: f64,
    /// For each chat and question, what is quoted and its tokens.
    pub(super) quoted: Vec<(usize, usize, Vec<AgentQuote>, usize)>,
}

/// Asks every rival the questions that have evidence.
///
/// # Errors
/// [`EvalError`] when the model fails.
pub(super) fn rivals(
    chats: &[AgentChat],
    pipeline: &Pipeline,
    mean_tokens: f64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<PassageBaseline>, EvalError> {
    let mut embedder = embed::open(&pipeline.embed, &pipeline.model())?;
    let mut words = TermAnalyzer::default();
    let mut found = Vec::new();
    for split in PassageSplit::ALL {
        let shelves: Vec<PassageIndex<'_>> =
            chats.iter().map(|chat| PassageIndex::of(chat, split.of(chat), &mut words)).collect();
        let (mut done, total) = (0, shelves.iter().map(|shelf| shelf.passages.len() as u64).sum());
        // By ranking, then by chat and question.
        let mut orders: [Vec<(usize, usize, Vec<usize>)>; 3] = Default::default();
        for (number, shelf) in shelves.iter().enumerate() {
            let vectors = vectors(&shelf.passages, &mut *embedder, &mut |embedded| {
                done += embedded;
                progress(Progress { doing: "embedding rivals", done, total: Some(total), unit: "passages" });
            })?;
            for (at, question) in shelf.chat.questions.iter().enumerate().filter(|(_, q)| !q.evidence.is_empty()) {
                let vector = embedder.embed_query(&question.text)?.floats().into_owned();
                let query = BaselineQuery::of(vector, &question.text, &mut words);
                let ranked = shelf.rank(&query, &vectors, question.before);
                for (orders, order) in orders.iter_mut().zip(ranked) {
                    orders.push((number, at, order));
                }
            }
        }
        for (ranking, orders) in PassageRanking::ALL.into_iter().zip(orders) {
            found.push(quote(ranking, split, &shelves, &orders, mean_tokens));
        }
    }
    Ok(found)
}

/// A chat's passages.
struct PassageIndex<'c> {
    chat: &'c AgentChat,
    passages: Vec<ChatPassage>,
    stems: Vec<BTreeMap<u64, f64>>,
}

impl<'c> PassageIndex<'c> {
    fn of(chat: &'c AgentChat, passages: Vec<ChatPassage>, words: &mut TermAnalyzer) -> Self {
        let mut bag = |p: &ChatPassage| words.count(&p.text).terms().map(|(stem, n)| (stem, f64::from(n))).collect();
        let stems = passages.iter().map(&mut bag).collect();
        Self { chat, passages, stems }
    }

    /// The passages that were said before a question, in the order of each ranking.
    fn rank(&self, query: &BaselineQuery, vectors: &[Vec<f32>], before: usize) -> [Vec<usize>; 3] {
        let open = self.passages.partition_point(|passage| passage.turn < before);
        let cosines: Vec<f64> = vectors.iter().take(open).map(|v| dot(v, &query.vector)).collect();
        let bags: Vec<&BTreeMap<u64, f64>> = self.stems.iter().take(open).collect();
        let (dense, words) = (ranked(&cosines), ranked(&bm25::of_bags(&bags, query)));
        let both = fused(open, &[dense.clone(), words.clone()]);
        [dense, words, both].map(|mut order| {
            order.truncate(MAX);
            order
        })
    }

    /// The part of a ranking that fits under a cap, from its top to the first passage that does not fit; and its
    /// tokens.
    fn fitting<'o>(&self, order: &'o [usize], cap: f64) -> (&'o [usize], usize) {
        let (mut turns, mut sessions) = (BTreeSet::new(), BTreeSet::new());
        let mut tokens = 0;
        for (fits, at) in order.iter().enumerate() {
            let Some(passage) = self.passages.get(*at) else { continue };
            let session = self.chat.turns.get(passage.turn).map(|turn| turn.session);
            let mut with = tokens + passage.tokens;
            with += if turns.insert(passage.turn) { LABEL_TOKENS } else { 0 };
            with += if sessions.insert(session) { HEADING_TOKENS } else { 0 };
            if with as f64 > cap {
                return (order.get(..fits).unwrap_or_default(), tokens);
            }
            tokens = with;
        }
        (order, tokens)
    }
}

/// What a rival quotes under the cap at which its contexts have the mean tokens.
fn quote(
    ranking: PassageRanking,
    split: PassageSplit,
    shelves: &[PassageIndex<'_>],
    orders: &[(usize, usize, Vec<usize>)],
    mean_tokens: f64,
) -> PassageBaseline {
    let fitted = |cap: f64| {
        orders.iter().filter_map(move |(chat, question, order)| {
            let shelf = shelves.get(*chat)?;
            let (fits, tokens) = shelf.fitting(order, cap);
            let passages = fits.iter().filter_map(move |at| shelf.passages.get(*at));
            Some((*chat, *question, passages, tokens))
        })
    };
    let mean = |cap: f64| fitted(cap).map(|(.., tokens)| tokens as f64).sum::<f64>() / orders.len().max(1) as f64;
    let (mut least, mut most) = (0.4 * mean_tokens, 3.0 * mean_tokens);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(least, most);
        if mean(middle) < mean_tokens { least = middle } else { most = middle }
    }
    let cap = most.round();
    let of = |passage: &ChatPassage| AgentQuote { turn: passage.turn, text: passage.text.clone() };
    let quoted = fitted(cap)
        .map(|(chat, question, passages, tokens)| (chat, question, passages.map(of).collect(), tokens))
        .collect();
    PassageBaseline { ranking, split, cap, quoted }
}

fn vectors(
    passages: &[ChatPassage],
    embedder: &mut dyn Embedder,
    embedded: &mut dyn FnMut(u64),
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let text = |passage: &ChatPassage| SpannedText {
        text: passage.text.chars().take(EMBEDDED_LETTERS).collect(),
        spans: Vec::new(),
    };
    let mut found = Vec::with_capacity(passages.len());
    for some in passages.chunks(AT_ONCE) {
        let texts: Vec<SpannedText> = some.iter().map(text).collect();
        found.extend(embedder.embed(&texts)?.into_iter().map(|vectors| vectors.whole.floats().into_owned()));
        embedded(some.len() as u64);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::chats::{ChatQuestion, ChatTurn};

    fn chat() -> AgentChat {
        let turn = |session| ChatTurn {
            session,
            role: "user".to_owned(),
            day: jiff::civil::date(2024, 3, 3),
            text: "kettle".to_owned(),
            captions: Vec::new(),
        };
        let question = ChatQuestion {
            kind: "query".to_owned(),
            text: "kettle".to_owned(),
            asker: None,
            evidence: vec![0],
            facts: Vec::new(),
            before: 3,
            answerable: true,
        };
        AgentChat { name: "1".to_owned(), turns: vec![turn(0), turn(0), turn(1), turn(2)], questions: vec![question] }
    }

    /// Two passages of each turn, of ten tokens each.
    fn passages() -> Vec<ChatPassage> {
        (0..8).map(|at| ChatPassage { turn: at / 2, text: format!("kettle {at}"), tokens: 10 }).collect()
    }

    #[test]
    fn headings_and_labels_are_paid_for_once() {
        let chat = chat();
        let shelf = PassageIndex::of(&chat, passages(), &mut TermAnalyzer::default());
        // 10 + 3 + 14, then 10 in the same turn, 10 + 3 in the same session, 10 + 3 + 14 in another.
        assert_eq!(shelf.fitting(&[0, 1, 2, 4], 77.0), (&[0, 1, 2, 4][..], 77));
        assert_eq!(shelf.fitting(&[0, 1, 2, 4], 76.0), (&[0, 1, 2][..], 50));
        assert_eq!(shelf.fitting(&[0], 26.0), (&[][..], 0));
    }

    #[test]
    fn later_turns_are_not_ranked_and_the_cap_gives_the_mean() {
        let chat = chat();
        let shelf = PassageIndex::of(&chat, passages(), &mut TermAnalyzer::default());
        let mut words = TermAnalyzer::default();
        let query = BaselineQuery::of(vec![1.0], "kettle", &mut words);
        let vectors: Vec<Vec<f32>> = (0..8u8).map(|n| vec![f32::from(n)]).collect();
        let [dense, bm25, both] = shelf.rank(&query, &vectors, 3);
        assert_eq!(dense, [5, 4, 3, 2, 1, 0], "the last two are of a turn after the question");
        assert_eq!((bm25.len(), both.len()), (6, 6));
        let rival = quote(PassageRanking::Dense, PassageSplit::Messages, &[shelf], &[(0, 0, dense)], 50.0);
        let [(0, 0, quoted, tokens)] = &rival.quoted[..] else { panic!("{:?}", rival.quoted) };
        assert_eq!((quoted.len(), *tokens), (3, 64), "27, 10, 27: the least that reaches the mean");
    }
}
