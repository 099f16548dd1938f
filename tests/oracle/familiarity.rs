//! The familiarity score by its definition, from the final set: every window, neighbour and
//! session is looked up anew for each part.

use std::collections::{BTreeMap, HashMap};

use ripplemem::{
    language::names::capitalised,
    memory::{FamiliarParts, FamiliarityProbe, LiveUnit, Words, dot_reference},
    model::{Score, UnitId},
};

use super::reference::Reference;

struct Part<'a> {
    session: u64,
    unit: &'a LiveUnit,
    at: usize,
    bag: HashMap<u64, u32>,
}

impl Reference {
    /// The given parts are the best, in order, with the right scores, zero and count.
    pub(super) fn check_familiar(&self, probe: &FamiliarityProbe, got: &FamiliarParts) {
        let mut words = Words::default();
        let mut parts: BTreeMap<(u64, u32, UnitId, usize), Part<'_>> = BTreeMap::new();
        for unit in self.bank(probe.bank) {
            for (at, part) in unit.body.parts.iter().enumerate() {
                let bag = words.count(&part.text).terms().map(|(t, n)| (t, u32::from(n))).collect();
                let session = unit.position.session;
                parts.insert((session, part.ordinal, unit.id, at), Part { session, unit, at, bag });
            }
        }
        let parts: Vec<Part<'_>> = parts.into_values().collect();
        let scores = scores(probe, &parts, &mut words);
        assert_eq!(got.parts_total, parts.len());
        assert_eq!(got.best.len(), parts.len().min(probe.limit));
        let mut sorted = scores.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        for (rank, found) in got.best.iter().enumerate() {
            let at = parts.iter().position(|p| p.unit.id == found.unit.id && p.at == found.part).unwrap();
            assert!((found.score - scores[at]).abs() < 1e-6, "rank {rank}: {} {}", found.score, scores[at]);
            assert!((found.score - sorted[rank]).abs() < 1e-6, "rank {rank} is not the next best");
            let terms = found.terms;
            assert!((terms.own() + terms.around + terms.session - found.score).abs() < 1e-6);
        }
        if !parts.is_empty() {
            let compared = parts.len().min(probe.scale_parts);
            let above = ((compared as f64 * probe.zero) as usize).min(compared - 1);
            assert!((got.zero - sorted[above]).abs() < 1e-6);
        }
    }
}

