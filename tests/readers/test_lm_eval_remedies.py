"""Logs that cannot be read as they are: what the messages advise must work when it is pasted."""

import json
import re

import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.agreement import read_new_responses
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.logs import DATE, answers, read_lm_eval, sample, write_run


def mixed(folder):
    """Write two models whose suite holds a task that is fine and four that are not."""
    attempts = [sample(0, filter_name=name, exact_match=1.0) for name in ("maj@8", "maj@64")]
    for model in ("org/a", "org/b"):
        tasks = {
            "arc": [sample(0, acc=1.0), sample(1, acc=0.0)],
            "wmt[1]": [sample(0, bleu=0.5, chrf=0.6)],
            "qa": [sample(0, f1=0.5, rouge=0.1)],
            "gsm8k": attempts,
            "words": [sample(0, text="yes")],
        }
        write_run(folder, model, tasks)
    return folder


def pasted(error):
    """Make the spec that a message advises."""
    (text,) = re.findall(r"^To read (?:them|the rest), add: spec=(.*)$", str(error.value), re.M)
    return eval(text, {"ReadingSpec": ReadingSpec})  # noqa: S307 (our own message)


@pytest.mark.parametrize(
    "choices", [{}, {"metric": ("bleu",)}, {"metric": ("acc", "qa=nonsense")}, {"filter_name": ("maj@64", "wrong")}]
)
def test_the_advice_makes_the_logs_readable(tmp_path, choices):
    with pytest.raises(DataError) as error:
        read_responses(mixed(tmp_path), spec=ReadingSpec(**choices))
    spec = pasted(error)
    assert spec.exclude_tasks == ("words",)
    assert set(read_responses(tmp_path, spec=spec).items["task"]) == {"arc", "wmt[1]", "qa", "gsm8k"}


def test_the_same_metric_for_many_tasks_is_advised_once(tmp_path):
    tasks = {f"mmlu_{number}": [sample(0, acc=1.0)] for number in range(20)}
    write_run(tmp_path, "org/a", {**tasks, "wmt": [sample(0, bleu=0.5, chrf=0.6)]})
    with pytest.raises(DataError) as error:
        read_responses(tmp_path, metric="bleu")
    assert pasted(error).metric == ("bleu", "acc")
    assert read_responses(tmp_path, spec=pasted(error)).n_items == 21


def test_the_advice_beside_a_response_of_options_works_too(tmp_path):
    write_run(tmp_path, "org/a", {name: [sample(0, acc=1.0)] for name in ("law", "code", "maths")})
    with pytest.raises(DataError, match="compares options") as error:
        read_responses(tmp_path, spec=ReadingSpec(response="probability"))
    assert read_responses(tmp_path, spec=pasted(error)).n_items == 3


def test_the_advice_keeps_the_metrics_of_the_known_items(tmp_path):
    rows = [sample(0, acc=1.0, acc_norm=0.0), sample(1, acc=1.0, acc_norm=0.5)]
    write_run(tmp_path / "old", "org/a", {"arc": rows})
    suite = {name: [sample(0, bleu=0.5, chrf=0.4)] for name in ("wmt", "flores")}
    write_run(tmp_path / "new", "org/b", {"arc": rows, **suite})
    known = read_responses(tmp_path / "old", metric="acc_norm").items
    with pytest.raises(DataError) as error, command_line_words():
        read_new_responses([tmp_path / "new"], known)
    (line,) = re.findall(r"^To read them, add: (.*)$", str(error.value), re.M)
    metrics = tuple(line.split()[1::2])
    assert metrics == ("flores=bleu", "wmt=bleu")
    found = read_new_responses([tmp_path / "new"], known, spec=ReadingSpec(metric=metrics))
    assert found.responses[0, found.item_indices(["arc/0", "arc/1"])].tolist() == [0.0, 0.5]


def test_what_cannot_be_read_is_left_out_on_request_and_told(tmp_path):
    mixed(tmp_path)
    with pytest.warns(DataWarning) as caught:
        matrix = read_responses(tmp_path, spec=ReadingSpec(skip_unusable=True))
    said = " ".join(str(one.message) for one in caught)
    assert said.count("left out: ") == 4
    assert all(f"task '{name}" in said for name in ("gsm8k", "qa", "wmt", "words"))
    assert matrix.item_ids == ["arc/0", "arc/1"]


