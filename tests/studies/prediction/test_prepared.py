import dataclasses
import json
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import ConvergenceWarning, DataError, ParameterError
from itembank.estimation.regressions import predict_ridge, predict_task_mean_eb
from itembank_studies.prediction import prepared as kernel
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.prediction.prepared import budgets_of, calibration_task_counts, find_tasks, make_partition
from itembank_studies.split_specs import Beyond
from itembank_studies.splits import folds_of
from itembank_studies.study_specs import CalibrationChoice
from tests.studies.prediction.simulated import MIRT, TWO_PL, make_responses, make_spec

RESPONSES = make_responses()


def test_tasks_are_those_that_are_large_enough_or_match_and_half_of_them_can_be_asked():
    responses = RESPONSES.take(items=np.arange(24 * 3 + 10))  # the fourth has ten items
    tasks = find_tasks(make_spec(n_held_out=9), responses)
    assert tasks.names == ("task-0", "task-1", "task-2")
    assert tasks.n_items.tolist() == [24, 24, 24]
    assert tasks.n_held_out.tolist() == [9, 9, 9]
    assert (tasks.index == np.concatenate([np.repeat([0, 1, 2], 24), np.full(10, -1)])).all()
    assert find_tasks(make_spec(), responses).n_held_out.tolist() == [12, 12, 12]  # at most half
    tasks = find_tasks(make_spec(task_pattern="^task-[0-3]"), RESPONSES)
    assert tasks.names == ("(none)", "task-0", "task-1", "task-2", "task-3")
    assert tasks.n_items.tolist() == [48, 24, 24, 24, 24]
    with pytest.raises(DataError, match=r"at least two tasks of 16 items or more are needed, got 1 of 1 .* 'all'"):
        find_tasks(make_spec(task="scenario"), RESPONSES)
    with pytest.raises(DataError, match="needs the column 'x'"):
        find_tasks(make_spec(task="x"), RESPONSES)
    assert calibration_task_counts(make_spec(n_calibration_tasks=(1, 2, 4, 16)), 6) == (1, 2, 3)
    tasks = find_tasks(make_spec(), RESPONSES)
    spec = make_spec(n_items=(1, 8, 12, 16, 64))
    assert budgets_of(spec, tasks, 1) == (1, 8, 12)
    assert budgets_of(spec, tasks, 3) == (1, 8, 12, 16)
    assert budgets_of(make_spec(n_items=(50, 60)), tasks, 1) == (50,)


def test_a_partition_divides_models_and_items_and_holds_every_item_out_as_often_as_another():
    spec = make_spec(n_held_out=7)
    tasks = find_tasks(spec, RESPONSES)
    one = make_partition(spec, RESPONSES, tasks, 0)
    assert one.test.size == 6
    assert sorted([*one.train, *one.test]) == list(range(24))
    assert np.bincount(tasks.index[one.is_held_out]).tolist() == [7] * 6
    assert sorted(one.task_order) == list(range(6))
    again, other = make_partition(spec, RESPONSES, tasks, 0), make_partition(spec, RESPONSES, tasks, 1)
    for name in ("train", "test", "is_held_out", "task_order"):
        assert (getattr(one, name) == getattr(again, name)).all()
        assert not np.array_equal(getattr(one, name), getattr(other, name))
    spec = make_spec(n_held_out=6)
    tasks = find_tasks(spec, RESPONSES)
    times = sum(make_partition(spec, RESPONSES, tasks, k).is_held_out.astype(int) for k in range(400))
    # binomial with p = 1/4: mean 100, standard deviation 8.7; over 144 items none beyond 5 of them
    assert abs(times.mean() - 100.0) < 1e-9
    assert np.abs(times - 100.0).max() < 45.0


