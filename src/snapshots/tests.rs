//! Tests that snapshots of random histories are restored exactly although the store fails now and then.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use proptest::prelude::*;

use super::{
    store::{ObjectBackend, SnapshotStore},
    update_tables::{ChoiceColumns, HeadColumns, TurnColumns, UpdateTable, batches},
    *,
};
use memory::index::{ChoiceChanges, GraphChoice};
use types::model::{
    Bank, Channel, Cues, EventTime, Language, MemoryKey, MemoryRecord, Metadata, ModelRef, SCHEMA_VERSION, Score,
    SessionId, TextFeatures, Turn, Unit, UnitId, UnitPart, Vector, WindowId, WindowState, WindowTurn,
};

/// A store in memory whose calls fail as planned.
#[derive(Clone, Default)]
pub(super) struct FaultyStore {
    pub(super) objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    /// Calls until the next failures, their number, and whether failed calls take effect.
    pub(super) failures: Arc<Mutex<Vec<(u32, u32, bool)>>>,
}

impl FaultyStore {
    fn call<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Bytes>) -> T) -> Result<T, String> {
        let mut failures = self.failures.lock().unwrap();
        let mut objects = self.objects.lock().unwrap();
        match failures.last_mut() {
            Some((0, 0, _)) => drop(failures.pop()),
            Some((0, left, effective)) => {
                *left -= 1;
                if *effective {
                    work(&mut objects);
                }
                return Err("the store is unavailable".to_owned());
            }
            Some((calls, ..)) => *calls -= 1,
            None => {}
        }
        Ok(work(&mut objects))
    }
}

impl ObjectBackend for FaultyStore {
    fn get(&self, path: &str) -> Result<Option<Bytes>, String> {
        self.call(|objects| objects.get(path).cloned())
    }

    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String> {
        self.call(|objects| {
            let done = !fresh || !objects.contains_key(path);
            if done {
                objects.insert(path.to_owned(), bytes);
            }
            done
        })
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let under = format!("{directory}/");
        self.call(|objects| objects.keys().filter(|path| path.starts_with(&under)).cloned().collect())
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        self.call(|objects| drop(objects.remove(path)))
    }
}

fn bank(n: u64) -> Bank {
    Bank::parse(["a", "b/c", "d"][n as usize % 3]).unwrap()
}

