"""What a bank gains, as a bank of its own on the same scale, which can be laid over the old one."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.run_conditions import told_conditions
from itembank.bank.answered_how import ADDED
from itembank.bank.banks import Bank
from itembank.calibration.degenerate import find_degenerate
from itembank.calibration.item_model_bias import response_variance
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.living.descendants import Operation, history_of
from itembank.living.linking_answers import binary, trials_of
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


def grown_part(
    bank: Bank,
    responses: ResponseMatrix,
    parameters: ItemParameters,
    item_covariance: FloatArray,
    *,
    is_degenerate: BoolArray,
) -> Bank:
    """Make the bank of some responses: parameters are given, abilities found from all of them.

    Parameters
    ----------
    bank : Bank
        Whole; its scale and rule of scores.
    responses : ResponseMatrix
        (n_models, n_items)
    parameters : ItemParameters
        Of these items.
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
    is_degenerate : (n_items,)
    """
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


def answered_alike(responses: ResponseMatrix) -> BoolArray:
    """Items that all models answered alike, (n_items,)."""
    return find_degenerate(responses.responses)


def growth(name: str, note: str, given: ResponseMatrix, *, how: str | None, **asked: Any) -> Operation:
    """Write down what was added: what was asked for, and which prompts, versions and harnesses the results tell."""
    arguments = {**asked, **({} if how is None else {"how": how})}
    conditions = told_conditions(given)
    return Operation(name, note.strip(), {**arguments, "run_with": conditions} if conditions else arguments)


def marked_as_added(bank: Bank, responses: ResponseMatrix) -> ResponseMatrix:
    """Say in the model table that no parameter of the bank rests on these models' answers."""
    models = responses.models.with_columns(pl.lit(history_of(bank).version).alias(ADDED))
    return responses.with_tables(models=models)
