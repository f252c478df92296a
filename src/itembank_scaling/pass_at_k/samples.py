"""Samples of every item: counted, checked, cut down to a budget, and the item model of each scenario behind them."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_whole
from itembank.errors import DataError, DataWarning, ParameterError, warn
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.responses.responses import ResponseMatrix, describe_cells
from itembank.tables import plural
from itembank_scaling.pass_at_k.cell_posterior import PrecisionPrior, precision_prior
from itembank_scaling.scenario_fits import fit_items


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Samples of n_models models on n_items items."""

    n_trials: IntArray  # (n_models, n_items): Whole numbers; zero trials where a model was not asked
    n_correct: IntArray  # (n_models, n_items)

    @property
    def rates(self) -> FloatArray:
        """Fraction of right samples, (n_models, n_items); NaN without samples."""
        empty = np.full(self.n_trials.shape, np.nan)
        result: FloatArray = np.divide(self.n_correct, self.n_trials, out=empty, where=self.n_trials > 0)
        return result

    def take(self, *, models: IntArray | None = None, items: IntArray | None = None) -> "SampleCounts":
        """Return the rows and columns at these indices."""
        rows = np.arange(self.n_trials.shape[0]) if models is None else models
        columns = np.arange(self.n_trials.shape[1]) if items is None else items
        cut = np.ix_(rows, columns)
        return SampleCounts(self.n_trials[cut], self.n_correct[cut])

    def spread(self, where: IntArray, n_items: int) -> "SampleCounts":
        """Return the counts over `n_items` items, among which these are at `where`; none of the others."""
        n_trials, n_correct = np.zeros((2, self.n_trials.shape[0], n_items), dtype=np.int64)
        n_trials[:, where], n_correct[:, where] = self.n_trials, self.n_correct
        return SampleCounts(n_trials, n_correct)


def sample_counts(responses: ResponseMatrix) -> SampleCounts:
    """Return the counts behind responses."""
    if responses.n_trials is None:
        kind = "are all 0 or 1" if responses.is_binary else "are shares or probabilities"
        raise DataError(
            f"pass@k needs repeated samples: columns n_correct and n_trials of every model and item, or one row a "
            f"sample read with repeats='count' (itembank import --repeats count); got responses without counts, which "
            f"{kind}."
        )
    is_present = responses.observed
    n_trials = np.where(is_present, responses.n_trials, 0).astype(np.int64)
    if n_trials.max() < 2:
        raise DataError(
            "pass@k needs repeated samples of some items, got one sample of each: how much pass rates differ beyond "
            "the item model cannot be seen from these. Sample items at least twice."
        )
    exact = np.where(is_present, responses.responses, 0.0).astype(np.float64) * n_trials
    n_correct = np.rint(exact).astype(np.int64)
    # a response kept in single precision is off by up to 6e-8 of itself
    is_broken = np.abs(exact - n_correct) > 1e-3 + 1e-6 * n_trials
    if is_broken.any():
        where = describe_cells(is_broken, exact, responses.model_ids, responses.item_ids)
        raise DataError(
            f"response times n_trials must be a whole number of right samples, got "
            f"{plural(int(is_broken.sum()), 'other')}: {where}. Give n_correct and n_trials."
        )
    return SampleCounts(n_trials, n_correct)


def cut_down(
    counts: SampleCounts, rows: IntArray, budget: int, rng: np.random.Generator, *, columns: IntArray | None = None
) -> SampleCounts:
    """Draw `budget` samples of each sampled item for the models at `rows`, without replacement.

    Only the items at `columns` are cut, all of them by default: these must have at least `budget` samples.
    """
    cells = np.ix_(rows, np.arange(counts.n_trials.shape[1]) if columns is None else columns)
    n_trials, n_correct = counts.n_trials.copy(), counts.n_correct.copy()
    given, right = n_trials[cells], n_correct[cells]
    n_trials[cells] = np.where(given > 0, budget, 0)
    n_correct[cells] = rng.hypergeometric(right, given - right, n_trials[cells])
    return SampleCounts(n_trials, n_correct)


def check_budget(counts: SampleCounts, budget: int, responses: ResponseMatrix, rows: IntArray) -> None:
    """Raise `ParameterError` for no budget, `DataError` when a cell of these models holds fewer samples than that."""
    check_whole("budget", budget, least=1)
    n_trials = counts.n_trials[rows]
    is_short = (n_trials > 0) & (n_trials < budget)
    if is_short.any():
        names = [responses.model_ids[row] for row in rows]
        where = describe_cells(is_short, n_trials.astype(np.float64), names, responses.item_ids)
        raise DataError(
            f"budget must be at most the samples there are of every item, got {budget} with fewer samples in "
            f"{int(is_short.sum())} of {int((n_trials > 0).sum())} cells: {where}. Take a budget of "
            f"{int(n_trials[is_short].min())}, or leave these items out."
        )


def with_counts(responses: ResponseMatrix, counts: SampleCounts) -> ResponseMatrix:
    """Return the same models and items with other counts."""
    return ResponseMatrix(counts.rates, responses.models, responses.items, counts.n_trials, responses.costs)


@dataclass(frozen=True, slots=True)
class ScenarioItemModel:
    """Item model of some items, with the priors that a model's samples are read with."""

    columns: IntArray  # (n_known,): The items it knows, rising
    parameters: ItemParameters  # Of these items
    prior: AbilityPrior
    precision: PrecisionPrior  # Of a model's phi: how far its pass rates lie from the item model's


