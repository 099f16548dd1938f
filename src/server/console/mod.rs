//! The console: a page for people, at `/console/`; and at `/report/` of a server of its own, the same page with the
//! report of an evaluation.
//!
//! In: requests of a browser. Out: four files that are in the program, under a policy that lets the page load and
//! ask nothing but this service. They hold nothing from a bank and ask for no token: the page sends its token to
//! `/v1` as any client does. `src` has their sources, `dist` what `make console` makes of them, so that cargo needs
//! no Node. `report_server` serves the files of a report beside them, and no memory.

mod files;
mod report_server;
mod routes;

pub use report_server::{ReportServer, ReportServerError, serve_report};
pub(super) use routes::routes;
