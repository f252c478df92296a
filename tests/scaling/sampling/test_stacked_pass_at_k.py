"""The weight between item response and one Beta for all items."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from itembank.calibration.calibration_specs import Variational
from itembank.estimation.folds import Fold
from itembank.scaling.sampling import stacked_pass_at_k
from itembank.scaling.sampling.pass_at_k_curve import Curve
from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law
from itembank.scaling.sampling.pass_at_k_specs import DEFAULT_METHODS, METHODS, STACKED_OF, PassAtKSpec
from itembank.scaling.sampling.stacked_pass_at_k import (
    NO_WEIGHTS,
    PRIOR_MODELS,
    StackedWeights,
    computed_methods,
    weight_note,
    weights_of_set,
    with_stacked,
)
from tests.scaling.samples import known_bank, simulated_samples

SPEC = PassAtKSpec(
    k=(1, 30, 300),
    methods=("irsl", "beta-binomial", "stacked"),
    budget=20,
    n_draws=100,
    interval="model-based",
    item_model=Variational("1pl", family="beta-binomial"),
)
ASKED = ["model-1", "model-2", "model-3"]


def curve_of(values, truth):
    """A curve of `STACKED_OF` with these values (2, n_k) on both sets of items."""
    both = np.repeat(np.asarray(values, dtype=float)[:, None], 2, axis=1)
    ends = np.repeat(np.asarray(truth, dtype=float)[None], 2, axis=0)
    return Curve(0, "math", np.arange(1), np.ones(2), both, ends, ends, ends, np.zeros(1), 0.0, 0.0)


def shrunken_error(w, errors):
    """The penalised squared error that the weight of the first method minimises, written out for two methods."""
    first, second = errors.T
    own = PRIOR_MODELS * (w**2 * np.mean(first**2) + (1 - w) ** 2 * np.mean(second**2))
    return np.sum((w * first + (1 - w) * second) ** 2) + own


def test_the_weight_is_the_best_one():
    """Against a search over the weight, one k at a time."""
    rng = np.random.default_rng(2)
    errors = rng.normal(size=(9, 1, 2)) * [0.02, 0.03] + 0.01
    curves = [curve_of(0.5 + one.T, [0.5]) for one in errors]
    best = minimize_scalar(shrunken_error, args=(errors[:, 0],), bounds=(0.0, 1.0), method="bounded").x
    assert 0.1 < best < 0.9
    np.testing.assert_allclose(weights_of_set(curves, 0), best, atol=1e-4)


def test_the_better_method_has_the_greater_weight_where_it_is_better():
    """Far k, where neighbours do not reach: the first method is exact at the first three, the other at the last."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 0.1, (8, 2, 7))
    noise[:, 0, :3], noise[:, 1, 4:] = 0.001, 0.001
    weights = weights_of_set([curve_of(0.5 + one, np.full(7, 0.5)) for one in noise], 1)
    assert weights[0] > 0.95
    assert weights[-1] < 0.05


def test_weights_at_other_k_and_values():
    weights = StackedWeights(np.array([1.0, 100.0]), np.array([[0.2, 0.8], [1.0, 0.0]]), 9)
    k = np.array([1.0, 10.0, 1e6])
    np.testing.assert_allclose(weights.at(k)[0], [[0.2, 0.5, 0.8], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(weights.at(k).sum(axis=0), 1.0)
    curve = curve_of([[0.1, 0.2, 0.3], [0.3, 0.4, np.nan]], [0.1] * 3)
    found = with_stacked(curve, k, STACKED_OF, ("stacked", "irsl"), weights).values
    np.testing.assert_allclose(
        found[0], [[0.26, 0.3, 0.3], [0.1, 0.3, np.nan]]
    )  # of one alone where the other has none
    np.testing.assert_array_equal(found[1], curve.values[0])


def test_the_note_says_what_the_weights_rest_on():
    some = StackedWeights(np.array([1.0]), np.array([[0.25], [0.5]]), 9)
    note = weight_note({"math": some, "code": NO_WEIGHTS})
    assert "'math' 0.25 to 0.25 (9 models)" in note
    assert note.endswith("where too few models tell: 'code'")


def test_both_methods_are_computed_and_only_what_was_asked_for_is_told():
    assert computed_methods(("stacked", "plug-in")) == ("plug-in", *STACKED_OF)
    assert computed_methods(("plug-in",)) == ("plug-in",)
    assert set(METHODS) - set(DEFAULT_METHODS) == {"stacked"}


@pytest.fixture(scope="module")
def samples():
    """Items of very unlike difficulty, which a few samples do not tell and other models do."""
    return simulated_samples(n_models=23, n_items=30, n_trials=600, precision=60.0, difficulty=4.0, seed=7)


@pytest.fixture(scope="module")
def law(samples):
    return pass_at_k_law(samples.responses, SPEC, models=ASKED, rng=1)


def test_item_response_has_nearly_all_weight_where_it_is_right(law):
    errors = {row["method"]: row["error"] for row in law.errors()}
    assert errors["irsl"] < 0.7 * errors["beta-binomial"]
    assert errors["stacked"] < 1.1 * errors["irsl"]
    between = np.sort([law.values(name) for name in STACKED_OF], axis=0)
    assert np.all((between[0] - 1e-12 <= law.values("stacked")) & (law.values("stacked") <= between[1] + 1e-12))
    assert any("'stacked' gives 'irsl' this weight" in note and "20 models" in note for note in law.notes)


def test_weights_change_no_other_number(samples, law):
    plain = pass_at_k_law(samples.responses, dataclasses.replace(SPEC, methods=STACKED_OF), models=ASKED, rng=1)
    np.testing.assert_array_equal(law.all_items.values[:2], plain.all_items.values)
    np.testing.assert_array_equal(law.all_items.low, plain.all_items.low)


def test_models_asked_about_tell_where_there_are_no_others(samples):
    spec = dataclasses.replace(SPEC, budget=None, methods=("stacked",), k=(1000,))
    few = samples.responses.take(models=np.arange(8))
    law = pass_at_k_law(few, spec)
    assert any("8 models" in note for note in law.notes)
    fewer = pass_at_k_law(
        samples.responses.take(models=np.arange(3)),
        dataclasses.replace(spec, methods=METHODS[:1] + METHODS[2:3] + METHODS[-1:]),
    )
    assert any("too few models tell: 'math'" in note for note in fewer.notes)
    half = 0.5 * (fewer.values("irsl") + fewer.values("beta-binomial"))
    np.testing.assert_allclose(fewer.values("stacked"), half, rtol=1e-12)


def test_a_bank_tries_its_own_models_on_items_that_have_not_seen_them(samples, monkeypatch):
    bank, new = known_bank(samples), samples.responses.take(models=np.arange(2))
    halves = [np.arange(23)[number::2] for number in (0, 1)]
    mixed = dataclasses.replace(samples.parameters, intercept=np.roll(samples.parameters.intercept, 7))
    without = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, parameters=mixed))
    spec = dataclasses.replace(SPEC, methods=(*STACKED_OF, "stacked"))
    weights = []
    for item_bank in (bank, without):  # items of folds that know them, and of folds that mix them up
        monkeypatch.setattr(
            stacked_pass_at_k,
            "folds",
            lambda _, one=item_bank: [Fold(i, rows, lambda: one) for i, rows in enumerate(halves)],
        )
        note = next(text for text in pass_at_k_law(new, spec, bank=bank).notes if "'stacked'" in text)
        assert "23 models" in note
        weights.append(float(re.search(r"to (\d\.\d+)", note)[1]))
    assert weights[0] > 0.8
    assert weights[1] < weights[0] - 0.2
