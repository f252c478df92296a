import json
import math

import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.collecting import rows_of_source
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.readers.alpaca_eval import alpaca_eval_published, is_alpaca_eval
from tests.readers.public.stores import write, write_alpaca_eval


def cells(rows):
    return {(model, item): value for model, item, value in rows.frame.rows()}


def test_the_response_is_the_preference_less_one_whatever_the_order(tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [1.25, 2.0, 1.0]})
    rows = rows_of_source("alpaca-eval", [tmp_path / "a"], ReadingSpec())
    assert rows.response.tolist() == [0.25, 1.0, 0.0]
    assert rows.items["subscenario"].to_list() == ["first", "second", "first"]
    assert rows.items["content_hash"].str.len_chars().unique().to_list() == [64]
    path = next((tmp_path / "a").rglob("annotations.json"))
    write(tmp_path / "b" / "x" / "annotations.json", json.loads(path.read_text())[::-1])
    again = rows_of_source("alpaca-eval", [tmp_path / "b"], ReadingSpec())
    assert cells(again) == cells(rows)


def test_ties_and_judges_without_an_answer(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [0, None, 1.5, math.nan]})
    rows = rows_of_source("alpaca-eval", [tmp_path], ReadingSpec())
    assert rows.frame["n_errors"].to_list() == [0, 1, 0, 1]
    assert rows.response[[0, 2]].tolist() == [0.5, 0.5]
    wrong = read_responses(tmp_path, spec=ReadingSpec(errors="wrong"))
    assert sorted(wrong.responses[0].tolist()) == [0.0, 0.0, 0.5, 0.5]


def test_one_judge_is_taken(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [2.0]})
    write_alpaca_eval(tmp_path, {"m": [1.0]}, judge="alpaca_eval_gpt4")
    with pytest.warns(DataWarning, match=r"taken by default: judge 'weighted_.*also 'alpaca_eval_gpt4'\)"):
        assert rows_of_source("alpaca-eval", [tmp_path], ReadingSpec()).response.tolist() == [1.0]
    other = ReadingSpec(metric=("alpaca_eval_gpt4",))
    assert rows_of_source("alpaca-eval", [tmp_path], other).response.tolist() == [0.0]
    with pytest.raises(DataError, match="no annotations are by the judge 'me'"):
        rows_of_source("alpaca-eval", [tmp_path], ReadingSpec(metric=("me",)))


def test_models_that_others_judged_are_named_and_two_judges_are_not_taken_for_one(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [2.0]})
    write_alpaca_eval(tmp_path, {"n": [1.0]}, judge="j1")
    with pytest.warns(DataWarning, match="1 model has no annotations by the judge .* left out: 'n'"):
        rows = rows_of_source("alpaca-eval", [tmp_path], ReadingSpec())
    assert rows.models["model_id"].to_list() == ["m"]
    write_alpaca_eval(tmp_path / "b", {"m": [2.0]}, judge="j1")
    write_alpaca_eval(tmp_path / "b", {"n": [2.0]}, judge="j2")
    with pytest.raises(DataError, match=r"judged by one judge .*'j1', 'j2'. To take one, add: metric=\('j1',\)"):
        rows_of_source("alpaca-eval", [tmp_path / "b"], ReadingSpec())


def test_what_cannot_be_is_refused(tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [2.5]})
    with pytest.raises(DataError, match=r"must lie in \[1, 2\].*2.5"):
        rows_of_source("alpaca-eval", [tmp_path / "a"], ReadingSpec())
    write_alpaca_eval(tmp_path / "b", {"m": [1.0]})
    write_alpaca_eval(tmp_path / "b", {"n": [1.0]}, baseline="other")
    with pytest.raises(DataError, match=r"one baseline .*'base', 'other'"):
        rows_of_source("alpaca-eval", [tmp_path / "b"], ReadingSpec())
    (tmp_path / "c").mkdir()
    with pytest.raises(DataError, match="holds no "):
        rows_of_source("alpaca-eval", [tmp_path / "c"], ReadingSpec())
    path = write(tmp_path / "d" / "annotations.json", [{"instruction": "x"}])
    with pytest.raises(DataError, match="an annotation must have"):
        rows_of_source("alpaca-eval", [path], ReadingSpec())
    assert not is_alpaca_eval({"instruction": "x"})


def test_win_rates_of_the_leaderboard(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [1.25]}, win_rates={"m": 25.0, "n": 50.0})
    assert list(alpaca_eval_published(tmp_path)) == [("m", "alpaca_eval", 0.25), ("n", "alpaca_eval", 0.5)]
