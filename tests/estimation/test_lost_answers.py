import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import new_models, shared_bank

pytestmark = [
    pytest.mark.usefixtures("few_folds"),
    pytest.mark.filterwarnings("ignore:of the .* items of the selection"),
]


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=20, n_items=60)


def losing(responses, model, items, kind=3):
    """Lose some answers of a model."""
    n = np.zeros(responses.responses.shape, dtype=np.int64)
    n[model, items] = 1
    values = np.where(n > 0, np.nan, responses.responses)
    lost = LostAnswers(n, n * kind)
    return ResponseMatrix.create(values, models=responses.models, items=responses.items, lost=lost)


def filled(responses, value):
    """Make answers of the lost ones, by hand."""
    values = np.where(responses.lost.n > 0, value, responses.responses)
    return ResponseMatrix.create(values, models=responses.models, items=responses.items)


@pytest.mark.parametrize("method", ["auto", "p-irt", "mean"])
def test_the_policies_are_what_answers_filled_in_by_hand_give(bank, method):
    selection = select(bank, 20)
    responses = losing(new_models(bank), 1, bank.responses.item_indices(selection.item_ids[:4]))
    wrong, right = (
        estimate(bank, filled(responses, value), selection=selection, method=method) for value in (0.0, 1.0)
    )
    for errors in ("missing", "wrong", "bounds"):
        found = estimate(bank, responses, selection=selection, method=method, errors=errors)
        np.testing.assert_allclose(found.lost.if_wrong[1], wrong.value[1], atol=1e-12)
        np.testing.assert_allclose(found.lost.if_right[1], right.value[1], atol=1e-12)
        assert found.lost.n.tolist() == [0, 4, *[0] * (responses.n_models - 2)]
        assert found.lost.in_words[1] == "4 time-outs"
        assert np.isnan(found.lost.if_wrong[0]).all()
    counted = estimate(bank, responses, selection=selection, method=method, errors="wrong")
    np.testing.assert_allclose(counted.scores, wrong.scores, atol=1e-12)
    plain, bounds = (
        estimate(bank, responses, selection=selection, method=method, errors=one) for one in ("missing", "bounds")
    )
    np.testing.assert_array_equal(bounds.value, plain.value)
    np.testing.assert_array_equal(bounds.low[0], plain.low[0])  # another model lost nothing
    low, high = (np.stack([getattr(one, end) for one in (plain, wrong, right)])[:, 1] for end in ("low", "high"))
    np.testing.assert_allclose(bounds.low[1], low.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(bounds.high[1], high.max(axis=0), atol=1e-12)


def test_what_is_left_of_a_draw_gives_no_more_than_if_lost_answers_were_right(bank):
    everyone = new_models(bank, n_models=1)
    right = ResponseMatrix.create(np.ones((1, bank.n_items)), models=everyone.models, items=everyone.items)
    for seed in range(8):
        selection = select(bank, 20, method="drawn", rng=seed)
        lost = losing(right, 0, bank.responses.item_indices(selection.item_ids[::4]))
        found = estimate(bank, lost, selection=selection)
        assert np.all((found.lost.if_wrong <= found.value) & (found.value <= found.lost.if_right))
        assert np.all((found.low <= found.value) & (found.value <= found.high))


def test_the_policy_of_the_responses_holds_and_answers_lost_outside_the_selection_are_not_counted(bank):
    responses = losing(new_models(bank), 0, [3, 8]).with_errors("wrong")
    assert estimate(bank, responses).lost.errors == "wrong"
    assert estimate(bank, responses, errors="missing").lost.errors == "missing"
    selection = select(bank, 20)
    outside = [item for item in bank.item_ids if item not in selection.item_ids][:3]
    responses = losing(new_models(bank), 0, bank.responses.item_indices(outside))
    assert estimate(bank, responses, selection=selection).lost is None
    without = losing(new_models(bank), 0, [*bank.responses.item_indices(outside)])
    values = without.responses.copy()
    values[0, bank.responses.item_indices(selection.item_ids[:2])] = np.nan
    without = ResponseMatrix.create(values, models=without.models, items=without.items, lost=without.lost)
    notes = estimate(bank, without, selection=selection).notes
    assert any(one.text.startswith("no answer to 2 of the chosen items") for one in notes)


def test_bounds_cover_the_truth_however_answers_were_lost(bank):
    """The very answers that a model fails are lost: the interval without them misses, and bounds do not."""
    responses = new_models(bank)
    truth = responses.responses.mean(axis=1)
    n = (responses.responses == 0.0).astype(np.int64)
    values = np.where(n > 0, np.nan, responses.responses)
    lost = ResponseMatrix.create(
        values, models=responses.models, items=responses.items, lost=LostAnswers(n, n * 2, errors="bounds")
    )
    with pytest.warns(DataWarning) if (n.sum(axis=1) == bank.n_items).any() else pytest.MonkeyPatch.context():
        found = estimate(bank, lost, interval="model-based", method="p-irt")
    lost_some = n.any(axis=1)
    assert lost_some.any()
    assert (found.low[lost_some, -1] <= truth[lost_some] + 1e-9).all()
    assert (found.high[lost_some, -1] >= truth[lost_some] - 1e-9).all()


def test_an_unknown_policy_is_refused(bank):
    new = new_models(bank)
    for given in (new, losing(new, 0, [3])):
        with pytest.raises(ParameterError, match="errors must be one of 'missing', 'wrong', 'bounds', got 'drop'"):
            estimate(bank, given, errors="drop")


def test_what_was_lost_is_said_once(bank):
    table = pl.DataFrame({"model_id": "new", "item_id": bank.item_ids, "response": [None, *[1, 0] * 29, 1]})
    with pytest.warns(DataWarning, match="lost answers count as missing"):
        notes = estimate(bank, table).notes
    assert [one.text[:13] for one in notes if "lost" in one.text] == ["lost 1 answer"]


def test_new_answers_count_as_those_of_the_bank_did(bank, tmp_path):
    """Past models' lost answers counted as wrong: so do a new one's, in memory, in a file and after `bank.save`."""
    made = ib.calibrate(losing(bank.responses, 1, [2, 5]).with_errors("wrong"), ib.calibrations.JointMAP())
    made.save(tmp_path / "bank")
    assert made.responses.responses[1, 2] == 0.0
    new = losing(new_models(bank), 0, [3, 8])
    ib.write_responses(new, tmp_path / "new.parquet")
    for source in (made, tmp_path / "bank"):
        for given in (new, tmp_path / "new.parquet"):
            assert estimate(source, given).lost.errors == "wrong"
            assert estimate(source, given, errors="missing").lost.errors == "missing"
    assert estimate(bank, new).lost.errors == "missing"