def item_model_of_bank(bank: Bank, columns: IntArray) -> ScenarioItemModel:
    """Take the items at `columns` of a bank; precisions as its past models show them."""
    if bank.calibration.thresholds:
        raise ParameterError(
            "the bank must be calibrated on counts or pass rates, got one whose responses were made binary by a "
            "threshold: its probabilities are not pass rates. Calibrate it anew with family 'beta-binomial' "
            "(itembank calibrate --family beta-binomial)."
        )
    try:
        counts = sample_counts(bank.responses)
    except DataError as error:
        raise DataError(
            f"the bank must be calibrated on counts, got bank {bank.bank_id} of family "
            f"'{bank.parameters.family}': {error}"
        ) from error
    return _item_model(bank.calibration, bank.calibration.parameters.take(columns), counts.take(items=columns), columns)


def fitted_item_model(
    name: str, responses: ResponseMatrix, counts: SampleCounts, columns: IntArray, spec: CalibrationSpec
) -> ScenarioItemModel:
    """Calibrate the items at `columns` on the counts of all models, leaving out items and models without any."""
    fit = fit_items(name, with_counts(responses, counts), columns, spec)
    known = counts.take(models=fit.rows, items=fit.columns)
    return _item_model(fit.calibration, fit.calibration.parameters, known, fit.columns)


def alike_items(n_items: int) -> ScenarioItemModel:
    """Return the item model without any knowledge of the items: their pass rates are a sample of one Beta.

    Its mean takes the place of the ability, with a wide prior; so has its precision.
    """
    parameters = ItemParameters.create(np.ones((n_items, 1)), np.zeros(n_items))
    # priors of the mean and precision of one Beta for all items: wider than any benchmark is known to need
    alike_logit_sd, alike_log_precision_sd = 3.0, 2.0
    prior = AbilityPrior(np.zeros(1), np.array([[alike_logit_sd**2]]))
    return ScenarioItemModel(np.arange(n_items), parameters, prior, PrecisionPrior(0.0, alike_log_precision_sd))


def plug_in_rates(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Pass rates of all items at one ability (n_dims,), as IRSL eq. 4 plugs them in, (n_items,)."""
    logit = parameters.loadings @ theta + parameters.intercept
    lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
    # exp overflows beyond 709
    return lower + (upper - lower) / (1.0 + np.exp(-np.clip(logit, -700.0, 700.0)))


def _item_model(
    calibration: Calibration, parameters: ItemParameters, counts: SampleCounts, columns: IntArray
) -> ScenarioItemModel:
    """Add how precisions vary over the past models that have samples of these items."""
    rows = np.flatnonzero(counts.n_trials.any(axis=1))
    abilities = calibration.abilities[rows]
    precision = precision_prior(parameters, abilities, counts.n_trials[rows], counts.n_correct[rows])
    return ScenarioItemModel(columns, parameters, calibration.prior, precision)


@dataclass(frozen=True, slots=True)
class SampledScenario:
    """Items of one scenario, with the samples of all models."""

    name: str
    columns: IntArray  # (n_scenario_items,): Places of the items among all
    truth: SampleCounts  # Of all items: the samples there are, and those that estimates see
    used: SampleCounts
    item_model: ScenarioItemModel | None  # None where no method needs one, or none could be fitted


@dataclass(frozen=True, slots=True)
class SampledItems:
    """The items that a law is about, a bank's or those of the responses, with the samples of all models."""

    responses: ResponseMatrix
    bank: Bank | None
    item_ids: list[str]
    scenarios: list[str]
    truth: SampleCounts  # The samples there are, and those that estimates see, (n_models, n_items)
    used: SampleCounts


def sampled_items(
    responses: ResponseMatrix, truth: SampleCounts, used: SampleCounts, bank: Bank | None
) -> SampledItems:
    """Align samples with the items of the bank; without a bank they stay as they are."""
    if bank is None:
        return SampledItems(responses, None, responses.item_ids, responses.items["scenario"].to_list(), truth, used)
    where = bank.responses.item_indices(responses.item_ids)
    spread = [counts.spread(where, bank.n_items) for counts in (truth, used)]
    return SampledItems(responses, bank, bank.item_ids, bank.responses.items["scenario"].to_list(), *spread)


def sampled_scenarios(
    items: SampledItems,
    rows: IntArray,  # (n_asked,): The models asked about
    spec: CalibrationSpec | None,  # How item models are fitted where there is no bank; None when none are needed
    progress: ProgressCallback,
) -> tuple[list[SampledScenario], list[str]]:
    """Find every scenario that a model at `rows` has samples of, with its item model.

    Returns scenarios, notes: Scenarios that could not be fitted have no item model, and a note that says why.
    """
    names = np.array(items.scenarios)
    asked = [name for name in dict.fromkeys(items.scenarios) if items.used.n_trials[np.ix_(rows, names == name)].any()]
    scenarios, notes = [], []
    for number, name in enumerate(asked):
        progress(f"scenario {name}", number / len(asked))
        columns = np.flatnonzero(names == name)
        item_model = None
        if spec is not None:
            try:
                if items.bank is not None:
                    item_model = item_model_of_bank(items.bank, columns)
                else:
                    item_model = fitted_item_model(name, items.responses, items.used, columns, spec)
            except DataError as error:
                notes.append(f"scenario {name!r} has no item model: {error}")
        scenarios.append(SampledScenario(name, columns, items.truth, items.used, item_model))
    if spec is not None and all(scenario.item_model is None for scenario in scenarios):
        raise DataError(
            f"an item model is needed of at least one scenario, got none: {notes[0]} Give the samples of other "
            "models too, or a bank calibrated on counts (--bank), or take methods that need none: "
            "'beta-binomial', 'jeffreys', 'plug-in', 'unbiased' (--method)."
        )
    for text in notes:
        warn(text, DataWarning)
    return scenarios, notes