/// A record of a bank, with one unit for each turn that is not deleted.
fn record(key: &MemoryKey, version: u64, deleted: &BTreeSet<String>) -> MemoryRecord {
    let time = EventTime::new(1_700_000_000_000 + version as i64, 3_600).unwrap();
    let vector = |n: u64| (0..8).map(|i| ((n * 31 + i * 7) % 13) as f32 / 13.0).collect::<Vector>();
    let names = |n: u64| format!("{}-{}-{n}", key.window.session.0, key.window.start);
    let turns: Vec<WindowTurn> = (0..1 + version % 3)
        .map(|n| {
            let is_deleted = deleted.contains(&names(n));
            let text = if is_deleted { String::new() } else { format!("secret {} v{version}", names(n)) };
            let attachments = match n {
                1 => vec![types::model::Attachment { caption: Some("a kite".to_owned()), ..Default::default() }],
                _ => Vec::new(),
            };
            let turn = Turn {
                bank: key.bank.clone(),
                turn: names(n),
                version,
                speaker: "Ann".to_owned(),
                kind: None,
                text,
                time,
                session: (n == 0).then(|| "s".to_owned()),
                thread: None,
                reply_to: (n == 1).then(|| names(0)),
                attachments,
                metadata: (n == 1).then(|| Metadata::from_json(r#"{"a":[1.0,"kite"]}"#)).flatten(),
                recall: n != 1 || version.is_multiple_of(2),
            };
            WindowTurn {
                turn: Arc::new(turn),
                ordinal: n as u32,
                context: n == 0 && version.is_multiple_of(2),
                deleted: is_deleted,
                source_offset: version * 10 + n,
                stored: None,
            }
        })
        .collect();
    let units = turns.iter().filter(|of| !of.deleted).map(|of| {
        let sources = vec![of.turn.turn.clone()];
        let cues = Cues { participants: vec!["ann".to_owned()], ..Cues::default() };
        let own = if of.ordinal == 1 { vec![vector(version), vector(version + 1)] } else { Vec::new() };
        Unit {
            id: UnitId::of(&key.bank, &key.window, &sources, &of.turn.text, &cues),
            restatement: of.turn.text.clone(),
            vector: vector(version + u64::from(of.ordinal)),
            cues,
            said_at: time,
            sources,
            ordinal: of.ordinal,
            parts: vec![UnitPart {
                turn: of.turn.turn.clone(),
                ordinal: of.ordinal,
                speaker: "Ann".to_owned(),
                kind: None,
                said_at: time,
                text: of.turn.text.clone(),
                range: None,
                marks: TextFeatures {
                    times: 1,
                    asks: version.is_multiple_of(2),
                    quotes: false,
                    language: Language::Th,
                },
                vectors: own,
                pair: (of.ordinal == 2).then(|| vector(version + 5)),
            }],
        }
    });
    MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: key.bank.clone(),
        window: key.window.clone(),
        state: if key.turn.is_some() { WindowState::Open } else { WindowState::Final },
        turns_hash: String::new(),
        extractor: "rules/2".to_owned(),
        cutter: None,
        model: ModelRef { name: "m".to_owned(), hash: "h".to_owned() },
        units: units.collect(),
        turns,
        statements: None,
    }
}

/// The live records by key, and the live choices.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LiveModel {
    records: BTreeMap<Vec<u8>, MemoryRecord>,
    choices: BTreeSet<(Bank, GraphChoice)>,
}

/// Records by key, with their turns and units; choices.
pub(super) type RestoredContents = (BTreeMap<Vec<u8>, (Vec<WindowTurn>, Vec<u64>)>, BTreeSet<(Bank, GraphChoice)>);

impl LiveModel {
    pub(super) fn of<'r>(shards: impl IntoIterator<Item = &'r RestoredSnapshot>) -> RestoredContents {
        let (mut records, mut choices) = RestoredContents::default();
        for restored in shards {
            records.extend(restored.records.iter().map(|record| {
                let units = record.extraction.units.iter().map(|unit| unit.id.0).collect();
                (record.key.to_bytes(), (record.window_turns.clone(), units))
            }));
            choices.extend(restored.choices.iter().flat_map(|(bank, of)| of.iter().map(|c| (bank.clone(), *c))));
        }
        (records, choices)
    }

    /// The same for the expected state.
    pub(super) fn expected(&self) -> RestoredContents {
        let records = self.records.iter().map(|(key, record)| {
            let mut units: Vec<u64> = record.units.iter().map(|unit| unit.id.0).collect();
            units.sort_unstable();
            (key.clone(), (record.turns.clone(), units))
        });
        (records.collect(), self.choices.clone())
    }
}

/// Offsets are six hours apart.
fn appended(offset: u64) -> i64 {
    (1 + offset as i64) * 6 * 3_600_000
}

pub(super) struct RandomHistory {
    dice: u64,
    live: [LiveModel; 2],
    offsets: [u64; 2],
    deleted: BTreeSet<String>,
    /// Whether no turn is ever deleted.
    edits_only: bool,
    /// Whether everything is in partition 0.
    one_shard: bool,
}

impl RandomHistory {
    pub(super) fn new(dice: u64, edits_only: bool, one_shard: bool) -> Self {
        Self { dice, live: Default::default(), offsets: [0; 2], deleted: BTreeSet::new(), edits_only, one_shard }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % n
    }

