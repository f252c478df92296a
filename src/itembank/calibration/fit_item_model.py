"""The verb `fit_item_model`: item parameters from the responses of past models.

And whether repeated attempts agree more than it says.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import polars as pl
import scipy

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.bank.banks import Calibration
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec, Variational, has_family, plain_options
from itembank.calibration.families import precision_index, prepare, put_back, sized, with_family
from itembank.calibration.fits import Fit, FitData, PreparedResponses
from itembank.calibration.start import additive_effects, multiple_correlation, start_values
from itembank.errors import ConvergenceWarning, DataError, DataWarning, remedy, shown, warn
from itembank.irt.family_names import KINDS, Family
from itembank.numerics.arrays import FloatArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.quadrature import THREE_NODES
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import check_enough_models, check_models_and_items_have_responses


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much attempts at one item agree beyond what independent ones would."""

    # Moment estimate of the intra-class correlation: about 0 for independent attempts, 1 for identical ones.
    correlation: float
    standard_errors: float  # Its distance from zero, in standard errors under independence

    @property
    def is_beyond_chance(self) -> bool:
        """Whether a binomial distribution is out of the question."""
        # Standard errors from which agreement counts as real: independent attempts reached 3 in simulation.
        sure = 5.0
        return self.standard_errors > sure

    @property
    def finding(self) -> str:
        """Say that attempts agree, for a message."""
        size = min(self.correlation, 1.0)
        return f"attempts at one item agree more than chance (intra-class correlation {size:.2g})"


MINIMUM_MODELS = 3
"""With right and wrong answers."""
IN_OPTIONS = " (family in the file of --spec, or --family of itembank calibrate)"


@one_blas_thread()
def fit_item_model(
    responses: GivenResponses, spec: CalibrationSpec | str = "variational", *, progress: ProgressCallback = silent
) -> Calibration:
    """Find the parameters of every item, and the ability of every model, from past results.

    Responses other than 0 and 1 are first made binary by a threshold a scenario (tinyBenchmarks 4.3), unless they are
    counts of repeated trials (`n_trials`), which are fitted as such, or another family was asked for. Counts are fitted
    as 'binomial' and, where attempts at one item turn out to agree more than chance (`agreement_beyond`), anew as
    'beta-binomial', with a `DataWarning` that says so; where 'binomial' was asked for, or the method has nothing else,
    the warning says what to do. Items that all models answered alike are flagged; binary and binomial ones take no part
    in the fit.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths
        NaN cells are left out of the likelihood. They should be missing for reasons that have nothing to do with
        ability: responses picked by an adaptive test give biased parameters.
    spec : CalibrationSpec or str
        `Variational`, `JointMAP` or `MarginalML`, or the short name of one with its defaults.
    progress : ProgressCallback

    Returns
    -------
    Calibration
        With `converged` False, and a `ConvergenceWarning`, when the fit stopped early. Such a warning also names items
        with slopes of more than 10 logits for a standard deviation of ability. With a `caution`, and a `DataWarning`,
        when the abilities are not skill.

    Raises
    ------
    DataError
        With fewer than three models (two with probabilities or counts), a model or an item without responses, no item
        that tells models apart, known guessing asked for without chance levels, or counts without numbers of trials.

    Examples
    --------
    >>> import numpy as np
    >>> from itembank.calibration.fit_item_model import fit_item_model
    >>> from itembank.responses.responses import ResponseMatrix
    >>> rng = np.random.default_rng(0)
    >>> ability, difficulty = rng.normal(size=(50, 1)), rng.normal(size=200)
    >>> answers = (ability - difficulty > rng.logistic(size=(50, 200))).astype(float)
    >>> fit_item_model(ResponseMatrix.create(answers)).converged
    True
    """
    given = METHODS.resolve(spec)
    responses = sized(as_responses(responses), given)
    spec = with_family(given, responses)
    # Of two models' right and wrong answers, those that tell them apart are all alike: one right, one wrong. Two
    # probabilities or counts can say what two single answers cannot.
    fewest = MINIMUM_MODELS if KINDS[cast("Family", spec.family)].takes == "answers" else 2
    check_enough_models(responses.n_models, fewest, "calibration")
    check_models_and_items_have_responses(responses.responses, responses.model_ids, responses.item_ids)
    prepared = prepare(responses, spec)
    if prepared.is_degenerate.all():
        raise DataError(
            f"at least one item must tell models apart, got {responses.n_items} items each answered alike by all "
            f"models: {shown(responses.item_ids)}. Check the metric, or add models of other strength."
        )
    is_left_out = prepared.is_left_out
    lower = known_lower_asymptote(responses.items) if spec.known_guessing else np.zeros(responses.n_items)
    data = _fit_data(prepared, lower, may_copy=not (responses.is_large and isinstance(spec, Variational)))
    if spec.by_task:
        number = (
            responses.items.filter(~is_left_out)
            .select(pl.struct("scenario", "subscenario").rank("dense") - 1)
            .to_series()
        )
        data = replace(data, task_index=number.to_numpy().astype(np.int64))
    if KINDS[data.family].has_precision:
        data = replace(data, precision_index=precision_index(spec, responses.items["scenario"].to_list()))
    fit: Fit = METHODS.kernel(spec)(data, spec, progress=progress)
    found = Agreement(0.0, 0.0)
    if data.family == "binomial":
        found = agreement_beyond(data, fit, has_marginal_errors=spec.has_marginal_errors)
    if found.is_beyond_chance:
        if given.family == "auto" and has_family(spec, "beta-binomial"):
            warn(f"{found.finding}: they are fitted by family 'beta-binomial'.", DataWarning)
            whole = fit_item_model(responses, replace(given, family="beta-binomial"), progress=progress)
            return replace(whole, options=plain_options(given))
        warn(_too_narrow(found, spec), DataWarning)
    if not fit.converged:
        warn(f"calibration did not converge: {fit.message}", ConvergenceWarning)
    item_ids = [name for name, is_out in zip(responses.item_ids, is_left_out, strict=True) if not is_out]
    _warn_of_steep_slopes(fit, item_ids, prepared.family)
    parameters, item_covariance = put_back(fit, prepared, lower, is_majority=spec.degenerate == "majority")
    calibration = Calibration(
        parameters=parameters,
        item_covariance=item_covariance,
        abilities=fit.abilities,
        ability_covariance=fit.ability_covariance,
        prior=fit.prior,
        is_degenerate=prepared.is_degenerate,
        thresholds=prepared.thresholds,
        method=METHODS.name_of(spec),
        item_model=spec.item_model,
        converged=fit.converged,
        n_iterations=fit.n_iterations,
        message=fit.message,
        history=fit.history,
        tolerance=spec.tolerance,
        options=plain_options(given),
        log_precision_error=fit.log_precision_error,
        score_correlation=score_correlation(data, fit.abilities),
    )
    if calibration.caution:
        warn(
            f"items of {shown(responses.items['scenario'].unique(maintain_order=True).to_list())}: "
            f"{calibration.caution}",
            DataWarning,
        )
    return calibration


