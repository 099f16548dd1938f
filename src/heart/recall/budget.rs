//! The parts of the evidence that fit into the tokens of a context.
//!
//! In: the evidence in its final order, how familiar its parts are, and the most tokens. Out: the evidence with the
//! most familiar parts that fit, its context, the context's tokens, and the tokens of the next part. A unit is left out
//! if none of it fits. Tokens are counted with the o200k vocabulary, headings included.

use std::collections::BTreeSet;

use super::{
    Impressions, RankedCandidate,
    context::{Context, context},
    quotation::{one_line, quote_passages},
};
use crate::{language::tokens, memory::FamiliarParts};
use nouns::model::{ContextTokens, UnitId};

/// Most passages that are quoted of a unit if no part of it was chosen.
const PASSAGES_OF_A_UNIT: usize = 3;
/// Most tokens of a heading and the empty line before it.
const HEADING_TOKENS: usize = 20;

/// The evidence that fits.
pub(super) struct Fitting {
    /// The units with the parts that are quoted.
    pub(super) ranked: Vec<RankedCandidate>,
    /// The context.
    pub(super) context: Context,
    /// The tokens of the context.
    pub(super) tokens: ContextTokens,
}

/// The evidence within `most_tokens`. `abstains` gives the reason if units support no answer.
pub(super) fn within(
    ranked: Vec<RankedCandidate>,
    impressions: &Impressions,
    familiar: &FamiliarParts,
    most_tokens: usize,
    abstains: impl Fn(&[RankedCandidate]) -> Option<String>,
) -> Fitting {
    let mut quotes = quotes(&ranked, impressions);
    let mut spent = 0;
    let mut headings = BTreeSet::new();
    let first_too_many = quotes.iter().position(|quote| {
        let unit = &ranked[quote.unit].candidate.unit;
        let is_new = headings.insert((unit.session(), unit.said_at.local().date()));
        spent += quote.tokens + if is_new { HEADING_TOKENS } else { 0 };
        spent > most_tokens
    });
    quotes.truncate(first_too_many.unwrap_or(quotes.len()));
    loop {
        let kept = kept(&ranked, &quotes);
        let unsupported = abstains(&kept);
        let context = context(
            kept.iter().map(|one| (&*one.candidate.unit, one.candidate.excerpt.as_ref())),
            unsupported.as_deref(),
        );
        let spent = tokens::count(&context.text);
        // Tokens that span lines are not in the sum above, so it may be a little too low.
        if spent > most_tokens && quotes.pop().is_some() {
            continue;
        }
        let next = next(familiar, &kept);
        let tokens = ContextTokens { spent: spent as u32, most: most_tokens as u32, next };
        return Fitting { ranked: kept, context, tokens };
    }
}

/// A part, or a whole unit, that may be quoted.
struct Quote {
    /// The index of its unit in the order of the evidence.
    unit: usize,
    /// The part; `None` for the unit's restatement.
    part: Option<usize>,
    tokens: usize,
}

/// All parts and units that may be quoted, best first.
fn quotes(ranked: &[RankedCandidate], impressions: &Impressions) -> Vec<Quote> {
    let mut quotes: Vec<(f64, Quote)> = Vec::new();
    for (unit, one) in ranked.iter().enumerate() {
        let body = &one.candidate.unit;
        let familiar = impressions.parts(body.id);
        let share = |part: usize| familiar.iter().find(|(at, _)| *at == part).map_or(f64::MIN, |(_, share)| *share);
        let parts: BTreeSet<usize> = match &one.candidate.excerpt {
            Some(excerpt) => excerpt.clone(),
            None if body.part(0).is_some_and(|first| first.range.is_some()) => {
                let best: Vec<usize> = familiar.iter().map(|(part, _)| *part).take(PASSAGES_OF_A_UNIT).collect();
                let parts = if best.is_empty() { (0..PASSAGES_OF_A_UNIT).collect() } else { best };
                parts.into_iter().collect()
            }
            None => {
                // Units that are quoted whole keep their order.
                let tokens = tokens::count(&one_line(body.restatement())) + HEADING_TOKENS / 2;
                quotes.push((one.rho, Quote { unit, part: None, tokens }));
                continue;
            }
        };
        let whole = one.candidate.excerpt.is_none();
        for part in parts {
            let Some(quoted) = body.part(part) else { continue };
            let text = quote_passages(quoted.speaker, [(quoted.range.is_some(), quoted.text)], quoted.range.is_some());
            let rank = if whole { one.rho } else { share(part) };
            quotes.push((rank, Quote { unit, part: Some(part), tokens: tokens::count(&text) + 1 }));
        }
    }
    quotes.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (x.unit, x.part).cmp(&(y.unit, y.part))));
    quotes.into_iter().map(|(_, quote)| quote).collect()
}

/// The units that `quotes` quotes, each with its quoted parts only.
fn kept(ranked: &[RankedCandidate], quotes: &[Quote]) -> Vec<RankedCandidate> {
    let of_unit = |(at, one): (usize, &RankedCandidate)| {
        let mut own = quotes.iter().filter(|quote| quote.unit == at).peekable();
        own.peek()?;
        let parts: Option<BTreeSet<usize>> = own.map(|quote| quote.part).collect();
        let mut kept = one.clone();
        kept.candidate.excerpt = parts;
        Some(kept)
    };
    ranked.iter().enumerate().filter_map(of_unit).collect()
}

/// The tokens that the most familiar of the parts that are not quoted would take.
fn next(familiar: &FamiliarParts, kept: &[RankedCandidate]) -> Option<u32> {
    let quoted = |unit: UnitId, part: usize| {
        let of_unit = kept.iter().find(|one| one.candidate.unit.id == unit);
        of_unit.is_some_and(|one| one.candidate.excerpt.as_ref().is_none_or(|excerpt| excerpt.contains(&part)))
    };
    let next = familiar.best.iter().find(|part| !quoted(part.unit.id, part.part))?;
    let body = next.unit.part(next.part)?;
    Some(tokens::count(&quote_passages(body.speaker, [(false, body.text)], false)) as u32 + 1)
}
