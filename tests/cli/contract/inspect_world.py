"""Logs of Inspect for the tests of its commands."""

import itertools

import numpy as np
import polars as pl

from tests.readers.inspect_writing import header, sample, write_eval

TASKS = ("arc", "quiz")


def make_files(folder):
    """Logs of Inspect: two tasks of two scorers; in another folder one that nobody scored, and epochs."""
    rng = np.random.default_rng(6)
    for model, task in itertools.product(range(4), TASKS):
        about = header(task, f"lab/l{model}", model_args={"revision": "v2"}, n_items=6)
        samples = [_scored(rng, task, number) for number in range(6)]
        write_eval(folder / "inspect" / f"{model}-{task}.eval", samples, about)
        changed = [{**one, "input": f"{one['input']} {model}"} for one in samples]
        write_eval(folder / "inspect-changed" / f"{model}-{task}.eval", changed, about)
    write_eval(folder / "inspect-gaps" / "raw.eval", [sample(1, None)], header("raw", n_items=1))
    attempts = [sample(number, value, epoch=epoch) for number in (1, 2) for epoch, value in ((1, "C"), (2, "I"))]
    write_eval(folder / "inspect-gaps" / "epochs.eval", attempts, header("epochs", n_items=2))
    gaps = [sample(1, "C"), sample(2, None)]
    write_eval(folder / "inspect-empty" / "gaps.eval", gaps, header("quiz", n_items=2))
    write_eval(folder / "inspect-partly" / "gaps.eval", gaps, header("quiz", n_items=2))
    whole = [sample(1, "I"), sample(2, "C")]
    write_eval(folder / "inspect-partly" / "whole.eval", whole, header("quiz", "lab/whole", n_items=2))

    items = [f"{task}/{task}{number}" for task in TASKS for number in range(6)]
    pl.DataFrame({"item_id": items, "n_options": [2] * 12}).write_csv(folder / "inspect-items.csv")
    models = [f"lab/l{model}" for model in range(4)]
    pl.DataFrame({"model_id": models, "size": range(4)}).write_csv(folder / "inspect-models.csv")


def _scored(rng, task, number):
    values = {"match": "CI"[int(rng.random() < 0.4)], "graded": round(float(rng.random()), 2)}
    return {**sample(f"{task}{number}"), "scores": {name: {"value": value} for name, value in values.items()}}
