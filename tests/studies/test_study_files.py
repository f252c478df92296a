import copy
import json
import re
import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimator_specs import GPIRT
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.selection.selector_specs import METHODS, AnchorIRT, Random
from itembank_studies.prediction.prediction_spec import Assessor
from itembank_studies.split_specs import Ahead, Beyond, ByGroup, KFold, NamedGroup, RandomShare, TrainingShare
from itembank_studies.study_files import load_data, load_prediction, load_study, study_of
from itembank_studies.study_specs import (
    CalibrationChoice,
    CostBudget,
    DataSpec,
    MethodChoice,
    StudySpec,
    resolve_choice,
)
from tests.studies.simulated import make_spec

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def load(tmp_path):
    """Read the text of a study file."""

    def loaded(text, read=load_study):
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        return read(tmp_path / "study.toml")

    return loaded


@pytest.fixture
def folder(tmp_path):
    rows = [(f"m{m}", f"i{i}", (m + i) % 2) for m in range(4) for i in range(6)]
    pl.DataFrame(rows, schema=["model_id", "item_id", "right"], orient="row").write_csv(tmp_path / "r.csv")
    models = {"model_id": [f"m{m}" for m in range(4)], "bad": [False, True, False, False]}
    pl.DataFrame(models).write_csv(tmp_path / "models.csv")
    pl.DataFrame({"item_id": [f"i{i}" for i in range(6)], "part": list("aabbcc")}).write_csv(tmp_path / "items.csv")
    return tmp_path


def spec(folder, **changes):
    choices = {"responses": ("r.csv",), "models": "models.csv", "items": "items.csv", "response_column": "right"}
    return DataSpec(**{**choices, **changes}, folder=folder)


def test_files_are_found_beside_the_study_and_filtered_and_built_in_data_need_none(folder):
    data = load_data(
        spec(folder, drop_models={"column": "bad", "value": True}, keep_items={"column": "part", "value": ["a", "c"]})
    )
    assert data.model_ids == ["m0", "m2", "m3"]
    assert data.item_ids == ["i0", "i1", "i4", "i5"]
    np.testing.assert_array_equal(data.responses[0], [0.0, 1.0, 0.0, 1.0])
    data = load_data(DataSpec(builtin="classifiers", keep_items={"column": "scenario", "value": "iris"}))
    assert set(data.items["scenario"]) == {"iris"}


def test_variables_of_the_environment_stand_for_folders_and_messages_do_not_say_what_they_hold(
    folder, monkeypatch, tmp_path_factory, tmp_path
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("RESULTS_HOME", str(folder))
    names = {"responses": ("${RESULTS_HOME}/r.csv",), "models": "${RESULTS_HOME}/models.csv", "items": ""}
    assert load_data(spec(elsewhere, **names)).n_models == 4
    monkeypatch.delenv("RESULTS_HOME")
    with pytest.raises(ParameterError, match="environment variable 'RESULTS_HOME', which is not set"):
        load_data(spec(elsewhere, **names))
    monkeypatch.setenv("TOKEN", str(tmp_path / "secret"))
    (tmp_path / "secret").mkdir()
    secret = DataSpec(responses=("${TOKEN}/results.csv",))
    for content in (None, "", "model_id,item_id,response\na,b,7\n"):
        if content is not None:
            (tmp_path / "secret" / "results.csv").write_text(content)
        with pytest.raises(DataError, match=r"\$\{TOKEN\}/results\.csv") as caught:
            load_data(secret)
        assert "secret" not in str(caught.value)


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
    ("choice", "column", "value", "n_items", "absent"),
    [
        ("drop_models", "bad", "true", 6, "'bad' .of type Boolean.*'true'; it has 'False', 'True'"),
        ("keep_items", "part", ["a", "d"], 2, "'part'.*'d'; it has 'a', 'b'"),
    ],
)
def test_a_filter_that_names_no_value_of_its_column_is_told(folder, choice, column, value, n_items, absent):
    with pytest.warns(DataWarning, match=f"{choice}.*{absent}"):
        data = load_data(spec(folder, **{choice: {"column": column, "value": value}}))
    assert (data.n_models, data.n_items) == (4, n_items)


SMALL_PREDICTION = """
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
"""


