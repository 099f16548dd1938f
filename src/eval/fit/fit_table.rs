//! A fit as a table for a terminal.
//!
//! In: rows. Out: plain text; shares in percent, and the weights of the last row as lines for a
//! pipeline file.

use std::fmt::Write;

use serde::Serialize;

use super::fit_result::{FitFigures, FitResult};

/// The table of a fit.
#[must_use]
pub fn fit_table(fit: &FitResult) -> String {
    let mut out = String::new();
    for (at, (set, dialogues)) in fit.sets.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = writeln!(out, "{set}, {} dialogues: recall / full, tokens", dialogues.len());
        let _ = writeln!(
            out,
            "{:<28} {:>22} {:>22}   left out, recall by dialogue",
            "", "each dialogue left out", "in sample"
        );
        for row in &fit.rows {
            let (Some(left_out), Some(in_sample)) = (row.left_out.get(at), row.in_sample.get(at)) else { continue };
            let spread: Vec<String> = left_out.spread.by_dialogue.iter().map(|r| format!("{:.1}", 100.0 * r)).collect();
            let _ = writeln!(
                out,
                "{:<28} {:>22} {:>22}   {} (±{:.1})",
                row.name,
                figures(left_out),
                figures(in_sample),
                spread.join(" "),
                100.0 * left_out.spread.deviation
            );
        }
        out.push('\n');
    }
    for row in &fit.rows {
        let (weights, stop, shares) = &row.chosen;
        let _ = writeln!(
            out,
            "# {}, chosen on all dialogues\n{}{}{}",
            row.name,
            toml("familiarity.weights", weights),
            toml("stop", stop),
            toml("shares", shares)
        );
    }
    out
}

fn figures(f: &FitFigures) -> String {
    format!("{:.1} / {:.1}, {:.0}", 100.0 * f.recall, 100.0 * f.full, f.tokens)
}

fn toml<T: Serialize>(name: &str, value: &T) -> String {
    format!("[recall.{name}]\n{}", toml::to_string(value).unwrap_or_default())
}
