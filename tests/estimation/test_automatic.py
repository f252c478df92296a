import dataclasses
import re

import numpy as np
import pytest

from itembank.estimation import method_trials
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import DEFAULT_MEMBERS, GPIRT, METHODS, Stacked
from itembank.estimation.method_trials import choose_method, try_methods
from itembank.estimation.trials import Expectations, Trial
from itembank.selection.select import select
from tests.estimation.simulated import new_models, shared_bank, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return shared_bank()


def planted(errors):
    """A trial in which methods made these errors (n_members, n_models), in two folds."""
    n_models = errors.shape[1]
    truth = np.full((n_models, 4), 0.5)
    values = truth + np.repeat(errors[:, :, None], 4, axis=2)
    small = np.full(truth.shape, 1e-4)
    expected = Expectations(truth, small, truth, small, truth, np.ones(truth.shape))
    return Trial(truth, values, expected, np.arange(n_models) % 2, np.full(3, 1 / 3))


def with_one_better(member, rng, n_models=60):
    """Errors of methods that are all somewhat off, but one: exact for most, far off for one in 60.

    Squared errors, which make the weights, fall for the others.
    """
    errors = 0.03 * np.sign(rng.standard_normal(n_models)) * np.ones((len(DEFAULT_MEMBERS), 1))
    errors += 0.002 * rng.standard_normal(errors.shape)
    errors[member] = np.where(np.arange(n_models) == 0, 0.4, 0.0)
    return errors


def test_the_explanation_says_the_errors_it_was_chosen_by(bank):
    selection = select(bank, 12, method="anchor-irt", rng=0)
    asked = Asked.of(bank, new_models(bank), selection)
    chosen, found = choose_method(asked), try_methods(asked, DEFAULT_MEMBERS)
    errors = {METHODS.label(spec): found.single(number).error for number, spec in enumerate(DEFAULT_MEMBERS)}
    errors["stacked"] = found.by(Stacked()).error
    said = dict(re.findall(r"((?:[a-z-]+)(?: \(discrepancy [\d.]+\))?) (\d+\.\d\d)", chosen.explanation))
    assert said == {name: f"{100.0 * np.mean(np.abs(error[:, -1])):.2f}" for name, error in errors.items()}
    assert chosen.explanation.startswith(
        f"{METHODS.label(chosen.spec)}. Cross-validated mean errors of the overall score"
    )
    assert f"of {bank.n_models} past models, in points" in chosen.explanation


def test_estimate_takes_the_choice_and_hands_the_reason_on(bank):
    selection = select(bank, 12, method="anchor-irt", rng=0)
    responses = new_models(bank)
    chosen = choose_method(Asked.of(bank, responses, selection))
    found = estimate(bank, responses, selection=selection)
    same = estimate(bank, responses, selection=selection, method=chosen.spec)
    assert (found.method, found.explanation) == (METHODS.label(chosen.spec), chosen.explanation)
    assert same.explanation == ""
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same, name))


@pytest.mark.parametrize("member", range(len(DEFAULT_MEMBERS)))
def test_a_single_method_is_not_taken_for_looking_best(bank, rng, monkeypatch, member):
    made = planted(with_one_better(member, rng))
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: made)
    assert choose_method(Asked.of(bank, new_models(bank), None)).spec == Stacked()


def test_stacked_is_taken_where_none_is_clearly_better(bank, rng, monkeypatch):
    made = planted(0.03 * rng.standard_normal((len(DEFAULT_MEMBERS), 60)))
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: made)
    chosen = choose_method(Asked.of(bank, new_models(bank), None))
    assert chosen.spec == Stacked()
    assert chosen.explanation.startswith("stacked. Cross-validated mean errors of the overall score")


def test_methods_without_an_estimate_do_not_stand_in_the_way(bank, rng, monkeypatch):
    errors = with_one_better(0, rng)
    errors[2] = np.nan
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: planted(errors))
    chosen = choose_method(Asked.of(bank, new_models(bank), None))
    assert chosen.spec == Stacked()
    assert "nan" not in chosen.explanation
    assert METHODS.label(DEFAULT_MEMBERS[2]) not in chosen.explanation.replace("gp-irt", "").split()
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: planted(np.full(errors.shape, np.nan)))
    nothing = choose_method(Asked.of(bank, new_models(bank), None))
    assert nothing.spec == Stacked()
    assert "no past model has both a score and a cross-validated estimate" in nothing.explanation


def test_few_models_fall_back_on_gp_irt():
    bank = small_bank(n_models=9)
    responses = new_models(bank).take(items=np.arange(12))
    found = estimate(bank, responses)
    assert (found.method, found.interval_kind) == ("gp-irt", "model-based")
    assert found.explanation.startswith("gp-irt, since 9 past models are too few")
    expected = estimate(bank, responses, method=GPIRT(), interval="model-based")
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_models_that_cannot_be_left_out_are_not_called_too_few():
    """One model alone tells items apart: without it there is nothing to fit to."""
    bank = small_bank()
    values = np.ones(bank.responses.responses.shape)
    values[0, ::2] = 0.0
    odd = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))
    found = estimate(odd, new_models(bank).take(items=np.arange(12)))
    assert (found.method, found.interval_kind) == ("gp-irt", "model-based")
    assert "12 past models are too unlike in what they answered" in found.explanation


@pytest.mark.parametrize("method", ["gp-irt", "p-irt", "ridge", "stacked"])
def test_the_error_of_a_method_that_is_named_is_told_too(bank, method):
    selection = select(bank, 12, method="anchor-irt", rng=0)
    found = estimate(bank, new_models(bank), selection=selection, method=method)
    asked, spec = Asked.of(bank, new_models(bank), selection), METHODS.resolve(method)
    expected = np.abs(try_methods(asked, spec.members).by(spec).error[:, -1])
    assert found.cross_validated_error == pytest.approx(expected.mean())
    plain = estimate(bank, new_models(bank), selection=selection, method=method, interval="model-based")
    assert np.isnan(plain.cross_validated_error)
