//! The refusal that a transport sends when there is no evidence.
//!
//! In: the error. Out: a refusal with a code for programs. Never names another bank.

use super::PipelineError;
use memory::recall::RecallError;
use models::embed::EmbedError;
use snapshots::SnapshotError;
use types::model::{QuestionRefusal, RefusalCode};

/// The refusal for an error.
#[must_use]
pub fn refusal(error: &PipelineError) -> QuestionRefusal {
    match embed_error(error) {
        Some(away @ EmbedError::Unavailable { .. }) => {
            return QuestionRefusal::new(RefusalCode::EndpointAway, away.to_string());
        }
        Some(declined @ EmbedError::Declined { .. }) => {
            let message = format!("the question is not taken, not even shortened; ask it in other words: {declined}");
            return QuestionRefusal::new(RefusalCode::Invalid, message);
        }
        _ => {}
    }
    let code = match error {
        PipelineError::UnknownBank { bank, .. } => {
            let message = format!("bank {bank}: unknown; it holds nothing that this service has read");
            return QuestionRefusal::new(RefusalCode::UnknownBank, message);
        }
        PipelineError::Recall(
            RecallError::EmptyQuestion
            | RecallError::LongQuestion { .. }
            | RecallError::WrongTime(_)
            | RecallError::WrongSelector { .. }
            | RecallError::NoTokens
            | RecallError::ManyTokens { .. }
            | RecallError::ManyNearMisses { .. }
            | RecallError::UnknownAsker { .. }
            | RecallError::UnknownProfile { .. }
            | RecallError::LongConversation { .. },
        )
        | PipelineError::Select { .. }
        | PipelineError::Snapshot(SnapshotError::Before { .. } | SnapshotError::None) => RefusalCode::Invalid,
        PipelineError::Deadline { .. } | PipelineError::Cancelled => RefusalCode::Deadline,
        PipelineError::Quarantined { .. } => RefusalCode::Quarantined,
        PipelineError::EndpointAway { .. } => RefusalCode::EndpointAway,
        PipelineError::Held { .. } => RefusalCode::Held,
        PipelineError::Busy { .. } => RefusalCode::Busy,
        _ => RefusalCode::Failed,
    };
    QuestionRefusal::new(code, error.to_string())
}

/// The error of the embedding model, if that is the cause.
fn embed_error(error: &PipelineError) -> Option<&EmbedError> {
    match error {
        PipelineError::Embed(error) => Some(error),
        PipelineError::Recall(RecallError::Embed { source, .. }) => source.downcast_ref::<EmbedError>(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::Bank;

    #[test]
    fn an_endpoint_that_is_away_is_named() {
        let away = || EmbedError::Unavailable { model: "small".to_owned(), problem: "http://a: refused".to_owned() };
        let deep = RecallError::Embed { what: "question".to_owned(), source: away().into() };
        for error in [PipelineError::Embed(away()), PipelineError::Recall(deep)] {
            let refusal = refusal(&error);
            assert_eq!(refusal.code, RefusalCode::EndpointAway);
            assert!(refusal.message.contains("http://a: refused"), "{}", refusal.message);
        }
        let texts = vec![(0, "status 500: too many foxes".to_owned())];
        let declined = EmbedError::Declined { model: "small".to_owned(), texts };
        let refused = refusal(&RecallError::Embed { what: "question".to_owned(), source: declined.into() }.into());
        assert_eq!(refused.code, RefusalCode::Invalid, "the endpoint is there");
        assert!(refused.message.contains("too many foxes"), "{}", refused.message);
        let broken = EmbedError::Model { model: "small".to_owned(), problem: "no memory".to_owned() };
        assert_eq!(refusal(&PipelineError::Embed(broken)).code, RefusalCode::Failed);
    }

    #[test]
    fn a_refusal_names_no_other_bank() {
        let bank = Bank::parse("mine").expect("a good name");
        let error = PipelineError::UnknownBank { bank, known: "known: secret/project".to_owned() };
        assert!(error.to_string().contains("secret/project"), "the log's owner sees the banks");
        let refusal = refusal(&error);
        assert_eq!(refusal.code, RefusalCode::UnknownBank);
        assert!(refusal.message.contains("mine") && !refusal.message.contains("secret"), "{}", refusal.message);
    }
}
