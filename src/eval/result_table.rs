//! The figures of a run as a table for a terminal.
//!
//! In: the figures. Out: plain text; shares in percent. A figure that was not measured is a dash.

use super::result::{EvalFigures, EvalResult, MeanInterval, RerankerUse, RowBudget};

/// The table of a result.
#[must_use]
pub fn table(result: &EvalResult) -> String {
    let mut out = format!(
        "{} {} (profile {}): {} conversations, {} turns, {} units in {:.1} s ({:.0} turns/s); \
         question p50 {:.1} ms, p99 {:.1} ms\n\n",
        result.dataset,
        result.file,
        result.profile,
        result.build.conversations,
        result.build.turns,
        result.build.units,
        result.build.seconds,
        result.build.turns_per_second,
        result.latency_ms.p50,
        result.latency_ms.p99,
    );
    out.push_str(&head(&["questions", "recall", "full", "tokens", "units", "hop 1", "hop 1 full", "round 2"]));
    line(&mut out, "overall", &result.overall);
    for (name, figures) in &result.by_category {
        line(&mut out, &format!("  {name}"), figures);
    }
    line(&mut out, "  round 2 ran", &result.by_second_round.ran);
    line(&mut out, "  stopped at hop 1", &result.by_second_round.stopped);
    if result.overall.f1.is_some() || result.overall.judge_accuracy.is_some() {
        out.push_str(&format!("\n{}", head_of("answers", &["F1", "BLEU-1", "judge"])));
        for (name, f) in std::iter::once(("overall", &result.overall))
            .chain(result.by_category.iter().map(|(name, figures)| (name.as_str(), figures)))
        {
            push(&mut out, name, &[f.f1, f.bleu1, f.judge_accuracy].map(percent));
        }
    }
    if !result.readings.is_empty() {
        let columns = ["questions", "tokens", "F1", "95 %", "BLEU-1", "95 %", "judge"];
        out.push_str(&format!("\n{}", head_of("answers from the contexts of", &columns)));
        for row in &result.readings {
            let mean = |interval: Option<MeanInterval>| percent(interval.map(|i| i.mean));
            let range = |interval: Option<MeanInterval>| {
                interval.map_or_else(|| "-".to_owned(), |i| format!("{:.1}–{:.1}", i.low * 100.0, i.high * 100.0))
            };
            let cells = [
                row.questions.to_string(),
                whole(row.context_tokens),
                mean(row.f1),
                range(row.f1),
                mean(row.bleu1),
                range(row.bleu1),
                percent(row.judge_accuracy),
            ];
            push(&mut out, &row.name, &cells);
        }
    }
    for (what, calls, tokens) in [
        ("build", result.build.llm_calls, result.build.llm_tokens),
        ("reading", result.reading.llm_calls, result.reading.llm_tokens),
    ] {
        if calls > 0 {
            out.push_str(&format!("\n{what}: {calls} calls of the language model, {tokens} tokens\n"));
        }
    }
    if let Some(RerankerUse { model, answers, without, problem, .. }) = &result.reranker {
        let why = problem.as_ref().map(|problem| format!(" ({problem})")).unwrap_or_default();
        out.push_str(&format!("\nreranker {model}: {answers} answers with it, {without} without{why}\n"));
    }
    if let Some(auc) = result.sufficiency_auc {
        out.push_str(&format!("\nsufficiency separates supported from unsupported questions: AUC {auc:.3}\n"));
    }
    for (title, rows) in [("baselines", &result.baselines), ("ablations", &result.ablations)] {
        if rows.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}", head_of(title, &["questions", "recall", "full", "tokens", "units"])));
        let ours = EvalFigures {
            first_hop_recall: None,
            first_hop_full_evidence: None,
            second_round_rate: None,
            ..result.overall
        };
        short(&mut out, "recollection", &ours);
        for row in rows {
            short(&mut out, &format!("{} ({}, {})", row.name, row.over, budget(row.budget)), &row.overall);
        }
    }
    if !result.vectors.is_empty() {
        let columns = ["a turn", "recall", "full", "tokens", "ingest s", "over raw"];
        out.push_str(&format!("\n{}", head_of("vectors", &columns)));
        let mut model = "";
        for v in &result.vectors {
            if model != v.model {
                model = &v.model;
                out.push_str(&format!("{model}\n"));
            }
            let f = &v.overall;
            let made = [tenth(Some(v.vectors_per_turn)), percent(f.evidence_recall), percent(f.full_evidence)];
            let took = [whole(f.context_tokens), tenth(Some(v.ingest_seconds)), format!("{:.2}", v.ingest_over_raw)];
            push(&mut out, &format!("  {}", v.way), &[made, took].concat());
        }
    }
    if !result.sizes.is_empty() {
        let columns = [
            "recall",
            "full",
            "tokens",
            "hop 1",
            "no graph",
            "graph",
            "no links",
            "all parts",
            "p50 ms",
            "p99 ms",
            "all p50",
        ];
        out.push_str(&format!("\n{}", head_of("one bank of", &columns)));
        for s in &result.sizes {
            let f = &s.overall;
            let found = [percent(f.evidence_recall), percent(f.full_evidence), whole(f.context_tokens)];
            let without = [
                percent(f.first_hop_recall),
                percent(s.without_graph.evidence_recall),
                recall_gain(f, &s.without_graph),
            ];
            let whole_bank = [percent(s.without_links.evidence_recall), percent(s.every_part.evidence_recall)];
            let took = [s.latency_ms.p50, s.latency_ms.p99, s.every_part_latency_ms.p50].map(|ms| tenth(Some(ms)));
            push(
                &mut out,
                &format!("{} units, {} turns", s.units_held, s.turns),
                &[&found[..], &without, &whole_bank, &took].concat(),
            );
        }
    }
    if !result.problems.is_empty() {
        out.push_str("\nin the file:\n");
        for (kind, problem) in &result.problems {
            out.push_str(&format!(
                "  {kind} {}: {} ({})\n",
                problem.count,
                problem.treatment,
                problem.examples.join("; ")
            ));
        }
    }
    out
}

