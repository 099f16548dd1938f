//! Whether a text or its endpoint is the cause of a failure.
//!
//! In: a text that failed, in forms from the whole to the shortest, and a way to send the endpoint something that it
//! has answered before (the probe). Out: a reply to the longest form that the endpoint takes; or why it takes none,
//! which is the text's own fault; or that the endpoint is away, so that all callers wait.
//!
//! A failure counts against a text only if the probe is answered at once right after it, and a text is given up only
//! after several of them: an endpoint that is down, overloaded or unsteady never condemns a text. A text after which
//! the endpoint falls silent, although it had answered right before, is remembered, and tried alone when the endpoint
//! is back. The probe is sent only after failures, once for each. Keeps hashes, and no text.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use types::{
    backoff::{Backoff, shortened},
    sync,
};

/// The hash of a text.
pub type TextHash = [u8; 32];

/// The pauses between two tries of the same form: a hiccup of the endpoint may be over after them.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
/// The weight of a failure that took the whole timeout, or after which the endpoint fell silent; usually it is 1.
const COSTLY: u32 = 2;
/// The weight of an answer that another try would get again.
const LASTING: u32 = 4;
/// How many times a text is halved at once if it took the whole timeout, or silenced its endpoint.
const COSTLY_HALVINGS: u32 = 3;
/// How many failures of one text may go uncounted because the probe needed several tries.
const MAX_UNSTEADY: u32 = 16;
/// How long a text that was given up is not sent again.
const GIVEN_UP: Duration = Duration::from_secs(600);
/// How many texts are kept; with more, all are forgotten, which costs some tries.
const MAX_TEXTS: usize = 4_096;

/// Why one request has no reply.
#[derive(Debug)]
pub enum LoneTextFailure<E> {
    /// It says nothing of the text: the endpoint is away, or busy.
    Away(E),
    /// The endpoint declines this text.
    Refused(String),
    /// The endpoint failed, and another try may succeed.
    Failed(String),
    /// The reply took longer than the timeout.
    Slow(String),
    /// The endpoint answered as it would again.
    Lasting(String),
}

/// How the probe was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// At once.
    AtOnce,
    /// After failures of its own, so that the endpoint is unsteady.
    AfterFailures,
}

/// A text that is sent alone.
pub trait LoneText {
    /// What a good reply is read as.
    type Reply;
    /// Why the endpoint is away.
    type Error;

    /// Whether the text has a form that is halved `halvings` times; the whole text always exists.
    fn has(&self, halvings: u32) -> bool;

    /// Sends a form, once.
    ///
    /// # Errors
    /// [`LoneTextFailure`].
    fn send(&mut self, halvings: u32) -> Result<Self::Reply, LoneTextFailure<Self::Error>>;

    /// Sends what the endpoint has answered before, with all retries.
    ///
    /// # Errors
    /// Why the endpoint is away.
    fn probe(&mut self) -> Result<ProbeOutcome, Self::Error>;
}

/// How often a text is tried, in failures that count.
#[derive(Debug, Clone, Copy)]
pub struct TryLimits {
    /// The whole text.
    pub whole: u32,
    /// Each shorter form.
    pub shorter: u32,
    /// All forms together: with fewer failures, the text is not given up.
    pub all: u32,
}

impl TryLimits {
    /// For a text that is to be remembered, which is given up late: at an endpoint that fails three times in ten at
    /// random, less than one text in a hundred thousand is given up.
    pub const REMEMBERED: Self = Self { whole: 3, shorter: 2, all: 8 };
    /// For a question, whose asker waits.
    pub const ASKED: Self = Self { whole: 2, shorter: 1, all: 3 };
    /// For a request that has no shorter form, each of whose tries is retried already.
    pub const WHOLE: Self = Self { whole: 3, shorter: 3, all: 3 };
}

/// A reply to a form of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedReply<R> {
    /// The reply.
    pub reply: R,
    /// How many times the text was halved.
    pub halvings: u32,
}

/// The texts of an endpoint that are under suspicion. All callers of the endpoint share them.
#[derive(Debug, Default)]
pub struct SuspectTexts(Mutex<HashMap<TextHash, SuspectRecord>>);

/// What counts against a text.
#[derive(Debug, Clone, Default)]
struct SuspectRecord {
    /// The form that is tried next.
    halvings: u32,
    /// Failures of that form, and of all forms.
    of_form: u32,
    failures: u32,
    /// It has failed in this way before, so that one failure of a form is enough.
    known: bool,
    problem: String,
    given_up: Option<Instant>,
}

