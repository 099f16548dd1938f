//! Measures the baselines.
//!
//! In: a bench, the contents of its memory, and recollection's scores. Out: a row for each
//! baseline, over turns and over units, at the same number of units and at the same mean tokens.
//! Baselines search with the memory's vectors; their contexts are rendered, counted and scored by
//! the same functions as recollection's.

use std::collections::BTreeSet;

use super::{
    baseline::Baseline,
    corpus::{BaselineQuery, Corpus, CorpusItem},
};
use crate::{
    benchmark_memory::{BenchmarkMemory, MeasuredEvidence},
    dataset::DatasetQuestion,
    delivery::{NormalisedText, ShownUnit},
    error::EvalError,
    memory_contents::MemoryContents,
    result::{ComparisonRow, RowBudget},
    score::{AnswerScores, QuestionScore, figures, figures_by, share},
};
use memory::language::token_count;
use memory::{
    index::{TermAnalyzer, UnitBody},
    recall,
};
use models::embed;
use pipeline::Progress;
use types::model::{Evidence, EvidenceUnit, Excerpt};

/// The maximum number of items of a ranking that are tried for a budget of tokens.
const MAX: usize = 400;

/// A row for every baseline, over turns and over units, at each of its budgets.
pub(crate) fn rows(
    bench: &BenchmarkMemory,
    contents: &MemoryContents,
    ours: &[QuestionScore],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ComparisonRow>, EvalError> {
    let questions = &bench.dataset.questions;
    let counted = figures(questions.iter().zip(ours).filter(|(q, _)| q.counts()).map(|(_, s)| s));
    let mean_tokens = counted.context_tokens.unwrap_or_default().round() as usize;
    let mut words = TermAnalyzer::default();
    let queries = queries(bench, &mut words)?;

    let mut rows: Vec<(Baseline, &str, RowBudget, Vec<QuestionScore>)> = Vec::new();
    for over in ["turns", "units"] {
        for baseline in Baseline::ALL {
            for budget in baseline.budgets(bench.pipeline.recall.budget, mean_tokens) {
                rows.push((baseline, over, budget, vec![QuestionScore::default(); questions.len()]));
            }
        }
    }
    let (mut done, total) = (0, Some(2 * questions.len() as u64));
    for (bank, records) in &contents.records {
        let mine: Vec<usize> =
            (0..questions.len()).filter(|i| questions.get(*i).is_some_and(|q| q.bank == *bank)).collect();
        for over in ["turns", "units"] {
            let corpus = match over {
                "turns" => Corpus::of_turns(records, &mut words),
                _ => Corpus::of_units(records, &mut words),
            };
            let whole = CountedContext::of(&rendered(&corpus.items.iter().collect::<Vec<_>>()));
            for at in &mine {
                let (Some(asked), Some(query), Some(our)) = (questions.get(*at), queries.get(*at), ours.get(*at))
                else {
                    continue;
                };
                for (baseline, _, budget, scored) in rows.iter_mut().filter(|(_, o, ..)| *o == over) {
                    if let Some(place) = scored.get_mut(*at) {
                        *place = score(bench, asked, query, our, &corpus, *baseline, *budget, &whole);
                    }
                }
                done += 1;
                progress(Progress { doing: "baselines", done, total, unit: "questions" });
            }
        }
    }
    Ok(rows
        .into_iter()
        .map(|(baseline, over, budget, scored)| {
            let both = || questions.iter().zip(&scored);
            ComparisonRow {
                name: baseline.name().to_owned(),
                about: baseline.about().to_owned(),
                over: over.to_owned(),
                budget,
                overall: figures(both().filter(|(q, _)| q.counts()).map(|(_, s)| s)),
                by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
            }
        })
        .collect())
}

/// What each baseline searches for each question.
fn queries(bench: &BenchmarkMemory, words: &mut TermAnalyzer) -> Result<Vec<BaselineQuery>, EvalError> {
    let questions = &bench.dataset.questions;
    let mut embedder = embed::open(&bench.pipeline.embed, &bench.pipeline.model())?;
    let mut queries = Vec::with_capacity(questions.len());
    for asked in questions {
        // The same text that recollection embeds.
        let question = asked.question();
        let text = recall::parse_question(&question)
            .map_or_else(|_| asked.text.clone(), |read| recall::question_cues(&read).semantic_query);
        queries.push(BaselineQuery::of(embedder.embed_query(&text)?.floats().into_owned(), &asked.text, words));
    }
    Ok(queries)
}

/// The flat mixture's evidence over turns for each question: as many turns as fit into the tokens of recollection's
/// context for that question.
pub(crate) fn mixture_evidence(
    bench: &BenchmarkMemory,
    contents: &MemoryContents,
    ours: &[MeasuredEvidence],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Evidence>, EvalError> {
    let mut words = TermAnalyzer::default();
    let queries = queries(bench, &mut words)?;
    let mut found: Vec<Evidence> = ours.iter().map(|measured| measured.evidence.clone()).collect();
    let (mut done, total) = (0, Some(found.len() as u64));
    for (bank, records) in &contents.records {
        let corpus = Corpus::of_turns(records, &mut words);
        for ((evidence, query), our) in found.iter_mut().zip(&queries).zip(ours) {
            if evidence.question.bank != *bank {
                continue;
            }
            let order = Baseline::Mixture.rank(&corpus, query, MAX);
            let mut items: Vec<&CorpusItem> = order.into_iter().take(MAX).filter_map(|i| corpus.items.get(i)).collect();
            cut_to_tokens(&mut items, our.tokens);
            evidence.context = rendered(&items);
            evidence.units = items.iter().map(|item| evidence_unit(&item.body)).collect();
            done += 1;
            progress(Progress { doing: "flat mixture", done, total, unit: "questions" });
        }
    }
    Ok(found)
}

/// A whole turn as evidence.
fn evidence_unit(body: &UnitBody) -> EvidenceUnit {
    EvidenceUnit {
        id: body.id,
        restatement: body.restatement().to_owned(),
        cues: body.cues(),
        said_at: body.said_at,
        sources: body.sources().map(str::to_owned).collect(),
        excerpts: body.parts().map(Excerpt::from).collect(),
        rho: 0.0,
        anchor: false,
        provenance: Vec::new(),
    }
}

/// A context with its token count.
struct CountedContext {
    tokens: usize,
    context: NormalisedText,
}

impl CountedContext {
    fn of(context: &str) -> Self {
        Self { tokens: token_count::count_tokens(context), context: NormalisedText::of(context) }
    }
}

/// One baseline's score for one question.
#[expect(clippy::too_many_arguments, reason = "called once")]
fn score(
    bench: &BenchmarkMemory,
    asked: &DatasetQuestion,
    query: &BaselineQuery,
    our: &QuestionScore,
    corpus: &Corpus,
    baseline: Baseline,
    budget: RowBudget,
    whole: &CountedContext,
) -> QuestionScore {
    let most = match budget {
        RowBudget::Units(n) => n,
        RowBudget::Matched => our.units,
        RowBudget::Tokens(_) => MAX,
        RowBudget::Everything => corpus.items.len(),
    };
    // About this many items fit into a budget of tokens.
    let wanted = if matches!(budget, RowBudget::Tokens(_)) { bench.pipeline.recall.budget } else { most };
    let order = baseline.rank(corpus, query, wanted);
    let mut items: Vec<&CorpusItem> = order.into_iter().take(most).filter_map(|i| corpus.items.get(i)).collect();
    if let RowBudget::Tokens(most) = budget {
        cut_to_tokens(&mut items, most);
    }
    let made = if budget == RowBudget::Everything { None } else { Some(CountedContext::of(&rendered(&items))) };
    let CountedContext { tokens, context } = made.as_ref().unwrap_or(whole);
    let shown: Vec<ShownUnit<'_>> = items
        .iter()
        .map(|i| ShownUnit {
            sources: i.body.sources().collect(),
            quoted: i.body.parts().map(|p| (p.turn, p.text)).collect(),
            restated: None,
        })
        .collect();
    QuestionScore {
        recall: share(&bench.delivered_by(asked, &shown, context)),
        tokens: *tokens,
        units: items.len(),
        recollection: None,
        answer: AnswerScores::default(),
    }
}

/// Cuts a ranking to as many items as fit into a context of `most` tokens.
fn cut_to_tokens(items: &mut Vec<&CorpusItem>, most: usize) {
    let mut fits = 0;
    let mut over = items.len() + 1;
    // The first guess assumes four characters per token.
    let mut letters = 0;
    let guess = items.iter().take_while(|i| {
        letters += i.body.restatement().len() + 12;
        letters <= 4 * most
    });
    let mut at = guess.count().max(1);
    while fits + 1 < over {
        let first = items.get(..at.min(items.len())).unwrap_or_default();
        if token_count::count_tokens(&rendered(first)) <= most {
            fits = at;
        } else {
            over = at;
        }
        // The search steps up by an eighth from the first guess, then halves the range.
        at = if over > items.len() { (fits + 1 + fits / 8).min(items.len()) } else { (fits + over) / 2 };
        if at <= fits {
            break;
        }
    }
    items.truncate(fits);
}

/// The context of these items, as an answering model receives it.
fn rendered(items: &[&CorpusItem]) -> String {
    let whole: Vec<BTreeSet<usize>> = items.iter().map(|i| (0..i.body.parts().len()).collect()).collect();
    recall::render_context(items.iter().zip(&whole).map(|(i, parts)| (&i.body, Some(parts))), None).text
}
