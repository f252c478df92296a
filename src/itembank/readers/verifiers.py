"""Results of verifiers: ``outputs/evals/ENV--MODEL/RUN/results.jsonl``, a rollout a line, ``metadata.json`` beside."""

from collections.abc import Iterator
from pathlib import Path

from itembank.errors import DataError
from itembank.files.documents import read_json
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, each_record, mapping
from itembank.readers.logged import content_digest
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.readers.trials import Trial, records_of_trials
from itembank.responses.error_kinds import error_kind


def is_verifiers(record: Record) -> bool:
    """Whether an object is a rollout of verifiers."""
    return record.keys() >= {"example_id", "reward", "completion"}


def verifiers_answers(file: Path, spec: ReadingSpec) -> Iterator[Record]:
    """Give the results of a file: rollouts of an example are its trials."""
    model, environment = _about(file, spec)
    trials = []
    for record in each_record(file):
        if not is_verifiers(record):
            raise DataError(f"{file}: every line must have example_id, reward and completion, got one without.")
        with laid_out(file, "results of verifiers"):
            is_lost, name = bool(error_kind(record.get("error"))), record["example_id"]
            one = Trial(
                f"{environment}/{name}" if environment else str(name),
                None if is_lost else float(record["reward"]) / spec.max_response,
                str(record["error"]) if is_lost else "",
                costs=mapping(record.get("token_usage")),
                content=content_digest(record.get("prompt"), record.get("answer")),
            )
        trials.append(one)
    yield from records_of_trials(model, spec.scenario or environment or None, trials)


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
