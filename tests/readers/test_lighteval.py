"""Details of lighteval and of the Open LLM Leaderboard v1, in the layouts that their code writes."""

import numpy as np
import polars as pl
import pytest

from tests.readers.reading import read, refuses, warns

DATE = "2023-07-19T13:48:53.093937"
OLD = {"example": ["q0", "q1"], "choices": [["a", "b"], ["c", "d"]], "gold": [0, 1], "acc": [1.0, 0.0], "junk": [5, 6]}


def write(folder, task, columns, date=DATE):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"details_{task}_{date}.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_details_of_july_2023_and_later_ones_in_structs(tmp_path):
    write(tmp_path / "details_org__my__model" / DATE, "harness|arc:challenge|25", OLD)
    write(tmp_path / "details_org__b" / DATE, "harness|arc:challenge|25", {**OLD, "acc": [0.0, 0.0]})
    matrix = read(tmp_path)
    assert matrix.model_ids == ["org/b", "org/my__model"]
    assert matrix.item_ids == ["harness|arc:challenge|25/0", "harness|arc:challenge|25/1"]
    assert (matrix.items["scenario"].to_list(), matrix.responses.tolist()) == (["arc", "arc"], [[0, 0], [1, 0]])
    assert matrix.items["content_hash"].n_unique() == 2
    columns = {"example": ["q0", "q1"], "metrics": [{"em": 0.5, "words": "x"}, {"em": 1.0, "words": "y"}]}
    path = write(tmp_path / "b" / "details_org__a" / "2023-10-10T07-39-47.100914", "harness|drop|3", columns)
    assert read(path).responses.tolist() == [[0.5, 1.0]]
    columns = {
        "doc": [{"query": f"q{k}", "choices": ["a"], "gold_index": [0], "extra": k} for k in range(2)],
        "metric": [{"extractive_match": 1.0}, {"extractive_match": None}],
        "model_response": [
            {"input_tokens": [1, 2, 3], "output_tokens": [[4, 5], [6]]},
            {"input_tokens": [1], "output_tokens": [[7]]},
        ],
    }
    write(tmp_path / "b" / "b" / "details" / "org" / "model" / "2025-10-08T19-18-10.1", "lighteval|gsm8k|0", columns)
    matrix = warns("lost answers count as missing", read, tmp_path / "b" / "b")
    assert matrix.model_ids == ["org/model"]
    np.testing.assert_array_equal(matrix.responses, [[1.0, np.nan]])
    np.testing.assert_array_equal(matrix.costs["input_tokens"], [[3, 1]])
    np.testing.assert_array_equal(matrix.costs["output_tokens"], [[3, 1]])


def test_rows_in_another_order_and_nameless_files_are_refused(tmp_path):
    write(tmp_path / "details_org__a" / DATE, "t", OLD)
    write(tmp_path / "details_org__b" / DATE, "t", {name: values[::-1] for name, values in OLD.items()})
    refuses(r"same content \(question and options\).* 2 of 2 items", read, tmp_path)
    write(tmp_path / "b" / "details_org__a" / "d", "task", OLD, date="yesterday")
    refuses("must name task and date", read, tmp_path / "b")


@pytest.mark.parametrize(("folder", "task", "columns", "message"), [
    ("details_org__a/d", "t", {"example": ["q"], "marks": [1.0]}, "there must be a struct of metrics"),
    ("details_org__a/d", "t", {"example": [], "acc": []}, "at least one answer"),
    ("d", "t", OLD, "the model is unknown"),
])  # fmt: skip
def test_files_that_cannot_be_read(tmp_path, folder, task, columns, message):
    write(tmp_path / folder, task, columns)
    refuses(message, read, tmp_path)
