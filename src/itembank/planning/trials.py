"""The verb `plan_trials` and its result: many tasks once, or fewer tasks several times, and what chance alone does.

A score of tasks that are tried k times has three sources of chance: which tasks they are, how each trial turns out, and
who judges it. They are the variance components of generalizability theory (Brennan, 2001, ch. 1 and 2).
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.checks import check_fraction, check_positive
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shell_word, shown
from itembank.estimation.estimands import past_ratio
from itembank.estimation.observations import chance_shares
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import normal_reach
from itembank.planning.plan import FEWEST, fewest, prospect_of
from itembank.planning.precision import Precision, outcome_variances
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.tables import plural
from itembank.tabular import Note, Tabular

DOLLARS = "cost_usd"
N_TRIALS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 32)
"""Trials a task that are compared."""


@dataclass(frozen=True, slots=True, repr=False)
class TrialPlan(Tabular):
    """What each number of trials a task brings.

    The mean over repeated runs is estimated, by a judge taken at random where several were compared.

    Attributes
    ----------
    target : str
    task_error, trial_error, judge_error : float
        Standard errors of the score of one run of all tasks with one trial: from the tasks being these and no others of
        their kind; from how trials turn out; from who judges them (None without several judges).
    table : polars table
        One row a number of trials: `n_trials`; `floor`, half of the interval that chance leaves the score of all tasks,
        and `difference_floor`, which two runs of the same model differ by less than. With a budget: `n_items` that it
        pays for, their `cost`, and the `half_width` and `detectable_difference` of a plan.
    budget, cost_unit
    level, power, n_total, bank_id
        As of `Plan`.
    """

    schema = "plan-trials"
    header = (
        *("target", "n_trials", "n_items", "half_width", "budget", "cost_unit", "task_error", "trial_error"),
        *("judge_error", "message", "level", "power", "n_total", "bank=bank_id"),
    )

    target: str
    task_error: float
    trial_error: float
    judge_error: float | None
    table: pl.DataFrame
    budget: float | None
    cost_unit: str | None
    level: float
    power: float
    n_total: int
    bank_id: str

    @property
    def best(self) -> Mapping[str, Any]:
        """Row of the split with the narrowest interval; empty without a budget."""
        return {} if self.budget is None else self.table.sort("half_width", maintain_order=True).row(0, named=True)

    @property
    def n_trials(self) -> int | None:
        """Trials a task of the best split."""
        return self.best.get("n_trials")

    @property
    def n_items(self) -> int | None:
        """Tasks of the best split."""
        return self.best.get("n_items")

    @property
    def half_width(self) -> float | None:
        """Half of the interval that the best split gives."""
        return self.best.get("half_width")

    @property
    def message(self) -> str:
        """The best split in a sentence; the noise of one run without a budget."""
        if not self.best:
            half, apart = (100.0 * self.table[name][0] for name in ("floor", "difference_floor"))
            return (
                f"One run of all {self.n_total:,} items is off by up to ±{half:.1f} points by chance, and two runs of "
                f"one model differ by up to {apart:.1f}."
            )
        best = self.best
        times = {1: "once", 2: "twice"}.get(best["n_trials"], f"{best['n_trials']} times")
        return (
            f"Spend {best['cost']:,.4g} {self.cost_unit} on {best['n_items']:,} of {self.n_total:,} items, each tried "
            f"{times}: ±{100.0 * best['half_width']:.1f} points."
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """The answer, and what a second judge would bring."""
        notes = [Note("answer", self.message)]
        if self.judge_error is not None:
            one, two = (100.0 * normal_reach(self.level) * self.judge_error / math.sqrt(n) for n in (1, 2))
            text = f"Who judges makes ±{one:.1f} points of this; the mean of two judges would make it ±{two:.1f}."
            notes.append(Note("judges", text))
        return tuple(notes)


def plan_trials(
    bank: GivenBank,
    *,
    budget: float | None = None,
    cost_unit: str | None = None,
    judged: Sequence[ResponseMatrix] = (),
    target: str = OVERALL,
    level: float = 0.95,
    power: float = 0.8,
) -> TrialPlan:
    """Say how many trials a task is worth, and what chance does to one run of all tasks and to the mean of several.

    Of drawn tasks with k trials each the variance of the estimate is ``sum_i w_i^2 [(1 - pi_i) b_i + v_i / k] / pi_i``:
    b is the expected square of how far a model's probability of success is from its prediction, and v the variance of
    one trial, of which past models' repeated trials tell (`past_ratio`). Judges add what they add to the score of all
    tasks, `judge_variance`.

    Parameters
    ----------
    bank : Bank or path
        Whose past models tried tasks several times.
    budget : float, optional
        What all trials may cost, in `cost_unit`.
    cost_unit : str, optional
        Dollars if the bank knows them, else its only unit.
    judged : sequence of ResponseMatrix, optional
        The same answers by each of several judges (`itembank.readers.judges`).
    target, level, power
        As of `plan`.

    Raises
    ------
    ParameterError
        For another target or unit, or a budget that is not positive.
    DataError
        Without repeated trials, without costs for a budget, or for a budget that pays for no two tasks.

    Examples
    --------
    >>> plan_trials(bank, budget=50.0).message  # doctest: +SKIP
    """
    bank = as_bank(bank)
    check_fraction("level", level)
    check_fraction("power", power)
    if bank.responses.n_trials is None or not np.any(bank.responses.n_trials > 1):
        raise DataError(
            "past models must have tried items several times, counted by n_trials, got one trial of each, or pass^k, "
            "which keeps none. Calibrate a bank of repeated attempts, each right or wrong."
        )
    target = bank.targets.last if target == OVERALL else target
    unit = None
    if budget is not None:
        check_positive("budget", budget)
        unit = _unit(bank, cost_unit)
    prospect = prospect_of(bank, target, level, power)
    # past answers are means of so many trials, and lie so much nearer to their predictions
    answers, targets = bank.responses, bank.targets
    of_items = targets.weights, targets.scenario_index, targets.n_scenarios
    usual = chance_shares(answers.responses, answers.n_trials, *of_items).mean(axis=0)[targets.scenario_index]
    trials = past_ratio(bank)[targets.scenario_index] * outcome_variances(bank)
    between = np.maximum(prospect.variances - usual * trials, 0.0)
    squares = prospect.weights**2
    judges = judge_variance(judged, prospect.weights) if judged else None
    rows, numbers = [], {*N_TRIALS}
    if budget is not None and unit is not None:  # all items as often as can be paid for may be the best of all
        numbers.add(max(1, int(budget / prospect.at(prospect.n_most).costs[unit] + 1e-9)))
    for k in sorted(numbers):
        chance = float(squares @ trials) / k + (judges or 0.0)
        floor = normal_reach(level) * math.sqrt(chance)
        row = {"n_trials": k, "floor": floor, "difference_floor": math.sqrt(2.0) * floor}
        if budget is not None and unit is not None:
            ahead = replace(prospect, variances=between + trials / k, chance=chance)
            too_many = fewest(ahead, functools.partial(_costs_more, unit, budget / k))
            at = ahead.at((too_many or ahead.n_most + 1) - 1)
            if at.n_items < FEWEST:
                break
            row |= {"n_items": at.n_items, "cost": k * at.costs[unit]}
            row |= {"half_width": at.half_width, "detectable_difference": at.detectable_difference}
        rows.append(row)
    if not rows:
        least = prospect.at(FEWEST).costs[str(unit)]
        raise DataError(f"the budget must pay for {FEWEST} items, about {least:.4g} {unit}, got {budget:g}.")
    return TrialPlan(
        target=target,
        task_error=math.sqrt(float(squares @ (between + _spread_of_tasks(bank)))),
        trial_error=math.sqrt(float(squares @ trials)),
        judge_error=None if judges is None else math.sqrt(judges),
        table=pl.DataFrame(rows),
        budget=budget,
        cost_unit=unit,
        level=level,
        power=power,
        n_total=prospect.n_most,
        bank_id=bank.bank_id,
    )


def _unit(bank: Bank, given: str | None) -> str:
    """Return the unit of a budget: dollars, or the only one, where none is named."""
    known = [*costs_of_items(bank.responses)]
    unit = given or (DOLLARS if DOLLARS in known else known[0] if len(known) == 1 else None)
    if unit in known:
        return unit
    if not known:
        raise DataError(
            "a budget needs what a trial costs, and the bank knows no costs. They come with results: columns cost_usd, "
            "seconds, output_tokens, ..."
        )
    if unit is None:
        how = remedy(f"cost_unit={known[0]!r}", f"--cost {shell_word(known[0])}")
        raise ParameterError(f"the budget must have a unit, one of {shown(known)}: {how}.")
    raise ParameterError(
        f"the unit of the budget must be one of {shown(known)}, got {unit!r}.{did_you_mean(unit, known)}"
    )


def _costs_more(unit: str, most: float, at: Precision) -> bool:
    return at.costs[unit] > most * (1.0 + 1e-9)  # sums differ by rounding


def _spread_of_tasks(bank: Bank) -> FloatArray:
    """Return the square of how far p is from the mean of the item's scenario, over past models, (n_items,)."""
    p = probability(bank.parameters, bank.calibration.abilities)
    far: FloatArray = p - bank.targets.scenario_means(p)[:, bank.targets.scenario_index]
    result: FloatArray = np.mean(far**2, axis=0)
    return result


