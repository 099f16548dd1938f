//! Who may do what: tokens, each with banks and rights.
//!
//! In: the token that a request shows, a right and a bank. Out: the caller's name, or why the request is refused. A
//! token is shown once, when it is made; the file of tokens has only its SHA-256. A right or a bank that the file does
//! not name is not granted (decision 41). No error and no list shows a token.
//!
//! - `secret`: a new token, and the hash of one
//! - `grant`: an entry of the file: name, banks, rights, expiry
//! - `token_file`: the file, read and written as a whole
//! - `gate`: checks requests, and reads the file again when it has changed
//! - `audit`: a line for each request, without its content

mod audit;
mod error;
mod expiry;
mod gate;
mod grant;
mod secret;
mod token_file;

pub use audit::{Audit, AuditEntry};
pub use error::AccessError;
pub use gate::{AskedRight, Caller, Denied, Gate};
pub use grant::{BankPrefix, Grant, Right};
pub use secret::Secret;
pub use token_file::{NewGrant, TokenFile};
