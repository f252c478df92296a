"""The responses and compute behind pre-training laws, checked once, and what is measured of their models."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.compute import TrainingCompute
from itembank.readers.probabilities import clip_probabilities
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.losses import checked_loss, scenario_losses
from itembank.scaling.pretraining.measured_abilities import measured_abilities, response_family, scenario_scores
from itembank.scaling.pretraining.method_specs import TWO_STEP, ItemResponseLaw, PretrainingSettings
from itembank.scaling.pretraining.runs import Runs, aligned, training_runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, ScenarioScores


@dataclass(frozen=True, slots=True)
class Measured:
    """Scores and abilities of n_models models, before any law."""

    model_ids: tuple[str, ...]
    scores: tuple[ScenarioScores, ...]
    # None where there is no item model: none was wanted, or none could be fitted.
    abilities: tuple[ScenarioAbilities | None, ...]
    losses: FloatArray | None  # (n_models, n_scenarios): Mean loss of each model in each scenario
    message: str  # On scenarios without an item model, and on what stands for the loss

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
    """Models with known compute and responses; those of calibration recipes stand apart."""

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
        """Check that all belong together, and part the calibration recipes from the others.

        Raises
        ------
        DataError
            When a model has no known compute, or a loss is not what it must be.
        ParameterError
            For calibration recipes that do not exist, or beside a bank.
        """
        compute = compute.take(aligned(compute, responses.model_ids))
        losses = None if loss is None else checked_loss(loss, responses)
        other_kind = "" if bank is None else _of_another_kind(responses, bank)
        responses, clipped = _within_bounds(responses, settings)
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

    @property
    def has_items(self) -> bool:
        """Whether the items are calibrated on other models, so that abilities do not depend on who takes part."""
        return self.bank is not None or self.calibration is not None

    def runs(self, largest_flops: float | None) -> tuple[IntArray, Runs]:
        """Rows of the models of at most this compute, and their runs.

        Raises
        ------
        DataError
            When no recipe has enough sizes.
        """
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


def _within_bounds(responses: ResponseMatrix, settings: PretrainingSettings) -> tuple[ResponseMatrix, str]:
    """Keep probabilities of a Beta family off 0 and 1, and say how many were moved."""
    law = settings.item_law
    if law is None or response_family(responses, law) != "beta":
        return responses, ""
    clipped = clip_probabilities(responses.responses)
    return replace(responses, responses=clipped.values), clipped.note


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
        f"are {kinds[are_probabilities]}: scores are of another kind than its items tell of. Take a bank that was "
        "calibrated on the same kind of responses."
    )
