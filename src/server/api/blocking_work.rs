//! Blocking work, on a thread of its own instead of the runtime's.
//!
//! In: work, and for how long its client waits. Out: its result. Work that has not begun when its client leaves never
//! begins; long scans check the flag that they are given, and end. Writes check no flag: they are carried out.

use super::problem::{ApiProblem, ProblemCode};
use pipeline::{Cancellation, PipelineError};

/// Does blocking work on the runtime's pool of blocking threads. It is carried out even if the client leaves.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiProblem> + Send + 'static,
) -> Result<T, ApiProblem> {
    let failed = |_| ApiProblem::new(ProblemCode::Failed, "the request panicked; this is a defect, please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// As [`blocking`], but only while the client waits: the work gets a flag, which is raised when the future is dropped.
pub(super) async fn run_while_awaited<T: Send + 'static>(
    work: impl FnOnce(&Cancellation) -> Result<T, ApiProblem> + Send + 'static,
) -> Result<T, ApiProblem> {
    let cancellation = Cancellation::default();
    let _left = cancellation.on_drop();
    blocking(move || {
        cancellation.check().map_err(PipelineError::from)?;
        work(&cancellation)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use futures_util::FutureExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn work_ends_when_its_client_leaves_and_work_that_waits_for_a_thread_never_begins() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let _runtime = runtime.enter();
        let (out, told) = mpsc::channel();
        let ((began, ended), never) = ((out.clone(), out.clone()), out);
        let mut scan = Box::pin(run_while_awaited(move |cancellation: &Cancellation| {
            began.send("began").unwrap();
            while cancellation.check().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended.send("ended").unwrap();
            Ok(())
        }));
        assert!(scan.as_mut().now_or_never().is_none());
        assert_eq!(told.recv_timeout(PATIENCE), Ok("began"));
        // The only thread is taken.
        let mut waits = Box::pin(run_while_awaited(move |_| {
            never.send("never").unwrap();
            Ok(())
        }));
        assert!(waits.as_mut().now_or_never().is_none());
        drop((waits, scan));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("ended"));
        assert!(told.recv_timeout(PATIENCE).is_err(), "all senders are gone, and the last said nothing");
    }
}
