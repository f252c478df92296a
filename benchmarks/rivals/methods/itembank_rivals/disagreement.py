"""Items on which the calibration models disagree most (DISCO, arXiv 2510.07959)."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import entr

from itembank.bank.banks import Bank
from itembank.checks import check_one_of
from itembank.irt.bernoulli import probability
from itembank.methods import Method
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.selection.anchors import correctness_features, weighted_by_nearest
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.selector_specs import SelectionSpec

DisagreementMeasure = Literal["variance", "jensen-shannon", "predictive-diversity"]


@dataclass(frozen=True, slots=True)
class Disagreement(SelectionSpec):
    """The items of each scenario on which the calibration models disagree most (DISCO, arXiv 2510.07959).

    Attributes
    ----------
    measure : {'variance', 'jensen-shannon', 'predictive-diversity'}
        'variance' of the responses; 'jensen-shannon': their generalised divergence (binary responses: the same
        order). 'predictive-diversity': sum over right and wrong of the largest probability that the item model gives
        it for any calibration model. DISCO takes probabilities of every answer option, which a bank does not hold.
    """

    measure: DisagreementMeasure = "variance"

    def __post_init__(self) -> None:
        """Check the choices."""
        check_one_of("measure", self.measure, get_args(DisagreementMeasure))


def by_disagreement(pools: ItemPools, spec: Disagreement) -> list[Choice]:
    """Choose the items on which the calibration models disagree most."""
    pools.bank.check_responses("Items of most disagreement need")
    return pools.each(
        lambda pool, n_items: choose_by_disagreement(pools.bank, pool, n_items, pools.rng, measure=spec.measure)
    )


DISAGREEMENT = Method(Disagreement, by_disagreement)


def choose_by_disagreement(
    bank: Bank, pool: ScenarioPool, n_items: int, rng: np.random.Generator, *, measure: DisagreementMeasure
) -> Choice:
    """Take the candidates of largest disagreement; chance decides between equals.

    Weights are those of `weighted_by_nearest` on the responses: the weighted mean of the hardest fought items is far
    from the score, so that estimates should come from a regression or a model.

    Parameters
    ----------
    bank : Bank
    pool : ScenarioPool
    n_items : int
    rng : Generator
    measure : {'variance', 'jensen-shannon', 'predictive-diversity'}
        As in `Disagreement`.
    """
    features = correctness_features(bank, pool, standardise=False)  # (n_pool, n_models)
    if measure == "predictive-diversity":
        score = predictive_diversity(probability(bank.parameters.take(pool.items), bank.calibration.abilities))
    else:
        score = features.var(axis=1) if measure == "variance" else jensen_shannon(features.T)
    # no measure is negative: -1 puts items that may not be chosen last
    chosen = largest(np.where(pool.is_candidate, score, -1.0), n_items, rng)
    return weighted_by_nearest(pool, features, chosen)


def jensen_shannon(probabilities: FloatArray) -> FloatArray:
    """Generalised Jensen-Shannon divergence of the models' outcomes: ``H(mean_l p_l) - mean_l H(p_l)``, (n_items,).

    Of binary responses it is the entropy of the share of right answers, which orders items as their variance does.

    Parameters
    ----------
    probabilities : (n_models, n_items)
        Of a correct response, or responses themselves.
    """
    mean = probabilities.mean(axis=0)
    within = (entr(probabilities) + entr(1.0 - probabilities)).mean(axis=0)
    result: FloatArray = entr(mean) + entr(1.0 - mean) - within
    return result


def predictive_diversity(probabilities: FloatArray) -> FloatArray:
    """Sum over outcomes, right and wrong, of the largest probability any model gives it: in [1, 2], (n_items,).

    ``max_l p_l + max_l (1 - p_l)``. Of binary responses it would be 2 wherever two models differ, so it takes
    the item model's probabilities (n_models, n_items).
    """
    result: FloatArray = 1.0 + np.ptp(probabilities, axis=0)
    return result


def largest(score: FloatArray, n_items: int, rng: np.random.Generator) -> IntArray:
    """Positions of the largest scores, equals in random order, (n_items,)."""
    # the last key sorts first: score, then chance
    order = np.lexsort((rng.permutation(score.shape[0]), -rounded(score)))
    return order[:n_items].astype(np.int64)