    /// A read of one partition with a few records, and some choices.
    pub(super) fn next(&mut self) -> (MemoryLogRead, ChoiceChanges) {
        let partition = self.below(if self.one_shard { 1 } else { 2 });
        let at = partition as usize;
        let mut records = Vec::new();
        for _ in 0..1 + self.below(4) {
            self.offsets[at] += 1;
            let window = WindowId { session: SessionId(format!("s{}", self.below(2))), start: self.below(3) as u32 };
            let turn = (self.below(3) == 0).then(|| format!("t{}", self.below(2)));
            // Partition 0 has the banks a and d, partition 1 has b/c.
            let bank = bank(if at == 1 { 1 } else { self.below(2) * 2 });
            let key = MemoryKey { bank: bank.clone(), window, turn, part: 0 };
            let version = self.offsets[at];
            if self.below(6) == 0 && !self.edits_only {
                let turn = self.below(3);
                self.deleted.insert(format!("{}-{}-{turn}", key.window.session.0, key.window.start));
            }
            let value = (self.below(5) > 0).then(|| record(&key, version, &self.deleted));
            match &value {
                Some(value) => drop(self.live[at].records.insert(key.to_bytes(), value.clone())),
                None => drop(self.live[at].records.remove(&key.to_bytes())),
            }
            records.push((key, value));
            if self.below(4) == 0 {
                // A part of a long record has units only, none of them deleted.
                let window = WindowId { session: SessionId("long".to_owned()), start: 100 + self.below(3) as u32 };
                let key = MemoryKey { bank: bank.clone(), window, turn: None, part: 1 };
                let part = MemoryRecord { turns: Vec::new(), ..record(&key, version, &BTreeSet::new()) };
                let value = (self.below(3) > 0).then_some(part);
                match &value {
                    Some(value) => drop(self.live[at].records.insert(key.to_bytes(), value.clone())),
                    None => drop(self.live[at].records.remove(&key.to_bytes())),
                }
                records.push((key, value));
            }
        }
        let mut changes: BTreeMap<(Bank, GraphChoice), isize> = BTreeMap::new();
        let known: Vec<(Bank, UnitId)> = records
            .iter()
            .flat_map(|(key, value)| value.iter().flat_map(|v| &v.units).map(|unit| (key.bank.clone(), unit.id)))
            .collect();
        for (bank, id) in known {
            let to = UnitId(self.below(5));
            let channel = if self.below(2) == 0 { Channel::Semantic } else { Channel::Structural };
            let choice = GraphChoice { channel, from: id, to, weight: Score(to.0 as i32 * 1_000 + 7) };
            let of = (bank.clone(), choice);
            let diff = if self.live[at].choices.remove(&of) { -1 } else { 1 };
            if diff > 0 {
                self.live[at].choices.insert(of.clone());
            }
            *changes.entry(of).or_default() += diff;
        }
        // A removed unit has no choices.
        let live: BTreeSet<UnitId> =
            self.live[at].records.values().flat_map(|r| r.units.iter().map(|u| u.id)).collect();
        for of in self.live[at].choices.clone() {
            if !live.contains(&of.1.from) {
                self.live[at].choices.remove(&of);
                *changes.entry(of).or_default() -= 1;
            }
        }
        let changes = changes.into_iter().filter(|(_, diff)| *diff != 0);
        let changes: ChoiceChanges = changes.map(|((bank, choice), diff)| ((bank.key(), choice), diff)).collect();
        let offset = self.offsets[at] - 1;
        let read = MemoryLogRead {
            partition: partition as u32,
            next_offset: self.offsets[at],
            offset,
            append_ms: appended(offset),
            covers: vec![(partition as u32, offset * 3)],
            records,
            unreadable: Vec::new(),
        };
        (read, changes)
    }

    fn now(&self) -> i64 {
        self.offsets.map(appended).into_iter().max().unwrap()
    }

    pub(super) fn all(&self) -> LiveModel {
        let mut all = self.live[0].clone();
        all.records.extend(self.live[1].records.clone());
        all.choices.extend(self.live[1].choices.clone());
        all
    }
}

