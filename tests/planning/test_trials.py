import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import itembank as ib
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.planning.plan import plan
from itembank.planning.trials import judge_variance, plan_trials
from itembank.readers.judges import read_by_judge
from itembank.responses.responses import ResponseMatrix
from tests.estimation.simulated import held

EASE = np.random.default_rng(1).normal(0.0, 1.2, 150)


def attempts(n_models, *, seed, n=4):
    """Attempts of known probability, which an item model and chance of each cell make; an attempt costs two dollars."""
    rng = np.random.default_rng(seed)
    chance = expit(rng.normal(0.0, 1.5, (n_models, 1)) + EASE + rng.normal(size=(n_models, EASE.size)))
    trials, costs = np.full(chance.shape, n), {"cost_usd": np.full(chance.shape, 2.0)}
    return ResponseMatrix.from_counts(rng.binomial(trials, chance), trials, costs=costs), chance


@pytest.fixture(scope="module")
def bank():
    with pytest.warns(DataWarning, match="agree more than chance"):
        return ib.calibrate(attempts(40, seed=3)[0], ib.calibrations.Variational(n_dims=1))


def test_the_floor_is_what_chance_does_to_a_run(bank):
    """Of known probabilities of models like past ones; one attempt has the variance p (1 - p)."""
    _, chance = attempts(400, seed=4)
    found = plan_trials(bank)
    assert found.trial_error == pytest.approx(np.sqrt(np.mean(chance * (1.0 - chance)) / 150), rel=0.1)
    for row in found.rows():
        assert row["floor"] == pytest.approx(1.96 * found.trial_error / np.sqrt(row["n_trials"]), rel=1e-3)
        assert row["difference_floor"] == pytest.approx(np.sqrt(2.0) * row["floor"])
    # of the tasks: as much as the probabilities of a model are spread, like those of a mean of 150 of them
    assert found.task_error == pytest.approx(np.sqrt(np.mean(np.var(chance, axis=1)) / 150), rel=0.1)
    assert (found.budget, found.n_items, found.judge_error) == (None, None, None)
    assert "150 items is off by up to" in found.message


def test_a_budget_goes_to_items_first_and_then_to_trials(bank):
    few, all_once, more, most = (plan_trials(bank, budget=one) for one in (100.0, 301.0, 900.0, 7 * 300.0))
    found = [(one.n_items, one.n_trials) for one in (few, all_once, more, most)]
    assert found == [(50, 1), (150, 1), (150, 3), (150, 7)]  # the last is not among the usual numbers of trials
    assert (few.cost_unit, most.best["cost"]) == ("cost_usd", pytest.approx(2100.0))
    assert all_once.half_width == pytest.approx(all_once.table["floor"][0])
    assert few.table.filter(n_trials=2)["n_items"].item() == 25
    assert np.all(few.table["cost"].to_numpy() <= 100.0)
    assert few.message.startswith("Spend 100 cost_usd on 50 of 150 items, each tried once: ±")


def test_the_usual_number_of_trials_is_planned_as_for_repeated_runs(bank):
    """`plan` takes a model to be tried as often as past ones were: four times."""
    row = plan_trials(bank, budget=4 * 2.0 * 60).table.filter(n_trials=4)
    repeated = plan(bank, estimand="repeated", max_items=60).table[-1]
    assert row["n_items"].item() == 60
    for name in ("half_width", "detectable_difference"):
        assert row[name].item() == pytest.approx(getattr(repeated, name), rel=0.03)


def test_planned_intervals_are_those_of_estimates(bank):
    for n_items, trials in ((40, 1), (40, 4)):
        planned = plan_trials(bank, budget=2.0 * trials * n_items).table.filter(n_trials=trials)["half_width"].item()
        halves, is_within = [], []
        for seed in range(4):
            answers, chance = attempts(60, seed=10 + seed, n=trials)
            chosen = ib.select(bank, n_items, rng=seed)
            answers = answers.take(items=answers.item_indices(chosen.item_ids))
            scores = ib.estimate(bank, answers, selection=chosen, estimand="repeated").scores
            halves.append(np.mean((scores.high - scores.low)[:, -1]) / 2.0)
            is_within.append(held(scores, chance.mean(axis=1)[:, None])[:, -1])
        assert planned == pytest.approx(np.mean(halves), rel=0.15)
        assert np.mean(is_within) > 0.91


