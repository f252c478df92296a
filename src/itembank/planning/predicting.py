"""Scenarios that are never asked, and how well their scores are predicted from the items of others."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError, did_you_mean, remedy, shown
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimator_specs import IN_STAGES, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import too_few, try_methods, try_stages
from itembank.numerics.arrays import mean_where_known
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, silent
from itembank.selection.recipes import read_recipe, stages_of

LEVEL = 0.95


def items_never_asked(bank: Bank, predicted: Collection[str], included: Collection[str] = ()) -> tuple[str, ...]:
    """Ids of all items of the scenarios that are to be predicted; refuses what cannot be."""
    scenarios, names = bank.targets.scenarios, list(dict.fromkeys(predicted))
    unknown = [name for name in names if name not in scenarios]
    if unknown:
        raise ParameterError(
            f"what is predicted must be scenarios of the bank, {shown(scenarios)}, got {shown(unknown)}."
            f"{did_you_mean(unknown, scenarios)}"
        )
    if len(names) == len(scenarios):
        advice = ""
        if len(scenarios) == 1:
            how = remedy("ReadingSpec(columns={'scenario': 'COLUMN'})", "itembank import --column scenario=COLUMN")
            advice = f" If the results have a column that divides the items, read it as their scenario: {how}."
        raise ParameterError(
            f"a scenario is predicted from the items of others, and the bank has {len(scenarios)}: got {shown(names)}. "
            f"Leave one at least to be asked.{advice}"
        )
    index = np.array([scenarios.index(name) for name in names])
    items = bank.responses.items["item_id"].filter(np.isin(bank.targets.scenario_index, index)).to_list()
    both = sorted(set(items).intersection(included))
    if both:
        raise ParameterError(
            f"items that must be included are asked, and those of {shown(names)} never are: got {shown(both)}. Include "
            "others, or predict another scenario."
        )
    return tuple(items)


def errors_of_mean(bank: Bank) -> PastEstimates:
    """Estimate the scores of past models, as if they were new, by the mean of the others; what answers must beat."""
    known = bank.known_scores
    value, size = np.full(known.value.shape, np.nan), np.ones(known.value.shape)
    for fold in folds(bank):
        value[fold.held_out] = mean_where_known(known.value[fold.seen])
    return PastEstimates(known.value, value, size, size, known.variance)


def said_of(bank: Bank, found: PastEstimates, predicted: Collection[str]) -> tuple[list[dict[str, Any]], str]:
    """Say how well scenarios are predicted, beside the past models' mean alone: records, and the same in words."""
    by_mean, records, words, idle = errors_of_mean(bank), [], [], []
    for name in predicted:
        column = bank.targets.scenarios.index(name)
        both = [np.abs(one.error[:, column]) for one in (by_mean, found)]
        mean, error = (mean_where_known(one).item() for one in both)
        of_target = found.on(column)
        known = of_target.take(~np.isnan(of_target.error[:, 0]))
        width = np.nan  # half of the length of a typical interval, as far as it is from 0 to 1
        if known.error.size:
            half = known.half_widths(known.scale, level=LEVEL)
            ends = (np.clip(known.value + side * half, 0.0, 1.0) for side in (1.0, -1.0))
            width = float(np.median(next(ends) - next(ends)) / 2.0)
        numbers = {"error": error, "error_of_mean": mean, "half_width": width}
        records.append({"target": name, **{key: None if np.isnan(one) else one for key, one in numbers.items()}})
        words.append(
            f"{name!r} is never asked: cross-validated mean error {100.0 * error:.1f} points, by the past models' mean "
            f"alone {100.0 * mean:.1f}; {100.0 * LEVEL:g} % interval about ±{100.0 * width:.1f}."
        )
        idle += [name] if clearly_best(both) == 0 else []
    if idle:
        words.append(f"For {shown(idle)} the answers are not clearly better than that mean: ask some of its items.")
    return records, " ".join(words)


def with_prediction(
    bank: Bank, selection: Selection, predicted: Collection[str], progress: ProgressCallback = silent
) -> Selection:
    """Say how well past models' scores on scenarios that are never asked are predicted from the chosen items."""
    recipe, (sizes, _) = read_recipe(selection), stages_of(selection)
    said = selection.explanation or f"{selection.method}."
    if recipe is None or not folds(bank, progress=progress):
        why = too_few(bank) if bank.published is None else "the bank was published without past models' responses"
        text = f"{shown(list(predicted))}: never asked, and how well it is predicted is not known, since {why}."
        unknown = dict.fromkeys(("error", "error_of_mean", "half_width"))
        records = [{"target": name, **unknown} for name in predicted]
    else:
        if sizes:
            found = try_stages(bank, replace(recipe, stages=sizes), IN_STAGES.members, progress=progress).by(IN_STAGES)
        else:
            found = try_methods(Asked.of_past(bank, selection), Stacked().members).by(Stacked())
        records, text = said_of(bank, found, predicted)
    return replace(selection, explanation=f"{said} {text}", never_asked=tuple(records))
