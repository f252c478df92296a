"""Laws of every scenario, from measured abilities."""

from dataclasses import dataclass

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.pretraining.fitting import fit_ability_law, fit_sigmoid, fit_two_step_law
from itembank.scaling.pretraining.forecasts import FittedLaw
from itembank.scaling.pretraining.law_notes import ability_notes, curve_notes
from itembank.scaling.pretraining.pretraining_results import PretrainingLaw, ScenarioLaws
from itembank.scaling.pretraining.pretraining_specs import IRSL, SIGMOID, TWO_STEP, ItemResponseLaw, PretrainingSettings
from itembank.scaling.pretraining.runs import Runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities
from itembank.scaling.pretraining.sigmoid_law import SigmoidLaw
from itembank.scaling.pretraining.two_step import TwoStep


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of n_models models before any law.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    abilities : tuple of n_scenarios ScenarioAbilities
    losses : (n_models, n_scenarios) or None
        Mean loss of each model in each scenario.
    message : str
        On what stands for the loss.
    """

    model_ids: tuple[str, ...]
    abilities: tuple[ScenarioAbilities, ...]
    losses: FloatArray | None
    message: str

    def take(self, models: IntArray) -> "Measured":
        """Return the models at these indices."""
        return Measured(
            tuple(self.model_ids[row] for row in models.tolist()),
            tuple(one.take(models) for one in self.abilities),
            None if self.losses is None else self.losses[models],
            self.message,
        )


def fit_laws(measured: Measured, runs: Runs, settings: PretrainingSettings, target: float, seed: int) -> PretrainingLaw:
    """Fit every law that is wanted to every scenario of the models of `runs`."""
    scenarios = [
        _scenario_laws(one, None if measured.losses is None else measured.losses[:, number], runs, settings, seed)
        for number, one in enumerate(measured.abilities)
    ]
    texts = (runs.message, measured.message if settings.law(TWO_STEP) is not None else "")
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
    abilities: ScenarioAbilities, losses: FloatArray | None, runs: Runs, settings: PretrainingSettings, seed: int
) -> ScenarioLaws:
    """Fit every law that is wanted to one scenario."""
    fitted: dict[str, FittedLaw] = {}
    notes: dict[str, tuple[str, ...]] = {}
    for law in settings.laws:
        if isinstance(law, ItemResponseLaw):
            ability_law = fit_ability_law(abilities, runs, law)
            fitted[IRSL], notes[IRSL] = ability_law, ability_notes(ability_law.laws, abilities, runs)
        elif isinstance(law, SigmoidLaw):
            curve = fit_sigmoid(abilities.observed, runs, law, seed)
            fitted[SIGMOID], notes[SIGMOID] = curve, curve_notes(curve, abilities.observed, runs)
        elif isinstance(law, TwoStep) and losses is not None:
            steps = fit_two_step_law(abilities.observed, losses, runs, law, seed)
            fitted[TWO_STEP], notes[TWO_STEP] = steps, curve_notes(steps, abilities.observed, runs, losses=losses)
    return ScenarioLaws(abilities.scenario, abilities, fitted, notes)
