//! The whole path on the embedded log: turns in, evidence out (invariants 2, 5 and 6).

use std::collections::{BTreeMap, BTreeSet};

use ingest::unit_texts;
use logs::Topic;
use models::embed::VectorCache;
use types::model::{MemoryKey, MemoryRecord, ModelRef, Provenance, WindowState};

use super::support::{ask, census, data, ingest, lines, open, pipeline, write};

/// Invariant 2: the same log under any number of workers, and the same turns in other batches, give
/// the same digest.
#[test]
fn replaying_a_log_gives_the_same_digest() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    ingest(&mut service, &data("sample.jsonl"));
    let first = census(&service);
    assert!(first.units > 50 && first.semantic_edges > 5 && first.structural_edges > 50, "{first:?}");
    let evidence = ask(&service, "sample/harbour", "Which books has Marta recommended to Elias?");
    drop(service);
    for workers in [1, 3] {
        let again = open(&pipeline(home.path(), &format!("memory.workers = {workers}")));
        assert_eq!(census(&again), first, "{workers} workers");
        let again = ask(&again, "sample/harbour", "Which books has Marta recommended to Elias?");
        assert_eq!(again, evidence, "{workers} workers");
    }
    for read_turns in [1, 7, 10_000] {
        let other = tempfile::tempdir().unwrap();
        let mut service = open(&pipeline(other.path(), &format!("embed.read_turns = {read_turns}")));
        ingest(&mut service, &data("sample.jsonl"));
        assert_eq!(census(&service), first, "reads of {read_turns}");
    }
}

/// Decision 4: reading a source again changes nothing.
#[test]
fn a_redelivery_is_a_no_op() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    ingest(&mut service, &data("sample.jsonl"));
    let (first, end) = (census(&service), service.log().end(Topic::Memory, 0).unwrap());
    let again = ingest(&mut service, &data("sample.jsonl"));
    assert_eq!((again.windows, again.units), (0, 0));
    assert_eq!(census(&service), first);
    assert_eq!(service.log().end(Topic::Memory, 0).unwrap(), end);
}

/// Decision 2: a turn is recallable at once, and its open record is removed when its window closes.
#[test]
fn an_open_window_is_recallable_and_its_records_are_removed_when_it_closes() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), "extract.unit_turns = 1"));
    // Appended directly: a source would end with an idle mark, which closes the window.
    let turns =
        lines("b", "s", &[("1", "Ann", "The red kayak is stored in the boathouse"), ("2", "Bo", "I sold my bicycle")]);
    let events: Vec<_> = turns.lines().map(|l| types::model::TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
    let states = |service: &ripplemem::PipelineDriver| -> BTreeMap<Vec<u8>, WindowState> {
        let mut live = BTreeMap::new();
        for record in service.log().read(Topic::Memory, 0, 0, 1_000).unwrap().records {
            match record.value {
                Some(v) => live.insert(record.key, serde_json::from_slice::<MemoryRecord>(&v).unwrap().state),
                None => live.remove(&record.key),
            };
        }
        live
    };
    assert!(states(&service).values().all(|s| *s == WindowState::Open) && states(&service).len() == 2);
    let evidence = ask(&service, "b", "Where is the red kayak?");
    assert_eq!(evidence.units[0].sources, ["1"]);
    let end = types::model::TurnEvent::from_json(br#"{"type":"session_end","bank":"b","session":"s"}"#).unwrap();
    service.log().append_turns(&[end]).unwrap();
    service.catch_up().unwrap();
    assert_eq!(states(&service).into_values().collect::<Vec<_>>(), [WindowState::Final]);
    assert_eq!(ask(&service, "b", "Where is the red kayak?").units[0].sources, ["1"]);
}

/// A failure of the model loses no turn: the service reports it until it is opened again.
#[test]
fn a_failed_read_is_repeated_after_reopening() {
    let home = tempfile::tempdir().unwrap();
    let broken = pipeline(home.path(), "embed.models.fixed.runner = \"onnx\"\nembed.models_directory = \"/nowhere\"");
    let mut service = open(&broken);
    let turns = lines("b", "s", &[("1", "Ann", "The red kayak is stored in the boathouse")]);
    let events: Vec<_> = turns.lines().map(|l| types::model::TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    let failed = service.catch_up().unwrap_err().to_string();
    assert!(failed.contains("/nowhere"), "{failed}");
    let again = service.catch_up().unwrap_err().to_string();
    assert!(again.contains("open the pipeline again"), "{again}");
    assert_eq!(service.log().read_position(0).unwrap(), 0);
    drop(service);
    let mut service = open(&pipeline(home.path(), ""));
    service.catch_up().unwrap();
    assert_eq!(ask(&service, "b", "Where is the red kayak?").units[0].sources, ["1"]);
}

/// An edit and a deletion change their units only, and no record keeps the old text.
#[test]
fn an_edit_replaces_and_a_deletion_removes() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), "extract.unit_turns = 1"));
    let turns = [
        ("1", "Ann", "The spare key hangs behind the piano"),
        ("2", "Bo", "The picnic starts at the lighthouse"),
        ("3", "Ann", "My sister plays the bassoon"),
    ];
    ingest(&mut service, &write(&home.path().join("a.jsonl"), lines("b", "s", &turns)));
    let untouched = ask(&service, "b", "Who plays the bassoon?").units[0].id;
    let edit = r#"{"bank":"b","turn":"2","version":1,"speaker":"Bo","text":"The picnic starts at the windmill","time":"2024-05-01T10:01:00Z","session":"s"}"#;
    let deletion = r#"{"type":"deletion","bank":"b","turn":"1","version":1}"#;
    ingest(&mut service, &write(&home.path().join("b.jsonl"), format!("{edit}\n{deletion}\n")));
    // An older export restores nothing.
    ingest(&mut service, &home.path().join("a.jsonl"));
    let evidence = ask(&service, "b", "Where does the picnic start? Where is the key? Who plays the bassoon?");
    let said: Vec<&str> = evidence.units.iter().map(|u| u.restatement.as_str()).collect();
    assert!(said.iter().any(|s| s.contains("windmill")), "{said:?}");
    assert!(!said.iter().any(|s| s.contains("lighthouse") || s.contains("piano")), "{said:?}");
    assert!(evidence.units.iter().any(|u| u.id == untouched), "the untouched unit is the same one");
    for record in service.log().read(Topic::Memory, 0, 0, 1_000).unwrap().records {
        let value = String::from_utf8(record.value.unwrap_or_default()).unwrap();
        assert!(!value.contains("lighthouse") && !value.contains("piano"), "{value}");
    }
}

