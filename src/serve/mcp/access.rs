//! The calls of a memory, wherever it is.
//!
//! In: requests of the shared calls ([`crate::serve::api`]). Out: their answers, from this process or from
//! the one that has the directory open. Who asks is checked by the calls themselves; a process that is
//! reached trusts the token beside the lock instead. They block, on a thread of a runtime that may. An
//! error is a sentence for the agent: where, what, and what to do. It names no other bank.

use std::{pin::pin, sync::Arc};

use futures_util::future::{Either, select};
use tokio::{runtime::Handle, sync::Notify};

use super::call_error::CallError;
use crate::{
    model::{Bank, Evidence},
    serve::{
        Reached,
        access::Caller,
        api::{Api, Ask, Banks, Digest, Forget, Forgotten, Put, Status, WrittenTurns},
    },
};

/// A memory, in this process or in another.
pub(super) enum Access {
    Here(Arc<Api>),
    There(Arc<Reached>),
}

impl Access {
    /// Writes turns.
    pub(super) fn put(&self, who: &Arc<Caller>, put: Put) -> Result<WrittenTurns, CallError> {
        match self {
            Self::Here(api) => Ok(Handle::current().block_on(api.put(who, put))?),
            Self::There(reached) => Ok(reached.post("/v1/turns", &put)?),
        }
    }

    /// Answers a question, unless it is cancelled.
    pub(super) fn ask(&self, who: &Caller, ask: Ask, cancelled: &Notify) -> Result<Evidence, CallError> {
        match self {
            Self::Here(api) => Handle::current().block_on(async {
                match select(pin!(api.ask(who, ask)), pin!(cancelled.notified())).await {
                    Either::Left((answer, _)) => Ok(answer?),
                    Either::Right(_) => Err(CallError::Refused("the question was cancelled; ask again".to_owned())),
                }
            }),
            Self::There(reached) => Ok(reached.post("/v1/ask", &ask)?),
        }
    }

    /// Deletes a turn.
    pub(super) fn forget(&self, who: &Caller, forget: Forget) -> Result<Forgotten, CallError> {
        match self {
            Self::Here(api) => Ok(Handle::current().block_on(api.forget(who, forget))?),
            Self::There(reached) => {
                let wait = forget.wait_ms.map(|ms| ms.to_string());
                let turn =
                    [("bank", Some(forget.bank.as_str())), ("turn", Some(&forget.turn)), ("wait_ms", wait.as_deref())];
                Ok(reached.delete("/v1/turns", &turn)?)
            }
        }
    }

    /// The banks that hold something.
    pub(super) fn banks(&self, who: &Caller) -> Result<Vec<Bank>, CallError> {
        Ok(match self {
            Self::Here(api) => api.banks(who)?.banks,
            Self::There(reached) => reached.get::<Banks>("/v1/banks", &[])?.banks,
        })
    }

    /// What a bank holds, counted.
    pub(super) fn digest(&self, who: &Caller, bank: &Bank) -> Result<Digest, CallError> {
        match self {
            Self::Here(api) => Ok(Handle::current().block_on(api.digest(who, Some(bank.clone()), None, None))?),
            Self::There(reached) => Ok(reached.get("/v1/digest", &[("bank", Some(bank.as_str()))])?),
        }
    }

    /// How the memory is.
    pub(super) fn status(&self, who: &Caller) -> Result<Status, CallError> {
        match self {
            Self::Here(api) => Ok(Handle::current().block_on(api.status(who))?),
            Self::There(reached) => Ok(reached.get("/v1/status", &[])?),
        }
    }
}
