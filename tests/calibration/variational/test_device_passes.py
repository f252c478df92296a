from dataclasses import fields

import numpy as np
import pytest

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational import fit as variational_fit
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.coupling import cross_products
from itembank.calibration.variational.device_passes import codes_on_device, numbers_on_device
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.errors import DataWarning, ParameterError
from itembank.numerics.devices import open_device
from itembank.progress import silent
from itembank.responses.item_codes import codes_of
from itembank.responses.responses import ResponseMatrix
from tests.calibration.simulated import random_posterior, simulate
from tests.calibration.variational.strict_device import strict_device

N_MODELS, N_ITEMS, N_DIMS = 12, 17, 2


def answers(kind):
    """Right and wrong answers, with and without missing cells and guessing, and counts."""
    if kind != "counts":
        missing, guessing = (0.3 * ("missing" in kind), 0.2 * ("guessing" in kind))
        return simulate(N_MODELS, N_ITEMS, n_dims=N_DIMS, missing=missing, guessing=guessing, seed=1).data
    rng = np.random.default_rng(2)
    n_trials = rng.integers(0, 5, size=(N_MODELS, N_ITEMS)).astype(float)
    rate = rng.binomial(n_trials.astype(int), 0.6) / np.maximum(n_trials, 1.0)
    return FitData(rate, n_trials > 0.0, np.zeros(N_ITEMS), family="binomial", n_trials=n_trials)


