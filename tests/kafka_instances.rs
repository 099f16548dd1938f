//! Several instances on Kafka that divide the memory among them (`serve.hold = "assigned"`), under turns
//! and questions: killed, added and rolled. Every acknowledged turn is remembered once, every question
//! is answered, each answer reflects the turn that it was asked after, and the memory is that of one
//! instance.

use std::{
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

use logs::{KafkaLog, Log, Topic, Transaction, partition_of};
use memory::index::GraphCensus;
use rdkafka::admin::NewPartitions;
use ripplemem::PipelineDriver;
use types::model::{Bank, Question, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, Running, administer, turn, wait},
    oracle::Dice,
    question_client::Client,
    skipped::skip,
    support::{census, fails, kill_rounds, open, pipeline, ripplemem, with_warnings},
};

/// Every partition has a bank.
pub(crate) const BANKS: [&str; 8] = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"];
const PARTITIONS: u32 = 4;
const ASSIGNED: &str = "[serve]\nhold = \"assigned\"\n";
/// No bank has room in memory.
const SLEEPS: &str = "memory.most_bytes = 1\n";
/// A broker on a busy machine waits for a minute at times.
const PATIENCE: Duration = Duration::from_secs(300);
/// In each bank fewer than may wait for a turn (256), even if nothing is answered meanwhile.
const MAX_QUESTIONS: usize = 1_000;

/// An instance on the topics of a prefix, with more in its `[serve]`.
pub(crate) fn instance(broker: &Broker, prefix: &str, extra: &str) -> Home {
    let home = Home::with(broker, prefix, extra, ASSIGNED);
    home.change("partitions = 2", &format!("partitions = {PARTITIONS}"));
    home
}

fn home_of(bank: &str) -> u32 {
    partition_of(&Bank::parse(bank).unwrap(), PARTITIONS)
}

/// How often an instance was assigned a shard.
fn assigned(home: &Home) -> usize {
    home.told().matches("the shard is held here").count()
}

/// How many shards an instance holds, since its last start.
fn held(home: &Home) -> usize {
    let told = home.told();
    let since = told.rfind("\"starting\"").map_or(told.as_str(), |at| &told[at..]);
    let taken = since.matches("the shard is held here").count();
    taken - since.matches("another instance holds the shard").count()
}

pub(crate) fn ready(home: &Home, starts: usize) {
    wait(&|| home.told(), || home.told().matches("ready: ").count() >= starts);
}

/// The fact of a turn, and the question after it.
pub(crate) fn fact(number: usize) -> (String, String) {
    (format!("The token{number} is stored in the boathouse."), format!("Where is the token{number}?"))
}

pub(crate) fn event(bank: &str, number: usize) -> TurnEvent {
    let time = format!("2024-05-06T{:02}:{:02}:{:02}Z", number / 3_600 % 24, number / 60 % 60, number % 60);
    let turn = serde_json::json!({"bank": bank, "turn": number.to_string(), "speaker": "Ann", "text": fact(number).0,
        "time": time, "session": "s"});
    TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
}

/// Turns and questions, one after the other, and what must become of them.
struct Traffic {
    log: KafkaLog,
    client: Client,
    dice: Dice,
    events: Vec<TurnEvent>,
}

impl Traffic {
    fn new(broker: &Broker, home: &Home, prefix: &str) -> Self {
        Self { log: home.log(), client: Client::new(broker, prefix), dice: Dice(7), events: Vec::new() }
    }

