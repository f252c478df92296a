"""What `auto` takes: V-optimal items, of few models random ones; one batch or stages, by past errors."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import is_whole
from itembank.errors import ParameterError, remedy
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.headlines import headline_slopes
from itembank.estimation.method_trials import sample_of, too_few, try_methods
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.precision import expected_half_width
from itembank.progress import ProgressCallback, part_of, silent
from itembank.selection.recipes import STAGE, STAGES, Recipe
from itembank.selection.select import candidates, open_scenarios, select_by_recipe
from itembank.selection.selector_specs import METHODS, Drawn, SelectionSpec, Stratified, VOptimal

FALLBACK = Stratified("proportional")
LEVEL = 0.95
WEIGHT_DIGITS = 3
FRACTION_OF_FITS = 0.7
"""Part of the progress bar for fitting without some models, where that was not done before."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A way to choose items, and the cross-validated errors of estimates from its items."""

    recipe: Recipe
    found: OutOfFold  # By what 'auto' takes

    @property
    def errors(self) -> FloatArray:
        """Absolute errors of the overall score, NaN where unknown, (n_models,)."""
        return np.abs(self.found.error[:, -1])

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
    predicted: Collection[str] = (),
    seed: int,
    is_explained: bool = False,
    progress: ProgressCallback = silent,
) -> Selection:
    """Choose V-optimal items; when explained, say how wrong estimates of past models were.

    Where scenarios are to be `predicted`, they are V-optimal for these. With too few models for cross-validation, items
    are drawn at random from strata, which asks nothing of the bank.
    """
    ids = tuple(sorted(excluded)), tuple(sorted(included))
    spec = VOptimal().aimed_at(predicted) if predicted else aimed_at_headline(bank)
    recipe = Recipe(spec, n_items, per_scenario, *ids)
    own = next((one for one in bank.own_selections if one.n_items == n_items), None)
    if own is not None and not (per_scenario or excluded or included):
        return own
    if bank.rest is not None:
        raise ParameterError(
            f"this bank holds only the items of its own selections, by method 'auto' without other options, got "
            f"{n_items}.{_sizes_in_words(bank)}"
        )
    # any number of items that the method can choose this one can: refuses before the long work what none could
    is_short = not per_scenario and n_items < open_scenarios(bank, excluded).size
    fallback = select_by_recipe(bank, replace(recipe, spec=VOptimal() if is_short else FALLBACK), seed)
    if bank.published is not None:
        why = "the bank was published without past models' responses to compare methods on"
        return replace(fallback, explanation=f"{fallback.method}, since {why}.{_sizes_in_words(bank)}")
    if not folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS)):
        return replace(fallback, explanation=f"{fallback.method}, since {too_few(bank)}.")
    chosen, label = select_by_recipe(bank, recipe, seed), METHODS.label(recipe.spec)
    if not is_explained:
        return chosen
    progress("trying the items on past models", FRACTION_OF_FITS)
    tried = try_recipe(bank, recipe, seed)
    progress("trying the items on past models", 1.0)
    if np.isinf(tried.error):
        nothing = "no past model has both a score and a cross-validated estimate to judge them by"
        return replace(chosen, explanation=f"{label}: {nothing}.")
    words = f"{label}. Cross-validated mean error of {bank.targets.last_in_words}: {100.0 * tried.error:.2f} points."
    return replace(chosen, explanation=f"{words} {_widths_in_words(bank, tried, seed)}")


def _sizes_in_words(bank: Bank) -> str:
    """Say for how many items a published bank knows the errors of past models."""
    sizes = [] if bank.published is None else [str(one.selection.n_items) for one in bank.published.subsets]
    return (
        f" Errors on past models, and so calibrated intervals, are known for {', '.join(sizes)} items." if sizes else ""
    )


def _widths_in_words(bank: Bank, tried: Tried, seed: int) -> str:
    """Say how wide intervals will be, and how wide those of drawn items are, whatever a model is."""
    usual = 100.0 * tried.found.typical_half_width(level=LEVEL)
    text = f"{100 * LEVEL:g} % interval of a model like past ones about ±{usual:.1f} points."
    if bank.headline is not None:
        return text
    drawn = select_by_recipe(bank, replace(tried.recipe, spec=Drawn()), seed)
    by_draw = 100.0 * expected_half_width(bank, drawn, level=LEVEL)
    if np.isnan(by_draw):
        return text
    how = remedy("method='drawn'", "--method drawn")
    return f"{text} Drawn items give ±{by_draw:.1f} whatever a model is ({how})."