def judge_variance(judged: Sequence[ResponseMatrix], weights: FloatArray) -> float:
    """Variance of the score of all items from one judge to another, on average over models.

    Of a model's answers y_ij by judge j, ``a + b sum_i w_i^2``: a is how far judges are apart on average, and b how
    much they differ on an item beyond that, from the mean squares of a crossed design of items and judges (Brennan,
    2001, ch. 2).

    Raises
    ------
    DataError
        When no model has two items or more that all of two judges or more have judged.
    """
    models = sorted(set.intersection(*(set(one.model_ids) for one in judged)))
    items = sorted(set.intersection(*(set(one.item_ids) for one in judged)))
    cells = np.stack([one.responses[np.ix_(one.model_indices(models), one.item_indices(items))] for one in judged])
    found = []
    for model in range(len(models)):
        y = cells[:, model, ~np.isnan(cells[:, model]).any(axis=0)]
        n_judges, n_items = y.shape
        if n_judges < 2 or n_items < 2:
            continue
        severe = y.mean(axis=1)
        left = y - severe[:, None] - y.mean(axis=0) + y.mean()
        b = float(np.sum(left**2)) / ((n_judges - 1) * (n_items - 1))
        found.append((max(float(np.var(severe, ddof=1)) - b / n_items, 0.0), b))
    if not found:
        raise DataError(
            "judges are compared by the same answers: two judges at least must have judged two items of one model, got "
            f"{plural(len(judged), 'judge')} with {plural(len(models), 'model')} and {plural(len(items), 'item')} in "
            "common."
        )
    a, b = np.mean(found, axis=0)
    return float(a + b * weights @ weights)
