//! Sessions of one model that all questions share.
//!
//! In: the wordings of a question. Out: their vectors, in order. Each session has a thread of its
//! own and embeds one text at a time, so the wordings of one question are embedded side by side
//! where sessions are free. Never two texts in one pass: in full precision the other texts of a
//! batch change a vector by up to 1e-6, in 8 bits by more, and an endpoint promises nothing, so
//! that one bank's question would change another's vector.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{EmbedError, Embedder, open};
use nouns::{
    config::{EmbedSettings, ModelSettings},
    model::{ModelRef, Vector},
};

/// Sessions of one model.
pub struct EmbedderPool {
    model: ModelRef,
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    embedded: AtomicU64,
}

/// A text to embed; the reply names its place among the wordings.
struct Job {
    text: String,
    place: usize,
    reply: Sender<(usize, Result<Vector, EmbedError>)>,
}

impl EmbedderPool {
    /// Loads the model that the pipeline names, `embed.threads` times. The first session is ready on
    /// return; the others join when they are loaded.
    ///
    /// # Errors
    /// As [`open`]; [`EmbedError::Model`] when no thread can be started.
    pub fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let sessions = settings.threads.max(1);
        // Each session computes on its own thread alone.
        let settings = EmbedSettings { threads: 1, ..settings.clone() };
        let first = open(&settings, model)?;
        let (jobs, waiting) = unbounded::<Job>();
        let mut pool = Self {
            model: first.model().clone(),
            jobs: Some(jobs),
            threads: Vec::with_capacity(sessions),
            embedded: AtomicU64::new(0),
        };
        let mine = waiting.clone();
        pool.start(move || work(&mut *{ first }, &mine))?;
        for _ in 1..sessions {
            let (waiting, settings, model) = (waiting.clone(), settings.clone(), model.clone());
            pool.start(move || {
                // The model has just been opened; if it cannot be once more, the others do the work.
                if let Ok(mut embedder) = open(&settings, &model) {
                    work(&mut *embedder, &waiting);
                }
            })?;
        }
        Ok(pool)
    }

    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), EmbedError> {
        let started = std::thread::Builder::new().name("embed".to_owned()).spawn(work);
        let failed = |e| EmbedError::Model {
            model: self.model.name.clone(),
            problem: format!("a thread cannot be started: {e}; raise the system's limit on threads"),
        };
        self.threads.push(started.map_err(failed)?);
        Ok(())
    }

    /// Name and hash of the model.
    #[must_use]
    pub fn model(&self) -> &ModelRef {
        &self.model
    }

    /// How many texts were embedded.
    #[must_use]
    pub fn embedded(&self) -> u64 {
        self.embedded.load(Ordering::Relaxed)
    }

    /// The vectors of the wordings of one question, in order, with the model's query prefix.
    ///
    /// # Errors
    /// [`EmbedError::Model`] when the model fails or panics.
    pub fn embed_queries(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let failed = |problem: &str| EmbedError::Model { model: self.model.name.clone(), problem: problem.to_owned() };
        let ended = || failed("its sessions have ended");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        let (reply, vectors) = unbounded();
        for (place, text) in texts.iter().enumerate() {
            let job = Job { text: (*text).to_owned(), place, reply: reply.clone() };
            jobs.send(job).map_err(|_| ended())?;
        }
        drop(reply);
        self.embedded.fetch_add(texts.len() as u64, Ordering::Relaxed);
        let mut found = Vec::with_capacity(texts.len());
        for (place, vector) in vectors {
            found.push((place, vector?));
        }
        if found.len() < texts.len() {
            return Err(failed("it panicked; this is a defect, please report it"));
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, vector)| vector).collect())
    }
}

impl Drop for EmbedderPool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn work(embedder: &mut dyn Embedder, jobs: &Receiver<Job>) {
    for Job { text, place, reply } in jobs {
        // After a panic the reply is dropped, and the session goes on with the next text.
        if let Ok(vector) = catch_unwind(AssertUnwindSafe(|| embedder.embed_query(&text))) {
            // Whoever asked may have given up.
            drop(reply.send((place, vector)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::tests::settings;

    #[test]
    fn wordings_get_their_own_vectors_in_order_whichever_session_is_free() {
        let (mut settings, model) = settings("fixed");
        settings.threads = 3;
        let pool = EmbedderPool::open(&settings, &model).expect("no model to load");
        let mut alone = open(&settings, &model).expect("no model to load");
        let texts: Vec<String> = (0..40).map(|n| format!("question {n} of a bank")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let expected: Vec<Vector> = texts.iter().map(|text| alone.embed_query(text).expect("a vector")).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(pool.embed_queries(&texts).expect("vectors"), expected));
            }
        });
        assert_eq!(pool.embedded(), 160);
        assert_eq!(pool.model(), alone.model());
    }

    #[test]
    fn a_panic_in_a_session_is_one_questions_error() {
        struct Fragile(ModelRef);
        impl Embedder for Fragile {
            fn model(&self) -> &ModelRef {
                &self.0
            }
            fn dimensions(&self) -> usize {
                1
            }
            fn embed(&mut self, _: &[nouns::model::SpannedText]) -> Result<Vec<crate::embed::SpanVectors>, EmbedError> {
                Ok(Vec::new())
            }
            fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
                assert!(text != "panic", "asked to panic");
                Ok(Vector::from([text.len() as f32]))
            }
        }
        let model = ModelRef { name: "fragile".to_owned(), hash: "0".to_owned() };
        let (jobs, waiting) = unbounded();
        let mut pool =
            EmbedderPool { model: model.clone(), jobs: Some(jobs), threads: Vec::new(), embedded: AtomicU64::new(0) };
        pool.start(move || work(&mut Fragile(model), &waiting)).expect("a thread");
        let error = pool.embed_queries(&["good", "panic"]).expect_err("a panic").to_string();
        assert!(error.contains("panicked") && error.contains("fragile"), "{error}");
        assert_eq!(pool.embed_queries(&["good"]).expect("the session goes on"), [Vector::from([4.0])]);
    }
}
