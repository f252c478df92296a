"""Scores, abilities and losses of every model, scenario by scenario; items from a bank or from responses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError, shown
from itembank.irt.bernoulli import probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.families import information_weights, likelihood_terms
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.blocks import row_blocks
from itembank.numerics.stable import sigmoid_slope
from itembank.numerics.ties import first_largest
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import content_order
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural
from itembank_scaling.pretraining.law_specs import ItemResponseLaw
from itembank_scaling.scenario_fits import fit_items


@dataclass(frozen=True, slots=True)
class ScenarioScores:
    """Observed scores of n_models models in one scenario."""

    scenario: str
    # (n_sampled,): Columns of the responses whose mean is the observed score: all items, or a random few under a
    # budget.
    sampled: IntArray
    observed: FloatArray  # (n_models,): Mean of the responses present to the sampled items, NaN without any
    # (n_models,): Whether the model answered any item of the scenario; those that did not take no part in its laws.
    is_present: BoolArray

    def take(self, models: IntArray) -> "ScenarioScores":
        """Return the models at these indices."""
        return replace(self, observed=self.observed[models], is_present=self.is_present[models])


@dataclass(frozen=True, slots=True)
class ScenarioAbilities:
    """Measured abilities of n_models models on n_items items of one scenario."""

    items: IntArray  # (n_items,): Columns of the responses
    parameters: ItemParameters  # One-dimensional
    item_covariance: FloatArray  # (n_items, 2, 2): Covariance of each item's loading and intercept
    # (n_models,): Ability from the responses alone, without the influence of a prior, and its sampling variance; NaN
    # for a model without responses.
    theta: FloatArray
    variance: FloatArray  # (n_models,)
    # (n_models,): Mean, over the items that theta rests on, of the responses less the probabilities at theta; as large
    # as it would be over all items of the scenario.
    gap: FloatArray

    def take(self, models: IntArray) -> "ScenarioAbilities":
        """Return the models at these indices."""
        return replace(self, theta=self.theta[models], variance=self.variance[models], gap=self.gap[models])


def without_prior(mean: FloatArray, variance: FloatArray, prior: AbilityPrior) -> tuple[FloatArray, FloatArray]:
    """Take a normal prior out of normal posteriors of ability (n_models,): mean and variance of the likelihood.

    ``1/v = 1/V - 1/V0`` and ``m/v = M/V - M0/V0``. A line through shrunken abilities would be too flat, and a
    forecast beyond the data too low. Where the responses hold hardly any information the variance is 100 times the
    prior's.
    """
    prior_mean, prior_variance = float(prior.mean[0]), float(prior.covariance[0, 0])
    # largest variance of a measured ability, in units of the prior's: next to no weight in a line, yet a finite one
    widest = 100.0
    # the difference of precisions is zero to rounding, or below, where responses hardly changed the prior
    precision = np.maximum(1.0 / variance - 1.0 / prior_variance, 1.0 / (widest * prior_variance))
    result: FloatArray = (mean / variance - prior_mean / prior_variance) / precision
    return np.where(np.isfinite(result), result, mean), 1.0 / precision


def mean_probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Mean probability of a correct response over all items at abilities (n_points,): (n_points,)."""
    result = np.empty(len(theta))
    for part in row_blocks(len(theta), parameters.n_items, times=2):
        result[part] = probability(parameters, theta[part, None]).mean(axis=1)
    return result


def item_variance(
    parameters: ItemParameters,
    covariance: FloatArray,  # (n_items, 2, 2)
    theta: FloatArray,  # (n_points,)
) -> FloatArray:
    """Variance of `mean_probability` that uncertain items bring, (n_points,), to first order.

    ``sum_i (dp_i/dx)^2 (theta, 1) S_i (theta, 1)' / n^2`` with S_i the covariance of item i's loading and intercept,
    taken as independent of other items': beyond the abilities that calibrated them it grows.
    """
    result = np.empty(len(theta))
    height = parameters.upper_asymptote - parameters.lower_asymptote
    for part in row_blocks(len(theta), parameters.n_items, times=2):
        at = theta[part, None]
        slope = height * sigmoid_slope(at * parameters.loadings[:, 0] + parameters.intercept)
        # (theta, 1) S_i (theta, 1)', written out: the variance of the logit that uncertain item parameters bring
        spread = at**2 * covariance[:, 0, 0] + 2.0 * at * covariance[:, 0, 1] + covariance[:, 1, 1]
        result[part] = np.sum(slope**2 * spread, axis=1) / parameters.n_items**2
    return result


