//! Which weights and which cutoff deliver the most evidence on dialogues on which they were not chosen.
//!
//! In: development sets with their questions. Out: rows of figures, each for one way to choose: the settings as they
//! are, a fixed score of seven terms, and searched weights. Every choice is repeated without each dialogue in turn and
//! measured on that dialogue; the in-sample figures are shown beside it. Weights are searched by arithmetic on terms
//! that the memory computed once. The same files and seed always give the same rows. Never changes a setting.
//!
//! `terms` reads the memory; `weighted_scores` is the arithmetic; `outcomes` measures one choice of weights at every
//! cutoff; `weight_search` draws weights; `folds` chooses without a dialogue and measures on it; `fit_result` and
//! `fit_table` show the result.

mod fit_result;
mod fit_table;
mod folds;
mod outcomes;
mod request;
mod run;
mod terms;
mod weight_search;
mod weighted_scores;

pub use fit_result::{FitFigures, FitResult, FitRow, FitSpread};
pub use fit_table::fit_table;
pub use request::FitRequest;
pub use run::fit;
