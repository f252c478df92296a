"""Logs of lm-evaluation-harness: metrics and filters; real logs tell their averages."""

import json
import re

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.prompts import hash_numbers, hash_texts
from tests.readers.logs import DATE, answers, read_lm_eval, sample, write_run
from tests.readers.reading import read, refuses
from tests.readers.reading import read as read_file


def test_task_and_document_make_the_item_and_the_run_tells_of_the_model(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0), "mmlu_law": answers(1, 1, 0)})
    write_run(tmp_path, "org/b", {"arc": answers(0, 0)})
    matrix = read_responses(tmp_path)
    assert matrix.model_ids == ["org/a", "org/b"]
    assert matrix.item_ids == ["arc/0", "arc/1", "mmlu_law/0", "mmlu_law/1", "mmlu_law/2"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, 1, 1, 0], [0, 0, np.nan, np.nan, np.nan]])
    first = matrix.items.row(0, named=True)
    assert first == {
        "item_id": "arc/0", "scenario": "arc", "subscenario": None, "task": "arc", "doc_id": 0,
        "content_hash": "hash of 0", "metric": "acc", "filter": "none",
        "prompt_hash": hash_texts(hash_numbers(["p"]))[0], "prompt_settings": '{"version": "1"}',
    }  # fmt: skip
    assert matrix.models.select(
        "model_id", "n_items_run", "n_items_full", "is_partial", "run_date", "model_args"
    ).rows() == [("org/a", 5, 5, False, DATE, "pretrained=org/a"), ("org/b", 2, 2, False, DATE, "pretrained=org/b")]


@pytest.mark.parametrize("given", ["folder", "files", "parent", "array"])
def test_folders_files_and_arrays_are_read_alike(tmp_path, given):
    folder = write_run(tmp_path / "deep" / "er", "org/a", {"arc": answers(1, 0, 0.5)})
    paths = {"folder": folder, "parent": tmp_path, "files": sorted(folder.glob("samples_*"))}
    if given == "array":  # releases of 2024 wrote .json
        path = paths["files"][0].rename(paths["files"][0].with_suffix(".json"))
        path.write_text(json.dumps([json.loads(line) for line in path.read_text().splitlines()], indent=1))
    np.testing.assert_array_equal(read_responses(paths.get(given, tmp_path)).responses, [[1, 0, 0.5]])


def test_logs_of_the_first_releases_are_read(tmp_path):
    """Until 0.4.2: results.json, and <arguments of the model>_<task>.jsonl with one list."""
    folder = write_run(tmp_path, "org/a", {"arc": answers(1, 0), "arc_easy": answers(1, 1)})
    next(folder.glob("results_*")).rename(folder / "results.json")
    for task in ("arc", "arc_easy"):
        path = folder / f"samples_{task}_{DATE}.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.rename(folder / f"pretrained__org__a_{task}.jsonl").write_text(json.dumps(rows, indent=2))
    for given in (tmp_path, sorted(folder.iterdir())):
        matrix = read_responses(given)
        assert (matrix.model_ids, matrix.item_ids) == (["org/a"], ["arc/0", "arc/1", "arc_easy/0", "arc_easy/1"])
        np.testing.assert_array_equal(matrix.responses, [[1, 0, 1, 1]])


# metrics


def test_metrics_are_taken_chosen_and_averaged(tmp_path):
    rows = [sample(k, f1=0.25 * k, bleu=40.0, words=["a"], brier=0.3, pairs=[0.5, 1]) for k in range(3)]
    write_run(tmp_path, "org/a", {"qa": rows}, lower=["brier"])
    matrix = read_responses(tmp_path)
    assert (matrix.responses.tolist(), matrix.items["metric"].to_list()) == ([[0, 0.25, 0.5]], ["f1"] * 3)
    write_run(
        tmp_path / "b",
        "org/a",
        {"arc": [sample(0, acc_norm=0.0, acc=1.0)], "gsm8k": [sample(0, f1=0.0, exact_match=1.0)]},
    )
    with pytest.warns(DataWarning, match=r"'acc' of task 'arc' \(it also has 'acc_norm'\), metric 'exact_match'"):
        np.testing.assert_array_equal(read_responses(tmp_path / "b").responses, [[1, 1]])
    write_run(tmp_path / "c", "org/a", {"mt": [sample(0, chrf=60.0), sample(1, chrf=25.0)]})
    np.testing.assert_array_equal(read_file(tmp_path / "c", max_response=100.0).responses, [[0.6, 0.25]])
    rows = [sample(k, metrics=False, acc=float(k)) for k in range(2)]
    write_run(tmp_path / "d", "org/a", {"arc": rows})
    np.testing.assert_array_equal(read_responses(tmp_path / "d").responses, [[0, 1]])
    write_run(tmp_path / "e", "org/a", {"arc": [sample(0, acc=1.0, acc_norm=1.0)]})
    write_run(tmp_path / "e", "org/b", {"arc": [sample(0, acc_norm=1.0)]})
    refuses(r"task 'arc': metric 'acc' is absent from 1 run: .*__b", read_lm_eval, tmp_path / "e", metric="acc")
    assert read_lm_eval(tmp_path / "e").items["metric"].to_list() == ["acc_norm"]  # the only one all runs have
    rows = [sample(0, strict=[True, False, True, True]), sample(1, strict=[False]), sample(2, strict=[])]
    write_run(tmp_path / "f", "org/a", {"ifeval": rows})
    with pytest.warns(DataWarning, match="1 of 'org/a' .1 without a response"):
        matrix = read_lm_eval(tmp_path / "f", metric="strict", spec=ReadingSpec(repeats="mean"))
    np.testing.assert_array_equal(matrix.responses, [[0.75, 0, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 1, 0]])


