//! Who may do what: tokens, each with banks and rights.
//!
//! In: the token that a request shows, a right and a bank. Out: the caller's name, or why the request is refused. A
//! token is shown once, when it is made; the file of tokens has only its SHA-256. A right or a bank that the file does
//! not name is not granted (decision 41). No error and no list shows a token.
//!
//! - `token_secret`: a new token, and the hash of one
//! - `grant`: an entry of the file: name, banks, rights, expiry
//! - `token_file`: the file, read and written as a whole
//! - `token_authenticator`: checks requests, and reads the file again when it has changed
//! - `audit_log`: a line for each request, without its content

mod audit_log;
mod error;
mod grant;
mod token_authenticator;
mod token_expiry;
mod token_file;
mod token_secret;

pub use audit_log::{AuditEntry, AuditLog};
pub use error::AccessError;
pub use grant::{AccessRight, BankPrefix, TokenGrant};
pub use token_authenticator::{AccessDenial, Caller, CheckedRight, TokenAuthenticator};
pub use token_file::{NewGrant, TokenFile};
pub use token_secret::TokenSecret;
