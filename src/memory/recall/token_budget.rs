//! The parts of the evidence that fit into the tokens of a context (decision 52).
//!
//! In: the evidence in its final order, the parts that the first hop chose, and the most tokens. Out: the evidence with
//! the first parts that fit, its context, the context's tokens, and the tokens that the next part would add. A unit is
//! left out if none of it fits. If nothing supports the question, the line that says so counts as well: without room
//! for its reason it stands alone, and without room for that the context is empty. Tokens are counted with the o200k
//! vocabulary, headings included.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PartShares, RankedCandidate,
    context::{EvidenceContext, UnitQuote, quoted_turns, render_context, render_with_later},
    later_words::LaterWords,
    turn_quotation::{one_line, quote_passages},
};
use crate::{
    index::{FamiliarPart, FamiliarityResult},
    language::token_count,
};
use types::model::{ContextTokens, SupersedingStatement};

/// Most passages that are quoted of a unit if no part of it was chosen.
const PASSAGES_OF_A_UNIT: usize = 3;
/// Most tokens of a heading and the empty line before it.
const HEADING_TOKENS: usize = 20;

/// A remark takes at most this part of the tokens.
const REMARK_DIVISOR: usize = 4;

/// The evidence that fits.
pub(super) struct BudgetedEvidence {
    /// The units with the parts that are quoted.
    pub(super) ranked: Vec<RankedCandidate>,
    /// The context.
    pub(super) context: EvidenceContext,
    /// The tokens of the context.
    pub(super) tokens: ContextTokens,
    /// What stands in place of quoted words, and is quoted with them.
    pub(super) superseding: Vec<SupersedingStatement>,
}

/// What a context says besides the evidence: a first line, one of the two at most, and later words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ContextNotes<'n> {
    /// Why the evidence supports no answer.
    pub(super) unsupported: Option<&'n str>,
    /// What memory does not hold, though the evidence may answer the question.
    pub(super) remark: Option<&'n str>,
    /// What stands in place of quoted words.
    pub(super) later: Option<&'n LaterWords<'n>>,
}

/// The tokens of a context.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextRoom {
    /// The most it may have.
    pub(super) most: usize,
    /// What evidence has on average.
    pub(super) usual: usize,
    /// What other sections have taken.
    pub(super) taken: usize,
}

impl ContextRoom {
    /// What evidence of `spent` tokens keeps. It gives up what was taken, but no more than a quarter, and nothing where
    /// it has less than half of the usual: a short answer would lose its only quotes.
    fn kept(self, spent: usize) -> usize {
        let given_up = self.taken.min(spent / 4).min(spent.saturating_sub(self.usual / 2));
        spent - given_up
    }
}

/// The evidence within the room of a context.
pub(super) fn fit_evidence(
    ranked: Vec<RankedCandidate>,
    impressions: &PartShares,
    (familiar, chosen): (&FamiliarityResult, &[(usize, f64)]),
    room: ContextRoom,
    notes: ContextNotes<'_>,
) -> BudgetedEvidence {
    let ContextNotes { unsupported, remark, later } = notes;
    let none = LaterWords::default();
    let later = later.unwrap_or(&none);
    let remark = remark.map(remark_line);
    // The line is left out where it would take the room of the evidence.
    let remark = remark.filter(|line| token_count::count_tokens(line) * REMARK_DIVISOR <= room.most);
    let of_remark = remark.as_deref().map_or(0, |line| token_count::count_tokens(line) + 1);
    let most_tokens = (room.most - of_remark).saturating_sub(room.taken);
    let mut quotes = quote_candidates(&ranked, impressions);
    let place = |at: usize| {
        let part = familiar.best.get(at)?;
        Some((part.unit.id, part.part))
    };
    let places: BTreeMap<_, usize> = chosen.iter().filter_map(|(at, _)| place(*at)).zip(0..).collect();
    // Where persons and assistants share the tokens, the best parts of each come first, not the most familiar ones.
    // What expansion added lies below the cutoff, and comes last.
    quotes.sort_by_key(|quote| {
        let unit = ranked.get(quote.unit).map(|one| one.candidate.unit.id);
        unit.zip(quote.part).and_then(|key| places.get(&key)).copied().unwrap_or(usize::MAX)
    });
    let mut headings = BTreeSet::new();
    let mut spent = 0;
    let ends: Vec<usize> = quotes
        .iter()
        .map(|quote| {
            let unit = &ranked[quote.unit].candidate.unit;
            let is_new = headings.insert((unit.session(), unit.said_at.local().date()));
            spent += quote.tokens + if is_new { HEADING_TOKENS } else { 0 };
            spent
        })
        .collect();
    let kept = room.kept(spent);
    let first_too_many = ends.iter().position(|end| *end > kept.min(most_tokens)).unwrap_or(quotes.len());
    // Where the sum with the next quote is nearer: else the evidence would give up half a quote more on average.
    let before = first_too_many.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or_default();
    let is_nearer = ends.get(first_too_many).is_some_and(|with| *with <= most_tokens && with - kept <= kept - before);
    quotes.truncate(first_too_many + usize::from(is_nearer));
    let mut note = unsupported;
    loop {
        let kept = quoted_units(&ranked, &quotes);
        let context = render_with_later(kept.iter().map(unit_quote), note, later);
        let spent = token_count::count_tokens(&context.text);
        // Tokens that span lines are not in the sum above, nor is the note, so it may be too low.
        if spent > most_tokens && quotes.pop().is_some() {
            continue;
        }
        if let Some(reason) = note.filter(|_| spent > most_tokens) {
            note = if reason.is_empty() { None } else { Some("") };
            continue;
        }
        let next = next_part_tokens(familiar, &kept, unsupported, later, spent);
        let context = remark
            .iter()
            .fold(context, |context, line| EvidenceContext { text: format!("{line}\n{}", context.text), ..context });
        let spent = if remark.is_some() { token_count::count_tokens(&context.text) } else { spent };
        let tokens = ContextTokens { spent: spent as u32, most: room.most as u32, next };
        let superseding = later.superseding(&quoted_turns(kept.iter().map(unit_quote)));
        return BudgetedEvidence { ranked: kept, context, tokens, superseding };
    }
}

