//! What a caller may do.
//!
//! In: a caller. Out: the rights and the banks of its token, as the file of tokens says now. The token itself is never
//! shown, nor is any other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::ApiProblem;
use crate::access::{AccessRight, BankPrefix, Caller, TokenGrant};

/// What the caller's token gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenView {
    /// The token's name; absent where no token is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it may do; no right includes another.
    pub rights: Vec<AccessRight>,
    /// The banks that begin with one of these, in whole segments; `*` for every bank.
    pub banks: Vec<String>,
    /// From when on it is refused, in RFC 3339; absent where it does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Most requests a minute; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// How many more it could send at once, this request taken off; absent without a limit. An instance counts for
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_left: Option<u32>,
}

impl TokenView {
    /// What a caller may do.
    ///
    /// # Errors
    /// [`ApiProblem`] if its token is no longer valid.
    pub fn of(who: &Caller) -> Result<Self, ApiProblem> {
        let Some(TokenGrant { name, banks, rights, expires, requests_per_minute, .. }) = who.grant()? else {
            let (rights, banks) = (AccessRight::ALL.to_vec(), vec![BankPrefix::Every.to_string()]);
            let (expires, requests_per_minute, requests_left) = (None, None, None);
            return Ok(Self { name: None, rights, banks, expires, requests_per_minute, requests_left });
        };
        Ok(Self {
            name: Some(name),
            rights: rights.into_iter().collect(),
            banks: banks.iter().map(ToString::to_string).collect(),
            expires: expires.map(|expires| expires.to_string()),
            requests_per_minute: requests_per_minute.map(Into::into),
            requests_left: who.requests_left(),
        })
    }
}