def test_a_chosen_metric_may_be_an_order_of_preference_or_for_some_tasks(tmp_path):
    tasks = {
        "arc": [sample(0, acc=1.0, acc_norm=0.25)],
        "mmlu_law": [sample(0, acc=0.5, acc_norm=0.0)],
        "gsm8k": [sample(0, exact_match=0.75)],
    }
    write_run(tmp_path, "org/a", tasks)

    def read(*metric):
        matrix = read_lm_eval(tmp_path, metric=metric)
        return dict(zip(matrix.items["task"], matrix.responses[0], strict=True))

    assert read("acc_norm", "exact_match") == {"arc": 0.25, "gsm8k": 0.75, "mmlu_law": 0.0}
    assert read("acc_norm", "exact_match", "mmlu_*=acc") == {"arc": 0.25, "gsm8k": 0.75, "mmlu_law": 0.5}
    assert read("arc=acc_norm", "acc", "exact_match") == {"arc": 0.25, "gsm8k": 0.75, "mmlu_law": 0.5}
    refuses("unknown metric 'acc_norm' for task 'gsm8k': it has 'exact_match'", read, "acc_norm")


@pytest.mark.parametrize(("values", "metric", "message"), [
    ({"bleu": 40.0, "chrf": 60.0}, (), "no metric that can be a response: metric 'bleu' must lie in .* from 40 to 40"),
    ({"bleu": 60.5}, ("bleu",), r"from 60.5 to 60.5. .* are percentages, add: tasks=\('qa',\), max_response=100"),
    ({"f1": 0.4, "rouge": 0.5}, (),
        r"several metrics: 'f1', 'rouge'. Choose one.\nTo read them, add: .*metric=\('qa=f1',\)"),
    ({"acc": [1, 0]}, (), "metric 'acc' holds lists of numbers; they are counted .* only when asked for"),
    ({"acc": [[1], "x"]}, ("acc",), "metric 'acc' holds list, not numbers"),
    ({"acc": "yes"}, ("acc",), "metric 'acc' holds str, not numbers"),
    ({"acc": None}, ("acc",), "metric 'acc' holds nothing, not numbers"),
    ({"acc": float("nan")}, ("acc",), "metric 'acc' has no values"),
    ({"brier": 0.3}, ("brier",), "'brier' is better when lower"),
    ({"acc": 1.0}, ("accuracy",), "unknown metric 'accuracy' for task 'qa': it has 'acc'"),
    ({}, (), "task 'qa' has no metric that can be a response: it logs none"),
])  # fmt: skip
def test_metrics_that_cannot_be_the_response(tmp_path, values, metric, message):
    write_run(tmp_path, "org/a", {"qa": [sample(0, **values)]}, lower=["brier"])
    refuses(message, read_lm_eval, tmp_path, metric=metric)


# filters


def two_filters(named=True):
    rows = []
    for name, values in (("strict-match", (0, 0)), ("flexible-extract", (1, 0))):
        for number, value in enumerate(values):
            rows.append(sample(number, filter_name=name, metrics=None if named else False, exact_match=float(value)))
    return rows