impl SuspectTexts {
    /// Whether a text is under suspicion, and so is sent alone.
    #[must_use]
    pub fn has(&self, key: &TextHash) -> bool {
        sync::lock(&self.0).contains_key(key)
    }

    /// Puts texts under suspicion: their endpoint fell silent while it had them together.
    pub fn add(&self, keys: impl IntoIterator<Item = TextHash>) {
        for key in keys {
            self.note(key, self.of(&key).unwrap_or_default());
        }
    }

    /// Clears a text of suspicion, so that it is sent like any other.
    pub fn forget(&self, key: &TextHash) {
        sync::lock(&self.0).remove(key);
    }

    /// Counts a failure of a text that its caller sends again later, after an answered probe; returns the number of its
    /// failures.
    pub fn count(&self, key: &TextHash) -> u32 {
        let mut found = self.of(key).unwrap_or_default();
        found.count(1);
        let failures = found.failures;
        self.note(*key, found);
        failures
    }

    /// Sends a text alone until it is clear whether its endpoint takes it. `failed` is how it failed alone just now, if
    /// it did, and the probe was answered after that.
    ///
    /// # Errors
    /// Why the endpoint is away. The inner error says why it takes no form of this text.
    pub fn alone<T: LoneText>(
        &self,
        key: &TextHash,
        tries: TryLimits,
        text: &mut T,
        failed: Option<LoneTextFailure<T::Error>>,
    ) -> Result<Result<AcceptedReply<T::Reply>, String>, T::Error> {
        let before = self.of(key);
        let mut is_answered = failed.is_some();
        if before.is_some() && !is_answered {
            text.probe()?;
            is_answered = true;
        }
        let mut found = before.unwrap_or_default();
        if let Some(at) = found.given_up {
            if at.elapsed() < GIVEN_UP {
                return Ok(Err(found.problem));
            }
            found = SuspectRecord { known: true, ..SuspectRecord::default() };
        }
        if found.failures >= tries.all {
            return Ok(Err(self.give_up(*key, found)));
        }
        let (mut next, mut unsteady, mut pauses) = (failed, 0, PAUSES);
        loop {
            let is_probed = next.is_some();
            let sent = next.take().map_or_else(|| text.send(found.halvings), Err);
            let (problem, weight, halvings) = match sent {
                Ok(reply) => {
                    self.note_taken(*key, found.halvings);
                    return Ok(Ok(AcceptedReply { reply, halvings: found.halvings }));
                }
                Err(LoneTextFailure::Away(error)) => {
                    if found.failures > 0 {
                        self.note(*key, found);
                    }
                    return Err(error);
                }
                Err(LoneTextFailure::Refused(problem)) => (problem, 0, 1),
                Err(LoneTextFailure::Failed(problem)) => (problem, 1, 1),
                Err(LoneTextFailure::Slow(problem)) => (problem, COSTLY, COSTLY_HALVINGS),
                Err(LoneTextFailure::Lasting(problem)) => (problem, LASTING, 1),
            };
            found.problem = problem;
            if weight > 0 && !is_probed {
                match text.probe() {
                    Ok(ProbeOutcome::AfterFailures) if unsteady < MAX_UNSTEADY => {
                        unsteady += 1;
                        std::thread::sleep(shortened(pauses.pause()));
                        continue;
                    }
                    Ok(_) => is_answered = true,
                    Err(error) => {
                        if is_answered {
                            found.count(COSTLY);
                            found.shorten(tries, text, false, COSTLY_HALVINGS);
                        }
                        self.note(*key, found);
                        return Err(error);
                    }
                }
            }
            found.count(weight);
            if found.shorten(tries, text, weight == 0, halvings) {
                continue;
            }
            if weight == 0 || found.failures >= tries.all {
                // An endpoint that declines everything says nothing about a text.
                if weight == 0 {
                    text.probe()?;
                }
                return Ok(Err(self.give_up(*key, found)));
            }
            std::thread::sleep(shortened(pauses.pause()));
        }
    }

    fn of(&self, key: &TextHash) -> Option<SuspectRecord> {
        sync::lock(&self.0).get(key).cloned()
    }

