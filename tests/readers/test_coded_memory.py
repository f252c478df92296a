"""How much memory reading a long table takes."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource, sys
from pathlib import Path
import numpy as np, polars as pl
from itembank.responses import coded_responses
from itembank.readers import coded, table_files
from itembank.readers.collecting import find_sources
from itembank.readers.read import read_coded
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses

table_files.ROWS_AT_ONCE = coded_responses.CELLS_AT_ONCE = 50_000
coded.CAN_STREAM = sys.argv[1] != "whole"
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def write(n_models):
    rows = pl.DataFrame({
        "model_id": np.repeat(np.arange(n_models), 1000), "item_id": np.tile(np.arange(1000), n_models),
        "response": np.tile([0, 1, 1, 0], 250 * n_models),
    })
    rows.write_parquet("table.parquet", row_group_size=50_000)
def read():
    write_responses(read_coded(find_sources([Path("table.parquet")], ReadingSpec()), ReadingSpec()), "out.parquet")
if sys.argv[1] == "write":
    write(1000)
else:
    write(200)
    read()
    before = peak()
    Path("big.parquet").rename("table.parquet")
    read()
    print(json.dumps(peak() - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak is Linux's")
def test_a_table_of_many_rows_takes_little_more_than_its_cells(tmp_path):
    run = {"cwd": tmp_path, "capture_output": True, "env": {**os.environ, "POLARS_MAX_THREADS": "1"}}
    subprocess.run([sys.executable, "-c", PROGRAM, "write"], check=True, **run)
    (tmp_path / "table.parquet").rename(tmp_path / "big.parquet")
    grown = json.loads(subprocess.run([sys.executable, "-c", PROGRAM, "read"], check=True, **run).stdout)
    # a million rows: a megabyte of codes and parts in passing took 10 MB; a table read whole took 90 MB
    assert grown < 40_000
