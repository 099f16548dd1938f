//! One evaluation, from a file to its figures.
//!
//! In: a request. Out: an [`EvalRun`]. Every question is asked twice on the same log: with the pipeline's settings, and
//! without rounds, for the figures of the first hop alone. Evidence that is missed is looked up in the memory, to say
//! where it was lost. The comparisons that the request names follow on the same bench. Leaves no file behind.

use super::{
    benchmark_memory::{BenchmarkMemory, MeasuredEvidence},
    comparisons::{ablation_rows, bank_scaling, baselines, context_readings, vector_rows},
    dataset::{self, Answerability, BenchmarkFormat, DatasetError, DatasetQuestion},
    error::EvalError,
    evidence_loss::{EvidenceLoss, LossFinder},
    memory_contents::MemoryContents,
    request::EvalRequest,
    result::{
        BuildCost, EVAL_SCHEMA_VERSION, EvalResult, EvalRun, EvidenceTurn, Latency, ModelUse, QuestionResult,
        RerankerUse,
    },
    score::{QuestionScore, auc, by_second_round, figures, figures_by, percentile},
};
use models::llm::Contract;
use pipeline::Progress;
use ripplemem::PipelineDriver;
use types::model::EventTime;

/// Builds a memory from the request's file, asks every question and scores the answers.
///
/// # Errors
/// [`EvalError`] when the file as a whole is damaged, or the memory fails.
pub fn evaluate(request: &EvalRequest, progress: &mut dyn FnMut(Progress)) -> Result<EvalRun, EvalError> {
    let zone = EventTime::read(&format!("2000-01-01T00:00:00{}", request.zone)).map_or(0, |t| t.offset_seconds);
    let mut bench = BenchmarkMemory::open(request)?;
    // These calls report the source's error for a file of another format or an unknown conversation.
    drop(request.open_source()?);
    drop(request.open_filler()?);
    bench.dataset = dataset::read(request.format, &request.path, &request.only, zone)?;

    let (service, mut build) = bench.build(progress)?;
    bench.dataset.resolve(&bench.recorded);
    if let Some(limit) = request.limit {
        bench.dataset.limit(limit, request.seed);
    }
    if bench.dataset.questions.is_empty() {
        let problems = std::mem::take(&mut bench.dataset.problems).into_inner();
        let why: Vec<String> = problems.iter().map(|(kind, p)| format!("{kind} {}", p.count)).collect();
        let why = if why.is_empty() { "no questions".to_owned() } else { why.join(", ") };
        return Err(DatasetError::Empty { path: request.path.clone(), why }.into());
    }
    let contents = MemoryContents::read(service.log(), request.baselines || request.compare_answers)?;
    build.units = contents.units();
    // Counted as the paper counts its controller.
    let before = bench.model_usage(&[Contract::Plan]);
    let mut answers = bench.ask(&service, progress)?;
    bench.generate_answers(&mut answers, progress)?;
    let lost = lost(&bench, &service, &answers, &contents)?;
    let reading = bench.model_use_since(before, &[Contract::Plan]);
    drop(service);
    let readings = context_readings::rows(&bench, &contents, &answers, progress)?;
    let mut first_hop_only = bench.pipeline.clone();
    first_hop_only.recall.rounds = 0;
    let first = bench.ask_with(&first_hop_only, progress)?;

    let questions: Vec<QuestionResult> = bench
        .dataset
        .questions
        .iter()
        .zip(answers.into_iter().zip(lost))
        .zip(&first)
        .map(|((asked, (answer, lost)), first)| question_result(&bench, asked, (answer, lost), first, &contents))
        .collect();
    let scored: Vec<QuestionScore> = questions.iter().map(QuestionScore::from).collect();
    let baselines = if request.baselines { baselines::rows(&bench, &contents, &scored, progress)? } else { Vec::new() };
    drop(contents);
    let ablations = ablation_rows::rows(&bench, &scored, progress)?;
    let vectors = if request.vectors { vector_rows::rows(&bench, progress)? } else { Vec::new() };
    let sizes = bank_scaling::rows(&bench, &build, progress)?;
    let result = EvalResult { reading, ..eval_result(&bench, build, &questions, &scored)? };
    Ok(EvalRun { result: EvalResult { readings, baselines, ablations, vectors, sizes, ..result }, questions })
}

