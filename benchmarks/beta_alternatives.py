"""Probabilities predicted by `beta`, and by families whose ends are inflated or whose precision varies.

A tenth of the cells is hidden, two parameters an item and an ability a model are fitted to the others (to the joint
mode, so that families differ in nothing else), and the hidden responses are predicted.

- *beta*: the family as it stands: one precision, and a response within 1e-6 of an end enters by the chance of that.
- *inflated*: P(0) and P(1) are logistic functions of the item's logit, with a Beta inside (Ospina and Ferrari 2010);
  *inflated by item*: every item with its own chance of an end, under a normal prior.
- *precision by ability*: log phi linear in ability; *by mean*: quadratic in the predicted mean; *by item*: a log phi an
  item, under a normal prior.
- *beta-binomial*, of pass rates alone: the tenths that they mostly are, as counts of ten trials.

Log-likelihood is per hidden response, less that of *beta*, with a standard error over models. *Off* is the mean
distance of observed from predicted means in ten bins of equal numbers, and *in 90 %* the share of hidden responses
between the 5 % and 95 % quantiles that are predicted (ends count in part). Pass rates are rounded to tenths, and their
log-likelihood is that of the tenth, so that densities and counts can be compared.

    ITEMBANK_SHARED=... python -m benchmarks.beta_alternatives [--splits 2]
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betainc, betaln, digamma, expit, gammaln

from itembank.errors import ItembankWarning
from itembank.irt.beta_ends import EPSILON, clipped
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

FAMILIES: dict[str, tuple[str, ...]] = {
    "beta": (),
    "inflated": ("zero", "zero_slope", "one", "one_slope"),
    "inflated by item": ("zero", "zero_slope", "one", "one_slope", "zero_of_item", "one_of_item"),
    "precision by ability": ("by_ability",),
    "precision by mean": ("by_mean", "by_square"),
    "precision by item": ("phi_of_item",),
    "beta-binomial": (),
}
"""What each adds to slope, intercept, ability, their centre and log phi."""
SHARE_HIDDEN = 0.1
N_TRIALS = 10
"""Of pass rates."""
MOST_ITEMS = 400
SLOPE_SD, INTERCEPT_SD, ITEM_SD = 1.0, 3.0, 1.0
N_BINS = 10
TINY = 1e-300

Values = dict[str, FloatArray]


@dataclass
class Cells:
    """Responses with their model and item."""

    y: FloatArray
    model: Any
    item: Any
    n_models: int
    n_items: int
    is_low: BoolArray = field(init=False)
    is_high: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.is_low, self.is_high = self.y <= 1.001 * EPSILON, self.y >= 1.0 - 1.001 * EPSILON


@dataclass
class Law:
    """What is said of a response in some cells: the chances of the ends, and a Beta between."""

    x: FloatArray
    mean: FloatArray
    phi: FloatArray
    zero: FloatArray
    one: FloatArray
    is_inflated: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--sets", default="")
    arguments = parser.parse_args()
    print("| set | family | log-likelihood, less that of beta | mean squared error | off | in 90 % |")
    print("|---|---|---|---|---|---|")
    for name, responses, is_rate in data_sets(Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"):
        if not name.startswith(arguments.sets):
            continue
        found = [one for split in range(arguments.splits) for one in run(responses, split, is_rate=is_rate)]
        base = np.concatenate([one["log_likelihood"] for one in found if one["family"] == "beta"])
        for family in dict.fromkeys(one["family"] for one in found):
            own = [one for one in found if one["family"] == family]
            gain = np.concatenate([one["log_likelihood"] for one in own]) - base
            model = np.concatenate([one["model"] for one in own])
            of_models = np.array([gain[model == row].mean() for row in np.unique(model)])
            error = of_models.std(ddof=1) / np.sqrt(of_models.size)
            told = f"{base.mean():.3f}" if family == "beta" else f"{gain.mean():+.3f} ± {error:.3f}"
            means = [np.mean([one[key] for one in own]) for key in ("squared", "off", "inside")]
            print(f"| {name} | {family} | {told} | {means[0]:.4f} | {means[1]:.3f} | {means[2]:.3f} |", flush=True)


def data_sets(folder: Path) -> Iterator[tuple[str, FloatArray, bool]]:
    """Give preferences, pass rates in tenths, and probabilities; and whether they are rates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        preferences = read_responses([folder / "alpacaeval2/responses.parquet"]).responses
        yield "AlpacaEval 2, preferences", thinned(preferences), False
        code = read_responses([folder / "livecodebench/responses.parquet"], spec=ReadingSpec(prefix_scenario=True))
    scenario = code.items["scenario"].to_numpy()
    for name in ("testoutputprediction", "codeexecution_cot"):
        part = code.responses[:, scenario == name]
        tenths = np.round(N_TRIALS * part[np.isfinite(part).mean(axis=1) > 0.3]) / N_TRIALS
        yield f"LiveCodeBench, {name}, rates", thinned(tenths), True
    probabilities = load_builtin("bytelms", response="probability")
    scenario = probabilities.items["scenario"].to_numpy()
    is_final = probabilities.models["is_final"].to_numpy()
    for name in ("code", "prose"):
        yield f"built-in, {name}", thinned(probabilities.responses[np.ix_(is_final, scenario == name)]), False


