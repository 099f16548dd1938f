//! The tokens that extraction by a language model would use for a source.
//!
//! In: a source. Out: for each bank its windows and the tokens of their requests. Writes, embeds
//! and sends nothing. Prompts are counted with the o200k vocabulary; the response is assumed to have as many tokens as
//! the window's text.

use std::collections::BTreeMap;

use serde::Serialize;

use memory::window::Windower;
use models::llm::extractor;
use sources::TurnSource;
use types::{
    config::Pipeline,
    model::{Bank, ModelUsage},
};

use super::{PipelineError, Progress};

/// The usage of a bank's extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtractionEstimate {
    /// The bank.
    pub bank: Bank,
    /// One call per window, and its tokens; no milliseconds.
    #[serde(flatten)]
    pub usage: ModelUsage,
}

/// Counts a source, which it reads to the end.
///
/// # Errors
/// [`PipelineError::Source`].
pub fn estimate(
    pipeline: &Pipeline,
    source: &mut dyn TurnSource,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ExtractionEstimate>, PipelineError> {
    let mut windower = Windower::new(&pipeline.window);
    // A window that changes after it has closed is counted once, in its last form.
    let mut windows: BTreeMap<Bank, BTreeMap<types::model::WindowId, ModelUsage>> = BTreeMap::new();
    let mut offset = 0;
    while let Some(batch) = source.next(pipeline.embed.read_turns)? {
        for event in &batch.events {
            windower.apply(offset, event);
            offset += 1;
        }
        for change in windower.drain().into_iter().filter(|c| c.closed && extractor::has_turns(&c.window)) {
            let of_bank = windows.entry(change.window.bank.clone()).or_default();
            of_bank.insert(change.window.id.clone(), extractor::estimate(&change.window, &pipeline.llm));
        }
        let at = source.progress();
        progress(Progress { doing: "counting", done: at.done, total: at.total, unit: at.unit });
    }
    Ok(windows
        .into_iter()
        .map(|(bank, of_bank)| {
            let mut usage = ModelUsage::default();
            of_bank.into_values().for_each(|window| usage += window);
            ExtractionEstimate { bank, usage }
        })
        .collect())
}
