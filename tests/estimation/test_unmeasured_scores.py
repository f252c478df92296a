"""Past models that ran some scenarios only: a score that no two of them have gets no interval from their errors."""

import dataclasses
import functools

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.estimate import estimate
from itembank.estimation.notes import note_on_unmeasured
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec

pytestmark = pytest.mark.usefixtures("few_folds")


@functools.cache
def world(n_whole):
    """Make a bank whose past models ran two of three scenarios each, but for some that ran all; and a new model."""
    rng = np.random.default_rng(3)
    scenario, difficulty = np.arange(60) % 3, rng.normal(size=60)
    p = 1.0 / (1.0 + np.exp(difficulty - rng.normal(size=(31, 1))))
    answers = (rng.random(p.shape) < p).astype(float)
    answers[n_whole:30:2, scenario == 0] = np.nan
    answers[n_whole + 1 : 30 : 2, scenario == 2] = np.nan
    items = pl.DataFrame({"item_id": [f"{k:02d}" for k in range(60)], "scenario": [f"s{j}" for j in scenario]})
    matrix = ResponseMatrix.create(answers, model_ids=[f"m{k:02d}" for k in range(31)], items=items)
    past, new = matrix.take(models=np.arange(30)), matrix.take(models=np.array([30]))
    return calibrate(past, Variational(item_model="2pl", n_dims=1, tolerance=1e-3), rng=0), new


@pytest.mark.parametrize(("n_whole", "lacking"), [(0, ("overall",)), (2, ())])
def test_each_score_says_what_its_interval_rests_on(n_whole, lacking):
    bank, new = world(n_whole)
    selection = select(bank, 12, method="v-optimal")
    answers = new.take(items=new.item_indices(list(selection.item_ids)))
    found = estimate(bank, answers, selection)
    assert found.by_item_model == lacking
    kinds = {row["target"]: row["interval"] for row in found.rows()}
    assert kinds == dict.fromkeys(("s0", "s1", "s2"), "calibrated") | {
        "overall": "model-based" if lacking else "calibrated"
    }
    assert found.to_dict()["interval"] == kinds["overall"]
    assert sum("fewer than two past models" in note for note in found.notes_in_words) == bool(lacking)
    alone = estimate(bank, answers, selection, interval="model-based")
    assert (found["overall"].low == alone["overall"].low).all() == bool(lacking)


def test_nothing_is_said_of_a_score_that_is_known():
    bank, new = world(0)
    found = estimate(bank, new.take(items=np.arange(12)))
    low = np.where(np.array(found.targets) == "s0", found.high, found.low)
    told = dataclasses.replace(found, by_item_model=("s0", "s1"), scores=found.scores._replace(low=low))
    (note,) = note_on_unmeasured(told)
    assert note.text.startswith("'s1': fewer than two")


def test_sessions_say_it_too():
    bank, _ = world(0)
    session = AdaptiveSession(prepare_sessions(bank, SessionSpec(interval="calibrated")), model_id="new")
    scores = session.estimate().scores
    assert scores.by_item_model == ("overall",)
    assert {row["target"]: row["interval"] for row in scores.rows()}["overall"] == "model-based"


def test_select_says_how_many_past_models_its_promise_rests_on():
    assert "like the 2 past ones whose score is known" in select(world(2)[0], 12).explanation
