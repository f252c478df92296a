"""How commands say that a model answered unlike past ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from itembank.cli.render import note
from itembank.data.score_names import OVERALL

if TYPE_CHECKING:
    from itembank.comparison.comparisons import Comparison
    from itembank.estimation.estimates import ScoreEstimates


def typicality_text(row: Mapping[str, Any]) -> str:
    """Return the typicality of a row's model, once: beside its overall score."""
    is_shown = row["target"] == OVERALL and row["typicality"] is not None
    return f"{row['typicality']:.2f}" if is_shown else ""


def note_flagged(result: "ScoreEstimates | Comparison", n_past: int) -> None:
    """Say which models answered unlike past ones, and how large the errors of such models were."""
    from itembank.errors import shown, visible  # noqa: PLC0415
    from itembank.estimation.typicality import FLAGGED, OUTSIDE_GUARANTEE  # noqa: PLC0415

    flagged = result.flagged_models
    if not flagged:
        return
    first = result.model_ids.index(flagged[0])
    past = result.typicality
    unlike, others = 100.0 * past.past_error_flagged[first], 100.0 * past.past_error_others[first]
    note(
        f"{visible(shown(flagged))}: answered unlike most of the {n_past} past models (typicality below {FLAGGED:g}). "
        f"The interval is {OUTSIDE_GUARANTEE}: errors of such past models were {unlike:.1f} points on average, of "
        f"others {others:.1f}. What does not fit: itembank check."
    )
