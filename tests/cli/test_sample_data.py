import json

import polars as pl

from itembank.readers.builtin import NEW_MODEL, sample_data


def test_the_files_can_be_used_as_they_are(run, tmp_path):
    outcome = run("sample-data", "-o", tmp_path / "sample", "--format", "json")
    assert outcome.code == 0
    assert [row["models"] for row in json.loads(outcome.out)] == [110, 1]
    for name, n_models in (("past.csv", 110), ("new-model.csv", 1)):
        table = pl.read_csv(tmp_path / "sample" / name)
        assert table.columns == ["model_id", "item_id", "scenario", "response"]
        assert (table["model_id"].n_unique(), table["item_id"].n_unique(), table.height) == (
            n_models,
            680,
            680 * n_models,
        )
        assert set(table["response"]) == {0, 1}
    assert run("import", tmp_path / "sample/past.csv", "-o", tmp_path / "responses.parquet").code == 0


def test_no_checkpoint_of_the_new_models_run_is_among_the_past_models():
    past, new = sample_data()
    assert new.model_ids == [NEW_MODEL]
    assert not [model for model in past.model_ids if model.startswith(NEW_MODEL.rpartition("/")[0] + "/")]
    assert past.item_ids == new.item_ids


def test_a_file_that_is_there_is_left_as_it_is(run, tmp_path):
    (tmp_path / "new-model.csv").write_text("mine", encoding="utf-8")
    outcome = run("sample-data", "-o", tmp_path)
    assert (outcome.code, "new-model.csv' must not be there yet" in outcome.err) == (1, True)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


def test_the_same_command_again_ends_what_a_killed_one_began(run, tmp_path):
    assert run("sample-data", "-o", tmp_path).code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "new-model.csv").unlink()
    assert run("sample-data", "-o", tmp_path).code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
