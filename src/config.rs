//! Pipeline file to typed pipeline, in one step.
//!
//! In: TOML text. Out: a [`Pipeline`] whose every number is checked, or an error that
//! names the key and the nearest known one. Every constant of the paper is a default
//! here and nowhere else; `profile = "paper"` sets all of them, two more profiles what it
//! does otherwise for other benchmarks; the keys of the file are laid over the profile.
//! Reads no file but the one it is told to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

mod llm;
mod service;

pub use llm::{LLM, LlmSettings, RULES};
pub use service::{
    ExpiredPolicy, KafkaSettings, LogKind, LogSettings, MetricsSettings, ReplaySettings, Role, SecuritySettings,
    ServeSettings, SnapshotSettings,
};

/// What is wrong with a pipeline file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{path}: cannot be read; check the path")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not what a pipeline file may be.
    #[error("{path}: {problem}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why, with what to do.
        problem: String,
    },
}

/// A whole pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The format of this file; 1.
    pub version: u32,
    /// The pipeline's name, in messages.
    pub name: String,
    /// The set of defaults that the file starts from: `default` or `paper`.
    pub profile: String,
    /// Where turns come from, for `run`; a log on Kafka is a source of its own.
    pub source: Option<SourceSettings>,
    /// What a running service does.
    pub roles: Vec<Role>,
    /// The durable logs.
    pub log: LogSettings,
    /// Turns to windows.
    pub window: WindowSettings,
    /// Windows to units.
    pub extract: ExtractSettings,
    /// Texts to vectors.
    pub embed: EmbedSettings,
    /// The language model, where one is set.
    pub llm: LlmSettings,
    /// Units to the event graph.
    pub memory: MemorySettings,
    /// Questions to evidence.
    pub recall: RecallSettings,
    /// Questions and edges over Kafka.
    pub serve: ServeSettings,
    /// Topics written as Parquet while they grow.
    pub replay: ReplaySettings,
    /// Snapshots of the memory.
    pub snapshot: SnapshotSettings,
    /// Where a running service tells how it is.
    pub metrics: MetricsSettings,
}

/// Where turns come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// The name of a format in `source/formats.rs`, which checks it.
    pub format: String,
    /// A file, or `-` for standard input (`jsonl` only). Relative to the pipeline file.
    pub path: PathBuf,
    /// Offset such as `+02:00` for formats whose times name none.
    #[serde(default = "utc")]
    pub zone: String,
    /// Only these conversations, for formats that hold several.
    #[serde(default)]
    pub only: Vec<String>,
}

fn utc() -> String {
    "+00:00".to_owned()
}

/// When a write reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fsync {
    /// Before it is acknowledged.
    Commit,
    /// When the operating system flushes.
    System,
}

/// Turns to windows (paper, table of implementation settings; decisions 5 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSettings {
    /// Turns of a full window, its leading overlap included.
    pub turns: u32,
    /// Turns of leading context taken from the window before.
    pub overlap: u32,
    /// Silence, in event time, that ends a session without a name and closes a window.
    pub gap_minutes: u32,
    /// False: ordinals run across the whole bank, as in the paper.
    pub sessions: bool,
}

/// Windows to units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractSettings {
    /// `rules`: no language model. `llm`: the rules at once, and the model's units in their
    /// place when they arrive.
    pub extractor: String,
    /// Consecutive turns of a session in one unit; 1 makes a unit of each turn, an answer
    /// together with its question.
    pub unit_turns: u32,
    /// A turn whose words, function words left out, are fewer than this makes no unit of its own.
    pub least_content_words: u32,
}

