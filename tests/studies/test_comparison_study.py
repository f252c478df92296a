from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import GPIRT
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.responses.targets import mean_win_rate
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS as SELECTIONS
from itembank_studies import comparison_study
from itembank_studies.comparison_study import (
    fold_estimates,
    item_costs,
    largest_within,
    prepare_fold,
    run_fold,
    selection_cost,
)
from itembank_studies.split_specs import ByGroup, LeaveOneOut, NamedGroup
from itembank_studies.splits import ITEM_COLUMNS, answers_of, calibration_part, check_no_leak, make_folds, stream
from itembank_studies.study_files import load_study
from itembank_studies.study_specs import CalibrationChoice, CostBudget
from tests.studies.simulated import make_prompt_responses, make_responses, make_spec, numbers

pytestmark = pytest.mark.usefixtures("few_folds")

RESPONSES = make_responses()
SPEC = make_spec()
FOLD = make_folds(SPEC.splits[0], RESPONSES.models, 1, 3)[0]


@pytest.fixture(scope="module")
def bank():
    return prepare_fold(make_spec(), RESPONSES, FOLD).bank


def test_costs_are_expected_of_calibration_models_and_a_budget_buys_what_it_can(bank, table):
    expected = RESPONSES.costs["output_tokens"][FOLD.train].mean(axis=0)
    np.testing.assert_allclose(item_costs(bank, "output_tokens"), expected)
    assert not np.allclose(expected, RESPONSES.costs["output_tokens"].mean(axis=0))
    written = bank.responses.costs["output_tokens"]
    costs = {"output_tokens": written, "input_tokens": np.full(written.shape, 10.0)}
    changed = replace(bank, responses=replace(bank.responses, costs=costs))
    np.testing.assert_allclose(item_costs(changed, "tokens"), item_costs(bank, "output_tokens") + 5.0)
    costs = item_costs(bank, "output_tokens")
    with pytest.raises(ParameterError, match="one item of each of 2 scenarios, which cost"):
        largest_within(bank, lambda n: select(bank, n, method="random", rng=0), costs, 1.0)
    with pytest.raises(DataError, match=r"cost 'cost_usd' needs that column.*'output_tokens'"):
        item_costs(bank, "cost_usd")
    assert table["cost"].is_nan().all()
    found = run_fold(make_spec(cost="output_tokens", estimators=("weighted",), repeats=1), RESPONSES, FOLD)
    assert (found["cost"] > found["n_items"]).all()
    budget = CostBudget("output_tokens", (150.0, 600.0))
    spec = make_spec(n_items=(), budget=budget, estimators=("weighted",), repeats=1)
    found = run_fold(spec, RESPONSES, FOLD)
    assert (found["cost"] <= found["budget"]).all()
    sizes = found.filter(selector="random").select("budget", "n_items").unique().sort("budget")["n_items"].to_list()
    assert 2 < sizes[0] < sizes[1]


@pytest.mark.parametrize("method", ["random", "anchor-irt"])
@pytest.mark.parametrize("amount", [100.0, 500.0, 1e6])
def test_the_largest_selection_within_the_amount(bank, method, amount):
    costs = item_costs(bank, "output_tokens")

    def choose(n_items):
        return select(bank, n_items, method=method, rng=5)

    found = largest_within(bank, choose, costs, amount)
    assert selection_cost(bank, found, costs) <= amount
    assert found.item_ids == choose(found.n_items).item_ids
    n_open = int((~bank.calibration.is_degenerate).sum())
    assert found.n_items == n_open or selection_cost(bank, choose(found.n_items + 1), costs) > amount


@pytest.fixture(scope="module")
def table(few_folds):
    return run_fold(SPEC, RESPONSES, FOLD)


