import copy
import json
import re
import tomllib
from pathlib import Path

import pytest

from itembank.errors import DataError, ParameterError
from itembank.studies.split_specs import ByDate, KFold, NamedGroup, TrainingShare
from itembank.studies.study_files import load_study, study_of
from itembank.studies.study_specs import CalibrationChoice, CostBudget, DataSpec

REPOSITORY = Path(__file__).resolve().parents[2]
FULL = """
name = "full"
selectors = ["random", {method = "anchor-irt", n_restarts = 10, name = "IRT"}]
estimators = ["weighted", "gp-irt"]
pairs = [["IRT", "gp-irt"], ["random", "weighted"]]
n_draws = 2
repeats = 3
level = 0.9
interval = "model-based"
seed = 5

[data]
responses = ["a.parquet", "b.parquet"]
models = "models.csv"
response_column = "correct"
drop_models = {column = "is_bad", value = true}

[calibration]
method = "map"
n_dims = 3
across = "items"
l1 = 0.2

[budget]
cost = "output_tokens"
amounts = [1000, 5000.0]

[[splits]]
kind = "k-fold"
k = 5

[[splits]]
kind = "date"
column = "released"

[[splits]]
kind = "named-group"
column = "domain"
values = ["code", "law"]
name = "specialised"

[[splits]]
kind = "training-share"
n_models = [10, 20]
"""
SMALL = """
name = "small"
selectors = ["random"]
estimators = ["weighted"]
n_items = [30]
[data]
builtin = "classifiers"
[[splits]]
kind = "random"
"""


@pytest.fixture
def load(study_file):
    return lambda text: load_study(study_file(text))


def test_every_part_of_a_file_arrives(load, tmp_path):
    spec = load(FULL)
    assert spec.splits == (
        KFold(5),
        ByDate("released"),
        NamedGroup("domain", ("code", "law"), name="specialised"),
        TrainingShare((10, 20)),
    )
    assert [one.label for one in spec.selectors] == ["random", "IRT"]
    assert spec.pairs == (("IRT", "gp-irt"), ("random", "weighted"))
    assert spec.budget == CostBudget("output_tokens", (1000, 5000.0))
    assert spec.calibration == CalibrationChoice("map", 3, across="items", options={"l1": 0.2})
    assert spec.data == DataSpec(
        responses=("a.parquet", "b.parquet"),
        models="models.csv",
        response_column="correct",
        drop_models={"column": "is_bad", "value": True},
    )
    assert spec.data.folder == tmp_path
    assert (spec.n_draws, spec.repeats, spec.level, spec.interval, spec.seed) == (2, 3, 0.9, "model-based", 5)


def test_a_single_file_needs_no_list(load):
    assert load(SMALL.replace('builtin = "classifiers"', 'responses = "r.csv"')).data.responses == ("r.csv",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'title = "small"', "'name', 'splits'.*got 'title'"),
        ('name = "small"', "", "a study file needs 'name'"),
        ('name = "small"', "name = 3", "name of a study file must be a text, got 3"),
        ('["random"]', '["rndom"]', "must be one of 'random'.*'rndom'"),
        ('["random"]', '"random"', "selectors must be a list"),
        ('["weighted"]', '[{method = "weighted", power = 2}]', "must be among none, got 'power'"),
        ('kind = "random"', 'kind = "kfold"', "'k-fold', 'random', 'leave-one-out'.*got 'kfold'"),
        ('kind = "random"', 'kind = "random"\nshare = 0.2', "'test_share', 'name', got 'share'"),
        ('kind = "random"', 'kind = "date"', "split 'date' needs 'column' as well"),
        ('kind = "random"', 'kind = "group"\ncolumn = 3', "column of split 'group' must be a text"),
        ("[[splits]]", "[splits]", r"\[\[splits\]\]"),
        ("[data]", "[dat]", r"needs a table \[data\]"),
        ('builtin = "classifiers"', 'builtin = "classifiers"\nrow = 1', "got 'row'"),
        ("n_items = [30]", "n_items = 30", "n_items must be a list"),
        ("n_items = [30]", "n_items = [30]\nlevel = 2.0", "level must be between 0 and 1, got 2.0"),
        ("n_items = [30]", 'n_items = [30]\ninterval = "none"', "interval of a study must be one of 'calibrated'"),
        (
            "n_items = [30]",
            'n_items = [30]\ninterval = "design"',
            "goes with the estimator 'auto' alone, got 'weighted'",
        ),
        ("n_items = [30]", 'budget = {cost = "cost_usd"}', "budget needs 'amounts'"),
        ("n_items = [30]", "n_items = [30]\ncalibration = 3", "must be a table"),
        ("n_items = [30]", "n_items = [30]\ncalibration = {n_dim = 3}", "'n_dims'.*got 'n_dim'"),
    ],
)
def test_a_wrong_file_names_itself_and_what_is_allowed(load, old, new, message):
    assert old in SMALL
    with pytest.raises(ParameterError, match=message) as caught:
        load(SMALL.replace(old, new))
    assert "study.toml" in str(caught.value)


def places(table, path=()):
    """Paths to every value of a nested table."""
    pairs = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


CONTENT = tomllib.loads(FULL)


@pytest.mark.parametrize("wrong", [-3, 2.5, "x", True, [], [1], ["x"], [[1]], {}, {"a": 1}], ids=repr)
def test_a_value_of_any_wrong_kind_is_refused_in_words(wrong, tmp_path):
    n_refused = 0
    for *outer, last in places(CONTENT):
        content = copy.deepcopy(CONTENT)
        part = content
        for key in outer:
            part = part[key]
        part[last] = wrong
        try:
            made = study_of(content, tmp_path)
        except (ParameterError, DataError):
            n_refused += 1
        except Exception as error:
            raise AssertionError(f"{[*outer, last]} = {wrong!r}") from error
        else:
            json.dumps(made.to_dict(), default=str)  # what is accepted can be kept
    assert n_refused > 20


def test_a_file_that_is_no_toml_is_refused(load, tmp_path):
    with pytest.raises(DataError, match="cannot be read as a study"):
        load("name = ")
    with pytest.raises(DataError, match=r"nothing\.toml"):
        load_study(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    "path",
    [one for one in sorted((REPOSITORY / "benchmarks" / "studies").glob("*.toml")) if "prediction_" not in one.stem],
    ids=lambda one: one.stem,
)
def test_the_studies_that_come_with_the_project_can_be_read(path):
    assert load_study(path).data is not None


def test_the_study_in_the_docs_can_be_read(load):
    """The first of the page; the second is a prediction study."""
    page = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
    text, _ = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert [one.name for one in load(text).splits] == ["random", "newest"]
