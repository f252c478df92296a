"""The programs whose results this package reads, one line each, in the order in which files are tried."""

from collections.abc import Mapping
from typing import Final

from itembank.readers.sources import Source

LOGGED: Final = ("metric", "tasks", "exclude_tasks", "task_names", "ignore_content", "max_response", "errors")
"""Choices that logs of harnesses take which hold several metrics and tasks."""
TRIED: Final = ("max_response", "errors", "allow_mixed_prompts")
"""Choices that trials of agents take."""

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
    "tau2": Source("results of tau2-bench", beside=("simulations/*.json",), takes=TRIED, is_told_by_name=False),
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
        sure=("samples_*_????-??-??T*.json*",),  # EvalPlus writes samples_eval_results.json
        also=("*jsonl*",),
        beside=("results_????-??-??T*.json",),  # others write results_*.json, too
        is_told_by_name=False,
        is_told_by_beside=False,
        takes=(*LOGGED, "allow_mixed_prompts"),
    ),
    "inspect": Source("logs of Inspect", files=("*.eval",), takes=(*LOGGED, "allow_mixed_prompts")),
    "helm": Source(
        "run folders of HELM",
        files=("per_instance_stats.json",),
        hint="HELM writes them into benchmark_output/runs/<suite>/<run>/.",
        beside=(
            *("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "instances.json"),
            "display_*.json",
        ),
        takes=LOGGED,
    ),
    "eee": Source(
        "samples files of Every Eval Ever",
        "every_eval_ever",
        files=("*_samples.jsonl",),
        hint="Aggregates alone cannot be taken apart; the samples of every item are needed.",
        beside=("????????-????-????-????-????????????.json",),
        takes=LOGGED,
    ),
    "evalscope": Source(
        "reviews of EvalScope",
        files=("reviews/*/*.jsonl",),
        hint="EvalScope writes them into outputs/<date>/reviews/.",
        beside=("predictions/*/*.jsonl", "reports/*/*.json", "reports/report.html", "configs/task_config*.yaml"),
        takes=LOGGED,
    ),
    "lighteval": Source(
        "details of lighteval or of the Open LLM Leaderboard v1",
        files=("details_*.parquet",),
        hint="lighteval writes them with --save-details.",
        takes=LOGGED,
    ),
    "opencompass": Source(
        "results of OpenCompass",
        files=("results/*/*.json",),
        hint="Predictions hold no scores: give the folder that holds results/ too, of an evaluation that wrote details "
        "(--dump-eval-details).",
        beside=("predictions/*/*.json", "summary/*", "configs/*.py"),
        takes=LOGGED,
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
        takes=("metric", "errors"),
        is_told_by_name=False,
    ),
    "bfcl": Source(
        "score files of BFCL",
        files=("*_score.json",),
        hint="They are in score/<model>/.",
        beside=(
            *(f"result{end}/*/{deep}*_result.json" for end in ("", "[_-]*") for deep in ("", "*/", "*/*/")),
            "score*/data*.csv",
        ),
    ),
    "evalplus": Source("results of EvalPlus", files=("*eval_results.json",), takes=("metric",)),
    "livecodebench": Source(
        "results of LiveCodeBench",
        "live_code_bench",
        files=("*_eval_all*.json",),
        hint="LiveCodeBench writes them with --evaluate.",
        beside=("*_eval.json",),
    ),
    "mmlu-pro": Source("outputs of MMLU-Pro's models", files=("model_outputs_*.zip",)),
    "open-eval": Source(
        "response tables of OpenEval", files=("response/*.parquet",), takes=("metric",), is_told_by_name=False
    ),
}
"""By the name that `ReadingSpec.format` and `--as` know them by."""
