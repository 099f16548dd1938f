//! Other retrievers over the same memory, with the same vectors, rendering and counting.

use super::{
    remembered::Remembered,
    result::Row,
    run::{Bench, EvalError},
    score::Scored,
};
use crate::pipeline::Progress;

pub(crate) fn rows(
    _bench: &Bench,
    _remembered: &Remembered,
    _ours: &[Scored],
    _progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Row>, EvalError> {
    Ok(Vec::new())
}
