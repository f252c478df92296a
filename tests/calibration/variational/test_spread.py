"""A fit whose sections other processes go over is that of one process, to the last bit."""

import pickle
from copy import deepcopy

import joblib
import numpy as np
import pytest

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational import coded_blocks, fit, sections, spread
from itembank.calibration.variational.ascent import improve_items
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.errors import ParameterError
from itembank.progress import silent
from itembank.responses.item_codes import MISSING, ItemCodes
from tests.calibration.simulated import random_posterior, simulate

N_MODELS, N_ITEMS = 40, 300
DOUBLE = np.dtype(np.float64)


def cells_of(missing):
    data = simulate(N_MODELS, N_ITEMS, missing=missing, seed=5).data
    observed = np.ones(data.responses.shape, dtype=bool) if data.observed is None else data.observed
    return np.ascontiguousarray(np.where(observed, data.responses, MISSING).T.astype(np.uint8))


CELLS = {"complete": cells_of(0.0), "scattered": cells_of(0.7)}


@pytest.fixture(params=list(CELLS))
def codes(request, tmp_path, monkeypatch):
    """Codes in a file, in more sections than one."""
    monkeypatch.setattr(coded_blocks, "CELLS_PER_BLOCK", 400)
    monkeypatch.setattr(sections, "SECTION_ANSWERS", 1000)
    cells = CELLS[request.param]
    cells.tofile(tmp_path / "codes")
    return ItemCodes(np.memmap(tmp_path / "codes", np.uint8, "r", shape=cells.shape))


class Elsewhere:
    """Stands for workers: gets and gives copies, and is done in another order."""

    def __init__(self):
        self.n_rounds, self.largest = 0, 0

    def __call__(self, function, parts, *, n_jobs=None):
        if n_jobs is None:
            self.n_rounds += 1
            self.largest = max(self.largest, *(len(pickle.dumps((function, part))) for part in parts))
        sent = deepcopy(parts)
        for number in np.random.default_rng(len(sent)).permutation(len(sent)).tolist():
            yield number, deepcopy(function(*sent[number]))


@pytest.fixture
def elsewhere(monkeypatch):
    workers = Elsewhere()
    monkeypatch.setattr(spread, "in_parallel", workers)
    monkeypatch.setattr(sections, "runs_here", lambda n_parts: n_parts < 2)
    sections._kept.clear()
    yield workers
    sections._kept.clear()


def fitted(codes, item_model="2pl", **options):
    spec = Variational(item_model, tolerance=1e-4, **options)
    return fit_variational(FitData.of_codes(codes, np.zeros(codes.n_items)), spec, progress=silent)


def assert_same(one, other):
    for name in ("loadings", "intercept", "item_covariance", "abilities", "ability_covariance", "history"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("item_model", "n_dims"), [("2pl", 1), ("mirt", 2), ("1pl", 1)])
def test_the_fit_is_that_of_one_process(codes, request, monkeypatch, item_model, n_dims):
    monkeypatch.setattr(fit, "SUBSET_SIZE", 60)
    here = fitted(codes, item_model, n_dims=n_dims)
    workers = request.getfixturevalue("elsewhere")
    assert_same(fitted(codes, item_model, n_dims=n_dims), here)
    # one round for the items alone, and one a sweep: two where all items have one slope
    assert 3 < workers.n_rounds < (2.5 if item_model == "1pl" else 1.5) * here.n_iterations


def test_answers_are_not_sent(codes, elsewhere):
    sent = sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=False)
    posterior = random_posterior(N_MODELS, N_ITEMS, 1)
    spread.first_half(sent, posterior, normal_expectation, np.ones(N_ITEMS))
    assert sent.is_spread
    of_section = max(place.size for place in sent.places)
    # an item's mean, covariance, its determinant, step, asymptote and place; a model's mean, variance and its logarithm
    assert elsewhere.largest < 10 * 8 * of_section + 3 * 8 * N_MODELS + 6000


def test_codes_in_memory_stay_here(codes):
    in_memory = ItemCodes(np.array(codes.cells))
    with joblib.parallel_config("threading", n_jobs=2):  # which work that is shared refuses
        laid_out = sections.coded_sections(in_memory, np.zeros(N_ITEMS), DOUBLE, is_complete=False)
        assert len(laid_out.sections) > 1
        assert not laid_out.is_spread
        spread.first_half(laid_out, random_posterior(N_MODELS, N_ITEMS, 1), normal_expectation, np.ones(N_ITEMS))
        with pytest.raises(ParameterError, match="backend of processes"):
            sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=False)


@pytest.mark.parametrize("codes", ["scattered"], indirect=True)  # of complete answers nothing is kept
def test_a_worker_keeps_layouts_of_one_fit_and_not_too_many(codes, elsewhere, monkeypatch):
    def swept():
        sent = sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=False)
        both = [spread.first_half(sent, posterior, normal_expectation, np.ones(N_ITEMS)) for _ in range(2)]
        return sent, both[1].improved

    posterior = random_posterior(N_MODELS, N_ITEMS, 1)
    swept()
    sent, kept = swept()
    assert len(sections._kept) == len(sent.sections)
    monkeypatch.setattr(sections, "MOST_KEPT_BYTES", 3000)
    _, anew = swept()
    assert len(sections._kept) < len(sent.sections)
    np.testing.assert_array_equal(anew.statistics.precision, kept.statistics.precision)
    np.testing.assert_array_equal(anew.posterior.item_mean, kept.posterior.item_mean)


def test_sections_hold_every_item_once_and_sum_to_the_statistics_of_numbers(codes):
    laid_out = sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=not (codes.cells > 1).any())
    assert len(laid_out.sections) > 2
    np.testing.assert_array_equal(np.sort(np.concatenate(laid_out.places)), np.arange(N_ITEMS))
    numbers = make_blocks(FitData.of_codes(codes, np.zeros(N_ITEMS)).decoded(), single_precision=False)
    posterior = random_posterior(N_MODELS, N_ITEMS, 2)
    for statistics in (item_statistics, ability_statistics):
        expected, found = (statistics(one, posterior, normal_expectation) for one in (numbers, laid_out))
        for name in ("precision", "linear", "likelihood"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_items_whose_bound_fell_are_put_back(codes, elsewhere):
    sent = sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=False)
    posterior, steps = random_posterior(N_MODELS, N_ITEMS, 1), np.ones(N_ITEMS)
    before = spread.first_half(sent, posterior, normal_expectation, steps)
    worse = [3, 4, 200]
    before.likelihood[worse] += 1e4  # as if it had been so much better
    swept = improve_items(sent, posterior, before, steps, rule=normal_expectation)
    assert set(worse) <= set(np.flatnonzero(swept.item_steps < 1.0))
    np.testing.assert_array_equal(swept.posterior.item_mean[worse], posterior.item_mean[worse])
    expected = ability_statistics(sent, swept.posterior, normal_expectation)
    for name in ("precision", "linear"):
        np.testing.assert_allclose(getattr(swept.statistics, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_very_many_answers_are_in_larger_sections(codes, monkeypatch):
    monkeypatch.setattr(sections, "MOST_SECTIONS", 2)
    assert len(sections.coded_sections(codes, np.zeros(N_ITEMS), DOUBLE, is_complete=False).sections) <= 2
