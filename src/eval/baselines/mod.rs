//! Other retrievers over the same memory, in the same run.
//!
//! In: the records of the memory log and the questions. Out: a row for each rival, over
//! turns and over our units, at the same number of units and at the same mean tokens. They
//! get the vectors that the memory keeps, and their contexts are rendered, counted and
//! scored by the functions that ours are.

use std::collections::BTreeSet;

use self::corpus::{Corpus, Item, Query};
use super::{
    bench::{Bench, EvalError, question, share},
    dataset::Asked,
    memory_contents::Remembered,
    result::{Budget, Row},
    score::{Comparable, Scored, Shown, figures, figures_by},
    tokens,
};
use crate::{embed, memory::Words, pipeline::Progress, recall};

mod bm25;
mod corpus;
mod dense;
mod familiarity;
mod fusion;
mod mixture;
mod sessions;

/// Items of a ranking that are looked at when a budget of tokens is filled.
const LONGEST: usize = 400;

/// A retriever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rival {
    Dense,
    Bm25,
    Fusion,
    Mixture,
    Familiarity,
    Sessions,
    Everything,
}

impl Rival {
    const ALL: [Self; 7] =
        [Self::Dense, Self::Bm25, Self::Fusion, Self::Mixture, Self::Familiarity, Self::Sessions, Self::Everything];

    fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Bm25 => "bm25",
            Self::Fusion => "rank-fusion",
            Self::Mixture => "flat-mixture",
            Self::Familiarity => "familiarity",
            Self::Sessions => "whole-sessions",
            Self::Everything => "full-context",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Dense => "best cosine",
            Self::Bm25 => "BM25, k1 1.2, b 0.75, English stems (Robertson and Zaragoza 2009)",
            Self::Fusion => "reciprocal rank fusion of dense and BM25, k = 60 (Cormack and others 2009)",
            Self::Mixture => {
                "1.25 dense with the pair before + 0.5 window BM25, + 0.35 neighbours, + 0.3 best three of the session \
                 (our flat baseline)"
            }
            Self::Familiarity => {
                "mean and entropy of the best cosines choose the top K, or clusters mixed with the question \
                 (in the manner of RF-Mem, Zhang and others 2026)"
            }
            Self::Sessions => "whole sessions by nearest item and shared words (in the manner of MemPalace)",
            Self::Everything => "the whole dialogue: the ceiling, and what it costs",
        }
    }

    fn rank(self, corpus: &Corpus, query: &Query, most: usize) -> Vec<usize> {
        match self {
            Self::Dense => dense::rank(corpus, query),
            Self::Bm25 => bm25::rank(corpus, query),
            Self::Fusion => fusion::rank(corpus, query),
            Self::Mixture => mixture::rank(corpus, query),
            Self::Familiarity => familiarity::rank(corpus, query, most),
            Self::Sessions => sessions::rank(corpus, query),
            Self::Everything => (0..corpus.items.len()).collect(),
        }
    }

    /// The budgets that it is given.
    fn budgets(self, units: usize, tokens: usize) -> Vec<Budget> {
        match self {
            Self::Everything => vec![Budget::Everything],
            Self::Familiarity => vec![Budget::Matched, Budget::Tokens(tokens)],
            _ => vec![Budget::Units(units), Budget::Tokens(tokens)],
        }
    }
}

