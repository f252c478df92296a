"""The responses and training runs behind pre-training laws, checked once, and what is measured of their models."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.irt.beta import clip_probabilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.splits import places_within
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute
from itembank_scaling.pretraining.law_specs import TWO_STEP, ItemResponseLaw, PretrainingSettings
from itembank_scaling.pretraining.measured_abilities import (
    ScenarioAbilities,
    ScenarioScores,
    checked_loss,
    measured_abilities,
    response_family,
    scenario_losses,
    scenario_scores,
)

SAME_SIZE = 0.01
"""Difference in log FLOP below which two finished models count as one size."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The models that take part, by recipe."""

    recipes: tuple[str, ...]
    recipe_index: IntArray  # (n_models,)
    log_flops: FloatArray  # (n_models,)
    is_final: BoolArray  # (n_models,)
    # (n_recipes, n_most): Rows of a recipe's finished models, and of all its models, by rising compute; -1 where there
    # are no more.
    finals: IntArray
    every: IntArray  # (n_recipes, n_most)
    n_sizes: IntArray  # (n_recipes,): Finished models of different compute
    is_enough: BoolArray  # (n_recipes,): Recipes with as many sizes as the settings ask for
    message: str  # Which recipes have too few

    def of_finals(self, values: FloatArray) -> FloatArray:
        """Spread values (n_models,) over recipes with enough sizes, (n_recipes, n_most); NaN elsewhere."""
        return self._spread(values, self.finals)

    def of_every(self, values: FloatArray) -> FloatArray:
        """Spread values (n_models,) of all models over recipes with enough sizes, (n_recipes, n_most)."""
        return self._spread(values, self.every)

    def among(self, is_present: BoolArray, fewest_sizes: int) -> "Runs":
        """Return the runs as they are when only these models (n_models,) count."""
        if is_present.all():
            return self
        n_recipes = len(self.recipes)
        finals = _rows_by_recipe(self.recipe_index, self.log_flops, n_recipes, self.is_final & is_present)
        every = _rows_by_recipe(self.recipe_index, self.log_flops, n_recipes, is_present)
        n_sizes = _n_sizes(finals, self.log_flops)
        return replace(self, finals=finals, every=every, n_sizes=n_sizes, is_enough=n_sizes >= fewest_sizes)

    def _spread(self, values: FloatArray, rows: IntArray) -> FloatArray:
        is_there = (rows >= 0) & self.is_enough[:, None]
        return np.where(is_there, values[np.maximum(rows, 0)], np.nan)


def training_runs(compute: TrainingCompute, largest_flops: float | None, fewest_sizes: int) -> tuple[IntArray, Runs]:
    """Find the models of at most `largest_flops`, and their runs."""
    flops = compute.flops
    used = np.arange(compute.n_models) if largest_flops is None else np.flatnonzero(flops <= largest_flops)
    labels = ["all"] * len(flops) if compute.recipe is None else list(compute.recipe)
    recipes = compute.recipes
    index = np.array([recipes.index(labels[row]) for row in used.tolist()], dtype=np.int64)
    log_flops, is_final = np.log(flops[used]), compute.is_final[used]
    finals = _rows_by_recipe(index, log_flops, len(recipes), is_final)
    n_sizes = _n_sizes(finals, log_flops)
    is_enough = n_sizes >= fewest_sizes
    lacking = [f"{name} ({count})" for name, count in zip(recipes, n_sizes, strict=True) if count < fewest_sizes]
    limit = "" if largest_flops is None else f" of at most {largest_flops:.3g} FLOP"
    unnamed = "" if compute.recipe is not None else (
        "The table of models has no column recipe, mixture or family, so all models count as one recipe; "
        f"{remedy('recipe_column names another column', 'give it one of them by itembank import --models')}."
    )  # fmt: skip
    if len(lacking) == len(recipes):
        raise DataError(
            f"a law needs finished models of at least {fewest_sizes} sizes of one recipe{limit}, got "
            f"{shown(lacking)}. Add sizes, or check the columns recipe and is_final of the table of models."
            f"{unnamed and ' '}{unnamed}"
        )
    message = f"Fewer than {fewest_sizes} sizes{limit}, no law: {shown(lacking)}." if lacking else unnamed
    every = _rows_by_recipe(index, log_flops, len(recipes), np.ones(len(used), dtype=bool))
    return used, Runs(recipes, index, log_flops, is_final, finals, every, n_sizes, is_enough, message)


