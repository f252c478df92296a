import json
import re
import warnings

import numpy as np
import pytest

from itembank.data.readers.read import read_lm_eval, read_responses
from itembank.data.readers.specs import ReadingSpec
from itembank.data.response_files import write_responses
from itembank.errors import DataError, DataWarning
from tests.data.readers.logs import DATE, sample, write_run

LATER = "2025-04-01T10-00-00.000001"


def answers(*values, metric="acc", **more):
    return [sample(number, **{metric: float(value)}, **more) for number, value in enumerate(values)]


def test_task_and_document_make_the_item_and_the_run_tells_of_the_model(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0), "mmlu_law": answers(1, 1, 0)})
    write_run(tmp_path, "org/b", {"arc": answers(0, 0)})
    matrix = read_responses(tmp_path)
    assert matrix.model_ids == ["org/a", "org/b"]
    assert matrix.item_ids == ["arc/0", "arc/1", "mmlu_law/0", "mmlu_law/1", "mmlu_law/2"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, 1, 1, 0], [0, 0, np.nan, np.nan, np.nan]])
    first = matrix.items.row(0, named=True)
    assert first == {
        "item_id": "arc/0",
        "scenario": "arc",
        "subscenario": None,
        "task": "arc",
        "doc_id": 0,
        "content_hash": "hash of 0",
        "metric": "acc",
        "filter": "none",
    }
    assert matrix.models.select(
        "model_id", "n_items_run", "n_items_full", "is_partial", "run_date", "model_args"
    ).rows() == [
        ("org/a", 5, 5, False, DATE, "pretrained=org/a"),
        ("org/b", 2, 2, False, DATE, "pretrained=org/b"),
    ]


@pytest.mark.parametrize("given", ["folder", "files", "parent", "array"])
def test_folders_files_and_arrays_are_read_alike(tmp_path, given):
    folder = write_run(tmp_path / "deep" / "er", "org/a", {"arc": answers(1, 0, 0.5)})
    paths = {"folder": folder, "parent": tmp_path, "files": sorted(folder.glob("samples_*"))}
    if given == "array":  # releases of 2024 wrote .json
        path = paths["files"][0].rename(paths["files"][0].with_suffix(".json"))
        path.write_text(json.dumps([json.loads(line) for line in path.read_text().splitlines()], indent=1))
    np.testing.assert_array_equal(read_responses(paths.get(given, tmp_path)).responses, [[1, 0, 0.5]])


# metrics


def test_one_metric_that_can_be_a_response_is_taken_without_a_word(tmp_path):
    rows = [sample(k, f1=0.25 * k, bleu=40.0, words=["a"], brier=0.3, pairs=[0.5, 1]) for k in range(3)]
    write_run(tmp_path, "org/a", {"qa": rows}, lower=["brier"])
    matrix = read_responses(tmp_path)
    np.testing.assert_array_equal(matrix.responses, [[0, 0.25, 0.5]])
    assert matrix.items["metric"].to_list() == ["f1"] * 3


def test_of_several_acc_or_exact_match_is_taken_with_a_warning(tmp_path):
    write_run(
        tmp_path,
        "org/a",
        {"arc": [sample(0, acc_norm=0.0, acc=1.0)], "gsm8k": [sample(0, f1=0.0, exact_match=1.0)]},
    )
    with pytest.warns(
        DataWarning, match=r"'acc' of task 'arc' \(it also has 'acc_norm'\), metric 'exact_match' of task"
    ):
        np.testing.assert_array_equal(read_responses(tmp_path).responses, [[1, 1]])


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
    with pytest.raises(DataError, match="unknown metric 'acc_norm' for task 'gsm8k': it has 'exact_match'"):
        read("acc_norm")


