"""Scenarios that are never asked: which items are for them, what is said of them beforehand, and what is refused."""

import numpy as np
import polars as pl
import pytest

from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds
from itembank.planning.predicting import errors_of_mean
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select as select_by
from itembank.selection.selector_specs import METHODS, OptimalDesign, VOptimal
from tests.estimation.simulated import new_models, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return small_bank(n_models=20, n_items=60)


def law(bank):
    return [item for item in bank.item_ids if item.startswith("law/")]


@pytest.mark.parametrize("method", ["auto", *METHODS.kinds])
def test_whatever_the_method_nothing_is_asked_and_the_error_is_said_beside_that_of_the_mean(bank, method):
    found = select(bank, 12, method=method, rng=5, predict="law")
    assert set(found.scenarios) == {"math", "code"}
    (record,) = found.never_asked
    assert record["target"] == "law"
    assert 0.0 < record["error"] < record["half_width"]
    said = (
        f"'law' is never asked: cross-validated mean error {100.0 * record['error']:.1f} points, by the past models' "
        f"mean alone {100.0 * record['error_of_mean']:.1f}; 95 % interval about ±{100.0 * record['half_width']:.1f}."
    )
    assert said in found.explanation


def test_the_items_are_for_the_scenario_that_is_predicted(bank):
    def chosen(spec):
        return set(select_by(bank, 12, method=spec, excluded=law(bank), rng=0).item_ids)

    aimed = VOptimal({"law": 1.0}, minimum_per_scenario=0)
    assert set(select(bank, 12, predict="law", rng=0).item_ids) == chosen(aimed)
    assert set(select(bank, 12, predict="law", rng=0, method="v-optimal").item_ids) == chosen(aimed)
    design = OptimalDesign(target="law", at_least=0)
    assert set(select(bank, 12, predict="law", rng=0, method="optimal-design").item_ids) == chosen(design)
    # what a spec says of another score, and of numbers, is kept
    other = VOptimal(target="overall", minimum_per_scenario=3)
    assert set(select(bank, 12, predict="law", rng=0, method=other).item_ids) == chosen(other)
    assert OptimalDesign(at_least={"math": 2}).aimed_at(["law"]).at_least == {"math": 2}


def test_several_scores_count_alike(bank):
    found = select(bank, 8, predict=("law", "code"), rng=0)
    assert set(found.scenarios) == {"math"}
    assert [one["target"] for one in found.never_asked] == ["law", "code"]
    both = OptimalDesign(target={"law": 1.0, "code": 1.0}, at_least=0)
    excluded = [item for item in bank.item_ids if not item.startswith("math/")]
    expected = select_by(bank, 8, method=both, excluded=excluded, rng=0)
    assert select(bank, 8, predict=["law", "code"], method="optimal-design", rng=0).item_ids == expected.item_ids


def test_the_error_of_the_mean_is_that_of_the_other_folds_models(bank):
    truth = bank.known_scores.value
    for fold in folds(bank):
        others = np.setdiff1d(np.arange(bank.n_models), fold.held_out)
        expected = truth[others].mean(axis=0) - truth[fold.held_out]
        assert errors_of_mean(bank).error[fold.held_out] == pytest.approx(expected)
    record = select(bank, 12, predict="law", rng=0).never_asked[0]
    known = np.abs(errors_of_mean(bank).error[:, bank.targets.scenarios.index("law")])
    assert record["error_of_mean"] == pytest.approx(known.mean())


def test_answers_that_say_nothing_are_told_beforehand():
    """Answers to other scenarios have nothing in common with those to law: only the mean is known of it."""
    rng = np.random.default_rng(0)
    skill = np.repeat(rng.random((24, 2)), 20, axis=1)
    found = select(fitted((rng.random((24, 40)) < skill).astype(float), ["math", "law"]), 12, predict="law", rng=0)
    (record,) = found.never_asked
    assert record["error"] > 0.85 * record["error_of_mean"]
    assert "For 'law' the answers are not clearly better than that mean: ask some of its items." in found.explanation


def fitted(values, scenarios):
    """Calibrate items of as many scenarios, equally many of each."""
    n_each = values.shape[1] // len(scenarios)
    names = [(f"{name}/{item}", name) for name in scenarios for item in range(n_each)]
    items = pl.DataFrame(names, schema=["item_id", "scenario"], orient="row")
    return calibrate(ResponseMatrix.create(values, items=items), Variational("2pl", n_dims=1, tolerance=1e-3))


def test_an_estimate_says_what_is_predicted(bank):
    found = select(bank, 12, predict="law", rng=0)
    new = new_models(bank)
    scores = estimate(bank, new, selection=found)
    at = scores.targets.index("law")
    assert scores.is_predicted[:, at].all()
    assert not scores.is_predicted[:, -1].any()
    assert scores.said_of_predicted() == (
        "'law': no item was answered, and the score is predicted from the other answers."
    )
    notes = {row["target"]: row["note"] for row in scores.rows() if row["model_id"] == "new-0"}
    assert "no item was answered" in notes["law"]
    assert "no item was answered" not in notes["overall"] + notes["math"]
    assert estimate(bank, new).said_of_predicted() == ""


def test_stages_ask_nothing_of_it_either_and_a_file_keeps_what_was_said(bank, tmp_path):
    found = select(bank, 12, predict="law", rng=0, stages=2)
    new = new_models(bank, n_models=1)
    module = next_stage(bank, found, new.take(items=new.item_indices(found.item_ids)))
    assert module.n_items == 8
    assert "law" not in module.scenarios
    assert found.never_asked[0]["error"] > 0.0
    found = select(bank, 12, predict="law", rng=0)
    found.save(tmp_path / "s.json")
    assert Selection.load(tmp_path / "s.json").never_asked == found.never_asked
    for wrong in ("law", ["law"]):
        with pytest.raises(DataError, match="never_asked must be a list of JSON objects"):
            Selection.from_dict({**found.to_dict(), "never_asked": wrong})


def test_few_past_models_cannot_say_how_well_it_predicts_and_one_scenario_needs_others():
    bank = small_bank(n_models=9)
    found = select(bank, 6, predict="law", rng=0)
    assert set(found.scenarios) == {"math", "code"}
    assert "'law': never asked, and how well it is predicted is not known, since 9 past models" in found.explanation
    assert found.never_asked == ({"target": "law", "error": None, "error_of_mean": None, "half_width": None},)
    values = (np.random.default_rng(0).random((12, 20)) < 0.5).astype(float)
    with pytest.raises(ParameterError, match="predicted from the items of others, and the bank has 1: got 'all'"):
        select(fitted(values, ["all"]), 4, predict="all")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"predict": "mathh"}, "must be scenarios of the bank, .*, got 'mathh'. Did you mean 'math'?"),
        ({"predict": ["law", "math", "code"]}, "the bank has 3: .* Leave one at least to be asked.$"),
        ({"predict": "law", "included": ["law/2", "math/0"]}, "those of 'law' never are: got 'law/2'"),
        ({"predict": "law", "method": OptimalDesign(at_least={"law": 1})}, r"at_least is above .* 'law \(1 > 0\)'"),
        ({"predict": "law", "method": "random", "n": 1}, "from 2 "),
        ({"predict": "law", "n": 41}, "to 40 "),
    ],
)
def test_what_contradicts_is_refused(bank, choices, message):
    with pytest.raises(ParameterError, match=message):
        select(bank, **{"n": 12, "rng": 0, **choices})
