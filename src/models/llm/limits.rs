//! Limits on requests: how many run at once, how many tokens per minute, and how much may be spent in total.
//!
//! In: an upper estimate of a request's tokens, and what was spent so far. Out: a permit to send it, for which the
//! caller waits until a deadline; or the cap that it would exceed. Requests in flight count with their estimate, so
//! that concurrent requests never exceed a cap together: a request that might do so waits until the real cost of the
//! others is known.

use std::{
    num::NonZeroU32,
    sync::{Condvar, Mutex},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};

use super::error::LlmError;
use endpoint::RetryAfterGate;
use types::{config::LlmSettings, model::ModelUsage, sync};

/// The limits of one client.
pub(super) struct RequestLimits {
    /// Holds one message for each request that may still start.
    slots: Receiver<()>,
    free_slot: Sender<()>,
    per_minute: Option<(DefaultDirectRateLimiter, NonZeroU32)>,
    /// Upper estimates of the prompt tokens and of the completion tokens in flight.
    reserved: Mutex<(u64, u64)>,
    less_reserved: Condvar,
    /// When the endpoint's `Retry-After` ends.
    pub(super) not_before: RetryAfterGate,
}

/// Permission to send one request, returned when it is dropped.
pub(super) struct RequestPermit<'l> {
    limits: &'l RequestLimits,
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        let mut reserved = sync::lock(&self.limits.reserved);
        reserved.0 = reserved.0.saturating_sub(self.prompt_tokens);
        reserved.1 = reserved.1.saturating_sub(self.completion_tokens);
        self.limits.less_reserved.notify_all();
        // The channel has space, because this permit took one message out of it.
        let _ = self.limits.free_slot.try_send(());
    }
}

impl RequestLimits {
    pub(super) fn new(settings: &LlmSettings) -> Self {
        let (free_slot, slots) = bounded(settings.in_flight);
        for _ in 0..settings.in_flight {
            let _ = free_slot.try_send(());
        }
        let per_minute =
            NonZeroU32::new(settings.tokens_per_minute).map(|n| (RateLimiter::direct(Quota::per_minute(n)), n));
        Self {
            slots,
            free_slot,
            per_minute,
            reserved: Mutex::default(),
            less_reserved: Condvar::default(),
            not_before: RetryAfterGate::default(),
        }
    }

    /// Waits for a permit to send `prompt_tokens` and to receive `completion_tokens`. `spent` returns what was spent so
    /// far.
    ///
    /// # Errors
    /// [`LlmError::CapReached`] if the request alone could exceed a cap; [`LlmError::Deadline`].
    pub(super) fn acquire(
        &self,
        settings: &LlmSettings,
        spent: impl Fn() -> ModelUsage,
        (prompt_tokens, completion_tokens): (u64, u64),
        deadline: Instant,
    ) -> Result<RequestPermit<'_>, LlmError> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.slots.recv_timeout(left) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(LlmError::Deadline),
        }
        // The permit is made before the cap is checked, so that an error returns the slot.
        let mut permit = RequestPermit { limits: self, prompt_tokens: 0, completion_tokens: 0 };
        let mut reserved = sync::lock(&self.reserved);
        loop {
            let spent = spent();
            let within = |(prompts, completions)| {
                check_caps(settings, &spent, prompts + prompt_tokens, completions + completion_tokens)
            };
            let alone = within((0, 0));
            if alone.is_ok() && within(*reserved).is_ok() {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let refused = alone.err().or_else(|| left.is_zero().then_some(LlmError::Deadline));
            if let Some(refused) = refused {
                // Dropping the permit takes this lock, so it is released first.
                drop(reserved);
                return Err(refused);
            }
            reserved = sync::wait_timeout(&self.less_reserved, reserved, left);
        }
        reserved.0 += prompt_tokens;
        reserved.1 += completion_tokens;
        drop(reserved);
        (permit.prompt_tokens, permit.completion_tokens) = (prompt_tokens, completion_tokens);
        if let Some((limiter, capacity)) = &self.per_minute {
            let wanted = u32::try_from(prompt_tokens + completion_tokens).unwrap_or(u32::MAX);
            // The limiter never grants more than its capacity, so a larger request takes all of it.
            let wanted = NonZeroU32::new(wanted).unwrap_or(NonZeroU32::MIN).min(*capacity);
            while let Ok(Err(not_yet)) = limiter.check_n(wanted) {
                let wait = not_yet.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
                if Instant::now() + wait > deadline {
                    return Err(LlmError::Deadline);
                }
                std::thread::sleep(wait);
            }
        }
        Ok(permit)
    }
}

