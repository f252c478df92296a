"""`Bank`: a calibrated item bank, with all that later work needs of the calibration models."""

from dataclasses import dataclass, field

from itembank.data.bank_cache import BankCache
from itembank.data.calibrations import Calibration
from itembank.data.responses import ResponseMatrix
from itembank.data.targets import ScoreTargets
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True, repr=False)
class Bank(Compact):
    """A calibrated item bank; make one with `build_bank`, keep it with `save_bank`, get it with `load_bank`.

    Attributes
    ----------
    bank_id : str
        Fingerprint of the calibration responses and of every number that estimates depend on.
    responses : ResponseMatrix
        The calibration responses, and what is known of the models and items.
    calibration : Calibration
        Item parameters and the calibration models' abilities, in the order of `responses`.
    targets : ScoreTargets
        The full-benchmark scores.
    item_model_bias : (n_scenarios,)
        Mean absolute error of the item model's predicted scenario score for calibration models it
        was not fitted on (P1 4.2, b): gp-IRT's lambda needs it. NaN where it could not be measured.
    response_variance : (n_scenarios,)
        Mean over calibration models of the variance of responses within the scenario (P1 4.2, sigma^2).
    cache : BankCache
        What was derived from the bank before: fits that leave models out, errors measured on them.
    """

    bank_id: str
    responses: ResponseMatrix
    calibration: Calibration
    targets: ScoreTargets
    item_model_bias: FloatArray
    response_variance: FloatArray
    cache: BankCache = field(default_factory=BankCache, init=False, compare=False, repr=False)

    @property
    def parameters(self) -> ItemParameters:
        """Item parameters of all items."""
        return self.calibration.parameters

    @property
    def item_ids(self) -> list[str]:
        """Ids of the items, in the order of every array over items."""
        return self.responses.item_ids

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.responses.n_items

    @property
    def n_models(self) -> int:
        """Number of calibration models."""
        return self.responses.n_models

    @property
    def scenario_scores(self) -> FloatArray:
        """Scenario scores of the calibration models, over the items each answered, (n_models, n_scenarios)."""
        return self.targets.scenario_means(self.responses.responses, missing=True)
