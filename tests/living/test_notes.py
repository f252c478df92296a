import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.bank_history import STATUSES
from itembank.banks import whole_bank, with_target
from itembank.errors import BankError, DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.planning.select import select
from itembank_living import restore, retire
from tests.bank.banks import make_bank
from tests.living.living import measured_bank, named_bank

pytestmark = pytest.mark.usefixtures("few_folds")
BAD = ["math/0", "code/1", "math/9"]


def test_retired_items_are_neither_chosen_nor_counted():
    bank = named_bank()
    clean = retire(bank, BAD, reason="wrong key")
    assert clean.targets.scenarios == bank.targets.scenarios
    assert set(whole_bank(clean).item_ids) - set(clean.item_ids) == set(BAD)
    assert not set(BAD) & set(select(clean, 27, method="random", rng=0).item_ids)
    rows = [place for place, item in enumerate(bank.item_ids) if item not in BAD and item.startswith("math")]
    np.testing.assert_allclose(clean.scenario_scores[:, 0], bank.responses.responses[:, rows].mean(axis=1))


@pytest.mark.parametrize(("extras", "interval"), [(False, "calibrated"), (True, "model-based")])
def test_restored_banks_give_the_very_estimates_of_before(tmp_path, extras, interval):
    bank = measured_bank(n_models=15, n_dims=1, with_extras=extras)
    save_bank(retire(bank, BAD, reason="wrong key"), tmp_path / "retired")
    save_bank(restore(load_bank(tmp_path / "retired"), BAD, reason="right after all"), tmp_path / "restored")
    back = load_bank(tmp_path / "restored")
    assert (back.bank_id, back.target_digest) == (bank.bank_id, bank.target_digest)
    some = bank.responses.take(models=np.arange(3), items=np.arange(0, 30, 2))
    before, after = (estimate(one, some, method="p-irt", interval=interval) for one in (bank, back))
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_the_score_of_before_is_still_given_with_its_interval():
    bank = named_bank(n_models=15)
    clean = retire(bank, BAD, reason="wrong key", label="clean")
    assert (bank.target_id, clean.target_id) == ("quiz@1", "quiz@1-clean")
    some = bank.responses.take(models=np.arange(3), items=np.arange(0, 30, 2))
    fast = {"method": "p-irt", "interval": "model-based"}
    before, of_old = (estimate(one, some, **fast) for one in (bank, with_target(clean, "quiz@1")))
    assert of_old.target_id == "quiz@1"
    np.testing.assert_array_equal(before.low, of_old.low)
    with pytest.warns(match="1 of 15 items no longer count in the score of bank"):
        of_new = estimate(clean, some, **fast)
    assert of_new.target_id == "quiz@1-clean"
    assert np.abs(of_new.value - before.value).max() > 1e-6
    assert with_target(clean, "quiz@1-clean") is clean
    with pytest.raises(BankError, match=r"can give, 'quiz@1', 'quiz@1-clean', 'mean_win_rate', got 'quiz@3'"):
        with_target(clean, "quiz@3")


def test_a_whole_scenario_can_be_retired_and_come_back_and_no_target_is_meant_by_nothing():
    bank = measured_bank()
    law = [item for item in bank.item_ids if item.startswith("law")]
    smaller = retire(bank, law, reason="another benchmark has it")
    assert smaller.targets.scenarios == ("math", "code")
    np.testing.assert_allclose(smaller.targets.scenario_weights, 0.5)
    assert restore(smaller, law, reason="it is wanted").bank_id == bank.bank_id
    bank = make_bank()
    clean = retire(bank, bank.item_ids[:1], reason="wrong key")
    with pytest.raises(BankError, match="got ''"):
        with_target(clean, "")


def test_suspect_items_count_and_items_on_trial_do_not():
    bank = named_bank()
    suspected = retire(bank, BAD[:1], reason="odd", status="suspect")
    assert (suspected.bank_id, suspected.version) == (bank.bank_id, "1.0.2")
    tried = retire(suspected, BAD[1:2], reason="new", status="field-test")
    assert BAD[1] not in tried.item_ids
    status = dict(zip(whole_bank(tried).item_ids, tried.history.status.tolist(), strict=True))
    assert [STATUSES[status[item]] for item in BAD] == ["suspect", "field-test", "active"]


@pytest.mark.parametrize(
    ("items", "choices", "error", "message"),
    [
        (["mth/3", "math/0"], {}, DataError, r"1 of 2 are not: 'mth/3'. Did you mean 'math/3'"),
        (BAD, {"reason": " "}, ParameterError, "reason must say why"),
        (measured_bank().item_ids, {}, ParameterError, "must keep items that count"),
        (BAD, {"status": "active"}, ParameterError, "must be one of retired, suspect, field-test, got 'active'"),
        (BAD, {"label": "clean"}, ParameterError, r"labelled after the bank's name.* Name it: note\("),
    ],
)
def test_what_cannot_be_retired_is_refused(items, choices, error, message):
    with pytest.raises(error, match=message):
        retire(measured_bank(), items, **{"reason": "x", **choices})


def test_an_item_has_one_status():
    bank = measured_bank()
    with pytest.raises(ParameterError, match="another status than 'retired', got 1 that have it already: 'math/0'"):
        retire(retire(bank, BAD, reason="x"), BAD[:1], reason="x")
    with pytest.raises(ParameterError, match="another status than 'active'"):
        restore(bank, BAD, reason="x")
