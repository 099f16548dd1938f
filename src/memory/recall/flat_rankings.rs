//! Rankings without the graph, for comparison with an answer.
//!
//! In: a recollection, and the memory that it asked. Out: what each ranking would quote within the tokens of the
//! answer's context. Rankings are cut and quoted as evidence is. No answer changes.

use super::{
    BoxError, EvidenceCandidate, PartShares, RankedCandidate, RecallMemory, assemble,
    context::render_context,
    first_hop::{self, PartChoice},
    recollection::Recollection,
    token_budget,
};
use crate::{
    index::{FamiliarPart, FamiliarityResult},
    language::token_count,
};
use types::{
    config::{FamiliarityWeights, FirstHopMethod},
    model::{FlatComparison, FlatRanking, FlatUnit},
};

/// Most characters of a label.
const LABEL: usize = 160;

/// The rankings beside a recollection.
///
/// Each is a first hop of its own, so in a large bank it scores the candidates of its own first estimate.
pub(super) fn flat_comparison(memory: &dyn RecallMemory, found: &Recollection<'_>) -> Result<FlatComparison, BoxError> {
    let asked = found.first_hop_query();
    let by = |weights| first_hop::by_weights(memory, &asked, &found.settings, weights);
    let meaning = by(FamiliarityWeights { meaning: 1.0, ..FamiliarityWeights::default() })?;
    let words = by(FamiliarityWeights { words: 1.0, ..FamiliarityWeights::default() })?;
    Ok(FlatComparison {
        meaning: part_ranking(found, &meaning, rank_parts(&meaning, |part| Some(part.cosine.as_f64()))),
        words: part_ranking(
            found,
            &words,
            rank_parts(&words, |part| Some(part.terms.words).filter(|score| *score > 0.0)),
        ),
        same_score: same_score(found),
    })
}

/// The answer's first hop, without the walk and without its cutoff.
fn same_score(found: &Recollection<'_>) -> FlatRanking {
    let first = &found.first;
    match &first.chosen {
        PartChoice::ByChannels => {
            let ranked = assemble::rank_candidates(first.candidates.clone(), &found.settings);
            fit_ranking(found, &ranked, &first.impressions)
        }
        // The shares of persons and assistants use up the tokens, so there is no cutoff to leave out.
        PartChoice::ByShares(_) => {
            let best = &first.familiar.best;
            let of_part = |&(at, _): &(usize, f64)| Some((at, best.get(at)?.score));
            part_ranking(found, &first.familiar, first.chosen.quoted().iter().filter_map(of_part).collect())
        }
        PartChoice::AboveCutoff(..) => {
            part_ranking(found, &first.familiar, rank_parts(&first.familiar, |part| Some(part.score)))
        }
    }
}

/// The parts by a figure, best first, without those that have none. Parts with equal figures keep their order.
fn rank_parts(familiar: &FamiliarityResult, figure: impl Fn(&FamiliarPart) -> Option<f64>) -> Vec<(usize, f64)> {
    let figures = familiar.best.iter().enumerate().filter_map(|(at, part)| Some((at, figure(part)?)));
    let mut figures: Vec<(usize, f64)> = figures.collect();
    figures.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    figures
}

/// What a ranking of parts quotes; whole units if the answer quotes whole units.
fn part_ranking(found: &Recollection<'_>, familiar: &FamiliarityResult, mut order: Vec<(usize, f64)>) -> FlatRanking {
    let mut words = 0;
    let rest = order.iter().position(|(at, _)| {
        let is_over = words > most_tokens(found);
        let part = familiar.best.get(*at);
        words += part.and_then(|part| part.unit.part(part.part)).map_or(0, |body| token_count::count_tokens(body.text));
        is_over
    });
    // The words of the remaining parts cannot fit.
    order.truncate(rest.unwrap_or(order.len()));
    let impressions = PartShares::of_parts(order.iter().filter_map(|&(at, figure)| {
        let part = familiar.best.get(at)?;
        Some((part.unit.id, (part.part, figure)))
    }));
    let ranked = |mut candidate: EvidenceCandidate| {
        if found.settings.first_hop == FirstHopMethod::Channels {
            candidate.excerpt = None;
        }
        candidate.narrow(found.matching.as_deref());
        RankedCandidate { rho: candidate.familiarity, candidate }
    };
    let ranked: Vec<RankedCandidate> = first_hop::candidates(familiar, &order, false).into_iter().map(ranked).collect();
    fit_ranking(found, &ranked, &impressions)
}

