"""Banks with costs and thresholds, new models, and sessions that these answer."""

import dataclasses
import functools

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank


@functools.cache
def session_bank(*, n_models=12, n_items=60, n_dims=2, seed=0, thresholds=False, lower=0.0):
    """Make one bank for all tests, whose items cost 1 to 9 output tokens, and 10 input tokens each, by every model."""
    made = make_bank(n_models=n_models, n_items=n_items, n_dims=n_dims, seed=seed)
    calibration = dataclasses.replace(made.calibration, tolerance=1e-3)  # so that folds are fitted fast
    if not thresholds:
        calibration = dataclasses.replace(calibration, thresholds={})
    if lower:
        parameters = ItemParameters.create(calibration.parameters.loadings, calibration.parameters.intercept, lower)
        calibration = dataclasses.replace(calibration, parameters=parameters)
    each = np.random.default_rng(seed + 1).integers(1, 10, n_items).astype(float)
    costs = {
        "output_tokens": np.tile(each, (n_models, 1)),
        "input_tokens": np.full((n_models, n_items), 10.0),
        "cost_usd": np.tile(each / 10.0, (n_models, 1)),
    }
    responses = dataclasses.replace(made.responses, costs=costs)
    return dataclasses.replace(made, responses=responses, calibration=calibration)


def begin(bank: Bank, *args, model_id="model", events=(), journal=None, **choices) -> AdaptiveSession:
    """Begin a session of a spec with these choices."""
    pool = prepare_sessions(bank, SessionSpec(*args, **choices))
    return AdaptiveSession(pool, model_id=model_id, events=events, journal=journal)


def forget_past_sessions(bank: Bank) -> None:
    """Let what past sessions say of this bank be found anew; the sessions themselves are kept."""
    for key in list(bank.cache.memory):
        if (
            key[0] == "arrays"
            and key[1].startswith("past-sessions-")
            and not key[1].startswith("past-sessions-expected")
        ):
            del bank.cache.memory[key]


def model_based(bank: Bank, *args, **choices) -> AdaptiveSession:
    """Begin a session whose intervals are the item model's, so that nothing is fitted for them."""
    return begin(bank, *args, interval="model-based", **choices)


def true_answers(bank: Bank, *, seed=1, theta=None):
    """Answers of one new model to every item, drawn from the bank's item model, by item id."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=bank.parameters.n_dims) if theta is None else theta
    p = probability(bank.parameters, np.atleast_2d(theta))[0]
    return dict(zip(bank.item_ids, (rng.random(p.shape) < p).astype(float).tolist(), strict=True))


def expected(bank: Bank, unit="output_tokens"):
    """Expected cost of each item, by id."""
    return dict(zip(bank.item_ids, bank.responses.costs[unit][0].tolist(), strict=True))


def run(session: AdaptiveSession, answers, *, n=1, most=10_000):
    """Answer whatever is asked until nothing is, or `most` answers are told; return the items in order."""
    asked = []
    while len(asked) < most and (items := session.ask(n)):
        for item in items:
            session.tell(item, answers[item])
            asked.append(item)
    return asked
