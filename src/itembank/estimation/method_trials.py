"""Try methods on past models as they will be used on new ones, in stages too, and take the one that `auto` takes.

Items are chosen, fitted and weighted without the models that they are tried on. In multistage testing a routing stage
asks every model the same items; each later stage asks what leaves the least uncertainty about this one model.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import KNOWN_PARAMETERS, Bank
from itembank.errors import DataError, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimator_specs import GPIRT, IN_STAGES, METHODS, PointSpec, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, Fold, folds, run_trial
from itembank.estimation.headlines import HeadlineTrial, learnt_by
from itembank.estimation.observations import Observations, scores_of_past
from itembank.estimation.point_methods import Known, learnt_score
from itembank.estimation.response_summary import score_basis
from itembank.estimation.trials import Trial, kept_trial, plain, try_out
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import first_of_each
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import order_among
from itembank.responses.targets import ScoreTargets
from itembank.selection.later_stages import LocalDesign
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import VOptimal
from itembank.tables import plural, points_of

SEED = 30
"""Of a routing stage that chance chooses, in trials."""


def local_design(bank: Bank, spec: VOptimal, excluded: Collection[str]) -> LocalDesign:
    """Return what later stages are chosen by; it is made once for a bank in memory."""
    key = ("local design", repr(spec), tuple(sorted(excluded)))
    return bank.cache.remember(key, lambda: LocalDesign.of_bank(bank, spec, excluded))


def next_module(
    bank: Bank,
    design: LocalDesign,
    answers: Observations,  # Of the one model
    n_items: int,  # How many to choose; fewer come where no more can
    *,
    # (n_asked,): Positions of the items that it was asked: none of them is asked again, answered or not
    asked: IntArray,
) -> IntArray:
    """Positions of the items that one model is asked next, in the order of choice, (n_items,)."""
    basis, positions = score_basis(bank), answers.positions
    ability = map_abilities(
        basis.parameters.take(positions),
        basis.answers(answers.responses, positions),
        basis.prior,
        n_trials=answers.n_trials,
    )
    answered = positions[~np.isnan(answers.responses[0])]
    return design.next_items(ability.theta[0], ability.covariance[0], answered, n_items, asked=asked)


def answered_in_stages(
    bank: Bank,  # The whole bank, which holds the answers
    fold: Fold,
    recipe: Recipe,  # With stages
) -> Iterator[Observations]:
    """Yield what each model that a fold leaves out answers in all stages of a recipe, by the fold's bank alone."""
    routing = fold.bank.cache.remember(
        ("routing stage", recipe.name), lambda: select_by_recipe(fold.bank, recipe, SEED)
    )
    first = np.sort(bank.responses.item_indices(routing.item_ids))
    design = local_design(fold.bank, recipe.later_spec, recipe.excluded)
    for row in fold.held_out.tolist():
        asked = first
        for size in recipe.stages[1:]:
            answers = _recorded(bank, row, asked, design)
            module = next_module(fold.bank, design, answers, size, asked=asked)
            asked = np.sort(np.concatenate([asked, module]))
        yield _recorded(bank, row, asked, design)


def _recorded(bank: Bank, row: int, asked: IntArray, design: LocalDesign) -> Observations:
    """Return what the past model at this row answered to some items."""
    nobody = np.zeros((0, asked.size))
    items = Observations.of_items(nobody, asked, design.weights_of(asked), is_random=False)
    return items.answered_by_calibration_models(bank, np.array([row]))


