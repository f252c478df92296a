"""Matrices of responses and their tables; secrets in what is told of runs."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank.responses.labels import come_again, first_told, names_of, number_of_pair, numbered
from itembank.responses.model_features import model_dates, standardised
from itembank.responses.responses import (
    ResponseMatrix,
    check_complete,
    check_enough_models,
    check_models_and_items_have_responses,
)
from itembank.responses.secrets import without_secrets
from tests.readers.reading import refuses

NAN = np.nan


def test_values_outside_are_named_by_id_with_what_to_do():
    values = np.array([[0.0, 1.5], [NAN, -0.25], [1.0, 1.0]])
    with pytest.raises(DataError) as caught:
        ResponseMatrix.create(values, model_ids=["a", "b", "c"], item_ids=["x", "y"])
    assert str(caught.value) == (
        "response must lie in [0, 1], got 2 values outside for 2 of 3 models: 'a' item 'y' = 1.5, "
        "'b' item 'y' = -0.25. Rescale or drop them."
    )
    with pytest.raises(DataError, match=r"got 7 values outside .*: 'm' .*item-5' = inf and 2 more\. Rescale"):
        ResponseMatrix.create(np.full((1, 7), np.inf), model_ids=["m"])
    with pytest.raises(DataError, match=r"model_id must be unique.*item_id must be unique.*\[0, 1\]"):
        ResponseMatrix.create(np.full((2, 2), 9.0), model_ids=["a", "a"], item_ids=["x", "x"])


@pytest.mark.parametrize(("arguments", "message"), [
    ({"model_ids": ["a", "a"]}, "model_id must be unique, got 1 id more than once: 'a'"),
    ({"item_ids": ["x", "y", ""]}, "item_id must not be empty"),
    ({"model_ids": ["a"]}, r"responses must have shape \(n_models, n_items\) = \(1, 3\), got \(2, 3\)"),
    ({"n_trials": np.ones((2, 2), dtype=int)}, r"n_trials must have shape .* = \(2, 3\), got \(2, 2\)"),
    ({"costs": {"seconds": np.ones((3, 2))}}, r"seconds must have shape .* got \(3, 2\)"),
    ({"scenarios": ["one"]}, "scenarios must name one scenario an item: 1 for 3 items"),
    ({"scenarios": ["one", "one\0", "two"]}, "scenario must not end in the character NUL"),
    ({"item_ids": ["1", "2\0", "3"]}, "item_id must not end in the character NUL"),
    ({"n_trials": [[1, 2, 3], [1]]}, "n_trials must be an array of numbers"),
    ({"costs": {"seconds": [["a", "b", "c"]] * 2}}, "costs in seconds must be an array of numbers"),
    ({"costs": np.ones((2, 3))}, "costs must be arrays by their units"),
    ({"items": 5}, "the table of items must be one of polars or pandas"),
])  # fmt: skip
def test_tables_and_arrays_that_do_not_fit(arguments, message):
    refuses(message, ResponseMatrix.create, np.zeros((2, 3)), **arguments)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pl.Series])
def test_arrays_and_ids_may_be_lists_or_columns(kind):
    table = list if kind is pl.Series else kind
    trials = table([[2, 2, 2], [4, 4, 4]])
    made = ResponseMatrix.create(
        table([[0.5, 1.0, 0.0]] * 2), n_trials=trials, costs={"tokens": trials}, model_ids=kind(["a", "b"]),
        items={"item_id": kind(["x", "y", "z"])},
    )  # fmt: skip
    for one in (kind([1]), kind(["b"]), kind([False, True])):
        taken = made.take(models=one)
        assert (taken.model_ids, taken.n_trials.tolist(), taken.costs["tokens"].tolist()) == (
            ["b"],
            [[4, 4, 4]],
            [[4, 4, 4]],
        )
    for one in (kind([0.5]), kind([2]), "b", 1):
        refuses("models to take must be ids, whole numbers below 2, or 2 of true", made.take, models=one)
    refuses("be a list of ids, got 'ab'", ResponseMatrix.create, made.responses, model_ids="ab", error=ParameterError)


@pytest.mark.parametrize(("shape", "message"), [
    ((0, 3), "at least one model and one item"), ((3, 0), "at least one model and one item"),
    ((3,), r"two axes .* got shape \(3,\)"),
])  # fmt: skip
def test_nothing_at_all_and_one_axis_are_refused(shape, message):
    refuses(message, ResponseMatrix.create, np.zeros(shape))


def test_missing_cells_and_what_has_no_responses_are_named():
    check_complete(np.zeros((2, 2)), ["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"got 2 missing of 4: 'a' item 'y', 'b' item 'x'\. Run them"):
        check_complete(np.array([[0, NAN], [NAN, 1]]), ["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"got 8 missing of 8: .*'m' item '4' and 3 more"):
        check_complete(np.full((1, 8), NAN), ["m"], [str(k) for k in range(8)])
    values = np.array([[NAN, NAN, NAN], [0, NAN, 1]])
    with pytest.raises(DataError, match=r"every model .* none for 1 of 2 models: 'a'.*every item .* 1 of 3 items: 'y'"):
        check_models_and_items_have_responses(values, ["a", "b"], ["x", "y", "z"])
    check_enough_models(5, 5, "this")
    refuses("this needs at least 5 models, got 4", check_enough_models, 4, 5, "this")


def test_tables_keep_other_columns_and_counts_make_responses():
    matrix = ResponseMatrix.create(np.zeros((1, 2)), items=pl.DataFrame({"n_options": [4, 5], "item_id": ["x", "y"]}))
    assert matrix.items.columns == ["item_id", "scenario", "subscenario", "n_options"]
    assert matrix.items["scenario"].to_list() == ["all", "all"]
    of_pandas = pd.DataFrame({"item_id": ["x", "y"], "maker": ["m", None], "year": pd.array([None, 5], dtype="Int64")})
    rows = ResponseMatrix.create(np.zeros((1, 2)), items=of_pandas).items.rows()
    assert rows == [("x", "all", None, "m", None), ("y", "all", None, None, 5)]
    matrix = ResponseMatrix.from_counts(np.array([[3, 0], [2, 5]]), np.array([[4, 0], [2, 10]]), model_ids=["a", "b"])
    np.testing.assert_array_equal(matrix.responses, [[0.75, np.nan], [1.0, 0.5]])
    assert (matrix.n_trials.tolist(), matrix.model_ids) == ([[4, 0], [2, 10]], ["a", "b"])


@pytest.mark.parametrize(("n_correct", "n_trials", "message"), [
    ([[3, 2]], [[2, 2]], r"n_correct must be at most n_trials, got 1 cell above: 3 of 2 at \(0, 0\)"),
    ([[-1, 2]], [[2, 2]], "n_correct must be whole numbers of at least 0, got 1 other"),
    ([[0.5, 2]], [[2, 2]], "n_correct must be whole numbers of at least 0, got 1 other"),
    ([[1, 2]], [[2, np.nan]], "n_trials must be whole numbers of at least 0, got 1 other"),
    ([[1, 2]], [[2], [2]], r"must have one shape, got \(1, 2\) and \(2, 1\)"),
])  # fmt: skip
def test_counts_that_cannot_be_are_refused(n_correct, n_trials, message):
    refuses(message, ResponseMatrix.from_counts, np.array(n_correct), np.array(n_trials))


@pytest.mark.parametrize(("n_trials", "message"), [
    ([[0, 0]], "at least 1 where there is a response, got 1 cell with less: 'model-1' item 'item-1' = 0"),
    ([[2, -1]], "got 1 cell with less: 'model-1' item 'item-2' = -1"),
    ([[10**9, 0]], "must be below 1,000,000,000, got 1 cell with more: 'model-1' item 'item-1'"),
    ([[2.0, 0.0]], "n_trials must be whole numbers, got an array of float64"),
])  # fmt: skip
def test_trials_behind_responses_are_checked(n_trials, message):
    refuses(message, ResponseMatrix.create, np.array([[0.5, np.nan]]), n_trials=np.array(n_trials))


NAMES = ["b", None, "a", "b", "", "c", "a"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["", "a", "b", "c", "unused"])])
def test_names_are_numbered_as_they_first_appear(dtype):
    pl.Series(["z", "c", "y"], dtype=pl.Categorical)  # codes of Polars are in no order of ours
    column = pl.Series(NAMES, dtype=dtype)
    assert (names_of(column).to_list(), numbered(column).tolist()) == (["b", "a", "", "c"], [0, -1, 1, 0, 2, 3, 1])
    assert numbered(column).dtype == np.int32
    assert numbered(column, pl.Series(["x", "c", "", "a", "b"])).tolist() == [4, -1, 3, 4, 2, 1, 3]


@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_has_no_names(values):
    column = pl.Series(values, dtype=pl.String)
    assert (names_of(column).len(), numbered(column).tolist()) == (0, [-1] * len(values))


def test_numbers_of_pairs_and_first_names_of_groups():
    one, other = (np.array(index, dtype=np.int32) for index in ([99_999, 42_949], [99_999, 67_295]))
    assert number_of_pair(one, other, 100_000).tolist() == [9_999_999_999, 4_294_967_295]
    group, column = np.array([1, 0, 1, 1, 2]), pl.Series(["a", None, None, "b", "a"])
    names, differing = first_told(group, 4, column)
    assert (names.to_list(), differing.tolist()) == ([None, "a", "a", None], [3])


@pytest.mark.parametrize("n_numbers", [5, 60, 100_000])
def test_numbers_that_come_again_are_counted_among_those_marked(n_numbers):
    rng = np.random.default_rng(n_numbers)
    for share in (0.3, 1.0):
        number, among = rng.integers(n_numbers, size=60), rng.random(60) < share
        expected = [bool(m) and int(np.sum(number[among] == one)) > 1 for one, m in zip(number, among, strict=True)]
        assert come_again(number, n_numbers, among).tolist() == expected


def table(**columns):
    return pl.DataFrame(columns)


def test_numbers_are_standardised_by_their_logarithm_if_very_different():
    found = standardised(pl.Series([10.0, 20.0, 30.0, None]))
    np.testing.assert_allclose(found, [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0])
    np.testing.assert_allclose(standardised(pl.Series([1e9, 1e10, 1e11])), [-np.sqrt(1.5), 0.0, np.sqrt(1.5)])
    logs = [0.1, 1.0, 2.0, 2.9]  # logarithms already
    expected = (np.array(logs) - np.mean(logs)) / np.std(logs)
    np.testing.assert_allclose(standardised(pl.Series(logs)), expected)
    assert standardised(pl.Series(["a", "b", "c"])) is None
    for same in ([3.0, 3.0, None], [None, None]):
        assert not standardised(pl.Series(same, dtype=pl.Float64)).any()


@pytest.mark.parametrize("dates", [
    ["2024-01-01", "2024-01-11", "2024-01-21", None],
    ["2024-01-01T10:00", "2024-01-11T10:00", "2024-01-21T10:00", None],
    [20240101, 20240111, 20240121, None],
    [dt.date(2024, 1, 1), dt.date(2024, 1, 11), dt.date(2024, 1, 21), None],
])  # fmt: skip
def test_dates_count_in_days_however_they_are_written(dates):
    np.testing.assert_allclose(standardised(pl.Series(dates)), [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0])


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


def test_models_and_items_are_taken_by_place_or_by_id():
    matrix = ResponseMatrix.create([[1, 0, 1], [0, 0, 1]], model_ids=["a", "b"], item_ids=["x", "y", "z"])
    by_id = matrix.take(models=["b"], items=["z", "x"])
    assert (by_id.model_ids, by_id.item_ids, by_id.responses.tolist()) == (["b"], ["z", "x"], [[1.0, 0.0]])
    np.testing.assert_array_equal(by_id.responses, matrix.take(models=np.array([1]), items=np.array([2, 0])).responses)
    refuses("1 of 1 are not: 'c'", matrix.take, models=["c"])


SECRET = "Zx9SECRET"  # noqa: S105 (made up)


@pytest.mark.parametrize(("arguments", "expected"), [
    ("pretrained=org/m,dtype=bfloat16", "pretrained=org/m,dtype=bfloat16"),
    (f"pretrained=org/m,token={SECRET},revision=main", "pretrained=org/m,token=***,revision=main"),
    (f"model=m,api_key={SECRET}", "model=m,api_key=***"),
    (f"model=m,OPENAI_API_KEY={SECRET}", "model=m,OPENAI_API_KEY=***"),
    (f"model=m,apiKey={SECRET},hf_token={SECRET}", "model=m,apiKey=***,hf_token=***"),
    (f"model=m,aws_secret_access_key={SECRET},access_key_id={SECRET}", None),
    (f"model=m,api_key_id={SECRET},password=two words {SECRET}", "model=m,api_key_id=***,password=***"),
    (f"model=m,auth={SECRET};more{SECRET}", "model=m,auth=***"),
    ("token=True,use_auth_token=False,api_key=None", "token=True,use_auth_token=False,api_key=None"),
    ("tokenizer=org/t,max_new_tokens=10,add_bos_token=True,think_end_token=</x>", None),
    ("keyed=1,monkey=2,kv_cache_dtype=fp8", "keyed=1,monkey=2,kv_cache_dtype=fp8"),
    (f"base_url=https://alice:{SECRET}@host:80/v1,model=m", "base_url=https://***@host:80/v1,model=m"),
    (f"base_url=https://host/v1?api_key={SECRET}&x=1,model=m", "base_url=https://host/v1?api_key=***&x=1,model=m"),
    (f'header={{"Authorization": "Bearer {SECRET}", "X": "1"}}', 'header={"Authorization": ***, "X": "1"}'),
    (f"header={{'X-Api-Key': '{SECRET}'}}", "header={'X-Api-Key': ***}"),
    (f'{{\\"api_key\\": \\"{SECRET}\\"}}', None), (f"header=Bearer {SECRET}", "header=Bearer ***"),
    (f"model=hf_{SECRET * 4},other=sk-proj-{SECRET * 4}", "model=***,other=***"),
    ({"model": "m", "api_key": SECRET, "n": 3}, "model=m,api_key=***,n=3"),
    ({"header": {"Authorization": f"Bearer, {SECRET}"}, "more": [{"password": [SECRET]}]}, None),
    ({"token": None, "trust_remote_code": True}, "token=None,trust_remote_code=True"),
    ("", ""),
])  # fmt: skip
def test_secrets_are_hidden_and_nothing_else(arguments, expected):
    found = without_secrets(arguments)
    assert SECRET not in found
    if expected is not None:
        assert found == expected
    elif not isinstance(arguments, dict) and SECRET not in arguments:
        assert found == arguments
    assert without_secrets(found) == found


@pytest.mark.parametrize(("text", "expected"), [
    ("pretrained=/home/alice/m/ckpt-3,dtype=float", "pretrained=~/m/ckpt-3,dtype=float"),
    ("pretrained=/Users/alice/m", "pretrained=~/m"),
    (r"pretrained=C:\Users\alice\m", r"pretrained=~\m"),
    ("pretrained=/mnt/nfs/home/alice/m,peft=/home/alice", "pretrained=~/m,peft=~"),
    ("pretrained=/root/m", "pretrained=~/m"), ("hf//home/alice/m", "hf/~/m"),
    ("path=file:///home/alice/m", "path=file://~/m"),
    ("{'path': '/home/alice/m', 'n': 1}", "{'path': '~/m', 'n': 1}"),
    ("base_url=https://host/home/page", "base_url=https://host/home/page"),
    ("base_url=http://host:80/users/page", "base_url=http://host:80/users/page"),
    ("pretrained=org/home/x,other=models/root/y", "pretrained=org/home/x,other=models/root/y"),
    ("pretrained=/data/models/m", "pretrained=/data/models/m"),
])  # fmt: skip
def test_home_folders_become_a_tilde(text, expected):
    assert without_secrets(text) == expected


def test_long_text_of_strangers_takes_no_longer_than_its_length():
    for text in ("a=" * 200_000, "a" * 400_000, "token=" * 100_000, "/home" * 100_000, '"' * 300_000, " " * 300_000):
        assert without_secrets(text) is not None
