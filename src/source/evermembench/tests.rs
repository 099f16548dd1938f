//! Little files in EverMemBench-Dynamic's two published forms, whole and damaged.

use serde_json::json;

use super::{super::tests::drain, *};

/// What a file of this name with these bytes gives; origins without the file's path.
fn read(
    name: &str,
    bytes: &[u8],
    change: impl Fn(&mut SourceSettings),
    bank: Option<&str>,
) -> Result<Batch, SourceError> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut settings = SourceSettings {
        format: "evermembench".to_owned(),
        path: path.clone(),
        zone: "+00:00".to_owned(),
        only: Vec::new(),
    };
    change(&mut settings);
    let bank = bank.map(|b| Bank::parse(b).unwrap());
    let mut batch = drain(&mut EverMemBench::open(&settings, bank.as_ref())?, 2);
    for letter in &mut batch.rejects {
        letter.origin = letter.origin.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned();
    }
    Ok(batch)
}

fn message(speaker: &str, time: &str, text: &str) -> Value {
    json!({"speaker": speaker, "time": time, "dialogue": text})
}

fn sample() -> Value {
    json!({"dialogues": {
        "2025-01-10": {"Group 1": [message("Ines", "2025-01-10 08:00:00", "The draft is up.")], "Group 2": null},
        "2025-01-09": {
            "Group 2": [message("Jo", "2025-01-09T17:45:30", "Who has the keys?")],
            "Group 1": [
                message("Ines", "2025-01-09 09:32:15", "We start on Monday."),
                message("Kit", "2025-01-09 09:33:00", "With the survey?")
            ]
        }
    }})
}

fn lines(batch: &Batch) -> Vec<String> {
    batch
        .events
        .iter()
        .map(|e| match e {
            TurnEvent::Turn(t) => {
                format!("{} [{}] {} {} {}", t.bank, t.session.as_deref().unwrap_or("-"), t.turn, t.speaker, t.time)
            }
            TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
            TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
            TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
        })
        .collect()
}

#[test]
fn days_come_in_order_and_all_groups_of_a_topic_share_a_bank() {
    let batch = read("dataset/004/dialogue_en.json", sample().to_string().as_bytes(), |_| (), None).unwrap();
    assert_eq!(batch.rejects, []);
    assert_eq!(
        lines(&batch),
        [
            "evermembench/004 [2025-01-09/Group 1] 2025-01-09/Group 1:0 Ines 2025-01-09T09:32:15Z",
            "evermembench/004 [2025-01-09/Group 1] 2025-01-09/Group 1:1 Kit 2025-01-09T09:33:00Z",
            "evermembench/004 end 2025-01-09/Group 1",
            "evermembench/004 [2025-01-09/Group 2] 2025-01-09/Group 2:0 Jo 2025-01-09T17:45:30Z",
            "evermembench/004 end 2025-01-09/Group 2",
            "evermembench/004 [2025-01-10/Group 1] 2025-01-10/Group 1:0 Ines 2025-01-10T08:00:00Z",
            "evermembench/004 end 2025-01-10/Group 1",
            "evermembench/004 idle 2026-01-11T08:00:00Z",
        ]
    );
}

#[test]
fn a_list_of_days_names_its_topics_and_messages_their_indexes() {
    let day = |topic: Value, date: &str, index: Value| {
        let mut said = message("Ines", &format!("{date} 08:00:00"), "The draft is up.");
        said["message_index"] = index;
        json!({"topic_id": topic, "date": date, "dialogues": {"Group 1": [said]}})
    };
    let list = json!([day(json!("02"), "2025-01-10", json!(7)), day(json!("01"), "2025-01-10", Value::Null)]);
    let batch = read("days.json", list.to_string().as_bytes(), |_| (), None).unwrap();
    assert_eq!(batch.rejects, []);
    assert_eq!(
        lines(&batch),
        [
            "evermembench/01 [2025-01-10/Group 1] 2025-01-10/Group 1:0 Ines 2025-01-10T08:00:00Z",
            "evermembench/01 end 2025-01-10/Group 1",
            "evermembench/01 idle 2026-01-11T08:00:00Z",
            "evermembench/02 [2025-01-10/Group 1] 2025-01-10/Group 1:7 Ines 2025-01-10T08:00:00Z",
            "evermembench/02 end 2025-01-10/Group 1",
            "evermembench/02 idle 2026-01-11T08:00:00Z",
        ]
    );
    let twice = json!([day(Value::Null, "2025-01-10", json!(7)), day(Value::Null, "2025-01-10", json!(7))]);
    let batch = read("days.json", twice.to_string().as_bytes(), |_| (), None).unwrap();
    assert_eq!(batch.events[0].bank().as_str(), "evermembench/days");
    assert_eq!(batch.rejects[0].reason, "message_index: 7 comes twice on this day; give each message its own");
}