def try_methods(
    asked: Asked,  # The items that were answered; the responses themselves are not used
    specs: Sequence[PointSpec],
    *,
    # The fits without some models take time once for a bank, the selections once for a selection
    progress: ProgressCallback = silent,
) -> Trial:
    """Estimate each past model's scores by several methods, as if it were new.

    Items that were chosen by looking at the past models tell more of these than of others: on those items
    even left-out models seem better predicted than new ones will be (by a half, where few models and V-optimal
    items met). So where the selection says how it was made, each fold chooses its own items in the same way from the
    bank that has not seen its models. Where some chosen items were not answered, each fold leaves out as many, of
    the same scenarios, by chance. Items that chance chose, or that nothing is known of, are taken as they are.
    """
    folds(asked.bank, progress=progress)
    recipe = asked.recipe
    if recipe is not None and recipe.stages:
        answered = _share_answered(asked.bank, asked.observations)
        return try_stages(asked.bank, recipe, specs, answered=answered, progress=progress)

    items, bank = asked.observations, asked.bank
    attempts = items.fewer_attempts(bank)  # new models' answers are as uncertain as they are

    def answered_by(fold: Fold) -> Observations:
        return items_of_fold(asked, fold).answered_by_calibration_models(bank, fold.held_out, attempts=attempts)

    def ask(fold: Fold, _: ProgressCallback) -> Iterator[tuple[IntArray, Observations]]:
        yield np.arange(fold.held_out.size), answered_by(fold)

    arrays = (items.positions, items.weights, items.selected, items.selected_weights)
    about = (items.is_random, None if recipe is None else recipe.name, attempts, *arrays)
    trial = replace(try_out(bank, specs, ask, *about), truth=scores_of_past(bank, attempts))
    headline, learner = bank.headline, learnt_by(bank.headline, specs)
    if headline is None or learner is None:
        return trial
    past = headline.past

    def learn_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        others = past[bank.responses.model_indices(fold.bank.responses.model_ids)]  # copies are left out, too
        return learnt_score(Known.of(Asked(fold.bank, answered_by(fold))), learner, others)[:, None]

    name = cache_name("learnt-out-of-fold", plain([learner]), *about, past)
    learnt = run_trial(bank, name, learn_fold, (bank.n_models, 1))[:, 0]
    return replace(trial, headline=HeadlineTrial(headline, learnt, len(specs) == 1))


def try_stages(
    bank: Bank,
    recipe: Recipe,  # With stages
    specs: Sequence[PointSpec],
    *,
    # (n_scenarios,): Fraction of the items of each scenario that new models answered; by default all of them
    answered: FloatArray | None = None,
    progress: ProgressCallback = silent,
) -> Trial:
    """Estimate each past model's scores by several methods after all stages of a recipe, as if it were new.

    The bank that has not seen a model chooses the routing stage and, from the model's answers, its later stages.
    """

    def ask(fold: Fold, progress: ProgressCallback) -> list[tuple[IntArray, Observations]]:
        found = []
        try:
            for place, one in enumerate(answered_in_stages(bank, fold, recipe)):
                progress("cross-validating past models", place / fold.held_out.size)
                columns = np.arange(one.positions.size) if answered is None else _as_many(bank, one.positions, answered)
                found.append((np.array([place]), one.take(models=np.arange(1), columns=columns)))
        except (ParameterError, DataError):  # too few items tell these models apart, or one is of another bank
            return []
        return found

    about = (recipe.name, *([] if answered is None else [answered]))
    return try_out(bank, specs, ask, "stages", *about, progress=progress)


def items_of_fold(asked: Asked, fold: Fold) -> Observations:
    """Choose a fold's own items, and leave out as many of each scenario as new models left unanswered.

    Without a recipe they are those that new models answered.
    """
    bank, observations, recipe = asked.bank, asked.observations, asked.recipe
    if recipe is None:
        return observations

    def sample_of_fold() -> Observations | None:
        try:
            return Asked.of_past(fold.bank, select_by_recipe(fold.bank, recipe, SEED)).observations
        except (ParameterError, DataError):  # too few items tell these models apart, or one is of another bank
            return None

    sample = fold.bank.cache.remember(("sample", recipe.name), sample_of_fold)
    answered = _share_answered(bank, observations)
    if sample is None or answered is None:
        return observations if sample is None else sample
    columns = _as_many(bank, sample.positions, answered)
    return sample.take(models=np.arange(sample.responses.shape[0]), columns=columns)


def _share_answered(bank: Bank, observations: Observations) -> FloatArray | None:
    """Fraction of the items of each scenario that were answered, (n_scenarios,); None where all were."""
    if observations.positions.size == observations.selected.size:
        return None
    scenario_index, n_scenarios = bank.targets.scenario_index, bank.targets.n_scenarios
    answered = np.bincount(scenario_index[observations.positions], minlength=n_scenarios)
    selected = np.bincount(scenario_index[observations.selected], minlength=n_scenarios)
    # a scenario of which this model was asked nothing, others may be asked something
    everywhere = np.full(n_scenarios, answered.sum() / selected.sum())
    result: FloatArray = np.divide(answered, selected, out=everywhere, where=selected > 0)
    return result


