"""The answered, informative items of some models, laid out for fast sums over items."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from itembank.irt.logistic import Asymptotes, asymptotes_of, log_probabilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.symmetric import packed_products, unpack

BLOCK_CELLS = 1 << 20
"""Cells of (n_models, n_items) worked on at once: small enough to bound memory."""

SPARSE_BELOW = 0.25
"""Share of answered cells below which each model keeps its own list of items."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Responses with the parameters of the items answered.

    Where most models answered the same items (shared layout) the arrays over items have no axis of
    models and sums over items are matrix products. Where each answered its own few (an adaptive test),
    every model has its own row of n_answers items, padded with items of zero loadings.

    Attributes
    ----------
    responses : (n_models, n_answers)
        In [0, 1]; 0 where there is none.
    is_answered : (n_models, n_answers) or None
        None when there is none missing.
    loadings : (n_answers, n_dims), or (n_models, n_answers, n_dims)
    intercept : (n_answers,), or (n_models, n_answers)
    asymptotes : Asymptotes or None
        Of the shape of the intercept.
    products : (n_answers, n_dims (n_dims + 1) / 2) or None
        Packed outer products of the loadings in the shared layout.
    weights : (n_models, n_answers) or None
        How many times each answer counts in the likelihood (repeated trials), 0 where there is none; None where
        each counts once.
    """

    responses: FloatArray
    is_answered: BoolArray | None
    loadings: FloatArray
    intercept: FloatArray
    asymptotes: Asymptotes | None
    products: FloatArray | None
    weights: FloatArray | None = None

    @property
    def is_shared(self) -> bool:
        """Whether all models share one list of items."""
        return self.loadings.ndim == 2

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.responses.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.loadings.shape[-1])

    @property
    def counts(self) -> IntArray:
        """Number of informative answers of every model, (n_models,)."""
        if self.is_answered is None:
            return np.full(self.n_models, self.responses.shape[1], dtype=np.int64)
        result: IntArray = self.is_answered.sum(axis=1)
        return result

    def take(self, rows: IntArray) -> "Answers":
        """Return the answers of the models at `rows`."""
        is_answered = None if self.is_answered is None else self.is_answered[rows]
        weights = None if self.weights is None else self.weights[rows]
        if self.is_shared:
            shared = (self.loadings, self.intercept, self.asymptotes, self.products)
            return Answers(self.responses[rows], is_answered, *shared, weights)
        asymptotes = None if self.asymptotes is None else self.asymptotes.take(rows)
        own = (self.loadings[rows], self.intercept[rows], asymptotes, None)
        return Answers(self.responses[rows], is_answered, *own, weights)


def gather(parameters: ItemParameters, responses: FloatArray, weights: FloatArray | None = None) -> Answers:
    """Lay out responses (n_models, n_items), NaN missing; items nobody answered or without loadings are left out.

    `weights` (n_models, n_items) say how many times each response counts; once by default.
    """
    is_answered = ~np.isnan(responses)
    columns = np.flatnonzero(is_answered.any(axis=0) & parameters.loadings.any(axis=1))
    if len(columns) < responses.shape[1]:
        parameters, responses, is_answered = parameters.take(columns), responses[:, columns], is_answered[:, columns]
        weights = None if weights is None else weights[:, columns]
    if weights is not None:
        weights = np.where(is_answered, weights, 0.0)
    if is_answered.size and is_answered.mean() < SPARSE_BELOW:
        return _own_items(parameters, responses, is_answered, weights)
    asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    shared = (parameters.loadings, parameters.intercept, asymptotes, packed_products(parameters.loadings))
    if is_answered.all():
        return Answers(responses, None, *shared, weights)
    return Answers(np.where(is_answered, responses, 0.0), is_answered, *shared, weights)


def blocks(responses: FloatArray, width: int | None = None) -> Iterator[slice]:
    """Cut the models into runs of at most `BLOCK_CELLS` responses (or of `width` numbers a model)."""
    n_models, n_items = responses.shape
    size = max(1, BLOCK_CELLS // max(1, n_items if width is None else width))
    return (slice(begin, begin + size) for begin in range(0, max(1, n_models), size))


def logits(answers: Answers, theta: FloatArray) -> FloatArray:
    """Logit of every answer, (n_models, n_answers)."""
    if answers.is_shared:
        result: FloatArray = theta @ answers.loadings.T + answers.intercept
        return result
    own: FloatArray = np.matmul(answers.loadings, theta[..., None])[..., 0] + answers.intercept
    return own


def only_answered(answers: Answers, terms: FloatArray) -> FloatArray:
    """Weigh the terms (n_models, n_answers), and set those without an answer to zero."""
    if answers.weights is not None:
        return terms * answers.weights
    return terms if answers.is_answered is None else terms * answers.is_answered


def sum_loadings(answers: Answers, weights: FloatArray) -> FloatArray:
    """``sum_i w_i a_i`` for weights (n_models, n_answers): (n_models, n_dims)."""
    if answers.is_shared:
        result: FloatArray = weights @ answers.loadings
        return result
    own: FloatArray = np.matmul(weights[:, None, :], answers.loadings)[:, 0, :]
    return own


def sum_products(answers: Answers, weights: FloatArray) -> FloatArray:
    """``sum_i w_i a_i a_i'`` for weights (n_models, n_answers): (n_models, n_dims, n_dims)."""
    if answers.products is not None:
        return unpack(weights @ answers.products, answers.n_dims)
    weighted = answers.loadings * weights[..., None]
    result: FloatArray = np.matmul(answers.loadings.transpose(0, 2, 1), weighted)
    return result


