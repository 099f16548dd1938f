//! Renders a small result; `REWRITE=1` rewrites the golden files.

use std::{collections::BTreeMap, fs, path::Path};

use super::{CategoryFigures, EvalReport, QuestionReport, StageFigures, write};
use crate::{
    calibration::{CHANCE, Calibration, SweepRow},
    evidence_loss::{EvidenceLoss, LossStage},
    result::{
        BuildCost, ComparisonRow, DamageCount, EVAL_SCHEMA_VERSION, EvalFigures, EvalResult, EvalRun, EvidenceTurn,
        Latency, MeanInterval, ModelUse, QuestionResult, ReadingRow, RowBudget, SecondRoundFigures, SizeRow, VectorRow,
    },
};
use types::model::{
    Bank, Channel, ConsideredUnit, ContextTokens, Cues, EdgeStep, EventTime, Evidence, EvidenceUnit, Excerpt, Plan,
    Provenance, Question, QuestionCues, RecallRound, Trace, UnitId,
};

fn figures(questions: u64, recall: f64, tokens: f64) -> EvalFigures {
    EvalFigures {
        questions,
        scored: questions,
        evidence_recall: Some(recall),
        full_evidence: Some(recall - 0.125),
        context_tokens: Some(tokens),
        units: Some(12.5),
        first_hop_recall: Some(recall - 0.25),
        first_hop_full_evidence: Some(recall - 0.375),
        first_hop_tokens: Some(tokens / 2.0),
        second_round_rate: Some(0.5),
        sufficiency: Some(0.625),
        ..EvalFigures::default()
    }
}

fn time() -> EventTime {
    EventTime::parse("2024-05-01T10:00:00Z").unwrap()
}

/// Four evidence turns: one delivered by the expansion, one found but left out of the context,
/// one without a unit, and one never found.
fn question(id: &str) -> QuestionResult {
    let hop = |rank| Provenance::FirstHop { channel: Channel::Semantic, rank, score: 0.5 };
    let step = EdgeStep { from: UnitId(1), to: UnitId(2), channel: Channel::Semantic, weight: 0.8 };
    let walked = Provenance::Expansion {
        channel: Channel::Semantic,
        rank: 1,
        score: 0.4,
        familiarity: 0.5,
        target_match: 0.5,
        hops: 1,
        path: vec![step],
        path_weight: 0.8,
    };
    let seen = |id: u64, words: &str, provenance: &Provenance, kept: bool| ConsideredUnit {
        id: UnitId(id),
        restatement: words.to_owned(),
        provenance: provenance.clone(),
        kept,
    };
    let unit = |id: u64, turn: &str, words: &str, provenance: &Provenance, anchor: bool| EvidenceUnit {
        id: UnitId(id),
        restatement: words.to_owned(),
        cues: Cues::default(),
        said_at: time(),
        sources: vec![turn.to_owned()],
        excerpts: vec![Excerpt {
            turn: turn.to_owned(),
            speaker: "Mira".into(),
            said_at: time(),
            text: words.into(),
            range: None,
            metadata: None,
        }],
        rho: 1.25,
        anchor,
        provenance: vec![provenance.clone()],
    };
    let plan = |proceed: bool| Plan {
        proceed,
        sufficiency: 0.5,
        reason: "a title is missing".to_owned(),
        anchors: if proceed { vec![UnitId(1)] } else { Vec::new() },
        target: None,
        note: None,
    };
    let piece = |turn: &str, delivered: bool, held_by: &[u64]| EvidenceTurn {
        turn: turn.to_owned(),
        speaker: "Mira".to_owned(),
        text: "I loved *Salt Road* | and\n~~~~ more.".to_owned(),
        delivered,
        delivered_by_first_hop: false,
        held_by: held_by.iter().map(|u| UnitId(*u)).collect(),
        lost: (!delivered).then(|| EvidenceLoss {
            at: LossStage::Cutoff,
            sentence: "Below it.".to_owned(),
            standing: None,
        }),
    };
    QuestionResult {
        id: id.to_owned(),
        conversation: "conv-1".to_owned(),
        bank: Bank::parse("locomo/conv-1").unwrap(),
        category: "multi-hop".to_owned(),
        supported: Some(true),
        reference: Some("Salt Road".to_owned()),
        pieces: vec![
            piece("D1:2", true, &[2]),
            piece("D1:3", false, &[3]),
            piece("D1:4", false, &[]),
            piece("D1:5", false, &[5]),
        ],
        context_tokens: 40,
        second_round: true,
        first_hop_tokens: 20,
        generated: None,
        llm: ModelUse { llm_calls: 3, llm_tokens: 900 },
        latency_ms: 7.25,
        answer: Evidence {
            schema: 1,
            question: Question {
                asked_at: Some(time()),
                ..Question::new(Bank::parse("locomo/conv-1").unwrap(), "Which books | titles has Mira <named>?")
            },
            units: vec![
                unit(2, "D1:2", "Mira named Salt Road.", &walked, false),
                unit(1, "D1:1", "Mira was asked about books.", &hop(1), true),
            ],
            context: "Mira: I loved Salt Road.\n~~~~\n".to_owned(),
            context_turns: vec![vec!["D1:1".to_owned()]],
            tokens: ContextTokens::default(),
            instructions: Vec::new(),
            superseding: Vec::new(),
            sufficiency: 0.75,
            supported: true,
            stop_reason: "enough".to_owned(),
            reflects: Vec::new(),
            trace: Trace {
                asker: None,
                period: None,
                form: None,
                llm: None,
                cues: QuestionCues {
                    semantic_query: String::new(),
                    keywords: vec!["books".to_owned()],
                    cues: Cues::default(),
                    note: None,
                },
                vector_hash: "0".to_owned(),
                scale: None,
                rerank: None,
                near: Vec::new(),
                first_hop: vec![
                    seen(1, "Mira was asked about books.", &hop(1), true),
                    seen(3, "Mira reads.", &hop(2), false),
                ],
                rounds: vec![RecallRound {
                    plan: plan(true),
                    reached: 1,
                    support: vec![seen(2, "Mira named Salt Road.", &walked, true)],
                    reflects: Vec::new(),
                    walk: None,
                }],
            },
            forgotten: None,
            flat: None,
            notice: None,
        },
    }
}

