//! Passes to the model and its rows back to texts, on one thread or on several.
//!
//! In: passes and the texts that they belong to. Out: the texts' vectors, in the texts'
//! order. A text's passes run in the order given, whoever runs them, so that the number of
//! threads never shows in a vector.

use std::sync::Mutex;

use ort::session::{Session, SessionInputs};
use ort::value::TensorRef;

use super::passes::{Pass, Pooled};
use super::{EmbedError, SpanVectors};
use crate::sync;

/// What goes into a run and what comes out of it.
pub(super) struct Ends {
    /// The model's name, for errors.
    pub(super) model: String,
    /// The token that fills a shorter pass of a batch.
    pub(super) padding: i64,
    /// Whether the model asks for token types.
    pub(super) token_types: bool,
    /// The output that holds a row a token.
    pub(super) output: String,
}

/// Runs `batch` passes at a time.
pub(super) fn run_batches(
    session: &mut Session,
    ends: &Ends,
    passes: &[Pass],
    batch: usize,
    mut pooled: Vec<Pooled>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    for batch in passes.chunks(batch) {
        ends.run(session, batch, |pass, rows, dimensions| {
            if let Some(pooled) = pooled.get_mut(pass.text) {
                pooled.add(pass, rows, dimensions);
            }
        })?;
    }
    Ok(pooled.into_iter().map(Pooled::finish).collect())
}

/// A text on its way: its place, and what is still to run for it.
struct Task {
    text: usize,
    pooled: Pooled,
    passes: Vec<Pass>,
}

/// Runs one pass at a time in each session, all of a text's in the same one.
pub(super) fn run_side_by_side(
    sessions: &mut [Session],
    ends: &Ends,
    passes: Vec<Pass>,
    pooled: Vec<Pooled>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    let task = |(text, pooled)| Task { text, pooled, passes: Vec::with_capacity(1) };
    let mut tasks: Vec<Task> = pooled.into_iter().enumerate().map(task).collect();
    for pass in passes {
        if let Some(task) = tasks.get_mut(pass.text) {
            task.passes.push(pass);
        }
    }
    // Taken from the end: the longest first, so that no thread is left with one alone.
    tasks.sort_by_key(|task| task.passes.iter().map(|pass| pass.ids.len()).sum::<usize>());
    let sessions = sessions.get_mut(..tasks.len().min(sessions.len())).unwrap_or_default();
    let tasks = Mutex::new(tasks);
    let (first, others) = sessions.split_first_mut().map_or((None, Default::default()), |(f, o)| (Some(f), o));
    let lanes: Vec<Result<Vec<_>, EmbedError>> = std::thread::scope(|scope| {
        let others: Vec<_> = others.iter_mut().map(|session| scope.spawn(|| lane(session, ends, &tasks))).collect();
        let mine = first.map(|session| lane(session, ends, &tasks));
        let failed = |_| Err(ends.failed("a thread of it failed".to_owned()));
        mine.into_iter().chain(others.into_iter().map(|other| other.join().unwrap_or_else(failed))).collect()
    });
    let mut found = Vec::new();
    for lane in lanes {
        found.extend(lane?);
    }
    found.sort_by_key(|(text, _)| *text);
    Ok(found.into_iter().map(|(_, vectors)| vectors).collect())
}

fn lane(session: &mut Session, ends: &Ends, tasks: &Mutex<Vec<Task>>) -> Result<Vec<(usize, SpanVectors)>, EmbedError> {
    let next = || sync::lock(tasks).pop();
    let mut found = Vec::new();
    while let Some(Task { text, mut pooled, passes }) = next() {
        for pass in &passes {
            ends.run(session, std::slice::from_ref(pass), |pass, rows, dimensions| pooled.add(pass, rows, dimensions))?;
        }
        found.push((text, pooled.finish()));
    }
    Ok(found)
}

impl Ends {
    /// Runs passes together; `each` gets every pass with its rows and their width.
    fn run(
        &self,
        session: &mut Session,
        batch: &[Pass],
        mut each: impl FnMut(&Pass, &[f32], usize),
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
        let tensor = |data| TensorRef::<i64>::from_array_view((shape, data)).map_err(failed);
        let (ids, mask) = (tensor(ids.as_slice())?, tensor(mask.as_slice())?);
        let inputs: SessionInputs<'_, '_> = if self.token_types {
            ort::inputs!["input_ids" => ids, "attention_mask" => mask, "token_type_ids" => tensor(types.as_slice())?]
                .into()
        } else {
            ort::inputs!["input_ids" => ids, "attention_mask" => mask].into()
        };
        let outputs = session.run(inputs).map_err(failed)?;
        let rows = outputs.get(&self.output).ok_or_else(|| self.failed(format!("no output {}", self.output)))?;
        let (found, rows) = rows.try_extract_tensor::<f32>().map_err(failed)?;
        let dimensions = match found[..] {
            [b, s, d] if (b, s) == (batch.len() as i64, width as i64) && d > 0 => d as usize,
            _ => {
                let problem = format!("output of shape {found:?} for a batch of {shape:?}; one row a token is needed");
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
