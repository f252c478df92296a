"""The verb `plan_sessions`: whether to ask a model one item at a time, by trials on the bank."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import asked_for
from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_whole
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shown
from itembank.estimation.estimator_specs import IN_STAGES, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.method_trials import sample_of, try_methods, try_stages
from itembank.numerics.arrays import FloatArray
from itembank.numerics.paired_choice import clearly_best
from itembank.numerics.threads import one_blas_thread
from itembank.planning.auto import choose_selection
from itembank.planning.plan import plan
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.recipes import read_recipe, stages_of
from itembank.sessions.limits import Budget
from itembank.sessions.past_sessions import MOST_ITEMS, past_sessions
from itembank.sessions.session_plans import SessionPlan, TriedDesign
from itembank.sessions.session_spec import SessionSpec

SEED = 0
"""Of `select` where items are drawn by chance."""


@dataclass(frozen=True, slots=True)
class Question:
    """What every design is tried on: so many items of a bank, and the score that is wanted."""

    bank: Bank
    n_items: int
    target: str

    @property
    def column(self) -> int:
        """Which of the bank's targets it is."""
        return self.bank.targets.names.index(self.target)


@dataclass(frozen=True, slots=True)
class Design:
    """A way to ask n items.

    Attributes
    ----------
    name : str
    errors : function of question and progress
        Estimate less truth of the target for each calibration model, left out; NaN where unknown, None where so many
        items cannot be asked so.
    command : str
        How to begin, with {n_items} and {target}.
    """

    name: str
    errors: Callable[[Question, ProgressCallback], FloatArray | None]
    command: str


def plan_sessions(
    bank: GivenBank,
    n_items: int | None = None,
    *,
    half_width: float | None = None,
    target: str = OVERALL,
    level: float = 0.95,
    progress: ProgressCallback = silent,
) -> SessionPlan:
    """Say whether asking a new model one item at a time pays, from the bank alone.

    Each part of the calibration models in turn plays the new models, and is asked by each of `DESIGNS`: the items that
    `select` chooses beforehand, all at once; those of two stages; and a default session, one by one, where each item
    depends on the answers so far. Asking at once is taken, unless another way has errors that are smaller by more than
    a standard error of the difference: the rule of `select` with 'auto'.

    Parameters
    ----------
    bank : Bank or path
    n_items : int, optional
        Items to ask, 512 at most.
    half_width : float, optional
        Or: as many as an interval of this half-width needs when all are asked at once (`plan`).
    target : str
        'overall' or a scenario; 'mean_win_rate', or an external score that the bank keeps.
    level : float
        Of the half-widths.
    progress : ProgressCallback
        Minutes the first time; what was tried is kept in the bank's cache.

    Raises
    ------
    ParameterError
        Unless one of `n_items` and `half_width` is given, or when that many items cannot be tried.
    DataError
        With fewer than ten calibration models.

    Examples
    --------
    >>> plan_sessions(bank, 30).message  # doctest: +SKIP
    'Ask one by one: 0.91 ± 0.30 points closer than at once.'
    """
    bank = asked_for(as_bank(bank), target)
    if (n_items is None) == (half_width is None):
        raise ParameterError(f"give one of n_items and half_width, got n_items={n_items!r}, half_width={half_width!r}.")
    _check(bank, target, level, progress)
    if n_items is None:
        n_items = plan(
            bank, half_width=half_width, target=target, spec=PlanSpec(level), progress=part_of(progress, 0.0, 0.4)
        ).n_items
    question = Question(bank, _checked_size(n_items), target)
    ends = np.linspace(0.4, 1.0, len(DESIGNS) + 1).tolist()
    found = [
        (design, design.errors(question, part_of(progress, *share)))
        for design, share in zip(DESIGNS, pairwise(ends), strict=True)
    ]
    designs = [design for design, own in found if own is not None]
    # what was tried now and what was kept must give the same digits
    errors = np.round([own for _, own in found if own is not None], 12)
    errors[:, np.isnan(errors).any(axis=0)] = np.nan  # all ways are compared on the same models
    tried = [
        TriedDesign(design.name, own, design.command.format(n_items=question.n_items, target=shlex.quote(target)))
        for design, own in zip(designs, errors, strict=True)
    ]
    best = tried[clearly_best([design.errors for design in tried])]
    progress("done", 1.0)
    return SessionPlan(question.n_items, target, level, tuple(tried), best, bank.bank_id)


@one_blas_thread()
def at_once(question: Question, progress: ProgressCallback) -> FloatArray:
    """Errors of `estimate` on the items that `select` chooses in every fold anew."""
    bank, stacked = question.bank, Stacked()
    chosen = choose_selection(bank, question.n_items, per_scenario=False, excluded=(), seed=SEED, progress=progress)
    members = try_methods(bank, sample_of(bank, chosen), chosen, stacked.members)
    errors: FloatArray = members.stacked(stacked).error[:, question.column]
    return errors


def in_stages(question: Question, progress: ProgressCallback) -> FloatArray | None:
    """Errors of `estimate` after a routing stage of a third of the items and a stage for each model."""
    bank = question.bank
    try:
        routing = select(bank, question.n_items, stages=2, rng=SEED)
    except ParameterError:  # too few items for two stages, or more than the bank has for them
        return None
    recipe = read_recipe(routing)
    if recipe is None:
        return None
    sizes, _ = stages_of(routing)
    members = try_stages(bank, replace(recipe, stages=sizes), IN_STAGES.members, progress=progress)
    errors: FloatArray = members.stacked(IN_STAGES).error[:, question.column]
    return errors


def one_by_one(question: Question, progress: ProgressCallback) -> FloatArray:
    """Errors of sessions over the banks of the folds."""
    spec = SessionSpec(target=question.target, budget=Budget(question.n_items))
    past = past_sessions(question.bank, spec, progress=progress)
    if past is None or past.n_answered[-1] != question.n_items:
        raise ParameterError(
            f"n_items must be what sessions can ask without any fold of the models, got {question.n_items}. Ask for "
            "fewer."
        )
    errors: FloatArray = (past.value[-1] - past.truth)[:, question.column]
    return errors


DESIGNS = (
    Design("at once", at_once, "itembank select BANK -n {n_items} -o selection.json"),
    Design("in two stages", in_stages, "itembank select BANK -n {n_items} --stages 2 -o stage1.json"),
    Design(
        "one by one",
        one_by_one,
        "itembank session start BANK -o run.jsonl --model-id NAME --max-items {n_items} --target {target}",
    ),
)
"""What is tried. The first is the least work, and is taken unless another is clearly better."""


def _check(bank: Bank, target: str, level: float, progress: ProgressCallback) -> None:
    bank.check_responses("A plan needs")
    check_fraction("level", level)
    names = bank.targets.names
    if target not in names:
        raise ParameterError(f"target must be one of {shown(names)}, got {target!r}.{did_you_mean(target, names)}")
    if not folds(bank, progress=progress):
        raise DataError(
            f"a plan needs at least {MINIMUM_FOR_FOLDS} calibration models that can be left out in turn, the bank "
            f"has {bank.distinct_models.size} whose full scores are known and that are no copies. Add per-item results "
            "of more models."
        )


def _checked_size(n_items: int | None) -> int:
    check_whole("n_items", n_items, least=1)
    if n_items is None or n_items > MOST_ITEMS:
        raise ParameterError(
            f"n_items must be at most {MOST_ITEMS}, the longest sessions that are tried, got {n_items}. Ask for fewer, "
            f"or see {remedy('plan', 'itembank plan')} for what is asked at once."
        )
    return int(n_items)
