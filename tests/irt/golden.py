"""Scores that R's mirt gave, and the same solved to 1e-12 ("polished")."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from itembank.irt.parameters import AbilityPrior, ItemParameters

MIRT_BOUND = 15.0
"""mirt gives about 20, its search limit, where some answers are missing and the maximum is at infinity."""


@dataclass
class ScoreCase:
    """Responses, item parameters and prior of one case, with the scores of each method."""

    parameters: ItemParameters
    responses: np.ndarray
    prior: AbilityPrior
    mirt: dict[str, Any]
    polished: dict[str, Any] | None

    def theta(self, method):
        """Return mirt's abilities (n_models, n_dims)."""
        theta = numbers(self.mirt[method]["theta"])
        return np.where(np.abs(theta) > MIRT_BOUND, np.copysign(np.inf, theta), theta)

    def standard_errors(self, method):
        """Return mirt's standard errors (n_models, n_dims)."""
        return numbers(self.mirt[method]["se"])

    def polished_theta(self, method):
        """Return abilities (n_models, 1) solved to 1e-12."""
        return numbers(self.polished[method]["theta"])[:, None]


def numbers(values):
    """Turn nested lists with 'Inf', '-Inf' and 'NA' into an array."""
    array = np.array(values, dtype=object)
    words = {"Inf": np.inf, "-Inf": -np.inf, "NA": np.nan}
    return np.array([words[x] if isinstance(x, str) else float(x) for x in array.ravel()]).reshape(array.shape)


def read_case(shared_dir, name):
    """Read results, polished results (None when there are none) and responses of a case."""
    folder = shared_dir / "golden" / name
    results = json.loads((folder / "results.json").read_text())
    polished = folder / "polished.json"
    responses = np.genfromtxt(folder / "responses.csv", delimiter=",", skip_header=1, missing_values="NA")
    return results, json.loads(polished.read_text()) if polished.is_file() else None, responses


def fitted(fit):
    """Item parameters and prior of a fit by mirt."""
    items = numbers(fit["items"])
    n_dims = items.shape[1] - 3
    parameters = ItemParameters.create(items[:, :n_dims], items[:, n_dims], items[:, n_dims + 1], items[:, n_dims + 2])
    return parameters, AbilityPrior(np.atleast_1d(np.array(fit["mean"], dtype=float)), numbers(fit["cov"]))


def read(shared_dir, name, part=None):
    """Read a case, or one part of it: of scoring_known_bank and of sim_3pl_fixed_and_free_guess there are two."""
    results, polished, responses = read_case(shared_dir, name)
    scores, own = (results if part is None else results[part]), part or "main"
    if name == "scoring_known_bank":
        bank, prior = results["bank"], AbilityPrior.standard(1)
        lower = np.array(bank["g"]) if part == "threepl" else 0.0
        parameters = ItemParameters.create(np.array(bank["a"])[:, None], np.array(bank["d"]), lower)
    else:
        parameters, prior = fitted(scores["par"])
    return ScoreCase(parameters, responses, prior, scores["scores"], polished[own] if polished else None)


def lsat7_patterns(shared_dir):
    """Read all 32 patterns of the five LSAT7 items."""
    results, polished, _ = read_case(shared_dir, "lsat7_2pl")
    patterns = np.array(results["patterns"], dtype=float)
    parameters, prior = fitted(results["par"])[0], AbilityPrior.standard(1)
    return ScoreCase(parameters, patterns, prior, results["pattern_scores"], polished["patterns"])


CASES = {
    "known bank 2PL": partial(read, name="scoring_known_bank", part="twopl"),
    "known bank 3PL": partial(read, name="scoring_known_bank", part="threepl"),
    "LSAT7 patterns": lsat7_patterns,
    "missing": partial(read, name="sim_2pl_missing"),
    "few models": partial(read, name="sim_2pl_fewmodels_priors"),
    "known guessing": partial(read, name="sim_3pl_fixed_and_free_guess", part="fixed_guess"),
    "free guessing": partial(read, name="sim_3pl_fixed_and_free_guess", part="free_guess"),
}
