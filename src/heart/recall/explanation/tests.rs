//! The words of an explanation: the whole, and what would have changed a cutoff.

use super::{change::CutoffChange, first_hop_steps::shown, sentence};
use nouns::model::{ExplainStep, ExplainedSubject, Explanation, StepName, StepState};

fn steps(states: &[(StepName, StepState)]) -> Vec<ExplainStep> {
    let of = |step: StepName| states.iter().find(|(of, _)| *of == step).map_or(StepState::Passed, |(_, state)| *state);
    StepName::ALL.into_iter().map(|step| ExplainStep::new(step, of(step), format!("Says {}.", step.name()))).collect()
}

#[test]
fn the_sentence_is_that_of_the_step_that_decided() {
    use {StepName as Name, StepState as State};
    let subject = ExplainedSubject { turn: Some("t".to_owned()), ..ExplainedSubject::default() };
    let of = |states: &[(Name, State)], supported| {
        let steps = steps(states);
        let sentence = sentence::of(&subject, &steps, supported);
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
    assert_eq!([shown(0.41, 0.47), shown(0.471, 0.472), shown(0.5, 0.5)], ["0.41", "0.471", "0.500000"]);
}

#[test]
fn a_change_names_only_what_would_be_enough() {
    let words = |most_tokens, share| CutoffChange { most_tokens, share }.in_words();
    assert_eq!(words(None, None), None);
    let both = words(Some(2_400), Some(0.31)).unwrap();
    assert!(
        both.contains("most_tokens of 2400 or more") && both.contains("recall.stop.share of 0.31 or less"),
        "{both}"
    );
    assert!(!words(Some(2_400), None).unwrap().contains("share"));
}
