import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.bank_history import bumped
from itembank.banks import Link, whole_bank
from itembank.errors import DataError, ParameterError
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank_living import descendant, note, retire
from tests.living.living import named_bank

LINK = Link("fixed", 3, 30, 0.004)


def with_models(bank, n):
    """Answer the bank's items by further models."""
    more = np.random.default_rng(1).integers(0, 2, (n, bank.n_items)).astype(float)
    models = pl.DataFrame({"model_id": [*bank.responses.model_ids, *(f"new-{k}" for k in range(n))]})
    values = np.concatenate([bank.responses.responses, more])
    matrix = ResponseMatrix.create(values, models=models, items=bank.responses.items)
    old = bank.calibration
    calibration = dataclasses.replace(
        old,
        abilities=np.concatenate([old.abilities, np.zeros((n, bank.parameters.n_dims))]),
        ability_covariance=np.concatenate([old.ability_covariance, *[old.ability_covariance[:1]] * n]),
    )
    return dataclasses.replace(bank, responses=matrix, calibration=calibration)


def with_items(bank, n):
    """Add copies of the first items under other ids."""
    rows = np.concatenate([np.arange(bank.n_items), np.arange(n)])
    matrix, old = bank.responses.take(items=rows), bank.calibration
    items = matrix.items.with_columns(item_id=pl.Series([*bank.item_ids, *(f"new/{k}" for k in range(n))]))
    parts = {name: getattr(old, name)[rows] for name in ("item_covariance", "is_degenerate")}
    calibration = dataclasses.replace(old, parameters=old.parameters.take(rows), **parts)
    matrix = dataclasses.replace(matrix, items=items)
    return dataclasses.replace(bank, responses=matrix, calibration=calibration, targets=ScoreTargets.create(items))


def with_intercepts(bank, shift):
    """Move every item's intercept."""
    old = bank.parameters
    parameters = ItemParameters.create(old.loadings, old.intercept + shift)
    return dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, parameters=parameters))


@pytest.mark.parametrize(
    ("change", "link", "statuses", "version", "target"),
    [
        (lambda bank: bank, None, {}, "1.0.2", "quiz@1"),
        (lambda bank: with_models(bank, 3), None, {}, "1.1.0", "quiz@1"),
        (lambda bank: with_intercepts(bank, 0.1), LINK, {}, "1.1.0", "quiz@1"),
        (lambda bank: with_intercepts(bank, 0.1), None, {}, "2.0.0", "quiz@1"),
        (lambda bank: with_items(bank, 2), LINK, {"new/0": "field-test", "new/1": "field-test"}, "1.1.0", "quiz@1"),
        (lambda bank: with_items(bank, 2), LINK, {}, "2.0.0", "quiz@2"),
    ],
)
def test_the_version_says_what_changed(tmp_path, change, link, statuses, version, target):
    bank = named_bank()
    made = descendant(bank, change(whole_bank(bank)), "try", link=link, statuses=statuses)
    assert (made.version, made.target_id) == (version, target)
    save_bank(made, tmp_path / "bank")
    again = load_bank(tmp_path / "bank")
    assert (again.version, again.target_id, again.bank_id) == (version, target, made.bank_id)
    assert again.history.changes == made.history.changes
    assert (again.bank_id == bank.bank_id) == (version == "1.0.2" or bool(statuses))


def test_history_says_what_came_and_went():
    bank = named_bank()
    grown = descendant(bank, with_items(bank, 2), "add-items", note="more", arguments={"n": 2}, link=LINK)
    later = descendant(grown, with_models(whole_bank(grown), 1), "add-models")
    last = retire(later, ["new/1"], reason="bad")
    added, models, dropped = last.history.changes[1:]
    assert (added.items_added.n, added.items_added.first, added.link) == (2, ("new/0", "new/1"), LINK)
    assert (models.models_added.first, models.items_added.n, models.items_changed.n) == (("new-0",), 0, 0)
    assert (dropped.items_dropped.first, dropped.note) == (("new/1",), "bad")
    assert dropped.parents == (later.bank_id,)
    assert last.history.since.tolist() == [0] * 30 + [2] * 2
    assert [one.name for one in last.history.targets] == ["quiz@1", "quiz@2", "quiz@3"]
    assert last.history.ancestors[0] == bank.bank_id


def test_targets_are_named_after_the_versions_that_first_gave_them_and_labels_follow_it():
    bank = retire(dataclasses.replace(named_bank(), history=None), ["math/0"], reason="bad")
    assert note(bank, "now it has one", name="late").target_id == "late@2"
    bank = retire(named_bank("mmlu-pro"), ["math/0"], reason="bad", label="clean")
    assert bank.target_id == "mmlu-pro@1-clean"
    assert retire(bank, ["code/1"], reason="bad", label="cleaner").target_id == "mmlu-pro@1-cleaner"
    with pytest.raises(ParameterError, match="a name must begin"):
        retire(bank, ["code/1"], reason="bad", label="not this")
    with pytest.raises(ParameterError, match="a label is for a new score, got 'odd' where the score is 'mmlu-pro@1-cl"):
        retire(bank, ["code/1"], reason="bad", status="suspect", label="odd")


def test_items_must_stay_in_their_order_and_names_fit_a_file():
    bank = named_bank()
    turned = dataclasses.replace(bank, responses=bank.responses.take(items=np.arange(30)[::-1]))
    with pytest.raises(DataError, match="must begin with those of its parent"):
        descendant(bank, turned, "turn")
    with pytest.raises(ParameterError, match="a name must begin with a letter or digit"):
        note(named_bank(), "x", name="../quiz")
    with pytest.raises(ParameterError, match="a target's name must be new, got 'quiz@1-clean'"):
        retire(retire(named_bank(), ["math/0"], reason="x", label="clean"), ["code/1"], reason="x", label="clean")
    assert [bumped("1.2.3", part) for part in ("major", "minor", "patch")] == ["2.0.0", "1.3.0", "1.2.4"]
