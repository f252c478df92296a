"""Items of a bank among documents of a harness, by one rule."""

import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, IntegrityError
from itembank.readers.matching import Document, changed_contents, find_items, find_logged
from itembank.readers.rows import content_digest


def documents(task, ids, start=0, **more):
    """Documents with a field `question_id` each, and a text."""
    rows = ({"question_id": one, "text": f"{task} {one}", **more} for one in ids)
    return [Document(task, str(k), row, lambda row=row: f"hash {row['text']}") for k, row in enumerate(rows, start)]


def bank(ids, **columns):
    return pl.DataFrame({"item_id": ids, **columns})


def places(found):
    return {item: one.place for item, one in found.items()}


LAW, MATH = documents("pro_law", [7, 8]), documents("pro_math", [7, 9])


@pytest.mark.parametrize(
    ("items", "groups", "found"),
    [
        (bank(["pro_law/1", "pro_math/0"]), {}, ["pro_law/1", "pro_math/0"]),  # by place
        (bank(["PRO-law/7", "pack/pro_math/7"]), {}, ["pro_law/0", "pro_math/0"]),  # in the task called so, by its id
        (bank(["8", "9"]), {}, ["pro_law/1", "pro_math/1"]),
        (bank(["pro/8", "pro/9"]), {"pro": {"pro_law", "pro_math"}}, ["pro_law/1", "pro_math/1"]),
        (bank(["a", "b"], task="pro_math", native_id=["7", "9"]), {}, ["pro_math/0", "pro_math/1"]),
        (bank(["a", "b"], content_hash=["hash pro_math 7", "hash pro_law 7"]), {}, ["pro_math/0", "pro_law/0"]),
    ],
)
def test_items_are_found_by_the_first_rule_that_finds_all(items, groups, found):
    ids = items["item_id"].to_list()
    assert places(find_items(items, ids, [*LAW, *MATH], groups=groups)) == dict(zip(ids, found, strict=True))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["7", "8"], "1 of 2 that are there more than once: '7'"),
        (["a/8", "b/8"], "2 of 2 that are there more than once: 'a/8', 'b/8'"),  # one document for two items
        (["8", "10"], "1 of 2 that are in none: '10'"),
    ],
)
def test_an_item_that_is_not_one_document_is_refused(ids, message):
    with pytest.raises(IntegrityError, match=message):
        find_items(bank(ids), ids, [*LAW, *MATH])


@pytest.mark.parametrize("fields", ["5", "[1]", "no JSON"])
def test_fields_that_a_bank_names_must_be_names(fields):
    items = bank(["8"], content_hash=["x"], content_fields=[fields])
    with pytest.raises(DataError, match="content_fields of a bank must hold lists of names"):
        find_logged(items, LAW)


def test_logs_may_hold_a_few_documents_more():
    logged, ids = documents("law", range(20)), [str(one) for one in range(18)]
    assert find_logged(bank(ids), logged).keys() == set(ids)
    assert find_logged(bank([*ids[:17], "else"]), logged) == {}  # 17 of 20 documents
    assert find_logged(bank(ids[:3]), logged).keys() == set(ids[:3])  # all items of the bank


def test_a_place_in_a_task_of_lm_eval_is_no_id_in_another():
    items = bank(["other/7", "other/8"], task="other", doc_id=[7, 8])
    assert find_logged(items, LAW) == {}
    assert places(find_logged(items.with_columns(native_id=pl.Series(["7", "8"])), LAW)) == {
        "other/7": "pro_law/0",
        "other/8": "pro_law/1",
    }


def test_of_logs_the_first_rule_counts_that_knows_every_document():
    items = bank(["7", "8", "9", "11"])
    assert places(find_logged(items, LAW)) == {"7": "pro_law/0", "8": "pro_law/1"}
    assert find_logged(items, documents("other", [7, 12])) == {}
    assert places(find_logged(items, documents("other", [7, 12]), "doc.question_id")) == {"7": "other/0"}


def test_contents_are_compared_by_named_fields_or_by_the_harness_s_own_hash():
    found = dict(zip(["a", "b"], LAW, strict=True))
    digests = [content_digest("pro_law 7"), content_digest("another")]
    named = bank(["a", "b"], content_hash=digests, content_fields='["text"]')
    assert changed_contents(named, found, "lm-eval") == ["b"]
    with pytest.warns(DataWarning, match="no field 'question'"):
        assert not changed_contents(named.with_columns(content_fields=pl.lit('["question"]')), found, "lm-eval")
    own = bank(["a", "b"], content_hash=["hash pro_law 7", "hash"], task="t", doc_id=[0, 1])
    assert changed_contents(own, found, "lm-eval") == ["b"]
    assert not changed_contents(own, found, "inspect")  # which hashes otherwise
