"""The verb `plan_sessions`: whether to ask a model one item at a time, by trials on the bank."""

import shlex
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import asked_for
from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_whole
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shown
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimator_specs import IN_STAGES, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.method_trials import sample_of, try_methods, try_stages
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import clearly_best
from itembank.planning.auto import choose_selection
from itembank.planning.plan import plan
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.criteria import CRITERIA, DrawnItem
from itembank.selection.recipes import read_recipe, stages_of
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.preparation import MOST_ITEMS, errors_of_drawn, past_sessions
from itembank.sessions.session_spec import SessionSpec
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class TriedDesign:
    """A way to ask n items, and the cross-validated errors of estimates from them."""

    name: str  # 'at once', 'in two stages', 'one by one'
    signed_errors: FloatArray  # (n_models,): Of the target; NaN for models that some design was not tried on
    command: str  # How to begin, for people

    @property
    def errors(self) -> FloatArray:
        """Absolute errors, (n_models,)."""
        return np.abs(self.signed_errors)


@dataclass(frozen=True, slots=True, repr=False)
class SessionPlan(Tabular):
    """Ways to ask a new model n items, compared by cross-validation.

    Attributes
    ----------
    n_items : int
    target : str
        The score that errors are of.
    level : float
        Of the half-widths.
    designs : tuple of TriedDesign
        The first is taken unless another is clearly better.
    best : TriedDesign
    bank_id : str
    """

    n_items: int
    target: str
    level: float
    designs: tuple[TriedDesign, ...]
    best: TriedDesign
    bank_id: str

    @property
    def message(self) -> str:
        """What to take, in a sentence."""
        first, best = self.designs[0], self.best
        other = min(self.designs[1:], key=lambda design: _mean(design.errors)[0]) if best is first else best
        gain, doubt = _mean(first.errors - other.errors)
        closer = f"{100.0 * gain:.2f} ± {100.0 * doubt:.2f} points closer"
        if best is not first:
            return f"Ask {best.name}: {closer} than {first.name}."
        if _mean(other.errors)[0] >= _mean(first.errors)[0]:
            return f"Ask {first.name}: no other way has smaller errors, and one run is the least work."
        return (
            f"Ask {first.name}: {other.name} comes {closer}, too little to be sure of, and one run is the least work."
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each way of asking; errors of scores from 0 to 1."""
        rows = []
        for design in self.designs:
            error, doubt = _mean(design.errors)
            gain, doubt_of_gain = _mean(self.designs[0].errors - design.errors)
            signed = design.signed_errors[:, None]
            one = np.ones(signed.shape)  # the same size is expected of all
            half_width = OutOfFold(np.zeros(signed.shape), signed, one, one).typical_half_width(level=self.level)
            row = {"design": design.name, "n_items": self.n_items, "mean_absolute_error": error}
            row |= {"standard_error": doubt, "gain": gain, "standard_error_of_gain": doubt_of_gain}
            row |= {"half_width": half_width, "is_taken": design is self.best}
            rows.append({**row, "command": design.command})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the table."""
        return {
            "target": self.target,
            "n_items": self.n_items,
            "taken": self.best.name,
            "message": self.message,
            "command": self.best.command,
            "n_models": int(np.sum(~np.isnan(self.best.errors))),
            "level": self.level,
            "bank": self.bank_id,
        }


def _mean(values: FloatArray) -> tuple[float, float]:
    """Mean of the values that are known, and its standard error; infinite where none is."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.inf, np.inf
    return float(known.mean()), float(np.std(known, ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.inf


def plan_sessions(
    bank: GivenBank,
    n_items: int | None = None,
    *,
    half_width: float | None = None,
    target: str = OVERALL,
    level: float = 0.95,
    spec: SessionSpec | None = None,
    progress: ProgressCallback = silent,
) -> SessionPlan:
    """Say whether asking a new model one item at a time pays, from the bank alone.

    Each group of past models is scored as if it were new, and is asked by each of `DESIGNS`: the items that
    `select` chooses beforehand, all at once; those of two stages; and a session, one by one, where each item
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
    spec : SessionSpec, optional
        How the session goes, but for its budget, its target and when it stops; the default one.
    progress : ProgressCallback
        Minutes the first time; what was tried is kept in the bank's cache.

    Raises
    ------
    ParameterError
        Unless one of `n_items` and `half_width` is given, or when that many items cannot be tried.
    DataError
        With fewer than ten past models.

    Examples
    --------
    >>> plan_sessions(bank, 30).message  # doctest: +SKIP
    'Ask one by one: 0.91 ± 0.30 points closer than at once.'
    """
    bank = asked_for(as_bank(bank), target)
    if (n_items is None) == (half_width is None):
        raise ParameterError(f"give one of n_items and half_width, got n_items={n_items!r}, half_width={half_width!r}.")
    bank.check_responses("A plan needs")
    check_fraction("level", level)
    names = bank.targets.names
    if target not in names:
        raise ParameterError(f"target must be one of {shown(names)}, got {target!r}.{did_you_mean(target, names)}")
    if not folds(bank, progress=progress):
        raise DataError(
            f"a plan needs at least {MINIMUM_FOR_FOLDS} past models for cross-validation, the bank has "
            f"{bank.distinct_models.size} whose full scores are known and that are no copies. Add per-item results of "
            "more models."
        )
    if n_items is None:
        share = part_of(progress, 0.0, 0.4)
        n_items = plan(bank, half_width=half_width, target=target, spec=PlanSpec(level), progress=share).n_items
    check_whole("n_items", n_items, least=1)
    if n_items is None or n_items > MOST_ITEMS:
        raise ParameterError(
            f"n_items must be at most {MOST_ITEMS}, the longest sessions that are tried, got {n_items}. Ask for fewer, "
            f"or see {remedy('plan', 'itembank plan')} for what is asked at once."
        )
    asked = replace(spec or SessionSpec(), target=target, budget=Budget(int(n_items)), stopping=Stopping())
    column, ends = names.index(target), np.linspace(0.4, 1.0, len(DESIGNS) + 1).tolist()
    shares = [part_of(progress, *share) for share in pairwise(ends)]
    found = [errors(bank, asked, share) for (_, errors, _), share in zip(DESIGNS, shares, strict=True)]
    # what was tried now and what was kept must give the same digits
    errors = np.round([own[:, column] for own in found if own is not None], 12)
    errors[:, np.isnan(errors).any(axis=0)] = np.nan  # all ways are compared on the same models
    designs = [design for design, own in zip(DESIGNS, found, strict=True) if own is not None]
    criterion = CRITERIA.name_of(CRITERIA.resolve(asked.criterion))
    tried = [
        TriedDesign(name, own, command.format(n_items=n_items, target=shlex.quote(target), criterion=criterion))
        for (name, _, command), own in zip(designs, errors, strict=True)
    ]
    best = tried[clearly_best([design.errors for design in tried])]
    progress("done", 1.0)
    return SessionPlan(int(n_items), target, level, tuple(tried), best, bank.bank_id)


@one_blas_thread()
def at_once(bank: Bank, spec: SessionSpec, progress: ProgressCallback) -> FloatArray:
    """Errors of `estimate` on the items that `select` chooses in every fold anew, (n_models, n_targets)."""
    n_items, stacked = spec.budget.n_items or 0, Stacked()
    chosen = choose_selection(bank, n_items, per_scenario=False, excluded=(), seed=0, progress=progress)
    return try_methods(bank, sample_of(bank, chosen), chosen, stacked.members).by(stacked).error


def in_stages(bank: Bank, spec: SessionSpec, progress: ProgressCallback) -> FloatArray | None:
    """Errors of `estimate` after a routing stage of a third of the items and a stage for each model."""
    try:
        routing = select(bank, spec.budget.n_items or 0, stages=2, rng=0)
    except ParameterError:  # too few items for two stages, or more than the bank has for them
        return None
    recipe = read_recipe(routing)
    if recipe is None:
        return None
    sizes, _ = stages_of(routing)
    return try_stages(bank, replace(recipe, stages=sizes), IN_STAGES.members, progress=progress).by(IN_STAGES).error


def one_by_one(bank: Bank, spec: SessionSpec, progress: ProgressCallback) -> FloatArray:
    """Errors of sessions over the banks of the folds."""
    if isinstance(spec.criterion, DrawnItem):
        return errors_of_drawn(bank, spec, progress=progress)
    past = past_sessions(bank, spec, progress=progress)
    if past is None or past.n_answered[-1] != spec.budget.n_items:
        raise ParameterError(
            f"n_items must be what sessions can ask without any fold of the models, got {spec.budget.n_items}. Ask for "
            "fewer."
        )
    errors: FloatArray = past.value[-1] - past.truth
    return errors


DESIGNS = (
    ("at once", at_once, "itembank select BANK -n {n_items} -o selection.json"),
    ("in two stages", in_stages, "itembank select BANK -n {n_items} --stages 2 -o stage1.json"),
    (
        "one by one",
        one_by_one,
        "itembank session start BANK -o run.jsonl --model-id NAME --max-items {n_items} --target {target} "
        "--criterion {criterion}",
    ),
)
"""What is tried: name, errors (none where so many items cannot be asked so), and how to begin. The first is the least
work, and is taken unless another is clearly better."""
