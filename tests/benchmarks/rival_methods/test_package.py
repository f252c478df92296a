"""The package of rivals is one like any that brings methods: its entry points lead to specs and kernels."""

import json

import numpy as np
import pytest

import itembank as ib
from benchmarks.rivals.plug_in import check_installed
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.selection.recipes import read_recipe
from itembank.selection.selector_specs import METHODS as SELECTORS
from itembank_living import without_responses
from itembank_rivals.disagreement import Disagreement
from itembank_rivals.metabench import Metabench, predict_metabench
from itembank_rivals.signature import KNearest, RandomForest, predict_k_nearest, predict_random_forest
from tests.bank.banks import make_bank
from tests.estimation.simulated import full_scores, new_models, shared_bank
from tests.estimation.test_regressions import EveryEstimator

CHOOSE = ("disagreement", "information", "bayesian-quadrature")
LEARN = ("knn", "random-forest", "metabench")
ESTIMATE = (*LEARN, "aipw", "bayesian-quadrature")


@pytest.fixture(scope="module")
def bank():
    return shared_bank()


@pytest.mark.usefixtures("rival_methods")
def test_the_package_brings_these_methods_and_no_others():
    check_installed()
    assert set(SELECTORS.names()) - set(SELECTORS.builtin_names) == set(CHOOSE)
    assert set(ESTIMATORS.names()) - set(ESTIMATORS.builtin_names) == set(ESTIMATE)


def test_benchmarks_say_how_to_install_it(monkeypatch):
    for table in (ESTIMATORS, SELECTORS):
        monkeypatch.setattr(table, "_methods", {name: table._methods[name] for name in table.builtin_names})
    monkeypatch.setattr("itembank.methods.entry_points_of", lambda group: {})
    with pytest.raises(SystemExit, match=r"needs the package of rivals: pip install -e benchmarks/rivals/methods"):
        check_installed()


@pytest.mark.usefixtures("rival_methods", "few_folds")
@pytest.mark.parametrize("method", CHOOSE)
def test_items_are_chosen_by_name_and_chosen_again_by_their_file(bank, method):
    chosen = ib.select(bank, 12, method=method, rng=0)
    recipe = read_recipe(Selection.from_dict(json.loads(json.dumps(chosen.to_dict()))))
    assert chosen.n_items == 12
    assert ib.select(bank, 12, method=recipe.spec, rng=0).item_ids == chosen.item_ids


@pytest.mark.usefixtures("rival_methods", "few_folds")
@pytest.mark.parametrize("method", ESTIMATE)
def test_scores_are_estimated_by_name_with_intervals(bank, method):
    responses = new_models(bank, n_models=12)
    asked = ib.select(bank, 15, method="random", rng=0)
    found = ib.estimate(bank, responses, selection=asked, method=method)
    errors = np.abs(found.column("overall") - full_scores(bank, responses)[:, -1])
    assert errors.mean() < 0.12
    assert np.all((found.low <= found.value) & (found.value <= found.high))


@pytest.mark.usefixtures("rival_methods")
@pytest.mark.parametrize("method", LEARN)
def test_a_bank_without_responses_is_refused(method):
    whole = make_bank(n_models=24, n_items=36, n_dims=1, seed=3)
    selection = ib.select(whole, 12, method="v-optimal")
    published = without_responses(whole, selections=[selection])
    new = ib.ResponseMatrix.create(np.ones((1, 36)), items=whole.responses.items)
    with pytest.raises(DataError, match="published without"):
        ib.estimate(published, new, method=method)
    with pytest.raises(DataError, match="published without"):
        ib.select(published, 9, method="disagreement")


@pytest.mark.parametrize(
    ("kind", "choice", "said"),
    [
        (KNearest, {"n_neighbours": 0}, "n_neighbours must be a whole number >= 1 or 'leave-one-out', got 0"),
        (KNearest, {"n_components": 0}, "n_components must be a whole number >= 1 or 'leave-one-out', got 0"),
        (KNearest, {"n_neighbours": 2.5}, "got 2.5"),
        (RandomForest, {"n_trees": 0}, "n_trees must be a whole number >= 1, got 0"),
        (RandomForest, {"n_components": 0}, "n_components"),
        (RandomForest, {"seed": -1}, "seed must be a whole number >= 0, got -1"),
        (Metabench, {"n_knots": 1}, "n_knots must be a whole number >= 2, got 1"),
        (Disagreement, {"measure": "entropy"}, "measure must be one of 'variance', 'jensen-shannon'"),
    ],
)
def test_choices_outside_what_they_may_be_are_refused(kind, choice, said):
    with pytest.raises(ParameterError, match=said):
        kind(**choice)


def metabench(train, scores, new):
    """On abilities that are the means of what was answered."""
    known, asked = (np.nan_to_num(np.nanmean(np.c_[a, np.full(len(a), 0.5)], axis=1))[:, None] for a in (train, new))
    return predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)


@pytest.mark.parametrize("estimator", [predict_k_nearest, metabench])
class TestNeighboursAndMetabench(EveryEstimator):
    pass


@pytest.mark.parametrize("estimator", [lambda *known: predict_random_forest(*known, n_trees=5)])
class TestForest(EveryEstimator):
    tolerance = 0.15  # its trees draw rows by number
