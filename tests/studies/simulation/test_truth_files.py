import dataclasses
from pathlib import Path

import numpy as np
import pytest

from itembank.errors import DataError
from itembank_studies.simulation.simulate import load_truth, save_truth, simulate, truth_path
from itembank_studies.simulation.simulation_specs import SimulationSpec


def test_written_then_read_is_identity(tmp_path):
    truth = simulate(SimulationSpec(n_models=4, n_items=60, n_tasks=3, guessing=0.2, missing=0.1), 0).truth
    save_truth(truth, tmp_path / "a" / "r.truth.safetensors")
    again = load_truth(tmp_path / "a" / "r.truth.safetensors")
    assert (again.spec, again.task_names) == (truth.spec, truth.task_names)
    np.testing.assert_array_equal(again.abilities, truth.abilities)
    np.testing.assert_array_equal(again.task_scores, truth.task_scores)
    for field in dataclasses.fields(truth.parameters):
        np.testing.assert_array_equal(getattr(again.parameters, field.name), getattr(truth.parameters, field.name))


def test_the_truth_stands_beside_the_responses():
    assert truth_path(Path("a/b.parquet")) == Path("a/b.truth.safetensors")


def test_other_files_are_refused(tmp_path):
    from safetensors.numpy import save_file  # noqa: PLC0415

    save_file({"abilities": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(DataError, match="must hold the truth of a simulation, schema version 1"):
        load_truth(tmp_path / "other")
    (tmp_path / "cut").write_bytes(b"\x10\x00\x00")
    with pytest.raises(DataError, match="cannot be read"):
        load_truth(tmp_path / "cut")


def test_a_changed_truth_is_refused(tmp_path):
    path = tmp_path / "r.truth.safetensors"
    save_truth(simulate(SimulationSpec(n_models=3, n_items=20, n_tasks=2), 0).truth, path)
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with pytest.raises(DataError, match="its bytes are not those that were written"):
        load_truth(path)
