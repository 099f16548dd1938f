//! Whether the machine has the memory for the banks that are expected.
//!
//! In: the pipeline, and how many banks of how many turns there will be. Out: a finding, with an estimate from what
//! `ripplemem bench --banks` measured (docs/lab/costs.md).

use std::fs;

use types::config::{LogKind, Pipeline};

use super::finding::DoctorFinding;
use crate::cli::kilobyte_field::kilobyte_field;

/// Bytes of a process that holds no bank, with the default model.
const PROCESS_BYTES: u64 = 200_000_000;
/// Bytes of a bank in memory, and of each of its turns.
const AWAKE_BANK_BYTES: u64 = 4_500;
const AWAKE_TURN_BYTES: u64 = 2_200;
/// Bytes of a bank that sleeps.
const ASLEEP_BANK_BYTES: u64 = 1_000;

/// How many banks are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpectedBanks {
    /// Banks.
    pub(super) banks: u64,
    /// The turns of each.
    pub(super) turns: u64,
}

impl ExpectedBanks {
    /// About the bytes of a process with all of them in memory.
    fn awake_bytes(self) -> u64 {
        let of_turns = self.turns.saturating_mul(AWAKE_TURN_BYTES);
        PROCESS_BYTES.saturating_add(self.banks.saturating_mul(AWAKE_BANK_BYTES.saturating_add(of_turns)))
    }

    /// About the bytes of a process in which all of them sleep.
    fn asleep_bytes(self) -> u64 {
        PROCESS_BYTES.saturating_add(self.banks.saturating_mul(ASLEEP_BANK_BYTES))
    }
}

/// Compares what the pipeline may take with what the machine has.
pub(super) fn banks(pipeline: &Pipeline, expected: Option<ExpectedBanks>) -> DoctorFinding {
    finding(pipeline, expected, machine_bytes())
}

fn finding(pipeline: &Pipeline, expected: Option<ExpectedBanks>, machine: Option<u64>) -> DoctorFinding {
    let settings = &pipeline.memory;
    let has = machine.map_or_else(
        || "how much this machine has is not known".to_owned(),
        |of| format!("this machine has {}", gigabytes(of)),
    );
    let is_more = |bytes: u64| machine.is_some_and(|machine| bytes > machine / 10 * 8);
    if is_more(settings.most_bytes) {
        let most = gigabytes(settings.most_bytes);
        return DoctorFinding::mend(
            "banks",
            format!("memory.most_bytes is {most}, and {has}; leave a fifth of it to everything else"),
        );
    }
    let Some(expected) = expected else {
        let bound = match settings.most_bytes {
            0 => String::new(),
            most => format!(", banks may take {} of it", gigabytes(most)),
        };
        let more = "`ripplemem doctor --banks 1000 --turns-per-bank 200` estimates what that many banks take";
        return DoctorFinding::ok("banks", format!("{has}{bound}; {more}"));
    };
    let (awake, asleep) = (expected.awake_bytes(), expected.asleep_bytes());
    let ExpectedBanks { banks, turns } = expected;
    let all = format!("{banks} banks of {turns} turns take about {} in memory", gigabytes(awake));
    let sleeping = format!("about {} while they sleep", gigabytes(asleep));
    match (pipeline.log.kind, settings.has_sleep()) {
        _ if !is_more(awake) => DoctorFinding::ok("banks", format!("{all}, {sleeping}; {has}")),
        (LogKind::Kafka, _) => DoctorFinding::mend(
            "banks",
            format!("{all}, and {has}; divide them among instances with serve.hold = \"assigned\""),
        ),
        (LogKind::Embedded, false) => DoctorFinding::mend(
            "banks",
            format!("{all}, and {has}; with memory.most_bytes they take that and {sleeping}"),
        ),
        (LogKind::Embedded, true) if is_more(asleep) => {
            DoctorFinding::mend("banks", format!("{all}, {sleeping}, and {has}; divide them among machines"))
        }
        (LogKind::Embedded, true) => {
            DoctorFinding::ok("banks", format!("{all}, {sleeping}; {has}, so that unused ones must sleep, as is set"))
        }
    }
}

/// The memory of the machine, or that of the container around this process, if it has less.
fn machine_bytes() -> Option<u64> {
    let whole = kilobyte_field("/proc/meminfo", "MemTotal:");
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain(whole).min()
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::FindingState;

    #[test]
    fn what_does_not_fit_says_what_to_do() {
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        let many = Some(ExpectedBanks { banks: 1_000_000, turns: 20 });
        let few = Some(ExpectedBanks { banks: 1_000, turns: 20 });
        let of = |pipeline: &Pipeline, expected| {
            let DoctorFinding { state, text, .. } = finding(pipeline, expected, Some(16_000_000_000));
            (state, text)
        };
        let (state, text) = of(&pipeline, few);
        assert_eq!(state, FindingState::Ok, "{text}");
        let (state, text) = of(&pipeline, many);
        assert!(state == FindingState::Mend && text.contains("with memory.most_bytes"), "{text}");
        pipeline.log.kind = LogKind::Kafka;
        let (state, text) = of(&pipeline, many);
        assert!(state == FindingState::Mend && text.contains("serve.hold"), "{text}");
        pipeline.log.kind = LogKind::Embedded;
        pipeline.memory.most_bytes = 4_000_000_000;
        let (state, text) = of(&pipeline, many);
        assert!(state == FindingState::Ok && text.contains("must sleep"), "{text}");
        let (state, text) = of(&pipeline, Some(ExpectedBanks { banks: 20_000_000, turns: 20 }));
        assert!(state == FindingState::Mend && text.contains("among machines"), "{text}");
        let (state, text) = of(&pipeline, None);
        assert!(state == FindingState::Ok && text.contains("4.0 GB"), "{text}");
        pipeline.memory.most_bytes = 15_000_000_000;
        let (state, text) = of(&pipeline, few);
        assert!(state == FindingState::Mend && text.contains("memory.most_bytes is 15.0 GB"), "{text}");
        assert_eq!(finding(&Pipeline::parse("version = 1").unwrap(), many, None).state, FindingState::Ok);
    }
}
