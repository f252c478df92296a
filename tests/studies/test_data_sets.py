import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.studies.data_sets import load_data
from itembank.studies.study_specs import DataSpec


@pytest.fixture
def folder(tmp_path):
    rows = [(f"m{m}", f"i{i}", (m + i) % 2) for m in range(4) for i in range(6)]
    pl.DataFrame(rows, schema=["model_id", "item_id", "right"], orient="row").write_csv(tmp_path / "r.csv")
    pl.DataFrame({"model_id": [f"m{m}" for m in range(4)], "bad": [False, True, False, False]}).write_csv(
        tmp_path / "models.csv"
    )
    pl.DataFrame({"item_id": [f"i{i}" for i in range(6)], "part": list("aabbcc")}).write_csv(tmp_path / "items.csv")
    return tmp_path


def spec(folder, **changes):
    choices = {"responses": ("r.csv",), "models": "models.csv", "items": "items.csv", "response_column": "right"}
    return DataSpec(**{**choices, **changes}, folder=folder)


def test_files_are_found_beside_the_study_and_filtered(folder):
    data = load_data(
        spec(folder, drop_models={"column": "bad", "value": True}, keep_items={"column": "part", "value": ["a", "c"]})
    )
    assert data.model_ids == ["m0", "m2", "m3"]
    assert data.item_ids == ["i0", "i1", "i4", "i5"]
    np.testing.assert_array_equal(data.responses[0], [0.0, 1.0, 0.0, 1.0])


def test_messages_name_the_variable_and_not_what_it_holds(monkeypatch, tmp_path):
    monkeypatch.setenv("TOKEN", str(tmp_path / "secret"))
    (tmp_path / "secret").mkdir()
    spec = DataSpec(responses=("${TOKEN}/results.csv",))
    for content in (None, "", "model_id,item_id,response\na,b,7\n"):
        if content is not None:
            (tmp_path / "secret" / "results.csv").write_text(content)
        with pytest.raises(DataError, match=r"\$\{TOKEN\}/results\.csv") as caught:
            load_data(spec)
        assert "secret" not in str(caught.value)


def test_variables_of_the_environment_stand_for_folders(folder, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("RESULTS_HOME", str(folder))
    names = {"responses": ("${RESULTS_HOME}/r.csv",), "models": "${RESULTS_HOME}/models.csv", "items": ""}
    assert load_data(spec(elsewhere, **names)).n_models == 4
    monkeypatch.delenv("RESULTS_HOME")
    with pytest.raises(ParameterError, match="environment variable 'RESULTS_HOME', which is not set"):
        load_data(spec(elsewhere, **names))


def test_built_in_data_need_no_file():
    data = load_data(DataSpec(builtin="classifiers", keep_items={"column": "scenario", "value": "iris"}))
    assert set(data.items["scenario"]) == {"iris"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drop_models": {"column": "worse", "value": True}}, "drop_models needs the column 'worse'.*'bad'"),
        ({"keep_items": {"column": "part", "value": "d"}}, "keep_items leaves nothing.*'a', 'b', 'c'"),
        ({"responses": ("nothing.csv",)}, "must be there, but .*nothing.csv is not"),
        ({"items": "nothing.csv"}, "must be there, but .*nothing.csv is not"),
    ],
)
def test_data_that_are_not_there_are_named(folder, changes, message):
    with pytest.raises(DataError, match=message):
        load_data(spec(folder, **changes))


@pytest.mark.parametrize(
    ("changes", "n_models", "n_items", "absent"),
    [
        (
            {"drop_models": {"column": "bad", "value": "true"}},
            4,
            6,
            "drop_models.*'bad' .of type Boolean.*'true'; it has 'False', 'True'",
        ),
        ({"keep_items": {"column": "part", "value": ["a", "d"]}}, 4, 2, "keep_items.*'part'.*'d'; it has 'a', 'b'"),
    ],
)
def test_a_filter_that_names_no_value_of_its_column_is_told(folder, changes, n_models, n_items, absent):
    with pytest.warns(DataWarning, match=absent):
        data = load_data(spec(folder, **changes))
    assert (data.n_models, data.n_items) == (n_models, n_items)
