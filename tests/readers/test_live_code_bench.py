import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.collecting import rows_of_source
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.readers.live_code_bench import is_live_code_bench, live_code_bench_published
from tests.readers.public.stores import write, write_live_code_bench


def test_samples_that_pass_are_counted(tmp_path):
    write_live_code_bench(tmp_path, {"llm": {"1_A": [True, False], "abc_b": [True, True]}}, stated=0.75)
    rows = rows_of_source("livecodebench", [tmp_path], ReadingSpec())
    assert rows.models["model_id"].to_list() == ["llm"]
    assert rows.items["item_id"].to_list() == ["1_A", "abc_b"]
    assert rows.response.tolist() == [0.5, 1.0]
    assert rows.frame["n_trials"].to_list() == [2, 2]
    assert rows.items.row(0, named=True) == {
        "item_id": "1_A",
        "scenario": "codegeneration",
        "subscenario": "easy",
        "contest_date": "2024-01-06T00:00:00",
        "difficulty": "easy",
        "platform": "p",
    }
    assert list(live_code_bench_published(tmp_path)) == [("llm", "codegeneration", 0.75)]


@pytest.mark.parametrize(("scenario", "key"), [("testoutputprediction", "test_id"), ("codeexecution", "id")])
def test_tests_that_are_asked_for_one_by_one_are_items(scenario, key, tmp_path):
    records = [{"question_id": "q", key: k, "graded_list": [True]} for k in range(2)]
    path = write(tmp_path / "llm" / f"Scenario.{scenario}_1_0.0_eval_all.json", records)
    rows = rows_of_source("livecodebench", [path], ReadingSpec())
    assert rows.items["item_id"].to_list() == ["q/0", "q/1"]
    assert rows.items["scenario"].unique().to_list() == [scenario]
    assert not list(live_code_bench_published(path))


def test_averages_are_left_out_of_a_folder_and_refused_by_name(tmp_path):
    write_live_code_bench(tmp_path, {"llm": {"a": [True]}})
    averages = write(
        tmp_path / "other" / "Scenario.codegeneration_eval_all.json", {"model": "other", "pass_at_1": 100.0}
    )
    with pytest.warns(DataWarning, match="a file is left out: .*other.*must have question_id"):
        rows = rows_of_source("livecodebench", [tmp_path], ReadingSpec())
    assert rows.models["model_id"].to_list() == ["llm"]
    with pytest.raises(DataError, match="must have question_id and graded_list"):
        rows_of_source("livecodebench", [averages], ReadingSpec())
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="holds no "):
        rows_of_source("livecodebench", [tmp_path / "none"], ReadingSpec())
    assert not is_live_code_bench({"question_id": 1})
