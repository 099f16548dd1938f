//! Keeps texts that a model on this machine cannot read from stopping others.
//!
//! In: texts, and a model that embeds them together. Out: for each text its vector, or why it has none. If the model
//! fails or panics on several texts, each is embedded alone; one that fails alone is shortened; and one that fails even
//! then is reported, if the model embeds the probe. A vector with a component that is no number counts as a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use endpoint::{LoneText, LoneTextFailure, ProbeOutcome, SuspectTexts, TryLimits};
use types::model::Vector;

use super::{
    EmbedError, PROBE,
    truncated_texts::{TruncationKind, note_shortened, truncated_text},
};

/// Embeds texts together, in order.
pub(super) type BatchEmbedFunction<'r> = &'r mut dyn FnMut(&[String]) -> Result<Vec<Vector>, EmbedError>;

/// The vectors of texts that begin with `prefix_bytes` bytes of prefix, or why a text has none. `suspects` are this
/// model's.
pub(super) fn embed_by_text(
    model: &str,
    suspects: &SuspectTexts,
    texts: &[String],
    prefix_bytes: usize,
    keeps: TruncationKind,
    run: BatchEmbedFunction<'_>,
) -> Result<Vec<Result<Vector, String>>, EmbedError> {
    match catch_panic(model, || checked(model, texts.len(), run(texts)?)) {
        Ok(vectors) => return Ok(vectors.into_iter().map(Ok).collect()),
        Err(EmbedError::Model { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        let mut lone = LocalText { model, text, prefix_bytes, keeps, run: &mut *run };
        let taken = suspects.alone(&key, TryLimits::REMEMBERED, &mut lone, None)?;
        found.push(taken.map(|taken| {
            if taken.halvings > 0 {
                note_shortened(model, text.len(), taken.halvings);
            }
            taken.reply
        }));
    }
    Ok(found)
}

/// Runs a model; a panic counts as its failure.
pub(super) fn catch_panic<T>(model: &str, run: impl FnOnce() -> Result<T, EmbedError>) -> Result<T, EmbedError> {
    let panicked = || EmbedError::Model {
        model: model.to_owned(),
        problem: "it panicked on a text; this is a defect, please report it".to_owned(),
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(panicked()))
}

/// The vectors, if there is one for each text and all consist of numbers.
fn checked(model: &str, texts: usize, vectors: Vec<Vector>) -> Result<Vec<Vector>, EmbedError> {
    let failed = |problem: String| EmbedError::Model { model: model.to_owned(), problem };
    if vectors.len() != texts {
        return Err(failed(format!("{} vectors for {texts} texts", vectors.len())));
    }
    if vectors.iter().any(|vector| !is_finite(vector)) {
        return Err(failed(NO_NUMBERS.to_owned()));
    }
    Ok(vectors)
}

/// What is wrong with a vector that is not [`is_finite`].
pub(super) const NO_NUMBERS: &str = "a vector has components that are no numbers";

/// Whether all components of a vector are numbers.
pub(super) fn is_finite(vector: &Vector) -> bool {
    vector.floats().iter().all(|x| x.is_finite())
}

/// A text for a model on this machine. A second try would give the same result, so each form is tried once.
struct LocalText<'t> {
    model: &'t str,
    text: &'t str,
    prefix_bytes: usize,
    keeps: TruncationKind,
    run: BatchEmbedFunction<'t>,
}

impl LocalText<'_> {
    fn embed(&mut self, text: String) -> Result<Vector, EmbedError> {
        let Self { model, run, .. } = self;
        let mut found = catch_panic(model, || checked(model, 1, run(&[text])?))?;
        found.pop().ok_or_else(|| EmbedError::Model { model: (*model).to_owned(), problem: "no vector".to_owned() })
    }
}

impl LoneText for LocalText<'_> {
    type Reply = Vector;
    type Error = EmbedError;

    fn has(&self, halvings: u32) -> bool {
        truncated_text(self.text, self.prefix_bytes, halvings, self.keeps).is_some()
    }

    fn send(&mut self, halvings: u32) -> Result<Vector, LoneTextFailure<EmbedError>> {
        let text = truncated_text(self.text, self.prefix_bytes, halvings, self.keeps).unwrap_or_default();
        self.embed(text).map_err(|error| match error {
            EmbedError::Model { problem, .. } => LoneTextFailure::Refused(problem),
            error => LoneTextFailure::Away(error),
        })
    }

    fn probe(&mut self) -> Result<ProbeOutcome, EmbedError> {
        self.embed(PROBE.to_owned()).map(|_| ProbeOutcome::AtOnce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that reads at most 100 bytes, panics at a jester and has no numbers for a void.
    fn run(texts: &[String]) -> Result<Vec<Vector>, EmbedError> {
        let failed = |problem: &str| EmbedError::Model { model: "m".to_owned(), problem: problem.to_owned() };
        if texts.iter().any(|text| text.len() > 100) {
            return Err(failed("too long"));
        }
        assert!(!texts.iter().any(|text| text.contains("jester")), "asked to panic");
        let vector = |text: &String| Vector::from([if text.contains("void") { f32::NAN } else { text.len() as f32 }]);
        Ok(texts.iter().map(vector).collect())
    }

    #[test]
    fn a_text_on_which_the_model_fails_or_panics_is_one_texts_failure() {
        let texts = ["p: harbour", "p: jester", "p: void", "p: boat"].map(str::to_owned);
        let long = format!("p: {}", "a boat in ".repeat(20));
        let texts = [&texts[..], std::slice::from_ref(&long)].concat();
        let found =
            embed_by_text("m", &SuspectTexts::default(), &texts, 3, TruncationKind::Beginning, &mut run).unwrap();
        let lengths: Vec<Option<f32>> = found.iter().map(|of| of.as_ref().ok().map(|v| v.floats()[0])).collect();
        assert_eq!(lengths, [Some(10.0), None, None, Some(7.0), None], "100 bytes of 200 are too long with the prefix");
        let problems: Vec<&str> = found.iter().filter_map(|of| of.as_ref().err().map(String::as_str)).collect();
        assert!(problems[0].contains("panicked") && problems[1] == NO_NUMBERS, "{problems:?}");
        let before = super::super::shortened_texts();
        let long = ["a boat in ".repeat(20)];
        let found =
            embed_by_text("m", &SuspectTexts::default(), &long, 0, TruncationKind::Beginning, &mut run).unwrap();
        assert_eq!(found[0].as_ref().unwrap().floats()[0], 100.0);
        assert!(super::super::shortened_texts() > before);
        // A model that reads nothing is broken.
        let broken = |_: &[String]| Err(EmbedError::Model { model: "m".to_owned(), problem: "no memory".to_owned() });
        let error = embed_by_text("m", &SuspectTexts::default(), &texts, 0, TruncationKind::Beginning, &mut { broken })
            .unwrap_err();
        assert!(error.to_string().contains("no memory"), "{error}");
    }
}
