"""Checks of training compute: missing, zero, or in another unit than it should be."""

from collections.abc import Sequence

import numpy as np

from itembank.errors import N_SHOWN, first_few, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

LEAST_OPERATIONS = 1e6
"""Less than any training: 6 x 100 parameters x 1,000 tokens is 6e5."""
LARGEST_GAP = 9.0
"""Powers of ten between neighbours that no series of models leaves open: from exaFLOP to FLOP are 18."""
FAR_FROM_IMPLIED = 2.5
"""Powers of ten from 6 x params x tokens that no mixture of experts (1.5 at most) explains."""
LEAST_COUNT = 1e3
"""Fewer parameters or tokens than any language model: the column counts millions or billions of them."""
LARGEST_COUNT_GAP = 6.0
"""Powers of ten between neighbours in parameters or tokens that only two units explain."""
SAME = 0.01
"""Relative difference within which a ratio is a whole power of ten, or one."""

_UNITS = "Write operations (FLOP) in all rows: 2.1 exaFLOP are 2.1e18; a column in 10^18 is named flops_e18."


def check_operations(names: Sequence[str], flops: FloatArray, implied: FloatArray) -> list[str]:
    """Say what is wrong with the training compute of these models.

    Parameters
    ----------
    names : sequence of n_models ids
    flops : (n_models,)
        NaN where unknown.
    implied : (n_models,)
        6 x params x train_tokens; NaN where unknown.
    """
    problems: list[str] = []
    missing = np.isnan(flops)
    if missing.any():
        problems.append(
            f"every model must have its flops, or params and train_tokens, got neither for {_some(names, missing)}. "
            "Fill them in, or leave the models out (drop_unknown=True, --drop-unknown)."
        )
    known = ~missing
    with np.errstate(invalid="ignore"):
        low = known & ~((flops > 0.0) & (flops < np.inf))
    if low.any():
        problems.append(
            f"flops must be finite and above zero, got {_values(names, flops, np.flatnonzero(low))}. A law is in the "
            "logarithm of compute: leave out models before the first step of training."
        )
    usable = known & ~low
    if usable.any():
        far = _far(*_powers_from_implied(flops, np.where(usable, implied, np.nan)))
        found = _away(names, flops, implied, far) if far.any() else ""
        found = found or _too_small(names, flops, usable) or _gap(names, flops, usable)
        problems.extend([found] if found else [])
    return problems


def check_counts(column: str, names: Sequence[str], values: FloatArray, known: BoolArray) -> list[str]:
    """Say which of the known parameters or tokens (n_models,) are none, or in another unit than the others."""
    advice = f"Write {column} out, or with its unit: 70M, 1.4B, 300B."
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(known & ~((values >= LEAST_COUNT) & (values < np.inf)))
    if bad.size:
        return [f"{column} must be a finite number of at least 1,000, got {_values(names, values, bad)}. {advice}"]
    between = _largest_gap(values, known)
    if between is None or between[2] < LARGEST_COUNT_GAP:
        return []
    below, above, powers = between
    return [
        f"{column} must be in one unit, got nothing between {values[below]:.3g} ({names[below]!r}) and "
        f"{values[above]:.3g} ({names[above]!r}), {powers:.0f} powers of ten. {advice}"
    ]


def ten_times_note(names: Sequence[str], flops: FloatArray, implied: FloatArray) -> str:
    """Say which models are ten times away from 6 x params x train_tokens where others are not; empty when none.

    It may be a slip, or a mixture of experts whose parameters are all counted.
    """
    ratio, nearest, is_power = _powers_from_implied(flops, implied)
    odd = is_power & (np.abs(nearest) == 1.0)
    if not odd.any() or not (is_power & (nearest == 0.0)).any():
        return ""
    rows = np.flatnonzero(odd)
    parts = [f"{names[row]!r} = {flops[row]:.3g} for {implied[row]:.3g}" for row in rows[:N_SHOWN].tolist()]
    return (
        f"flops of {rows.size} of {np.isfinite(ratio).sum()} models are ten times away from 6 x params x train_tokens: "
        f"{first_few(parts, rows.size)}; check them, unless they are mixtures of experts."
    )


def _powers_from_implied(flops: FloatArray, implied: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Powers of ten between stated and implied operations, the nearest whole ones, and whether they are those."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.log10(flops / implied)
    nearest = np.rint(np.where(np.isfinite(ratio), ratio, 0.0))
    with np.errstate(invalid="ignore"):
        is_power = np.abs(ratio - nearest) < np.log10(1.0 + SAME)
    return ratio, nearest, is_power


def _far(ratio: FloatArray, nearest: FloatArray, is_power: BoolArray) -> BoolArray:
    """Flag of stated operations that are in another unit: far from the implied, or by a whole power of ten."""
    with np.errstate(invalid="ignore"):
        wrong: BoolArray = np.isfinite(ratio) & (np.abs(ratio) >= FAR_FROM_IMPLIED)
    if (is_power & (nearest == 0.0)).any():
        wrong |= is_power & (np.abs(nearest) >= 2.0)
    return wrong


def _away(names: Sequence[str], flops: FloatArray, implied: FloatArray, wrong: BoolArray) -> str:
    """Say which models are powers of ten away."""
    rows = np.flatnonzero(wrong)
    parts = [f"{names[row]!r} = {flops[row]:.3g} for {implied[row]:.3g}" for row in rows[:N_SHOWN].tolist()]
    return (
        f"flops must be near 6 x params x train_tokens, in one unit, got {rows.size} of {wrong.size} models that are "
        f"powers of ten away: {first_few(parts, rows.size)}. {_UNITS}"
    )


def _too_small(names: Sequence[str], flops: FloatArray, usable: BoolArray) -> str:
    """Find values that are no number of operations."""
    small = np.flatnonzero(usable & (flops < LEAST_OPERATIONS))
    if small.size == 0:
        return ""
    word = "mixed units" if small.size < usable.sum() else "multiples of a unit"
    return f"flops must be floating-point operations, got {word}: {_values(names, flops, small)}. {_UNITS}"


def _gap(names: Sequence[str], flops: FloatArray, usable: BoolArray) -> str:
    """Find a gap in size that only two units explain."""
    between = _largest_gap(flops, usable)
    if between is None or between[2] < LARGEST_GAP:
        return ""
    below, above, powers = between
    return (
        f"flops must be in one unit, got nothing between {flops[below]:.3g} ({names[below]!r}) and {flops[above]:.3g} "
        f"({names[above]!r}), {powers:.0f} powers of ten. {_UNITS}"
    )


def _largest_gap(values: FloatArray, known: BoolArray) -> tuple[int, int, float] | None:
    """Rows on both sides of the largest gap between neighbours, and its powers of ten; None for fewer than two."""
    rows = np.flatnonzero(known)
    order = rows[np.argsort(values[rows])]
    steps = np.diff(np.log10(values[order]))
    if steps.size == 0:
        return None
    at = int(np.argmax(steps))
    return int(order[at]), int(order[at + 1]), float(steps[at])


def _some(names: Sequence[str], mask: BoolArray) -> str:
    """Count and name the first few models."""
    rows = np.flatnonzero(mask).tolist()
    return f"{len(rows)} of {mask.size} models: {shown([names[row] for row in rows])}"


def _values(names: Sequence[str], values: FloatArray, rows: IntArray) -> str:
    """Name the first few models with their compute."""
    parts = [f"{names[row]!r} = {values[row]:g}" for row in rows[:N_SHOWN].tolist()]
    return f"{rows.size} of {values.size} models: {first_few(parts, rows.size)}"
