//! One evaluation, from a file to its figures.
//!
//! In: a request. Out: a [`Run`]. The memory is built through the real path: a log in a
//! temporary directory, the real source, the pipeline's own model; every question goes
//! through the real recollection. The first hop alone is asked for in a second pass, with
//! no rounds, over the same log. Deletes the directory when it is done; leaves nothing.

use std::{path::PathBuf, sync::Arc, time::Instant};

use super::{
    ablation::{self, Ablation},
    bank_scaling, baselines,
    dataset::{self, Asked, Dataset, DatasetError, Format, Standing},
    generated_answer::{self, Spoken},
    memory_contents::Remembered,
    problems::Kind as Damage,
    recording_source::{Heard, Listening},
    result::{Build, EVAL_SCHEMA_VERSION, EvalResult, Latency, ModelUse, Piece, QuestionResult, Run},
    score::{Comparable, Marks, Scored, Shown, auc, by_second_round, delivered, figures, figures_by, percentile},
    tokens, vectors,
};
use crate::{
    config::{Pipeline, SourceSettings},
    embed::EmbedError,
    llm::{Contract, Llm, LlmError},
    log::LogError,
    model::{EventTime, Evidence, Question, Usage},
    pipeline::{Finished, PipelineError, Progress, Service},
    source::{self, SourceError},
};

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The file's format.
    pub format: Format,
    /// The file.
    pub path: PathBuf,
    /// Only these conversations; all of them when empty.
    pub only: Vec<String>,
    /// At most so many questions a conversation, in file order.
    pub limit: Option<usize>,
    /// Offset such as `+02:00` for times that name none.
    pub zone: String,
    /// The settings; the log's directory is not used.
    pub pipeline: Pipeline,
    /// Whether the rivals are asked as well.
    pub rivals: bool,
    /// What is taken away, one after another.
    pub ablations: Vec<Ablation>,
    /// Whether other ways to make vectors of a turn are compared.
    pub vectors: bool,
    /// Sizes in units: all conversations are merged into one bank, and that is grown.
    pub sizes: Vec<u64>,
    /// Turns as JSON lines that the bank grows by when the conversations are all in it.
    pub filler: Option<PathBuf>,
    /// Whether the language model answers every question in words, and judges the answers.
    pub answers: bool,
}

