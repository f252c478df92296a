"""Results in the layouts of AlpacaEval, BFCL, EvalPlus and LiveCodeBench."""

import json
import math

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank_harnesses.readers.alpaca_eval import alpaca_eval_published, is_alpaca_eval
from itembank_harnesses.readers.bfcl import bfcl_published, is_bfcl
from itembank_harnesses.readers.evalplus import evalplus_published, is_evalplus
from itembank_harnesses.readers.live_code_bench import is_live_code_bench, live_code_bench_published
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench
from tests.readers.reading import read, refuses, rows_of, warns


def cells(rows):
    return {(model, item): value for model, item, value in rows.frame.rows()}


def test_alpaca_eval_the_response_is_the_preference_less_one_whatever_the_order(tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [1.25, 2.0, 1.0]})
    rows = rows_of("alpaca-eval", tmp_path / "a")
    assert rows.response.tolist() == [0.25, 1.0, 0.0]
    assert rows.items["subscenario"].to_list() == ["first", "second", "first"]
    assert rows.items["content_hash"].str.len_chars().unique().to_list() == [64]
    path = next((tmp_path / "a").rglob("annotations.json"))
    write(tmp_path / "b" / "x" / "annotations.json", json.loads(path.read_text())[::-1])
    assert cells(rows_of("alpaca-eval", tmp_path / "b")) == cells(rows)


def test_alpaca_eval_ties_win_rates_and_judges_without_an_answer(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [0, None, 1.5, math.nan]})
    rows = rows_of("alpaca-eval", tmp_path)
    assert (rows.frame["n_errors"].to_list(), rows.response[[0, 2]].tolist()) == ([0, 1, 0, 1], [0.5, 0.5])
    assert sorted(read(tmp_path, errors="wrong").responses[0].tolist()) == [0.0, 0.0, 0.5, 0.5]
    write_alpaca_eval(tmp_path / "b", {"m": [1.25]}, win_rates={"m": 25.0, "n": 50.0})
    assert list(alpaca_eval_published(tmp_path / "b")) == [("m", "alpaca_eval", 0.25), ("n", "alpaca_eval", 0.5)]


def test_alpaca_eval_one_judge_is_taken_and_two_are_not_taken_for_one(tmp_path):
    write_alpaca_eval(tmp_path, {"m": [2.0]})
    write_alpaca_eval(tmp_path, {"m": [1.0]}, judge="alpaca_eval_gpt4")
    with pytest.warns(DataWarning, match=r"taken by default: judge 'weighted_.*also 'alpaca_eval_gpt4'\)"):
        assert rows_of("alpaca-eval", tmp_path).response.tolist() == [1.0]
    assert rows_of("alpaca-eval", tmp_path, metric=("alpaca_eval_gpt4",)).response.tolist() == [0.0]
    refuses("no annotations are by the judge 'me'", rows_of, "alpaca-eval", tmp_path, metric=("me",))
    write_alpaca_eval(tmp_path / "b", {"m": [2.0]})
    write_alpaca_eval(tmp_path / "b", {"n": [1.0]}, judge="j1")
    rows = warns("1 model has no annotations by the judge .* left out: 'n'", rows_of, "alpaca-eval", tmp_path / "b")
    assert rows.models["model_id"].to_list() == ["m"]
    write_alpaca_eval(tmp_path / "b" / "b", {"m": [2.0]}, judge="j1")
    write_alpaca_eval(tmp_path / "b" / "b", {"n": [2.0]}, judge="j2")
    with pytest.raises(DataError, match=r"judged by one judge .*'j1', 'j2'. To take one, add: metric=\('j1',\)"):
        rows_of("alpaca-eval", tmp_path / "b" / "b")


def test_alpaca_eval_what_cannot_be_is_refused(tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [2.5]})
    refuses(r"must lie in \[1, 2\].*2.5", rows_of, "alpaca-eval", tmp_path / "a")
    write_alpaca_eval(tmp_path / "b", {"m": [1.0]})
    write_alpaca_eval(tmp_path / "b", {"n": [1.0]}, baseline="other")
    refuses(r"one baseline .*'base', 'other'", rows_of, "alpaca-eval", tmp_path / "b")
    (tmp_path / "c").mkdir()
    refuses("holds no ", rows_of, "alpaca-eval", tmp_path / "c")
    path = write(tmp_path / "d" / "annotations.json", [{"instruction": "x"}])
    refuses("an annotation must have", rows_of, "alpaca-eval", path)
    assert not is_alpaca_eval({"instruction": "x"})


