import warnings

import numpy as np
import polars as pl
import pytest

from benchmarks.accuracy.data_sets import DataSet
from benchmarks.accuracy.splits import splits
from benchmarks.accuracy.study import parts
from benchmarks.accuracy.summary import GROUP, summarise, tables
from itembank.calibration.calibration_specs import Variational
from itembank.responses.responses import ResponseMatrix

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def data_set():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1)) + rng.normal(size=150)
    orgs = [f"org-{i // 3}" if i < 39 else None for i in range(40)]
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(40)], "org": orgs})
    responses = ResponseMatrix.create((rng.random(x.shape) < 1.0 / (1.0 + np.exp(-x))).astype(float), models=models)
    dates = np.array([f"2024-{1 + i % 12:02d}" for i in range(40)])
    return DataSet("swebench_verified", responses, Variational(), ("date",), dates)


@pytest.mark.parametrize("kind", ["random", "folds", "organisation", "date"])
def test_no_model_is_on_both_sides_of_a_split(data_set, kind):
    for split in splits(data_set, kind, 3):
        assert not set(split.train) & set(split.test)
        assert sorted([*split.train, *split.test]) == list(range(40))
        assert 0.2 <= split.test.size / 40 <= 0.35


def test_folds_test_every_model_once_and_a_date_the_newest(data_set):
    tested = {repeat: [] for repeat in range(2)}
    for split in splits(data_set, "folds", 2):
        tested[split.repeats[0]].extend(split.test.tolist())
    assert all(sorted(models) == list(range(40)) for models in tested.values())
    (split,) = splits(data_set, "date", 5)
    assert min(data_set.dates[split.test].tolist()) >= max(data_set.dates[split.train].tolist())
    assert split.repeats == (0, 1, 2, 3, 4)
    organisation = data_set.responses.models["org"].fill_null("").to_numpy()
    for split in splits(data_set, "organisation", 4):
        assert not set(organisation[split.train]) & set(organisation[split.test])


def test_errors_are_means_over_models_then_draws_then_repeats():
    rng = np.random.default_rng(1)
    columns = {"data_set": "d", "split": "random", "selection": "IRT", "estimator": "++"}
    columns |= {"n_items": 30, "sample_share": 0.1}
    rows = [
        {**columns, "repeat": repeat, "draw": draw, "truth": truth, "estimate": truth + rng.normal(0.0, 0.05)}
        for repeat in range(3)
        for draw in range(2)
        for truth in rng.random(4)
    ]
    table = pl.DataFrame(rows).with_columns(low=pl.col("estimate") - 0.04, high=pl.col("estimate") + 0.04)
    found = summarise(table).row(0, named=True)
    errors = np.abs(table["estimate"] - table["truth"]).to_numpy().reshape(3, 8) * 100
    assert found["error"] == pytest.approx(errors.mean())
    assert found["standard_error"] == pytest.approx(errors.mean(axis=1).std(ddof=1) / 3**0.5)
    assert found["coverage"] == pytest.approx(np.mean(errors <= 4.0))
    assert set(GROUP) <= set(found)


def test_a_small_study_gives_every_strategy_and_the_tables(data_set, monkeypatch):
    for module in ("study", "summary"):
        monkeypatch.setattr(f"benchmarks.accuracy.{module}.SIZES", (30, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = pl.concat([make() for make in parts(data_set, 1, 1).values()])
    summary = summarise(estimates)
    assert summary.height == 2 * 4 * 4  # numbers of items, selections, estimators
    assert summary["error"].is_between(0.0, 40.0).all()
    plain, mixed = (summary.filter(selection="random", estimator=name)["error"].mean() for name in ("plain", "++"))
    assert mixed < plain  # the item model is the truth here
    found = tables(summary)
    assert [text.count("| SWE-bench Verified | newest |") for text in found.values()] == [2, 1, 1, 1]
    assert found["accuracy-errors"].endswith("Abilities: SWE-bench Verified 1.")
