"""New models that descend from past ones: found, estimated more closely, with intervals that hold."""

import functools

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.parents import (
    PastModels,
    error_sizes,
    kin_of,
    kin_weights,
    nearness,
    shares,
    squared_differences,
)
from itembank.responses.responses import ResponseMatrix
from tests.estimation.simulated import full_scores, having, held, new_models, shared_bank

N_FAMILIES, N_WITH_CHILD, N_ITEMS, N_ASKED = 105, 45, 300, 40
FLIPPED = 0.08


def of_families(past):
    with pytest.warns(DataWarning, match="answer like another one"):
        return calibrate(past, Variational(n_dims=1, tolerance=1e-3))


@functools.cache
def world():
    """A bank of 105 models and descendants of 45, then new descendants of these and strangers, with full responses.

    A descendant answers as its parent does, but for a few items that it answers anew.
    """
    rng = np.random.default_rng(4)
    slope, intercept = rng.lognormal(0.0, 0.3, N_ITEMS), rng.normal(size=N_ITEMS)

    def born(ability):
        p = 1.0 / (1.0 + np.exp(-(np.outer(ability, slope) + intercept)))
        return (rng.random(p.shape) < p).astype(float), p

    def children(answers, p):
        return np.where(rng.random(p.shape) < FLIPPED, rng.random(p.shape) < p, answers).astype(float)

    founders, p = born(rng.normal(size=N_FAMILIES))
    strangers, _ = born(rng.normal(size=60))
    ids = [f"founder-{k}" for k in range(N_FAMILIES)] + [f"child-{k}" for k in range(N_WITH_CHILD)]
    answers = np.concatenate([founders, children(founders, p)[:N_WITH_CHILD]])
    bank = of_families(ResponseMatrix.create(answers, model_ids=ids))

    def new(kind, answers):
        models = pl.DataFrame({"model_id": [f"{kind}-{k}" for k in range(len(answers))]})
        return ResponseMatrix.create(answers, models=models, items=bank.responses.items)

    return bank, new("grandchild", children(founders, p)[:N_WITH_CHILD]), new("stranger", strangers)


def asked(responses):
    return responses.take(items=np.arange(N_ASKED))


def errors_of(found, responses):
    return np.abs(found.value[:, -1] - full_scores(world()[0], responses)[:, -1])


def test_descendants_are_found_and_estimated_in_half_the_error_with_intervals_that_hold():
    bank, new, _ = world()
    usual, found = estimate(bank, asked(new)), estimate(bank, asked(new), parent="auto")
    family = [name.rpartition("-")[2] for name in found.parents]
    assert np.mean([name == str(k) for k, name in enumerate(family)]) > 0.9
    assert errors_of(found, new).mean() < 0.5 * errors_of(usual, new).mean()
    assert np.mean(found.high - found.low) < 0.6 * np.mean(usual.high - usual.low)
    assert held(found, full_scores(bank, new))[:, -1].mean() > 0.9  # 45 models at 0.95: a standard error of 0.03
    assert "which gave the same answer on" in found.explanation
    assert (found.rows()[0]["parent"], "parent" in usual.rows()[0]) == (found.parents[0], False)


def test_strangers_are_estimated_as_without():
    bank, _, strangers = world()
    usual, found = estimate(bank, asked(strangers)), estimate(bank, asked(strangers), parent="auto")
    assert errors_of(found, strangers).mean() < 1.1 * errors_of(usual, strangers).mean()
    rest = np.flatnonzero([not parent for parent in found.parents])
    assert rest.size > 30
    np.testing.assert_array_equal(np.array(found.scores)[[0, 2]][:, rest], np.array(usual.scores)[[0, 2]][:, rest])


def test_a_named_parent_counts_more_than_others_and_a_wrong_one_is_told():
    bank, new, _ = world()
    one = asked(new).take(models=np.arange(1))
    for name in ("founder-0", "child-0"):
        assert estimate(bank, one, parent=name).parents == (name,)
    scores = bank.known_scores.value[:, -1]
    other = bank.responses.model_ids[int(np.abs(scores - np.median(scores)).argmax())]
    with pytest.warns(DataWarning, match="must answer more like its parent"):
        found = estimate(bank, one, parent=other)
    assert found.parents != (other,)
    assert "which was named" in found.explanation


