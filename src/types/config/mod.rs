//! What a pipeline file may say, and its typed form.
//!
//! In: TOML text. Out: a [`Pipeline`] whose every number is checked, or an error that names the key and the nearest
//! known one. Every default is in `default.toml`; the other `.toml` files hold what a profile changes. A section of the
//! file has a source file of its name: its keys, what they mean, their ranges. `reference_page` writes
//! `docs/configuration.md` and the schema from those. Nothing here reads a file other than the one that it is given,
//! and no setting holds a secret.

mod access;
mod embed;
mod error;
mod extract;
mod familiarity;
mod forget;
mod http;
mod live_source;
mod llm;
mod log;
mod logs;
mod memory;
mod metrics;
mod number_ranges;
mod pipeline;
mod profile;
mod recall;
mod reference_page;
mod replay;
mod retention;
mod serve;
mod service_role;
mod snapshot;
mod source;
mod window;

pub use access::AccessSettings;
pub use embed::{EmbedSettings, ModelRunner, ModelSettings, ServedModelSettings, TokenPooling, VectorPrecision};
pub use error::ConfigError;
pub use extract::ExtractSettings;
pub use familiarity::{CosineScale, FamiliaritySettings, FamiliarityWeights};
pub use forget::{EditPolicy, ForgetSettings};
pub use http::HttpSettings;
pub use live_source::{ChatPlatform, LiveSourceSettings, MessageDelivery};
pub use llm::{LLM, LlmSettings, RULES};
pub use log::{ExpiredTurnPolicy, FsyncPolicy, KafkaSecuritySettings, KafkaSettings, LogKind, LogSettings};
pub use logs::LogLineSettings;
pub use memory::MemorySettings;
pub use metrics::MetricsSettings;
pub use pipeline::Pipeline;
pub use recall::{CutoffSettings, FirstHopMethod, RecallSettings, RerankSettings, TokenShareSettings};
pub use reference_page::{reference_page, schema};
pub use replay::ReplaySettings;
pub use retention::{LegalHoldSettings, RetentionLimitSettings, RetentionSettings, RetentionTimeBasis};
pub use serve::{ServeSettings, ShardAssignmentMode};
pub use service_role::ServiceRole;
pub use snapshot::SnapshotSettings;
pub use source::{DateOrder, PrivateConversationKind, SourceSettings};
pub use window::WindowSettings;