/// The newest snapshots of both shards.
pub(super) fn newest(faulty: &FaultyStore) -> Vec<RestoredSnapshot> {
    let snapshots = LogSnapshots::over(Box::new(faulty.clone()));
    (0..2).filter_map(|shard| snapshots.newest(shard, true, &mut |_| {}, &mut |_, _| {}).unwrap()).collect()
}

/// A writer for shard 0 that continues from its newest snapshot.
pub(super) fn writer(snapshots: &LogSnapshots, run: &str, history_days: u64) -> SnapshotWriter {
    writer_of(snapshots, 0, run, history_days)
}

fn writer_of(snapshots: &LogSnapshots, shard: u32, run: &str, history_days: u64) -> SnapshotWriter {
    let seen = snapshots.newest_id(shard).unwrap();
    let restored = snapshots.newest(shard, false, &mut |_| {}, &mut |_, _| {}).unwrap();
    snapshots.writer(shard, seen, restored.as_ref(), run.to_owned(), history_days, AT_ONCE).unwrap()
}

pub(super) const AT_ONCE: ClaimRule = ClaimRule::AtOnce;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The store fails now and then, and the writer is dropped and restored at any read. The newest
    /// snapshot still equals the live state, each as-of answer equals the state at that point, and no
    /// stored row has the text of a deleted turn.
    #[test]
    fn a_snapshot_equals_the_live_state(
        seed: u64,
        reads in 1usize..40,
        failures in proptest::collection::vec((0u32..60, 0u32..4, any::<bool>()), 0..4),
        restarts in proptest::collection::btree_set(0usize..40, 0..3),
        history_days in 0u64..5,
        edits_only: bool,
    ) {
        let faulty = FaultyStore::default();
        let mut history = RandomHistory::new(seed, edits_only, false);
        let snapshots = LogSnapshots::over(Box::new(faulty.clone()));
        let writers = |run: usize| [0, 1].map(|shard| writer_of(&snapshots, shard, &format!("run{run}"), history_days));
        let mut current = writers(0);
        // After a restart, the reads since the last snapshot come again from the log.
        let (mut since, mut taken) = (Vec::new(), [0, 1].map(|_| vec![LiveModel::default().expected()]));
        let mut moments: Vec<(u32, u64, LiveModel)> = Vec::new();
        for writer in &mut current {
            prop_assert!(writer.snapshot(1, AT_ONCE).unwrap().is_some());
        }
        *faulty.failures.lock().unwrap() = failures;
        for n in 0..reads {
            if restarts.contains(&n) {
                let paused = std::mem::take(&mut *faulty.failures.lock().unwrap());
                let restored = newest(&faulty);
                current = writers(n + 1);
                let reached = |partition: u32| restored[partition as usize].manifest.reached[0].next_offset;
                for (read, changes) in since.iter().filter(|(read, _): &&(MemoryLogRead, _)| read.next_offset > reached(read.partition)) {
                    current[read.partition as usize].add(read, changes).unwrap();
                }
                *faulty.failures.lock().unwrap() = paused;
            }
            let (read, changes) = history.next();
            current[read.partition as usize].add(&read, &changes).unwrap();
            let partition = read.partition;
            moments.push((partition, read.offset, history.live[partition as usize].clone()));
            since.push((read, changes));
            if history.below(3) == 0 {
                for (shard, writer) in current.iter_mut().enumerate() {
                    match writer.snapshot(history.now(), AT_ONCE) {
                        Ok(_) => taken[shard] = vec![history.live[shard].expected()],
                        // The snapshot may exist: perhaps only the cleanup after it failed.
                        Err(_) => taken[shard].push(history.live[shard].expected()),
                    }
                }
            }
        }
        faulty.failures.lock().unwrap().clear();
        for (taken, restored) in taken.iter().zip(newest(&faulty)) {
            prop_assert!(taken.contains(&LiveModel::of([&restored])));
        }
        for writer in &mut current {
            writer.snapshot(history.now(), AT_ONCE).unwrap();
        }
        let whole = newest(&faulty);
        prop_assert_eq!(LiveModel::of(&whole), history.all().expected());
        let records: u64 = whole.iter().map(|restored| restored.manifest.live.records).sum();
        prop_assert_eq!(records, history.all().records.len() as u64);

        if history.deleted.is_empty() {
            for (partition, offset, model) in &moments {
                let restored = &whole[*partition as usize];
                let oldest = restored.manifest.reached[0].oldest.unwrap();
                if *offset < oldest.0 {
                    let error = snapshots.point(*partition, AsOf::Offset(*offset)).unwrap_err().to_string();
                    prop_assert!(error.contains(&format!("the oldest that can be asked for is offset {},", oldest.0)), "{error}");
                    continue;
                }
                let known = |gap: &&HistoryGap| gap.partition == *partition && gap.from <= *offset && *offset < gap.until;
                let hidden = restored.manifest.gaps.iter().find(known);
                let Ok((resolved, _)) = snapshots.point(*partition, AsOf::Offset(*offset)) else {
                    // The partition was still empty.
                    prop_assert!(model.records.is_empty() || hidden.is_some());
                    continue;
                };
                prop_assert!(hidden.map_or(resolved <= *offset, |gap| resolved < gap.from));
                prop_assert_eq!(snapshots.point(*partition, AsOf::Time(appended(*offset))).unwrap().0, resolved);
                if hidden.is_some() {
                    continue;
                }
                for n in 0..3 {
                    let bank = bank(n);
                    let past = snapshots.as_of(&bank, *partition, resolved).unwrap();
                    let mut expected = model.clone();
                    expected.records.retain(|_, record| record.bank == bank);
                    expected.choices.retain(|(of, _)| *of == bank);
                    let units = |of: &RestoredSnapshot| of.records.iter().map(|r| (r.key.to_bytes(), r.extraction.units.len())).collect::<BTreeMap<_, _>>();
                    let expected_units: BTreeMap<_, _> = expected.records.iter().map(|(key, r)| (key.clone(), r.units.len())).collect();
                    if (*partition == 1) == (n == 1) {
                        prop_assert_eq!(units(&past), expected_units);
                        prop_assert_eq!(LiveModel::of([&past]).1, expected.choices);
                    }
                }
            }
        }
        // Versions removed before the oldest point have no rows, and each choice that existed then has one.
        let store = SnapshotStore::over(Box::new(faulty.clone()));
        for restored in whole.iter().filter(|restored| restored.manifest.trimmed_ms > 0) {
            let oldest = restored.manifest.reached[0].oldest.unwrap().0;
            let mut kept = BTreeSet::new();
            for file in restored.manifest.segments.iter().flat_map(|segment| &segment.files) {
                for batch in batches(file.read(&store).unwrap(), &[]).unwrap() {
                    let batch = batch.unwrap();
                    if file.table == UpdateTable::Edges {
                        let choices = ChoiceColumns::of(&batch).unwrap();
                        for row in (0..batch.num_rows()).filter(|row| choices.offset(*row) <= oldest) {
                            prop_assert!(choices.added(row) && kept.insert((choices.bank(row).to_owned(), choices.choice(row).unwrap())));
                        }
                    } else {
                        let heads = HeadColumns::of(&batch).unwrap();
                        prop_assert!((0..batch.num_rows()).all(|row| heads.added(row) || heads.offset(row) > oldest));
                    }
                }
            }
        }
        // Rows of a deleted turn may keep its text only if a live record has it.
        let live: BTreeSet<String> = history.all().records.values().flat_map(|r| r.turns.iter().map(|t| t.turn.text.clone())).collect();
        let deleted: BTreeSet<(Bank, String)> = history
            .all()
            .records
            .values()
            .flat_map(|r| r.turns.iter().filter(|t| t.deleted).map(|t| (r.bank.clone(), t.turn.turn.clone())))
            .collect();
        for file in whole.iter().flat_map(|restored| restored.manifest.files(UpdateTable::Turns)) {
            for batch in batches(file.read(&store).unwrap(), &[]).unwrap() {
                let batch = batch.unwrap();
                let (heads, turns) = (HeadColumns::of(&batch).unwrap(), TurnColumns::of(&batch).unwrap());
                for row in (0..batch.num_rows()).filter(|row| heads.added(*row)) {
                    let turn = turns.turn(&heads.key(row).unwrap().bank, row).unwrap();
                    let stays = turn.turn.text.is_empty() || live.contains(&turn.turn.text);
                    let of = (turn.turn.bank.clone(), turn.turn.turn.clone());
                    prop_assert!(stays || !deleted.contains(&of), "{}", turn.turn.text);
                }
            }
        }
    }
}