@pytest.mark.parametrize("is_old", [True, False])
def test_bfcl_what_the_score_file_does_not_list_is_right(is_old, tmp_path):
    write_bfcl(tmp_path, {"a": [0, 3], "b": []}, is_old=is_old)
    rows = rows_of("bfcl", tmp_path)
    assert rows.items["item_id"].to_list() == [f"simple_{k}" for k in range(4)]
    assert rows.response.tolist() == [0, 1, 1, 0, 1, 1, 1, 1]
    assert rows.items["subscenario"].unique().to_list() == ["simple"]
    assert rows.frame["input_tokens"].to_list() == [10] * 8
    assert "output_tokens" not in rows.costs  # all zero: not counted there
    assert rows.frame["seconds"].to_list() == [0.5] * 8
    assert list(bfcl_published(tmp_path)) == [("a", "bfcl", 0.5), ("b", "bfcl", 1.0)]


def test_bfcl_tokens_are_added_up_and_an_id_goes_before_the_number(tmp_path):
    write_bfcl(tmp_path, {"a": []}, n_items=1)
    record = {"id": "simple_0", "input_token_count": [[10, 20], [5]], "output_token_count": [[1], [None]]}
    write(next(tmp_path.rglob("*_result.json")), [record], lines=True)
    rows = rows_of("bfcl", tmp_path)
    assert rows.frame.select(rows.costs).to_dict(as_series=False) == {"input_tokens": [35], "output_tokens": [1]}
    write_bfcl(tmp_path / "b", {"a": [1]}, is_old=True)
    score = next((tmp_path / "b").rglob("*_score.json"))
    score.write_text(score.read_text().replace('{"q": "..."}', '{"id": "simple_2"}'))
    assert rows_of("bfcl", tmp_path / "b").response.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("name", ["id", "idx"])
def test_bfcl_folders_with_an_ending_and_the_numbers_of_the_first_results(name, tmp_path):
    write_bfcl(tmp_path, {"a": [0, 3]}, is_old=True)
    write(next(tmp_path.rglob("*_result.json")), [{name: number, "result": "..."} for number in range(4)], lines=True)
    for folder in ("score", "result"):
        (tmp_path / folder).rename(tmp_path / f"{folder}_2")
    rows = rows_of("bfcl", tmp_path)
    assert rows.items["item_id"].to_list() == [f"simple_{k}" for k in range(4)]
    assert rows.response.tolist() == [0, 1, 1, 0]


def test_bfcl_files_that_do_not_belong_together_are_refused(tmp_path):
    write_bfcl(tmp_path, {"a": [0]})
    next(tmp_path.rglob("*_result.json")).unlink()
    refuses("needs its result file", rows_of, "bfcl", tmp_path)
    write_bfcl(tmp_path / "b", {"a": [0]})
    results = next((tmp_path / "b").rglob("*_result.json"))
    results.write_text("\n".join(results.read_text().splitlines()[1:]))
    refuses(r"of one run, got 3 of 4 right in the score file and 2 of 3 .*'simple_0'", rows_of, "bfcl", tmp_path / "b")
    path = write(tmp_path / "c" / "score" / "a" / "x_score.json", [{"accuracy": 1}], lines=True)
    refuses("must be a score file of BFCL", rows_of, "bfcl", path)
    (tmp_path / "c" / "nothing").mkdir()
    refuses("holds no ", rows_of, "bfcl", tmp_path / "c" / "nothing")
    moved = path.rename(tmp_path / "c" / "x_score.json")
    write(moved, [{"accuracy": 1.0, "correct_count": 1, "total_count": 1}], lines=True)
    refuses(r"must be in a folder score/<model>", rows_of, "bfcl", moved)
    assert not is_bfcl({"accuracy": 1})