/// Texts to vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedSettings {
    /// A name in [`EmbedSettings::models`], in fastembed's catalogue, or a Qwen3-Embedding's.
    pub model: String,
    /// Texts in one pass, after sorting by length.
    pub batch: usize,
    /// Threads inside one pass, or passes side by side where a model takes one text at a time.
    pub threads: usize,
    /// Turns embedded together, at most, in bulk: longer reads sort better.
    pub read_turns: usize,
    /// Neighbouring turns of a unit that share one pass, each with a vector of its own that
    /// knows the other; 0: the whole unit in one pass.
    pub block_turns: usize,
    /// Sentences of at least so many words get a vector of their own, in turns of two
    /// sentences or more, instead of the whole turn's; 0: none do.
    pub sentence_words: usize,
    /// Whether each turn also has a vector together with the turn before it.
    pub pairs: bool,
    /// How exactly vectors are kept.
    pub stored: VectorPrecision,
    /// ONNX Runtime's shared library; absent, it is looked for (`ripplemem validate` says where).
    #[serde(default)]
    pub onnxruntime: Option<PathBuf>,
    /// The directory that holds a directory for each model; absent, it is looked for.
    #[serde(default)]
    pub models_directory: Option<PathBuf>,
    /// What is particular to a model.
    pub models: std::collections::BTreeMap<String, ModelSettings>,
}

/// How exactly vectors are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorPrecision {
    /// A byte a component: rounded to fixed steps before anything sees the vector.
    Int8,
    /// As the model gave it.
    F32,
}

/// What is particular to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// `onnx` (run directly), `catalogue` (by fastembed), `endpoint` (served elsewhere) or
    /// `fixed` (a hash, for tests).
    pub runner: Runner,
    /// Of `runner = "endpoint"`: where it is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedModelSettings>,
    /// How token vectors become one.
    #[serde(default)]
    pub pooling: Pooling,
    /// What stands in front of a text that is remembered.
    #[serde(default)]
    pub text_prefix: String,
    /// What stands in front of a question.
    #[serde(default)]
    pub query_prefix: String,
    /// Tokens of the longest text; more are cut.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: usize,
    /// How a turn becomes a text: `{speaker}` and `{text}` are replaced.
    #[serde(default = "default_turn_template")]
    pub turn_template: String,
    /// Whether a text runs alone, never in a batch, on as many threads side by side as are
    /// set: where numbers are brought to 8 bits, the others of a batch would change them.
    #[serde(default)]
    pub alone: bool,
    /// SHA-256 of the model file, when known; another file is refused.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Least cosine of a semantic edge.
    pub semantic_threshold: f64,
    /// Cosine at which a unit says nothing of a question: where the scale of sufficiency begins.
    pub question_floor: f64,
    /// Cosine at which a unit says what a question asks: where that scale ends.
    pub question_ceiling: f64,
}

/// A model that somebody else serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedModelSettings {
    /// The URL in front of `/embeddings`, such as `http://127.0.0.1:8000/v1`.
    pub endpoint: String,
    /// The model, as the endpoint names it.
    pub model: String,
    /// The environment variable that holds the key; empty: no key is sent.
    #[serde(default)]
    pub key_env: String,
    /// Seconds that one request may take.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
    /// Attempts after the first, where a failure may pass.
    #[serde(default = "default_retries")]
    pub retries: u32,
}

fn default_timeout_seconds() -> u64 {
    60
}

fn default_retries() -> u32 {
    8
}

fn default_max_tokens() -> usize {
    256
}

fn default_turn_template() -> String {
    "{speaker} said, \"{text}\"".to_owned()
}

/// Who runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// ONNX Runtime, directly: one pass gives a vector for every span.
    Onnx,
    /// fastembed's models by name: one pass a span.
    Catalogue,
    /// An endpoint that speaks OpenAI's embeddings protocol: one text a span.
    Endpoint,
    /// A vector computed from the words' hashes; no model, for tests.
    Fixed,
}

/// How token vectors become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Their mean over the span.
    #[default]
    Mean,
    /// The first token's, for the whole text only.
    Cls,
}

/// Units to the event graph (paper, table of graph settings; decisions 11 to 13).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Timely workers; a bank lives on one of them.
    pub workers: usize,
    /// Candidates a unit keeps for its semantic edges.
    pub semantic_pool: usize,
    /// Semantic edges a unit chooses, at most.
    pub semantic_edges: usize,
    /// The mean of semantic edges that a unit chooses, which `calibrate` sets a model's
    /// threshold by; nothing else reads it.
    pub target_semantic_choices: f64,
    /// Structural edges a unit chooses, at most.
    pub structural_edges: usize,
    /// Candidates before and after a unit, in time, for every cue value.
    pub cue_neighbours: usize,
    /// Least score of a structural edge.
    pub structural_threshold: f64,
    /// β of participants.
    pub participant_weight: f64,
    /// β of locations.
    pub location_weight: f64,
    /// β of time.
    pub time_weight: f64,
    /// τ of the temporal decay.
    pub time_decay_days: f64,
    /// Edges of one unit and channel that a hop walks, at most.
    pub fan_out: usize,
    /// Units of one bank outside tantivy's index before a commit is asked for.
    pub lexical_tail: usize,
}

