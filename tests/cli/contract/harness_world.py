"""Logs of every harness: two models, two tasks of two metrics, six items."""

import numpy as np

from tests.readers import test_evalscope, test_every_eval_ever, test_helm, test_lighteval, test_opencompass

MODELS = ("l0", "l1")
TASKS = ("arc", "quiz")
N_ITEMS = 6


def make_files(folder):
    """Write the logs of each harness into a folder of its name, one folder a model beneath."""
    rng = np.random.default_rng(5)
    for model in MODELS:
        for number, task in enumerate(TASKS):
            scores = [{"acc": float(a), "acc_norm": float(b)} for a, b in rng.integers(0, 2, (N_ITEMS, 2))]
            _helm(folder / "helm" / model, model, task, scores)
            _evalscope(folder / "evalscope" / model, model, task, scores)
            _every_eval_ever(folder / "eee" / model, model, task, number, scores)
            _lighteval(folder / "lighteval" / model, model, task, scores)
            details = {str(doc): {"prompt": doc, **score} for doc, score in enumerate(scores)}
            test_opencompass.write(folder / "opencompass" / model, "results", model, task, {"details": details})


def _helm(folder, model, task, scores):
    entries = [test_helm.entry(str(doc), **score) for doc, score in enumerate(scores)]
    test_helm.write_run(folder, f"{task}:model={model}", entries, model=model)


def _evalscope(folder, model, task, scores):
    reviews = [test_evalscope.review(doc, score) for doc, score in enumerate(scores)]
    test_evalscope.write(folder, "reviews", model, task, reviews)


def _every_eval_ever(folder, model, task, number, scores):
    lines = [
        test_every_eval_ever.line(str(doc), value, model=model, evaluation=task, result=name)
        for doc, score in enumerate(scores)
        for name, value in score.items()
    ]
    test_every_eval_ever.write(folder, number, lines, metrics={"acc": "acc", "acc_norm": "acc_norm"})


def _lighteval(folder, model, task, scores):
    columns = {"example": [f"{task} {doc}" for doc in range(N_ITEMS)], "metrics": scores}
    test_lighteval.write(folder / "details" / model / test_lighteval.DATE, task, columns)
