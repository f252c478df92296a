"""Real logs: the harness wrote the averages too, into the results file."""

import json
import re

import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.logs import read_lm_eval


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
        ("old_format_2023", "12b_step143000.json: is a results file of lm_eval, without samples"),
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
        DataError, match=r"'chrf_score' must lie .* from 58.2087 to 73.4734. .* tasks=.*, max_response=100"
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
    assert "1 run has no samples and is left out: 'results_2024-08-21T04-27-29.701325.json'" in texts
    assert matrix.models["is_partial"].to_list() == [True]
    assert matrix.model_ids == ["meta-llama/Meta-Llama-3-8B-Instruct"]
