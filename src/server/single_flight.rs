//! Reads something that may not answer for long, such as a log whose cluster is unavailable.
//!
//! In: a check, which may take as long as it needs. Out: what it found; after some seconds, or if it failed, what an
//! earlier one found, and why there is nothing newer. One check runs at a time, on a thread of its own, for all
//! callers, so no more than one thread waits. What was found before a call is never returned without that reason.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use types::sync;

/// The longest wait of a caller.
const PATIENCE: Duration = Duration::from_secs(5);

/// The runs of one computation.
pub(crate) struct SingleFlight<T> {
    shared: Arc<SingleFlightCore<T>>,
    patience: Duration,
}

struct SingleFlightCore<T> {
    state: Mutex<SingleFlightState<T>>,
    ended: Condvar,
}

struct SingleFlightState<T> {
    /// How many checks have begun, and how many have ended.
    begun: u64,
    ended: u64,
    found: Option<T>,
    /// Why the last check failed.
    problem: Option<String>,
}

/// What a caller gets.
pub(crate) struct SingleFlightResult<T> {
    /// What was found last; `None` before the first check that succeeds.
    pub(crate) found: Option<T>,
    /// Why `found` is from before the call.
    pub(crate) problem: Option<String>,
}

impl<T: Clone + Send + 'static> SingleFlight<T> {
    pub(crate) fn new() -> Self {
        Self::with(PATIENCE)
    }

    fn with(patience: Duration) -> Self {
        let state = Mutex::new(SingleFlightState { begun: 0, ended: 0, found: None, problem: None });
        Self { shared: Arc::new(SingleFlightCore { state, ended: Condvar::new() }), patience }
    }

    /// Runs the check, or shares one that begins after this call.
    pub(crate) fn run_shared(
        &self,
        look: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> SingleFlightResult<T> {
        let until = Instant::now() + self.patience;
        let mut look = Some(look);
        let mut state = sync::lock(&self.shared.state);
        // A check that runs already may lack what happened just before this call.
        let awaited = state.begun + 1;
        while state.ended < awaited {
            if state.begun == state.ended
                && let Some(look) = look.take()
            {
                state.begun += 1;
                let shared = Arc::clone(&self.shared);
                let started = std::thread::Builder::new().name("look".to_owned()).spawn(move || shared.run(look));
                if let Err(error) = started {
                    state.ended = state.begun;
                    state.problem = Some(format!("a thread cannot be started: {error}; raise the limit on threads"));
                }
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seconds = self.patience.as_secs_f64();
                let silent = || format!("the log has not answered within {seconds} seconds; try again in a moment");
                let problem = state.problem.clone().unwrap_or_else(silent);
                return SingleFlightResult { found: state.found.clone(), problem: Some(problem) };
            }
            state = sync::wait_timeout(&self.shared.ended, state, left);
        }
        SingleFlightResult { found: state.found.clone(), problem: state.problem.clone() }
    }
}

impl<T> SingleFlightCore<T> {
    fn run(&self, look: impl FnOnce() -> Result<T, String>) {
        let panicked = || Err("a look at the log panicked; this is a defect, please report it".to_owned());
        let found = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| panicked());
        let mut state = sync::lock(&self.state);
        state.ended += 1;
        match found {
            Ok(found) => {
                state.found = Some(found);
                state.problem = None;
            }
            Err(problem) => state.problem = Some(problem),
        }
        drop(state);
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_does_not_answer_is_waited_for_once_and_told_with_what_is_known() {
        let looks = SingleFlight::with(Duration::from_millis(50));
        let told = |look: SingleFlightResult<u32>| (look.found, look.problem);
        assert_eq!(told(looks.run_shared(|| Ok(1))), (Some(1), None));
        // A check that hangs: callers get what is known, and none of them begins another one.
        let (answer, hangs) = channel();
        let begun = Instant::now();
        let (found, problem) = told(looks.run_shared(move || hangs.recv().map_err(|error| error.to_string())));
        assert!(found == Some(1) && problem.is_some_and(|problem| problem.contains("has not answered")));
        for _ in 0..3 {
            assert_eq!(looks.run_shared(|| panic!("a second look beside the first")).found, Some(1));
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
        answer.send(2).unwrap();
        let looks = SingleFlight { patience: Duration::from_secs(60), ..looks };
        assert_eq!(told(looks.run_shared(|| Ok(3))), (Some(3), None), "of a look that began after the call");
        let failed = told(looks.run_shared(|| Err("the cluster is away".to_owned())));
        assert_eq!(failed, (Some(3), Some("the cluster is away".to_owned())));
        assert!(told(looks.run_shared(|| panic!("as asked"))).1.is_some_and(|problem| problem.contains("panicked")));
        assert_eq!(told(looks.run_shared(|| Ok(4))), (Some(4), None));
    }
}
