import datetime as dt

import numpy as np
import polars as pl
import pytest

from itembank.responses.model_features import model_dates, standardised


def table(**columns):
    return pl.DataFrame(columns)


def test_numbers_are_standardised_and_unknown_ones_count_as_the_mean():
    found = standardised(pl.Series([10.0, 20.0, 30.0, None]))
    np.testing.assert_allclose(found, [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0])


def test_sizes_of_very_different_models_count_by_their_logarithm():
    np.testing.assert_allclose(standardised(pl.Series([1e9, 1e10, 1e11])), [-np.sqrt(1.5), 0.0, np.sqrt(1.5)])
    logs = [0.1, 1.0, 2.0, 2.9]  # logarithms already
    expected = (np.array(logs) - np.mean(logs)) / np.std(logs)
    np.testing.assert_allclose(standardised(pl.Series(logs)), expected)


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-01-01", "2024-01-11", "2024-01-21", None],
        ["2024-01-01T10:00", "2024-01-11T10:00", "2024-01-21T10:00", None],
        [20240101, 20240111, 20240121, None],
        [dt.date(2024, 1, 1), dt.date(2024, 1, 11), dt.date(2024, 1, 21), None],
    ],
)
def test_dates_count_in_days_however_they_are_written(dates):
    np.testing.assert_allclose(standardised(pl.Series(dates)), [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0])


def test_what_is_no_number_or_tells_no_models_apart():
    assert standardised(pl.Series(["a", "b", "c"])) is None
    for same in ([3.0, 3.0, None], [None, None]):
        assert not standardised(pl.Series(same, dtype=pl.Float64)).any()


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
