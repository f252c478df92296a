"""The answered, informative items of some models, laid out for fast sums over items."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from itembank.irt.families import ResponseModel
from itembank.irt.family_names import KINDS
from itembank.irt.logistic import log_probabilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.splits import places_within
from itembank.numerics.symmetric import packed_products, unpack

SPARSE_BELOW = 0.25
"""Fraction of answered cells below which each model keeps its own list of items. Measured with 1,000 items in one and
five dimensions: lists are three times as quick at a quarter, and no quicker from 0.7 to 0.8 on. They hold the loadings
of every cell, so that in four dimensions they take as much memory at a quarter as all cells do."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Responses with the parameters of the items answered.

    Where most models answered the same items (shared layout) the arrays over items have no axis of
    models and sums over items are matrix products. Where each answered its own few (an adaptive test),
    every model has its own row of n_answers items, padded with items of zero loadings.
    """

    responses: FloatArray  # (n_models, n_answers): In [0, 1]; 0 where there is none
    is_answered: BoolArray | None  # (n_models, n_answers): None when there is none missing
    loadings: FloatArray  # (n_answers, n_dims), or (n_models, n_answers, n_dims)
    intercept: FloatArray  # (n_answers,), or (n_models, n_answers)
    model: ResponseModel  # Its arrays of the shape of the intercept
    # (n_answers, n_dims (n_dims + 1) / 2): Packed outer products of the loadings in the shared layout.
    products: FloatArray | None
    # (n_models, n_answers): How many times each answer counts in the likelihood (repeated trials), 0 where there is
    # none; None where each counts once.
    weights: FloatArray | None = None
    # (n_models, n_answers): Trials of a beta-binomial answer, 0 where there is none; None where each is one, and for
    # other families.
    n_trials: FloatArray | None = None

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
        n_trials = None if self.n_trials is None else self.n_trials[rows]
        if self.is_shared:
            shared = (self.loadings, self.intercept, self.model, self.products)
            return Answers(self.responses[rows], is_answered, *shared, weights, n_trials)
        own = (self.loadings[rows], self.intercept[rows], self.model.take(rows), None)
        return Answers(self.responses[rows], is_answered, *own, weights, n_trials)


def gather(
    parameters: ItemParameters,
    responses: FloatArray,
    weights: FloatArray | None = None,
    n_trials: FloatArray | None = None,
) -> Answers:
    """Lay out responses (n_models, n_items), NaN missing; items nobody answered or without loadings are left out.

    `weights` (n_models, n_items) say how many times each response counts, once by default; `n_trials` behind a
    response of a family of counts, one by default. Other families take no notice of trials.
    """
    if KINDS[parameters.family].takes != "counts":
        n_trials = None
    elif n_trials is not None and not KINDS[parameters.family].has_precision:
        # a response of independent trials is one of a single trial, n_trials times
        weights, n_trials = n_trials if weights is None else weights * n_trials, None
    is_answered = ~np.isnan(responses)
    # Items without loadings say nothing of ability, whatever the answer.
    columns = np.flatnonzero(is_answered.any(axis=0) & parameters.loadings.any(axis=1))
    if len(columns) < responses.shape[1]:
        parameters, responses, is_answered = parameters.take(columns), responses[:, columns], is_answered[:, columns]
        weights = None if weights is None else weights[:, columns]
        n_trials = None if n_trials is None else n_trials[:, columns]
    if weights is not None:
        weights = np.where(is_answered, weights, 0.0)
    if n_trials is not None:
        n_trials = np.where(is_answered, n_trials, 0.0)
    if is_answered.size and is_answered.mean() < SPARSE_BELOW:
        return _own_items(parameters, responses, is_answered, weights, n_trials)
    model = ResponseModel.of(parameters)
    shared = (parameters.loadings, parameters.intercept, model, packed_products(parameters.loadings))
    if is_answered.all():
        return Answers(responses, None, *shared, weights, n_trials)
    return Answers(np.where(is_answered, responses, 0.0), is_answered, *shared, weights, n_trials)


def blocks(responses: FloatArray, width: int | None = None) -> Iterator[slice]:
    """Cut the models into runs of at most `CELLS_AT_ONCE` responses (or of `width` numbers a model)."""
    n_models, n_items = responses.shape
    return row_blocks(max(1, n_models), n_items if width is None else width)


def thinned(answers: Answers, most: int) -> Answers:
    """Keep about `most` of the answers at most, evenly over the items."""
    # Equal steps over the items, not the first ones: files often list items by scenario or difficulty.
    step = -(-answers.responses.shape[1] // most)
    if step <= 1:
        return answers
    columns = np.arange(0, answers.responses.shape[1], step)
    of_items = (slice(None), columns) if answers.intercept.ndim == 2 else columns

    def of_models(array: FloatArray | None) -> FloatArray | None:
        return None if array is None else array[:, columns]

    return replace(
        answers,
        responses=answers.responses[:, columns],
        is_answered=None if answers.is_answered is None else answers.is_answered[:, columns],
        loadings=answers.loadings[of_items],
        intercept=answers.intercept[of_items],
        model=answers.model.take(of_items),
        products=None if answers.products is None else answers.products[columns],
        weights=of_models(answers.weights),
        n_trials=of_models(answers.n_trials),
    )


def gather_blocks(
    parameters: ItemParameters, responses: FloatArray, n_trials: FloatArray | None, width: int | None = None
) -> Iterator[Answers]:
    """Lay out the responses of one run of models after the other, see `blocks`."""
    for run in blocks(responses, width):
        yield gather(parameters, responses[run], None, None if n_trials is None else n_trials[run])


def logits(answers: Answers, theta: FloatArray) -> FloatArray:
    """Logit of every answer, (n_models, n_answers)."""
    if answers.is_shared:
        return theta @ answers.loadings.T + answers.intercept
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
        return weights @ answers.loadings
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
        return matrices.reshape(len(matrices), -1) @ flat.T
    own: FloatArray = np.einsum("mid,mid->mi", np.matmul(answers.loadings, matrices), answers.loadings)
    return own


def log_likelihood_at(answers: Answers, points: FloatArray) -> FloatArray:
    """Log-likelihood of every model at points (n_points, n_dims) common to all: (n_models, n_points)."""
    if answers.is_shared:
        weights = answers.weights
        if weights is None and answers.is_answered is not None:
            weights = answers.is_answered.astype(np.float64)
        x = points @ answers.loadings.T + answers.intercept  # (n_points, n_answers)
        found = answers.model.log_likelihood_at(x, answers.responses, weights)
        if found is not None:
            return found
    result = np.empty((answers.n_models, len(points)))
    if answers.n_models == 1 and answers.is_shared:  # a session's
        terms = _terms_at(answers, points @ answers.loadings.T + answers.intercept)  # (n_points, n_answers)
        result[0] = only_answered(answers, terms).sum(axis=1)
        return result
    for index, point in enumerate(points):
        terms = _terms_at(answers, answers.loadings @ point + answers.intercept)
        result[:, index] = only_answered(answers, terms).sum(axis=1)
    return result


def _terms_at(answers: Answers, x: FloatArray) -> FloatArray:
    """Log-likelihood of each answer at logits (n_answers,) or (n_models, n_answers)."""
    if not answers.model.is_logistic:
        return answers.model.log_likelihood_terms(x, answers.responses, answers.n_trials)
    log_p, log_q = log_probabilities(x, answers.model.asymptotes)
    return answers.responses * (log_p - log_q) + log_q


def _own_items(
    parameters: ItemParameters,
    responses: FloatArray,
    is_answered: BoolArray,
    weights: FloatArray | None,
    n_trials: FloatArray | None,
) -> Answers:
    """Give every model its own list of items, padded to the longest."""
    rows, columns = np.nonzero(is_answered)
    counts = is_answered.sum(axis=1)
    places = places_within(counts)
    items = np.zeros((len(responses), counts.max()), dtype=np.int64)  # (n_models, n_answers)
    filled = np.zeros(items.shape, dtype=bool)
    items[rows, places], filled[rows, places] = columns, True
    return Answers(
        np.where(filled, np.take_along_axis(responses, items, axis=1), 0.0),
        filled,
        parameters.loadings[items] * filled[..., None],
        parameters.intercept[items],
        ResponseModel.of(parameters).take(items),
        None,
        None if weights is None else np.where(filled, np.take_along_axis(weights, items, axis=1), 0.0),
        None if n_trials is None else np.where(filled, np.take_along_axis(n_trials, items, axis=1), 0.0),
    )
