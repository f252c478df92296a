"""Banks without past models' responses, with what these taught of estimates; and cross-validated errors."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_selection
from itembank.bank.bank_views import history_of_view
from itembank.bank.banks import Bank, bank_fingerprint
from itembank.bank.norms import fitted_factor_model, measured_discrepancy, noise_ratio, subscenarios
from itembank.bank.past_models import MEASURED, OF_REST, PastModels, Published, PublishedSubset, Rest, name_digest
from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.estimation.asked import Asked, stacked_methods
from itembank.estimation.drawn_predictions import factors_of
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import choose_method, past_of, try_methods
from itembank.estimation.predictions import curves_of
from itembank.irt.discrepancy import indicators, shift_columns
from itembank.irt.linear_gaussian import FactorModel
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.precision import expected_half_width
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.content_order import order_among
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import usual_trials


@one_blas_thread()
def without_responses(
    bank: GivenBank,
    *,
    selections: Sequence[GivenSelection] = (),
    only_chosen: bool = False,
    keep_scores: bool = False,
    keep_names: bool = False,
    progress: ProgressCallback = silent,
) -> Bank:
    """Return the bank without its models: no responses, ids, abilities or scores of any.

    Parameters
    ----------
    bank : Bank or path
    selections : Selections or paths
        The items that are to be run, of different numbers, the usual one first. `estimate` takes them where it is given
        no others, and gives the very estimates and intervals that the whole bank gives from them (to single precision):
        of drawn items from any answers, by the factor model; of others from answers to all of them, each attempted as
        often as by past models, by weights of methods and cross-validated errors of past models, in an order of their
        own for each score. From fewer the whole bank would measure these anew, and this one cannot.
    only_chosen : bool
        Keep only sums of the items that no selection has (`Rest`), where the item model has one ability and no
        asymptotes: a bank of thousands of items then takes some tens of kilobytes. Only items of the selections can be
        run.
    keep_scores : bool
        Of models whose scores are public anyway: keep their overall scores, and digests of their names, by which
        `estimate` knows a past model again.
    keep_names : bool
        With their scores keep their ids, too, for pages.
    progress : ProgressCallback

    Returns
    -------
    Bank
        Of another id. What learns from responses refuses it.

    Raises
    ------
    ParameterError
        When the bank has no responses, or only the chosen items are to stay and none are chosen, or the item
        model does not allow it.
    """
    bank, chosen = as_bank(bank), [one for one in map(as_selection, selections) if one is not None]
    if not bank.n_models:
        raise ParameterError(
            f"the bank must have past models' responses to be published without, bank {bank.bank_id}"
            " has none. Push it as it is."
        )
    calibration, parameters, model = bank.calibration, bank.parameters, fitted_factor_model(bank)
    parameters = dataclasses.replace(
        parameters,
        loadings=single(parameters.loadings),
        intercept=single(parameters.intercept),
        lower_asymptote=single(parameters.lower_asymptote),
        upper_asymptote=single(parameters.upper_asymptote),
        precision=None if parameters.precision is None else single(parameters.precision),
    )
    error = calibration.log_precision_error
    calibration = dataclasses.replace(
        calibration,
        parameters=parameters,
        item_covariance=single(calibration.item_covariance),
        log_precision_error=None if error is None else single(error),
        abilities=calibration.abilities[:0],
        ability_covariance=calibration.ability_covariance[:0],
    )
    models = pl.DataFrame({"model_id": []}, schema={"model_id": pl.String})
    published = Published(
        bank.n_models,
        bank.bank_id,
        single(noise_ratio(bank)),
        FactorModel(single(model.mean), single(model.loadings), single(model.noise)),
        measured_discrepancy(bank),
        bank.content_order.items,
        newest=bank.newest,
        past=_public_scores(bank, keep_names=keep_names) if keep_scores else None,
        attempts=float(usual_trials(bank.responses)),
    )
    bare = dataclasses.replace(
        bank,
        responses=ResponseMatrix(np.zeros((0, bank.n_items)), models, bank.responses.items),
        calibration=calibration,
        history=None,
        whole=None,
    )
    if only_chosen:
        bare, published = _of_chosen(bare, published, bank, sorted({item for one in chosen for item in one.item_ids}))
    bank_id = _id_without_responses(bare, published)
    subsets = [
        _subset(bank, one, bank_id, part_of(progress, number / len(chosen), (number + 1) / len(chosen)))
        for number, one in enumerate(chosen)
    ]
    return dataclasses.replace(
        bare,
        bank_id=bank_id,
        published=dataclasses.replace(published, subsets=tuple(subsets)),
        history=None if only_chosen else history_of_view(bank, bank_id),
    )


def _public_scores(bank: Bank, *, keep_names: bool) -> PastModels:
    """Return digests of the past models' names, or both, with their overall scores, the highest first."""
    scores = bank.known_scores.value[:, -1]
    order = np.argsort(-np.nan_to_num(scores, nan=-1.0), kind="stable").tolist()
    ids = tuple(bank.responses.model_ids[row] for row in order)
    names = tuple(name_digest(one, bank.bank_id) for one in ids)
    return PastModels(names, single(scores[order]), bank.bank_id, ids if keep_names else ())


