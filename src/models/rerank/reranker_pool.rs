//! Sessions of one cross-encoder that all questions share.
//!
//! In: a question, its passages, and a deadline. Out: a logit for each passage, in order. Each session has a thread of
//! its own and reads one pair at a time, so the pairs of one question are read in parallel if sessions are free. Once a
//! question has all logits, has failed or is late, its other pairs are not read. A passage on which the model fails is
//! shortened; one that it cannot read at all gets the least logit of the others, so that it gains nothing and the
//! others lose nothing.

use crate::log_events;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use super::{RerankError, cross_encoder::CrossEncoder};

use crate::embed::{TruncationKind, truncated_text};
use endpoint::join_threads;
use types::{config::EmbedSettings, model::ModelRef};

/// Sessions of one cross-encoder.
pub struct RerankerPool {
    model: ModelRef,
    jobs: Option<Sender<RerankJob>>,
    threads: Vec<JoinHandle<()>>,
}

/// A pair to read; the reply carries the passage's position.
struct RerankJob {
    question: Arc<str>,
    passage: String,
    place: usize,
    /// Whether nobody waits for the logit any more.
    over: Arc<AtomicBool>,
    reply: Sender<(usize, Result<f32, RerankError>)>,
}

impl RerankerPool {
    /// Loads the model of this name, `embed.threads` times. The first session is ready on return; the others join when
    /// they are loaded. `settings` say where models and ONNX Runtime are.
    ///
    /// # Errors
    /// [`RerankError::Files`], which names the missing or damaged file; [`RerankError::Thread`].
    pub fn open(settings: &EmbedSettings, model: &str) -> Result<Self, RerankError> {
        let (jobs, waiting) = unbounded::<RerankJob>();
        let first = CrossEncoder::open(settings, model)?;
        let mut pool = Self { model: first.model().clone(), jobs: Some(jobs), threads: Vec::new() };
        let own = waiting.clone();
        let mut first = first;
        pool.start(move || work(&mut |question, passage| first.logit(question, passage), &own))?;
        for _ in 1..settings.threads {
            let (settings, model, waiting) = (settings.clone(), model.to_owned(), waiting.clone());
            pool.start(move || {
                // The model has just been opened once. If it cannot be opened again, the other sessions do the work.
                if let Ok(mut encoder) = CrossEncoder::open(&settings, &model) {
                    work(&mut |question, passage| encoder.logit(question, passage), &waiting);
                }
            })?;
        }
        Ok(pool)
    }

    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), RerankError> {
        let started = std::thread::Builder::new().name("rerank".to_owned()).spawn(work);
        let failed = |e: std::io::Error| RerankError::Thread { model: self.model.name.clone(), problem: e.to_string() };
        self.threads.push(started.map_err(failed)?);
        Ok(())
    }

    /// The model's name, and the hash of its files.
    #[must_use]
    pub fn model(&self) -> &ModelRef {
        &self.model
    }

    /// The logit of each passage, in order: how well it answers the question. A passage that the model cannot read gets
    /// the least of the others.
    ///
    /// # Errors
    /// [`RerankError::Late`] if not every passage was read by `until`; [`RerankError::LongQuestion`];
    /// [`RerankError::Model`] if the model fails or panics on every passage.
    pub fn logits(&self, question: &str, passages: &[String], until: Option<Instant>) -> Result<Vec<f32>, RerankError> {
        let failed = |problem: &str| RerankError::Model { model: self.model.name.clone(), problem: problem.to_owned() };
        let ended = || failed("its sessions have ended");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        let asked = RerankCancelGuard(Arc::default());
        let question: Arc<str> = question.into();
        let (reply, logits) = bounded(passages.len());
        for (place, passage) in passages.iter().enumerate() {
            let (question, over, reply) = (Arc::clone(&question), Arc::clone(&asked.0), reply.clone());
            let job = RerankJob { question, passage: passage.clone(), place, over, reply };
            jobs.send(job).map_err(|_| ended())?;
        }
        drop(reply);
        let next = || match until {
            Some(until) => logits.recv_deadline(until),
            None => logits.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let (mut found, mut unread) = (Vec::with_capacity(passages.len()), Vec::new());
        let mut problem = None;
        while found.len() + unread.len() < passages.len() {
            match next() {
                Ok((place, Ok(logit))) => found.push((place, logit)),
                Ok((place, Err(RerankError::Model { problem: said, .. }))) => {
                    unread.push(place);
                    problem = problem.or(Some(said));
                }
                Ok((_, Err(error))) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(RerankError::Late { read: found.len(), passages: passages.len() });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("it panicked; this is a defect, please report it"));
                }
            }
        }
        if let Some(problem) = problem {
            if found.is_empty() {
                return Err(failed(&problem));
            }
            log_events::parts_unread(&self.model.name, unread.len());
            let least = found.iter().map(|(_, logit)| *logit).fold(f32::INFINITY, f32::min);
            found.extend(unread.into_iter().map(|place| (place, least)));
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, logit)| logit).collect())
    }
}

