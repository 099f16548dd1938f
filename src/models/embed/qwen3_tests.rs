//! Tests against a synthetic model in the published format: bytes as tokens, weights from a seed.

// A text with one span is given as a range in a list, not as a list of its members.
#![allow(clippy::single_range_in_vec_init)]

use std::path::PathBuf;

use serde_json::json;
use tokenizers::AddedToken;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::template::TemplateProcessing;

use super::*;
use crate::embed;
use crate::embed::tests::{cosine, plain, settings};

const NAME: &str = "Qwen/Qwen3-Embedding-0.6B";
const END: &str = "<|endoftext|>";
const END_ID: u32 = 256;
/// The bytes and the end token; `<think>` has no row, as in the larger models.
const ROWS: usize = 257;
const HIDDEN: usize = 32;
const LAYERS: usize = 2;
/// 4 heads of 16, which is not the hidden size divided by the number of heads.
const HEAD: usize = 16;
const INNER: usize = 48;

type TensorMap = HashMap<String, Tensor>;

/// Every tensor by its published name, with values that fit into 16 bits.
fn tensors(seed: u64) -> TensorMap {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut made = HashMap::new();
    let mut add = |name: String, shape: &[usize]| {
        let near = if shape.len() == 1 { 1.0 } else { 0.0 };
        let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| near + random.f32() - 0.5).collect();
        let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).and_then(|t| t.to_dtype(DType::BF16));
        made.insert(name, tensor.expect("numbers of that shape"));
    };
    add("embed_tokens.weight".to_owned(), &[ROWS, HIDDEN]);
    add("norm.weight".to_owned(), &[HIDDEN]);
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("self_attn.q_proj", &[4 * HEAD, HIDDEN][..]),
            ("self_attn.k_proj", &[2 * HEAD, HIDDEN]),
            ("self_attn.v_proj", &[2 * HEAD, HIDDEN]),
            ("self_attn.o_proj", &[HIDDEN, 4 * HEAD]),
            ("self_attn.q_norm", &[HEAD]),
            ("self_attn.k_norm", &[HEAD]),
            ("mlp.gate_proj", &[INNER, HIDDEN]),
            ("mlp.up_proj", &[INNER, HIDDEN]),
            ("mlp.down_proj", &[HIDDEN, INNER]),
            ("input_layernorm", &[HIDDEN]),
            ("post_attention_layernorm", &[HIDDEN]),
        ] {
            add(format!("layers.{layer}.{name}.weight"), shape);
        }
    }
    made
}

fn config() -> Value {
    json!({
        "model_type": "qwen3", "attention_bias": false, "attention_dropout": 0.0, "head_dim": HEAD,
        "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": INNER,
        "max_position_embeddings": 32768, "max_window_layers": LAYERS, "num_attention_heads": 4,
        "num_hidden_layers": LAYERS, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_scaling": null,
        "rope_theta": 1_000_000, "sliding_window": null, "tie_word_embeddings": true, "use_cache": true,
        "use_sliding_window": false, "vocab_size": ROWS,
    })
}

/// A tokenizer of bytes; with `ends` it appends the end token, like Qwen3-Embedding's.
fn tokenizer(ends: bool) -> String {
    let mut bytes: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    bytes.sort_unstable();
    let vocabulary: Vec<(String, u32)> = (0..).zip(bytes).map(|(id, byte)| (byte.to_string(), id)).collect();
    let bpe =
        BPE::builder().vocab_and_merges(vocabulary.into_iter().collect::<tokenizers::models::bpe::Vocab>(), vec![]);
    let mut made = Tokenizer::new(bpe.build().expect("a model of bytes"));
    made.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(false)));
    made.add_special_tokens([AddedToken::from(END, true)]).expect("a new token");
    made.add_tokens([AddedToken::from("<think>", false)]).expect("a new token");
    assert_eq!((made.token_to_id(END), made.token_to_id("<think>")), (Some(END_ID), Some(ROWS as u32)));
    if ends {
        let mut template = TemplateProcessing::builder();
        template.try_single(format!("$A {END}")).expect("a template").special_tokens(vec![(END, END_ID)]);
        made.with_post_processor(Some(template.build().expect("a template")));
    }
    made.to_string(false).expect("a tokenizer is text")
}

/// A models directory that contains one model.
struct ModelDirectory {
    root: tempfile::TempDir,
    directory: PathBuf,
}

impl ModelDirectory {
    fn new() -> Self {
        Self::with(&tensors(1))
    }

