//! The familiarity score by its definition, from the final set: every window, neighbour and
//! session is looked up again for each part.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use memory::{
    index::{FamiliarityProbe, FamiliarityResult, LiveUnit, PartBody, TermAnalyzer, VectorRows},
    language::{greeted_name::greeted_name, person_names::capitalised_runs, times::find_times_in},
};
use types::model::{Score, SpeakerKind, UnitId};

use super::reference::{Reference, cosine};

struct Part<'a> {
    session: u64,
    unit: &'a LiveUnit,
    at: usize,
    bag: HashMap<u64, u32>,
}

impl<'u> Part<'u> {
    fn body(&self) -> PartBody<'u> {
        self.unit.body.part(self.at).expect("a part of the unit")
    }
}

impl Reference {
    /// The given parts are the best, in order, with the right scores, zero and count: to the digit in which
    /// scores are compared.
    pub(super) fn check_familiar(&self, probe: &FamiliarityProbe, got: &FamiliarityResult) {
        let mut words = TermAnalyzer::default();
        let mut parts: BTreeMap<(u64, u32, UnitId, usize), Part<'_>> = BTreeMap::new();
        for unit in self.bank(probe.bank) {
            for (at, part) in unit.body.parts().enumerate() {
                let bag = words.count(part.text).terms().map(|(t, n)| (t, u32::from(n))).collect();
                let session = unit.position.session;
                parts.insert((session, part.ordinal, unit.id, at), Part { session, unit, at, bag });
            }
        }
        let parts: Vec<Part<'_>> = parts.into_values().collect();
        let scores = scores(probe, &parts, self.window_words(), &mut words);
        let fixed = |score: f64| Score::from_f64(score / SCALE);
        let mut best: Vec<usize> = (0..parts.len()).collect();
        best.sort_by_key(|at| (Reverse(fixed(scores[*at])), *at));
        assert_eq!(got.parts_total, parts.len());
        let by_assistants = parts.iter().filter(|part| part.body().kind == Some(SpeakerKind::Assistant));
        assert_eq!(got.assistants, by_assistants.count());
        assert_eq!(got.best.len(), parts.len().min(probe.limit));
        for (found, at) in got.best.iter().zip(&best) {
            assert_eq!((found.unit.id, found.part), (parts[*at].unit.id, parts[*at].at));
            assert_eq!(fixed(found.score), fixed(scores[*at]));
            let terms = found.terms;
            assert_eq!(fixed(terms.own_sum() + terms.around + terms.session), fixed(scores[*at]));
        }
        if !parts.is_empty() {
            let tokens = |n: usize| -> f64 {
                let body = |at: &usize| parts[*at].body();
                let bytes: usize = best[..n].iter().map(|at| body(at).speaker.len() + body(at).text.len()).sum();
                2.0 * n as f64 + bytes as f64 / 4.2
            };
            let wanted = probe.zero * tokens(parts.len()).min(probe.scale_tokens as f64);
            let above = (1..=parts.len()).find(|n| tokens(*n) >= wanted).unwrap_or(parts.len()).min(1_000);
            assert_eq!(fixed(got.zero), fixed(scores[best[above - 1]]));
        }
    }
}

/// A familiarity is divided by this before it becomes a score in fixed point.
const SCALE: f64 = 16.0;

/// A logarithm as the score defines it, with 20 binary digits after the point. Exact logarithms differ in a
/// score by more than a millionth where a word is in nearly every window: its rarity is small then, and the
/// division by the bank's best magnifies what was rounded.
fn ln(x: f64) -> f64 {
    (x.ln() * f64::from(1 << 20)).round() / f64::from(1 << 20)
}

