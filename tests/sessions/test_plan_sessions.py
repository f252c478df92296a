"""Whether to ask one by one: by errors that the trials themselves give, and a rule that is tried on made-up errors."""

import dataclasses

import numpy as np
import pytest

from itembank.calibration.build import build_bank
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimator_specs import IN_STAGES, Stacked
from itembank.estimation.method_trials import sample_of, try_methods, try_stages
from itembank.planning.plan import plan
from itembank.planning.select import select
from itembank.selection.recipes import read_recipe
from itembank.sessions import plan_sessions as module
from itembank.sessions.limits import Budget
from itembank.sessions.plan_sessions import plan_sessions
from itembank.sessions.preparation import past_sessions
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import session_bank

BANK = session_bank(n_items=40)
NAMES = ("at once", "in stages", "one by one")


def designs(*errors):
    """Ways of asking with these errors, as one that is added to the list would be."""
    return tuple(
        (name, lambda bank, spec, progress, one=one: np.tile(one[:, None], 9), f"{name} {{n_items}}")
        for name, one in zip(NAMES, errors, strict=False)
    )


def test_errors_are_those_of_both_ways_of_asking():
    found = plan_sessions(BANK, 9, target="law")
    column = BANK.targets.names.index("law")
    chosen = select(BANK, 9, rng=0)
    once = try_methods(BANK, sample_of(BANK, chosen), chosen, Stacked().members).by(Stacked())
    past = past_sessions(BANK, SessionSpec(target="law", budget=Budget(n_items=9)))
    np.testing.assert_allclose(found.designs[0].signed_errors, once.error[:, column], atol=1e-12)
    np.testing.assert_allclose(found.designs[2].signed_errors, (past.value[-1] - past.truth)[:, column], atol=1e-12)
    rows = found.rows()
    assert [row["design"] for row in rows] == ["at once", "in two stages", "one by one"]
    np.testing.assert_allclose(rows[0]["mean_absolute_error"], np.abs(once.error[:, column]).mean())
    np.testing.assert_allclose(rows[0]["mean_absolute_error"] - rows[1]["mean_absolute_error"], rows[1]["gain"])
    routing = select(BANK, 9, stages=2, rng=0)
    recipe = dataclasses.replace(read_recipe(routing), stages=(3, 6))
    stages = try_stages(BANK, recipe, IN_STAGES.members).by(IN_STAGES)
    np.testing.assert_allclose(found.designs[1].signed_errors, stages.error[:, column], atol=1e-12)


def test_what_cannot_be_asked_in_stages_is_asked_otherwise():
    found = plan_sessions(BANK, 3)  # one item of each scenario, none left for a second stage
    assert [design.name for design in found.designs] == ["at once", "one by one"]


@pytest.mark.parametrize(("saving", "taken"), [(0.002, "one by one"), (0.0005, "at once")])
def test_another_way_is_taken_where_it_is_better_by_more_than_the_doubt(monkeypatch, saving, taken):
    noise = np.tile([0.003, -0.003], 6)  # the standard error of the mean difference is 0.0009
    monkeypatch.setattr(module, "DESIGNS", designs(np.full(12, 0.05), np.full(12, 0.06), 0.05 - saving + noise))
    found = plan_sessions(BANK, 9)
    assert found.best.name == taken
    assert found.message.startswith(f"Ask {taken}: ")
    assert f"{100 * saving:.2f} ± 0.09 points" in found.message
    assert [row["is_taken"] for row in found.rows()] == [name == taken for name in NAMES]
    assert found.to_dict()["command"] == f"{taken} 9"


def test_ways_are_compared_on_models_that_all_were_tried_on(monkeypatch):
    first, second = np.array([0.01, -0.02, 0.9]), np.array([-0.01, 0.01, np.nan])
    monkeypatch.setattr(module, "DESIGNS", designs(first, second))
    rows = plan_sessions(BANK, 9).rows()
    np.testing.assert_allclose([row["mean_absolute_error"] for row in rows], [0.015, 0.01])
    np.testing.assert_allclose(rows[1]["gain"], 0.005)


def test_a_half_width_asks_for_the_items_that_it_needs_at_once(monkeypatch):
    monkeypatch.setattr(module, "DESIGNS", designs(np.full(12, 0.05), np.full(12, 0.06)))
    assert plan_sessions(BANK, half_width=0.2).n_items == plan(BANK, half_width=0.2).n_items


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({}, "one of n_items and half_width"),
        ({"n_items": 9, "half_width": 0.1}, "one of n_items and half_width"),
        ({"n_items": 0}, "n_items must be a whole number >= 1"),
        ({"n_items": 600}, "at most 512"),
        ({"n_items": 9, "target": "laws"}, "Did you mean 'law'"),
        ({"n_items": 9, "level": 1.0}, "level"),
    ],
)
def test_what_cannot_be_tried_is_refused(choices, words):
    with pytest.raises(ParameterError, match=words):
        plan_sessions(BANK, **choices)


def test_more_items_than_every_fold_can_ask_are_refused(monkeypatch):
    monkeypatch.setattr(module, "DESIGNS", module.DESIGNS[1:])
    with pytest.raises(ParameterError, match=r"got 41\. Ask for fewer"):
        plan_sessions(BANK, 41)


def test_too_few_models_are_refused():
    with pytest.raises(DataError, match="at least 10 past models"):
        plan_sessions(build_bank(BANK.responses.take(models=np.arange(9))), 5)
