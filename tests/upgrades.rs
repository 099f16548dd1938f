//! What earlier builds wrote is read: `tests/data/upgrades` has a memory of each, which `scripts/upgrade_fixture` made
//! with that build and which is never made again. It holds a log in a directory, a snapshot with turns behind it, a
//! bank's file, a replay's Parquet, a pipeline file and a file of tokens.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::support::data;

const HARBOUR: &str = "sample/harbour";
const WORKSHOP: &str = "sample/workshop";
const SENTENCE: &str = "The tidal gauge was replaced by Ottilie.";

/// A memory that an earlier build wrote, unpacked.
struct OldMemory {
    name: String,
    home: tempfile::TempDir,
}

impl OldMemory {
    fn unpack(archive: &Path) -> Self {
        let name = archive.file_name().unwrap().to_string_lossy().into_owned();
        let home = tempfile::tempdir().unwrap();
        let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(home.path()).status().unwrap();
        assert!(unpacked.success(), "{name}");
        Self { name, home }
    }

    /// All of them.
    fn each() -> Vec<Self> {
        let mut archives: Vec<PathBuf> =
            fs::read_dir(data("upgrades")).unwrap().map(|entry| entry.unwrap().path()).collect();
        archives.sort();
        assert!(!archives.is_empty());
        archives.iter().map(|archive| Self::unpack(archive)).collect()
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_string_lossy().into_owned()
    }

    /// Runs a command where the earlier build ran: places in its file are relative.
    fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        let output = command.current_dir(self.home.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.command(&[arguments, &["--pipeline", "pipeline.toml"]].concat())
    }

    fn digest(&self, bank: &str) -> String {
        self.run(&["digest", "--json", "--bank", bank])
    }

    fn turns(&self, bank: &str) -> Vec<Value> {
        let listed = self.run(&["turns", "--bank", bank, "--limit", "1000", "--json"]);
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn ingest(&self, records: &[Value]) {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        fs::write(self.path("more.jsonl"), lines).unwrap();
        self.run(&["ingest", "jsonl", "more.jsonl"]);
    }
}

/// The records of the sample dialogues, which the fixtures hold.
fn sample(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(data(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn said_later(turn: &str, text: &str) -> Value {
    json!({ "type": "turn", "bank": HARBOUR, "turn": turn, "session": "later", "speaker": "Marta", "text": text,
        "time": "2025-01-01T10:00:00Z", "metadata": { "from": "upgrade" } })
}

#[test]
fn a_log_and_a_snapshot_of_earlier_builds_hold_what_they_held() {
    for old in OldMemory::each() {
        old.command(&["validate", "pipeline.toml"]);
        let counted = |digest: &str| digest.split(", hash").next().unwrap().to_owned();
        let written = fs::read_to_string(old.path("digest.txt")).unwrap();
        assert_eq!(counted(&old.run(&["digest"])), counted(&written), "{}", old.name);
        let [with_snapshot, of_assistant] = [HARBOUR, WORKSHOP].map(|bank| old.digest(bank));
        fs::rename(old.path("snapshots"), old.path("elsewhere")).unwrap();
        assert_eq!([HARBOUR, WORKSHOP].map(|bank| old.digest(bank)), [with_snapshot, of_assistant], "{}", old.name);

        // The last version of each turn, but for the two that were deleted; the fixture edited one more.
        let mut said: BTreeMap<String, Value> = BTreeMap::new();
        for record in sample("sample.jsonl").into_iter().filter(|record| record["bank"] == HARBOUR) {
            let Some(turn) = record["turn"].as_str().map(str::to_owned) else { continue };
            if record["type"] == "turn" {
                said.insert(turn, record["text"].clone())
            } else {
                said.remove(&turn)
            };
        }
        said.remove("h1-02");
        said.insert("h1-01".to_owned(), "Morning, Marta! Are you awake? I did the thing with the boat.".into());
        let turns = old.turns(HARBOUR);
        let kept: BTreeMap<String, Value> =
            turns.iter().map(|turn| (turn["turn"].as_str().unwrap().to_owned(), turn["text"].clone())).collect();
        assert_eq!(kept, said, "{}", old.name);
        assert!(turns.iter().all(|turn| turn.get("metadata").is_none()), "{}", old.name);
        let answer = old.run(&["ask", "From whom did Elias buy the boat?", "--bank", HARBOUR]);
        assert!(answer.contains("The old folkboat in Kappeln, from Herr Brodersen."), "{}: {answer}", old.name);
    }
}

#[test]
fn memories_of_earlier_builds_go_on() {
    for old in OldMemory::each() {
        old.ingest(&[said_later("new-1", SENTENCE)]);
        let answer = old.run(&["ask", "Who replaced the tidal gauge?", "--bank", HARBOUR]);
        assert!(answer.contains(SENTENCE), "{}: {answer}", old.name);
        let selector = r#"{"metadata": {"path": ["from"], "eq": "upgrade"}}"#;
        let chosen = old.run(&["turns", "--bank", HARBOUR, "--where", selector, "--json"]);
        assert_eq!(chosen.lines().count(), 1, "what lacks metadata has none: {chosen}");

        // What persons asked for is found in old turns, too.
        old.run(&["restate"]);
        let profile = old.run(&["profile", "--bank", WORKSHOP]);
        assert!(profile.contains("From now on, please always show times in UTC"), "{}: {profile}", old.name);

        // A turn that an earlier build stored leaves every stored byte.
        let boat = "The old folkboat in Kappeln, from Herr Brodersen";
        let gone = old.run(&["forget", "--bank", HARBOUR, "h1-03", "--erase-now"]);
        old.run(&["forget", "--verify", "--words", boat]);
        assert!(!old.turns(HARBOUR).iter().any(|turn| turn["turn"] == "h1-03"), "{gone}");
        let answer = old.run(&["ask", "From whom did Elias buy the boat?", "--bank", HARBOUR]);
        assert!(!answer.contains(boat), "{}: {answer}", old.name);
    }
}

#[test]
fn files_of_earlier_builds_are_read() {
    for old in OldMemory::each() {
        // A bank's file, into another log.
        fs::write(old.path("moved.toml"), "version = 1\nembed.model = \"fixed\"\nlog.directory = \"moved\"\n").unwrap();
        old.command(&["import", "bank.jsonl", "--pipeline", "moved.toml"]);
        let digest = old.command(&["digest", "--json", "--bank", HARBOUR, "--pipeline", "moved.toml"]);
        assert_eq!(digest, old.digest(HARBOUR), "{}", old.name);

        // A replay goes on where the earlier build ended.
        old.ingest(&[said_later("new-1", SENTENCE)]);
        let replayed = old.run(&["replay", "--to", "replay"]);
        assert!(replayed.contains("2 records read, 1 files more"), "{}: {replayed}", old.name);

        let tokens = old.run(&["token", "list"]);
        assert!(tokens.contains("agent") && tokens.contains("sample"), "{}: {tokens}", old.name);
    }
}
