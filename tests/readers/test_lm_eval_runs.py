"""Logs of several runs: their contents, pieces, dates and names."""

import gzip
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.agreement import read_new_responses
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import zstandard
from itembank.responses.response_files import write_responses
from tests.readers.logs import DATE, answers, sample, write_run
from tests.readers.reading import put, read, refuses, warns

LATER = "2025-04-01T10-00-00.000001"


def test_items_of_another_content_are_refused_unless_told_otherwise(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)})
    write_run(tmp_path, "org/b", {"arc": [sample(0, acc=1.0), sample(1, doc="new", acc=1.0)]})
    refuses(r"got 1 of 2 items that differ: 'arc/1' for 'org/a' and 'org/b'", read, tmp_path)
    matrix = warns("1 of 2 items have another content", read, tmp_path, ignore_content=True)
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, 1]])
    assert matrix.items["content_hash"].to_list() == ["hash of 0", None]
    write_responses(
        read(write_run(tmp_path / "b" / "old", "org/a", {"arc": answers(1, 0)})), tmp_path / "b" / "old.parquet"
    )
    new = write_run(tmp_path / "b" / "new", "org/b", {"arc": [sample(1, doc="new", acc=1.0)]})
    refuses("must be the same for all models, got two for 1 item: 'arc/1'", read, [tmp_path / "b" / "old.parquet", new])


def test_parts_of_tasks_are_flagged_and_pieces_of_a_run_joined(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)}, sizes={"arc": 100})
    write_run(tmp_path, "org/b", {"arc": answers(1, 0)}, sizes={"arc": 2})
    matrix = warns(r"1 model was run on a part .*: 'org/a' \(2 of 100 items\)", read, tmp_path)
    assert matrix.models.select("is_partial", "n_items_run", "n_items_full").rows() == [(True, 2, 100), (False, 2, 2)]
    write_run(tmp_path / "b", "org/a", {"arc": [sample(0, acc=1.0)]}, sizes={"arc": 2})
    write_run(tmp_path / "b", "org/a", {"arc": [sample(1, acc=0.0)]}, sizes={"arc": 2}, date=LATER)
    matrix = read(tmp_path / "b")
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    assert matrix.models.select("is_partial", "n_items_run", "run_date").rows() == [(False, 2, LATER)]
    put(tmp_path / "c" / "t.jsonl", '{"model": "a", "doc_id": 1, "acc": 1.0, "resps": []}\n')
    refuses("the name of a samples file must name the task", read, tmp_path / "c")


def test_two_runs_that_disagree_are_refused_averaged_or_the_later_taken(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)}, date=LATER)
    write_run(tmp_path, "org/a", {"arc": answers(0, 0)})
    with (
        pytest.raises(DataError, match=r"1 pair: 'org/a' item 'arc/0' = 0 and 1.*repeats='last'"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DataWarning)
        read(tmp_path)
    np.testing.assert_array_equal(read(tmp_path, repeats="last").responses, [[1, 0]])
    matrix = read(tmp_path, repeats="mean")
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5, 0]], [[2, 2]])


def test_ids_of_models_come_from_names_folders_or_arguments(tmp_path):
    folder = write_run(tmp_path, "org/a", {"arc": answers(1)}, results=False)
    assert read(folder).model_ids == ["org/a"]  # from the folder, as the harness names it
    plain = folder.rename(tmp_path / "output")
    refuses(r"the model is unknown.*model_id_from='folder'.*model_id='...'", read, plain)
    assert read(plain, model_id_from="folder").model_ids == ["output"]
    assert read(plain, model_id="mine").model_ids == ["mine"]
    write_run(tmp_path, "org/b", {"arc": answers(1)})
    write_run(tmp_path, "org/c", {"arc": answers(1)})
    refuses("model_id='mine' was given for logs of 2 models: 'org/b', 'org/c'", read, tmp_path, model_id="mine")
    for step, date in ((1000, DATE), (2000, LATER)):
        arguments = f"pretrained=org/a,revision=step{step}"
        write_run(tmp_path / "b" / str(step), "org/a", {"arc": answers(step == 2000)}, date=date, arguments=arguments)
    matrix = read(tmp_path / "b", model_id_from="args")
    assert matrix.model_ids == ["pretrained=org/a,revision=step1000", "pretrained=org/a,revision=step2000"]
    np.testing.assert_array_equal(matrix.responses, [[0], [1]])
    folder = write_run(
        tmp_path / "c", "x", {"arc": answers(1)}, arguments="dtype=float16,pretrained=org/base,peft=org/adapter"
    )
    path = folder / f"results_{DATE}.json"
    put(path, {key: value for key, value in json.loads(path.read_text()).items() if key != "model_name"})
    assert read(folder).model_ids == ["org/adapter"]
    one = write_run(tmp_path / "d", "/home/alice/m", {"arc": answers(1, 0)})
    write_run(tmp_path / "d", "/home/bob/m", {"arc": answers(0, 0)}, date=f"{DATE[:-1]}7")
    refuses("ids that differ without home folders", read, tmp_path / "d")
    assert read(one, model_id="alice").model_ids == ["alice"]


