import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.marks import ADDED, ANSWERED_HOW, is_adaptive, is_usable, with_ways
from itembank.errors import DataError
from itembank.responses.responses import ResponseMatrix


@pytest.fixture
def responses():
    values = np.ones((4, 5))
    values[1:, 0] = np.nan
    matrix = ResponseMatrix.create(values)
    ways = pl.Series(ANSWERED_HOW, [None, "adaptive", "random", None])
    return dataclasses.replace(matrix, models=matrix.models.with_columns(ways))


def test_what_the_table_says_stays_and_the_rest_is_filled(responses):
    assert with_ways(responses, 5).models[ANSWERED_HOW].to_list() == ["complete", "adaptive", "random", None]
    assert with_ways(responses, 5, "fixed").models[ANSWERED_HOW].to_list()[3] == "fixed"
    nothing = dataclasses.replace(responses, models=responses.models.drop(ANSWERED_HOW))
    assert with_ways(nothing, 9).models[ANSWERED_HOW].to_list() == [None] * 4


def test_other_words_are_refused(responses):
    with pytest.raises(DataError, match="must be one of complete, random, fixed, adaptive, got 'luck'"):
        with_ways(responses, 5, "luck")


def test_items_learn_from_no_adaptive_answers_and_from_added_ones_whose_way_is_known(responses):
    models = with_ways(responses, 5).models
    assert is_adaptive(models).tolist() == [False, True, False, False]
    assert is_usable(models).tolist() == [True, False, True, True]
    assert is_usable(models.with_columns(pl.lit("1.1.0").alias(ADDED))).tolist() == [True, False, True, False]
    assert is_usable(models.drop(ANSWERED_HOW)).all()
    assert not is_usable(models.drop(ANSWERED_HOW).with_columns(pl.lit("1.1.0").alias(ADDED))).any()