fn run() -> EvalRun {
    let row = |name: &str, over: &str, budget: RowBudget, recall: f64, tokens: f64| ComparisonRow {
        name: name.to_owned(),
        about: format!("{name}, as described in its source"),
        over: over.to_owned(),
        budget,
        overall: figures(4, recall, tokens),
        by_category: BTreeMap::from([("multi-hop".to_owned(), figures(2, recall, tokens))]),
    };
    let mut whole = question("conv-1#1");
    whole.pieces.truncate(1);
    let mut unsupported = question("conv-1/1");
    unsupported.supported = Some(false);
    unsupported.category = "adversarial".to_owned();
    EvalRun {
        result: EvalResult {
            schema: EVAL_SCHEMA_VERSION,
            dataset: "locomo".to_owned(),
            file: "small.json".to_owned(),
            profile: "default".to_owned(),
            overall: figures(4, 0.875, 1_000.0),
            sufficiency_auc: Some(0.75),
            by_category: BTreeMap::from([
                ("multi-hop".to_owned(), figures(2, 0.75, 1_200.0)),
                ("single-hop".to_owned(), figures(2, 1.0, 800.0)),
                ("adversarial".to_owned(), EvalFigures { questions: 1, ..EvalFigures::default() }),
            ]),
            by_conversation: BTreeMap::from([("conv-1".to_owned(), figures(4, 0.875, 1_000.0))]),
            by_second_round: SecondRoundFigures { ran: figures(2, 0.75, 1_200.0), stopped: figures(2, 1.0, 800.0) },
            build: BuildCost {
                conversations: 2,
                turns: 10,
                units: 8,
                seconds: 0.5,
                turns_per_second: 20.0,
                ..BuildCost::default()
            },
            latency_ms: Latency { p50: 5.0, p99: 9.0 },
            reading: ModelUse::default(),
            reranker: None,
            config: serde_json::json!({"version": 1}),
            problems: BTreeMap::from([(
                "lost_evidence".to_owned(),
                DamageCount { count: 1, treatment: "left out".to_owned(), examples: vec!["conv-1#0: D9:9".to_owned()] },
            )]),
            baselines: vec![
                row("dense", "turns", RowBudget::Matched, 0.625, 900.0),
                row("everything", "units", RowBudget::Everything, 1.0, 20_000.0),
            ],
            ablations: vec![row("graph-expansion", "units", RowBudget::Units(30), 0.625, 600.0)],
            vectors: vec![VectorRow {
                model: "m".to_owned(),
                way: "each turn".to_owned(),
                vectors_per_turn: 1.25,
                overall: figures(4, 0.75, 1000.0),
                ingest_seconds: 0.5,
                ingest_over_raw: 1.1,
            }],
            sizes: vec![size(1_000, 1_003), size(10_000, 4_200)],
            readings: vec![reading("default", 0.5), reading("flat-mixture", 0.375)],
        },
        questions: vec![question("conv-1#0"), whole, unsupported],
    }
}