fn check_caps(settings: &LlmSettings, spent: &ModelUsage, prompts: u64, completions: u64) -> Result<(), LlmError> {
    let tokens = spent.tokens() + prompts + completions;
    if settings.cap_tokens > 0 && tokens > settings.cap_tokens {
        return Err(LlmError::CapReached {
            key: "llm.cap_tokens",
            spent: format!("{} tokens", spent.tokens()),
            next: format!("{} tokens", prompts + completions),
            cap: format!("{} tokens", settings.cap_tokens),
        });
    }
    let cost = settings.cost(spent.prompt_tokens + prompts, spent.completion_tokens + completions);
    if settings.cap_cost > 0.0 && cost > settings.cap_cost {
        return Err(LlmError::CapReached {
            key: "llm.cap_cost",
            spent: format!("{:.4}", settings.cost(spent.prompt_tokens, spent.completion_tokens)),
            next: format!("{:.4}", settings.cost(prompts, completions)),
            cap: format!("{:.4}", settings.cap_cost),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::config::Pipeline;

    fn settings(more: &str) -> LlmSettings {
        let text = format!("version = 1\n[llm]\nendpoint = \"http://x/v1\"\nmodel = \"m\"\n{more}");
        Pipeline::parse(&text).expect("valid").llm
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn requests_beyond_in_flight_wait() {
        let settings = settings("in_flight = 2");
        let limits = RequestLimits::new(&settings);
        let acquire = || limits.acquire(&settings, ModelUsage::default, (10, 16), soon());
        let (first, _second) = (acquire().expect("room"), acquire().expect("room"));
        assert!(matches!(acquire(), Err(LlmError::Deadline)));
        drop(first);
        assert!(acquire().is_ok());
    }

    #[test]
    fn tokens_per_minute_are_limited() {
        let settings = settings("tokens_per_minute = 100");
        let limits = RequestLimits::new(&settings);
        assert!(limits.acquire(&settings, ModelUsage::default, (60, 16), soon()).is_ok());
        assert!(matches!(limits.acquire(&settings, ModelUsage::default, (60, 16), soon()), Err(LlmError::Deadline)));
        // A request larger than a minute's tokens takes the whole minute.
        let large = RequestLimits::new(&settings);
        assert!(large.acquire(&settings, ModelUsage::default, (10_000, 16), soon()).is_ok());
    }

    #[test]
    fn the_cap_counts_requests_in_flight() {
        let settings = settings("cap_tokens = 100\nin_flight = 8");
        let limits = RequestLimits::new(&settings);
        let spent = || ModelUsage { prompt_tokens: 30, completion_tokens: 10, ..ModelUsage::default() };
        let first = limits.acquire(&settings, spent, (20, 16), soon()).expect("76 of 100");
        let waited = limits.acquire(&settings, spent, (20, 16), soon()).err();
        assert_eq!(waited, Some(LlmError::Deadline), "112 of 100 while the first is in flight");
        let error = limits.acquire(&settings, spent, (50, 16), soon()).err().expect("106 of 100").to_string();
        assert!(error.contains("llm.cap_tokens") && error.contains("40 tokens"), "{error}");
        let long = Instant::now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| limits.acquire(&settings, spent, (20, 16), long).is_ok());
            drop(first);
            assert!(second.join().expect("no panic"), "a refused request reserves nothing");
        });
        let priced = self::settings("cap_cost = 0.001\nprompt_price = 10.0\ncompletion_price = 20.0");
        assert!(RequestLimits::new(&priced).acquire(&priced, ModelUsage::default, (10, 16), soon()).is_ok(), "0.00042");
        let error = RequestLimits::new(&priced)
            .acquire(&priced, ModelUsage::default, (100, 16), soon())
            .err()
            .expect("0.00132")
            .to_string();
        assert!(error.contains("llm.cap_cost"), "{error}");
    }
}
