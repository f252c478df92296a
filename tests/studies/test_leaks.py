"""Methods see calibration models, and of tested models only what they answered to chosen items."""

from dataclasses import replace

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.responses.responses import ResponseMatrix
from itembank.selection.selector_specs import METHODS as SELECTIONS
from itembank.studies import comparison_study
from itembank.studies.comparison_study import prepare_fold, run_fold
from itembank.studies.splits import ITEM_COLUMNS, answers_of, calibration_part, check_no_leak, make_folds
from tests.studies.simulated import make_responses, make_spec

pytestmark = pytest.mark.usefixtures("few_folds")

RESPONSES = make_responses()
FOLD = make_folds(make_spec().splits[0], RESPONSES.models, 1, 3)[0]
SEEN = ("estimate", "low", "high", "n_used", "effective_items", "n_items")


def flipped(responses, fold, kept):
    """The same responses, but the tested models answer every item that is not kept the other way."""
    values = responses.responses.copy()
    others = np.setdiff1d(np.arange(responses.n_items), kept)
    values[np.ix_(fold.test, others)] = 1.0 - values[np.ix_(fold.test, others)]
    return ResponseMatrix(values, responses.models, responses.items, responses.n_trials, responses.costs)


def estimates_and_chosen(spec, responses, monkeypatch):
    """Run a fold; also return the columns of the items that were chosen."""
    chosen = []

    def recorded(new, columns):
        chosen.extend(columns.tolist())
        return answers_of(new, columns)

    with monkeypatch.context() as patched:
        patched.setattr(comparison_study, "answers_of", recorded)
        table = run_fold(spec, responses, FOLD)
    return table, np.unique(chosen)


def is_blind(spec, monkeypatch):
    """Tell for each estimator whether its estimates stay exactly the same when unseen answers are turned around.

    The study has one selector: the answers turned around are those of tested models to items it did not choose.
    """
    table, chosen = estimates_and_chosen(spec, RESPONSES, monkeypatch)
    assert set(table["failure"]) == {""}
    assert chosen.size < RESPONSES.n_items
    poisoned, _ = estimates_and_chosen(spec, flipped(RESPONSES, FOLD, chosen), monkeypatch)
    assert not table["truth"].equals(poisoned["truth"])  # the poison is there
    return {
        name: table.filter(estimator=name).select(SEEN).equals(poisoned.filter(estimator=name).select(SEEN))
        for name in table["estimator"].unique()
    }


@pytest.mark.parametrize("selector", [*SELECTIONS.kinds, "auto"])
def test_no_selector_sees_what_tested_models_answered(selector, monkeypatch):
    spec = make_spec(selectors=(selector,), estimators=("weighted", "gp-irt"), n_items=(6,), repeats=1)
    assert is_blind(spec, monkeypatch) == {"weighted": True, "gp-irt": True}


@pytest.mark.parametrize("selector", ["random", "v-optimal"])
def test_no_estimator_sees_more_than_chosen_items(selector, monkeypatch):
    assert {"auto", "stacked"} <= set(ESTIMATIONS.kinds)
    spec = make_spec(selectors=(selector,), estimators=tuple(ESTIMATIONS.kinds), n_items=(10,), repeats=1)
    assert is_blind(spec, monkeypatch) == dict.fromkeys(ESTIMATIONS.kinds, True)


@pytest.mark.parametrize("interval", ["model-based", "design"])
@pytest.mark.parametrize("selector", ["random", "stratified"])
def test_no_interval_sees_more_than_chosen_items(interval, selector, monkeypatch):
    choices = {"selectors": (selector,), "estimators": ("auto",), "n_items": (10,), "repeats": 1}
    assert is_blind(make_spec(interval=interval, **choices), monkeypatch) == {"auto": True}


def test_the_guard_catches_a_selector_that_knows_the_answers(monkeypatch):
    spec = make_spec(selectors=("random",), n_items=(6,), repeats=1)
    honest = comparison_study.select

    def run(responses):
        known = responses.responses[FOLD.test].mean(axis=0)  # what the tested models answered

        def leaking(bank, n_items, **arguments):
            selection = honest(bank, n_items, **arguments)
            best = np.argsort(-known, kind="stable")[:n_items]
            scenarios = np.array(bank.responses.items["scenario"])[best]
            weights = np.array([1.0 / np.sum(scenarios == one) for one in scenarios])
            return replace(
                selection,
                item_ids=tuple(np.array(bank.item_ids)[best].tolist()),
                scenarios=tuple(scenarios.tolist()),
                weights=weights,
            )

        with monkeypatch.context() as patched:
            patched.setattr(comparison_study, "select", leaking)
            return estimates_and_chosen(spec, responses, monkeypatch)

    table, chosen = run(RESPONSES)
    poisoned, _ = run(flipped(RESPONSES, FOLD, chosen))
    assert not table.select(SEEN).equals(poisoned.select(SEEN))


def test_the_guard_catches_an_estimator_that_knows_the_truth(monkeypatch):
    spec = make_spec(selectors=("random",), n_items=(6,), repeats=1)
    honest = comparison_study.estimate

    def run(responses):
        truth = responses.responses[FOLD.test].mean(axis=1)

        def leaking(bank, answers, **arguments):
            found = honest(bank, answers, **arguments)
            leaked = found.scores._replace(value=0.9 * found.value + 0.1 * truth[:, None])
            return replace(found, scores=leaked)

        with monkeypatch.context() as patched:
            patched.setattr(comparison_study, "estimate", leaking)
            return estimates_and_chosen(spec, responses, monkeypatch)

    table, chosen = run(RESPONSES)
    poisoned, _ = run(flipped(RESPONSES, FOLD, chosen))
    assert not table.select(SEEN).equals(poisoned.select(SEEN))


def test_a_tested_model_among_the_calibration_models_stops_the_study():
    leaking = replace(FOLD, train=np.union1d(FOLD.train, FOLD.test[:2]))
    names = [RESPONSES.model_ids[row] for row in FOLD.test[:2]]
    with pytest.raises(DataError, match="no model may be both tested and calibrated on, got 2: ") as caught:
        run_fold(make_spec(), RESPONSES, leaking)
    assert all(repr(name) in str(caught.value) for name in names)


def test_tables_tell_methods_nothing_that_is_a_mean_over_tested_models():
    known = calibration_part(RESPONSES, FOLD)
    answers = answers_of(RESPONSES.take(models=FOLD.test), np.arange(5))
    for part in (known, answers):
        assert part.models.columns == ["model_id"]
        assert set(part.items.columns) <= set(ITEM_COLUMNS)
    assert {"accuracy"} <= set(RESPONSES.models.columns)
    assert {"mean_response"} <= set(RESPONSES.items.columns)
    assert known.model_ids == [RESPONSES.model_ids[row] for row in FOLD.train]
    check_no_leak(prepare_fold(make_spec(), RESPONSES, FOLD).bank, RESPONSES.take(models=FOLD.test))
