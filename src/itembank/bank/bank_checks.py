"""What a bank must be, whoever wrote its files: digests tell no more than that bytes are those that were written."""

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import numpy as np
import polars as pl

from itembank.bank.banks import FEW_MODELS, KNOWN_PARAMETERS, Bank
from itembank.bank.past_models import PastModels, Published, PublishedSubset, is_name_digest, name_digest
from itembank.errors import DataError, quoted, shown
from itembank.methods import entry_points_of
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.responses.responses import check_response_matrix
from itembank.responses.score_names import RESERVED_NAMES, Across, Within

METHODS = ("variational", "map", "mml", FEW_MODELS, KNOWN_PARAMETERS)
ITEM_MODELS = ("1pl", "2pl", "mirt", "nested")


def bank_problems(bank: Bank) -> list[str]:
    """Say everything that is impossible in a bank; nothing where estimates can rest on it."""
    found = [*_table_problems(bank), *_shape_problems(bank)]
    if found:  # the other checks take shapes for granted
        return found
    return [
        problem
        for check in (
            _response_problems if bank.published is None else _published_problems,
            _number_problems,
            _calibration_problems,
            _prior_problems,
            _target_problems,
        )
        for problem in check(bank)
    ]


def _table_problems(bank: Bank) -> Iterator[str]:
    """Ids and scenarios must be text, and there."""
    for name, table, columns in (
        ("models", bank.responses.models, ("model_id",)),
        ("items", bank.responses.items, ("item_id", "scenario", "subscenario")),
    ):
        for column in columns:
            if column not in table.columns:
                yield f"the table of {name} must have a column {column}."
            elif table.schema[column] != pl.String:
                yield f"{column} must be text, got {table.schema[column]}."
            elif column != "subscenario" and table[column].null_count():
                yield f"{column} must not be empty, got {table[column].null_count()} without."


def _shape_problems(bank: Bank) -> Iterator[str]:
    """Every array must have the axes that its name says."""
    calibration, parameters, targets = bank.calibration, bank.parameters, bank.targets
    n_models, n_items, n_dims = bank.n_models, bank.n_items, parameters.n_dims
    n_scenarios = len(targets.scenarios)
    if n_dims < 1:
        yield "there must be one ability at least, got none."
    wanted: dict[str, tuple[FloatArray | BoolArray, tuple[int, ...]]] = {
        "loadings": (parameters.loadings, (n_items, n_dims)),
        "intercept": (parameters.intercept, (n_items,)),
        "lower_asymptote": (parameters.lower_asymptote, (n_items,)),
        "upper_asymptote": (parameters.upper_asymptote, (n_items,)),
        "item_covariance": (calibration.item_covariance, (n_items, n_dims + 1, n_dims + 1)),
        "abilities": (calibration.abilities, (n_models, n_dims)),
        "ability_covariance": (calibration.ability_covariance, (n_models, n_dims, n_dims)),
        "is_degenerate": (calibration.is_degenerate, (n_items,)),
        "mean of the ability prior": (calibration.prior.mean, (n_dims,)),
        "covariance of the ability prior": (calibration.prior.covariance, (n_dims, n_dims)),
        "score weights": (targets.weights, (n_items,)),
        "scenario weights": (targets.scenario_weights, (n_scenarios,)),
        "item_model_bias": (bank.item_model_bias, (n_scenarios,)),
        "response_variance": (bank.response_variance, (n_scenarios,)),
    }
    for name, (array, shape) in wanted.items():
        if array.shape != shape:
            yield f"{name} must have shape {shape}, got {array.shape}."
        elif name == "is_degenerate" and array.dtype != np.bool_:
            yield f"{name} must be true or false, got {array.dtype}."
        elif name != "is_degenerate" and array.dtype.kind not in "fiu":
            yield f"{name} must be numbers, got {array.dtype}."


