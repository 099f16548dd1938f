//! An explanation's summary in one sentence.

use types::model::{ExplainedSubject, ExplanationStep, ExplanationStepName, ExplanationStepState};

/// The sentence that sums up the steps.
pub(super) fn summary_sentence(subject: &ExplainedSubject, steps: &[ExplanationStep], supported: bool) -> String {
    let name = match (&subject.turn, subject.unit) {
        (Some(turn), _) => format!("Turn {turn}"),
        (None, Some(unit)) => format!("Unit {unit}"),
        (None, None) => "It".to_owned(),
    };
    let sentence =
        |name: ExplanationStepName| steps.iter().find(|step| step.step == name).map_or("", |step| &step.sentence);
    let passed = |name: ExplanationStepName| {
        steps.iter().any(|step| step.step == name && step.state == ExplanationStepState::Passed)
    };
    if passed(ExplanationStepName::Context) {
        let by =
            if passed(ExplanationStepName::Cutoff) { ExplanationStepName::Cutoff } else { ExplanationStepName::Walk };
        let unsupported = match supported {
            true => "",
            false => " The answer says that nothing supports the question; the line is only among the nearest.",
        };
        return format!("{name} is quoted. {}{unsupported}", sentence(by));
    }
    let Some(failed) = steps.iter().find(|step| step.state == ExplanationStepState::Failed) else {
        return format!("{name} is not quoted, and which step kept it out cannot be told here.");
    };
    let walked = match failed.step {
        ExplanationStepName::Cutoff => format!(" {}", sentence(ExplanationStepName::Walk)),
        _ => String::new(),
    };
    format!("{name} is not quoted. {}{walked}", failed.sentence)
}
