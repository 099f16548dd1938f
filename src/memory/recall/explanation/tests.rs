//! The words of an explanation: the whole, and what would have changed a cutoff.

use super::{cutoff_change::CutoffChange, first_hop_steps::share_text, sentence};
use types::model::{ExplainedSubject, Explanation, ExplanationStep, ExplanationStepName, ExplanationStepState};

fn steps(states: &[(ExplanationStepName, ExplanationStepState)]) -> Vec<ExplanationStep> {
    let of = |step: ExplanationStepName| {
        states.iter().find(|(of, _)| *of == step).map_or(ExplanationStepState::Passed, |(_, state)| *state)
    };
    ExplanationStepName::ALL
        .into_iter()
        .map(|step| ExplanationStep::new(step, of(step), format!("Says {}.", step.name())))
        .collect()
}

#[test]
fn the_sentence_is_that_of_the_step_that_decided() {
    use {ExplanationStepName as Name, ExplanationStepState as State};
    let subject = ExplainedSubject { turn: Some("t".to_owned()), ..ExplainedSubject::default() };
    let of = |states: &[(Name, State)], supported| {
        let steps = steps(states);
        let sentence = sentence::summary_sentence(&subject, &steps, supported);
        Explanation::of("b".to_owned(), sentence, steps)
    };
    let quoted = of(&[(Name::Walk, State::NotReached)], true);
    assert_eq!(
        (quoted.quoted, quoted.failed, quoted.sentence.as_str()),
        (true, None, "Turn t is quoted. Says cutoff.")
    );
    assert!(of(&[], false).sentence.contains("nothing supports the question"));
    let walked = of(&[(Name::Cutoff, State::NotReached)], true);
    assert_eq!(walked.sentence, "Turn t is quoted. Says walk.");
    let out = [(Name::Walk, State::Failed), (Name::Assembly, State::NotReached), (Name::Context, State::NotReached)];
    let below = of(&[&out[..], &[(Name::Cutoff, State::Failed)]].concat(), true);
    assert_eq!((below.quoted, below.failed), (false, Some(Name::Cutoff)));
    assert_eq!(below.sentence, "Turn t is not quoted. Says cutoff. Says walk.");
    let lost = of(&[(Name::Stored, State::Failed), (Name::Context, State::NotReached)], true);
    assert_eq!(lost.sentence, "Turn t is not quoted. Says stored.");
    let unknown = of(&[(Name::Stored, State::Unknown), (Name::Context, State::NotReached)], true);
    assert!(unknown.failed.is_none() && unknown.sentence.contains("cannot be told"), "{}", unknown.sentence);
}

#[test]
fn two_shares_are_written_so_that_they_differ() {
    assert_eq!([share_text(0.41, 0.47), share_text(0.471, 0.472), share_text(0.5, 0.5)], ["0.41", "0.471", "0.500000"]);
}

#[test]
fn a_change_names_only_what_would_be_enough() {
    let words = |budget_tokens, share| CutoffChange { budget_tokens, share }.in_words();
    assert_eq!(words(None, None), None);
    let both = words(Some(2_400), Some(0.31)).unwrap();
    assert!(
        both.contains("recall.budget_tokens of 2400 or more") && both.contains("recall.stop.share of 0.31 or less"),
        "{both}"
    );
    assert!(!words(Some(2_400), None).unwrap().contains("share"));
}
