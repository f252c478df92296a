"""Samples beside results files that tell of others: missing samples, other scores, groups."""

import warnings

import pytest

from itembank.errors import DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.logs import answers, sample, write_run

ACC = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
LM_EVAL = ReadingSpec(format="lm-eval")
GROUPS = ReadingSpec(use_groups=True)


def write(folder, tasks, scores=None, *, model="org/a", metrics=ACC, **more):
    """Write a run whose results state these scores; by default the means."""
    means = {task: sum(row["acc"] for row in rows) / len(rows) for task, rows in tasks.items()}
    results = {name: {"alias": name, "acc,none": score} for name, score in {**means, **(scores or {})}.items()}
    configs = {task: {"task": task, "metric_list": metrics} for task in tasks}
    return write_run(folder, model, tasks, **{"results": True, "configs": configs, **more}, stated=results)


def warned(path, spec=LM_EVAL):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_responses(path, spec=spec)
    return [str(one.message) for one in caught]


def test_samples_that_are_those_of_the_results_need_no_word(tmp_path):
    write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    assert warned(tmp_path) == []


@pytest.mark.parametrize("name", ["samples_dup_2025-03-01T10-00-00.000001.jsonl.xz", "dup.txt"])
def test_a_task_whose_samples_have_another_name_is_missed(tmp_path, name):
    place = write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    next(place.glob("samples_dup*")).rename(place / name)
    assert warned(tmp_path) == [
        "1 tasks have other samples than the results beside them tell: results tell 2 samples of dup by 'org/a', "
        f"found 0 ({name!r} has another name than samples files have). Look whether files were moved, renamed or "
        "compressed, or belong to another run."
    ]


def test_a_task_that_is_read_under_another_name_of_file_or_task_is_not_missed(tmp_path):
    place = write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    next(place.glob("samples_dup*")).rename(place / "dup.jsonl")
    assert warned(tmp_path) == []
    renamed = ReadingSpec(format="lm-eval", task_names={"dup": "dup_v2"})
    assert warned(tmp_path, renamed) == []
    path = next(place.glob("results_*"))
    path.write_text(path.read_text().replace('"acc,none": 1.0', '"acc,none": 0.25'))
    (words,) = warned(tmp_path, renamed)
    assert "1 scores differ from those in the results files: dup_v2 by 'org/a': 0.2500, read 1.0000." in words


def test_tasks_that_nobody_asked_for_and_files_named_singly_are_no_loss(tmp_path):
    place = write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    assert warned(tmp_path, ReadingSpec(exclude_tasks=("dup",))) == []
    assert warned(next(place.glob("samples_arc*"))) == []


def test_a_cut_file_is_named_with_both_numbers(tmp_path):
    place = write(tmp_path, {"arc": answers(1, 0, 1)})
    path = next(place.glob("samples_arc*"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    first, second, _partial = warned(tmp_path)
    assert "results tell 3 samples of arc by 'org/a', found 2." in first
    assert "1 scores differ from those in the results files: arc by 'org/a': 0.6667, read 0.5000." in second


def test_sizes_that_old_releases_overstate_are_taken_for_right_where_the_score_is(tmp_path):
    write(tmp_path, {"arc": answers(1, 0)}, **{"n-samples": {"arc": {"original": 90, "effective": 90}}})
    with pytest.warns(DataWarning, match="1 models were run on a part") as caught:
        read_responses(tmp_path)
    assert len(caught) == 1


@pytest.mark.parametrize("metrics", [[{"metric": "acc", "aggregation": "f1"}], [{"metric": "acc", "aggregation": 3}]])
def test_scores_that_are_no_means_are_not_compared(tmp_path, metrics):
    write(tmp_path, {"arc": answers(1, 0)}, {"arc": 0.9}, metrics=metrics)
    assert warned(tmp_path) == []


def test_samples_without_the_metric_are_counted(tmp_path):
    rows = [sample(0, acc=1.0), sample(1, acc=None), sample(2, acc=0.0), sample(3)]
    write_run(tmp_path, "org/a", {"arc": rows})
    write_run(tmp_path, "org/b", {"arc": answers(1, 1, 0, 0)})
    assert warned(tmp_path) == [
        "2 samples have no value of the metric and are missing, not wrong: 2 of 4 of arc by 'org/a'."
    ]


TASKS = {"x": answers(1, 1, 1, 0), "y": answers(0, 1), "z": answers(0, 0, 1)}


def test_groups_by_size_need_no_word_and_others_name_the_remedy(tmp_path):
    groups = {"all": ["x", "y", "z"]}
    write(tmp_path / "size", TASKS, {"all": 5 / 9}, groups=groups)
    assert warned(tmp_path / "size", GROUPS) == []
    macro = (3 / 4 + 1 / 2 + 1 / 3) / 3
    write(tmp_path / "alike", TASKS, {"all": macro}, groups=groups)
    assert warned(tmp_path / "alike") == []
    (words,) = warned(tmp_path / "alike", GROUPS)
    assert "all by 'org/a' 0.5278, items read 0.5556 (this is the mean of its tasks)" in words
    assert "within='macro'" in words
    write(tmp_path / "other", TASKS, {"all": 0.4}, groups=groups)
    assert (
        "all by 'org/a' 0.4000, items read 0.5556 (0.5278 is the mean of its tasks)"
        in warned(tmp_path / "other", GROUPS)[0]
    )


def test_a_group_of_groups_without_a_score_names_the_inner_ones(tmp_path):
    groups = {"world": ["inner", "z"], "inner": ["x", "y"]}
    write(tmp_path, TASKS, {"inner": 0.625}, groups=groups)
    (words,) = warned(tmp_path, GROUPS)
    assert "world by 'org/a' none, but the groups in it have: 'inner'" in words


@pytest.mark.parametrize(
    "damage",
    [
        {"n-samples": {"arc": 3}},
        {"n-samples": [1]},
        {"configs": {"arc": {"metric_list": "acc"}}},
        {"configs": {"arc": {"metric_list": [1]}}},
        {"group_subtasks": {"all": 3}},
        {"groups": [1]},
    ],
)
def test_odd_results_are_no_obstacle(tmp_path, damage):
    write(tmp_path, {"arc": answers(1, 0)}, **damage)
    read_responses(tmp_path, spec=GROUPS)
