//! Sessions of one model that all questions share.
//!
//! In: the wordings of a question. Out: their vectors, in order. Each session has a thread of its own and embeds one
//! text at a time, so the wordings of one question are embedded in parallel if sessions are free. Never embeds two
//! texts in one pass: the other texts of a batch change a vector, in full precision by up to 1e-6 and in 8 bits by
//! more, and an endpoint promises nothing. One bank's question would then change the vector of another bank's question.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{EmbedError, Embedder, endpoint_health::EndpointHealth, open};
use endpoint::join_threads;
use types::{
    config::{EmbedSettings, ModelSettings},
    model::{ModelRef, Vector},
};

/// Retries for a question: few, so that the caller soon learns that the endpoint cannot be reached.
const QUESTION_RETRIES: u32 = 1;
/// How long opening the pool waits for an endpoint; requests to it continue after that.
const OPENING_PATIENCE: Duration = Duration::from_secs(3);

/// Sessions of one model.
pub struct EmbedderPool {
    opening: Arc<SessionOpener>,
    jobs: Option<Sender<EmbedJob>>,
    threads: Vec<JoinHandle<()>>,
    embedded: AtomicU64,
}

/// How sessions are opened, and the state of the endpoint, if there is one.
struct SessionOpener {
    settings: EmbedSettings,
    model: ModelSettings,
    /// Known once a session is open.
    reference: OnceLock<ModelRef>,
    /// The state of the endpoint; its client says when it answers again.
    health: Arc<EndpointHealth>,
}

/// A text to embed; the reply carries its position among the wordings.
struct EmbedJob {
    text: String,
    place: usize,
    reply: Sender<(usize, Result<Vector, EmbedError>)>,
}

impl SessionOpener {
    fn open(&self) -> Result<Box<dyn Embedder>, EmbedError> {
        let opened = self.noted(open(&self.settings, &self.model))?;
        self.reference.get_or_init(|| opened.model().clone());
        Ok(opened)
    }

    fn silent(&self, problem: &str) -> EmbedError {
        EmbedError::Unavailable { model: self.settings.model.clone(), problem: problem.to_owned() }
    }

    /// Remembers why the endpoint failed, until it answers again.
    fn noted<T>(&self, outcome: Result<T, EmbedError>) -> Result<T, EmbedError> {
        if let Err(error @ EmbedError::Unavailable { .. }) = &outcome {
            self.health.note_failure(error.to_string());
        }
        outcome
    }
}