/// A snapshot with any damaged file is reported by name, and the one before it is used.
#[test]
fn a_damaged_snapshot_is_named_and_the_one_before_is_used() {
    let faulty = FaultyStore::default();
    let mut history = RandomHistory::new(9, true, true);
    let mut writer = writer(&LogSnapshots::over(Box::new(faulty.clone())), "run", 0);
    let mut models = Vec::new();
    let mut paths = Vec::new();
    for n in 0..2 {
        for _ in 0..4 {
            let (read, changes) = history.next();
            writer.add(&read, &changes).unwrap();
        }
        writer.snapshot(n, AT_ONCE).unwrap().unwrap();
        models.push(history.all().expected());
        paths.push(faulty.objects.lock().unwrap().keys().cloned().collect::<BTreeSet<String>>());
    }
    let whole = faulty.objects.lock().unwrap().clone();
    let only_newest: Vec<&String> = paths[1].difference(&paths[0]).collect();
    assert_eq!(only_newest.len(), 4, "{only_newest:?}");
    for path in only_newest {
        let bytes = &whole[path];
        let flipped = |at: usize| bytes.iter().enumerate().map(|(n, b)| if n == at { b ^ 1 } else { *b }).collect();
        for damaged in [Some(bytes.slice(..bytes.len() / 2)), Some(flipped(bytes.len() / 3)), Some(Bytes::new()), None]
        {
            let mut objects = whole.clone();
            match damaged {
                Some(damaged) => drop(objects.insert(path.clone(), damaged)),
                None if path.contains("/manifests/") => continue,
                None => drop(objects.remove(path)),
            }
            let damaged = FaultyStore { objects: Arc::new(Mutex::new(objects)), ..FaultyStore::default() };
            let mut warnings = Vec::new();
            let snapshots = LogSnapshots::over(Box::new(damaged.clone()));
            let restored = snapshots.newest(0, true, &mut |warning| warnings.push(warning.to_owned()), &mut |_, _| {});
            let restored = restored.unwrap().unwrap();
            assert_eq!(LiveModel::of([&restored]), models[0], "{path}");
            assert!(warnings.len() == 1 && warnings[0].contains(path.as_str()), "{path}: {warnings:?}");
            // A writer that continues from there uses the next free number.
            let mut next = writer_of(&snapshots, 0, "later", 0);
            let (read, changes) = history.next();
            next.add(&read, &changes).unwrap();
            assert_eq!(next.snapshot(9, AT_ONCE).unwrap().unwrap().number, 3);
        }
    }
}

