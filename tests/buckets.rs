//! Snapshots in a bucket. A failing store affects nothing but snapshots.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use logs::Topic;
use types::config::Pipeline;

use super::{
    broker_process::Broker,
    bucket_process::{Fate, Proxy, Server, with_credentials},
    kafka::{Home, Running, load, turn, uninterrupted, wait},
    oracle::Dice,
    support::{fails, lines, write},
};

fn run(address: SocketAddr, arguments: &[&str]) -> Output {
    with_credentials(&mut Command::new(env!("CARGO_BIN_EXE_ripplemem")), address).args(arguments).output().unwrap()
}

fn told(address: SocketAddr, arguments: &[&str]) -> String {
    let output = run(address, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A pipeline file with its log in a directory and its snapshots in a bucket.
fn file(home: &Path, place: &str) -> PathBuf {
    let text = format!(
        "version = 1\nembed.model = \"fixed\"\nextract.unit_turns = 1\nlog.directory = \"log\"\n\
         snapshot.directory = {place:?}\n"
    );
    write(&home.join("p.toml"), text)
}

fn say(home: &Path, address: SocketAddr, file: &str, n: usize) -> Output {
    let words = ["kayak", "harbour", "boathouse", "roof", "lantern", "kite"];
    let text = format!("Marta keeps the {} beside the {}", words[n % 6], words[(n * 5 + 1) % 6]);
    let jsonl = write(&home.join("more.jsonl"), lines("b", "s", &[(&n.to_string(), "Ann", &text)]));
    run(address, &["ingest", "jsonl", jsonl.to_str().unwrap(), "--pipeline", file])
}

/// A bucket works as a directory does: snapshots, restores, as-of questions, and one writer only.
#[test]
fn a_memory_in_a_bucket() {
    let Some(server) = Server::start("buckets::a_memory_in_a_bucket") else { return };
    let home = tempfile::tempdir().unwrap();
    let path = file(home.path(), "s3://memory/of/mine");
    let path = path.to_str().unwrap();
    let at = server.address;
    let mut then = Vec::new();
    for n in 0..4 {
        let output = say(home.path(), at, path, n);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let log = logs::open(&Pipeline::read(Path::new(path)).unwrap().log).unwrap();
        then.push(log.end(Topic::Memory, 0).unwrap() - 1);
    }
    let listed = server.ask("GET", "/memory?list-type=2&prefix=of/mine/", b"");
    for table in ["turns", "units", "manifests"] {
        assert!(listed.contains(&format!("<Key>of/mine/shard-00000/{table}/")), "{table}: {listed}");
    }
    // From the bucket, and from the log alone.
    let restored = told(at, &["digest", "--pipeline", path]);
    assert!(restored.contains("4 units"), "{restored}");
    assert_eq!(told(at, &["digest", "--pipeline", path, "--snapshots", ""]), restored);
    // Only the bucket has the history.
    let asked = ["ask", "What does Marta keep?", "--bank", "b", "--pipeline", path, "--as-of"];
    let early = told(at, &[&asked[..], &[&then[0].to_string()]].concat());
    assert!(early.contains("kayak") && !early.contains("boathouse"), "{early}");
    let late = told(at, &[&asked[..], &[&then[3].to_string()]].concat());
    assert!(late.contains("kayak") && late.contains("boathouse"), "{late}");

    // Another process wins the race for a manifest's name, and its manifest stays.
    let proxy = Proxy::to(&server, |first| match first.starts_with("PUT") && first.contains("/manifests/") {
        true => Fate::Overtaken(b"the other's".to_vec()),
        false => Fate::Passes,
    });
    let output = say(home.path(), proxy.address, path, 4);
    fails(&output, 1, &["s3://memory/of/mine", "another process writes these snapshots"]);
    let newest = server.ask("GET", "/memory/of/mine/shard-00000/manifests/00000005-000000000006.json", b"");
    assert!(newest.ends_with("the other's"), "{newest}");
    // Its content is not a manifest: it is skipped and named, and the memory is restored from the previous one.
    let output = run(at, &["digest", "--pipeline", path]);
    fails(&output, 0, &["00000005-000000000006.json", "skipped"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("5 units"), "{output:?}");
}

#[test]
fn words_are_found_in_a_bucket_until_a_pass_erases_them() {
    let Some(server) = Server::start("buckets::words_are_found_in_a_bucket_until_a_pass_erases_them") else { return };
    let home = tempfile::tempdir().unwrap();
    let path = file(home.path(), "s3://memory/of/mine");
    let (path, at) = (path.to_str().unwrap(), server.address);
    for n in 0..2 {
        assert!(say(home.path(), at, path, n).status.success());
    }
    let verify = |words: &str| {
        let output = run(at, &["forget", "--verify", "--words", words, "--pipeline", path]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, found) = verify("the kayak beside the harbour");
    let units = |line: &str| line.starts_with("s3://memory/of/mine/shard-00000/units/");
    assert!(code == Some(1) && found.lines().any(units), "{found}");
    told(at, &["forget", "--bank", "b", "0", "--pipeline", path]);
    told(at, &["forget", "--erase-now", "--pipeline", path]);
    let (code, found) = verify("the kayak beside the harbour");
    assert!(code == Some(0) && found.starts_with("gone"), "{found}");
    let (code, found) = verify("the harbour beside the kayak");
    assert!(code == Some(1) && found.lines().any(units), "{found}");
    // In a bucket that cannot be read, the words may still be.
    drop(server);
    let (code, found) = verify("the kayak beside the harbour");
    assert!(code == Some(1) && found.contains("not every file could be read"), "{found}");
}

/// A start with an unavailable or hanging store fails, and says where, what and what to do.
#[test]
fn a_start_without_the_store() {
    let Some(server) = Server::start("buckets::a_start_without_the_store") else { return };
    let home = tempfile::tempdir().unwrap();
    let path = file(home.path(), "s3://memory/start");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = Proxy::to(&server, |_| Fate::Silence);
    let refusing = Proxy::to(&server, |_| Fate::Refused(503));
    for (address, why) in
        [(nobody, "onnection refused"), (silent.address, "no answer within 10 s"), (refusing.address, "503")]
    {
        let output = run(address, &["digest", "--pipeline", path.to_str().unwrap()]);
        fails(&output, 1, &["s3://memory/start", "listing failed", why, "nothing is lost"]);
    }
    let path = file(home.path(), "s3://nowhere/start");
    fails(
        &run(server.address, &["digest", "--pipeline", path.to_str().unwrap()]),
        1,
        &["s3://nowhere", "NoSuchBucket"],
    );
}

/// A random plan: one request in `one_in` fails, in a random way.
fn random_failures(seed: u64, one_in: u64, failed: &Arc<AtomicUsize>) -> impl FnMut(&str) -> Fate + Send + 'static {
    let (mut dice, failed) = (Dice(seed), Arc::clone(failed));
    move |_| {
        if dice.below(one_in) > 0 {
            return Fate::Passes;
        }
        failed.fetch_add(1, Ordering::Relaxed);
        match dice.below(6) {
            0 => Fate::Refused(500),
            1 => Fate::Refused(503),
            2 => Fate::Dropped,
            3 => Fate::Unanswered,
            4 => Fate::Halved,
            _ => Fate::Late(Duration::from_millis(dice.below(400))),
        }
    }
}

/// Whatever fails on the way to the store, no acknowledged turn is lost, and the next snapshot over a
/// working connection has all of them.
#[test]
fn a_store_that_fails_at_random() {
    let Some(server) = Server::start("buckets::a_store_that_fails_at_random") else { return };
    let (failed, mut refused) = (Arc::new(AtomicUsize::new(0)), 0);
    for seed in 0..4 {
        let home = tempfile::tempdir().unwrap();
        let path = file(home.path(), &format!("s3://memory/plan-{seed}"));
        let path = path.to_str().unwrap();
        let proxy = Proxy::to(&server, random_failures(seed, 2 + seed % 3, &failed));
        for n in 0..5 {
            let output = say(home.path(), proxy.address, path, n);
            if !output.status.success() {
                // Only the store failed: the turns are in the log.
                fails(&output, 1, &["s3://memory/plan-", "nothing is lost"]);
                refused += 1;
            }
        }
        proxy.set_plan(|_| Fate::Passes);
        for n in 0..5 {
            let output = say(home.path(), proxy.address, path, n);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let restored = told(server.address, &["digest", "--pipeline", path]);
        assert!(restored.contains("5 units"), "seed {seed}: {restored}");
        assert_eq!(told(server.address, &["digest", "--pipeline", path, "--snapshots", ""]), restored, "seed {seed}");
    }
    let failed = failed.load(Ordering::Relaxed);
    assert!(failed > 20, "{failed}");
    println!("{failed} requests failed, and {refused} commands of 20 with them");
}

/// A running service continues while its store fails, and writes snapshots again once it is available.
#[test]
fn a_service_on_kafka_outlives_its_store() {
    let _turn = turn();
    let test = "buckets::a_service_on_kafka_outlives_its_store";
    let (Some(server), Some(broker)) = (Server::start(test), Broker::shared(test)) else { return };
    let snapshots = "[snapshot]\ndirectory = \"s3://memory/service\"\ninterval_seconds = 1\n";
    let home = Home::new(&broker, "bucket", snapshots);
    let failed = Arc::new(AtomicUsize::new(0));
    let proxy = Proxy::to(&server, |_| Fate::Passes);
    let start = || {
        let told = fs::File::options().create(true).append(true).open(home.directory.path().join("told")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        with_credentials(&mut command, proxy.address).args(["run", home.path()]).stdout(Stdio::null()).stderr(told);
        Running(command.spawn().unwrap())
    };
    let manifests = || server.ask("GET", "/memory?list-type=2&prefix=service/shard-", b"");
    let service = start();
    wait(&|| home.told(), || home.told().contains("ready: "));
    wait(&|| home.told(), || manifests().contains("/manifests/"));
    proxy.set_plan(random_failures(7, 2, &failed));
    load(&home);
    home.extracted();
    let question = ["ask", "Which books has Marta recommended to Elias?", "--bank", "sample/harbour"];
    let ask = |more: &[&str]| told(proxy.address, &[&question[..], &["--pipeline", home.path()], more].concat());
    for _ in 0..3 {
        assert!(ask(&[]).contains("Marta"));
    }
    // The store hangs: a question about the present is still answered.
    proxy.set_plan(|_| Fate::Silence);
    let noticed = home.told().matches("no snapshot is written").count();
    let more = write(
        &home.directory.path().join("more.jsonl"),
        lines("sample/harbour", "later", &[("m1", "Ann", "Marta bought a green kayak")]),
    );
    told(proxy.address, &["ingest", "jsonl", more.to_str().unwrap(), "--pipeline", home.path()]);
    home.extracted();
    assert!(ask(&[]).contains("Marta"));
    wait(&|| home.told(), || home.told().matches("no snapshot is written").count() > noticed);
    let before = manifests();
    proxy.set_plan(|_| Fate::Passes);
    wait(&|| home.told(), || home.told().contains("written again") && manifests() != before);
    // The bucket plus the log's tail give the same memory as the log alone.
    service.kill();
    assert!(failed.load(Ordering::Relaxed) > 0, "{}", home.told());
    let restored = told(proxy.address, &["digest", "--pipeline", home.path()]);
    assert_eq!(told(proxy.address, &["digest", "--pipeline", home.path(), "--snapshots", ""]), restored);
    assert!(uninterrupted().units > 0 && !home.told().contains("another process"), "{}", home.told());
    let _again = start();
    wait(&|| home.told(), || home.told().matches("ready: ").count() == 2);
}