def _response_problems(bank: Bank) -> Iterator[str]:
    """Ids must be unique, responses in [0, 1], trials counts, costs amounts."""
    matrix = bank.responses
    if not bank.n_models and bank.calibration.method in {FEW_MODELS, KNOWN_PARAMETERS}:
        yield from _item_problems(bank)
        return
    try:
        check_response_matrix(matrix.responses, matrix.model_ids, matrix.item_ids, matrix.n_trials, matrix.costs)
    except DataError as error:
        yield str(error)
    for unit, cost in matrix.costs.items():
        with np.errstate(invalid="ignore"):
            bad = np.isinf(cost) | (cost < 0.0)
        if bad.any():
            yield f"cost {unit!r} must be finite numbers >= 0, got {cost[bad][0]:g} and {int(bad.sum())} such in all."


def _item_problems(bank: Bank, published: Published | None = None) -> Iterator[str]:
    """Ids of the items of a bank without models must be as those of one with a model, and their order be one."""
    if published is not None and not np.array_equal(np.sort(published.item_order), np.arange(bank.n_items)):
        yield f"published item_order must have each number from 0 to {bank.n_items - 1} once."
    try:
        check_response_matrix(np.zeros((1, bank.n_items)), ["any"], bank.item_ids, None, {})
    except DataError as error:
        yield str(error)


def _published_problems(bank: Bank) -> Iterator[str]:
    """Without responses there are no models; what replaces them must be numbers of its shape."""
    published = bank.published
    if published is None:
        return
    if bank.n_models or published.n_models < 1:
        yield f"a bank without responses must hold no models but have been made of some, got {bank.n_models}."
    yield from _item_problems(bank, published)
    model, n_scenarios, rest = published.factor_model, bank.targets.n_scenarios, published.rest
    n_rows = bank.n_items + (0 if rest is None else n_scenarios)
    wanted = {
        "noise_ratio": (published.noise_ratio, (n_scenarios,)),
        "factor_mean": (model.mean, (n_rows,)),
        "factor_loadings": (model.loadings, (n_rows, _n_columns(model.loadings))),
        "factor_noise": (model.noise, (n_rows,)),
    }
    signed = {"factor_mean", "factor_loadings", "rest_curves"}
    if rest is not None:
        of_curves = np.isin(rest.curve_scenarios, np.arange(n_scenarios)).astype(np.float64)
        wanted |= {
            "rest_sizes": (rest.sizes.astype(np.float64), (n_scenarios,)),
            "rest_weights": (rest.weights, (n_scenarios,)),
            "rest_squares": (rest.squares, (n_scenarios,)),
            "rest_curves": (rest.curves, (of_curves.size, 4)),
            "the weights of rest_curves": (rest.curves[..., 2:], (of_curves.size, 2)),
            "rest_shifts": (rest.shifts, (n_rows, _n_columns(rest.shifts))),
            "rest_subgroups": (rest.subgroups, (n_rows, _n_columns(rest.subgroups))),
        }
        if not of_curves.all():
            yield f"rest_curve_scenarios must be from 0 to {n_scenarios - 1}."
    for name, (array, shape) in wanted.items():
        if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
            yield f"{name} must be finite numbers of shape {shape}, got {array.dtype} of shape {array.shape}."
        elif name not in signed and np.any(array < 0.0):
            yield f"{name} must be >= 0, got {array.min():g}."
    if not (_is_some(np.array([published.discrepancy.level, published.discrepancy.subgroup]))).all():
        yield f"discrepancy must be finite and >= 0, got {published.discrepancy}."
    yield from _past_model_problems(published.past)
    for subset in published.subsets:
        yield from _subset_problems(bank, subset)


def _past_model_problems(past: PastModels | None) -> Iterator[str]:
    """Each past model has the digest of its name, and a score that may be unknown."""
    if past is None:
        return
    is_score = np.isnan(past.scores) | ((past.scores >= 0.0) & (past.scores <= 1.0))
    if past.scores.shape != (len(past.names),) or not is_score.all() or not all(map(is_name_digest, past.names)):
        yield "published past models must have a digest of a name and a score in [0, 1] each."
    elif past.told and tuple(name_digest(one, past.salt) for one in past.told) != past.names:
        yield "the ids of published past models must be those of their digests, in the same order."