/// What comes to mind first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstHop {
    /// The best units of three indexes, a fixed number each: the paper's.
    Channels,
    /// The most familiar parts of the whole bank, as many as the question needs.
    Familiarity,
}

/// What the terms of the familiarity score weigh, by the form of the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamiliaritySettings {
    /// Questions that one part can answer.
    pub single: FamiliarityWeights,
    /// Questions whose answer is gathered: lists, counts, what two have in common, and what
    /// would or might be.
    pub gathered: FamiliarityWeights,
    /// Taken from a synonym's cosine before it weighs.
    pub synonym_base: f64,
    /// Where the scale begins on which parts are compared: at the part that so large a share
    /// of the bank lies above, 0.5 being the median. What the bank is mostly about lifts the
    /// median, and the best parts with it; its least familiar parts say better what nothing is.
    pub zero: f64,
    /// The bank is so many of its parts there, the best, where it holds more: what has nothing to do
    /// with a question, however much, does not lower what is enough for it.
    pub scale_parts: usize,
}

/// What the terms of the familiarity score weigh (`memory/familiarity.rs`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamiliarityWeights {
    /// Cosine with the part's best sentence.
    pub meaning: f64,
    /// Cosine with the part and the turn before it.
    pub pair: f64,
    /// Mean of that cosine and the next part's.
    pub trio: f64,
    /// As `pair`, with the question as the one who is asked about would put it ("I").
    pub own_pair: f64,
    /// BM25 of the question's words in the part and the turns around it, over the bank's best.
    pub words: f64,
    /// The same of their synonyms, over the bank's best by the words themselves.
    pub synonyms: f64,
    /// Share of the question's words, by their rarity, that stand in the part itself.
    pub own_words: f64,
    /// The one who is named speaks.
    pub speaker: f64,
    /// The one who is named speaks, after a question.
    pub reply: f64,
    /// Said in a month that is named.
    pub month: f64,
    /// An expression of time, of which two count.
    pub times: f64,
    /// The same where a time is asked for.
    pub times_asked: f64,
    /// Taken from a part that ends by asking.
    pub asks: f64,
    /// The part opens its session.
    pub opener: f64,
    /// The part quotes a title.
    pub quotes: f64,
    /// A name in the part of which three count: people, places, titles and brands; not of
    /// those who speak in the bank.
    pub names: f64,
    /// The logarithm of one more than its number of words.
    pub length: f64,
    /// Share of the better neighbour at one turn's distance.
    pub next_turn: f64,
    /// Share of the better neighbour at two turns' distance.
    pub second_turn: f64,
    /// Share of the mean of the session's best three.
    pub session: f64,
}

impl FamiliarityWeights {
    /// Every weight with its key.
    fn named(&self) -> [(&'static str, f64); 20] {
        [
            ("meaning", self.meaning),
            ("pair", self.pair),
            ("trio", self.trio),
            ("own_pair", self.own_pair),
            ("words", self.words),
            ("synonyms", self.synonyms),
            ("own_words", self.own_words),
            ("speaker", self.speaker),
            ("reply", self.reply),
            ("month", self.month),
            ("times", self.times),
            ("times_asked", self.times_asked),
            ("asks", self.asks),
            ("opener", self.opener),
            ("quotes", self.quotes),
            ("names", self.names),
            ("length", self.length),
            ("next_turn", self.next_turn),
            ("second_turn", self.second_turn),
            ("session", self.session),
        ]
    }
}

/// How much is enough: where the list of familiar parts is cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopSettings {
    /// Least familiarity of a part, on the way from the scale's zero (0) to the bank's best (1).
    pub share: f64,
    /// Added where the question asks for a time.
    pub time_offset: f64,
    /// Added where its answer is gathered, or is a habit.
    pub gathered_offset: f64,
    /// Tokens, estimated, below which nothing stops.
    pub least_tokens: usize,
    /// Tokens, estimated, at which everything stops.
    pub most_tokens: usize,
}