/// The units that fit into the tokens of the answer's context.
fn fit_ranking(found: &Recollection<'_>, ranked: &[RankedCandidate], impressions: &PartShares) -> FlatRanking {
    let (kept, tokens) = token_budget::fit_ranking(ranked, impressions, most_tokens(found));
    FlatRanking { tokens: tokens as u32, units: kept.iter().map(flat_unit).collect() }
}

fn most_tokens(found: &Recollection<'_>) -> usize {
    found.evidence.tokens.spent as usize
}

fn flat_unit(ranked: &RankedCandidate) -> FlatUnit {
    let EvidenceCandidate { unit, excerpt, .. } = &ranked.candidate;
    let parts = || excerpt.iter().flatten().filter_map(move |at| unit.part(*at));
    let first = parts().next().filter(|_| !unit.is_restated());
    let said = first.map_or_else(|| unit.restatement().to_owned(), |part| format!("{}: {}", part.speaker, part.text));
    let mut turns: Vec<String> = match excerpt {
        None => unit.sources().map(str::to_owned).collect(),
        Some(_) => parts().map(|part| part.turn.to_owned()).collect(),
    };
    // Passages of one turn are adjacent.
    turns.dedup();
    let alone = render_context([(&**unit, excerpt.as_ref())], None);
    FlatUnit {
        id: unit.id,
        label: said.chars().take(LABEL).collect(),
        said_at: unit.said_at,
        turns,
        score: ranked.rho,
        tokens: token_count::count_tokens(&alone.text) as u32,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        index::{
            DataflowAnswer, FamiliarityProbe, FirstHopHit, FirstHopProbe, MatchProbe, MatchingParts, Neighbour,
            NeighbourhoodProbe, ProfileLine, ProfileProbe, TurnProbe, UnitBody,
        },
        recall::{
            RecallModels, RulesPlanner, recollect,
            tests::{familiar_part, model, said},
        },
    };
    use types::{
        config::{Pipeline, RecallSettings},
        model::{Bank, Evidence, FamiliarityTerms, ModelRef, Question, Score, Vector},
    };

    /// A memory of some parts, each with its cosine and its BM25; no edge leads anywhere.
    struct FlatMemory(Vec<(Arc<UnitBody>, f64, f64)>);

    impl RecallMemory for FlatMemory {
        fn first_hop(&self, _: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError> {
            Err("the indexes are not asked".into())
        }

        fn familiar(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError> {
            let part = |(unit, cosine, words): &(Arc<UnitBody>, f64, f64)| {
                let (meaning, words) = (probe.weights.meaning * cosine, probe.weights.words * words);
                let terms = FamiliarityTerms { meaning, words, ..FamiliarityTerms::default() };
                FamiliarPart { score: meaning + words, terms, ..familiar_part(unit, Score::from_f64(*cosine)) }
            };
            let mut best: Vec<FamiliarPart> = self.0.iter().map(part).collect();
            best.sort_by(|a, b| b.score.total_cmp(&a.score));
            let (parts_total, scored) = (best.len(), best.len());
            let value = FamiliarityResult { parts_total, scored, best, ..FamiliarityResult::default() };
            Ok(DataflowAnswer { value, epoch: 1, reflects: Vec::new() })
        }

        fn neighbourhood(&self, _: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError> {
            Ok(DataflowAnswer { value: Vec::new(), epoch: 1, reflects: Vec::new() })
        }

        fn matching(&self, _: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError> {
            Err("nothing is selected".into())
        }

        fn units_of_turn(&self, _: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError> {
            Err("no turn is looked for".into())
        }

        fn profile(&self, _: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError> {
            Ok(DataflowAnswer { value: Vec::new(), epoch: 1, reflects: Vec::new() })
        }
    }

    fn ask(memory: &FlatMemory, compare: bool, settings: &RecallSettings) -> Evidence {
        let question = Question { compare, ..Question::new(Bank::parse("b").unwrap(), "When does the ferry leave?") };
        let model_ref = ModelRef { name: "by hand".to_owned(), hash: "0".to_owned() };
        let mut embed = |texts: &[&str]| Ok(texts.iter().map(|_| Vector::from([0.5, 0.5])).collect());
        let models = RecallModels { embed: &mut embed, model: &model_ref, rerank: None };
        recollect(memory, models, &question, &RulesPlanner::new(&model()), settings).unwrap()
    }

    fn listed(ranking: &FlatRanking) -> Vec<(u64, f64)> {
        // Six places, since cosines are in fixed point.
        ranking.units.iter().map(|unit| (unit.id.0, (unit.score * 1e6).round() / 1e6)).collect()
    }

    #[test]
    fn each_ranking_orders_by_its_own_figure_within_the_tokens_of_the_answer() {
        let part = |id: u64, cosine: f64, words: f64| {
            let text = format!("Ferry number {id} leaves the northern pier.");
            (said(id, "s", "2024-05-01T10:00:00Z", "Ann", &text), cosine, words)
        };
        let mut settings = Pipeline::parse("version = 1\nrecall.familiarity.weights.words = 1.0").unwrap().recall;
        settings.familiarity.weights.meaning = 1.0;
        // The line that nothing supports an answer is no part of a ranking.
        settings.supported = 0.0;
        let four = FlatMemory(vec![part(1, 0.9, 0.1), part(2, 0.2, 1.0), part(3, 0.6, 0.0), part(4, 0.5, 0.6)]);
        let found = ask(&four, true, &settings);
        let flat = found.flat.clone().unwrap();
        assert_eq!(found.tokens.next, None, "all is quoted");
        assert_eq!(flat.meaning.tokens, flat.same_score.tokens);
        assert_eq!(listed(&flat.meaning), [(1, 0.9), (3, 0.6), (4, 0.5), (2, 0.2)]);
        assert_eq!(listed(&flat.words), [(2, 1.0), (4, 0.6), (1, 0.1)], "what has no word of it is no hit");
        assert_eq!(listed(&flat.same_score), [(2, 1.2), (4, 1.1), (1, 1.0), (3, 0.6)]);
        let first = &flat.meaning.units[0];
        assert_eq!(
            (first.label.as_str(), first.turns.as_slice()),
            ("Ann: Ferry number 1 leaves the northern pier.", &["t1".to_owned()][..])
        );
        let alone = "## 1 May 2024, 10:00\nAnn: Ferry number 1 leaves the northern pier.\n";
        assert_eq!(first.tokens as usize, token_count::count_tokens(alone));
        assert_eq!(
            Evidence { flat: None, question: ask(&four, false, &settings).question, ..found.clone() },
            ask(&four, false, &settings)
        );

        // Where not all fits, each ranking is cut in its own order.
        let many = FlatMemory((1..=60).map(|id| part(id, 1.0 - id as f64 / 100.0, id as f64 / 100.0)).collect());
        let found = ask(&many, true, &settings);
        let flat = found.flat.clone().unwrap();
        let ids = |ranking: &FlatRanking| ranking.units.iter().map(|unit| unit.id.0).collect::<Vec<_>>();
        for (ranking, expected) in
            [(&flat.meaning, (1..=60).collect::<Vec<u64>>()), (&flat.words, (1..=60).rev().collect())]
        {
            let ids = ids(ranking);
            assert!((2..60).contains(&ids.len()) && expected.starts_with(&ids), "{ids:?}");
            assert!(ranking.tokens <= found.tokens.spent, "{} of {}", ranking.tokens, found.tokens.spent);
            assert!(ranking.tokens + 20 > found.tokens.spent, "room for one more: {}", ranking.tokens);
        }
    }
}
