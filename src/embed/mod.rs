//! Text with spans to vectors.
//!
//! In: texts, each with the byte ranges that want a vector of their own. Out: unit-length
//! vectors of 32-bit floats. What it returns is written to the memory log; nothing
//! downstream embeds a remembered text again. Nothing here prints, reads the clock, or, but
//! for a model that an endpoint serves, reaches for a network.

use std::path::PathBuf;

use crate::config::{EmbedSettings, ModelSettings, Runner};
use crate::model::{ModelRef, SpannedText, Vector};
use unicode_segmentation::UnicodeSegmentation;

pub mod assets;
mod cache;
mod catalogue;
mod fixed;
mod lanes;
mod onnx;
mod passes;
#[cfg(feature = "qwen3")]
mod qwen3;
mod render;
mod runtime;
mod served;
mod vocabulary;

pub use cache::VectorCache;
pub use render::render_parts;
pub use vocabulary::vocabulary;

/// The vectors of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanVectors {
    /// Of the whole: all spans' tokens pooled together; of the plain text when it has no spans.
    pub whole: Vector,
    /// One a span, in order.
    pub spans: Vec<Vector>,
    /// How much each span weighs in a sum: the length of the sum of its tokens' states, so
    /// that weight times vector is that sum; for a model that pools a text itself, its words.
    /// 0 for a span without a token.
    pub weights: Vec<f32>,
}

/// The direction of a sum of weighted vectors, as if they had been pooled together.
///
/// Vectors that all weigh nothing count alike; of no vector there is none.
#[must_use]
pub fn pool(parts: &[(&Vector, f32)]) -> Option<Vector> {
    let (first, _) = parts.first()?;
    let alike = parts.iter().all(|(_, weight)| *weight <= 0.0);
    let mut sum = vec![0f64; first.0.len()];
    for (vector, weight) in parts {
        let weight = if alike { 1.0 } else { f64::from(*weight) };
        for (total, x) in sum.iter_mut().zip(vector.0.iter()) {
            *total += weight * f64::from(*x);
        }
    }
    Some(unit_vector(&sum))
}

/// A model that turns texts into vectors.
pub trait Embedder: Send {
    /// Name and hash of the model; the hash covers every setting that changes a vector.
    fn model(&self) -> &ModelRef;
    /// Components of a vector.
    fn dimensions(&self) -> usize;
    /// One result a text, in order; batched by length inside.
    ///
    /// # Errors
    /// [`EmbedError::Span`] for a range that is not inside its text, [`EmbedError::Model`]
    /// when the model fails; nothing is embedded then.
    fn embed(&mut self, texts: &[SpannedText]) -> Result<Vec<SpanVectors>, EmbedError>;
    /// The vector of a question (the model's query prefix applies).
    ///
    /// # Errors
    /// [`EmbedError::Model`] when the model fails.
    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError>;
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file that embedding needs is nowhere.
    #[error("{what} is not in any of these places: {}; run scripts/setup, or name the place in the pipeline file ([embed])", list(.searched))]
    Missing {
        /// What it is.
        what: String,
        /// Every path that was tried, in order.
        searched: Vec<PathBuf>,
    },
    /// A file is there and cannot be read.
    #[error("{path}: cannot be read; check its permissions")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is there and is not what it should be.
    #[error("{path}: {problem}; remove the file and run scripts/setup, or put the right one there")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// No runner knows the model.
    #[error("embed.model: {name:?} is neither under [embed.models] nor in the catalogue; nearest: {}", .nearest.join(", "))]
    Unknown {
        /// The name as given.
        name: String,
        /// Known names, nearest first.
        nearest: Vec<String>,
    },
    /// The model's runner is left out of this build.
    #[error(
        "embed.model: {name:?} needs a build with `--features qwen3`; build one, or name an endpoint that serves the model (runner = \"endpoint\" and served, in its entry under [embed.models])"
    )]
    NotInBuild {
        /// The name as given.
        name: String,
    },
    /// A span is not a range of its text.
    #[error(
        "text {text}: bytes {start} to {end} are not whole characters of its {length} bytes; cut at character boundaries"
    )]
    Span {
        /// Which text of the call, from 0.
        text: usize,
        /// Where the span begins, in bytes.
        start: usize,
        /// Where it ends, in bytes.
        end: usize,
        /// The text's length in bytes.
        length: usize,
    },
    /// The model could not be run.
    #[error("model {model}: {problem}")]
    Model {
        /// The model's name.
        model: String,
        /// What its runtime said.
        problem: String,
    },
    /// The cache of vectors cannot be used.
    #[error("{path}: the cache of vectors: {problem}")]
    Cache {
        /// The cache's directory.
        path: PathBuf,
        /// Why, with what to do.
        problem: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Loads the model that the pipeline names.
///
/// `model` is the model's own entry ([`crate::config::Pipeline::model`]).
///
/// # Errors
/// [`EmbedError`] that names the missing or damaged file and every place searched at, or the
/// nearest known model names.
pub fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Ok(match model.runner {
        Runner::Onnx => Box::new(onnx::Onnx::open(settings, model)?),
        Runner::Catalogue if catalogue::is_qwen3(&settings.model) => qwen3(settings, model)?,
        Runner::Catalogue => Box::new(catalogue::Catalogue::open(settings, model)?),
        Runner::Endpoint => Box::new(served::Served::open(settings, model)?),
        Runner::Fixed => Box::new(fixed::Fixed::open(settings, model)),
    })
}

