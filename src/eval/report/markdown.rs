//! The report's first page.
//!
//! In: a run, the names of the questions' pages and of the plots, and a calibration. Out: Markdown. Shares are in
//! percent; a figure that was not measured is a dash; the paper's figures are in separate columns or rows.

use std::fmt::Write;

use super::question::{fenced, line};
use crate::{
    calibration::Calibration,
    paper::{PaperRow, PaperTables, paper},
    result::{
        ComparisonRow, EvalFigures, EvalResult, EvalRun, MeanInterval, QuestionResult, ReadingRow, RerankerUse,
        SizeRow, VectorRow,
    },
    result_table::{budget, recall_gain},
};

/// File of the plot of recall against tokens.
pub(super) const TOKENS: &str = "recall_tokens.svg";
/// File of the plot of recall by category.
pub(super) const RECALL: &str = "recall_by_category.svg";
/// File of the plot of full evidence by category.
pub(super) const FULL: &str = "full_by_category.svg";
/// File of the plot of a calibration's sweep.
pub(super) const SWEEP: &str = "calibration.svg";

/// The page.
pub(super) fn page(run: &EvalRun, names: &[String], plots: &[&str], calibration: Option<&Calibration>) -> String {
    let mut page = MarkdownPage { out: String::new(), result: &run.result, paper: paper(), plots };
    page.head();
    page.evidence();
    page.baselines();
    page.ablations();
    page.vectors();
    page.sizes();
    page.answers();
    page.readings();
    page.cost();
    if let Some(calibration) = calibration {
        page.calibration(calibration);
    }
    page.problems();
    page.misses(&run.questions, names);
    page.settings();
    page.out
}

struct MarkdownPage<'a> {
    out: String,
    result: &'a EvalResult,
    paper: PaperTables,
    plots: &'a [&'a str],
}

