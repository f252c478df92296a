"""A note on models that are not new to a bank."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from itembank.cli.render import note
from itembank.errors import visible

if TYPE_CHECKING:
    from itembank.data.banks import Bank


def note_known_models(bank: "Bank", model_ids: Iterable[str]) -> None:
    """Say which models the bank was calibrated on: what it says of them is not what it would say of a new model."""
    from itembank.errors import shown  # noqa: PLC0415

    calibrated = set(bank.responses.model_ids)
    known = [model for model in model_ids if model in calibrated]
    if known:
        note(
            f"Note: {visible(shown(known))} helped to calibrate this bank, which suits them better than new models: "
            "intervals are too narrow for them, and their scores stand in its models.parquet. For an honest "
            "try, calibrate without them."
        )
