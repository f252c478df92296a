"""What each scoring method maximises, with derivatives, for many models at once."""

from dataclasses import dataclass

import numpy as np

from itembank.irt.answers import Answers, logits, only_answered, quadratic_forms, sum_loadings, sum_products
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.newton import Evaluation


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Log-likelihood of ability: of right and wrong answers ``sum_i y_i log p_i + (1 - y_i) log(1 - p_i)``."""

    answers: Answers

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        x = logits(self.answers, theta)
        terms = self.answers.model.likelihood_terms(x, self.answers.responses, self.answers.n_trials)
        value, slope, curvature = (only_answered(self.answers, term) for term in terms)
        return Evaluation(value.sum(axis=1), sum_loadings(self.answers, slope), sum_products(self.answers, curvature))

    def take(self, rows: IntArray) -> "Likelihood":
        """Return the objective of the models at `rows`."""
        return Likelihood(self.answers.take(rows))


@dataclass(frozen=True, slots=True)
class Posterior:
    """Log-likelihood less ``(theta - mean)' precision (theta - mean) / 2``."""

    answers: Answers
    mean: FloatArray
    precision: FloatArray

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        likelihood = Likelihood(self.answers).evaluate(theta)
        distance = theta - self.mean
        weighted_distance = distance @ self.precision
        return Evaluation(
            likelihood.objective - 0.5 * np.einsum("md,md->m", distance, weighted_distance),
            likelihood.gradient - weighted_distance,
            likelihood.precision + self.precision,
        )

    def take(self, rows: IntArray) -> "Posterior":
        """Return the objective of the models at `rows`."""
        return Posterior(self.answers.take(rows), self.mean, self.precision)


@dataclass(frozen=True, slots=True)
class Jeffreys:
    """Log-likelihood plus ``log det I(theta) / 2`` (Warm 1989 in the form of Firth 1993).

    With ``C = I^-1``, weights w of the items and their derivatives w', w'' in the logit,

        d/dtheta_k         =  sum_i w'_i a_ik (a_i' C a_i) / 2
        d2/dtheta_k dtheta_l = sum_i w''_i a_ik a_il (a_i' C a_i) / 2 - tr(C I_k C I_l) / 2

    where ``I_k = sum_i w'_i a_ik a_i a_i'``.
    """

    answers: Answers

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        likelihood = Likelihood(self.answers).evaluate(theta)
        slopes = self.answers.model.information_slopes(logits(self.answers, theta), self.answers.n_trials)
        weights, first, second = (only_answered(self.answers, term) for term in slopes)
        information = sum_products(self.answers, weights)
        sign, log_determinant = np.linalg.slogdet(information)
        is_regular = (sign > 0.0) & np.isfinite(log_determinant)
        # Far out all weights underflow and I is singular. The objective of minus infinity refuses the step there, but
        # its derivatives must be computable.
        information = np.where(is_regular[:, None, None], information, np.eye(self.answers.n_dims))
        covariance = np.linalg.inv(information)
        # Lengths a_i' C a_i enter the gradient and the first part of the Hessian; `precision` is minus the Hessian.
        lengths = quadratic_forms(self.answers, covariance)  # (n_models, n_answers)
        return Evaluation(
            np.where(is_regular, likelihood.objective + 0.5 * log_determinant, -np.inf),
            likelihood.gradient + 0.5 * sum_loadings(self.answers, first * lengths),
            likelihood.precision
            - 0.5 * sum_products(self.answers, second * lengths)
            + 0.5 * _trace_products(covariance, _information_slope(self.answers, first)),
        )

    def take(self, rows: IntArray) -> "Jeffreys":
        """Return the objective of the models at `rows`."""
        return Jeffreys(self.answers.take(rows))


@dataclass(frozen=True, slots=True)
class Rescaled:
    """Another objective in coordinates phi with ``theta = centre + scale phi``."""

    inner: Likelihood | Jeffreys
    centre: FloatArray  # (n_models, n_dims)
    scale: FloatArray  # (n_models, n_dims, n_dims)

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its phi (n_models, n_dims)."""
        value, gradient, precision = self.inner.evaluate(self.to_theta(theta))
        # The chain rule: gradient S' g and precision S' P S.
        transposed = self.scale.transpose(0, 2, 1)
        return Evaluation(
            value, np.matmul(transposed, gradient[..., None])[..., 0], transposed @ precision @ self.scale
        )

    def take(self, rows: IntArray) -> "Rescaled":
        """Return the objective of the models at `rows`."""
        return Rescaled(self.inner.take(rows), self.centre[rows], self.scale[rows])

    def to_theta(self, phi: FloatArray) -> FloatArray:
        """Return theta of phi (n_models, n_dims)."""
        result: FloatArray = self.centre + np.matmul(self.scale, phi[..., None])[..., 0]
        return result


def _information_slope(answers: Answers, first: FloatArray) -> FloatArray:
    """``I_k`` for every dimension k, (n_models, n_dims, n_dims, n_dims) with k second."""
    columns = np.moveaxis(answers.loadings, -1, 0)  # (n_dims, n_answers) or (n_dims, n_models, n_answers)
    return np.stack([sum_products(answers, first * column) for column in columns], axis=1)


def _trace_products(covariance: FloatArray, slopes: FloatArray) -> FloatArray:
    """``tr(C I_k C I_l)`` for every pair (k, l), (n_models, n_dims, n_dims)."""
    n_models, n_dims = covariance.shape[:2]
    # tr(A B) is the sum over all entries of A times those of B', so that all pairs are one matrix product.
    scaled = np.matmul(covariance[:, None], slopes)  # C I_k
    flat = scaled.reshape(n_models, n_dims, -1)
    transposed = scaled.transpose(0, 1, 3, 2).reshape(n_models, n_dims, -1)
    result: FloatArray = np.matmul(flat, transposed.transpose(0, 2, 1))
    return result