/// Every rival's rows.
pub(crate) fn rows(
    bench: &Bench,
    remembered: &Remembered,
    ours: &[Scored],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Row>, EvalError> {
    let questions = &bench.dataset.questions;
    let counted = figures(questions.iter().zip(ours).filter(|(q, _)| q.counts()).map(|(_, s)| s));
    let mean_tokens = counted.context_tokens.unwrap_or_default().round() as usize;
    let mut words = Words::default();
    let mut embedder = embed::open(&bench.pipeline.embed, &bench.pipeline.model())?;
    let mut queries = Vec::with_capacity(questions.len());
    for asked in questions {
        // What recollection embeds.
        let text = recall::cues(&question(asked)).map_or_else(|_| asked.text.clone(), |c| c.semantic_query);
        queries.push(Query::of(embedder.embed_query(&text)?.0.to_vec(), &asked.text, &mut words));
    }
    drop(embedder);

    let mut rows: Vec<(Rival, &str, Budget, Vec<Scored>)> = Vec::new();
    for over in ["turns", "units"] {
        for rival in Rival::ALL {
            for budget in rival.budgets(bench.pipeline.recall.budget, mean_tokens) {
                rows.push((rival, over, budget, vec![Scored::default(); questions.len()]));
            }
        }
    }
    let (mut done, total) = (0, Some(2 * questions.len() as u64));
    for (bank, records) in &remembered.records {
        let mine: Vec<usize> =
            (0..questions.len()).filter(|i| questions.get(*i).is_some_and(|q| q.bank == *bank)).collect();
        for over in ["turns", "units"] {
            let corpus = match over {
                "turns" => Corpus::of_turns(records, &mut words),
                _ => Corpus::of_units(records, &mut words),
            };
            let whole = Whole::of(&rendered(&corpus.items.iter().collect::<Vec<_>>()));
            for at in &mine {
                let (Some(asked), Some(query), Some(our)) = (questions.get(*at), queries.get(*at), ours.get(*at))
                else {
                    continue;
                };
                for (rival, _, budget, scored) in rows.iter_mut().filter(|(_, o, ..)| *o == over) {
                    if let Some(place) = scored.get_mut(*at) {
                        *place = one(bench, asked, query, our, &corpus, *rival, *budget, &whole);
                    }
                }
                done += 1;
                progress(Progress { doing: "rivals", done, total, unit: "questions" });
            }
        }
    }
    Ok(rows
        .into_iter()
        .map(|(rival, over, budget, scored)| {
            let both = || questions.iter().zip(&scored);
            Row {
                name: rival.name().to_owned(),
                about: rival.about().to_owned(),
                over: over.to_owned(),
                budget,
                overall: figures(both().filter(|(q, _)| q.counts()).map(|(_, s)| s)),
                by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
            }
        })
        .collect())
}

/// A context, counted and ready to be compared.
struct Whole {
    tokens: usize,
    context: Comparable,
}

impl Whole {
    fn of(context: &str) -> Self {
        Self { tokens: tokens::count(context), context: Comparable::of(context) }
    }
}

/// One rival's figures for one question.
#[expect(clippy::too_many_arguments, reason = "one call, one place")]
fn one(
    bench: &Bench,
    asked: &Asked,
    query: &Query,
    our: &Scored,
    corpus: &Corpus,
    rival: Rival,
    budget: Budget,
    whole: &Whole,
) -> Scored {
    let most = match budget {
        Budget::Units(n) => n,
        Budget::Matched => our.units,
        Budget::Tokens(_) => LONGEST,
        Budget::Everything => corpus.items.len(),
    };
    // A ranking for a budget of tokens is made for about as many items as fit.
    let wanted = if matches!(budget, Budget::Tokens(_)) { bench.pipeline.recall.budget } else { most };
    let order = rival.rank(corpus, query, wanted);
    let mut items: Vec<&Item> = order.into_iter().take(most).filter_map(|i| corpus.items.get(i)).collect();
    if let Budget::Tokens(most) = budget {
        fill(&mut items, most);
    }
    let made = if budget == Budget::Everything { None } else { Some(Whole::of(&rendered(&items))) };
    let Whole { tokens, context } = made.as_ref().unwrap_or(whole);
    let shown: Vec<Shown<'_>> = items
        .iter()
        .map(|i| Shown {
            sources: &i.body.sources,
            quoted: i.body.parts.iter().map(|p| (p.turn.as_str(), p.text.as_str())).collect(),
            restated: None,
        })
        .collect();
    Scored {
        recall: share(&bench.delivered_by(asked, &shown, context)),
        tokens: *tokens,
        units: items.len(),
        recollected: None,
        marks: super::score::Marks::default(),
    }
}

/// Cuts a ranking to the most items whose context fits.
fn fill(items: &mut Vec<&Item>, most: usize) {
    let mut fits = 0;
    let mut over = items.len() + 1;
    // A first guess by length; four characters are about a token.
    let mut letters = 0;
    let guess = items.iter().take_while(|i| {
        letters += i.body.restatement.len() + 12;
        letters <= 4 * most
    });
    let mut at = guess.count().max(1);
    while fits + 1 < over {
        let held = items.get(..at.min(items.len())).unwrap_or_default();
        if tokens::count(&rendered(held)) <= most {
            fits = at;
        } else {
            over = at;
        }
        // Near the first guess at first, then by halves.
        at = if over > items.len() { (fits + 1 + fits / 8).min(items.len()) } else { (fits + over) / 2 };
        if at <= fits {
            break;
        }
    }
    items.truncate(fits);
}

/// The context of these items, as an answerer would get it.
fn rendered(items: &[&Item]) -> String {
    let whole: Vec<BTreeSet<usize>> = items.iter().map(|i| (0..i.body.parts.len()).collect()).collect();
    recall::context(items.iter().zip(&whole).map(|(i, parts)| (&i.body, Some(parts))), None)
}
