//! Tests of the ONNX embedder with the real default model.
//!
//! Without the model each test reports itself as skipped, by name; `make test` sets it up.

use std::path::PathBuf;

use super::*;
use crate::embed::tests::{cosine, plain, settings};

const MODEL: &str = "all-MiniLM-L6-v2";

/// The default model with another batch size; `None`, reported as skipped, if it is not set up.
pub(in crate::embed) fn model(test: &str, batch: usize) -> Option<OnnxEmbedder> {
    let (mut settings, model) = settings(MODEL);
    settings.batch = batch;
    match OnnxEmbedder::open(&settings, &model) {
        Ok(model) => Some(model),
        Err(EmbedError::Missing { .. }) => {
            testing::skipped(&format!("embed::{test}: the default model is not set up; run scripts/setup"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The 8-bit model on `threads`; `None`, reported as skipped, if it is not set up.
fn int8(test: &str, threads: usize) -> Option<OnnxEmbedder> {
    let (mut settings, model) = settings("all-MiniLM-L6-v2-int8");
    settings.threads = threads;
    match OnnxEmbedder::open(&settings, &model) {
        Ok(model) => Some(model),
        Err(EmbedError::Missing { .. }) => {
            testing::skipped(&format!("embed::{test}: the 8-bit model is not set up; run scripts/setup"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Texts of 1 to 300 words, some with spans.
fn sample() -> Vec<SpannedText> {
    let words =
        ["harbour", "we", "painted", "the", "blue", "boat", "before", "Thursday", "in", "Lisbon", "again", "42"];
    (0..40usize)
        .map(|i| {
            let length = if i == 39 { 300 } else { 1 + i * 7 % 61 };
            let text: Vec<&str> = (0..length).map(|j| words[(i * 5 + j * j + j) % words.len()]).collect();
            let text = text.join(" ");
            let half = text.find(' ').unwrap_or(text.len());
            let spans = if i % 3 == 0 { vec![0..half, half..text.len()] } else { Vec::new() };
            SpannedText { text, spans }
        })
        .collect()
}

#[test]
fn known_sentences_have_known_cosines() {
    let Some(mut model) = model("onnx::known_sentences_have_known_cosines", 16) else { return };
    assert_eq!(model.dimensions(), 384);
    assert_eq!(model.model().name, MODEL);
    // These values are published in the model's own examples, and were reproduced in double precision.
    let a = model.embed_query("The weather is lovely today.").expect("a vector");
    let b = model.embed_query("It's so sunny outside!").expect("a vector");
    let c = model.embed_query("He drove to the stadium.").expect("a vector");
    assert!((cosine(&a, &b) - 0.6660).abs() < 1e-4, "{}", cosine(&a, &b));
    assert!((cosine(&a, &c) - 0.1046).abs() < 1e-4, "{}", cosine(&a, &c));
    assert!((cosine(&b, &c) - 0.1411).abs() < 1e-4, "{}", cosine(&b, &c));
    assert!((cosine(&a, &a) - 1.0).abs() < 1e-6);
}

#[test]
fn vectors_do_not_depend_on_the_batch() {
    let Some(mut alone) = model("onnx::vectors_do_not_depend_on_the_batch", 1) else { return };
    let texts = sample();
    let expected = alone.embed(&texts).expect("vectors");
    for batch in [2, 16, 32] {
        let mut model = model("onnx", batch).expect("it was there a moment ago");
        let found = model.embed(&texts).expect("vectors");
        let mut worst = 0f32;
        for (a, b) in expected.iter().zip(&found) {
            let pairs = std::iter::once((&a.whole, &b.whole)).chain(a.spans.iter().zip(&b.spans));
            for (a, b) in pairs {
                let apart = |(x, y): (&f32, &f32)| (x - y).abs();
                worst = a.floats().iter().zip(b.floats().iter()).map(apart).fold(worst, f32::max);
            }
        }
        assert!(worst < 1e-6, "batch {batch}: {worst:e}");
    }
}

#[test]
fn an_8_bit_vector_depends_on_its_text_alone() {
    let test = "onnx::an_8_bit_vector_depends_on_its_text_alone";
    let (Some(mut one), Some(mut two)) = (int8(test, 1), int8(test, 2)) else { return };
    assert_eq!((one.sessions.len(), two.sessions.len()), (1, 2));
    let texts = sample();
    let among = two.embed(&texts).expect("vectors");
    assert_eq!(one.embed(&texts).expect("vectors"), among);
    for (text, expected) in texts.iter().zip(&among) {
        assert_eq!(&one.embed(std::slice::from_ref(text)).expect("vectors")[0], expected);
        assert_eq!(&two.embed(std::slice::from_ref(text)).expect("vectors")[0], expected);
    }
    let mut reversed: Vec<SpannedText> = texts.clone();
    reversed.reverse();
    let mut found = two.embed(&reversed).expect("vectors");
    found.reverse();
    assert_eq!(found, among);
}

#[test]
fn an_8_bit_vector_is_near_the_full_one() {
    let test = "onnx::an_8_bit_vector_is_near_the_full_one";
    let (Some(mut full), Some(mut int8)) = (model(test, 16), int8(test, 2)) else { return };
    let texts: Vec<SpannedText> = sample();
    let (full, int8) = (full.embed(&texts).expect("vectors"), int8.embed(&texts).expect("vectors"));
    let cosines: Vec<f64> = full.iter().zip(&int8).map(|(a, b)| cosine(&a.whole, &b.whole)).collect();
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    assert!(mean > 0.98 && mean < 0.9999 && cosines.iter().all(|c| *c > 0.94), "{mean}: {cosines:?}");
}

#[test]
fn spans_pool_the_tokens_of_one_pass() {
    let Some(mut model) = model("onnx::spans_pool_the_tokens_of_one_pass", 16) else { return };
    let text = "Ana said, \"I planted basil.\" Bo said, \"The roof leaks again.\"".to_owned();
    let cut = text.find(" Bo").expect("Bo speaks");
    let spanned = SpannedText { spans: vec![0..cut, cut + 1..text.len()], text };
    let found = model.embed(std::slice::from_ref(&spanned)).expect("vectors").remove(0);
    for (span, vector) in spanned.spans.iter().zip(&found.spans) {
        let alone = model.embed(&[plain(&spanned.text[span.clone()])]).expect("a vector").remove(0).whole;
        let near = cosine(vector, &alone);
        assert!((0.6..0.9999).contains(&near), "in context, near itself alone: {near}");
    }
    assert!(cosine(&found.spans[0], &found.spans[1]) < 0.9);
    // The whole is the sum of the spans' sums, so it is nearer to each span than they are to each other.
    let apart = cosine(&found.spans[0], &found.spans[1]);
    assert!(found.spans.iter().all(|span| cosine(span, &found.whole) > apart));
}

#[test]
fn the_end_of_a_long_text_has_a_vector_of_its_content() {
    let Some(mut model) = model("onnx::nothing_of_a_long_text_is_lost", 16) else { return };
    let filler = "The committee met again and nothing at all was decided about it. ".repeat(30);
    let last = "My sister keeps bees on the roof.";
    let text = format!("{filler}{last}");
    let spans = vec![0..filler.len() - 1, filler.len()..text.len()];
    let found = model.embed(&[SpannedText { text, spans }]).expect("vectors").remove(0);
    let question = model.embed_query("Who keeps bees?").expect("a vector");
    let near = [0, 1].map(|i| cosine(&found.spans[i], &question));
    assert!(near[1] > near[0] + 0.25, "{near:?}");
    for vector in found.spans.iter().chain([&found.whole]) {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn odd_texts_have_finite_vectors() {
    let Some(mut model) = model("onnx::odd_texts_have_finite_vectors", 16) else { return };
    let long = "a".repeat(5_000);
    for odd in ["", " ", "\u{200b}", "\0", "🦀🦀", "日本語のテキスト", "[CLS] [SEP]", &long] {
        let spanned = SpannedText { text: odd.to_owned(), spans: vec![0..odd.len(), 0..0] };
        for vectors in model.embed(&[plain(odd), spanned]).expect("vectors") {
            for vector in vectors.spans.iter().chain([&vectors.whole]) {
                assert!((cosine(vector, vector) - 1.0).abs() < 1e-5, "{odd:?}");
            }
        }
    }
    assert!(model.embed(&[]).expect("nothing to do").is_empty());
}

/// A copy of the model's directory in which one file is replaced.
fn damage(test: &str, file: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<(tempfile::TempDir, PathBuf)> {
    let (settings, _) = settings(MODEL);
    let Ok(source) = asset_paths::model_directory(&settings, MODEL) else {
        testing::skipped(&format!("embed::{test}: the default model is not set up; run scripts/setup"));
        return None;
    };
    let root = tempfile::tempdir().expect("a temporary directory");
    let target = root.path().join(MODEL);
    std::fs::create_dir(&target).expect("made");
    for name in [MODEL_FILE, TOKENIZER_FILE] {
        let bytes = std::fs::read(source.join(name)).expect("read");
        let bytes = if name == file { change(bytes) } else { bytes };
        std::fs::write(target.join(name), bytes).expect("written");
    }
    Some((root, target.join(file)))
}

fn check_damage(test: &str, file: &str, pinned: bool, change: impl Fn(Vec<u8>) -> Vec<u8>, expected: &str) {
    let Some((root, path)) = damage(test, file, change) else { return };
    let (mut settings, mut model) = settings(MODEL);
    settings.models_directory = Some(root.path().to_owned());
    if !pinned {
        model.sha256 = None;
    }
    let error = OnnxEmbedder::open(&settings, &model).err().expect("a damaged file").to_string();
    assert!(error.starts_with(&path.display().to_string()) && error.contains(expected), "{error}");
}

#[test]
fn a_damaged_file_is_named() {
    let test = "onnx::a_damaged_file_is_named";
    let flip = |mut bytes: Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };
    let halve = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    check_damage(test, MODEL_FILE, true, flip, "has SHA-256");
    check_damage(test, MODEL_FILE, true, halve, "has SHA-256");
    check_damage(test, MODEL_FILE, false, halve, "is not a model that can be run");
    check_damage(test, MODEL_FILE, false, |_| Vec::new(), "is not a model that can be run");
    check_damage(test, TOKENIZER_FILE, true, halve, "is not a tokenizer");
}

#[test]
fn a_missing_file_is_named() {
    let Some((root, path)) = damage("onnx::a_missing_file_is_named", TOKENIZER_FILE, |b| b) else { return };
    std::fs::remove_file(&path).expect("removed");
    let (mut settings, model) = settings(MODEL);
    settings.models_directory = Some(root.path().to_owned());
    let error = OnnxEmbedder::open(&settings, &model).err().expect("no tokenizer").to_string();
    assert!(error.contains(&path.display().to_string()) && error.contains("ripplemem setup"), "{error}");
}