fn reading(name: &str, mean: f64) -> ReadingRow {
    let interval = |mean: f64| Some(MeanInterval { mean, low: mean - 0.125, high: mean + 0.125 });
    ReadingRow {
        name: name.to_owned(),
        questions: 3,
        context_tokens: Some(900.0),
        f1: interval(mean),
        bleu1: interval(mean - 0.125),
        judge_accuracy: None,
    }
}

fn size(asked_units: u64, units_held: u64) -> SizeRow {
    let by_category = |recall| BTreeMap::from([("multi-hop".to_owned(), figures(4, recall, 900.0))]);
    SizeRow {
        asked_units,
        units_held,
        turns: units_held * 4,
        overall: figures(4, 0.75, 900.0),
        by_category: by_category(0.75),
        without_graph: figures(4, 0.625, 700.0),
        without_graph_by_category: by_category(0.5),
        latency_ms: Latency { p50: 4.5, p99: 9.25 },
        without_links: figures(4, 0.5, 900.0),
        every_part: figures(4, 1.0, 900.0),
        every_part_latency_ms: Latency { p50: 40.5, p99: 90.25 },
    }
}

fn calibration() -> Calibration {
    let row = |threshold, choices, without| SweepRow { threshold, choices, without };
    Calibration {
        model: "m".to_owned(),
        banks: 1,
        units: 8,
        most_choices: 6,
        target_choices: 3.0,
        semantic_threshold: 0.751,
        choices: 3.0,
        question_floor: 0.4,
        question_ceiling: 0.7,
        byte_factor: 1.0,
        chance: CHANCE,
        questions: 56,
        sweep: vec![row(0.74, 3.5, 0.0), row(0.76, 2.5, 0.125), row(0.78, 0.0, 1.0)],
    }
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden").join(name);
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} has changed; REWRITE=1 rewrites it", path.display());
}

/// Checks that every element is closed in order, every attribute is quoted, and there is no bare ampersand.
fn well_formed(svg: &str) -> usize {
    let mut open = Vec::new();
    let mut elements = 0;
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a bare >: {}", &rest[..at]);
        let end = rest[at..].find('>').expect("an unclosed tag") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.trim()));
        } else if !tag.starts_with(['?', '!']) {
            elements += 1;
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap());
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for (at, _) in svg.match_indices('&') {
        assert!(svg[at..].chars().take(8).any(|c| c == ';'), "{}", &svg[at..]);
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    elements
}

#[test]
fn a_small_result_is_rendered_the_same_every_time() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("made/here");
    write(&directory, &run(), Some(&calibration())).unwrap();
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    golden("report.md", &read("report.md"));
    golden("report_question.md", &read("questions/conv-1-0.md"));
    for name in ["recall_tokens.svg", "recall_by_category.svg", "full_by_category.svg", "calibration.svg"] {
        let svg = read(name);
        assert!(well_formed(&svg) > 20, "{name}");
        assert!(read("report.md").contains(&format!("]({name})")), "{name} is shown");
    }
    assert!(read("recall_tokens.svg").contains("dense (turns, as many): 62.5 % at 900"));
    assert!(read("recall_by_category.svg").contains("multi-hop"));
    // A second report written over the first gives the same bytes.
    let before = read("recall_tokens.svg");
    write(&directory, &run(), None).unwrap();
    assert_eq!(before, read("recall_tokens.svg"));
    assert!(!read("report.md").contains("## Calibration"));
}

