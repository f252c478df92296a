import numpy as np
import pandas as pd
import polars as pl
import pytest

import itembank as ib
from itembank.bank.arguments import as_bank, as_bank_or_responses, as_new_responses, as_responses, as_selection
from itembank.bank.bank_files import save_bank
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture
def bank():
    return make_bank()


@pytest.fixture
def selection(bank):
    return ib.select(bank, 12, method="stratified", rng=0)


@pytest.fixture
def new_models(bank):
    answers = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    return ResponseMatrix.create(answers, model_ids=["new/a", "new/b"], items=bank.responses.items)


@pytest.fixture
def places(bank, new_models, selection, tmp_path):
    """The same things on disk."""
    save_bank(bank, tmp_path / "bank")
    write_responses(new_models, tmp_path / "new.parquet")
    selection.save(tmp_path / "s.json")
    return tmp_path


def test_things_are_returned_as_they_are_and_paths_stand_for_what_lies_there(bank, new_models, places):
    assert as_bank(bank) is as_bank_or_responses(bank) is bank
    assert as_responses(new_models) is as_new_responses(bank, new_models) is new_models
    assert as_selection(None) is None
    assert as_bank(str(places / "bank")).bank_id == as_bank_or_responses(places / "bank").bank_id == bank.bank_id
    np.testing.assert_array_equal(as_responses(places / "new.parquet").responses, new_models.responses)
    assert as_bank_or_responses([places / "new.parquet"]).model_ids == ["new/a", "new/b"]
    assert as_selection(places / "s.json").n_items == 12


def test_verbs_give_the_same_for_paths_as_for_what_they_hold(bank, new_models, selection, places):
    banks, models, chosen = (bank, str(places / "bank")), (new_models, places / "new.parquet"), places / "s.json"
    ours, theirs = (
        ib.estimate(one, new, selection=some, method="p-irt").rows()
        for one, new, some in zip(banks, models, (selection, str(chosen)), strict=True)
    )
    assert ours == theirs
    compared = ib.compare(places / "bank", str(places / "new.parquet"), selection=chosen, method="paired")
    assert compared.rows() == ib.compare(bank, new_models, selection=selection, method="paired").rows()
    assert ib.select(places / "bank", 12, method="stratified", rng=0).item_ids == selection.item_ids
    abilities = [ib.estimators.estimate_abilities(*pair).theta for pair in zip(banks, models, strict=True)]
    np.testing.assert_array_equal(*abilities)
    assert ib.prepare_sessions(str(places / "bank"), ib.SessionSpec(interval="model-based")).bank_id == bank.bank_id


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda bank: as_bank(3), "got int 3"),
        (lambda bank: as_bank(bank.responses), "got ResponseMatrix"),
        (lambda bank: as_responses(np.zeros((2, 2))), "ResponseMatrix.create"),
        (lambda bank: as_responses([]), "got list"),
        (lambda bank: as_new_responses(bank, None), "got NoneType None"),
        (lambda bank: as_selection(["q1"]), "got list"),
        (lambda bank: ib.select(bank, "100"), "got '100'"),
        (lambda bank: ib.select(bank, 2.5), "got 2.5"),
    ],
)
def test_anything_else_is_refused_in_words(bank, make, text):
    with pytest.raises(ParameterError, match=text):
        make(bank)


def extended(new_models):
    """The same responses and two more items that no bank holds."""
    names = [*new_models.item_ids, "mmlu/99999", "mmlu/99998"]
    answers = np.column_stack([new_models.responses, np.ones((2, 2))])
    return ResponseMatrix.create(answers, model_ids=new_models.model_ids, item_ids=names)


def without_notes(found):
    return [{**row, "note": ""} for row in found.rows()]


@pytest.mark.parametrize(("verb", "method"), [(ib.estimate, "mean"), (ib.compare, "paired")])
def test_items_the_bank_does_not_hold_are_refused_with_a_way_out_that_works(bank, new_models, verb, method):
    with pytest.raises(DataError, match=r"2 of 32 are not: 'mmlu/99999', 'mmlu/99998'.*\(ignore_unknown=True\)"):
        verb(bank, extended(new_models), method=method)
    with pytest.warns(DataWarning, match=r"2 of 32 items are not in bank .* and are left out: 'mmlu/99999'"):
        found = verb(bank, extended(new_models), method=method, ignore_unknown=True)
    assert without_notes(found) == without_notes(verb(bank, new_models, method=method))
    assert method == "paired" or "2 of 32 items are not in bank" in found.rows()[0]["note"]