def single(array: FloatArray) -> FloatArray:
    """Round to single precision, in which published banks are written."""
    return array.astype(np.float32).astype(np.float64)


def _id_without_responses(bank: Bank, published: Published) -> str:
    prior, model = bank.calibration.prior, published.factor_model
    numbers = [
        prior.mean,
        prior.covariance,
        bank.item_model_bias,
        bank.response_variance,
        published.noise_ratio,
        model.mean,
        model.loadings,
        model.noise,
    ]
    if published.rest is not None:
        numbers += [np.asarray(getattr(published.rest, name), dtype=np.float64) for name in OF_REST]
    return bank_fingerprint(bank.responses, bank.parameters, bank.targets, *numbers)


def has_simple_curves(parameters: ItemParameters) -> bool:
    """Whether items have one ability, right and wrong answers, and curves from zero to one (`curves_of`)."""
    rises = not parameters.lower_asymptote.any() and bool((parameters.upper_asymptote == 1.0).all())
    return parameters.n_dims == 1 and parameters.family == "bernoulli" and rises


def _of_chosen(bare: Bank, published: Published, bank: Bank, item_ids: Sequence[str]) -> tuple[Bank, Published]:
    """Leave all other items out of a bank without responses and what replaces these, but for sums over them."""
    parameters, targets = bare.parameters, bare.targets
    if not item_ids:
        raise ParameterError("only the chosen items are to stay, and none are chosen. Give selections.")
    if not has_simple_curves(parameters):
        raise ParameterError(
            "only the chosen items can stay where the item model has one ability, right and wrong answers and no "
            f"asymptotes, got {parameters.n_dims} of family {parameters.family!r}. Keep all items."
        )
    positions = np.sort(bare.responses.item_indices(item_ids))
    others = np.setdiff1d(np.arange(bare.n_items), positions)
    sums = np.zeros((targets.n_scenarios, bare.n_items))
    sums[targets.scenario_index[others], others] = targets.weights[others]
    parts = [others[targets.scenario_index[others] == scenario] for scenario in range(targets.n_scenarios)]
    curves = [
        curves_of(parameters.loadings[part, 0], parameters.intercept[part], targets.weights[part])
        for part in parts
        if part.size
    ]
    whole, groups = published.factor_model, subscenarios(bank)
    shifts = shift_columns(whole.mean, targets.scenario_index)
    subgroups = np.zeros((bare.n_items, 0)) if groups is None else indicators(groups)

    def with_sums(rows: FloatArray) -> FloatArray:
        return np.concatenate([rows[positions], sums @ rows])

    rest = Rest(
        np.array([part.size for part in parts], dtype=np.int64),
        sums.sum(axis=1),
        (sums**2).sum(axis=1),
        np.concatenate(curves) if curves else np.zeros((0, 4)),
        np.repeat([scenario for scenario, part in enumerate(parts) if part.size], [len(one) for one in curves]),
        single(with_sums(shifts)),
        single(with_sums(subgroups)),
        bank.target_id,
        bank.target_digest,
    )
    noise = np.concatenate([whole.noise[positions], sums**2 @ whole.noise])
    model = FactorModel(single(with_sums(whole.mean)), single(with_sums(whole.loadings)), single(noise))
    error = bare.calibration.log_precision_error
    calibration = dataclasses.replace(
        bare.calibration,
        parameters=parameters.take(positions),
        item_covariance=bare.calibration.item_covariance[positions],
        is_degenerate=bare.calibration.is_degenerate[positions],
        log_precision_error=None if error is None else error[positions],
    )
    kept = dataclasses.replace(
        targets,
        scenario_index=targets.scenario_index[positions],
        weights=targets.weights[positions],
        rest_sizes=rest.sizes,
    )
    short = dataclasses.replace(
        bare, responses=bare.responses.take(items=positions), calibration=calibration, targets=kept
    )
    return short, dataclasses.replace(
        published, factor_model=model, rest=rest, item_order=order_among(positions, published.item_order)
    )


