"""What `auto` takes: items drawn by the bank; and how wide intervals from drawn and from V-optimal items will be."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import is_whole
from itembank.errors import ParameterError, remedy
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.headlines import headline_slopes
from itembank.estimation.method_trials import try_methods
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.precision import expected_half_width
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.sizes import usual_trials
from itembank.selection.recipes import STAGE, STAGES, Recipe, read_recipe
from itembank.selection.select import candidates, open_scenarios, select_by_recipe
from itembank.selection.selector_specs import DRAWN, METHODS, VOPTIMAL, Drawn, SelectionSpec, VOptimal
from itembank.tables import points_of

LARGE, MANY_ITEMS = 2_000_000, 20_000
"""Answers of past models, and items, beyond which V-optimal items are not tried beside drawn ones."""
LEVEL = 0.95
WEIGHT_DIGITS = 3
FRACTION_OF_FITS = 0.7
"""Part of the progress bar for fitting without some models, where that was not done before."""


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
) -> Selection:
    """Draw items by the bank; where no draw can speak for the score, choose V-optimal ones.

    That is where scenarios are to be `predicted`, of which nothing is asked, where items are excluded, and for a
    headline score, which is no mean of answers.
    """
    own = next((one for one in bank.own_selections if one.n_items == n_items), None)
    if own is not None and not (per_scenario or excluded or included):
        return own
    if bank.rest is not None:
        sizes = ", ".join(map(str, sorted(one.n_items for one in bank.own_selections)))
        raise ParameterError(
            f"this bank holds only the items of its own selections, by method 'auto' without other options, got "
            f"{n_items}."
            + f" Errors on past models, and so calibrated intervals, are known for {sizes} items: take one of these."
            * bool(sizes)
        )
    spec: SelectionSpec = Drawn()
    if predicted:
        spec = VOptimal().aimed_at(predicted)
    elif bank.headline is not None or (excluded and bank.distinct_models.size >= MINIMUM_FOR_FOLDS):
        spec = aimed_at_headline(bank)
    ids = tuple(sorted(excluded)), tuple(sorted(included))
    return select_by_recipe(bank, Recipe(spec, n_items, per_scenario, *ids), seed)


def with_widths(bank: Bank, chosen: Selection, *, progress: ProgressCallback = silent) -> Selection:
    """Say of drawn or V-optimal items how wide intervals will be, and of the other kind beside it.

    Those of V-optimal items are the cross-validated ones of past models. That takes a calibration for each fold, so for
    a large bank they are found only where V-optimal items are asked for.
    """
    published = next((one.measured for one in bank.subsets if one.selection is chosen), {})
    recipe = read_recipe(chosen)
    is_drawn = recipe is not None and isinstance(recipe.spec, Drawn)
    if recipe is None or recipe.stages or not (is_drawn or recipe.spec == aimed_at_headline(bank)):
        return chosen
    words = f"{METHODS.label(recipe.spec)}."
    about = f"{100 * LEVEL:g} % interval of {bank.targets.last_in_words}: about"
    if "half_width" in published:  # as `info` has it
        whose = "whatever the model is" if is_drawn else f"if it is like the {bank.n_calibration_models:,} past ones"
        return replace(
            chosen, explanation=f"{words} {about} ±{100.0 * published['half_width']:.1f} points, valid {whose}."
        )
    by_draw, tried = np.nan, None
    if bank.headline is None and not recipe.excluded:
        drawn = chosen if is_drawn else select_by_recipe(bank, replace(recipe, spec=Drawn()), chosen.seed)
        by_draw = expected_half_width(bank, drawn, level=LEVEL)
    is_large = bank.n_models * bank.n_items > LARGE or bank.n_items > MANY_ITEMS
    if not (is_drawn and is_large):
        optimal = replace(recipe, spec=aimed_at_headline(bank)) if is_drawn else recipe
        tried = _tried(bank, optimal, chosen.seed or 0, progress)
    parts = {}
    if not np.isnan(by_draw):
        n_trials = usual_trials(bank.responses)
        repeated = f", with {n_trials} trials of each item" if n_trials > 1 else ""
        parts[DRAWN] = f"±{100.0 * by_draw:.1f} points{repeated}, valid whatever the model is"
    if tried is not None:
        half = tried.typical_half_width(level=LEVEL)
        n_known = int((~np.isnan(bank.past_scores[:, -1])).sum())
        whose = f"{n_known:,} past ones" + " whose score is known" * (n_known < bank.n_models)
        parts[VOPTIMAL] = f"±{100.0 * half:.1f} points, valid if it is like the {whose}"
    own, other = (DRAWN, VOPTIMAL) if is_drawn else (VOPTIMAL, DRAWN)
    if parts.get(own):
        words += f" {about} {parts[own]}"
        how = remedy(f"method={other!r}", f"--method {other}")
        words += f"; {parts[other]} ({how})." if parts.get(other) else "."
    elif recipe.excluded and is_drawn:
        words += " Items are excluded, so no interval rests on the draw."
    if not is_drawn and tried is not None:
        words += f" Cross-validated mean error: {points_of(float(np.nanmean(_errors(tried))))} points."
    return replace(chosen, explanation=words)


def _errors(tried: PastEstimates) -> FloatArray:
    """Return absolute errors of the overall score, NaN where unknown, (n_models,)."""
    return np.abs(tried.error[:, -1])


def _tried(bank: Bank, recipe: Recipe, seed: int, progress: ProgressCallback) -> PastEstimates | None:
    """Cross-validate V-optimal items; None where there are too few past models for that, or items."""
    if not folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS)):
        return None
    progress("trying V-optimal items on past models", FRACTION_OF_FITS)
    try:
        tried = try_recipe(bank, recipe, seed)
    except ParameterError:  # fewer items than scenarios, or than must come
        return None
    finally:
        progress("trying V-optimal items on past models", 1.0)
    return None if np.isnan(_errors(tried)).all() else tried


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


def try_recipe(bank: Bank, recipe: Recipe, seed: int) -> PastEstimates:
    """Cross-validate estimates from items chosen so, by what 'auto' takes; found once for each way of choosing.

    Where the items are drawn at random the errors depend on the seed; else each fold chooses its own items, the same
    for every seed.
    """

    def measure() -> PastEstimates:
        chosen = select_by_recipe(bank, recipe, seed)
        return try_methods(Asked.of_past(bank, chosen), Stacked().members).by(Stacked())

    return bank.cache.remember(("tried items", bank.targets.last, recipe.name), measure)


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
