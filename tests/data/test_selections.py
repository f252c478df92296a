import json

import numpy as np
import pytest

from itembank.data.selections import Selection
from itembank.errors import DataError

SELECTION = Selection(("math/1", "mäth/2"), ("math", "math"), np.array([0.25, 0.75]), "anchor-irt", "abc", 3)


def test_what_is_written_is_read_back(tmp_path):
    SELECTION.save(tmp_path / "selection.json")
    again = Selection.load(tmp_path / "selection.json")
    assert again.to_dict() == SELECTION.to_dict()
    assert again.seed == 3


def test_the_file_says_method_bank_seed_and_items(tmp_path):
    SELECTION.save(tmp_path / "selection.json")
    content = json.loads((tmp_path / "selection.json").read_text(encoding="utf-8"))
    assert content["method"] == "anchor-irt"
    assert content["bank"] == "abc"
    assert content["items"][1] == {"item_id": "mäth/2", "scenario": "math", "weight": 0.75}


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


def test_an_absent_file_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match="itembank select"):
        Selection.load(tmp_path / "none.json")
