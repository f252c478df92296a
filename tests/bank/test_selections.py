import dataclasses
import json

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.errors import DataError

SELECTION = Selection(("math/1", "mäth/2"), ("math", "math"), np.array([0.25, 0.75]), "anchor-irt", "abc", 3)


def test_what_is_written_is_read_back_in_any_order_with_inclusion_probabilities(tmp_path):
    path, drawn = (
        tmp_path / "selection.json",
        dataclasses.replace(SELECTION, inclusion_probabilities=np.array([0.1, 1.0])),
    )
    for selection, probabilities in ((SELECTION, [None, None]), (drawn, [0.1, 1.0])):
        selection.save(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        assert Selection.load(path).to_dict() == selection.to_dict()
        path.write_text(json.dumps(content, sort_keys=True), encoding="utf-8")
        assert Selection.load(path).to_dict() == selection.to_dict()
        assert [row.pop("inclusion_probability", None) for row in content["items"]] == probabilities
        assert (content["method"], content["bank"], content["seed"]) == ("anchor-irt", "abc", 3)
        assert content["items"][1] == {"item_id": "mäth/2", "scenario": "math", "weight": 0.75}
    np.testing.assert_array_equal(Selection.load(path).inclusion_probabilities, [0.1, 1.0])
    assert Selection.from_dict(SELECTION.to_dict()).inclusion_probabilities is None


@pytest.mark.parametrize("value", [0, 1.01, "x", None, True, float("nan")])
def test_an_inclusion_probability_outside_its_range_is_refused(value):
    content = SELECTION.to_dict()
    content["items"][0]["inclusion_probability"] = 0.5
    content["items"][1]["inclusion_probability"] = value
    with pytest.raises(DataError, match=r"inclusion_probability must be in .0, 1. .* for 1 of 2: 'mäth/2'"):
        Selection.from_dict(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "list 'items'"),
        ('{"items": []}', "at least one item"),
        ('{"items": [{"item_id": "a", "scenario": "s"}]}', "weight"),
        ('{"items": [{"item_id": "a", "scenario": "s", "weight": "x"}]}', "weight"),
        ('{"items": [{"item_id": "a", "scenario": "s", "weight": -1}]}', ">= 0"),
        ('{"schema_version": 99, "items": [{"item_id": "a", "scenario": "s", "weight": 1}]}', "schema_version"),
        (json.dumps({"items": 2 * [{"item_id": "a", "scenario": "s", "weight": 1}]}), "unique: 'a'"),
    ],
)
def test_a_file_that_is_no_selection_is_refused(tmp_path, text, message):
    (tmp_path / "selection.json").write_text(text)
    with pytest.raises(DataError, match=message):
        Selection.load(tmp_path / "selection.json")


def test_a_changed_selection_is_refused_and_goes_on_without_its_digest(tmp_path):
    with pytest.raises(DataError, match="itembank select"):
        Selection.load(tmp_path / "none.json")
    path = tmp_path / "selection.json"
    SELECTION.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["items"][0]["item_id"] = "another"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=r"is not the selection that was written.*remove its line 'sha256'"):
        Selection.load(path)
    del content["sha256"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert Selection.load(path).item_ids[0] == "another"


EARLIER = Selection(("math/7",), ("math",), np.array([0.5]), "anchor-irt", "abc")
LATER = dataclasses.replace(SELECTION, weights=np.array([0.2, 0.3]), earlier=EARLIER)


def test_a_later_stage_keeps_what_was_answered_before(tmp_path):
    LATER.save(tmp_path / "selection.json")
    again = Selection.load(tmp_path / "selection.json")
    assert again.to_dict() == LATER.to_dict()
    assert (again.item_ids, again.earlier.item_ids) == (("math/1", "mäth/2"), ("math/7",))
    assert again.whole.item_ids == ("math/7", "math/1", "mäth/2")
    np.testing.assert_array_equal(again.whole.weights, [0.5, 0.2, 0.3])
    assert again.whole.earlier is None
    assert SELECTION.whole is SELECTION


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 1}, "must be 'itembank.selection/1', got 1.*Choose again"),
        ({"earlier": []}, "at least one item"),
        ({"earlier": "math/7"}, "every item must have item_id"),
        ({"earlier": [{"item_id": "math/1", "scenario": "math", "weight": 1}]}, "unique: 'math/1'"),
    ],
)
def test_a_later_stage_that_cannot_be_is_refused(change, message):
    with pytest.raises(DataError, match=message):
        Selection.from_dict({**LATER.to_dict(), **change})
