//! Errors as they appear in log lines (decision 49).
//!
//! In: an error. Out: what happened and what to do. Never the name of a bank, and never words of a turn, a question or
//! an answer. The text of an error that may quote them, such as the reply of an endpoint, is left out.

use super::PipelineError;
use models::{embed::EmbedError, llm::LlmError};
use types::logged_bank::LoggedBank;

/// An error as it appears in a log line.
#[must_use]
pub fn redacted_error(error: &PipelineError) -> String {
    match error {
        PipelineError::Quarantined { bank, partition, offset, .. } => format!(
            "bank {}: a record of it cannot be read (memory partition {partition}, offset {offset}); a readable record of \
             the same key ends that",
            LoggedBank(bank)
        ),
        PipelineError::OtherInstance { bank, partition } => {
            format!("bank {}: its partition, {partition}, is assigned to another instance", LoggedBank(bank))
        }
        PipelineError::Loading { bank, partition } => {
            format!("bank {}: its shard, {partition}, is loaded again", LoggedBank(bank))
        }
        PipelineError::UnknownBank { bank, .. } => format!("bank {}: unknown", LoggedBank(bank)),
        PipelineError::EndpointAway { bank, problem } => {
            format!("bank {}: it holds nothing yet: {}", LoggedBank(bank), without_reply(problem))
        }
        PipelineError::Held { bank, .. } => format!("bank {}: a hold covers it", LoggedBank(bank)),
        PipelineError::Turn { index, .. } => format!("turn {index} of the batch is not valid"),
        PipelineError::Record { partition, offset, .. } => {
            format!("memory partition {partition}, offset {offset}: the record cannot be used")
        }
        PipelineError::Embed(EmbedError::Declined { model, texts }) => {
            format!("model {model}: {} text(s) are declined", texts.len())
        }
        PipelineError::Embed(EmbedError::Unavailable { model, problem }) => {
            format!("model {model}: {}; texts wait until the endpoint answers again", without_reply(problem))
        }
        PipelineError::Embed(EmbedError::Model { model, problem }) => {
            format!("model {model}: {}", without_reply(problem))
        }
        PipelineError::Llm(error) => redacted_llm_error(error),
        // The others name files, addresses, topics, offsets and settings.
        other => other.to_string(),
    }
}

/// An error of the language model as it appears in a log line.
pub fn redacted_llm_error(error: &LlmError) -> String {
    match error {
        LlmError::Permanent { url, model, problem } => {
            format!(
                "{url} refuses model {model:?}: {}; check llm.endpoint, llm.model and the key",
                without_reply(problem)
            )
        }
        LlmError::Rejected { url, problem } => format!("{url} rejects this request: {}", without_reply(problem)),
        LlmError::Unavailable { url, problem, attempts } => {
            format!("{url}: {} ({attempts} attempts); check that it is running", without_reply(problem))
        }
        LlmError::InvalidReply { contract, .. } => {
            format!("the model's {contract} reply is invalid, even after a repair")
        }
        other => other.to_string(),
    }
}

/// The problem without the endpoint's words, which may quote what was sent: of `status 503: its words` or `the endpoint
/// failed: its words`, the part before the words; of anything else, the part before a quote.
fn without_reply(problem: &str) -> &str {
    let words_begin = |before: &str| {
        let after = problem.find(before)? + before.len();
        problem.get(after..)?.find(": ").map(|end| after + end)
    };
    let reply = ["status ", "the endpoint failed"].into_iter().filter_map(words_begin).min();
    let end = reply.or_else(|| problem.find(['"', '`', '\'']));
    end.and_then(|at| problem.get(..at)).unwrap_or(problem).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, FieldError};

    #[test]
    fn neither_banks_nor_words_get_through() {
        let bank = Bank::parse("acme/zoe").unwrap();
        let words = "status 400: your prompt 'I love Bob' is filtered".to_owned();
        let url = "http://127.0.0.1:1".to_owned();
        for error in [
            PipelineError::Quarantined { bank: bank.clone(), partition: 1, offset: 2, problem: "Bob".to_owned() },
            PipelineError::OtherInstance { bank: bank.clone(), partition: 1 },
            PipelineError::Loading { bank: bank.clone(), partition: 1 },
            PipelineError::UnknownBank { bank: bank.clone(), known: "acme/yan, acme/zoe".to_owned() },
            PipelineError::EndpointAway { bank, problem: words.clone() },
            PipelineError::Turn {
                index: 1,
                problem: FieldError { field: "text", problem: "Bob".to_owned(), remedy: "" },
            },
            PipelineError::Record { partition: 1, offset: 2, problem: "Bob".to_owned() },
            EmbedError::Declined { model: "m".to_owned(), texts: vec![(0, words.clone())] }.into(),
            EmbedError::Unavailable { model: "m".to_owned(), problem: words.clone() }.into(),
            EmbedError::Model { model: "m".to_owned(), problem: words.clone() }.into(),
            LlmError::Permanent { url: url.clone(), model: "m".to_owned(), problem: words.clone() }.into(),
            LlmError::Rejected { url: url.clone(), problem: words.clone() }.into(),
            LlmError::Unavailable { url, problem: words.clone(), attempts: 3 }.into(),
            LlmError::InvalidReply { contract: "extract", problem: words.clone(), reply: words }.into(),
        ] {
            let said = redacted_error(&error);
            assert!(!said.contains("zoe") && !said.contains("Bob") && !said.is_empty(), "{said}");
        }
    }

    #[test]
    fn a_status_stays_and_what_is_no_reply() {
        assert_eq!(without_reply("status 503: Bob"), "status 503");
        assert_eq!(without_reply("http://a:1/v1: status 503: Bob (3 attempts)"), "http://a:1/v1: status 503");
        assert_eq!(without_reply("status 503"), "status 503");
        assert_eq!(without_reply("the endpoint failed with 502: Bob (2 attempts)"), "the endpoint failed with 502");
        assert_eq!(without_reply("http://a:1/v1: the endpoint failed: Bob"), "http://a:1/v1: the endpoint failed");
        assert_eq!(without_reply("connection refused: 127.0.0.1:1"), "connection refused: 127.0.0.1:1");
        assert_eq!(without_reply("invalid type: string \"Bob\", expected a list"), "invalid type: string");
    }
}
