"""The tables of the study of pass@k, on made-up records."""

import numpy as np
import polars as pl
import pytest

from benchmarks.test_time.summary import as_markdown, gaps, ratios, summarise

METHODS = ("plug-in", "jeffreys", "beta-binomial", "irsl-plug-in", "irsl")


def record(split, model_id, method, error, log_error):
    has_interval = method == "irsl"
    return {
        "set": "s",
        "split": split,
        "model_id": model_id,
        "items": "all",
        "method": method,
        "error": error,
        "log_error": log_error,
        "held": 0.9 if has_interval else None,
        "half_width": 0.1 if has_interval else None,
    }


@pytest.fixture
def records():
    rows = [record(split, "a", method, 0.1 * (m + 1), 1.0) for split in (0, 1) for m, method in enumerate(METHODS)]
    # model b has no right sample in the budget: the plug-in knows no -log pass@k
    rows += [record(0, "b", method, 0.3, np.inf if method == "plug-in" else 5.0) for method in METHODS]
    return pl.DataFrame(rows)


def test_logs_are_compared_where_every_method_has_one(records):
    summary = summarise(records)
    assert summary["method"].to_list() == list(METHODS)
    assert summary["log_error"].to_list() == [1.0] * len(METHODS)
    assert summary["share_compared"].to_list() == [0.75] * len(METHODS)  # of split 0 a half, of split 1 all


def test_errors_are_means_over_splits_of_means_over_models(records):
    plug_in = summarise(records).row(0, named=True)
    assert plug_in["error"] == pytest.approx(((0.1 + 0.3) / 2 + 0.1) / 2)
    assert plug_in["error_se"] == pytest.approx(0.1 / np.sqrt(2) / np.sqrt(2))


def test_gaps_are_traditional_less_default(records):
    found = gaps(records)
    assert found["gap"].to_list() == pytest.approx([0.1 - 0.5, 0.0, 0.1 - 0.5])


def test_ratios_and_table_name_the_set(records):
    summary = summarise(records)
    row = ratios(summary).row(0, named=True)
    assert row["ratio"] == pytest.approx(((0.5 + 0.3) / 2 + 0.5) / 2 / 0.15)
    assert "| s |" in as_markdown(summary)
