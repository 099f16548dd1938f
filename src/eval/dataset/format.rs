//! The benchmark formats: their names, and the banks of their conversations.

use types::model::Bank;

/// The published form of a benchmark file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkFormat {
    /// `locomo10.json`: conversations with their questions.
    Locomo,
    /// REALTALK: a directory of dialogues with their questions.
    RealTalk,
    /// LongMemEval: one haystack of sessions per question.
    LongMemEval,
    /// EverMemBench-Dynamic: `dialogue.json` with `qa_NNN.json` beside it.
    EverMemBench,
}

impl BenchmarkFormat {
    /// Every format, in the order of the help.
    pub const ALL: [Self; 4] = [Self::Locomo, Self::RealTalk, Self::LongMemEval, Self::EverMemBench];

    /// The format with this name, as on the command line.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Its name, which is also the name of its source and the first segment of its banks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locomo => "locomo",
            Self::RealTalk => "realtalk",
            Self::LongMemEval => "longmemeval",
            Self::EverMemBench => "evermembench",
        }
    }

    /// The bank of a conversation; `None` if its name cannot name a bank.
    pub(super) fn bank(self, conversation: &str) -> Option<Bank> {
        Bank::parse(&format!("{}/{conversation}", self.name())).ok()
    }
}