def test_tasks_are_chosen_and_groups_are_scenarios(tmp_path):
    write_run(tmp_path, "org/a", {"mmlu_law": answers(1), "arc": answers(0), "mmlu_math": answers(1)})
    assert read(tmp_path, tasks=("mmlu_*",)).item_ids == ["mmlu_law/0", "mmlu_math/0"]
    refuses("no task matches 'gpqa'; there are 'arc', 'mmlu_law', 'mmlu_math'", read, tmp_path, tasks=("gpqa",))
    groups = {"mmlu": ["mmlu_stem", "mmlu_other"], "mmlu_stem": ["mmlu_algebra"], "arc": []}
    write_run(tmp_path / "b", "org/a", {"mmlu_algebra": answers(1), "arc": answers(0)}, groups=groups)
    found = read(tmp_path / "b")
    assert found.items.select("scenario", "subscenario").rows() == [("arc", None), ("mmlu_algebra", None)]
    grouped = read(tmp_path / "b", use_groups=True)
    assert grouped.items.select("scenario", "subscenario").rows() == [("arc", None), ("mmlu", "mmlu_algebra")]


def test_a_renamed_task_joins_another_with_its_contents_groups_and_metrics(tmp_path):
    write_run(tmp_path, "org/a", {"dup": answers(1, 0), "law": answers(1)}, sizes={"dup": 2, "law": 1})
    write_run(tmp_path, "org/b", {"dup_v2": answers(0, 1)}, groups={"dup_v2": []})
    matrix = read(tmp_path, task_names={"dup": "dup_v2"})
    assert set(matrix.item_ids) == {"dup_v2/0", "dup_v2/1", "law/0"}
    assert (set(matrix.items["scenario"]), matrix.models["n_items_full"].to_list()) == ({"dup_v2", "law"}, [3, 2])
    known = matrix.items
    write_run(tmp_path / "new", "org/c", {"dup": answers(1, 1)})
    found = read_new_responses([tmp_path / "new"], known, spec=ReadingSpec(task_names={"dup": "dup_v2"}))
    assert found.item_ids == ["dup_v2/0", "dup_v2/1"]
    refuses(r"that is renamed must be in the logs, got 'dub'; there are 'dup'", read, tmp_path, task_names={"dub": "x"})
    write_run(tmp_path / "b", "org/a", {"dup": answers(1, 0)})
    write_run(tmp_path / "b", "org/b", {"dup_v2": [sample(0, doc="other", acc=1.0)]})
    refuses(r"that differ: 'dup_v2/0'", read, tmp_path / "b", task_names={"dup": "dup_v2"})
    write_run(tmp_path / "c", "org/a", {"dup": answers(1, 0, metric="loss")}, groups={"all": ["dup"]}, lower=["loss"])
    names = {"dup": "dup_v2"}
    refuses(r"'dup_v2' has no metric .*better when lower", read, tmp_path / "c", task_names=names)
    write_run(tmp_path / "c" / "b", "org/b", {"dup": answers(1, 0)}, groups={"all": ["dup"]})
    matrix = read(tmp_path / "c" / "b", task_names=names, use_groups=True)
    assert matrix.items.select("scenario", "subscenario").rows() == [("all", "dup_v2")] * 2


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_packed_samples_are_read(tmp_path, suffix):
    (file,) = write_run(tmp_path, "org/a", {"arc": answers(1, 0)}).glob("samples_*")
    content = file.read_bytes()
    packed = gzip.compress(content) if suffix == "gz" else zstandard().compress(content)
    file.with_name(f"{file.name}.{suffix}").write_bytes(packed)
    file.unlink()
    for form in ("auto", "lm-eval"):
        assert read(tmp_path, format=form).responses.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("form", ["auto", "lm-eval"])
def test_samples_files_of_other_names_are_read_or_named(tmp_path, form):
    place = write_run(tmp_path, "org/a", {"dup": answers(1, 0), "arc": answers(1)})
    next(place.glob("samples_dup_*")).rename(place / "dup.jsonl")
    spec = ReadingSpec(format=form)
    assert set(read_responses(tmp_path, spec=spec).item_ids) == {"dup/0", "dup/1", "arc/0"}
    (place / "dup.jsonl").rename(place / "mine.jsonl")
    refuses(r"mine\.jsonl: the name of a samples file must name the task", read_responses, tmp_path, spec=spec)
    with pytest.warns(DataWarning) as caught:
        assert read_responses(tmp_path, spec=replace(spec, skip_unusable=True)).item_ids == ["arc/0"]
    missed, left_out = (str(one.message) for one in caught)
    assert left_out.startswith("left out: ")
    assert "mine.jsonl: the name of a samples file must name the task" in left_out
    assert "results report 2 samples of dup by 'org/a', found 0" in missed


