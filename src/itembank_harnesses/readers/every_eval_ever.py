"""Every Eval Ever: ``<uuid>_samples.jsonl`` beside ``<uuid>.json``, schema versions 0.2 and 0.3.

A line is one sample and metric; lines of one sample are put together. The scenario is the evaluation's name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, first_few, remedy, warn
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import own_files
from itembank.readers.json_files import Record, as_float, each_record, first_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import refuse
from itembank.readers.rows import ResponseRows, content_digest
from itembank_harnesses.readers.lm_eval_samples import Samples
from itembank_harnesses.readers.logged import LoggedAnswer, LogKind, logged_rows, read_each_log, samples_of
from itembank_harnesses.readers.runs import Run, SampleFile, wanted
from itembank_harnesses.readers.sources import SOURCES

KIND = LogKind("Every Eval Ever samples files", "input.raw and input.reference", uses_groups=False)
SCORE = "score"
"""What a metric is called that no aggregate names."""
UNKNOWN = -1
"""Score of a metric with an unknown level that nobody could tell."""


def is_every_eval_ever(record: Record) -> bool:
    """Whether an object is a sample, or the aggregate that names its metrics."""
    return "evaluation_id" in record and (
        {"sample_id", "evaluation"} <= record.keys() or {"evaluation_results", "model_info"} <= record.keys()
    )


def every_eval_ever_rows(
    paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent
) -> ResponseRows:
    """Read samples files, and folders of them."""
    lines: dict[tuple[Path, str, str], list[tuple[str, LoggedAnswer]]] = {}
    aggregates: dict[Path, _Aggregate] = {}
    found: list[SampleFile] = []
    problems: list[str] = []
    for path in own_files(paths, "eee", spec):
        try:
            if path.suffix == ".json" and "evaluation_results" in first_record(path):
                raise DataError(f"{path}: is an aggregate of Every Eval Ever, without samples. {SOURCES['eee'].hint}")
            told = aggregates[path] = _aggregate(path)
            evaluations = _evaluations(path, spec.task_names)
        except DataError as error:
            problems.append(str(error))
            continue
        for (model, task), own in evaluations.items():
            lines[path, model, task] = own
            run = Run(model_name=model, higher_is_better={task: dict.fromkeys(told.lower, False)})
            found.append(SampleFile(path, task, told.date, run, spec.model_id or model))
    if not found:
        refuse(problems)

    def read(file: SampleFile) -> Samples:
        own = lines.pop((file.path, file.run.model_name, file.task))
        return samples_of(file, list(_answers(own, aggregates[file.path])))

    files = wanted(found, spec)
    samples, unread = read_each_log(files, read, progress, in_processes=False)  # the lines are in memory
    rows = logged_rows(KIND, samples, [*problems, *unread], spec)
    _compare_ranges([aggregates[file.path] for file in files], rows, spec)
    return rows


def _compare_ranges(aggregates: Sequence["_Aggregate"], rows: ResponseRows, spec: ReadingSpec) -> None:
    """Warn of metrics that are said to have another range than they are read with, though no score here tells so.

    Aggregates of shares are often percentages.
    """
    taken, usual = set(rows.items["metric"]), {1.0, 100.0, spec.max_response}
    ranges = {name: one for told in aggregates for name, one in told.ranges.items() if name in taken}
    ranges = {name: (least, most) for name, (least, most) in ranges.items() if least < 0.0 or most not in usual}
    other = [f"{name!r} from {least:g} to {most:g}" for name, (least, most) in ranges.items()]
    if other:
        way = remedy("max_response=...", "--max-response HIGHEST")
        warn(
            f"scores are read as shares of {spec.max_response:g}, and metrics are said to have another range: "
            f"{first_few(other)}. To divide by the highest, add: {way}",
            DataWarning,
        )


def _evaluations(path: Path, names: Mapping[str, str]) -> dict[tuple[str, str], list[tuple[str, LoggedAnswer]]]:
    """Return the result and the answer, whose only metric is the score, of each line, by model and evaluation."""
    found: dict[tuple[str, str], list[tuple[str, LoggedAnswer]]] = {}
    for record in each_record(path):
        if not {"model_id", "evaluation_name", "sample_id", "evaluation"} <= record.keys():
            raise DataError(
                f"{path}: every line must have model_id, evaluation_name, sample_id and evaluation, got one without."
            )
        task = str(record["evaluation_name"])
        result = str(record.get("evaluation_result_id") or task)
        found.setdefault((str(record["model_id"]), names.get(task, task)), []).append((result, _answer(record)))
    if not found:
        raise DataError(f"{path}: must hold a sample, got none. Was the file cut? Copy it again.")
    return found


def _answer(record: Record) -> LoggedAnswer:
    found = mapping(record["evaluation"])
    score = found.get("is_correct") if found.get("score") is None else found.get("score")
    tokens = mapping(record.get("token_usage"))
    costs: dict[str, Any] = {unit: tokens[unit] for unit in ("input_tokens", "output_tokens") if unit in tokens}
    latency = mapping(record.get("performance")).get("latency_ms")
    asked, stated = mapping(record.get("input")), record.get("sample_hash")
    # where the question was left out, the file says a digest itself
    content = content_digest(asked["raw"], asked.get("reference")) if asked.get("raw") else str(stated or "") or None
    return LoggedAnswer(
        str(record["sample_id"]),
        {SCORE: score},
        content,
        costs={**costs, "seconds": as_float(latency) / 1000.0} if isinstance(latency, int | float) else costs,
        error=str(record.get("error") or ""),
    )


@dataclass(slots=True)
class _Aggregate:
    """What the file beside samples tells; metrics by their names."""

    date: str
    names: dict[str, str] = field(default_factory=dict)  # By result
    lower: list[str] = field(default_factory=list)  # Those that are better when lower
    with_unknown: list[str] = field(default_factory=list)  # Those that have an unknown level
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # The least and the most that there can be


def _aggregate(path: Path) -> _Aggregate:
    """Read the aggregate beside a file of samples, if there is one."""
    beside = path.with_name(path.name.split("_samples.")[0] + ".json")
    content = mapping(read_json(beside)) if beside != path and beside.is_file() else {}
    told = _Aggregate(str(content.get("evaluation_timestamp", "")))
    for result in map(mapping, listed(content.get("evaluation_results"))):
        config = mapping(result.get("metric_config"))
        name = str(config.get("metric_name") or config.get("metric_id") or SCORE)
        told.names[str(result.get("evaluation_result_id", result.get("evaluation_name")))] = name
        if config.get("lower_is_better") is True:
            told.lower.append(name)
        if config.get("has_unknown_level") is True:
            told.with_unknown.append(name)
        levels = listed(config.get("level_names"))
        least, most = config.get("min_score", 0.0), config.get("max_score", len(levels) - 1 if levels else None)
        if isinstance(least, int | float) and isinstance(most, int | float):
            told.ranges[name] = float(least), float(most)
    return told


def _answers(lines: Sequence[tuple[str, LoggedAnswer]], told: _Aggregate) -> Iterator[LoggedAnswer]:
    """Give one answer a sample and attempt, with the metrics of all its lines; unknown ones are lost."""
    seen: Counter[tuple[str, str]] = Counter()
    together: dict[tuple[str, int], dict[str, LoggedAnswer]] = {}
    for result, answer in lines:
        name, sample = told.names.get(result, SCORE), answer.document
        together.setdefault((sample, seen[sample, name]), {})[name] = answer
        seen[sample, name] += 1
    for (_, attempt), answers in together.items():
        scores = {name: one.metrics[SCORE] for name, one in answers.items() if not one.error}
        yield replace(
            next(iter(answers.values())),
            metrics={n: None if one == UNKNOWN and n in told.with_unknown else one for n, one in scores.items()},
            attempt=str(attempt),
            error=next(iter(answers.values())).error if all(one.error for one in answers.values()) else "",
        )
