"""A tiny made-up world: every kind of file that commands read, made once."""

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl

from itembank.responses.response_files import write_responses
from tests.auditing.panels import make_faulty
from tests.cli.contract import foreign, harness_world, inspect_world, scaling_world
from tests.readers.logs import sample, write_run
from tests.readers.tiny_benchmarks import write_tiny_benchmarks
from tests.studies import simulated as studied
from tests.studies.files import PREDICTION, STUDY, write_toml
from tests.studies.prediction import simulated as predicted

N_PAST, N_NEW = 14, 2
SCENARIOS = ("math", "code", "law")
TASKS = ("arc", "quiz")

COMMANDS = (
    "import past.csv -o past.parquet",
    *(f"import {name}.csv -o {name}.parquet --items items.csv --models models.csv" for name in ("flipped", "tiny")),
    "import past.csv -o past-known.parquet --items items.csv --models models.csv",
    "import past.csv whole.csv -o all-known.parquet --models models.csv",
    "calibrate past-known.parquet -o bank --method map --dims 1",
    "calibrate past-known.parquet -o bank-2 --dims 2 --no-folds",
    "calibrate counts.csv -o counts-bank --method map --dims 1 --no-folds",
    "import one.csv -o new.parquet",
    "calibrate logs -o logs-bank --method map --dims 1 --no-folds",
    "select bank -n 6 -o six.json",  # of which `info` then says how good they are, whatever else is tried
    "select bank -n 9 --method v-optimal -o selection.json",
    "select bank -n 12 --method random -o random.json",
    "select bank -n 9 --stages 2 --method v-optimal -o stage1.json",
    "select bank -n 12 --stages 2 --method v-optimal -o other-stage1.json",
    "bank note bank text --name quiz -o named-bank",
    "bank retire named-bank math/0 code/1 --reason key -o retired-bank",
    "session start bank-2 -o run.jsonl --model-id new --max-items 4 --session fast.toml",
    "session start bank-2 -o asked.jsonl --model-id new --max-items 4 --session fast.toml",
    "session ask asked.jsonl -n 2",
    "session start bank-2 -o answered.jsonl --model-id new --max-items 4 --session fast.toml",
    "session tell answered.jsonl math/0 --response 1 --cost seconds=4",
    "session tell answered.jsonl code/1 --response 0 --cost seconds=2",
    "gate start alone.csv --margin 0.3 -o gate",
    *scaling_world.COMMANDS,
    "study run study.toml -o study --jobs 1",
    "study run prediction.toml -o prediction --jobs 1",
)
"""Files that commands make."""

_FAST = 'interval = "model-based"\n'
_PLAIN = '[[laws]]\nname = "irsl"\nshape = "line"\npooling = "none"\n'
RARE = {
    "fast": _FAST,
    "d-optimal": f'{_FAST}criterion = "d-optimal"\n',
    "random": f'{_FAST}criterion = "random"\n',
    "sure-soon": f"{_FAST}stopping.decision = {{threshold = 0.6, confidence = 0.8}}\n",
    "rare": f'{_FAST}criterion = "fisher"\nconstraints.at_most = 1\n',
    "design": 'criterion = "d-optimal"\nper_cost = true\n',
    "random-design": 'criterion = "random"\n',
    "other-design": "at_least.math = 6\n",
    "fitted-law": "n_checked = 0\n" + _PLAIN,
    "plain-law": _PLAIN,
    "two-sizes": "n_checked = 2\nfewest_sizes = 2\n" + _PLAIN,
    "one-size": "n_checked = 1\nfewest_sizes = 2\n" + _PLAIN,
    "few-recipes": 'n_checked = 0\ncalibration_recipes = ["recipe-0", "recipe-1"]\n',
    "calibrating": 'n_checked = 0\ncalibration_recipes = ["recipe-0", "recipe-1"]\n'
    '[[laws]]\nname = "irsl"\nshape = "line"\nfamily = "bernoulli"\n',
    "other-law": 'n_checked = 0\ncalibration_recipes = ["recipe-2"]\n'
    '[[laws]]\nname = "irsl"\nshape = "bent"\nfamily = "beta"\n',
    "bent-law": 'n_checked = 0\n[[laws]]\nname = "irsl"\nshape = "bent"\ngap = "none"\n',
    "two-folds": "n_folds = 2\nis_forced = true\n",
    "three-folds": "n_folds = 3\nis_forced = true\n",
    "forced": "is_forced = true\n",
    "few-easy": "easy_fraction = 0.3\nis_forced = true\n",
    "model-based": 'interval = "model-based"\n',
    "by-errors": 'interval = "calibrated"\n',
    "unsampled": 'interval = "model-based"\ninclude_unsampled = true\n',
    "without-rare": 'interval = "model-based"\nminimum_pass_rate = 0.3\n',
    "reading": "prefix_scenario = true\n",
    "errors": 'errors = "missing"\n',
    "guessing": "known_guessing = true\n",
}
"""Files of rare choices, for `--session` and `--spec`."""