def test_bfcl_random_failures_come_back(tmp_path, rng):
    truth = rng.integers(2, size=(3, 20)).astype(float)
    write_bfcl(tmp_path, {f"m{k}": np.flatnonzero(row == 0).tolist() for k, row in enumerate(truth)}, n_items=20)
    assert rows_of("bfcl", tmp_path).response.reshape(3, 20).tolist() == truth.tolist()


SAMPLES = {"HumanEval/0": [("pass", "pass"), ("pass", "fail")], "HumanEval/1": [("fail", "fail"), ("timeout", None)]}


def new_style(samples):
    return {
        task: [{"task_id": task, "solution": "...", "base_status": base, "plus_status": plus} for base, plus in some]
        for task, some in samples.items()
    }


def old_style(samples):
    return {
        task: {"nfiles": len(some), "base": [[one, []] for one, _ in some], "plus": [[one, []] for _, one in some]}
        for task, some in samples.items()
    }


TESTED = {"HumanEval/0": SAMPLES["HumanEval/0"], "HumanEval/1": [("fail", "fail"), ("timeout", "pass")]}


@pytest.mark.parametrize("style", [new_style, old_style])
@pytest.mark.parametrize(
    ("metric", "scenario", "n_correct"), [("plus", "humaneval+", [1, 0]), ("base", "humaneval", [2, 0])]
)
def test_evalplus_samples_that_pass_are_counted(style, metric, scenario, n_correct, tmp_path):
    write(tmp_path / "llm_vllm_temp_0.2_eval_results.json", {"date": "...", "hash": "...", "eval": style(TESTED)})
    rows = rows_of("evalplus", tmp_path, metric=(metric,))
    assert (rows.models["model_id"].to_list(), (rows.response * 2).tolist()) == (["llm_vllm_temp_0.2"], n_correct)
    assert (rows.frame["n_trials"].to_list(), rows.items["scenario"].unique().to_list()) == ([2, 2], [scenario])


def test_evalplus_base_tests_alone_and_others_are_refused(tmp_path):
    path = write(tmp_path / "m_eval_results.json", {"eval": new_style(SAMPLES)})
    refuses(r"'HumanEval/1' was tested with the base tests alone.*metric='base'", rows_of, "evalplus", path)
    content = old_style(TESTED)
    for task in content.values():
        task["plus"] = []
    rows = rows_of("evalplus", write(tmp_path / "model" / "eval_results.json", {"eval": content}), metric=("base",))
    assert rows.models["model_id"].to_list() == ["model"]
    path = write(tmp_path / "b" / "m_eval_results.json", {"eval": {}})
    refuses("must be results of EvalPlus", rows_of, "evalplus", path)
    (tmp_path / "b" / "none").mkdir()
    refuses("holds no ", rows_of, "evalplus", tmp_path / "b" / "none")
    refuses("one of plus, base, got 'acc'", rows_of, "evalplus", path, metric=("acc",))
    assert not is_evalplus({"eval": {"t": []}})


def test_evalplus_names_and_stated_rates(tmp_path):
    for model in ("a", "b"):
        write(tmp_path / model / "samples_eval_results.json", {"eval": new_style(TESTED)})
        write(tmp_path / model / "samples_v2.jsonl", {"task_id": "HumanEval/0", "solution": "..."})
    write(tmp_path / "c_eval_results_1.json", {"eval": new_style(TESTED)})
    responses = read(tmp_path)
    assert sorted(responses.model_ids) == ["a", "b", "c_eval_results_1"]
    assert responses.responses.tolist() == [[0.5, 0.0]] * 3
    content = {"eval": new_style(TESTED), "pass_at_k": {"base": {"pass@1": 0.5}, "plus": {"pass@1": 0.25}}}
    write(tmp_path / "b" / "m_eval_results.json", content)
    assert list(evalplus_published(tmp_path / "b")) == [("m", "humaneval+", 0.25)]
    assert list(evalplus_published(tmp_path / "b", "base")) == [("m", "humaneval", 0.5)]