    /// Writes a turn and asks for it, until `stopped` or for [`MAX_QUESTIONS`]; then every question must be
    /// answered, with its turn. Returns how many there were.
    fn run(&mut self, stopped: mpsc::Receiver<()>) -> usize {
        let far = (jiff::Timestamp::now().as_millisecond() + 600_000).to_string();
        let mut asked = Vec::new();
        while stopped.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
            if asked.len() == MAX_QUESTIONS {
                continue;
            }
            let number = self.events.len();
            let bank = BANKS[self.dice.below(BANKS.len() as u64) as usize];
            self.events.push(event(bank, number));
            self.log.append_turns(&self.events[number..]).unwrap();
            let next = self.log.end(Topic::Turns, home_of(bank)).unwrap();
            let after = format!("{}:{}", home_of(bank), next - 1);
            let headers = [("ripplemem_deadline", far.as_str()), ("ripplemem_after", after.as_str())];
            asked.push((self.client.ask(bank, &fact(number).1, &headers), bank, number, next));
        }
        let count = asked.len();
        for (id, bank, number, next) in asked {
            let answer = self.client.reply(id, PATIENCE);
            let reflects = answer["reflects"].as_array().unwrap_or_else(|| panic!("question {number}: {answer}"));
            let turns = reflects.iter().find(|p| p["topic"] == "turns" && p["partition"] == home_of(bank)).unwrap();
            assert!(turns["next_offset"].as_u64().unwrap() >= next, "question {number}: {answer}");
            assert!(answer["context"].as_str().unwrap().contains(&fact(number).0), "question {number}: {answer}");
        }
        count
    }

    /// What one instance remembers of the turns.
    fn expected(&self) -> GraphCensus {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut service = open(&pipeline(elsewhere.path(), "embed.read_turns = 16"));
        service.log().append_turns(&self.events).unwrap();
        service.catch_up().unwrap();
        census(&service)
    }

    /// The memory is that of one instance, and so are the answers.
    fn check(&mut self, home: &Home, what: &str) {
        home.extracted();
        let whole = PipelineDriver::open(&home.pipeline(), &mut |_| {}).unwrap();
        assert_eq!(census(&whole), self.expected(), "{what}: {}", home.told());
        for bank in BANKS.into_iter().filter(|bank| self.events.iter().any(|e| e.bank().as_str() == *bank)) {
            let text = "What is in the boathouse?";
            let id = self.client.ask(bank, text, &[]);
            let question = Question::new(Bank::parse(bank).unwrap(), text);
            let expected = serde_json::to_value(whole.ask(&question).unwrap()).unwrap();
            let answer = self.client.reply(id, PATIENCE);
            assert_eq!(answer["units"], expected["units"], "{what}: bank {bank}: {answer}");
        }
    }

    /// Runs beside `changes`.
    fn beside(&mut self, changes: impl FnOnce()) -> usize {
        let (stop, stopped) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let running = scope.spawn(move || self.run(stopped));
            changes();
            drop(stop);
            running.join().unwrap()
        })
    }
}

/// In every round one instance is killed, and starts again at once or once the others have its shards;
/// two instances, and three from the middle on. In one of them, banks sleep as soon as they can.
#[test]
fn killed_instances_lose_nothing_and_answer_every_question() {
    let _turn = turn();
    let test = "kafka_instances::killed_instances_lose_nothing_and_answer_every_question";
    let Some(broker) = Broker::shared(test) else { return };
    let rounds = kill_rounds("RIPPLEMEM_INSTANCE_KILL_ROUNDS");
    let homes: Vec<Home> = ["", SLEEPS, ""].iter().map(|extra| instance(&broker, "divided", extra)).collect();
    let mut running: Vec<Option<Running>> = vec![Some(homes[0].run()), None, None];
    let mut starts = [1, 0, 0];
    ready(&homes[0], 1);
    let mut traffic = Traffic::new(&broker, &homes[0], "divided");
    let (mut asked, begun) = (0, Instant::now());
    for round in 0..rounds {
        let mut dice = Dice(round);
        let all = if round < rounds / 2 { 2 } else { 3 };
        asked += traffic.beside(|| {
            for n in 0..all {
                if running[n].is_none() {
                    running[n] = Some(homes[n].run());
                    starts[n] += 1;
                }
            }
            std::thread::sleep(Duration::from_millis(dice.below(1_500)));
            let killed = dice.below(all as u64) as usize;
            running[killed].take().unwrap().kill();
            if dice.below(2) == 0 {
                running[killed] = Some(homes[killed].run());
                starts[killed] += 1;
            }
        });
        traffic.check(&homes[0], &format!("round {round}"));
    }
    for (home, starts) in homes.iter().zip(starts) {
        ready(home, usize::from(starts > 0));
    }
    let seconds = begun.elapsed().as_secs_f64() / rounds as f64;
    println!("{rounds} kills of one of two or three instances, {seconds:.1} s a round; {asked} turns, each asked for");
}

#[test]
fn instances_are_added_and_rolled_and_refuse_nothing() {
    let _turn = turn();
    let test = "kafka_instances::instances_are_added_and_rolled_and_refuse_nothing";
    let Some(broker) = Broker::shared(test) else { return };
    rolled(&broker, "rolled", env!("CARGO_BIN_EXE_ripplemem"));
}

