//! The answer of a bank that holds nothing.
//!
//! In: a question. Out: an answer without evidence that says so plainly, since an agent's first question comes before
//! anything was remembered, and a caller must notice a misspelled bank. A question that cannot be asked fails here as
//! well. Nothing is embedded or probed.

use super::{RecallError, planner, question_cues, recollect::asked_settings, token_budget};
use crate::index::FamiliarityResult;
use types::{
    config::RecallSettings,
    model::{Evidence, EvidenceNotice, FlatComparison, LogPosition, NoticeCode, Question, SCHEMA_VERSION, Trace},
};

/// The answer of a bank that holds nothing, as of these positions.
///
/// # Errors
/// [`RecallError`] if the question cannot be asked of any bank.
pub fn empty_bank_evidence(
    question: &Question,
    settings: &RecallSettings,
    reflects: Vec<LogPosition>,
) -> Result<Evidence, RecallError> {
    let settings = asked_settings(question, settings)?;
    let read = question_cues::parse_question(question)?;
    let reason = format!("bank {} holds nothing yet", question.bank);
    let message = format!(
        "bank {}: it holds nothing that was read yet; if it should, check its name, and whether its turns were read",
        question.bank
    );
    let token_budget::BudgetedEvidence { context, tokens, .. } = token_budget::fit_evidence(
        Vec::new(),
        &super::PartShares::of(&FamiliarityResult::default()),
        (&FamiliarityResult::default(), &[]),
        token_budget::ContextRoom { most: settings.stop.most_tokens, usual: settings.budget_tokens, taken: 0 },
        token_budget::ContextNotes { unsupported: Some(&reason), ..Default::default() },
    );
    let trace = Trace {
        cues: question_cues::with_asker(question_cues::question_cues(&read), &read),
        asker: question.asker.clone().filter(|_| read.is_in_first_person()),
        period: None,
        form: None,
        vector_hash: String::new(),
        llm: None,
        scale: None,
        rerank: None,
        first_hop: Vec::new(),
        near: Vec::new(),
        rounds: Vec::new(),
    };
    Ok(Evidence {
        schema: SCHEMA_VERSION,
        question: question.clone(),
        units: Vec::new(),
        context: context.text,
        context_turns: context.turns,
        tokens,
        instructions: Vec::new(),
        superseding: Vec::new(),
        sufficiency: 0.0,
        supported: false,
        stop_reason: planner::NO_START.to_owned(),
        reflects,
        trace,
        forgotten: None,
        flat: question.compare.then(FlatComparison::default),
        notice: Some(EvidenceNotice { code: NoticeCode::EmptyBank, message }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::settings;
    use types::model::Bank;

    #[test]
    fn an_empty_bank_answers_every_question_that_can_be_asked() {
        let question = |text: &str| Question::new(Bank::parse("ann/new").unwrap(), text);
        let asked = Question { compare: true, asker: Some("Ann".to_owned()), ..question("Where do I live?") };
        let found = empty_bank_evidence(&asked, &settings(), Vec::new()).unwrap();
        assert!(found.units.is_empty() && !found.supported && found.sufficiency == 0.0 && found.flat.is_some());
        assert_eq!(found.context, "Nothing in memory supports this question (bank ann/new holds nothing yet).\n");
        assert_eq!(found.tokens.spent as usize, crate::language::token_count::count_tokens(&found.context));
        assert_eq!(found.notice.map(|notice| notice.code), Some(NoticeCode::EmptyBank));
        let few = Question { most_tokens: Some(1), ..question("Who?") };
        assert_eq!(empty_bank_evidence(&few, &settings(), Vec::new()).unwrap().context, "");
        assert!(matches!(
            empty_bank_evidence(&question("?"), &settings(), Vec::new()),
            Err(RecallError::EmptyQuestion)
        ));
        let none = Question { most_tokens: Some(0), ..question("Who?") };
        assert!(matches!(empty_bank_evidence(&none, &settings(), Vec::new()), Err(RecallError::NoTokens)));
    }
}