    fn with(tensors: &TensorMap) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join(NAME);
        std::fs::create_dir_all(&directory).expect("made");
        let made = Self { root, directory };
        made.write(CONFIG, config().to_string());
        made.write(TOKENIZER_FILE, tokenizer(true));
        made.save(WEIGHTS, tensors);
        made
    }

    fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.directory.join(file), content).expect("written");
    }

    fn save(&self, file: &str, tensors: &TensorMap) {
        candle_core::safetensors::save(tensors, self.directory.join(file)).expect("written");
    }

    fn remove(&self, file: &str) {
        std::fs::remove_file(self.directory.join(file)).expect("removed");
    }

    fn settings(&self, threads: usize) -> (EmbedSettings, ModelSettings) {
        let (mut settings, model) = settings(NAME);
        settings.models_directory = Some(self.root.path().to_owned());
        settings.threads = threads;
        (settings, model)
    }

    fn open(&self) -> Box<dyn Embedder> {
        let (settings, model) = self.settings(2);
        embed::open(&settings, &model).expect("a whole model")
    }

    fn refused(&self) -> String {
        let (settings, model) = self.settings(2);
        embed::open(&settings, &model).err().expect("not a whole model").to_string()
    }
}

/// Texts of 1 to 23 words, and one long enough for two threads in a product of matrices.
fn sample() -> Vec<SpannedText> {
    let words = ["harbour", "we", "painted", "the", "blue", "boat", "before", "naïve", "日本", "42"];
    (0..30usize)
        .map(|i| {
            let length = if i == 29 { 300 } else { 1 + i * 7 % 23 };
            let text: Vec<&str> = (0..length).map(|j| words[(i * 5 + j * j + j) % words.len()]).collect();
            plain(&text.join(" "))
        })
        .collect()
}

#[test]
fn vectors_are_those_of_the_published_definition() {
    // Computed from the same weights in double precision, without candle (numpy).
    let expected = [0.092447, 0.082029, -0.256006, -0.308474, -0.517177, -0.088793, -0.051086, 0.219733];
    let found =
        ModelDirectory::new().open().embed_query("We painted the blue boat before Thursday.").expect("a vector");
    for (x, y) in found.floats().iter().zip(expected) {
        assert!((f64::from(*x) - y).abs() < 2e-6, "{:?}", found.floats());
    }
}

#[test]
fn a_vector_depends_on_its_text_alone() {
    let made = ModelDirectory::new();
    let (mut one, mut two) = (made.open(), made.open());
    assert_eq!((one.dimensions(), one.model()), (HIDDEN, two.model()));
    let texts = sample();
    let among = two.embed(&texts).expect("vectors");
    let (settings, model) = made.settings(1);
    let mut single = embed::open(&settings, &model).expect("a whole model");
    for (text, expected) in texts.iter().zip(&among) {
        assert_eq!(&one.embed(std::slice::from_ref(text)).expect("a vector")[0], expected);
        assert_eq!(&single.embed(std::slice::from_ref(text)).expect("a vector")[0], expected);
        assert!(expected.whole.len() == HIDDEN && (cosine(&expected.whole, &expected.whole) - 1.0).abs() < 1e-6);
    }
    let mut reversed = texts.clone();
    reversed.reverse();
    let mut found = two.embed(&reversed).expect("vectors");
    found.reverse();
    assert_eq!(found, among);
    assert!(cosine(&among[3].whole, &among[4].whole) < 0.999, "different texts have different vectors");
}

#[test]
fn the_state_of_the_last_token_is_the_vector() {
    // If the layers add nothing, each token keeps its row, whatever precedes it.
    let mut silent = tensors(1);
    for (name, tensor) in &mut silent {
        if name.contains("o_proj") || name.contains("down_proj") {
            *tensor = tensor.zeros_like().expect("zeros");
        }
    }
    let numbers = |name: &str| silent[name].to_dtype(DType::F32).expect("numbers");
    let row = numbers("embed_tokens.weight").get(END_ID as usize).and_then(|t| t.to_vec1::<f32>()).expect("a row");
    let weights = numbers("norm.weight").to_vec1::<f32>().expect("a row");
    let expected: Vec<f64> = row.iter().zip(&weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).collect();
    let expected = embed::unit_vector::unit_vector(&expected);
    let made = ModelDirectory::with(&silent);
    let (settings, mut model) = made.settings(1);
    model.max_tokens = 9;
    let mut cut = embed::open(&settings, &model).expect("a whole model");
    let mut open = made.open();
    for text in ["", "a", "a boat", &"long ".repeat(100)] {
        for found in [open.embed_query(text), cut.embed_query(text)] {
            assert!(cosine(&found.expect("a vector"), &expected) > 1.0 - 1e-6, "{text:?}");
        }
    }
    // Tokens before the end count, up to the limit.
    let made = ModelDirectory::new();
    let mut cut = embed::open(&made.settings(1).0, &model).expect("a whole model");
    let mut vector = |text: &str| cut.embed_query(text).expect("a vector");
    assert_eq!(vector("12345678 and more"), vector("12345678 and other things"));
    assert_ne!(vector("1234567"), vector("1234568"));
}

