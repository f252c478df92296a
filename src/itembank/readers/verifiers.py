"""Results of verifiers: ``outputs/evals/ENV--MODEL/RUN/results.jsonl``, a rollout a line, ``metadata.json`` beside."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError
from itembank.files.documents import read_json
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, each_record, mapping
from itembank.readers.logged import content_digest
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.responses.error_kinds import error_kind


def is_verifiers(record: Record) -> bool:
    """Whether an object is a rollout of verifiers."""
    return record.keys() >= {"example_id", "reward", "completion"}


def verifiers_answers(file: Path, spec: ReadingSpec) -> Iterator[Record]:
    """Give the results of a file: rollouts of an example are its trials where every reward is 0 or 1."""
    model, environment = _about(file, spec)
    examples: dict[str, list[Record]] = {}
    for record in each_record(file):
        if not is_verifiers(record):
            raise DataError(f"{file}: every line must have example_id, reward and completion, got one without.")
        examples.setdefault(str(record["example_id"]), []).append(record)
    with laid_out(file, "results of verifiers"):
        answered = [one for some in examples.values() for one in some if not error_kind(one.get("error"))]
        are_counts = all(one["reward"] in {0.0, 1.0} for one in answered) and spec.max_response == 1.0
        for name, rollouts in examples.items():
            groups = [rollouts] if are_counts else [[one] for one in rollouts]
            for number, group in enumerate(groups):
                known = [float(one["reward"]) for one in group if not error_kind(one.get("error"))]
                usage = [mapping(one.get("token_usage")) for one in group]
                failed = [one["error"] for one in group if error_kind(one.get("error"))]
                yield {
                    "model_id": model,
                    "item_id": f"{environment}/{name}" if environment else name,
                    "scenario": spec.scenario or environment or None,
                    "response": sum(known) / len(known) / spec.max_response if known else None,
                    "n_trials": len(known),
                    "n_errors": len(failed),
                    "error": str(failed[0]) if failed else None,
                    "epoch": None if are_counts else number,
                    **{unit: _mean([one.get(unit) for one in usage]) for unit in ("input_tokens", "output_tokens")},
                    "content_hash": content_digest(group[0].get("prompt"), group[0].get("answer")),
                }


def _mean(amounts: Sequence[Any]) -> float | None:
    known = [float(one) for one in amounts if isinstance(one, int | float)]
    return sum(known) / len(known) if known else None


def _about(file: Path, spec: ReadingSpec) -> tuple[str, str]:
    """Model and environment of a file: as the metadata beside it tell, else the folder ``ENV--MODEL`` above its run."""
    beside = file.with_name("metadata.json")
    told = mapping(read_json(beside)) if beside.is_file() else {}
    environment, _, model = file.absolute().parent.parent.name.partition("--")
    name = spec.model_id or told.get("model") or model.replace("--", "/", 1)
    if not name:
        raise DataError(
            f"{file}: the model is unknown: there is no metadata.json beside it. Name it: {how_to_name_model()}."
        )
    return str(name), str(told.get("env_id") or (environment if model else ""))
