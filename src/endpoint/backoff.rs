//! How long to wait before the next attempt.
//!
//! In: how many attempts failed, or the endpoint's `Retry-After` header. Out: a duration.
//! Backoff doubles with every attempt up to a limit, with jitter so that clients spread out.

use std::time::{Duration, SystemTime};

use types::backoff::{Backoff, shortened};

/// The upper limit of the first pause between attempts, and that of the longest.
const LIMITS: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// The longest `Retry-After` that is accepted.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Exponential backoff with jitter: between half of the limit for this attempt and all of it.
#[must_use]
pub fn backoff(attempts: u32) -> Duration {
    shortened(LIMITS.pause_after(attempts))
}

/// A `Retry-After` header: seconds, or an HTTP date.
#[must_use]
pub fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0)
            .then(|| Duration::from_secs_f64(seconds.min(MAX_RETRY_AFTER.as_secs_f64())));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default().min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(" 0.5 "), Some(Duration::from_millis(500)));
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        let wait = retry_after(&date).expect("a date");
        assert!(wait > Duration::from_secs(57) && wait <= Duration::from_secs(60), "{wait:?}");
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("Fri, 31 Dec 9999 23:59:59 GMT"), Some(MAX_RETRY_AFTER));
        assert_eq!(retry_after("1e9"), Some(MAX_RETRY_AFTER));
        assert_eq!((retry_after("soon"), retry_after("-1"), retry_after("NaN")), (None, None, None));
    }

    #[test]
    fn backoff_doubles_with_jitter_up_to_a_limit() {
        for (attempts, low, high) in [(1, 250, 500), (2, 500, 1_000), (5, 4_000, 8_000), (40, 15_000, 30_000)] {
            for _ in 0..50 {
                let found = backoff(attempts).as_millis();
                assert!((low..=high).contains(&found), "{attempts}: {found}");
            }
        }
    }
}
