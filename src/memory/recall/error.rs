//! Why a question has no evidence.
//!
//! In: a question that cannot be asked, or the failure of a memory or an embedder. Out: an error
//! that names the field, the bank or the step, with the failure as its source.

use types::model::{FieldError, MAX_NEAR_MISSES, MAX_QUESTION_BYTES};

/// Why a memory or an embedder could not answer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a question has no evidence.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// The question holds no word and no other symbol, such as an emoji.
    #[error("question: empty; ask with at least one word")]
    EmptyQuestion,
    /// The question is longer than `MAX_QUESTION_BYTES`.
    #[error("question: {bytes} bytes long; shorten it to at most {MAX_QUESTION_BYTES}")]
    LongQuestion {
        /// The question's length in bytes of UTF-8.
        bytes: usize,
    },
    /// The question is to be explained, it says "I", and its asker does not speak in the bank.
    #[error("asker: {asker:?} does not speak in the bank, so nothing is quoted; name one who does ({known})")]
    UnknownAsker {
        /// The asker's name, as it was given.
        asker: String,
        /// Some of the bank's speakers.
        known: String,
    },
    /// The conversation before the question is too long.
    #[error("said_before: {bytes} bytes long; send only the last turns, at most {MAX_QUESTION_BYTES} bytes")]
    LongConversation {
        /// The length of all its turns and their speakers' names, in bytes of UTF-8.
        bytes: usize,
    },
    /// The time of the question is not one of RFC 3339.
    #[error(transparent)]
    WrongTime(#[from] FieldError),
    /// The question's selector cannot be meant.
    #[error("where.{problem}")]
    WrongSelector {
        /// The field, what is wrong, and what to do.
        problem: FieldError,
    },
    /// The question asks for no token.
    #[error("most_tokens: 0 is too few; ask for at least 1, or leave it out")]
    NoTokens,
    /// The question asks for more tokens than the service allows.
    #[error(
        "most_tokens: {most} is more than the {bound} that this service allows; ask for at most that, or raise \
         recall.stop.bound_tokens"
    )]
    ManyTokens {
        /// The `most_tokens` of the question.
        most: u32,
        /// `recall.stop.bound_tokens`.
        bound: usize,
    },
    /// The question asks for more near misses than a trace shows.
    #[error("near: {near} is more than the {MAX_NEAR_MISSES} that a trace shows; ask for at most that")]
    ManyNearMisses {
        /// What the question asks for.
        near: u32,
    },
    /// The question names a profile that is not known.
    #[error("{problem}")]
    UnknownProfile {
        /// What is wrong, with the profiles that are known.
        problem: String,
    },
    /// A text could not be embedded.
    #[error("the {what} could not be embedded; check the model with `ripplemem validate`")]
    Embed {
        /// `question`, or `target` with its round.
        what: String,
        /// Why it could not be embedded.
        #[source]
        source: BoxError,
    },
    /// The memory did not answer.
    #[error("bank {bank}: the memory did not answer the {what}")]
    Memory {
        /// The bank that was asked.
        bank: String,
        /// Such as `first hop`, or `expansion` with its round.
        what: String,
        /// Why the memory did not answer.
        #[source]
        source: BoxError,
    },
}
