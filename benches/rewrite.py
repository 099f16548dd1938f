"""Writes the Parquet files of a snapshot's tables again, unchanged, on one core, with zstd, and prints
the seconds of the writing, including a checksum of each file.

    rewrite.py SNAPSHOT DIRECTORY
"""

import hashlib
import pathlib
import sys
import time

import pyarrow
import pyarrow.parquet

pyarrow.set_cpu_count(1)
source, target = map(pathlib.Path, sys.argv[1:])
took = 0.0
for table in ("turns", "units", "edges"):
    (target / table).mkdir(parents=True)
    for path in sorted((source / table).iterdir()):
        rows = pyarrow.parquet.read_table(path)
        written = target / table / path.name
        begun = time.monotonic()
        pyarrow.parquet.write_table(rows, written, compression="zstd", compression_level=1, row_group_size=8192)
        hashlib.blake2b(written.read_bytes()).digest()
        took += time.monotonic() - begun
print(took)
