import json

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix

ONE, OTHER = ["gpt-4o-2024-05-13", "claude-3-opus-20240229"], ["GPT-4O-20240513", "Claude-3-Opus", "Qwen2-7B"]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    paths = []
    for name, models in (("a", ONE), ("b", OTHER)):
        answers = (rng.random((len(models), 4)) < 0.5).astype(float)
        items = [f"{name}/{j}" for j in range(4)]
        paths.append(tmp_path / f"{name}.parquet")
        write_responses(ResponseMatrix.create(answers, model_ids=models, item_ids=items), paths[-1])
    return paths


def test_proposals_are_edited_and_joined(run, files, tmp_path):
    names, joined = tmp_path / "names.csv", tmp_path / "joined.parquet"
    outcome = run("match-names", *files, "-o", names, "--format", "json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    assert [(row["same"], row["other_model_id"], row["differs"]) for row in rows] == [
        ("yes", "GPT-4O-20240513", ""),
        ("", "Claude-3-Opus", "date"),
    ]
    assert "--names" in outcome.err
    outcome = run("import", *files, "--names", names, "-o", joined)
    assert outcome.code == 0, outcome.err
    assert read_responses(joined).model_ids == [*ONE, "Claude-3-Opus", "Qwen2-7B"]
    names.write_text(names.read_text().replace('\n"",', "\nyes,"))
    run("import", *files, "--names", names, "-o", joined)
    whole = read_responses(joined)
    assert whole.model_ids == [*ONE, "Qwen2-7B"]
    apart = read_responses(files[1])
    np.testing.assert_array_equal(whole.responses[0, 4:], apart.responses[0])
    np.testing.assert_array_equal(whole.responses[1, 4:], apart.responses[1])


def test_names_that_would_mix_two_models_of_a_file_are_refused(files):
    spec = ReadingSpec(model_names={"GPT-4O-20240513": "x", "Claude-3-Opus": "x"})
    with pytest.raises(DataError, match="models of one file must keep different names, but 'GPT-4O-20240513'"):
        read_responses(files[1], spec=spec)


def test_one_file_has_nothing_to_match(run, files, tmp_path):
    outcome = run("match-names", files[0], "-o", tmp_path / "names.csv")
    assert outcome.code == 2
    assert "two sets or more" in outcome.err