/// `RIPPLEMEM_BEFORE` names the binary of an earlier version.
#[test]
fn instances_are_rolled_from_the_version_before() {
    let _turn = turn();
    let test = "kafka_instances::instances_are_rolled_from_the_version_before";
    let Ok(before) = std::env::var("RIPPLEMEM_BEFORE") else {
        return skip(test, "RIPPLEMEM_BEFORE does not name the binary of an earlier version");
    };
    let Some(broker) = Broker::shared(test) else { return };
    rolled(&broker, "upgraded", &before);
}

/// Two instances of a build hold all shards, as every build does without other settings; one of this
/// build is added that holds what it is assigned. Then each is stopped and started as this build, to
/// divide the memory.
fn rolled(broker: &Broker, prefix: &str, before: &str) {
    let homes: Vec<Home> = (0..3).map(|_| instance(broker, prefix, "")).collect();
    homes[..2].iter().for_each(|home| home.change(ASSIGNED, ""));
    let mut running: Vec<Running> = homes[..2].iter().map(|home| home.run_build(before)).collect();
    homes[..2].iter().for_each(|home| ready(home, 1));
    let mut traffic = Traffic::new(broker, &homes[0], prefix);
    let asked = traffic.beside(|| {
        running.push(homes[2].run());
        ready(&homes[2], 1);
        for (n, home) in homes.iter().enumerate() {
            running.remove(0).stop();
            if n < 2 {
                home.change("[log]", &format!("{ASSIGNED}[log]"));
            }
            running.push(home.run());
            ready(home, 2);
        }
        homes.iter().for_each(|home| wait(&|| home.told(), || assigned(home) > 0));
    });
    traffic.check(&homes[0], "rolled");
    println!("two instances added to and rolled; {asked} turns, each asked for and answered");
}