def test_a_file_says_a_study_and_lists_in_it_all_combinations(load, tmp_path):
    spec = load(SMALL_PREDICTION, load_prediction)
    assert spec.item_models == {"nested": CalibrationChoice("map", 4, "nested", options={"l1": 0.2})}
    adaptive = Assessor("nested", "adaptation", "v-optimal", per_cost=True)
    assert spec.assessors == (Assessor("nested"), adaptive)
    assert spec.n_items == (1, 2)
    assert spec.data.responses == ("responses.parquet",)
    assert spec.data.columns == {"output_tokens": "output_chars"}
    assert spec.data.folder == tmp_path
    assert spec.to_dict()["data"]["columns"] == {"output_tokens": "output_chars"}
    lists = 'paradigm = ["selection", "adaptation"]\nselector = ["d-optimal", "fisher"]\nper_cost = [false, true]'
    text = f'{SMALL_PREDICTION}[[assessors]]\npredictor = "nested"\n{lists}'
    made = load(text, load_prediction).assessors[2:]
    assert len(made) == len({one.name for one in made}) == 8
    assert {(one.paradigm, one.selector, one.per_cost) for one in made} == set(
        product(("selection", "adaptation"), ("d-optimal", "fisher"), (False, True))
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_items", "n_item", "keys of a prediction study must be among .* got 'n_item'"),
        ("selector =", "select =", r"keys of \[\[assessors\]\] must be among .* got 'select'"),
        ("[[assessors]]", "[assessors.x]", "assessors must be a list of tables"),
        ("[data]", "[date]", r"needs a table \[data\]"),
        ("n_dims = 4", "n_dims = 0", "n_dims"),
        ('name = "small"', "", "needs 'name' as well"),
    ],
)
def test_mistakes_are_named_with_the_file(load, old, new, message):
    text = SMALL_PREDICTION.replace(old, new)
    if "[[" in old:
        text = f'{SMALL_PREDICTION.split(old, maxsplit=1)[0]}{new}\npredictor = "nested"\n'
    with pytest.raises(ParameterError, match=f"study.toml: .*{message}"):
        load(text, load_prediction)


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
kind = "ahead"
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


def test_every_part_of_a_file_arrives_and_short_forms_stand_for_the_rest(load, tmp_path):
    spec = load(FULL)
    named = NamedGroup("domain", ("code", "law"), name="specialised")
    assert spec.splits == (KFold(5), Ahead("released"), named, TrainingShare((10, 20)))
    assert [one.label for one in spec.selectors] == ["random", "IRT"]
    assert spec.pairs == (("IRT", "gp-irt"), ("random", "weighted"))
    assert spec.budget == CostBudget("output_tokens", (1000, 5000.0))
    assert spec.calibration == CalibrationChoice("map", 3, across="items", options={"l1": 0.2})
    files = {"responses": ("a.parquet", "b.parquet"), "models": "models.csv", "response_column": "correct"}
    assert spec.data == DataSpec(**files, drop_models={"column": "is_bad", "value": True})
    assert spec.data.folder == tmp_path
    assert (spec.n_draws, spec.repeats, spec.level, spec.interval, spec.seed) == (2, 3, 0.9, "model-based", 5)
    lists = "\n".join(FULL.splitlines()[2:4]) + "\n"
    assert lists.startswith("selectors")
    spec = load(FULL.replace(lists, "").replace("IRT", "anchor-irt"))
    assert [one.label for one in spec.selectors] == ["anchor-irt", "random"]
    assert [one.label for one in spec.estimators] == ["gp-irt", "weighted"]
    with pytest.raises(ParameterError, match="needs 'selectors', 'estimators' as well"):
        load(FULL.replace(lists, "").replace('pairs = [["IRT", "gp-irt"], ["random", "weighted"]]', ""))
    named = SMALL.replace('[[splits]]\nkind = "random"', "").replace("[data]", 'splits = ["random", "beyond"]\n[data]')
    assert load(named).splits == (RandomShare(), Beyond())
    assert load(SMALL.replace('builtin = "classifiers"', 'responses = "r.csv"')).data.responses == ("r.csv",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'title = "small"', "'name', 'splits'.*got 'title'"),
        ('name = "small"', "", "a study file needs 'name'"),
        ('name = "small"', "name = 3", "name of a study file must be a text, got 3"),
        ('["random"]', '["rndom"]', "must be one of 'drawn'.*'rndom'"),
        ('["weighted"]', '[{method = "weighted", power = 2}]', "must be among none, got 'power'"),
        ('kind = "random"', 'kind = "kfold"', "'k-fold', 'random', 'leave-one-out'.*got 'kfold'"),
        ('kind = "random"', 'kind = "random"\nshare = 0.2', "'test_share', 'name', got 'share'"),
        ('kind = "random"', 'kind = "group"', "split 'group' needs 'column' as well"),
        ('kind = "random"', 'kind = "group"\ncolumn = 3', "column of split 'group' must be a text"),
        ("[[splits]]", "[splits]", r"\[\[splits\]\]"),
        ("[data]", "[dat]", r"needs a table \[data\]"),
        ('builtin = "classifiers"', 'builtin = "classifiers"\nrow = 1', "got 'row'"),
        ("n_items = [30]", "n_items = 30", "n_items must be a list"),
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


