//! The inputs of one pass of a BERT-like model.
//!
//! In: tokens of one or several texts, padded to the same length. Out: the inputs by their names.

use ort::{session::SessionInputs, value::TensorRef};

/// The inputs of a pass over tokens of this shape; with `types`, also the token types, which some models read.
pub(crate) fn session_inputs<'v>(
    shape: [usize; 2],
    ids: &'v [i64],
    mask: &'v [i64],
    types: Option<&'v [i64]>,
) -> Result<SessionInputs<'v, 'v>, ort::Error> {
    let tensor = |data| TensorRef::<i64>::from_array_view((shape, data));
    let (ids, mask) = (tensor(ids)?, tensor(mask)?);
    Ok(match types {
        Some(types) => {
            ort::inputs!["input_ids" => ids, "attention_mask" => mask, "token_type_ids" => tensor(types)?].into()
        }
        None => ort::inputs!["input_ids" => ids, "attention_mask" => mask].into(),
    })
}
