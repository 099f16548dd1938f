//! The calls of a memory, wherever it is.
//!
//! In: requests of the shared calls ([`crate::api`]). Out: their answers, from this process or from the process that
//! has the directory open. The calls of this process check the caller; another process checks the token beside the
//! lock instead. A call of this process holds no thread while it waits: a thread that waits for a thread of the same
//! pool could wait forever. Dropping the future of a question to this process cancels the question.
//! An error is a sentence for the agent that says what is wrong, where, and what to do. It names no other bank.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::tool_call_error::ToolCallError;
use crate::{
    MemoryHttpClient, MemoryHttpError,
    access::Caller,
    api::{
        AskRequest, BankList, BankStatus, EvidenceWithAnswer, ExplainRequest, ForgetRequest, ForgetResponse,
        ForgetTurnsRequest, ForgetTurnsResponse, MemoryApi, ProfileRequest, PutTurnsRequest, PutTurnsResponse,
        SelectTurnsRequest, ServiceStatus, TurnList, TurnListRequest,
    },
};
use models::llm::{self, LlmClient, LlmError, UsageMeter};
use types::model::{Bank, Evidence, Explanation, Profile};

/// A memory, in this process or in another.
pub(super) enum McpMemoryAccess {
    Here(Arc<MemoryApi>),
    There {
        reached: Arc<MemoryHttpClient>,
        /// The language model that answers here, from the other process's evidence.
        llm: Option<Arc<LlmClient>>,
    },
}

impl McpMemoryAccess {
    /// Writes turns.
    pub(super) async fn put(&self, who: &Arc<Caller>, put: PutTurnsRequest) -> Result<PutTurnsResponse, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.put(who, put, ()).await?),
            Self::There { reached, .. } => call_process(reached, move |reached| reached.post("/v1/turns", &put)).await,
        }
    }

    /// Answers a question.
    pub(super) async fn ask(&self, who: &Caller, ask: AskRequest) -> Result<Evidence, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.ask(who, ask).await?),
            Self::There { reached, .. } => call_process(reached, move |reached| reached.post("/v1/ask", &ask)).await,
        }
    }

    /// Explains why a turn is quoted in the answer to a question, or why not.
    pub(super) async fn explain(&self, who: &Caller, explain: ExplainRequest) -> Result<Explanation, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.explain(who, explain).await?),
            Self::There { reached, .. } => {
                call_process(reached, move |reached| reached.post("/v1/explain", &explain)).await
            }
        }
    }

    /// What persons of a bank said that lasts.
    pub(super) async fn profile(&self, who: &Caller, show: ProfileRequest) -> Result<Profile, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.profile(who, show).await?),
            Self::There { reached, .. } => {
                call_process(reached, move |reached: &MemoryHttpClient| reached.profile(&show, None, None)).await
            }
        }
    }

    /// Answers a question in words, for which the model has `time`.
    pub(super) async fn answer(
        &self,
        who: &Caller,
        ask: AskRequest,
        time: Duration,
    ) -> Result<EvidenceWithAnswer, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.answer(who, ask).await?.0),
            Self::There { llm, .. } => {
                let refused = |error: LlmError| ToolCallError::Refused(error.to_string());
                let llm = llm.clone().ok_or_else(|| refused(LlmError::NotConfigured))?;
                let evidence = Arc::new(self.ask(who, ask).await?);
                run_blocking(move || {
                    let until = Some(Instant::now() + time);
                    let answer =
                        llm::answer(&llm, &evidence, until, &UsageMeter::default(), &mut |_| {}).map_err(refused)?;
                    Ok(EvidenceWithAnswer { evidence, answer })
                })
                .await
            }
        }
    }

    /// The turns of a bank that the request names, the latest first.
    pub(super) async fn list(&self, who: &Caller, list: TurnListRequest) -> Result<TurnList, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.list(who, list).await?),
            Self::There { reached, .. } => {
                let call = move |reached: &MemoryHttpClient| {
                    let TurnListRequest { bank, turns, select, order, before, limit } = &list;
                    if turns.is_empty() {
                        let select = Some(select.clone()).filter(|select| !select.is_empty());
                        let (bank, order, before, limit) = (bank.clone(), Some(*order), before.clone(), *limit);
                        let list = SelectTurnsRequest { bank, select, order, limit, before };
                        return reached.post("/v1/turns/list", &list);
                    }
                    let limit = limit.map(|limit| limit.to_string());
                    let of = [
                        ("bank", Some(bank.as_str())),
                        ("turn", turns.first().map(String::as_str)),
                        ("limit", limit.as_deref()),
                    ];
                    reached.get("/v1/turns", &of)
                };
                call_process(reached, call).await
            }
        }
    }

    /// Deletes the turns that a selector takes; in a dry run, lists them.
    pub(super) async fn forget_turns(
        &self,
        who: &Caller,
        forget: ForgetTurnsRequest,
    ) -> Result<ForgetTurnsResponse, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.forget_turns(who, forget).await?),
            Self::There { reached, .. } => {
                call_process(reached, move |reached: &MemoryHttpClient| reached.post("/v1/forget", &forget)).await
            }
        }
    }

    /// Deletes a turn.
    pub(super) async fn forget(&self, who: &Caller, forget: ForgetRequest) -> Result<ForgetResponse, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.forget(who, forget).await?),
            Self::There { reached, .. } => {
                let call = move |reached: &MemoryHttpClient| {
                    let ForgetRequest { bank, turn, wait_ms, .. } = &forget;
                    let wait = wait_ms.map(|ms| ms.to_string());
                    let turn = [("bank", Some(bank.as_str())), ("turn", Some(turn)), ("wait_ms", wait.as_deref())];
                    reached.delete("/v1/turns", &turn)
                };
                call_process(reached, call).await
            }
        }
    }

    /// The banks that hold something.
    pub(super) async fn banks(&self, who: &Caller) -> Result<Vec<Bank>, ToolCallError> {
        Ok(match self {
            Self::Here(api) => api.banks(who)?.banks,
            Self::There { reached, .. } => {
                call_process(reached, |reached| reached.get::<BankList>("/v1/banks", &[])).await?.banks
            }
        })
    }

    /// What a bank holds, counted.
    pub(super) async fn bank(&self, who: &Caller, bank: Bank) -> Result<BankStatus, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.bank(who, bank).await?),
            Self::There { reached, .. } => {
                let call = move |reached: &MemoryHttpClient| reached.get("/v1/bank", &[("bank", Some(bank.as_str()))]);
                call_process(reached, call).await
            }
        }
    }

    /// The status of the memory.
    pub(super) async fn status(&self, who: &Arc<Caller>) -> Result<ServiceStatus, ToolCallError> {
        match self {
            Self::Here(api) => Ok(api.operations().status(who).await?),
            Self::There { reached, .. } => call_process(reached, |reached| reached.get("/v1/status", &[])).await,
        }
    }
}

/// Calls the other process, on the runtime's pool of blocking threads.
pub(super) async fn call_process<T: Send + 'static>(
    reached: &Arc<MemoryHttpClient>,
    call: impl FnOnce(&MemoryHttpClient) -> Result<T, MemoryHttpError> + Send + 'static,
) -> Result<T, ToolCallError> {
    let reached = Arc::clone(reached);
    run_blocking(move || Ok(call(&reached)?)).await
}

/// Does blocking work on the runtime's pool of blocking threads.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolCallError> + Send + 'static,
) -> Result<T, ToolCallError> {
    let panicked = |_| ToolCallError::Refused("the request panicked; this is a defect, please report it".to_owned());
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}