/// This is not treated as damage: the snapshot before it may lack deletions that no log holds any more.
#[test]
fn a_snapshot_of_another_version_is_refused_by_name() {
    for version in [1, 3] {
        let faulty = FaultyStore::default();
        let snapshots = LogSnapshots::over(Box::new(faulty.clone()));
        let taken = writer(&snapshots, "run", 0).snapshot(1, AT_ONCE).unwrap().unwrap();
        let other = Manifest { version, number: 2, ..taken };
        assert!(other.write(&SnapshotStore::over(Box::new(faulty)), 0).unwrap());
        let refusals =
            [snapshots.newest(0, false, &mut |_| {}, &mut |_, _| {}).map(drop), snapshots.manifest(0).map(drop)];
        for error in refusals.map(Result::unwrap_err) {
            assert!(matches!(error, SnapshotError::Version { .. }), "{error}");
            let error = error.to_string();
            let named = "/shard-00000/manifests/00000001-000000000002.json: a snapshot of version ";
            assert!(error.contains(&format!("{named}{version}, but this build reads 2;")), "{error}");
            assert!(error.contains("name another snapshot.directory"), "{error}");
        }
    }
}

/// History is trimmed at most once a day, and no file is rewritten in between.
#[test]
fn history_is_trimmed_by_the_day() {
    let faulty = FaultyStore::default();
    let mut history = RandomHistory::new(21, true, true);
    let mut writer = writer(&LogSnapshots::over(Box::new(faulty.clone())), "run", 2);
    writer.snapshot(0, AT_ONCE).unwrap().unwrap();
    let (mut trims, mut taken) = (0, Vec::<Manifest>::new());
    for _ in 0..25 {
        let (read, changes) = history.next();
        writer.add(&read, &changes).unwrap();
        let Some(now) = writer.snapshot(history.now(), AT_ONCE).unwrap() else { continue };
        if let Some(last) = taken.last().cloned() {
            let kept = last.segments.iter().all(|segment| now.segments.contains(segment));
            assert!(kept || now.trimmed_ms > last.trimmed_ms);
            assert!(now.trimmed_ms == last.trimmed_ms || now.trimmed_ms >= last.trimmed_ms + 24 * 3_600_000);
            trims += usize::from(!kept);
        }
        taken.push(now);
    }
    let (first, last) = (&taken[0], &taken[taken.len() - 1]);
    let old = |of: &Manifest| of.reached.iter().map(|at| at.oldest.unwrap().1).collect::<Vec<_>>();
    assert!(old(last).iter().zip(old(first)).all(|(last, first)| *last > first), "{:?} {:?}", old(first), old(last));
    assert!(old(last).iter().all(|at| *at <= last.trimmed_ms));
    assert!((3..15).contains(&trims), "{trims}");
    assert_eq!(LiveModel::of(&newest(&faulty)), history.all().expected());
}

