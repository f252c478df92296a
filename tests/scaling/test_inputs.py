"""The table of all scores of answer options, and losses taken from it."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_lm_eval
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.inputs import read_choice_scores, read_losses
from tests.readers.logs import sample, write_run

LOG = Path(__file__).parent.parent / "readers" / "lm_eval_0_4_13"


@pytest.fixture(scope="module")
def scores():
    with pytest.warns(DataWarning, match="2 runs are left out: 'dummy' on 'majority'.*'dummy' on 'programs'"):
        return read_choice_scores(LOG)


def test_bits_per_byte_are_of_the_bytes_of_the_right_option(scores):
    (path,) = LOG.glob("samples_capitals_*.jsonl")
    found = dict(scores.select("item_id", "bits_per_byte").iter_rows())
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        index = int(row["target"])
        text = row["arguments"][f"gen_args_{index}"]["arg_1"].removeprefix(" ")
        expected = -float(row["resps"][index][0][0]) / math.log(2) / len(text.encode())
        assert found[f"capitals/{row['doc_id']}"] == pytest.approx(expected, rel=1e-12)


def test_scores_are_the_responses_one_at_a_time(scores):
    for response, column in (("probability", "choice_probability"), ("accuracy", "choice_accuracy")):
        made = read_lm_eval(LOG, spec=ReadingSpec(tasks=("several_right",), response=response))
        table = scores.filter(pl.col("scenario") == "several_right")
        np.testing.assert_array_equal(table[column].to_numpy(), made.responses[0])


def test_one_option_is_compared_with_none(scores):
    alone = scores.filter(pl.col("scenario") == "last_word")
    assert alone["choice_probability"].is_null().all()
    assert alone["bits_per_byte"].is_not_null().all()
    assert alone["n_options"].unique().to_list() == [1]


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_losses_come_back_in_the_order_of_the_responses(scores, tmp_path, name):
    (scores.write_csv if name.endswith("csv") else scores.write_parquet)(tmp_path / name)
    responses = ResponseMatrix.create(
        np.ones((2, 3)), model_ids=["other", "dummy"], item_ids=["digits/3", "capitals/0", "unknown/1"]
    )
    losses = read_losses(tmp_path / name, responses)
    found = dict(scores.select("item_id", "bits_per_byte").iter_rows())
    assert np.isnan(losses[0]).all()
    np.testing.assert_allclose(losses[1], [found["digits/3"], found["capitals/0"], np.nan], rtol=1e-15)


def test_a_column_called_loss_goes_before_bits_per_byte(scores):
    responses = ResponseMatrix.create(np.ones((1, 1)), model_ids=["dummy"], item_ids=["digits/3"])
    table = scores.with_columns(loss=pl.lit(2.5))
    assert read_losses(table, responses).tolist() == [[2.5]]
    assert read_losses(table, responses, column="bits_per_byte")[0, 0] != 2.5


def test_tables_that_tell_no_losses_are_refused(scores):
    responses = ResponseMatrix.create(np.ones((1, 1)), model_ids=["dummy"], item_ids=["digits/3"])
    with pytest.raises(DataError, match="must have the columns 'nats'"):
        read_losses(scores, responses, column="nats")
    with pytest.raises(DataError, match="one row a model and item, got several for 'dummy on digits/0'"):
        read_losses(pl.concat([scores, scores.filter(pl.col("item_id") == "digits/0")]), responses)
    with pytest.raises(DataError, match="got none of them: it has models 'dummy', the responses 'someone'"):
        read_losses(scores, ResponseMatrix.create(np.ones((1, 1)), model_ids=["someone"]))
    with pytest.raises(DataError, match="scenario must be a number in every row of a table of losses, got 'digits'"):
        read_losses(scores.filter(pl.col("item_id") == "digits/0"), responses, column="scenario")


def test_logs_without_any_options_are_refused():
    with pytest.raises(DataError, match="no task has answer options with log-likelihoods: 'dummy' on 'majority' needs"):
        read_choice_scores(LOG, spec=ReadingSpec(tasks=("majority",)))


def test_runs_that_disagree_are_refused_unless_the_last_is_asked_for(tmp_path):
    def run(value, date):
        row = sample(0, acc=1.0) | {"resps": [[[str(value), "True"]]]}
        write_run(tmp_path, "org/a", {"qa": [row]}, date=date)

    run(-1.0, "2025-03-01T10-00-00.000001")
    run(-2.0, "2025-03-02T10-00-00.000001")
    with pytest.raises(DataError, match="different ones for 1 pairs: 'org/a on qa/0'"):
        read_choice_scores(tmp_path)
    last = read_choice_scores(tmp_path, spec=ReadingSpec(repeats="last"))
    assert last["log_likelihood"].to_list() == [-2.0]