def thinned(responses: FloatArray) -> FloatArray:
    """Leave out items evenly until there are few enough."""
    n_items = responses.shape[1]
    return np.asarray(responses[:, np.unique(np.linspace(0, n_items - 1, min(n_items, MOST_ITEMS)).astype(int))], float)


def run(responses: FloatArray, split: int, *, is_rate: bool) -> Iterator[dict[str, Any]]:
    """Fit every family to the cells that are not hidden, and predict those that are."""
    rng = np.random.default_rng([split, 11])
    model, item = np.nonzero(np.isfinite(responses))
    is_hidden = rng.random(model.size) < SHARE_HIDDEN
    y = clipped(responses[model, item])
    seen, hidden = (Cells(y[at], model[at], item[at], *responses.shape) for at in (~is_hidden, is_hidden))
    start: Values | None = None
    for family in FAMILIES:
        if family == "beta-binomial" and not is_rate:
            continue
        values = fit(seen, family, start)
        start = values if start is None else start
        law = law_of(values, hidden, is_inflated=family.startswith("inflated"))
        mean = law.one + (1.0 - law.zero - law.one) * law.mean
        yield {
            "family": family,
            "log_likelihood": log_tenths(law, hidden, family) if is_rate else log_likelihood(law, hidden),
            "model": hidden.model,
            "squared": np.mean((hidden.y - mean) ** 2),
            "off": off(mean, hidden.y),
            "inside": np.mean(inside(law, hidden)) if family != "beta-binomial" else np.nan,
        }


def fit(cells: Cells, family: str, start: Values | None) -> Values:
    """Find the joint mode."""
    template = empty(cells, family)
    first = {name: start[name] if start is not None and name in start else value for name, value in template.items()}

    def unpacked(point: FloatArray) -> Values:
        parts = np.split(point, np.cumsum([value.size for value in template.values()])[:-1])
        return dict(zip(template, parts, strict=True))

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = posterior(unpacked(point), cells, family)
        return -value, -np.concatenate([gradient[name] for name in template])

    found = minimize(
        objective,
        np.concatenate(list(first.values())),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 250, "maxcor": 20},
    )
    return unpacked(found.x)


def empty(cells: Cells, family: str) -> Values:
    """Return where a fit begins."""
    shares = np.bincount(cells.item, cells.y, cells.n_items) + 0.5
    counts = np.bincount(cells.item, minlength=cells.n_items) + 1.0
    rate = np.bincount(cells.model, cells.y, cells.n_models) / np.maximum(
        np.bincount(cells.model, minlength=cells.n_models), 1
    )
    values = {
        "slope": np.ones(cells.n_items),
        "intercept": np.log(shares / (counts - shares)),
        "centre": np.zeros(1),
        "ability": (rate - rate.mean()) / rate.std(),
        "log_phi": np.zeros(1),
    }
    for name in FAMILIES[family]:
        values[name] = np.zeros(cells.n_items if name.endswith("of_item") else 1)
    if "zero" in values:
        values["zero"], values["one"] = np.full(1, -2.0), np.full(1, -2.0)
    return values


