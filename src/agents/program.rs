//! The programs that a memory can be given to.
//!
//! In: a name. Out: how the program is called, at which of its moments it calls a hook, how much it takes, and what its
//! user has to do. To add a program, add it here, its entries in `entries`, and where its hook speaks another form, in
//! `hook_call` and `hook_answer`.

/// A program that people talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are those of the programs")]
pub enum AgentProgram {
    ClaudeCode,
    Codex,
    Gemini,
    Copilot,
    Opencode,
    Pi,
    Cline,
    Cursor,
    QwenCode,
    VsCode,
    ClaudeDesktop,
    Zed,
    Goose,
    Windsurf,
}

/// How much a program takes from one hook, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLimit {
    /// Units of UTF-16, which JavaScript counts as characters.
    Characters(usize),
    /// Tokens, as we estimate them: never fewer than there are.
    Tokens(usize),
    /// Bytes of UTF-8.
    Bytes(usize),
}

/// What is stated of a program.
struct ProgramFacts {
    program: AgentProgram,
    name: &'static str,
    /// Another name by which it is known: that of its transcripts' format.
    alias: &'static str,
    label: &'static str,
    /// The start of a session and the prompt, by the program's names; empty if it has no hook that can inject.
    events: &'static [&'static str],
    limit: TextLimit,
    /// Whether its talk is read from its transcripts.
    has_transcripts: bool,
    trust: &'static str,
}

const fn mcp_only(
    program: AgentProgram,
    name: &'static str,
    label: &'static str,
    has_transcripts: bool,
    trust: &'static str,
) -> ProgramFacts {
    ProgramFacts { program, name, alias: name, label, events: &[], limit: TextLimit::Tokens(0), has_transcripts, trust }
}

const MCP_TRUST: &str = "no hook of it can give a model anything at a prompt: it recalls when the model asks the tools";

const FACTS: [ProgramFacts; 14] = [
    ProgramFacts {
        program: AgentProgram::ClaudeCode,
        name: "claude-code",
        alias: "claude",
        label: "Claude Code",
        events: &["SessionStart", "UserPromptSubmit"],
        // 10,001 are spilled to a file, of which the model sees 2,000.
        limit: TextLimit::Characters(9_900),
        has_transcripts: true,
        trust: "restart it, and trust the folder where it asks; `/hooks` lists both hooks",
    },
    ProgramFacts {
        program: AgentProgram::Codex,
        name: "codex",
        alias: "codex-cli",
        label: "Codex",
        events: &["SessionStart", "UserPromptSubmit"],
        // About 2,500 tokens; the middle of what is longer is cut out.
        limit: TextLimit::Tokens(2_400),
        has_transcripts: true,
        trust: "start `codex` and trust both hooks in `/hooks`: it skips an untrusted one without a word, and asks again \
                after each change of the command",
    },
    ProgramFacts {
        program: AgentProgram::Gemini,
        name: "gemini",
        alias: "gemini-cli",
        label: "Gemini CLI",
        events: &["SessionStart", "BeforeAgent"],
        limit: TextLimit::Tokens(2_400),
        has_transcripts: true,
        trust: "restart it; `/hooks panel` lists both hooks",
    },
    ProgramFacts {
        program: AgentProgram::Copilot,
        name: "copilot",
        alias: "copilot-cli",
        label: "Copilot CLI",
        events: &["sessionStart", "userPromptSubmitted"],
        limit: TextLimit::Tokens(2_400),
        has_transcripts: true,
        trust: "restart it, and trust the folder where it asks",
    },
    ProgramFacts {
        program: AgentProgram::Opencode,
        name: "opencode",
        alias: "opencode",
        label: "opencode",
        events: &["session.compacted", "chat.message"],
        limit: TextLimit::Tokens(2_400),
        has_transcripts: true,
        trust: "restart it; it loads the plugin without asking",
    },
    ProgramFacts {
        program: AgentProgram::Pi,
        name: "pi",
        alias: "pi",
        label: "Pi",
        events: &["session_compact", "before_agent_start"],
        limit: TextLimit::Tokens(2_400),
        has_transcripts: true,
        trust: "restart it; it loads the extension without asking",
    },
    ProgramFacts {
        program: AgentProgram::Cline,
        name: "cline",
        alias: "cline",
        label: "Cline",
        events: &["TaskStart", "UserPromptSubmit"],
        limit: TextLimit::Bytes(49_000),
        has_transcripts: true,
        trust: "turn hooks on in its settings",
    },
    mcp_only(
        AgentProgram::Cursor,
        "cursor",
        "Cursor",
        true,
        "its hook at a prompt cannot give a model anything, so it recalls when the model asks the tools; where it loads \
         Claude Code's hooks, these give it memories, and they answer each session once",
    ),
    mcp_only(AgentProgram::QwenCode, "qwen-code", "Qwen Code", true, MCP_TRUST),
    mcp_only(AgentProgram::VsCode, "vscode", "VS Code", false, MCP_TRUST),
    mcp_only(AgentProgram::ClaudeDesktop, "claude-desktop", "Claude Desktop", false, MCP_TRUST),
    mcp_only(AgentProgram::Zed, "zed", "Zed", true, MCP_TRUST),
    mcp_only(AgentProgram::Goose, "goose", "Goose", true, MCP_TRUST),
    mcp_only(AgentProgram::Windsurf, "windsurf", "Windsurf", false, MCP_TRUST),
];