/// Invariant 6: every unit names its sources and how it was reached; every path follows edges of the
/// graph, and every rank is at least 1.
#[test]
fn every_unit_of_an_answer_says_how_it_was_reached() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), "recall.sufficient = 2.0"));
    ingest(&mut service, &data("sample.jsonl"));
    let known: BTreeSet<String> = std::fs::read_to_string(data("sample.jsonl"))
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["turn"].as_str().unwrap_or_default().to_owned())
        .collect();
    let questions: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(data("sample_questions.json")).unwrap()).unwrap();
    let (mut expanded, mut units) = (0, 0);
    for question in questions["questions"].as_array().unwrap() {
        let evidence = ask(&service, "sample/harbour", question["question"].as_str().unwrap());
        assert!(!evidence.reflects.is_empty() && evidence.units.len() <= 30);
        for unit in &evidence.units {
            units += 1;
            assert!(!unit.sources.is_empty() && unit.sources.iter().all(|s| known.contains(s)));
            assert!(!unit.provenance.is_empty());
            for reached in &unit.provenance {
                match reached {
                    Provenance::FirstHop { rank, .. } | Provenance::Familiar { rank, .. } => assert!(*rank >= 1),
                    Provenance::Expansion { rank, hops, path, path_weight, channel, .. } => {
                        expanded += 1;
                        assert!(*rank >= 1 && *hops as usize == path.len() && (1..=2).contains(hops));
                        assert_eq!(path.last().unwrap().to, unit.id);
                        assert!(path.windows(2).all(|p| p[0].to == p[1].from));
                        assert!(path.iter().all(|s| s.channel == *channel));
                        let product: f64 = path.iter().map(|s| s.weight).product();
                        assert!((product - path_weight).abs() < 1e-6);
                        let anchors: BTreeSet<_> = evidence.trace.rounds.iter().flat_map(|r| &r.plan.anchors).collect();
                        assert!(anchors.contains(&path[0].from));
                    }
                }
            }
        }
    }
    assert!(expanded > 20 && units > 300, "{expanded} of {units} units by expansion");
}

/// Invariant 5, over the whole path: another bank's turns change nothing in an answer except offsets.
#[test]
fn no_answer_depends_on_another_bank() {
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mine = [
        ("1", "Ann", "I planted the beans on Sunday"),
        ("2", "Bo", "Where did you plant them, Ann?"),
        ("3", "Ann", "Behind the shed"),
    ];
    let other = [("1", "Ann", "I planted the beans on Sunday"), ("9", "Cy", "The beans are behind the shed of Ann")];
    let mut first = open(&pipeline(alone.path(), ""));
    ingest(&mut first, &write(&alone.path().join("a.jsonl"), lines("mine", "s", &mine)));
    let mut second = open(&pipeline(together.path(), ""));
    let both = lines("other", "s", &other) + &lines("mine", "s", &mine) + &lines("mine2", "s", &other);
    ingest(&mut second, &write(&together.path().join("a.jsonl"), both));
    for question in ["Where did Ann plant the beans?", "What is behind the shed?"] {
        let (mut a, mut b) = (ask(&first, "mine", question), ask(&second, "mine", question));
        assert!(!a.units.is_empty());
        for evidence in [&mut a, &mut b] {
            evidence.reflects.clear();
            evidence.trace.rounds.iter_mut().for_each(|r| r.reflects.clear());
        }
        assert_eq!(a, b, "{question}");
    }
}

