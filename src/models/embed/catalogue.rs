//! Models of fastembed's catalogue, by name.
//!
//! In: texts with spans. Out: their vectors, from one pass for the text and one for each span.
//! The model's files are read from a directory on this machine; nothing is downloaded.
//!
//! A name is the catalogue's code (`Xenova/bge-small-en-v1.5`), its short name (`BGESmallENV15`; the quantised ones end
//! in `Q`), or the model's usual name (`BAAI/bge-small-en-v1.5`). If several entries share a code, it means the entry
//! in full precision.

use std::collections::BTreeMap;

use fastembed::{
    EmbeddingModel, InitOptionsUserDefined, ModelInfo, QuantizationMode, TextEmbedding, TokenizerFiles,
    UserDefinedEmbeddingModel,
};

use super::{
    EmbedError, EmbeddedText, Embedder, asset_paths,
    local_texts::embed_by_text,
    model_files::{ModelFiles, last_segment},
    model_identity::model_ref,
    onnx_runtime,
    spans::{embed_separately, question_vector},
    truncated_texts::TruncationKind,
};
use endpoint::SuspectTexts;
use types::config::{EmbedSettings, ModelSettings};
use types::model::{ModelRef, SpannedText, Vector};

const SUGGESTIONS: usize = 3;
const QWEN3: &str = "qwen3-embedding-";
const QWEN3_CODES: [&str; 3] = ["Qwen/Qwen3-Embedding-0.6B", "Qwen/Qwen3-Embedding-4B", "Qwen/Qwen3-Embedding-8B"];

/// A loaded model of the catalogue.
pub(super) struct CatalogueEmbedder {
    model: ModelRef,
    settings: ModelSettings,
    /// 1 when other texts in a batch would change a vector.
    batch: usize,
    dimensions: usize,
    runner: TextEmbedding,
    suspects: SuspectTexts,
}

impl CatalogueEmbedder {
    /// Looks the name up and loads the model's files.
    pub(super) fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let name = &settings.model;
        let entry = find(name)?;
        let environment = onnx_runtime::environment(&asset_paths::library(settings)?)?;
        let short = entry.model.to_string();
        let directory =
            asset_paths::first_model_directory(settings, &[name, &entry.model_code, last_segment(name), &short])?;

        let quantization = TextEmbedding::get_quantization_mode(&entry.model);
        let mut read = ModelFiles::new(&directory, name);
        let onnx = read.read(&entry.model_file)?;
        let tokenizer = TokenizerFiles {
            tokenizer_file: read.read("tokenizer.json")?,
            config_file: read.read("config.json")?,
            special_tokens_map_file: read.read("special_tokens_map.json")?,
            tokenizer_config_file: read.read("tokenizer_config.json")?,
        };
        let mut defined = UserDefinedEmbeddingModel::new(onnx, tokenizer).with_quantization(quantization);
        defined.pooling = TextEmbedding::get_default_pooling_method(&entry.model);
        defined.output_key = entry.output_key.clone();
        for file in &entry.additional_files {
            let bytes = read.read(file)?;
            defined = defined.with_external_initializer(last_segment(file).to_owned(), bytes);
        }
        let options = InitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_max_length(model.max_tokens)
            .with_intra_threads(settings.threads)
            .with_session_config("session.intra_op.allow_spinning", "0");
        let runner_name = format!("fastembed/7 {short}");
        let hashes: Vec<&str> = read.hashes.iter().map(String::as_str).collect();
        let reference = model_ref(name, &runner_name, &hashes, model);
        let runner = TextEmbedding::try_new_from_user_defined(defined, options)
            .map_err(|e| EmbedError::Damaged { path: directory.clone(), problem: format!("cannot be run ({e})") })?;
        let batch = if quantization == QuantizationMode::Dynamic { 1 } else { settings.batch.max(1) };
        let mut opened = Self {
            model: reference,
            settings: model.clone(),
            batch,
            dimensions: entry.dim,
            runner,
            suspects: SuspectTexts::default(),
        };
        let probe = opened.embed_query("ready")?;
        if probe.len() != entry.dim {
            let problem = format!("gives {} components, and {short} has {}", probe.len(), entry.dim);
            return Err(EmbedError::Damaged { path: directory, problem });
        }
        Ok(opened)
    }
}