#[test]
fn spans_and_questions_are_embedded_as_separate_texts() {
    let made = ModelDirectory::new();
    let (settings, mut model) = made.settings(2);
    model.query_prefix = "Instruct: Find it\nQuery:".to_owned();
    let mut opened = embed::open(&settings, &model).expect("a whole model");
    let spanned = SpannedText { text: "Ana sings. Bo paints.".to_owned(), spans: vec![0..10, 11..21] };
    let found = opened.embed(&[spanned]).expect("vectors").remove(0);
    let texts = ["Ana sings.", "Bo paints.", "Ana sings. Bo paints.", "Instruct: Find it\nQuery:Who sings?"].map(plain);
    let alone: Vec<Vector> = opened.embed(&texts).expect("vectors").into_iter().map(|v| v.whole).collect();
    assert_eq!(found.spans, alone[..2]);
    assert_eq!(
        (found.whole, opened.embed_query("Who sings?").expect("a vector")),
        (alone[2].clone(), alone[3].clone())
    );
}

#[test]
fn odd_texts_have_vectors() {
    let mut opened = ModelDirectory::new().open();
    let long = "a".repeat(5_000);
    for odd in ["", " ", "\0", "🦀🦀", "<think>", END, &long] {
        let spanned = SpannedText { text: odd.to_owned(), spans: vec![0..odd.len(), 0..0] };
        for vectors in opened.embed(&[plain(odd), spanned]).expect("vectors") {
            for vector in vectors.spans.iter().chain([&vectors.whole]) {
                assert!((cosine(vector, vector) - 1.0).abs() < 1e-6, "{odd:?}");
            }
        }
    }
    assert!(opened.embed(&[]).expect("nothing to do").is_empty());
}

#[test]
fn split_weights_give_the_same_vectors() {
    let all = tensors(1);
    let made = ModelDirectory::with(&all);
    let (texts, mut whole) = (sample(), made.open());
    let expected = whole.embed(&texts).expect("vectors");
    // In the layout with the language model's head, beside sentence-transformers' files.
    let parted = ModelDirectory::with(&all);
    parted.remove(WEIGHTS);
    let mut index = serde_json::Map::new();
    for shard in 1..=2 {
        let file = format!("model-0000{shard}-of-00002.safetensors");
        let part = |name: &str| if name.starts_with("layers.0") { 1 } else { 2 };
        let own = all.iter().filter(|(name, _)| part(name) == shard);
        let own: TensorMap = own.map(|(name, tensor)| (format!("model.{name}"), tensor.clone())).collect();
        index.extend(own.keys().map(|name| (name.clone(), file.clone().into())));
        parted.save(&file, &own);
    }
    parted.write(SHARDS, json!({"metadata": {"total_size": 1}, "weight_map": index}).to_string());
    parted.write("modules.json", "[]");
    std::fs::create_dir(parted.directory.join("1_Pooling")).expect("made");
    parted.write("1_Pooling/config.json", "{}");
    let mut opened = parted.open();
    assert_eq!(opened.embed(&texts).expect("vectors"), expected);
    assert_ne!(opened.model().hash, whole.model().hash);
    parted.remove("model-00002-of-00002.safetensors");
    let error = parted.refused();
    assert!(error.contains("model-00002-of-00002.safetensors of the model") && error.contains(NAME), "{error}");
}

#[test]
fn every_file_changes_the_hash() {
    let hash = |change: fn(&ModelDirectory)| {
        let made = ModelDirectory::new();
        change(&made);
        made.open().model().hash.clone()
    };
    let same = hash(|_| {});
    assert_eq!(hash(|made| made.write("README.md", "other")), same);
    let changed = [
        hash(|made| made.save(WEIGHTS, &tensors(2))),
        hash(|made| made.write(TOKENIZER_FILE, format!("{} ", tokenizer(true)))),
        hash(|made| made.write(CONFIG, format!("{} ", config()))),
    ];
    let distinct: BTreeSet<_> = changed.iter().chain([&same]).collect();
    assert_eq!(distinct.len(), changed.len() + 1);
}

