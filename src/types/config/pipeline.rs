//! A whole pipeline file: from its text to typed settings, in one step.
//!
//! In: TOML text. Out: a [`Pipeline`] whose every number is checked, or an error that names the key
//! and the nearest known one.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{
    access::AccessSettings,
    embed::{EmbedSettings, ModelSettings},
    error::{ConfigError, with_nearest_key},
    extract::ExtractSettings,
    forget::{EditPolicy, ForgetSettings},
    http::HttpSettings,
    live_source::LiveSourceSettings,
    llm::LlmSettings,
    log::{LogKind, LogSettings, check_kind},
    logs::LogLineSettings,
    memory::MemorySettings,
    metrics::MetricsSettings,
    number_ranges, profile,
    recall::RecallSettings,
    replay::ReplaySettings,
    retention::{LegalHoldSettings, RetentionSettings},
    serve::{ServeSettings, ShardAssignmentMode},
    service_role::ServiceRole,
    snapshot::SnapshotSettings,
    source::SourceSettings,
    window::WindowSettings,
};

/// A whole pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Version of the file's format: 1. The only key that a file must have.
    pub version: u32,
    /// The pipeline's name, for people who read its messages.
    pub name: String,
    /// The set of defaults that the keys of the file are laid over: `default`, `paper`,
    /// `paper-longmemeval` or `paper-evermembench`.
    pub profile: String,
    /// Where turns come from, for `ripplemem run` on an embedded log; a log on Kafka has the turns
    /// topic as its source.
    pub source: Option<SourceSettings>,
    /// Platforms that a service follows while people talk, each a table `[[source]]`. On Kafka every
    /// instance that names sources names the same ones; each source runs in one of them.
    #[serde(default, rename = "[source]", skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveSourceSettings>,
    /// What a service on Kafka does.
    pub roles: Vec<ServiceRole>,
    /// Where turns and memory records are stored.
    pub log: LogSettings,
    /// How turns are grouped into windows.
    pub window: WindowSettings,
    /// How windows become memory units.
    pub extract: ExtractSettings,
    /// How texts become vectors.
    pub embed: EmbedSettings,
    /// The language model, where one is used, and what may be spent on it.
    pub llm: LlmSettings,
    /// How units become the event graph.
    pub memory: MemorySettings,
    /// How a question becomes evidence.
    pub recall: RecallSettings,
    /// Questions and edges over Kafka.
    pub serve: ServeSettings,
    /// Topics written as Parquet while they grow.
    pub replay: ReplaySettings,
    /// Snapshots of the memory.
    pub snapshot: SnapshotSettings,
    /// What follows a deletion.
    pub forget: ForgetSettings,
    /// Rules by which turns are deleted once they are old or many, each a table `[[retention]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retention: Vec<RetentionSettings>,
    /// Banks, or turns of them, that no rule deletes and no request may, each a table `[[hold]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hold: Vec<LegalHoldSettings>,
    /// The HTTP interface of a running service: turns in, questions answered.
    pub http: HttpSettings,
    /// The HTTP address of a running service.
    pub metrics: MetricsSettings,
    /// What log lines say.
    pub logs: LogLineSettings,
    /// Who may do what over HTTP and MCP.
    pub access: AccessSettings,
}

/// The key under which the `[[source]]` tables are read internally; in a file they are written under `source`.
pub(super) const LIVE_KEY: &str = "[source]";

/// The type's JSON Schema, with types, descriptions and ranges given inline where they are used.
pub(super) static SCHEMA: LazyLock<serde_json::Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<Pipeline>().to_value()
});