@pytest.mark.parametrize(
    ("values", "metric", "message"),
    [
        (
            {"bleu": 40.0, "chrf": 60.0},
            (),
            "no metric that can be a response: metric 'bleu' must lie in .* from 40 to 40",
        ),
        ({"bleu": 40.0}, ("bleu",), "rescale it with max_response=100 if"),
        (
            {"f1": 0.4, "rouge": 0.5},
            (),
            r"several metrics: 'f1', 'rouge'. Choose one.\nTo read them, add: .*metric=\('qa=f1',\)",
        ),
        ({"acc": [1, 0]}, (), "metric 'acc' holds lists of numbers; they are counted .* only when asked for"),
        ({"acc": [[1], "x"]}, ("acc",), "metric 'acc' holds list, not numbers"),
        ({"acc": "yes"}, ("acc",), "metric 'acc' holds str, not numbers"),
        ({"acc": None}, ("acc",), "metric 'acc' holds nothing, not numbers"),
        ({"acc": float("nan")}, ("acc",), "metric 'acc' has no values"),
        ({"brier": 0.3}, ("brier",), "'brier' is better when lower"),
        ({"acc": 1.0}, ("accuracy",), "unknown metric 'accuracy' for task 'qa': it has 'acc'"),
        ({}, (), "task 'qa' has no metric that can be a response: it logs none"),
    ],
)
def test_metrics_that_cannot_be_the_response(tmp_path, values, metric, message):
    write_run(tmp_path, "org/a", {"qa": [sample(0, **values)]}, lower=["brier"])
    with pytest.raises(DataError, match=message):
        read_lm_eval(tmp_path, metric=metric)


def test_a_metric_that_one_run_lacks_is_refused(tmp_path):
    write_run(tmp_path, "org/a", {"arc": [sample(0, acc=1.0, acc_norm=1.0)]})
    write_run(tmp_path, "org/b", {"arc": [sample(0, acc_norm=1.0)]})
    with pytest.raises(DataError, match=r"task 'arc': metric 'acc' is absent from 1 runs: .*org__b"):
        read_lm_eval(tmp_path, metric="acc")
    assert read_lm_eval(tmp_path).items["metric"].to_list() == ["acc_norm"]  # the only one all runs have


def test_a_metric_is_rescaled_on_request(tmp_path):
    write_run(tmp_path, "org/a", {"mt": [sample(0, chrf=60.0), sample(1, chrf=25.0)]})
    matrix = read_responses(tmp_path, spec=ReadingSpec(max_response=100.0))
    np.testing.assert_array_equal(matrix.responses, [[0.6, 0.25]])


def test_lists_are_averaged_on_request_and_counted(tmp_path):
    rows = [sample(0, strict=[True, False, True, True]), sample(1, strict=[False]), sample(2, strict=[])]
    write_run(tmp_path, "org/a", {"ifeval": rows})
    matrix = read_lm_eval(tmp_path, metric="strict", spec=ReadingSpec(repeats="mean", empty="keep"))
    np.testing.assert_array_equal(matrix.responses, [[0.75, 0, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 1, 0]])


def test_samples_that_do_not_name_their_metrics(tmp_path):
    rows = [sample(k, metrics=False, acc=float(k)) for k in range(2)]
    write_run(tmp_path, "org/a", {"arc": rows})
    np.testing.assert_array_equal(read_responses(tmp_path).responses, [[0, 1]])


# filters


def two_filters(named=True):
    rows = []
    for name, values in (("strict-match", (0, 0)), ("flexible-extract", (1, 0))):
        for number, value in enumerate(values):
            rows.append(sample(number, filter_name=name, metrics=None if named else False, exact_match=float(value)))
    return rows


def test_one_filter_is_taken_and_no_item_counts_twice(tmp_path):
    write_run(tmp_path, "org/a", {"gsm8k": two_filters()})
    with pytest.warns(DataWarning, match=r"filter 'strict-match' of task 'gsm8k' \(it also has 'flexible-extract'\)"):
        matrix = read_responses(tmp_path)
    np.testing.assert_array_equal(matrix.responses, [[0, 0]])
    matrix = read_responses(tmp_path, filter_name="flexible-extract")
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    assert matrix.items["filter"].to_list() == ["flexible-extract"] * 2
    matrix = read_responses(tmp_path, filter_name=["other=x", "gsm*=flexible-extract", "strict-match"])
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])


def test_filters_without_names_are_those_of_the_configuration_in_order(tmp_path):
    write_run(tmp_path, "org/a", {"gsm8k": two_filters(named=False)}, filters=["strict-match", "flexible-extract"])
    np.testing.assert_array_equal(read_responses(tmp_path, filter_name="flexible-extract").responses, [[1, 0]])


def test_filters_nobody_names_are_numbered(tmp_path):
    write_run(tmp_path, "org/a", {"gsm8k": two_filters(named=False)})
    with pytest.raises(DataError, match=r"task 'gsm8k' has several filters: 'unnamed-1', 'unnamed-2'. Choose one"):
        read_responses(tmp_path)
    np.testing.assert_array_equal(read_responses(tmp_path, filter_name="unnamed-2").responses, [[1, 0]])