def test_a_number_of_training_models_or_the_best_ones_can_be_asked_for():
    tasks = find_tasks(make_spec(), RESPONSES)
    assert make_partition(make_spec(n_train=8), RESPONSES, tasks, 0).train.size == 8
    with pytest.raises(DataError, match="of 6 test models must leave at least 19 to train on, got 24"):
        make_partition(make_spec(n_train=19), RESPONSES, tasks, 0)
    with pytest.raises(DataError, match="must leave at least 3"):
        make_partition(make_spec(n_test=22), RESPONSES, tasks, 0)
    tasks = find_tasks(make_spec(), RESPONSES)
    (best,) = folds_of([Beyond(0.5)], RESPONSES)
    one, other = (make_partition(make_spec(split=Beyond(0.5)), RESPONSES, tasks, number, best) for number in range(2))
    assert set(one.test) < set(best.test)
    assert set(one.train) == set(best.train)
    assert set(one.test) != set(other.test)
    with pytest.raises(DataError, match="of 13 test models"):
        make_partition(make_spec(n_test=13), RESPONSES, tasks, 0, best)


def test_a_study_is_json_and_says_which_models_it_tests():
    spec = make_spec(Assessor("mirt", "selection", "v-optimal", per_cost=True))
    plain = json.loads(json.dumps(spec.to_dict()))
    assert plain["assessors"][0]["per_cost"]
    assert plain["item_models"]["mirt"]["n_dims"] == 2
    assert "data" not in plain
    assert set(plain) | {"data"} == set(PredictionSpec.__dataclass_fields__)
    assert make_spec().to_dict()["split"] is None
    assert make_spec(split=Beyond()).to_dict()["split"] == {"kind": "beyond", "test_share": 0.25, "name": "beyond"}
    with pytest.raises(ParameterError, match="a split must be one of"):
        make_spec(split="soon")


def test_assessors_name_themselves_share_items_where_they_choose_alike_and_the_reference_is_random_unless_named():
    assert Assessor("2pl").name == "2pl, random"
    assert Assessor("2pl", "adaptation", "fisher", per_cost=True).name == "2pl, adaptive fisher/cost"
    assert Assessor("ridge", name="mine").name == "mine"
    adaptive = Assessor("2pl", "adaptation", "fisher")
    assert make_spec(adaptive, Assessor("mirt")).reference_name == "mirt, random"
    assert make_spec(adaptive).reference_name == "2pl, adaptive fisher"
    assert make_spec(adaptive, Assessor("mirt"), reference=adaptive.name).reference_name == adaptive.name
    assert Assessor("2pl").selection_key == Assessor("ridge").selection_key
    designed = Assessor("ridge", "selection", "v-optimal", design="mirt")
    assert designed.selection_key == Assessor("mirt", "selection", "v-optimal").selection_key
    assert designed.selection_key != Assessor("2pl", "selection", "v-optimal").selection_key
    assert designed.selection_key != Assessor("mirt", "adaptation", "v-optimal").selection_key
    other = Assessor("mirt", "selection", "v-optimal", per_cost=True)
    assert designed.selection_key != other.selection_key


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (("2pl", "guessing"), "paradigm of an assessor must be one of 'prediction'"),
        (("2pl", "prediction", "fisher"), "selector of prediction must be one of 'random'"),
        (("2pl", "adaptation", "anchor-irt"), "selector of adaptation must be one of 'fisher'"),
        (("2pl", "selection", "best"), "selector of selection must be one of"),
        (("2pl", "selection", "uniform", True), "per_cost divides a criterion"),
        (("ridge", "selection", "v-optimal"), "'ridge' has none: give it a design"),
        ((3,), "predictor of an assessor must be a text, got 3"),
    ],
)
def test_impossible_assessors_are_refused(choices, message):
    with pytest.raises(ParameterError, match=message):
        Assessor(*choices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assessors": ()}, "at least one of assessors"),
        ({"assessors": ("2pl",)}, "assessors must be Assessor, got '2pl'"),
        ({"assessors": (Assessor("3pl"),)}, "must be one of '2pl', 'mirt', 'task-mean', .*, got '3pl'"),
        ({"assessors": (Assessor("ridge", "selection", "fisher", design="x"),)}, "design of assessor .* got 'x'"),
        ({"assessors": (Assessor("2pl"), Assessor("2pl"))}, "names of assessors must differ, got '2pl, random'"),
        ({"assessors": (Assessor("2pl", "selection", "min-cost"),), "cost": ""}, "needs the study to name a cost"),
        ({"reference": "x"}, "reference must be one of '2pl, random'"),
        ({"item_models": {"ridge": TWO_PL}}, "must have another name"),
        ({"item_models": {"2pl": CalibrationChoice("map")}}, "n_dims of an item model must be a whole number"),
        ({"n_items": (4, 1)}, "n_items must rise, got '4', '1'"),
        ({"n_items": ()}, "n_items must be a list of at least one number"),
        ({"n_items": (0, 1)}, "n_items must be a whole number >= 1, got 0"),
        ({"n_partitions": 2**32}, "n_partitions must be at most 10,000, got 4294967296"),
        ({"n_test": 0}, "n_test must be a whole number >= 1"),
        ({"n_train": 2}, "n_train must be a whole number >= 3"),
        ({"n_calibration_tasks": (2, 2)}, "n_calibration_tasks must differ"),
        ({"largest_held_out_share": 1.0}, "largest_held_out_share must be between 0 and 1"),
        ({"input_weight": -1.0}, "input_weight must be a finite number >= 0"),
        ({"task_pattern": "("}, "task_pattern must be a regular expression"),
        ({"levels": (7.0,)}, "levels must be errors between 0 and 1, got '7.0'"),
    ],
)
def test_impossible_studies_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        make_spec(**changes)


