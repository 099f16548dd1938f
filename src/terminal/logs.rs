//! Log lines to stderr.
//!
//! In: `RUST_LOG`, and whether the command is a service. Out: log lines as text on a terminal, as JSON otherwise. A
//! command that ends by itself prints warnings like its other messages. Never writes a word of a turn, a question or an
//! answer: other crates, which may log what they send, log nothing below the level `info`, and `rmcp` logs nothing.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write as _},
    path::Path,
};

use tracing::{Event, Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry,
    filter::{Targets, filter_fn},
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};
use types::{
    config::Pipeline,
    logged_bank::{BankNaming, set_bank_naming},
};

/// The crates of this project, as log lines name them.
const OURS: [&str; 17] = [
    "endpoint",
    "erasure",
    "eval",
    "ingest",
    "logs",
    "memory",
    "models",
    "pipeline",
    "replica",
    "ripplemem",
    "scripted_model",
    "server",
    "snapshots",
    "sources",
    "storage",
    "terminal",
    "types",
];
/// The crate that speaks MCP. Its warnings quote the URI of a request, with the question, the bank and the speakers.
const MCP: &str = "rmcp";
/// The file in `log.directory` that holds the key with which banks are hashed.
const KEY_FILE: &str = "logs.key";

/// The layer that sends spans to a collector.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Begins to write log lines, and to send spans if there is a layer for them; if they cannot be sent, the reason is a
/// warning. `RUST_LOG` says which lines, such as `debug` or `info,server=debug`. Without it, a service writes lines
/// from `info` on, and other commands write warnings.
pub fn begin(is_service: bool, spans: Result<Option<SpanLayer>, String>) {
    let usual = if is_service { LevelFilter::INFO } else { LevelFilter::WARN };
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let (targets, wrong) = match wanted.parse::<Targets>() {
        Ok(targets) if !wanted.trim().is_empty() => (targets, None),
        Ok(_) => (ours(usual), None),
        Err(problem) => (ours(usual), Some(problem)),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let registry = tracing_subscriber::registry();
    let (spans, no_spans) = match spans {
        Ok(spans) => (spans, None),
        Err(problem) => (None, Some(problem)),
    };
    let registry = registry.with(spans.with_filter(filter_fn(|metadata| metadata.is_span() && is_ours(metadata))));
    let filter = filter_fn(is_allowed);
    // A second subscriber in one process is refused; there is none.
    drop(if !is_service {
        registry.with(lines.event_format(WarningFormat).with_filter(targets).with_filter(filter)).try_init()
    } else if io::stderr().is_terminal() {
        registry.with(lines.with_filter(targets).with_filter(filter)).try_init()
    } else {
        let lines = lines.json().flatten_event(true).with_current_span(false);
        registry.with(lines.with_filter(targets).with_filter(filter)).try_init()
    });
    if let Some(problem) = wrong {
        tracing::warn!("RUST_LOG {wanted:?}: {problem}; write a level such as debug, or info,server=debug");
    }
    if let Some(problem) = no_spans {
        tracing::warn!("{problem}");
    }
}

/// For our crates, the level `usual`; for others, warnings.
fn ours(usual: LevelFilter) -> Targets {
    Targets::new().with_default(LevelFilter::WARN).with_targets(OURS.map(|name| (name, usual)))
}

/// Whether a line may be written at all, whatever `RUST_LOG` says.
fn is_allowed(metadata: &Metadata<'_>) -> bool {
    is_ours(metadata) || (*metadata.level() <= Level::INFO && of_crate(metadata) != MCP)
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    OURS.contains(&of_crate(metadata))
}

/// The crate that writes a line.
fn of_crate<'m>(metadata: &Metadata<'m>) -> &'m str {
    metadata.target().split("::").next().unwrap_or_default()
}

/// Formats a warning like a command's other messages.
struct WarningFormat;

impl<S, N> FormatEvent<S, N> for WarningFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write!(line, "ripplemem: ")?;
        context.field_format().format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

/// Names banks in log lines as the pipeline says. If the key cannot be kept, the hashes are valid only for this run.
pub fn name_banks_of(pipeline: &Pipeline) {
    if pipeline.logs.banks {
        return set_bank_naming(BankNaming::Plain);
    }
    let path = pipeline.log.directory.join(KEY_FILE);
    match key(&path) {
        Ok(key) => set_bank_naming(BankNaming::Hashed(key)),
        Err(problem) => tracing::warn!(
            file = %path.display(), %problem, "log lines of other runs will name a bank by a different hash"
        ),
    }
}

/// The key in a file; a missing file is created so that only its owner can read it.
fn key(path: &Path) -> io::Result<[u8; 32]> {
    let wrong = |_| io::Error::other("not 32 bytes; remove the file");
    match fs::read(path) {
        Ok(bytes) => return bytes.try_into().map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let key: [u8; 32] = std::array::from_fn(|_| fastrand::u8(..));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(mut file) => file.write_all(&key).map(|()| key),
        // Another process has just created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read(path)?.try_into().map_err(wrong),
        Err(error) => Err(error),
    }
}
