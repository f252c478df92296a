"""What past models cannot show: new models may differ from all of them, but not without pattern.

A factor model of past responses gives almost no variance to items that hardly separated past models, and then takes
whatever a new kind of model does on them for noise of other items. A model stronger than any before solves items
that nobody solved; a model tuned for a domain moves all of its items. So the items of a group, and those of like
difficulty within it most of all, are allowed to move together by some points more than the factors explain.
"""

from dataclasses import dataclass

import numpy as np

from itembank.irt.linear_gaussian import (
    Columns,
    FactorModel,
    additively_filled,
    expected_factors,
    fit_factor_model,
    self_products,
)
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import random_folds, splits_of
from itembank.numerics.ties import average_ranks, rounded


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Standard deviations of the shifts of new models, on the scale of responses."""

    level: float  # Of all items of a scenario, and of its items of like difficulty
    subgroup: float = 0.0  # Of all items of a subscenario


def with_discrepancy(
    model: FactorModel,
    groups: IntArray,  # (n_items,): Group of each item, numbered from 0: scenarios, say
    discrepancy: Discrepancy,  # Nothing is added for a scale of 0
    *,
    subgroups: IntArray | None = None,  # (n_items,): Subgroup of each item, numbered from 0 through all groups
) -> FactorModel:
    """Add factors that raise or lower all items of a group, its items of like difficulty, and subgroups together.

    The response of item i gets ``level (u_g + sum_b B_ib u_gb) + subgroup v_h`` with all u and v normal with variance
    one and independent, where g and h are its group and subgroup and B are bells over the rank of the item's mean
    response in its group, summing to one for each item.
    """
    shifts = shift_columns(model.mean, groups) if discrepancy.level else np.zeros((model.n_items, 0))
    return with_columns(model, shifts, discrepancy, None if subgroups is None else indicators(subgroups))


def with_columns(
    model: FactorModel, shifts: FloatArray, discrepancy: Discrepancy, subgroups: FloatArray | None
) -> FactorModel:
    """Add the factors of `with_discrepancy`, given the columns (n_items, n) of `shift_columns` and of `indicators`."""
    added = [discrepancy.level * shifts] if discrepancy.level else []
    if subgroups is not None and discrepancy.subgroup:
        added.append(discrepancy.subgroup * subgroups)
    return FactorModel(model.mean, np.column_stack([model.loadings, *added]), model.noise) if added else model


def measure_discrepancy(
    responses: FloatArray | Columns,  # (n_models, n_items), NaN where missing: filled by item mean plus model effect
    groups: IntArray,  # (n_items,)
    *,
    subgroups: IntArray | None = None,  # (n_items,)
) -> Discrepancy:
    """Measure the shifts on models left out: the part of their group means that factors of the others do not explain.

    A left-out model's residuals ``e = y - m - L E[f | y]`` have group means of variance ``scale^2`` plus that of the
    items' own noise, ``sum_i w_i^2 s_i``, which is subtracted; the remainder is averaged over models and groups.
    With many models the factors explain nearly all, with few little.

    Returns 0 where models are too few for cross-validation.
    """
    columns = responses if isinstance(responses, Columns) else Columns.of(responses)
    # Three to ten measure shifts that differ by 10 %: fits that miss more models explain a little less of them.
    n_folds = 5
    if columns.n_models < 2 * n_folds:
        return Discrepancy(0.0)
    filled = additively_filled(columns)
    mean, products = np.empty(columns.n_items), np.zeros((columns.n_models,) * 2)
    for place, part in filled.parts():
        mean[place] = part.mean(axis=0)
        products += self_products(part - mean[place], is_part=not filled.is_one_part)
    bin_sizes, of_bins = _large(np.column_stack([shifts[:, 1:] for shifts in _all_shifts(mean, groups)]))
    sizes, of_subgroups = _large(np.zeros((columns.n_items, 0)) if subgroups is None else indicators(subgroups))
    weights = np.column_stack([of_bins, of_subgroups])
    excess = np.empty((columns.n_models, weights.shape[1]))
    # Any will do: the same responses must give the same bank. Other seeds change the shifts by 3 %.
    seed = 10
    for split in splits_of(random_folds(columns.n_models, n_folds, np.random.default_rng(seed))):
        of_train = products[np.ix_(split.train, split.train)]
        model, new = fit_factor_model(filled.of_models(split.train), products=of_train), filled.of_models(split.test)
        # Squared group means have the expectation scale^2 plus the noise of a weighted mean.
        factors = expected_factors(model, new)
        # less what mean and factors expect, of the sums rather than of every response
        result = -(model.mean @ weights) - factors @ (model.loadings.T @ weights)
        for place, part in new.parts():
            result += part @ weights[place]
        excess[split.test] = result**2 - model.noise @ weights**2
    by_bin, by_subgroup = np.split(excess, [bin_sizes.size], axis=1)
    return Discrepancy(_scale(by_bin, bin_sizes), _scale(by_subgroup, sizes))


def _large(groups: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out small groups of the columns (n_items, n_groups): sizes, and the weights of means over the others."""
    size = groups.sum(axis=0)
    is_large = size >= 5  # a smaller one says too little of how groups move
    return size[is_large], groups[:, is_large] / size[is_large]


def _scale(excess: FloatArray, sizes: FloatArray) -> float:
    """Return the standard deviation of means over groups from their squares less noise (n_models, n_groups)."""
    if not sizes.size:
        return 0.0
    # small groups are measured worst and move scores least
    return float(np.sqrt(max(np.average(excess.mean(axis=0), weights=sizes), 0.0)))


def shift_columns(mean: FloatArray, groups: IntArray) -> FloatArray:
    """Level and bells of all groups, by the items' mean responses (n_items,), (n_items, n_shifts)."""
    return np.column_stack(_all_shifts(mean, groups))


def _all_shifts(mean: FloatArray, groups: IntArray) -> list[FloatArray]:
    return [_shifts(mean, np.flatnonzero(groups == group)) for group in range(int(groups.max(initial=-1)) + 1)]


def _shifts(mean: FloatArray, items: IntArray) -> FloatArray:
    """Level and bells of one group, zero outside it, (n_items, 1 + number of bells)."""
    # Kinds of difficulty in a group: one for each ten items, up to five. Of simulated data, up to 3 or up to 10 measure
    # the same shifts within 5 %.
    n_bells = int(np.clip(items.size // 10, 1, 5))
    columns = np.zeros((mean.shape[0], 1 + (n_bells if n_bells > 1 else 0)))
    columns[items, 0] = 1.0
    # Standard deviation of a bin's bell, in bins. At 0.7 an item's variance is the same within 12 % wherever between
    # the outer bells it stands (70 % at 0.4, 33 % at 0.5), and bins still move apart: neighbours correlate by 0.6, the
    # outermost not at all; at 1.5 those correlate by 0.2.
    width = 0.7
    if n_bells > 1:
        rank = (average_ranks(rounded(mean[items])) - 0.5) / items.size  # equal means have one rank
        centres = (np.arange(n_bells) + 0.5) / n_bells
        bells = np.exp(-0.5 * ((rank[:, None] - centres) * n_bells / width) ** 2)
        columns[items, 1:] = bells / bells.sum(axis=1, keepdims=True)
    return columns


def indicators(groups: IntArray) -> FloatArray:
    """One column of zeros and ones for each group, (n_items, n_groups)."""
    result: FloatArray = (groups[:, None] == np.arange(int(groups.max(initial=-1)) + 1)).astype(np.float64)
    return result