def known_lower_asymptote(items: pl.DataFrame) -> FloatArray:
    """Chance of guessing each item right, (n_items,): column `chance`, else ``1 / n_options``.

    Raises
    ------
    DataError
        When an item has neither, or a chance outside [0, 1).
    """
    options = [
        pl.col("chance").cast(pl.Float64, strict=False) if "chance" in items.columns else None,
        1.0 / pl.col("n_options").cast(pl.Float64, strict=False) if "n_options" in items.columns else None,
    ]
    given = [column for column in options if column is not None]
    if not given:
        raise DataError(
            "known guessing needs a column 'chance' or 'n_options' in the item table, got neither. "
            "Give one when responses are read (items=, itembank import --items), or fit without known guessing."
        )
    chance = items.select(chance=pl.coalesce(given).fill_null(np.nan))["chance"].to_numpy()
    bad = ~((chance >= 0.0) & (chance < 1.0))
    if bad.any():
        names = items["item_id"].filter(pl.Series(bad)).to_list()
        raise DataError(
            f"chance must lie in [0, 1) for every item, got none or another number for {len(names)} of "
            f"{items.height} items: {shown(names)}. Set 0 where an answer cannot be guessed."
        )
    return np.asarray(chance, dtype=np.float64)


def _too_narrow(found: Agreement, spec: CalibrationSpec) -> str:
    """Say what a binomial fit of attempts that agree is worth."""
    advice = f"Use family 'beta-binomial'{remedy('', IN_OPTIONS)}"
    if not has_family(spec, "beta-binomial"):
        advice += ", which the variational method has"
    return (
        f"{found.finding}, and family 'binomial' treats them as independent: slopes come out too large and intervals "
        f"too narrow. {advice}."
    )


def _warn_of_steep_slopes(fit: Fit, item_ids: list[str], family: str) -> None:
    most = 20.0  # logits: slopes are 0.3 to 4 as a rule, up to 13 where items are near-copies
    steep = np.flatnonzero(np.abs(fit.loadings).max(axis=1) > most)
    if not steep.size:
        return
    advice = f"Attempts that agree more than chance do that: use family 'beta-binomial'{remedy('', IN_OPTIONS)}"
    if family != "binomial":
        advice = "Leave them out, add models, or take a method with a prior for items"
    warn(
        f"slopes should be at most {most:g} logits for a standard deviation of ability, got up to "
        f"{np.abs(fit.loadings).max():.3g} for {steep.size} of {len(item_ids)} items: "
        f"{shown([item_ids[item] for item in steep])}. {advice}.",
        ConvergenceWarning,
    )


