from pathlib import Path

import polars as pl

from benchmarks import shifts
from benchmarks.tiny_versions import whole
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank_studies.study_files import load_study


def test_studies_of_shifts_have_the_methods_of_their_table_and_prompts_of_models_asked_both_ways(tmp_path, monkeypatch):
    for name in shifts.NAMES:
        assert set(shifts.METHODS.values()) <= set(load_study(shifts.STUDIES / f"{name}.toml").pairs)
    folder = tmp_path / "data" / "livecodebench"
    folder.mkdir(parents=True)
    asked = [("a", "codeexecution"), ("a", "codeexecution_cot"), ("b", "codeexecution"), ("a", "selfrepair")]
    rows = [
        {"model_id": model, "item_id": f"codeexecution/{item}", "scenario": scenario, "response": 0.4 + 0.1 * item}
        for model, scenario in asked
        for item in range(3)
    ]
    pl.DataFrame(rows).write_parquet(folder / "responses.parquet")
    monkeypatch.setenv("ITEMBANK_SHARED", str(tmp_path))
    shifts.write_prompts(tmp_path)
    responses = read_responses(Path(tmp_path / "prompts.parquet"))
    ways = [("a, at once", "a", "at once"), ("a, step by step", "a", "step by step")]
    assert responses.models.sort("model_id").rows() == ways
    assert responses.responses.tolist() == [[0.0, 0.0, 1.0]] * 2
    nan = float("nan")
    cells = [[nan, nan, nan], [1.0, 0.0, nan], [0.0, 1.0, 1.0]]
    found = whole(ResponseMatrix.create(cells, model_ids=["none", "some", "all"]))
    assert (found.model_ids, found.responses.tolist()) == (["some", "all"], [[1.0, 0.0], [0.0, 1.0]])