/// Why an evaluation stopped.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file holds no questions.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The file's turns could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The memory failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A question could not be asked.
    #[error("question {id}")]
    Question {
        /// Which one.
        id: String,
        /// Why.
        #[source]
        source: Box<PipelineError>,
    },
    /// The language model cannot be asked.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// A question was not answered in words, or its answer not judged.
    #[error("question {id}")]
    Answer {
        /// Which one.
        id: String,
        /// Why.
        #[source]
        source: LlmError,
    },
    /// A memory that the model read half of is nobody's.
    #[error(
        "{left} windows were not read by the language model: {problem}; evaluate again when it answers: what it has \
         read is kept"
    )]
    Unread {
        /// How many.
        left: u64,
        /// Why.
        problem: String,
    },
    /// The log could not be read back.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A rival's question could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A record of the memory log is not one.
    #[error("memory partition {partition}, offset {offset}: {problem}; this is a defect, please report it")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What was found.
        problem: String,
    },
    /// There is no room for the memory.
    #[error("no temporary directory for the memory; make room, or set TMPDIR")]
    Directory(#[source] std::io::Error),
    /// The settings have no JSON form.
    #[error("the settings could not be written as JSON")]
    Settings(#[source] serde_json::Error),
}

/// A memory that was built from a file, ready to be asked under other settings.
pub(crate) struct Bench {
    /// The settings, with the log in the temporary directory.
    pub(crate) pipeline: Pipeline,
    /// What was asked for.
    pub(crate) request: Request,
    /// The questions.
    pub(crate) dataset: Dataset,
    /// The turns.
    pub(crate) heard: Heard,
    /// The language model, where one is set.
    pub(crate) llm: Option<Arc<Llm>>,
    /// Removed with everything in it when this is dropped.
    pub(crate) directory: tempfile::TempDir,
}

/// What one pass over the questions gave.
pub(crate) struct Answer {
    pub(crate) evidence: Evidence,
    pub(crate) tokens: usize,
    pub(crate) milliseconds: f64,
    spoken: Option<Spoken>,
    llm: ModelUse,
}

/// Evaluates.
///
/// # Errors
/// [`EvalError`] when the file is damaged as a whole, or the memory fails.
pub fn evaluate(request: &Request, progress: &mut dyn FnMut(Progress)) -> Result<Run, EvalError> {
    let directory = tempfile::tempdir().map_err(EvalError::Directory)?;
    let zone = EventTime::parse(&format!("2000-01-01T00:00:00{}", request.zone)).map_or(0, |t| t.offset_seconds);
    let mut pipeline = request.pipeline.clone();
    // What is paid for outlives the temporary directory.
    pipeline.llm.cache_directory = Some(request.pipeline.llm_directory());
    let set = pipeline.llm.is_set();
    let llm = if set { Some(Llm::open(&pipeline.llm, Some(pipeline.llm_directory()))?) } else { None };
    if request.answers || request.ablations.iter().any(|a| a.asks_model()) {
        llm.as_ref().ok_or(LlmError::NotSet)?.check_key()?;
    }
    pipeline.log.kind = crate::config::LogKind::Embedded;
    pipeline.log.directory = directory.path().join("log");
    pipeline.snapshot.directory.clear();
    // The source speaks first of a file that is not of its format, or an unknown conversation.
    drop(open_source(request)?);
    drop(request.filler.as_deref().map(|path| bank_scaling::filler(path, &request.zone)).transpose()?);
    let dataset = dataset::read(request.format, &request.path, &request.only, zone)?;
    let mut bench = Bench { pipeline, request: request.clone(), dataset, heard: Heard::default(), llm, directory };

    let (service, mut build) = bench.build(progress)?;
    bench.dataset.resolve(&bench.heard);
    if let Some(limit) = request.limit {
        bench.dataset.limit(limit);
    }
    if bench.dataset.questions.is_empty() {
        let problems = std::mem::take(&mut bench.dataset.problems).into_inner();
        let why: Vec<String> = problems.iter().map(|(kind, p)| format!("{kind} {}", p.count)).collect();
        let why = if why.is_empty() { "no questions".to_owned() } else { why.join(", ") };
        return Err(DatasetError::Empty { path: request.path.clone(), why }.into());
    }
    let remembered = Remembered::read(service.log(), request.rivals)?;
    build.units = remembered.units();
    // As the paper counts its controller.
    let before = bench.used(&[Contract::Plan]);
    let mut answers = bench.ask(&service, progress)?;
    bench.speak(&mut answers, progress)?;
    let reading = bench.since(before, &[Contract::Plan]);
    drop(service);
    let mut narrow = bench.pipeline.clone();
    narrow.recall.rounds = 0;
    let first = bench.reopened(&narrow, progress)?;

    let questions: Vec<QuestionResult> = bench
        .dataset
        .questions
        .iter()
        .zip(answers)
        .zip(&first)
        .map(|((asked, answer), first)| bench.question(asked, answer, first, &remembered))
        .collect();
    let scored: Vec<Scored> = questions.iter().map(Scored::from).collect();
    let rivals = if request.rivals { baselines::rows(&bench, &remembered, &scored, progress)? } else { Vec::new() };
    drop(remembered);
    let ablations = ablation::rows(&bench, &scored, progress)?;
    let vectors = if request.vectors { vectors::rows(&bench, progress)? } else { Vec::new() };
    let sizes = bank_scaling::rows(&bench, &build, progress)?;
    let result = EvalResult { reading, ..bench.result(build, &questions, &scored)? };
    Ok(Run { result: EvalResult { rivals, ablations, vectors, sizes, ..result }, questions })
}

pub(crate) fn open_source(request: &Request) -> Result<Box<dyn source::Source>, SourceError> {
    let settings = SourceSettings {
        format: request.format.name().to_owned(),
        path: request.path.clone(),
        zone: request.zone.clone(),
        only: request.only.clone(),
    };
    source::open(&settings, None)
}

impl Bench {
    /// Builds the memory from the file.
    fn build(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(Service, Build), EvalError> {
        let before = self.used(&[Contract::Extract]);
        let (service, heard, seconds) = Self::built(&self.request, &self.pipeline, true, progress)?;
        let ModelUse { llm_calls, llm_tokens } = self.since(before, &[Contract::Extract]);
        let turns = heard.count();
        let build = Build {
            conversations: heard.turns.len() as u64,
            turns,
            rejected: heard.rejects.len() as u64,
            units: 0,
            seconds,
            turns_per_second: if seconds > 0.0 { turns as f64 / seconds } else { 0.0 },
            llm_calls,
            llm_tokens,
        };
        self.heard = heard;
        Ok((service, build))
    }

    fn built(
        request: &Request,
        pipeline: &Pipeline,
        closing: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Service, Heard, f64), EvalError> {
        let mut source = open_source(request)?;
        let mut service = Service::open(pipeline, progress)?;
        let mut heard = Heard::default();
        let from = Instant::now();
        service.ingest(&mut Listening::to(&mut *source, &mut heard, closing), progress)?;
        let Finished { left, problem, .. } = service.finish(progress)?;
        if left > 0 {
            return Err(EvalError::Unread { left, problem: problem.unwrap_or_default() });
        }
        Ok((service, heard, from.elapsed().as_secs_f64()))
    }

    /// A second memory of the same file, by other settings, and the seconds that it took;
    /// without `closing`, no window was closed by a mark.
    pub(crate) fn another(
        &self,
        name: &str,
        pipeline: &mut Pipeline,
        closing: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Service, f64), EvalError> {
        pipeline.log.directory = self.directory.path().join(name);
        let (service, _, seconds) = Self::built(&self.request, pipeline, closing, progress)?;
        Ok((service, seconds))
    }

    /// A bench of the same settings for other questions about other turns, in a directory of its own.
    pub(crate) fn over(&self, dataset: Dataset, heard: Heard) -> Result<Self, EvalError> {
        let directory = tempfile::tempdir().map_err(EvalError::Directory)?;
        let mut pipeline = self.pipeline.clone();
        pipeline.log.directory = directory.path().join("log");
        Ok(Self { pipeline, request: self.request.clone(), dataset, heard, llm: self.llm.clone(), directory })
    }

    /// Asks every question under other settings of memory and recall, over the same log.
    pub(crate) fn reopened(
        &self,
        pipeline: &Pipeline,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Answer>, EvalError> {
        let service = Service::open(pipeline, progress)?;
        self.ask(&service, progress)
    }

    /// Asks every question.
    pub(crate) fn ask(&self, service: &Service, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Answer>, EvalError> {
        let total = Some(self.dataset.questions.len() as u64);
        let mut answers = Vec::with_capacity(self.dataset.questions.len());
        for (asked, done) in self.dataset.questions.iter().zip(1..) {
            let question = question(asked);
            let from = Instant::now();
            let evidence = service
                .ask(&question)
                .map_err(|e| EvalError::Question { id: asked.id.clone(), source: Box::new(e) })?;
            let milliseconds = from.elapsed().as_secs_f64() * 1_000.0;
            let took = evidence.trace.llm.unwrap_or_default();
            let llm = ModelUse { llm_calls: took.calls, llm_tokens: took.tokens() };
            let tokens = tokens::count(&evidence.context);
            answers.push(Answer { tokens, evidence, milliseconds, spoken: None, llm });
            progress(Progress { doing: "asking", done, total, unit: "questions" });
        }
        Ok(answers)
    }

    /// Has the model answer every question from its evidence, and judges the answers.
    fn speak(&mut self, answers: &mut [Answer], progress: &mut dyn FnMut(Progress)) -> Result<(), EvalError> {
        let total = Some(answers.len() as u64);
        for (at, answer) in answers.iter_mut().enumerate() {
            let asked = &self.dataset.questions[at];
            let before = self.used(&Contract::ALL);
            let done = at as u64 + 1;
            match self.spoken(asked, &answer.evidence)? {
                Ok(spoken) => answer.spoken = spoken,
                Err(problem) => {
                    let place = format!("{}: {problem}", asked.id);
                    self.dataset.problems.note(Damage::Unanswered, place);
                }
            }
            let ModelUse { llm_calls, llm_tokens } = self.since(before, &Contract::ALL);
            answer.llm.llm_calls += llm_calls;
            answer.llm.llm_tokens += llm_tokens;
            progress(Progress { doing: "answering", done, total, unit: "questions" });
        }
        Ok(())
    }

    /// The model's answer to a question, where answers are asked for; or why there is none to
    /// this one.
    fn spoken(&self, asked: &Asked, evidence: &Evidence) -> Result<Result<Option<Spoken>, LlmError>, EvalError> {
        let Some(llm) = self.llm.as_ref().filter(|_| self.request.answers) else { return Ok(Ok(None)) };
        match generated_answer::spoken(llm, asked, evidence) {
            Ok(spoken) => Ok(Ok(Some(spoken))),
            Err(error @ (LlmError::Unusable { .. } | LlmError::Declined { .. })) => Ok(Err(error)),
            // What is wrong with one question's is wrong with all.
            Err(source) => Err(EvalError::Answer { id: asked.id.clone(), source }),
        }
    }

    /// What some contracts took by now; what was paid for by an earlier evaluation counts.
    fn used(&self, contracts: &[Contract]) -> Usage {
        let mut sum = Usage::default();
        for (contract, usage) in self.llm.iter().flat_map(|llm| llm.used()) {
            if contracts.contains(&contract) {
                sum += usage;
            }
        }
        sum
    }

    /// What some contracts took since they had taken so much.
    fn since(&self, before: Usage, contracts: &[Contract]) -> ModelUse {
        let now = self.used(contracts);
        ModelUse { llm_calls: now.calls - before.calls, llm_tokens: now.tokens() - before.tokens() }
    }

    /// Which of a question's evidence turns this evidence delivers.
    pub(crate) fn delivered(&self, asked: &Asked, evidence: &Evidence) -> Vec<bool> {
        let shown: Vec<Shown<'_>> = evidence.units.iter().map(Shown::from).collect();
        self.delivered_by(asked, &shown, &Comparable::of(&evidence.context))
    }

    /// Which of a question's evidence turns these units deliver by a context.
    pub(crate) fn delivered_by(&self, asked: &Asked, shown: &[Shown<'_>], context: &Comparable) -> Vec<bool> {
        let met = |turn: &String| {
            self.heard.turn(&asked.bank, turn).is_some_and(|t| delivered(turn, &t.wanted, shown, context))
        };
        asked.evidence.iter().map(met).collect()
    }

    /// The figures of every question asked of a service, without their first hops. A bank
    /// that the memory does not know answers nothing.
    pub(crate) fn scores(
        &self,
        service: &Service,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Scored>, EvalError> {
        let total = Some(self.dataset.questions.len() as u64);
        let mut scored = Vec::with_capacity(self.dataset.questions.len());
        for (asked, done) in self.dataset.questions.iter().zip(1..) {
            scored.push(match service.ask(&question(asked)) {
                Ok(evidence) => Scored {
                    recall: share(&self.delivered(asked, &evidence)),
                    tokens: tokens::count(&evidence.context),
                    units: evidence.units.len(),
                    recollected: None,
                    marks: self.spoken(asked, &evidence)?.ok().flatten().as_ref().map(Marks::from).unwrap_or_default(),
                },
                Err(PipelineError::UnknownBank { .. }) => Scored {
                    recall: share(&self.delivered_by(asked, &[], &Comparable::default())),
                    ..Scored::default()
                },
                Err(e) => return Err(EvalError::Question { id: asked.id.clone(), source: Box::new(e) }),
            });
            progress(Progress { doing: "asking", done, total, unit: "questions" });
        }
        Ok(scored)
    }

    fn question(&self, asked: &Asked, answer: Answer, first: &Answer, remembered: &Remembered) -> QuestionResult {
        let by_all = self.delivered(asked, &answer.evidence);
        let by_first = self.delivered(asked, &first.evidence);
        let pieces = asked.evidence.iter().zip(by_all).zip(by_first).map(|((turn, delivered), first)| {
            let heard = self.heard.turn(&asked.bank, turn);
            Piece {
                turn: turn.clone(),
                speaker: heard.map_or_else(String::new, |t| t.speaker.clone()),
                text: heard.map_or_else(String::new, |t| t.text.clone()),
                delivered,
                delivered_by_first_hop: first,
                held_by: remembered.holders(&asked.bank, turn),
            }
        });
        QuestionResult {
            id: asked.id.clone(),
            conversation: asked.conversation.clone(),
            bank: asked.bank.clone(),
            category: asked.category.clone(),
            supported: match asked.standing {
                Standing::Supported => Some(true),
                Standing::Unsupported => Some(false),
                Standing::Unknown => None,
            },
            reference: asked.reference.clone(),
            pieces: pieces.collect(),
            context_tokens: answer.tokens,
            second_round: answer.evidence.trace.rounds.iter().any(|r| r.plan.proceed),
            first_hop_tokens: first.tokens,
            latency_ms: answer.milliseconds,
            spoken: answer.spoken,
            llm: answer.llm,
            answer: answer.evidence,
        }
    }

    fn result(&self, build: Build, questions: &[QuestionResult], scored: &[Scored]) -> Result<EvalResult, EvalError> {
        let both = || questions.iter().zip(scored);
        let counted: Vec<&Scored> = both().filter(|(q, _)| q.supported == Some(true)).map(|(_, s)| s).collect();
        let mut overall = figures(counted.iter().copied());
        if self.request.format == Format::LongMemEval {
            // There, declining a question that has no answer counts as an answer.
            overall.judge_accuracy = figures(scored).judge_accuracy;
        }
        let sufficiency = |supported: bool| -> Vec<f64> {
            questions.iter().filter(|q| q.supported == Some(supported)).map(|q| q.answer.sufficiency).collect()
        };
        let milliseconds: Vec<f64> = questions.iter().map(|q| q.latency_ms).collect();
        let mut config = serde_json::to_value(&self.request.pipeline).map_err(EvalError::Settings)?;
        if let Some(log) = config.get_mut("log").and_then(serde_json::Value::as_object_mut) {
            // Where this machine keeps a log says nothing about the figures.
            log.remove("directory");
        }
        let file = self.request.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        Ok(EvalResult {
            schema: EVAL_SCHEMA_VERSION,
            dataset: self.request.format.name().to_owned(),
            file,
            profile: self.request.pipeline.profile.clone(),
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
            config,
            problems: self.dataset.problems.clone().into_inner(),
            rivals: Vec::new(),
            ablations: Vec::new(),
            vectors: Vec::new(),
            sizes: Vec::new(),
        })
    }
}

/// The question as the memory is asked.
pub(crate) fn question(asked: &Asked) -> Question {
    Question { bank: asked.bank.clone(), text: asked.text.clone(), asked_at: asked.asked_at }
}

/// The share of those that were met; absent when there are none.
pub(crate) fn share(met: &[bool]) -> Option<f64> {
    (!met.is_empty()).then(|| met.iter().filter(|m| **m).count() as f64 / met.len() as f64)
}