def quadratic_forms(answers: Answers, matrices: FloatArray) -> FloatArray:
    """``a_i' C a_i`` for matrices C (n_models, n_dims, n_dims): (n_models, n_answers)."""
    if answers.is_shared:
        flat = (answers.loadings[:, :, None] * answers.loadings[:, None, :]).reshape(len(answers.loadings), -1)
        result: FloatArray = matrices.reshape(len(matrices), -1) @ flat.T
        return result
    own: FloatArray = np.einsum("mid,mid->mi", np.matmul(answers.loadings, matrices), answers.loadings)
    return own


def log_likelihood_at(answers: Answers, points: FloatArray) -> FloatArray:
    """Log-likelihood of every model at points (n_points, n_dims) common to all: (n_models, n_points)."""
    if not answers.is_shared:
        return _log_likelihood_at_own(answers, points)
    x = points @ answers.loadings.T + answers.intercept  # (n_points, n_answers)
    log_p, log_q = log_probabilities(x, answers.asymptotes)
    if answers.weights is not None:
        weighted: FloatArray = (answers.weights * answers.responses) @ (log_p - log_q).T + answers.weights @ log_q.T
        return weighted
    if answers.is_answered is None:
        result: FloatArray = answers.responses @ (log_p - log_q).T + log_q.sum(axis=1)
        return result
    missing: FloatArray = answers.responses @ (log_p - log_q).T + answers.is_answered.astype(np.float64) @ log_q.T
    return missing


def _log_likelihood_at_own(answers: Answers, points: FloatArray) -> FloatArray:
    result = np.empty((answers.n_models, len(points)))
    for index, point in enumerate(points):
        log_p, log_q = log_probabilities(answers.loadings @ point + answers.intercept, answers.asymptotes)
        terms = answers.responses * (log_p - log_q) + log_q
        result[:, index] = only_answered(answers, terms).sum(axis=1)
    return result


def _own_items(
    parameters: ItemParameters, responses: FloatArray, is_answered: BoolArray, weights: FloatArray | None
) -> Answers:
    """Give every model its own list of items, padded to the longest."""
    rows, columns = np.nonzero(is_answered)
    counts = is_answered.sum(axis=1)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    items = np.zeros((len(responses), counts.max()), dtype=np.int64)  # (n_models, n_answers)
    filled = np.zeros(items.shape, dtype=bool)
    items[rows, places], filled[rows, places] = columns, True
    asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    return Answers(
        np.where(filled, np.take_along_axis(responses, items, axis=1), 0.0),
        filled,
        parameters.loadings[items] * filled[..., None],
        parameters.intercept[items],
        None if asymptotes is None else asymptotes.take(items),
        None,
        None if weights is None else np.where(filled, np.take_along_axis(weights, items, axis=1), 0.0),
    )