def test_unknown_and_unclear_filters(tmp_path):
    rows = [sample(0, filter_name=name, exact_match=1.0) for name in ("maj@8", "maj@64")]
    write_run(tmp_path, "org/a", {"gsm8k": rows})
    with pytest.raises(
        DataError, match=r"has several filters: 'maj@8', 'maj@64'. Choose one.\n.*filter_name=\('gsm8k=maj@8',\)"
    ):
        read_responses(tmp_path)
    with pytest.raises(DataError, match="unknown filter 'strict' for task 'gsm8k': it has 'maj@8', 'maj@64'"):
        read_responses(tmp_path, filter_name="strict")
    write_run(tmp_path, "org/b", {"gsm8k": rows[:1]})
    with pytest.raises(DataError, match=r"every run must have the filter 'maj@64', got 1 without: .*org__b"):
        read_responses(tmp_path, filter_name="maj@64")


# content


def test_items_whose_content_changed_are_refused_unless_told_otherwise(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)})
    write_run(tmp_path, "org/b", {"arc": [sample(0, acc=1.0), sample(1, doc="new", acc=1.0)]})
    with pytest.raises(DataError, match=r"got 1 of 2 items that differ: 'arc/1' for 'org/a' and 'org/b'"):
        read_responses(tmp_path)
    with pytest.warns(DataWarning, match="1 of 2 items have another content"):
        matrix = read_responses(tmp_path, spec=ReadingSpec(ignore_content=True))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, 1]])
    assert matrix.items["content_hash"].to_list() == ["hash of 0", None]


def test_content_that_differs_from_that_of_a_response_file_is_refused(tmp_path):
    old = write_run(tmp_path / "old", "org/a", {"arc": answers(1, 0)})
    write_responses(read_responses(old), tmp_path / "old.parquet")
    new = write_run(tmp_path / "new", "org/b", {"arc": [sample(1, doc="new", acc=1.0)]})
    with pytest.raises(
        DataError, match="content of an item must be the same for all models, got two for 1 items: 'arc/1'"
    ):
        read_responses([tmp_path / "old.parquet", new])


# runs


def test_a_part_of_a_task_is_flagged(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)}, sizes={"arc": 100})
    write_run(tmp_path, "org/b", {"arc": answers(1, 0)}, sizes={"arc": 2})
    with pytest.warns(
        DataWarning, match=r"1 models were run on a part of their tasks only: 'org/a' \(2 of 100 items\)"
    ):
        matrix = read_responses(tmp_path)
    assert matrix.models.select("is_partial", "n_items_run", "n_items_full").rows() == [(True, 2, 100), (False, 2, 2)]


def test_pieces_of_one_run_are_joined(tmp_path):
    write_run(tmp_path, "org/a", {"arc": [sample(0, acc=1.0)]}, sizes={"arc": 2})
    write_run(tmp_path, "org/a", {"arc": [sample(1, acc=0.0)]}, sizes={"arc": 2}, date=LATER)
    matrix = read_responses(tmp_path)
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    assert matrix.models.select("is_partial", "n_items_run", "run_date").rows() == [(False, 2, LATER)]


def test_two_runs_that_disagree_are_refused_averaged_or_the_later_taken(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)}, date=LATER)
    write_run(tmp_path, "org/a", {"arc": answers(0, 0)})
    with (
        pytest.raises(DataError, match=r"1 pairs: 'org/a' item 'arc/0' = 0 and 1.*--repeats"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DataWarning)
        read_responses(tmp_path)
    np.testing.assert_array_equal(read_responses(tmp_path, spec=ReadingSpec(repeats="last")).responses, [[1, 0]])
    matrix = read_responses(tmp_path, spec=ReadingSpec(repeats="mean"))
    np.testing.assert_array_equal(matrix.responses, [[0.5, 0]])
    np.testing.assert_array_equal(matrix.n_trials, [[2, 2]])


def test_checkpoints_of_one_name_are_told_apart_by_their_arguments(tmp_path):
    for step, date in ((1000, DATE), (2000, LATER)):
        arguments = f"pretrained=org/a,revision=step{step}"
        write_run(tmp_path / str(step), "org/a", {"arc": answers(step == 2000)}, date=date, arguments=arguments)
    matrix = read_responses(tmp_path, spec=ReadingSpec(model_id_from="args"))
    assert matrix.model_ids == ["pretrained=org/a,revision=step1000", "pretrained=org/a,revision=step2000"]
    np.testing.assert_array_equal(matrix.responses, [[0], [1]])


def test_where_the_id_of_the_model_comes_from(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)}, results=False)
    assert read_responses(folder).model_ids == ["org/a"]  # from the folder, as the harness names it
    plain = folder.rename(tmp_path / "output")
    with pytest.raises(DataError, match=r"the model is not told.*model_id_from='folder'.*model_id='...'"):
        read_responses(plain)
    assert read_responses(plain, spec=ReadingSpec(model_id_from="folder")).model_ids == ["output"]
    assert read_responses(plain, spec=ReadingSpec(model_id="mine")).model_ids == ["mine"]
    write_run(tmp_path, "org/b", {"arc": answers(1)})
    write_run(tmp_path, "org/c", {"arc": answers(1)})
    with pytest.raises(DataError, match="model_id='mine' was given for logs of 2 models: 'org/b', 'org/c'"):
        read_responses(tmp_path, spec=ReadingSpec(model_id="mine"))