fn scores(probe: &FamiliarityProbe, parts: &[Part<'_>], window_words: u32, words: &mut TermAnalyzer) -> Vec<f64> {
    let asked: Vec<u64> = words.count(&probe.words).terms().map(|(t, _)| t).collect();
    let w = &probe.weights;
    let word_scores = bm25(parts, &asked, window_words);
    let most = word_scores.iter().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let learned = if probe.greeted_names { learned(parts) } else { HashMap::new() };
    let meant = |names: &[String]| -> Vec<String> {
        let of = |name: &String| {
            learned.get(name).filter(|_| parts.iter().all(|p| !is(std::slice::from_ref(name), p))).cloned()
        };
        names.iter().flat_map(|name| [Some(name.clone()), of(name)]).flatten().collect()
    };
    let (names_meant, subject) = (meant(&probe.names), meant(probe.subject.as_slice()));
    let speaks: Vec<bool> = parts.iter().map(|p| is(&names_meant, p)).collect();
    let acts: Vec<bool> = parts.iter().map(|p| is(&subject, p)).collect();
    let mut whole: Vec<&str> = parts.iter().zip(&speaks).filter(|(_, n)| **n).map(|(p, _)| p.body().speaker).collect();
    whole.sort_unstable();
    whole.dedup();
    let best = |query: &[i16], rows: VectorRows<'_>| cosine(query, rows).map(Score::as_f64);
    let meaning = |p: &Part<'_>, query: &[i16]| best(query, p.unit.vectors_of(p.at).sentences).unwrap();
    let pair =
        |p: &Part<'_>, query: &[i16]| best(query, p.unit.vectors_of(p.at).pair).unwrap_or_else(|| meaning(p, query));
    let scaled = |cosine: f64| 1.5 * cosine - 0.25;
    let flag = |set: bool| f64::from(u8::from(set));
    let first = |name: &str| name.split(' ').next().unwrap().to_lowercase();
    let present: Vec<String> = parts.iter().map(|p| first(p.body().speaker)).collect();
    let own: Vec<f64> = (0..parts.len())
        .map(|i| {
            let p = &parts[i];
            let body = p.body();
            let is_passage = body.range.is_some();
            let next = beside(parts, i, 1).1.map_or(p, |next| &parts[next]);
            let speaker = match (whole.len(), speaks[i]) {
                (0, _) => 0.5,
                (_, false) => 0.0,
                (1, true) => 1.0,
                (_, true) if !acts.contains(&true) => 0.5,
                (_, true) => {
                    if acts[i] {
                        0.75
                    } else {
                        0.25
                    }
                }
            };
            w.meaning * scaled(meaning(p, &probe.vector))
                + w.pair * scaled(pair(p, &probe.vector))
                + w.trio * (scaled(pair(p, &probe.vector)) + scaled(pair(next, &probe.vector))) / 2.0
                + w.words * word_scores[i] / most
                + speaker * w.speaker
                + time(probe, p)
                + if is_passage {
                    0.0
                } else {
                    let times = if probe.asks_time { w.times_asked } else { w.times };
                    times * f64::from(body.marks.times.min(2)) + w.names * f64::from(names(body.text, &present))
                        - w.asks * flag(body.marks.asks)
                }
        })
        .collect();
    let smooth: Vec<f64> = (0..parts.len())
        .map(|i| {
            let near = |distance| {
                let (before, after) = beside(parts, i, distance);
                before.into_iter().chain(after).map(|j| own[j]).reduce(f64::max).unwrap_or(0.0)
            };
            own[i] + w.next_turn * near(1) + w.second_turn * near(2)
        })
        .collect();
    (0..parts.len())
        .map(|i| {
            let mut session: Vec<f64> =
                (0..parts.len()).filter(|j| same_session(parts, i, *j)).map(|j| smooth[j]).collect();
            session.sort_by(|a, b| b.total_cmp(a));
            session.truncate(3);
            smooth[i] + w.session * session.iter().sum::<f64>() / session.len() as f64
        })
        .collect()
}

/// What the time of the question adds: all of both weights inside it, and shares near days that it names. The probes of
/// this test name a time on its own clock and ask for something else as well.
fn time(probe: &FamiliarityProbe, part: &Part<'_>) -> f64 {
    const DAY: i64 = 86_400_000;
    let Some(asked) = &probe.time else { return 0.0 };
    let (w, body) = (&probe.weights, part.body());
    let clock = |ms: i64, own: i32| ms + 1_000 * i64::from(asked.offset_seconds.unwrap_or(own));
    let said = clock(body.said_at.unix_ms, body.said_at.offset_seconds);
    let events: Vec<(i64, i64)> = match (asked.of_saying, part.unit.body.is_restated(), body.marks.times) {
        (true, ..) | (_, false, 0) => Vec::new(),
        (_, true, _) => part
            .unit
            .body
            .time
            .iter()
            .filter(|time| time.start_ms != time.end_ms || time.start_ms != body.said_at.unix_ms)
            .map(|time| (clock(time.start_ms, time.offset_seconds), clock(time.end_ms, time.offset_seconds)))
            .collect(),
        _ => find_times_in(body.text, body.marks.language, Some(body.said_at))
            .iter()
            .map(|time| time.interval)
            .map(|time| (clock(time.start_ms, time.offset_seconds), clock(time.end_ms, time.offset_seconds)))
            .collect(),
    };
    let is_short = |first: i64, last: i64| (last - first) / DAY < 8;
    let happens = |event: &(i64, i64), first: i64, last: i64| {
        let common = event.1.min(last) - event.0.max(first) + 1;
        let (own, whole) = (event.1 - event.0 + 1, last - first + 1);
        common > 0 && (common * 2 >= own || (own <= 15 * DAY && common * 2 >= whole))
    };
    let inside =
        |first: i64, last: i64| (first..=last).contains(&said) || events.iter().any(|e| happens(e, first, last));
    let any_short = asked.stretches.iter().any(|s| is_short(s.first_ms, s.last_ms));
    if asked.months.contains(&body.said_at.local().month())
        || asked.stretches.iter().any(|s| inside(s.first_ms, s.last_ms))
    {
        return w.month + if any_short { w.day } else { 0.0 };
    }
    let near = asked.stretches.iter().filter(|s| is_short(s.first_ms, s.last_ms)).map(|s| {
        let after = (said.div_euclid(DAY) - s.last_ms.div_euclid(DAY)).max(0);
        let told = if said < s.first_ms || after > 2 { 0.0 } else { (3 - after) as f64 / 3.0 };
        let month = if (s.around.0..=s.around.1).contains(&said) { w.month } else { 0.0 };
        month + w.day * told
    });
    near.fold(0.0, f64::max)
}

/// The speaker that a name means, for names of greetings in sessions of two: at least three greetings, and four in five
/// of those by that name, are to the same speaker.
fn learned(parts: &[Part<'_>]) -> HashMap<String, String> {
    let speaker = |p: &Part<'_>| p.body().speaker.to_lowercase();
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for p in parts {
        let mut others: Vec<String> = parts.iter().filter(|o| o.session == p.session).map(speaker).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|name| *name != speaker(p));
        if let ([other], Some(name)) = (&others[..], greeted_name(p.body().text)) {
            *counts.entry((name.to_lowercase(), other.clone())).or_default() += 1;
        }
    }
    let all = |name: &String| counts.iter().filter(|((n, _), _)| n == name).map(|(_, count)| count).sum::<usize>();
    let taught = counts.iter().filter(|((name, _), count)| **count >= 3 && 5 * **count >= 4 * all(name));
    taught.map(|((name, other), _)| (name.clone(), other.clone())).collect()
}

/// The number of names in a text that begin with the name of no one present, three at most.
fn names(text: &str, present: &[String]) -> u8 {
    let runs = capitalised_runs(text).into_iter().map(|run| text[run].split(' ').next().unwrap().to_lowercase());
    u8::try_from(runs.filter(|word| !present.contains(word)).take(3).count()).unwrap()
}

fn same_session(parts: &[Part<'_>], i: usize, j: usize) -> bool {
    parts.get(j).is_some_and(|p| p.session == parts[i].session)
}

/// The parts `distance` turns before and after a part in its session. Passages of a long turn do not count, and have
/// nothing beside them.
fn beside(parts: &[Part<'_>], i: usize, distance: usize) -> (Option<usize>, Option<usize>) {
    if parts[i].body().range.is_some() {
        return (None, None);
    }
    let counts = |j: &usize| same_session(parts, i, *j) && parts[*j].body().range.is_none();
    ((0..i).rev().filter(counts).nth(distance - 1), (i + 1..parts.len()).filter(counts).nth(distance - 1))
}

fn is(names: &[String], part: &Part<'_>) -> bool {
    let name = part.body().speaker.to_lowercase();
    names.iter().any(|n| *n == name || name.split(' ').next() == Some(n))
}

/// Written out here on purpose: it must not share a mistake with `memory/index/lexical/bm25.rs`.
fn bm25(parts: &[Part<'_>], terms: &[u64], window_words: u32) -> Vec<f64> {
    let words = |i: &usize| parts[*i].bag.values().sum::<u32>().max(1);
    let is_passage = |i: &usize| parts[*i].body().range.is_some();
    let counts = |i: usize, j: usize| {
        let between: Vec<usize> = (i.min(j) + 1..i.max(j)).filter(|k| !is_passage(k)).collect();
        let is_near = || between.len() < 2 || between.iter().map(words).sum::<u32>() < window_words;
        i == j || (same_session(parts, i, j) && !is_passage(&i) && !is_passage(&j) && is_near())
    };
    let windows: Vec<HashMap<u64, u32>> = (0..parts.len())
        .map(|i| {
            let mut window: HashMap<u64, u32> = HashMap::new();
            for (j, part) in parts.iter().enumerate() {
                if counts(i, j) {
                    for (term, count) in &part.bag {
                        *window.entry(*term).or_default() += count * if i == j { 2 } else { 1 };
                    }
                }
            }
            window
        })
        .collect();
    let length = |w: &HashMap<u64, u32>| w.values().map(|n| f64::from(*n)).sum::<f64>();
    let all = parts.len() as f64;
    let mean = (windows.iter().map(length).sum::<f64>() / all).max(1.0);
    let mut scores = vec![0.0; parts.len()];
    for term in terms {
        let with = windows.iter().filter(|w| w.contains_key(term)).count() as f64;
        let rarity = ln(1.0 + (all - with + 0.5) / (with + 0.5));
        for (score, window) in scores.iter_mut().zip(&windows) {
            if let Some(count) = window.get(term).map(|n| f64::from(*n)) {
                *score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length(window) / mean));
            }
        }
    }
    scores
}
