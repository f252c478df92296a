"""Right and wrong answers, and counts of independent ones; logits and probabilities of models and items.

With ``x = loadings . theta + intercept``, ``p = lower + (upper - lower) * sigmoid(x)``. Derivatives
are in `itembank.irt.logistic`.
"""

import numpy as np

# ruff: noqa: ARG002 (a family takes no notice of what it does not need)
from itembank.irt import logistic
from itembank.irt.families import ResponseModel
from itembank.irt.logistic import LikelihoodTerms, asymptotes_of
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid
from itembank.numerics.symmetric import packed_products, unpack


def logit(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Logit of every model on every item, (n_models, n_items), for theta (n_models, n_dims)."""
    return theta @ parameters.loadings.T + parameters.intercept


def probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Probability of a correct response, (n_models, n_items), for theta (n_models, n_dims)."""
    rising = sigmoid(logit(parameters, theta))
    if asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote) is None:
        return rising
    return parameters.lower_asymptote + (parameters.upper_asymptote - parameters.lower_asymptote) * rising


def information_weights(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Weights w, (n_models, n_items): the Fisher information matrix of an item is ``w_i a_i a_i'``."""
    return logistic.information_weights(
        logit(parameters, theta), asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    )


def weighted_information(loadings: FloatArray, weights: FloatArray) -> FloatArray:
    """``sum_i w_i a_i a_i'`` for weights (n_models, n_items): (n_models, n_dims, n_dims), as one product."""
    return unpack(weights @ packed_products(loadings), loadings.shape[1])


class BernoulliModel(ResponseModel):
    """Right or wrong; a fraction counts as a weighted likelihood. Trials are not looked at."""

    __slots__ = ()
    is_logistic = True

    @property
    def is_concave(self) -> bool:
        """With asymptotes a likelihood can have several maxima."""
        return self.asymptotes is None

    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """Return one."""
        return self._weighed(np.array(1.0), n_trials)

    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """``y log p + (1 - y) log(1 - p)``."""
        return self._weighed(logistic.log_likelihood_terms(x, responses, self.asymptotes), n_trials)

    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """By `logistic.likelihood_terms`."""
        terms = logistic.likelihood_terms(x, responses, self.asymptotes)
        return LikelihoodTerms(*(self._weighed(term, n_trials) for term in terms))

    def information_weights(self, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """By `logistic.information_weights`."""
        return self._weighed(logistic.information_weights(x, self.asymptotes), n_trials)

    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By `logistic.information_slopes`."""
        weights, first, second = logistic.information_slopes(x, self.asymptotes)
        return self._weighed(weights, n_trials), self._weighed(first, n_trials), self._weighed(second, n_trials)

    def log_likelihood_at(self, x: FloatArray, responses: FloatArray, weights: FloatArray | None) -> FloatArray:
        """``y (log p - log q) + log q`` is linear in y."""
        log_p, log_q = logistic.log_probabilities(x, self.asymptotes)
        if weights is None:
            result: FloatArray = responses @ (log_p - log_q).T + log_q.sum(axis=1)
            return result
        return (weights * responses) @ (log_p - log_q).T + weights @ log_q.T

    def _weighed(self, terms: FloatArray, n_trials: FloatArray | None) -> FloatArray:
        """Give terms of one trial."""
        return terms


class BinomialModel(BernoulliModel):
    """Shares of n independent trials that were right: the terms of one trial, n times."""

    __slots__ = ()

    def _weighed(self, terms: FloatArray, n_trials: FloatArray | None) -> FloatArray:
        return terms if n_trials is None else terms * n_trials
