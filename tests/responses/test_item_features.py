import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError
from itembank.responses.item_features import MOST_CATEGORIES, MOST_COMPONENTS, ItemFeatures, covariate_features


def table(**columns):
    return pl.DataFrame(columns)


def test_numbers_words_and_vectors_become_features_with_names():
    items = table(length=[1.0, 3.0], topic=["a", "b"], code=[[1.0, 0.0], [0.0, 1.0]])
    items = pl.concat([items, items])
    features = ItemFeatures.fit(items, ["length", "topic", "code"])
    assert features.columns == ("length", "topic", "code")
    assert features.names == (("length", ""), ("topic", "a"), ("topic", "b"), ("code", "component 1"))
    np.testing.assert_array_equal(features.column_index, [0, 1, 1, 2])
    found = features.of(items)
    np.testing.assert_allclose(found[:, 0], [-1.0, 1.0, -1.0, 1.0])
    np.testing.assert_allclose(found[:, 1:3], [[0.5, -0.5], [-0.5, 0.5]] * 2)
    np.testing.assert_allclose(np.abs(found[:, 3]), 1.0)


def test_words_of_single_items_count_as_average():
    features = ItemFeatures.fit(table(topic=["a", "a", "b", "b", "c", None]), ["topic"])
    assert features.names == (("topic", "a"), ("topic", "b"))
    np.testing.assert_array_equal(features.of(table(topic=["c", "unheard of", None])), np.zeros((3, 2)))


@pytest.mark.parametrize("values", [[1.0, 1.0], ["a", "a"], ["a", "b"], [None, None], [[1.0, 2.0], [1.0, 2.0]]])
def test_columns_that_tell_no_items_apart_are_left_out(values):
    assert covariate_features(table(scenario=["x", "x"], column=values), ["column"]) is None


def test_the_scenario_comes_by_itself_but_only_with_other_columns():
    items = table(scenario=["x", "x", "y", "y"], length=[1.0, 2.0, 3.0, 4.0])
    assert covariate_features(items, ["length"]).columns == ("scenario", "length")
    assert covariate_features(items, ["length", "scenario"]).columns == ("scenario", "length")
    assert covariate_features(items, ()) is None


@pytest.mark.parametrize("as_array", [False, True])
def test_leading_components_hold_the_distances_of_vectors(as_array):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 80))
    known = pl.Series("code", vectors.tolist(), dtype=pl.Array(pl.Float64, 80) if as_array else None)
    features = ItemFeatures.fit(known.to_frame(), ["code"])
    found = features.of(known.to_frame())
    assert found.shape == (30, 3)
    scale = np.sqrt(np.var(vectors, axis=0).sum())
    np.testing.assert_allclose(found @ found.T, (centred := vectors - vectors.mean(axis=0)) @ centred.T / scale**2)
    many = pl.Series("code", rng.normal(size=(90, 80)).tolist()).to_frame()
    assert ItemFeatures.fit(many, ["code"]).of(many).shape == (90, MOST_COMPONENTS)


def test_an_item_without_a_vector_counts_as_average():
    items = table(code=[[1.0, 0.0], [0.0, 3.0], None])
    np.testing.assert_array_equal(ItemFeatures.fit(items, ["code"]).of(items)[2], [0.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0], [1.0]], "same length"),
        ([[1.0, 2.0], [1.0, None]], "number in every place"),
        ([[1.0, 2.0], [1.0, float("nan")]], "finite"),
        ([["a"], ["b"]], "must hold numbers"),
        ([f"word {k // 2}" for k in range(2 * MOST_CATEGORIES + 2)], "at most 300 categories, column 'column' has 301"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(values, message):
    with pytest.raises(DataError, match=message):
        ItemFeatures.fit(table(column=values), ["column"])


def test_new_items_need_the_same_kinds_of_columns():
    features = ItemFeatures.fit(table(code=[[1.0, 0.0], [0.0, 3.0]]), ["code"])
    with pytest.raises(DataError, match="vectors too"):
        features.of(table(code=["a", "b"]))
    with pytest.raises(DataError, match="Did you mean 'cod'"):
        features.of(table(cod=[1.0]))