def _fit_data(prepared: PreparedResponses, lower: FloatArray, *, may_copy: bool) -> FitData:
    """Cut out the items that are not fitted and put zeros where nothing was observed."""
    values, n_trials, fitted = prepared.values, prepared.n_trials, ~prepared.is_left_out
    if not may_copy and prepared.family == "bernoulli":
        return FitData(values, None, lower[fitted], columns=np.flatnonzero(fitted))
    if not fitted.all():  # a copy, which a large complete matrix is spared
        values, lower = values[:, fitted], lower[fitted]
        n_trials = None if n_trials is None else n_trials[:, fitted]
    trials = None if n_trials is None else n_trials.astype(np.float64)
    missing = np.isnan(values)
    if not missing.any():
        return FitData(values, None, lower, family=prepared.family, n_trials=trials)
    values = np.where(missing, values.dtype.type(0.0), values)
    return FitData(values, ~missing, lower, family=prepared.family, n_trials=trials)


def score_correlation(data: FitData, abilities: FloatArray) -> float:
    """Correlation over models of ability and score; with more abilities, of the combination closest to the score.

    It says whether fitted abilities are skill. Nothing in the likelihood of slopes of both signs asks for that: where
    many items are guessed and some models are siblings, the ability that explains most answers can be the guesses that
    siblings share.

    Scores are means of the responses (of the logits of probabilities and counts), and with missing ones the effects of
    models beside those of items, so that models are compared over the items that they share.

    Parameters
    ----------
    data : FitData
        Of n_models models.
    abilities : (n_models, n_dims)

    Returns
    -------
    float
        From -1 to 1 in one dimension, from 0 to 1 in more; 1 where scores or abilities do not differ.
    """
    if data.columns is not None:
        # too many responses for a copy: so many items at even steps give the scores
        n_items, most_items = data.columns.size, 3000
        data = data.take_items(np.unique(np.linspace(0, n_items - 1, min(n_items, most_items)).astype(np.int64)))
    data = data.copied()
    values = start_values(data)
    if data.observed is None:
        scores = values.mean(axis=1, dtype=np.float64)
    else:
        scores, _ = additive_effects(np.where(data.observed, values, 0.0), data.observed.astype(np.float64))
    size = multiple_correlation(scores, abilities)
    return -size if abilities.shape[1] == 1 and float((scores - scores.mean()) @ abilities[:, 0]) < 0.0 else size


def agreement_beyond(data: FitData, fit: Fit, *, has_marginal_errors: bool = False) -> Agreement:
    """Compare counts with what a binomial fit of them expects.

    The fit has seen the counts, so its probabilities lie closer to them than the true ones. That lowers the product of
    every pair by the posterior variance of the probability, which is added back.

    Parameters
    ----------
    data : FitData
        Of counts; cells of one trial say nothing.
    fit : Fit
        Of the same items, by family 'binomial'.
    has_marginal_errors : bool
        Whether errors of items hold how far the past models may be from the distribution of all models. That
        moves abilities along, and no probability of these models: nothing of it is given back.
    """
    if data.n_trials is None:
        return Agreement(0.0, 0.0)
    if has_marginal_errors:
        fit = replace(fit, item_covariance=np.zeros_like(fit.item_covariance))
    excess, possible, variance = 0.0, 0.0, 0.0
    for part in row_blocks(*data.responses.shape[::-1]):
        trials = data.n_trials[:, part]
        right = np.round(data.responses[:, part] * trials)
        probability, doubt = _probabilities(fit, data.lower_asymptote[part], part)
        pairs, spread = 0.5 * trials * (trials - 1.0), probability * (1.0 - probability)
        # Over all pairs (x - p)(x' - p) sums to ((c - n p)^2 - s) / 2, where c answers of n are right and
        # s = sum (x - p)^2 = c (1 - 2 p) + n p^2.
        of_itself = right * (1.0 - 2.0 * probability) + trials * probability**2
        excess += float(np.sum(0.5 * ((right - trials * probability) ** 2 - of_itself) + pairs * doubt))
        possible += float(np.sum(pairs * spread))
        variance += float(np.sum(pairs * spread**2))
    if variance <= 0.0:
        return Agreement(0.0, 0.0)
    return Agreement(excess / possible, excess / np.sqrt(variance))


def _probabilities(fit: Fit, lower: FloatArray, part: slice) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of the probability of a right answer, (n_models, n_block) each."""
    loadings, covariance = fit.loadings[part], fit.item_covariance[part]
    places = np.column_stack([fit.abilities, np.ones(len(fit.abilities))])
    mean = fit.abilities @ loadings.T + fit.intercept[part]
    variance = np.einsum("lj,ijk,lk->li", places, covariance, places, optimize=True)
    # Variance of the logit: x' S_i x + tr(E[a a'] C_l), with S_i and C_l the covariances of item and ability.
    moment = np.einsum("ij,ik->ijk", loadings, loadings) + covariance[:, :-1, :-1]
    variance += np.einsum("ijk,lkj->li", moment, fit.ability_covariance, optimize=True)
    half_step = np.sqrt(3.0 * np.maximum(variance, 0.0))
    first = second = np.zeros_like(mean)
    for place, weight in THREE_NODES:
        probability = lower + (1.0 - lower) * scipy.special.expit(mean + place * half_step)
        first, second = first + weight * probability, second + weight * probability**2
    return first, np.maximum(second - first**2, 0.0)