impl EmbedderPool {
    /// Loads the model that the pipeline names, `embed.threads` times. The first session is ready on return; the others
    /// join when they are loaded. While the model's endpoint cannot be reached, every question tries it again and gets
    /// its error.
    ///
    /// # Errors
    /// Those of [`open()`], except for [`EmbedError::Unavailable`]; [`EmbedError::Model`] when no thread can be
    /// started.
    pub fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let sessions = settings.threads.max(1);
        let mut model = model.clone();
        if let Some(served) = &mut model.served {
            served.retries = served.retries.min(QUESTION_RETRIES);
        }
        // Each session computes only on its own thread.
        let settings = EmbedSettings { threads: 1, ..settings.clone() };
        let health = model.served.as_ref().map_or_else(Arc::default, EndpointHealth::of);
        let opening = SessionOpener { settings, model, reference: OnceLock::new(), health };
        let (jobs, waiting) = unbounded::<EmbedJob>();
        let mut pool = Self {
            opening: Arc::new(opening),
            jobs: Some(jobs),
            threads: Vec::with_capacity(sessions),
            embedded: AtomicU64::new(0),
        };
        let (mine, opening) = (waiting.clone(), Arc::clone(&pool.opening));
        let (opened, first) = bounded(1);
        pool.start(move || match opening.open() {
            Ok(embedder) => {
                drop(opened.send(Ok(())));
                work(Some(embedder), &opening, &mine);
            }
            Err(EmbedError::Unavailable { .. }) => {
                drop(opened.send(Ok(())));
                work(None, &opening, &mine);
            }
            Err(error) => drop(opened.send(Err(error))),
        })?;
        pool.first(&first)?;
        for _ in 1..sessions {
            let (waiting, opening) = (waiting.clone(), Arc::clone(&pool.opening));
            pool.start(move || {
                match opening.open() {
                    Ok(embedder) => work(Some(embedder), &opening, &waiting),
                    Err(EmbedError::Unavailable { .. }) => work(None, &opening, &waiting),
                    // The model has just been opened once. If it cannot be opened again, the other sessions do the
                    // work.
                    Err(_) => {}
                }
            })?;
        }
        Ok(pool)
    }

    /// Waits for the first session. If the session needs an endpoint, the wait is at most [`OPENING_PATIENCE`].
    fn first(&self, opened: &Receiver<Result<(), EmbedError>>) -> Result<(), EmbedError> {
        let opening = &self.opening;
        let Some(served) = &opening.model.served else {
            let panicked = || EmbedError::Model {
                model: opening.settings.model.clone(),
                problem: "opening it panicked; this is a defect, please report it".to_owned(),
            };
            return opened.recv().unwrap_or_else(|_| Err(panicked()));
        };
        match opened.recv_timeout(OPENING_PATIENCE) {
            Ok(opened) => opened,
            Err(_) => {
                let silent = opening.silent(&format!("{} has not answered yet", served.endpoint));
                opening.health.note_failure(silent.to_string());
                Ok(())
            }
        }
    }

    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), EmbedError> {
        let started = std::thread::Builder::new().name("embed".to_owned()).spawn(work);
        let failed = |e| EmbedError::Model {
            model: self.opening.settings.model.clone(),
            problem: format!("a thread cannot be started: {e}; raise the system's limit on threads"),
        };
        self.threads.push(started.map_err(failed)?);
        Ok(())
    }

    /// Name and hash of the model.
    ///
    /// # Errors
    /// [`EmbedError::Unavailable`] while its endpoint has never answered.
    pub fn model(&self) -> Result<&ModelRef, EmbedError> {
        if self.opening.reference.get().is_none() {
            // This only sets the reference; a session opens its own embedder when a text arrives.
            drop(self.opening.open()?);
        }
        self.opening.reference.get().ok_or_else(|| self.opening.silent("its endpoint has not answered yet"))
    }

    /// Name and hash of the model, if they are known without asking an endpoint.
    #[must_use]
    pub fn known_model(&self) -> Option<&ModelRef> {
        self.opening.reference.get()
    }

    /// Why the endpoint returned no vector the last time; `None` once it has answered again, to a question or to
    /// extraction.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.opening.health.problem()
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
        let name = &self.opening.settings.model;
        let failed = |problem: &str| EmbedError::Model { model: name.clone(), problem: problem.to_owned() };
        let ended = || failed("its sessions have ended");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        let (reply, vectors) = unbounded();
        for (place, text) in texts.iter().enumerate() {
            let job = EmbedJob { text: (*text).to_owned(), place, reply: reply.clone() };
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
        join_threads(self.threads.drain(..));
    }
}

/// Embeds texts until there are no more; opens the model first if that has not succeeded yet.
fn work(mut embedder: Option<Box<dyn Embedder>>, opening: &SessionOpener, jobs: &Receiver<EmbedJob>) {
    for EmbedJob { text, place, reply } in jobs {
        // After a panic the reply is dropped, and the session continues with the next text.
        let embedded = catch_unwind(AssertUnwindSafe(|| {
            let session = match &mut embedder {
                Some(session) => session,
                None => embedder.insert(opening.open()?),
            };
            opening.noted(session.embed_query(&text))
        }));
        if let Ok(vector) = embedded {
            // The caller may no longer be waiting.
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
        assert_eq!(pool.model().expect("it is open"), alone.model());
    }

    #[test]
    fn a_panic_in_a_session_is_one_questions_error() {
        struct FragileEmbedder(ModelRef);
        impl Embedder for FragileEmbedder {
            fn model(&self) -> &ModelRef {
                &self.0
            }
            fn dimensions(&self) -> usize {
                1
            }
            fn embed_each(
                &mut self,
                _: &[types::model::SpannedText],
            ) -> Result<Vec<crate::embed::EmbeddedText>, EmbedError> {
                Ok(Vec::new())
            }
            fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
                assert!(text != "panic", "asked to panic");
                Ok(Vector::from([text.len() as f32]))
            }
        }
        let fragile = FragileEmbedder(ModelRef { name: "fragile".to_owned(), hash: "0".to_owned() });
        let (mut settings, model) = settings("fixed");
        settings.model = "fragile".to_owned();
        let opening = SessionOpener { settings, model, reference: OnceLock::new(), health: Arc::default() };
        let (jobs, waiting) = unbounded();
        let mut pool = EmbedderPool {
            opening: Arc::new(opening),
            jobs: Some(jobs),
            threads: Vec::new(),
            embedded: AtomicU64::new(0),
        };
        let opening = Arc::clone(&pool.opening);
        pool.start(move || work(Some(Box::new(fragile)), &opening, &waiting)).expect("a thread");
        let error = pool.embed_queries(&["good", "panic"]).expect_err("a panic").to_string();
        assert!(error.contains("panicked") && error.contains("fragile"), "{error}");
        assert_eq!(pool.embed_queries(&["good"]).expect("the session goes on"), [Vector::from([4.0])]);
    }
}
