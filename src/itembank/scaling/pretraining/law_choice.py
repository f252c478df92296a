"""Choice of the law to show first: its forecasts of the sizes held out were closest."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.held_out_results import HeldOutForecasts

ENOUGH_SCENARIOS = 5
"""From here on the errors of a scenario count as one: recipes miss a skill together."""


def closest_law(names: Sequence[str], held_out: HeldOutForecasts | None) -> tuple[str, str]:
    """Choose among laws by their mean absolute error on the sizes held out.

    The first law stays unless another's error is smaller by more than the standard error of the difference. That is
    taken over the forecasts that both made, or over scenarios where there are five or more.

    Parameters
    ----------
    names : sequence of str
        The laws fitted, the preferred one first.
    held_out : HeldOutForecasts or None

    Returns
    -------
    name, reason
        The law, and how it compares with the next in words; empty where nothing was compared.
    """
    first, *others = names
    if held_out is None or not others:
        return first, ""
    rivals = {name: _pairs(held_out, first, name) for name in others}
    means = {name: pairs.mean(axis=0) for name, pairs in rivals.items() if pairs.size}  # (first, other)
    if not means:
        return first, ""
    gains = {name: float(base - other) for name, (base, other) in means.items()}
    noises = {name: _standard_error(rivals[name]) for name in means}
    clear = [name for name in means if gains[name] > noises[name]]
    closest = max(clear or means, key=lambda name: gains[name])
    base, other = means[closest]
    if clear:
        return (
            closest,
            f"{closest} was {_times(base, other)} than {first} on the held-out sizes ({_both(other, base)}).",
        )
    if other < base:
        return first, (
            f"{closest} was closer than {first} on the held-out sizes ({_both(other, base)}), but by no more than the "
            f"standard error of the difference ({noises[closest]:.4f}): {first} stays first."
        )
    return first, f"{first} was {_times(other, base)} than {closest} on the held-out sizes ({_both(base, other)})."


def closer_by_hand(name: str, held_out: HeldOutForecasts | None) -> str:
    """Say which forecast by hand was closer on the sizes held out than a law; empty where none was."""
    if held_out is None or held_out.by_hand is None:
        return ""
    both, hands = held_out.beside_by_hand, held_out.by_hand.table["law"].unique(maintain_order=True).to_list()
    found = {hand: _pairs(both, name, hand) for hand in hands}
    means = {hand: pairs.mean(axis=0) for hand, pairs in found.items() if pairs.size}
    closer = {hand: (own, by_hand) for hand, (own, by_hand) in means.items() if by_hand < own}
    if not closer:
        return ""
    closest = min(closer, key=lambda hand: closer[hand][1] / closer[hand][0])
    own, by_hand = closer[closest]
    times = _times(own, by_hand)
    return f"{closest}, drawn by hand, was {times} than {name} on the held-out sizes ({_both(by_hand, own)})."


def _pairs(held_out: HeldOutForecasts, first: str, other: str) -> FloatArray:
    """Absolute errors of two laws where both forecast; means of scenarios where these are enough, (n, 2)."""
    key = ["scenario", "recipe", "largest_flops", "flops"]
    errors = held_out.table.select(*key, "law", error=pl.col("error").abs()).unique(
        [*key, "law"], keep="last", maintain_order=True
    )
    pairs = errors.filter(law=first).join(errors.filter(law=other), on=key, maintain_order="left")
    if pairs["scenario"].n_unique() >= ENOUGH_SCENARIOS:
        pairs = pairs.group_by("scenario", maintain_order=True).agg(pl.col("error", "error_right").mean())
    return pairs.select("error", "error_right").to_numpy()


def _standard_error(pairs: FloatArray) -> float:
    """Of the mean difference, pairs (n, 2); infinite for one pair, which says nothing of it."""
    n = pairs.shape[0]
    return float(np.std(pairs[:, 0] - pairs[:, 1], ddof=1) / np.sqrt(n)) if n > 1 else np.inf


def _times(larger: float, smaller: float) -> str:
    return f"{larger / smaller:.1f} times closer" if smaller > 0.0 else "closer"


def _both(smaller: float, larger: float) -> str:
    return f"{smaller:.4f} against {larger:.4f}"