def test_judges_add_their_variance():
    """Judges of known severity and noise: the mean over many draws is the variance of scores by judges drawn anew."""
    rng, found, weights = np.random.default_rng(0), [], np.full(50, 1.0 / 50)
    for _ in range(300):
        severity, noise = rng.normal(0.0, 0.05, 4), rng.normal(0.0, 0.2, (4, 2, 50))
        marks = np.clip(rng.uniform(0.3, 0.7, (2, 50)) + 0.1 * (severity[:, None, None] + noise), 0.0, 1.0)
        judged = [ResponseMatrix.create(one) for one in marks]
        found.append(judge_variance(judged, weights))
    # 0.1^2 (0.05^2 + 0.2^2 / 50)
    assert np.mean(found) == pytest.approx(0.01 * (0.0025 + 0.04 / 50), rel=0.1)


def test_judges_and_items_are_apart_by_the_mean_squares_of_a_crossed_design():
    marks = np.array([[0.2, 0.4, 0.6], [0.3, 0.8, 0.4], [0.7, 0.6, 0.8]])
    left = marks - marks.mean(axis=1, keepdims=True) - marks.mean(axis=0) + marks.mean()
    of_judges, of_rest = 3.0 * np.var(marks.mean(axis=1), ddof=1), np.sum(left**2) / 4.0
    judged = [ResponseMatrix.create(row[None]) for row in marks]
    found = judge_variance(judged, np.array([1.0, 0.0, 0.0]))
    assert found == pytest.approx((of_judges - of_rest) / 3.0 + of_rest)


def test_a_table_of_judges_is_read_and_counts_as_chance(bank, tmp_path):
    rows = [
        {"model": model, "item": f"i{item}", "grader": judge, "score": 0.4 + 0.01 * item + add}
        for model in "ab"
        for item in range(10)
        for judge, add in (("mild", 0.1), ("strict", 0.0))
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "judged.csv")
    with pytest.warns(DataWarning, match="'grader' as judge") as told:
        judged = read_by_judge(tmp_path / "judged.csv")
    assert (len(told), [one.responses.shape for one in judged]) == (1, [(2, 10), (2, 10)])
    found = plan_trials(bank, judged=judged)
    assert found.judge_error == pytest.approx(np.sqrt(0.1**2 / 2.0))  # the variance of two values 0.1 apart
    assert found.table["floor"][0] == pytest.approx(1.96 * np.hypot(found.trial_error, found.judge_error), rel=1e-3)
    assert "the mean of two judges would make it ±9.8" in found.notes[-1].text
    alone, without = (tmp_path / name for name in ("one.csv", "none.csv"))
    pl.DataFrame([row for row in rows if row["grader"] == "mild"]).write_csv(alone)
    pl.DataFrame(rows).drop("grader").write_csv(without)
    for path, says in ((alone, "two judges or more"), (without, "a column 'judge'")):
        with pytest.raises(DataError, match=says):
            read_by_judge(path)
    with pytest.raises(DataError, match="two items of one model"):
        judge_variance([judged[0], judged[1].take(models=np.array([0]), items=np.array([0]))], np.ones(10) / 10)


def test_what_must_be_known(bank):
    once = ib.calibrate(ResponseMatrix.create((bank.responses.responses > 0.5).astype(float)))
    counted = ResponseMatrix.from_counts(once.responses.responses, np.ones(once.responses.responses.shape))
    for source in (once, dataclasses.replace(once, responses=counted)):
        with pytest.raises(DataError, match="repeated attempts") as refused:
            plan_trials(source)
        assert "estimand" not in str(refused.value)  # it has none
    unpriced = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs={}))
    both = dict.fromkeys(("seconds", "output_tokens"), bank.responses.costs["cost_usd"])
    unnamed = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=both))
    for source, given, error, words in (
        (bank, {"budget": 1.0}, DataError, "must pay for 2 items, about 4 cost_usd"),
        (bank, {"budget": 9.0, "cost_unit": "cost_eur"}, ParameterError, "one of 'cost_usd', got 'cost_eur'"),
        (bank, {"budget": 0.0}, ParameterError, "budget"),
        (unpriced, {"budget": 9.0}, DataError, "knows no costs"),
        (unnamed, {"budget": 9.0}, ParameterError, "must have a unit, one of 'seconds', 'output_tokens': cost_unit="),
    ):
        with pytest.raises(error, match=words):
            plan_trials(source, **given)