def test_every_row_has_the_chosen_items_alone_and_the_mean_over_all_items_as_truth(table):
    assert table.height == 2 * 2 * 2 * FOLD.test.size * 3
    key = ["repeat", "draw", "selector", "estimator", "budget", "model_id", "target"]
    assert not table.select(key).is_duplicated().any()
    assert set(table["model_id"]) == {RESPONSES.model_ids[row] for row in FOLD.test}
    used = table.filter(target="overall")
    assert (used["n_used"] == used["n_items"]).all()
    assert (used["n_items"] == used["budget"]).all()
    overall = table.filter(target="overall", budget=12.0)
    np.testing.assert_allclose(overall.filter(selector="random")["effective_items"].to_numpy(), 12.0)
    assert (overall.filter(selector="anchor-irt")["effective_items"] < 12.0).all()
    new = RESPONSES.responses[FOLD.test]
    expected = {"part-0": new[:, ::2].mean(axis=1), "part-1": new[:, 1::2].mean(axis=1), "overall": new.mean(axis=1)}
    for target, values in expected.items():
        found = table.filter(target=target, selector="random", estimator="gp-irt", budget=6.0)
        np.testing.assert_allclose(found["truth"].to_numpy(), values)
    # An oracle made by hand: the whole benchmark, where the weighted mean is the truth.
    complete = run_fold(make_spec(selectors=("random",), estimators=("weighted",), n_items=(60,)), RESPONSES, FOLD)
    np.testing.assert_allclose(complete["estimate"].to_numpy(), complete["truth"].to_numpy(), atol=1e-12)


def by_the_verbs(spec, prepared, **choices):
    """What `select` and `estimate` give for a study of one selector and one estimator, and 12 items."""
    selector, estimator = spec.selectors[0].label, spec.estimators[0].label
    rng = stream(spec.seed, "select", FOLD.split, FOLD.repeats[0], FOLD.fold, 0, selector, "12")
    chosen = select(prepared.bank, 12, method=selector, rng=rng)
    answers = answers_of(prepared.new, prepared.new.item_indices(chosen.item_ids))
    return estimate(prepared.bank, answers, selection=chosen, method=estimator, **choices)


def test_typicality_is_that_of_the_verb():
    spec = make_spec(selectors=("anchor-irt",), estimators=("gp-irt",), n_items=(12,), interval="calibrated")
    prepared = prepare_fold(spec, RESPONSES, FOLD)
    found = fold_estimates(spec, prepared, FOLD).filter(target="overall")
    expected = by_the_verbs(spec, prepared).typicality
    np.testing.assert_allclose(found["misfit"].to_numpy(), expected.misfit)
    np.testing.assert_allclose(found["typicality"].to_numpy(), expected.typicality)
    assert (expected.misfit > 0.0).all()


def test_pairs_are_all_that_is_run_numbers_do_not_depend_on_them_and_an_error_says_where(table):
    alone = run_fold(make_spec(selectors=("anchor-irt",), estimators=("gp-irt",), n_items=(12,)), RESPONSES, FOLD)
    same = table.filter(selector="anchor-irt", estimator="gp-irt", budget=12.0)
    assert numbers(alone).equals(numbers(same).select(numbers(alone).columns))
    spec = make_spec(pairs=[["random", "weighted"], ["anchor-irt", "gp-irt"]])
    ran = run_fold(spec, RESPONSES, FOLD).select("selector", "estimator").unique(maintain_order=True).rows()
    assert ran == [("random", "weighted"), ("anchor-irt", "gp-irt")]
    with pytest.raises(ParameterError, match="fold 0, selector 'random', n_items or amount 61"):
        run_fold(make_spec(n_items=(61,)), RESPONSES, FOLD)


def test_draws_and_repeats_of_a_fold_choose_other_items_from_one_bank():
    fold = make_folds(NamedGroup("is_odd", (True,)), RESPONSES.models, 2, 3)[0]
    spec = make_spec(selectors=("random",), estimators=("weighted",), n_items=(6,), n_draws=2)
    found = run_fold(spec, RESPONSES, fold)
    drawn = found.filter(target="overall").group_by("repeat", "draw").agg(pl.col("estimate"))
    assert drawn.height == 4
    assert len({tuple(values) for values in drawn["estimate"].to_list()}) == 4
    assert found["seconds_calibrate"].n_unique() == 1