    fn note(&self, key: TextHash, suspicion: SuspectRecord) {
        let mut all = sync::lock(&self.0);
        if all.len() >= MAX_TEXTS && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, suspicion);
    }

    /// Clears a text that was taken whole. One that had to be shortened stays known: next time, one failure of a form
    /// is enough.
    fn note_taken(&self, key: TextHash, halvings: u32) {
        if halvings > 0 {
            self.note(key, SuspectRecord { known: true, ..SuspectRecord::default() });
        } else {
            self.forget(&key);
        }
    }

    fn give_up(&self, key: TextHash, found: SuspectRecord) -> String {
        let problem = found.problem.clone();
        self.note(
            key,
            SuspectRecord { known: true, given_up: Some(Instant::now()), problem, ..SuspectRecord::default() },
        );
        found.problem
    }
}

impl SuspectRecord {
    fn count(&mut self, weight: u32) {
        self.of_form += weight;
        self.failures += weight;
    }

    /// Continues with a shorter form, by `by` halvings, if this one has failed often enough. Returns whether it did.
    fn shorten(&mut self, tries: TryLimits, text: &impl LoneText, is_refused: bool, by: u32) -> bool {
        let most = match self.halvings {
            // Enough failures count against the text; now only a form that is taken is sought.
            _ if self.known || self.failures >= tries.all => 1,
            0 => tries.whole,
            _ => tries.shorter,
        };
        if !is_refused && self.of_form < most {
            return false;
        }
        // The shortest form, if it cannot be halved that often.
        let shorter = (1..=by).rev().map(|by| self.halvings + by).find(|halvings| text.has(*halvings));
        if let Some(halvings) = shorter {
            (self.halvings, self.of_form) = (halvings, 0);
        }
        shorter.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TextHash = [7; 32];

    /// A text at a scripted endpoint; what was sent, by its halvings, `p` for a probe.
    struct ScriptedText<F> {
        shortest: u32,
        answer: F,
        probes: Vec<Result<ProbeOutcome, &'static str>>,
        sent: String,
    }

    impl<F: FnMut(u32) -> Result<(), LoneTextFailure<&'static str>>> LoneText for ScriptedText<F> {
        type Reply = ();
        type Error = &'static str;

        fn has(&self, halvings: u32) -> bool {
            halvings <= self.shortest
        }

        fn send(&mut self, halvings: u32) -> Result<(), LoneTextFailure<&'static str>> {
            self.sent.push_str(&halvings.to_string());
            (self.answer)(halvings)
        }

