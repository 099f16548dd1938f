//! A sentence encoder on ONNX Runtime: one pass gives a vector for every span (decision 23).
//!
//! In: texts with spans. Out: their vectors, pooled from the last hidden rows by the tokenizer's offsets (see
//! `passes`). Texts run in batches of similar length. The other texts of a batch change a component by at most 1e-6,
//! and by nothing if the model runs one text at a time (`alone`). The model's files are only read; a damaged file is an
//! error that names it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use sha2::{Digest, Sha256};
use tokenizers::Tokenizer;

use super::asset_paths::{self, TOKENIZER_FILE};
use super::local_texts::{NO_NUMBERS, catch_panic, embed_by_text, is_finite};
use super::model_identity::model_ref;
use super::pass_runner::{ModelSignature, run_batches, run_in_parallel};
use super::passes::{TextPooling, TokenizedText};
use super::spans::{check_spans, embed_separately, question_vector};
use super::truncated_texts::TruncationKind;
use super::{EmbedError, EmbeddedText, Embedder, SpanVectors, onnx_runtime};
use endpoint::SuspectTexts;
use types::config::{EmbedSettings, ModelSettings, TokenPooling};
use types::model::{ModelRef, SpannedText, Vector};

/// The model in its directory.
pub(crate) const MODEL_FILE: &str = "model.onnx";

/// A loaded model.
pub(super) struct OnnxEmbedder {
    model: ModelRef,
    settings: ModelSettings,
    batch: usize,
    tokenizer: Tokenizer,
    /// One session that uses every thread, or one session for each thread if texts run alone.
    sessions: Vec<Session>,
    signature: ModelSignature,
    dimensions: usize,
    suspects: SuspectTexts,
}

impl OnnxEmbedder {
    /// Loads the runtime, the model and its tokenizer, and checks the model's hash.
    pub(super) fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let environment = onnx_runtime::environment(&asset_paths::library(settings)?)?;
        let directory = asset_paths::model_directory(settings, &settings.model)?;
        let (file, tokenizer_file) = (directory.join(MODEL_FILE), directory.join(TOKENIZER_FILE));
        for needed in [&file, &tokenizer_file] {
            if !needed.is_file() {
                let what = format!("a file of the model {:?}", settings.model);
                return Err(EmbedError::Missing { what, searched: vec![needed.clone()] });
            }
        }
        let (session_count, threads) = if model.alone { (settings.threads.max(1), 1) } else { (1, settings.threads) };
        // Hashing and loading the file take about as long, so they run in parallel.
        let (hash, sessions) = std::thread::scope(|scope| {
            let hash = scope.spawn(|| sha256(&file));
            let load = |_| load_session(environment, &file, threads);
            let sessions = (0..session_count).map(load).collect::<Result<Vec<Session>, _>>();
            (hash.join(), sessions)
        });
        let damaged = |path: &Path, problem: String| EmbedError::Damaged { path: path.to_owned(), problem };
        let hash = hash.map_err(|_| damaged(&file, "hashing it failed".to_owned()))??;
        if let Some(expected) = &model.sha256
            && !expected.eq_ignore_ascii_case(&hash)
        {
            return Err(damaged(&file, format!("has SHA-256 {hash}, but the pipeline requires {expected}")));
        }
        let sessions = sessions.map_err(|e| damaged(&file, format!("is not a model that can be run ({e})")))?;
        let session = sessions.first().ok_or_else(|| damaged(&file, "was not loaded".to_owned()))?;
        let (tokenizer, padding, tokenizer_hash) = read_tokenizer(&tokenizer_file)?;

