"""The verb `pretraining_law`: forecast the benchmark scores of training runs that are too large to try."""

import numpy as np

from itembank.data.banks import Bank
from itembank.data.compute import TrainingCompute
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.scaling.fitting import fit_ability_law, fit_sigmoid, fit_two_step_law
from itembank.scaling.forecasts import FittedLaw
from itembank.scaling.law_notes import ability_notes, curve_notes
from itembank.scaling.losses import checked_loss, scenario_losses
from itembank.scaling.measured_abilities import measured_abilities
from itembank.scaling.pretraining_results import PretrainingLaw, ScenarioLaws
from itembank.scaling.pretraining_specs import IRSL, SIGMOID, TWO_STEP, ItemResponseLaw, PretrainingSettings
from itembank.scaling.runs import Runs, checked_target, training_runs
from itembank.scaling.scenario_abilities import ScenarioAbilities
from itembank.scaling.sigmoid_law import SigmoidLaw
from itembank.scaling.two_step import TwoStep


@one_blas_thread()
def pretraining_law(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    target_flops: float | None = None,
    bank: Bank | None = None,
    loss: FloatArray | None = None,
    settings: PretrainingSettings | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> PretrainingLaw:
    """Fit how scores grow with training compute, for every recipe and scenario, and forecast a larger run.

    The item response scaling law measures an ability for every finished model, fits ``theta = s log FLOP + t`` for
    each recipe, and turns a forecast ability into a score through the items (P3 eq. 3). The traditional two-step law
    and a direct sigmoid in log FLOP are fitted to the same models for comparison.

    Parameters
    ----------
    responses : ResponseMatrix
        Of checkpoints of several recipes and sizes: right or wrong, counts, or probabilities of the right choice.
    compute : TrainingCompute
        Of every model in `responses`, and maybe of others. Lines are fitted to finished models; checkpoints on the
        way help to calibrate items and to fit the second step of the two-step law.
    target_flops : float, optional
        Training compute to forecast for; ten times the largest of the models fitted by default.
    bank : Bank, optional
        One-dimensional bank calibrated on other models. Without it the items are calibrated on `responses`.
    loss : (n_models, n_items), optional
        Bits per byte of the right answer, for the two-step law; with probabilities ``-log2`` of them by default.
    settings : PretrainingSettings, optional
    rng : Generator, int or None
        Places the starts of the curves.
    progress : ProgressCallback

    Returns
    -------
    PretrainingLaw

    Raises
    ------
    DataError
        When a model has no known compute; when no recipe has enough sizes; when a loss is not positive or of another
        shape; as `calibrate`.
    ParameterError
        For a target that is not a positive number, or a bank of several dimensions.

    Examples
    --------
    >>> law = pretraining_law(responses, compute, target_flops=1e16)  # doctest: +SKIP
    >>> law.rows()[0]["score"]  # doctest: +SKIP
    """
    settings = settings or PretrainingSettings()
    seed = int(as_generator(rng).integers(2**32))
    used, runs = training_runs(responses, compute, settings)
    target = checked_target(target_flops, runs)
    part = responses.take(models=used)
    given = None if loss is None else checked_loss(loss, responses)[used]
    law = settings.law(IRSL)
    spec = law if isinstance(law, ItemResponseLaw) else ItemResponseLaw()
    measured = measured_abilities(part, spec, bank=bank, n_items=settings.n_items, progress=progress)
    losses, about_loss = scenario_losses(part, measured, given)
    if losses is None and settings.names == (TWO_STEP,):
        raise DataError(about_loss)
    scenarios = [
        _scenario_laws(one, None if losses is None else losses[:, number], runs, settings, seed)
        for number, one in enumerate(measured)
    ]
    texts = (runs.message, about_loss if settings.law(TWO_STEP) is not None else "")
    return PretrainingLaw(
        recipes=runs.recipes,
        scenarios=tuple(scenarios),
        model_ids=tuple(part.model_ids),
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
            ability_law = fit_ability_law(abilities, runs, law.pooling)
            fitted[IRSL], notes[IRSL] = ability_law, ability_notes(ability_law.laws, abilities, runs)
        elif isinstance(law, SigmoidLaw):
            curve = fit_sigmoid(abilities.observed, runs, law, seed)
            fitted[SIGMOID], notes[SIGMOID] = curve, curve_notes(curve, abilities.observed, runs)
        elif isinstance(law, TwoStep) and losses is not None:
            steps = fit_two_step_law(abilities.observed, losses, runs, law, seed)
            fitted[TWO_STEP], notes[TWO_STEP] = steps, curve_notes(steps, abilities.observed, runs, losses=losses)
    return ScenarioLaws(abilities.scenario, abilities, fitted, notes)
