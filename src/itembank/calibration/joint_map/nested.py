"""Joint MAP of nested item models: a general ability in every item, specific ones beside it (WILD 5.1-5.2, App. A)."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Fit, FitData
from itembank.calibration.joint_map.ascent import Path, Point, ascend, ending
from itembank.calibration.joint_map.nested_passes import (
    Group,
    NestedData,
    NestedDerivatives,
    ability_derivatives,
    canonical,
    item_derivatives,
)
from itembank.calibration.joint_map.nested_steps import best_axes, best_scale, item_step, log_prior
from itembank.calibration.joint_map.steps import LEAST_INFORMATION, N_START_STEPS, newton_step
from itembank.calibration.orientation import empirical_prior, standardise_each
from itembank.calibration.start import standardised, start_abilities
from itembank.calibration.two_starts import End, Started, advice, better_start
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent

TYPICAL_LOADING = 0.3
"""Mean size of a specific loading, for abilities of variance 1."""

SINGLE_PRECISION_CELLS = 1 << 21
"""From so many cells on the passes over them are in float32; sums over them stay in float64."""


class _Derivatives(NamedTuple):
    """Of items (a part a group) or abilities (one part)."""

    log_likelihood: float
    parts: list[NestedDerivatives]


class Nested(NamedTuple):
    """The ascent's problem; items are (alpha, K, c), with zeros in K where an item's group has no ability."""

    data: NestedData
    spec: JointMAP

    @property
    def may_turn(self) -> bool:
        """Whether the specific abilities have no axes but those the L1 term gives them."""
        return len(self.data.groups) == 1 and self.data.groups[0].dims.size > 2

    def item_derivatives(self, point: Point) -> _Derivatives:
        """Of each group."""
        parts = item_derivatives(self.data, *point)
        return _Derivatives(sum(part.log_likelihood for part in parts), parts)

    def ability_derivatives(self, point: Point) -> _Derivatives:
        """Of all abilities."""
        found = ability_derivatives(self.data, *point)
        return _Derivatives(found.log_likelihood, [found])

    def item_step(self, point: Point, derivatives: _Derivatives) -> FloatArray:
        """Step of all items, group by group."""
        step = np.zeros_like(point.items)
        for group, part in zip(self.data.groups, derivatives.parts, strict=True):
            columns = np.append(group.dims, point.items.shape[1] - 1)
            step[group.items, columns] = item_step(point.items, group, part, self.spec)
        return step

    def ability_step(self, point: Point, derivatives: _Derivatives) -> FloatArray:
        """Newton step of all abilities."""
        (part,) = derivatives.parts
        return newton_step(point.abilities, part.gradient, part.precision)

    def settled(self, point: Point) -> Point:
        """Best scale, and best axes where there are none."""
        if self.may_turn:
            point = Point(*best_axes(*point, self.spec))
        return Point(*best_scale(*point, self.spec))

    def log_prior(self, point: Point) -> float:
        """Of items and abilities."""
        return log_prior(*point, self.spec)


def fit_nested(data: FitData, spec: JointMAP, *, progress: ProgressCallback = silent) -> Fit:
    """Maximise the joint posterior density of a nested item model.

    Abilities then get mean 0 and variance 1 in each dimension, and items move with them; dimensions are neither
    turned nor mixed. The prior for new models has the calibration abilities' covariance (WILD eq. 9), by the law of
    total variance: that of the estimates plus the mean of their posterior covariances.

    Raises
    ------
    ParameterError
        For 'bifactor' where the number of dimensions is not one more than there are groups of items.
    """
    order, problem = make_problem(data, spec)
    path, is_determined = _first_path(problem, progress)
    oriented = standardise_each(*_in_canonical(problem, path.point))
    back = np.argsort(order, kind="stable")
    return Fit(
        loadings=oriented.loadings[back],
        intercept=oriented.intercept[back],
        item_covariance=oriented.item_covariance[back],
        abilities=oriented.abilities,
        ability_covariance=oriented.ability_covariance,
        prior=empirical_prior(oriented.abilities, oriented.ability_covariance),
        converged=path.converged and is_determined,
        n_iterations=len(path.history) - 1,
        message=ending(path, spec.tolerance) + ("" if is_determined else advice(n_dims=spec.n_dims)),
        history=np.asarray(path.history),
    )


def _first_path(problem: Nested, progress: ProgressCallback) -> Started[Path]:
    """Ascend from the better of two starts; abilities of scenarios have one."""
    data = problem.data
    if len(data.groups) > 1:
        return Started(climb(problem, start_point(problem), progress=progress))
    return better_start(
        lambda abilities: climb(problem, start_point(problem, abilities), progress=progress),
        _end,
        data.responses,
        data.observed,
        n_dims=problem.spec.n_dims,
    )


def _end(path: Path) -> End:
    """Give the general ability alone: specific ones may end in several ways that are about as good, anywhere."""
    items, abilities = path.point
    return End(items[:, [0, -1]], abilities[:, :1], path.history[-1])


def climb(problem: Nested, start: Point, *, progress: ProgressCallback = silent) -> Path:
    """Climb from a point."""
    spec = problem.spec
    return ascend(problem, start, max_iterations=spec.max_iterations, tolerance=spec.tolerance, progress=progress)


def make_problem(data: FitData, spec: JointMAP) -> tuple[IntArray, Nested]:
    """Put items of the same abilities next to each other; also give the order they are then in."""
    order, groups = _groups(data, spec)
    n_models, n_items = data.responses.shape
    spec = replace(spec, l1=_l1_weight(spec, n_items / (len(groups) * n_models)))
    if len(groups) > 1:
        data = data.take_items(order)
    responses = data.responses
    if responses.size >= SINGLE_PRECISION_CELLS:
        responses = responses.astype(np.float32)
    weights = data.observed if data.n_trials is None else data.n_trials.astype(responses.dtype)
    inner = NestedData(responses, data.observed, weights, data.lower_asymptote, groups, spec.general_weight)
    return order, Nested(inner, spec)


def _l1_weight(spec: JointMAP, items_per_model: float) -> float:
    """Return the weight of the absolute K; 'auto' leaves it to how many items there are to a model.

    WILD's objective leaves the scale of the specific abilities free. With abilities ``t theta`` and loadings ``k / t``
    for abilities theta of variance 1, the penalties ``l1 n_items |k| / t + n_models t^2 / 2`` are least together at
    ``1.5 n_models^(1/3) (l1 n_items |k|)^(2/3)``, which rises by ``(l1^2 n_models / (n_items |k|))^(1/3)`` a unit of
    one item's ``|k|``. With the weight ``sqrt(n_items / n_models)`` that is 1.5, a Laplace prior's of scale 2/3, where
    ``|k|`` is `TYPICAL_LOADING` on average.
    """
    return float(np.sqrt(items_per_model)) if spec.l1 == "auto" else spec.l1


def _groups(data: FitData, spec: JointMAP) -> tuple[IntArray, tuple[Group, ...]]:
    """Order of the items, and their groups: one in a nested model, one a scenario in a bifactor one."""
    n_items = data.responses.shape[1]
    if spec.item_model == "nested" or data.scenario_index is None:
        return np.arange(n_items), (Group(slice(0, n_items), np.arange(spec.n_dims)),)
    order = np.argsort(data.scenario_index, kind="stable")
    ends = np.cumsum(np.bincount(data.scenario_index, minlength=spec.n_dims - 1))
    groups = [
        Group(slice(start, end), np.array([0, 1 + scenario]))
        for scenario, (start, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True))
        if end > start
    ]
    return order, tuple(groups)


def start_point(problem: Nested, abilities: FloatArray | None = None) -> Point:
    """Fit items to abilities; these lie along the leading directions of the responses unless they are given."""
    data, n_dims = problem.data, problem.spec.n_dims
    if abilities is not None:
        abilities = abilities.copy()
    elif len(data.groups) == 1:
        abilities = start_abilities(data.responses, data.observed, n_dims=n_dims)
    else:
        abilities = _scenario_abilities(data, n_dims)
    abilities[:, 1:] *= _start_scale(problem)
    items = np.zeros((data.responses.shape[1], n_dims + 1))
    items[:, 0] = 1.0
    point = Point(items, abilities)
    for _ in range(N_START_STEPS):
        step = problem.item_step(point, problem.item_derivatives(point))
        point = Point(point.items + step, point.abilities)
    return problem.settled(point)


def _start_scale(problem: Nested) -> float:
    """Scale of the specific abilities at which typical loadings and abilities cost least together; 1 at least.

    On a smaller one the L1 term sets every K to zero at once.
    """
    n_models, n_items = problem.data.responses.shape
    size = TYPICAL_LOADING * problem.spec.loading_weight * n_items / (len(problem.data.groups) * n_models)
    return max(float(np.cbrt(size)), 1.0)


def _scenario_abilities(data: NestedData, n_dims: int) -> FloatArray:
    """Leading direction of all responses, and what is left of each group's score beside it, (n_models, n_dims)."""
    values = standardised(data.responses, data.observed)
    abilities = np.zeros((len(values), n_dims))
    abilities[:, :1] = start_abilities(data.responses, data.observed, n_dims=1)
    general = abilities[:, 0] - abilities[:, 0].mean()
    for group in data.groups:
        score = values[:, group.items].sum(axis=1, dtype=np.float64)
        score = score - score.mean()
        rest = score - general * (general @ score) / max(float(general @ general), 1e-300)
        spread = float(np.sqrt(np.mean(rest**2)))
        abilities[:, group.dims[1]] = rest / spread if spread > 0.0 else 0.0
    return abilities