/// Questions to evidence (paper, sections 3.4 and 3.5; decisions 14 to 17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallSettings {
    /// What comes to mind first.
    pub first_hop: FirstHop,
    /// First-hop units by vector.
    pub semantic: usize,
    /// First-hop units by words.
    pub lexical: usize,
    /// First-hop units by participants, places and time.
    pub cue: usize,
    /// Rounds of expansion after the first hop.
    pub rounds: u32,
    /// False, for comparison: a round starts at the best units and looks for the question itself.
    pub planned: bool,
    /// Who plans: `rules`, or `llm` with the rules where the model fails.
    pub planner: String,
    /// Who reads the cues of a question: `rules`, or `llm` with the rules where it fails.
    pub cues_by: String,
    /// Units a round expands from, at most.
    pub anchors: usize,
    /// Edges from an anchor, at most.
    pub hops: u32,
    /// Units a round adds by semantic edges, at most.
    pub semantic_support: usize,
    /// Units a round adds by structural edges, at most.
    pub structural_support: usize,
    /// Least familiarity of a unit that a round adds behind the channels' first hop, on the
    /// way from the scale's zero (0) to the bank's best (1).
    pub support_floor: f64,
    /// What an edge from an anchor is worth behind a familiar first hop: so much less
    /// familiarity is asked of what it leads to.
    pub link_worth: f64,
    /// Whether a path may change its channel.
    pub mixed_paths: bool,
    /// Familiarities in one bucket count as equal when support is ranked.
    pub match_bucket: f64,
    /// Units of an answer, at most.
    pub budget: usize,
    /// λq: alignment of question and unit.
    pub alignment_weight: f64,
    /// λp: how it was reached.
    pub provenance_weight: f64,
    /// λa: whether it was an anchor.
    pub anchor_weight: f64,
    /// Source weight of the semantic first hop.
    pub semantic_source: f64,
    /// Source weight of the lexical first hop.
    pub lexical_source: f64,
    /// Source weight of the cue first hop.
    pub cue_source: f64,
    /// Source weight of the expansion.
    pub expansion_source: f64,
    /// Added to the rank in 1 / (offset + rank).
    pub rank_offset: f64,
    /// What the terms of the familiarity score weigh.
    pub familiarity: FamiliaritySettings,
    /// Where the list of familiar parts is cut.
    pub stop: StopSettings,
    /// Sufficiency at which recollection stops after the first hop.
    pub sufficient: f64,
    /// Sufficiency below which the answer is marked as unsupported.
    pub supported: f64,
}

const DEFAULTS: &str = include_str!("config/default.toml");
const PAPER: &str = include_str!("config/paper.toml");
/// By name, what is laid over the defaults, one after the other.
const PROFILES: [(&str, &[&str]); 4] = [
    ("default", &[]),
    ("paper", &[PAPER]),
    ("paper-longmemeval", &[PAPER, include_str!("config/paper-longmemeval.toml")]),
    ("paper-evermembench", &[PAPER, include_str!("config/paper-evermembench.toml")]),
];