/// For each question, where the evidence turns that its answer does not deliver were lost, in their order.
fn lost(
    bench: &BenchmarkMemory,
    service: &PipelineDriver,
    answers: &[MeasuredEvidence],
    contents: &MemoryContents,
) -> Result<Vec<Vec<EvidenceLoss>>, EvalError> {
    let mut finder = LossFinder::new(&bench.pipeline);
    let mut all = Vec::with_capacity(answers.len());
    for (asked, answer) in bench.dataset.questions.iter().zip(answers) {
        let delivered = bench.delivered(asked, &answer.evidence);
        let turns = asked.evidence.iter().zip(delivered);
        let missed: Vec<&str> = turns.filter(|(_, delivered)| !delivered).map(|(turn, _)| turn.as_str()).collect();
        let held_by = |turn: &str| contents.units_citing(&asked.bank, turn);
        let lost = finder.lost(service, &asked.question(), &answer.evidence, &missed, held_by);
        all.push(lost.map_err(|e| EvalError::Question { id: asked.id.clone(), source: Box::new(e) })?);
    }
    Ok(all)
}

fn question_result(
    bench: &BenchmarkMemory,
    asked: &DatasetQuestion,
    (answer, lost): (MeasuredEvidence, Vec<EvidenceLoss>),
    first: &MeasuredEvidence,
    contents: &MemoryContents,
) -> QuestionResult {
    let by_all = bench.delivered(asked, &answer.evidence);
    let by_first = bench.delivered(asked, &first.evidence);
    let mut lost = lost.into_iter();
    let pieces = asked.evidence.iter().zip(by_all).zip(by_first).map(|((turn, delivered), first)| {
        let recorded = bench.recorded.turn(&asked.bank, turn);
        EvidenceTurn {
            turn: turn.clone(),
            speaker: recorded.map_or_else(String::new, |t| t.speaker.clone()),
            text: recorded.map_or_else(String::new, |t| t.text.clone()),
            delivered,
            delivered_by_first_hop: first,
            held_by: contents.units_citing(&asked.bank, turn),
            lost: if delivered { None } else { lost.next() },
        }
    });
    QuestionResult {
        id: asked.id.clone(),
        conversation: asked.conversation.clone(),
        bank: asked.bank.clone(),
        category: asked.category.clone(),
        supported: match asked.answerability {
            Answerability::Supported => Some(true),
            Answerability::Unsupported => Some(false),
            Answerability::Unknown => None,
        },
        reference: asked.reference.clone(),
        pieces: pieces.collect(),
        context_tokens: answer.tokens,
        second_round: answer.evidence.trace.rounds.iter().any(|r| r.plan.proceed),
        first_hop_tokens: first.tokens,
        latency_ms: answer.milliseconds,
        generated: answer.generated,
        llm: answer.llm,
        answer: answer.evidence,
    }
}

fn eval_result(
    bench: &BenchmarkMemory,
    build: BuildCost,
    questions: &[QuestionResult],
    scored: &[QuestionScore],
) -> Result<EvalResult, EvalError> {
    let request = &bench.request;
    let both = || questions.iter().zip(scored);
    let counted: Vec<&QuestionScore> = both().filter(|(q, _)| q.supported == Some(true)).map(|(_, s)| s).collect();
    let mut overall = figures(counted.iter().copied());
    if request.format == BenchmarkFormat::LongMemEval {
        // The dataset's judge accepts a refusal to answer a question that has no answer.
        overall.judge_accuracy = figures(scored).judge_accuracy;
    }
    let sufficiency = |supported: bool| -> Vec<f64> {
        questions.iter().filter(|q| q.supported == Some(supported)).map(|q| q.answer.sufficiency).collect()
    };
    let milliseconds: Vec<f64> = questions.iter().map(|q| q.latency_ms).collect();
    let mut config = serde_json::to_value(&request.pipeline).map_err(EvalError::Settings)?;
    if let Some(log) = config.get_mut("log").and_then(serde_json::Value::as_object_mut) {
        // The log's directory on this machine does not affect the figures, so it is left out.
        log.remove("directory");
    }
    let file = request.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(EvalResult {
        schema: EVAL_SCHEMA_VERSION,
        dataset: request.format.name().to_owned(),
        file,
        profile: request.pipeline.profile.clone(),
        overall,
        sufficiency_auc: auc(&sufficiency(true), &sufficiency(false)),
        by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
        by_conversation: figures_by(
            both().filter(|(q, _)| q.supported == Some(true)).map(|(q, s)| (q.conversation.as_str(), s)),
        ),
        by_second_round: by_second_round(&counted),
        build,
        latency_ms: Latency { p50: percentile(&milliseconds, 0.50), p99: percentile(&milliseconds, 0.99) },
        reading: ModelUse::default(),
        reranker: RerankerUse::of(questions.iter().map(|q| &q.answer.trace)),
        readings: Vec::new(),
        config,
        problems: bench.dataset.problems.clone().into_inner(),
        baselines: Vec::new(),
        ablations: Vec::new(),
        vectors: Vec::new(),
        sizes: Vec::new(),
    })
}
