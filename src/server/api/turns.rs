//! The turns of a bank, for interfaces that list them.
//!
//! In: banks and ids, the right that the caller's request needs, and who sends it. Out: turns as the memory
//! holds them, of banks that the caller reaches. Nothing is written here.

use std::{sync::Arc, time::Duration};

use super::{blocking::blocking, calls::Api, problem::Problem};
use crate::access::{Caller, Right};
use nouns::model::Bank;
use ripplemem::{
    log::Written,
    pipeline::{HeldTurn, TurnVersion},
};

impl Api {
    /// The banks that hold something, pass, and are reached by the caller, who needs the right in `asked`.
    ///
    /// # Errors
    /// [`Problem`] without the right in `asked`.
    pub(crate) fn banks_where(
        &self,
        who: &Caller,
        right: Right,
        asked: &Bank,
        passes: &dyn Fn(&Bank) -> bool,
    ) -> Result<Vec<Bank>, Problem> {
        who.may_in(right, asked)?;
        Ok(self.memory.banks_where(&|bank| passes(bank) && who.reaches(bank)))
    }

    /// The turns of a bank by time, each as last edited; with `only`, the one with this id.
    ///
    /// # Errors
    /// [`Problem`] without the right in the bank, or where the log failed.
    pub(crate) async fn turns(
        &self,
        who: &Caller,
        right: Right,
        bank: &Bank,
        only: Option<String>,
    ) -> Result<Vec<HeldTurn>, Problem> {
        who.may_in(right, bank)?;
        let (memory, bank) = (Arc::clone(&self.memory), bank.clone());
        blocking(move || Ok(memory.turns(&bank, only.as_deref())?)).await
    }

    /// When the versions at these offsets were appended, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn append_ms(
        &self,
        who: &Caller,
        right: Right,
        versions: Vec<(Bank, u64)>,
    ) -> Result<Vec<Option<i64>>, Problem> {
        versions.iter().try_for_each(|(bank, _)| who.may_in(right, bank))?;
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            let each = versions.iter().map(|(bank, offset)| memory.append_ms(bank, *offset));
            Ok(each.collect::<Result<Vec<_>, _>>()?)
        })
        .await
    }

    /// The versions of a turn that the memory holds, oldest first.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn versions(&self, who: &Caller, bank: &Bank, turn: &str) -> Result<Vec<TurnVersion>, Problem> {
        who.may_in(Right::Read, bank)?;
        let (memory, bank, turn) = (Arc::clone(&self.memory), bank.clone(), turn.to_owned());
        blocking(move || Ok(memory.versions(&bank, &turn)?)).await
    }

    /// Waits until lists and answers reflect every turn of these banks that is durable now.
    ///
    /// # Errors
    /// [`Problem`] where the time was too short.
    pub(crate) async fn caught_up(&self, banks: &[Bank], wait: Duration) -> Result<(), Problem> {
        let memory = Arc::clone(&self.memory);
        let end = blocking(move || Ok(memory.end()?)).await?;
        let mut awaited = Written::nothing(self.memory.partitions());
        banks.iter().filter_map(|bank| end.of(bank)).for_each(|(partition, next)| awaited.extend(partition, next));
        if self.reflects(&awaited, wait).await {
            return Ok(());
        }
        Err(self.late("turns that are durable are not extracted yet; ask again in a moment"))
    }
}
