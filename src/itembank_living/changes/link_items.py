"""New items on the scale of a bank, from a few models that answered both, and what models would score on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.errors import DataWarning, shown, warn
from itembank.irt.abilities import expected_difficulties
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.tabular import Tabular
from itembank_living.changes.fixed_parameters import (
    MOST_GAUSS_DIMS,
    FixedFit,
    FixedParameters,
    ability_grid,
    ability_nodes,
    calibrate_fixed,
    expected_curves,
)
from itembank_living.changes.linking import (
    LinkingData,
    binary,
    covered_range,
    drifted_anchors,
    jackknife_error,
    linking_answers,
    spread_over,
    trials_of,
)


@dataclass(frozen=True, slots=True, repr=False)
class LinkedItems(Tabular):
    """New items on the scale of a bank; `rows` gives them one a row.

    Attributes
    ----------
    bank_id : str
    item_ids, scenarios : tuples of n_new names
    parameters : ItemParameters
        Of the new items. Their curves are expected ones: flatter where little is known.
    item_covariance : (n_new, n_dims + 1, n_dims + 1)
        Of (loadings, intercept).
    n_answers : (n_new,)
        Linking models that answered each new item.
    mean_response : (n_new,)
        Of the linking models.
    model_ids : tuple of n_models ids
        The linking models.
    abilities : (n_models, n_dims)
        Of the linking models.
    anchors : table of the old items of the link
        `item_id`; `displacement`: logits by which the item is easier for the linking models than the bank says, with
        its `standard_error`; `is_unlinked`, of items that moved too far to link.
    linking_error : float
        Standard error that the link adds to the mean score on the new items, on the scale of scores: root mean square
        over the bank's abilities. The larger of two: a jackknife over the linking models; and what as many of the
        past models would miss by if items drawn from its own were the new ones.
    weight : float
        What the new items weigh together in the overall score of old and new ones: so much of the linking error comes
        into that score.
    covered : float
        Part of the range of past models' scores that the linking models span.
    further_models : tuple of ids
        Models of the bank that would span the rest of the range, if they were run on the new items.
    converged : bool
    """

    schema = "bank-link"

    bank_id: str
    item_ids: tuple[str, ...]
    scenarios: tuple[str, ...]
    parameters: ItemParameters
    item_covariance: FloatArray
    n_answers: IntArray
    mean_response: FloatArray
    model_ids: tuple[str, ...]
    abilities: FloatArray
    anchors: pl.DataFrame
    linking_error: float
    weight: float
    covered: float
    further_models: tuple[str, ...]
    converged: bool

    @property
    def unlinked(self) -> tuple[str, ...]:
        """Ids of the old items that do not link."""
        return tuple(self.anchors.filter("is_unlinked")["item_id"])

    @property
    def n_models(self) -> int:
        """Number of linking models."""
        return len(self.model_ids)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of each item's (loadings, intercept), (n_new, n_dims + 1)."""
        result: FloatArray = np.sqrt(np.einsum("ijj->ij", self.item_covariance))
        return result

    @property
    def table(self) -> pl.DataFrame:
        """One row an item: its parameters with errors, in one dimension its difficulty with a 95 % interval."""
        loadings, errors = self.parameters.loadings, self.standard_errors
        columns: dict[str, Any] = {
            "item_id": self.item_ids,
            "scenario": self.scenarios,
            "n_answers": self.n_answers,
            "mean_response": self.mean_response,
        }
        for k in range(loadings.shape[1]):
            columns |= {f"loading_{k + 1}": loadings[:, k], f"loading_{k + 1}_error": errors[:, k]}
        columns |= {"intercept": self.parameters.intercept, "intercept_error": errors[:, -1]}
        if loadings.shape[1] == 1:
            found = expected_difficulties(loadings[:, 0], self.parameters.intercept, self.item_covariance)
            reach = normal_reach(0.95) * found.standard_error
            columns |= {"difficulty": found.value, "low": found.value - reach, "high": found.value + reach}
        return pl.DataFrame(columns)


SPEC = FixedParameters(n_quadrature=3, tolerance=0.003)
AGAIN = FixedParameters(n_quadrature=3, tolerance=0.01, max_steps=20)
"""For links that differ from a known one by a model or a group."""


@one_blas_thread()
def link_items(bank: GivenBank, responses: GivenResponses, *, progress: ProgressCallback = silent) -> LinkedItems:
    """Find the parameters of new items on a bank's scale, from models that answered new items and the bank's.

    By fixed-parameter calibration (Kim 2006), with a prior that is fitted to the new items.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of 3 models at least, 10 to 20 that span the abilities of past models if you can. 30 to 60 old items for
        each are nearly as good as all. Models of the bank need no old items here: the bank has their answers.
    progress : ProgressCallback

    Returns
    -------
    LinkedItems
        With a `DataWarning` below 10 linking models, where they span less than half of the range of the bank's
        scores, or where old items moved.

    Raises
    ------
    DataError
        As `linking_answers`.

    Examples
    --------
    >>> linked = link_items(bank, responses)  # doctest: +SKIP
    >>> linked.linking_error, linked.further_models  # doctest: +SKIP
    """
    bank = as_bank(bank)
    return link(bank, as_new_responses(bank, responses), progress)


