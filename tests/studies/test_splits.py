import datetime

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank_studies import split_specs as specs
from itembank_studies.splits import folds_of, make_folds, stream
from tests.studies.simulated import make_prompt_responses, make_responses


def draws(*path, seed=0):
    return tuple(stream(seed, *path).random(3))


def test_a_place_has_its_own_numbers_always_unrelated_to_its_neighbours():
    assert draws("k-fold", 1, 2) == draws("k-fold", 1, 2)
    places = [("k-fold", 1, 2), ("k-fold", 2, 1), ("k-fold", 12), ("random", 1, 2), ()]
    assert len({draws(*place) for place in places}) == len(places)
    assert draws("k-fold", seed=1) != draws("k-fold", seed=2)
    numbers = np.array([stream(0, "select", n).random(2000) for n in range(20)])
    off_diagonal = np.corrcoef(numbers)[np.triu_indices(20, k=1)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(2000)


MODELS = make_responses(n_models=41).models
MONTHS = specs.Ahead("date", until="2024-06-15", months=(1, 2, 6), name="months")
NAMED = specs.NamedGroup("org", ("org-1", "org-3"))
EVERY = (
    *(specs.KFold(4), specs.RandomShare(0.25), specs.LeaveOneOut(), specs.Beyond(), specs.ByGroup("org"), NAMED),
    *(specs.Ahead("date"), specs.Ahead(until="2024-06-15", name="until"), MONTHS, specs.Matching("org", "[13]$")),
    *(specs.ByGroup("org", k=5, name="each org"), specs.TrainingShare((10, 20))),
    specs.TrainingShare(shares=(0.5, 1.0), name="shares"),
)
SCORES = np.random.default_rng(0).permutation(MODELS.height) / MODELS.height


def folds(split, *, models=MODELS, repeats=3, seed=0):
    return make_folds(split, models, repeats, seed, scores=SCORES)


@pytest.mark.parametrize("split", EVERY, ids=lambda one: one.name)
def test_no_model_is_on_both_sides_and_nothing_depends_on_more_than_the_seed(split):
    found = folds(split)
    for fold in found:
        assert np.intersect1d(fold.train, fold.test).size == 0
        assert np.unique(np.concatenate([fold.train, fold.test])).size == fold.train.size + fold.test.size
    again = folds(split, repeats=5)
    for one, other in zip(found, [fold for fold in again if fold.repeats[0] < 3], strict=True):
        np.testing.assert_array_equal(one.test, other.test)
        np.testing.assert_array_equal(one.train, other.train)
    served = [(fold.split, repeat, fold.fold) for fold in folds(split) for repeat in fold.repeats]
    assert len(served) == len(set(served))
    assert {repeat for _, repeat, _ in served} == {0, 1, 2}


@pytest.mark.parametrize(
    "split", [specs.KFold(4), specs.LeaveOneOut(), specs.ByGroup("org", k=3)], ids=lambda one: one.name
)
def test_folds_test_every_model_once_a_repeat(split):
    for repeat in range(3):
        tested = [fold.test for fold in folds(split) if repeat in fold.repeats]
        np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(41))


def test_folds_and_random_shares_are_of_one_size_and_training_sizes_grow():
    assert sorted(fold.test.size for fold in folds(specs.KFold(4), repeats=1)) == [10, 10, 10, 11]
    tests = [tuple(fold.test) for fold in [*folds(specs.RandomShare(0.25)), *folds(specs.RandomShare(0.25), seed=1)]]
    assert len(set(tests)) == 6
    assert {len(test) for test in tests} == {10}
    first, second = folds(specs.TrainingShare((10, 20)), repeats=1)
    assert (first.split, second.split) == ("training-share 10", "training-share 20")
    assert (first.train.size, second.train.size) == (10, 20)
    np.testing.assert_array_equal(first.test, second.test)
    assert set(first.train) < set(second.train)
    sizes = [fold.train.size for fold in folds(specs.TrainingShare(shares=(0.5, 1.0)), repeats=1)]
    assert sizes == [16, 31]


