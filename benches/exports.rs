//! Large exports of chat platforms, read and appended to a log: `cargo bench --bench exports`.
//!
//! Writes an export of `RIPPLEMEM_EXPORT_MB` megabytes (256), once for each of `RIPPLEMEM_EXPORT_FORMATS`
//! (all: slack, discord, telegram, whatsapp, irc), and reads it in a process of its own: messages per second from the
//! file to turns, then the same with the embedded log behind, and the peak memory of each, as the kernel counts it.
//! Nothing is embedded. Each format needs the export's size on the disk, and about as much again for the log.
#![allow(clippy::print_stdout)]

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::Command,
    time::Instant,
};

use types::config::{Pipeline, SourceSettings};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const FORMATS: [&str; 5] = ["slack", "discord", "telegram", "whatsapp", "irc"];
/// Events of a batch, as `ripplemem ingest` reads them.
const BATCH: usize = 512;
const WORDS: [&str; 16] = [
    "the", "ferry", "leaves", "at", "noon", "from", "harbour", "and", "Ann", "asked", "whether", "tickets", "for",
    "Lisbon", "were", "booked",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, "--read", format, path, home] = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return read(format, Path::new(path), (!home.is_empty()).then_some(Path::new(home)));
    }
    let megabytes = std::env::var("RIPPLEMEM_EXPORT_MB").ok().and_then(|mb| mb.parse().ok()).unwrap_or(256);
    let formats = std::env::var("RIPPLEMEM_EXPORT_FORMATS").unwrap_or_else(|_| FORMATS.join(","));
    for format in FORMATS.into_iter().filter(|format| formats.split(',').any(|chosen| chosen == *format)) {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = write(format, home.path(), megabytes * 1_000_000);
        let log = home.path().join("log");
        for log in ["", log.to_str().expect("a path in UTF-8")] {
            let program = std::env::current_exe().expect("this program");
            let arguments = ["--read", format, path.to_str().expect("a path in UTF-8"), log];
            let done = Command::new(program).args(arguments).status().expect("this program runs");
            assert!(done.success(), "{format}: {done}");
        }
    }
}

/// Reads an export to its end, and prints how fast and in how much memory.
fn read(format: &str, path: &Path, home: Option<&Path>) {
    let mut settings = SourceSettings::new(format, path);
    settings.bank = "b".to_owned();
    let mut source = sources::open(&settings).expect("an export");
    let log = home.map(|home| {
        let mut pipeline = Pipeline::parse("version = 1").expect("the defaults are valid");
        pipeline.log.directory = home.to_owned();
        logs::open(&pipeline.log).expect("a log")
    });
    let (mut events, mut rejects) = (0, 0);
    let begun = Instant::now();
    while let Some(batch) = source.next(BATCH).expect("the export is read") {
        events += batch.events.len();
        rejects += batch.rejects.len();
        if let Some(log) = &log {
            log.append_turns(&batch.events).expect("the log takes them");
        }
    }
    let time = begun.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    println!(
        "{format:9} {:12} {events:9} events, {rejects} rejects, {time:6.1} s, {:8.0} a second, {:5} MB",
        if home.is_some() { "read, stored" } else { "read" },
        events as f64 / time,
        peak.map_or(0, |kilobytes: u64| kilobytes / 1_000),
    );
}

/// Writes an export of about that many bytes; returns the path to read.
fn write(format: &str, home: &Path, bytes: u64) -> std::path::PathBuf {
    let (path, before, between, after) = match format {
        "slack" => (home.join("export"), "", "", ""),
        "discord" => (
            home.join("chat.json"),
            r#"{"guild":{"id":"1","name":"Makers"},"channel":{"id":"10","type":"GuildTextChat","categoryId":"11","category":"x","name":"general"},"messages":["#,
            ",\n",
            "]}",
        ),
        "telegram" => (
            home.join("result.json"),
            r#"{"name":"Trip","type":"private_supergroup","id":77,"messages":["#,
            ",\n",
            "]}",
        ),
        "whatsapp" => (home.join("_chat.txt"), "", "", ""),
        _ => (home.join("#harbour.log"), "", "", ""),
    };
    if format == "slack" {
        write_slack(&path, bytes);
        return path;
    }
    let mut file = BufWriter::new(File::create(&path).expect("a file"));
    file.write_all(before.as_bytes()).expect("room on the disk");
    let (mut written, mut n) = (0, 0);
    while written < bytes {
        let record = record(format, n);
        let between = if n == 0 { "" } else { between };
        file.write_all(between.as_bytes()).expect("room on the disk");
        file.write_all(record.as_bytes()).expect("room on the disk");
        written += (record.len() + between.len()) as u64;
        n += 1;
    }
    file.write_all(after.as_bytes()).expect("room on the disk");
    file.flush().expect("room on the disk");
    path
}

