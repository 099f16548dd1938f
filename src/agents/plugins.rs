//! Files that are ours alone, for programs whose hooks are programs of their own.
//!
//! In: the path of our program. Out: a plugin, an extension or a script that only calls our hook: what it does is in
//! the hook. None of them ever fails or makes its program wait for longer than the hook's time.

const OPENCODE: &str = include_str!("plugin_opencode.js");
const PI: &str = include_str!("extension_pi.ts");

/// The plugin of opencode.
pub(crate) fn opencode_plugin(program: &str) -> String {
    with_program(OPENCODE, program)
}

/// The extension of Pi.
pub(crate) fn pi_extension(program: &str) -> String {
    with_program(PI, program)
}

/// The script of Cline. A hook that fails says nothing, and its exit code is 0.
pub(crate) fn cline_script(line: &str) -> String {
    format!("#!/bin/sh\n# Written by `ripplemem agents install cline`.\n{line} || true\n")
}

fn with_program(text: &str, program: &str) -> String {
    text.replace("\"RIPPLEMEM\"", &serde_json::Value::from(program).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_names_the_program_as_a_text() {
        let program = r#"C:\a "b"\ripplemem.exe"#;
        for text in [opencode_plugin(program), pi_extension(program)] {
            assert!(text.contains(r#""C:\\a \"b\"\\ripplemem.exe""#), "{text}");
            assert!(!text.contains("\"RIPPLEMEM\""));
        }
    }
}