def link(of_score: Bank, responses: ResponseMatrix, progress: ProgressCallback) -> LinkedItems:
    """Link new items to the whole of a bank, of whose score they become a part."""
    bank = whole_bank(of_score)
    data, new, old = linking_answers(of_score, responses)
    variance = np.nan_to_num(bank.calibration.item_covariance[old, -1, -1])  # NaN: the method gives none
    displacement, standard_error, is_unlinked = drifted_anchors(data, variance)
    anchors = pl.DataFrame(
        {
            "item_id": [bank.item_ids[k] for k in old],
            "displacement": displacement,
            "standard_error": standard_error,
            "is_unlinked": is_unlinked,
        }
    )
    data = data.without_old(is_unlinked)
    progress("linking", 0.0)
    fit = calibrate_fixed(data, SPEC)
    items = expected_curves(data, fit)
    strength, known = _scores(bank, fit.nodes.mean), _scores(bank, bank.calibration.abilities)
    error = max(
        _jackknife(data, fit, strength, part_of(progress, 0.3, 1.0)),
        prediction_error(bank, data.n_new, np.random.default_rng(0)) / np.sqrt(data.n_models),
    )
    covered = covered_range(strength, known)
    _warn(covered, anchors, data)
    progress("linking", 1.0)
    named = [table.select("item_id", "scenario", "subscenario") for table in (of_score.responses.items, new.items)]
    targets = ScoreTargets.create(pl.concat(named), within="micro", across=of_score.targets.across)
    return LinkedItems(
        bank_id=bank.bank_id,
        item_ids=tuple(new.item_ids),
        scenarios=tuple(new.items["scenario"]),
        parameters=ItemParameters.create(items[:, :-1], items[:, -1], data.new_lower, family=data.family),
        item_covariance=fit.covariance,
        n_answers=new.observed.sum(axis=0),
        mean_response=np.nanmean(new.responses, axis=0),
        model_ids=tuple(new.model_ids),
        abilities=fit.nodes.mean,
        anchors=anchors,
        linking_error=error,
        weight=float(targets.overall_weights[of_score.n_items :].sum()),
        covered=covered,
        further_models=spread_over(known, strength, bank.responses.model_ids, new.model_ids, n_models=5),
        converged=fit.converged,
    )


def _jackknife(data: LinkingData, fit: FixedFit, strength: FloatArray, progress: ProgressCallback) -> float:
    """Jackknife the mean score on the new items over the linking models."""
    points, weights = ability_grid(data.prior)

    def curve(part: LinkingData) -> FloatArray:
        items = expected_curves(part, calibrate_fixed(part, AGAIN, start=fit))
        curves = probability(ItemParameters.create(items[:, :-1], items[:, -1], part.new_lower), points)
        result: FloatArray = curves.mean(axis=1)
        return result

    return float(np.sqrt(weights @ jackknife_error(data, curve, strength, progress=progress) ** 2))


def _scores(bank: Bank, theta: FloatArray) -> FloatArray:
    """Return expected overall scores, which order models in any number of dimensions."""
    return probability(bank.parameters, theta) @ bank.targets.overall_weights


def _warn(covered: float, anchors: pl.DataFrame, data: LinkingData) -> None:
    n_dims, n_answers = data.prior.n_dims, float(np.median((~np.isnan(data.old_responses)).sum(axis=1)))
    needed = 15 * n_dims  # with three abilities slopes were .83 to .90 of the true ones by 20 to 30, and right by 60
    if n_dims > MOST_GAUSS_DIMS and n_answers < needed:
        warn(
            f"linking models of a bank of {n_dims} abilities should answer {needed} old items or more, got "
            f"{n_answers:.0f}: slopes of the new items are a tenth or more too small, and their intervals too narrow.",
            DataWarning,
        )
    if covered < 0.5:
        warn(
            f"linking models should span at least half of the range of the bank's scores, got {100.0 * covered:.0f} "
            "%: curves of the new items are guesses beyond it. Run models of other strength on them.",
            DataWarning,
        )
    unlinked = anchors.filter("is_unlinked")["item_id"].to_list()
    if unlinked:
        warn(
            f"{len(unlinked)} of {anchors.height} old items are easier or harder for the linking models "
            f"than the bank says, and do not link: {shown(unlinked)}. Did their text, key or prompt change?",
            DataWarning,
        )


def prediction_error(bank: Bank, n_new: int, rng: np.random.Generator) -> float:
    """Root mean square error of the predicted mean of n_new items from the answers to half of the bank's.

    Over past models. What one ability does not explain is in it, and so is the chance in n_new answers.
    """
    items, prior = bank.parameters, bank.calibration.prior
    values = binary(bank, bank.responses.responses, bank.responses.items["scenario"].to_list())
    trials = trials_of(bank, bank.responses)
    errors = []
    for _ in range(4):
        order = bank.content_order.items[rng.permutation(bank.n_items)]
        shown, hidden = np.split(order, [bank.n_items // 2])
        hidden = hidden[:n_new]
        present = ~np.isnan(values[:, hidden])
        rows = np.flatnonzero(present.all(axis=1))
        counts = None if trials is None else trials[np.ix_(rows, shown)]
        nodes = ability_nodes(items.take(shown), values[np.ix_(rows, shown)], prior, n_trials=counts)
        found, new = np.zeros(rows.size), items.take(hidden)
        for point in range(nodes.theta.shape[1]):
            found += nodes.weights[:, point] * probability(new, nodes.theta[:, point]).mean(axis=1)
        errors.append(found - values[np.ix_(rows, hidden)].mean(axis=1))
    known = np.concatenate(errors)
    return float(np.sqrt(np.mean(known**2))) if known.size else 0.0
