"""Banks that learn: `add_items` and `add_models`, and `recalibrate`, by which items learn from models that joined."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.run_conditions import told_conditions
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_history import ACTIVE, Link
from itembank.bank.bank_views import history_of, whole_bank
from itembank.bank.banks import Bank
from itembank.bank.marks import ADDED, BATCH, with_batch, with_ways
from itembank.calibration.families import find_degenerate
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, shown
from itembank.irt import families
from itembank.irt.bernoulli import logit
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import check_same_content, without_unattempted
from itembank.responses.prompts import with_prompts
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank_living.changes.descendants import check_told, descendant, is_retired
from itembank_living.changes.fixed_parameters import ability_nodes
from itembank_living.changes.link_items import link
from itembank_living.changes.linking import binary, trials_of
from itembank_living.changes.overlay import joined_parameters, overlaid


def add_items(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    status: str = ACTIVE,
    how: str | None = None,
    note: str = "",
    progress: ProgressCallback = silent,
) -> Bank:
    """Add items to a bank, on its scale, with the models that answered them.

    The new items are linked by `link_items`; the old ones keep their parameters to the last bit. The score then is
    one of old and new items, with an id of its own; the score before stays known (`with_target`).

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        As for `link_items`.
    status : {'active', 'suspect', 'field-test'}
        'field-test' items do not count in the score yet, which stays the one it was.
    how : {'complete', 'random', 'fixed', 'adaptive'}, optional
        As for `add_models`.
    note : str
        Kept in the history.
    progress : ProgressCallback

    Returns
    -------
    Bank
        The next version; its history states the link with the linking error.

    Raises
    ------
    DataError, ParameterError
        As `link_items`; for another status.

    Examples
    --------
    >>> grown = add_items(bank, responses, note="questions of May")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    whole = whole_bank(bank)
    given = as_new_responses(bank, responses)
    linked = link(bank, given, progress)
    given = given.take(models=given.model_indices(linked.model_ids))
    told = growth(note, given, how=how, status=status)
    given = with_ways(given, whole.n_items + len(linked.item_ids), how)
    # the bank of the linking models and all items that they answered, in the order old, new
    known = set(whole.item_ids)
    old = [name for name in given.item_ids if name in known]
    places = whole.responses.item_indices(old)
    given = given.take(items=given.item_indices([*old, *linked.item_ids]))
    is_new = np.arange(given.n_items) >= len(old)
    alike = np.concatenate([whole.calibration.is_degenerate[places], find_degenerate(given.responses[:, is_new])])
    given = with_batch(marked_as_added(bank, given), is_new, history_of(bank).version, linked.linking_error)
    part = grown_part(
        whole,
        given,
        joined_parameters(whole.parameters.take(places), linked.parameters),
        np.concatenate([whole.calibration.item_covariance[places], linked.item_covariance]),
        is_degenerate=alike,
    )
    link_made = Link(
        method="fixed",
        n_models=linked.n_models,
        n_items=linked.anchors.height - len(linked.unlinked),
        linking_error=linked.linking_error * linked.weight,
    )
    statuses = {} if status == ACTIVE else dict.fromkeys(linked.item_ids, status)
    return descendant(bank, overlaid(whole, part), "add-items", **told, link=link_made, statuses=statuses)