#[test]
fn every_question_has_its_own_page() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &run(), None).unwrap();
    let mut pages: Vec<_> = fs::read_dir(home.path().join("questions"))
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let named = |name: &str| [format!("{name}.json"), format!("{name}.md")];
    let expected = ["conv-1-0", "conv-1-1-2", "conv-1-1"].map(named).concat();
    assert_eq!(pages, [vec!["README.md".to_owned()], expected].concat());
    let index = fs::read_to_string(home.path().join("questions/README.md")).unwrap();
    assert!(index.contains("[conv-1\\#0](conv-1-0.md) | multi-hop | 4 | 1 |"), "{index}");
}

/// Every question has a line and a file, and figures are those of the lines.
#[test]
fn the_console_gets_every_question_once() {
    let home = tempfile::tempdir().unwrap();
    let run = run();
    write(home.path(), &run, None).unwrap();
    let read = |name: &str| fs::read(home.path().join(name)).unwrap();
    let report: EvalReport = serde_json::from_slice(&read("report.json")).unwrap();
    let ids: Vec<&str> = report.questions.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids, ["conv-1#0", "conv-1#1", "conv-1/1"]);
    for (line, asked) in report.questions.iter().zip(&run.questions) {
        let question: QuestionReport = serde_json::from_slice(&read(&format!("questions/{}", line.file))).unwrap();
        assert_eq!((&question.id, &question.answer), (&line.id, &asked.answer));
        assert_eq!(question.evidence.len() as u64, line.evidence);
        assert_eq!(question.evidence.iter().filter(|turn| turn.lost.is_none()).count() as u64, line.found);
    }
    let [missed, whole, _] = &report.questions[..] else { panic!("{report:?}") };
    assert_eq!((missed.evidence, missed.found, &missed.lost_at[..]), (4, 1, &[LossStage::Cutoff][..]));
    assert_eq!((whole.evidence, whole.found, whole.found_by_first_hop), (1, 1, Some(0)));
    // A quarter of one question's evidence and all of the other's, none of it by the first hop.
    let CategoryFigures { scored, recollection, first_hop, .. } = report.overall;
    let means = |figures: StageFigures| (figures.recall.unwrap().mean, figures.full.unwrap().mean, figures.tokens);
    assert_eq!((scored, means(recollection)), (2, (0.625, 0.5, Some(40.0))));
    assert_eq!(means(first_hop), (0.0, 0.0, Some(20.0)));
    let recall = recollection.recall.unwrap();
    assert!(recall.low.unwrap() < recall.mean && recall.mean < recall.high.unwrap(), "{recall:?}");
    let categories: Vec<(&str, u64)> = report.categories.iter().map(|c| (c.name.as_str(), c.questions)).collect();
    assert_eq!(categories, [("adversarial", 1), ("multi-hop", 2)]);
    let names: Vec<&str> = report.retrievers.iter().map(|retriever| retriever.name.as_str()).collect();
    assert_eq!(
        names,
        ["recollection", "first hop alone", "dense (turns, as many)", "everything (units, all)", "graph-expansion"]
    );
}

#[test]
fn an_empty_run_gives_a_report() {
    let home = tempfile::tempdir().unwrap();
    let mut run = run();
    run.questions.clear();
    run.result.overall = EvalFigures::default();
    run.result.by_category.clear();
    run.result.by_conversation.clear();
    run.result.baselines.clear();
    run.result.ablations.clear();
    run.result.problems.clear();
    run.result.build = BuildCost::default();
    write(home.path(), &run, None).unwrap();
    let text = fs::read_to_string(home.path().join("report.md")).unwrap();
    assert!(text.contains("Nothing.") && !text.contains("NaN") && !text.contains(".svg"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let message = write(file.path(), &run(), None).unwrap_err().to_string();
    assert!(message.contains(file.path().to_str().unwrap()) && message.contains("another directory"), "{message}");
}
