import re
from pathlib import Path

import pytest

from itembank.errors import DataError, ParameterError
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.study_files import load_prediction
from itembank.studies.study_specs import CalibrationChoice

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL = """
name = "small"
task = "subscenario"
cost = "tokens"
n_calibration_tasks = [1, 4]
n_items = [1, 2]
[data]
responses = "responses.parquet"
columns = {output_tokens = "output_chars"}
[item_models.nested]
method = "map"
item_model = "nested"
n_dims = 4
l1 = 0.2
[[assessors]]
predictor = "nested"
[[assessors]]
predictor = "nested"
paradigm = "adaptation"
selector = "v-optimal"
per_cost = true
options = {of = "score"}
"""


@pytest.fixture
def load(study_file):
    return lambda text: load_prediction(study_file(text))


def test_a_file_says_a_study(load, tmp_path):
    spec = load(SMALL)
    assert spec.item_models == {"nested": CalibrationChoice("map", 4, "nested", options={"l1": 0.2})}
    adaptive = Assessor("nested", "adaptation", "v-optimal", per_cost=True, options={"of": "score"})
    assert spec.assessors == (Assessor("nested"), adaptive)
    assert spec.n_items == (1, 2)
    assert spec.data.responses == ("responses.parquet",)
    assert spec.data.columns == {"output_tokens": "output_chars"}
    assert spec.data.folder == tmp_path
    assert spec.to_dict()["data"]["columns"] == {"output_tokens": "output_chars"}


def test_lists_stand_for_all_combinations(load):
    many = (
        SMALL
        + """
[[assessors]]
predictor = "nested"
paradigm = ["selection", "adaptation"]
selector = ["d-optimal", "trace"]
per_cost = [false, true]
"""
    )
    made = load(many).assessors[2:]
    assert len(made) == len({one.name for one in made}) == 8
    assert {(one.paradigm, one.selector, one.per_cost) for one in made} == {
        (paradigm, selector, per_cost)
        for paradigm in ("selection", "adaptation")
        for selector in ("d-optimal", "trace")
        for per_cost in (False, True)
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_items", "n_item", "keys of a prediction study must be among .* got 'n_item'"),
        ("selector =", "select =", r"keys of \[\[assessors\]\] must be among .* got 'select'"),
        ('{of = "score"}', "3", "options of an assessor must be a table, got 3"),
        ("[[assessors]]", "[assessors.x]", "assessors must be a list of tables"),
        ("[data]", "[date]", r"needs a table \[data\]"),
        ("n_dims = 4", "n_dims = 0", "n_dims"),
        ('name = "small"', "", "needs 'name' as well"),
    ],
)
def test_mistakes_are_named_with_the_file(load, old, new, message):
    text = (
        SMALL.replace(old, new)
        if "[[" not in old
        else SMALL.split(old, maxsplit=1)[0] + new + '\npredictor = "nested"\n'
    )
    with pytest.raises(ParameterError, match=f"study.toml: .*{message}"):
        load(text)


def test_a_file_that_is_not_toml_is_refused(load):
    with pytest.raises(DataError, match="cannot be read as a study"):
        load("name = ")


@pytest.mark.parametrize("path", sorted((REPOSITORY / "benchmarks" / "studies").glob("prediction_*.toml")))
def test_the_studies_of_the_repository_can_be_read(path):
    assert load_prediction(path).name == path.stem


def test_the_study_in_the_docs_can_be_read(load):
    page = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
    _, text = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert {one.paradigm for one in load(text).assessors} == {"prediction", "selection", "adaptation"}
