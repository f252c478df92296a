"""The comparison of methods: every fold a bank, every selection once, every estimate on it."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.costs import known_units, response_costs
from itembank.bank.known_scores import check_external_names, with_external_scores
from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.calibration.dimensions import with_suitable_dims
from itembank.errors import DataError, DataWarning, ItembankWarning, ParameterError, shown, unsaid, warn
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates, Typicality
from itembank.numerics.arrays import FloatArray, effective_items, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.select import select as select_automatically
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import EXTERNAL, WIN_RATE
from itembank.selection.select import select
from itembank_studies.engine import COMPARISON, ESTIMATES, SUMMARY, Study, StudyManifest, Tables, errors_at
from itembank_studies.splits import Fold, answers_of, calibration_part, check_no_leak, folds_of, stream
from itembank_studies.study_specs import AUTO, MethodChoice, StudySpec, estimation_spec, selection_spec
from itembank_studies.summary import summarise


def item_costs(bank: Bank, unit: str) -> FloatArray:
    """Return the expected cost of each item over the past models, (n_items,); the mean of all where unknown."""
    known = known_units(bank.responses)
    costs = mean_where_known(response_costs(bank.responses, unit)) if unit in known else np.full(bank.n_items, np.nan)
    if np.isnan(costs).all():
        raise DataError(
            f"a study of cost {unit!r} needs that column with the responses, which have "
            f"{shown(sorted(known)) or 'no costs'}."
        )
    return np.where(np.isnan(costs), np.nanmean(costs), costs)


def selection_cost(bank: Bank, selection: Selection, costs: FloatArray) -> float:
    """Sum of the expected costs of the chosen items."""
    return float(costs[bank.responses.item_indices(selection.item_ids)].sum())


def largest_within(bank: Bank, choose: Callable[[int], Selection], costs: FloatArray, amount: float) -> Selection:
    """Return the largest selection found whose expected cost is within the amount.

    The number of items is searched by bisection, from below what the cheapest items would allow: methods choose a
    set as a whole, so that the first items of a larger set would not do. `choose` must give the same items for the
    same number each time.
    """
    is_open = (bank.targets.weights > 0.0) & ~bank.calibration.is_degenerate
    affordable = int(np.searchsorted(np.cumsum(np.sort(costs)), amount, side="right"))
    least, most = bank.targets.n_scenarios, min(affordable, int(is_open.sum())) + 1
    best = choose(least)
    lowest = selection_cost(bank, best, costs)
    if lowest > amount:
        raise ParameterError(
            f"a budget of {amount:g} must pay for one item of each of {least} scenarios, which cost {lowest:g}. "
            "Give a larger amount."
        )
    guess = round(amount / float(costs.mean()))  # right for a random selection
    for _ in range(16):
        if most - least <= 1:
            break
        middle = guess if least < guess < most else (least + most) // 2
        guess = -1
        tried = choose(middle)
        if selection_cost(bank, tried, costs) <= amount:
            least, best = middle, tried
        else:
            most = middle
    return best


COLUMNS = (
    *("study", "split", "repeat", "fold", "draw", "selector", "estimator", "budget", "n_items", "model_id", "target"),
    *("truth", "estimate", "low", "high", "misfit", "typicality", "failure", "n_used", "effective_items"),
    *("cost", "n_calibration", "n_dims", "converged", "seconds_calibrate", "seconds_select", "seconds_estimate"),
)
"""Of a table of estimates; `StudyResult` says what they are."""


@dataclass(frozen=True, slots=True)
class PreparedFold:
    """What all selections of a fold share."""

    bank: Bank  # Of the past models alone
    views: tuple[Bank, ...]  # The same bank asked for each of the study's further targets
    # The new models and all their responses. Methods see only what they answered to chosen items.
    new: ResponseMatrix
    # (n_models, n_targets): Their scores over the items of the bank they answered; of the further targets last.
    truth: FloatArray
    costs: FloatArray | None  # (n_items,): Expected cost of each item
    seconds: float  # CPU time of the calibration


Place: TypeAlias = tuple[int, int, MethodChoice, float]
"""Where in a fold a selection is: repeat, draw, selector and budget."""


@one_blas_thread()
def run_fold(spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> pl.DataFrame:
    """Return every estimate of a fold, one row a model, target, selection and estimator."""
    with unsaid(ItembankWarning):  # fits that stopped early are shown by the column `converged`
        with errors_at(f"{_named(fold)}, calibration"):
            prepared = prepare_fold(spec, responses, fold)
        return fold_estimates(spec, prepared, fold)


def fold_estimates(spec: StudySpec, prepared: PreparedFold, fold: Fold) -> pl.DataFrame:
    """Return every estimate of a fold whose bank is there."""
    parts: list[pl.DataFrame] = []
    for place in itertools.product(fold.repeats, range(spec.n_draws), spec.selectors, spec.budgets):
        with errors_at(f"{_named(fold)}, selector {place[2].label!r}, n_items or amount {place[3]:g}"):
            parts.extend(_estimates_at(spec, prepared, fold, place))
    constant = {
        "study": spec.name,
        "split": fold.split,
        "fold": fold.fold,
        "n_calibration": prepared.bank.n_models,
        "n_dims": prepared.bank.calibration.n_dims,
        "converged": prepared.bank.calibration.converged,
        "seconds_calibrate": prepared.seconds,
    }
    table: pl.DataFrame = pl.concat(parts)
    return table.with_columns(pl.lit(value).alias(name) for name, value in constant.items()).select(COLUMNS)


def _named(fold: Fold) -> str:
    return f"split {fold.split!r}, repeat {fold.repeats[0]}, fold {fold.fold}"


def prepare_fold(spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> PreparedFold:
    """Build the bank of a fold from its past models, and the truth of the others."""
    started = time.process_time()
    external = [name for name in spec.targets if name != WIN_RATE]
    if external:  # kept where a bank looks for them
        check_external_names(external, responses.items["scenario"].unique().to_list())
        models = with_external_scores(responses.models, responses.models, external)
        responses = responses.with_tables(models=models)
    known = calibration_part(responses, fold)
    choice = spec.calibration
    if choice.n_dims == AUTO:
        calibration, _ = with_suitable_dims(known, choice.spec(choice.least_dims))
    else:
        calibration = choice.spec(int(choice.n_dims))
    seed = int(stream(spec.seed, "bank", fold.split, fold.repeats[0], fold.fold).integers(2**31))
    bank = calibrate(known, calibration, within=choice.within, across=choice.across, rng=seed)
    seconds = time.process_time() - started
    new = responses.take(models=fold.test, items=responses.item_indices(bank.item_ids))
    check_no_leak(bank, new)
    views = tuple(with_target(bank, name) for name in spec.targets)
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))
    headlines = [
        new.models[f"{EXTERNAL}{view.targets.last}"].fill_null(np.nan).to_numpy()
        if view.headline is None or view.targets.last != WIN_RATE
        else view.headline.win_rates(truth[:, :-1])
        for view in views
    ]
    truth = np.column_stack([truth, *headlines])
    costs = item_costs(bank, spec.cost_unit) if spec.cost_unit else None
    return PreparedFold(bank, views, new, truth, costs, seconds)


def _estimates_at(spec: StudySpec, prepared: PreparedFold, fold: Fold, place: Place) -> Iterator[pl.DataFrame]:
    """Choose items once, and yield the table of each estimator."""
    repeat, draw, selector, budget = place
    path = (fold.split, repeat, fold.fold, draw, selector.label, f"{budget:g}")
    bank = prepared.bank

    def choose(n_items: int) -> Selection:
        rng = stream(spec.seed, "select", *path)
        method = selection_spec(selector)
        if method is None:
            return select_automatically(bank, n_items, rng=rng)
        return select(bank, n_items, method=method, rng=rng)

    started = time.process_time()
    if spec.budget is None or prepared.costs is None:
        selection = choose(int(budget))
    else:
        selection = largest_within(bank, choose, prepared.costs, budget)
    seconds_select = time.process_time() - started
    answers = answers_of(prepared.new, prepared.new.item_indices(selection.item_ids))
    constant = {
        "repeat": repeat,
        "draw": draw,
        "selector": selector.label,
        "budget": budget,
        "n_items": selection.n_items,
        "cost": float("nan") if prepared.costs is None else selection_cost(bank, selection, prepared.costs),
        "seconds_select": seconds_select,
    }
    # Kish's effective number of items behind each target.
    scenario = np.array([bank.targets.scenarios.index(name) for name in selection.scenarios])
    within = [effective_items(selection.weights[scenario == j]) for j in range(bank.targets.n_scenarios)]
    effective = np.array([*within, effective_items(selection.weights * bank.targets.scenario_weights[scenario])])
    for choice in spec.estimators_of(selector.label):
        started = time.process_time()
        estimates, failure = _estimated(prepared, answers, selection, choice, spec=spec)
        seconds = time.process_time() - started
        yield _table(estimates, prepared, effective).with_columns(
            pl.lit(value).alias(name)
            for name, value in {
                **constant,
                "estimator": choice.label,
                "seconds_estimate": seconds,
                "failure": failure,
            }.items()
        )


def _estimated(
    prepared: PreparedFold, answers: ResponseMatrix, selection: Selection, choice: MethodChoice, *, spec: StudySpec
) -> tuple[tuple[ScoreEstimates, ...], str]:
    """Estimate new models' scores, then each further target; nothing, and why, where data do not carry the method.

    One method that needs more models than a fold has must not end a study of many.
    """
    if not answers.observed.any():
        return (), "none of the new models answered a chosen item"
    method = estimation_spec(choice)
    try:
        return tuple(
            estimate(bank, answers, selection=selection, method=method, level=spec.level, interval=spec.interval)
            for bank in (prepared.bank, *prepared.views)
        ), ""
    except DataError as error:
        return (), str(error)


def _table(estimates: tuple[ScoreEstimates, ...], prepared: PreparedFold, effective: FloatArray) -> pl.DataFrame:
    n_models, n_targets = prepared.truth.shape
    effective = np.append(effective, np.full(len(prepared.views), effective[-1]))
    parts = [np.full(prepared.truth.shape, np.nan)] * 3 + [np.zeros(prepared.truth.shape, dtype=np.int64)]
    typicality = Typicality.unknown(n_models)
    if estimates:
        # arrays of the first estimates, (n_models, n_targets), with the last column of each of the others
        found = [[np.asarray(getattr(one, name)) for one in estimates] for name in ("value", "low", "high", "n_items")]
        parts = [np.column_stack([first, *(one[:, -1] for one in others)]) for first, *others in found]
        typicality = estimates[0].typicality
    return pl.DataFrame(
        {
            "model_id": np.repeat(np.array(prepared.new.model_ids, dtype=object), n_targets),
            "target": [*prepared.bank.targets.names, *(view.targets.last for view in prepared.views)] * n_models,
            "truth": prepared.truth.ravel(),
            **{name: part.ravel() for name, part in zip(("estimate", "low", "high", "n_used"), parts, strict=True)},
            "misfit": np.repeat(typicality.misfit, n_targets),
            "typicality": np.repeat(typicality.typicality, n_targets),
            "effective_items": np.tile(effective, n_models),
        },
        schema_overrides={"model_id": pl.String, "target": pl.String},
    )


def comparison_study(spec: StudySpec, responses: ResponseMatrix) -> Study[Fold]:
    """Return the study of these responses, ready to run."""
    n_scenarios = responses.items["scenario"].n_unique()
    outside = [n for n in spec.n_items if not n_scenarios <= n <= responses.n_items]
    if outside:
        raise ParameterError(
            f"n_items must be from {n_scenarios} (one for each scenario) to {responses.n_items} (all), "
            f"got {shown(outside)}."
        )
    if spec.cost_unit and spec.cost_unit not in responses.costs:
        raise DataError(
            f"a study of cost {spec.cost_unit!r} needs that column with the responses, which have "
            f"{shown(sorted(responses.costs)) or 'no costs'}."
        )
    how = spec.calibration
    folds = folds_of(spec.splits, responses, spec.repeats, spec.seed, within=how.within, across=how.across)
    # the longest first, so that no process is left alone with one at the end
    units = dict(sorted(enumerate(folds), key=lambda numbered: -len(numbered[1].repeats)))
    run = partial(_run, spec, responses)
    parts = [fold.division for fold in folds]
    manifest = StudyManifest.of(
        COMPARISON.name, spec.to_dict(), responses, division=parts, seed=spec.seed, n_folds=len(folds)
    )
    return Study(COMPARISON, manifest, units, run, _summaries)


def _run(spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> Tables:
    return {ESTIMATES: run_fold(spec, responses, fold)}


def _summaries(folder: Path) -> Tables:
    estimates = COMPARISON.scan(folder, ESTIMATES).collect()
    return {ESTIMATES: estimates, SUMMARY: summarise(estimates)}


def warn_of_failures(estimates: pl.DataFrame) -> None:
    """Say which estimators gave nothing, and the first reason of each."""
    failed = estimates.filter(pl.col("failure") != "")
    if failed.height:
        reasons = failed.group_by("estimator", maintain_order=True).agg(pl.col("failure").first())
        listed = "; ".join(f"{estimator}: {reason}" for estimator, reason in reasons.rows())
        warn(
            f"{failed.height} of {estimates.height} estimates are missing (column 'failure' of the estimates): "
            f"{listed}",
            DataWarning,
        )
