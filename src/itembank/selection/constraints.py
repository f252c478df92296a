"""Constraints that the chosen items satisfy, whatever the criterion prefers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from itembank.checks import check_whole, is_whole
from itembank.errors import ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.responses.targets import ScoreTargets
from itembank.selection.greedy import Bounds


@dataclass(frozen=True, slots=True)
class Constraints:
    """Content constraints, exclusions and exposure control.

    Attributes
    ----------
    at_least : int or mapping of scenario to int
        Least number of items of every scenario, or of those named.
    at_most : int, mapping of scenario to int, or None
        Largest number; None for any.
    excluded : tuple of item ids
        Items that must not be asked.
    randomesque : int
        Draw each item from this many best, so that not every model is asked the same (Kingsbury and Zara 1989).
    """

    at_least: int | Mapping[str, int] = 0
    at_most: int | Mapping[str, int] | None = None
    excluded: tuple[str, ...] = ()
    randomesque: int = 1

    def __post_init__(self) -> None:
        """Check the choices."""
        _check_counts("at_least", self.at_least)
        if self.at_most is not None:
            _check_counts("at_most", self.at_most)
        check_whole("randomesque", self.randomesque, least=1)
        excluded: object = self.excluded
        if isinstance(excluded, str):
            raise ParameterError(f"excluded must be a tuple of item ids, got the text {excluded!r}.")
        object.__setattr__(self, "excluded", tuple(self.excluded))

    def bounds(self, targets: ScoreTargets, is_candidate: BoolArray, n_items: int | None) -> Bounds:
        """Turn the constraints into bounds for each scenario of a bank.

        Parameters
        ----------
        targets : ScoreTargets
        is_candidate : (n_items,)
            Items that may be chosen.
        n_items : int or None
            Items to be chosen in all; None where their number is not limited.

        Raises
        ------
        ParameterError
            For constraints that contradict each other, or a scenario that is not in the bank.
        """
        available = np.bincount(targets.scenario_index[is_candidate], minlength=targets.n_scenarios)
        at_least = _per_scenario("at_least", self.at_least, targets, np.zeros(targets.n_scenarios, dtype=np.int64))
        at_most = available
        if self.at_most is not None:
            at_most = _per_scenario("at_most", self.at_most, targets, available)
        _check_bounds(targets.scenarios, at_least, at_most, available, n_items)
        return Bounds(at_least, np.minimum(at_most, available))


def _check_bounds(
    scenarios: tuple[str, ...], at_least: IntArray, at_most: IntArray, available: IntArray, n_items: int | None
) -> None:
    """Raise one `ParameterError` that lists every contradiction."""
    problems = []
    for limit, text in ((at_most, "at_most"), (available, "the number of items to choose from")):
        bad = np.flatnonzero(at_least > limit)
        if bad.size:
            named = [f"{scenarios[j]} ({at_least[j]} > {limit[j]})" for j in bad]
            problems.append(f"at_least is above {text} in {shown(named)}.")
    if n_items is not None and at_least.sum() > n_items:
        problems.append(f"at_least asks for {at_least.sum()} items in all, and {n_items} are to be chosen.")
    if problems:
        raise ParameterError(
            "constraints must not contradict each other: " + " ".join(problems) + " Ask for less of each scenario, or "
            "for more items."
        )


def _per_scenario(name: str, given: int | Mapping[str, int], targets: ScoreTargets, otherwise: IntArray) -> IntArray:
    """One number for each scenario, (n_scenarios,)."""
    if not isinstance(given, Mapping):
        return np.full(targets.n_scenarios, given, dtype=np.int64)
    unknown = [scenario for scenario in given if scenario not in targets.scenarios]
    if unknown:
        raise ParameterError(
            f"{name} must name scenarios of the bank, among {shown(targets.scenarios)}, got {shown(unknown)}."
            f"{did_you_mean(unknown, targets.scenarios)}"
        )
    result = otherwise.copy()
    for scenario, number in given.items():
        result[targets.scenarios.index(scenario)] = number
    return result


def _check_counts(name: str, given: int | Mapping[str, int]) -> None:
    numbers = list(given.values()) if isinstance(given, Mapping) else [given]
    if not all(is_whole(number) and number >= 0 for number in numbers):
        raise ParameterError(f"{name} must be a whole number >= 0, or one for each scenario named, got {given!r}.")