def test_the_newest_are_tested_and_no_date_is_on_both_sides():
    (fold,) = folds(specs.Ahead("date", 0.25))
    dates = MODELS["date"].to_numpy()
    assert dates[fold.train].max() < dates[fold.test].min()
    assert fold.test.size == pytest.approx(0.25 * 41, abs=2)
    (long,) = folds(specs.Ahead(test_share=0.75))  # in the column called 'date'
    assert long.test.size == pytest.approx(0.75 * 41, abs=2)
    (named,) = folds(specs.Ahead("", 0.75), models=MODELS.rename({"date": "release_date"}))  # the one that says so
    np.testing.assert_array_equal(named.test, long.test)
    (until,) = folds(specs.Ahead(until="2024-06-15"))
    assert dates[until.train].max() <= "2024-06-15" < dates[until.test].min()


def test_the_best_by_their_responses_are_tested_on_a_bank_of_worse_ones_without_their_siblings():
    siblings = np.arange(41)
    best, other = np.argsort(SCORES)[[40, 5]]
    siblings[other] = siblings[best]
    (fold,) = make_folds(specs.Beyond(), MODELS, 1, 0, siblings=siblings, scores=SCORES)
    assert fold.test.size == 10
    assert SCORES[fold.train].max() < SCORES[fold.test].min()
    assert sorted([*fold.train, *fold.test, other]) == list(range(41))
    unknown = np.where(np.arange(41) == best, np.nan, SCORES)
    (fold,) = make_folds(specs.Beyond(), MODELS, 1, 0, scores=unknown)
    assert best in fold.train
    with pytest.raises(DataError, match="'beyond' needs models whose overall scores are known"):
        make_folds(specs.Beyond(), MODELS, 1, 0)
    responses = make_responses(n_models=41)
    (fold,) = folds_of([specs.Beyond()], responses)
    means = responses.responses.mean(axis=1)
    assert set(fold.test) == set(np.argsort(means)[-10:])


@pytest.mark.parametrize(
    "dates",
    [
        pl.Series(["2024-02-10", "2023-12-31", "2024-01-05", "2023-01-01"]),
        pl.Series([20240210, 20231231, 20240105, 20230101]),
        pl.Series(["2024-02", "2023-12", "2024-01", "2023-01"]),
        pl.Series(["2024-02-10", "2023-12-31", "2024-01-05", "2023-01-01"]).str.to_date(),
        pl.Series(["2024-02-10T12:00:01", "2023-12-31 00:00", "2024-01-05", "2023-01-01"]),
    ],
    ids=["text", "whole numbers", "months", "dates", "times"],
)
def test_dates_are_read_however_they_are_written(dates):
    models = pl.DataFrame({"model_id": ["a", "b", "c", "d"], "date": dates})
    (fold,) = make_folds(specs.Ahead("date"), models, 1, 0)
    assert (fold.train.tolist(), fold.test.tolist()) == ([1, 2, 3], [0])


def test_groups_and_siblings_stay_whole_and_named_ones_are_tested():
    org = MODELS["org"].to_numpy()
    for split in (specs.ByGroup("org"), specs.ByGroup("org", k=3)):
        for fold in folds(split):
            assert not set(org[fold.train]) & set(org[fold.test])
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(12)], "org": ["a", "b", None] * 4})
    for fold in make_folds(specs.ByGroup("org", k=3), models, 2, 0):
        assert len({models["org"][int(row)] for row in fold.test}) == 1
    (fold,) = folds(specs.NamedGroup("is_odd", (True,)))
    assert fold.test.tolist() == list(range(1, 41, 2))
    (named,) = folds(NAMED)
    (matched,) = folds(specs.Matching("org", "(?i)^ORG-[13]$"))
    np.testing.assert_array_equal(matched.test, named.test)
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(6)], "note": ["code", None, "", None, "code", None]})
    (every,) = make_folds(specs.Matching("note", ".*o"), models, 1, 0)
    assert every.test.tolist() == [0, 4]
    models = make_prompt_responses().models
    templates, sizes = models["template"].to_numpy(), models["model_size"].to_numpy()
    for fold in make_folds(specs.ByGroup("template", k=6), models, 1, 0):
        assert len(set(templates[fold.test])) == 1
        assert set(sizes[fold.test]) == set(sizes)  # every model is there, with a template nobody has seen
        assert not set(templates[fold.test]) & set(templates[fold.train])
    (fold,) = make_folds(specs.NamedGroup("model_size", ("3B",)), models, 1, 0)
    assert set(sizes[fold.test]) == {"3B"}
    assert set(sizes[fold.train]) == {"1B", "2B"}
    models = pl.DataFrame({"model_id": [f"m{number}" for number in range(12)]})
    siblings = np.arange(12) % 6
    for fold in make_folds(specs.KFold(name="folds", k=4), models, 1, 0, siblings=siblings):
        assert not set(siblings[fold.train]) & set(siblings[fold.test])
        assert set(siblings[fold.train]) | set(siblings[fold.test]) == set(range(6))


