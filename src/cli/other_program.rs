//! Commands that this program does not have, and where they are.
//!
//! In: what was written on the command line. Out: the program or the build that has the command, for the message.

/// Command -> where it is.
const ELSEWHERE: [(&str, &str); 3] = [
    ("eval", "it is the program ripplemem-eval: ripplemem-eval FORMAT FILE"),
    ("calibrate", "it is a command of the program ripplemem-eval: ripplemem-eval calibrate FILE"),
    ("console", "it is a command of the program ripplemem-eval: ripplemem-eval console --report DIRECTORY"),
];
/// Command of the whole program -> the feature that adds it.
const OF_KAFKA: &str = "repair";

/// Says where to find a command that this program lacks; `None` if it has the command, or no program has it.
pub(crate) fn missing_command_hint(command: &str) -> Option<String> {
    if let Some((_, place)) = ELSEWHERE.iter().find(|(name, _)| *name == command) {
        return Some(format!("{command}: {place}"));
    }
    (command == OF_KAFKA && !cfg!(feature = "kafka"))
        .then(|| format!("{command}: this program was built without Kafka; `make release` builds one with it"))
}
