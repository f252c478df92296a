"""The table of public stores of results."""

from itembank.errors import ParameterError, did_you_mean
from itembank_harnesses.public.sources import GIGABYTE, Archive, HubFiles, PublicSource

NOT_STATED = "not stated"
FIRST_LEADERBOARD_METRICS = ("*arc*=acc_norm", "*hellaswag*=acc_norm", "*truthfulqa*=mc2", "acc")
"""What Open LLM Leaderboard v1 takes, by task."""
LEADERBOARD_METRICS = ("acc_norm", "exact_match", "prompt_level_strict_acc", "acc")
"""What Open LLM Leaderboard v2 takes of a task, in order of preference."""

SOURCES: dict[str, PublicSource] = {
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
        PublicSource(
            "mmlu-pro",
            "MMLU-Pro's 14 categories, with chains of thought",
            "Apache-2.0",
            "https://github.com/TIGER-AI-Lab/MMLU-Pro",
            "eval_results/model_outputs_<model>_<n>shots.zip",
            "mmlu-pro",
            n_models=48,
            n_items=12_032,
            download=Archive(
                "https://codeload.github.com/TIGER-AI-Lab/MMLU-Pro/tar.gz/refs/heads/main", ("eval_results/*.zip",)
            ),
        ),
        PublicSource(
            "wild",
            "27 benchmarks, run by Inspect: MMLU, MMLU-Pro, GSM8K, ARC, IFEval, ...",
            "Apache-2.0",
            "https://huggingface.co/datasets/kensho/WILD",
            "data.parquet (model, task, subtask, item_id, score, input_tokens, output_tokens)",
            "long",
            n_models=65,
            n_items=109_564,
            choices={
                "columns": {"model_id": "model", "scenario": "task", "subscenario": "subtask", "response": "score"},
                "prefix_scenario": True,
            },
            download=HubFiles("kensho/WILD", ("data*.parquet",)),
        ),
        PublicSource(
            "measurement-db",
            "some 66 benchmarks in one schema, a file each",
            "of each benchmark; see benchmarks.parquet",
            "https://huggingface.co/datasets/aims-foundations/measurement-db",
            "<benchmark>.parquet (subject_id, item_id, benchmark_id, trial, test_condition, response)",
            "long",
            choices={"columns": {"model_id": "subject_id", "scenario": "benchmark_id", "epoch": "trial"}},
            download=HubFiles("aims-foundations/measurement-db", ("[!_]*.parquet",)),
        ),
        PublicSource(
            "openeval",
            "results of many benchmarks by the item",
            "CC BY-NC 4.0",
            "https://huggingface.co/datasets/human-centered-eval/OpenEval",
            "response/<benchmark>-<part>-of-<parts>.parquet (response_id, model, scores)",
            "open-eval",
            choices={"repeats": "mean"},
            download=HubFiles("human-centered-eval/OpenEval", ("response/*.parquet",)),
        ),
        PublicSource(
            "irsl",
            "2,560 samples a question of 12 models",
            NOT_STATED,
            "https://huggingface.co/datasets/stair-lab/irsl_testtime_resmat2_responses",
            "<model>_<benchmark>.parquet (question_idx, scores: a list)",
            "long",
            n_models=12,
            choices={"columns": {"item_id": "question_idx", "response": "scores"}, "repeats": "count"},
            download=HubFiles("stair-lab/irsl_testtime_resmat2_responses", ("*.parquet",)),
        ),
    )
}


def public_source(name: str | PublicSource) -> PublicSource:
    """Return a source by its name, or itself."""
    if isinstance(name, PublicSource):
        return name
    if name not in SOURCES:
        one_of = f"a public source must be one of {', '.join(SOURCES)}, got {name!r}."
        raise ParameterError(one_of + did_you_mean(name, SOURCES))
    return SOURCES[name]