impl MarkdownPage<'_> {
    /// The paper's rows for the dataset of the run.
    fn papers(&self) -> impl Iterator<Item = &PaperRow> {
        self.paper.rows.iter().filter(|r| r.dataset == self.result.dataset)
    }

    /// The paper's judge accuracy for the row of this name.
    fn papers_judge(&self, name: &str) -> String {
        number(self.papers().find(|p| p.name == name).map(|p| p.judge), 2)
    }

    fn say(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out, "{text}\n");
    }

    fn plot(&mut self, file: &str, words: &str) {
        if self.plots.contains(&file) {
            self.say(&format!("![{words}]({file})"));
        }
    }

    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        table(&mut self.out, head, rows);
    }

    fn head(&mut self) {
        let r = self.result;
        self.say(&format!("# {}: {}", line(&r.dataset), line(&r.file)));
        self.say(&format!(
            "Profile `{}`; {} conversations, {} turns, {} units, {} supported questions, of which {} can be scored by \
             evidence. Shares are in percent, tokens are o200k over the context exactly as an answerer gets it.",
            r.profile, r.build.conversations, r.build.turns, r.build.units, r.overall.questions, r.overall.scored
        ));
        if let Some(RerankerUse { model, answers, without, .. }) = &r.reranker {
            self.say(&format!(
                "The reranker `{model}` ordered {answers} of the answers; {without} were made without it."
            ));
        }
    }

    fn evidence(&mut self) {
        let r = self.result;
        self.say("## Evidence");
        self.plot(RECALL, "Evidence recall by category, before and after expansion");
        self.plot(FULL, "Full evidence by category, before and after expansion");
        let mut rows = vec![wide("**overall**", &r.overall)];
        rows.extend(r.by_category.iter().map(|(name, f)| wide(&line(name), f)));
        rows.push(wide("a second round ran", &r.by_second_round.ran));
        rows.push(wide("stopped at the first hop", &r.by_second_round.stopped));
        rows.extend(r.by_conversation.iter().take(20).map(|(name, f)| wide(&format!("`{name}`"), f)));
        self.table(
            &[
                "questions",
                "asked",
                "recall",
                "full",
                "tokens",
                "units",
                "first hop recall",
                "first hop full",
                "first hop tokens",
                "second round",
            ],
            &rows,
        );
        if r.by_conversation.len() > 20 {
            self.say(&format!("The JSON form has {} more conversations.", r.by_conversation.len() - 20));
        }
        if let Some(auc) = r.sufficiency_auc {
            self.say(&format!(
                "The sufficiency figure separates questions that the dialogue supports from those that it does not \
                 with an AUC of {auc:.3}."
            ));
        }
    }

    fn baselines(&mut self) {
        let r = self.result;
        if r.baselines.is_empty() && r.ablations.is_empty() {
            self.plot(TOKENS, "Evidence recall against context tokens");
            return;
        }
        self.say("## Baselines");
        self.plot(TOKENS, "Evidence recall against context tokens");
        if r.baselines.is_empty() {
            return;
        }
        self.say(
            "All retrievers search the same memory, in the same run, with the same vectors, rendering and counting.",
        );
        let categories: Vec<&String> = r.by_category.keys().collect();
        let mut head = vec!["retriever", "over", "budget", "recall", "full", "tokens", "units"];
        head.extend(categories.iter().map(|c| c.as_str()));
        head.push("judge, the paper's");
        let recalls = |by: &dyn Fn(&str) -> Option<EvalFigures>| -> Vec<String> {
            categories.iter().map(|c| percent(by(c).and_then(|f| f.evidence_recall))).collect()
        };
        let ours = |name: &str, overall: &EvalFigures, by: Vec<String>, paper: &str| {
            let mut row = vec![name.to_owned(), "units".to_owned(), String::new()];
            row.extend(short(overall));
            row.extend(by);
            row.push(self.papers_judge(paper));
            row
        };
        let first = |f: &EvalFigures| EvalFigures {
            evidence_recall: f.first_hop_recall,
            full_evidence: f.first_hop_full_evidence,
            context_tokens: f.first_hop_tokens,
            units: None,
            ..*f
        };
        let mut rows = vec![
            ours("**recollection**", &r.overall, recalls(&|c| r.by_category.get(c).copied()), "recollection"),
            ours("first hop alone", &first(&r.overall), recalls(&|c| r.by_category.get(c).map(first)), "first-hop"),
        ];
        for baseline in &r.baselines {
            let mut row = vec![line(&baseline.name), line(&baseline.over), budget(baseline.budget)];
            row.extend(short(&baseline.overall));
            row.extend(recalls(&|c| baseline.by_category.get(c).copied()));
            row.push(self.papers_judge(&baseline.name));
            rows.push(row);
        }
        self.table(&head, &rows);
        self.about(&r.baselines);
    }

    fn about(&mut self, rows: &[ComparisonRow]) {
        let mut seen: Vec<&str> = Vec::new();
        for row in rows {
            if !seen.contains(&row.name.as_str()) {
                seen.push(&row.name);
                let _ = writeln!(self.out, "- {}: {}", line(&row.name), line(&row.about));
            }
        }
        self.out.push('\n');
    }

    fn ablations(&mut self) {
        let r = self.result;
        if r.ablations.is_empty() {
            return;
        }
        self.say("## Ablations");
        self.say(
            "The last column is the paper's judge accuracy without the same part. The other columns are this run's \
             evidence figures, and its judge accuracy where answers were judged.",
        );

        let row = |name: &str, f: &EvalFigures, paper: String| {
            let mut row = vec![name.to_owned()];
            row.extend(short(f));
            row.push(recall_gain(f, &r.overall));
            row.push(percent(f.judge_accuracy));
            row.push(paper);
            row
        };
        let mut rows = vec![row("**nothing left out**", &r.overall, self.papers_judge("recollection"))];
        rows.extend(r.ablations.iter().map(|a| row(&line(&a.name), &a.overall, self.papers_judge(&a.name))));
        self.table(&["", "recall", "full", "tokens", "units", "recall, change", "judge", "judge, the paper's"], &rows);
        self.about(&r.ablations);
    }

    fn vectors(&mut self) {
        let r = self.result;
        if r.vectors.is_empty() {
            return;
        }
        self.say("## Vectors");
        self.say(
            "Ways to make vectors of a turn, each measured through the whole path over the same file. The last column \
             divides its time by that of one vector a turn at full precision, measured just before.",
        );
        let row = |v: &VectorRow| {
            let mut row = vec![line(&v.model), line(&v.way), format!("{:.1}", v.vectors_per_turn)];
            row.extend(short(&v.overall));
            row.extend([format!("{:.1}", v.ingest_seconds), format!("{:.2}", v.ingest_over_raw)]);
            row
        };
        let rows: Vec<Vec<String>> = r.vectors.iter().map(row).collect();
        let headings = [
            "model",
            "what is embedded",
            "vectors a turn",
            "recall",
            "full",
            "tokens",
            "units",
            "ingest, s",
            "over raw",
        ];
        self.table(&headings, &rows);
    }

    fn sizes(&mut self) {
        let r = self.result;
        let Some(first) = r.sizes.first() else { return };
        self.say("## Size of a bank");
        self.say(&format!(
            "All conversations are merged into one bank, which grows; the same {} questions are asked each time. The \
             columns from \"graph\" to the last category are the points of recall gained over rounds that follow no edges. \
             \"Without links\" is the recall when edges lead to no candidate of the first hop, \"every part\" when every \
             part of the bank gets the full score.",
            first.overall.questions
        ));
        let categories: Vec<&String> = first.by_category.keys().collect();
        let row = |s: &SizeRow| {
            let ended = s.units_held < s.asked_units && s.asked_units - s.units_held > s.asked_units / 100;
            let units = if ended { format!("{} (all turns)", s.units_held) } else { s.units_held.to_string() };
            let mut row = vec![units, s.turns.to_string()];
            row.extend(short(&s.overall));
            row.push(percent(s.overall.first_hop_recall));
            row.push(recall_gain(&s.overall, &s.without_graph));
            let of = |c: &String| Some(recall_gain(s.by_category.get(c)?, s.without_graph_by_category.get(c)?));
            row.extend(categories.iter().map(|c| of(c).unwrap_or_else(|| "–".to_owned())));
            row.extend([&s.without_links, &s.every_part].map(|figures| percent(figures.evidence_recall)));
            row.extend([s.latency_ms.p50, s.latency_ms.p99, s.every_part_latency_ms.p50].map(|ms| number(Some(ms), 1)));
            row
        };
        let rows: Vec<Vec<String>> = r.sizes.iter().map(row).collect();
        let mut head = vec!["units", "turns", "recall", "full", "tokens", "units in context", "first hop", "graph"];
        head.extend(categories.iter().map(|c| c.as_str()));
        head.extend(["without links", "every part", "p50, ms", "p99, ms", "every part p50, ms"]);
        self.table(&head, &rows);
    }

    fn answers(&mut self) {
        let r = self.result;
        let rows: Vec<PaperRow> = self.papers().cloned().collect();
        let Some(whole) = rows.first() else { return };
        self.say("## Beside the paper");
        self.say(
            "Judge accuracy of answers, by category. The paper's rows are its own figures, not measured here. Without \
             a language model there are no answers to judge, and this run's row has dashes.",
        );
        let categories: Vec<&String> = whole.by_category.keys().collect();
        let mut head = vec!["", "F1", "BLEU-1", "judge", "tokens"];
        head.extend(categories.iter().map(|c| c.as_str()));
        let mut ours = vec![
            "**this run**".to_owned(),
            percent(r.overall.f1),
            percent(r.overall.bleu1),
            percent(r.overall.judge_accuracy),
        ];
        ours.push(number(r.overall.context_tokens, 0));
        ours.extend(categories.iter().map(|c| percent(r.by_category.get(*c).and_then(|f| f.judge_accuracy))));
        let mut lines = vec![ours];
        for row in &rows {
            let mut cells = vec![format!("paper: {}", line(&row.about))];
            cells.extend([
                number(row.f1, 2),
                number(row.bleu1, 2),
                number(Some(row.judge), 2),
                number(row.context_tokens, 0),
            ]);
            cells.extend(categories.iter().map(|c| number(row.by_category.get(*c).copied(), 2)));
            lines.push(cells);
        }
        self.table(&head, &lines);
    }

    fn readings(&mut self) {
        let r = self.result;
        if r.readings.is_empty() {
            return;
        }
        self.say("## Answers from different contexts");
        self.say(
            "One model answers the same questions from each context. The ranges hold the middle 95 % of bootstrap \
             resamples of the questions.",
        );
        let row = |row: &ReadingRow| {
            let mut cells = vec![line(&row.name), row.questions.to_string(), number(row.context_tokens, 0)];
            for interval in [row.f1, row.bleu1] {
                cells.push(percent(interval.map(|i| i.mean)));
                let range = |i: MeanInterval| format!("{:.1}–{:.1}", i.low * 100.0, i.high * 100.0);
                cells.push(interval.map_or_else(|| "–".to_owned(), range));
            }
            cells.push(percent(row.judge_accuracy));
            cells
        };
        let rows: Vec<Vec<String>> = r.readings.iter().map(row).collect();
        self.table(&["context", "questions", "tokens", "F1", "95 %", "BLEU-1", "95 %", "judge"], &rows);
    }

    fn cost(&mut self) {
        let r = self.result;
        self.say("## Cost");
        let each = |sum: f64| (r.build.conversations > 0).then(|| sum / r.build.conversations as f64);
        let asked: u64 = r.by_category.values().map(|f| f.questions).sum();
        // The paper states its costs only for LoCoMo.
        let paper = (r.dataset == "locomo").then_some(self.paper.cost);
        let whole = self.papers().find(|p| p.name == "recollection").cloned().unwrap_or_default();
        let row = |name: &str, ours: Option<f64>, digits: usize, paper: Option<f64>| {
            vec![name.to_owned(), number(ours, digits), number(paper, digits)]
        };
        let rows = [
            row("build, seconds a conversation", each(r.build.seconds), 2, paper.map(|p| p.build_seconds)),
            row("build, seconds in all", Some(r.build.seconds), 2, None),
            row("build, turns a second", Some(r.build.turns_per_second), 1, None),
            row(
                "build, language-model calls a conversation",
                each(r.build.llm_calls as f64),
                1,
                paper.map(|p| p.build_calls),
            ),
            row(
                "build, language-model tokens a conversation",
                each(r.build.llm_tokens as f64),
                0,
                paper.map(|p| p.build_tokens),
            ),
            row(
                "reading, language-model tokens a question (paper: of the controller)",
                (asked > 0).then(|| r.reading.llm_tokens as f64 / asked as f64),
                1,
                paper.map(|p| p.controller_tokens),
            ),
            row("question, milliseconds, p50", Some(r.latency_ms.p50), 2, None),
            row("question, milliseconds, p99", Some(r.latency_ms.p99), 2, None),
            row(
                "questions with a second round, %",
                r.overall.second_round_rate.map(|s| s * 100.0),
                1,
                whole.second_round,
            ),
            row(
                "judge accuracy after a second round, %",
                r.by_second_round.ran.judge_accuracy.map(|s| s * 100.0),
                1,
                whole.judge_after_second_round,
            ),
            row(
                "judge accuracy without a second round, %",
                r.by_second_round.stopped.judge_accuracy.map(|s| s * 100.0),
                1,
                whole.judge_after_first_hop,
            ),
        ];
        self.table(&["", "this run", "the paper"], &rows);
    }

    fn calibration(&mut self, c: &Calibration) {
        self.say("## Calibration");
        self.say(&format!(
            "Model `{}`, {} units in {} banks: {:.2} semantic choices a unit at a threshold of {:.3} (target {}, at \
             most {}). The question floor is {:.3}: {:.0} % of random pairs of one of {} questions and a unit do not \
             exceed it. The question ceiling is {:.3}: the same share of the questions' best matches do not exceed it.",
            c.model,
            c.units,
            c.banks,
            c.choices,
            c.semantic_threshold,
            c.target_choices,
            c.most_choices,
            c.question_floor,
            c.chance * 100.0,
            c.questions,
            c.question_ceiling
        ));
        self.plot(SWEEP, "Semantic choices a unit against the threshold");
        let rows: Vec<Vec<String>> = c
            .sweep
            .iter()
            .map(|s| vec![format!("{:.3}", s.threshold), format!("{:.2}", s.choices), percent(Some(s.without))])
            .collect();
        self.table(&["threshold", "choices a unit", "units without"], &rows);
    }

    fn problems(&mut self) {
        let r = self.result;
        self.say("## What was wrong with the file");
        if r.problems.is_empty() {
            self.say("Nothing.");
            return;
        }
        let rows: Vec<Vec<String>> = r
            .problems
            .iter()
            .map(|(kind, p)| {
                let examples: Vec<String> = p.examples.iter().map(|e| line(e)).collect();
                vec![line(kind), p.count.to_string(), line(&p.treatment), examples.join("; ")]
            })
            .collect();
        self.table(&["kind", "how often", "what was done", "where, the first five"], &rows);
    }

    fn misses(&mut self, questions: &[QuestionResult], names: &[String]) {
        self.say("## Misses");
        let missed: Vec<(&QuestionResult, &String)> = questions
            .iter()
            .zip(names)
            .filter(|(q, _)| q.supported != Some(false) && q.pieces.iter().any(|p| !p.delivered))
            .collect();
        self.say(&format!(
            "{} supported questions lack a piece of their evidence. Each page shows the ripple that found or missed \
             it; [every question](questions/README.md) has one.",
            missed.len()
        ));
        if missed.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = missed
            .iter()
            .map(|(q, name)| {
                let delivered = q.pieces.iter().filter(|p| p.delivered).count();
                let first = q.pieces.iter().filter(|p| p.delivered_by_first_hop).count();
                let missing: Vec<String> =
                    q.pieces.iter().filter(|p| !p.delivered).map(|p| format!("`{}`", p.turn)).collect();
                vec![
                    format!("[{}](questions/{name}.md)", line(&q.id)),
                    line(&q.category),
                    line(&q.answer.question.text),
                    format!("{first} → {delivered} of {}", q.pieces.len()),
                    missing.join(", "),
                    if q.second_round { "yes" } else { "no" }.to_owned(),
                    format!("{:.2}", q.answer.sufficiency),
                ]
            })
            .collect();
        self.table(
            &["question", "category", "wording", "first hop → delivered", "missed", "second round", "sufficiency"],
            &rows,
        );
    }

    fn settings(&mut self) {
        self.say("## Settings");
        let text = serde_json::to_string_pretty(&self.result.config).unwrap_or_default();
        self.out.push_str(&fenced(&text));
    }
}

fn wide(name: &str, f: &EvalFigures) -> Vec<String> {
    let mut row = vec![name.to_owned(), f.questions.to_string()];
    row.extend(short(f));
    row.extend([
        percent(f.first_hop_recall),
        percent(f.first_hop_full_evidence),
        number(f.first_hop_tokens, 0),
        percent(f.second_round_rate),
    ]);
    row
}

/// Recall, full evidence, tokens, units.
fn short(f: &EvalFigures) -> [String; 4] {
    [percent(f.evidence_recall), percent(f.full_evidence), number(f.context_tokens, 0), number(f.units, 1)]
}

/// A Markdown table.
pub(crate) fn table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    // Writing into a string cannot fail.
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push('\n');
}

/// A share in percent.
pub(crate) fn percent(share: Option<f64>) -> String {
    number(share.map(|s| s * 100.0), 1)
}

/// A figure, or a dash if it was not measured.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
}
