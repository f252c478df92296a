"""The difference of two models by what a bank knows: chosen items, estimates from few, and past models' errors."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.differences import calibration_errors, raw_scores
from itembank.comparison.pairs import finite_quantile
from itembank.errors import DataError, DataWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import sample_of
from itembank.estimation.observations import Observations, observe
from itembank.estimation.response_summary import summarise_responses
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.numerics.newton import fit_variance
from itembank.numerics.paired import PairedLook
from itembank.planning.select import select
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.selection.selector_specs import VOptimal

FEWEST_MODELS = 15
"""With fewer past models the largest errors over all looks are not learnt."""


@dataclass(frozen=True, slots=True)
class BankLooks:
    """What a gate needs of a bank: the items of each look, and how far estimates from them were off on past pairs.

    Coefficients are ``a, b`` of the expected squared error ``s^2 (a (1 - k^2) + b k^2)``, see `bank_look`. Boundaries
    are, for the error rates of the gate's spec, how many standard errors a past candidate's difference was estimated
    too high, and too low, at any look, with the probability of an error.
    """

    selections: tuple[Selection, ...]  # (n_looks,): Each holds the items of the one before it
    coefficients: FloatArray  # (n_looks, 2)
    boundaries: FloatArray  # (3, 2)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "selections": [one.to_dict() for one in self.selections],
            "coefficients": self.coefficients.tolist(),
            "boundaries": self.boundaries.tolist(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "BankLooks":
        """Read plain data."""
        return cls(
            tuple(Selection.from_dict(one) for one in record["selections"]),
            np.asarray(record["coefficients"], dtype=np.float64).reshape(-1, 2),
            np.asarray(record["boundaries"], dtype=np.float64).reshape(3, 2),
        )


def has_past_pairs(bank: Bank) -> bool:
    """Whether the bank has past models enough to learn from how far differences are off."""
    return bank.published is None and bank.headline is None and bank.distinct_models.size >= FEWEST_MODELS


def learn_looks(
    bank: Bank, sizes: Sequence[int], errors: Sequence[float], *, progress: ProgressCallback = silent
) -> BankLooks:
    """Choose the items of each look and learn from pairs of past models how far differences are off, over all looks.

    Every past model is once the candidate, estimated as if it were new, and every other the baseline, whose score is
    known. The largest error of a pair over all looks, in standard errors, has the distribution that gives the
    boundaries: a pair of models like the past ones crosses them as often as asked, whenever the gate stops, since
    models are exchangeable. The quantile is corrected for the number of models (`finite_quantile`).
    """
    if not folds(bank, progress=progress):
        raise DataError("a gate with a bank needs more past models for cross-validation. Leave the bank out.")
    if not sizes:  # the first look is that of all items, of which nothing is unknown
        return BankLooks((), np.zeros((0, 2)), np.zeros((3, 2)))
    selections: list[Selection] = []
    paths, coefficients = [], []
    first = second = np.zeros(0, dtype=np.int64)
    for number, size in enumerate(sizes):
        progress("learning from pairs of past models", number / len(sizes))
        chosen = select(bank, size, method=VOptimal(), rng=0)
        if selections and not set(selections[-1].item_ids) <= set(chosen.item_ids):
            chosen = select(bank, size, method=VOptimal(), rng=0, included=selections[-1].item_ids)
        selections.append(chosen)
        items = sample_of(bank, chosen)
        past = calibration_errors(bank, items, np.ones(items.positions.size, dtype=bool), chosen, Stacked())
        if past is None or past.responses is None:
            raise DataError(f"a gate with a bank needs {FEWEST_MODELS} past models or more. Leave the bank out.")
        error, scale = past.errors[:, -1], past.standard_errors[:, -1]
        alike = likeness(bank, Observations.of_items(past.responses, items.positions, items.weights, is_random=False))
        known = ~np.isnan(error) & ~np.isnan(scale)
        usable = known[:, None] & known[None, :] & ~np.eye(known.size, dtype=bool)
        first, second = np.nonzero(usable)
        k = alike[first, second]
        left = error[second] - k * error[first]
        design = scale[second, None] ** 2 * np.stack([1.0 - k**2, k**2], axis=1)
        fitted = np.array(fit_variance(left**2, design))
        fitted[1] = fitted[1] if fitted[1] > 0.0 else fitted[0]  # no two past models are alike: nothing is known
        coefficients.append(fitted)
        paths.append(left / np.sqrt(np.maximum(design @ fitted, 1e-12)))
    worst = np.stack([np.max(paths, axis=0), np.max(-np.array(paths), axis=0)])
    n_models = int(max(first.max(), second.max())) + 1
    boundaries = [
        [finite_quantile(side, first, second, n_models, level=1.0 - error) for side in worst] for error in errors
    ]
    return BankLooks(tuple(selections), np.array(coefficients), np.array(boundaries))


def likeness(bank: Bank, observations: Observations) -> FloatArray:
    """Return how far each model's estimate is expected to err as another's does, (n_models, n_models).

    The correlation of what the item model does not explain of both models' answers to the n items; lowered by two
    standard errors on Fisher's scale, ``tanh(artanh r - 2 / sqrt(n - 3))``, and 0 at the least. Estimates of models
    that err alike on the seen items err alike on the unseen ones.
    """
    summary = summarise_responses(bank, observations)
    fitted = probability(bank.parameters.take(observations.positions), summary.abilities)
    residuals = np.nan_to_num(observations.responses - fitted)
    norms = np.sqrt((residuals**2).sum(axis=1))
    r = residuals @ residuals.T / np.maximum(np.outer(norms, norms), 1e-12)
    n_items = max(observations.positions.size, 5)
    alike: FloatArray = np.tanh(
        np.maximum(np.arctanh(np.clip(r, 0.0, 1.0 - 1e-12)) - 2.0 / np.sqrt(n_items - 3.0), 0.0)
    )
    return alike


def full_score(bank: Bank, responses: ResponseMatrix) -> float:
    """Score of a model that answered all items of the bank; NaN where one is missing."""
    observations = observe(bank, responses, None)
    if np.isnan(observations.responses).any() or observations.positions.size < bank.n_items:
        return np.nan
    weights = bank.targets.weights[observations.positions]
    return float(raw_scores(bank, observations.responses, observations.positions, weights)[0, -1])


def even_look(bank: Bank, pair: ResponseMatrix) -> PairedLook:
    """Estimate the difference as if what changed came by chance, evenly over the items, whatever past models did.

    Quantisation flips answers here and there, which no two past models differ by. Then items that were chosen are as
    good as any: with w the items' weights in the score and x = (1, the baseline's response), the differences d of the
    items S that the candidate answered predict those of the others U by regression, and ``D = sum_S w d + h b``, ``h =
    sum_U w x``, has the variance ``s^2 (sum_U w^2 + h (X'X)^-1 h')`` (Royall 1970).
    """
    places = bank.responses.item_indices(pair.item_ids)
    (y, answers), w = pair.responses, bank.targets.overall_weights[places]
    seen = ~np.isnan(answers)
    x = np.stack([np.ones(y.size), y], axis=1)
    ahead, d = w[~seen] @ x[~seen], (answers - y)[seen]
    inverse = np.linalg.pinv(x[seen].T @ x[seen])
    slope = inverse @ (x[seen].T @ d)
    degrees = max(float(d.size - 2), 1.0)
    spread = float(np.sum((d - x[seen] @ slope) ** 2)) / degrees
    of_one = float(np.sum(w[~seen] ** 2) + ahead @ inverse @ ahead)
    return PairedLook(
        float(w[seen] @ d + ahead @ slope),
        spread * of_one,
        of_one if pair.is_binary else 0.0,
        degrees,
        (float(np.mean(d < 0.0)), float(np.mean(d > 0.0))),
    )


def bank_look(bank: Bank, looks: BankLooks, number: int, pair: ResponseMatrix) -> PairedLook:
    """Estimate the difference of two models from the items of a look.

    `pair` holds the baseline, which answered all items, and the candidate. With the estimates ``E`` from the look's
    items, the baseline's known score ``s_b`` and the likeness k of the two: ``D = E_c - s_b - k (E_b - s_b)``, a
    control variate, whose expected squared error is ``s_c^2 (a (1 - k^2) + b k^2)``, ``s_c`` the standard error of the
    candidate's score.
    """
    baseline = full_score(bank, pair.take(models=np.array([0])))
    if number >= len(looks.selections):  # all items are answered
        exact = full_score(bank, pair.take(models=np.array([1]))) - baseline
        return PairedLook(exact, 0.0, 0.0, np.inf, is_exact=True)
    selection = looks.selections[number]
    items = pair.take(items=pair.item_indices(selection.item_ids))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        estimates = estimate(bank, items, selection=selection, method=Stacked())
    value, scale = estimates.scores.value[:, -1], estimates.scores.standard_error[:, -1]
    observations = observe(bank, items, selection)
    k = float(likeness(bank, observations)[0, 1])
    a, b = looks.coefficients[number]
    changed = items.responses[1] - items.responses[0]
    n = selection.n_items
    per_item = max(1.0 / n - 1.0 / bank.n_items, 0.0)
    return PairedLook(
        float(value[1] - baseline - k * (value[0] - baseline)),
        float(scale[1] ** 2 * (a * (1.0 - k**2) + b * k**2)),
        k**2 * per_item if pair.is_binary else 0.0,
        np.inf,
        (float(np.mean(changed < 0.0)), float(np.mean(changed > 0.0))),
    )
