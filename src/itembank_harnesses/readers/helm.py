"""Run folders of HELM: ``per_instance_stats.json`` beside ``run_spec.json``.

An answer is one instance and train trial. Perturbed instances are other questions, and instances of other splits do not
count for HELM's scores: where there are some of the split `test`, only these are read. The scenario is what
is before the first colon of the run's name, the task the name without the model.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, warn
from itembank.progress import ProgressCallback, silent
from itembank.readers.json_files import Record, each_record, first_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.readers.rows import ResponseRows, content_digest
from itembank.tables import plural
from itembank_harnesses.readers.logged import LoggedAnswer, LogKind, harness_rows
from itembank_harnesses.readers.runs import Run, SampleFile

KIND = LogKind("HELM runs", source="helm")
COSTS = {"num_prompt_tokens": "input_tokens", "num_output_tokens": "output_tokens", "inference_runtime": "seconds"}
MAIN_SPLIT = "test"
BOOKKEEPING = (
    *("num_", "finish_reason_", "prompt_truncated", "inference_", "training_"),
    *("batch_size", "logprob", "max_prob", "predicted_index"),
)
"""What names of statistics begin with that say nothing of how good an answer is."""


def is_helm(record: Record) -> bool:
    """Whether an object is the statistics of an instance."""
    return "instance_id" in record and isinstance(record.get("stats"), list)


def helm_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read run folders of HELM, folders of them, or their ``per_instance_stats.json``."""
    left_out: Counter[str] = Counter()

    rows = harness_rows(KIND, _file, lambda file: _answers(file.path, left_out), paths, spec, progress=progress)
    if left_out:
        parts = [f"{plural(n, 'answer')} {what}" for what, n in left_out.items()]
        warn(f"left out of the runs of HELM, which counts them apart: {', '.join(parts)}.", DataWarning)
    return rows


def _file(path: Path, spec: ReadingSpec) -> SampleFile:
    """Tell task and model of a run."""
    beside = path.with_name("run_spec.json")
    run = mapping(first_record(beside)) if beside.is_file() else {}
    name = str(run.get("name") or path.parent.name)
    adapter = mapping(run.get("adapter_spec"))
    arguments = dict(part.partition("=")[::2] for part in name.partition(":")[2].split(","))
    model = str(adapter.get("model") or adapter.get("model_deployment") or arguments.get("model", ""))
    if not (model or spec.model_id):
        raise DataError(
            f"{path}: the model is unknown: there is no run_spec.json beside it. Name it: {how_to_name_model()}."
        )
    scenario = name.partition(":")[0]
    rest = [f"{key}={value}" for key, value in arguments.items() if value and not key.startswith("model")]
    task = ":".join([scenario, ",".join(rest)]) if rest else scenario
    about = Run(model_name=model, groups={task: scenario})
    return SampleFile(path, task, "", about, spec.model_id or model)


def _answers(path: Path, left_out: Counter[str]) -> list[LoggedAnswer]:
    """Answers of one run: those of the test split, where there is one; the others are counted."""
    # digests of the question and references of each instance, as far as the run's folder tells
    instances: list[Any] = []
    if (path.parent / "instances.json").is_file():
        instances = [*each_record(path.parent / "instances.json")]
    elif (path.parent / "scenario_state.json").is_file():
        states = listed(first_record(path.parent / "scenario_state.json").get("request_states"))
        instances = [mapping(one).get("instance") for one in states]
    contents = {
        str(one["id"]): content_digest(one.get("input"), one.get("references"))
        for one in map(mapping, instances)
        if "id" in one and one.get("perturbation") is None
    }
    by_split: dict[str, list[LoggedAnswer]] = {}
    for record in each_record(path):
        if not is_helm(record):
            raise DataError(f"{path}: every object must have an instance_id and a list of stats, got one without.")
        if record.get("perturbation") is not None:
            left_out["to perturbed instances"] += 1
        else:
            by_split.setdefault(_split(record), []).append(_answer(record, contents))
    if MAIN_SPLIT not in by_split:
        return [one for answers in by_split.values() for one in answers]
    kept = by_split.pop(MAIN_SPLIT)
    for split, answers in by_split.items():
        left_out[f"of the split {split!r}"] += len(answers)
    return kept


def _answer(record: Record, contents: Mapping[str, str]) -> LoggedAnswer:
    told = [(mapping(stat.get("name")), stat.get("mean")) for stat in map(mapping, record["stats"])]
    # a statistic of something else than the whole answer names a perturbation
    values = {str(name["name"]): mean for name, mean in told if name.get("name") and name.get("perturbation") is None}
    document = str(record["instance_id"])
    return LoggedAnswer(
        document,
        {name: value for name, value in values.items() if not name.startswith(BOOKKEEPING)},
        contents.get(document),
        str(record.get("train_trial_index", 0)),
        {unit: values[name] for name, unit in COSTS.items() if name in values},
    )


def _split(record: Record) -> str:
    """Split of the data that an instance belongs to, as its statistics tell."""
    names = (mapping(mapping(stat).get("name")) for stat in record["stats"])
    return next((str(name["split"]) for name in names if name.get("split")), MAIN_SPLIT)