def score_gap(parameters: ItemParameters, responses: FloatArray, theta: FloatArray) -> FloatArray:
    """Mean of responses less probabilities at each model's ability, (n_models,), over the items it answered.

    Scaled by ``sqrt(n_answered / n_items)``: what independent items leave of it over all items.
    """
    is_present = ~np.isnan(responses)
    count = is_present.sum(axis=1)
    result = np.full(len(responses), np.nan)
    for part in row_blocks(len(responses), parameters.n_items, times=2):
        apart = np.where(is_present[part], responses[part] - probability(parameters, theta[part, None]), 0.0)
        known = np.maximum(count[part], 1)
        result[part] = apart.sum(axis=1) / known * np.sqrt(known / parameters.n_items)
    return np.where(count > 0, result, np.nan)


def choose_within_budget(
    parameters: ItemParameters,  # One-dimensional
    responses: FloatArray,  # (n_models, n_items): Recorded answers; NaN where there is none, which is then not asked
    prior: AbilityPrior,
    n_items: int,  # Items a model; all it answered when they are fewer
    *,
    n_trials: IntArray | None = None,  # (n_models, n_items): Attempts behind each response
) -> FloatArray:
    """Let every model answer a budget of items, each chosen by its answers so far; all models take a step together.

    The first fifth are the items nearest in difficulty to quantiles from 10 to 90 %, the middle first; each further
    one is the item with most Fisher information at the model's posterior mean, ``w_i(theta) a_i^2``. The posterior
    lives on a grid of 121 abilities within six standard deviations of the prior, on which every item's information is
    tabulated once: a step is one lookup a model.

    Returns (n_models, n_items): The answers to the items chosen; NaN elsewhere.
    """
    is_open = ~np.isnan(responses)
    half = 6.0 * float(np.sqrt(prior.covariance[0, 0]))
    n_nodes = 121  # a tenth of the prior's standard deviation apart, as the grid of `eap_abilities`
    nodes = np.linspace(prior.mean[0] - half, prior.mean[0] + half, n_nodes)
    trials = None if n_trials is None else n_trials.astype(np.float64)
    x = nodes[:, None] * parameters.loadings[:, 0] + parameters.intercept
    usual = None if trials is None else np.broadcast_to(np.maximum(trials.mean(axis=0), 1.0), x.shape)
    weights = information_weights(parameters, x, usual)
    # a table that is only compared: single precision halves 121 numbers an item
    information = (weights * parameters.loadings[:, 0] ** 2).astype(np.float32)  # (n_nodes, n_items)
    log_posterior = np.tile(
        -0.5 * (nodes - float(prior.mean[0])) ** 2 / float(prior.covariance[0, 0]), (len(responses), 1)
    )
    chosen = np.full(responses.shape, np.nan)
    wanted = start_difficulties(parameters, n_items)
    rows = np.arange(len(responses))
    # all models take a step together; each asks its own item
    for step in range(min(n_items, int(is_open.sum(axis=1).max(initial=0)))):
        if step < len(wanted):
            # the quantile of an even number of items lies between two of them, equally far from both
            merit = -np.abs(np.nan_to_num(parameters.difficulty, nan=np.inf) - wanted[step])[None, :]
        else:
            # information at the node nearest to the posterior mean: one table of all nodes serves every model
            weights = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
            mean = weights @ np.arange(n_nodes) / weights.sum(axis=1)
            merit = information[np.rint(mean).astype(np.int64)]
        item = first_largest(np.where(is_open, merit, -np.inf))
        asks = is_open[rows, item]
        at = rows[asks], item[asks]
        chosen[at] = responses[at]
        is_open[at] = False
        asked, n_asked = parameters.take(item[asks]), None if trials is None else trials[at]
        x = nodes[:, None] * asked.loadings[:, 0] + asked.intercept  # (n_nodes, n_asked)
        log_posterior[asks] += likelihood_terms(asked, x, responses[at], n_asked).log_likelihood.T
    return chosen