def test_a_file_that_is_no_toml_is_refused_and_those_in_the_docs_can_be_read(load, tmp_path):
    with pytest.raises(DataError, match="cannot be read as a study"):
        load("name = ")
    with pytest.raises(DataError, match=r"nothing\.toml"):
        load_study(tmp_path / "nothing.toml")
    pages = [REPOSITORY / "docs" / "studies.md", REPOSITORY / "contributing" / "prediction-studies.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    comparison, prediction = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert [one.name for one in load(comparison).splits] == ["random", "ahead", "beyond"]
    assessors = load(prediction, load_prediction).assessors
    assert {one.paradigm for one in assessors} == {"prediction", "selection", "adaptation"}


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "benchmarks" / "studies").glob("*.toml")), ids=lambda one: one.stem
)
def test_the_studies_that_come_with_the_project_can_be_read(path):
    if path.stem.startswith("prediction_"):
        assert load_prediction(path).name == path.stem
    else:
        assert load_study(path).name
        assert load_study(path).data is not None


def choice(thing, table=METHODS):
    return MethodChoice.of(thing, table, purpose="selector")


def test_a_method_can_be_told_in_four_ways_and_is_labelled_by_its_name():
    wanted = AnchorIRT(n_restarts=10)
    for thing in ({"method": "anchor-irt", "n_restarts": 10}, wanted, MethodChoice("anchor-irt", {"n_restarts": 10})):
        assert resolve_choice(choice(thing), METHODS) == wanted
        assert choice(thing).label == "anchor-irt (n_restarts=10)"
    assert resolve_choice(choice("random"), METHODS) == Random()
    named = choice({"method": "gp-irt", "name": "measured", "anchor_variance_factor": "estimated"}, ESTIMATIONS)
    assert named.label == "measured"
    assert resolve_choice(named, ESTIMATIONS) == GPIRT(anchor_variance_factor="estimated")


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("anchr", "'random', 'stratified', 'anchor-correctness', 'anchor-irt'.*got 'anchr'"),
        ({"method": "anchor-irt", "restarts": 3}, "'n_restarts', 'standardise', 'allow_degenerate'.*'restarts'"),
        ({"method": "anchor-irt", "n_restarts": 0}, "n_restarts must be a whole number >= 1, got 0"),
        ({"method": "anchor-irt", "n_restarts": "many"}, "anchor-irt"),
        ({"n_restarts": 3}, "must have a text 'method'"),
        (3, "selector must be a short name"),
    ],
)
def test_what_is_no_choice_says_what_is(thing, message):
    with pytest.raises(ParameterError, match=message):
        resolve_choice(choice(thing), METHODS)