/// A record too large for a topic is divided into parts, which give the same memory. An edit that
/// makes it smaller removes the parts in excess, also after a restart.
#[test]
fn documents_pasted_into_a_chat_are_recalled_and_an_edit_removes_their_parts() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    let document = |n: usize| -> String {
        let sentences = (0..).map(|line| format!("Harbour report {n} counts in its line {line} some blue boats. "));
        sentences.take(1_000).collect::<String>().chars().take(60_000).collect()
    };
    let event = |n: usize, version: u64, text: &str| {
        let turn = serde_json::json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": text,
            "version": version, "time": format!("2024-05-06T09:{n:02}:00Z"), "session": "s"});
        types::model::TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
    };
    let end = types::model::TurnEvent::from_json(br#"{"type":"session_end","bank":"b","session":"s"}"#).unwrap();
    let mut events: Vec<_> = (0..40).map(|n| event(n, 1, &document(n))).collect();
    events.push(end.clone());
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
    let parts = |service: &ripplemem::PipelineDriver| -> BTreeSet<u32> {
        let mut live = BTreeSet::new();
        for record in service.log().read(Topic::Memory, 0, 0, 1_000).unwrap().records {
            let part = MemoryKey::from_bytes(&record.key).unwrap().part;
            assert!(record.value.as_ref().is_none_or(|v| v.len() < 8_000_000));
            if record.value.is_some() {
                live.insert(part)
            } else {
                live.remove(&part)
            };
        }
        live
    };
    let whole = parts(&service);
    assert!(whole.len() > 2 && whole.iter().copied().eq(0..whole.len() as u32), "{whole:?}");
    assert_eq!(census(&service).units, 40);
    let evidence = ask(&service, "b", "What does harbour report 17 count?");
    assert!(evidence.units[0].sources.iter().any(|turn| turn == "17"), "{:?}", evidence.units[0].sources);

    drop(service);
    let mut service = open(&pipeline(home.path(), ""));
    assert_eq!(census(&service).units, 40);
    let edits: Vec<_> = (0..30).map(|n| event(n, 2, "The report was withdrawn by the harbour office")).collect();
    service.log().append_turns(&edits).unwrap();
    service.catch_up().unwrap();
    let fewer = parts(&service);
    assert!(fewer.len() < whole.len() && fewer.iter().copied().eq(0..fewer.len() as u32), "{fewer:?} of {whole:?}");
    // The same as a memory that never had the long versions.
    let other = tempfile::tempdir().unwrap();
    let mut fresh = open(&pipeline(other.path(), ""));
    let mut events = edits;
    events.extend((30..40).map(|n| event(n, 1, &document(n))));
    events.push(end);
    fresh.log().append_turns(&events).unwrap();
    fresh.catch_up().unwrap();
    assert_eq!(census(&service), census(&fresh));
}

/// A turn of a window that stays open is deleted, another is edited.
#[test]
fn the_vectors_of_a_deleted_or_edited_turn_leave_the_cache_at_once() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    let mut service = open(&settings);
    let read = |text: &str| types::model::TurnEvent::from_json(text.as_bytes()).unwrap();
    let turns =
        [("1", "Ann", "The red kayak is in the boathouse"), ("2", "Ann", "I sold my bicycle"), ("3", "Ann", "Hm")];
    let said: Vec<_> = lines("b", "s", &turns).lines().map(read).collect();
    service.log().append_turns(&said).unwrap();
    service.catch_up().unwrap();
    let edited = lines("b", "s", &[("2", "Ann", "I sold my tricycle")]).replace("\"turn\":", "\"version\":2,\"turn\":");
    service.log().append_turns(&[read(r#"{"type":"deletion","bank":"b","turn":"1"}"#), read(edited.trim())]).unwrap();
    service.catch_up().unwrap();
    let record = service.log().read(Topic::Memory, 0, 0, 100).unwrap().records.into_iter().rfind(|r| r.value.is_some());
    let record: MemoryRecord = serde_json::from_slice(&record.unwrap().value.unwrap()).unwrap();
    assert_eq!(record.state, WindowState::Open);
    drop(service);
    let (cache, _) = VectorCache::open(&settings.log.directory.join("cache")).unwrap();
    // Cached by the model and the precision in which its vectors are stored.
    let model = ModelRef { hash: format!("{}/int8", record.model.hash), ..record.model };
    let cached = |text: &str| {
        let texts = unit_texts(&settings.embed, &settings.model().turn_template, &[("Ann", text)]);
        cache.lookup(&record.bank, &model, &texts).iter().all(Option::is_some)
    };
    assert_eq!([turns[0].2, turns[1].2, "I sold my tricycle"].map(cached), [false, false, true]);
}