def start_difficulties(parameters: ItemParameters, n_items: int) -> FloatArray:
    """Difficulties that a fifth of the budget spans before a model is known, (n_start,): 10 to 90 %, middle first."""
    n_start = max(1, round(0.2 * n_items))
    fractions = np.linspace(0.1, 0.9, n_start) if n_start > 1 else np.array([0.5])
    fractions = fractions[np.argsort(np.abs(fractions - 0.5), kind="stable")]
    difficulty = parameters.difficulty
    known = difficulty[np.isfinite(difficulty)]
    return np.quantile(known, fractions) if known.size else np.zeros(n_start)


def checked_loss(loss: FloatArray, responses: ResponseMatrix) -> FloatArray:
    """Return losses (n_models, n_items) of these responses as numbers."""
    values = np.asarray(loss, dtype=np.float64)
    if values.shape != responses.responses.shape:
        raise DataError(
            f"loss must have a row a model and a column an item, {responses.responses.shape}, got {values.shape}."
        )
    bad = ~((values > 0.0) & np.isfinite(values)) & ~np.isnan(values)
    if bad.any():
        names = [responses.model_ids[row] for row in np.flatnonzero(bad.any(axis=1))]
        raise DataError(
            f"loss must be finite and > 0 (bits per byte), got {plural(int(bad.sum()), 'other')} for "
            f"{plural(len(names), 'model')}: {shown(names)}."
        )
    return values


def scenario_losses(
    responses: ResponseMatrix, scores: Sequence[ScenarioScores], loss: FloatArray | None
) -> tuple[FloatArray | None, str]:
    """Mean loss of each model in each scenario, (n_models, n_scenarios), and a note on what is taken for it.

    Without a loss, ``-log2`` of probabilities does; right and wrong answers and counts have none.
    """
    note = ""
    # as Beta likelihoods clip (`beta_ends.EPSILON`): a probability of zero counts as 20 bits, not as infinitely many
    smallest_probability = 1e-6
    if loss is None:
        if responses.is_binary or responses.n_trials is not None:
            return None, "The two-step law needs a loss, which right or wrong answers and counts do not tell: left out."
        loss = -np.log2(np.clip(responses.responses, smallest_probability, 1.0 - smallest_probability))
        note = "No loss was given: the two-step law goes through the mean of -log2 of the probabilities."
    means = [mean_where_known(loss[:, scenario.sampled], axis=1) for scenario in scores]
    return np.stack(means, axis=1), note


def scenario_scores(
    responses: ResponseMatrix, *, n_items: int | None, rng: np.random.Generator
) -> list[ScenarioScores]:
    """Observe every model's score in each scenario, on all its items or on `n_items` drawn at random for all models."""
    index = responses.items["scenario"].to_numpy()
    by_content = np.arange(responses.n_items) if n_items is None else content_order(responses).items
    scores = []
    for scenario in dict.fromkeys(index.tolist()):
        columns = by_content[index[by_content] == scenario]
        sampled = np.sort(columns if n_items is None else rng.permutation(columns)[:n_items])
        observed = mean_where_known(responses.responses[:, sampled], axis=1)
        n_answered = responses.observed[:, columns].sum(axis=1)
        scores.append(ScenarioScores(scenario, sampled, observed, n_answered > 0))
    return scores