/// A remark as a line of its own.
fn remark_line(remark: &str) -> String {
    format!("In memory, {remark}. What follows is from other times.\n")
}

/// As much of a ranking as fits into `most_tokens`, by the tokens of the context itself; and these tokens.
pub(super) fn fit_ranking(
    ranked: &[RankedCandidate],
    impressions: &PartShares,
    most_tokens: usize,
) -> (Vec<RankedCandidate>, usize) {
    let quotes = quote_candidates(ranked, impressions);
    let first = |count: usize| {
        let kept = quoted_units(ranked, &quotes[..count]);
        let tokens = token_count::count_tokens(&render_context(kept.iter().map(unit_quote), None).text);
        (kept, tokens)
    };
    let (mut fits, mut over) = (0, quotes.len() + 1);
    while over - fits > 1 {
        let half = usize::midpoint(fits, over);
        if first(half).1 <= most_tokens { fits = half } else { over = half }
    }
    first(fits)
}

/// A part, or a whole unit, that may be quoted.
struct QuoteCandidate {
    /// The index of its unit in the order of the evidence.
    unit: usize,
    /// The part; `None` for the unit's restatement.
    part: Option<usize>,
    tokens: usize,
}

/// All parts and units that may be quoted, best first.
fn quote_candidates(ranked: &[RankedCandidate], impressions: &PartShares) -> Vec<QuoteCandidate> {
    let mut quotes: Vec<(f64, QuoteCandidate)> = Vec::new();
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
                let tokens = token_count::count_tokens(&one_line(body.restatement())) + HEADING_TOKENS / 2;
                quotes.push((one.rho, QuoteCandidate { unit, part: None, tokens }));
                continue;
            }
        };
        let whole = one.candidate.excerpt.is_none();
        for part in parts {
            let Some(quoted) = body.part(part) else { continue };
            let text = quote_passages(quoted.speaker, [(quoted.range.is_some(), quoted.text)], quoted.range.is_some());
            let rank = if whole { one.rho } else { share(part) };
            quotes
                .push((rank, QuoteCandidate { unit, part: Some(part), tokens: token_count::count_tokens(&text) + 1 }));
        }
    }
    quotes.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (x.unit, x.part).cmp(&(y.unit, y.part))));
    quotes.into_iter().map(|(_, quote)| quote).collect()
}

/// The units that `quotes` quotes, each with its quoted parts only.
fn quoted_units(ranked: &[RankedCandidate], quotes: &[QuoteCandidate]) -> Vec<RankedCandidate> {
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

fn unit_quote(ranked: &RankedCandidate) -> UnitQuote<'_> {
    (&*ranked.candidate.unit, ranked.candidate.excerpt.as_ref())
}