def _in_canonical(problem: Nested, point: Point) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Give loadings, intercepts, abilities and covariances: inverse information, the other being known.

    The information is that of the responses alone, which the general logit's term would count twice. An L1 term
    counts as a normal prior of the same variance.
    """
    spec, n_dims = problem.spec, problem.spec.n_dims
    plain = problem.data._replace(general_weight=0.0)
    n_items = len(point.items)
    item_covariance = np.zeros((n_items, n_dims + 1, n_dims + 1))
    for group, part in zip(plain.groups, item_derivatives(plain, *point), strict=True):
        item_covariance[
            np.ix_(np.arange(group.items.start, group.items.stop), *[np.append(group.dims, n_dims)] * 2)
        ] = _item_covariances(point.items[group.items][:, group.dims], part.precision, spec)
    information = ability_derivatives(plain, *point).precision
    items = canonical(point.items)
    return (
        items[:, :-1],
        items[:, -1],
        item_covariance,
        point.abilities,
        np.linalg.inv(information + np.eye(n_dims)),
    )


def _item_covariances(loadings: FloatArray, precision: FloatArray, spec: JointMAP) -> FloatArray:
    """Covariance of (alpha, alpha K, c), from the precision of (alpha, K, c)."""
    size = precision.shape[1]
    precision = precision.copy()
    own = np.full(size, spec.loading_weight**2 / 2.0)
    own[0], own[-1] = 1.0 / spec.slope_sd**2, 1.0 / spec.intercept_sd**2
    inner = np.arange(size)
    precision[:, inner, inner] += own + LEAST_INFORMATION
    chain = np.zeros_like(precision)  # of each canonical parameter (row) on each own one
    chain[:, 0, 0] = chain[:, -1, -1] = 1.0
    chain[:, 1:-1, 0] = loadings[:, 1:]
    chain[:, inner[1:-1], inner[1:-1]] = loadings[:, :1]
    result: FloatArray = chain @ np.linalg.inv(precision) @ chain.swapaxes(1, 2)
    return result
