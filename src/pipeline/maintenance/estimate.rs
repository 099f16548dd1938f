//! What a language model would be sent for a source, before anything is.
//!
//! In: a source. Out: for each bank its windows and the tokens of their requests. Nothing is
//! written, embedded or asked. Prompts are counted as the o200k vocabulary counts them; of
//! what comes back only a guess can be made: as many tokens as the window's own text has.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    config::Pipeline,
    extract,
    model::{Bank, Usage},
    source::Source,
    window::Windower,
};

use super::{PipelineError, Progress};

/// What a bank's extraction would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// The bank.
    pub bank: Bank,
    /// One call a window, and its tokens; milliseconds are not guessed.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Reads a source to its end.
///
/// # Errors
/// [`PipelineError::Source`].
pub fn estimate(
    pipeline: &Pipeline,
    source: &mut dyn Source,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Estimate>, PipelineError> {
    let mut windower = Windower::new(&pipeline.window);
    // A window that changes after it was closed counts once, as it is in the end.
    let mut windows: BTreeMap<Bank, BTreeMap<crate::model::WindowId, Usage>> = BTreeMap::new();
    let mut offset = 0;
    while let Some(batch) = source.next(pipeline.embed.read_turns)? {
        for event in &batch.events {
            windower.apply(offset, event);
            offset += 1;
        }
        for change in windower.drain().into_iter().filter(|c| c.closed && extract::llm::has_turns(&c.window)) {
            let of_bank = windows.entry(change.window.bank.clone()).or_default();
            of_bank.insert(change.window.id.clone(), extract::llm::estimate(&change.window));
        }
        let at = source.progress();
        progress(Progress { doing: "counting", done: at.done, total: at.total, unit: at.unit });
    }
    Ok(windows
        .into_iter()
        .map(|(bank, of_bank)| {
            let mut usage = Usage::default();
            of_bank.into_values().for_each(|window| usage += window);
            Estimate { bank, usage }
        })
        .collect())
}