def add_models(bank: GivenBank, responses: GivenResponses, *, how: str | None = None, note: str = "") -> Bank:
    """Add models and their answers to a bank; its items keep their parameters, and its scores their meaning.

    Abilities of the new models are found on the bank's scale. What rests on past models (the choice of methods,
    intervals, typicality) is learnt anew when it is next needed, from all of them.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of new models to the bank's items, complete or not; of the bank's models to items that they had not answered.
    how : {'complete', 'random', 'fixed', 'adaptive'}, optional
        How their items were chosen, if the model table has no column `answered_how` that says it: answers exported
        from a session do. Cross-validation calibrates no items on 'adaptive' models.
    note : str
        Kept in the history, beside the prompts, versions and harnesses in the tables of the results.

    Returns
    -------
    Bank
        The next version, with another minor number.

    Raises
    ------
    DataError
        When a model is in the bank with all these answers or with others, or has none; when items are not in the bank,
        or have another content there.

    Examples
    --------
    >>> grown = add_models(bank, responses, how="random")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    bank.check_responses("Adding models needs")
    whole = whole_bank(bank)
    given = without_unattempted(as_new_responses(bank, responses), whole.responses.items["item_id"])
    given = with_ways(given, whole.n_items, how)
    new = sorted(set(given.item_ids) - set(whole.item_ids))
    if new:
        raise DataError(
            f"every item must be in the bank, and {len(new)} of {given.n_items} are not: {shown(new)}. "
            "To add items to it, use add_items (itembank bank add-items)."
        )
    empty = [given.model_ids[row] for row in np.flatnonzero(~given.observed.any(axis=1))]
    if empty:
        raise DataError(f"every model must have answers, and {len(empty)} have none: {shown(empty)}. Leave them out.")
    check_same_content(given.items, whole.responses.items)
    places = whole.responses.item_indices(given.item_ids)
    items = whole.responses.items[places]  # with what the bank knows of them
    asked = marked_as_added(bank, given).with_tables(items=with_prompts(items, [items, given.items]))
    part = grown_part(
        whole,
        asked,
        whole.parameters.take(places),
        whole.calibration.item_covariance[places],
        is_degenerate=whole.calibration.is_degenerate[places],
    )
    known = set(whole.responses.model_ids)
    again = [name for name in given.model_ids if name in known]
    grown = _with_further_answers(whole, overlaid(whole, part), again)
    return descendant(bank, grown, "add-models", **growth(note, given, how=how))


def _with_further_answers(whole: Bank, grown: Bank, again: list[str]) -> Bank:
    """Find the abilities of models that were in the bank anew, from the answers of before and those that came."""
    if not again:
        return grown
    rows = whole.responses.model_indices(again)
    n_before, given = whole.responses.observed[rows].sum(axis=1), grown.responses.take(models=rows)
    idle = [again[k] for k in np.flatnonzero(given.observed.sum(axis=1) == n_before)]
    if idle:
        raise DataError(
            f"models must be new to the bank, or bring answers that it has not, and {len(idle)} of {len(again)} are in "
            f"it already: {shown(idle)}. Leave them out, or give another run of a model an id of its own."
        )
    values = binary(whole, given.responses, given.items["scenario"].to_list())
    found = map_abilities(whole.parameters, values, whole.calibration.prior, n_trials=trials_of(whole, given))
    theta, covariance = grown.calibration.abilities.copy(), grown.calibration.ability_covariance.copy()
    theta[rows], covariance[rows] = found.theta, found.covariance
    return replace(grown, calibration=replace(grown.calibration, abilities=theta, ability_covariance=covariance))


def grown_part(
    bank: Bank,
    responses: ResponseMatrix,
    parameters: ItemParameters,
    item_covariance: FloatArray,
    *,
    is_degenerate: BoolArray,
) -> Bank:
    """Make the bank of some responses: parameters are given, abilities found from all of them."""
    values = binary(bank, responses.responses, responses.items["scenario"].to_list())
    found = map_abilities(parameters, values, bank.calibration.prior, n_trials=trials_of(bank, responses))
    calibration = replace(
        bank.calibration,
        parameters=parameters,
        item_covariance=item_covariance,
        abilities=found.theta,
        ability_covariance=found.covariance,
        is_degenerate=is_degenerate,
    )
    targets = ScoreTargets.create(responses.items, within=bank.targets.within, across=bank.targets.across)
    known = dict(zip(bank.targets.scenarios, bank.item_model_bias.tolist(), strict=True))
    others = bank.item_model_bias[~np.isnan(bank.item_model_bias)]
    typical = float(others.mean()) if others.size else float("nan")
    return replace(
        bank,
        responses=responses,
        calibration=calibration,
        targets=targets,
        item_model_bias=np.array([known.get(name, typical) for name in targets.scenarios]),
        response_variance=response_variance(responses, targets),
        history=None,
        whole=None,
    )


def growth(note: str, given: ResponseMatrix, *, how: str | None, **asked: Any) -> dict[str, Any]:
    """Write down for `descendant` what was asked for, and which prompts, versions and harnesses the results tell."""
    arguments = {**asked, **({} if how is None else {"how": how})}
    conditions = told_conditions(given)
    arguments |= {"run_with": conditions} if conditions else {}
    check_told(note.strip(), arguments)
    return {"note": note.strip(), "arguments": arguments}


def marked_as_added(bank: Bank, responses: ResponseMatrix) -> ResponseMatrix:
    """Say in the model table that no parameter of the bank rests on these models' answers."""
    models = responses.models.with_columns(pl.lit(history_of(bank).version).alias(ADDED))
    return responses.with_tables(models=models)


