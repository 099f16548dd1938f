//! What may be asked at once, in a minute, and in all.
//!
//! In: a request's tokens, estimated from above; after it, what it took. Out: leave to send
//! it, waited for; or no leave, because the time or the money is over. What is in flight is
//! counted at its estimate, so that requests side by side do not pass the cap together: one
//! that would waits until it is known what the others took.

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

use super::LlmError;
use crate::{config::LlmSettings, model::Usage, sync};

/// The limits of one client.
pub(super) struct Limits {
    free: Sender<()>,
    slots: Receiver<()>,
    per_minute: Option<(DefaultDirectRateLimiter, NonZeroU32)>,
    /// Tokens of prompts and completions in flight, at most.
    held: Mutex<(u64, u64)>,
    less_held: Condvar,
    /// When the endpoint may be asked again, where it said so.
    quiet_until: Mutex<Option<Instant>>,
}

/// Leave to send one request; given back when it is dropped.
pub(super) struct Leave<'l> {
    limits: &'l Limits,
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut held = sync::lock(&self.limits.held);
        held.0 = held.0.saturating_sub(self.prompt_tokens);
        held.1 = held.1.saturating_sub(self.completion_tokens);
        self.limits.less_held.notify_all();
        // There is room: this is one of as many as the channel holds.
        let _ = self.limits.free.try_send(());
    }
}

impl Limits {
    pub(super) fn new(settings: &LlmSettings) -> Self {
        let (free, slots) = bounded(settings.in_flight);
        for _ in 0..settings.in_flight {
            let _ = free.try_send(());
        }
        let per_minute =
            NonZeroU32::new(settings.tokens_per_minute).map(|n| (RateLimiter::direct(Quota::per_minute(n)), n));
        Self {
            free,
            slots,
            per_minute,
            held: Mutex::default(),
            less_held: Condvar::default(),
            quiet_until: Mutex::default(),
        }
    }

    /// The endpoint asks to be left alone for so long.
    pub(super) fn rest(&self, quiet: Duration) {
        let until = Instant::now() + quiet;
        let mut held = sync::lock(&self.quiet_until);
        *held = (*held).max(Some(until));
    }

    /// How long it is still to be left alone.
    pub(super) fn quiet(&self) -> Duration {
        let held = sync::lock(&self.quiet_until);
        held.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Waits for leave to send a request of so many tokens, at most until `until`. `spent` is
    /// what was spent before.
    pub(super) fn enter(
        &self,
        settings: &LlmSettings,
        spent: impl Fn() -> Usage,
        prompt_tokens: u64,
        until: Instant,
    ) -> Result<Leave<'_>, LlmError> {
        let left = until.saturating_duration_since(Instant::now());
        match self.slots.recv_timeout(left) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(LlmError::Deadline),
        }
        let completion_tokens = u64::from(settings.most_completion_tokens);
        // Made before the cap is looked at, so that a refusal gives the slot back.
        let mut leave = Leave { limits: self, prompt_tokens: 0, completion_tokens: 0 };
        let mut held = sync::lock(&self.held);
        loop {
            let spent = spent();
            let within = |(prompts, completions)| {
                within_cap(settings, &spent, prompts + prompt_tokens, completions + completion_tokens)
            };
            let alone = within((0, 0));
            if alone.is_ok() && within(*held).is_ok() {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            let refused = alone.err().or_else(|| left.is_zero().then_some(LlmError::Deadline));
            if let Some(refused) = refused {
                // Giving the slot back takes the lock.
                drop(held);
                return Err(refused);
            }
            held = sync::wait_timeout(&self.less_held, held, left);
        }
        held.0 += prompt_tokens;
        held.1 += completion_tokens;
        drop(held);
        (leave.prompt_tokens, leave.completion_tokens) = (prompt_tokens, completion_tokens);
        if let Some((limiter, most)) = &self.per_minute {
            let wanted = u32::try_from(prompt_tokens + completion_tokens).unwrap_or(u32::MAX);
            let wanted = NonZeroU32::new(wanted).unwrap_or(NonZeroU32::MIN).min(*most);
            // No more is asked for than the limiter can ever give.
            while let Ok(Err(not_yet)) = limiter.check_n(wanted) {
                let wait = not_yet.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
                if Instant::now() + wait > until {
                    return Err(LlmError::Deadline);
                }
                std::thread::sleep(wait);
            }
        }
        Ok(leave)
    }
}

fn within_cap(settings: &LlmSettings, spent: &Usage, prompts: u64, completions: u64) -> Result<(), LlmError> {
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
    use crate::config::Pipeline;

    fn settings(more: &str) -> LlmSettings {
        let text = format!("version = 1\n[llm]\nendpoint = \"http://x/v1\"\nmodel = \"m\"\n{more}");
        Pipeline::parse(&text).expect("valid").llm
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn only_so_many_are_in_flight() {
        let settings = settings("in_flight = 2");
        let limits = Limits::new(&settings);
        let enter = || limits.enter(&settings, Usage::default, 10, soon());
        let (first, _second) = (enter().expect("room"), enter().expect("room"));
        assert!(matches!(enter(), Err(LlmError::Deadline)));
        drop(first);
        assert!(enter().is_ok());
    }

    #[test]
    fn a_minute_has_only_so_many_tokens() {
        let settings = settings("tokens_per_minute = 100\nmost_completion_tokens = 16");
        let limits = Limits::new(&settings);
        assert!(limits.enter(&settings, Usage::default, 60, soon()).is_ok());
        assert!(matches!(limits.enter(&settings, Usage::default, 60, soon()), Err(LlmError::Deadline)));
        // More than a minute ever has is asked for as the whole of it.
        let large = Limits::new(&settings);
        assert!(large.enter(&settings, Usage::default, 10_000, soon()).is_ok());
    }

    #[test]
    fn the_cap_counts_what_is_in_flight() {
        let settings = settings("cap_tokens = 100\nmost_completion_tokens = 16\nin_flight = 8");
        let limits = Limits::new(&settings);
        let spent = || Usage { prompt_tokens: 30, completion_tokens: 10, ..Usage::default() };
        let first = limits.enter(&settings, spent, 20, soon()).expect("76 of 100");
        let waited = limits.enter(&settings, spent, 20, soon()).err();
        assert_eq!(waited, Some(LlmError::Deadline), "112 of 100, as long as the first is under way");
        let told = limits.enter(&settings, spent, 50, soon()).err().expect("106 of 100").to_string();
        assert!(told.contains("llm.cap_tokens") && told.contains("40 tokens"), "{told}");
        let long = Instant::now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| limits.enter(&settings, spent, 20, long).is_ok());
            drop(first);
            assert!(second.join().expect("no panic"), "a refusal holds nothing back");
        });
        let priced = self::settings(
            "cap_cost = 0.001\nprompt_price = 10.0\ncompletion_price = 20.0\nmost_completion_tokens = 16",
        );
        assert!(Limits::new(&priced).enter(&priced, Usage::default, 10, soon()).is_ok(), "0.00042");
        let told = Limits::new(&priced).enter(&priced, Usage::default, 100, soon()).err().expect("0.00132").to_string();
        assert!(told.contains("llm.cap_cost"), "{told}");
    }
}
