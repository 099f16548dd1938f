//! What a pipeline file may say, and its typed form.
//!
//! In: TOML text. Out: a [`Pipeline`] whose every number is checked, or an error that names the key and the nearest
//! known one. Every default is in `default.toml`; the other `.toml` files hold what a profile changes. A section of the
//! file has a source file of its name: its keys, what they mean, their ranges. `page` writes `docs/configuration.md`
//! and the schema from those. Nothing here reads a file other than the one that it is given, and no setting holds a
//! secret.

mod access;
mod embed;
mod error;
mod extract;
mod familiarity;
mod forget;
mod http;
mod live;
mod llm;
mod log;
mod logs;
mod memory;
mod metrics;
mod page;
mod pipeline;
mod profile;
mod range;
mod recall;
mod replay;
mod retention;
mod role;
mod serve;
mod snapshot;
mod source;
mod window;

pub use access::AccessSettings;
pub use embed::{EmbedSettings, ModelSettings, Pooling, Runner, ServedModelSettings, VectorPrecision};
pub use error::ConfigError;
pub use extract::ExtractSettings;
pub use familiarity::{CosineScale, FamiliaritySettings, FamiliarityWeights};
pub use forget::{Edits, ForgetSettings};
pub use http::HttpSettings;
pub use live::{Delivery, LiveSettings, Platform};
pub use llm::{LLM, LlmSettings, RULES};
pub use log::{ExpiredPolicy, Fsync, KafkaSettings, LogKind, LogSettings, SecuritySettings};
pub use logs::LogLineSettings;
pub use memory::MemorySettings;
pub use metrics::MetricsSettings;
pub use page::{page, schema};
pub use pipeline::Pipeline;
pub use recall::{FirstHop, RecallSettings, RerankSettings, ShareSettings, StopSettings};
pub use replay::ReplaySettings;
pub use retention::{HoldSettings, KeepSettings, KeptBy, RetentionSettings};
pub use role::Role;
pub use serve::{Hold, ServeSettings};
pub use snapshot::SnapshotSettings;
pub use source::{DateOrder, Include, SourceSettings};
pub use window::WindowSettings;