fn scores(probe: &FamiliarityProbe, parts: &[Part<'_>], words: &mut Words) -> Vec<f64> {
    let asked: Vec<(u64, f64)> = words.count(&probe.words).terms().map(|(t, _)| (t, 1.0)).collect();
    let mut alike: BTreeMap<u64, f64> = BTreeMap::new();
    for (word, weight) in probe.synonyms.iter().flatten() {
        for (term, _) in words.count(word).terms().filter(|(t, _)| asked.iter().all(|(a, _)| a != t)) {
            let known = alike.entry(term).or_insert(*weight);
            *known = known.max(*weight);
        }
    }
    let w = &probe.weights;
    let word_scores = bm25(parts, &asked);
    let synonym_scores = bm25(parts, &alike.into_iter().collect::<Vec<_>>());
    let most = word_scores.iter().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let speaks: Vec<bool> = parts.iter().map(|p| is(&probe.names, p)).collect();
    let acts: Vec<bool> = parts.iter().map(|p| is(probe.subject.as_slice(), p)).collect();
    let mut whole: Vec<&str> =
        parts.iter().zip(&speaks).filter(|(_, n)| **n).map(|(p, _)| p.unit.body.parts[p.at].speaker.as_str()).collect();
    whole.sort_unstable();
    whole.dedup();
    let topics: Vec<u64> = words.count(&probe.topics).terms().map(|(t, _)| t).collect();
    let with = |t: &u64| parts.iter().filter(|p| p.bag.contains_key(t)).count();
    let rarity = |t: &u64| (1.0 + parts.len() as f64 / with(t) as f64).ln();
    let held = |keep: &dyn Fn(&u64) -> bool| topics.iter().filter(|t| with(t) > 0 && keep(t)).map(rarity).sum::<f64>();
    let cosine = |p: &Part<'_>, query: &[i16], rows: &[i16]| {
        rows.chunks(p.unit.width).map(|row| Score(dot_reference(query, row)).as_f64()).reduce(f64::max)
    };
    let meaning = |p: &Part<'_>, query: &[i16]| cosine(p, query, p.unit.vectors_of(p.at).sentences).unwrap();
    let pair = |p: &Part<'_>, query: &[i16]| {
        cosine(p, query, p.unit.vectors_of(p.at).pair).unwrap_or_else(|| meaning(p, query))
    };
    let flag = |set: bool| f64::from(u8::from(set));
    let first = |name: &str| name.split(' ').next().unwrap().to_lowercase();
    let present: Vec<String> = parts.iter().map(|p| first(&p.unit.body.parts[p.at].speaker)).collect();
    let own: Vec<f64> = (0..parts.len())
        .map(|i| {
            let p = &parts[i];
            let body = &p.unit.body.parts[p.at];
            let before = i.checked_sub(1).filter(|j| same_session(parts, i, *j));
            let next = if same_session(parts, i, i + 1) { &parts[i + 1] } else { p };
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
            let reply = before.is_some_and(|j| parts[j].unit.body.parts[parts[j].at].marks.asks);
            let date = body.said_at.local().date();
            let month = probe.months.iter().any(|(y, m)| *m == date.month() && y.is_none_or(|y| y == date.year()));
            let length: u32 = p.bag.values().sum();
            let topics_held =
                if held(&|_| true) > 0.0 { held(&|t| p.bag.contains_key(t)) / held(&|_| true) } else { 0.0 };
            let first_person = probe.first_person_vector.as_ref().map_or(0.0, |v| w.own_pair * pair(p, v));
            w.meaning * meaning(p, &probe.vector)
                + w.pair * pair(p, &probe.vector)
                + w.trio * (pair(p, &probe.vector) + pair(next, &probe.vector)) / 2.0
                + first_person
                + w.words * word_scores[i] / most
                + w.synonyms * synonym_scores[i] / most
                + w.own_words * topics_held
                + speaker * (w.speaker + w.reply * flag(reply))
                + w.month * flag(month)
                + if probe.asks_time { w.times_asked } else { w.times } * f64::from(body.marks.times.min(2))
                + w.quotes * flag(body.marks.quotes)
                + w.names * f64::from(names(&body.text, &present))
                + w.opener * flag(before.is_none())
                + w.length * f64::from(1 + length).ln()
                - w.asks * flag(body.marks.asks)
        })
        .collect();
    let at = |i: usize, distance: usize| [i.checked_sub(distance), Some(i + distance)].into_iter().flatten();
    let smooth: Vec<f64> = (0..parts.len())
        .map(|i| {
            let near = |distance| {
                at(i, distance).filter(|j| same_session(parts, i, *j)).map(|j| own[j]).reduce(f64::max).unwrap_or(0.0)
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

/// Names in a text that begin with no name of those who are present, three at most.
fn names(text: &str, present: &[String]) -> u8 {
    let runs = capitalised(text).into_iter().map(|run| text[run].split(' ').next().unwrap().to_lowercase());
    u8::try_from(runs.filter(|word| !present.contains(word)).take(3).count()).unwrap()
}

fn same_session(parts: &[Part<'_>], i: usize, j: usize) -> bool {
    parts.get(j).is_some_and(|p| p.session == parts[i].session)
}

fn is(names: &[String], part: &Part<'_>) -> bool {
    let name = part.unit.body.parts[part.at].speaker.to_lowercase();
    names.iter().any(|n| *n == name || name.split(' ').next() == Some(n))
}

/// Written out here on purpose: it must not share a mistake with `memory/bm25.rs`.
fn bm25(parts: &[Part<'_>], terms: &[(u64, f64)]) -> Vec<f64> {
    let windows: Vec<HashMap<u64, u32>> = (0..parts.len())
        .map(|i| {
            let mut window: HashMap<u64, u32> = HashMap::new();
            for j in i.saturating_sub(2)..i + 3 {
                if same_session(parts, i, j) {
                    for (term, count) in &parts[j].bag {
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
    for (term, weight) in terms {
        let with = windows.iter().filter(|w| w.contains_key(term)).count() as f64;
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (score, window) in scores.iter_mut().zip(&windows) {
            if let Some(count) = window.get(term).map(|n| f64::from(*n)) {
                *score += weight * rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length(window) / mean));
            }
        }
    }
    scores
}
