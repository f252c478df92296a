"""What was read of a log comes back from a file as it was; what is no such file is refused."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank import ReadingSpec
from itembank.readers.inspect_files import read_log
from itembank.readers.inspect_runs import run_of
from itembank.readers.lm_eval_files import find_sample_files
from itembank.readers.lm_eval_samples import read_samples
from itembank.readers.part_coding import BROKEN, NotCodedError, decoded, encoded, read_part, write_part
from tests.readers.inspect_writing import sample, write_eval

LOGS = Path(__file__).parent / "lm_eval_0_4_13"


def taken_apart(value):
    """A value as lists and tuples of plain things, of which equal ones are the same to the bit, types and order too."""
    kind = type(value).__name__
    if is_dataclass(value):
        return kind, [taken_apart(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, pl.Series):
        return kind, value.name, value.dtype, value.to_list()
    if isinstance(value, dict):
        return kind, [taken_apart(pair) for pair in value.items()]
    if isinstance(value, list | tuple):
        return kind, [taken_apart(one) for one in value]
    return kind, json.dumps(value) if isinstance(value, float) else value


def back(part, path):
    with path.open("wb") as file:
        write_part(file, "key", part)
    return read_part(path, "key")


def test_samples_of_lm_eval_come_back(tmp_path):
    files = find_sample_files([LOGS], ReadingSpec()).files
    for with_options in (False, True):
        for file in files:
            part = read_samples(file, with_options=with_options)
            assert taken_apart(back(part, tmp_path / "part.npz")) == taken_apart(part)
    assert part.options is not None


def test_runs_of_inspect_come_back(tmp_path):
    samples = [sample(1, {"a": [1, 0.5, None]}), sample("ü", float("nan"), epoch=2, model_usage={"m": {}})]
    part = run_of(read_log(write_eval(tmp_path / "log.eval", samples)), ReadingSpec())
    assert taken_apart(back(part, tmp_path / "part.npz")) == taken_apart(part)


@pytest.mark.parametrize("value", [np.float64(0.5), {1, 2}, object(), np.array(["a"]), pl.Series([1]), print])
def test_what_has_no_code_is_not_written(value):
    with pytest.raises(NotCodedError):
        encoded([value], [])


def test_a_file_of_another_key_or_class_is_refused(tmp_path):
    path = tmp_path / "part.npz"
    with path.open("wb") as file:
        write_part(file, "key", [1])
    with pytest.raises(BROKEN):
        read_part(path, "another")
    with pytest.raises(BROKEN):
        decoded(["pathlib:Path", "x"], {})