def _n_columns(array: FloatArray) -> int:
    return array.shape[-1] if array.ndim else 0


def _subset_problems(bank: Bank, subset: PublishedSubset) -> Iterator[str]:
    """Items to be run must be the bank's, and the errors kept for them one column a score."""
    unknown = sorted(set(subset.selection.item_ids) - set(bank.item_ids))
    if unknown:
        yield f"the published items must be the bank's, got others: {shown(unknown)}."
    n_targets = bank.targets.n_scenarios + 1
    of_models = (subset.errors, subset.standard_errors, subset.scales)
    shapes = [array.shape for array in (*of_models, subset.weights)]
    is_whole = len(shapes[0]) == 2 and len(set(shapes[:3])) == 1 and shapes[0][1] == n_targets and len(shapes[3]) == 2
    if not is_whole or (shapes[0][0] > 0 and shapes[3][1] != n_targets):
        yield f"published errors, scales and weights must have {n_targets} columns, got shapes {shapes}."
    elif not (np.isfinite(subset.weights).all() and (subset.weights >= 0.0).all()):
        yield "published weights must be finite and >= 0."
    elif np.isinf(subset.errors).any() or not all((np.isnan(size) | _is_some(size)).all() for size in of_models[1:]):
        yield "published errors must be finite or unknown, and their scales >= 0."
    elif subset.misfit.ndim != 1 or not _is_some(subset.misfit).all() or np.any(np.diff(subset.misfit) < 0.0):
        yield "published misfit must be finite numbers >= 0 in ascending order."
    most = bank.published.factor_model.loadings.shape[-1]  # type: ignore[union-attr]
    sizes = np.nan_to_num(subset.apart)
    if not -1 <= subset.n_factors <= most or sizes.shape not in {(0,), (bank.targets.n_scenarios,)}:
        yield f"published drawn items must have at most {most} factors and a number a scenario, got {subset.n_factors}."
    elif not _is_some(sizes).all():
        yield "published squares of scenario scores must be finite and >= 0."


def _number_problems(bank: Bank) -> Iterator[str]:
    """Numbers of items, models and scenarios must be such as a fit gives; errors that could not be measured are NaN."""
    parameters, calibration, item_ids = bank.parameters, bank.calibration, bank.item_ids
    model_ids, scenarios, errors = bank.responses.model_ids, bank.targets.scenarios, calibration.log_precision_error
    thresholds = np.array(list(calibration.thresholds.values()), dtype=np.float64)
    variances = [np.einsum("ijj->ij", one) for one in (calibration.item_covariance, calibration.ability_covariance)]
    for name, values, ids, what in (
        ("loadings", parameters.loadings, item_ids, "finite"),
        ("intercept", parameters.intercept, item_ids, "finite"),
        ("item_covariance", calibration.item_covariance, item_ids, "finite"),
        ("the variance of item parameters", variances[0], item_ids, "finite and >= 0"),
        ("abilities", calibration.abilities, model_ids, "finite"),
        ("ability_covariance", calibration.ability_covariance, model_ids, "finite"),
        ("the variance of abilities", variances[1], model_ids, "finite and >= 0"),
        ("log_precision_error", np.empty(0) if errors is None else errors, item_ids, "finite and >= 0"),
        ("thresholds", thresholds, list(calibration.thresholds), "finite"),
        ("item_model_bias", bank.item_model_bias, scenarios, "finite and >= 0, or unknown"),
        ("response_variance", bank.response_variance, scenarios, "finite and >= 0, or unknown"),
    ):
        yield from _unless(name, what, values, ids, CHECKS[what])
    lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
    bad = np.flatnonzero(~((lower >= 0.0) & (lower < upper) & (upper <= 1.0)))
    if bad.size:
        yield (
            f"asymptotes must keep 0 <= lower < upper <= 1, got {lower[bad[0]]:g} and {upper[bad[0]]:g} for "
            f"{shown([item_ids[index] for index in bad.tolist()])}."
        )


