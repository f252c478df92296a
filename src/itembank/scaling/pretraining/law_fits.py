"""Laws of every scenario, from measured abilities."""

from dataclasses import dataclass

import numpy as np

from itembank.errors import shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.scaling.pretraining.fitting import LawData, LawFit
from itembank.scaling.pretraining.forecasts import FittedLaw
from itembank.scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws
from itembank.scaling.pretraining.runs import Runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, ScenarioScores
from itembank.scaling.pretraining.specs import LAWS, PretrainingSettings


@dataclass(frozen=True, slots=True)
class Measured:
    """Scores and abilities of n_models models, before any law.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    scores : tuple of n_scenarios ScenarioScores
    abilities : tuple of n_scenarios ScenarioAbilities or None
        None where there is no item model: none was wanted, or none could be fitted.
    losses : (n_models, n_scenarios) or None
        Mean loss of each model in each scenario.
    message : str
        On scenarios without an item model, and on what stands for the loss.
    """

    model_ids: tuple[str, ...]
    scores: tuple[ScenarioScores, ...]
    abilities: tuple[ScenarioAbilities | None, ...]
    losses: FloatArray | None
    message: str

    def take(self, models: IntArray) -> "Measured":
        """Return the models at these indices."""
        return Measured(
            tuple(self.model_ids[row] for row in models.tolist()),
            tuple(measured.take(models) for measured in self.scores),
            tuple(None if measured is None else measured.take(models) for measured in self.abilities),
            None if self.losses is None else self.losses[models],
            self.message,
        )


def fit_laws(
    measured: Measured,
    runs: Runs,
    settings: PretrainingSettings,
    target: float,
    seed: int,
    *,
    progress: ProgressCallback = silent,
) -> PretrainingLaw:
    """Fit every law that is wanted to every scenario of the models of `runs`, as far as it can be fitted."""
    scenarios = []
    for number, scores in enumerate(measured.scores):
        progress(f"laws of {scores.scenario}", number / len(measured.scores))
        scenarios.append(_scenario_laws(measured, number, runs, settings, seed))
    texts = [runs.message, measured.message, _absent(measured, scenarios)]
    return PretrainingLaw(
        recipes=runs.recipes,
        scenarios=tuple(scenarios),
        model_ids=measured.model_ids,
        log_flops=runs.log_flops,
        recipe_index=runs.recipe_index,
        is_final=runs.is_final,
        target_flops=target,
        level=settings.level,
        message=" ".join(text for text in texts if text),
    )


def _scenario_laws(
    measured: Measured, number: int, runs: Runs, settings: PretrainingSettings, seed: int
) -> ScenarioLaws:
    """Fit every law that is wanted to one scenario, of the models with responses there."""
    scores, abilities = measured.scores[number], measured.abilities[number]
    losses = None if measured.losses is None else measured.losses[:, number]
    runs = runs.among(scores.is_present, settings.fewest_sizes)
    fitted: dict[str, FittedLaw] = {}
    notes: dict[str, tuple[str, ...]] = {}
    data = LawData(scores.observed, abilities, losses, runs, seed)
    for law in map(LAWS.resolve, settings.laws if runs.is_enough.any() else ()):
        fit: LawFit | None = LAWS.kernel(law)(data, law)
        if fit is not None:
            name = LAWS.name_of(law)
            fitted[name], notes[name] = fit.law, fit.notes
    return ScenarioLaws(scores, fitted, notes)


def _absent(measured: Measured, scenarios: list[ScenarioLaws]) -> str:
    """Say which scenarios some models have no responses in, and which have too few sizes for any law."""
    counts = [
        f"{scenario.scenario} ({int(np.sum(~scenario.is_present))})"
        for scenario in measured.scores
        if not scenario.is_present.all()
    ]
    parts = []
    if counts:
        parts.append(f"Models without responses do not count in a scenario (how many): {shown(counts)}.")
    lacking = [scenario.scenario for scenario in scenarios if not scenario.fitted]
    if lacking:
        parts.append(f"Scenarios without a law: {shown(lacking)}.")
    return " ".join(parts)