@pytest.mark.parametrize("kind", ["text", "dict"])
@pytest.mark.parametrize("way", ["name", "args"])
def test_arguments_and_ids_are_without_secrets_and_home_folders(tmp_path, kind, way):
    for name in "ab":
        about = {"pretrained": f"/home/alice/{name}", "token": "Zx9SECRET", "base_url": "https://me:Zx9SECRET@host/v1"}
        given = ",".join(f"{key}={value}" for key, value in about.items()) if kind == "text" else about
        write_run(
            tmp_path, f"/home/alice/{name}", {"arc": answers(1, 0)}, arguments=given, date=f"{DATE[:-1]}{name == 'b':d}"
        )
    matrix = read(tmp_path, model_id_from=way)
    hidden = [f"pretrained=~/{name},token=***,base_url=https://***@host/v1" for name in "ab"]
    assert matrix.models["model_args"].to_list() == hidden
    assert matrix.model_ids == (["~/a", "~/b"] if way == "name" else hidden)


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


def test_what_is_read_as_the_results_say_needs_no_word(tmp_path):
    write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    assert warned(tmp_path) == []
    place = write(tmp_path / "b", {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    next(place.glob("samples_dup*")).rename(place / "dup.jsonl")
    assert warned(tmp_path / "b") == []
    renamed = ReadingSpec(format="lm-eval", task_names={"dup": "dup_v2"})
    assert warned(tmp_path / "b", renamed) == []
    path = next(place.glob("results_*"))
    path.write_text(path.read_text().replace('"acc,none": 1.0', '"acc,none": 0.25'))
    (words,) = warned(tmp_path / "b", renamed)
    assert "1 score differs from those in the results files: dup_v2 by 'org/a': 0.2500, read 1.0000." in words
    place = write(tmp_path / "c", {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    assert (warned(tmp_path / "c", ReadingSpec(exclude_tasks=("dup",))), warned(next(place.glob("samples_arc*")))) == (
        [],
        [],
    )
    write(tmp_path / "d", {"arc": answers(1, 0)}, **{"n-samples": {"arc": {"original": 90, "effective": 90}}})
    with pytest.warns(DataWarning, match="1 model was run on a part") as caught:
        read(tmp_path / "d")
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["samples_dup_2025-03-01T10-00-00.000001.jsonl.xz", "dup.txt"])
def test_a_task_whose_samples_have_another_name_is_missed(tmp_path, name):
    place = write(tmp_path, {"arc": answers(1, 0, 1), "dup": answers(1, 1)})
    next(place.glob("samples_dup*")).rename(place / name)
    assert warned(tmp_path) == [
        "1 task has other samples than the results beside them say: results report 2 samples of dup by 'org/a', "
        f"found 0 ({name!r} has another name than samples files have). Check whether files were moved, renamed or "
        "compressed, or belong to another run."
    ]


def test_what_is_cut_or_lacks_the_metric_is_counted(tmp_path):
    path = next(write(tmp_path, {"arc": answers(1, 0, 1)}).glob("samples_arc*"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    first, second, _partial = warned(tmp_path)
    assert "results report 3 samples of arc by 'org/a', found 2." in first
    assert "1 score differs from those in the results files: arc by 'org/a': 0.6667, read 0.5000." in second
    rows = [sample(0, acc=1.0), sample(1, acc=None), sample(2, acc=0.0), sample(3)]
    write_run(tmp_path / "b", "org/a", {"arc": rows})
    write_run(tmp_path / "b", "org/b", {"arc": answers(1, 1, 0, 0)})
    assert warned(tmp_path / "b") == [
        "lost answers count as missing, not wrong: 2 of 'org/a' (2 without a response). To count them otherwise: "
        "errors='wrong' or 'bounds' in ReadingSpec."
    ]


@pytest.mark.parametrize("metrics", [[{"metric": "acc", "aggregation": "f1"}], [{"metric": "acc", "aggregation": 3}]])
def test_scores_that_are_no_means_are_not_compared(tmp_path, metrics):
    write(tmp_path, {"arc": answers(1, 0)}, {"arc": 0.9}, metrics=metrics)
    assert warned(tmp_path) == []


TASKS = {"x": answers(1, 1, 1, 0), "y": answers(0, 1), "z": answers(0, 0, 1)}


def test_scores_of_groups_are_compared_and_name_the_remedy(tmp_path):
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
    groups = {"world": ["inner", "z"], "inner": ["x", "y"]}
    write(tmp_path / "b", TASKS, {"inner": 0.625}, groups=groups)
    (words,) = warned(tmp_path / "b", GROUPS)
    assert "world by 'org/a' none, but the groups in it have: 'inner'" in words


@pytest.mark.parametrize("damage", [
    {"n-samples": {"arc": 3}}, {"n-samples": [1]}, {"configs": {"arc": {"metric_list": "acc"}}},
    {"configs": {"arc": {"metric_list": [1]}}}, {"group_subtasks": {"all": 3}}, {"groups": [1]},
])  # fmt: skip
def test_odd_results_are_no_obstacle(tmp_path, damage):
    write(tmp_path, {"arc": answers(1, 0)}, **damage)
    read_responses(tmp_path, spec=GROUPS)