def with_expected_width(bank: Bank, drawn: Selection) -> Selection:
    """Say of drawn items how wide the interval from them will be."""
    half = 100.0 * expected_half_width(bank, drawn, level=LEVEL)
    if np.isnan(half):
        return drawn
    words = f"{100 * LEVEL:g} % interval of the overall score about ±{half:.1f} points, whatever a model is"
    return replace(drawn, explanation=f"{drawn.method}. {words}.")


def aimed_at_headline(bank: Bank) -> VOptimal:
    """Return V-optimal items for the score that a bank is asked for: the overall one, or a headline score.

    For a headline score each scenario weighs as much as it rises with the scenario's score among past models
    (`headline_slopes`).
    """
    if bank.headline is None:
        return VOptimal()
    slopes = headline_slopes(bank.headline, bank.known_scores.value[:, :-1])
    largest = float(np.abs(slopes).max())
    if not largest > 0.0:
        return VOptimal()
    # few digits, so that what is tried goes by the same name on every processor
    weights = np.round(slopes / largest, WEIGHT_DIGITS)
    return VOptimal(scenario_weights=dict(zip(bank.targets.scenarios, weights.tolist(), strict=True)))


def try_recipe(bank: Bank, recipe: Recipe, seed: int) -> Tried:
    """Cross-validate estimates from items chosen so, by what 'auto' takes; found once for each way of choosing.

    Where the items are drawn at random the errors depend on the seed; else each fold chooses its own items, the same
    for every seed.
    """

    def measure() -> OutOfFold:
        chosen = select_by_recipe(bank, recipe, seed)
        return try_methods(bank, sample_of(bank, chosen), chosen, Stacked().members).by(Stacked())

    by_chance = seed if isinstance(recipe.spec, Stratified) else None
    found = bank.cache.remember(("tried items", bank.targets.last, recipe.name, by_chance), measure)
    return Tried(recipe, found)


def check_method(method: object) -> None:
    """Refuse a name that is neither 'auto' nor in the table, naming all that are allowed."""
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, ["auto"]))


AUTO = "auto"
MOST_STAGES = 3
"""Each stage is a run of the harness, and more would gain little."""


def check_stages(bank: Bank, stages: object, *, per_scenario: bool) -> None:
    """Refuse another number of stages, and what does not go together with stages."""
    if not (is_whole(stages) and 1 <= stages <= MOST_STAGES):
        raise ParameterError(f"stages must be 1, 2 or {MOST_STAGES}, got {stages!r}.")
    if stages == 1:
        return
    if per_scenario:
        raise ParameterError(
            "stages and per_scenario do not go together: a later stage asks the items that say most about a model."
        )
    bank.check_responses("Stages need")


def routing_method(bank: Bank) -> SelectionSpec:
    """Return how 'auto' chooses a routing stage: V-optimally, or by chance where few models say little of the items.

    With a headline score the stage is chosen for that score; later stages are for the score of the first.
    """
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return FALLBACK
    return aimed_at_headline(bank)


def first_of_stages(selection: Selection, sizes: tuple[int, ...]) -> Selection:
    """Make a selection the routing stage of so many items in all stages."""
    return replace(selection, recipe={**(selection.recipe or {}), STAGES: list(sizes), STAGE: 1})


def stage_sizes(
    bank: Bank, n_items: int, n_stages: int, *, excluded: Collection[str] = (), n_included: int = 0
) -> tuple[int, ...]:
    """Divide items among stages: a third for the routing stage, as many as it must have at least, the rest equally."""
    least = max(open_scenarios(bank, excluded).size, n_included)
    first = max(n_items // 3, least)
    most = int(candidates(bank, VOptimal(), excluded).sum())
    if not first + n_stages - 1 <= n_items <= most:
        raise ParameterError(
            f"n_items in {n_stages} stages must be from {least + n_stages - 1} (the first stage has an item of every "
            f"scenario, and all that must be included) to {most} (all that can be chosen), got {n_items}."
        )
    later = n_items - first
    parts = [later // (n_stages - 1) + (number < later % (n_stages - 1)) for number in range(n_stages - 1)]
    return (first, *parts)
