"""Score targets: the weighted means over items that make a benchmark's scores."""

from dataclasses import dataclass
from typing import Self, get_args

import numpy as np
import polars as pl

from itembank.checks import check_one_of
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import id_order
from itembank.responses.score_names import OVERALL, RESERVED_NAMES, Across, Within
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True, repr=False)
class ScoreTarget(Compact):
    """A named score: ``sum_i weights_i Y_i`` over all items of the benchmark.

    Attributes
    ----------
    name : str
    weights : (n_items,)
        Non-negative, summing to one.
    """

    name: str
    weights: FloatArray


@dataclass(frozen=True, slots=True, repr=False)
class ScoreTargets(Compact):
    """The score of each scenario and how they make the overall score.

    Attributes
    ----------
    scenarios : tuple of n_scenarios names
    scenario_index : (n_items,)
        Which scenario each item belongs to.
    weights : (n_items,)
        Weight of each item within its scenario; they sum to one in each.
    scenario_weights : (n_scenarios,)
        Weight of each scenario's score in the overall score; they sum to one.
    within, across : str
        How the weights were made (see `ScoreTargets.create`).
    last : str
        Name of the last target: 'overall', or that of the headline score in its place (`Bank.headline`).
    rest_sizes : (n_scenarios,) or None
        Items of each scenario that count in its score and have no place in the arrays over items (`Bank.rest`).
    """

    scenarios: tuple[str, ...]
    scenario_index: IntArray
    weights: FloatArray
    scenario_weights: FloatArray
    within: Within = "micro"
    across: Across = "scenarios"
    last: str = OVERALL
    rest_sizes: IntArray | None = None

    @classmethod
    def create(cls, items: pl.DataFrame, *, within: Within = "micro", across: Across = "scenarios") -> Self:
        """Make the targets of an item table.

        Parameters
        ----------
        items : table with `item_id`, `scenario`, `subscenario`
        within : {'micro', 'macro', 'custom'}
            Items of a scenario weigh the same; or its subscenarios do (tinyBenchmarks App. A: ``1 / (K N_k)``);
            or the column `weight` of the item table says.
        across : {'scenarios', 'items'}
            The overall score is the mean of the scenario scores, or the mean over all items
            (with `within='custom'`, their weighted mean).

        Raises
        ------
        ParameterError
            For another word.
        DataError
            When a scenario has a reserved name, or the weights are absent, negative or all zero in a scenario.
        """
        for word, value, allowed in (("within", within, get_args(Within)), ("across", across, get_args(Across))):
            check_one_of(word, value, allowed)
        scenarios = tuple(items["scenario"].unique(maintain_order=True).to_list())
        reserved = [name for name in scenarios if name in RESERVED_NAMES]
        if reserved:
            raise DataError(f"a scenario must not be called {shown(reserved)}: that is the name of a score. Rename it.")
        position = {name: j for j, name in enumerate(scenarios)}
        index = np.array([position[name] for name in items["scenario"].to_list()], dtype=np.int64)
        raw = _raw_weights(items, index, within)
        total = np.bincount(index, weights=raw, minlength=len(scenarios))
        empty = [scenarios[j] for j in np.flatnonzero(total <= 0.0)]
        if empty:
            raise DataError(f"item weights must sum to more than zero in every scenario; not in {shown(empty)}.")
        mass = total if within == "custom" else np.bincount(index, minlength=len(scenarios)).astype(np.float64)
        scenario_weights = mass / mass.sum() if across == "items" else np.full(len(scenarios), 1.0 / len(scenarios))
        return cls(scenarios, index, raw / total[index], scenario_weights, within, across)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.weights.shape[0])

    @property
    def n_scenarios(self) -> int:
        """Number of scenarios."""
        return len(self.scenarios)

    @property
    def by_name(self) -> IntArray:
        """Scenarios from first to last by name, (n_scenarios,): chance and ties must not go by the order of a file."""
        return id_order(self.scenarios)

    @property
    def place_by_name(self) -> IntArray:
        """Place of each item's scenario in that order, (n_items,)."""
        result: IntArray = np.argsort(self.by_name)[self.scenario_index]
        return result

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets: every scenario, then `overall`, or the headline score in its place."""
        return (*self.scenarios, self.last)

    @property
    def last_in_words(self) -> str:
        """What the last target is called in a sentence."""
        return "the overall score" if self.last == OVERALL else f"{self.last!r}"

    @property
    def scenario_sizes(self) -> IntArray:
        """Number of items that count in each scenario's score, (n_scenarios,)."""
        sizes = np.bincount(self.scenario_index, minlength=self.n_scenarios)
        return sizes if self.rest_sizes is None else sizes + self.rest_sizes

    @property
    def overall_weights(self) -> FloatArray:
        """Weight of each item in the overall score, (n_items,), summing to one."""
        return self.weights * self.scenario_weights[self.scenario_index]

    @property
    def overall_in_words(self) -> str:
        """What the overall score is a mean of; nothing if the mean over items is that over scenarios.

        Nothing, too, where another score replaces it.
        """
        are_alike = np.allclose(self.scenario_weights, self.scenario_sizes / self.scenario_sizes.sum())
        if self.last != OVERALL or (are_alike and self.across == "scenarios"):
            return ""
        if self.across == "items":
            kinds = {
                "micro": "the mean over all items (micro)",
                "macro": "the mean of scenarios by their numbers of items, and in each of its subscenarios (macro)",
                "custom": "the mean over all items by their weights (custom)",
            }
            return kinds[self.within]
        return f"the mean of {self.n_scenarios} scenario scores, which count alike whatever their size (macro)"

    @property
    def overall_is(self) -> str:
        """Which mean the overall score is: 'micro' of all items, 'macro' of scenarios, 'custom', or '' of another."""
        if self.last != OVERALL:
            return ""
        is_micro = self.within == "micro" and (self.across == "items" or self.n_scenarios == 1)
        return "custom" if self.within == "custom" else "micro" if is_micro else "macro"

    def target(self, name: str) -> ScoreTarget:
        """Return the target of this name, as weights over all items; those of the overall score for the last."""
        if name in (self.last, OVERALL):
            return ScoreTarget(name, self.overall_weights)
        if name not in self.scenarios:
            raise ParameterError(
                f"target must be one of {shown(self.names)}, got {name!r}.{did_you_mean(name, self.names)}"
            )
        inside = self.scenario_index == self.scenarios.index(name)
        return ScoreTarget(name, np.where(inside, self.weights, 0.0))

    def scenario_means(self, values: FloatArray, *, missing: bool = False) -> FloatArray:
        """Weighted mean of values (n_models, n_items) within each scenario, (n_models, n_scenarios).

        With `missing`, NaN cells are left out and the remaining weights rescaled (NaN where nothing remains);
        without, a NaN cell makes its scenario NaN.
        """
        onto = np.zeros((self.n_items, self.n_scenarios))
        onto[np.arange(self.n_items), self.scenario_index] = self.weights
        present = ~np.isnan(values)
        # a copy, which a large complete matrix is spared; of one with gaps in memory sums would round otherwise
        filled = values if present.all() and values.flags.forc else np.where(present, values, 0.0)
        if not missing:
            means: FloatArray = filled @ onto
            rows, items = np.nonzero(~present)
            means[rows, self.scenario_index[items]] = np.nan
            return means
        with np.errstate(invalid="ignore", divide="ignore"):
            rescaled: FloatArray = (filled @ onto) / (present @ onto)
        return rescaled

    def with_overall(self, scenario_scores: FloatArray) -> FloatArray:
        """Append the overall score to scenario scores: (n_models, n_scenarios) to (n_models, n_scenarios + 1)."""
        overall = scenario_scores @ self.scenario_weights
        return np.column_stack([scenario_scores, overall])


