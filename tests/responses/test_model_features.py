import datetime as dt

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError
from itembank.responses.model_features import ModelFeatures, model_dates


def table(**columns):
    return pl.DataFrame(columns)


def test_numbers_are_standardised_and_unknown_ones_count_as_the_mean():
    past = table(layers=[10.0, 20.0, 30.0, None])
    features = ModelFeatures.fit(past, ["layers"])
    np.testing.assert_allclose(features.of(past)[:, 0], [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0])
    np.testing.assert_allclose(features.of(table(layers=[40])), [[2.0 * np.sqrt(1.5)]])


def test_sizes_of_very_different_models_count_by_their_logarithm():
    features = ModelFeatures.fit(table(size=[1e9, 1e10, 1e11]), ["size"])
    np.testing.assert_allclose(features.of(table(size=[1e12, 0.0]))[:, 0], [2.0 * np.sqrt(1.5), 0.0])
    logs = table(size=[0.1, 1.0, 2.0, 2.9])  # logarithms already
    np.testing.assert_allclose(
        np.diff(ModelFeatures.fit(logs, ["size"]).of(table(size=[0.0, 1.0, 2.0])), 2, axis=0), 0.0, atol=1e-12
    )


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-01-01", "2024-01-11", "2024-01-21"],
        ["2024-01-01T10:00", "2024-01-11T10:00", "2024-01-21T10:00"],
        [20240101, 20240111, 20240121],
        [dt.date(2024, 1, 1), dt.date(2024, 1, 11), dt.date(2024, 1, 21)],
    ],
)
def test_dates_count_in_days_however_they_are_written(dates):
    features = ModelFeatures.fit(table(date=dates), ["date"])
    np.testing.assert_allclose(features.of(table(date=dates))[:, 0], [-np.sqrt(1.5), 0.0, np.sqrt(1.5)])
    np.testing.assert_allclose(features.of(table(date=[None]))[:, 0], [0.0])


def test_text_is_a_category_and_what_nobody_had_counts_as_average():
    past = table(org=["a", "a", "b", None])
    features = ModelFeatures.fit(past, ["org"])
    new = features.of(table(org=["a", "b", "c", None]))
    np.testing.assert_allclose(new, [[1 / 3, -1 / 3], [-2 / 3, 2 / 3], [0.0, 0.0], [0.0, 0.0]])
    truth = ModelFeatures.fit(table(instruct=[True, False]), ["instruct"])
    np.testing.assert_allclose(truth.of(table(instruct=[True])), [[0.5, -0.5]])


def test_columns_that_are_not_there_or_hold_something_else_are_refused():
    past = table(size=[1.0, 2.0], date=["2024-01-01", "2024-02-01"])
    with pytest.raises(DataError, match=r"(?i)did you mean 'size'"):
        ModelFeatures.fit(past, ["sise"])
    features = ModelFeatures.fit(past, ["size", "date"])
    with pytest.raises(DataError, match="column of the new models' table"):
        features.of(table(size=[1.0]), "the new models' table")
    with pytest.raises(DataError, match="holds numbers"):
        features.of(table(size=["large"], date=["2024-01-01"]))
    with pytest.raises(DataError, match="holds dates"):
        features.of(table(size=[1.0], date=["spring"]))


def test_a_column_of_nothing_says_nothing():
    features = ModelFeatures.fit(table(size=pl.Series([None, None], dtype=pl.Float64)), ["size"])
    np.testing.assert_allclose(features.of(table(size=[3.0])), [[0.0]])


def test_the_column_whose_name_says_most_clearly_how_new_models_are_is_taken():
    days = ["2024-01-02", None, "2024-03-04"]
    models = table(
        model_id=["2024-01-01"] * 3, seen=days[::-1], release_date=days, date=["soon", "2024", ""], n=[1, 2, 3]
    )
    found = model_dates(models)
    durations = pl.Series([dt.timedelta(hours=1)] * 3)
    assert model_dates(models.select("model_id").with_columns(run_date=pl.lit("2024-05-01"), seconds=durations)) is None
    assert (found.name, found.to_list()) == ("release_date", [dt.date(2024, 1, 2), None, dt.date(2024, 3, 4)])
    assert model_dates(models, "seen").name == "seen"
    assert model_dates(models, "n") is model_dates(models, "absent") is model_dates(models.select("model_id")) is None
