"""`Bank`: a calibrated item bank, with all that later work needs of the calibration models."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from itembank.bank.bank_cache import BankCache
from itembank.bank.bank_history import FIRST_VERSION, BankHistory
from itembank.bank.calibrations import Calibration
from itembank.bank.headlines import Headline
from itembank.bank.known_scores import KnownScores
from itembank.bank.known_targets import target_digest
from itembank.bank.published import Published
from itembank.errors import DataError
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import one_of_each, order_by_answers, sibling_groups
from itembank.responses.targets import ScoreTargets
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
        was not fitted on (tinyBenchmarks 4.2, b): gp-IRT's lambda needs it. NaN where it could not be measured.
    response_variance : (n_scenarios,)
        Mean over calibration models of the variance of responses within the scenario (tinyBenchmarks 4.2, sigma^2).
    published : Published or None
        What stands in for the responses of a bank that was published without them: it has no models, and what learns
        from responses refuses it.
    history : BankHistory or None
        What the bank was before, and the marks on its items; None for one that was never changed nor named.
    whole : Bank or None
        The bank of all items, without a history, where some are kept aside; None where all count.
    headline : Headline or None
        The score that was asked for in place of the overall one (`itembank.banks.with_target`). `known_scores` and all
        that is derived from the bank stay those of the overall score; `past_scores` are with the headline's.
    cache : BankCache
        What was derived from the bank before: fits that leave models out, errors measured on them.
    """

    bank_id: str
    responses: ResponseMatrix
    calibration: Calibration
    targets: ScoreTargets
    item_model_bias: FloatArray
    response_variance: FloatArray
    published: Published | None = None
    history: BankHistory | None = None
    whole: "Bank | None" = field(default=None, repr=False)
    headline: Headline | None = None
    cache: BankCache = field(default_factory=BankCache, init=False, compare=False, repr=False)

    @property
    def parameters(self) -> ItemParameters:
        """Item parameters of all items."""
        return self.calibration.parameters

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the banks whose selections fit: its own, and that of the bank it was published from."""
        return (self.bank_id,) if self.published is None else (self.bank_id, self.published.whole_bank)

    @property
    def name(self) -> str:
        """Name of the benchmark; empty where none was given."""
        return "" if self.history is None else self.history.name

    @property
    def version(self) -> str:
        """Version of the bank: major.minor.patch."""
        return FIRST_VERSION if self.history is None else self.history.version

    @property
    def target_digest(self) -> str:
        """Digest of the items and weights that its scores are of: banks of the same one estimate the same score."""
        return self.cache.remember("target", lambda: target_digest(self.item_ids, self.targets))

    @property
    def target_id(self) -> str:
        """What its scores estimate: `mmlu_pro@1`, or the digest where the bank has no name."""
        if self.history is None:
            return self.target_digest
        return self.history.targets[self.history.current].target_id

    @property
    def item_ids(self) -> list[str]:
        """Ids of the items, in the order of every array over items."""
        return self.responses.item_ids

    @property
    def items(self) -> pl.DataFrame:
        """Items with their parameters, one a row in the bank's order.

        `item_id`, `scenario`, `subscenario`, `mean_response` of the calibration models, `is_degenerate` (all of them
        answered alike), and for each dimension k `loading_k` with `loading_k_error`, then `intercept` with
        `intercept_error`, `lower_asymptote`; in one dimension also `difficulty` with `difficulty_error`. Errors are
        standard errors, NaN where the calibration gives none.
        """
        parameters, errors = self.parameters, self.calibration.standard_errors
        names = [*(f"loading_{k + 1}" for k in range(parameters.n_dims)), "intercept"]
        coefficients = np.column_stack([parameters.loadings, parameters.intercept])
        columns: dict[str, np.ndarray] = {
            "mean_response": self.mean_responses,
            "is_degenerate": self.calibration.is_degenerate,
        }
        for name, value, error in zip(names, coefficients.T, errors.T, strict=True):
            columns |= {name: value, f"{name}_error": error}
        columns["lower_asymptote"] = parameters.lower_asymptote
        if parameters.n_dims == 1:
            found = self.calibration.difficulties
            columns |= {"difficulty": found.value, "difficulty_error": found.standard_error}
        table = self.responses.items.select("item_id", "scenario", "subscenario")
        return table.with_columns(**{name: pl.Series(np.ascontiguousarray(one)) for name, one in columns.items()})

    @property
    def mean_responses(self) -> FloatArray:
        """Mean response of the calibration models to each item, NaN where none answered, (n_items,)."""
        if self.published is not None:
            return self.published.factor_model.mean
        n_known, total = np.zeros(self.n_items, dtype=np.int64), np.zeros(self.n_items)
        for part in self.responses.parts():
            observed = part.observed
            n_known += observed.sum(axis=0)
            total += np.where(observed, part.responses, 0.0).sum(axis=0)
        mean: FloatArray = np.divide(total, n_known, out=np.full(total.shape, np.nan), where=n_known > 0)
        return mean

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.responses.n_items

    @property
    def n_models(self) -> int:
        """Number of calibration models whose responses the bank holds."""
        return self.responses.n_models

    @property
    def n_calibration_models(self) -> int:
        """Number of calibration models, also of a bank that was published without their responses."""
        return self.n_models if self.published is None else self.published.n_models

    @property
    def n_compared_models(self) -> int:
        """Number of calibration models that new ones are compared with: those that are left out in turn."""
        return self.distinct_models.size if self.published is None else self.published.n_models

    @property
    def n_aside(self) -> int:
        """Number of items that are kept aside and count in no score: retired, or on trial."""
        return 0 if self.whole is None else self.whole.n_items - self.n_items

    def check_responses(self, what: str) -> None:
        """Raise `DataError` where the bank has next to no responses; `what` begins the message: "A plan needs"."""
        if self.published is not None:
            raise DataError(
                f"{what} past models' responses, and this bank was published without them. "
                f"For that, take the whole bank, {self.published.whole_bank}."
            )
        self.check_item_model(what)

    def check_item_model(self, what: str) -> None:
        """Raise `DataError` where the bank has no item model; `what` begins it: "A session needs"."""
        if not self.calibration.is_fitted:
            models = "1 past model" if self.n_models == 1 else f"{self.n_models} past models"
            raise DataError(
                f"{what} an item model, and this bank was begun with {models}, too few to fit "
                "one. Begin it again with ten or more: itembank calibrate RESPONSES --items ITEMS."
            )

    @property
    def scenario_scores(self) -> FloatArray:
        """Mean of each scenario's items that a calibration model answered, (n_models, n_scenarios).

        NaN without any. These are full scores of the models that answered everything only: see `known_scores`.
        """
        parts = self.responses.parts()
        return np.concatenate([self.targets.scenario_means(part.responses, missing=True) for part in parts])

    @property
    def known_scores(self) -> KnownScores:
        """Full scores of the calibration models, where enough was answered to know them."""
        return self.cache.remember("known scores", lambda: KnownScores.of(self.responses, self.targets))

    @property
    def siblings(self) -> IntArray:
        """Group of each calibration model, (n_models,): models of one group answer alike (`sibling_groups`)."""

        def find() -> dict[str, FloatArray]:
            return {"group": sibling_groups(self.responses).astype(np.float64)}

        kept = self.cache.arrays("siblings", find, fits=lambda found: found["group"].shape == (self.n_models,))
        return kept["group"].astype(np.int64)

    @property
    def distinct_models(self) -> IntArray:
        """Models that are left out in turn: one of each group of siblings whose score is known, (n_distinct,), rising.

        Their siblings are left out with them.
        """
        known = self.known_scores.models
        return np.sort(one_of_each(self.siblings, known[order_by_answers(self.responses, known)]))

    @property
    def best_known_scores(self) -> FloatArray:
        """Known scores; of a target of which none is known, what was observed of them, (n_models, n_targets)."""
        return self.cache.remember("best known scores", self._best_known_scores)

    @property
    def past_scores(self) -> FloatArray:
        """Known scores of the calibration models on `targets.names`, NaN where not known, (n_models, n_targets)."""
        known = self.known_scores.value
        return known if self.headline is None else np.column_stack([known[:, :-1], self.headline.past])

    def _best_known_scores(self) -> FloatArray:
        known = self.known_scores.value
        if not np.isnan(known).all(axis=0).any():
            return known
        observed = self.targets.with_overall(self.scenario_scores)
        return np.where(np.isnan(known).all(axis=0), observed, known)