def test_filters_are_taken_named_or_unknown(tmp_path):
    write_run(tmp_path, "org/a", {"gsm8k": two_filters()})
    with pytest.warns(DataWarning, match=r"filter 'strict-match' of task 'gsm8k' \(it also has 'flexible-extract'\)"):
        matrix = read_responses(tmp_path)
    np.testing.assert_array_equal(matrix.responses, [[0, 0]])
    matrix = read_responses(tmp_path, filter_name="flexible-extract")
    assert (matrix.responses.tolist(), matrix.items["filter"].to_list()) == ([[1, 0]], ["flexible-extract"] * 2)
    matrix = read_responses(tmp_path, filter_name=["other=x", "gsm*=flexible-extract", "strict-match"])
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    # By metric and filter, of all tasks or of some, before other filters
    write_run(tmp_path / "b", "org/a", {"gsm8k": two_filters()})
    for name in ("exact_match,flexible-extract", "gsm*=exact_match,flexible-extract"):
        matrix = read_responses(tmp_path / "b", metric=["acc,none", name], filter_name="strict-match")
        assert (matrix.responses.tolist(), matrix.items["metric"].to_list()) == ([[1, 0]], ["exact_match"] * 2)
    with pytest.raises(DataError, match="unknown filter 'x' for task 'gsm8k': it has 'strict-match', 'flexible-ext"):
        read_responses(tmp_path / "b", metric="exact_match,x")
    write_run(tmp_path / "b", "org/a", {"gsm8k": two_filters(named=False)})
    refuses(r"task 'gsm8k' has several filters: 'unnamed-1', 'unnamed-2'. Choose one", read_responses, tmp_path / "b")
    np.testing.assert_array_equal(read_responses(tmp_path / "b", filter_name="unnamed-2").responses, [[1, 0]])
    write_run(
        tmp_path / "b", "org/a", {"gsm8k": two_filters(named=False)}, filters=["strict-match", "flexible-extract"]
    )
    np.testing.assert_array_equal(read_responses(tmp_path / "b", filter_name="flexible-extract").responses, [[1, 0]])
    rows = [sample(0, filter_name=name, exact_match=1.0) for name in ("maj@8", "maj@64")]
    write_run(tmp_path / "f", "org/a", {"gsm8k": rows})
    refuses(
        r"filters: 'maj@8', 'maj@64'. Choose one.\n.*filter_name=\('gsm8k=maj@8',\)", read_responses, tmp_path / "f"
    )
    refuses("'strict' for task 'gsm8k': it has 'maj@8', 'maj@64'", read_responses, tmp_path / "f", filter_name="strict")
    write_run(tmp_path / "f", "org/b", {"gsm8k": rows[:1]})
    refuses(r"have the filter 'maj@64', got 1 without: .*__b", read_responses, tmp_path / "f", filter_name="maj@64")


def reported(path, key):
    results = json.loads(next(path.glob("results_*.json")).read_text())["results"]
    return {task: value[key] for task, value in results.items() if key in value}


def real(shared_dir, name):
    return shared_dir / "logs" / "lm_eval" / name


@pytest.mark.parametrize(("name", "metric", "key"), [
    ("outputs__qwen3-8b__negotiationtom__Qwen__Qwen3-8B", ("acc", "exact_match"), "acc,none"),
    ("outputs__qwen3-8b__negotiationtom__Qwen__Qwen3-8B", ("acc", "exact_match"), "exact_match,none"),
    ("results__asdiv__meta-llama__Meta-Llama-3-8B-Instruct", (), "acc,none"),
    ("test_results__microsoft__Phi-3.5-mini-instruct", ("bleu_score",), "bleu_score,none"),
    ("test_results__microsoft__Phi-3.5-mini-instruct", ("comet_score",), "comet_score,none"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_means_of_real_logs_are_those_the_harness_reports(shared_dir, name, metric, key):
    folder = real(shared_dir, name)
    matrix = read_lm_eval(folder, metric=metric)
    expected = reported(folder, key)
    assert expected
    for task, value in expected.items():
        if task in matrix.items["scenario"].to_list():
            inside = (matrix.items["scenario"] == task).to_numpy()
            assert matrix.responses[0, inside].mean() == pytest.approx(value, abs=1e-12)
    assert len(set(matrix.items["content_hash"])) == matrix.n_items


@pytest.mark.parametrize(("name", "message"), [
    ("old_format_2023", "12b_step143000.json: is a results file of lm_eval, without samples"),
    ("results-0.4.8__qwen__qwen2.5-7B", "holds results of lm_eval without samples"),
    ("test_results__microsoft__Phi-3.5-mini-instruct", "several metrics: 'bleu_score', 'bleurt_score', 'comet_score'"),
])  # fmt: skip
def test_real_logs_that_cannot_be_read_as_they_are(shared_dir, name, message):
    refuses(message, read, real(shared_dir, name))


def test_real_logs_tell_the_remedy_and_what_is_partial(shared_dir):
    folder = real(shared_dir, "test_results__microsoft__Phi-3.5-mini-instruct")
    with pytest.raises(
        DataError, match=r"'chrf_score' must lie .* from 58.2087 to 73.4734. .* tasks=.*, max_response=100"
    ):
        read_lm_eval(folder, metric="chrf_score")
    scaled = read_lm_eval(folder, metric="chrf_score", spec=ReadingSpec(max_response=100.0))
    assert 100 * scaled.responses.mean() == pytest.approx(
        reported(folder, "chrf_score,none")["en_it_public"], abs=1e-10
    )
    folder = real(shared_dir, "results__asdiv__meta-llama__Meta-Llama-3-8B-Instruct")
    with pytest.warns(DataWarning) as caught:
        matrix = read(folder)
    texts = " ".join(str(warning.message) for warning in caught)
    assert re.search(r"'meta-llama/Meta-Llama-3-8B-Instruct' \(50 of 2305 items\)", texts)
    assert "1 run has no samples and is left out: 'results_2024-08-21T04-27-29.701325.json'" in texts
    assert matrix.models["is_partial"].to_list() == [True]
    assert matrix.model_ids == ["meta-llama/Meta-Llama-3-8B-Instruct"]