def test_each_task_has_its_mean_drawn_to_the_training_models_and_each_model_its_own_items(rng):
    """WILD eq. 15 by hand: mu = (0.5, 0.8), lambda = 5; task 0 has answers 1, 1, 0, task 1 none."""
    values = np.array([[0.1, 0.3, 0.5, 0.7], [1.0, 0.0, 9.0, 1.0]])
    observed = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    found = kernel.task_means(values, observed, np.array([0, 0, 2, 2]), 3)
    np.testing.assert_allclose(found, [[0.2, np.nan, 0.6], [0.5, np.nan, 1.0]])
    assert np.isnan(kernel.task_means(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0, dtype=int), 3)).all()
    answers, train = np.array([[1.0, 1.0, 0.0]]), np.array([[0.4, 0.7], [0.6, 0.9]])
    task = np.zeros(3, dtype=int)
    np.testing.assert_allclose(kernel.predict_task_mean(task, answers, train, strength=5.0), [[4.5 / 8.0, 0.8]])
    np.testing.assert_allclose(kernel.predict_task_mean(task, answers, train), [[2.0 / 3.0, 0.8]])
    scores, answers = rng.random((7, 3)), (rng.random((4, 9)) < 0.6).astype(float)
    answers[rng.random(answers.shape) < 0.3] = np.nan
    task = np.repeat([0, 1, 2], 3)
    of_tasks = {"scenario_index": task, "scenario_weights": np.full(3, 1.0 / 3.0)}
    expected = predict_task_mean_eb(np.column_stack([scores, scores.mean(axis=1)]), answers, **of_tasks)
    np.testing.assert_allclose(kernel.predict_task_mean(task, answers, scores, strength=5.0), expected[:, :3])
    answers, train = (rng.random((3, 5)) < 0.5).astype(float), rng.random((6, 4))
    tasks = rng.integers(4, size=(3, 5))
    found = kernel.predict_task_mean(tasks, answers, train, strength=2.0)
    for row in range(3):
        own = kernel.predict_task_mean(tasks[row], answers[[row]], train, strength=2.0)
        np.testing.assert_allclose(found[row], own[0])
    responses = (rng.random((6, 20)) < 0.5).astype(float)
    items = np.array([rng.permutation(20)[:5] for _ in range(3)])
    items[0, 3:] = -1
    ridge = kernel.predict_ridge_tasks(items, answers, responses, train)
    np.testing.assert_allclose(ridge[0], predict_ridge(responses[:, items[0, :3]], train, answers[:1, :3])[0])
    np.testing.assert_allclose(ridge[2], predict_ridge(responses[:, items[2]], train, answers[[2]])[0])