def aligned(compute: TrainingCompute, model_ids: list[str]) -> IntArray:
    """Row in `compute` of each model, (n_models,)."""
    rows = {name: row for row, name in enumerate(compute.model_ids)}
    absent = [name for name in model_ids if name not in rows]
    if absent:
        raise DataError(
            f"the training compute of every model must be known: it is not of {len(absent)} of {len(model_ids)}: "
            f"{shown(absent)}. Add them to the table of models, or leave them out of the responses."
        )
    return np.array([rows[name] for name in model_ids], dtype=np.int64)


def checked_target(target_flops: float | None, runs: Runs) -> tuple[float, str]:
    """Return the target, or ten times the largest compute that a line is fitted to, and what is doubtful about it."""
    flops = np.exp(runs.log_flops[runs.is_final & runs.is_enough[runs.recipe_index]])
    smallest, largest = float(flops.min()), float(flops.max())
    # times the largest training compute for which scores are forecast unless a target is given
    beyond_by_default = 10.0
    if target_flops is None:
        return beyond_by_default * largest, ""
    if not (np.isfinite(target_flops) and target_flops > 0.0):
        raise ParameterError(f"target_flops must be finite and > 0, got {target_flops}.")
    fitted = f"the models fitted ({smallest:.3g} to {largest:.3g} FLOP)"
    absurd = 1e6  # times the compute of the models fitted from which a target is refused
    if not smallest / absurd < target_flops < largest * absurd:
        raise ParameterError(
            f"target_flops must lie within a factor of {absurd:.0e} of {fitted}, got {target_flops:.3g}. Check "
            "the units: it and the models' compute are in FLOP."
        )
    if target_flops < smallest:
        return float(target_flops), f"The target lies below {fitted}: laws are made to look ahead, not back."
    return float(target_flops), ""


def _rows_by_recipe(index: IntArray, log_flops: FloatArray, n_recipes: int, is_wanted: BoolArray) -> IntArray:
    """Rows of each recipe by rising compute, (n_recipes, n_most), -1 where there are no more."""
    rows = np.flatnonzero(is_wanted)
    order = rows[np.lexsort((log_flops[rows], index[rows]))]
    counts = np.bincount(index[order], minlength=n_recipes)
    places = places_within(counts)
    result = np.full((n_recipes, max(1, int(counts.max(initial=0)))), -1, dtype=np.int64)
    result[index[order], places] = order
    return result


def _n_sizes(finals: IntArray, log_flops: FloatArray) -> IntArray:
    """Count each recipe's finished models of different compute."""
    x = np.where(finals >= 0, log_flops[np.maximum(finals, 0)] if log_flops.size else 0.0, np.nan)
    with np.errstate(invalid="ignore"):
        steps = np.diff(x, axis=1) > SAME_SIZE
    result: IntArray = (finals >= 0).any(axis=1).astype(np.int64) + steps.sum(axis=1)
    return result


@dataclass(frozen=True, slots=True)
class Measured:
    """Scores and abilities of n_models models, before any law."""

    model_ids: tuple[str, ...]
    scores: tuple[ScenarioScores, ...]
    # None where there is no item model: none was wanted, or none could be fitted.
    abilities: tuple[ScenarioAbilities | None, ...]
    losses: FloatArray | None  # (n_models, n_scenarios): Mean loss of each model in each scenario
    message: str  # On scenarios without an item model, and on what is taken for the loss

    def take(self, models: IntArray) -> "Measured":
        """Return the models at these indices."""
        return Measured(
            tuple(self.model_ids[row] for row in models.tolist()),
            tuple(measured.take(models) for measured in self.scores),
            tuple(None if measured is None else measured.take(models) for measured in self.abilities),
            None if self.losses is None else self.losses[models],
            self.message,
        )


