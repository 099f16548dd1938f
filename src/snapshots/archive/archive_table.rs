//! The tables of an archive: one for each topic.

/// A table: one row for each record of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveTable {
    /// The turns topic.
    Turns,
    /// The memory topic.
    Memory,
    /// The dead letters.
    DeadLetters,
}

impl ArchiveTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Turns, Self::Memory, Self::DeadLetters];

    /// Its name, which is also its topic's: `turns`, `memory` or `dead-letters`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Memory => "memory",
            Self::DeadLetters => "dead-letters",
        }
    }

    /// The table of a topic's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}
