//! A service on an embedded log: a memory that stays open, reached over HTTP.
//!
//! In: a pipeline with an embedded log and `http.listen`. Out: answers at that address until `stop`; a file
//! that it names as its source is read to the end meanwhile, platforms are followed. The directory's lock is
//! the lease of every source. At the end requests that have begun are answered, a snapshot is written, and
//! the directory is free. A kill loses nothing that was acknowledged.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    ServeError,
    platforms::{self, Followed},
    served::Served,
    webhooks,
};
use nouns::{
    config::{Pipeline, SourceSettings},
    sync,
};
use ripplemem::pipeline::{Memory, MemoryOptions, PipelineError, Progress};

/// Time between two looks whether to stop, and at what goes wrong.
const LOOK: Duration = Duration::from_millis(50);

/// Runs until `stop`. `say` takes messages for people, `progress` how far opening is.
///
/// # Errors
/// [`ServeError`]: the directory is in use, the address is taken, the memory cannot be opened, or a platform
/// cannot be followed as the pipeline says.
pub fn run_embedded(
    pipeline: &Pipeline,
    stop: &AtomicBool,
    say: fn(&str),
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ServeError> {
    let webhooks = platforms::open(pipeline)?;
    let open = webhooks::routes(Arc::clone(&webhooks));
    let options = MemoryOptions { edges: None, say: Box::new(say), progress };
    let served = Served::open(pipeline, &pipeline.http.listen, options, open)?;
    say(&format!("{} (log in {})", served.url(), pipeline.log.directory.display()));
    let failure: Mutex<Option<PipelineError>> = Mutex::new(None);
    let stopping = || stop.load(Ordering::Relaxed) || sync::lock(&failure).is_some();
    std::thread::scope(|scope| {
        let memory = served.memory();
        if let Some(settings) = &pipeline.source {
            let read_turns = pipeline.embed.read_turns;
            scope.spawn(move || {
                if let Err(error) = read_source(memory, settings, read_turns, stop, say) {
                    say(&format!("source {}: {error}", settings.path.display()));
                }
            });
        }
        for settings in &pipeline.live {
            let (webhooks, failure, stopping) = (&*webhooks, &failure, &stopping);
            scope.spawn(move || {
                let followed = Followed { pipeline, settings, webhooks, metrics: None, say: &say };
                let ended = followed.by(|run, arriving, tell| memory.follow(run, arriving, stopping, tell));
                if let Err(error) = ended {
                    sync::lock(failure).get_or_insert(error);
                }
            });
        }
        while !stopping() {
            served.tell(say);
            std::thread::sleep(LOOK);
        }
    });
    served.close(&say)?;
    sync::into_inner(failure).map_or(Ok(()), |error| Err(error.into()))
}

/// Reads a source to its end.
fn read_source(
    memory: &Memory,
    settings: &SourceSettings,
    read_turns: usize,
    stop: &AtomicBool,
    say: fn(&str),
) -> Result<(), PipelineError> {
    let mut source = sources::open(settings)?;
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