def law_of(values: Values, cells: Cells, *, is_inflated: bool) -> Law:
    """Return what fitted values say of cells."""
    theta = values["ability"][cells.model]
    x = values["slope"][cells.item] * theta + values["intercept"][cells.item]
    log_phi = values["log_phi"] + _at(values, "phi_of_item", cells) + values.get("by_ability", 0.0) * theta
    mean = np.clip(expit(x), 1e-12, 1.0 - 1e-12)
    log_phi = log_phi + values.get("by_mean", 0.0) * mean + values.get("by_square", 0.0) * mean**2
    phi = np.exp(np.clip(log_phi, -7.0, 12.0))
    if not is_inflated:
        return Law(x, mean, phi, np.zeros(x.size), np.zeros(x.size), is_inflated=False)
    low = values["zero"] + _at(values, "zero_of_item", cells) - values["zero_slope"] * x
    high = values["one"] + _at(values, "one_of_item", cells) + values["one_slope"] * x
    total = np.logaddexp(np.logaddexp(0.0, low), high)
    return Law(x, mean, phi, np.exp(low - total), np.exp(high - total), is_inflated=True)


def _at(values: Values, name: str, cells: Cells) -> FloatArray | float:
    return values[name][cells.item] if name in values else 0.0


def log_likelihood(law: Law, cells: Cells) -> FloatArray:
    """Log of the chance of an end, or of the density between, of each response."""
    a, b = law.mean * law.phi, (1.0 - law.mean) * law.phi
    density = gammaln(law.phi) - gammaln(a) - gammaln(b) + (a - 1.0) * np.log(cells.y) + (b - 1.0) * np.log1p(-cells.y)
    if not law.is_inflated:
        return np.asarray(
            density
            - np.where(cells.is_low, np.log(a / EPSILON), 0.0)
            - np.where(cells.is_high, np.log(b / EPSILON), 0.0)
        )
    inner = np.log(np.maximum(1.0 - law.zero - law.one, TINY)) + density
    ends = np.log(np.maximum(np.where(cells.is_low, law.zero, law.one), TINY))
    return np.where(cells.is_low | cells.is_high, ends, inner)


def log_counts(law: Law, cells: Cells) -> FloatArray:
    """Log of the beta-binomial probability of each response, as so many right of ten."""
    k = np.round(N_TRIALS * cells.y)
    a, b = law.mean * law.phi, (1.0 - law.mean) * law.phi
    ways = gammaln(N_TRIALS + 1.0) - gammaln(k + 1.0) - gammaln(N_TRIALS - k + 1.0)
    return np.asarray(ways + betaln(a + k, b + N_TRIALS - k) - betaln(a, b))


def log_tenths(law: Law, cells: Cells, family: str) -> FloatArray:
    """Log of the probability of the tenth that each response is, however it is distributed."""
    if family == "beta-binomial":
        return log_counts(law, cells)
    a, b = law.mean * law.phi, (1.0 - law.mean) * law.phi
    half = 0.5 / N_TRIALS
    mass = betainc(a, b, np.minimum(cells.y + half, 1.0)) - betainc(a, b, np.maximum(cells.y - half, 0.0))
    ends = np.where(cells.is_low, law.zero, 0.0) + np.where(cells.is_high, law.one, 0.0)
    return np.log(np.maximum((1.0 - law.zero - law.one) * mass + ends, TINY))


