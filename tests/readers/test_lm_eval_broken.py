"""Logs that are damaged, incomplete or under another name."""

import json

import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from tests.readers.logs import DATE, answers, sample, write_run


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
