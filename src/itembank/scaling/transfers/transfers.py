"""The verb `transfer`: what the ability from some items says of others (IRSL 4.2, 4.3)."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataWarning, ParameterError, warn, warned_once
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.readers.compute import TrainingCompute
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.scenario_fits import responses_and_spec
from itembank.scaling.transfers.convergent import log_flops_of
from itembank.scaling.transfers.curves import CurvePrediction
from itembank.scaling.transfers.fold import FoldTransfer, transfer_part
from itembank.scaling.transfers.parts import Part, bank_part, check_answers, folds, item_sets, named_part
from itembank.scaling.transfers.transfer_results import Transfer
from itembank.scaling.transfers.transfer_specs import TransferSpec


@one_blas_thread()
def transfer(
    responses: ResponseMatrix,
    source: str,
    target: str | None = None,
    *,
    spec: TransferSpec | None = None,
    calibration: Bank | Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    compute: TrainingCompute | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Transfer:
    """Predict the scores of models on a target from the ability that the items of a source give.

    The convergent validity of both, on the calibration models alone, is found first; without any sign of it the
    transfer is refused, and a weak one is warned of.

    Parameters
    ----------
    responses : ResponseMatrix
        Of the models asked about; of a model's answers to the target nothing is used but to compare at the end.
    source : str
        A scenario.
    target : str, optional
        Another scenario; without it, the source's easy items predict its hard ones. What is easy is seen from the
        calibration models only.
    spec : TransferSpec, optional
    calibration : Bank or sequence of model ids, optional
        Past models that both sets of items are calibrated on: those of a bank, or some of the responses. By default
        parts of the models are left out in turn, and predicted from the others.
    groups : sequence of n_models names, optional
        Relatives among the models, which are left out together. By default the recipes of `compute`.
    compute : TrainingCompute, optional
        Puts training compute beside each prediction.
    rng : Generator, int or None
        Divides the models.
    progress : ProgressCallback

    Returns
    -------
    Transfer

    Raises
    ------
    DataError
        When the abilities are not shown to be correlated; for a scenario that does not exist; for too few models.
    ParameterError
        For a choice that cannot be; for k above 1 without repeated samples.

    Examples
    --------
    >>> found = transfer(load_builtin("classifiers"), "digits", "wine")  # doctest: +SKIP
    >>> found.correlation, found.method_rows()  # doctest: +SKIP
    """
    spec = spec or TransferSpec()
    rng = as_generator(rng)
    past = calibration.responses if isinstance(calibration, Bank) else responses
    if max(spec.k) > 1 and past.n_trials is None:
        raise ParameterError(f"k must be 1 without repeated samples, got {max(spec.k)}. Give counts of samples.")
    if groups is None and compute is not None and compute.recipe is not None:
        groups = _recipe_groups(responses, compute, are_left_out=calibration is None)
    if groups is not None and len(groups) != responses.n_models:
        raise ParameterError(f"groups must name one group a model, got {len(groups)} for {responses.n_models} models.")
    _, item_model = responses_and_spec(past, spec.item_model)
    results: list[FoldTransfer] = []
    with warned_once():
        for part in _parts(responses, calibration, groups, spec, rng):
            progress(f"part {len(results) + 1}", 0.0)
            sets = item_sets(part.calibration, source, target, spec.easy_fraction)
            check_answers(part, sets)
            results.append(transfer_part(part, sets, spec, item_model, rng))
    progress("done", 1.0)
    packed = _packed(responses, results, spec, groups, compute)
    if packed.correlation < spec.warn_below:
        warn(weak_validity(packed, spec.warn_below), DataWarning)
    return packed


def _recipe_groups(responses: ResponseMatrix, compute: TrainingCompute, *, are_left_out: bool) -> list[str] | None:
    """Recipes as groups; none where they are left out in turn and all one, which leaves nobody to calibrate."""
    known = dict(zip(compute.model_ids, compute.recipe or (), strict=True))
    groups = [known[name] for name in responses.model_ids]
    if len(set(groups)) > 1 or not are_left_out:
        return groups
    warn(
        f"all models are of one recipe, {groups[0]!r}, and count as if unrelated. Where several are checkpoints of one "
        "run, name a column that tells runs or sizes apart as groups (--clusters).",
        DataWarning,
    )
    return None


def weak_validity(found: Transfer, warn_below: float) -> str:
    """Say what a weak correlation leaves open, and tell a poor measure from one of something else."""
    parts = [
        f"abilities on {found.source!r} and {found.target!r} correlate only {found.correlation:.2f}: "
        f"{100.0 * (1.0 - found.correlation**2):.0f} % of the target's variance is not told by the source, and "
        "intervals are accordingly wide."
    ]
    alone = found.disattenuated
    names = (found.source, found.target)
    weaker, reliability = min(zip(names, found.reliabilities, strict=True), key=lambda pair: pair[1])
    if not alone < warn_below:
        parts.append(f"They may measure much the same, but {weaker!r} measures it poorly (reliability "
                     f"{reliability:.2f}).")  # fmt: skip
    else:
        parts.append(f"Without errors of the abilities it would be {alone:.2f}: they measure different things.")
    return " ".join(parts)


def _parts(
    responses: ResponseMatrix,
    calibration: Bank | Sequence[str] | None,
    groups: Sequence[str] | None,
    spec: TransferSpec,
    rng: np.random.Generator,
) -> Iterator[Part]:
    if isinstance(calibration, Bank):
        return bank_part(calibration.responses, responses)
    if calibration is not None:
        return named_part(responses, calibration, groups)
    return folds(responses, groups, spec.n_folds, rng)


def _packed(
    responses: ResponseMatrix,
    results: list[FoldTransfer],
    spec: TransferSpec,
    groups: Sequence[str] | None,
    compute: TrainingCompute | None,
) -> Transfer:
    places = np.concatenate([fold.places for fold in results])
    order = np.argsort(places)  # the models that were asked, in the order of the responses

    def joined(parts: Iterable[FloatArray]) -> FloatArray:
        return np.concatenate(list(parts))[order]

    def prediction(method: str) -> CurvePrediction:
        each = [fold.predictions[method] for fold in results]
        return CurvePrediction(
            joined(of_fold.value for of_fold in each),
            joined(of_fold.lower for of_fold in each),
            joined(of_fold.upper for of_fold in each),
        )

    rows = places[order].tolist()
    ids = [responses.model_ids[row] for row in rows]
    first = results[0].sets
    return Transfer(
        source=first.source_name,
        target=first.target_name,
        model_ids=tuple(ids),
        groups=None if groups is None else tuple(str(groups[row]) for row in rows),
        flops=None if compute is None else 10.0 ** log_flops_of(compute, ids),
        n_source_items=first.source.size,
        n_target_items=first.target.size,
        k=spec.k,
        theta=joined(fold.theta for fold in results),
        standard_errors=joined(fold.standard_errors for fold in results),
        actual=joined(fold.actual for fold in results),
        uninformed=joined(fold.uninformed for fold in results),
        predictions={method: prediction(method) for method in spec.methods},
        validity=tuple(fold.validity for fold in results),
        level=spec.level,
    )