def test_a_name_among_the_arguments_when_the_results_name_none(tmp_path):
    folder = write_run(
        tmp_path, "x", {"arc": answers(1)}, arguments="dtype=float16,pretrained=org/base,peft=org/adapter"
    )
    path = folder / f"results_{DATE}.json"
    path.write_text(
        json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "model_name"})
    )
    assert read_responses(folder).model_ids == ["org/adapter"]


def test_groups_may_be_scenarios(tmp_path):
    groups = {"mmlu": ["mmlu_stem", "mmlu_other"], "mmlu_stem": ["mmlu_algebra"], "arc": []}
    write_run(tmp_path, "org/a", {"mmlu_algebra": answers(1), "arc": answers(0)}, groups=groups)
    plain = read_responses(tmp_path)
    assert plain.items.select("scenario", "subscenario").rows() == [("arc", None), ("mmlu_algebra", None)]
    grouped = read_responses(tmp_path, spec=ReadingSpec(use_groups=True))
    assert grouped.items.select("scenario", "subscenario").rows() == [("arc", None), ("mmlu", "mmlu_algebra")]


def test_tasks_may_be_chosen(tmp_path):
    write_run(tmp_path, "org/a", {"mmlu_law": answers(1), "arc": answers(0), "mmlu_math": answers(1)})
    assert read_responses(tmp_path, spec=ReadingSpec(tasks=("mmlu_*",))).item_ids == ["mmlu_law/0", "mmlu_math/0"]
    with pytest.raises(DataError, match="no task matches 'gpqa'; there are 'arc', 'mmlu_law', 'mmlu_math'"):
        read_responses(tmp_path, spec=ReadingSpec(tasks=("gpqa",)))


# broken logs


def test_numbers_that_no_table_can_hold_are_not_told(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)}, sizes={"arc": 1})
    (path,) = folder.glob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["config"]["model_num_parameters"] = content["n-samples"]["arc"]["original"] = 10**400
    content["lm_eval_version"] = {"not": "a version"}
    path.write_text(json.dumps(content), encoding="utf-8")
    models = read_responses(tmp_path).models
    assert "n_parameters" not in models.columns or models["n_parameters"].is_null().all()


def test_results_without_samples_are_refused(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)})
    next(folder.glob("samples_*")).unlink()
    with pytest.raises(DataError, match=r"holds results of lm_eval without samples: 'results_.*--log_samples"):
        read_responses(tmp_path)
    with pytest.raises(DataError, match=r"is a results file of lm_eval, without samples"):
        read_responses(next(folder.iterdir()))
    write_run(tmp_path, "org/b", {"arc": answers(1)})
    with pytest.warns(DataWarning, match="1 runs have no samples and are left out"):
        assert read_responses([tmp_path / "org__b", tmp_path]).model_ids == ["org/b"]


def break_file(folder, how):
    path = next(folder.glob("samples_*"))
    content = path.read_bytes()
    changed = {
        "cut": content[:-30],
        "garbage": content + b"oops\n",
        "not UTF-8": content.replace(b"question 0", b"question \xff"),
        "empty": b"",
        "other": b'{"a": 1}\n' * 2,
        "mixed ids": content.replace(b'"doc_id": 1', b'"doc_id": "one"'),
    }[how]
    path.write_bytes(changed)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("cut", "line 2 .*the file was cut"),
        ("garbage", "line 3 must be one JSON object, got 'oops'"),
        ("not UTF-8", "not UTF-8: byte 0xff at position .*, line 1"),
        ("empty", "the file is empty"),
        ("other", "every line must be a sample of lm_eval with a doc_id"),
        ("mixed ids", "doc_id must be a whole number, as lm_eval counts them, got str"),
    ],
)
def test_broken_samples(tmp_path, how, message):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1, 0)})
    break_file(folder, how)
    with pytest.raises(DataError, match=message) as caught:
        read_responses(tmp_path)
    assert "samples_arc_" in str(caught.value)


