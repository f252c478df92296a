"""The method of selection that `auto` takes: that with the smallest errors on calibration models left out."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.estimation.automatic import too_few
from itembank.estimation.estimator_specs import IN_STAGES, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.headlines import headline_slopes
from itembank.estimation.method_trials import sample_of, try_methods, try_stages
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread, parts_with_progress
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, part_of, silent
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import METHODS, AnchorLatent, SelectionSpec, Stratified, VOptimal

CANDIDATES: tuple[SelectionSpec, ...] = (
    VOptimal(),
    AnchorLatent(allow_degenerate=True),
    Stratified("proportional"),
)
"""The first is taken unless another is clearly better: with few models many candidates make a lucky winner."""
FALLBACK = Stratified("proportional")
WEIGHT_DIGITS = 3
FRACTION_OF_FITS = 0.7
"""Part of the progress bar for fitting without some models, where that was not done before."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate, and the errors of estimates from its items on calibration models left out."""

    recipe: Recipe
    errors: FloatArray  # (n_models,): Absolute errors of the overall score by 'stacked'; NaN where unknown

    @property
    def label(self) -> str:
        """How the method is called."""
        return METHODS.label(self.recipe.spec)

    @property
    def error(self) -> float:
        """Mean absolute error; infinite where no error is known."""
        known = self.errors[~np.isnan(self.errors)]
        return float(known.mean()) if known.size else np.inf


@one_blas_thread()
def choose_selection(
    bank: Bank,
    n_items: int,
    *,
    per_scenario: bool,
    excluded: Collection[str],
    included: Collection[str] = (),
    seed: int,
    progress: ProgressCallback = silent,
) -> Selection:
    """Choose V-optimal items, or items of a method with clearly smaller errors on calibration models left out.

    Every candidate chooses anew without the models it is judged by. With too few models for that, items are drawn at
    random from strata, which asks nothing of the bank.
    """
    ids = tuple(sorted(excluded)), tuple(sorted(included))
    specs = (*aimed_at_headline(bank), *CANDIDATES)
    recipes = [Recipe(spec, n_items, per_scenario, *ids) for spec in specs]
    # any number of items that a method can choose this one can: refuses before the long work what none could
    is_short = not per_scenario and n_items < bank.targets.n_scenarios
    fallback = select_by_recipe(bank, replace(recipes[0], spec=VOptimal() if is_short else FALLBACK), seed)
    if bank.published is not None:
        return replace(
            fallback,
            explanation=f"{fallback.method}, since the bank was published without past models' responses to compare "
            "methods on.",
        )
    if not folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS)):
        return replace(
            fallback,
            explanation=f"{fallback.method}, since {too_few(bank)}.",
        )
    parts = [(bank, recipe, seed) for recipe in recipes]
    report = part_of(progress, FRACTION_OF_FITS, 1.0)
    found = dict(parts_with_progress(_errors_or_refusal, parts, report, elsewhere="tried methods"))
    outcomes = [(recipe, found[number]) for number, recipe in enumerate(recipes)]
    tried = [Tried(recipe, errors) for recipe, errors in outcomes if not isinstance(errors, ParameterError)]
    if not tried:
        raise next(error for _, error in reversed(outcomes) if isinstance(error, ParameterError))
    progress("trying methods", 1.0)
    best = best_of(tried)
    if np.isinf(best.error):
        nothing = "no calibration model left out has a score and an estimate to compare methods by"
        return replace(select_by_recipe(bank, best.recipe, seed), explanation=f"{best.label}: {nothing}.")
    listed = ", ".join(f"{each.label} {100.0 * each.error:.2f}" for each in tried)
    is_smallest = best.error <= min(each.error for each in tried)
    reason = "" if is_smallest else f"; {best.label} is taken unless another is clearly better"
    if not np.isfinite(best.error):
        why = f"no calibration model's value of {bank.targets.last_in_words} is known to compare methods by"
        return replace(select_by_recipe(bank, best.recipe, seed), explanation=f"{best.label}, since {why}.")
    return replace(
        select_by_recipe(bank, best.recipe, seed),
        explanation=f"{best.label}. Mean errors of {bank.targets.last_in_words} of calibration models left out in "
        f"turn, in points: {listed}{reason}.",
    )


def aimed_at_headline(bank: Bank) -> tuple[VOptimal, ...]:
    """Return V-optimal items for what a bank's headline score is in scenario scores; none for the overall score.

    Each scenario weighs as much as the headline score rises with its score among the bank's models (`headline_slopes`).
    """
    if bank.headline is None:
        return ()
    slopes = headline_slopes(bank.headline, bank.known_scores.value[:, :-1])
    largest = float(np.abs(slopes).max())
    if not largest > 0.0:
        return ()
    # few digits, so that what is tried goes by the same name on every processor
    weights = np.round(slopes / largest, WEIGHT_DIGITS)
    return (VOptimal(scenario_weights=dict(zip(bank.targets.scenarios, weights.tolist(), strict=True))),)


def _errors_or_refusal(
    bank: Bank, recipe: Recipe, seed: int, progress: ProgressCallback
) -> FloatArray | ParameterError:
    """Return the errors, or why the method cannot choose: methods differ in which items they may choose."""
    progress(f"trying {METHODS.label(recipe.spec)}", 0.0)
    try:
        return errors_of(bank, recipe, seed)
    except ParameterError as error:
        return error


def errors_of(bank: Bank, recipe: Recipe, seed: int, *, progress: ProgressCallback = silent) -> FloatArray:
    """Absolute errors of the overall score by what 'auto' takes, (n_models,), found once for each way of choosing.

    Where the items are drawn at random the errors depend on the seed; else each fold chooses its own items, the same
    for every seed.
    """

    def measure() -> FloatArray:
        if recipe.stages:
            stacked = IN_STAGES
            tried = try_stages(bank, recipe, stacked.members, progress=progress)
        else:
            stacked, chosen = Stacked(), select_by_recipe(bank, recipe, seed)
            tried = try_methods(bank, sample_of(bank, chosen), chosen, stacked.members)
        result: FloatArray = np.abs(tried.stacked(stacked).error[:, -1])
        return result

    return bank.cache.remember(
        ("errors of items", bank.targets.last, *recipe.name, seed if isinstance(recipe.spec, Stratified) else None),
        measure,
    )


def best_of(tried: list[Tried]) -> Tried:
    """Return the first, unless another is better than it by more than a standard error of their difference."""
    return tried[clearly_best([each.errors for each in tried])]


def check_method(method: object) -> None:
    """Refuse a name that is neither 'auto' nor in the table, naming all that are allowed."""
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, ["auto"]))
