"""The verb `start`: a bank of items that no model, or next to none, has answered, or whose parameters are known.

And what item parameters are where past models are too few to fit an item model to, from none to nine.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import expit, logit, polygamma

from itembank.bank.arguments import GivenResponses
from itembank.bank.banks import FEW_MODELS, KNOWN_PARAMETERS, Bank, Calibration
from itembank.calibration.build import bank_of, calibrate
from itembank.calibration.calibration_specs import ANCHOR_FACTOR, CalibrationSpec
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import check_same_content, in_both, read_new_responses, spec_like
from itembank.readers.known_parameters import LAMBDA, KnownItems, read_known_parameters
from itembank.readers.read import is_table, known_things, paths_of, read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.responses.score_names import SELECTION_WEIGHT, Across, Within
from itembank.responses.targets import ScoreTargets
from itembank.tables import plural

UNKNOWN_VARIANCE = 0.25
"""Of right and wrong answers where nobody knows how many are right: the largest there is."""


def start(
    items: Any,
    responses: GivenResponses | None = None,
    *,
    parameters: bool = False,
    benchmark: str = "",
    prior: AbilityPrior | None = None,
    spec: CalibrationSpec | str = "variational",
    within: Within = "micro",
    across: Across = "scenarios",
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Bank:
    """Begin a bank with no past results, or with those of any number of models.

    With fewer than ten models no item model is fitted: items have the chance of success that the few answers and their
    scenario make likely (`calibration_of_few`). `select` then draws items at random from strata, and `estimate` gives
    design-based intervals, which are valid whatever the items are like. From ten models on the item model is fitted
    as by `calibrate`.

    With `parameters` the table holds those of an item model that others fitted (`read_known_parameters`), which are
    taken as they are. Estimates and intervals then rest on the item model alone, or on how items were drawn.

    Parameters
    ----------
    items : polars, pandas or pyarrow table, or path of one
        One row an item: `item_id`, and where known `scenario`, `subscenario`, `weight`, `difficulty_prior` (logits, for
        an average model) and anything else. All items count in the score, answered or not.
    responses : ResponseMatrix, table, path or paths, optional
        Past results on some or all of these items; none with `parameters`.
    parameters : bool
        The table, or a file of py-irt or tinyBenchmarks, holds item parameters: `difficulty` and `discrimination`, or
        `loading_1`, ... and `intercept`, and other usual names. A column `weight` then counts within scenarios.
    benchmark : str
        With `parameters`: which to take of a file that holds several.
    prior : AbilityPrior, optional
        With `parameters`: of ability; else standard normal.
    spec : CalibrationSpec or str
        Of the item model, from ten models on.
    within, across : str
        How items make scenario scores and scenarios the overall score, as for `ScoreTargets.create`.
    rng : Generator, int or None
        As for `calibrate`.
    progress : ProgressCallback

    Returns
    -------
    Bank

    Raises
    ------
    DataError
        When the table has no item ids, or they repeat, or responses are of other items, or items of other content.

    Warns
    -----
    DataWarning
        Where results put items into other scenarios than the table, which alone counts.

    Examples
    --------
    >>> import polars as pl
    >>> bank = start(pl.DataFrame({"item_id": [f"q{number}" for number in range(500)]}))
    >>> bank.n_items, bank.n_models
    (500, 0)
    """
    if parameters:
        if responses is not None:
            raise ParameterError("a bank of known parameters has no past models: leave the responses out, got some.")
        return _of_known(read_known_parameters(items, benchmark), prior, within, across)
    if benchmark or prior is not None:
        raise ParameterError("benchmark and prior go with parameters=True. Leave them out.")
    table, _ = known_things(items, "item_id")
    if not table.height:
        raise DataError("the table of items must have at least one row, got none.")
    matrix = _nobody(table)
    if responses is not None:
        if is_table(responses):
            responses = read_responses(responses, spec=spec_like(matrix.items, ReadingSpec()))
        elif not isinstance(responses, ResponseMatrix):
            responses = read_new_responses(paths_of(responses), matrix.items)
        matrix = _of_all(matrix, responses)
    # With fewer past models an item model fitted to them predicts worse than smoothed item means do. Measured:
    # design-based estimates from 100 random items on SWE-bench, 3, 5 and 10 past models, err by 6.2, 4.4 and 3.7 points
    # with the item model, by 4.2, 3.9 and 3.8 with smoothed means.
    if matrix.n_models >= 10:
        return calibrate(matrix, spec, within=within, across=across, rng=rng, progress=progress)
    targets = ScoreTargets.create(matrix.items, within=within, across=across)
    calibration = calibration_of_few(matrix, targets.scenario_index)
    bias = np.full(targets.n_scenarios, np.nan)
    variance = np.full(targets.n_scenarios, np.nan)
    if matrix.n_models:
        variance = response_variance(matrix, targets)
    variance = np.where(np.isnan(variance), UNKNOWN_VARIANCE, variance)
    return bank_of(matrix, calibration, targets, bias, variance)


def _nobody(table: pl.DataFrame) -> ResponseMatrix:
    """Return the responses of no models to the items of a table."""
    if "scenario" in table.columns:
        table = table.with_columns(pl.col("scenario").fill_null(DEFAULT_SCENARIO))
    one = ResponseMatrix.create(np.full((1, table.height), np.nan), items=table)
    return one.take(models=np.zeros(0, dtype=np.int64))


def _of_known(known: KnownItems, prior: AbilityPrior | None, within: Within, across: Across) -> Bank:
    """Make a bank of known parameters; of published lambdas of gp-IRT it takes the bias that gives them."""
    matrix = _nobody(known.items)
    is_weighted = within == "micro" and "weight" in known.items.columns
    targets = ScoreTargets.create(matrix.items, within="custom" if is_weighted else within, across=across)
    variance = np.full(targets.n_scenarios, UNKNOWN_VARIANCE)
    bias = np.full(targets.n_scenarios, np.nan)
    if {LAMBDA, SELECTION_WEIGHT} <= set(known.items.columns):
        rows = known.items.select(LAMBDA, pl.col(SELECTION_WEIGHT).is_not_null())
        share, is_chosen = rows[LAMBDA].to_numpy(), rows[SELECTION_WEIGHT].to_numpy()
        share_of = np.zeros(targets.n_scenarios)
        share_of[targets.scenario_index] = share
        n_chosen = np.bincount(targets.scenario_index, weights=is_chosen, minlength=targets.n_scenarios)
        # the b that gives anchor points this lambda (`sample_share`), below 1
        bias = np.sqrt(share_of / (1.0 - share_of) * variance / (ANCHOR_FACTOR * np.maximum(n_chosen, 1.0)))
    return bank_of(matrix, calibration_of_known(known.parameters, prior), targets, bias, variance)


def _of_all(nobody: ResponseMatrix, responses: ResponseMatrix) -> ResponseMatrix:
    """Put responses to some items into their columns, NaN where nobody was asked."""
    columns, n_items = nobody.item_indices(responses.item_ids), nobody.n_items
    for column in ("scenario", "subscenario"):
        both = in_both(responses.items, nobody.items, column).filter(pl.col(column) != DEFAULT_SCENARIO)
        other = both.filter(pl.col(column) != pl.col(f"{column}_known"))
        if other.height:
            first = other.row(0, named=True)
            warn(
                f"{column} of {other.height} items differs between the table of items "
                f"({first[f'{column}_known']!r} for {first['item_id']!r}) and the results ({first[column]!r}): "
                f"{shown(other['item_id'].to_list())}. The table of items counts.",
                DataWarning,
            )
    check_same_content(responses.items, nobody.items)

    def spread(values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        whole = np.full((responses.n_models, n_items), missing, dtype=values.dtype)
        whole[:, columns] = values
        return whole

    return ResponseMatrix.create(
        spread(responses.responses, np.nan),
        models=responses.models,
        items=nobody.items,
        n_trials=None if responses.n_trials is None else spread(responses.n_trials, 0),
        costs={name: spread(cost, np.nan) for name, cost in responses.costs.items()},
    )


DIFFICULTY_PRIOR = "difficulty_prior"
"""Column of the item table: difficulty in logits for an average model, from whatever source."""
PRIOR_ANSWERS = 1.5
"""How many past answers the scenario's mean counts for in an item's chance of success.

