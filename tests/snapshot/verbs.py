"""Calls of verbs that no command has, over the files that the commands of `calls.py` leave."""

import numpy as np

import itembank as ib
import itembank_living
import itembank_scaling


def _abilities(method):
    """Abilities on one dimension."""

    def call():
        found = ib.estimators.estimate_abilities("bank-2pl", "new.parquet", method)
        return {"theta": found.theta.tolist(), "standard_errors": found.standard_errors.tolist()}

    return call


def _driven():
    """Let a table answer what a session asks."""
    answers = ib.read_responses("one-new.parquet")
    known = dict(zip(answers.item_ids, answers.responses[0].tolist(), strict=True))
    spec = ib.SessionSpec(budget=ib.Budget(n_items=12), interval="model-based")
    session = ib.AdaptiveSession(ib.prepare_sessions(ib.load_bank("bank-2pl"), spec), model_id="new")
    ib.harnesses.drive(session, known.__getitem__, n_jobs=1)
    return {"asked": list(session.told), "estimates": session.estimate().scores.to_polars().to_dicts()}


def _pass_at_k():
    samples = ib.read_responses("samples.parquet")
    correct = np.rint(samples.responses * samples.n_trials)
    return {"pass": itembank_scaling.unbiased_pass_at_k(samples.n_trials, correct, 5).tolist()}


def _without_responses():
    """A bank that goes to others without its past models."""
    bank = itembank_living.without_responses(ib.load_bank("named"))
    found = ib.estimate(bank, "new-old.parquet", method="p-irt", interval="model-based")
    return {"estimates": found.to_polars().to_dicts()}


VERBS = {
    **{f"score {method}": _abilities(method) for method in ("ml", "map", "eap", "wle")},
    "drive": _driven,
    "pass at k": _pass_at_k,
    "without responses": _without_responses,
}
"""Functions by a name of the call that stays; each gives its numbers by name."""
