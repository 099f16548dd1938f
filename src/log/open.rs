//! Opens the log that the settings name.
//!
//! In: `[log]` of the pipeline file. Out: an open log, of either kind.

use super::{EmbeddedLog, KafkaLog, Log, LogError};
use crate::config::{LogKind, LogSettings};

/// Opens the log that the settings name.
///
/// # Errors
/// [`LogError`]: see [`EmbeddedLog::open`] and [`KafkaLog::open`].
pub fn open(settings: &LogSettings) -> Result<Box<dyn Log>, LogError> {
    Ok(match settings.kind {
        LogKind::Embedded => Box::new(EmbeddedLog::open(settings)?),
        LogKind::Kafka => Box::new(KafkaLog::open(settings)?),
    })
}
