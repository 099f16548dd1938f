//! Familiarity or recollection, in the manner of RF-Mem (Zhang and others, Evoking User
//! Memory: Personalizing LLM via Recollection-Familiarity Adaptive Retrieval, ICLR 2026).
//!
//! The mean of the best cosines and the entropy of their softmax say how familiar a question
//! is. A familiar question gets the top K. Any other is recollected in a few rounds: the best
//! candidates are clustered, the question is mixed with each cluster's centre, and the items that
//! the mixed questions find join the pool. The pool is ordered by the best cosine with any of the
//! questions. Thresholds depend on the embedding model; these were chosen here, not in the paper.

use super::corpus::{BaselineQuery, Corpus, dot, ranked, unit_length};

/// The number of best cosines that decide whether a question is familiar.
const TOP: usize = 10;
/// A question with at least this mean is familiar, whatever the entropy.
const FAMILIAR: f64 = 0.60;
/// A question with at most this mean is not familiar, whatever the entropy.
const STRANGE: f64 = 0.30;
/// Between the two, a question is familiar up to this entropy, as a share of the maximum.
const ENTROPY: f64 = 0.90;
/// Sharpness of the softmax.
const SHARPNESS: f64 = 20.0;
const CLUSTERS: usize = 3;
const ROUNDS: usize = 3;
/// Weight of the question in a mixed question.
const ALPHA: f64 = 0.5;

/// The items, best first, of which the first `most` are used.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery, most: usize) -> Vec<usize> {
    let direct = corpus.cosines(&query.vector);
    let order = ranked(&direct);
    let top: Vec<f64> = order.iter().take(TOP).filter_map(|i| direct.get(*i).copied()).collect();
    if is_familiar(&top) {
        return order;
    }
    let mut best = direct;
    let mut questions = vec![query.vector.clone()];
    for _ in 0..ROUNDS {
        let pool: Vec<usize> = ranked(&best).into_iter().take(most.max(CLUSTERS)).collect();
        let vectors: Vec<&Vec<f32>> =
            pool.iter().filter_map(|i| corpus.items.get(*i)).filter_map(|i| i.vectors.first()).collect();
        let mut grown = false;
        for centre in centres(&vectors) {
            let mixed = query
                .vector
                .iter()
                .zip(&centre)
                .map(|(q, c)| (ALPHA * f64::from(*q) + (1.0 - ALPHA) * f64::from(*c)) as f32);
            let mixed = unit_length(mixed.collect());
            if questions.iter().any(|asked| dot(asked, &mixed) > 0.999) {
                continue;
            }
            for (known, found) in best.iter_mut().zip(corpus.cosines(&mixed)) {
                // A mixed question is nearer to its whole cluster than the real question is, so its cosines count only
                // with the weight of the question in it.
                *known = known.max(ALPHA * found + (1.0 - ALPHA) * *known);
            }
            questions.push(mixed);
            grown = true;
        }
        if !grown {
            break;
        }
    }
    ranked(&best)
}

/// Whether these best cosines make the question familiar.
fn is_familiar(top: &[f64]) -> bool {
    let mean = top.iter().sum::<f64>() / top.len().max(1) as f64;
    mean >= FAMILIAR || (mean > STRANGE && entropy(top) <= ENTROPY)
}

/// Entropy of the softmax of the scores, 0 to 1.
fn entropy(scores: &[f64]) -> f64 {
    if scores.len() < 2 {
        return 0.0;
    }
    let highest = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (SHARPNESS * (s - highest)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let bits: f64 = weights.iter().map(|w| w / sum).filter(|p| *p > 0.0).map(|p| -p * p.ln()).sum();
    bits / (scores.len() as f64).ln()
}

/// Centres of at most [`CLUSTERS`] clusters: ten rounds of k-means, which starts from the first
/// vector and those farthest from the ones already chosen.
fn centres(vectors: &[&Vec<f32>]) -> Vec<Vec<f32>> {
    let Some(first) = vectors.first() else { return Vec::new() };
    let mut centres: Vec<Vec<f32>> = vec![(*first).clone()];
    while centres.len() < CLUSTERS.min(vectors.len()) {
        let nearest = |v: &Vec<f32>| centres.iter().map(|c| dot(c, v)).fold(f64::MIN, f64::max);
        let farthest = vectors.iter().min_by(|a, b| nearest(a).total_cmp(&nearest(b)));
        let Some(farthest) = farthest else { break };
        centres.push((*farthest).clone());
    }
    for _ in 0..10 {
        let mut sums: Vec<Option<Vec<f32>>> = vec![None; centres.len()];
        for vector in vectors {
            let near =
                (0..centres.len()).max_by(|a, b| dot(&centres[*a], vector).total_cmp(&dot(&centres[*b], vector)));
            if let Some(sum) = near.and_then(|n| sums.get_mut(n)) {
                match sum {
                    Some(sum) => sum.iter_mut().zip(vector.iter()).for_each(|(s, x)| *s += x),
                    None => *sum = Some((*vector).clone()),
                }
            }
        }
        for (centre, sum) in centres.iter_mut().zip(sums) {
            if let Some(sum) = sum {
                *centre = unit_length(sum);
            }
        }
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_entropy_decide_familiarity() {
        assert!((entropy(&[0.5, 0.5, 0.5]) - 1.0).abs() < 1e-12);
        assert!(entropy(&[0.9, 0.1, 0.1]) < 0.01);
        assert!(is_familiar(&[0.7, 0.6, 0.6]), "near");
        assert!(is_familiar(&[0.9, 0.2, 0.2]), "one stands out");
        assert!(!is_familiar(&[0.45, 0.45, 0.44]), "none stands out");
        assert!(!is_familiar(&[0.2, 0.1, 0.1]), "far");
    }

    #[test]
    fn clusters_have_their_own_centres() {
        let vectors = [vec![1.0, 0.0, 0.0], vec![0.96, 0.28, 0.0], vec![0.0, 0.0, 1.0]];
        let found = centres(&vectors.iter().collect::<Vec<_>>());
        assert_eq!(found.len(), 3);
        assert!(found.iter().any(|c| dot(c, &vectors[2]) > 0.99));
    }
}