/// Points of recall that `with` gains over `without`.
pub(super) fn recall_gain(with: &EvalFigures, without: &EvalFigures) -> String {
    let points = with.evidence_recall.zip(without.evidence_recall).map(|(a, b)| (a - b) * 100.0);
    points.map_or_else(|| "–".to_owned(), |points| format!("{points:+.1}"))
}

const FIRST: usize = 40;
const WIDTH: usize = 11;

fn head(columns: &[&str]) -> String {
    head_of("", columns)
}

fn head_of(title: &str, columns: &[&str]) -> String {
    let cells: String = columns.iter().map(|c| format!("{c:>WIDTH$}")).collect();
    format!("{title:<FIRST$}{cells}\n")
}

fn line(out: &mut String, name: &str, f: &EvalFigures) {
    let cells = [
        f.questions.to_string(),
        percent(f.evidence_recall),
        percent(f.full_evidence),
        whole(f.context_tokens),
        tenth(f.units),
        percent(f.first_hop_recall),
        percent(f.first_hop_full_evidence),
        percent(f.second_round_rate),
    ];
    push(out, name, &cells);
}

fn short(out: &mut String, name: &str, f: &EvalFigures) {
    let cells = [
        f.questions.to_string(),
        percent(f.evidence_recall),
        percent(f.full_evidence),
        whole(f.context_tokens),
        tenth(f.units),
    ];
    push(out, name, &cells);
}

fn push(out: &mut String, name: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|c| format!("{c:>WIDTH$}")).collect();
    out.push_str(&format!("{name:<FIRST$}{cells}\n"));
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", s * 100.0))
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"))
}

fn tenth(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"))
}

/// A budget as text.
#[must_use]
pub fn budget(budget: RowBudget) -> String {
    match budget {
        RowBudget::Units(n) => format!("at most {n}"),
        RowBudget::Tokens(n) => format!("{n} tokens"),
        RowBudget::Matched => "as many".to_owned(),
        RowBudget::Everything => "all".to_owned(),
    }
}