#[test]
fn bank_zone_and_choice_are_taken_from_the_settings() {
    let choose = |s: &mut SourceSettings| {
        s.zone = "+08:00".to_owned();
        s.only = vec!["Group 2".to_owned()];
    };
    let bytes = sample().to_string();
    let batch = read("01/dialogue.json", bytes.as_bytes(), choose, Some("team")).unwrap();
    assert_eq!(
        lines(&batch),
        [
            "team/01 [2025-01-09/Group 2] 2025-01-09/Group 2:0 Jo 2025-01-09T17:45:30+08:00",
            "team/01 end 2025-01-09/Group 2",
            "team/01 idle 2026-01-10T17:45:30+08:00",
        ]
    );
    let message = |name: &str, only: &[&str]| {
        let only: Vec<String> = only.iter().map(|o| (*o).to_owned()).collect();
        read(name, bytes.as_bytes(), |s| s.only.clone_from(&only), None).unwrap_err().to_string()
    };
    assert_eq!(
        message("01/dialogue.json", &["Group 9"]),
        "source.only: \"Group 9\" is not a group of the file; it holds Group 1, Group 2"
    );
    assert!(
        message("my topic/dialogue.json", &[]).starts_with("source.path: the topic \"my topic\" cannot name a bank")
    );
}

#[test]
fn a_damaged_item_becomes_a_letter_with_its_place_and_the_rest_goes_on() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = sample();
        change(&mut value["dialogues"]);
        value
    };
    let turn =
        |key: &'static str, with: Value| changed(&move |days| days["2025-01-09"]["Group 1"][1][key] = with.clone());
    let place = "2025-01-09/Group 1[1]";
    for (value, place, reason, turns) in [
        (turn("speaker", Value::Null), place, "speaker: missing; add it", 3),
        (turn("dialogue", json!("")), place, "text: empty; write what was said", 3),
        (turn("dialogue", json!(["x"])), place, "dialogue: not a string; write", 3),
        (turn("time", Value::Null), place, "time: missing; add it", 3),
        (turn("time", json!("at nine")), place, "time: \"at nine\" is not a time; write one", 3),
        (turn("time", json!("1400-01-09 09:00:00")), place, "time: \"1400-01-09 09:00:00\" is out of range", 3),
        (turn("message_index", json!(-1)), place, "message_index: not a whole number; write", 3),
        (turn("message_index", json!(0)), place, "message_index: 0 comes twice on this day; give", 3),
        (changed(&|days| days["2025-01-09"]["Group 1"][1] = json!(5)), place, "speaker: missing", 3),
        (changed(&|days| days["2025-01-09"]["Group 2"] = json!("x")), "2025-01-09/Group 2", "not a list; write", 3),
        (changed(&|days| days["2025-01-10"] = json!([])), "2025-01-10", "not an object; write", 3),
        (json!([{"date": "2025-01-09"}]), "[0]", "dialogues: missing; add", 0),
        (json!([{"dialogues": {}}]), "[0]", "date: missing; add", 0),
        (json!([{"topic_id": 4, "date": "2025-01-09", "dialogues": {}}]), "[0]", "topic_id: not a string; write", 0),
    ] {
        let batch = read("01/dialogue.json", value.to_string().as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.rejects.len(), 1, "{reason}");
        assert_eq!(batch.rejects[0].origin, place, "{reason}");
        assert!(batch.rejects[0].reason.starts_with(reason), "{} is not {reason}", batch.rejects[0].reason);
        assert!(batch.rejects[0].reason.contains("; "), "{}", batch.rejects[0].reason);
        let kept = batch.events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count();
        assert_eq!(kept, turns, "{reason}");
    }
}

#[test]
fn a_file_that_is_cut_or_of_another_form_is_an_error_with_its_place() {
    let whole = serde_json::to_string_pretty(&sample()).unwrap();
    let half: String = whole.lines().take(5).collect::<Vec<_>>().join("\n");
    let last = half.lines().last().unwrap().len();
    for (bytes, place) in [
        (half.as_bytes(), format!(":5:{last}: EOF while parsing")),
        (b"", ":1:0: EOF while parsing".to_owned()),
        (b"{\"qars\": []}", ":1:1: no \"dialogues\"".to_owned()),
        (b"7", ":1:1: neither an object nor a list".to_owned()),
    ] {
        let message = read("01/dialogue.json", bytes, |_| (), None).unwrap_err().to_string();
        assert!(message.contains(&place), "{message} is not {place}");
        assert!(message.ends_with(WHOLE_FILE), "{message}");
    }
}
