"""Results of OpenCompass, in the layout that its evaluation task writes."""

import json

import numpy as np
import pytest

from itembank.errors import DataError, ModelWarning
from tests.readers.reading import put, read, refuses, warns


def write(folder, kind, model, dataset, content):
    place = folder / kind / model
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{dataset}.json").write_text(json.dumps(content, indent=4))


def details(*right):
    return {"type": "GEN"} | {
        str(k): {"prompt": f"q{k}", "origin_prediction": "x", "references": "A", "correct": one}
        for k, one in enumerate(right)
    }


PREDICTION = {"0": {"origin_prompt": "q", "prediction": "x", "gold": "A"}}


def test_details_are_read_whatever_their_scores_are_called(tmp_path):
    write(tmp_path, "results", "model-a", "gsm8k", {"accuracy": 50.0, "details": details(True, False)})
    write(tmp_path, "results", "model-b", "gsm8k", {"accuracy": 0.0, "details": details([False], [True])})
    write(tmp_path, "predictions", "model-a", "gsm8k", PREDICTION)
    matrix = read(tmp_path)
    assert (matrix.model_ids, matrix.item_ids) == (["model-a", "model-b"], ["gsm8k/0", "gsm8k/1"])
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [0, 1]])
    entries = [{"pred": "x", "answer": "A", "score": 0.5}, {"pred": "y", "answer": "B", "score": 1.0}]
    write(tmp_path / "b", "results", "m", "d", {"details": entries})
    assert read(tmp_path / "b").responses.tolist() == [[0.5, 1.0]]


@pytest.mark.parametrize("key", ["correct", "is_correct", "cascade_correct"])
def test_attempts_at_an_item_are_counted_when_asked_for(key, tmp_path):
    entries = [{"pred": [0, 1], "answer": ["0", "0"], key: [True, one], "G-Pass@2_0.5": 1.0} for one in (True, None)]
    write(tmp_path, "results", "m", "aime", {"details": entries})
    refuses("never averaged unasked", read, tmp_path)
    matrix = warns("lost answers", read, tmp_path, repeats="count", category=ModelWarning)
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[1, 1]], [[2, 1]])
    assert matrix.lost.n.tolist() == [[0, 1]]


def test_predictions_averages_and_numbers_that_are_no_scores_are_refused(tmp_path):
    write(tmp_path, "predictions", "m", "gsm8k", PREDICTION)
    hint = r"Predictions hold no scores: give the folder that holds results/ too.*--dump-eval-details"
    refuses(hint, read, tmp_path, format="opencompass")
    refuses(hint, read, tmp_path / "predictions" / "m" / "gsm8k.json")
    write(tmp_path / "b", "results", "m", "gsm8k", {"accuracy": 50.0})
    refuses("must hold details of every item, got averages only", read, tmp_path / "b", format="opencompass")
    write(tmp_path / "c", "results", "m", "d", {"details": [{"pred": [1], "answer": ["0"]}]})
    refuses("no metric that can be a response: it logs none", read, tmp_path / "c")
    write(tmp_path / "d", "results", "m", "gsm8k", PREDICTION)
    with pytest.raises(DataError, match=r"though it lies in results/.*Evaluate them \(--mode eval") as error:
        read(tmp_path / "d" / "results" / "m" / "gsm8k.json")
    assert "give the folder" not in str(error.value)


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
@pytest.mark.parametrize("told", [
    {"model": "a", "details": [{"prompt": "x", "correct": True}]},
    {"accuracy": 100.0, "details": [{"question_id": "x", "correct": True}]},
    [{"details": [{"prompt": "x", "correct": True}]}] * 2,
])  # fmt: skip
def test_details_of_others_are_not_read(tmp_path, told):
    refuses(r"--jq|jq=|must be one object, got a list of several", read, put(tmp_path / "r.json", told))