def test_live_code_bench_samples_that_pass_are_counted(tmp_path):
    write_live_code_bench(tmp_path, {"llm": {"1_A": [True, False], "abc_b": [True, True]}}, stated=0.75)
    rows = rows_of("livecodebench", tmp_path)
    assert (rows.models["model_id"].to_list(), rows.items["item_id"].to_list()) == (["llm"], ["1_A", "abc_b"])
    assert (rows.response.tolist(), rows.frame["n_trials"].to_list()) == ([0.5, 1.0], [2, 2])
    assert rows.items.row(0, named=True) == {
        "item_id": "1_A", "scenario": "codegeneration", "subscenario": "easy", "contest_date": "2024-01-06T00:00:00",
        "difficulty": "easy", "platform": "p",
    }  # fmt: skip
    assert list(live_code_bench_published(tmp_path)) == [("llm", "codegeneration", 0.75)]


@pytest.mark.parametrize(("scenario", "key"), [("testoutputprediction", "test_id"), ("codeexecution", "id")])
def test_live_code_bench_tests_that_are_asked_for_one_by_one_are_items(scenario, key, tmp_path):
    records = [{"question_id": "q", key: k, "graded_list": [True]} for k in range(2)]
    path = write(tmp_path / "llm" / f"Scenario.{scenario}_1_0.0_eval_all.json", records)
    rows = rows_of("livecodebench", path)
    assert (rows.items["item_id"].to_list(), rows.items["scenario"].unique().to_list()) == (["q/0", "q/1"], [scenario])
    assert not list(live_code_bench_published(path))


def test_live_code_bench_averages_are_left_out_of_a_folder_and_refused_by_name(tmp_path):
    write_live_code_bench(tmp_path, {"llm": {"a": [True]}})
    averages = write(
        tmp_path / "other" / "Scenario.codegeneration_eval_all.json", {"model": "other", "pass_at_1": 100.0}
    )
    rows = warns("a file is left out: .*other.*must have question_id", rows_of, "livecodebench", tmp_path)
    assert rows.models["model_id"].to_list() == ["llm"]
    refuses("must have question_id and graded_list", rows_of, "livecodebench", averages)
    (tmp_path / "none").mkdir()
    refuses("holds no ", rows_of, "livecodebench", tmp_path / "none")
    assert not is_live_code_bench({"question_id": 1})


def test_evalplus_before_0_2_says_success_and_bigcodebench_has_one_status(tmp_path):
    """All samples were wrong, in silence."""
    old = old_style(
        {"HumanEval/0": [("success", "success"), ("success", "failed")], "HumanEval/1": [("timed out",) * 2]}
    )
    write(tmp_path / "a_eval_results.json", {"eval": old})
    assert rows_of("evalplus", tmp_path).response.tolist() == [0.5, 0.0]
    new = {f"BigCodeBench/{k}": [{"task_id": k, "status": one}] for k, one in enumerate(("pass", "fail", "timeout"))}
    path = write(tmp_path / "b" / "m_eval_results.json", {"date": "...", "eval": new})
    rows = rows_of("evalplus", path)
    assert (rows.response.tolist(), rows.items["scenario"].unique().to_list()) == ([1.0, 0.0, 0.0], ["bigcodebench"])


def test_lists_of_mmlu_pro_are_read_beside_its_summaries(tmp_path):
    """They were refused as files of BFCL, which end alike."""
    about = {"category": "law", "options": ["x", "y"], "model_outputs": "..."}
    for model, picked in (("m", "AB"), ("n", "A")):
        answers = [{"question_id": k, "answer": "A", "pred": one, **about} for k, one in enumerate([*picked, None])]
        write(tmp_path / model / "law_result.json", answers)
        write(tmp_path / model / "law_summary.json", {"total": {"acc": 0.5, "corr": 1, "wrong": 1}})
    matrix = read(tmp_path)
    assert (matrix.model_ids, matrix.items["subscenario"].unique().to_list()) == (["m", "n"], ["law"])
    np.testing.assert_array_equal(matrix.responses, [[1, 0, 0], [1, 0, np.nan]])
    assert read(write(tmp_path / "b" / "gpt.json", answers)).model_ids == ["gpt"]
