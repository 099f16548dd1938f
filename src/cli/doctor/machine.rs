//! Checks the program, the processor, and the limits that the system sets for a process.
//!
//! In: nothing. Out: findings.

use super::finding::DoctorFinding;

/// With fewer open files than this, a service has few connections, because it uses half of them for connections.
const FEW_FILES: u64 = 4_096;

/// The program of this process.
pub(super) fn program() -> DoctorFinding {
    let features: Vec<&str> = [
        ("buckets", cfg!(feature = "buckets")),
        ("console", cfg!(feature = "console")),
        ("imessage", cfg!(feature = "imessage")),
        ("kafka", cfg!(feature = "kafka")),
        ("llm", cfg!(feature = "llm")),
        ("otlp", cfg!(feature = "otlp")),
        ("qwen3", cfg!(feature = "qwen3")),
    ]
    .into_iter()
    .filter_map(|(name, there)| there.then_some(name))
    .collect();
    let features = if features.is_empty() { "no features".to_owned() } else { features.join(", ") };
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    DoctorFinding::ok("program", format!("{} for {system} on {processor}, with {features}", env!("CARGO_PKG_VERSION")))
}

/// What the processor can do for vectors.
pub(super) fn processor() -> DoctorFinding {
    #[cfg(target_arch = "x86_64")]
    {
        let able = |name: &str, there: bool| there.then(|| name.to_owned());
        let fast: Vec<String> = [
            able("avx2", is_x86_feature_detected!("avx2")),
            able("avx512bw", is_x86_feature_detected!("avx512bw")),
            able("avx512vnni", is_x86_feature_detected!("avx512vnni")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if fast.is_empty() {
            return DoctorFinding::note(
                "processor",
                "no AVX2: answers are the same, but take several times as long; choose a processor or a virtual \
                 machine that has it",
            );
        }
        DoctorFinding::ok("processor", format!("vectors by {}", fast.join(", ")))
    }
    #[cfg(not(target_arch = "x86_64"))]
    DoctorFinding::ok("processor", format!("vectors by the compiler's code for {}", std::env::consts::ARCH))
}

/// The limit on open files.
#[cfg(unix)]
pub(super) fn open_files() -> DoctorFinding {
    use nix::sys::resource::{Resource, getrlimit};
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) if soft >= FEW_FILES => DoctorFinding::ok("open files", format!("at most {soft}")),
        Ok((soft, hard)) => DoctorFinding::note(
            "open files",
            format!(
                "at most {soft}, so a service takes {} connections at once; for more, run `ulimit -n {}` before the \
                 start, or set LimitNOFILE= in a systemd unit",
                soft / 2,
                hard.min(65_536)
            ),
        ),
        Err(error) => DoctorFinding::note("open files", format!("the limit is not known ({error})")),
    }
}

/// On other systems it is not known.
#[cfg(not(unix))]
pub(super) fn open_files() -> DoctorFinding {
    DoctorFinding::ok("open files", "the limit is not known on this system")
}