With rho the correlation of two models' answers to the items of a scenario it is ``(1 - rho) / rho``: rho is 0.28 on
BFCL, 0.37 on MMLU-Pro, 0.48 on SWE-bench, 0.39 to 0.68 on the scenarios of Open LLM Leaderboard v1.
"""
SMALLEST_MEAN = 0.02
"""A scenario that all past models solved, or failed, is taken to have a mean this far from one, or zero."""


def calibration_of_few(responses: ResponseMatrix, scenario_index: IntArray) -> Calibration:
    """Guess item parameters from the answers of none or few models, and from `difficulty_prior` where it is.

    The chance that an average model solves item i is the mean of a beta distribution: ``p_i = (k_i + c q_i) /
    (n_i + c)`` for k_i of n_i past models that solved it, q_i the mean of its scenario (or the logistic function of
    ``-difficulty_prior``) and c = `PRIOR_ANSWERS`. Items have slope 1 and intercept ``logit(p_i)``. Estimates from so
    little must not rest on it: design-based ones only get narrower by it.

    Parameters
    ----------
    responses : ResponseMatrix
        Of n_models >= 0 models; NaN where missing.
    scenario_index : (n_items,)

    Returns
    -------
    Calibration
        In one dimension. Past models have ability 0, which few models can hardly tell from item difficulty.

    Raises
    ------
    DataError
        When a difficulty is no finite number.
    """
    observed = responses.observed
    n = observed.sum(axis=0).astype(np.float64)
    k = np.where(observed, responses.responses, 0.0).sum(axis=0)
    q = _prior_means(responses, scenario_index, k, n)
    right, wrong = k + PRIOR_ANSWERS * q, n - k + PRIOR_ANSWERS * (1.0 - q)
    n_models, n_items = responses.responses.shape
    covariance = np.zeros((n_items, 2, 2))
    covariance[:, 1, 1] = polygamma(1, right) + polygamma(1, wrong)  # variance of the logit of a beta variable
    return Calibration(
        parameters=ItemParameters.create(np.ones((n_items, 1)), logit(right / (right + wrong)), np.zeros(n_items)),
        item_covariance=covariance,
        abilities=np.zeros((n_models, 1)),
        ability_covariance=np.ones((n_models, 1, 1)),
        prior=AbilityPrior.standard(1),
        is_degenerate=np.zeros(n_items, dtype=bool),
        thresholds={},
        method=FEW_MODELS,
        item_model="1pl",
        converged=True,
        n_iterations=0,
        message=f"{plural(n_models, 'past model', 'are')} too few to fit an item model",
        history=np.zeros(0),
    )


def calibration_of_known(parameters: ItemParameters, prior: AbilityPrior | None = None) -> Calibration:
    """Take item parameters as they were given, without error and without past models.

    Parameters
    ----------
    parameters : ItemParameters
        Of n_items items in n_dims dimensions.
    prior : AbilityPrior, optional
        Of the ability that they were fitted with; else standard normal.

    Raises
    ------
    ParameterError
        When the prior has another number of dimensions.
    """
    n_items, n_dims = parameters.loadings.shape
    prior = AbilityPrior.standard(n_dims) if prior is None else prior
    if prior.n_dims != n_dims:
        raise ParameterError(f"the ability prior must have the items' {n_dims} dimensions, got {prior.n_dims}.")
    return Calibration(
        parameters=parameters,
        item_covariance=np.zeros((n_items, n_dims + 1, n_dims + 1)),
        abilities=np.zeros((0, n_dims)),
        ability_covariance=np.zeros((0, n_dims, n_dims)),
        prior=prior,
        is_degenerate=np.zeros(n_items, dtype=bool),
        thresholds={},
        method=KNOWN_PARAMETERS,
        item_model="2pl" if n_dims == 1 else "mirt",
        converged=True,
        n_iterations=0,
        message="known parameters, no past models",
        history=np.zeros(0),
    )


def _prior_means(responses: ResponseMatrix, index: IntArray, k: FloatArray, n: FloatArray) -> FloatArray:
    """Chance of success of each item before its own answers, (n_items,)."""
    right, answers = (np.bincount(index, weights=one) for one in (k, n))
    means = (right + 0.5) / (answers + 1.0)  # one half where nobody answered
    means = np.clip(means, SMALLEST_MEAN, 1.0 - SMALLEST_MEAN)[index]
    if DIFFICULTY_PRIOR not in responses.items.columns:
        return means
    column = responses.items[DIFFICULTY_PRIOR].cast(pl.Float64, strict=False)
    wrong = ~column.is_finite() & responses.items[DIFFICULTY_PRIOR].is_not_null()
    wrong |= column.is_null() & responses.items[DIFFICULTY_PRIOR].is_not_null()
    if wrong.any():
        names = responses.items["item_id"].filter(wrong).to_list()
        raise DataError(
            f"{DIFFICULTY_PRIOR} must be a finite number of logits, or empty, and is not for {shown(names)}. Leave "
            "it empty where nothing is known."
        )
    given = column.to_numpy()
    found: FloatArray = np.where(np.isnan(given), means, expit(-given))
    return np.clip(found, SMALLEST_MEAN, 1.0 - SMALLEST_MEAN)
