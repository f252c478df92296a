"""Reviews of EvalScope, old and new; reports tell the averages."""

import json

import numpy as np
import pytest

from itembank.errors import DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import put, read, refuses, warns


def review(index, score, *, group=None, status=None, question=None):
    more = {} if status is None else {"status": status}
    return {
        "index": index, "target": "4",
        "messages": [{"role": "user", "content": question or f"question {index}"},
            {"role": "assistant", "content": "4"}],
        "sample_score": {"score": {"value": score, **more}, "sample_id": index, "group_id": group},
    }  # fmt: skip


def write(folder, kind, model, task, records):
    place = folder / kind / model
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{task}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


def test_real_reviews_have_the_scores_of_their_reports_and_items_told_by_their_question(shared_dir, tmp_path):
    folder = shared_dir / "logs" / "evalscope"
    matrix = read(folder)
    assert set(matrix.items["scenario"]) == {"arc", "ceval", "gsm8k"}
    tasks, models = matrix.items["task"].to_list(), matrix.model_ids
    n_checked = 0
    for path in folder.rglob("reports/*/*.json"):
        for metric in json.loads(path.read_text())["metrics"]:
            for part in (part for category in metric["categories"] for part in category["subsets"]):
                inside = [task == f"{path.stem}_{part['name']}" for task in tasks]
                if any(inside):
                    values = matrix.responses[models.index(path.parent.name), inside]
                    assert values.mean() == pytest.approx(part["score"], abs=1e-4)
                    n_checked += 1
    assert n_checked == 10
    assert (matrix.costs["output_tokens"] > 0).all()
    (path,) = (shared_dir / "logs" / "evalscope").rglob("reviews/Qwen2.5-7B-Instruct/gsm8k_main.jsonl")
    lines = path.read_text().splitlines()
    place = tmp_path / "b" / "reviews" / "again"
    place.mkdir(parents=True)
    matrix = read([path.parent / path.name, put(place / path.name, "\n".join(reversed(lines)))])
    assert matrix.n_items == len(lines)
    np.testing.assert_array_equal(matrix.responses[0], matrix.responses[1])


def test_lines_are_told_by_their_index_costs_come_from_the_predictions_and_failed_ones_are_lost(tmp_path):
    write(tmp_path, "reviews", "m", "gsm8k_main", [review(1, {"acc": 0.0}), review(0, {"acc": 1.0})])
    output = {"usage": {"input_tokens": 7, "output_tokens": 9}, "time": 1.5, "error": None}
    write(tmp_path, "predictions", "m", "gsm8k_main", [{"index": 1, "model_output": output}])
    matrix = read(tmp_path)
    assert (matrix.item_ids, matrix.responses.tolist()) == (["gsm8k_main/1", "gsm8k_main/0"], [[0.0, 1.0]])
    np.testing.assert_array_equal(matrix.costs["seconds"], [[1.5, np.nan]])
    np.testing.assert_array_equal(matrix.costs["input_tokens"], [[7, np.nan]])
    records = [review(0, {"acc": 1.0}), review(1, {}, status="parse_error"), review(2, {"acc": 0.0})]
    write(tmp_path / "b", "reviews", "m", "a", records)
    write(tmp_path / "b", "predictions", "m", "a", [{"index": 2, "model_output": {"error": "timed out"}}])
    matrix = warns("2 of 'm' .1 time-out, 1 judge error", read, tmp_path / "b", format="evalscope")
    np.testing.assert_array_equal(matrix.responses, [[1.0, np.nan, np.nan]])
    write(tmp_path / "b" / "b", "reviews", "m", "a", [review(0, {"acc": 1.0})])
    write(tmp_path / "b" / "b", "predictions", "m", "a", [{"index": k, "model_output": {}} for k in (0, 1)])
    write(tmp_path / "b" / "b", "reviews", "m", "old", [old_review(0, True), {**old_review(1, True), "choices": []}])
    matrix = warns("2 of 'm' .1 without a response, 1 judge error", read, tmp_path / "b" / "b", format="evalscope")
    assert dict(
        zip(matrix.item_ids, matrix.lost.n[0].tolist(), strict=True)
    )== {"a/0": 0, "a/1": 1, "old/0": 0, "old/1": 1}  # fmt: skip


def test_attempts_and_metrics_are_chosen_and_other_lines_refused(tmp_path):
    records = [
        review(10 * group + k, {"acc": float(k == 0)}, group=group, question="q") for group in (0, 1) for k in (0, 1)
    ]
    write(tmp_path, "reviews", "m", "a", records)
    refuses("never averaged unasked", read, tmp_path)
    matrix = read(tmp_path, repeats="count")
    assert (matrix.n_trials.tolist(), matrix.responses.tolist()) == ([[2, 2]], [[0.5, 0.5]])
    scores = {"prompt_level_strict": 1.0, "inst_level_strict": 0.5}
    write(tmp_path / "b", "reviews", "m", "ifeval_default", [review(0, scores)])
    refuses(r"has several metrics: 'prompt_level_strict', 'inst_level_strict'", read, tmp_path / "b")
    assert read_responses(tmp_path / "b", metric="inst_level_strict").responses.tolist() == [[0.5]]
    write(tmp_path / "c", "reviews", "m", "a", [{"index": 1}])
    refuses("every line must be a review with a score", read, tmp_path / "c")
    (tmp_path / "c" / "empty").mkdir()
    refuses("holds no reviews of EvalScope", read, tmp_path / "c" / "empty", format="evalscope")


def old_review(index, right):
    return {
        "review_id": "r", "index": index, "raw_input": f"question {index}", "choices": [{"review": {"result": right}}],
    }  # fmt: skip


@pytest.mark.parametrize("metric", [None, "acc", "result", "gsm8k_main=result", ["result", "acc"]])
def test_old_and_new_releases_have_one_metric(tmp_path, metric):
    write(tmp_path / "old", "reviews", "a", "gsm8k_main", [old_review(0, True), old_review(1, False)])
    write(tmp_path / "new", "reviews", "b", "gsm8k_main", [review(0, {"acc": 0.0}), review(1, {"acc": 1.0})])
    with pytest.warns(DataWarning, match="2 of 2 items have another content"):  # new releases log the target too
        matrix = read_responses(tmp_path, metric=metric, spec=ReadingSpec(ignore_content=True))
    assert set(matrix.item_ids) == {"gsm8k_main/0", "gsm8k_main/1"}
    assert matrix.responses[[matrix.model_ids.index("a"), matrix.model_ids.index("b")]].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("task", "dataset"),
    [("gsm8k_main", "gsm8k"), ("mmlu_pro_math", "mmlu_pro"), ("arc_ARC-Easy", "arc"), ("made_up_all", "made_up")],
)
@pytest.mark.parametrize("beside", ["reports", "configs", None])
def test_the_scenario_is_the_data_set_with_and_without_reports(tmp_path, task, dataset, beside):
    write(tmp_path, "reviews", "m", task, [review(0, {"acc": 1.0})])
    if beside == "reports":
        write(tmp_path, "reports", "m", dataset, [])
        (tmp_path / "reports" / "m" / f"{dataset}.jsonl").rename(tmp_path / "reports" / "m" / f"{dataset}.json")
    elif beside == "configs":
        (tmp_path / "configs").mkdir()
        (tmp_path / "configs" / "task_config_1.yaml").write_text(
            f"dataset_args:\n  {dataset}:\n    name: x\nlimit: 3\n"
        )
    expected = "made" if (dataset, beside) == ("made_up", None) else dataset
    assert read(tmp_path).items["scenario"].to_list() == [expected]