def test_files_that_are_cut_or_do_not_tell_their_model_are_left_out_on_request(tmp_path):
    write_run(tmp_path, "org/a", {"arc": [sample(0, acc=1.0)]})
    write_run(tmp_path, "org/b", {"arc": [sample(0, acc=1.0)]}, results=False).rename(tmp_path / "nameless")
    cut = write_run(tmp_path, "org/c", {"arc": [sample(0, acc=1.0)]})
    (next(cut.glob("samples_*"))).write_text('{"doc_id": 0, "acc"')
    write_run(tmp_path, "org/a", {"wmt": [sample(0, bleu=0.5, chrf=0.4)]})
    with pytest.raises(DataError, match=r"(?s)the model is unknown.*To leave out .*add: spec=.*skip_unusable=True"):
        read_responses(tmp_path)
    with pytest.warns(DataWarning) as caught:
        matrix = read_responses(tmp_path, spec=ReadingSpec(skip_unusable=True))
    said = [str(one.message) for one in caught]
    assert all(one.startswith("left out: ") for one in said)
    assert [word in one for word, one in zip(("nameless", "org__c", "wmt"), said, strict=True)] == [True] * 3
    assert matrix.model_ids == ["org/a"]


def test_tasks_that_changed_between_runs_are_left_out_on_request(tmp_path):
    for model, text in (("org/a", "old"), ("org/b", "new")):
        write_run(tmp_path, model, {"arc": [sample(0, doc=text, acc=1.0)], "law": [sample(0, acc=1.0)]})
    with pytest.warns(DataWarning, match="left out: task 'arc': 1 item has another content"):
        matrix = read_responses(tmp_path, spec=ReadingSpec(skip_unusable=True))
    assert matrix.item_ids == ["law/0"]


def test_nothing_is_advised_where_nothing_could_be_read(tmp_path):
    write_run(tmp_path, "org/a", {"words": [sample(0, text="yes")]})
    for skip in (False, True):
        with pytest.raises(DataError, match="no metric that can be a response") as error:
            read_responses(tmp_path, spec=ReadingSpec(skip_unusable=skip))
        assert "add:" not in str(error.value)


def test_tasks_can_be_excluded(tmp_path):
    mixed(tmp_path)
    spec = ReadingSpec(exclude_tasks=("w*", "qa", "gsm8k"))
    assert set(read_responses(tmp_path, spec=spec).items["task"]) == {"arc"}
    with pytest.raises(DataError, match=r"no task is left of those that match 'w\*' when 'w\*' are left out"):
        read_responses(tmp_path, spec=ReadingSpec(tasks=("w*",), exclude_tasks=("w*",)))
    with pytest.raises(DataError, match=r"no task matches 'gsm8kk'.*Did you mean 'gsm8k'"):
        read_responses(tmp_path, spec=ReadingSpec(tasks=("gsm8kk",)))


@pytest.mark.parametrize(
    ("folder", "title"),
    [("helm", "run folders of HELM"), ("evalscope", "reviews of EvalScope"), ("inspect", "logs of Inspect")],
)
def test_logs_of_other_harnesses_name_their_reader(shared_dir, folder, title):
    with pytest.raises(DataError, match=f"holds {title} .*format='{folder}'"):
        read_lm_eval(shared_dir / "logs" / {"inspect": "inspect_ai"}.get(folder, folder))


def test_numbers_that_no_table_can_hold_are_not_told(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)}, sizes={"arc": 1})
    (path,) = folder.glob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["config"]["model_num_parameters"] = content["n-samples"]["arc"]["original"] = 10**400
    content["lm_eval_version"] = {"not": "a version"}
    path.write_text(json.dumps(content), encoding="utf-8")
    models = read_responses(tmp_path).models
    assert "n_parameters" not in models.columns or models["n_parameters"].is_null().all()


def test_a_score_that_no_float_can_hold_is_refused(tmp_path):
    write_run(tmp_path, "org/a", {"arc": [sample(0, acc=10**400)]})
    with pytest.raises(DataError, match="got values from inf to inf"):
        read_responses(tmp_path, metric="acc")


def test_results_without_samples_are_refused(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)})
    next(folder.glob("samples_*")).unlink()
    with pytest.raises(DataError, match=r"holds results of lm_eval without samples: 'results_.*--log_samples"):
        read_responses(tmp_path)
    with pytest.raises(DataError, match=r"is a results file of lm_eval, without samples"):
        read_responses(next(folder.iterdir()))
    write_run(tmp_path, "org/b", {"arc": answers(1)})
    with pytest.warns(DataWarning, match="1 run has no samples and is left out"):
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
    with pytest.raises(DataError, match=r"mine\.jsonl: the name of a samples file must name the task"):
        read_responses(path)
    assert read_responses(path, scenario="arc").item_ids == ["arc/0", "arc/1"]