impl AgentProgram {
    /// All programs, in the order of the help.
    pub fn all() -> impl Iterator<Item = Self> {
        FACTS.iter().map(|facts| facts.program)
    }

    /// The program of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        FACTS.iter().find(|facts| facts.name == name || facts.alias == name).map(|facts| facts.program)
    }

    fn facts(self) -> &'static ProgramFacts {
        &FACTS[self as usize]
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The name of its transcripts' format; of a program without transcripts its own name.
    #[must_use]
    pub fn format(self) -> &'static str {
        match self {
            Self::Gemini | Self::Copilot => self.facts().alias,
            _ => self.facts().name,
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.facts().label
    }

    /// The moments at which it calls a hook, by the program's names.
    #[must_use]
    pub fn events(self) -> &'static [&'static str] {
        self.facts().events
    }

    /// How much it takes from one hook.
    #[must_use]
    pub fn limit(self) -> TextLimit {
        self.facts().limit
    }

    /// Whether what is said in it is read from its transcripts. Else the tools may write, too.
    #[must_use]
    pub fn has_transcripts(self) -> bool {
        self.facts().has_transcripts
    }

    /// Whether a session that is resumed still has what its prompts were given. Gemini CLI shows a resumed session only
    /// what was typed and answered.
    #[must_use]
    pub fn keeps_given(self) -> bool {
        self != Self::Gemini
    }

    /// What its user has to do or to know.
    #[must_use]
    pub fn trust(self) -> &'static str {
        self.facts().trust
    }
}

impl TextLimit {
    /// Whether a text fits.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        match self {
            Self::Characters(most) => text.encode_utf16().count() <= most,
            Self::Tokens(most) => estimated_tokens(text) <= most,
            Self::Bytes(most) => text.len() <= most,
        }
    }
}

/// By which a text is known again: its hash.
#[must_use]
pub fn text_mark(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// At least as many tokens as a text has: three letters of ASCII make one, and so does each other letter. English has
/// more than four letters to a token, code some three.
#[must_use]
pub(crate) fn estimated_tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|letter| !letter.is_ascii()).count();
    ascii.div_ceil(3) + others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_stands_in_its_place() {
        for (at, program) in AgentProgram::all().enumerate() {
            assert_eq!(program as usize, at);
            assert_eq!(AgentProgram::of_name(program.name()), Some(program));
        }
        assert_eq!(AgentProgram::of_name("gemini-cli"), Some(AgentProgram::Gemini));
        assert_eq!(AgentProgram::of_name("emacs"), None);
    }

    #[test]
    fn a_limit_counts_in_the_programs_unit() {
        assert!(TextLimit::Characters(3).holds("äöü") && !TextLimit::Characters(3).holds("ab\u{1f600}"));
        assert!(TextLimit::Bytes(6).holds("äöü") && !TextLimit::Bytes(5).holds("äöü"));
        assert!(TextLimit::Tokens(3).holds("äöü") && TextLimit::Tokens(2).holds("sixsix"));
        assert!(!TextLimit::Tokens(2).holds("six six"));
    }
}
