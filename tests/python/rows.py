"""Prints every row of a directory of Parquet files, read by pyarrow as Hive partitions: one JSON
object a line, by partition and offset, bytes in hexadecimal digits, times as text.

    rows.py DIRECTORY
"""

import json
import sys

import pyarrow.dataset

table = pyarrow.dataset.dataset(sys.argv[1], format="parquet", partitioning="hive").to_table()


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value if value is None or isinstance(value, (int, float, str)) else value.isoformat()


for row in sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"])):
    print(json.dumps({name: plain(value) for name, value in row.items()}))
