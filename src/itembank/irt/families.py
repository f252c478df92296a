"""The one place that knows which item model a family of responses has.

`ResponseModel` holds what a likelihood needs of items besides their logits; everything that weighs responses or
information, in scoring, selection and sessions, asks it. The functions below are the same for `ItemParameters`.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.irt import beta, beta_binomial, beta_binomial_information, graded, logistic
from itembank.irt.family_names import Family
from itembank.irt.logistic import Asymptotes, LikelihoodTerms, asymptotes_of
from itembank.irt.means import mean_terms
from itembank.irt.parameters import ItemParameters
from itembank.irt.steps import Steps
from itembank.numerics.arrays import FloatArray, IntArray

COUNTS: tuple[Family, ...] = ("binomial", "beta-binomial")
"""Families of counts: the weight of a response depends on its n_trials."""

MOST_OF_LEVELS = 4.0 / 3.0
"""Information of ever more levels, in units of 1/4: 1/3 is that of a logistic variable itself."""


@dataclass(frozen=True, slots=True)
class ResponseModel:
    """How responses to some items are distributed, given their logits."""

    family: Family
    asymptotes: Asymptotes | None  # Of the items' shape
    precision: FloatArray | None  # (n_items,), or (n_models, n_items),
    steps: Steps | None = None  # Of family 'graded'

    @classmethod
    def of(cls, parameters: ItemParameters) -> Self:
        """Take from item parameters all that the logit does not contain."""
        asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
        return cls(parameters.family, asymptotes, parameters.precision, parameters.steps)

    @property
    def is_logistic(self) -> bool:
        """Whether a response's log-likelihood is a multiple of ``y log p + (1 - y) log(1 - p)``."""
        return self.family in ("bernoulli", "binomial")

    @property
    def is_concave(self) -> bool:
        """Whether the log-likelihood is concave in the logit, so that there is at most one maximum."""
        return (self.is_logistic and self.asymptotes is None) or self.steps is not None

    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """About the largest information of a response, in units of the 1/4 of a right or wrong answer."""
        # psi1(z) <= 1 / z + 1 / z^2 bounds a Beta response's information by phi p q + p^2 + q^2. Four times that is at
        # most max(phi + 2, 4): phi + 4 lies above it, and by a factor of two at most while nothing is clipped.
        # n trials tell no more than n answers do, and no more than the rate that they are drawn from.
        match self.family:
            case "beta":
                return np.asarray(self._phi + 4.0)
            case "beta-binomial":
                return np.asarray(np.minimum(_trials(n_trials), self._phi + 4.0))
            case "graded":
                return np.array(MOST_OF_LEVELS)
            case _:
                return self._weighed(np.array(1.0), n_trials)

    def take(self, indices: IntArray | tuple[slice, IntArray]) -> "ResponseModel":
        """Return the model of the items, or rows, at `indices`."""
        return ResponseModel(
            self.family,
            None if self.asymptotes is None else self.asymptotes.take(indices),
            None if self.precision is None else self.precision[indices],
            None if self.steps is None else self.steps.take(indices),
        )

    def mean(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of a response at logits x, its slope in the logit, and the largest variance it may have about it.

        That is ``p (1 - p)``, of a right or wrong answer; of levels the variance that they have.
        """
        if self.steps is not None:
            return graded.mean_terms(x, self.steps)
        terms = mean_terms(x, self.asymptotes)
        return terms.p, terms.first, terms.p * terms.q

    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """Log-likelihood of each response at logits x, up to terms without x."""
        match self.family:
            case "beta":
                return beta.log_likelihood_terms(x, responses, self._phi, self.asymptotes)
            case "beta-binomial":
                return beta_binomial.log_likelihood_terms(x, responses, self._phi, _trials(n_trials), self.asymptotes)
            case "graded":
                return graded.log_likelihood_terms(x, responses, self._steps)
            case _:
                return self._weighed(logistic.log_likelihood_terms(x, responses, self.asymptotes), n_trials)

    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """Log-likelihood of each response, its slope in the logit, and minus its second derivative."""
        match self.family:
            case "beta":
                return beta.likelihood_terms(x, responses, self._phi, self.asymptotes)
            case "beta-binomial":
                return beta_binomial.likelihood_terms(x, responses, self._phi, _trials(n_trials), self.asymptotes)
            case "graded":
                return graded.likelihood_terms(x, responses, self._steps)
            case _:
                terms = logistic.likelihood_terms(x, responses, self.asymptotes)
                return LikelihoodTerms(*(self._weighed(term, n_trials) for term in terms))

    def curvature_slopes(self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """Differentiate the curvature of `likelihood_terms` in the logit."""
        match self.family:
            case "beta":
                return beta.curvature_slopes(x, responses, self._phi, self.asymptotes)
            case "beta-binomial":
                return beta_binomial.curvature_slopes(x, responses, self._phi, _trials(n_trials), self.asymptotes)
            case "graded":
                return graded.curvature_slopes(x, responses, self._steps)
            case _:
                return self._weighed(logistic.curvature_slopes(x, responses, self.asymptotes), n_trials)

    def divergence(self, x: FloatArray, other: FloatArray) -> FloatArray:
        """Kullback-Leibler divergence of a response at logits `other` from one at x, of probabilities or levels."""
        if self.steps is not None:
            return graded.divergence(x, other, self.steps)
        return beta.divergence(x, other, self._phi, self.asymptotes)

    def information_weights(self, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """Fisher information of a response in the logit; of counts, that of all their trials together."""
        match self.family:
            case "beta":
                return beta.information_weights(x, self._phi, self.asymptotes)
            case "beta-binomial" if n_trials is not None:
                return beta_binomial_information.information_weights(x, self._phi, n_trials, self.asymptotes)
            case "graded":
                return graded.information_slopes(x, self._steps)[0]
            case _:  # of one beta-binomial trial, too
                return self._weighed(logistic.information_weights(x, self.asymptotes), n_trials)

    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`information_weights` with their first and second derivatives in the logit."""
        match self.family:
            case "beta":
                return beta.information_slopes(x, self._phi, self.asymptotes)
            case "beta-binomial" if n_trials is not None:
                return beta_binomial_information.information_slopes(x, self._phi, n_trials, self.asymptotes)
            case "graded":
                return graded.information_slopes(x, self._steps)
            case _:
                weights, first, second = logistic.information_slopes(x, self.asymptotes)
                return self._weighed(weights, n_trials), self._weighed(first, n_trials), self._weighed(second, n_trials)

    def _weighed(self, terms: FloatArray, n_trials: FloatArray | None) -> FloatArray:
        """Count each term once a trial, where the family is one of counts."""
        return terms if n_trials is None or self.family == "bernoulli" else terms * n_trials

    @property
    def _steps(self) -> Steps:
        """Steps of levels; families without them never use it."""
        if self.steps is None:
            raise TypeError("this family has no steps.")
        return self.steps

    @property
    def _phi(self) -> FloatArray:
        """Precision; families without one never use it."""
        return np.asarray(self.precision)


def likelihood_terms(
    parameters: ItemParameters, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
) -> LikelihoodTerms:
    """Log-likelihood of each response with its slope and curvature in the logit.

    Parameters
    ----------
    parameters : ItemParameters
    x : (n_models, n_items)
        Logits.
    responses : (n_models, n_items)
        In [0, 1]; of counts, the fraction of right ones.
    n_trials : (n_models, n_items), optional
        Trials behind each response of a family of counts, one by default; other families take no notice.

    Returns
    -------
    LikelihoodTerms
        Each (n_models, n_items); NaN where the response is, but for a curvature that does not depend on the response.
        Binomial coefficients, which do not depend on ability, are left out, and fractions of a single Bernoulli trial
        count as a weighted likelihood.
    """
    return ResponseModel.of(parameters).likelihood_terms(x, responses, n_trials)


def information_weights(parameters: ItemParameters, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
    """Fisher information w of each response in its logit: that about ability is ``w_i a_i a_i'``.

    Parameters
    ----------
    parameters : ItemParameters
    x : (n_models, n_items)
        Logits.
    n_trials : (n_models, n_items), optional
        Trials of a family of counts, one by default; other families take no notice.
    """
    return ResponseModel.of(parameters).information_weights(x, n_trials)


def _trials(n_trials: FloatArray | None) -> FloatArray:
    """Return the number of trials, one by default."""
    return np.array(1.0) if n_trials is None else n_trials