const FULL_DISK: &str = "RIPPLEMEM_FULL_SNAPSHOT";

/// The child process of [`a_full_disk_during_a_snapshot`], whose files may not grow.
#[test]
fn child_that_fills_the_disk() {
    let Some(home) = std::env::var_os(FULL_DISK) else { return };
    let mut writer = writer(&on_disk(home.to_str().unwrap()), "full", 0);
    let mut history = RandomHistory::new(3, false, true);
    let (read, changes) = history.next();
    writer.add(&read, &changes).unwrap();
    writer.snapshot(1, AT_ONCE).unwrap().unwrap();
    for _ in 0..2_000 {
        let (read, changes) = history.next();
        writer.add(&read, &changes).unwrap();
    }
    for _ in 0..2 {
        let error = writer.snapshot(2, AT_ONCE).unwrap_err().to_string();
        assert!(
            error.contains("writing failed") && error.contains("free space") && error.contains("nothing is lost"),
            "{error}"
        );
    }
}

fn on_disk(home: &str) -> LogSnapshots {
    LogSnapshots::open(home, "a test's log", 2, "settings".to_owned()).unwrap()
}

/// A full disk fails a snapshot with an error and leaves no partial file. The snapshot before it stays
/// usable, and once there is space again, the next one has everything.
#[test]
fn a_full_disk_during_a_snapshot() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().to_str().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "tests::child_that_fills_the_disk", "--nocapture"])
        .env(FULL_DISK, place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(home.path().join("shard-00000").join(directory)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert!(UpdateTable::ALL.iter().all(|table| left(table.name()).iter().all(|name| !name.contains('#'))));
    assert_eq!(left("manifests"), ["00000001-000000000001.json"]);

    let mut history = RandomHistory::new(3, false, true);
    let (first, _) = history.next();
    let restored = on_disk(place).newest(0, true, &mut |what| panic!("{what}"), &mut |_, _| {}).unwrap().unwrap();
    assert_eq!(LiveModel::of([&restored]), history.all().expected());
    assert_eq!(restored.manifest.reached[0].next_offset, first.next_offset);
    // A killed write leaves a file that no listing shows.
    std::fs::write(home.path().join("shard-00000/units/left.parquet#1"), "half").unwrap();
    let mut writer = writer(&on_disk(place), "later", 0);
    for _ in 0..2_000 {
        let (read, changes) = history.next();
        writer.add(&read, &changes).unwrap();
    }
    writer.snapshot(3, AT_ONCE).unwrap().unwrap();
    let restored = on_disk(place).newest(0, true, &mut |what| panic!("{what}"), &mut |_, _| {}).unwrap().unwrap();
    assert_eq!(LiveModel::of([&restored]), history.all().expected());
    assert!(!left("units").iter().any(|name| name.contains('#') || name.starts_with("full-000004")));
}

/// A writer recognises its own snapshot when the store's response was lost, and deletes the files that
/// became obsolete.
#[test]
fn a_lost_response_is_recognised() {
    let faulty = FaultyStore::default();
    let mut history = RandomHistory::new(11, false, true);
    let mut writer = writer(&LogSnapshots::over(Box::new(faulty.clone())), "run", 0);
    let mut lost = 0;
    for calls in 0..60 {
        let (read, changes) = history.next();
        writer.add(&read, &changes).unwrap();
        *faulty.failures.lock().unwrap() = vec![(calls % 15, 1, true)];
        lost += usize::from(writer.snapshot(calls.into(), AT_ONCE).is_err());
        faulty.failures.lock().unwrap().clear();
        writer.snapshot(100 + i64::from(calls), AT_ONCE).unwrap();
        assert_eq!(LiveModel::of(&newest(&faulty)), history.all().expected());
        let manifests = Manifest::ids(&SnapshotStore::over(Box::new(faulty.clone())), 0).unwrap();
        assert!(manifests.len() <= 2, "{manifests:?}");
        let listed: BTreeSet<String> = manifests
            .iter()
            .flat_map(|id| Manifest::read(&SnapshotStore::over(Box::new(faulty.clone())), 0, *id).unwrap().segments)
            .flat_map(|segment| segment.files.into_iter().map(|file| file.path))
            .collect();
        let files = faulty.objects.lock().unwrap().keys().filter(|path| path.ends_with(".parquet")).count();
        assert_eq!(files, listed.len());
    }
    assert!(lost > 30, "{lost}");
}

/// Many small segments become a few, with every row.
#[test]
fn small_segments_are_merged() {
    let faulty = FaultyStore::default();
    let mut history = RandomHistory::new(5, false, true);
    let mut writer = writer(&LogSnapshots::over(Box::new(faulty.clone())), "run", 0);
    let mut rows = 0;
    for n in 0..80 {
        let (read, changes) = history.next();
        rows += changes.len() as u64;
        writer.add(&read, &changes).unwrap();
        let manifest = writer.snapshot(n, AT_ONCE).unwrap().unwrap();
        assert!(manifest.segments.len() <= 33, "{}", manifest.segments.len());
    }
    let restored = newest(&faulty).remove(0);
    assert_eq!(LiveModel::of([&restored]), history.all().expected());
    if history.deleted.is_empty() {
        assert_eq!(restored.manifest.files(UpdateTable::Edges).map(|file| file.rows).sum::<u64>(), rows);
    }
    let listed: usize = restored.manifest.segments.iter().map(|segment| segment.files.len()).sum();
    let kept = faulty.objects.lock().unwrap().keys().filter(|path| path.ends_with(".parquet")).count();
    assert!(kept <= 2 * listed + 6, "{kept} files, {listed} listed");
}