def test_a_model_of_the_bank_is_no_parent_of_itself_and_of_too_few_nothing_is_learnt():
    bank, *_ = world()
    found = estimate(bank, asked(bank.responses.take(models=np.arange(1))), parent="auto")
    assert found.parents == ("child-0",)
    bank, new = shared_bank(), new_models(shared_bank(), 2)
    usual, found = estimate(bank, new), estimate(bank, new, parent="auto")
    np.testing.assert_array_equal(found.value, usual.value)
    assert (found.parents, "No parent counts" in found.explanation) == (("", ""), True)


@pytest.mark.parametrize(
    ("error", "match", "choices"),
    [
        (DataError, "one of the 150 models", {"parent": "founder-O"}),
        (DataError, "a model other than those estimated", {"parent": "founder-1"}),
        (ParameterError, "weighed with 'stacked'", {"method": "p-irt"}),
        (ParameterError, "weighed with 'stacked'", {"interval": "model-based"}),
        (ParameterError, "not 'mean_win_rate'", {"target": "mean_win_rate"}),
    ],
)
def test_what_does_not_go_together_is_refused(error, match, choices):
    bank, *_ = world()
    itself = asked(bank.responses.take(models=np.array([1])))
    with pytest.raises(error, match=match):
        estimate(bank, itself, **{"parent": "founder-0", **choices})


def test_a_parent_must_have_answered_everything():
    bank, new, _ = world()
    gaps = of_families(having(bank.responses, (0, slice(5, 9))))
    with pytest.raises(DataError, match=r"answered all 300 items .* answered 296"):
        estimate(gaps, asked(new), parent="founder-0")


def test_sizes_of_errors_are_those_that_they_were_drawn_with(rng):
    parts = rng.lognormal(size=(2, 20_000, 1))
    true = np.sqrt(2.0 * parts[0] + 0.5 * parts[1])
    errors = true * rng.standard_normal(true.shape)
    errors[:9] = np.nan
    for found in error_sizes(errors, parts, parts):
        np.testing.assert_allclose(found, true, rtol=0.05)


def test_weights_fall_by_the_answers_that_differ(rng):
    answers, past = rng.integers(0, 2, (3, 20)).astype(float), rng.integers(0, 2, (5, 20)).astype(float)
    past[rng.random(past.shape) < 0.2] = np.nan
    differing = squared_differences(answers, past)
    assert differing == pytest.approx(np.nansum((answers[:, None] - past) ** 2, axis=2))
    eligible = np.ones((3, 5), dtype=bool)
    eligible[0, 0] = False
    weights = kin_weights(differing, eligible, named=2)
    by_hand = eligible * 5.0 ** -(differing - 2.0 * (np.arange(5) == 2))
    assert weights == pytest.approx(by_hand / by_hand.sum(axis=1, keepdims=True))
    (full, told), own = rng.random((2, 5, 4)), rng.random((3, 4))
    kin = kin_of(answers, own, PastModels(np.arange(5), past, full, told), eligible, named=2)
    for row, weight in enumerate(weights):
        mean = np.average(full - told, axis=0, weights=weight)
        assert kin.score[row] - own[row] == pytest.approx(mean)
        assert kin.spread[row] == pytest.approx(np.average((full - told - mean) ** 2, axis=0, weights=weight))
        assert kin.disagreement[row] == pytest.approx((weight @ differing[row] + 0.5) / 20)


def test_what_kin_are_worth_is_learnt_from_past_models_that_are_as_like_theirs(rng):
    x = np.array([0.0, 1.0, 4.0, 9.0])  # of roots 0 to 3
    assert nearness(np.zeros(1), x, 3) == pytest.approx(np.array([[1.0, (7 / 8) ** 3, 0.0, 0.0]]), abs=1e-5)
    assert nearness(x, x, 3)[0] == pytest.approx([0.0, (26 / 27) ** 3, (19 / 27) ** 3, 0.0], abs=1e-5)  # not itself
    near, (step, wanted) = rng.random((1, 6)), rng.normal(size=(2, 6, 1))
    slope = np.polyfit(np.append(step, 0.0), np.append(wanted, 0.0), 1, w=np.append(np.sqrt(near), 1e6))[0]
    assert shares(near, step, wanted, 6) == pytest.approx(slope / 1.5, rel=1e-6)  # three more, of no use
