import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.fits import FitData
from itembank.calibration.specs import Variational
from itembank.calibration.start import start_abilities
from itembank.calibration.variational import starts
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.scale import transform
from itembank.progress import silent
from tests.calibration.simulated import random_posterior, simulate, tell_apart

N_MODELS, N_ITEMS, N_TRIALS = 60, 120, 10


def answered(family, blocks_of_models, seed=0):
    """Models in the order of their ability; each group of them answered some blocks of the items."""
    rng = np.random.default_rng(seed)
    theta = np.sort(rng.normal(size=N_MODELS))
    slope, difficulty = np.exp(rng.normal(0.3, 0.4, N_ITEMS)), rng.normal(size=N_ITEMS)
    has_block = np.repeat(np.array(blocks_of_models, dtype=bool), N_MODELS // len(blocks_of_models), axis=0)
    observed = np.repeat(has_block, N_ITEMS // has_block.shape[1], axis=1)
    chances = expit(slope * (theta[:, None] - difficulty))
    if family == "binomial":
        responses = rng.binomial(N_TRIALS, chances) / N_TRIALS
        trials = N_TRIALS * observed.astype(float)
    else:
        responses, trials = (rng.random(chances.shape) < chances).astype(float), None
    responses = np.where(observed, responses, 0.0)
    tell_apart(responses, observed, theta[:, None])
    return theta, FitData(responses, observed, np.zeros(N_ITEMS), family=family, n_trials=trials)


BRIDGE = [*[[1, 0]] * 9, [1, 1], *[[0, 1]] * 10]
"""The weaker half of the models answered one half of the items, the stronger half the other, and three models both."""
CHAIN = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
DESIGNS = [("bernoulli", BRIDGE), ("binomial", CHAIN)]


def ended(data, monkeypatch, start=None):
    """Fit, from the given abilities only where there are some."""
    with monkeypatch.context() as patched:
        if start is not None:
            patched.setattr(starts, "start_abilities", lambda *_, **__: start)
            patched.setattr(starts, "ALIKE", -1.0)
        return fit_variational(data, Variational(), progress=silent)


@pytest.mark.parametrize(("family", "design"), DESIGNS)
def test_blocks_of_items_come_out_turned_alike(family, design, monkeypatch):
    """The end is the one beside the truth; the leading directions alone lead to another, of a lower bound."""
    theta, data = answered(family, design)
    found = fit_variational(data, Variational(), progress=silent)
    assert found.converged
    assert np.mean(found.loadings < 0.0) < 0.05
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.85
    beside_truth = ended(data, monkeypatch, theta[:, None])
    assert found.history[-1] == pytest.approx(beside_truth.history[-1], abs=0.5)
    led = ended(data, monkeypatch, start_abilities(data.responses, data.observed, n_dims=1))
    assert np.mean(led.loadings < 0.0) > 0.3
    assert led.history[-1] < found.history[-1] - 20.0


def test_first_start_is_kept_where_both_lead_to_one_end(monkeypatch):
    data = simulate(30, 50, missing=0.6, seed=3).data
    leading = start_abilities(data.responses, data.observed, n_dims=1)
    alone = ended(data, monkeypatch, leading)
    monkeypatch.setattr(starts, "multiple_correlation", lambda *_: 0.0)
    both = ended(data, monkeypatch)
    np.testing.assert_array_equal(both.history, alone.history)


@pytest.mark.parametrize(("item_model", "n_dims", "advice"), [("2pl", 1, "positive_discr"), ("mirt", 2, "fewer ab")])
def test_ends_that_differ_and_are_as_good_do_not_count_as_converged(item_model, n_dims, advice, monkeypatch):
    data = simulate(30, 50, n_dims=n_dims, missing=0.6, seed=3).data
    monkeypatch.setattr(starts, "multiple_correlation", lambda *_: 0.0)
    spec = Variational(item_model=item_model, n_dims=n_dims)
    assert fit_variational(data, spec, progress=silent).converged
    monkeypatch.setattr(starts, "correlation_of_logits", lambda *_: 0.0)
    found = fit_variational(data, spec, progress=silent)
    assert not found.converged
    assert "a second start led to a different fit" in found.message
    assert advice in found.message


def test_multiple_correlation_is_that_of_the_regression():
    rng = np.random.default_rng(4)
    abilities, score = rng.normal(size=(50, 3)) + 2.0, rng.normal(size=50)
    design = np.column_stack([np.ones(50), abilities])
    fitted = design @ np.linalg.lstsq(design, score, rcond=None)[0]
    assert starts.multiple_correlation(score, abilities) == pytest.approx(np.corrcoef(fitted, score)[0, 1])
    assert starts.multiple_correlation(abilities @ [1.0, -2.0, 3.0], abilities) == pytest.approx(1.0)
    assert starts.multiple_correlation(np.ones(50), abilities) == 1.0


def test_logits_of_turned_axes_are_the_same():
    posterior = random_posterior(12, 20, 2, seed=5)
    turned = transform(posterior, np.array([[0.0, -2.0], [0.5, 0.3]]), np.array([0.4, -1.0]))
    assert starts.correlation_of_logits(posterior, turned) == pytest.approx(1.0)
    other = random_posterior(12, 20, 2, seed=6)
    logits = [p.item_mean[:, :2] @ (p.ability_mean - p.ability_mean.mean(axis=0)).T for p in (posterior, other)]
    expected = np.corrcoef(*[one.ravel() for one in logits])[0, 1]
    assert starts.correlation_of_logits(posterior, other) == pytest.approx(expected)
