import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import GPIRT
from itembank.selection.select import select
from itembank.studies import fold_runs
from itembank.studies.comparison_study import fold_estimates, prepare_fold, run_fold
from itembank.studies.split_specs import ByGroup, LeaveOneOut, NamedGroup
from itembank.studies.splits import answers_of, make_folds, stream
from itembank.studies.study_specs import CalibrationChoice, CostBudget
from tests.studies.simulated import make_prompt_responses, make_responses, make_spec, numbers

pytestmark = pytest.mark.usefixtures("few_folds")

RESPONSES = make_responses()
SPEC = make_spec()
FOLD = make_folds(SPEC.splits[0], RESPONSES.models, 1, 3)[0]


@pytest.fixture(scope="module")
def table(few_folds):
    return run_fold(SPEC, RESPONSES, FOLD)


def test_every_method_size_model_and_target_has_its_row(table):
    assert table.height == 2 * 2 * 2 * FOLD.test.size * 3
    key = ["repeat", "draw", "selector", "estimator", "budget", "model_id", "target"]
    assert not table.select(key).is_duplicated().any()
    assert set(table["model_id"]) == {RESPONSES.model_ids[row] for row in FOLD.test}


def test_truth_is_the_mean_over_all_items(table):
    new = RESPONSES.responses[FOLD.test]
    expected = {"part-0": new[:, ::2].mean(axis=1), "part-1": new[:, 1::2].mean(axis=1), "overall": new.mean(axis=1)}
    for target, values in expected.items():
        found = table.filter(target=target, selector="random", estimator="gp-irt", budget=6.0)
        np.testing.assert_allclose(found["truth"].to_numpy(), values)


def test_estimates_are_those_of_the_verbs():
    # An oracle made by hand: the whole benchmark, where the weighted mean is the truth.
    complete = run_fold(make_spec(selectors=("random",), estimators=("weighted",), n_items=(60,)), RESPONSES, FOLD)
    np.testing.assert_allclose(complete["estimate"].to_numpy(), complete["truth"].to_numpy(), atol=1e-12)


def test_typicality_is_that_of_the_verb():
    spec = make_spec(selectors=("anchor-irt",), estimators=("gp-irt",), n_items=(12,), interval="calibrated")
    prepared = prepare_fold(spec, RESPONSES, FOLD)
    found = fold_estimates(spec, prepared, FOLD).filter(target="overall")
    rng = stream(spec.seed, "select", FOLD.split, FOLD.repeats[0], FOLD.fold, 0, "anchor-irt", "12")
    selection = select(prepared.bank, 12, method="anchor-irt", rng=rng)
    answers = answers_of(prepared.new, prepared.new.item_indices(selection.item_ids))
    expected = estimate(prepared.bank, answers, selection=selection, method="gp-irt").typicality
    np.testing.assert_allclose(found["misfit"].to_numpy(), expected.misfit)
    np.testing.assert_allclose(found["typicality"].to_numpy(), expected.typicality)
    assert (expected.misfit > 0.0).all()


def test_only_the_chosen_items_are_used(table):
    used = table.filter(target="overall")
    assert (used["n_used"] == used["n_items"]).all()
    assert (used["n_items"] == used["budget"]).all()


def test_random_items_all_count_alike_and_anchors_do_not(table):
    overall = table.filter(target="overall", budget=12.0)
    np.testing.assert_allclose(overall.filter(selector="random")["effective_items"].to_numpy(), 12.0)
    assert (overall.filter(selector="anchor-irt")["effective_items"] < 12.0).all()


def test_numbers_do_not_depend_on_what_else_is_in_the_study(table):
    alone = run_fold(make_spec(selectors=("anchor-irt",), estimators=("gp-irt",), n_items=(12,)), RESPONSES, FOLD)
    same = table.filter(selector="anchor-irt", estimator="gp-irt", budget=12.0)
    assert numbers(alone).equals(numbers(same).select(numbers(alone).columns))


def test_pairs_are_all_that_is_run():
    spec = make_spec(pairs=[["random", "weighted"], ["anchor-irt", "gp-irt"]])
    ran = run_fold(spec, RESPONSES, FOLD).select("selector", "estimator").unique(maintain_order=True).rows()
    assert ran == [("random", "weighted"), ("anchor-irt", "gp-irt")]


def test_draws_and_repeats_of_a_fold_choose_other_items_from_one_bank():
    fold = make_folds(NamedGroup("is_odd", (True,)), RESPONSES.models, 2, 3)[0]
    found = run_fold(
        make_spec(selectors=("random",), estimators=("weighted",), n_items=(6,), n_draws=2), RESPONSES, fold
    )
    drawn = found.filter(target="overall").group_by("repeat", "draw").agg(pl.col("estimate"))
    assert drawn.height == 4
    assert len({tuple(values) for values in drawn["estimate"].to_list()}) == 4
    assert found["seconds_calibrate"].n_unique() == 1


def test_a_budget_in_cost_buys_what_it_can():
    spec = make_spec(
        n_items=(), budget=CostBudget("output_tokens", (150.0, 600.0)), estimators=("weighted",), repeats=1
    )
    found = run_fold(spec, RESPONSES, FOLD)
    assert (found["cost"] <= found["budget"]).all()
    sizes = found.filter(selector="random").select("budget", "n_items").unique().sort("budget")["n_items"].to_list()
    assert 2 < sizes[0] < sizes[1]


def test_costs_are_told_without_a_budget_too(table):
    assert table["cost"].is_nan().all()
    found = run_fold(make_spec(cost="output_tokens", estimators=("weighted",), repeats=1), RESPONSES, FOLD)
    assert (found["cost"] > found["n_items"]).all()


