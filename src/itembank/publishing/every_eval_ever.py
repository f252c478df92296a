"""Estimates as records of Every Eval Ever (schema 0.3.0), with their uncertainty and the items behind them.

The records are aggregates. They say in every result that the score was estimated, from how many items of how many, so
that nobody takes them for full runs.
"""

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from itembank.checks import check_one_of
from itembank.errors import DataError, ParameterError, shown
from itembank.files.atomic import adding_to_folder
from itembank.files.documents import read_json

SCHEMA_VERSION = "0.3.0"
ESTIMATES = "itembank.estimate/1"
Relationship = Literal["first_party", "third_party", "collaborative", "other"]
NEEDED = {
    **dict.fromkeys(("model_id", "target", "method", "bank", "interval"), str),
    **dict.fromkeys(("n_items", "n_total"), int),
    **dict.fromkeys(("estimate", "low", "high", "level", "standard_error"), (int, float, type(None))),
}
"""What a row of `itembank estimate --format json` holds, by name: its type."""


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """Who publishes estimates, and when."""

    organization: str  # Who ran the items and estimated
    timestamp: int  # Seconds since 1970
    version: str  # Of itembank
    # {'first_party', 'third_party', 'collaborative', 'other'}: Between these and the developers of the models.
    relationship: Relationship = "other"

    def __post_init__(self) -> None:
        """Check the choices."""
        if not self.organization.strip():
            raise ParameterError("organization must be a name, got an empty one.")
        check_one_of("relationship", self.relationship, get_args(Relationship))


def read_estimates(path: Path) -> list[dict[str, Any]]:
    """Read what `itembank estimate --format json` printed."""
    content = read_json(path)
    rows = content.get("rows") if isinstance(content, dict) and content.get("schema_version") == ESTIMATES else None
    how = "Write it with: itembank estimate ... --format json > estimates.json"
    if not (isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)):
        raise DataError(f"{path}: must be estimates of schema_version {ESTIMATES!r}. {how}")
    for number, row in enumerate(rows, start=1):
        bad = [
            name
            for name, kind in NEEDED.items()
            if name not in row or isinstance(row[name], bool) or not isinstance(row[name], kind)  # type: ignore[arg-type]
        ]
        if bad:
            raise DataError(f"{path}: estimate {number} must have {shown(bad, len(bad))}, of the right type. {how}")
    return rows


def evaluation_records(rows: Sequence[Mapping[str, Any]], spec: ExportSpec) -> dict[str, dict[str, Any]]:
    """Make one record a model, by the name of its file.

    Rows are those of `ScoreEstimates.rows` or `read_estimates`; targets without an estimate are left out.
    """
    by_model: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["estimate"] is not None and math.isfinite(row["estimate"]):
            by_model.setdefault(row["model_id"], []).append(row)
    if not by_model:
        raise DataError("there must be at least one estimate to export, got none.")
    records = {}
    for model, own in by_model.items():
        record = _record(model, own, spec)
        digest = sha256(json.dumps(record, sort_keys=True).encode()).digest()
        records[f"{uuid.UUID(bytes=digest[:16], version=4)}.json"] = record
    return records


def write_records(records: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write records into a folder, which is made where there is none."""
    with adding_to_folder(folder) as new:
        for name, record in records.items():
            (new / name).write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return [folder / name for name in records]


def _record(model: str, rows: Sequence[Mapping[str, Any]], spec: ExportSpec) -> dict[str, Any]:
    """Return the record of one model."""
    bank = str(rows[0]["bank"])
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"itembank-{bank}/{model.replace('/', '_')}/{spec.timestamp}",
        "retrieved_timestamp": str(spec.timestamp),
        "source_metadata": {
            "source_name": "itembank estimate",
            "source_type": "evaluation_run",
            "source_organization_name": spec.organization,
            "evaluator_relationship": spec.relationship,
            "additional_details": {"scores": "estimated from a part of the items, not measured on all"},
        },
        "eval_library": {"name": "itembank", "version": spec.version},
        "model_info": {"name": model, "id": model, "additional_details": unknown},
        "evaluation_results": [_result(row) for row in rows],
    }


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of one target."""
    items = f"{row['n_items']} of {row['n_total']} items"
    found: dict[str, Any] = {"num_samples": row["n_items"]}
    if _is_known(row["standard_error"]):
        found["standard_error"] = {"value": row["standard_error"], "method": f"itembank, {row['interval']}"}
    if _is_known(row["low"]) and _is_known(row["high"]):
        found["confidence_interval"] = {
            "lower": row["low"],
            "upper": row["high"],
            "confidence_level": row["level"],
            "method": f"itembank, {row['interval']}",
        }
    return {
        "evaluation_result_id": f"{row['bank']}/{row['target']}/estimated_score",
        "evaluation_name": row["target"],
        "source_data": {
            "dataset_name": row["target"],
            "source_type": "other",
            "additional_details": {
                "items_run": str(row["n_items"]),
                "items_of_the_benchmark": str(row["n_total"]),
                "item_bank": str(row["bank"]),
                **({"score_target": str(row["target_id"])} if row.get("target_id") else {}),
            },
        },
        "metric_config": {
            "evaluation_description": f"Score on the whole benchmark, estimated from responses to {items}.",
            "metric_id": "estimated_score",
            "metric_name": "estimated score",
            "metric_kind": "estimated_score",
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": row["estimate"],
            "details": {"estimated_from": items, "method": row["method"], "item_bank": row["bank"]},
            "uncertainty": found,
        },
    }


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