#[cfg(feature = "qwen3")]
fn qwen3(settings: &EmbedSettings, model: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Ok(Box::new(qwen3::Qwen3::open(settings, model)?))
}

#[cfg(not(feature = "qwen3"))]
fn qwen3(settings: &EmbedSettings, _: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Err(EmbedError::NotInBuild { name: settings.model.clone() })
}

/// The model's identity: everything that a vector depends on.
///
/// `runner` names the code that pools, with a version; `weights` are hashes of the model's files.
fn model_ref(name: &str, runner: &str, weights: &[&str], model: &ModelSettings) -> ModelRef {
    let pooling = format!("{:?}", model.pooling);
    let limit = format!("{}{}", model.max_tokens, if model.alone { " alone" } else { "" });
    let settings = [runner, &pooling, &limit, &model.text_prefix, &model.query_prefix, &model.turn_template];
    let mut hash = blake3::Hasher::new();
    for field in settings.into_iter().chain(weights.iter().copied()) {
        hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    ModelRef { name: name.to_owned(), hash: hash.finalize().to_hex()[..32].to_owned() }
}

/// Names the first span that is not a range of whole characters of its text.
fn check_spans(texts: &[SpannedText]) -> Result<(), EmbedError> {
    for (i, text) in texts.iter().enumerate() {
        for span in &text.spans {
            if text.text.get(span.clone()).is_none() {
                let length = text.text.len();
                return Err(EmbedError::Span { text: i, start: span.start, end: span.end, length });
            }
        }
    }
    Ok(())
}

/// One plain text for the whole and one a span, for models that pool a text as a whole.
fn embed_apart(
    texts: &[SpannedText],
    prefix: &str,
    embed: impl FnOnce(&[String]) -> Result<Vec<Vector>, EmbedError>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    check_spans(texts)?;
    let mut plain = Vec::with_capacity(texts.len());
    for text in texts {
        plain.push(format!("{prefix}{}", text.text));
        plain.extend(own_spans(text).map(|words| format!("{prefix}{words}")));
    }
    let mut vectors = embed(&plain)?.into_iter();
    let missing = || EmbedError::Model { model: String::new(), problem: "fewer vectors than texts".to_owned() };
    texts
        .iter()
        .map(|text| {
            let whole = vectors.next().ok_or_else(missing)?;
            let mut spans: Vec<Vector> = vectors.by_ref().take(own_spans(text).count()).collect();
            if spans.is_empty() {
                spans.extend(text.spans.iter().map(|_| whole.clone()));
            }
            if spans.len() != text.spans.len() {
                return Err(missing());
            }
            let words = |span: &std::ops::Range<usize>| text.text.get(span.clone()).map_or(0, word_count);
            let weights = text.spans.iter().map(|span| words(span) as f32).collect();
            Ok(SpanVectors { whole, spans, weights })
        })
        .collect()
}

/// The spans' words; none when the only span is the whole text, whose vector serves.
fn own_spans(text: &SpannedText) -> impl Iterator<Item = &str> {
    let same = matches!(text.spans.as_slice(), [only] if *only == (0..text.text.len()));
    text.spans.iter().filter(move |_| !same).filter_map(|span| text.text.get(span.clone()))
}

fn word_count(text: &str) -> usize {
    text.unicode_words().count()
}

/// A direction scaled to length one. A sum of nothing stays zero.
fn unit_vector(sum: &[f64]) -> Vector {
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    Vector(sum.iter().map(|x| (x * scale) as f32).collect())
}

#[cfg(test)]
mod tests {
    // A text with one span is a range in a list, not the list of its members.
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;
    use crate::config::Pipeline;

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
        a.0.iter().zip(b.0.iter()).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    }

    #[test]
    fn every_setting_that_changes_a_vector_changes_the_hash() {
        let (_, base) = settings("fixed");
        let of = |change: fn(&mut ModelSettings)| {
            let mut model = base.clone();
            change(&mut model);
            model_ref("m", "onnx/1", &["weights"], &model).hash
        };
        let same = of(|_| {});
        assert_eq!(same, of(|m| m.semantic_threshold = 0.9));
        let changed = [
            of(|m| m.max_tokens = 128),
            of(|m| m.alone = true),
            of(|m| m.text_prefix = "passage: ".to_owned()),
            of(|m| m.query_prefix = "passage: ".to_owned()),
            of(|m| m.turn_template = "{text}".to_owned()),
            of(|m| m.pooling = crate::config::Pooling::Cls),
            model_ref("m", "onnx/1", &["other"], &base).hash,
            model_ref("m", "onnx/2", &["weights"], &base).hash,
        ];
        let distinct: std::collections::BTreeSet<_> = changed.iter().chain([&same]).collect();
        assert_eq!(distinct.len(), changed.len() + 1);
    }

    #[cfg(not(feature = "qwen3"))]
    #[test]
    fn a_model_that_is_left_out_names_the_build_that_has_it() {
        for name in ["Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding-8b"] {
            let (settings, model) = settings(name);
            let error = open(&settings, &model).err().expect("it is left out").to_string();
            let told = [name, "--features qwen3", "runner = \"endpoint\" and served"];
            assert!(told.iter().all(|words| error.contains(words)), "{error}");
        }
    }

    #[test]
    fn a_span_outside_its_text_is_named() {
        let text = SpannedText { text: "naïve".to_owned(), spans: vec![0..3] };
        let error = check_spans(&[plain("x"), text]).expect_err("3 is inside the ï");
        assert!(
            error.to_string().starts_with("text 1: bytes 0 to 3 are not whole characters of its 6 bytes"),
            "{error}"
        );
    }

    #[test]
    fn texts_embedded_apart_keep_their_order() {
        let texts = [
            SpannedText { text: "ab".to_owned(), spans: vec![0..1, 1..2] },
            plain("c"),
            SpannedText { text: "d".to_owned(), spans: vec![0..1] },
        ];
        let mut asked = Vec::new();
        let found = embed_apart(&texts, ">", |plain| {
            asked = plain.to_vec();
            Ok((0..plain.len()).map(|i| Vector([i as f32].into())).collect())
        })
        .expect("as many vectors as texts");
        assert_eq!(asked, [">ab", ">a", ">b", ">c", ">d"]);
        let shown: Vec<(f32, Vec<f32>)> =
            found.iter().map(|v| (v.whole.0[0], v.spans.iter().map(|s| s.0[0]).collect())).collect();
        assert_eq!(shown, [(0.0, vec![1.0, 2.0]), (3.0, vec![]), (4.0, vec![4.0])]);
        assert_eq!(found[0].weights, [1.0, 1.0]);
    }

    #[test]
    fn a_weighted_sum_has_its_direction() {
        let (a, b) = (Vector([1.0, 0.0].into()), Vector([0.0, 1.0].into()));
        assert_eq!(pool(&[(&a, 3.0), (&b, 4.0)]), Some(Vector([0.6, 0.8].into())));
        assert_eq!(pool(&[(&a, 0.0), (&b, 2.0)]), Some(b.clone()));
        assert_eq!(pool(&[(&a, 0.0)]), Some(a.clone()));
        assert_eq!(pool(&[]), None);
    }
}
