"""The tables of the study of pass@k, on made-up records."""

import numpy as np
import polars as pl
import pytest

from benchmarks.test_time.summary import as_markdown, gaps, ratios, summarise

METHODS = ("plug-in", "jeffreys", "beta-binomial", "irsl-plug-in", "irsl")


def record(split, model_id, method, error, log_error):
    row = {"set": "s", "split": split, "model_id": model_id, "items": "all", "method": method, "error": error}
    interval = (0.9, 0.1) if method == "irsl" else (None, None)
    return row | {"log_error": log_error, "held": interval[0], "half_width": interval[1]}


def test_errors_and_logs_are_means_over_splits_of_means_over_models(records):
    summary = summarise(records)
    assert summary["method"].to_list() == list(METHODS)
    assert summary["log_error"].to_list() == [1.0] * len(METHODS)
    assert summary["share_compared"].to_list() == [0.75] * len(METHODS)  # of split 0 a half, of split 1 all
    plug_in = summary.row(0, named=True)
    assert plug_in["error"] == pytest.approx(((0.1 + 0.3) / 2 + 0.1) / 2)
    assert plug_in["error_se"] == pytest.approx(0.1 / np.sqrt(2) / np.sqrt(2))
    # gaps are the traditional one's less the default's
    assert gaps(records)["gap"].to_list() == pytest.approx([0.1 - 0.5, 0.0, 0.1 - 0.5])
    row = ratios(summary).row(0, named=True)
    assert row["ratio"] == pytest.approx(((0.5 + 0.3) / 2 + 0.5) / 2 / 0.15)
    assert "| s |" in as_markdown(summary)


@pytest.fixture
def records():
    rows = [record(split, "a", method, 0.1 * (m + 1), 1.0) for split in (0, 1) for m, method in enumerate(METHODS)]
    # model b has no right sample in the budget: the plug-in knows no -log pass@k
    rows += [record(0, "b", method, 0.3, np.inf if method == "plug-in" else 5.0) for method in METHODS]
    return pl.DataFrame(rows)