def _subset(bank: Bank, selection: Selection, bank_id: str, progress: ProgressCallback) -> PublishedSubset:
    """Keep what estimates from drawn items rest on; from others cross-validate the stacked one."""
    recipe = {**(selection.recipe or {}), "excluded": []}  # choosing again takes the whole bank
    moved = dataclasses.replace(selection, bank=bank_id, recipe=recipe if selection.recipe else None)
    none = np.empty((0, bank.targets.n_scenarios + 1))
    if selection.inclusion_probabilities is not None and bank.calibration.is_fitted:
        n_factors, apart = factors_of(Asked.of_past(bank, selection))
        n_factors = min(n_factors, fitted_factor_model(bank).n_factors)  # which may have fewer than were tried
        why = f"{selection.method}: intervals rest on the draw, whatever the model is."
        nothing, half = (none,) * 4, expected_half_width(bank, selection, level=0.95)
        measured = {} if np.isnan(half) else {"half_width": half}
        return PublishedSubset(moved, *nothing, np.empty(0), why, (), measured, n_factors, single(apart))
    asked = Asked.of_past(bank, selection)
    explanation, past = choose_method(asked, progress).explanation, past_of(asked, Stacked())
    if past is None or past.weights is None:
        return PublishedSubset(moved, none, none, none, none, np.empty(0), explanation, ())
    order = np.argsort(past.error, axis=0, kind="stable")  # each column by its errors, so that rows are models no more
    errors, standard_errors, scales = (
        single(np.take_along_axis(one, order, axis=0)) for one in (past.error, past.standard_error, past.scale)
    )
    cross_validated = cross_validated_scores(bank, selection)
    return PublishedSubset(
        moved,
        single(past.weights),
        errors,
        standard_errors,
        scales,
        single(np.sort(past.misfit[~np.isnan(past.misfit)])),
        explanation,
        stacked_methods(),
        {} if cross_validated is None else {name: float(getattr(cross_validated, name)) for name in MEASURED},
    )


@dataclass(frozen=True, slots=True)
class CrossValidatedScores:
    """Overall scores of past models, each estimated by a bank that was calibrated without it."""

    n_items: int  # That were answered
    # (n_models,): In [0, 1]; models without a full score are left out. Intervals are of 95 %, as wide as the errors for
    # models of the other folds ask for.
    true: FloatArray
    estimate: FloatArray  # (n_models,)
    low: FloatArray  # (n_models,)
    high: FloatArray  # (n_models,)

    @property
    def error(self) -> float:
        """Mean absolute error."""
        return float(np.abs(self.estimate - self.true).mean())

    @property
    def half_width(self) -> float:
        """Mean half-width of the intervals."""
        return float((self.high - self.low).mean() / 2.0)

    @property
    def coverage(self) -> float:
        """Fraction of the intervals that cover the true score."""
        return float(((self.low <= self.true) & (self.true <= self.high)).mean())


@one_blas_thread()
def cross_validated_scores(bank: Bank, selection: Selection) -> CrossValidatedScores | None:
    """Estimate each past model's overall score as if it were new; every fold chooses its items anew."""
    if not folds(bank):
        return None
    trials = try_methods(Asked.of_past(bank, selection), Stacked().members)
    past = trials.by(Stacked())
    half = past.half_widths_out_of_fold(trials.fold, level=0.95)
    true, value, half = past.truth[:, -1], past.value[:, -1], half[:, -1]
    known = ~(np.isnan(true) | np.isnan(value) | np.isnan(half))
    true, value, half = true[known], value[known], half[known]
    low, high = np.clip(value - half, 0.0, 1.0), np.clip(value + half, 0.0, 1.0)
    return CrossValidatedScores(selection.n_items, true, value, low, high) if true.size else None