#[test]
fn a_missing_file_is_named() {
    let check = |file: &str, expected: &[&str]| {
        let made = ModelDirectory::new();
        made.remove(file);
        let error = made.refused();
        for word in expected {
            let path = made.directory.join(word);
            assert!(error.contains(&path.display().to_string()) && error.contains(NAME), "{error}");
        }
    };
    check(CONFIG, &[CONFIG]);
    check(TOKENIZER_FILE, &[TOKENIZER_FILE]);
    check(WEIGHTS, &[WEIGHTS, SHARDS]);
    let made = ModelDirectory::new();
    std::fs::remove_dir_all(&made.directory).expect("removed");
    let error = made.refused();
    let places = [NAME, "Qwen3-Embedding-0.6B"].map(|place| made.root.path().join(place).display().to_string());
    assert!(error.contains(&places.join(", ")), "{error}");
}

#[test]
fn a_damaged_file_is_named() {
    let check = |file: &str, change: &dyn Fn(&ModelDirectory), expected: &str| {
        let made = ModelDirectory::new();
        change(&made);
        let error = made.refused();
        let path = if file.is_empty() { made.directory.clone() } else { made.directory.join(file) };
        assert!(error.starts_with(&format!("{}: ", path.display())) && error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    };
    let with = |key: &str, value: Value| {
        let mut changed = config();
        changed[key] = value;
        changed.to_string()
    };
    let halve = |made: &ModelDirectory, file: &str| {
        let bytes = std::fs::read(made.directory.join(file)).expect("read");
        made.write(file, &bytes[..bytes.len() / 2]);
    };
    check(CONFIG, &|made| halve(made, CONFIG), "is not the configuration of a Qwen3 model");
    check(CONFIG, &|made| made.write(CONFIG, with("head_dim", json!(15))), "a head_dim that is not even");
    check(CONFIG, &|made| made.write(CONFIG, with("num_attention_heads", json!(0))), "no heads");
    check(CONFIG, &|made| made.write(CONFIG, with("num_hidden_layers", json!(0))), "no layers");
    check(TOKENIZER_FILE, &|made| halve(made, TOKENIZER_FILE), "is not a tokenizer");
    check(TOKENIZER_FILE, &|made| made.write(TOKENIZER_FILE, "{}"), "is not a tokenizer");
    check(TOKENIZER_FILE, &|made| made.write(TOKENIZER_FILE, tokenizer(false)), "adds no token at the end");
    for part in [0, 4, 100] {
        let cut = move |made: &ModelDirectory| {
            let bytes = std::fs::read(made.directory.join(WEIGHTS)).expect("read");
            made.write(WEIGHTS, &bytes[..part]);
        };
        check(WEIGHTS, &cut, "is not a file of weights");
    }
    check(WEIGHTS, &|made| halve(made, WEIGHTS), "is not a file of weights");
    let other = "the weights are not those of its config.json";
    check("", &|made| made.write(CONFIG, with("num_hidden_layers", json!(LAYERS + 1))), other);
    check("", &|made| made.write(CONFIG, with("intermediate_size", json!(INNER + 1))), other);
    check("", &|made| made.write(CONFIG, with("num_key_value_heads", json!(3))), other);
    let endless = |made: &ModelDirectory| {
        let mut changed = tensors(1);
        let norm = changed.get_mut("norm.weight").expect("it is there");
        *norm = norm.affine(f64::INFINITY, 0.0).expect("numbers");
        made.save(WEIGHTS, &changed);
    };
    check("", &endless, "does not return vectors of 32 numbers");
    let names = |made: &ModelDirectory| {
        made.remove(WEIGHTS);
        made.write(SHARDS, "{}");
    };
    check(SHARDS, &names, "names no files of weights");
}

/// A memory requires that the embedder which a pipeline file names makes the same vectors each time it is opened.
#[test]
fn a_pipeline_file_opens_it_by_name_with_the_same_vectors_each_time() {
    let made = ModelDirectory::new();
    let text = format!(
        "version = 1\n[embed]\nmodel = {NAME:?}\nmodels_directory = {:?}\n[embed.models.{NAME:?}]\n\
         runner = \"catalogue\"\nquery_prefix = \"Query:\"\nsemantic_threshold = 0.85\nquestion_floor = 0.4\n\
         question_ceiling = 0.8",
        made.root.path(),
    );
    let pipeline = types::config::Pipeline::parse(&text).expect("a pipeline");
    let vectors = || {
        let mut embedder = embed::open(&pipeline.embed, &pipeline.model()).expect("a model");
        let asked = embedder.embed_query("Which books has Marta recommended to Elias?").expect("a vector");
        let said = embedder.embed(&[plain("Marta recommended a book to Elias.")]).expect("vectors");
        (embedder.model().clone(), asked, said)
    };
    assert_eq!(vectors(), vectors());
}
