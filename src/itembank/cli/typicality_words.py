"""How commands say that a model answered unlike past ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from itembank.cli.render import note
from itembank.responses.score_names import OVERALL

if TYPE_CHECKING:
    from itembank.comparison.comparisons import Comparison
    from itembank.estimation.estimates import ScoreEstimates


def typicality_text(row: Mapping[str, Any], main: str = OVERALL) -> str:
    """Return the typicality of a row's model, once: beside its overall score, or the main one."""
    is_shown = row["target"] == main and row["typicality"] is not None
    return f"{row['typicality']:.2f}" if is_shown else ""


def note_flagged(result: "ScoreEstimates | Comparison", n_past: int) -> None:
    """Say which models answered unlike past ones, and how large the errors of such models were."""
    words = result.typicality.flagged_in_words(result.model_ids, n_past)
    if words:
        note(words)
