//! The vectors of the texts of one question that is asked again and again.
//!
//! In: the texts that one run of the question needs. Out: their vectors; a text is embedded only if no earlier run
//! needed it. Keeps the vectors of the latest runs up to a limit. A text's vector is the same whether it was kept or
//! not.

use std::{collections::HashMap, sync::Mutex};

use types::{model::Vector, sync};

/// The maximum number of texts that are kept; a question has two wordings, and a plan adds one for each round.
const MAX: usize = 16;

/// The vectors of one question.
#[derive(Debug, Default)]
pub struct QuestionVectorCache(Mutex<HashMap<String, Vector>>);

impl QuestionVectorCache {
    /// The vectors of texts, in order; `embed` computes those that are not kept.
    ///
    /// # Errors
    /// Those of `embed`.
    pub fn get_or_embed<E>(
        &self,
        texts: &[&str],
        embed: impl FnOnce(&[&str]) -> Result<Vec<Vector>, E>,
    ) -> Result<Vec<Vector>, E> {
        let mut found: Vec<Option<Vector>> = {
            let kept = sync::lock(&self.0);
            texts.iter().map(|text| kept.get(*text).cloned()).collect()
        };
        let missing: Vec<&str> =
            texts.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(text, _)| *text).collect();
        if !missing.is_empty() {
            let made = embed(&missing)?;
            let mut kept = sync::lock(&self.0);
            if kept.len() + made.len() > MAX {
                kept.clear();
            }
            for (text, vector) in missing.iter().zip(&made) {
                kept.insert((*text).to_owned(), vector.clone());
            }
            let mut made = made.into_iter();
            for place in found.iter_mut().filter(|place| place.is_none()) {
                *place = made.next();
            }
        }
        // If `embed` returned too few vectors, the result is shorter, which the caller notices.
        Ok(found.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_text_is_embedded_once_and_stays_in_its_place() {
        let kept = QuestionVectorCache::default();
        let mut embedded = Vec::new();
        let mut ask = |texts: &[&str]| {
            let vectors = kept.get_or_embed(texts, |missing| {
                embedded.extend(missing.iter().map(|text| (*text).to_owned()));
                Ok::<_, Infallible>(missing.iter().map(|text| Vector::from([text.len() as f32])).collect())
            });
            vectors.unwrap().iter().map(|vector| vector.floats()[0]).collect::<Vec<_>>()
        };
        assert_eq!(ask(&["a", "bb"]), [1.0, 2.0]);
        assert_eq!(ask(&["bb", "ccc", "a"]), [2.0, 3.0, 1.0]);
        assert_eq!(embedded, ["a", "bb", "ccc"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = QuestionVectorCache::default();
        for n in 0..1_000 {
            let text = n.to_string();
            kept.get_or_embed(&[&text], |_| Ok::<_, Infallible>(vec![Vector::from([0.0])])).unwrap();
        }
        assert!(sync::lock(&kept.0).len() <= MAX);
    }
}