#[test]
fn a_question_in_another_partition_than_its_banks_is_forwarded_once() {
    let _turn = turn();
    let test = "kafka_instances::a_question_in_another_partition_than_its_banks_is_forwarded_once";
    let Some(broker) = Broker::shared(test) else { return };
    let homes: Vec<Home> = (0..2).map(|_| instance(&broker, "strays", "")).collect();
    let _running: Vec<Running> = homes.iter().map(Home::run).collect();
    homes.iter().for_each(|home| ready(home, 1));
    let mut traffic = Traffic::new(&broker, &homes[0], "strays");
    traffic.events = BANKS.iter().enumerate().map(|(number, bank)| event(bank, number)).collect();
    traffic.log.append_turns(&traffic.events).unwrap();
    homes[0].extracted();
    let client = &mut traffic.client;
    let far = (jiff::Timestamp::now().as_millisecond() + 600_000).to_string();
    let far = ("ripplemem_deadline", far.as_str());
    let mut asked = Vec::new();
    for (number, bank) in BANKS.into_iter().enumerate() {
        let partition = (home_of(bank) + 1) % PARTITIONS;
        let id = client.ask_in(Some(partition as i32), bank, &fact(number).1, &[far]);
        asked.push((id, number, format!("{partition}/")));
    }
    for (id, number, from) in asked {
        let (asked_as, answer) = client.reply_with_id(id, PATIENCE);
        assert!(answer["context"].as_str().is_some_and(|text| text.contains(&fact(number).0)), "{answer}");
        assert!(asked_as.starts_with(&from), "{asked_as} is the question's first place, in partition {from}");
    }
    // What was forwarded already is not forwarded again, which ends a loop.
    let stray = ((home_of(BANKS[0]) + 1) % PARTITIONS) as i32;
    let id = client.ask_in(Some(stray), BANKS[0], &fact(0).1, &[far, ("ripplemem_forwarded", "1"), ("ce_id", "9/9")]);
    let (asked_as, refusal) = client.reply_with_id(id, PATIENCE);
    assert_eq!((asked_as.as_str(), refusal["code"].as_str()), ("9/9", Some("failed")), "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("log.partitions"), "{refusal}");
    // The command line asks as any client does.
    let asked = ripplemem(&["ask", &fact(2).1, "--bank", BANKS[2], "--pipeline", homes[1].path()]);
    assert!(String::from_utf8_lossy(&asked.stdout).contains(&fact(2).0), "{asked:?}");
    // Each shard has one holder.
    let told = homes.iter().map(Home::told).collect::<String>();
    let held = |partition| told.contains(&format!("\"the shard is held here\",\"partition\":{partition},"));
    assert!((0..PARTITIONS).all(held), "{told}");
    assert!(homes.iter().all(|home| assigned(home) > 0), "the instances divide them: {told}");
}

/// A record with a key that no build reads: its shard waits before it and answers as of earlier.
#[test]
fn poison_in_one_partition_stops_no_other() {
    let _turn = turn();
    let test = "kafka_instances::poison_in_one_partition_stops_no_other";
    let Some(broker) = Broker::shared(test) else { return };
    let homes: Vec<Home> = (0..2).map(|_| instance(&broker, "poisoned", "")).collect();
    let running: Vec<Running> = homes.iter().map(Home::run).collect();
    homes.iter().for_each(|home| ready(home, 1));
    let mut traffic = Traffic::new(&broker, &homes[0], "poisoned");
    traffic.events = BANKS.iter().enumerate().map(|(number, bank)| event(bank, number)).collect();
    traffic.log.append_turns(&traffic.events).unwrap();
    homes[0].extracted();
    running.into_iter().for_each(Running::stop);
    let sick = home_of(BANKS[0]);
    let log = homes[0].log();
    log.own(sick).unwrap();
    let next_offset = log.read_position(sick).unwrap();
    let memory = vec![(b"no key".to_vec(), Some(b"{}".to_vec()))];
    log.commit(&Transaction { partition: sick, next_offset, memory, ..Transaction::default() }).unwrap();
    let _running: Vec<Running> = homes.iter().map(Home::run).collect();
    homes.iter().for_each(|home| ready(home, 2));
    let (well, first) = (0..BANKS.len()).partition::<Vec<_>, _>(|n| home_of(BANKS[*n]) != sick);
    assert!(!well.is_empty() && first.contains(&0));
    for number in first.into_iter().chain(well.iter().copied()) {
        let id = traffic.client.ask(BANKS[number], &fact(number).1, &[]);
        let answer = traffic.client.reply(id, PATIENCE);
        assert!(answer["context"].as_str().is_some_and(|text| text.contains(&fact(number).0)), "{answer}");
    }
    let number = traffic.events.len();
    let bank = BANKS[well[0]];
    traffic.log.append_turns(&[event(bank, number)]).unwrap();
    let after = format!("{}:{}", home_of(bank), traffic.log.end(Topic::Turns, home_of(bank)).unwrap() - 1);
    let id = traffic.client.ask(bank, &fact(number).1, &[("ripplemem_after", &after)]);
    let answer = traffic.client.reply(id, PATIENCE);
    assert!(answer["context"].as_str().is_some_and(|text| text.contains(&fact(number).0)), "{answer}");
    let told = homes.iter().map(Home::told).collect::<String>();
    assert!(told.contains(&format!("memory partition {sick} waits before offset")), "{told}");
}

#[test]
fn instances_that_divide_the_memory_need_as_many_partitions_of_questions() {
    let _turn = turn();
    let test = "kafka_instances::instances_that_divide_the_memory_need_as_many_partitions_of_questions";
    let Some(broker) = Broker::shared(test) else { return };
    let home = instance(&broker, "uneven", "");
    drop(home.log());
    administer(&broker, async |admin, options| {
        let more = [NewPartitions::new("uneven.questions", 6)];
        admin.create_partitions(&more, options).await.unwrap().into_iter().for_each(|made| drop(made.unwrap()));
        // The broker learns of them from the controller after that.
        let partitions = || {
            let metadata = admin.inner().fetch_metadata(Some("uneven.questions"), Duration::from_secs(10)).unwrap();
            metadata.topics()[0].partitions().len()
        };
        wait(&|| format!("{} partitions", partitions()), || partitions() == 6);
    });
    let refused = ["uneven.questions", "it has 6 partition(s)", "kafka-topics.sh --delete --topic uneven.questions"];
    fails(&ripplemem(&["run", home.path()]), 1, &refused);
    home.change("hold = \"assigned\"", "hold = \"all\"");
    let _running = home.run();
    ready(&home, 1);
}

/// The instance writes snapshots each second, in one place with others.
fn recorded(home: Home, place: &Path) -> Home {
    home.change(
        "[log]",
        &format!("[snapshot]\ndirectory = {:?}\ninterval_seconds = 1\n[log]", place.display().to_string()),
    );
    home
}

/// Whether every shard has a snapshot in the place.
fn has_snapshots(place: &Path) -> bool {
    let manifests = |partition| std::fs::read_dir(place.join(format!("shard-{partition:05}/manifests")));
    (0..PARTITIONS).all(|partition| manifests(partition).is_ok_and(|mut found| found.next().is_some()))
}

/// A start from the place finds every snapshot whole, and gives what one instance remembers.
fn check_place(home: &Home, traffic: &Traffic) {
    let (whole, warnings) = with_warnings(|| PipelineDriver::open(&home.pipeline(), &mut |_| {}).unwrap());
    assert_eq!(warnings, "");
    assert_eq!(census(&whole), traffic.expected(), "{}", home.told());
}

/// The instances divide the memory, and the instance that gets a shard continues the snapshots of the one before, which
/// was killed or stopped. In one of them, banks sleep as soon as they can.
#[test]
fn moved_shards_continue_from_the_snapshots_of_the_holder_before() {
    let _turn = turn();
    let test = "kafka_instances::moved_shards_continue_from_the_snapshots_of_the_holder_before";
    let Some(broker) = Broker::shared(test) else { return };
    let place = tempfile::tempdir().unwrap();
    let of = |extra: &&str| recorded(instance(&broker, "moved", extra), place.path());
    let homes: Vec<Home> = ["", SLEEPS].iter().map(of).collect();
    let mut running: Vec<Option<Running>> = homes.iter().map(|home| Some(home.run())).collect();
    homes.iter().for_each(|home| ready(home, 1));
    let mut traffic = Traffic::new(&broker, &homes[0], "moved");
    let mut dice = Dice(18);
    for round in 0..3 {
        traffic.beside(|| {
            wait(&|| homes[0].told(), || has_snapshots(place.path()));
            std::thread::sleep(Duration::from_millis(dice.below(1_500)));
            let (gone, is_killed) = (dice.below(2) as usize, dice.below(2) == 0);
            let ended = running[gone].take().unwrap();
            if is_killed {
                ended.kill();
            } else {
                ended.stop();
            }
            // Until the other has every shard, and has had the time to write its snapshots.
            let other = &homes[1 - gone];
            wait(&|| other.told(), || held(other) == PARTITIONS as usize);
            std::thread::sleep(Duration::from_millis(dice.below(1_500)));
            running[gone] = Some(homes[gone].run());
        });
        traffic.check(&homes[0], &format!("round {round}"));
    }
    running.into_iter().flatten().for_each(Running::stop);
    check_place(&homes[1], &traffic);
    let told: String = homes.iter().map(Home::told).collect();
    assert!(!told.contains("no snapshot:") && !told.contains("is skipped"), "{told}");
}

/// Both instances hold every shard: one writes the snapshots, and the other goes on once it ends. The claims
/// of one that was killed stay for a minute; meanwhile the other answers.
#[test]
fn of_two_instances_that_hold_everything_one_writes_the_snapshots() {
    let _turn = turn();
    let test = "kafka_instances::of_two_instances_that_hold_everything_one_writes_the_snapshots";
    let Some(broker) = Broker::shared(test) else { return };
    let place = tempfile::tempdir().unwrap();
    let homes: Vec<Home> = (0..2).map(|_| recorded(instance(&broker, "copies", ""), place.path())).collect();
    homes.iter().for_each(|home| home.change(ASSIGNED, ""));
    let first = homes[0].run();
    ready(&homes[0], 1);
    let mut traffic = Traffic::new(&broker, &homes[0], "copies");
    traffic.beside(|| wait(&|| homes[0].told(), || has_snapshots(place.path())));
    let second = homes[1].run();
    let elsewhere =
        format!("another process writes those of these shards; this one keeps answering\",\"shards\":{PARTITIONS}");
    let says = |home: &Home, what: &str| wait(&|| home.told(), || home.told().contains(what));
    traffic.beside(|| says(&homes[1], &elsewhere));
    traffic.check(&homes[1], "beside the writer");
    traffic.beside(|| {
        first.stop();
        says(&homes[1], &format!("this process writes those of more shards from now on\",\"shards\":{PARTITIONS}"));
    });
    traffic.check(&homes[1], "after the writer");
    second.kill();
    let first = homes[0].run();
    ready(&homes[0], 2);
    traffic.beside(|| says(&homes[0], &elsewhere));
    traffic.check(&homes[0], "after a kill");
    first.stop();
    check_place(&homes[0], &traffic);
}