def make_world(folder, run):
    """Write every file into a folder; `run` runs a command line in it."""
    _tables(folder)
    _logs(folder)
    _logs(folder, "gaps", n_missing=1)
    for tools in (foreign, harness_world, inspect_world, scaling_world):
        tools.make_files(folder)
    for name, content in RARE.items():
        (folder / f"{name}.toml").write_text(content)
    write_responses(studied.make_responses(n_models=20, n_items=24, n_scenarios=2), folder / "study-responses.parquet")
    write_responses(predicted.make_responses(n_models=16, n_per_task=10), folder / "prediction-responses.parquet")
    write_responses(make_faulty(n_models=40, n_items=40), folder / "faulty.parquet")
    (folder / "old.png").write_bytes(b"")
    study = {"interval": "model-based", "data": {"responses": "study-responses.parquet"}}
    write_toml(folder / "study.toml", STUDY | study)
    prediction = {"smallest_task": 8, "data": {"responses": "prediction-responses.parquet"}}
    write_toml(folder / "prediction.toml", PREDICTION | prediction)
    for words in COMMANDS:
        run(words)


def _tables(folder):
    """Results of past and new models as tables of every layout, and what is known of models and items."""
    rows = _answers()
    items = rows["item_id"].unique(maintain_order=True)
    past, new = (rows.filter(pl.col("is_new") == flag).drop("is_new") for flag in (False, True))
    past.write_csv(folder / "past.csv")
    new.write_csv(folder / "whole.csv")
    for name, model in zip(("alone", "another"), new["model_id"].unique(maintain_order=True), strict=True):
        new.filter(pl.col("model_id") == model).write_csv(folder / f"{name}.csv")
    new = new.filter(pl.col("input_tokens") < 40)  # not every item
    new.write_csv(folder / "one.csv")
    unknown = new.with_columns(pl.col("item_id").replace("math/0", "math/999"))
    unknown.write_csv(folder / "more.csv")
    new.filter(model_id=new["model_id"][0]).drop("model_id").write_csv(folder / "new-nameless.csv")
    pl.concat([new.with_columns(response=1 - pl.col("response")), new]).write_csv(folder / "new.csv")
    is_lost = pl.col("item_id").is_in(["math/0", "code/1", "law/2"])
    new.with_columns(
        response=pl.when(is_lost).then(None).otherwise("response"), error=pl.when(is_lost).then(pl.lit("timeout"))
    ).write_csv(folder / "lost.csv")
    one = pl.read_csv(folder / "alone.csv")
    is_lost = pl.col("item_id").is_in(one["item_id"].head(6).to_list())
    one.with_columns(
        response=pl.when(is_lost).then(None).otherwise("response"), error=pl.when(is_lost).then(pl.lit("timeout"))
    ).write_csv(folder / "alone-lost.csv")
    past.with_columns(pl.col("response") * 0.5 + 0.2 + 0.001 * pl.col("output_tokens")).write_csv(
        folder / "probabilities.csv"
    )
    past.with_columns(n_trials=4, response=pl.col("twice") / 2).write_csv(folder / "counts.csv")
    marks = past.filter(pl.col("model_id") == "m1").select("model_id", "item_id", "response")
    strict = marks.with_columns(response=pl.col("response") * 0.8, judge=pl.lit("strict"))
    pl.concat([marks.with_columns(pl.col("response") * 1.0, judge=pl.lit("mild")), strict]).write_csv(
        folder / "judged.csv"
    )
    tiny = past.filter(pl.col("item_id").str.len_chars() < 7)
    tiny.write_csv(folder / "tiny.csv")
    tiny.with_columns(response=pl.col("twice") / 2).write_csv(folder / "levels.csv")
    past.drop("model_id").filter(past["model_id"] == past["model_id"][0]).write_csv(folder / "nameless.csv")
    kept = past.sample(fraction=0.9, seed=1).with_columns(
        scenario=pl.when(pl.col("item_id") == "law/2").then(None).otherwise("scenario")
    )
    kept.write_csv(folder / "gaps.csv")
    past.with_columns(response=pl.when(pl.col("model_id") == "m0").then(None).otherwise("response")).write_csv(
        folder / "empty.csv"
    )
    flipped = past.with_columns(response=1 - pl.col("response"))
    flipped.write_csv(folder / "flipped.csv")
    pl.concat([past, flipped]).write_csv(folder / "repeated.csv")
    wide = past.pivot("item_id", index="model_id", values="response")
    wide.write_csv(folder / "wide.csv")
    lines = [
        json.dumps({"subject_id": row.pop("model_id"), "responses": row}) for row in wide.sort("model_id").to_dicts()
    ]
    short = json.dumps({"subject_id": "m0", "responses": {"math/0": 1, "code/1": 0}})
    empty = json.dumps({"subject_id": "m99", "responses": {"math/0": None}})
    for name, some in (("py-irt", lines), ("one", [short]), ("gaps", [*lines[1:], short]), ("empty", [*lines, empty])):
        (folder / f"{name}.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
    known = pl.DataFrame(
        {"item_id": items, "weight": 1.0 + np.arange(30) % 4, "n_options": 2 + np.arange(30) % 4, "n": np.arange(30)}
    )
    known.drop("n").write_csv(folder / "items.csv")
    known.select("item_id", difficulty=pl.col("n") / 15 - 1).write_csv(folder / "parameters.csv")
    write_tiny_benchmarks(folder / "tinyBenchmarks.pkl")
    known.select("item_id", "weight", pl.col("n_options") * 2).write_csv(folder / "other-items.csv")
    known.select("item_id", scenario=pl.col("n") // 15 + 10).write_csv(folder / "halves.csv")
    known.select("item_id", scenario=pl.col("n") // 10 + 10).write_csv(folder / "thirds.csv")
    logged = [f"{task}/{doc}" for task in TASKS for doc in range(6)]
    pl.DataFrame({"item_id": logged, "n_options": [2] * 12}).write_csv(folder / "log-items.csv")
    run_models = [*(f"org/l{j}" for j in range(6)), *harness_world.MODELS]
    pl.DataFrame({"model_id": run_models, "size": np.arange(8)}).write_csv(folder / "log-models.csv")
    models = rows["model_id"].unique(maintain_order=True)
    pl.DataFrame(
        {"model_id": models, "family": ["a", "b"] * 8, "size": np.arange(16.0), "number": np.arange(16.0)[::-1]}
    ).write_csv(folder / "models.csv")
    (folder / "include.txt").write_text("math/0\nlaw/2\nlaw/5\n", encoding="utf-8")
    # models of the bank on items that are new to it
    grown = past.with_columns(
        item_id=pl.lit("late/") + pl.col("item_id").str.split("/").list.last(), scenario=pl.lit("law")
    )
    grown.filter(pl.col("item_id").str.len_chars() == 6).write_csv(folder / "late.csv")
    answered = past.select("model_id", "item_id", choice=pl.when(pl.col("response") == 1).then(pl.lit("A")))
    answered.with_columns(pl.col("choice").fill_null("B")).write_csv(folder / "choices.csv")
    (folder / "exclude.txt").write_text("\n".join(items[:16]), encoding="utf-8")


def scenario_of(item):
    return SCENARIOS[item % 3] if item < 24 else "math"


def _answers():
    """One row a model and item: right or wrong by an ability of each scenario, costs, other columns of responses."""
    rng = np.random.default_rng(11)
    n_models, n_items = N_PAST + N_NEW, 30
    ability = rng.normal(size=(n_models, 1)) + 0.9 * rng.normal(size=(n_models, 3))
    logit = 1.3 * (ability[:, [SCENARIOS.index(scenario_of(j)) for j in range(n_items)]] - rng.normal(size=n_items))
    tokens = 5.0 * np.exp(rng.uniform(0.0, 4.0, n_items))
    right = rng.random((2, n_models, n_items)) < 1.0 / (1.0 + np.exp(-logit))
    return pl.DataFrame(
        {
            "model_id": f"m{i}",
            "item_id": f"{scenario_of(j)}/{j}",
            "scenario": scenario_of(j),
            "subscenario": f"part {j % 2}",
            "response": int(right[0, i, j]),
            "other": int(right[1, i, j]),
            "twice": int(right[:, i, j].sum()),
            "input_tokens": 20 + 7 * (j % 5),
            "output_tokens": int(tokens[j] + i),
            "seconds": float(1 + (7 * j) % 30),
            "latency": float(1 + (i + j) % 7),
            "is_new": i >= N_PAST,
        }
        for i, j in itertools.product(range(n_models), range(n_items))
    )


def _logs(folder, name="logs", n_missing=0):
    """Logs of lm-evaluation-harness: two tasks of two filters, answer options with their log-likelihoods."""
    rng = np.random.default_rng(5)
    for model in range(6):
        docs = range(6 - n_missing * (model == 0))
        tasks = {task: [_sample(rng, name, doc) for name in ("none", "strict") for doc in docs] for task in TASKS}
        write_run(
            folder / name, f"org/l{model}", tasks, filters=("none", "strict"), groups={"group": list(TASKS)},
            arguments=f"pretrained=org/l{model},revision=v2",
        )  # fmt: skip


def _sample(rng, filter_name, doc_id):
    """One item of two answer options of one and of four characters, the first of them right."""
    values = -rng.exponential(2.0, 2)
    return sample(
        doc_id,
        filter_name=filter_name,
        acc=float(values[0] > values[1]),
        acc_norm=float(values[0] > values[1] / 4.0),
        target="0",
        arguments={
            f"gen_args_{k}": {"arg_0": "Question: ...", "arg_1": text} for k, text in enumerate((" A", " ABCD"))
        },
        resps=[[[f"{value:.4f}", "False"]] for value in values],
        filtered_resps=[[f"{value:.4f}", "False"] for value in values],
    )


EVERY = {"classifiers": (8, 40), "bytelms": (12, 10), "bytelms-samples": (6, 40)}
"""Of built-in data, every how many-th model and item stays."""


KEPT = ("copying", "reversal")
"""Of the scenarios of the language models, these stay."""


def small(name, responses):
    models, items = (np.arange(0, n, step) for n, step in zip(responses.responses.shape, EVERY[name], strict=True))
    if name == "bytelms":
        items = np.flatnonzero(responses.items["scenario"].is_in(KEPT).to_numpy())[:: EVERY[name][1]]
    return responses.take(models=models, items=items)


def written_plainly(spec, tables, path, *, title, note):
    """Write what a picture shows in place of the picture, which takes half a second."""
    columns = {name: {one: list(values) for one, values in table.items()} for name, table in tables.items()}
    Path(path).write_text(repr((spec, columns, title, note)), encoding="utf-8")
    return Path(path)
