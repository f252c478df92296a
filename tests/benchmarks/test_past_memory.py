"""The simulated data of the benchmark are what its table says."""

import numpy as np
import pytest

from benchmarks.past_memory import N_BLOCKS, Case, fitted, simulate


@pytest.mark.parametrize("design", ["complete", "blocks", "scattered"])
def test_the_share_that_is_answered_is_the_one_that_is_named(design, tmp_path):
    answered = 1.0 if design == "complete" else 0.1
    simulate(Case(400, 200, answered, design), tmp_path)
    codes = np.fromfile(tmp_path / "codes", np.uint8).reshape(200, 400)
    is_known = codes != 255
    assert set(np.unique(codes[is_known])) == {0, 1}
    assert is_known.mean() == pytest.approx(answered, abs=0.01)
    n_benchmarks = is_known.reshape(N_BLOCKS, -1, 400).any(axis=1).sum(axis=0)
    assert np.all(n_benchmarks == {"complete": N_BLOCKS, "blocks": 2}.get(design, n_benchmarks))


def test_abilities_are_found_in_a_mapped_file(tmp_path):
    case = Case(60, 80, is_mapped=True)
    simulate(case, tmp_path)
    found = fitted(case, tmp_path)
    assert found["converged"]
    assert found["r_ability"] > 0.9
