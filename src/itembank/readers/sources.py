"""The programs whose results are read, one line each: how their files are told, and what reads them.

Functions are named by text ('module:function'), so that the table, and with it the help of commands, loads no reader.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_HERE = "itembank.readers."
LOGGED = ("metric", "tasks", "exclude_tasks", "task_names", "ignore_content", "max_response", "errors")
"""Choices that logs of harnesses take which hold several metrics and tasks."""


@dataclass(frozen=True, slots=True)
class Source:
    """One program whose results are read."""

    title: str  # What its results are called in messages
    # Function that says whether an object of a JSON file is one of its results; empty where it writes no JSON.
    is_record: str
    # Function ``(paths, spec, *, progress) -> ResponseRows``, whose paths are files and, where `files` names some,
    # folders, of which it reads whatever is its own; or, as `answers`, ``(file, spec)``, which gives the answers of one
    # file as records of a long table (`rows_of_records`).
    rows: str = ""
    answers: str = ""
    # Files below a folder that hold its results, told by the end of their path ('reviews/*/*.jsonl').
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # Files that it writes beside these, which hold no results of their own
    hint: str = ""  # Where these files are, or come from, for a folder without any
    # Fields of `ReadingSpec` beyond those of all results that have a say in how its results are read.
    takes: tuple[str, ...] = LOGGED
    is_told_by_name: bool = True  # Whether such a name below a folder is enough; else the content is looked at
    # Whether its results name every item; else `rows` also takes `item_ids`, those of the caller's table of items.
    lists_all_items: bool = True

    def holds(self, path: PurePath) -> bool:
        """Whether the name of a file says that it holds results of this program."""
        return matches(path, self.files)


SOURCES: Mapping[str, Source] = {
    "py-irt": Source(
        "py-irt's JSON Lines",
        _HERE + "py_irt:is_py_irt",
        _HERE + "py_irt:py_irt_rows",
        takes=("max_response", "errors"),
    ),
    "promptfoo": Source(
        "results of promptfoo",
        _HERE + "promptfoo:is_promptfoo",
        answers=_HERE + "promptfoo:promptfoo_answers",
        takes=("errors",),
    ),
    "verifiers": Source(
        "results of verifiers",
        _HERE + "verifiers:is_verifiers",
        answers=_HERE + "verifiers:verifiers_answers",
        beside=("*--*/*/metadata.json",),
        takes=("max_response", "errors"),
    ),
    "harbor": Source(
        "jobs of Harbor",
        _HERE + "harbor:is_harbor",
        _HERE + "harbor:harbor_rows",
        files=("result.json",),
        hint="Harbor writes a folder a job into jobs/, with a folder a trial.",
        beside=(
            *("*__???????/config.json", "*__???????/agent/*", "*__???????/verifier/*", "*__???????/*.log"),
            *("*__??-??-??/config.json", "jobs/*/config.json", "lock.json", "job.log"),
        ),
        takes=("metric", "max_response", "errors"),
        is_told_by_name=False,
    ),
    "tau2": Source(
        "results of tau2-bench",
        _HERE + "tau2:is_tau2",
        _HERE + "tau2:tau2_rows",
        beside=("simulations/*.json",),
        takes=("max_response", "errors"),
        is_told_by_name=False,
    ),
    "lm-eval": Source(
        "logs of lm-evaluation-harness",
        _HERE + "lm_eval:is_lm_eval",
        _HERE + "lm_eval:lm_eval_rows",
        files=tuple(f"samples_*.{kind}{packed}" for kind in ("json", "jsonl") for packed in ("", ".gz", ".zst")),
        beside=("results_*.json",),
    ),
    "inspect": Source(
        "logs of Inspect",
        _HERE + "inspect_runs:is_inspect_record",
        _HERE + "inspect_logs:inspect_rows",
        files=("*.eval",),
    ),
    "helm": Source(
        "run folders of HELM",
        _HERE + "helm:is_helm",
        _HERE + "helm:helm_rows",
        files=("per_instance_stats.json",),
        hint="HELM writes them into benchmark_output/runs/<suite>/<run>/.",
        beside=(
            *("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "instances.json"),
            "display_*.json",
        ),
    ),
    "eee": Source(
        "samples files of Every Eval Ever",
        _HERE + "every_eval_ever:is_every_eval_ever",
        _HERE + "every_eval_ever:every_eval_ever_rows",
        files=("*_samples.jsonl",),
        hint="Aggregates alone cannot be taken apart; the samples of every item are needed.",
        beside=("????????-????-????-????-????????????.json",),
    ),
    "evalscope": Source(
        "reviews of EvalScope",
        _HERE + "evalscope:is_evalscope",
        _HERE + "evalscope:evalscope_rows",
        files=("reviews/*/*.jsonl",),
        hint="EvalScope writes them into outputs/<date>/reviews/.",
        beside=("predictions/*/*.jsonl", "reports/*/*.json", "reports/report.html", "configs/task_config*.yaml"),
    ),
    "lighteval": Source(
        "details of lighteval or of the Open LLM Leaderboard v1",
        "",
        _HERE + "lighteval:lighteval_rows",
        files=("details_*.parquet",),
        hint="lighteval writes them with --save-details.",
    ),
    "opencompass": Source(
        "results of OpenCompass",
        _HERE + "opencompass:is_opencompass",
        _HERE + "opencompass:opencompass_rows",
        files=("results/*/*.json",),
        hint="Predictions hold no scores: give the folder that holds results/ too, of an evaluation that wrote details "
        "(--dump-eval-details).",
        beside=("predictions/*/*.json", "summary/*", "configs/*.py"),
        is_told_by_name=False,
    ),
    "swe-bench": Source(
        "reports of SWE-bench",
        _HERE + "swe_bench:is_swe_bench",
        _HERE + "swe_bench:swe_bench_rows",
        files=("results/results.json",),
        beside=("metadata.yaml",),
        takes=("errors",),
        is_told_by_name=False,
        lists_all_items=False,
    ),
    "alpaca-eval": Source(
        "annotations of AlpacaEval",
        _HERE + "alpaca_eval:is_alpaca_eval",
        _HERE + "alpaca_eval:alpaca_eval_rows",
        files=("annotations.json",),
        beside=("model_outputs.json", "*_leaderboard.csv"),
        takes=("metric",),
        is_told_by_name=False,
    ),
    "bfcl": Source(
        "score files of BFCL",
        _HERE + "bfcl:is_bfcl",
        answers=_HERE + "bfcl:bfcl_answers",
        files=("*_score.json",),
        hint="They are in score/<model>/.",
        beside=("*_result.json",),
        takes=(),
    ),
    "evalplus": Source(
        "results of EvalPlus",
        _HERE + "evalplus:is_evalplus",
        _HERE + "evalplus:evalplus_rows",
        files=("*eval_results.json",),
        takes=("metric",),
    ),
    "livecodebench": Source(
        "results of LiveCodeBench",
        _HERE + "live_code_bench:is_live_code_bench",
        _HERE + "live_code_bench:live_code_bench_rows",
        files=("*_eval_all*.json",),
        hint="LiveCodeBench writes them with --evaluate.",
        beside=("*_eval.json",),
        takes=(),
    ),
    "mmlu-pro": Source(
        "outputs of MMLU-Pro's models",
        "",
        answers=_HERE + "mmlu_pro:mmlu_pro_answers",
        files=("model_outputs_*.zip",),
        takes=(),
    ),
    "open-eval": Source(
        "response tables of OpenEval",
        "",
        answers=_HERE + "open_eval:open_eval_answers",
        files=("response/*.parquet",),
        takes=("metric",),
        is_told_by_name=False,
    ),
}
"""By the name that `ReadingSpec.format` and `--as` know them by; the first whose test holds is taken."""


def matches(path: PurePath, patterns: Iterable[str]) -> bool:
    """Whether the end of a path matches one of these patterns."""
    return any(path.match(pattern) for pattern in patterns)


def function(name: str) -> Callable[..., Any]:
    """Import a function that a source names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def source_of_record(record: Mapping[str, Any]) -> str | None:
    """Return the name of the source that an object of a JSON file is a result of; None where there is none."""
    named = ((name, source.is_record) for name, source in SOURCES.items() if source.is_record)
    return next((name for name, test in named if function(test)(record)), None)


def source_of_name(path: PurePath) -> str | None:
    """Return the name of the source that the name of a file tells; None where it tells none."""
    return next((name for name, one in SOURCES.items() if one.is_told_by_name and one.holds(path)), None)


def is_companion(path: PurePath) -> bool:
    """Whether some program writes such a file beside its results."""
    return any(matches(path, source.beside) for source in SOURCES.values())
