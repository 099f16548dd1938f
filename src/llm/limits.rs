//! What may be asked at once, in a minute, and in all.
//!
//! In: a request's tokens, estimated from above; after it, what it took. Out: leave to send
//! it, waited for; or no leave, because the time or the money is over. What is in flight is
//! counted at its estimate, so that the cap is never passed by requests side by side.

use std::{
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};

use super::{LlmError, Usage};
use crate::config::LlmSettings;

/// The limits of one client.
pub(super) struct Limits {
    free: Sender<()>,
    slots: Receiver<()>,
    per_minute: Option<(DefaultDirectRateLimiter, NonZeroU32)>,
    /// Tokens of prompts and completions in flight, at most.
    held: Mutex<(u64, u64)>,
}

/// Leave to send one request; given back when it is dropped.
pub(super) struct Leave<'l> {
    limits: &'l Limits,
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut held = self.limits.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 = held.0.saturating_sub(self.prompt_tokens);
        held.1 = held.1.saturating_sub(self.completion_tokens);
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
        Self { free, slots, per_minute, held: Mutex::default() }
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
        let leave = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.0 += prompt_tokens;
            held.1 += completion_tokens;
            // Made before the cap is looked at, so that a refusal gives everything back.
            let leave = Leave { limits: self, prompt_tokens, completion_tokens };
            let (prompts, completions) = *held;
            drop(held);
            within_cap(settings, &spent(), prompts, completions)?;
            leave
        };
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
        return Err(LlmError::Cap {
            key: "llm.cap_tokens",
            spent: format!("{} tokens", spent.tokens()),
            cap: format!("{} tokens", settings.cap_tokens),
        });
    }
    let cost = settings.cost(spent.prompt_tokens + prompts, spent.completion_tokens + completions);
    if settings.cap_cost > 0.0 && cost > settings.cap_cost {
        return Err(LlmError::Cap {
            key: "llm.cap_cost",
            spent: format!("{:.4}", settings.cost(spent.prompt_tokens, spent.completion_tokens)),
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
        let told = limits.enter(&settings, spent, 20, soon()).err().expect("112 of 100").to_string();
        assert!(told.contains("llm.cap_tokens") && told.contains("40 tokens"), "{told}");
        drop(first);
        assert!(limits.enter(&settings, spent, 20, soon()).is_ok(), "a refusal holds nothing back");
        let priced = self::settings(
            "cap_cost = 0.001\nprompt_price = 10.0\ncompletion_price = 20.0\nmost_completion_tokens = 16",
        );
        assert!(Limits::new(&priced).enter(&priced, Usage::default, 10, soon()).is_ok(), "0.00042");
        let told = Limits::new(&priced).enter(&priced, Usage::default, 100, soon()).err().expect("0.00132").to_string();
        assert!(told.contains("llm.cap_cost"), "{told}");
    }
}
