//! A service on an embedded log: a memory that stays open, reached over HTTP.
//!
//! In: a pipeline with an embedded log and `http.listen`. Out: answers at that address until `stop`; its
//! source, where it names one, is read to its end meanwhile. At the end requests that have begun are
//! answered, a snapshot is written, and the directory is free. A kill loses nothing that was acknowledged.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{ServeError, served::Served};
use crate::{
    config::{Pipeline, SourceSettings},
    pipeline::{Memory, MemoryOptions, PipelineError, Progress},
    source,
};

/// Time between two looks whether to stop, and at what goes wrong.
const LOOK: Duration = Duration::from_millis(50);

/// Runs until `stop`. `say` takes messages for people, `progress` how far opening is.
///
/// # Errors
/// [`ServeError`]: the directory is in use, the address is taken, or the memory cannot be opened.
pub fn run_embedded(
    pipeline: &Pipeline,
    stop: &AtomicBool,
    say: fn(&str),
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ServeError> {
    let options = MemoryOptions { edges: None, say: Box::new(say), progress };
    let served = Served::open(pipeline, &pipeline.http.listen, options)?;
    say(&format!("{} (log in {})", served.url(), pipeline.log.directory.display()));
    std::thread::scope(|scope| {
        if let Some(settings) = &pipeline.source {
            let read_turns = pipeline.embed.read_turns;
            let memory = served.memory();
            scope.spawn(move || {
                if let Err(error) = read_source(memory, settings, read_turns, stop, say) {
                    say(&format!("source {}: {error}", settings.path.display()));
                }
            });
        }
        while !stop.load(Ordering::Relaxed) {
            served.tell(say);
            std::thread::sleep(LOOK);
        }
    });
    served.close(&say)
}

/// Reads a source to its end.
fn read_source(
    memory: &Memory,
    settings: &SourceSettings,
    read_turns: usize,
    stop: &AtomicBool,
    say: fn(&str),
) -> Result<(), PipelineError> {
    let mut source = source::open(settings)?;
    if let Some(notice) = source.notice() {
        say(&notice);
    }
    let (mut turns, mut rejects) = (0, 0);
    while let Some(batch) = source.next(read_turns)? {
        rejects += batch.rejects.len();
        turns += batch.events.len();
        memory.put_dead_letters(&batch.rejects)?;
        memory.put(batch.events)?;
        if stop.load(Ordering::Relaxed) {
            say(&format!("{}: stopped after {turns} events; the next run reads it again", source.describe()));
            return Ok(());
        }
    }
    say(&format!("{}: {turns} events, {rejects} rejected", source.describe()));
    Ok(())
}