def test_broken_results(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)})
    path = folder / f"results_{DATE}.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"results_.*\.json: the results file cannot be read"):
        read_responses(tmp_path)


def test_every_problem_of_every_task_is_told_at_once(tmp_path):
    tasks = {"arc": [sample(0, f1=0.5, rouge=0.5)], "law": [sample(0, acc=7.0)], "gsm8k": answers(1)}
    write_run(tmp_path, "org/a", tasks)
    with pytest.raises(DataError, match=r"(?s)task 'arc' has several metrics.*task 'law' has no metric"):
        read_responses(tmp_path)


def test_a_samples_file_under_another_name_needs_its_task(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1, 0)})
    path = next(folder.glob("samples_*")).rename(folder / "mine.jsonl")
    with pytest.raises(DataError, match=r"mine\.jsonl: the name of a samples file must tell the task"):
        read_responses(path)
    assert read_responses(path, scenario="arc").item_ids == ["arc/0", "arc/1"]


# real logs: the harness wrote the averages too, into the results file


def reported(path, key):
    results = json.loads(next(path.glob("results_*.json")).read_text())["results"]
    return {task: value[key] for task, value in results.items() if key in value}


def real(shared_dir, name):
    return shared_dir / "logs" / "lm_eval" / name


@pytest.mark.parametrize(
    ("name", "metric", "key"),
    [
        ("outputs__qwen3-8b__negotiationtom__Qwen__Qwen3-8B", ("acc", "exact_match"), "acc,none"),
        ("outputs__qwen3-8b__negotiationtom__Qwen__Qwen3-8B", ("acc", "exact_match"), "exact_match,none"),
        ("results__asdiv__meta-llama__Meta-Llama-3-8B-Instruct", (), "acc,none"),
        ("test_results__microsoft__Phi-3.5-mini-instruct", ("bleu_score",), "bleu_score,none"),
        ("test_results__microsoft__Phi-3.5-mini-instruct", ("comet_score",), "comet_score,none"),
    ],
)
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("old_format_2023", "holds results of lm_eval without samples: '12b_step143000.json'"),
        ("results-0.4.8__qwen__qwen2.5-7B", "holds results of lm_eval without samples"),
        (
            "test_results__microsoft__Phi-3.5-mini-instruct",
            "several metrics: 'bleu_score', 'bleurt_score', 'comet_score'",
        ),
    ],
)
def test_real_logs_that_cannot_be_read_as_they_are(shared_dir, name, message):
    with pytest.raises(DataError, match=message):
        read_responses(real(shared_dir, name))


def test_a_real_metric_out_of_range_names_the_remedy(shared_dir):
    folder = real(shared_dir, "test_results__microsoft__Phi-3.5-mini-instruct")
    with pytest.raises(
        DataError, match=r"'chrf_score' must lie in \[0, 1\], got values from 58.2087 to 73.4734; rescale"
    ):
        read_lm_eval(folder, metric="chrf_score")
    scaled = read_lm_eval(folder, metric="chrf_score", spec=ReadingSpec(max_response=100.0))
    assert 100 * scaled.responses.mean() == pytest.approx(
        reported(folder, "chrf_score,none")["en_it_public"], abs=1e-10
    )


def test_real_partial_runs_are_flagged(shared_dir):
    folder = real(shared_dir, "results__asdiv__meta-llama__Meta-Llama-3-8B-Instruct")
    with pytest.warns(DataWarning) as caught:
        matrix = read_responses(folder)
    texts = " ".join(str(warning.message) for warning in caught)
    assert re.search(r"'meta-llama/Meta-Llama-3-8B-Instruct' \(50 of 2305 items\)", texts)
    assert "1 runs have no samples and are left out: 'results_2024-08-21T04-27-29.701325.json'" in texts
    assert matrix.models["is_partial"].to_list() == [True]
    assert matrix.model_ids == ["meta-llama/Meta-Llama-3-8B-Instruct"]
