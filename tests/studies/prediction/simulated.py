import numpy as np
import polars as pl

from itembank.responses.responses import ResponseMatrix
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.study_specs import CalibrationChoice

TWO_PL = CalibrationChoice("map", n_dims=1, item_model="2pl", options={"tolerance": 1e-5})
MIRT = CalibrationChoice("map", n_dims=2, item_model="mirt", options={"tolerance": 1e-4})


def make_responses(*, n_models=24, n_tasks=6, n_per_task=24, seed=0, slope=1.5, missing=0.0, kind="binary"):
    """Two abilities, of which tasks ask for more or less; costs differ tenfold by task.

    Responses are right or wrong, or a 'probability' drawn around the chance of being right, or a 'count' of right
    answers in one to eight trials.
    """
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_per_task)
    angle = np.linspace(0.0, 0.5 * np.pi, n_tasks)[task]
    ability = rng.normal(size=(n_models, 2))
    logit = slope * (ability @ np.array([np.cos(angle), np.sin(angle)]) - rng.normal(size=task.size))
    chance, n_trials = 1.0 / (1.0 + np.exp(-logit)), None
    if kind == "binary":
        responses = (rng.random(logit.shape) < chance).astype(float)
    elif kind == "probability":
        responses = rng.beta(20.0 * chance, 20.0 * (1.0 - chance))
    else:
        n_trials = rng.integers(1, 9, size=logit.shape)
        responses = rng.binomial(n_trials, chance) / n_trials
    responses[rng.random(logit.shape) < missing] = np.nan
    ids = {"item_id": [f"item-{j}" for j in range(task.size)], "scenario": ["all"] * task.size}
    seen = {"mean_response": responses.mean(axis=0)}  # what no assessor may see
    items = pl.DataFrame({**ids, "subscenario": [f"task-{j}" for j in task], **seen})
    cost = (1.0 + 9.0 * rng.random(task.size)) * np.exp(0.2 * rng.normal(size=logit.shape))
    costs = {"output_tokens": cost, "input_tokens": 2.0 * cost}
    return ResponseMatrix.create(responses, items=items, n_trials=n_trials, costs=costs)


def make_spec(*assessors, **changes):
    """A study that takes a fraction of a second."""
    used = {name for one in assessors for name in (one.predictor, one.design_model)}
    models = {"2pl": TWO_PL, "mirt": MIRT}
    needed = {name: one for name, one in models.items() if not assessors or name in used}
    choices = {"item_models": needed, "assessors": assessors or (Assessor("2pl"), Assessor("task-mean")), "n_test": 6}
    choices |= {"task": "subscenario", "cost": "tokens", "n_partitions": 2, "n_calibration_tasks": (1, 3), "seed": 3}
    return PredictionSpec("simulated", **{**choices, "n_items": (1, 4, 12), **changes})


RANDOM, STATIC = Assessor("2pl"), Assessor("2pl", "selection", "fisher")
CHEAP = Assessor("2pl", "selection", "fisher", per_cost=True)
R, S, C = (one.name for one in (RANDOM, STATIC, CHEAP))


def tables_of(errors, costs):
    """Predictions and runs of one model and task from errors and costs, (assessor, budget) to a list by partition."""
    predictions, runs = [], []
    for (assessor, budget), values in errors.items():
        for partition, error in enumerate(values):
            cell = {"partition": partition, "n_calibration_tasks": 2, "assessor": assessor, "budget": budget}
            model = {"model_id": "m"}
            task = {"task": "t", "is_interpolation": False, "truth": 0.5, "prediction": 0.5 + error}
            predictions.append(cell | model | task)
            runs.append(cell | model | {"n_items": budget, "cost": costs[assessor, budget][partition]})
    return pl.DataFrame(predictions).lazy(), pl.DataFrame(runs).lazy()
