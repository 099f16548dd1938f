//! The session of a turn that names none (decision 5).
//!
//! In: event times. Out: the number of the first session whose range of event times, widened by the gap on both sides,
//! contains a time; otherwise a new number. Sessions never merge, even if their ranges come to overlap. Looking up and
//! growing take logarithmic time in the number of sessions. An edit of a session's first or last time takes linear time
//! in its turns and, if it moves that time inwards, in the number of sessions.

use types::chunked_map::ChunkedMap;

/// The unnamed sessions of a bank, by number.
#[derive(Debug, Default)]
pub(super) struct AutoSessions {
    gap_ms: i64,
    /// For each session, the first and the last of its event times.
    ranges: ChunkedMap<u32, (i64, i64)>,
    /// Disjoint stretches of time, by start, each with the lowest number among the sessions whose widened range covers
    /// it.
    cover: ChunkedMap<i64, SessionCover>,
}

#[derive(Debug, Clone, Copy)]
struct SessionCover {
    /// Exclusive.
    end_ms: i64,
    session: u32,
}

impl AutoSessions {
    pub(super) fn new(gap_ms: i64) -> Self {
        Self { gap_ms, ..Self::default() }
    }

    /// The session that a turn of this time joins; a new number if there is none.
    pub(super) fn session_at(&self, time_ms: i64) -> u32 {
        match self.stretch_at(time_ms) {
            Some((_, stretch)) => stretch.session,
            None => self.ranges.last().map_or(0, |(last, _)| last.saturating_add(1)),
        }
    }

    /// Adds a turn's time to its session.
    pub(super) fn add(&mut self, session: u32, time_ms: i64) {
        let (start, end) = self.widened_range(time_ms, time_ms);
        let Some(&(first, last)) = self.ranges.get(session) else {
            self.ranges.insert(session, (time_ms, time_ms));
            self.cover_gaps(session, start, end);
            return;
        };
        if time_ms < first {
            self.cover_gaps(session, start, self.widened_range(first, first).0);
        } else if time_ms > last {
            self.cover_gaps(session, self.widened_range(last, last).1, end);
        }
        self.ranges.insert(session, (first.min(time_ms), last.max(time_ms)));
    }

    /// Replaces the time of a turn that was added before; `times` are the times of the session's turns after that.
    pub(super) fn retime(&mut self, session: u32, old_ms: i64, new_ms: i64, times: impl Iterator<Item = i64>) {
        self.add(session, new_ms);
        let Some(range) = self.ranges.get_mut(session) else { return };
        if range.0 < old_ms && old_ms < range.1 {
            return;
        }
        let left = times.fold((new_ms, new_ms), |(first, last), time| (first.min(time), last.max(time)));
        if std::mem::replace(range, left) == left {
            return;
        }
        self.cover = ChunkedMap::default();
        let ranges: Vec<_> = self.ranges.iter().copied().collect();
        for (number, (first, last)) in ranges {
            let (start, end) = self.widened_range(first, last);
            self.cover_gaps(number, start, end);
        }
    }

    /// A session's range, widened by the gap, with an exclusive end.
    fn widened_range(&self, first_ms: i64, last_ms: i64) -> (i64, i64) {
        (first_ms.saturating_sub(self.gap_ms), last_ms.saturating_add(self.gap_ms).saturating_add(1))
    }

    fn stretch_at(&self, time_ms: i64) -> Option<(i64, SessionCover)> {
        let (start, stretch) = self.cover.before(time_ms.saturating_add(1)).next()?;
        (time_ms < stretch.end_ms).then_some((*start, *stretch))
    }

    /// Gives a session the parts of `[start, end)` that no earlier session covers.
    fn cover_gaps(&mut self, session: u32, start_ms: i64, end_ms: i64) {
        let mut at = start_ms;
        while at < end_ms {
            match self.stretch_at(at) {
                Some((_, found)) if found.session <= session => at = found.end_ms,
                Some((found_start, found)) => {
                    self.cover.remove(found_start);
                    self.put(found_start, at, found.session);
                    let stop = found.end_ms.min(end_ms);
                    self.put(stop, found.end_ms, found.session);
                    self.put(at, stop, session);
                    at = stop;
                }
                None => {
                    let next = self.cover.from(at).next().map_or(end_ms, |(start, _)| *start);
                    let stop = next.min(end_ms);
                    self.put(at, stop, session);
                    at = stop;
                }
            }
        }
    }

    /// Inserts a stretch, merged with adjacent ones of the same session.
    fn put(&mut self, start_ms: i64, end_ms: i64, session: u32) {
        if start_ms >= end_ms {
            return;
        }
        let (mut start, mut end) = (start_ms, end_ms);
        if let Some((before, stretch)) = self.cover.before(start_ms).next()
            && (stretch.end_ms, stretch.session) == (start_ms, session)
        {
            start = *before;
        }
        if let Some(after) = self.cover.get(end_ms).filter(|after| after.session == session) {
            end = after.end_ms;
            self.cover.remove(end_ms);
        }
        self.cover.insert(start, SessionCover { end_ms: end, session });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Follows decision 5 by a scan of all sessions.
    fn plain(sessions: &[Vec<i64>], time: i64, gap: i64) -> u32 {
        let holds = |times: &Vec<i64>| {
            let (first, last) = (times.iter().min(), times.iter().max());
            matches!((first, last), (Some(a), Some(b)) if a - gap <= time && time <= b + gap)
        };
        sessions.iter().position(holds).unwrap_or(sessions.len()) as u32
    }

    #[test]
    fn a_session_that_grows_over_a_later_one_gets_the_turns_of_their_overlap() {
        let mut auto = AutoSessions::new(60);
        let found: Vec<u32> = [0, 100, 160, 50, 110, 170, 161, 235]
            .into_iter()
            .map(|time| {
                let session = auto.session_at(time);
                auto.add(session, time);
                session
            })
            .collect();
        assert_eq!(found, [0, 1, 1, 0, 0, 0, 0, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn finds_the_session_that_a_scan_of_all_sessions_finds(
            steps in proptest::collection::vec((0i64..400, any::<prop::sample::Index>(), 0..5u8), 1..80),
            gap in 1i64..40,
        ) {
            let mut auto = AutoSessions::new(gap);
            let mut sessions: Vec<Vec<i64>> = Vec::new();
            for (time, which, kind) in steps {
                if kind == 0 && !sessions.is_empty() {
                    let number = which.index(sessions.len());
                    let turn = which.index(sessions[number].len());
                    let old = std::mem::replace(&mut sessions[number][turn], time);
                    auto.retime(number as u32, old, time, sessions[number].iter().copied());
                } else {
                    let number = plain(&sessions, time, gap);
                    prop_assert_eq!(auto.session_at(time), number);
                    auto.add(number, time);
                    if number as usize == sessions.len() {
                        sessions.push(Vec::new());
                    }
                    sessions[number as usize].push(time);
                }
                for probe in -50..450 {
                    prop_assert_eq!(auto.session_at(probe), plain(&sessions, probe, gap), "at {}", probe);
                }
            }
        }
    }
}