impl Drop for RerankerPool {
    fn drop(&mut self) {
        self.jobs = None;
        join_threads(self.threads.drain(..));
    }
}

/// Tells the sessions, when dropped, that nobody waits for a question's logits any more.
struct RerankCancelGuard(Arc<AtomicBool>);

impl Drop for RerankCancelGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the logit of a question and a passage.
type LogitFunction<'r> = &'r mut dyn FnMut(&str, &str) -> Result<f32, RerankError>;

/// Reads pairs until there are no more.
fn work(read: LogitFunction<'_>, jobs: &Receiver<RerankJob>) {
    for RerankJob { question, passage, place, over, reply } in jobs {
        if over.load(Ordering::Relaxed) {
            continue;
        }
        // The caller may no longer be waiting.
        drop(reply.send((place, read_in_part(read, &question, &passage))));
    }
}

/// The logit of a pair; if the model fails on it, that of the question and a beginning of the passage.
fn read_in_part(read: LogitFunction<'_>, question: &str, passage: &str) -> Result<f32, RerankError> {
    let mut once = |passage: &str| {
        let failed = |problem: &str| RerankError::Model { model: String::new(), problem: problem.to_owned() };
        // After a panic, the session continues with the next pair.
        match catch_unwind(AssertUnwindSafe(|| read(question, passage))) {
            Ok(Ok(logit)) if !logit.is_finite() => Err(failed("it gave a logit that is not a number")),
            Ok(read) => read,
            Err(_) => Err(failed("it panicked; this is a defect, please report it")),
        }
    };
    let first = once(passage);
    if !matches!(first, Err(RerankError::Model { .. })) {
        return first;
    }
    let mut shorter = (1..).map_while(|halvings| truncated_text(passage, 0, halvings, TruncationKind::Beginning));
    shorter.find_map(|passage| once(&passage).ok()).map_or(first, Ok)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::embed::{EmbedError, setup::RERANKER};
    use types::config::Pipeline;

    fn settings() -> EmbedSettings {
        Pipeline::parse("version = 1\nembed.threads = 2").expect("the defaults are valid").embed
    }

    /// The real model; `None`, reported as skipped, if it is not set up.
    fn reranker(test: &str) -> Option<RerankerPool> {
        match RerankerPool::open(&settings(), RERANKER) {
            Ok(pool) => Some(pool),
            Err(RerankError::Files { problem: EmbedError::Missing { .. } }) => {
                testing::skipped(&format!("rerank::{test}: the reranker is not set up; run scripts/setup --reranker"));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn passages(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A model that cannot read a jester or more than 100 bytes, has no number for a void, and else gives the bytes.
    fn scripted() -> RerankerPool {
        let (jobs, waiting) = unbounded::<RerankJob>();
        let model = ModelRef { name: "scripted".to_owned(), hash: String::new() };
        let mut pool = RerankerPool { model, jobs: Some(jobs), threads: Vec::new() };
        let mut read = |question: &str, passage: &str| {
            assert!(!passage.contains("jester"), "asked to panic");
            match passage.len() {
                _ if question == "long" => Err(RerankError::LongQuestion { tokens: 500, most: 384 }),
                101.. => Err(RerankError::Model { model: "scripted".to_owned(), problem: "too long".to_owned() }),
                _ if passage.contains("void") => Ok(f32::NAN),
                bytes => Ok(bytes as f32),
            }
        };
        pool.start(move || work(&mut read, &waiting)).expect("a thread");
        pool
    }

    #[test]
    fn a_passage_that_the_model_cannot_read_costs_the_others_nothing() {
        let pool = scripted();
        let long = "a boat in ".repeat(30);
        let texts = passages(&["boat", "jester", "harbour", "void", &long]);
        assert_eq!(pool.logits("who", &texts, None).expect("logits"), [4.0, 4.0, 7.0, 4.0, 75.0]);
        let error = pool.logits("who", &passages(&["jester", "void"]), None).expect_err("it reads none").to_string();
        assert!(error.contains("panicked") || error.contains("not a number"), "{error}");
        assert!(matches!(pool.logits("long", &texts, None), Err(RerankError::LongQuestion { .. })));
        assert_eq!(pool.logits("who", &texts[..1], None).expect("it goes on"), [4.0]);
    }

    #[test]
    fn a_passage_that_answers_the_question_has_the_highest_logit() {
        let Some(pool) = reranker("a_passage_that_answers_the_question_has_the_highest_logit") else { return };
        let question = "Where does Mira keep her bees?";
        let texts = passages(&[
            "Tom: I painted the boat before Thursday.",
            "Tom: Bees are dying everywhere.",
            "Mira: My bees live on the roof of the bakery now.",
            "Mira: We missed the last tram.",
        ]);
        let logits = pool.logits(question, &texts, None).expect("logits");
        // The logits of onnxruntime in Python; in 8 bits, processors differ a little.
        for (logit, expected) in logits.iter().zip([-11.12, -9.73, 5.36, -8.58]) {
            assert!((logit - expected).abs() < 1.0, "{logits:?}");
        }
        // A logit depends on its pair alone: not on the other pairs, nor on the session.
        for (text, logit) in texts.iter().zip(&logits) {
            assert_eq!(pool.logits(question, std::slice::from_ref(text), None).expect("a logit"), [*logit]);
        }
        assert!(pool.logits(question, &[], None).expect("nothing to read").is_empty());
    }

    #[test]
    fn a_long_passage_is_cut_and_a_question_is_not() {
        let Some(pool) = reranker("a_long_passage_is_cut_and_a_question_is_not") else { return };
        let question = "Where does Mira keep her bees?";
        let filler = "The committee met again and nothing at all was decided about it. ".repeat(60);
        let answer = "Mira: My bees live on the roof of the bakery now. ";
        let texts = [format!("{answer}{filler}"), format!("{answer}{filler}{filler}"), format!("{filler}{answer}")];
        let logits = pool.logits(question, &texts, None).expect("logits");
        assert_eq!(logits[0], logits[1], "what is beyond the limit changes nothing");
        assert!(logits[0] > logits[2] + 2.0, "{logits:?}");
        let long = "Where does Mira keep her bees now? ".repeat(60);
        let error = pool.logits(&long, &texts, None).expect_err("no room for a passage");
        assert!(matches!(error, RerankError::LongQuestion { tokens: 385.., most: 384 }), "{error}");
    }

    #[test]
    fn a_question_that_is_late_gets_no_logit_and_holds_up_no_other() {
        let Some(pool) = reranker("a_question_that_is_late_gets_no_logit_and_holds_up_no_other") else { return };
        let texts = vec!["Mira: My bees live on the roof. ".repeat(60); 400];
        let soon = Instant::now() + Duration::from_millis(50);
        let error = pool.logits("Where are the bees?", &texts, Some(soon)).expect_err("too many for the time");
        assert!(matches!(error, RerankError::Late { read, passages: 400 } if read < 400), "{error}");
        // The rest of the first question is not read: that would take far longer.
        let began = Instant::now();
        let next = pool.logits("Where are the bees?", &texts[..1], Some(began + Duration::from_secs(8)));
        assert_eq!(next.expect("a logit").len(), 1);
    }

    #[test]
    fn a_model_that_is_missing_or_another_one_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let settings = EmbedSettings { models_directory: Some(directory.path().to_owned()), ..settings() };
        let error = RerankerPool::open(&settings, RERANKER).err().expect("no such files").to_string();
        assert!(error.contains("ripplemem setup --reranker"), "{error}");
        if error.contains("shared library") {
            testing::skipped(
                "rerank::a_model_that_is_missing_or_another_one_is_named: no ONNX Runtime; run scripts/setup",
            );
            return;
        }
        assert!(error.contains(&directory.path().join(RERANKER).display().to_string()), "{error}");
        let model = directory.path().join(RERANKER);
        std::fs::create_dir(&model).expect("made");
        for file in ["model.onnx", "tokenizer.json"] {
            std::fs::write(model.join(file), "{}").expect("written");
        }
        let error = RerankerPool::open(&settings, RERANKER).err().expect("another model").to_string();
        assert!(error.contains("model.onnx: has SHA-256 44136fa355b3678a"), "{error}");
    }
}
