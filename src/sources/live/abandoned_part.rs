//! Gives up a part of a platform that fails every time, so that it does not stop the others for good.
//!
//! In: how a request for a part ended, such as the history of one room or the name of one account, and a probe: a
//! request that the platform answers whenever it works. Out: the same; or, once the part has failed [`MAX_FAILURES`]
//! times while probes were answered, that it is given up, so that its source continues without it. A source is opened
//! again after a pause that grows with each failure, so a part is given up after about a minute at the earliest. A
//! platform that is away, busy, or asks for a pause is waited for. A part that answers again is requested as before.

use std::sync::LazyLock;

use endpoint::{SuspectTexts, TextHash};

use super::error::LiveError;

/// How often a part fails before it is given up.
const MAX_FAILURES: u32 = 8;

/// The parts that have failed. A source is opened again after each failure, so they are kept beside it.
static FAILED: LazyLock<SuspectTexts> = LazyLock::new(SuspectTexts::default);

/// A part that is given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AbandonedPart {
    /// Why.
    pub(super) problem: String,
    /// Whether it was given up just now, which is reported once.
    pub(super) is_new: bool,
}

/// Judges how a request for the part `part` of the source `origin` ended.
///
/// # Errors
/// [`LiveError`], as long as the part is not given up.
pub(super) fn give_up_after_failures<T, P>(
    origin: &str,
    part: &str,
    ended: Result<T, LiveError>,
    probe: impl FnOnce() -> Result<P, LiveError>,
) -> Result<Result<T, AbandonedPart>, LiveError> {
    let key: TextHash = *blake3::hash(format!("{origin}\n{part}").as_bytes()).as_bytes();
    match ended {
        Ok(reply) => {
            FAILED.forget(&key);
            Ok(Ok(reply))
        }
        Err(LiveError::Lost(problem)) if !is_busy(&problem) => {
            match probe() {
                // A refusal is an answer.
                Ok(_) | Err(LiveError::Refused { .. }) => {}
                Err(away) => return Err(away),
            }
            match FAILED.count(&key) {
                ..MAX_FAILURES => Err(LiveError::Lost(problem)),
                failures => {
                    let is_new = failures == MAX_FAILURES;
                    let problem = format!("{problem}, {failures} times, while the platform answers other requests");
                    Ok(Err(AbandonedPart { problem, is_new }))
                }
            }
        }
        Err(error) => Err(error),
    }
}

/// Whether the platform says that it is busy.
fn is_busy(problem: &str) -> bool {
    problem.contains("status 503")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(
        origin: &str,
        problem: &str,
        probe: Result<(), LiveError>,
    ) -> Result<Result<(), AbandonedPart>, LiveError> {
        give_up_after_failures(origin, "rooms/b/state", Err(LiveError::Lost(problem.to_owned())), || probe)
    }

    #[test]
    fn a_part_that_always_fails_is_given_up_and_comes_back_when_it_answers() {
        let refused = || Err(LiveError::Refused { problem: String::new(), remedy: String::new() });
        for round in 1..MAX_FAILURES {
            assert!(fails("part test", "status 500", if round % 2 == 0 { Ok(()) } else { refused() }).is_err());
        }
        for is_new in [true, false] {
            let given_up = fails("part test", "status 500", Ok(())).unwrap().unwrap_err();
            assert!(given_up.is_new == is_new && given_up.problem.contains("status 500, "), "{given_up:?}");
        }
        assert!(
            matches!(give_up_after_failures("part test", "rooms/c/state", Ok(7), || Ok(())), Ok(Ok(7))),
            "another part"
        );
        assert!(
            matches!(give_up_after_failures("part test", "rooms/b/state", Ok(7), || Ok(())), Ok(Ok(7))),
            "it answers"
        );
        assert!(fails("part test", "status 500", Ok(())).is_err(), "and is waited for again");
    }

    #[test]
    fn a_platform_that_is_away_or_busy_is_waited_for() {
        for _ in 0..3 * MAX_FAILURES {
            assert!(fails("away test", "status 500", Err(LiveError::Lost("refused".to_owned()))).is_err());
            assert!(fails("away test", "at: status 503: try later", Ok(())).is_err());
            let pause = LiveError::Limited { problem: String::new(), after: std::time::Duration::ZERO };
            assert!(give_up_after_failures::<(), _>("away test", "rooms/b/state", Err(pause), || Ok(())).is_err());
        }
        assert!(fails("away test", "status 500", Ok(())).is_err(), "none of them counts");
    }
}