def same(found, expected, **tolerance):
    """Whether statistics agree in every array."""
    for one in fields(expected):
        if one.name != "cross":
            np.testing.assert_allclose(getattr(found, one.name), getattr(expected, one.name), **tolerance)


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
@pytest.mark.parametrize("kind", ["complete", "missing", "guessing", "missing guessing", "counts"])
def test_passes_on_a_device_give_what_those_of_numpy_give(kind, rule):
    posterior = random_posterior(N_MODELS, N_ITEMS, N_DIMS)
    ours = make_blocks(answers(kind), single_precision=False)
    theirs = numbers_on_device(ours, strict_device())
    items, abilities = item_statistics(theirs, posterior, rule), ability_statistics(theirs, posterior, rule)
    same(items, item_statistics(ours, posterior, rule), rtol=1e-10, atol=1e-12)
    same(abilities, ability_statistics(ours, posterior, rule), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("free_bytes", [1e9, 100.0])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_codes_give_what_numbers_give_held_or_sent(missing, free_bytes):
    posterior = random_posterior(N_MODELS, N_ITEMS, N_DIMS)
    data = simulate(N_MODELS, N_ITEMS, n_dims=N_DIMS, missing=missing, seed=1).data
    known = np.ones(data.responses.shape, dtype=bool) if data.observed is None else data.observed
    codes, device = codes_of(np.where(known, data.responses, np.nan)), strict_device(free_bytes=free_bytes)
    numbers = make_blocks(data, single_precision=False)
    coded = codes_on_device(codes, np.zeros(N_ITEMS), numbers.dtype, device, is_complete=missing == 0.0)
    assert coded.values.is_held == (free_bytes > N_MODELS * N_ITEMS)
    some = np.arange(N_ITEMS) % 3 == 1
    for chosen in (some, np.flatnonzero(some)):
        found = item_statistics(coded.take_items(chosen), posterior.take_items(chosen), normal_expectation)
        expected = item_statistics(numbers.take_items(chosen), posterior.take_items(chosen), normal_expectation)
        same(found, expected, rtol=1e-10, atol=1e-12)
    sent = numbers_on_device(numbers, device)
    found = ability_statistics(sent.take_items(some), posterior.take_items(some), normal_expectation)
    expected = ability_statistics(coded.take_items(some), posterior.take_items(some), normal_expectation)
    same(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_torch_gives_what_numpy_gives(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    posterior = random_posterior(N_MODELS, N_ITEMS, N_DIMS)
    ours = make_blocks(answers("missing guessing"), single_precision=False)
    theirs = numbers_on_device(ours, open_device(name))
    for statistics in (item_statistics, ability_statistics):
        found, expected = (statistics(blocks, posterior, normal_expectation) for blocks in (theirs, ours))
        same(found, expected, rtol=1e-10, atol=1e-12)


def test_passes_in_single_precision_are_single_but_add_up_in_double():
    posterior = random_posterior(N_MODELS, N_ITEMS, N_DIMS)
    double = make_blocks(answers("missing guessing"), single_precision=False)
    single = numbers_on_device(make_blocks(answers("missing guessing"), single_precision=True), strict_device())
    found, expected = (item_statistics(one, posterior, normal_expectation) for one in (single, double))
    assert found.likelihood.dtype == np.float64
    same(found, expected, rtol=1e-4, atol=1e-5)
    assert np.any(found.linear != expected.linear)


def test_coupled_steps_are_those_of_numpy():
    posterior = random_posterior(N_MODELS, N_ITEMS, N_DIMS)
    ours = make_blocks(answers("missing"), single_precision=False)
    theirs, marked = numbers_on_device(ours, strict_device()), np.arange(N_ITEMS) % 4 == 2
    direction = np.random.default_rng(3).normal(size=(N_MODELS, N_DIMS))
    products = []
    for blocks in (ours, theirs):
        cross = ability_statistics(blocks, posterior, normal_expectation, with_cross=True).cross
        some = ability_statistics(
            blocks.take_items(marked), posterior.take_items(marked), jaakkola_jordan, with_cross=True
        ).cross
        coupling = cross_products(cross.with_those_of(marked, some), posterior)
        products.append((coupling.items_follow(direction), coupling.abilities_follow_items(direction)))
    for expected, found in zip(*products, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["numbers", "counts", "codes"])
def test_a_fit_on_a_device_is_the_fit(kind, monkeypatch):
    monkeypatch.setattr(variational_fit, "open_device", lambda name: strict_device(cells_at_once=600))
    monkeypatch.setattr(variational_fit, "SUBSET_SIZE", 30)
    data = simulate(40, 60, missing=0.2 * (kind == "numbers"), guessing=0.2 * (kind == "numbers"), seed=3).data
    if kind == "counts":
        trials = np.full(data.responses.shape, 3.0)
        rate = (data.responses + np.random.default_rng(4).integers(0, 3, data.responses.shape)) / 3.0
        data = FitData(rate, None, data.lower_asymptote, family="binomial", n_trials=trials)
    if kind == "codes":
        data = FitData.of_codes(codes_of(data.responses), data.lower_asymptote)
    ours, theirs = (
        fit_variational(data, Variational(single_precision=False, device=device), progress=silent)
        for device in (None, "cuda")
    )
    assert ours.converged
    assert theirs.converged
    for name in ("loadings", "intercept", "abilities", "item_covariance", "ability_covariance"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:slopes should be:itembank.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:calibration did not:itembank.errors.ConvergenceWarning")
def test_agreeing_attempts_are_told_to_leave_the_device_out_and_banks_do_not_keep_it(monkeypatch):
    monkeypatch.setattr(variational_fit, "open_device", lambda name: strict_device(cells_at_once=600))
    right = simulate(20, 15, seed=5).data.responses
    with pytest.warns(DataWarning, match="Use family 'beta-binomial', and leave the device out"):
        found = calibrate(ResponseMatrix.create(right, n_trials=np.full(right.shape, 8)), Variational(device="cuda"))
    assert found.parameters.family == "binomial"
    assert found.options == {}


@pytest.mark.parametrize(
    ("device", "family", "words"),
    [
        ("gpu", "auto", "device must be 'cuda', 'cuda:1' .* got 'gpu'"),
        ("cuda:", "auto", "got 'cuda:'"),
        ("cuda", "beta", "families 'bernoulli' and 'binomial', got family 'beta' with device 'cuda'"),
        ("cpu", "beta-binomial", "got family 'beta-binomial'"),
    ],
)
def test_what_no_device_can_do_is_refused(device, family, words):
    with pytest.raises(ParameterError, match=words):
        Variational(device=device, family=family)
