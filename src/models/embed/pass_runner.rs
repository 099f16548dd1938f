//! Runs passes through the model, on one session or on several in parallel.
//!
//! In: passes and the texts that they belong to. Out: the texts' vectors, in the order of the
//! texts. The passes of one text run in order on one session, so that the number of threads
//! never changes a vector.

use std::sync::Mutex;

use ort::session::{RunOptions, Session};

use super::passes::{ModelPass, TextPooling};
use super::session_inputs::session_inputs;
use super::{EmbedError, SpanVectors};
use types::sync;

/// Asks the runtime to free, after a run, the memory that its runs have taken and no longer use.
const GIVE_ROOM_BACK: [&str; 2] = ["memory.enable_memory_arena_shrinkage", "cpu:0"];
/// The runtime frees its arena after batches of at least this many passes. Smaller batches skip that, so that a
/// question does not wait for new memory.
const MANY_PASSES: usize = 16;

/// The model's inputs and its output.
pub(super) struct ModelSignature {
    /// The model's name, for errors.
    pub(super) model: String,
    /// The token that pads a shorter pass of a batch.
    pub(super) padding: i64,
    /// Whether the model has an input for token types.
    pub(super) token_types: bool,
    /// The output that holds one row for each token.
    pub(super) output: String,
}

/// Runs `batch` passes at a time.
pub(super) fn run_batches(
    session: &mut Session,
    signature: &ModelSignature,
    passes: &[ModelPass],
    batch: usize,
    mut pooled: Vec<TextPooling>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    let last = passes.chunks(batch).len().saturating_sub(1);
    for (at, run) in passes.chunks(batch).enumerate() {
        let give_back = at == last && passes.len() >= MANY_PASSES;
        signature.run(session, run, give_back, |pass, rows, dimensions| {
            if let Some(pooled) = pooled.get_mut(pass.text) {
                pooled.add(pass, rows, dimensions);
            }
        })?;
    }
    Ok(pooled.into_iter().map(TextPooling::finish).collect())
}

/// A text whose passes are still to run.
struct PassTask {
    text: usize,
    pooled: TextPooling,
    passes: Vec<ModelPass>,
}

/// Runs one pass at a time in each session.
pub(super) fn run_in_parallel(
    sessions: &mut [Session],
    signature: &ModelSignature,
    passes: Vec<ModelPass>,
    pooled: Vec<TextPooling>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    let task = |(text, pooled)| PassTask { text, pooled, passes: Vec::with_capacity(1) };
    let mut tasks: Vec<PassTask> = pooled.into_iter().enumerate().map(task).collect();
    for pass in passes {
        if let Some(task) = tasks.get_mut(pass.text) {
            task.passes.push(pass);
        }
    }
    // Threads pop from the end, so the longest texts run first and no thread ends with a long one alone.
    tasks.sort_by_key(|task| task.passes.iter().map(|pass| pass.ids.len()).sum::<usize>());
    let sessions = sessions.get_mut(..tasks.len().min(sessions.len())).unwrap_or_default();
    // As a rule each session runs one of the last texts, which are the shortest, and then frees its memory. A session
    // that does not run one keeps its memory until the next load.
    let ends_at = if tasks.len() >= MANY_PASSES { sessions.len() } else { 0 };
    let tasks = Mutex::new(tasks);
    let (first, others) = sessions.split_first_mut().map_or((None, Default::default()), |(f, o)| (Some(f), o));
    let results: Vec<Result<Vec<_>, EmbedError>> = std::thread::scope(|scope| {
        let others: Vec<_> =
            others.iter_mut().map(|session| scope.spawn(|| work(session, signature, &tasks, ends_at))).collect();
        let mine = first.map(|session| work(session, signature, &tasks, ends_at));
        let failed =
            |_| Err(signature.failed("a worker thread panicked; this is a defect, please report it".to_owned()));
        mine.into_iter().chain(others.into_iter().map(|other| other.join().unwrap_or_else(failed))).collect()
    });
    let mut found = Vec::new();
    for result in results {
        found.extend(result?);
    }
    found.sort_by_key(|(text, _)| *text);
    Ok(found.into_iter().map(|(_, vectors)| vectors).collect())
}

/// Runs tasks until none is left. After the last `ends_at` tasks, memory is freed.
fn work(
    session: &mut Session,
    signature: &ModelSignature,
    tasks: &Mutex<Vec<PassTask>>,
    ends_at: usize,
) -> Result<Vec<(usize, SpanVectors)>, EmbedError> {
    let next = || {
        let mut tasks = sync::lock(tasks);
        let task = tasks.pop()?;
        Some((task, tasks.len() < ends_at))
    };
    let mut found = Vec::new();
    while let Some((PassTask { text, mut pooled, passes }, give_back)) = next() {
        for pass in &passes {
            signature.run(session, std::slice::from_ref(pass), give_back, |pass, rows, dimensions| {
                pooled.add(pass, rows, dimensions)
            })?;
        }
        found.push((text, pooled.finish()));
    }
    Ok(found)
}

impl ModelSignature {
    /// Runs passes as one batch; `each` receives every pass with its rows and their width.
    fn run(
        &self,
        session: &mut Session,
        batch: &[ModelPass],
        give_back: bool,
        mut each: impl FnMut(&ModelPass, &[f32], usize),
    ) -> Result<(), EmbedError> {
        let width = batch.iter().map(|pass| pass.ids.len()).max().unwrap_or(0);
        let mut ids = Vec::with_capacity(batch.len() * width);
        let mut mask = Vec::with_capacity(batch.len() * width);
        for pass in batch {
            let blank = width - pass.ids.len();
            ids.extend(pass.ids.iter().copied().chain(std::iter::repeat_n(self.padding, blank)));
            mask.extend(std::iter::repeat_n(1i64, pass.ids.len()).chain(std::iter::repeat_n(0, blank)));
        }
        let types = vec![0i64; if self.token_types { ids.len() } else { 0 }];
        let shape = [batch.len(), width];
        let failed = |e: ort::Error| self.failed(e.to_string());
        let types = self.token_types.then_some(types.as_slice());
        let inputs = session_inputs(shape, &ids, &mask, types).map_err(failed)?;
        let mut options = RunOptions::new().map_err(failed)?;
        if give_back {
            let [key, value] = GIVE_ROOM_BACK;
            options.set(key, value).map_err(failed)?;
        }
        let outputs = session.run_with_options(inputs, &options).map_err(failed)?;
        let rows = outputs.get(&self.output).ok_or_else(|| self.failed(format!("no output {}", self.output)))?;
        let (found, rows) = rows.try_extract_tensor::<f32>().map_err(failed)?;
        let dimensions = match found[..] {
            [b, s, d] if (b, s) == (batch.len() as i64, width as i64) && d > 0 => d as usize,
            _ => {
                let problem =
                    format!("output of shape {found:?} for a batch of {shape:?}; one row for each token is needed");
                return Err(self.failed(problem));
            }
        };
        for (pass, rows) in batch.iter().zip(rows.chunks_exact(width * dimensions)) {
            each(pass, rows, dimensions);
        }
        Ok(())
    }

    fn failed(&self, problem: String) -> EmbedError {
        EmbedError::Model { model: self.model.clone(), problem }
    }
}