@dataclass(frozen=True, slots=True)
class PretrainingData:
    """Models with known compute and responses; those of calibration recipes are apart."""

    responses: ResponseMatrix  # Of the n_models models that laws are for
    compute: TrainingCompute  # Of the same models, in the same order
    loss: FloatArray | None  # (n_models, n_items)
    calibration: ResponseMatrix | None  # Of the models that calibrate the items alone
    bank: Bank | None
    settings: PretrainingSettings
    seed: int = 0  # Draws the items of the laws that have no item model, under a budget
    # That the bank is of another kind of responses, and how many probabilities had to be kept off 0 and 1.
    message: str = ""

    @classmethod
    def create(
        cls,
        responses: ResponseMatrix,
        compute: TrainingCompute,
        settings: PretrainingSettings,
        *,
        bank: Bank | None = None,
        loss: FloatArray | None = None,
        seed: int = 0,
    ) -> Self:
        """Check that all belong together, and part the calibration recipes from the others."""
        compute = compute.take(aligned(compute, responses.model_ids))
        losses = None if loss is None else checked_loss(loss, responses)
        other_kind = "" if bank is None else _of_another_kind(responses, bank)
        clipped = ""
        if settings.item_law is not None and response_family(responses, settings.item_law) == "beta":
            inside, clipped = clip_probabilities(responses.responses)
            responses = replace(responses, responses=inside)
        message = " ".join(text for text in (other_kind, clipped) if text)
        if not settings.calibration_recipes:
            return cls(responses, compute, losses, None, bank, settings, seed, message)
        if bank is not None:
            raise ParameterError("items are calibrated by a bank or by calibration_recipes, got both. Leave one out.")
        absent = [name for name in settings.calibration_recipes if name not in compute.recipes]
        if absent:
            raise ParameterError(
                f"calibration_recipes must be recipes of the models, {shown(compute.recipes)}, got {shown(absent)}."
            )
        is_past = np.any([compute.in_recipe(name) for name in settings.calibration_recipes], axis=0)
        new_models = np.flatnonzero(~is_past)
        if not new_models.size:
            raise DataError("some recipe must be left to fit laws to, got all of them as calibration_recipes.")
        past = responses.take(models=np.flatnonzero(is_past))
        new_losses = None if losses is None else losses[new_models]
        return cls(
            responses.take(models=new_models), compute.take(new_models), new_losses, past, None, settings, seed, message
        )

    def runs(self, largest_flops: float | None) -> tuple[IntArray, Runs]:
        """Rows of the models of at most this compute, and their runs."""
        return training_runs(self.compute, largest_flops, self.settings.fewest_sizes)

    def measured(self, rows: IntArray, *, progress: ProgressCallback = silent) -> Measured:
        """Measure the models at these rows from their responses and the calibration's alone.

        Items are calibrated for the laws that go through abilities alone.
        """
        part = self.responses.take(models=rows)
        scores = scenario_scores(part, n_items=self.settings.n_items, rng=np.random.default_rng(self.seed))
        abilities: list[ScenarioAbilities | None] = [None] * len(scores)
        notes = []
        law = self.settings.item_law
        if law is not None:
            abilities, note = measured_abilities(
                part,
                law,
                bank=self.bank,
                calibration=self.calibration,
                n_items=self.settings.n_items,
                progress=progress,
            )
            notes.append(note)
        losses = None
        if self.settings.law(TWO_STEP) is not None:
            losses, note = scenario_losses(part, scores, None if self.loss is None else self.loss[rows])
            notes.append(note)
        return Measured(
            tuple(part.model_ids), tuple(scores), tuple(abilities), losses, " ".join(text for text in notes if text)
        )


def _of_another_kind(responses: ResponseMatrix, bank: Bank) -> str:
    """Return a message for a bank of probabilities with responses that are right or wrong, or the reverse; else ''.

    Items whose responses were made binary by thresholds make these so too.
    """
    kinds = ("right or wrong", "probabilities")
    is_beta = bank.parameters.family == "beta"
    are_probabilities = response_family(responses, ItemResponseLaw()) == "beta"
    if is_beta == are_probabilities or bank.calibration.thresholds:
        return ""
    return (
        f"The bank was calibrated on responses that are {kinds[is_beta]} (family {bank.parameters.family!r}), these "
        f"are {kinds[are_probabilities]}: its items say nothing of such scores. Take a bank that was "
        "calibrated on the same kind of responses."
    )
