//! The samples of the demo in a browser.
//!
//! In: a directory, profiles, and dialogues. Out: a service with the console for each profile, at addresses that are
//! printed, until a signal. Writes below the directory alone.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use ripplemem::Memory;
use terminal::{print, stop_by_signal};
use types::config::{Pipeline, SourceSettings};

/// The number of reads in which the memory takes a sample. The end of each read is a point that can be asked about.
const READS: usize = 4;
/// The longest wait until answers reflect a read of a sample, which usually takes far less.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Time between two checks whether a service listens.
const POLL: Duration = Duration::from_millis(50);
/// The first port that is tried.
const PORT: u16 = 8321;

/// Serves both samples in each of the profiles, until a signal.
///
/// # Errors
/// A memory cannot be opened or served, or no address is free.
pub(super) fn serve(directory: &Path, profiles: &[&str], samples: &[&str]) -> Result<()> {
    let stop = stop_by_signal()?;
    let mut pipelines = Vec::new();
    for profile in profiles {
        let mut pipeline =
            Pipeline::parse(&format!("version = 1\nprofile = {profile:?}\n")).map_err(anyhow::Error::msg)?;
        let home = directory.join(format!("served-{profile}"));
        pipeline.log.directory = home.join("log");
        pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
        let memory = Memory::open(&pipeline)?;
        for sample in samples {
            let turns: Vec<&str> = sample.lines().collect();
            for read in turns.chunks(turns.len().div_ceil(READS)) {
                put(&memory, directory, &read.join("\n"))?;
            }
        }
        memory.close()?;
        pipelines.push(pipeline);
    }
    // Every port is held until all are chosen, so that no two are the same.
    let ports: Vec<TcpListener> = (PORT..).take(pipelines.len()).map(free_port).collect::<Result<_>>()?;
    for (pipeline, port) in pipelines.iter_mut().zip(ports) {
        pipeline.http.listen = port.local_addr().context("an address of this machine")?.to_string();
    }
    thread::scope(|scope| {
        let served: Vec<_> =
            pipelines.iter().map(|pipeline| scope.spawn(|| server::run(pipeline, stop, &mut |_| ()))).collect();
        for ((pipeline, profile), service) in pipelines.iter().zip(profiles).zip(&served) {
            let listen = &pipeline.http.listen;
            while TcpStream::connect(listen).is_err() {
                if service.is_finished() {
                    // The other services end, too, so that the error of this one is shown at once.
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
                thread::sleep(POLL);
            }
            if !stop.load(Ordering::Relaxed) {
                print(&format!("Open http://{listen}/  (profile {profile})\n"))?;
            }
        }
        if !stop.load(Ordering::Relaxed) {
            print("Ctrl-C ends it, and leaves nothing behind.\n")?;
        }
        for service in served {
            service.join().map_err(|_| anyhow::anyhow!("the service panicked; its message is above"))??;
        }
        Ok(())
    })
}

/// Writes turns into the memory, and waits until answers reflect them.
fn put(memory: &Memory, directory: &Path, turns: &str) -> Result<()> {
    let path = directory.join("turns.jsonl");
    fs::write(&path, turns).with_context(|| format!("{}: cannot be written", path.display()))?;
    let mut source = sources::open(&SourceSettings::new("jsonl", &path))?;
    while let Some(batch) = source.next(turns.lines().count())? {
        let written = memory.put(batch.events)?;
        if !memory.wait_for(&written, Instant::now() + MAX_WAIT) {
            bail!("the sample is not reflected after {} s", MAX_WAIT.as_secs());
        }
    }
    Ok(())
}

/// A listener on this port, or on another one if it is taken.
fn free_port(port: u16) -> Result<TcpListener> {
    let local = Ipv4Addr::LOCALHOST;
    let bound = TcpListener::bind((local, port)).or_else(|_| TcpListener::bind((local, 0)));
    bound.context("no port of 127.0.0.1 can be listened on")
}
