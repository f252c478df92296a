import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank.spreadsheets import write_guarded_csv
from itembank.studies.same_models import match_models, read_model_names

SETS = {
    "a": ["gpt-4o-2024-05-13", "claude-3-opus-20240229", "the same", "=odd-1"],
    "b": ["GPT-4O-20240513", "GPT-4O-2024-05-13-FC", "Claude-3-Opus", "the same", "=ODD-1"],
    "c": ["gpt4o-2024-05-13"],
}


def written(folder, table, **says):
    """The table with 'same' set for some second models."""
    same = pl.col("other_model_id").replace_strict(says, default=pl.col("same")) if says else pl.col("same")
    path = folder / "names.csv"
    write_guarded_csv(table.with_columns(same=same), path)
    return path


def test_proposals_are_sure_only_of_what_is_written_otherwise():
    found = match_models(SETS)
    rows = {(row["model_id"], row["other_model_id"]): row for row in found.iter_rows(named=True)}
    assert rows["gpt-4o-2024-05-13", "GPT-4O-20240513"]["same"] == "yes"
    assert rows["claude-3-opus-20240229", "Claude-3-Opus"]["same"] == ""
    assert rows["gpt-4o-2024-05-13", "GPT-4O-2024-05-13-FC"]["differs"] == "fc"
    assert not any("the same" in pair for pair in rows)
    assert found["score"].is_sorted(descending=True)
    assert match_models(SETS, least=0.95).height < found.height


def test_the_edited_table_names_the_models(tmp_path):
    path = written(tmp_path, match_models(SETS), **{"Claude-3-Opus": "Yes ", "GPT-4O-2024-05-13-FC": "no"})
    assert read_model_names(path) == {
        "GPT-4O-20240513": "gpt-4o-2024-05-13",
        "gpt4o-2024-05-13": "gpt-4o-2024-05-13",
        "Claude-3-Opus": "claude-3-opus-20240229",
        "=ODD-1": "=odd-1",  # to the letter, though no spreadsheet may run it
    }


def test_nothing_is_joined_that_nobody_says_is_the_same(tmp_path):
    found = match_models({"a": ["claude-3-opus-20240229"], "b": ["Claude-3-Opus"]})
    assert found.height == 1
    assert read_model_names(written(tmp_path, found)) == {}


def test_two_models_of_one_set_stay_apart(tmp_path):
    path = written(tmp_path, match_models(SETS), **{"GPT-4O-2024-05-13-FC": "yes"})
    with pytest.raises(DataError, match=r"models of one set must stay apart, but .*'GPT-4O-2024-05-13-FC'.* of b"):
        read_model_names(path)


def test_tables_that_cannot_be_understood_are_refused(tmp_path):
    found = match_models(SETS)
    with pytest.raises(DataError, match="'same' must be 'yes', 'no' or empty, got 'maybe'"):
        read_model_names(written(tmp_path, found, **{"Claude-3-Opus": "maybe"}))
    with pytest.raises(DataError, match="there must be columns 'other_set'"):
        read_model_names(written(tmp_path, found.drop("other_set")))
    with pytest.raises(ParameterError, match="two sets or more"):
        match_models({"a": ["x"]})
    with pytest.raises(ParameterError, match="least must be above 0 and at most 1"):
        match_models(SETS, least=0.0)