def posterior(values: Values, cells: Cells, family: str) -> tuple[float, Values]:
    """Log posterior density up to a constant, and its gradient."""
    is_inflated = family.startswith("inflated")
    law = law_of(values, cells, is_inflated=is_inflated)
    theta, mean, phi = values["ability"][cells.model], law.mean, law.phi
    a, b = mean * phi, (1.0 - mean) * phi
    log_y, log_rest = np.log(cells.y), np.log1p(-cells.y)
    psi_a, psi_b = digamma(a), digamma(b)
    of_x = phi * mean * (1.0 - mean) * (log_y - log_rest - psi_a + psi_b)
    of_phi = phi * (digamma(phi) - mean * psi_a - (1.0 - mean) * psi_b + mean * log_y + (1.0 - mean) * log_rest)
    gradient: Values = {}
    if family == "beta-binomial":
        k = np.round(N_TRIALS * cells.y)
        rise, fall = digamma(a + k) - psi_a, digamma(b + N_TRIALS - k) - psi_b
        of_x = phi * mean * (1.0 - mean) * (rise - fall)
        of_phi = phi * (mean * rise + (1.0 - mean) * fall - digamma(phi + N_TRIALS) + digamma(phi))
    elif is_inflated:
        is_end = cells.is_low | cells.is_high
        of_x, of_phi = np.where(is_end, 0.0, of_x), np.where(is_end, 0.0, of_phi)
        of_zero, of_one = cells.is_low - law.zero, cells.is_high - law.one
        gradient |= {"zero": _sum(of_zero), "one": _sum(of_one)}
        gradient |= {"zero_slope": _sum(-law.x * of_zero), "one_slope": _sum(law.x * of_one)}
        gradient |= {"zero_of_item": _items(of_zero, cells), "one_of_item": _items(of_one, cells)}
        of_x = of_x - values["zero_slope"] * of_zero + values["one_slope"] * of_one
    else:
        of_x = of_x - np.where(cells.is_low, 1.0 - mean, 0.0) + np.where(cells.is_high, mean, 0.0)
        of_phi = of_phi - (cells.is_low | cells.is_high)
    gradient |= {"log_phi": _sum(of_phi), "phi_of_item": _items(of_phi, cells), "by_ability": _sum(of_phi * theta)}
    gradient |= {"by_mean": _sum(of_phi * mean), "by_square": _sum(of_phi * mean**2)}
    of_mean = values.get("by_mean", 0.0) + 2.0 * values.get("by_square", 0.0) * mean
    of_x = of_x + of_phi * of_mean * mean * (1.0 - mean)
    of_theta = of_x * values["slope"][cells.item] + of_phi * values.get("by_ability", 0.0)
    gradient["ability"] = np.bincount(cells.model, of_theta, cells.n_models) - values["ability"]
    gradient["slope"] = _items(of_x * theta, cells) - (values["slope"] - 1.0) / SLOPE_SD**2
    away = (values["intercept"] - values["centre"]) / INTERCEPT_SD**2
    gradient["intercept"], gradient["centre"] = _items(of_x, cells) - away, _sum(away)
    prior = np.sum(values["ability"] ** 2) + np.sum((values["slope"] - 1.0) ** 2) / SLOPE_SD**2
    prior += np.sum((values["intercept"] - values["centre"]) ** 2) / INTERCEPT_SD**2
    for name in ("zero_of_item", "one_of_item", "phi_of_item"):
        if name in values:
            gradient[name] = gradient[name] - values[name] / ITEM_SD**2
            prior += np.sum(values[name] ** 2) / ITEM_SD**2
    value = log_counts(law, cells) if family == "beta-binomial" else log_likelihood(law, cells)
    return float(value.sum() - 0.5 * prior), gradient


def _sum(terms: FloatArray) -> FloatArray:
    return np.array([np.sum(terms)])


def _items(terms: FloatArray, cells: Cells) -> FloatArray:
    return np.bincount(cells.item, terms, cells.n_items)


def off(mean: FloatArray, y: FloatArray) -> float:
    """Mean distance of observed from predicted means in ten bins."""
    bins = np.array_split(np.argsort(mean, kind="stable"), N_BINS)
    return float(np.mean([abs(mean[one].mean() - y[one].mean()) for one in bins]))


def inside(law: Law, cells: Cells) -> FloatArray:
    """Share of each response's probability between the 5 % and 95 % quantiles."""
    below = betainc(law.mean * law.phi, (1.0 - law.mean) * law.phi, cells.y)
    inner = 1.0 - law.zero - law.one
    low, high = (law.zero + inner * below,) * 2
    if law.is_inflated:  # an end is a jump of the distribution
        low, high = np.where(cells.is_low, 0.0, low), np.where(cells.is_low, law.zero, high)
        low, high = np.where(cells.is_high, 1.0 - law.one, low), np.where(cells.is_high, 1.0, high)
    else:
        low, high = np.where(cells.is_low, 0.0, low), np.where(cells.is_high, 1.0, high)
    overlap = np.clip(np.minimum(high, 0.95) - np.maximum(low, 0.05), 0.0, None)
    width = high - low
    return np.where(width > 1e-12, overlap / np.maximum(width, 1e-12), (low > 0.05) & (low < 0.95))


if __name__ == "__main__":
    main()