def test_months_test_what_came_in_each_on_one_bank():
    """Dates are enumerated: the 14 or so models of each month, none before the last date of calibration."""
    found = folds(MONTHS)
    dates = MODELS["date"].str.to_date().to_list()
    windows = [("06-15", "07-15"), ("07-15", "08-15"), ("08-15", "12-15")]
    assert [fold.split for fold in found] == ["months 1", "months 2", "months 6"]
    for fold, (after, end) in zip(found, windows, strict=True):
        first, last = (datetime.date.fromisoformat(f"2024-{day}") for day in (after, end))
        assert [dates[row] for row in fold.test] == [day for day in dates if first < day <= last]
        assert {dates[row] <= datetime.date(2024, 6, 15) for row in fold.train} == {True}
        np.testing.assert_array_equal(fold.train, found[0].train)
    days = ["2024-01-31"] * 3 + ["2024-02-29", "2024-03-01", "2024-03-31"]
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(6)], "date": days})
    first, second = make_folds(specs.Ahead(until="2024-01-31", months=(1, 2)), models, 1, 0)
    assert (first.test.tolist(), second.test.tolist()) == ([3], [4, 5])


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (specs.Ahead("day"), "column 'day'.*'model_id', 'date', 'org'"),
        (specs.ByGroup("lab"), "column 'lab'"),
        (specs.NamedGroup("org", ("org-9",)), "got 'org-9' .str.; it has 'org-0'"),
        (
            specs.NamedGroup("org", tuple(f"org-{i}" for i in range(5))),
            "at least 3 models to calibrate on.*got 0 and 41",
        ),
        (specs.ByGroup("org", k=6), "at least 6 groups, got 5"),
        (specs.KFold(42), "of 42 folds needs as many models, got 41"),
        (specs.TrainingShare((10, 32)), "at most the 31 models that are not tested, got '32'"),
        (specs.Ahead(until="2024-11-30", months=(1, 2)), "'ahead 2' must leave.*and one to test, got 38 and 0"),
        (specs.Matching("org", "nobody"), "and one to test, got 41 and 0"),
        (specs.Ahead("org"), "got none for 41 of 41: 'model-0 .org-0.'"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_split_that_cannot_be_says_why(split, message):
    with pytest.raises(DataError, match=message):
        folds(split)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: specs.Ahead(until="June 2024"), "until must be a date such as 2024-01-31, got 'June 2024'"),
        (lambda: specs.Ahead(until="2024-06-15", months=(0, 1)), r"rising whole numbers from 1, got \(0, 1\)"),
        (lambda: specs.Ahead(until="2024-06-15", months=3), "rising whole numbers from 1, got 3"),
        (lambda: specs.Ahead(months=(1,)), "give until, the last date"),
        (lambda: specs.Matching("org", "("), "pattern must be a regular expression, got '\\('"),
    ],
)
def test_choices_of_a_split_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_models_without_a_date_and_groups_of_another_type_are_named():
    models = MODELS.with_columns(date=pl.when(pl.col("model_id") == "model-7").then(None).otherwise("date"))
    with pytest.raises(DataError, match=r"got none for 1 of 41: 'model-7 \(empty\)'"):
        folds(specs.Ahead("date"), models=models)
    with pytest.raises(DataError, match="at least two dates"):
        folds(specs.Ahead("date"), models=MODELS.with_columns(date=pl.lit("2024-01-01")))
    # A date written in TOML is no text, though both read alike in a message
    models = pl.DataFrame({"model_id": [f"m{k}" for k in range(4)], "day": ["2024-01-01"] * 2 + ["2024-02-01"] * 2})
    split = specs.NamedGroup("day", (datetime.date(2024, 1, 1),))
    with pytest.raises(DataError, match=r"'day' \(of type String\), got '2024-01-01' \(date\)"):
        make_folds(split, models, 1, 0)
