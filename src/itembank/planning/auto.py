"""Which items to choose by which method: the one whose items would have served calibration models best."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from itembank.crossfit.folds import folds
from itembank.data.banks import Bank
from itembank.data.selections import Selection
from itembank.errors import ParameterError
from itembank.estimation.specs import Stacked
from itembank.estimation.trial import sample_of, trial
from itembank.numerics.arrays import FloatArray
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, part_of, silent
from itembank.selection.select import select
from itembank.selection.specs import METHODS, AnchorLatent, SelectionSpec, Stratified, VOptimal

CANDIDATES: tuple[SelectionSpec, ...] = (
    VOptimal(),
    AnchorLatent(allow_degenerate=True),
    Stratified("proportional"),
)
"""The first is taken unless another is clearly better: with few models many candidates make a lucky winner."""
FALLBACK = Stratified("proportional")
FRACTION_OF_FITS = 0.7
"""Of the work that is fitting without some models, where that was not done before."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate, and how far off estimates from its items were for calibration models left out.

    Attributes
    ----------
    spec : SelectionSpec
    errors : (n_models,)
        Absolute errors of the overall score by 'stacked'; NaN where unknown.
    """

    spec: SelectionSpec
    errors: FloatArray

    @property
    def error(self) -> float:
        """Mean absolute error; infinite where it could not be told."""
        known = self.errors[~np.isnan(self.errors)]
        return float(known.mean()) if known.size else np.inf


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of every candidate."""

    n_items: int
    per_scenario: bool
    excluded: tuple[str, ...]
    seed: int


@one_blas_thread()
def choose_selection(
    bank: Bank,
    n_items: int,
    *,
    per_scenario: bool,
    excluded: Collection[str],
    seed: int,
    progress: ProgressCallback = silent,
) -> Selection:
    """Choose V-optimal items, or those by which stacked estimates are clearly better for calibration models left out.

    Every candidate chooses anew without the models it is judged by. With too few models for that, items are drawn at
    random from strata, which asks nothing of the bank.
    """
    # any number of items that a method can choose this one can: refuses before the long work what none could
    fallback = select(bank, n_items, method=FALLBACK, per_scenario=per_scenario, excluded=excluded, rng=seed)
    if not folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS)):
        return replace(
            fallback,
            explanation=f"{fallback.method}, since {bank.n_models} calibration models are too few to leave some out "
            "and compare methods.",
        )
    wanted = _Wanted(n_items, per_scenario, tuple(sorted(excluded)), seed)
    tried, refusals = [], []
    for number, spec in enumerate(CANDIDATES):
        progress(
            f"trying {METHODS.label(spec)}", FRACTION_OF_FITS + (1.0 - FRACTION_OF_FITS) * number / len(CANDIDATES)
        )
        try:
            tried.append(Tried(spec, _errors(bank, spec, wanted)))
        except ParameterError as error:  # methods differ in which items they may choose
            refusals.append(error)
    if not tried:
        raise refusals[-1]
    progress("trying methods", 1.0)
    best = _clearly_best(tried)
    listed = ", ".join(f"{METHODS.label(each.spec)} {100.0 * each.error:.2f}" for each in tried)
    is_smallest = best.error <= min(each.error for each in tried)
    kept = "" if is_smallest else f"; {METHODS.label(best.spec)} is taken unless another is clearly better"
    return replace(
        _select(bank, best.spec, wanted),
        explanation=f"{METHODS.label(best.spec)}: mean absolute error of the overall score of calibration models "
        f"left out in turn, in points: {listed}{kept}.",
    )


def _errors(bank: Bank, spec: SelectionSpec, wanted: _Wanted) -> FloatArray:
    """Absolute errors of the overall score by 'stacked', (n_models,), found once for each way of choosing.

    Where chance draws the items they depend on the seed; else each fold chooses its own, whatever the seed.
    """

    def measure() -> FloatArray:
        chosen = _select(bank, spec, wanted)
        stacked = Stacked()
        found = trial(bank, sample_of(bank, chosen), chosen, stacked.members).stacked(stacked)
        result: FloatArray = np.abs(found.error[:, -1])
        return result

    key = wanted if isinstance(spec, Stratified) else replace(wanted, seed=0)
    return bank.cache.remember(("errors of items", repr(spec), key), measure)


def _select(bank: Bank, spec: SelectionSpec, wanted: _Wanted) -> Selection:
    return select(
        bank,
        wanted.n_items,
        method=spec,
        per_scenario=wanted.per_scenario,
        excluded=wanted.excluded,
        rng=wanted.seed,
    )


def _clearly_best(tried: list[Tried]) -> Tried:
    """Return the first, unless another is better than it by more than a standard error of their difference."""
    first, best = tried[0], min(tried, key=lambda each: each.error)
    saving = first.errors - best.errors
    known = saving[~np.isnan(saving)]
    if known.size < 2:
        return best
    doubt = float(np.std(known, ddof=1) / np.sqrt(known.size))
    return best if float(known.mean()) > doubt else first


def check_method(method: object) -> None:
    """Refuse a name that is neither 'auto' nor in the table, naming all that are allowed."""
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, ["auto"]))
