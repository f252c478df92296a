"""The programs whose results are read, one line each: how their files are told, and what reads them.

A module is imported when it is needed, so that the table, and with it the help of commands, loads no reader.
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

LOGGED = ("metric", "tasks", "exclude_tasks", "task_names", "ignore_content", "max_response", "errors")
"""Choices that logs of harnesses take which hold several metrics and tasks."""
TRIED = ("max_response", "errors", "allow_mixed_prompts")
"""Choices that trials of agents take."""


@dataclass(frozen=True, slots=True)
class Source:
    """One program whose results are read, by a module X of this package.

    ``is_X(record)`` says whether an object of a JSON file is one of its results. ``X_answers(file, spec)`` gives the
    answers of one file as records of a long table (`rows_of_records`), or ``X_rows(paths, spec, *, progress)`` reads
    files and, where `files` names some, folders, of which it takes whatever is its own.
    """

    title: str  # What its results are called in messages
    # Files below a folder that hold its results, told by the end of their path ('reviews/*/*.jsonl').
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # Files that it writes beside these, which hold no results of their own
    hint: str = ""  # Where these files are, or come from, for a folder without any
    # Fields of `ReadingSpec` beyond those of all results that have a say in how its results are read.
    takes: tuple[str, ...] = LOGGED
    is_told_by_name: bool = True  # Whether such a name below a folder is enough; else the content is looked at
    sure: tuple[str, ...] = ()  # Those files whose names are enough where other names are not
    module: str = ""  # X, where it is not the program's name
    # Whether its results name every item; else ``X_rows`` also takes `item_ids`, those of the caller's table of items.
    lists_all_items: bool = True

    def holds(self, path: PurePath) -> bool:
        """Whether the name of a file says that it holds results of this program."""
        return matches(path, self.files)


SOURCES: Mapping[str, Source] = {
    "py-irt": Source("py-irt's JSON Lines", takes=("max_response", "errors")),
    "promptfoo": Source("results of promptfoo", takes=("errors",)),
    "verifiers": Source(
        "results of verifiers",
        hint="They are in results.jsonl or traces.jsonl, which are empty until a rollout ends.",
        beside=("*--*/*/metadata.json", "*--*/configs/*.json", "*--*/logs/*/*"),
        takes=TRIED,
    ),
    "harbor": Source(
        "jobs of Harbor",
        files=("result.json",),
        hint="Harbor writes a folder a job into jobs/, with a folder a trial.",
        beside=(
            *("*__???????/config.json", "*__???????/agent/*", "*__???????/verifier/*", "*__???????/*.log"),
            *("*__??-??-??/config.json", "jobs/*/config.json", "lock.json", "job.log"),
        ),
        takes=("metric", "prefix_scenario", *TRIED),
        is_told_by_name=False,
    ),
    "tau-bench": Source("results of tau-bench", takes=TRIED, is_told_by_name=False),
    "tau2": Source(
        "results of tau2-bench",
        beside=("simulations/*.json",),
        takes=TRIED,
        is_told_by_name=False,
    ),
    "terminal-bench": Source(
        "results of Terminal-Bench 1",
        files=("results.json", "*_results.json"),
        hint="It writes a folder a run into runs/, with results.json.",
        beside=("run_metadata.json", "tb.lock", "sessions/*", "panes/*", "agent-logs/*"),
        takes=("errors", "allow_mixed_prompts", "prefix_scenario"),
        is_told_by_name=False,
    ),
    "lm-eval": Source(
        "logs of lm-evaluation-harness",
        files=tuple(f"samples_*.{kind}{packed}" for kind in ("json", "jsonl") for packed in ("", ".gz", ".zst")),
        beside=("results_*.json",),
    ),
    "inspect": Source("logs of Inspect", files=("*.eval",)),
    "helm": Source(
        "run folders of HELM",
        files=("per_instance_stats.json",),
        hint="HELM writes them into benchmark_output/runs/<suite>/<run>/.",
        beside=(
            *("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "instances.json"),
            "display_*.json",
        ),
    ),
    "eee": Source(
        "samples files of Every Eval Ever",
        module="every_eval_ever",
        files=("*_samples.jsonl",),
        hint="Aggregates alone cannot be taken apart; the samples of every item are needed.",
        beside=("????????-????-????-????-????????????.json",),
    ),
    "evalscope": Source(
        "reviews of EvalScope",
        files=("reviews/*/*.jsonl",),
        hint="EvalScope writes them into outputs/<date>/reviews/.",
        beside=("predictions/*/*.jsonl", "reports/*/*.json", "reports/report.html", "configs/task_config*.yaml"),
    ),
    "lighteval": Source(
        "details of lighteval or of the Open LLM Leaderboard v1",
        files=("details_*.parquet",),
        hint="lighteval writes them with --save-details.",
    ),
    "opencompass": Source(
        "results of OpenCompass",
        files=("results/*/*.json",),
        hint="Predictions hold no scores: give the folder that holds results/ too, of an evaluation that wrote details "
        "(--dump-eval-details).",
        beside=("predictions/*/*.json", "summary/*", "configs/*.py"),
        is_told_by_name=False,
    ),
    "swe-bench": Source(
        "reports and logs of SWE-bench",
        files=("*.json", "*.jsonl"),
        sure=("run_evaluation/*/*/*/report.json", "*.traj.json"),
        hint="Its harness writes <model>.<run_id>.json, and a folder an instance into logs/run_evaluation/.",
        beside=(
            *("metadata.yaml", "run_instance.log", "test_output.txt", "patch.diff", "eval.sh"),
            *("minisweagent.log", "exit_statuses_*.yaml"),
        ),
        takes=("errors",),
        is_told_by_name=False,
        lists_all_items=False,
    ),
    "alpaca-eval": Source(
        "annotations of AlpacaEval",
        files=("annotations.json",),
        beside=("model_outputs.json", "*_leaderboard.csv"),
        takes=("metric",),
        is_told_by_name=False,
    ),
    "bfcl": Source(
        "score files of BFCL",
        files=("*_score.json",),
        hint="They are in score/<model>/.",
        beside=("*_result.json",),
        takes=(),
    ),
    "evalplus": Source(
        "results of EvalPlus",
        files=("*eval_results.json",),
        takes=("metric",),
    ),
    "livecodebench": Source(
        "results of LiveCodeBench",
        module="live_code_bench",
        files=("*_eval_all*.json",),
        hint="LiveCodeBench writes them with --evaluate.",
        beside=("*_eval.json",),
        takes=(),
    ),
    "mmlu-pro": Source(
        "outputs of MMLU-Pro's models",
        files=("model_outputs_*.zip",),
        takes=(),
    ),
    "open-eval": Source(
        "response tables of OpenEval",
        files=("response/*.parquet",),
        takes=("metric",),
        is_told_by_name=False,
    ),
}
"""By the name that `ReadingSpec.format` and `--as` know them by; the first whose test holds is taken."""


def matches(path: PurePath, patterns: Iterable[str]) -> bool:
    """Whether the end of a path matches one of these patterns."""
    return any(path.match(pattern) for pattern in patterns)


def reader_function(name: str, form: str) -> Any:
    """Return the function of a source's module that is called so ('is_{}'); None where it has none."""
    module = SOURCES[name].module or name.replace("-", "_")
    return getattr(importlib.import_module(f"itembank.readers.{module}"), form.format(module), None)


def source_of_record(record: Mapping[str, Any]) -> str | None:
    """Return the name of the source that an object of a JSON file is a result of; None where there is none."""
    tests = ((name, reader_function(name, "is_{}")) for name in SOURCES)
    return next((name for name, is_own in tests if is_own is not None and is_own(record)), None)


def source_of_name(path: PurePath) -> str | None:
    """Return the name of the source that the name of a file tells; None where it tells none."""
    told = ((name, one.files if one.is_told_by_name else one.sure) for name, one in SOURCES.items())
    return next((name for name, patterns in told if matches(path, patterns)), None)


def is_companion(path: PurePath) -> bool:
    """Whether some program writes such a file beside its results."""
    return any(matches(path, source.beside) for source in SOURCES.values())
