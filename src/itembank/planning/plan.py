"""The verb `plan`: how many items a question needs."""

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import asked_for, headline_names
from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.checks import check_headline
from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.estimation.estimator_specs import Auto, EstimationSpec
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.numerics.arrays import IntArray
from itembank.planning.auto import check_method, choose_selection
from itembank.planning.goals import Goal, find_fewest, try_grid
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.plans import Plan, PlanAnswer, PlanTable
from itembank.planning.precision import ALWAYS_TRIED, grid_sizes
from itembank.planning.size_trials import Selector, Trial, try_size
from itembank.planning.stages import AUTO, compare_stages, first_of_stages, routing_method, stage_sizes
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.select import candidates, select
from itembank.selection.selector_specs import METHODS as SELECTORS
from itembank.selection.selector_specs import SelectionSpec, VOptimal

USUAL_SIZE = 100
LIMITS_OF_AUTO = VOptimal()
"""Of the methods of 'auto' the one with the fewest items to begin with, and none that all models answered alike."""
USUAL = PlanSpec()


def plan(
    bank: GivenBank,
    *,
    half_width: float | None = None,
    difference: float | None = None,
    target: str = OVERALL,
    selector: SelectionSpec | str = "auto",
    method: EstimationSpec | str = "auto",
    max_items: int | None = None,
    spec: PlanSpec = USUAL,
    progress: ProgressCallback = silent,
) -> Plan:
    """Say how many items a question needs, from the bank alone.

    Each part of the calibration models in turn plays the new models: items are chosen and estimates fitted without
    them, for the same numbers of items whatever is asked: 10, 20, 30, 50, 100, and so on. The errors give the expected
    half-width of an interval and the smallest detectable difference at each number, and a falling curve through these
    the number that is asked for. That many are tried themselves, and more of them where the trial misses the goal.

    Parameters
    ----------
    bank : Bank or path
    half_width : float, optional
        Wanted half-width of the interval of a model's score, in (0, 1).
    difference : float, optional
        Or: true difference of two models, run on the same items, that is to show with probability `power`. Without
        either goal only the table is made.
    target : str
        'overall' or a scenario; 'mean_win_rate', or an external score that the bank keeps. Numbers of items are of all
        scenarios together in any case.
    selector : spec or str
        How items will be chosen, as for `select`; 'auto' is decided at each number of items.
    method : spec or str
        How scores will be estimated, as for `estimate`.
    max_items : int, optional
        The most that may be run.
    spec : PlanSpec
        Level, power, seed and which score is meant.
    progress : ProgressCallback

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        For two goals, a goal outside (0, 1), or another target, selector or method.
    DataError
        With fewer than ten calibration models.

    Examples
    --------
    >>> plan(bank, half_width=0.02).n_items  # doctest: +SKIP
    >>> plan(bank, difference=0.03, spec=PlanSpec(power=0.9)).message  # doctest: +SKIP
    """
    bank = asked_for(as_bank(bank), target)
    bank.check_responses("A plan needs")
    if bank.headline is not None:
        check_headline(bank, "calibrated", spec.estimand, (), progress)
        target = bank.targets.last if target == OVERALL else target
    index = _target_index(bank, target)
    goal = Goal.of(bank, index, spec, half_width=half_width, difference=difference)
    estimator = ESTIMATORS.resolve(method)
    if selector != AUTO:
        check_method(selector)
    chooser: Selector = AUTO if selector == AUTO else SELECTORS.resolve(selector)
    check_folds(bank, progress)
    limits = LIMITS_OF_AUTO if isinstance(chooser, str) else chooser
    largest = most_items(bank, limits)
    # 'auto' has methods that predict a scenario from the answers to others, which not every method does
    fewest = fewest_items(bank, limits) if isinstance(estimator, Auto) else bank.targets.n_scenarios
    sizes = plan_sizes(fewest, largest, max_items)

    tried: list[int] = []

    def run(n_items: int) -> Trial:
        progress(f"trying {n_items} items", min(len(tried) / len(sizes), 1.0))
        tried.append(n_items)
        return try_size(bank, n_items, selector=chooser, estimator=estimator, target=index, seed=spec.seed)

    grid = try_grid(run, sizes, goal)
    most = largest if max_items is None else min(max_items, largest)
    found = find_fewest(run, grid, goal, most)
    answer = PlanAnswer.of(goal, grid, found, most=most, max_items=max_items, target=target)
    advice = ""
    if chooser == AUTO and isinstance(estimator, Auto):
        progress("trying stages", 1.0)
        advice = _stages_advice(bank, min(answer.n_items or USUAL_SIZE, most), spec.seed)
    progress("done", 1.0)
    return Plan(
        target=target,
        goal=goal,
        answer=answer,
        table=PlanTable.of(goal, grid, found, most=most),
        selector=chooser if isinstance(chooser, str) else SELECTORS.label(chooser),
        method=ESTIMATORS.name_of(estimator),
        bank_id=bank.bank_id,
        stages_advice=advice,
    )


def _stages_advice(bank: Bank, n_items: int, seed: int) -> str:
    """Say whether two stages of as many items would do better; nothing where there are too few items for stages."""
    try:
        sizes = stage_sizes(bank, n_items, 2)
    except ParameterError:
        return ""
    batch = choose_selection(bank, n_items, per_scenario=False, excluded=(), seed=seed)
    routing = select(bank, sizes[0], method=routing_method(bank), rng=seed)
    compared = compare_stages(bank, batch, first_of_stages(routing, sizes))
    return "" if compared is None else compared.advice


def _target_index(bank: Bank, target: str) -> int:
    """Position of the target among the targets of the bank."""
    names = tuple(dict.fromkeys([*bank.targets.names, *headline_names(bank)]))
    if target not in bank.targets.names:
        near = did_you_mean(target, names)
        raise ParameterError(f"target must be one of {shown(names, limit=20)}, got {target!r}.{near}")
    return bank.targets.names.index(target)


def check_folds(bank: Bank, progress: ProgressCallback) -> None:
    """Refuse a bank with too few calibration models to leave some out."""
    if not folds(bank, progress=progress):
        raise DataError(
            f"a plan needs at least {MINIMUM_FOR_FOLDS} calibration models that can be left out in turn, the bank "
            f"has {bank.distinct_models.size} whose full scores are known and that are no copies. Add per-item results "
            "of more models."
        )


def most_items(bank: Bank, selector: SelectionSpec) -> int:
    """Return how many items every fold can choose."""
    return min(int(candidates(fold.bank, selector, ()).sum()) for fold in folds(bank))


def fewest_items(bank: Bank, selector: SelectionSpec) -> int:
    """Return how few items the selector can choose."""
    return 1 if selector.may_skip_scenarios(is_short=True) else bank.targets.n_scenarios


def plan_sizes(fewest: int, largest: int, max_items: int | None) -> IntArray:
    """Numbers of items to try: the same for every goal, with `max_items` as far as the first that is no smaller."""
    sizes = grid_sizes(largest)
    if sizes[0] < fewest:
        sizes = np.append(fewest, sizes[sizes > fewest])
    if max_items is None:
        return sizes
    if max_items < sizes[0]:
        raise ParameterError(f"max_items must be at least {sizes[0]}, got {max_items}.")
    return sizes[: 1 + int(np.searchsorted(sizes, min(max(max_items, ALWAYS_TRIED), largest)))]
