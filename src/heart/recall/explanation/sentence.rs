//! The whole explanation in one sentence.

use nouns::model::{ExplainStep, ExplainedSubject, StepName, StepState};

/// What the steps come to.
pub(super) fn of(subject: &ExplainedSubject, steps: &[ExplainStep], supported: bool) -> String {
    let name = match (&subject.turn, subject.unit) {
        (Some(turn), _) => format!("Turn {turn}"),
        (None, Some(unit)) => format!("Unit {unit}"),
        (None, None) => "It".to_owned(),
    };
    let sentence = |name: StepName| steps.iter().find(|step| step.step == name).map_or("", |step| &step.sentence);
    let passed = |name: StepName| steps.iter().any(|step| step.step == name && step.state == StepState::Passed);
    if passed(StepName::Context) {
        let by = if passed(StepName::Cutoff) { StepName::Cutoff } else { StepName::Walk };
        let unsupported = match supported {
            true => "",
            false => " The answer says that nothing supports the question; the line is only among the nearest.",
        };
        return format!("{name} is quoted. {}{unsupported}", sentence(by));
    }
    let Some(failed) = steps.iter().find(|step| step.state == StepState::Failed) else {
        return format!("{name} is not quoted, and which step kept it out cannot be told here.");
    };
    let walked = match failed.step {
        StepName::Cutoff => format!(" {}", sentence(StepName::Walk)),
        _ => String::new(),
    };
    format!("{name} is not quoted. {}{walked}", failed.sentence)
}