def test_items_of_no_bank_do_no_harm_beside_a_selection_but_alone_are_refused(bank, new_models, selection):
    with pytest.warns(DataWarning, match="2 of 32 items are not in bank"):
        found = ib.estimate(bank, extended(new_models), selection=selection, method="mean")
    plain = ib.estimate(bank, new_models, selection=selection, method="mean")
    assert without_notes(found) == without_notes(plain)
    with pytest.raises(DataError, match="2 of 2 are not"):
        ib.estimate(bank, ResponseMatrix.create(np.ones((2, 2)), item_ids=["x/1", "x/2"]), ignore_unknown=True)


ONE_MODELS = {
    "a mapping": lambda ids, values: dict(zip(ids, values, strict=True)),
    "an array": lambda _, values: np.array(values),
    "a list": lambda _, values: values,
    "a series": lambda _, values: pl.Series(values),
    "a table": lambda ids, values: pl.DataFrame({"item_id": ids, "response": values}),
    "rows": lambda ids, values: pl.DataFrame({"item_id": ids, "response": values}).to_dicts(),
    "a table of pandas": lambda ids, values: pl.DataFrame({"item_id": ids, "response": values}).to_pandas(),
    "a series of pandas": lambda _, values: pl.Series(values).to_pandas(),
    "an index of ids in another order": lambda ids, values: pd.Series(values, ids).iloc[::-1],
    "an index with a name": lambda ids, values: pd.Series(values, pd.Index(ids, name="item_id")).sort_values(),
}


@pytest.mark.parametrize("give", ONE_MODELS.values(), ids=ONE_MODELS)
def test_answers_of_one_model_come_as_anything_that_has_them(bank, new_models, selection, give):
    one = new_models.take(models=np.array([0]), items=bank.responses.item_indices(selection.item_ids))
    given = give(list(selection.item_ids), one.responses[0].tolist())
    found, expected = (ib.estimate(bank, answers, selection=selection, method="p-irt") for answers in (given, one))
    assert found.model_ids == ("model",)
    np.testing.assert_array_equal(found.scores.value, expected.scores.value)


@pytest.mark.parametrize("index", [pd.RangeIndex(1, -1, -1), pd.RangeIndex(2, name="item_id")[::-1]])
def test_ids_that_are_a_range_of_numbers_are_no_order(bank, index):
    found = as_new_responses(bank, pd.Series([0.0, 1.0], index))
    assert dict(zip(found.item_ids, found.responses[0], strict=True)) == {"1": 0.0, "0": 1.0}


@pytest.mark.parametrize(
    ("given", "has_selection", "words"),
    [
        ([1.0] * 5, True, "one for each of the 12 items of the selection, in its order, got 5"),
        ([1.0] * 5, False, "by the order of a selection, got none"),
        ({"model a": {"x": 1}}, True, "got 'dict'. Give several models as a table"),
        ({"i0": 2.0}, False, r"must lie in \[0, 1\]"),
    ],
)
def test_answers_of_one_model_that_fit_nothing_are_refused(bank, selection, given, has_selection, words):
    with pytest.raises((DataError, ParameterError), match=words):
        ib.estimate(bank, given, selection=selection if has_selection else None, method="p-irt")


@pytest.mark.filterwarnings("ignore::itembank.errors.ItembankWarning")
def test_none_is_a_missing_answer(bank):
    given = dict.fromkeys(bank.item_ids[:9], 1.0)
    found = ib.estimate(bank, {**given, bank.item_ids[9]: None}, method="p-irt")
    assert found.rows() == ib.estimate(bank, given, method="p-irt").rows()


def test_tables_are_past_results_as_files_are():
    table = pl.DataFrame({"model_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], "response": [1, 0, 0]})
    for given in (table, table.to_dicts()):
        np.testing.assert_array_equal(as_responses(given).responses, [[1.0, 0.0], [0.0, np.nan]])
    with pytest.raises(DataError, match="there must be a column model_id or item_id"):
        as_responses(pl.DataFrame({"a": [1]}))
