"""What a family of responses is: `ResponseModel`, which each family of `family_names.KINDS` derives in its own file.

It holds what a likelihood needs of items besides their logits; everything that weighs responses or information, in
scoring, selection and sessions, asks it. The functions below are the same for `ItemParameters`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import ClassVar, Self, cast

import numpy as np

from itembank.irt.family_names import KINDS, Family
from itembank.irt.logistic import Asymptotes, LikelihoodTerms, asymptotes_of, mean_terms
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ResponseModel(ABC):
    """How responses to some items are distributed, given their logits.

    ``x`` are logits and `responses` responses, both (n_models, n_items) or of shapes that broadcast; `n_trials` are
    trials behind each response of a family of counts, one by default. Other families take no notice of them.
    """

    family: Family
    asymptotes: Asymptotes | None  # Of the items' shape
    precision: FloatArray | None = None  # (n_items,), or (n_models, n_items),

    is_logistic: ClassVar[bool] = False
    """Whether a response's log-likelihood is a multiple of ``y log p + (1 - y) log(1 - p)``."""
    is_slow: ClassVar[bool] = False
    """Whether a likelihood costs so much that fewer nodes are worth some work."""

    @staticmethod
    def of(parameters: ItemParameters) -> "ResponseModel":
        """Take from item parameters all that the logit does not contain."""
        asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
        return response_model(parameters.family, asymptotes, parameters.precision)

    @property
    def is_concave(self) -> bool:
        """Whether the log-likelihood is concave in the logit, so that there is at most one maximum."""
        return False

    def take(self, indices: IntArray | tuple[slice, IntArray]) -> Self:
        """Return the model of the items, or rows, at `indices`."""
        return replace(
            self,
            asymptotes=None if self.asymptotes is None else self.asymptotes.take(indices),
            precision=None if self.precision is None else self.precision[indices],
        )

    @abstractmethod
    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """About the largest information of a response, in units of the 1/4 of a right or wrong answer."""

    @abstractmethod
    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """Log-likelihood of each response at logits x, up to terms without x."""

    @abstractmethod
    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """Log-likelihood of each response, its slope in the logit, and minus its second derivative."""

    @abstractmethod
    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`information_weights` with their first and second derivatives in the logit."""

    def information_weights(self, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """Fisher information of a response in the logit; of counts, that of all their trials together."""
        return self.information_slopes(x, n_trials)[0]

    def log_likelihood_at(
        self,
        x: FloatArray,  # noqa: ARG002
        responses: FloatArray,  # noqa: ARG002
        weights: FloatArray | None,  # noqa: ARG002
    ) -> FloatArray | None:
        """Log-likelihood (n_models, n_points) at logits x (n_points, n_items) common to all models, by matrix products.

        `weights` (n_models, n_items) say how often a response counts, zero where missing; None for once each. None
        where the family has no such products: it is then evaluated point by point.
        """
        return None

    @property
    def phi(self) -> FloatArray:
        """Precision; families without one never use it."""
        return np.asarray(self.precision)


def response_model(family: Family, asymptotes: Asymptotes | None, precision: FloatArray | None = None) -> ResponseModel:
    """Make the model of a family."""
    return _class_of(family)(family, asymptotes, precision)


@cache
def _class_of(family: Family) -> type[ResponseModel]:
    module, _, name = KINDS[family].model.partition(":")
    return cast("type[ResponseModel]", getattr(import_module(module), name))


def likelihood_terms(
    parameters: ItemParameters, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
) -> LikelihoodTerms:
    """Log-likelihood of each response with its slope and curvature in the logit, each (n_models, n_items).

    NaN where the response is, but for a curvature that does not depend on the response. Binomial coefficients, which do
    not depend on ability, are left out, and fractions of a single Bernoulli trial count as a weighted likelihood.
    """
    return ResponseModel.of(parameters).likelihood_terms(x, responses, n_trials)


def information_weights(parameters: ItemParameters, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
    """Fisher information w of each response in its logit: that about ability is ``w_i a_i a_i'``."""
    return ResponseModel.of(parameters).information_weights(x, n_trials)


def expected_curve(
    parameters: ItemParameters, logit: FloatArray, spread: FloatArray, n_nodes: int = 7
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means over a normal logit of each item of p, its slope in the logit, and p (1 - p), each (n_items,).

    By Gauss-Hermite nodes: seven are exact for polynomials of degree 13 in the logit.
    """
    asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes if spread.any() else 1)
    result = np.zeros((3, logit.size))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        terms = mean_terms(logit + node * spread, asymptotes)
        result += weight * np.stack([terms.p, terms.first, terms.p * terms.q])
    return result[0], result[1], result[2]


def trials_or_one(n_trials: FloatArray | None) -> FloatArray:
    """Return the number of trials, one by default."""
    return np.array(1.0) if n_trials is None else n_trials