        fn probe(&mut self) -> Result<ProbeOutcome, &'static str> {
            self.sent.push('p');
            if self.probes.len() > 1 { self.probes.remove(0) } else { self.probes[0] }
        }
    }

    type LoneTextOutcome = Result<Result<AcceptedReply<()>, String>, &'static str>;

    fn alone(
        suspects: &SuspectTexts,
        tries: TryLimits,
        probes: &[Result<ProbeOutcome, &'static str>],
        answer: impl FnMut(u32) -> Result<(), LoneTextFailure<&'static str>>,
    ) -> (LoneTextOutcome, String) {
        let mut text = ScriptedText { shortest: 3, answer, probes: probes.to_vec(), sent: String::new() };
        (suspects.alone(&KEY, tries, &mut text, None), text.sent)
    }

    const OK: &[Result<ProbeOutcome, &str>] = &[Ok(ProbeOutcome::AtOnce)];
    const DOWN: &[Result<ProbeOutcome, &str>] = &[Err("away")];

    fn failed<T>() -> Result<T, LoneTextFailure<&'static str>> {
        Err(LoneTextFailure::Failed("500".to_owned()))
    }

    #[test]
    fn a_text_is_tried_again_then_shortened_then_given_up() {
        let short = |limit| move |halvings| if halvings < limit { failed() } else { Ok(()) };
        let taken = |halvings| Ok(Ok(AcceptedReply { reply: (), halvings }));
        let suspects = SuspectTexts::default();
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, OK, short(0)), (taken(0), "0".to_owned()));
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, OK, short(2)), (taken(2), "0p0p0p1p1p2".to_owned()));
        // It is known now: one failure of a form is enough.
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, OK, short(2)), (taken(2), "p0p1p2".to_owned()));
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, OK, short(0)), (taken(0), "p0".to_owned()));
        assert!(!suspects.has(&KEY), "the endpoint takes it now");
        let given_up = Ok(Err("500".to_owned()));
        let (found, sent) = alone(&suspects, TryLimits::REMEMBERED, OK, |_| failed());
        assert_eq!((found, sent.as_str()), (given_up.clone(), "0p0p0p1p1p2p2p3p"));
        // It is not sent again for a while.
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, OK, short(0)), (given_up, "p".to_owned()));
    }

    #[test]
    fn a_long_text_is_shortened_until_a_form_is_taken() {
        let answer = |halvings| if halvings < 9 { failed() } else { Ok(()) };
        let mut text = ScriptedText { shortest: 9, answer, probes: OK.to_vec(), sent: String::new() };
        let found = SuspectTexts::default().alone(&KEY, TryLimits::REMEMBERED, &mut text, None);
        assert_eq!(found, Ok(Ok(AcceptedReply { reply: (), halvings: 9 })));
        assert_eq!(text.sent, "0p0p0p1p1p2p2p3p4p5p6p7p8p9");
    }

    #[test]
    fn a_refusal_shortens_at_once_and_counts_only_where_others_are_taken() {
        let refuses = |_| Err(LoneTextFailure::Refused("400".to_owned()));
        let suspects = SuspectTexts::default();
        assert_eq!(alone(&suspects, TryLimits::REMEMBERED, DOWN, refuses), (Err("away"), "0123p".to_owned()));
        assert!(!suspects.has(&KEY));
        let (found, sent) = alone(&suspects, TryLimits::REMEMBERED, OK, refuses);
        assert_eq!((found, sent.as_str()), (Ok(Err("400".to_owned())), "0123p"));
        let (found, sent) =
            alone(&SuspectTexts::default(), TryLimits::REMEMBERED, OK, |_| Err(LoneTextFailure::Lasting("403".into())));
        assert_eq!((found, sent.as_str()), (Ok(Err("403".to_owned())), "0p1p2p3p"));
    }

    #[test]
    fn what_takes_the_whole_timeout_is_tried_four_times() {
        let slow = |_| Err(LoneTextFailure::Slow("no reply in time".to_owned()));
        let (found, sent) = alone(&SuspectTexts::default(), TryLimits::REMEMBERED, OK, slow);
        assert_eq!((found, sent.as_str()), (Ok(Err("no reply in time".to_owned())), "0p0p3p3p"));
    }

    #[test]
    fn an_endpoint_that_is_away_busy_or_unsteady_condemns_no_text() {
        let suspects = SuspectTexts::default();
        for _ in 0..20 {
            // It fails before anything has shown that it was there.
            assert_eq!(alone(&suspects, TryLimits::REMEMBERED, DOWN, |_| failed()).0, Err("away"));
            suspects.0.lock().unwrap().values().for_each(|found| assert_eq!(found.failures, 0));
            let busy = alone(&suspects, TryLimits::REMEMBERED, OK, |_| Err(LoneTextFailure::Away("busy")));
            assert_eq!(busy.0, Err("busy"));
        }
        // The probe needs several tries each time, and then the text is taken.
        let mut tries = 0;
        let (found, sent) =
            alone(&SuspectTexts::default(), TryLimits::REMEMBERED, &[Ok(ProbeOutcome::AfterFailures)], |_| {
                tries += 1;
                if tries < 6 { failed() } else { Ok(()) }
            });
        assert_eq!((found, sent.as_str()), (Ok(Ok(AcceptedReply { reply: (), halvings: 0 })), "0p0p0p0p0p0"));
        // Three requests in ten fail at random, probes among them.
        let mut state = 7_u64;
        for _ in 0..100 {
            let mut is_bad = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 10 < 3
            };
            let probes: Vec<_> = (0..40)
                .map(|_| Ok(if is_bad() { ProbeOutcome::AfterFailures } else { ProbeOutcome::AtOnce }))
                .collect();
            let script: Vec<bool> = (0..40).map(|_| is_bad()).collect();
            let mut script = script.into_iter();
            let (found, _) = alone(&SuspectTexts::default(), TryLimits::REMEMBERED, &probes, |_| match script.next() {
                Some(true) => Err(LoneTextFailure::Failed(String::new())),
                _ => Ok(()),
            });
            assert!(matches!(found, Ok(Ok(_))), "{found:?}");
        }
    }

    /// A text that crashes its endpoint, which then is away for a while, each time.
    #[test]
    fn a_text_after_which_the_endpoint_falls_silent_is_found() {
        let suspects = SuspectTexts::default();
        suspects.add([KEY]);
        let mut rounds = Vec::new();
        for _ in 0..6 {
            let probes = [Ok(ProbeOutcome::AtOnce), Err("away")];
            let (found, sent) = alone(&suspects, TryLimits::REMEMBERED, &probes, |_| failed());
            rounds.push(sent);
            if let Ok(found) = found {
                assert_eq!(found, Err("500".to_owned()));
                break;
            }
        }
        assert_eq!(rounds, ["p0p", "p0p", "p3p", "p3p", "p"]);
    }
}
