//! Which weights and which cutoff deliver the most evidence on dialogues on which they were not chosen.
//!
//! In: development sets with their questions. Out: rows of figures, each for one way to choose: the settings as they
//! are, a fixed score of seven terms, and searched weights. Every choice is repeated without each dialogue in turn and
//! measured on that dialogue; the in-sample figures are shown beside it. Weights are searched by arithmetic on terms
//! that the memory computed once. The same files and seed always give the same rows. Never changes a setting.
//!
//! `terms` reads the memory; `weigh` is the arithmetic; `outcomes` measures one choice of weights at every cutoff;
//! `choices` draws weights; `folds` chooses without a dialogue and measures on it; `row` and `table` show the result.

mod choices;
mod folds;
mod outcomes;
mod request;
mod row;
mod run;
mod table;
mod terms;
mod weigh;

pub use request::FitRequest;
pub use row::{Fit, FitFigures, FitRow, FitSpread};
pub use run::fit;
pub use table::fit_table;