def _calibration_problems(bank: Bank) -> Iterator[str]:
    calibration = bank.calibration
    if not np.isfinite(calibration.history).all():
        yield "history must be finite."
    is_ours = calibration.method in METHODS  # installed packages are asked only where it is not
    methods = METHODS if is_ours else (*METHODS, *entry_points_of(group="itembank.calibrations"))
    for word, value, allowed in (
        ("method", calibration.method, methods),
        ("item_model", calibration.item_model, ITEM_MODELS),
    ):
        if value not in allowed:
            yield f"{word} must be one of {', '.join(allowed)}, got {quoted(value)}."
    if calibration.tolerance is not None and not 0.0 < calibration.tolerance < np.inf:
        yield f"tolerance must be a finite number above 0, got {calibration.tolerance!r}."
    strange = [name for name in calibration.thresholds if name not in bank.targets.scenarios]
    if strange:
        yield f"thresholds must be those of scenarios, got some for {shown(strange)}."


def _prior_problems(bank: Bank) -> Iterator[str]:
    mean, covariance = bank.calibration.prior.mean, bank.calibration.prior.covariance
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        yield "the ability prior must have a finite mean and covariance."
        return
    if not np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0):
        yield "the covariance of the ability prior must be symmetric."
        return
    lowest = float(np.linalg.eigvalsh(covariance)[0])
    if lowest <= 0.0:
        yield f"the covariance of the ability prior must be positive definite, got an eigenvalue of {lowest:g}."


def _target_problems(bank: Bank) -> Iterator[str]:
    targets = bank.targets
    names, weights = targets.scenarios, targets.weights
    if len(set(names)) < len(names) or set(names) != set(bank.responses.items["scenario"].to_list()):
        yield "the score targets must name each scenario of the items once."
    if any(name in RESERVED_NAMES for name in names):
        yield f"a scenario must not be called {shown(RESERVED_NAMES)}."
    for word, value, allowed in (("within", targets.within, Within), ("across", targets.across, Across)):
        if value not in get_args(allowed):
            yield f"{word} must be one of {', '.join(get_args(allowed))}, got {value!r}."
    problems = [
        *_unless("score weights", "finite and >= 0", weights, bank.item_ids, _is_some),
        *_unless("scenario weights", "finite and >= 0", targets.scenario_weights, names, _is_some),
    ]
    yield from problems
    if problems:
        return
    sums: FloatArray = targets.scenario_means(np.ones((1, targets.n_items)))[0]
    sums = sums if bank.rest is None else sums + bank.rest.weights
    yield from _unless("score weights in a scenario", "of sum one", sums, names, lambda sum_: abs(sum_ - 1.0) < 1e-6)
    total = float(targets.scenario_weights.sum())
    if abs(total - 1.0) > 1e-6:
        yield f"scenario weights must sum to one, got {total:g}."


def _unless(
    name: str, what: str, values: FloatArray, ids: Sequence[str], is_fine: Callable[[FloatArray], BoolArray]
) -> Iterator[str]:
    """Say whose values, an array over `ids` first, are not what they must be."""
    if values.size == 0:
        return
    with np.errstate(invalid="ignore"):
        wrong = ~is_fine(values).reshape(len(ids), -1)
    rows = np.flatnonzero(wrong.any(axis=1))
    if rows.size:
        first = values.reshape(wrong.shape)[wrong][0]
        yield f"{name} must be {what}, got {first:g} and the like for {shown([ids[row] for row in rows.tolist()])}."


def _is_some(values: FloatArray) -> BoolArray:
    return np.isfinite(values) & (values >= 0.0)


CHECKS: dict[str, Callable[[FloatArray], BoolArray]] = {
    "finite": np.isfinite,
    "finite and >= 0": _is_some,
    "finite and >= 0, or unknown": lambda values: np.isnan(values) | _is_some(values),
}