/// A workspace of eight channels, with one file per day and channel.
fn write_slack(path: &Path, bytes: u64) {
    const CHANNELS: u64 = 8;
    fs::create_dir_all(path).expect("a directory");
    let users: Vec<String> =
        (0..50).map(|n| format!(r#"{{"id":"U{n}","name":"u{n}","profile":{{"display_name":"User {n}"}}}}"#)).collect();
    fs::write(path.join("users.json"), format!("[{}]", users.join(","))).expect("a file");
    let channels: Vec<String> = (0..CHANNELS).map(|n| format!(r#"{{"id":"C{n}","name":"channel-{n}"}}"#)).collect();
    fs::write(path.join("channels.json"), format!("[{}]", channels.join(","))).expect("a file");
    let (mut written, mut day, mut n) = (0, 0_i64, 0);
    while written < bytes {
        let date = jiff::civil::date(2015, 1, 1) + jiff::Span::new().days(day);
        for channel in 0..CHANNELS {
            let folder = path.join(format!("channel-{channel}"));
            fs::create_dir_all(&folder).expect("a directory");
            let messages: Vec<String> = (0..400)
                .map(|at| {
                    n += 1;
                    let second = 1_420_070_400 + day * 86_400 + at * 200;
                    format!(
                        r#"{{"type":"message","ts":"{second}.{:06}","user":"U{}","text":"{}","team":"T1"}}"#,
                        n % 1_000_000,
                        n % 50,
                        words(n)
                    )
                })
                .collect();
            let text = format!("[{}]", messages.join(",\n"));
            written += text.len() as u64;
            fs::write(folder.join(format!("{date}.json")), text).expect("room on the disk");
        }
        day += 1;
    }
}

fn record(format: &str, n: u64) -> String {
    let at = jiff::Timestamp::from_second(1_420_070_400 + n as i64 * 20).expect("a time");
    let (time, day, clock) = (at.to_string(), at.strftime("%d.%m.%y"), at.strftime("%H:%M:%S"));
    let text = words(n);
    match format {
        "discord" => format!(
            r#"{{"id":"{}","type":"Default","timestamp":"{time}","timestampEdited":null,"content":"{text}","author":{{"id":"{}","name":"u{}","discriminator":"0000","nickname":"User {}","isBot":false}},"attachments":[],"embeds":[],"stickers":[],"mentions":[]}}"#,
            1_000_000_000_000 + n,
            n % 50,
            n % 50,
            n % 50
        ),
        "telegram" => format!(
            r#"{{"id":{n},"type":"message","date":"{}","date_unixtime":"{}","from":"User {}","from_id":"user{}","text":"{text}","text_entities":[{{"type":"plain","text":"{text}"}}]}}"#,
            at.strftime("%Y-%m-%dT%H:%M:%S"),
            at.as_second(),
            n % 50,
            n % 50
        ),
        "whatsapp" => format!("[{day}, {clock}] User {}: {text}\n", n % 50),
        _ => format!("{} {clock}\t<user{}>\t{text}\n", at.strftime("%Y-%m-%d"), n % 50),
    }
}

/// About seventy bytes, different for each message.
fn words(n: u64) -> String {
    let chosen: Vec<&str> =
        (0..11).map(|k| WORDS[((n.wrapping_mul(2_654_435_761) >> (k * 3)) % 16) as usize]).collect();
    format!("{} {n}", chosen.join(" "))
}
