import warnings

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import DataError
from itembank.readers.reading_specs import ReadingSpec

COUNTED = {"model": ["a", "a", "b", "b"], "task_id": ["p", "q", "p", "q"], "n": [10, 10, 10, 5], "c": [3, 0, 10, 4]}
ATTEMPTS = {"score_seed1": [1, 0, 1, 0], "Score_seed2": [1, 1, 0, 0]}


@pytest.mark.filterwarnings("ignore:.*read the column")
@pytest.mark.parametrize("ours", ["model_id", "model"])  # it is read as a long table, or taken for a wide one
def test_columns_of_counts_are_advised_by_name(ours):
    table = pl.DataFrame(COUNTED)
    table = table.rename({"model": ours, "task_id": {"model": "task_id", "model_id": "item_id"}[ours]})
    with pytest.raises(DataError, match=r"'n_correct': 'c', 'n_trials': 'n'"):
        ib.read_responses(table)
    matrix = ib.read_responses(table, spec=ReadingSpec(columns={"n_correct": "c", "n_trials": "n"}))
    np.testing.assert_allclose(matrix.responses, [[0.3, 0.0], [1.0, 0.8]], rtol=1e-6)


def test_attempts_with_a_word_in_front_are_advised_as_attempts():
    table = pl.DataFrame({"model": COUNTED["model"], "item_id": COUNTED["task_id"], **ATTEMPTS})
    with pytest.raises(DataError, match=r"\[.score_seed1, .Score_seed2\]"):
        ib.read_responses(table)


@pytest.mark.parametrize(
    ("scores", "is_told"), [([0.3, 0.0, 1.0, 0.8], True), ([1, 0, 1, 0], False), ([0.33, 0, 1, 0.8], False)]
)
def test_a_column_of_attempts_that_nobody_reads_is_told(scores, is_told):
    table = pl.DataFrame({**COUNTED, "score": scores}).drop("c")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ib.read_responses(table)
    assert is_told == any("'n_trials': 'n'" in str(one.message) for one in told)