impl Pipeline {
    /// Reads and checks a pipeline file. Relative paths in it are taken from its directory.
    ///
    /// # Errors
    /// [`ConfigError`] that names the file and the key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let invalid = |problem| ConfigError::Invalid { path: path.to_owned(), problem };
        let mut pipeline = Self::parse(&text).map_err(invalid)?;
        let base = path.parent().unwrap_or(Path::new(""));
        pipeline.log.directory = base.join(&pipeline.log.directory);
        pipeline.replay.directory = base.join(&pipeline.replay.directory);
        let snapshots = &mut pipeline.snapshot.directory;
        if !snapshots.is_empty() && !snapshots.contains("://") {
            *snapshots = base.join(&*snapshots).to_string_lossy().into_owned();
        }
        if let Some(source) = &mut pipeline.source
            && source.path != Path::new("-")
        {
            source.path = base.join(&source.path);
        }
        let ca_file = pipeline.log.kafka.security.as_mut().map(|s| &mut s.ca_file);
        let cache = Some(&mut pipeline.llm.cache_directory);
        let embed = &mut pipeline.embed;
        let files = [Some(&mut embed.onnxruntime), Some(&mut embed.models_directory), ca_file, cache];
        for file in files.into_iter().flatten().flatten() {
            *file = base.join(&*file);
        }
        Ok(pipeline)
    }

    /// Reads and checks the text of a pipeline file.
    ///
    /// # Errors
    /// What is wrong, where, and the nearest known key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        match file.get("version") {
            Some(Value::Integer(1)) => {}
            Some(other) => return Err(format!("version: {other} is not known; this build reads version = 1")),
            None => return Err("version: missing; begin the file with version = 1".to_owned()),
        }
        let profile = match file.get("profile") {
            None => "default",
            Some(Value::String(name)) => name.as_str(),
            Some(other) => return Err(format!("profile: {other} is not a string; write {}", profiles())),
        };
        let Some((_, over)) = PROFILES.iter().find(|(name, _)| *name == profile) else {
            return Err(format!("profile: {profile:?} is not known; write {}", profiles()));
        };
        let mut table = constants(DEFAULTS)?;
        for text in *over {
            merge(&mut table, constants(text)?);
        }
        merge(&mut table, file);
        service::check_kind(&table)?;
        let mut pipeline: Self = Value::Table(table).try_into().map_err(|e: toml::de::Error| with_nearest_key(&e))?;
        pipeline.check()?;
        if !pipeline.snapshot.directory.is_empty() {
            pipeline.log.kafka.snapshot_lag_ms = 2 * 1_000 * pipeline.snapshot.interval_seconds;
        }
        Ok(pipeline)
    }

    /// The settings of the chosen model. A name that has no entry is fastembed's.
    #[must_use]
    pub fn model(&self) -> ModelSettings {
        self.embed.models.get(&self.embed.model).cloned().unwrap_or_else(|| ModelSettings {
            runner: Runner::Catalogue,
            served: None,
            pooling: Pooling::Mean,
            text_prefix: String::new(),
            query_prefix: String::new(),
            max_tokens: default_max_tokens(),
            turn_template: default_turn_template(),
            alone: false,
            sha256: None,
            semantic_threshold: 0.85,
            question_floor: 0.5,
            question_ceiling: 0.85,
        })
    }

    fn check(&self) -> Result<(), String> {
        let w = &self.window;
        let m = &self.memory;
        let r = &self.recall;
        let model = self.model();
        let whole = |key: &str, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{key}: {value} is not within {low} to {high}"))
            }
        };
        whole("window.turns", w.turns as usize, 1, 1_000)?;
        if w.overlap >= w.turns {
            return Err(format!("window.overlap: {} leaves no turn of its own in a window of {}", w.overlap, w.turns));
        }
        whole("window.gap_minutes", w.gap_minutes as usize, 1, 525_600)?;
        whole("log.partitions", self.log.partitions as usize, 1, 1_024)?;
        whole("embed.batch", self.embed.batch, 1, 1_024)?;
        whole("embed.threads", self.embed.threads, 1, 256)?;
        whole("embed.read_turns", self.embed.read_turns, 1, 65_536)?;
        whole("embed.block_turns", self.embed.block_turns, 0, 1_000)?;
        whole("embed.sentence_words", self.embed.sentence_words, 0, 1_000)?;
        whole("memory.workers", m.workers, 1, 64)?;
        whole("memory.semantic_pool", m.semantic_pool, m.semantic_edges.max(1), 1_000)?;
        whole("memory.semantic_edges", m.semantic_edges, 0, 100)?;
        whole("memory.structural_edges", m.structural_edges, 0, 100)?;
        whole("memory.cue_neighbours", m.cue_neighbours, 1, 100)?;
        whole("memory.fan_out", m.fan_out, 1, 1_000)?;
        whole("memory.lexical_tail", m.lexical_tail, 1, 100_000)?;
        whole("recall.semantic", r.semantic, 0, 1_000)?;
        whole("recall.lexical", r.lexical, 0, 1_000)?;
        whole("recall.cue", r.cue, 0, 1_000)?;
        whole("recall.rounds", r.rounds as usize, 0, 10)?;
        whole("recall.anchors", r.anchors, 0, 30)?;
        whole("recall.hops", r.hops as usize, 1, 2)?;
        whole("recall.budget", r.budget, 1, 1_000)?;
        whole("extract.unit_turns", self.extract.unit_turns as usize, 1, 32)?;
        whole("recall.familiarity.scale_parts", r.familiarity.scale_parts, 2, 1_000_000)?;
        whole("recall.stop.most_tokens", r.stop.most_tokens, r.stop.least_tokens, 1_000_000)?;
        let share = |key: &str, value: f64, low: f64, high: f64| {
            if value.is_finite() && value >= low && value <= high {
                Ok(())
            } else {
                Err(format!("{key}: {value} is not within {low} to {high}"))
            }
        };
        share("memory.target_semantic_choices", m.target_semantic_choices, 0.01, m.semantic_edges.max(1) as f64)?;
        share("memory.structural_threshold", m.structural_threshold, 0.0, 1.0)?;
        share("memory.participant_weight", m.participant_weight, 0.0, 1_000.0)?;
        share("memory.location_weight", m.location_weight, 0.0, 1_000.0)?;
        share("memory.time_weight", m.time_weight, 0.0, 1_000.0)?;
        share("memory.time_decay_days", m.time_decay_days, 0.001, 3_650.0)?;
        llm::check_served(&self.embed.model, &model)?;
        share("embed.models.semantic_threshold", model.semantic_threshold, -1.0, 1.0)?;
        share("embed.models.question_floor", model.question_floor, -1.0, 1.0)?;
        share("embed.models.question_ceiling", model.question_ceiling, model.question_floor, 1.0)?;
        share("recall.support_floor", r.support_floor, -1.0, 1.0)?;
        share("recall.link_worth", r.link_worth, -1.0, 1.0)?;
        share("recall.match_bucket", r.match_bucket, 0.000_001, 1.0)?;
        for (key, value) in [
            ("recall.alignment_weight", r.alignment_weight),
            ("recall.provenance_weight", r.provenance_weight),
            ("recall.anchor_weight", r.anchor_weight),
            ("recall.semantic_source", r.semantic_source),
            ("recall.lexical_source", r.lexical_source),
            ("recall.cue_source", r.cue_source),
            ("recall.expansion_source", r.expansion_source),
            ("recall.rank_offset", r.rank_offset),
        ] {
            share(key, value, 0.0, 1_000.0)?;
        }
        for (form, weights) in [("single", &r.familiarity.single), ("gathered", &r.familiarity.gathered)] {
            for (key, value) in weights.named() {
                share(&format!("recall.familiarity.{form}.{key}"), value, 0.0, 1_000.0)?;
            }
        }
        for (key, value) in [
            ("recall.stop.share", r.stop.share),
            ("recall.stop.time_offset", r.stop.time_offset),
            ("recall.stop.gathered_offset", r.stop.gathered_offset),
            ("recall.familiarity.synonym_base", r.familiarity.synonym_base),
        ] {
            share(key, value, -1.0, 1.0)?;
        }
        share("recall.familiarity.zero", r.familiarity.zero, 0.0, 1.0)?;
        share("recall.sufficient", r.sufficient, 0.0, 2.0)?;
        share("recall.supported", r.supported, 0.0, 1.0)?;
        service::check(self)?;
        llm::check(self)
    }
}

/// The names of profiles, in words.
fn profiles() -> String {
    let names = PROFILES.map(|(name, _)| format!("{name:?}"));
    names.join(" or ")
}

fn constants(text: &str) -> Result<Table, String> {
    text.parse().map_err(|e: toml::de::Error| format!("built-in profile: {e}"))
}

/// Lays `over` on `base`, table by table; any other value replaces.
fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// serde lists the known keys of an unknown one; say which was probably meant.
fn with_nearest_key(error: &toml::de::Error) -> String {
    let message = error.message();
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = quoted.split_first().filter(|_| message.starts_with("unknown field")) else {
        return message.to_owned();
    };
    let nearest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown)));
    match nearest {
        Some(key) => format!("unknown key {unknown:?}; did you mean {key:?}?"),
        None => message.to_owned(),
    }
}
