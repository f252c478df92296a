"""Likelihood ratios of pairs against loops, and copies planted in simulated answers."""

import numpy as np
import pytest

from itembank.auditing import duplicates as kernels
from itembank.auditing.duplicates import NEAREST, SLIP, duplicate_pairs, with_residual_factors
from itembank.diagnostics import find_duplicates
from itembank.errors import ParameterError
from itembank.readers.builtin import load_builtin
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_ratios_are_the_sums_over_models_that_answered_both(missing, monkeypatch):
    monkeypatch.setattr(kernels, "ROWS", 4)
    monkeypatch.setattr(kernels, "COLUMNS", 5)
    rng = np.random.default_rng(0)
    values, _ = make_answers(n_models=12, n_items=14)
    p = rng.uniform(0.1, 0.9, values.shape)
    observed = rng.random(values.shape) >= missing
    found = duplicate_pairs(np.where(observed, values, np.nan), observed, p, least=-1e9)
    assert found.height == 14 * 13 // 2
    assert (np.diff(found["log_ratio"]) <= 1e-3).all()
    for j, k, ratio, n_shared, n_agree in found.iter_rows():
        rows = np.flatnonzero(observed[:, j] & observed[:, k])
        agree = values[rows, j] == values[rows, k]
        given = np.where(values == 1.0, p, 1.0 - p)[rows]
        expected = np.log(np.where(agree, 1.0 - SLIP, SLIP)) - 0.5 * np.log(given[:, j] * given[:, k])
        assert ratio == pytest.approx(expected.sum(), abs=1e-4)
        assert (n_shared, n_agree) == (rows.size, agree.sum())


def test_residual_factors_take_what_families_share_out_of_chance():
    values, theta = make_answers(n_models=100, n_items=200)
    family = np.arange(100) % 2 == 0
    values[:, :40] = family[:, None]  # 40 items that only one family can do
    p = np.full(values.shape, values.mean())
    observed = np.ones(values.shape, dtype=bool)
    better = with_residual_factors(p, values, observed)
    assert better[family, :40].mean() > 0.85
    assert better[~family, :40].mean() < 0.15
    few = with_residual_factors(p[:20], values[:20], observed[:20])
    assert few == pytest.approx(np.clip(p[:20], NEAREST, 1.0 - NEAREST))  # twenty models tell no factor from chance
    assert theta.size == 100


@pytest.mark.parametrize("n_models", [40, 100])
def test_parts_of_the_models_give_what_all_at_once_give(n_models, monkeypatch):
    values, _ = make_answers(n_models=n_models, n_items=70)
    observed = np.random.default_rng(3).random(values.shape) < 0.9
    values = np.where(observed, values, np.nan)
    p = np.asfortranarray(np.random.default_rng(4).random(values.shape))

    def found():
        better = with_residual_factors(p, values, observed)
        return [better, *duplicate_pairs(values, observed, better, least=-3.0)]

    at_once = found()
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 500)
    for one, other in zip(found(), at_once, strict=True):
        np.testing.assert_array_equal(one, other)


def test_copies_are_found_and_nothing_else():
    values, _ = make_answers(n_models=120, n_items=150, seed=4, ease=0.0)
    copied = values[:, :10].copy()
    copied[3] = 1.0 - copied[3]  # one model answers otherwise
    names = [f"q{j}" for j in range(150)] + [f"again {j}" for j in range(10)]
    found = find_duplicates(ResponseMatrix.create(np.concatenate([values, copied], axis=1), item_ids=names))
    flagged = found.table.filter(verdict="duplicate")
    assert {(row["duplicate_of"], row["item_id"]) for row in flagged.to_dicts()} <= {
        (f"q{j}", f"again {j}") for j in range(10)
    }
    assert flagged.height >= 8
    assert flagged["n_agree"].to_list() == [119] * flagged.height
    assert found.to_dict() == {
        "n_pairs": 160 * 159 // 2,
        "n_duplicate": flagged.height,
        "n_review": 10 - flagged.height,
    }
    with pytest.raises(ParameterError, match="review must be a finite number >= 0"):
        find_duplicates(ResponseMatrix.create(values), review=-1.0)


def test_the_flower_that_is_twice_in_fishers_iris_data_is_found():
    classifiers = load_builtin("classifiers")
    iris = classifiers.take(items=np.flatnonzero((classifiers.items["scenario"] == "iris").to_numpy()))
    first = find_duplicates(iris).rows()[0]
    # rows 102 and 143 of the data, counted from 1, are the same flower
    assert (first["duplicate_of"], first["item_id"], first["verdict"]) == ("iris/101", "iris/142", "duplicate")


def test_easy_items_prove_nothing():
    values, _ = make_answers(n_models=60, n_items=80, ease=0.0)
    values[:, :5] = 1.0
    values[7, :5] = 0.0  # one and the same model fails on each
    assert find_duplicates(ResponseMatrix.create(values)).table.filter(verdict="duplicate").height == 0
