"""The verb `pretraining_law`: forecast the benchmark scores of training runs that are too large to try."""

from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.compute import TrainingCompute
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.held_out import held_out_forecasts, size_cuts
from itembank.scaling.pretraining.law_fits import fit_laws
from itembank.scaling.pretraining.law_inputs import PretrainingData
from itembank.scaling.pretraining.law_results import PretrainingLaw
from itembank.scaling.pretraining.method_specs import PretrainingSettings
from itembank.scaling.pretraining.runs import checked_target

OWN_SHARE = 0.3
"""Share of the work that is the laws themselves; the rest is their check."""


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
    each recipe, and turns a forecast ability into a score through the items (IRSL eq. 3). The traditional two-step law
    and a direct sigmoid in log FLOP are fitted to the same models, and the largest sizes are held out in turn to see
    what each law's forecasts are worth (`PretrainingLaw.comparison`).

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
        shape; when no law can be fitted to any scenario.
    ParameterError
        For a target that is not a positive number or a million times off the models' compute, or a bank of several
        dimensions.

    Examples
    --------
    >>> law = pretraining_law(responses, compute, target_flops=1e16)  # doctest: +SKIP
    >>> law.rows()[0]["score"]  # doctest: +SKIP
    """
    settings = settings or PretrainingSettings()
    seed = int(as_generator(rng).integers(2**32))
    data = PretrainingData.create(responses, compute, settings, bank=bank, loss=loss, seed=seed)
    used, runs = data.runs(settings.largest_flops)
    target, doubt = checked_target(target_flops, runs)
    measured = data.measured(used, progress=part_of(progress, 0.0, 0.5 * OWN_SHARE))
    law = fit_laws(measured, runs, settings, target, seed, progress=part_of(progress, 0.5 * OWN_SHARE, OWN_SHARE))
    law = replace(law, message=" ".join(text for text in (data.message, law.message, doubt) if text))
    if not law.names:
        raise DataError(f"a law needs a scenario that it can be fitted to, got none. {law.message}")
    cuts = size_cuts(runs, settings.fewest_sizes)[-settings.n_checked :]
    if settings.n_checked == 0 or not cuts:
        return law
    checked = held_out_forecasts(data, cuts, seed=seed, progress=part_of(progress, OWN_SHARE, 1.0))
    return replace(law, held_out=checked)