def _as_many(bank: Bank, positions: IntArray, answered: FloatArray) -> IntArray:
    """Columns to keep so that this fraction of each scenario (n_scenarios,) is left; at least one."""
    scenario = bank.targets.scenario_index[positions]
    counts = np.rint(answered * np.bincount(scenario, minlength=answered.size)).astype(np.int64)
    by_content = order_among(positions, bank.content_order.items)
    order = by_content[np.random.default_rng(SEED).permutation(positions.size)]
    columns = np.sort(first_of_each(order, scenario, counts))
    return columns if columns.size else np.arange(1)


FALLBACK = GPIRT()


class Chosen(NamedTuple):
    """A method and why it was taken."""

    spec: PointSpec | Stacked
    explanation: str
    error: float = np.nan  # Cross-validated mean absolute error of the last score, from 0 to 1; NaN where not known


def choose_method(asked: Asked, progress: ProgressCallback = silent) -> Chosen:
    """Take 'stacked', weighted by cross-validated errors, or gp-IRT where there are too few models.

    After several stages it is the stack without members that take means of the answers (`IN_STAGES`).

    The single best method is never taken: with few models it is the best by luck, and its errors are then too small for
    new models (with 27 models 95 % intervals of differences covered 0.92).
    """
    bank, kept = asked.bank, asked.kept_of(Stacked())
    if kept is not None:
        return Chosen(Stacked(), kept.explanation, kept.measured.get("error", np.nan))
    if bank.published is not None:
        return Chosen(
            FALLBACK, "gp-irt, since the bank was published without past models' responses to compare methods on."
        )
    if not folds(bank, progress=progress):
        return Chosen(
            FALLBACK,
            f"gp-irt, since {too_few(bank)}. Intervals from the item model alone are too narrow if it is wrong. For "
            "items drawn at random, the default method and interval do not rest on it.",
        )
    stacked = IN_STAGES if asked.recipe is not None and asked.recipe.stages else Stacked()
    trials = try_methods(asked, stacked.members, progress=progress)
    errors = np.stack([trials.single(number).error for number in range(len(stacked.members))])
    together = np.abs(trials.by(stacked).error[:, -1])
    return Chosen(stacked, _why(stacked, bank.targets, np.abs(errors[:, :, -1]), together), _mean(together))


def past_of(asked: Asked, spec: PointSpec | Stacked, *, progress: ProgressCallback = silent) -> PastEstimates | None:
    """Return how a method did on past models that were asked the same; None where that cannot be known."""
    kept = asked.kept_of(spec)
    if kept is not None:
        return kept_trial(kept)
    if not folds(asked.bank, progress=progress):
        return None
    return try_methods(asked, spec.members, progress=progress).by(spec)


def too_few(bank: Bank) -> str:
    """Say why past models cannot be cross-validated."""
    if bank.calibration.method == KNOWN_PARAMETERS:
        return "the bank was made of known item parameters and has no past models"
    known, why = bank.n_compared_models, "to compare methods by cross-validation"
    if known >= MINIMUM_FOR_FOLDS:
        return f"{known} past models are too unlike in what they answered {why}"
    if known == bank.n_calibration_models:
        return f"{plural(known, 'past model', 'are')} too few {why}"
    return (
        f"{known} of {bank.n_models} past models answered enough items for their full scores to be known, too few {why}"
    )


def _why(stacked: Stacked, targets: ScoreTargets, errors: FloatArray, together: FloatArray) -> str:
    means = np.array([_mean(member) for member in errors])
    order = np.argsort(means)[: int(np.sum(~np.isnan(means)))]  # those with nothing to go by are left out
    if order.size == 0:
        return "stacked: no past model has both a score and a cross-validated estimate to compare methods by."
    singles = ", ".join(f"{METHODS.label(stacked.members[index])} {points_of(means[index])}" for index in order)
    return (
        f"stacked. Cross-validated mean errors of {targets.last_in_words} of {int(np.sum(~np.isnan(together)))} past "
        f"models, in points: stacked {points_of(_mean(together))}, {singles}."
    )


def _mean(errors: FloatArray) -> float:
    known = errors[~np.isnan(errors)]
    return float(known.mean()) if known.size else np.nan