def test_dimensions_are_chosen_on_the_calibration_models_and_few_have_the_fewest(monkeypatch):
    few = RESPONSES.take(models=np.arange(9))
    fold = make_folds(LeaveOneOut(), few.models, 1, 0)[0]
    assert prepare_fold(make_spec(calibration=CalibrationChoice()), few, fold).bank.calibration.n_dims == 1
    nested = make_spec(calibration=CalibrationChoice("map", item_model="nested"))
    calibration = prepare_fold(nested, few, fold).bank.calibration
    assert (calibration.item_model, calibration.n_dims) == ("nested", 2)
    seen = []

    def record(known, spec, *, progress):
        seen.append(known.model_ids)
        return type("Choice", (), {"n_dims": 2, "message": "told to"})

    monkeypatch.setattr("itembank.calibration.dimensions.choose_n_dims", record)
    bank = prepare_fold(make_spec(calibration=CalibrationChoice()), RESPONSES, FOLD).bank
    assert bank.calibration.n_dims == 2
    assert seen == [[RESPONSES.model_ids[row] for row in FOLD.train]]


def test_missing_responses_are_left_out_of_truth_and_estimate_and_may_leave_none(monkeypatch):
    sparse = make_responses(missing=0.3, seed=1)
    spec = make_spec(n_items=(12,), selectors=("random",), repeats=1)
    found = run_fold(spec, sparse, FOLD).filter(target="overall")
    assert (found["n_used"] < 12).any()
    # make_spec's overall is the mean of the two scenarios' means over the items each model answered
    halves = [np.nanmean(sparse.responses[FOLD.test][:, part::2], axis=1) for part in (0, 1)]
    expected = np.mean(halves, axis=0)
    np.testing.assert_allclose(found.filter(selector="random", estimator="weighted")["truth"].to_numpy(), expected)
    fold = make_folds(LeaveOneOut(), RESPONSES.models, 1, 0)[0]
    spec = make_spec(selectors=("random",), estimators=("weighted",), n_items=(6,), repeats=1)
    _, chosen = estimates_and_chosen(spec, RESPONSES, monkeypatch, fold)
    values = RESPONSES.responses.copy()
    values[0, chosen] = np.nan
    found = run_fold(spec, replace(RESPONSES, responses=values), fold)
    assert found["estimate"].is_nan().all()
    assert found["truth"].is_not_nan().all()
    assert (found["n_used"] == 0).all()
    assert set(found["failure"]) == {"none of the new models answered a chosen item"}


def test_an_estimator_without_enough_data_tells_why_and_stops_nobody_else(monkeypatch):
    def needy(bank, answers, *, method, **arguments):
        if isinstance(method, GPIRT):
            raise DataError("needs more models")
        return estimate(bank, answers, method=method, **arguments)

    monkeypatch.setattr("itembank_studies.comparison_study.estimate", needy)
    found = run_fold(SPEC, RESPONSES, FOLD)
    failed, other = (found.filter(estimator=name) for name in ("gp-irt", "weighted"))
    assert set(failed["failure"]) == {"needs more models"}
    assert failed["estimate"].is_nan().all()
    assert set(other["failure"]) == {""}
    assert other["estimate"].is_not_nan().all()


@pytest.mark.parametrize("interval", ["calibrated", "model-based", "design"])
def test_intervals_are_of_the_kind_the_study_asks_for(interval):
    method = "auto" if interval == "design" else "stacked"
    spec = make_spec(selectors=("random",), estimators=(method,), n_items=(12,), interval=interval, level=0.8)
    found = run_fold(spec, RESPONSES, FOLD)
    expected = by_the_verbs(spec, prepare_fold(spec, RESPONSES, FOLD), level=0.8, interval=interval)
    assert expected.interval_kind == interval
    for name in ("low", "high"):
        np.testing.assert_allclose(found[name].to_numpy(), getattr(expected, name).ravel(), atol=1e-12)


def test_the_selector_auto_is_the_public_select(monkeypatch):
    asked = []

    def public_select(bank, n_items, *, rng):
        asked.append(n_items)
        return select(bank, n_items, method="random", rng=rng)

    monkeypatch.setattr(comparison_study, "select_automatically", public_select)
    found = run_fold(make_spec(selectors=("auto",)), RESPONSES, FOLD)
    assert asked == [6, 12]
    assert set(found["selector"]) == {"auto"}


