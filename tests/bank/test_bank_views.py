import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_views import bank_for, check_made_for, repeatable
from itembank.bank.marks import ANSWERED_HOW, is_adaptive, with_ways
from itembank.banks import Link, whole_bank, with_target
from itembank.comparison.compared_models import bank_and_targets
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.planning.plan import plan
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.preparation import ready_pool
from itembank.sessions.session_spec import SessionSpec
from itembank_living import descendant, retire
from tests.bank.banks import make_bank
from tests.living.living import named_bank
from tests.living.test_descendants import with_intercepts, with_items, with_models

LINK = Link("fixed", 3, 30)


@pytest.fixture(scope="module")
def bank():
    return named_bank()


@pytest.fixture(scope="module")
def selection(bank):
    return select(bank, 6, method="random", rng=0)


def test_a_selection_names_what_it_is_for_and_a_stranger_s_is_warned_of(tmp_path, bank, selection):
    selection.save(tmp_path / "selection.json")
    again = type(selection).load(tmp_path / "selection.json")
    assert (again.target, again.target_digest) == ("quiz@1", bank.target_digest)
    with pytest.warns(DataWarning, match="was made for bank 000000000000, not"):
        check_made_for(bank, dataclasses.replace(selection, bank="0" * 12, target_digest="1" * 12))


@pytest.mark.parametrize(
    "change",
    [
        lambda bank: descendant(bank, with_models(bank, 2), "add-models"),
        lambda bank: descendant(bank, with_intercepts(bank, 0.1), "recalibrate", link=LINK),
        lambda _: make_bank(seed=4),  # another calibration of the same items
    ],
)
def test_a_selection_goes_with_every_bank_of_the_same_score(bank, selection, change):
    other = change(bank)
    assert other.bank_id != bank.bank_id
    check_made_for(other, selection)  # a warning would be an error


def test_a_selection_goes_with_descendants_that_still_count_all_its_items(bank, selection):
    unused = retire(bank, [next(item for item in bank.item_ids if item not in selection.item_ids)], reason="bad")
    check_made_for(unused, selection)
    check_made_for(unused, dataclasses.replace(selection, target="", target_digest=""))
    without = retire(bank, selection.item_ids[:1], reason="bad")
    with pytest.raises(DataError, match=r"and 1 of 6 no longer do: .*with_target\(bank, 'quiz@1'\)"):
        check_made_for(without, selection)
    check_made_for(with_target(without, "quiz@1"), selection)
    grown = descendant(bank, with_items(bank, 2), "add-items", link=LINK)
    with pytest.warns(DataWarning, match=rf"2 of {grown.n_items} items came after .*with_target\(bank, 'quiz@1'\)"):
        check_made_for(grown, selection)
    check_made_for(with_target(grown, "quiz@1"), selection)


@pytest.mark.usefixtures("few_folds")
def test_a_choice_is_repeated_without_what_was_retired(bank):
    chosen = select(bank, 6, method="anchor-irt", rng=0, excluded=["math/0", "law/2"])
    clean = retire(bank, ["math/0"], reason="bad")
    assert repeatable(bank, chosen) is chosen
    assert repeatable(clean, chosen).recipe["excluded"] == ["law/2"]
    odd = dataclasses.replace(chosen, recipe={"excluded": 5})
    assert repeatable(clean, odd) is odd
    some = bank.responses.take(models=np.arange(2), items=bank.responses.item_indices(chosen.item_ids))
    estimate(clean, some, selection=chosen, method="p-irt")  # without a warning


def test_sessions_go_on_with_descendants_that_give_their_score(bank):
    made_for, grown = (bank.bank_id, bank.target_digest), descendant(bank, with_models(bank, 2), "add-models")
    assert [bank_for(one, *made_for) is one for one in (bank, grown)] == [True, True]
    clean = retire(grown, ["math/0"], reason="bad")
    assert bank_for(clean, *made_for).bank_id == grown.bank_id  # the score of before, by today's numbers
    assert [bank_for(one, *made_for) for one in (make_bank(seed=4), whole_bank(clean))] == [None, None]
    assert bank_for(grown, bank.bank_id, "") is None


def test_what_the_table_says_of_the_way_of_asking_stays_and_other_words_are_refused():
    values = np.ones((4, 5))
    values[1:, 0] = np.nan
    matrix = ResponseMatrix.create(values)
    ways = pl.Series(ANSWERED_HOW, [None, "adaptive", "random", None])
    responses = dataclasses.replace(matrix, models=matrix.models.with_columns(ways))
    assert with_ways(responses, 5).models[ANSWERED_HOW].to_list() == ["complete", "adaptive", "random", None]
    assert is_adaptive(with_ways(responses, 5).models).tolist() == [False, True, False, False]
    assert with_ways(responses, 5, "fixed").models[ANSWERED_HOW].to_list()[3] == "fixed"
    assert with_ways(matrix, 9).models[ANSWERED_HOW].to_list() == [None] * 4
    with pytest.raises(DataError, match="must be one of complete, random, fixed, adaptive, got 'luck'"):
        with_ways(responses, 5, "luck")


def test_verbs_that_take_no_set_of_items_as_their_target_say_what_does(bank):
    """It was "among 'math', 'law', 'overall'", and of `compare` answers to what was retired were lost before."""
    verbs = (
        ready_pool,
        lambda one, spec: plan(one, target=spec.target),
        lambda one, spec: bank_and_targets(one, [spec.target]),
    )
    for verb in verbs:
        with pytest.raises(ParameterError, match=r"got 'quiz@1', a set of items\. .*with_target\(bank, 'quiz@1'\)"):
            verb(bank, SessionSpec(target="quiz@1"))