def test_all_selectors_go_with_all_estimators_and_json_has_what_numbers_depend_on(tmp_path):
    def pairs(spec):
        return [(one.label, other.label) for one in spec.selectors for other in spec.estimators_of(one.label)]

    product = [("random", "weighted"), ("random", "gp-irt"), ("anchor-irt", "weighted"), ("anchor-irt", "gp-irt")]
    assert pairs(make_spec()) == product
    assert pairs(make_spec(pairs=[["anchor-irt", "gp-irt"]])) == [("anchor-irt", "gp-irt")]
    spec = StudySpec("mine", splits=[KFold()], selectors=["random"], estimators=["mean"], n_items=[30])
    assert (spec.budgets, spec.cost_unit, spec.splits) == ((30.0,), "", (KFold(),))
    spec = make_spec(data=DataSpec(responses=("${HERE}/r.csv",), folder=tmp_path), budget=None)
    text = json.dumps(spec.to_dict())
    assert "${HERE}/r.csv" in text
    assert str(tmp_path) not in text
    assert spec == make_spec(data=DataSpec(responses=("${HERE}/r.csv",)))
    for changes in (
        {"seed": 4},
        {"level": 0.9},
        {"interval": "model-based"},
        {"repeats": 3},
        {"n_draws": 2},
        {"splits": (RandomShare(0.3),)},
        {"calibration": CalibrationChoice(n_dims=1, options={"max_iterations": 7})},
        {"selectors": ("random", {"method": "anchor-irt", "n_restarts": 2, "name": "anchor-irt"})},
        {"n_items": (), "budget": CostBudget("output_tokens", (10.0,))},
    ):
        assert make_spec(**changes).to_dict() != make_spec().to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selectors": ("rndom",)}, "selection method must be one of 'drawn'.*'rndom'"),
        ({"estimators": ("gpirt",)}, "estimation method must be one of 'mean'.*'gpirt'"),
        ({"selectors": ()}, "at least one of selectors"),
        ({"selectors": "random"}, "selectors must be a list, got 'random'"),
        ({"selectors": ("random", "random")}, "names of selectors must differ.*'random'"),
        ({"splits": ()}, "at least one of splits"),
        ({"splits": ("k-fold",)}, "a split must be one of 'KFold'"),
        ({"splits": (KFold(3), KFold(4))}, "names of splits must differ"),
        ({"pairs": [["random", "gp"]]}, "take their estimators from 'weighted', 'gp-irt', got 'gp'"),
        ({"pairs": [["random"]]}, "a pair must be"),
        ({"n_items": ()}, "either n_items.*or a budget"),
        ({"n_items": (0,)}, "n_items must be a whole number >= 1, got 0"),
        ({"n_items": (10, 10)}, "more than once"),
        ({"budget": CostBudget("cost_usd", (1.0,))}, "give one"),
        ({"level": 0.0}, "level must be between 0 and 1, got 0.0"),
        ({"interval": "narrow"}, "interval of a study must be one of 'auto', 'calibrated', 'model-based', 'design'"),
        ({"interval": "design"}, "goes with the estimator 'auto' alone, got 'weighted', 'gp-irt'"),
        ({"interval": "design", "estimators": ("auto",)}, "needs items drawn by chance.* selectors 'anchor-irt'"),
        ({"repeats": 0}, "repeats must be a whole number >= 1"),
        ({"repeats": 2**63}, "repeats must be at most 100,000, got '9223372036854775808'"),
        ({"n_items": (10**400, 8)}, "n_items must be at most 1,000,000,000, got '1000"),
        ({"n_draws": -1}, "n_draws"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
    ],
)
def test_a_study_that_cannot_be_says_why(changes, message):
    with pytest.raises(ParameterError, match=message):
        make_spec(**changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KFold(1), "k of a split must be a whole number >= 2, got 1"),
        (lambda: RandomShare(1.0), "test_share must be between 0 and 1, got 1.0"),
        (lambda: ByGroup("org", k=1), "k of a split"),
        (lambda: NamedGroup("org", ()), "at least one group"),
        (lambda: NamedGroup("org", "mine"), "at least one group to test, got 'mine'"),
        (TrainingShare, "either n_models or shares"),
        (lambda: TrainingShare((9,)), "whole numbers from 10, got .9."),
        (lambda: TrainingShare(shares=(1.5,)), "above 0 and at most 1, got 1.5"),
        (DataSpec, "either builtin"),
        (lambda: DataSpec(builtin="classifiers", responses=("r.csv",)), "give one"),
        (lambda: DataSpec(builtin="classifiers", keep_items={"column": "x"}), "keep_items must be"),
        (lambda: CalibrationChoice(method="bayes"), "'variational', 'map', 'mml', got 'bayes'"),
        (lambda: CalibrationChoice(n_dims="many"), "n_dims must be a whole number or 'auto'"),
        (lambda: CalibrationChoice(n_dims=0), "n_dims must be a whole number >= 1"),
        (lambda: CalibrationChoice(item_model="2pl"), "chooses among several abilities"),
        (lambda: CalibrationChoice(within="mean"), "within must be one of 'micro', 'macro', 'custom'"),
        (lambda: CalibrationChoice(options={"iterations": 3}), "'max_iterations'.*got 'iterations'"),
        (lambda: CostBudget("cost_usd", ()), "must be a list of numbers > 0"),
        (lambda: CostBudget("cost_usd", (1.0, 0.0)), "> 0"),
    ],
)
def test_parts_check_themselves(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
