import dataclasses

import numpy as np
import polars as pl

from itembank.bank.bank_files import save_bank
from itembank.banks import Link, diff
from itembank_living import descendant, restore, retire
from itembank_living.publishing.without_responses import without_responses
from tests.living.living import measured_bank, named_bank
from tests.living.test_descendants import with_intercepts, with_items, with_models
from tests.living.test_overlay import REST, part


def test_a_bank_does_not_differ_from_itself_and_without_common_items_no_scale_is_the_same():
    bank = named_bank(with_extras=True)
    found = diff(bank, restore(retire(bank, ["math/0"], reason="bad"), ["math/0"], reason="good"))
    assert found.rows() == []
    assert (found.is_same_score, found.is_same_scale, found.is_descendant) == (True, True, True)
    bank = measured_bank()
    assert not diff(*(part(bank, items, np.arange(5)) for items in (np.arange(10), REST))).is_same_scale


def test_a_bank_published_in_single_precision_has_the_scale_of_its_whole_bank(tmp_path):
    bank = named_bank()
    save_bank(without_responses(bank), tmp_path / "published")
    found = diff(bank, tmp_path / "published")
    assert (found.is_same_score, found.is_same_scale) == (True, True)
    assert [row["what"] for row in found.rows()] == ["models only in the first"]


def test_every_kind_of_difference_is_named():
    bank = named_bank()
    whole = with_models(with_intercepts(with_items(bank, 2), 0.1), 1)
    content = pl.Series(["a"] * 3 + [None] * 29, dtype=pl.String)
    items = whole.responses.items.with_columns(content_hash=content)
    whole = dataclasses.replace(whole, responses=dataclasses.replace(whole.responses, items=items))
    other = retire(descendant(bank, whole, "grow", link=Link("all", 1, 2)), ["math/3"], reason="bad")
    known = bank.responses.items.with_columns(content_hash=pl.lit("b"))
    first = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=known))
    found = diff(first, other)
    counts = {row["what"]: (row["n"], row["ids"][0]) for row in found.rows()}
    assert counts == {
        "items only in the second": (2, "new/0"),
        "items with another status": (1, "math/3"),
        "items with another content": (3, "math/0"),
        "items with other parameters": (30, "math/0"),
        "models only in the second": (1, "new-0"),
    }
    assert found.to_dict() == {
        "banks": [first.bank_id, other.bank_id],
        "versions": ["1.0.1", "3.0.0"],
        "targets": ["quiz@1", "quiz@3"],
        "is_same_score": False,
        "is_same_scale": False,
        "is_descendant": True,
    }
    assert {row["what"] for row in diff(other, first).rows()} >= {"items only in the first", "models only in the first"}
