//! The table of what a language model used.
//!
//! In: usage by bank and purpose. Out: a table with a total, or the same as JSON, on stdout.

use anyhow::Result;
use terminal::print;
use types::{config::Pipeline, model::ModelUsage};

/// Prints `records` as JSON, or `lines` (usage, purpose, bank) as a table.
pub(crate) fn print_usage(
    pipeline: &Pipeline,
    records: &impl serde::Serialize,
    lines: &[(ModelUsage, &str, &str)],
    json: bool,
) -> Result<()> {
    if json { print(&format!("{}\n", serde_json::to_string(records)?)) } else { print_table(pipeline, lines) }
}

fn print_table(pipeline: &Pipeline, lines: &[(ModelUsage, &str, &str)]) -> Result<()> {
    print("    calls       prompt   completion      seconds         cost  for      bank\n")?;
    let mut sum = ModelUsage::default();
    lines.iter().for_each(|(usage, ..)| sum += *usage);
    for (usage, purpose, bank) in lines.iter().copied().chain([(sum, "all", "")]) {
        print(&format!(
            "{:>9} {:>12} {:>12} {:>12.1} {:>12.4}  {purpose:<8} {bank}\n",
            usage.calls,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.milliseconds as f64 / 1_000.0,
            pipeline.llm.cost(usage.prompt_tokens, usage.completion_tokens),
        ))?;
    }
    Ok(())
}
