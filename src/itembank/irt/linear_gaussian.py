"""Linear-Gaussian factor model of raw responses: predict all other items from the answers to some.

``y_i = m_i + L_i . f + e_i`` with ``f ~ N(0, I)`` and ``e_i ~ N(0, s_i)``. Responses are numbers in [0, 1], often 0
and 1, so this is the best *linear* description of how items vary together, not a model of how answers come about.

Residuals of answers given other answers, by the linear-Gaussian factor model: of items, of groups, one by one.

With ``r = y_S - m_S`` and ``V = L_S L_S' + diag(s_S)`` the misfit of a model is ``r' V^-1 r / |S|``
(`estimation.regression.factor`). Everything here divides that same quantity: by item, by group of items, by answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray

Part = tuple[slice, FloatArray]
"""Items, and the responses (n_models, n) to these; NaN where missing."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Responses of models to items, read some items at a time, and again whenever they are gone over."""

    n_models: int
    n_items: int
    read: Callable[[slice], FloatArray]  # Gives the responses (n_models, n) to the items of a slice; NaN where missing
    width: int  # Items that are read at a time

    @classmethod
    def of(cls, responses: FloatArray) -> Self:
        """Go over an array (n_models, n_items) as one part."""
        n_models, n_items = responses.shape
        return cls(n_models, n_items, lambda place: responses[:, place], max(n_items, 1))

    @property
    def is_one_part(self) -> bool:
        """Whether all items are read at once."""
        return self.width >= self.n_items

    def parts(self) -> Iterator[Part]:
        """Give the parts in order."""
        for first in range(0, self.n_items, self.width):
            place = slice(first, min(first + self.width, self.n_items))
            yield place, self.read(place)

    def of_models(self, rows: IntArray) -> "Columns":
        """Return the responses of these models, in this order."""
        return Columns(rows.size, self.n_items, lambda place: self.read(place)[rows], self.width).kept()

    def changed(self, change: Callable[[slice, FloatArray], FloatArray]) -> "Columns":
        """Return what a function makes of each part, given its items and its responses."""
        read = self.read
        return Columns(self.n_models, self.n_items, lambda place: change(place, read(place)), self.width).kept()

    def kept(self) -> "Columns":
        """Read one part now, so that it is not made again; leave several as they are."""
        return Columns.of(self.read(slice(0, self.n_items))) if self.is_one_part else self


@dataclass(frozen=True, slots=True)
class FactorModel:
    """Means, loadings and noise of items."""

    mean: FloatArray  # (n_items,): m
    loadings: FloatArray  # (n_items, n_factors): L
    noise: FloatArray  # (n_items,): s, a variance; positive wherever a response varied at all

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.mean.shape[0])

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return int(self.loadings.shape[1])


def fit_factor_model(
    responses: FloatArray | Columns,  # (n_models, n_items); NaN where missing
    *,
    n_factors: int | Literal["auto"] = "auto",  # At most this many; 'auto' takes up to 50, so the bound alone decides
    # (n_models, n_models): `self_products` of the responses, less whatever mean of each item, if known and none missing
    products: FloatArray | None = None,
) -> FactorModel:
    """Fit by principal components with the sampling noise of eigenvalues and eigenvectors taken out.

    With more items than models the leading sample eigenvalues are far too large and their vectors point partly
    astray. Under the spiked covariance model with ``gamma = n_items / (n_models - 1)`` and noise ``s``, a sample
    eigenvalue ``lambda`` above ``s (1 + sqrt(gamma))^2`` belongs to a true one ``l`` with
    ``lambda = l (1 + gamma s / (l - s))``, and the squared cosine between the two vectors is
    ``(1 - gamma s^2 / (l - s)^2) / (1 + gamma s / (l - s))`` (Paul 2007, theorems 2 and 4). Loadings are the sample
    vectors times ``sqrt((l - s) cos^2)``: what can be known of the factor; factors below the bound are dropped.

    What is missing is filled in from the factors, again and again. That tells nothing, so a model that answered a
    fraction of the items counts as that fraction of a model, in gamma, too; one that answered less than
    a tenth is left out. With fewer than three models, or all noise, there are no factors.
    """
    columns = responses if isinstance(responses, Columns) else Columns.of(responses)
    n_missing = np.zeros(columns.n_models)
    for _, part in columns.parts():
        n_missing += np.isnan(part).sum(axis=1)
    answered = 1.0 - n_missing / columns.n_items
    # With 30 models that answered all of 1,537 items, 400 more that answered a tenth made the overall score as good as
    # without them and the scenarios' better; with 60 answers each they made it worse by a sixth. Where fewer than ten
    # answered so much, all count.
    is_enough = answered >= 0.1
    if not is_enough.all() and is_enough.sum() >= 10:
        columns, answered = columns.of_models(np.flatnonzero(is_enough)), answered[is_enough]
    # Bounds the cost. As a rule the bound on the eigenvalues decides before: of 120 models simulated with 7 abilities
    # it keeps 7 factors.
    most_factors = 50
    most = min(most_factors if n_factors == "auto" else n_factors, max(int(answered.sum()) - 2, 0))
    if (answered == 1.0).all():
        return _fit_weighted(columns, answered, most, products)
    filled = additively_filled(columns)
    model = _fit_weighted(filled, answered, most)
    # Times that missing responses are replaced by what the factors say of them; more changes nothing that matters.
    filling_rounds = 8
    for _ in range(filling_rounds):
        filled = _filled(columns, model, expected_factors(model, filled))
        model = _fit_weighted(filled, answered, most)
    # what was filled in lies on the factors and so seems to have no noise; an item that nobody answered counts as
    # answered by the model with the fewest answers
    known = [answered @ ~np.isnan(part) for _, part in columns.parts()]
    fraction_observed = np.maximum(np.concatenate(known), answered.min()) / answered.sum()
    return FactorModel(model.mean, model.loadings, model.noise / fraction_observed)


