"""The made-up HELM is read as it was drawn, and the study files of further targets can be loaded."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulated_helm import METRICS, SCENARIOS, draw, matrix_of, write_runs
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.studies.study_files import load_study

STUDIES = Path(__file__).parents[2] / "benchmarks" / "studies"


def test_runs_are_read_as_they_were_drawn(tmp_path):
    models, organisations, answers = draw(0, n_models=12)
    assert 1 < len(set(organisations)) <= 11
    few = {task: own[:2, :6] for task, own in answers.items()}
    write_runs(tmp_path, models[:2], few)
    read = read_responses(tmp_path / "benchmark_output", spec=ReadingSpec(format="helm", metric=METRICS))
    assert set(read.items["scenario"]) == set(SCENARIOS)
    assert sorted(read.model_ids) == sorted(models[:2])
    task = read.items["subscenario"].fill_null(read.items["scenario"]).to_numpy()
    for name, own in few.items():
        found = read.responses[read.model_indices(models[:2])][:, task == name]
        np.testing.assert_allclose(np.sort(found, axis=1), np.sort(own, axis=1))


def test_models_of_an_organisation_can_miss_the_same_instances():
    def likeness(alike):
        _, organisations, answers = draw(0, alike=alike)
        own = np.array(organisations)
        rest = answers["gsm"] - answers["gsm"].mean(axis=0)
        r = np.corrcoef(rest)
        same = (own[:, None] == own) & ~np.eye(own.size, dtype=bool)
        return r[same].mean() - r[own[:, None] != own].mean()

    assert likeness(1.5) > likeness(0.0) + 0.1


def test_a_leaderboard_has_helms_size():
    matrix = matrix_of(3)
    assert matrix.n_models == 30
    assert 9_000 < matrix.n_items < 11_000
    assert matrix.items["scenario"].n_unique() == 10


@pytest.mark.parametrize(("name", "targets"), [("helm", 1), ("openllm1_leaderboard", 8)])
def test_studies_of_further_targets_can_be_loaded(name, targets):
    spec = load_study(STUDIES / f"{name}.toml")
    assert len(spec.targets) == targets
    assert "mean_win_rate" in spec.targets