/// What the most familiar part that is not quoted would add to a context of `spent` tokens, with its heading.
fn next_part_tokens(
    familiar: &FamiliarityResult,
    kept: &[RankedCandidate],
    unsupported: Option<&str>,
    later: &LaterWords<'_>,
    spent: usize,
) -> Option<u32> {
    let is_quoted = |part: &FamiliarPart| {
        let of_unit = kept.iter().map(unit_quote).find(|(unit, _)| unit.id == part.unit.id);
        of_unit.is_some_and(|(unit, excerpt)| {
            unit.is_restated() || excerpt.is_none_or(|excerpt| excerpt.contains(&part.part))
        })
    };
    let next = familiar.best.iter().find(|part| !is_quoted(part))?;
    let part = BTreeSet::from([next.part]);
    let quotes = kept.iter().map(unit_quote).chain([(&*next.unit, Some(&part))]);
    let with_it = render_with_later(quotes, unsupported, later);
    Some(token_count::count_tokens(&with_it.text).saturating_sub(spent) as u32)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        index::UnitBody,
        recall::{
            EvidenceCandidate,
            tests::{candidate, familiar_part, said},
        },
    };
    use types::model::Score;

    /// What fits of units, the most familiar first.
    fn fitting(units: &[Arc<UnitBody>], most_tokens: usize, unsupported: Option<&str>) -> BudgetedEvidence {
        let score = |at: usize| 1.0 - at as f64 / 10.0;
        let part = |(at, unit): (usize, &Arc<UnitBody>)| familiar_part(unit, Score::from_f64(score(at)));
        let best = units.iter().enumerate().map(part).collect();
        let familiar = FamiliarityResult { parts_total: units.len(), best, zero: 0.0, ..FamiliarityResult::default() };
        let ranked = |(at, unit): (usize, &Arc<UnitBody>)| {
            let unit = unit.clone();
            let found = EvidenceCandidate {
                unit,
                excerpt: Some(BTreeSet::from([0])),
                ..candidate(1, "", "2024-05-01T10:00:00Z")
            };
            RankedCandidate { candidate: found, rho: score(at) }
        };
        let ranked = units.iter().enumerate().map(ranked).collect();
        let notes = ContextNotes { unsupported, ..ContextNotes::default() };
        let room = ContextRoom { most: most_tokens, usual: 1_472, taken: 0 };
        fit_evidence(ranked, &PartShares::of(&familiar), (&familiar, &[]), room, notes)
    }

    const FIRST: &str = "## 1 May 2024, 10:00\nAnn: The red kayak is in the boathouse.\n";
    const SAME_DAY: &str = "Bo: The ferry leaves at noon.\n";
    const NEXT_DAY: &str = "\n## 2 May 2024, 09:00\nBo: The ferry leaves at noon.\n";

    #[test]
    fn evidence_gives_up_what_was_taken_unless_it_is_short() {
        let kept = |spent, taken| ContextRoom { most: 3_000, usual: 1_000, taken }.kept(spent);
        assert_eq!([kept(2_000, 0), kept(2_000, 100), kept(2_000, 900)], [2_000, 1_900, 1_500]);
        assert_eq!([kept(500, 100), kept(60, 40), kept(540, 100)], [500, 60, 500]);
    }

    #[test]
    fn the_next_best_costs_what_it_would_add_and_its_heading_where_it_needs_one() {
        let kayak = said(1, "s", "2024-05-01T10:00:00Z", "Ann", "The red kayak is in the boathouse.");
        let ferry = |session, at| said(2, session, at, "Bo", "The ferry leaves at noon.");
        let first = token_count::count_tokens(FIRST);
        for (session, at, added) in [
            ("s", "2024-05-01T10:01:00Z", SAME_DAY),
            ("s", "2024-05-02T09:00:00Z", NEXT_DAY),
            ("other", "2024-05-02T09:00:00Z", NEXT_DAY),
        ] {
            let units = [kayak.clone(), ferry(session, at)];
            let all = format!("{FIRST}{added}");
            let next = Some((token_count::count_tokens(&all) - first) as u32);
            // The first and its heading, which is taken for 20 tokens, and not the second as well.
            let found = fitting(&units, first + 10, None);
            assert_eq!((found.context.text.as_str(), found.tokens.spent as usize), (FIRST, first));
            assert_eq!(found.tokens.next, next, "{session} {at}");
            let found = fitting(&units, 200, None);
            assert_eq!((found.context.text, found.tokens.next), (all, None), "all of the bank is quoted");
        }
        let two_days = token_count::count_tokens(NEXT_DAY) - token_count::count_tokens(SAME_DAY);
        assert!(two_days > 8, "a heading is no small part of it: {two_days}");
    }

    #[test]
    fn no_limit_is_too_small_for_the_line_that_nothing_supports_the_question() {
        let kayak = said(1, "s", "2024-05-01T10:00:00Z", "Ann", "The red kayak is in the boathouse.");
        let reason = "nobody mentions \"mongolia\", \"capital\"";
        let whole = format!("Nothing in memory supports this question ({reason}).\n");
        let alone = "Nothing in memory supports this question.\n";
        let of = |units: &[Arc<UnitBody>], most| fitting(units, most, Some(reason));
        for units in [&[kayak.clone()][..], &[]] {
            for most in 0..100 {
                let found = of(units, most);
                assert_eq!(found.tokens.spent as usize, token_count::count_tokens(&found.context.text));
                assert!(found.tokens.spent as usize <= most, "{most}: {}", found.context.text);
            }
        }
        let (of_whole, of_alone) = (token_count::count_tokens(&whole), token_count::count_tokens(alone));
        for (most, text) in
            [(of_whole, whole.as_str()), (of_whole - 1, alone), (of_alone, alone), (of_alone - 1, ""), (1, "")]
        {
            assert_eq!(of(std::slice::from_ref(&kayak), most).context.text, text, "{most}");
        }
        // `next` assumes the whole note, however much of it fits.
        let all = of(std::slice::from_ref(&kayak), 200).context.text;
        assert_eq!(all, format!("{} What follows is only the nearest that was found.\n\n{FIRST}", whole.trim_end()));
        let none = of(std::slice::from_ref(&kayak), 1).tokens;
        assert_eq!((none.spent, none.next), (0, Some(token_count::count_tokens(&all) as u32)));
    }
}
