import dataclasses

import polars as pl
import pytest

from itembank.banks import retire, whole_bank
from itembank.errors import DataError
from itembank.publishing.question_text import check_no_questions, without_columns
from tests.bank.banks import make_bank

BANK = make_bank()


def with_column(name, value):
    items = BANK.responses.items.with_columns(pl.Series(name, [value] * BANK.n_items))
    return dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt", "2+2="),
        ("doc.question", "x"),
        ("choices", ["a", "b"]),
        ("correct", 3),
        ("gold_answer", "B"),
        ("remark", "A train leaves the station at noon and another one follows it at two."),
        ("row", {"anything": "nested"}),
    ],
)
def test_questions_and_answers_are_refused_and_named(name, value):
    bank = with_column(name, value)
    with pytest.raises(DataError, match=rf"no questions and no answers, and columns '{name}'"):
        check_no_questions(bank)
    check_no_questions(bank, (name,))
    check_no_questions(without_columns(bank, (name,)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_options", 4), ("content_hash", "f" * 64), ("metric", "exact_match"), ("lengths", [1, 2]), ("url", "x" * 200)],
)
def test_what_else_is_known_of_items_may_go(name, value):
    check_no_questions(with_column(name, value))


def test_questions_in_the_place_of_ids_are_found():
    items = BANK.responses.items.with_columns(
        item_id="What is the capital of the country whose number is " + pl.col("item_id") + "?"
    )
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))
    with pytest.raises(DataError, match="'item_id'"):
        check_no_questions(bank)


def test_a_bank_without_columns_is_the_same_bank():
    slim = without_columns(BANK, ("n_options",))
    assert "n_options" not in slim.responses.items.columns
    assert slim.bank_id == BANK.bank_id
    for name in ("nothing", "scenario"):
        with pytest.raises(DataError, match=name):
            without_columns(BANK, (name,))


def test_a_column_to_include_must_be_there():
    with pytest.raises(DataError, match="'promt'"):
        check_no_questions(BANK, ("promt",))


def test_items_that_are_kept_aside_lose_their_columns_too():
    bank = retire(with_column("prompt", "2+2="), BANK.item_ids[:1], reason="wrong key")
    with pytest.raises(DataError, match="columns 'prompt'"):
        check_no_questions(bank)
    slim = without_columns(bank, ("prompt",))
    assert "prompt" not in whole_bank(slim).responses.items.columns
    assert whole_bank(slim).n_items == BANK.n_items