@pytest.mark.parametrize(
    "split", [ByGroup("template", k=3), NamedGroup("model_size", ("3B",))], ids=["templates", "sizes"]
)
def test_prompt_templates_and_sizes_nobody_has_seen_are_estimated(split):
    responses = make_prompt_responses()
    fold = make_folds(split, responses.models, 1, 0)[0]
    spec = make_spec(n_items=(40,), estimators=("gp-irt",))
    found = run_fold(spec, responses, fold).filter(target="overall")
    error = (found["estimate"] - found["truth"]).to_numpy()
    # the mean of 40 of 60 items has standard deviation 0.04, truths 0.12: a correlation of 0.95 is to be expected,
    # and of 0.74 four standard errors below
    assert np.abs(error).mean() < 0.08
    assert np.corrcoef(found["estimate"].to_numpy(), found["truth"].to_numpy())[0, 1] > 0.7


CHOICES = {"selectors": ("random",), "estimators": ("p-irt",), "n_items": (12,), "interval": "calibrated"}
TARGET_SPEC = make_spec(**CHOICES, targets=("mean_win_rate", "accuracy"))


def table_of(responses):
    return fold_estimates(TARGET_SPEC, prepare_fold(TARGET_SPEC, responses, FOLD), FOLD)


@pytest.fixture(scope="module")
def table_of_targets(few_folds):
    return table_of(RESPONSES)


def test_further_targets_have_rows_with_their_own_truth_of_which_methods_see_nothing(table_of_targets):
    truth = {
        name: part["truth"].to_numpy() for (name,), part in table_of_targets.group_by("target", maintain_order=True)
    }
    assert list(truth) == ["part-0", "part-1", "overall", "mean_win_rate", "accuracy"]
    np.testing.assert_allclose(truth["accuracy"], RESPONSES.models["accuracy"].to_numpy()[FOLD.test])
    scores = np.column_stack([RESPONSES.responses[:, part::2].mean(axis=1) for part in range(2)])
    np.testing.assert_allclose(truth["mean_win_rate"], mean_win_rate(scores[FOLD.test], scores[FOLD.train]))
    assert (table_of_targets["low"] <= table_of_targets["estimate"]).all()
    assert (table_of_targets["estimate"] <= table_of_targets["high"]).all()
    assert prepare_fold(TARGET_SPEC, RESPONSES, FOLD).bank.responses.models.columns == ["model_id", "score.accuracy"]
    accuracy = RESPONSES.models["accuracy"].to_numpy().copy()
    accuracy[FOLD.test] = 1.0 - accuracy[FOLD.test]
    other = table_of(replace(RESPONSES, models=RESPONSES.models.with_columns(accuracy=pl.Series(accuracy))))
    for name in ("estimate", "low", "high"):
        np.testing.assert_array_equal(other[name].to_numpy(), table_of_targets[name].to_numpy())


def test_targets_are_checked_and_kept(tmp_path):
    assert TARGET_SPEC.to_dict()["targets"] == ("mean_win_rate", "accuracy")
    assert not {"targets", "interval"} & set(make_spec(interval="calibrated").to_dict())  # so that old folders go on
    with pytest.raises(ParameterError, match="have calibrated intervals alone"):
        make_spec(interval="model-based", targets=("mean_win_rate",))
    with pytest.raises(DataError, match="must have the columns model_id and 'speed'"):
        prepare_fold(make_spec(**CHOICES, targets=("speed",)), RESPONSES, FOLD)
    (tmp_path / "study.toml").write_text(
        'name = "mine"\ntargets = ["accuracy"]\nselectors = ["random"]\nestimators = ["p-irt"]\nn_items = [9]\n'
        '[data]\nbuiltin = "classifiers"\n[[splits]]\nkind = "random"\n'
    )
    assert load_study(tmp_path / "study.toml").targets == ("accuracy",)


SEEN = ("estimate", "low", "high", "n_used", "effective_items", "n_items")


def flipped(responses, fold, kept):
    """The same responses, but the tested models answer every item that is not kept the other way."""
    values = responses.responses.copy()
    others = np.setdiff1d(np.arange(responses.n_items), kept)
    values[np.ix_(fold.test, others)] = 1.0 - values[np.ix_(fold.test, others)]
    return replace(responses, responses=values)


