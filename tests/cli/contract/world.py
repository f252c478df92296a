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
)  # Files that commands make

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
}  # Files of rare choices, for `--session` and `--spec`


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
    items, models = (rows[name].unique(maintain_order=True) for name in ("item_id", "model_id"))
    item, model, response, n = pl.col("item_id"), pl.col("model_id"), pl.col("response"), np.arange(30)
    past, whole = (rows.filter(pl.col("is_new") == flag).drop("is_new") for flag in (False, True))
    new = whole.filter(pl.col("input_tokens") < 40)  # not every item
    alone, flipped = whole.filter(model == models[N_PAST]), past.with_columns(response=1 - response)
    tiny = past.filter(item.str.len_chars() < 7)
    wide = past.pivot("item_id", index="model_id", values="response")
    marks = past.filter(model == "m1").select("model_id", "item_id", response=response * 1.0, judge=pl.lit("mild"))
    strict = marks.with_columns(response=response * 0.8, judge=pl.lit("strict"))
    gaps = past.sample(fraction=0.9, seed=1).with_columns(
        scenario=pl.when(item == "law/2").then(None).otherwise("scenario")
    )
    # models of the bank on items that are new to it
    grown = past.with_columns(item_id=pl.lit("late/") + item.str.split("/").list.last(), scenario=pl.lit("law"))
    choice = pl.when(response == 1).then(pl.lit("A")).otherwise(pl.lit("B"))
    known = pl.DataFrame({"item_id": items, "weight": 1.0 + n % 4, "n_options": 2 + n % 4})
    logged = [f"{task}/{doc}" for task in TASKS for doc in range(6)]
    run_models = [*(f"org/l{j}" for j in range(6)), *harness_world.MODELS]
    sizes = {"size": np.arange(16.0), "number": np.arange(16.0)[::-1]}
    for name, frame in {
        "past": past,
        "whole": whole,
        "alone": alone,
        "another": whole.filter(model == models[N_PAST + 1]),
        "one": new,
        "more": new.with_columns(item.replace("math/0", "math/999")),
        "new-nameless": new.filter(model == new["model_id"][0]).drop("model_id"),
        "new": pl.concat([new.with_columns(response=1 - response), new]),
        "lost": _lost(new, ["math/0", "code/1", "law/2"]),
        "alone-lost": _lost(alone, alone["item_id"].head(6).to_list()),
        "probabilities": past.with_columns(response * 0.5 + 0.2 + 0.001 * pl.col("output_tokens")),
        "counts": past.with_columns(n_trials=4, response=pl.col("twice") / 2),
        "judged": pl.concat([marks, strict]),
        "tiny": tiny,
        "levels": tiny.with_columns(response=pl.col("twice") / 2),
        "nameless": past.filter(model == past["model_id"][0]).drop("model_id"),
        "gaps": gaps,
        "empty": past.with_columns(response=pl.when(model == "m0").then(None).otherwise("response")),
        "flipped": flipped,
        "repeated": pl.concat([past, flipped]),
        "wide": wide,
        "items": known,
        "parameters": known.select("item_id", difficulty=pl.int_range(30) / 15 - 1),
        "other-items": known.select("item_id", "weight", pl.col("n_options") * 2),
        "halves": known.select("item_id", scenario=pl.Series(n // 15 + 10)),
        "thirds": known.select("item_id", scenario=pl.Series(n // 10 + 10)),
        "log-items": pl.DataFrame({"item_id": logged, "n_options": [2] * 12}),
        "log-models": pl.DataFrame({"model_id": run_models, "size": np.arange(8)}),
        "models": pl.DataFrame({"model_id": models, "family": ["a", "b"] * 8, **sizes}),
        "late": grown.filter(item.str.len_chars() == 6),
        "choices": past.select("model_id", "item_id", choice=choice),
    }.items():
        frame.write_csv(folder / f"{name}.csv")
    subjects = wide.sort("model_id").to_dicts()
    lines = [json.dumps({"subject_id": row.pop("model_id"), "responses": row}) for row in subjects]
    short = json.dumps({"subject_id": "m0", "responses": {"math/0": 1, "code/1": 0}})
    empty = json.dumps({"subject_id": "m99", "responses": {"math/0": None}})
    for name, some in (("py-irt", lines), ("one", [short]), ("gaps", [*lines[1:], short]), ("empty", [*lines, empty])):
        (folder / f"{name}.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
    write_tiny_benchmarks(folder / "tinyBenchmarks.pkl")
    (folder / "include.txt").write_text("math/0\nlaw/2\nlaw/5\n", encoding="utf-8")
    (folder / "exclude.txt").write_text("\n".join(items[:16]), encoding="utf-8")


def _lost(frame, items):
    """Answers to these items are lost."""
    is_lost = pl.col("item_id").is_in(items)
    error = pl.when(is_lost).then(pl.lit("timeout"))
    return frame.with_columns(response=pl.when(is_lost).then(None).otherwise("response"), error=error)


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
    asked = {f"gen_args_{k}": {"arg_0": "Question: ...", "arg_1": text} for k, text in enumerate((" A", " ABCD"))}
    texts = [[f"{value:.4f}", "False"] for value in values]
    metrics = {"acc": float(values[0] > values[1]), "acc_norm": float(values[0] > values[1] / 4.0)}
    logged = {"target": "0", "arguments": asked, "resps": [[one] for one in texts], "filtered_resps": texts}
    return sample(doc_id, filter_name=filter_name, **metrics, **logged)


EVERY, KEPT = {"classifiers": (8, 40), "bytelms": (12, 10), "bytelms-samples": (6, 40)}, ("copying", "reversal")
"""Of built-in data, every how many-th model and item stays; of the scenarios of the language models, these."""


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
