"""EvalPlus's results: which samples of code passed the tests of HumanEval and MBPP.

``*eval_results.json`` holds ``eval``: for each task a list of samples with ``base_status`` and ``plus_status``, or,
before 0.2, lists ``base`` and ``plus`` of ``[status, details]``. BigCodeBench's files are like it, with one ``status``.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from itembank.errors import DataError, shown
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import laid_out, own_files, rows_of_files
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.readers.refusals import RefusedError, WaysOut
from itembank.readers.rows import ResponseRows

TESTS = ("plus", "base")
"""What a sample must pass: all tests (those of the original benchmark, and EvalPlus's own), or the former alone."""
PASSED = ("pass", "success")
"""Status of a sample that passed: now, and before 0.2."""
ENDS = ("_eval_results", ".eval_results", "-eval_results")
NO_MODELS = ("eval_results", "samples")
"""What a file without a model is called: EvalPlus's guide has ``samples_eval_results.json``."""


def is_evalplus(record: Any) -> bool:
    """Whether a document is EvalPlus's."""
    tasks = record.get("eval") if isinstance(record, dict) else None
    first = next(iter(tasks.values()), None) if isinstance(tasks, dict) else None
    if isinstance(first, list):
        return bool(first) and isinstance(first[0], dict) and not {"base_status", "status"}.isdisjoint(first[0])
    return isinstance(first, dict) and isinstance(first.get("base"), list)


def evalplus_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read results; the response is the share of samples that pass, with their number.

    The `metric` is 'plus' (the default) or 'base'.
    """
    asked = [name for name in spec.metric if "=" not in name] or TESTS[:1]
    metric = next((name for name in asked if name in TESTS), None)
    if metric is None:
        problem = f"the metric of EvalPlus must be one of {', '.join(TESTS)}, got {shown(asked)}."
        raise RefusedError([problem], WaysOut(metrics=(TESTS[0],)), spec)
    return rows_of_files("evalplus", paths, spec, partial(_tasks, metric=metric), progress=progress)


def model_of(file: Path) -> str:
    """Model of a results file: its name without the end, or that of its folder, where the name tells none."""
    stem = file.name.removesuffix(".json")
    name = stem.removesuffix(next((end for end in ENDS if stem.endswith(end)), ""))
    return file.absolute().parent.name if name in NO_MODELS else name


def scenario_of(task: str, metric: str) -> str:
    """Scenario of a task such as ``HumanEval/7``: ``humaneval``, with a plus where EvalPlus's own tests count."""
    name = task.partition("/")[0].lower()
    return name + ("+" if metric == "plus" and name != "bigcodebench" else "")


def _tasks(file: Path, spec: ReadingSpec, metric: str) -> Iterator[dict[str, Any]]:
    """Give the tasks of a file with the number of samples that pass, and of all."""
    content = read_json(file)
    if not is_evalplus(content):
        keys = shown(list(content), 8) if isinstance(content, dict) else type(content).__name__
        raise DataError(f"{file}: must be results of EvalPlus (eval: a task with its samples), got {keys}.")
    for task, samples in content["eval"].items():
        with laid_out(file, "results of EvalPlus"):
            statuses = _statuses(samples)
        if metric == "plus" and any(plus is None for _, plus in statuses):
            raise DataError(
                f"{file}: task {task!r} was tested with the base tests alone. Read those: {how(metric='base')}."
            )
        passed = [base in PASSED and (metric == "base" or plus in PASSED) for base, plus in statuses]
        yield {
            "model_id": model_of(file),
            "item_id": task,
            "n_correct": sum(passed),
            "n_trials": len(passed),
            "scenario": spec.scenario or scenario_of(task, metric),
        }


def _statuses(samples: Any) -> list[tuple[Any, Any]]:
    """Status of each sample in the base tests and in all, None where it was not tested."""
    if isinstance(samples, list):
        return [tuple(one.get(f"{name}_status", one.get("status")) for name in ("base", "plus")) for one in samples]
    base = [one[0] for one in samples["base"]]
    plus = [one[0] for one in samples.get("plus") or []] or [None] * len(base)
    return list(zip(base, plus, strict=True))


def evalplus_published(folder: Path, metric: str = TESTS[0]) -> Iterator[tuple[str, str | None, float]]:
    """Give pass@1 as the results files state it, where they do."""
    for file in own_files([folder], "evalplus", ReadingSpec()):
        content = read_json(file)
        stated = content.get("pass_at_k", {}).get(metric, {}) if isinstance(content, dict) else {}
        if "pass@1" in stated and content.get("eval"):
            yield model_of(file), scenario_of(next(iter(content["eval"])), metric), float(stated["pass@1"])