@pytest.fixture(scope="module")
def calibration():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 18 models bound no slope
        return fit_item_model(RESPONSES.take(models=np.arange(18)), MIRT.spec(2))


def test_item_model_predictions_are_means_at_the_posterior_mode(calibration):
    """Against an independent optimiser, for items common to all and for each model's own."""
    items, held_out = np.arange(0, 40, 3), np.arange(100, 144)
    task = np.repeat([0, 1], [20, 24])
    new = RESPONSES.responses[18:21]
    target = kernel.HeldOut(held_out, task, 2, np.ones((3, held_out.size)))
    found = kernel.predict_item_model(calibration, items, new[:, items], target)
    parameters, prior = calibration.parameters, calibration.prior
    precision = np.linalg.inv(prior.covariance)
    for row in range(3):

        def loss(theta, row=row):
            x = parameters.loadings[items] @ theta + parameters.intercept[items]
            sign = 2.0 * new[row, items] - 1.0
            gap = theta - prior.mean
            return -log_expit(sign * x).sum() + 0.5 * gap @ precision @ gap

        theta = minimize(loss, prior.mean, tol=1e-10).x
        p = expit(parameters.loadings[held_out] @ theta + parameters.intercept[held_out])
        np.testing.assert_allclose(found[row], [p[:20].mean(), p[20:].mean()], atol=1e-5)
    own = np.stack([items, items, np.where(np.arange(items.size) < 5, items, -1)])
    answers = np.where(own >= 0, np.take_along_axis(new, np.maximum(own, 0), axis=1), np.nan)
    separate = kernel.predict_item_model(calibration, own, answers, target)
    np.testing.assert_allclose(separate[:2], found[:2], atol=1e-8)
    few = kernel.predict_item_model(calibration, items[:5], new[:, items[:5]], target)
    np.testing.assert_allclose(separate[2], few[2], atol=1e-8)


def test_a_count_is_so_many_answers():
    """k right of n to one item say what n answers to items like it say: by hand, and for each model's own items."""
    counts = make_responses(kind="count")
    options = {**MIRT.options, "family": "binomial"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 18 models bound no slope
        calibration = fit_item_model(
            counts.take(models=np.arange(18)), dataclasses.replace(MIRT, options=options).spec(2)
        )
    items, new, trials = np.array([1, 30]), counts.responses[[20]], counts.n_trials[[20]]
    target = kernel.HeldOut(np.arange(100, 144), np.zeros(44, dtype=int), 1, np.ones((1, 44)))
    found = kernel.predict_item_model(
        calibration, items, new[:, items], target, n_trials=trials[:, items].astype(float)
    )
    repeated = np.repeat(items, trials[0, items])
    right = np.concatenate([np.arange(n) < round(y * n) for y, n in zip(new[0, items], trials[0, items], strict=True)])
    apart = kernel.predict_item_model(calibration, repeated, right[None].astype(float), target)
    np.testing.assert_allclose(found, apart, atol=1e-7)
    own = kernel.predict_item_model(
        calibration, items[None], new[:, items], target, n_trials=trials[:, items].astype(float)
    )
    np.testing.assert_allclose(own, found, atol=1e-9)


def test_predictions_are_over_what_the_model_answered(calibration):
    held_out, observed = np.arange(100, 144), np.ones((1, 44))
    observed[0, 1:] = 0.0
    target = kernel.HeldOut(held_out, np.zeros(44, dtype=int), 1, observed)
    alone = kernel.HeldOut(held_out[:1], np.zeros(1, dtype=int), 1, np.ones((1, 1)))
    answers = RESPONSES.responses[[20]][:, :9]
    found = kernel.predict_item_model(calibration, np.arange(9), answers, target)
    np.testing.assert_allclose(found, kernel.predict_item_model(calibration, np.arange(9), answers, alone))
