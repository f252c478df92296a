"""What pages of different results have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Column
from itembank.pages.theme import count, interval_words, percent

Pair = tuple[str, str]


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun: '1 item', '14,042 items'."""
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def columns_of(rows: Sequence[Mapping[str, Any]], columns: Iterable[Column]) -> dict[str, list[Any]]:
    """Return what the columns of a table show of some records."""
    return {one.name: [row[one.name] for row in rows] for one in columns}


def in_words(number: float, decimals: int = 2, *, is_signed: bool = False) -> str:
    """Write a number with a minus sign that is one: '−0.31', '+1.2'; never '−0.0'."""
    rounded = round(number, decimals) + 0.0
    return f"{rounded:+.{decimals}f}".replace("-", "−") if is_signed else f"{rounded:.{decimals}f}".replace("-", "−")


def scores_in_words(scores: FloatArray) -> str:
    """Write the range of some scores: 'scores from 45.4 % to 83.9 %'."""
    low, high = float(scores.min()), float(scores.max())
    return f"scores from {interval_words(low, high)}" if high > low else f"a score of {percent(low)}"


def bank_provenance(bank: Bank) -> tuple[Pair, ...]:
    """Return what says which bank the numbers are from."""
    named = f"{bank.name} {bank.version}, " if bank.name else ""
    calibration = bank.calibration
    return (
        ("Bank", f"{named}{bank.bank_id}"),
        ("Score", bank.target_id),
        ("Past models", count(bank.n_calibration_models)),
        ("Items", count(bank.n_items)),
        ("Item model", f"{calibration.item_model}, {plural(calibration.n_dims, 'dimension')}, by {calibration.method}"),
    )


UNITS = {"cost_usd": "USD"}
"""Names of costs that a reader would not know; of others, underscores become spaces."""


def unit_words(unit: str) -> str:
    """Write the unit of a cost as people do."""
    return UNITS.get(unit, unit.replace("_", " "))
