//! A live source as a running task: from its platform to the turns log, until it is stopped.
//!
//! In: a log, and the settings of a source. Out: turns and the position behind them, transaction by
//! transaction; then the platform's confirmation. After any failure that a retry may fix, of the platform or of the
//! log, the source is opened again at its durable position. When a bank has been silent for longer than the gap of its
//! windows, an idle mark closes them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use super::PipelineError;
use logs::{LogError, SourceLog, SourceTransaction, SourceWriter};
use sources::live::{LiveBatch, LiveError, LiveSource, WebhookDelivery};
use types::{
    backoff::Backoff,
    config::LiveSourceSettings,
    model::{Bank, EventTime, IdleMark, TurnEvent},
};

/// How long a source waits for news before it checks whether it should stop.
const WAIT: Duration = Duration::from_secs(3);
/// The first and the longest pause after a refusal, which only a change at the platform or in the settings can end.
/// Discord blocks a bot that begins a thousand sessions a day.
const REFUSED: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(600));
/// The skip reason under which turns that are not kept are counted.
const FORGOTTEN: &str = "forgotten";
/// How often a pause checks whether it should end.
const SLICE: Duration = Duration::from_millis(50);

/// What happens while a source is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveSourceEvent {
    /// The platform answers, and everything since the last run is on its way.
    Following,
    /// A transaction is durable.
    Committed {
        /// Its turns, edits and deletions.
        events: u64,
        /// Its dead letters.
        rejects: u64,
        /// What was read and is no turn, by reason; under `forgotten`, the turns that are not kept because they are
        /// deleted, as far as this process knows.
        skipped: BTreeMap<&'static str, u64>,
    },
    /// Something that the user should know.
    Notice(String),
    /// The source is opened again after a pause.
    Interrupted {
        /// Why.
        problem: String,
        /// The pause.
        after: Duration,
    },
}

/// How a source is followed.
#[derive(Debug, Clone, Copy)]
pub struct LiveSourceOptions<'a> {
    /// The source.
    pub settings: &'a LiveSourceSettings,
    /// A bank that is silent for longer gets an idle mark.
    pub gap: Duration,
    /// The pause after another writer has taken the source over.
    pub fenced_pause: Duration,
}

/// Follows a source until `stop`. `arriving` receives the requests of its webhook.
///
/// # Errors
/// [`PipelineError`] that no retry can fix; everything that was confirmed is in the log.
pub fn follow_source(
    log: &dyn SourceLog,
    run: LiveSourceOptions<'_>,
    arriving: &Receiver<WebhookDelivery>,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(LiveSourceEvent),
) -> Result<(), PipelineError> {
    let mut silence = SilenceTracker::default();
    let (mut lost, mut refused) = (Backoff::SERVICE, REFUSED);
    while !stop() {
        let mut committed = false;
        let error = follow_once(log, run, arriving, stop, &mut silence, &mut |event| {
            committed |= matches!(event, LiveSourceEvent::Committed { .. });
            tell(event);
        });
        let Err(error) = error else { break };
        if committed {
            lost.reset();
            refused.reset();
        }
        let after = match &error {
            PipelineError::Live(LiveError::Limited { after, .. }) => *after,
            // A position that cannot be read stops only its source, until an operator writes another one.
            PipelineError::Live(LiveError::Refused { .. } | LiveError::Position { .. }) => refused.pause(),
            PipelineError::Log(LogError::Fenced { .. }) => run.fenced_pause,
            PipelineError::Live(LiveError::Lost(_)) | PipelineError::Log(LogError::Cluster { retriable: true, .. }) => {
                lost.jittered()
            }
            _ => return Err(error),
        };
        tell(LiveSourceEvent::Interrupted { problem: error.to_string(), after });
        let until = Instant::now() + after;
        while Instant::now() < until && !stop() {
            std::thread::sleep(SLICE.min(after));
        }
    }
    Ok(())
}

