"""Scores that R's mirt gave, and the same solved to 1e-12 ("polished")."""

import json
from dataclasses import dataclass
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


def known_bank(shared_dir, part):
    """Read scoring_known_bank; part is 'twopl' or 'threepl'."""
    results, polished, responses = read_case(shared_dir, "scoring_known_bank")
    bank = results["bank"]
    lower = np.array(bank["g"]) if part == "threepl" else 0.0
    parameters = ItemParameters.create(np.array(bank["a"])[:, None], np.array(bank["d"]), lower)
    return ScoreCase(parameters, responses, AbilityPrior.standard(1), results[part]["scores"], polished[part])


def lsat7_patterns(shared_dir):
    """Read all 32 patterns of the five LSAT7 items."""
    results, polished, _ = read_case(shared_dir, "lsat7_2pl")
    patterns = np.array(results["patterns"], dtype=float)
    parameters, prior = fitted(results["par"])[0], AbilityPrior.standard(1)
    return ScoreCase(parameters, patterns, prior, results["pattern_scores"], polished["patterns"])


def main_case(shared_dir, name):
    """Read a case with one fit."""
    results, polished, responses = read_case(shared_dir, name)
    parameters, prior = fitted(results["par"])
    return ScoreCase(parameters, responses, prior, results["scores"], polished["main"] if polished else None)


def guessing_case(shared_dir, part):
    """Read sim_3pl_fixed_and_free_guess; part is 'fixed_guess' or 'free_guess'."""
    results, polished, responses = read_case(shared_dir, "sim_3pl_fixed_and_free_guess")
    parameters, prior = fitted(results[part]["par"])
    return ScoreCase(parameters, responses, prior, results[part]["scores"], polished[part])


CASES = {
    "known bank 2PL": lambda folder: known_bank(folder, "twopl"),
    "known bank 3PL": lambda folder: known_bank(folder, "threepl"),
    "LSAT7 patterns": lsat7_patterns,
    "missing": lambda folder: main_case(folder, "sim_2pl_missing"),
    "few models": lambda folder: main_case(folder, "sim_2pl_fewmodels_priors"),
    "known guessing": lambda folder: guessing_case(folder, "fixed_guess"),
    "free guessing": lambda folder: guessing_case(folder, "free_guess"),
}