def mean_win_rate(scenario_scores: FloatArray, reference_scores: FloatArray) -> FloatArray:
    """Mean over scenarios of the share of reference models a model beats, ties counting half (HELM), (n_models,).

    Parameters
    ----------
    scenario_scores : (n_models, n_scenarios)
    reference_scores : (n_reference, n_scenarios)
        Scores of the models to be beaten; a model compared with itself counts as a tie, so leave it out.
    """
    # two sums of the same responses may differ by rounding, which must not break a tie
    scenario_scores, reference_scores = np.round(scenario_scores, 12), np.round(reference_scores, 12)
    wins = np.zeros(scenario_scores.shape)
    for j in range(scenario_scores.shape[1]):  # a loop over scenarios keeps memory at (n_models, n_reference)
        reference = np.sort(reference_scores[:, j])
        below = np.searchsorted(reference, scenario_scores[:, j], side="left")
        up_to = np.searchsorted(reference, scenario_scores[:, j], side="right")
        wins[:, j] = 0.5 * (below + up_to) / reference.shape[0]
    result: FloatArray = wins.mean(axis=1)
    return result


def _raw_weights(items: pl.DataFrame, scenario_index: IntArray, within: Within) -> FloatArray:
    """Weights before they are scaled to sum to one in each scenario, (n_items,)."""
    if within == "custom":
        if "weight" not in items.columns:
            raise DataError(
                "custom score weights need a column 'weight' in the item table; give one when "
                "responses are read (items=, itembank import --items)."
            )
        weights = items["weight"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        bad = ~(np.isfinite(weights) & (weights >= 0.0))
        if bad.any():
            names = items["item_id"].filter(pl.Series(bad)).to_list()
            raise DataError(f"weight must be a finite number >= 0, got something else for {shown(names)}.")
        return weights
    if within == "micro":
        return np.ones(items.height)
    groups = items.select(
        group=pl.struct(pl.Series("scenario", scenario_index), pl.col("subscenario").fill_null(""))
        .rank("dense")
        .cast(pl.Int64)
        - 1
    )["group"].to_numpy()
    result: FloatArray = 1.0 / np.bincount(groups)[groups]
    return result