def test_dimensions_are_chosen_on_the_calibration_models(monkeypatch):
    seen = []

    def record(known, spec):
        seen.append(known.model_ids)
        return type("Choice", (), {"n_dims": 2})

    monkeypatch.setattr("itembank.studies.comparison_study.choose_n_dims", record)
    bank = prepare_fold(make_spec(calibration=CalibrationChoice()), RESPONSES, FOLD).bank
    assert bank.calibration.n_dims == 2
    assert seen == [[RESPONSES.model_ids[row] for row in FOLD.train]]


def test_few_models_have_one_dimension():
    few = RESPONSES.take(models=np.arange(9))
    fold = make_folds(LeaveOneOut(), few.models, 1, 0)[0]
    assert prepare_fold(make_spec(calibration=CalibrationChoice()), few, fold).bank.calibration.n_dims == 1


def test_few_models_have_the_fewest_dimensions_of_their_item_model():
    few = RESPONSES.take(models=np.arange(9))
    fold = make_folds(LeaveOneOut(), few.models, 1, 0)[0]
    for item_model, n_dims in (("nested", 2), ("bifactor", 1 + len(set(few.items["scenario"])))):
        choice = CalibrationChoice("map", item_model=item_model)
        calibration = prepare_fold(make_spec(calibration=choice), few, fold).bank.calibration
        assert (calibration.item_model, calibration.n_dims) == (item_model, n_dims)


def test_missing_responses_are_left_out_of_truth_and_estimate():
    sparse = make_responses(missing=0.3, seed=1)
    spec = make_spec(n_items=(12,), selectors=("random",), repeats=1)
    found = run_fold(spec, sparse, FOLD).filter(target="overall")
    assert (found["n_used"] < 12).any()
    # make_spec's overall is the mean of the two scenarios' means over the items each model answered
    halves = [np.nanmean(sparse.responses[FOLD.test][:, part::2], axis=1) for part in (0, 1)]
    expected = np.mean(halves, axis=0)
    np.testing.assert_allclose(found.filter(selector="random", estimator="weighted")["truth"].to_numpy(), expected)


def test_a_model_that_answered_no_chosen_item_has_no_estimate():
    values = RESPONSES.responses.copy()
    fold = make_folds(LeaveOneOut(), RESPONSES.models, 1, 0)[0]
    chosen = []

    def remember(new, columns):
        chosen.extend(columns.tolist())
        return answers_of(new, columns)

    spec = make_spec(selectors=("random",), estimators=("weighted",), n_items=(6,), repeats=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("itembank.studies.comparison_study.answers_of", remember)
        run_fold(spec, RESPONSES, fold)
    values[0, chosen] = np.nan
    silent = type(RESPONSES)(values, RESPONSES.models, RESPONSES.items, None, RESPONSES.costs)
    found = run_fold(spec, silent, fold)
    assert found["estimate"].is_nan().all()
    assert found["truth"].is_not_nan().all()
    assert (found["n_used"] == 0).all()
    assert set(found["failure"]) == {"none of the tested models answered a chosen item"}


def test_an_error_says_where_in_the_study():
    with pytest.raises(
        ParameterError, match="split 'random', repeat 0, fold 0, selector 'random', n_items or amount 61"
    ):
        run_fold(make_spec(n_items=(61,)), RESPONSES, FOLD)


def test_an_estimator_without_enough_data_tells_why_and_stops_nobody_else(monkeypatch):
    def needy(bank, answers, *, method, **arguments):
        if isinstance(method, GPIRT):
            raise DataError("needs more models")
        return estimate(bank, answers, method=method, **arguments)

    monkeypatch.setattr("itembank.studies.comparison_study.estimate", needy)
    found = run_fold(SPEC, RESPONSES, FOLD)
    failed, other = (found.filter(estimator=name) for name in ("gp-irt", "weighted"))
    assert set(failed["failure"]) == {"needs more models"}
    assert failed["estimate"].is_nan().all()
    assert set(other["failure"]) == {""}
    assert other["estimate"].is_not_nan().all()


@pytest.mark.parametrize("interval", ["calibrated", "model-based", "design"])
def test_intervals_are_of_the_kind_the_study_asks_for(interval):
    spec = make_spec(selectors=("random",), estimators=("auto",), n_items=(12,), interval=interval, level=0.8)
    found = run_fold(spec, RESPONSES, FOLD)
    prepared = prepare_fold(spec, RESPONSES, FOLD)
    chosen = select(prepared.bank, 12, method="random", rng=stream(3, "select", "random", 0, 0, 0, "random", "12"))
    answers = answers_of(prepared.new, prepared.new.item_indices(chosen.item_ids))
    expected = estimate(prepared.bank, answers, selection=chosen, level=0.8, interval=interval)
    assert expected.interval_kind == interval
    for name in ("low", "high"):
        np.testing.assert_allclose(found[name].to_numpy(), getattr(expected, name).ravel(), atol=1e-12)


def test_the_selector_auto_is_the_public_select(monkeypatch):
    asked = []

    def public_select(bank, n_items, *, rng):
        asked.append(n_items)
        return select(bank, n_items, method="random", rng=rng)

    monkeypatch.setattr(fold_runs, "select_automatically", public_select)
    found = run_fold(make_spec(selectors=("auto",)), RESPONSES, FOLD)
    assert asked == [6, 12]
    assert set(found["selector"]) == {"auto"}


def test_the_numbers_can_be_had_by_hand():
    prepared = prepare_fold(SPEC, RESPONSES, FOLD)
    found = estimate(prepared.bank, answers_of(prepared.new, np.arange(60)), method="weighted")
    np.testing.assert_allclose(found.value, prepared.truth, atol=1e-12)


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
