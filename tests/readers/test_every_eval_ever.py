"""Samples of Every Eval Ever, in the layout of its schema 0.3.0."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

from itembank.errors import DataWarning, ModelWarning
from itembank.readers.read import read_responses
from tests.readers.reading import put, read, refuses, warns

UUID = "00000000-0000-4000-8000-00000000000{}"


def line(sample, score, *, model="org/a", evaluation="gsm8k", result="gsm8k/acc", **more):
    return {
        "schema_version": "0.3.0", "evaluation_id": f"{evaluation}/{model}/1", "model_id": model,
        "evaluation_name": evaluation, "evaluation_result_id": result, "sample_id": sample, "sample_hash": None,
        "interaction_type": "single_turn",
        "input": {"raw": f"question {sample}", "reference": ["4"]},
        "evaluation": {"score": score, "is_correct": score == 1.0},
        **more,
    }  # fmt: skip


def write(folder, number, lines, *, metrics=None, lower=(), **config):
    folder.mkdir(parents=True, exist_ok=True)
    samples = folder / (UUID.format(number) + "_samples.jsonl")
    samples.write_text("".join(json.dumps(one) + "\n" for one in lines))
    results = [
        {
            "evaluation_result_id": key,
            "metric_config": {"metric_name": name, "lower_is_better": name in lower, **config},
        }
        for key, name in (metrics or {"gsm8k/acc": "accuracy"}).items()
    ]
    aggregate = {"evaluation_id": "x", "model_info": {"id": "org/a"}, "evaluation_results": results}
    put(folder / (UUID.format(number) + ".json"), aggregate)
    return samples


def test_samples_become_responses_with_costs_and_lines_of_one_are_its_metrics(tmp_path):
    tokens = {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}
    write(tmp_path, 1, [line("s/1", 1.0, token_usage=tokens, performance={"latency_ms": 1500}), line("s/2", 0.0)])
    write(tmp_path, 2, [line("s/2", 1.0, model="org/b"), line("s/1", 0.5, model="org/b")])
    matrix = read(tmp_path)
    assert (matrix.item_ids, matrix.items["scenario"].to_list()) == (["gsm8k/s/1", "gsm8k/s/2"], ["gsm8k", "gsm8k"])
    assert matrix.items["metric"].to_list() == ["accuracy", "accuracy"]
    np.testing.assert_array_equal(matrix.responses, [[1.0, 0.0], [0.5, 1.0]])
    np.testing.assert_array_equal(matrix.costs["output_tokens"], [[5, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(matrix.costs["seconds"], [[1.5, np.nan], [np.nan, np.nan]])
    metrics = {"a": "accuracy", "f": "f1"}
    lines = [
        line("1", 0.0, result="a"), line("1", 0.25, result="f"), line("2", 1.0, result="a"), line("2", 1.0, result="f"),
    ]  # fmt: skip
    path = write(tmp_path / "b", 1, lines, metrics=metrics)
    refuses("several metrics: 'accuracy', 'f1'", read, path)
    matrix = read_responses(path, metric="f1")
    assert (matrix.n_trials, matrix.responses.tolist()) == (None, [[0.25, 1.0]])


def test_errors_unknown_levels_and_attempts(tmp_path):
    path = write(tmp_path, 1, [line("1", 1), line("2", -1), line("3", 0)], has_unknown_level=True)
    assert warns("lost answers", read, path, category=ModelWarning).lost.n.tolist() == [[0, 1, 0]]
    path = write(tmp_path, 1, [line("1", 1), line("2", -1), line("3", 0)])
    refuses(r"must lie in \[0, 1\], got values from -1", read, path)
    lines = [line("1", 0.0, error="timeout"), line("2", 1.0), line("2", 0.0), line("2", 1.0)]
    write(tmp_path / "b", 1, lines)
    matrix = warns(
        "lost answers count as missing, not wrong: 1 of .* .1 time-out", read, tmp_path / "b", repeats="count"
    )
    np.testing.assert_array_equal(matrix.responses, [[np.nan, 2 / 3]])
    np.testing.assert_array_equal(matrix.n_trials, [[0, 3]])


@pytest.mark.parametrize(("config", "words"), [
    ({"min_score": 1, "max_score": 10}, "'accuracy' from 1 to 10"),
    ({"min_score": -1, "max_score": 1}, "'accuracy' from -1 to 1"),
    ({"score_type": "levels", "level_names": ["no", "half", "yes"]}, "'accuracy' from 0 to 2"),
    ({"min_score": 0, "max_score": 100}, ""),
    ({"score_type": "levels", "level_names": ["no", "yes"]}, ""),
])  # fmt: skip
def test_a_range_that_no_score_here_tells_is_warned_of(config, words, tmp_path):
    path = write(tmp_path, 1, [line("1", 1), line("2", 0)], **config)
    with pytest.warns(DataWarning, match=words) if words else nullcontext():
        assert read(path).responses.tolist() == [[1, 0]]


@pytest.mark.parametrize(("lines", "options", "message"), [
    ([line("1", 73.0)], {}, r"got values from 73 to 73\. .* percentages, add: tasks=.*, max_response=100"),
    ([line("1", 0.5)], {"lower": ("accuracy",)}, "better when lower"),
    ([{"model_id": "a", "evaluation": {}}], {}, "every line must have model_id, evaluation_name"),
])  # fmt: skip
def test_samples_that_can_be_no_responses(tmp_path, lines, options, message):
    write(tmp_path, 1, lines, **options)
    refuses(message, read, tmp_path, format="eee")


def test_other_questions_and_aggregates_alone_are_refused(tmp_path):
    write(tmp_path, 1, [line("1", 1.0)])
    write(tmp_path, 2, [line("1", 1.0, model="org/b", input={"raw": "another", "reference": ["4"]})])
    refuses(r"same content .input.raw and input.reference.", read, tmp_path)
    aggregate = write(tmp_path / "b", 1, [line("1", 1.0)]).with_name(UUID.format(1) + ".json")
    refuses("is an aggregate of Every Eval Ever, without samples", read, aggregate)