impl Embedder for CatalogueEmbedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError> {
        let Self { runner, model, batch, settings, suspects, .. } = self;
        let (name, prefix) = (&model.name, &settings.text_prefix);
        let mut run = |texts: &[String]| run(runner, name, texts, *batch);
        embed_separately(texts, prefix, |plain| {
            embed_by_text(name, suspects, plain, prefix.len(), TruncationKind::Beginning, &mut run)
        })
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let Self { runner, model, batch, settings, suspects, .. } = self;
        let (name, prefix) = (&model.name, &settings.query_prefix);
        let mut run = |texts: &[String]| run(runner, name, texts, *batch);
        let text = [format!("{prefix}{text}")];
        question_vector(name, embed_by_text(name, suspects, &text, prefix.len(), TruncationKind::Ends, &mut run)?)
    }
}

/// Vectors in the order of `texts`; each batch holds texts of similar length.
fn run(runner: &mut TextEmbedding, model: &str, texts: &[String], batch: usize) -> Result<Vec<Vector>, EmbedError> {
    let failed = |problem: String| EmbedError::Model { model: model.to_owned(), problem };
    // Sorted by bytes, not by tokens: fastembed tokenises the texts itself, and tokenising twice costs more than it
    // saves.
    let mut sorted: Vec<(usize, &str)> = texts.iter().map(String::as_str).enumerate().collect();
    sorted.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let mut found: Vec<(usize, Vector)> = Vec::with_capacity(texts.len());
    for chunk in sorted.chunks(batch) {
        let words: Vec<&str> = chunk.iter().map(|(_, text)| *text).collect();
        let vectors = runner.embed(words, None).map_err(|e| failed(e.to_string()))?;
        if vectors.len() != chunk.len() {
            return Err(failed(format!("{} vectors for {} texts", vectors.len(), chunk.len())));
        }
        found.extend(chunk.iter().zip(vectors).map(|((i, _), vector)| (*i, Vector::from(vector))));
    }
    found.sort_by_key(|(i, _)| *i);
    Ok(found.into_iter().map(|(_, vector)| vector).collect())
}

/// The catalogue entry for `name`.
fn find(name: &str) -> Result<ModelInfo<EmbeddingModel>, EmbedError> {
    let mut models = TextEmbedding::list_supported_models();
    // Full precision first, then by name: the list's own order changes from run to run.
    let quantised = |m: &EmbeddingModel| m.to_string().ends_with('Q') || m.to_string().ends_with("Q4");
    models.sort_by_key(|info| (quantised(&info.model), info.model.to_string()));
    let by = |fits: &dyn Fn(&ModelInfo<EmbeddingModel>) -> bool| models.iter().find(|info| fits(info));
    by(&|info| info.model.to_string().eq_ignore_ascii_case(name))
        .or_else(|| by(&|info| info.model_code.eq_ignore_ascii_case(name)))
        .or_else(|| by(&|info| usual_name(&info.model_code).eq_ignore_ascii_case(&usual_name(name))))
        .cloned()
        .ok_or_else(|| EmbedError::Unknown { name: name.to_owned(), nearest: nearest(name, &models) })
}

/// Whether the name is a Qwen3-Embedding model, which is not in fastembed's catalogue (`qwen3`).
pub(super) fn is_qwen3(name: &str) -> bool {
    usual_name(name).starts_with(QWEN3)
}

/// The name without its publisher and without the suffix of an ONNX export.
fn usual_name(code: &str) -> String {
    let name = last_segment(code).to_lowercase();
    ["-onnx-q", "-onnx"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).to_owned()
}

