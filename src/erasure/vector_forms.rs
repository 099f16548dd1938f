//! Writes vectors in stored bytes as memory records do, so that one fingerprint finds a vector in every form.
//!
//! In: a Parquet file, or a vector. Out: the vectors of the file, and the JSON of one.

use arrow_array::{Array, cast::AsArray as _, types::Float32Type};
use arrow_schema::DataType;
use parquet::{
    arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::reader::ChunkReader,
};
use types::model::Vector;

/// Rows that are decoded at once: each may have many vectors.
const ROWS_AT_ONCE: usize = 16;

/// A vector in the form of memory records.
pub(super) fn json_of(vector: &Vector) -> String {
    // Writing a string never fails.
    serde_json::to_string(vector).unwrap_or_default()
}

/// Calls `each` with every vector of a Parquet file.
pub(super) fn each_vector_of_parquet<R: ChunkReader + 'static>(
    file: R,
    each: &mut dyn FnMut(&Vector),
) -> Result<(), String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| e.to_string())?;
    let fields = builder.schema().fields().iter().enumerate();
    let with_vectors: Vec<usize> =
        fields.filter(|(_, field)| has_vectors(field.data_type())).map(|(column, _)| column).collect();
    if with_vectors.is_empty() {
        return Ok(());
    }
    let mask = ProjectionMask::roots(builder.parquet_schema(), with_vectors);
    let rows = builder.with_projection(mask).with_batch_size(ROWS_AT_ONCE).build().map_err(|e| e.to_string())?;
    for batch in rows {
        batch.map_err(|e| e.to_string())?.columns().iter().for_each(|column| each_vector(column, each));
    }
    Ok(())
}

fn has_vectors(of: &DataType) -> bool {
    match of {
        DataType::FixedSizeList(values, _) => *values.data_type() == DataType::Float32,
        DataType::List(values) => has_vectors(values.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_vectors(field.data_type())),
        _ => false,
    }
}

fn each_vector(column: &dyn Array, each: &mut dyn FnMut(&Vector)) {
    match column.data_type() {
        DataType::FixedSizeList(..) => {
            let vectors = column.as_fixed_size_list();
            for row in (0..vectors.len()).filter(|row| vectors.is_valid(*row)) {
                if let Some(floats) = vectors.value(row).as_primitive_opt::<Float32Type>() {
                    each(&Vector::from(&floats.values()[..]));
                }
            }
        }
        DataType::List(_) => each_vector(column.as_list::<i32>().values(), each),
        DataType::Struct(_) => column.as_struct().columns().iter().for_each(|column| each_vector(column, each)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, RecordBatch, StructArray,
        builder::{FixedSizeListBuilder, Float32Builder, ListBuilder},
    };
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;

    use super::*;

    #[test]
    fn vectors_are_found_in_columns_and_in_lists_of_members() {
        let of_one = |vectors: &mut FixedSizeListBuilder<Float32Builder>, first: f32| {
            vectors.values().append_slice(&[first, 0.5, -0.25]);
            vectors.append(true);
        };
        let mut column = FixedSizeListBuilder::new(Float32Builder::new(), 3);
        of_one(&mut column, 1.0);
        column.values().append_nulls(3);
        column.append(false);
        let mut lists = ListBuilder::new(FixedSizeListBuilder::new(Float32Builder::new(), 3));
        for first in [2.0, 3.0] {
            of_one(lists.values(), first);
            lists.append(true);
        }
        let (column, lists): (ArrayRef, ArrayRef) = (Arc::new(column.finish()), Arc::new(lists.finish()));
        let members: ArrayRef = Arc::new(StructArray::try_from(vec![("own", lists)]).unwrap());
        let rows =
            RecordBatch::try_from_iter_with_nullable([("vector", column, true), ("part", members, true)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        let mut found = Vec::new();
        each_vector_of_parquet(file, &mut |vector| found.push(json_of(vector))).unwrap();
        let expected = [1.0, 2.0, 3.0].map(|first| json_of(&Vector::from([first, 0.5, -0.25])));
        assert_eq!(found, expected);
    }
}
