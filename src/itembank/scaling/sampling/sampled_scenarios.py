"""The items and scenarios that samples are of, each scenario with its item model."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, DataWarning, warn
from itembank.numerics.arrays import IntArray
from itembank.progress import ProgressCallback
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.sampling.sample_counts import SampleCounts
from itembank.scaling.sampling.scenario_item_models import ScenarioItemModel, fitted_item_model, item_model_of_bank


@dataclass(frozen=True, slots=True)
class SampledScenario:
    """Items of one scenario, with the samples of all models."""

    name: str
    columns: IntArray  # (n_scenario_items,): Where the items stand among all
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
    items: SampledItems, rows: IntArray, spec: CalibrationSpec | None, progress: ProgressCallback
) -> tuple[list[SampledScenario], list[str]]:
    """Find every scenario that a model at `rows` has samples of, with its item model.

    Parameters
    ----------
    items : SampledItems
    rows : (n_asked,)
        The models asked about.
    spec : CalibrationSpec or None
        How item models are fitted where there is no bank; None when none are needed.

    Returns
    -------
    scenarios, notes
        Scenarios that could not be fitted have no item model, and a note that says why.

    Raises
    ------
    DataError
        When no scenario could be fitted.
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
