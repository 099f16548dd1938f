//! A service on an embedded log: a memory that stays open, reached over HTTP.
//!
//! In: a pipeline with an embedded log and `http.listen`. Out: answers at that address until `stop`; its
//! source, where it names one, is read to its end meanwhile. At the end requests that have begun are
//! answered, a snapshot is written, and the directory is free. A kill loses nothing that was acknowledged.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{ServeError, address, v1};
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
    let memory = Arc::new(Memory::open_with(pipeline, options)?);
    let serving = v1::start(pipeline, Arc::clone(&memory))?;
    let directory = &pipeline.log.directory;
    address::write(directory, &serving.beside().to_string(), serving.local.as_ref())
        .map_err(|problem| ServeError::Address { directory: directory.clone(), problem })?;
    say(&format!("{} (log in {})", serving.url, directory.display()));
    std::thread::scope(|scope| {
        if let Some(settings) = &pipeline.source {
            let read_turns = pipeline.embed.read_turns;
            let memory = &*memory;
            scope.spawn(move || {
                if let Err(error) = read_source(memory, settings, read_turns, stop, say) {
                    say(&format!("source {}: {error}", settings.path.display()));
                }
            });
        }
        while !stop.load(Ordering::Relaxed) {
            serving.tell(say);
            std::thread::sleep(LOOK);
        }
    });
    // Nobody is sent to a listener that ends.
    address::remove(directory);
    drop(serving);
    match Arc::into_inner(memory) {
        Some(memory) => memory.close()?,
        // A call that outlasted its connection ends with the process.
        None => say("a request still ran at the end; what it was told holds"),
    }
    Ok(())
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
