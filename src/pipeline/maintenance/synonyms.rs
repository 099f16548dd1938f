//! A model's vocabulary to the table of synonyms (`language::synonyms`); for developers.
//!
//! In: the words of the model's tokenizer, each embedded alone. Out: the table's text. The forms of a
//! word are one entry, under the commonest. Function words are left out. The same model gives the
//! same table, apart from the last digit of a cosine on another processor.

use std::collections::HashSet;

use crate::{
    config::Pipeline,
    embed::{self, Embedder, vocabulary},
    language::{sentences::is_empty_word, synonyms::stem},
    model::{SpannedText, Vector},
};

use super::PipelineError;

/// Stems that get a line: the commonest. Any may be a neighbour.
const LINES: usize = 6_000;
/// Neighbours of a word, at most.
const NEIGHBOURS: usize = 32;
/// Least cosine of a neighbour.
const LEAST: f32 = 0.50;

/// The commonest form of a word.
struct Head {
    stem: String,
    word: String,
    vector: Vector,
}

/// The whole table, from the model that the pipeline names.
///
/// # Errors
/// [`PipelineError::Embed`] when the model or its vocabulary cannot be used.
pub fn synonym_table(pipeline: &Pipeline) -> Result<String, PipelineError> {
    let words = heads(vocabulary(&pipeline.embed)?);
    let mut embedder = embed::open(&pipeline.embed, &pipeline.model())?;
    let heads = embedded(&mut *embedder, words)?;
    let threads = pipeline.embed.threads.max(1);
    let mut found: Vec<String> = std::thread::scope(|scope| {
        let heads = &heads;
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let mine = heads.iter().take(LINES).skip(first).step_by(threads);
                scope.spawn(move || mine.filter_map(|head| line(head, heads)).collect::<Vec<String>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    found.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    Ok(found.concat())
}

fn key(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

/// The commonest form of every stem, with its stem; `words` have the commonest first.
fn heads(words: Vec<String>) -> Vec<(String, String)> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut heads = Vec::new();
    for word in words.into_iter().filter(|word| !is_empty_word(word)) {
        let stem = stem(&word);
        if !is_empty_word(&stem) && seen.insert(stem.clone()) {
            heads.push((stem, word));
        }
    }
    heads
}

fn embedded(embedder: &mut dyn Embedder, words: Vec<(String, String)>) -> Result<Vec<Head>, PipelineError> {
    let texts: Vec<SpannedText> =
        words.iter().map(|(_, word)| SpannedText { text: word.clone(), spans: Vec::new() }).collect();
    let vectors = embedder.embed(&texts)?;
    Ok(words.into_iter().zip(vectors).map(|((stem, word), found)| Head { stem, word, vector: found.whole }).collect())
}

/// The line of a word, if it has a neighbour.
fn line(head: &Head, heads: &[Head]) -> Option<String> {
    let near = |other: &Head| head.vector.0.iter().zip(other.vector.0.iter()).map(|(a, b)| a * b).sum::<f32>();
    // Compared as written, so that digits past the second decide no order.
    let hundredths = |cosine: f32| (cosine * 100.0).round() as i32;
    let mut found: Vec<(i32, &str)> = heads
        .iter()
        .filter(|other| other.stem != head.stem)
        .map(|other| (hundredths(near(other)), other.word.as_str()))
        .filter(|(cosine, _)| *cosine >= hundredths(LEAST))
        .collect();
    found.sort_unstable_by_key(|(cosine, word)| (-cosine, *word));
    found.truncate(NEIGHBOURS);
    let pairs: Vec<String> =
        found.iter().map(|(cosine, word)| format!("{word}:{}.{:02}", cosine / 100, cosine % 100)).collect();
    (!pairs.is_empty()).then(|| format!("{}\t{}\n", head.stem, pairs.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::synonyms::TABLE;

    #[test]
    fn the_forms_of_a_word_are_one_entry_under_the_commonest() {
        let words = ["the", "dogs", "dog", "paint", "painting"].map(str::to_owned).to_vec();
        let expected = [("dog", "dogs"), ("paint", "paint")].map(|(s, w)| (s.to_owned(), w.to_owned()));
        assert_eq!(heads(words), expected);
    }

    /// Recomputed among fewer words, a line is the same: its neighbours stay the nearest.
    #[test]
    fn the_model_gives_these_lines() {
        let pipeline = Pipeline::parse("version = 1\nembed.model = \"all-MiniLM-L6-v2\"").expect("the defaults");
        let mut embedder = match embed::open(&pipeline.embed, &pipeline.model()) {
            Ok(embedder) => embedder,
            Err(embed::EmbedError::Missing { .. }) => {
                crate::skipped(
                    "pipeline::maintenance::synonyms::the_model_gives_these_lines: no model; run scripts/setup",
                );
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let known = heads(vocabulary(&pipeline.embed).expect("the model is there"));
        for wanted in ["doctor", "dog", "wedding", "guitar", "beach"] {
            let expected = TABLE.lines().find(|line| key(line) == stem(wanted)).expect("a line");
            let near: Vec<String> = expected
                .split_once('\t')
                .expect("a tab")
                .1
                .split(' ')
                .filter_map(|pair| Some(stem(pair.split_once(':')?.0)))
                .collect();
            let some =
                known.iter().enumerate().filter(|(i, (s, _))| i % 40 == 0 || s == key(expected) || near.contains(s));
            let made = embedded(&mut *embedder, some.map(|(_, head)| head.clone()).collect()).expect("vectors");
            let head = made.iter().find(|head| head.stem == key(expected)).expect("it was asked for");
            let line = line(head, &made).expect("neighbours");
            let pairs = |line: &str| -> Vec<(String, f32)> {
                let (_, rest) = line.trim_end().split_once('\t').expect("a tab");
                let pair = |p: &str| p.split_once(':').map(|(w, c)| (w.to_owned(), c.parse().expect("a number")));
                let mut pairs: Vec<_> = rest.split(' ').filter_map(pair).collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                pairs
            };
            let (line, expected) = (pairs(&line), pairs(expected));
            assert_eq!(line.len(), expected.len(), "{wanted}");
            for ((word, cosine), (expected, at)) in line.iter().zip(&expected) {
                assert!(word == expected && (cosine - at).abs() < 0.011, "{wanted}: {word} {cosine}, {expected} {at}");
            }
        }
    }
}