@one_blas_thread()
def recalibrate(
    bank: GivenBank,
    responses: GivenResponses | None = None,
    *,
    how: str | None = None,
    note: str = "",
    progress: ProgressCallback = silent,
) -> Bank:
    """Let the difficulties of a bank's items learn from models that joined since they were calibrated.

    The added models, however their items were chosen, move the intercepts, with the old values and their errors as the
    prior; slopes and the scale stay. Slopes must not be calibrated on answers to items that were chosen by the models'
    own answers, as in adaptive sessions: those that look steep by chance are asked, look steeper still, and make
    sessions worse than a bank that never learns.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths, optional
        Of models that join first, as for `add_models`.
    how : {'complete', 'random', 'fixed', 'adaptive'}, optional
        As for `add_models`.
    note : str
        Kept in the history.
    progress : ProgressCallback

    Returns
    -------
    Bank
        The next version.

    Raises
    ------
    DataError
        If nothing is there to learn from; for families whose parameters are more than slopes and intercepts.

    Examples
    --------
    >>> newer = recalibrate(bank, responses, how="random")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    bank.check_responses("Recalibrating needs")
    if responses is not None:
        bank = add_models(bank, responses, how=how)
    whole = whole_bank(bank)
    models = whole.responses.models
    joined = models[ADDED].is_not_null() if ADDED in models.columns else pl.repeat(False, models.height, eager=True)
    added = joined.to_numpy()
    if not added.any():
        raise DataError(
            f"a bank learns from models that joined since it was calibrated, and none of its {whole.n_models} did. "
            "Add some: give their responses."
        )
    changed, link = _with_new_difficulties(whole, added, is_retired(bank), progress)
    return descendant(bank, changed, "recalibrate", note=note.strip(), link=link)


def _with_new_difficulties(
    whole: Bank, added: BoolArray, retired: BoolArray, progress: ProgressCallback
) -> tuple[Bank, Link]:
    """Move the intercepts; the scale is kept, which counts as a link."""
    if whole.parameters.family not in ("bernoulli", "binomial"):
        raise DataError(
            "difficulties are updated in banks of right and wrong answers or of counts, got family "
            f"{whole.parameters.family!r}. Calibrate a bank of all responses anew."
        )
    if not np.isfinite(whole.calibration.item_covariance).all():
        raise DataError(
            "difficulties are updated by the errors that they have, and this bank's calibration gave none. "
            "Calibrate a bank of all responses anew."
        )
    calibration, given = whole.calibration, whole.responses.take(models=np.flatnonzero(added))
    # added models' answers to retired items teach nothing, nor those to items that they linked, which rest on them
    is_out = np.broadcast_to(retired, given.responses.shape)
    if BATCH in given.items.columns:
        after, since = (_in_order(table[name]) for table, name in ((given.items, BATCH), (given.models, ADDED)))
        is_out = is_out | (since[:, None] <= after)
    given = replace(given, responses=np.where(is_out, np.nan, given.responses))
    scenarios = given.items["scenario"].to_list()
    progress("updating difficulties", 0.0)
    intercept, information = update_intercepts(
        whole.parameters,
        calibration.item_covariance,
        binary(whole, given.responses, scenarios),
        calibration.prior,
        n_trials=trials_of(whole, given),
    )
    items = replace(whole.parameters, intercept=intercept)
    values = binary(whole, whole.responses.responses, scenarios)
    abilities = map_abilities(items, values, calibration.prior, n_trials=trials_of(whole, whole.responses))
    progress("updating difficulties", 1.0)
    changed = replace(
        calibration,
        parameters=items,
        item_covariance=updated_covariance(calibration.item_covariance, information),
        abilities=abilities.theta,
        ability_covariance=abilities.covariance,
    )
    link = Link("difficulties", n_models=int(added.sum()), n_items=int((information > 0.0).sum()))
    models = whole.responses.models.with_columns(pl.lit(None, dtype=pl.String).alias(ADDED))  # learnt from by now
    return replace(whole, calibration=changed, responses=whole.responses.with_tables(models=models)), link


def _in_order(versions: pl.Series) -> FloatArray:
    """Return a number for each version that rises as they do, NaN for none."""
    parts = versions.cast(pl.String).str.extract_groups(r"^(\d+)\.(\d+)\.(\d+)$").struct.unnest()
    result: FloatArray = parts.cast(pl.Float64).to_numpy() @ np.array([1.0, 1e-6, 1e-12])
    return result


def update_intercepts(
    items: ItemParameters,
    item_covariance: FloatArray,
    responses: FloatArray,
    prior: AbilityPrior,
    *,
    n_trials: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Find the mode of each item's intercept given new answers, with its present value and error as the prior.

    Returns the intercepts and the information that the answers added, each (n_items,).

    ``argmax_c sum_l E[log P(y_l | a theta_l + c)] - (c - c_0)^2 / (2 v)``, with the slopes a as they are, the
    expectation over the posterior of each model's ability at the present parameters, and v the variance of the
    intercept given the slopes. Where items were chosen by the models' own answers this does little harm, whereas new
    slopes would come out too steep for the items that looked steep and were therefore asked.
    Responses (n_models, n_items) are of models that the present parameters do not rest on, NaN where missing;
    covariances (n_items, n_dims + 1, n_dims + 1) of (loadings, intercept).
    """
    nodes = ability_nodes(items, responses, prior, n_trials=n_trials, n_quadrature=3)
    answered = ~np.isnan(responses)
    values = np.where(answered, responses, 0.0)
    offsets = [logit(items, nodes.theta[:, q]) - items.intercept for q in range(nodes.theta.shape[1])]
    slopes, both = item_covariance[:, :-1, :-1], item_covariance[:, :-1, -1]
    size = np.maximum(np.einsum("ijj->i", item_covariance), 1e-12)
    ridge = 1e-9 * size[:, None, None] * np.eye(slopes.shape[1])
    explained = np.einsum("ia,ia->i", both, np.linalg.solve(slopes + ridge, both[..., None])[..., 0])
    variance = np.maximum(item_covariance[:, -1, -1] - explained, 1e-9 * size)  # of each intercept given the slopes
    intercept, information = items.intercept.copy(), np.zeros(items.n_items)
    for _ in range(50):
        gradient, information = np.zeros(items.n_items), np.zeros(items.n_items)
        for q, offset in enumerate(offsets):
            x, weight = offset + intercept, answered * nodes.weights[:, q, None]
            gradient += (weight * families.likelihood_terms(items, x, values, n_trials).slope).sum(axis=0)
            information += (weight * families.information_weights(items, x, n_trials)).sum(axis=0)
        step = (gradient - (intercept - items.intercept) / variance) / (information + 1.0 / variance)
        intercept += np.clip(step, -2.0, 2.0)  # in logits: Newton's parabola is good near its vertex only
        if np.abs(step).max() < 1e-8:
            break
    return intercept, information


def updated_covariance(covariance: FloatArray, information: FloatArray) -> FloatArray:
    """Add information (n_items,) about the intercepts to covariances (n_items, n_dims + 1, n_dims + 1)."""
    column = covariance[:, :, -1]
    share = information / (1.0 + information * covariance[:, -1, -1])  # Sherman and Morrison
    return covariance - share[:, None, None] * column[:, :, None] * column[:, None, :]
