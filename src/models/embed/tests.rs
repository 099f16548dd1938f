//! What the embedders' unit tests share.

use types::{
    config::{EmbedSettings, ModelSettings, Pipeline},
    model::{SpannedText, Vector},
};

/// The default pipeline's settings for the model `name`.
pub(super) fn settings(name: &str) -> (EmbedSettings, ModelSettings) {
    let mut pipeline = Pipeline::parse("version = 1\n").expect("the defaults are valid");
    pipeline.embed.model = name.to_owned();
    let model = pipeline.model();
    (pipeline.embed, model)
}

pub(super) fn plain(text: &str) -> SpannedText {
    SpannedText { text: text.to_owned(), spans: Vec::new() }
}

pub(super) fn cosine(a: &Vector, b: &Vector) -> f64 {
    a.floats().iter().zip(b.floats().iter()).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}