def measured_abilities(
    responses: ResponseMatrix,
    law: ItemResponseLaw,
    *,
    bank: Bank | None = None,  # Item parameters of other models' calibration
    # Responses of other models to the same items, which calibrate them; without these and a bank the responses
    # calibrate their own items
    calibration: ResponseMatrix | None = None,
    n_items: int | None = None,  # Items a scenario each model is tested on, chosen adaptively from those it answered
    progress: ProgressCallback = silent,
) -> tuple[list[ScenarioAbilities | None], str]:
    """Measure every model in each scenario by itself, as IRSL does: one ability a scenario.

    Returns abilities, note: None for a scenario whose items cannot be calibrated: one item alone, or all answered
    alike by all models; the note tells why, and where abilities are no skill.
    """
    index = responses.items["scenario"].to_numpy()
    scenarios = list(dict.fromkeys(index.tolist()))
    measured: list[ScenarioAbilities | None] = []
    notes = []
    for number, scenario in enumerate(scenarios):
        progress(f"abilities in {scenario} ({number + 1} of {len(scenarios)})", number / len(scenarios))
        columns = np.flatnonzero(index == scenario)
        known = None
        if bank is not None:
            if bank.parameters.n_dims != 1:
                raise ParameterError(
                    f"a scaling law needs a bank of one dimension, got {bank.parameters.n_dims}: calibrate it with "
                    "'itembank calibrate --item-model 2pl'."
                )
            where = bank.responses.item_indices([responses.item_ids[column] for column in columns.tolist()])
            covariance = bank.calibration.item_covariance[where]
            calibrated = replace(bank.calibration, parameters=bank.parameters.take(where), item_covariance=covariance)
        else:
            try:
                columns, calibrated, known = _fitted_items(scenario, responses, calibration, columns, law)
            except DataError as error:
                notes.append(f"Scenario {scenario!r} has no item response law: {error}")
                measured.append(None)
                continue
        if calibrated.caution:
            notes.append(f"Scenario {scenario!r}: {calibrated.caution}")
        part = responses.take(items=columns)
        measured.append(_measured(scenario, part, columns, calibrated, n_items=n_items, known=known))
    progress("abilities", 1.0)
    return measured, " ".join(notes)


def response_family(responses: ResponseMatrix, law: ItemResponseLaw) -> str:
    """Likelihood for these responses: that of the law; 'beta' for probabilities, else what `fit_item_model` chooses."""
    if law.family not in {"auto", "bernoulli"}:  # as by default, what is not right or wrong is made so
        return law.family
    are_counts = responses.n_trials is not None and int(responses.n_trials.max()) > 1
    is_plain = law.family == "bernoulli" or are_counts or responses.is_binary
    return "auto" if is_plain else "beta"


def _fitted_items(
    scenario: str, responses: ResponseMatrix, others: ResponseMatrix | None, columns: IntArray, law: ItemResponseLaw
) -> tuple[IntArray, Calibration, tuple[FloatArray, FloatArray] | None]:
    """Calibrate the items of a scenario on other models' responses, or on the responses themselves.

    Returns columns, calibration, known: Of the items that models answered; posterior mean and variance of every model's
    ability, where the responses calibrated themselves.
    """
    if columns.size < 2:  # with one item any ability fits, and a curve of its score in compute says all there is
        raise DataError("the number of items to measure an ability by must be at least 2, got one.")
    source = responses if others is None else others
    family: Any = response_family(source.take(items=columns), law)
    spec = Variational(
        law.item_model,
        family=family,
        known_guessing=law.known_guessing,
        positive_discrimination=law.positive_discrimination,
    )
    fit = fit_items(scenario, source, columns, spec)
    return fit.columns, fit.calibration, (fit.theta, fit.standard_errors**2) if others is None else None


def _measured(
    scenario: str,
    part: ResponseMatrix,
    columns: IntArray,
    calibration: Calibration,
    *,
    n_items: int | None,
    known: tuple[FloatArray, FloatArray] | None,
) -> ScenarioAbilities:
    """Abilities in one scenario, from the responses to its items, which stand at these columns."""
    parameters, prior, given = calibration.parameters, calibration.prior, part.responses
    if calibration.thresholds:
        given = apply_thresholds(given, item_thresholds(calibration.thresholds, [scenario] * part.n_items))
    if n_items is not None:
        given = choose_within_budget(parameters, given, prior, n_items, n_trials=part.n_trials)
    if known is None or n_items is not None:
        trials = None if part.n_trials is None else part.n_trials.astype(np.float64)
        abilities = map_abilities(parameters, given, prior, weights=trials)
        known = abilities.theta[:, 0], abilities.covariance[:, 0, 0]
    is_measured = ~np.isnan(given).all(axis=1)
    theta, variance = (np.where(is_measured, values, np.nan) for values in without_prior(*known, prior))
    return ScenarioAbilities(
        items=columns,
        parameters=parameters,
        item_covariance=calibration.item_covariance,
        theta=theta,
        variance=variance,
        gap=score_gap(parameters, np.where(np.isnan(given), np.nan, part.responses), theta),
    )
