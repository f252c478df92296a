"""What more past models would bring: narrower intervals from drawn items."""

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_whole
from itembank.planning.precision import Prospect

USUAL_AGREEMENT = 0.4
"""Correlation of two models' answers to the items of a scenario where past models cannot tell.

It is 0.28 on BFCL, 0.37 on MMLU-Pro, 0.48 on SWE-bench and 0.39 to 0.68 on the scenarios of Open LLM Leaderboard v1.
"""


def plan_models(
    bank: Bank,
    n_items: int,  # That a new model will answer, drawn at random
    *,
    more: tuple[int, ...] = (3, 10),  # Numbers of further models that run every item
    level: float = 0.95,  # Of the intervals
) -> pl.DataFrame:
    """Forecast intervals of the overall score with the past models there are, and with more of them.

    The mean answer of k past models to an item explains ``R_k = rho^2 k / (1 + (k - 1) rho)`` of the variance of a new
    model's answers within a scenario, where rho is the correlation of two models' answers (Spearman-Brown: the mean of
    k answers has reliability ``k rho / (1 + (k - 1) rho)``). Intervals with the models there are follow from the draw
    (`Prospect.at`); with more they narrow by ``sqrt((1 - R_more) / (1 - R_now))``. Without two past models that have
    common items rho is `USUAL_AGREEMENT`.
    Returns `n_models`, past models that answered every item, and `half_width` of the overall score, from 0 to 1.
    """
    check_whole("the number of items", n_items, least=1)
    check_fraction("level", level)
    # no two models answer all alike for sure
    rho = float(np.clip(np.nan_to_num(between_models(bank), nan=USUAL_AGREEMENT), 0.0, 0.99))
    n_models = bank.n_models + np.array([0, *more])
    counts = n_models.astype(np.float64)
    explained = rho**2 * counts / (1.0 + (counts - 1.0) * rho)
    now = Prospect.of(bank, bank.targets.overall_weights, level=level).at(min(n_items, bank.n_items)).half_width
    half = now * np.sqrt((1.0 - explained) / (1.0 - explained[0]))
    return pl.DataFrame({"n_models": n_models, "half_width": half})


def between_models(bank: Bank) -> float:
    """Mean correlation of two models' answers to the items of a scenario; NaN where no two models tell.

    Covariances and variances are pooled over pairs of models and scenarios before they are divided.
    """
    responses, index = bank.responses.responses, bank.targets.scenario_index
    centred = np.zeros(responses.shape)
    observed = ~np.isnan(responses)
    for scenario in range(bank.targets.n_scenarios):
        items = np.flatnonzero(index == scenario)
        values, is_there = responses[:, items], observed[:, items]
        n = np.maximum(is_there.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_there, values, 0.0).sum(axis=1, keepdims=True) / n
        centred[:, items] = np.where(is_there, values - mean, 0.0)
    common = observed.astype(np.float64) @ observed.T.astype(np.float64)
    products = centred @ centred.T
    pairs = ~np.eye(len(common), dtype=bool) & (common > 0.0)
    variances = np.diag(products).sum() / max(np.diag(common).sum(), 1.0)
    if not pairs.any() or variances == 0.0:
        return np.nan
    return float(products[pairs].sum() / common[pairs].sum() / variances)