impl Pipeline {
    /// Reads and checks a pipeline file. Relative paths in it are resolved against its directory.
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
        if let Some(source) = &mut pipeline.source {
            let file = Some(&mut source.path).filter(|path| **path != Path::new("-"));
            for path in [file, source.aliases.as_mut()].into_iter().flatten() {
                *path = base.join(&*path);
            }
        }
        for path in
            pipeline.live.iter_mut().flat_map(|source| [source.aliases.as_mut(), source.home.as_mut()]).flatten()
        {
            *path = base.join(&*path);
        }
        let ca_file = pipeline.log.kafka.security.as_mut().map(|s| &mut s.ca_file);
        let cache = Some(&mut pipeline.llm.cache_directory);
        let embed = &mut pipeline.embed;
        let (access, http, forget) = (&mut pipeline.access, &mut pipeline.http, &mut pipeline.forget);
        let access = [&mut access.token_file, &mut access.audit_file, &mut http.certificate, &mut http.key];
        let forget = [&mut forget.ledger, &mut forget.key_file, &mut forget.fingerprints];
        let files = [Some(&mut embed.onnxruntime), Some(&mut embed.models_directory), ca_file, cache];
        for file in files.into_iter().flatten().chain(access).chain(forget).flatten() {
            *file = base.join(&*file);
        }
        Ok(pipeline)
    }

    /// Reads and checks the text of a pipeline file.
    ///
    /// # Errors
    /// What is wrong, where, and the nearest known key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut file: Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        if let Some(tables @ Value::Array(_)) = file.get("source").cloned() {
            file.remove("source");
            file.insert(LIVE_KEY.to_owned(), tables);
        }
        match file.get("version") {
            Some(Value::Integer(1)) => {}
            Some(other) => return Err(format!("version: {other} is not known; this build reads version = 1")),
            None => return Err("version: missing; begin the file with version = 1".to_owned()),
        }
        if let Some(Value::Array(tables)) = file.get(LIVE_KEY) {
            LiveSourceSettings::check_tables(text, tables)?;
        }
        let table = Value::Table(profile::over_profile(file)?);
        if let Some(table) = table.as_table() {
            check_kind(table)?;
        }
        let mut pipeline: Self = table.clone().try_into().map_err(|e: toml::de::Error| with_nearest_key(&e))?;
        number_ranges::check(&SCHEMA, &table, "")?;
        pipeline.check()?;
        pipeline.recall.familiarity.cosines = pipeline.model().cosines();
        pipeline.forget.holds = pipeline.hold.clone();
        if !pipeline.snapshot.directory.is_empty() {
            pipeline.log.kafka.snapshot_lag_ms = 2 * 1_000 * pipeline.snapshot.interval_seconds;
        }
        Ok(pipeline)
    }

    /// The settings of the chosen embedding model.
    #[must_use]
    pub fn model(&self) -> ModelSettings {
        self.embed.chosen_model()
    }

    /// Where this process keeps responses of the language model; `None` if it does not extract.
    #[must_use]
    pub fn response_directory(&self) -> Option<PathBuf> {
        let extracts = self.log.kind == LogKind::Embedded || self.roles.contains(&ServiceRole::Extract);
        extracts.then(|| self.llm_directory())
    }

    /// Where responses of the language model are kept.
    #[must_use]
    pub fn llm_directory(&self) -> PathBuf {
        self.llm.cache_directory.clone().unwrap_or_else(|| self.log.directory.join("cache"))
    }

    /// Checks each section by itself, then what the sections require of each other.
    fn check(&self) -> Result<(), String> {
        self.window.check()?;
        self.embed.check()?;
        self.memory.check()?;
        self.recall.check()?;
        self.log.check()?;
        self.serve.check()?;
        self.replay.check()?;
        SnapshotSettings::check(&self.snapshot.directory)
            .map_err(|problem| format!("snapshot.directory: {problem}"))?;
        self.http.check(&self.access)?;
        if self.log.kind == LogKind::Kafka && self.http.mem0 {
            return Err("http.mem0: these routes list turns, which needs the index of a log in a directory; set \
                        log.kind = \"embedded\", or remove it"
                .to_owned());
        }
        self.metrics.check()?;
        self.llm.check_rules_or_model("extract.extractor", &self.extract.extractor)?;
        self.llm.check_rules_or_model("recall.planner", &self.recall.planner)?;
        self.llm.check_rules_or_model("recall.cues_by", &self.recall.cues_by)?;
        self.llm.check()?;
        if self.roles.is_empty() {
            return Err("roles: empty; write [\"extract\", \"serve\"], or one of them".to_owned());
        }
        if self.roles.contains(&ServiceRole::Replay) {
            if self.log.kind == LogKind::Embedded {
                return Err(
                    "roles: \"replay\" follows topics of Kafka; for an embedded log use `ripplemem replay`".to_owned()
                );
            }
            if self.replay.topics.is_empty() {
                return Err("replay.topics: empty; write [\"turns\", \"memory\"], or one of them".to_owned());
            }
        }
        self.check_live_sources()?;
        self.check_retention()?;
        self.check_shard_assignment()?;
        if self.log.kind == LogKind::Kafka && self.source.is_some() {
            return Err("source: a log on Kafka has the turns topic as its source; remove [source], and load files \
                        with `ripplemem ingest FORMAT FILE --pipeline THIS`"
                .to_owned());
        }
        Ok(())
    }

    /// Checks rules of retention and holds, and that the log can erase if a setting requires it.
    fn check_retention(&self) -> Result<(), String> {
        self.retention.iter().try_for_each(RetentionSettings::check)?;
        self.hold.iter().try_for_each(LegalHoldSettings::check)?;
        self.forget.check(&self.log.directory)?;
        if self.log.kind == LogKind::Kafka && self.forget.edits == EditPolicy::Erase {
            return Err("forget.edits: \"erase\" needs a log in a directory; on Kafka, records leave the topics as \
                        log.kafka.turns_retention_hours and the topics' own settings say; write \"keep\""
                .to_owned());
        }
        Ok(())
    }

    /// Checks what instances that divide the memory require.
    fn check_shard_assignment(&self) -> Result<(), String> {
        if self.serve.hold == ShardAssignmentMode::All {
            return Ok(());
        }
        if self.log.kind == LogKind::Embedded {
            return Err(
                "serve.hold: \"assigned\" divides the memory among instances on Kafka; set log.kind = \"kafka\", \
                        or hold = \"all\""
                    .to_owned(),
            );
        }
        if self.serve.edges {
            return Err(
                "serve.edges: an instance with serve.hold = \"assigned\" knows the edges of its own shards only; \
                        run one instance with hold = \"all\" for the edges topic"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Checks what the sources require of each other and of the other sections.
    fn check_live_sources(&self) -> Result<(), String> {
        for (index, source) in self.live.iter().enumerate() {
            source.check()?;
            let name = &source.name;
            if self.live.iter().take(index).any(|other| other.name == *name) {
                return Err(format!("source.name: {name:?} is used twice; give each source its own name"));
            }
            let has_address = !self.http.listen.is_empty() || !self.metrics.listen.is_empty();
            if source.has_webhook() && self.log.kind == LogKind::Kafka && !has_address {
                return Err(format!(
                    "source {name:?}: its requests need an address to arrive at; set http.listen, such as 127.0.0.1:8321"
                ));
            }
        }
        Ok(())
    }
}