def self_products(centred: FloatArray, *, is_part: bool) -> FloatArray:
    """Products of every two models' responses, (n_models, n_items), less their mean, (n_models, n_models).

    Of a part of the items in float32, which takes half the time: sums of parts are added up in float64.
    """
    centred = centred.astype(np.float32) if is_part else centred
    return centred @ centred.T


def factor_posterior(model: FactorModel, items: IntArray, responses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior of the factors from complete responses (n_models, n_observed) to the items at these positions.

    Its means, (n_models, n_factors), and the covariance that it has for all models, (n_factors, n_factors).

    ``C = (I + L_S' diag(1/s_S) L_S)^-1`` and ``E[f] = C L_S' diag(1/s_S) (y_S - m_S)``. With fewer items than factors,
    by Woodbury's identity, ``C = I - G L_S`` and ``E[f] = G (y_S - m_S)`` with ``G = L_S' (diag(s_S) + L_S L_S')^-1``,
    which takes a matrix of |S| rows.
    """
    loadings = model.loadings[items]
    if items.size < model.n_factors:
        gain = np.linalg.solve(np.diag(model.noise[items]) + loadings @ loadings.T, loadings)  # G'
        remaining: FloatArray = np.eye(model.n_factors) - loadings.T @ gain
        return (responses - model.mean[items]) @ gain, remaining
    scaled = loadings / model.noise[items, None]
    covariance = np.linalg.inv(np.eye(model.n_factors) + loadings.T @ scaled)
    return (responses - model.mean[items]) @ scaled @ covariance, covariance


def expected_factors(model: FactorModel, responses: Columns) -> FloatArray:
    """Mean of the factors given complete responses to all items, (n_models, n_factors), as by `factor_posterior`."""
    scaled = model.loadings / model.noise[:, None]
    sums = np.zeros((responses.n_models, model.n_factors))
    for place, part in responses.parts():
        sums += (part - model.mean[place]) @ scaled[place]
    return sums @ np.linalg.inv(np.eye(model.n_factors) + model.loadings.T @ scaled)


def _fit_weighted(
    responses: Columns, weights: FloatArray, most: int, products: FloatArray | None = None
) -> FactorModel:
    """Fit to complete responses of models that count so much, (n_models,), with at most this many factors."""
    n_items, n_models = responses.n_items, float(weights.sum())
    freedom = max(n_models - 1.0, 1.0)
    root, is_even = np.sqrt(weights)[:, None], bool((weights == 1.0).all())
    mean, variance = np.empty(n_items), np.empty(n_items)
    summed = np.zeros((responses.n_models, responses.n_models))
    for place, part in responses.parts():
        mean[place] = np.average(part, axis=0, weights=None if is_even else weights)
        centred = part - mean[place]
        if not is_even:
            centred *= root
        variance[place] = np.einsum("li,li->i", centred, centred) / freedom
        if products is None:
            summed += self_products(centred, is_part=not responses.is_one_part)
    if products is not None:  # less the mean of these models
        summed = products - products.mean(axis=0)
        summed -= summed.mean(axis=1)[:, None]
    total = float(variance.sum())
    if most < 1 or total <= 0.0:
        # `factor_posterior` divides by the noise, also that of items without any.
        return FactorModel(mean, np.zeros((n_items, 0)), np.maximum(variance, np.finfo(np.float64).tiny))
    # The nonzero eigenvalues of the item covariance are those of this matrix over models, which is smaller.
    eigenvalues, vectors = _largest(summed / freedom, most, all_at_once=responses.is_one_part)
    # Centred models have one eigenvalue of zero, repeated ones have more: rounding, which must not be divided by.
    eigenvalues, vectors = eigenvalues[eigenvalues > 1e-12 * total], vectors[:, eigenvalues > 1e-12 * total]
    noise = _bulk_noise(eigenvalues, total, n_items, freedom)
    strength = _shrunken(eigenvalues, noise, n_items / freedom)
    is_used = strength > 0.0
    scaled = root * vectors[:, is_used] * np.sqrt(strength[is_used] / (eigenvalues[is_used] * freedom))
    loadings = np.empty((n_items, int(is_used.sum())))
    for place, part in responses.parts():
        loadings[place] = part.T @ scaled - np.outer(mean[place], scaled.sum(axis=0))  # without a centred copy
    # Least noise of an item, as a fraction of the mean.
    smallest_noise = 0.02
    item_noise = np.maximum(variance - np.einsum("ik,ik->i", loadings, loadings), smallest_noise * noise)
    # Weight of the items' mean noise in each item's noise: with few models the latter is hardly known.
    noise_shrinkage = 0.5
    return FactorModel(mean, loadings, (1.0 - noise_shrinkage) * item_noise + noise_shrinkage * noise)


def _largest(matrix: FloatArray, most: int, *, all_at_once: bool) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of a symmetric matrix, at most so many, in descending order, and their vectors."""
    if all_at_once:
        values, vectors = np.linalg.eigh(matrix)
    else:  # of many models, where the others would take most of the time
        from scipy.linalg import eigh  # noqa: PLC0415 (short commands import this module, and fit nothing)

        n = matrix.shape[0]
        values, vectors = eigh(matrix, subset_by_index=(max(n - most, 0), n - 1), overwrite_a=True, check_finite=False)
    return values[::-1][:most], vectors[:, ::-1][:, :most]


def _bulk_noise(eigenvalues: FloatArray, total: float, n_items: int, freedom: float) -> float:
    """Mean noise of an item: the variance that the eigenvalues above its own bound leave."""
    n_spikes = 0
    while True:
        # each factor takes one degree of freedom of every item's variance
        # With as many factors as models nothing would remain, and a noise of zero makes every eigenvalue a factor.
        remaining = max(total - float(eigenvalues[:n_spikes].sum()), 1e-6 * total)
        noise = remaining / (n_items * (1.0 - n_spikes / (freedom + 1.0)))
        n_above = int(np.sum(eigenvalues > _bound(noise, n_items / freedom)))
        if n_above <= n_spikes:
            return noise
        n_spikes += 1


def _bound(noise: float, gamma: float) -> float:
    """Largest eigenvalue that noise alone makes: ``s (1 + sqrt(gamma))^2`` (Marchenko & Pastur 1967)."""
    return float(noise * (1.0 + np.sqrt(gamma)) ** 2)


def _shrunken(eigenvalues: FloatArray, noise: float, gamma: float) -> FloatArray:
    """Variance of the factor along each sample vector; 0 where the eigenvalue may be noise alone."""
    is_spike = eigenvalues > _bound(noise, gamma)
    # The larger root l of lambda = l (1 + gamma s / (l - s)): l^2 - (lambda + s - gamma s) l + lambda s = 0.
    half = eigenvalues + noise - gamma * noise
    true = (half + np.sqrt(np.maximum(half**2 - 4.0 * eigenvalues * noise, 0.0))) / 2.0
    # Below the bound the roots are not real and the excess means nothing; it is only kept from dividing by zero.
    excess = np.maximum(true - noise, 1e-12 * noise)
    ratio = gamma * noise / excess
    squared_cosine = np.clip((1.0 - ratio * noise / excess) / (1.0 + ratio), 0.0, 1.0)
    return np.where(is_spike, excess * squared_cosine, 0.0)


def _filled(responses: Columns, model: FactorModel, factors: FloatArray) -> Columns:
    """Replace missing responses by what the factors (n_models, n_factors) say of them."""

    def fill(place: slice, part: FloatArray) -> FloatArray:
        return np.where(np.isnan(part), model.mean[place] + factors @ model.loadings[place].T, part)

    return responses.changed(fill)


def additively_filled(responses: Columns) -> Columns:
    """Fill missing responses by item mean plus model effect, cut to [0, 1]; 0.5 where an item was never answered."""
    if responses.is_one_part and not any(np.isnan(part.sum()) for _, part in responses.parts()):
        return responses
    item = np.empty(responses.n_items)
    total, n_seen = np.zeros((2, responses.n_models))
    for place, part in responses.parts():
        seen = ~np.isnan(part)
        count = seen.sum(axis=0)
        sums = np.where(seen, part, 0.0).sum(axis=0)
        item[place] = np.divide(sums, count, out=np.full(count.shape, 0.5), where=count > 0)
        # The model effect is the mean residual over the items that the model answered.
        total += np.where(seen, part - item[place], 0.0).sum(axis=1)
        n_seen += seen.sum(axis=1)
    if n_seen.min(initial=responses.n_items) == responses.n_items:
        return responses
    effect = (total / np.maximum(n_seen, 1))[:, None]
    return responses.changed(
        lambda place, part: np.where(np.isnan(part), np.clip(item[place] + effect, 0.0, 1.0), part)
    )


def item_residuals(
    model: FactorModel,  # Of all items
    items: IntArray,  # (n_observed,): Positions of the answered items
    responses: FloatArray,  # (n_models, n_observed): Complete
) -> tuple[FloatArray, FloatArray]:
    """Residual of each answer given all other answers of the same model.

    ``e_i = (V^-1 r)_i / (V^-1)_ii`` with variance ``1 / (V^-1)_ii``, the closed form of leaving one answer out;
    ``V^-1`` by Woodbury's identity, so that no matrix of |S| rows is needed.

    Returns answers less expectations, (n_models, n_observed), on the scale of responses, and the variance of each by
    the factor model, (n_observed,).
    """
    loadings, noise = model.loadings[items], model.noise[items]
    factors, covariance = factor_posterior(model, items, responses)
    unexplained = (responses - model.mean[items] - factors @ loadings.T) / noise
    precision = 1.0 / noise - np.einsum("iq,iq->i", loadings @ covariance, loadings) / noise**2
    return unexplained / precision, 1.0 / precision


def group_residuals(
    model: FactorModel, items: IntArray, responses: FloatArray, group: IntArray, reference: IntArray
) -> tuple[FloatArray, float]:
    """Mean residual over the items of a group, given the answers to the items of a reference.

    ``e = mean_G (y_i - m_i - L_i . E[f | y_R])`` with variance ``l' C l + sum_G s_i / |G|^2``, where l is the mean of
    the group's loadings and C the covariance of the factors given ``y_R``.

    Arguments are those of `item_residuals`, and columns of `responses`, (n_group,) and (n_reference,), none in both.
    Returns mean residuals, (n_models,), on the scale of responses, and their variance by the factor model.
    """
    factors, covariance = factor_posterior(model, items[reference], responses[:, reference])
    own = items[group]
    lever = model.loadings[own].mean(axis=0)
    expected = model.mean[own].mean() + factors @ lever
    variance = float(lever @ covariance @ lever + model.noise[own].sum() / group.size**2)
    return responses[:, group].mean(axis=1) - expected, variance


def successive_residuals(
    model: FactorModel,  # Of all items
    items: IntArray,  # (n_observed,): Positions of the items in the order in which they were answered
    responses: FloatArray,  # (n_models, n_observed): Complete, in the same order
) -> FloatArray:
    """Residual of each answer given the answers before it, in standard deviations, (n_models, n_observed).

    ``u = A^-1 r`` with the Cholesky factor A of V: uncorrelated, of mean 0 and variance 1 for models of the population
    that the factor model describes. Their mean square is the model's misfit.
    """
    from scipy.linalg import solve_triangular  # noqa: PLC0415 (short commands import this module, and fit nothing)

    loadings = model.loadings[items]
    covariance = loadings @ loadings.T
    covariance[np.diag_indices(items.size)] += model.noise[items]
    result: FloatArray = solve_triangular(
        np.linalg.cholesky(covariance), (responses - model.mean[items]).T, lower=True, check_finite=False
    ).T
    return result