        let named = |name: &str| session.inputs().iter().any(|input| input.name() == name);
        if !named("input_ids") || !named("attention_mask") {
            return Err(damaged(&file, "is not a sentence encoder: no input_ids or attention_mask".to_owned()));
        }
        let token_types = named("token_type_ids");
        let outputs: Vec<&str> = session.outputs().iter().map(|output| output.name()).collect();
        let output = ["last_hidden_state", "token_embeddings"].into_iter().find(|name| outputs.contains(name));
        let output =
            output.or(outputs.first().copied()).ok_or_else(|| damaged(&file, "has no output".to_owned()))?.to_owned();
        let mut opened = Self {
            model: model_ref(&settings.model, "onnx/1", &[&hash, &tokenizer_hash], model),
            settings: model.clone(),
            batch: if model.alone { 1 } else { settings.batch.max(1) },
            tokenizer,
            signature: ModelSignature { model: settings.model.clone(), padding, token_types, output },
            sessions,
            dimensions: 0,
            suspects: SuspectTexts::default(),
        };
        // The first run shows the width of a vector, and that the files fit each other.
        let probe = opened.embed_query("ready").map_err(|e| damaged(&file, format!("does not run ({e})")))?;
        opened.dimensions = probe.len();
        Ok(opened)
    }

    fn tokenise(&self, texts: &[String], prefix: usize) -> Result<Vec<TokenizedText>, EmbedError> {
        let inputs: Vec<&str> = texts.iter().map(String::as_str).collect();
        let encodings = self.tokenizer.encode_batch(inputs, true).map_err(|e| self.failed(&e))?;
        Ok(encodings
            .iter()
            .map(|e| TokenizedText::new(e.get_ids(), e.get_offsets(), e.get_special_tokens_mask(), prefix))
            .collect())
    }

    /// Vectors of texts whose first `prefix` bytes are the prefix; spans count from its end.
    fn pool(&mut self, texts: &[String], spans: &[SpannedText], prefix: usize) -> Result<Vec<SpanVectors>, EmbedError> {
        let tokens = self.tokenise(texts, prefix)?;
        let mut passes = Vec::with_capacity(texts.len());
        let mut pooled: Vec<TextPooling> = Vec::with_capacity(texts.len());
        for (i, tokens) in tokens.iter().enumerate() {
            let own = spans.get(i).map(|text| text.spans.as_slice()).unwrap_or_default();
            let shifted: Vec<_> = own.iter().map(|span| span.start + prefix..span.end + prefix).collect();
            let (limit, pooling) = (self.settings.max_tokens, self.settings.pooling);
            pooled.push(TextPooling::plan(i, tokens, &shifted, limit, pooling, &mut passes));
        }
        // Longest first: a batch is padded to its longest pass, and memory is allocated once.
        passes.sort_by_key(|pass| std::cmp::Reverse(pass.ids.len()));
        match self.sessions.as_mut_slice() {
            [session] => run_batches(session, &self.signature, &passes, self.batch, pooled),
            sessions => run_in_parallel(sessions, &self.signature, passes, pooled),
        }
    }

    /// As [`Self::pool`]; a panic is an error, too, and so is a missing vector or a component that is no number.
    fn try_pool(
        &mut self,
        texts: &[String],
        spans: &[SpannedText],
        prefix: usize,
    ) -> Result<Vec<SpanVectors>, EmbedError> {
        let name = self.model.name.clone();
        catch_panic(&name, || {
            let found = self.pool(texts, spans, prefix)?;
            let are_numbers = |made: &SpanVectors| is_finite(&made.whole) && made.spans.iter().all(is_finite);
            if found.len() == texts.len() && found.iter().all(are_numbers) {
                Ok(found)
            } else {
                Err(self.failed(&NO_NUMBERS))
            }
        })
    }

    /// The vectors of plain texts that begin with a prefix of this length, or why a text has none.
    fn plain(
        &mut self,
        texts: &[String],
        prefix: usize,
        keeps: TruncationKind,
    ) -> Result<Vec<Result<Vector, String>>, EmbedError> {
        let (name, suspects) = (self.model.name.clone(), std::mem::take(&mut self.suspects));
        let found = embed_by_text(&name, &suspects, texts, prefix, keeps, &mut |texts| {
            Ok(self.pool(texts, &[], prefix)?.into_iter().map(|made| made.whole).collect())
        });
        self.suspects = suspects;
        found
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> EmbedError {
        EmbedError::Model { model: self.model.name.clone(), problem: error.to_string() }
    }
}

impl Embedder for OnnxEmbedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError> {
        let prefix = self.settings.text_prefix.clone();
        let apart = |own: &mut Self, texts: &[SpannedText]| {
            embed_separately(texts, &prefix, |plain| own.plain(plain, prefix.len(), TruncationKind::Beginning))
        };
        if self.settings.pooling == TokenPooling::Cls {
            return apart(self, texts);
        }
        check_spans(texts)?;
        let prefixed: Vec<String> = texts.iter().map(|text| format!("{prefix}{}", text.text)).collect();
        if let Ok(found) = self.try_pool(&prefixed, texts, prefix.len()) {
            return Ok(found.into_iter().map(EmbeddedText::accepted).collect());
        }
        let mut found = Vec::with_capacity(texts.len());
        for (prefixed, text) in prefixed.iter().zip(texts) {
            let (prefixed, text) = (std::slice::from_ref(prefixed), std::slice::from_ref(text));
            match self.try_pool(prefixed, text, prefix.len()) {
                Ok(made) => found.extend(made.into_iter().map(EmbeddedText::accepted)),
                Err(_) => found.extend(apart(self, text)?),
            }
        }
        Ok(found)
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let prefix = self.settings.query_prefix.len();
        let text = format!("{}{text}", self.settings.query_prefix);
        let found = self.plain(&[text], prefix, TruncationKind::Ends)?;
        question_vector(&self.model.name, found)
    }
}

/// Loads a model's file, for passes on `threads` threads.
pub(crate) fn load_session(environment: &Environment, file: &Path, threads: usize) -> ort::Result<Session> {
    Session::builder(environment)
        .and_then(|b| Ok(b.with_optimization_level(GraphOptimizationLevel::Level3)?))
        .and_then(|b| Ok(b.with_intra_threads(threads)?))
        .and_then(|b| Ok(b.with_intra_op_spinning(false)?))
        // With memory patterns, the runtime would keep a memory plan for each length of text, and the largest block of
        // each.
        .and_then(|b| Ok(b.with_memory_pattern(false)?))
        .and_then(|mut b| b.commit_from_file(file))
}

/// The tokenizer, its padding token, and a hash of the file.
///
/// The file's padding and truncation are turned off, because `passes` cuts and `pass_runner` pads.
pub(crate) fn read_tokenizer(path: &Path) -> Result<(Tokenizer, i64, String), EmbedError> {
    let bytes = std::fs::read(path).map_err(|source| EmbedError::Read { path: path.to_owned(), source })?;
    let damaged = |problem: String| EmbedError::Damaged { path: path.to_owned(), problem };
    let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(|e| damaged(format!("is not a tokenizer ({e})")))?;
    let padding = tokenizer.get_padding().map_or(0, |padding| i64::from(padding.pad_id));
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|e| damaged(e.to_string()))?;
    Ok((tokenizer, padding, blake3::hash(&bytes).to_hex().to_string()))
}

/// The SHA-256 of a file.
pub(crate) fn sha256(path: &Path) -> Result<String, EmbedError> {
    let read = |source| EmbedError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(read)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0u8; 1 << 18];
    loop {
        match file.read(&mut piece).map_err(read)? {
            0 => break,
            n => hash.update(piece.get(..n).unwrap_or_default()),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "onnx_tests.rs"]
pub(super) mod tests;
