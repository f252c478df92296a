"""The table of public sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from itembank.errors import ParameterError, did_you_mean
from itembank.readers.sources import SOURCES as READERS

GIGABYTE = 10**9


@dataclass(frozen=True, slots=True)
class Archive:
    """A compressed archive of a repository, of which only some files are kept."""

    url: str
    patterns: tuple[str, ...]  # Names to keep, below the archive's one folder; ``*`` stands for any letters, ``/`` too
    most_bytes: int = 4 * GIGABYTE  # Of the archive, and of what is kept

    @property
    def version(self) -> str:
        """Which state of the repository is fetched: a branch or tag as it stands, or a commit."""
        return self.url.partition("/tar.gz/")[2]


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of data-set repositories of the Hugging Face Hub."""

    repository: str  # Its name; ``{model}`` stands for a model's id with ``__`` for ``/``: one repository a model
    patterns: tuple[str, ...]  # Names of the files to fetch
    most_bytes: int = 20 * GIGABYTE  # Of all files together

    @property
    def version(self) -> str:
        """Which state of the repository is fetched."""
        return "refs/heads/main"

    @property
    def is_one_a_model(self) -> bool:
        """Whether each model has a repository of its own."""
        return "{model}" in self.repository


@dataclass(frozen=True, slots=True)
class PublicSource:
    """A public store of per-item results."""

    name: str
    holds: str
    licence: str  # As the store states it
    address: str
    layout: str  # What a folder of its files looks like
    reader: str  # The program whose results it holds: a name in `itembank.readers.sources.SOURCES`
    n_models: int | None = None  # About how many it held when this was written; None where it has no fixed number
    n_items: int | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)  # What the reader is told unless the caller says otherwise
    # ``module:function`` that gives the scores that the store itself states, ``folder -> (model_id, scenario, score)``;
    # empty where it states none.
    published: str = ""
    checked: str = "-"  # What those scores are, for the list
    tolerance: float = 1e-6  # How far a score may stand from the published one: their rounding
    download: Archive | HubFiles | None = None  # Archive, HubFiles

    @property
    def takes(self) -> tuple[str, ...]:
        """Fields of `ReadingSpec` beyond those of all results that have a say."""
        return READERS[self.reader].takes


_READERS = "itembank.readers"
NOT_STATED = "not stated"
FIRST_LEADERBOARD_METRICS = ("*arc*=acc_norm", "*hellaswag*=acc_norm", "*truthfulqa*=mc2", "acc")
"""What Open LLM Leaderboard v1 takes, by task."""
LEADERBOARD_METRICS = ("acc_norm", "exact_match", "prompt_level_strict_acc", "acc")
"""What Open LLM Leaderboard v2 takes of a task, in order of preference."""