fn nearest(name: &str, models: &[ModelInfo<EmbeddingModel>]) -> Vec<String> {
    let mut known: BTreeMap<&str, f64> = BTreeMap::new();
    for code in models.iter().map(|info| info.model_code.as_str()).chain(QWEN3_CODES) {
        known.insert(code, strsim::jaro_winkler(&usual_name(code), &usual_name(name)));
    }
    let mut known: Vec<(&str, f64)> = known.into_iter().collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    known.into_iter().take(SUGGESTIONS).map(|(code, _)| code.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::onnx;
    use crate::embed::tests::{cosine, plain, settings};

    #[test]
    fn a_model_is_found_by_each_of_its_names() {
        let check = |name: &str, expected: EmbeddingModel| {
            assert_eq!(find(name).map(|info| info.model).ok(), Some(expected), "{name}");
        };
        check("sentence-transformers/all-MiniLM-L6-v2", EmbeddingModel::AllMiniLML6V2);
        check("Qdrant/all-MiniLM-L6-v2-onnx", EmbeddingModel::AllMiniLML6V2);
        check("Xenova/all-MiniLM-L6-v2", EmbeddingModel::AllMiniLML6V2Q);
        check("allminilml6v2q", EmbeddingModel::AllMiniLML6V2Q);
        check("Xenova/all-MiniLM-L12-v2", EmbeddingModel::AllMiniLML12V2);
        check("BAAI/bge-small-en-v1.5", EmbeddingModel::BGESmallENV15);
        check("BAAI/bge-m3", EmbeddingModel::BGEM3);
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_ones() {
        let error = find("BAAI/bge-smal-en-v1.5").expect_err("no such model").to_string();
        assert!(error.contains("\"BAAI/bge-smal-en-v1.5\"") && error.contains("/bge-small-en-v1.5"), "{error}");
        let error = find("Qwen/Qwen3-Embeding-4B").expect_err("no such model").to_string();
        assert!(error.contains("Qwen/Qwen3-Embedding-4B"), "{error}");
        assert!(QWEN3_CODES.iter().all(|code| is_qwen3(code)) && !is_qwen3("BAAI/bge-m3"));
    }

    #[test]
    fn missing_files_are_named() {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(root.path().join("BAAI/bge-m3")).expect("made");
        let (mut settings, model) = settings("BAAI/bge-m3");
        settings.models_directory = Some(root.path().to_owned());
        let error = match CatalogueEmbedder::open(&settings, &model) {
            Err(EmbedError::Missing { what, .. }) if what.contains("shared library") => {
                testing::skipped("embed::catalogue::missing_files_are_named: no ONNX Runtime; run scripts/setup");
                return;
            }
            other => other.err().expect("an empty directory").to_string(),
        };
        assert!(
            error.contains("BAAI/bge-m3/onnx/model.onnx, ") && error.contains("BAAI/bge-m3/model.onnx. "),
            "{error}"
        );
        settings.models_directory = Some(root.path().join("none"));
        let error = CatalogueEmbedder::open(&settings, &model).err().expect("no directory").to_string();
        assert!(error.contains("none/BAAI/bge-m3, ") && error.contains("none/bge-m3, "), "{error}");
    }

    #[test]
    fn the_catalogue_agrees_with_the_direct_runner() {
        let name = "sentence-transformers/all-MiniLM-L6-v2";
        let test = "catalogue::the_catalogue_agrees_with_the_direct_runner";
        let Some(mut direct) = onnx::tests::model(test, 16) else { return };
        let (settings, model) = settings(name);
        let mut catalogue = CatalogueEmbedder::open(&settings, &model).expect("the same files serve");
        assert_eq!((catalogue.dimensions(), direct.dimensions()), (384, 384));
        assert_ne!(catalogue.model().hash, direct.model().hash);

        let sentences = ["Rain fell on the market.", "A", "She moved to Porto in 2019 and opened a bakery there."];
        let texts = sentences.map(plain);
        let (ours, theirs) = (direct.embed(&texts).expect("vectors"), catalogue.embed(&texts).expect("vectors"));
        for (a, b) in ours.iter().zip(&theirs) {
            assert!(cosine(&a.whole, &b.whole) > 0.9999);
        }
        let spanned = SpannedText { text: sentences[..2].join(" "), spans: vec![0..24, 25..26] };
        let found = catalogue.embed(&[spanned]).expect("vectors").remove(0);
        assert!(found.spans.iter().zip(&theirs).all(|(a, b)| cosine(a, &b.whole) > 0.999_999));
        let (a, b) = (direct.embed_query(sentences[2]).expect("a vector"), catalogue.embed_query(sentences[2]));
        assert!(cosine(&a, &b.expect("a vector")) > 0.9999);
    }
}