def estimates_and_chosen(spec, responses, monkeypatch, fold=FOLD):
    """Run a fold; also return the columns of the items that were chosen."""
    chosen = []

    def recorded(new, columns):
        chosen.extend(columns.tolist())
        return answers_of(new, columns)

    with monkeypatch.context() as patched:
        patched.setattr(comparison_study, "answers_of", recorded)
        table = run_fold(spec, responses, fold)
    return table, np.unique(chosen)


def is_blind(spec, monkeypatch):
    """Tell for each estimator whether its estimates stay exactly the same when unseen answers are turned around.

    The study has one selector: the answers turned around are those of tested models to items it did not choose.
    """
    table, chosen = estimates_and_chosen(spec, RESPONSES, monkeypatch)
    assert set(table["failure"]) == {""}
    assert chosen.size < RESPONSES.n_items
    poisoned, _ = estimates_and_chosen(spec, flipped(RESPONSES, FOLD, chosen), monkeypatch)
    assert not table["truth"].equals(poisoned["truth"])  # the poison is there
    return {
        name: table.filter(estimator=name).select(SEEN).equals(poisoned.filter(estimator=name).select(SEEN))
        for name in table["estimator"].unique()
    }


@pytest.mark.parametrize(
    ("selector", "estimators", "n_items", "interval"),
    [
        *((selector, ("weighted", "gp-irt"), 6, "auto") for selector in (*SELECTIONS.kinds, "auto")),
        *((selector, tuple(ESTIMATIONS.kinds), 10, "auto") for selector in ("random", "v-optimal")),
        *((one, ("auto",), 10, kind) for one in ("random", "stratified") for kind in ("model-based", "design")),
    ],
)
def test_no_method_sees_more_than_the_answers_to_chosen_items(selector, estimators, n_items, interval, monkeypatch):
    choices = {"selectors": (selector,), "estimators": estimators, "n_items": (n_items,), "interval": interval}
    assert is_blind(make_spec(**choices, repeats=1), monkeypatch) == dict.fromkeys(estimators, True)


def test_the_guard_catches_an_estimator_that_knows_the_truth(monkeypatch):
    spec = make_spec(selectors=("random",), n_items=(6,), repeats=1)
    honest = comparison_study.estimate

    def run(responses):
        truth = responses.responses[FOLD.test].mean(axis=1)

        def leaking(bank, answers, **arguments):
            found = honest(bank, answers, **arguments)
            leaked = found.scores._replace(value=0.9 * found.value + 0.1 * truth[:, None])
            return replace(found, scores=leaked)

        with monkeypatch.context() as patched:
            patched.setattr(comparison_study, "estimate", leaking)
            return estimates_and_chosen(spec, responses, monkeypatch)

    table, chosen = run(RESPONSES)
    poisoned, _ = run(flipped(RESPONSES, FOLD, chosen))
    assert not table.select(SEEN).equals(poisoned.select(SEEN))


def test_a_tested_model_among_the_calibration_models_stops_the_study_and_tables_tell_of_none():
    leaking = replace(FOLD, train=np.union1d(FOLD.train, FOLD.test[:2]))
    names = [RESPONSES.model_ids[row] for row in FOLD.test[:2]]
    with pytest.raises(DataError, match="no model may be both tested and calibrated on, got 2: ") as caught:
        run_fold(make_spec(), RESPONSES, leaking)
    assert all(repr(name) in str(caught.value) for name in names)
    known = calibration_part(RESPONSES, FOLD)
    answers = answers_of(RESPONSES.take(models=FOLD.test), np.arange(5))
    for part in (known, answers):
        assert part.models.columns == ["model_id"]
        assert set(part.items.columns) <= set(ITEM_COLUMNS)
    assert {"accuracy"} <= set(RESPONSES.models.columns)
    assert {"mean_response"} <= set(RESPONSES.items.columns)
    assert known.model_ids == [RESPONSES.model_ids[row] for row in FOLD.train]
    check_no_leak(prepare_fold(make_spec(), RESPONSES, FOLD).bank, RESPONSES.take(models=FOLD.test))