/// Follows a source until `stop` or the first error.
fn follow_once(
    log: &dyn SourceLog,
    run: LiveSourceOptions<'_>,
    arriving: &Receiver<WebhookDelivery>,
    stop: &dyn Fn() -> bool,
    silence: &mut SilenceTracker,
    tell: &mut dyn FnMut(LiveSourceEvent),
) -> Result<(), PipelineError> {
    let (mut writer, state) = log.take_source(&run.settings.name)?;
    let (cursor, names) = (state.cursor.as_deref(), state.names.as_deref());
    let mut source = LiveSource::open(run.settings, cursor, names, arriving.clone())?.with_id_salt(log.id_salt()?);
    let mut cursor = state.cursor;
    let mut is_following = false;
    while !stop() {
        let batch = source.next(WAIT)?;
        if !std::mem::replace(&mut is_following, true) {
            tell(LiveSourceEvent::Following);
        }
        if let Some(mut batch) = batch {
            silence.heard(&batch.events);
            cursor = Some(batch.cursor.clone());
            let notices = std::mem::take(&mut batch.notices);
            let forgotten = forgotten(log, &batch.events)?;
            if forgotten > 0 {
                *batch.skipped.entry(FORGOTTEN).or_default() += forgotten;
            }
            let counts = LiveSourceEvent::Committed {
                events: batch.events.len() as u64,
                rejects: batch.rejects.len() as u64,
                skipped: std::mem::take(&mut batch.skipped),
            };
            commit(&mut *writer, batch)?;
            // Reported before the sender is answered, so that a sender with an answer finds its turns counted.
            tell(counts);
            source.committed()?;
            notices.into_iter().for_each(|notice| tell(LiveSourceEvent::Notice(notice)));
        } else if let Some(cursor) = &cursor {
            let events = silence.marks(Timestamp::now().as_millisecond(), run.gap);
            if !events.is_empty() {
                commit(&mut *writer, LiveBatch { events, cursor: cursor.clone(), ..LiveBatch::default() })?;
            }
        }
    }
    Ok(())
}

/// How many of the events are turns that are not kept because they are deleted.
fn forgotten(log: &dyn SourceLog, events: &[TurnEvent]) -> Result<u64, LogError> {
    let mut count = 0;
    for event in events {
        if let TurnEvent::Turn(turn) = event {
            let id = log.deleted_form(&turn.turn)?;
            count += u64::from(log.deletions().covers(&turn.bank, &id, turn.version));
        }
    }
    Ok(count)
}

fn commit(writer: &mut dyn SourceWriter, batch: LiveBatch) -> Result<(), LogError> {
    let LiveBatch { events, rejects, cursor, names, .. } = batch;
    writer.commit(&SourceTransaction { events, dead_letters: rejects, cursor, names })
}

/// The banks that have an open window, as far as this run knows.
#[derive(Default)]
struct SilenceTracker {
    /// The time of each bank's last turn, in milliseconds since 1970.
    last_ms: BTreeMap<Bank, i64>,
}

impl SilenceTracker {
    fn heard(&mut self, events: &[TurnEvent]) {
        for event in events {
            if let TurnEvent::Turn(turn) = event {
                let last = self.last_ms.entry(turn.bank.clone()).or_insert(turn.time.unix_ms);
                *last = turn.time.unix_ms.max(*last);
            }
        }
    }

    /// An idle mark for each bank that is silent for longer than `gap`, once.
    fn marks(&mut self, now_ms: i64, gap: Duration) -> Vec<TurnEvent> {
        let gap_ms = i64::try_from(gap.as_millis()).unwrap_or(i64::MAX);
        let Ok(time) = EventTime::new(now_ms, 0) else { return Vec::new() };
        let mut marks = Vec::new();
        self.last_ms.retain(|bank, last| {
            let is_open = now_ms.saturating_sub(*last) <= gap_ms;
            if !is_open {
                marks.push(TurnEvent::Idle(IdleMark { bank: bank.clone(), time }));
            }
            is_open
        });
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_bank_is_marked_once() {
        let turn = |bank: &str, time: &str| {
            let json = format!(r#"{{"bank":"{bank}","turn":"t","speaker":"Ann","text":"hi","time":"{time}"}}"#);
            TurnEvent::from_json(json.as_bytes()).unwrap()
        };
        let ms = |time: &str| EventTime::parse(time).unwrap().unix_ms;
        let mut silence = SilenceTracker::default();
        silence.heard(&[turn("a", "2024-05-01T10:00:00Z"), turn("b", "2024-05-01T10:30:00Z")]);
        silence.heard(&[turn("a", "2024-05-01T09:00:00Z")]);
        let gap = Duration::from_secs(3_600);
        assert_eq!(silence.marks(ms("2024-05-01T11:00:00Z"), gap), []);
        let now = "2024-05-01T11:00:01Z";
        let marks = silence.marks(ms(now), gap);
        let [TurnEvent::Idle(mark)] = &marks[..] else { panic!("{marks:?}") };
        assert_eq!((mark.bank.as_str(), mark.time), ("a", EventTime::parse(now).unwrap()));
        assert_eq!(silence.marks(ms("2024-05-01T11:20:00Z"), gap), []);
    }
}