SOURCES: Mapping[str, PublicSource] = {
    source.name: source
    for source in (
        PublicSource(
            "swebench-verified",
            "agents that resolve issues of Python projects",
            NOT_STATED,
            "https://github.com/SWE-bench/experiments",
            "evaluation/verified/<date>_<name>/results/results.json",
            "swe-bench",
            n_models=134,
            n_items=500,
            choices={"errors": "wrong"},  # as the leaderboard, which the scores are checked against
            published=f"{_READERS}.swe_bench:swe_bench_published",
            checked="resolved instances of leaderboards.json, where it is there",
            tolerance=5e-4,
            download=Archive(
                "https://codeload.github.com/SWE-bench/experiments/tar.gz/refs/heads/main",
                ("evaluation/verified/*/results/results.json", "evaluation/verified/*/metadata.yaml"),
            ),
        ),
        PublicSource(
            "open-llm-leaderboard-v1",
            "ARC, HellaSwag, MMLU, TruthfulQA, Winogrande, GSM8K",
            NOT_STATED,
            "https://huggingface.co/open-llm-leaderboard-old",
            "details_<org>__<model>/<date>/details_harness|<task>|<shots>_<date>.parquet",
            "lighteval",
            choices={"metric": FIRST_LEADERBOARD_METRICS},
            n_models=6000,
            n_items=28_632,
            download=HubFiles("open-llm-leaderboard-old/details_{model}", ("**/details_harness*.parquet",)),
        ),
        PublicSource(
            "open-llm-leaderboard-v2",
            "BBH, GPQA, IFEval, MATH, MMLU-Pro, MuSR",
            NOT_STATED,
            "https://huggingface.co/open-llm-leaderboard",
            "<org>__<model>-details/<org>__<model>/samples_<task>_<date>.json",
            "lm-eval",
            n_models=4500,
            n_items=21_606,
            choices={"metric": LEADERBOARD_METRICS},
            published=f"{_READERS}.lm_eval:lm_eval_published",
            checked="scores of results_<date>.json",
            download=HubFiles("open-llm-leaderboard/{model}-details", ("**/samples_*", "**/results_*")),
        ),
        PublicSource(
            "alpaca-eval",
            "preference of a judge over a baseline's answers",
            "CC BY-NC 4.0",
            "https://github.com/tatsu-lab/alpaca_eval",
            "results/<model>/weighted_alpaca_eval_gpt4_turbo/annotations.json",
            "alpaca-eval",
            n_models=223,
            n_items=805,
            published=f"{_READERS}.alpaca_eval:alpaca_eval_published",
            checked="win rates of the leaderboard's table",
            tolerance=1e-6,
            download=Archive(
                "https://codeload.github.com/tatsu-lab/alpaca_eval/tar.gz/refs/heads/main",
                (
                    "results/*/weighted_alpaca_eval_gpt4_turbo/annotations.json",
                    "*/weighted_alpaca_eval_gpt4_turbo_leaderboard.csv",
                ),
                most_bytes=8 * GIGABYTE,
            ),
        ),
        PublicSource(
            "bfcl",
            "function calls, by category",
            "not stated (BFCL: Apache-2.0)",
            "https://github.com/HuanzhiMao/BFCL-Result",
            "<date>/score/<model>/<category>_score.json, <date>/result/<model>/<category>_result.json",
            "bfcl",
            n_models=71,
            n_items=1700,
            published=f"{_READERS}.bfcl:bfcl_published",
            checked="accuracies of the score files",
            download=Archive(
                "https://codeload.github.com/HuanzhiMao/BFCL-Result/tar.gz/refs/heads/main",
                ("2024-08-11/*_score.json", "2024-08-11/*_result.json"),
            ),
        ),
        PublicSource(
            "evalplus",
            "HumanEval+ and MBPP+, results that you made",
            "Apache-2.0",
            "https://github.com/evalplus/evalplus",
            "<model>_eval_results.json",
            "evalplus",
            n_items=542,
            published=f"{_READERS}.evalplus:evalplus_published",
            checked="pass@1 of the same files",
        ),
        PublicSource(
            "livecodebench",
            "programming contests, by date",
            NOT_STATED,
            "https://github.com/LiveCodeBench/submissions",
            "<model>/Scenario.codegeneration_<n>_<temperature>_eval_all.json",
            "livecodebench",
            n_models=73,
            n_items=1055,
            published=f"{_READERS}.live_code_bench:live_code_bench_published",
            checked="pass@1 of *_eval.json",
            download=Archive(
                "https://codeload.github.com/LiveCodeBench/submissions/tar.gz/refs/heads/main",
                ("*_eval_all*.json", "*_eval.json"),
                most_bytes=20 * GIGABYTE,
            ),
        ),
        PublicSource(
            "helm",
            "runs of HELM's leaderboards",
            NOT_STATED,
            "https://crfm.stanford.edu/helm (bucket crfm-helm-public)",
            "runs/<suite>/<run>/per_instance_stats.json",
            "helm",
        ),
        PublicSource(
            "every-eval-ever",
            "results of many evaluations in one schema",
            "of each result; see its card",
            "https://huggingface.co/datasets/evaleval/EEE_datastore",
            "data/<benchmark>/<developer>/<model>/<uuid>.json, <uuid>_samples.jsonl",
            "eee",
            download=HubFiles("evaleval/EEE_datastore", ("data/**/*_samples.jsonl", "data/**/*.json")),
        ),
    )
}


def public_source(name: str) -> PublicSource:
    """Return a source by its name."""
    if name not in SOURCES:
        raise ParameterError(
            f"a public source must be one of {', '.join(SOURCES)}, got {name!r}.{did_you_mean(name, SOURCES)}"
        )
    return SOURCES[name]
