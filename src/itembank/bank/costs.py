"""What running an item costs: tokens, money or time, as the responses recorded it."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.checks import check_not_negative
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray, mean_where_known
from itembank.responses.responses import ResponseMatrix

TOKENS = "tokens"
OUTPUT_TOKENS, INPUT_TOKENS = "output_tokens", "input_tokens"


@dataclass(frozen=True, slots=True)
class CostUnit:
    """How the cost of a response is counted.

    Attributes
    ----------
    name : str
        'tokens': output tokens plus `input_weight` times input tokens, of which either may not have been recorded;
        or the name of any recorded cost ('cost_usd', 'seconds', 'output_tokens', ...).
    input_weight : float
        What an input token counts beside an output token; half in WILD (6.3), since reading is cheaper than writing.
    """

    name: str = TOKENS
    input_weight: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise ParameterError(f"a cost unit must have a name, got {self.name!r}.")
        check_not_negative("input_weight", self.input_weight)


def as_cost_unit(unit: CostUnit | str) -> CostUnit:
    """Return the unit itself, or the one of this name."""
    return unit if isinstance(unit, CostUnit) else CostUnit(unit)


def known_units(responses: ResponseMatrix) -> tuple[str, ...]:
    """Names of the units in which the responses' costs can be counted."""
    recorded = tuple(responses.costs)
    has_tokens = TOKENS not in recorded and (OUTPUT_TOKENS in recorded or INPUT_TOKENS in recorded)
    return (TOKENS, *recorded) if has_tokens else recorded


def response_costs(responses: ResponseMatrix, unit: CostUnit | str) -> FloatArray:
    """Cost of each response, (n_models, n_items); NaN where unknown."""
    unit, costs = as_cost_unit(unit), responses.costs
    if unit.name in costs:
        return costs[unit.name]
    known = known_units(responses)
    if unit.name not in known:
        among = f"must be one of {shown(known, limit=len(known))}" if known else "must be recorded, and no cost is"
        raise DataError(
            f"the cost unit {among}, got {unit.name!r}.{did_you_mean(unit.name, known)} Read the responses with a "
            f"column of costs ({OUTPUT_TOKENS}, {INPUT_TOKENS}, cost_usd, seconds, ...), or choose without costs."
        )
    if INPUT_TOKENS not in costs:
        return costs[OUTPUT_TOKENS]
    tokens_read: FloatArray = unit.input_weight * costs[INPUT_TOKENS]
    return costs[OUTPUT_TOKENS] + tokens_read if OUTPUT_TOKENS in costs else tokens_read


def costs_of_items(responses: ResponseMatrix) -> dict[str, FloatArray]:
    """Return the expected cost of each item by unit, each (n_items,); where it is not known, the mean of the others.

    Units in which no cost is known are left out.
    """
    costs = {unit: cost for unit, cost in responses.expected_costs().items() if not np.isnan(cost).all()}
    return {unit: np.where(np.isnan(cost), np.nanmean(cost), cost) for unit, cost in costs.items()}


def expected_cost(
    source: Bank | ResponseMatrix, unit: CostUnit | str = TOKENS, *, needed: BoolArray | None = None
) -> FloatArray:
    """Mean cost of items that information is to be divided by, or whose cost a budget must bear, (n_items,).

    Raises `DataError` for costs of items that are needed (all by default) which are unknown, negative, infinite or
    zero: information could not be divided by them. The others' may be anything, NaN included.
    """
    responses = source.responses if isinstance(source, Bank) else source
    unit = as_cost_unit(unit)
    costs = response_costs(responses, unit)
    expected = mean_where_known(costs)
    wanted = np.ones(responses.n_items, dtype=bool) if needed is None else needed
    with np.errstate(invalid="ignore"):
        is_wrong = ((costs < 0.0) | np.isinf(costs)).any(axis=0)
    problems = []
    for text, mask in (
        ("unknown for every model", np.isnan(expected)),
        ("negative or infinite for a model", is_wrong),
        ("zero", (expected == 0.0) & ~is_wrong),
    ):
        bad = [responses.item_ids[index] for index in np.flatnonzero(mask & wanted)]
        if bad:
            problems.append(f"{text} for {len(bad)} of {wanted.sum()}: {shown(bad)}")
    if problems:
        raise DataError(
            f"the expected cost of every item to choose from must be a number above zero in {unit.name!r}, and is "
            + "; ".join(problems)
            + ". Record or correct these costs, exclude the items, or choose in another unit or without costs."
        )
    return expected
