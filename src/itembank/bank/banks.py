"""`Bank`: a calibrated item bank, its calibration and its id."""

import datetime
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank import above
from itembank.bank.bank_cache import BankCache
from itembank.bank.bank_history import FIRST_VERSION, BankHistory, target_digest
from itembank.bank.bank_places import title_of
from itembank.bank.known_scores import Headline, KnownScores, response_slopes
from itembank.bank.past_models import PastModels, Published, PublishedSubset, Rest
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, shown, visible
from itembank.irt.abilities import Difficulties, expected_difficulties
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.content_order import ContentOrder, content_order
from itembank.responses.model_features import model_dates
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import SELECTION_WEIGHT
from itembank.responses.siblings import one_of_each, order_by_answers, sibling_groups
from itembank.responses.targets import ScoreTargets
from itembank.tables import plural
from itembank.tabular import Compact

CONTENT_ORDER = "content order"
"""Under which a bank's cache holds it."""


def data_fingerprint(responses: ResponseMatrix) -> str:
    """SHA-256 of the ids, scenarios and responses, as hexadecimal text."""
    digest = hashlib.sha256()
    for names in (responses.model_ids, responses.item_ids, responses.items["scenario"].to_list()):
        _add_names(digest, names)
    digest.update(np.array([responses.n_models, responses.n_items], dtype="<i8").tobytes())
    for part in responses.parts():
        digest.update(_canonical(part.responses))
    if responses.n_trials is not None:
        _add_array(digest, responses.n_trials.astype(np.float64))
    return digest.hexdigest()


def bank_fingerprint(
    responses: ResponseMatrix, parameters: ItemParameters, targets: ScoreTargets, *others: FloatArray
) -> str:
    """Id of a bank: the first digits of a SHA-256 over its data and all numbers that estimates depend on.

    `others` are what else an estimate is made of: the ability prior, the item model's bias, the responses' variance.
    """
    digest = hashlib.sha256(data_fingerprint(responses).encode())
    for array in (
        parameters.loadings,
        parameters.intercept,
        parameters.lower_asymptote,
        parameters.upper_asymptote,
        targets.weights,
        targets.scenario_weights,
        *others,
    ):
        _add_array(digest, array)
    if parameters.family != "bernoulli":
        _add_names(digest, [parameters.family])
        _add_array(digest, np.zeros(0) if parameters.precision is None else parameters.precision)
    return digest.hexdigest()[:12]


def _add_names(digest: "hashlib._Hash", names: Sequence[str]) -> None:
    """Add names with their lengths, so that ['ab', 'c'] and ['a', 'bc'] differ."""
    encoded = [str(name).encode() for name in names]
    digest.update(np.array([len(encoded), *map(len, encoded)], dtype="<i8").tobytes())
    digest.update(b"".join(encoded))


def _add_array(digest: "hashlib._Hash", array: FloatArray) -> None:
    """Add shape and numbers."""
    digest.update(np.array(array.shape, dtype="<i8").tobytes())
    digest.update(_canonical(array))


def _canonical(array: FloatArray) -> bytes:
    """Return the bytes of numbers, every NaN and zero in its one canonical form."""
    values = np.ascontiguousarray(array, dtype="<f8") + 0.0  # turns -0.0 into 0.0
    values[np.isnan(values)] = np.nan
    return values.tobytes()


FEW_MODELS = "few-models"
"""The method where fewer than ten past models say too little of items for an item model (`calibration_of_few`)."""
KNOWN_PARAMETERS = "known-parameters"
"""The method of banks whose item parameters were given, which have no past models (`calibration_of_known`)."""


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Compact):
    """Result of `fit_item_model`, for all n_items items of the responses, in their order.

    Attributes
    ----------
    parameters : ItemParameters
        Those of degenerate items rest on the other items, and on all models' having answered alike.
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
        Covariance of each item's (loadings, intercept).
    abilities : (n_models, n_dims)
    ability_covariance : (n_models, n_dims, n_dims)
    prior : AbilityPrior
        The distribution of ability new models are scored with.
    is_degenerate : (n_items,)
        Items that every model answered the same way: kept and flagged.
    thresholds : mapping of scenario to threshold, or empty
        Where responses were made binary by ``Y >= threshold`` (tinyBenchmarks 4.3).
    method, item_model : str
        'variational', 'map', 'mml', 'few-models' or 'known-parameters'; '1pl', '2pl', 'mirt' or 'nested'.
    converged : bool
    n_iterations : int
    message : str
        How the fit ended, with advice if it did not converge.
    history : (n_iterations,) or shorter
        The objective after each iteration, rising.
    tolerance : float or None
        Where the fit was to stop, as its spec says; None where nothing was fitted.
    options : mapping of name to number or text
        Further choices of the spec, where they differ from its defaults.
    log_precision_error : (n_items,) or None
        Standard error of the logarithm of each item's precision, where it was learned; the same for the items that
        share one.
    score_correlation : float or None
        Correlation of the abilities with the models' scores, of the closest combination of several abilities; None
        where nothing was fitted, and in banks of earlier releases.
    """

    parameters: ItemParameters
    item_covariance: FloatArray
    abilities: FloatArray
    ability_covariance: FloatArray
    prior: AbilityPrior
    is_degenerate: BoolArray
    thresholds: Mapping[str, float]
    method: str
    item_model: str
    converged: bool
    n_iterations: int
    message: str
    history: FloatArray
    tolerance: float | None = None
    options: Mapping[str, float | str | bool] = field(default_factory=dict)
    log_precision_error: FloatArray | None = None
    score_correlation: float | None = None

    @property
    def caution(self) -> str:
        """What a reader of the abilities must know: that they are no skill; empty where they are."""
        least = 0.7  # fits that follow skill had .94 and more
        if self.score_correlation is None or self.score_correlation >= least:
            return ""
        is_positive = bool(self.options.get("positive_discrimination"))
        other = "" if is_positive else ", or the variational '2pl' with positive_discrimination = true"
        advice = "" if self.item_model == "1pl" else f" Take item model '1pl'{other}."
        return (
            f"The abilities are not skill: their correlation with the models' scores is {self.score_correlation:.2f}, "
            f"less than {least:g}. They may follow the guesses that related models share.{advice}"
        )

    @property
    def is_fitted(self) -> bool:
        """Whether an item model was fitted: banks that were begun with fewer than ten past models have none."""
        return self.method != FEW_MODELS

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of each item's (loadings, intercept), (n_items, n_dims + 1)."""
        result: FloatArray = np.sqrt(np.einsum("ijj->ij", self.item_covariance))
        return result

    @property
    def difficulties(self) -> Difficulties:
        """Difficulties of items in one dimension, stable where slopes are poorly known, with standard errors.

        Raises
        ------
        ParameterError
            With more dimensions.
        """
        if self.n_dims != 1:
            raise ParameterError(f"difficulties are for items of one dimension, got {self.n_dims}.")
        parameters = self.parameters
        return expected_difficulties(parameters.loadings[:, 0], parameters.intercept, self.item_covariance)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.parameters.n_items

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return self.parameters.n_dims


class _Loaded(type):
    """A class that says how its objects are loaded."""

    def __getattr__(cls, name: str) -> Any:
        """Say what is to be written for `Bank.load`, which other classes have."""
        advice = ". Write ib.load_bank(path)" if name in {"load", "open", "read"} else ""
        raise AttributeError(f"{cls.__name__!r} has no attribute {name!r}{advice}", name=name, obj=cls)


@dataclass(frozen=True, slots=True, repr=False)
class Bank(Compact, metaclass=_Loaded):
    """A calibrated item bank; make one with `calibrate`, keep it with `save`, get it with `load_bank`.

    Attributes
    ----------
    bank_id : str
        Fingerprint of the calibration responses and of every number that estimates depend on.
    responses : ResponseMatrix
        The calibration responses, and what is known of the models and items.
    calibration : Calibration
        Item parameters and the past models' abilities, in the order of `responses`.
    targets : ScoreTargets
        The full-benchmark scores.
    item_model_bias : (n_scenarios,)
        Mean absolute error of the item model's predicted scenario score for past models it
        was not fitted on (tinyBenchmarks 4.2, b): gp-IRT's lambda needs it. NaN where it could not be measured.
    response_variance : (n_scenarios,)
        Mean over past models of the variance of responses within the scenario (tinyBenchmarks 4.2, sigma^2).
    published : Published or None
        What replaces the responses of a bank that was published without them: it has no models, and what learns
        from responses refuses it.
    history : BankHistory or None
        What the bank was before, and the marks on its items; None for one that was never changed nor named.
    whole : Bank or None
        The bank of all items, without a history, where some are kept aside; None if all count.
    headline : Headline or None
        The score that was asked for in place of the overall one (`itembank.banks.with_target`). `known_scores` and all
        that is derived from the bank stay those of the overall score; `past_scores` are with the headline's.
    cache : BankCache
        What was derived from the bank before: fits for cross-validation, errors measured by them.
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

    def __repr__(self) -> str:
        """Say how large the bank is, whose, and what can be done with it."""
        name = self.name or self.cache.source or ("" if self.cache.folder is None else self.cache.folder.name)
        scenarios, calibration = self.targets.scenarios, self.calibration
        size = f"{plural(self.n_calibration_models, 'past model')} x {plural(self.n_total, 'item')}"
        own, title = sorted({one.n_items for one in self.own_selections}), title_of(self.cache.folder)
        n_next = own[0] if own else min(100, self.n_items)
        lines = [
            f"Bank {visible(f'{name} ({self.bank_id})' if name else self.bank_id)}: {size}",
            *([f"  {title}"] if title else []),
            f"  {'scenario' if len(scenarios) == 1 else f'{len(scenarios)} scenarios'}: {shown(scenarios)}",
            f"  score: {self.target_id}"
            + (f", {self.targets.overall_in_words}" if self.targets.overall_in_words else ""),
            f"  item model: {calibration.item_model}, n_dims {calibration.n_dims}, by {calibration.method}",
            *([f"  newest past model: {self.newest:%b %Y}"] if self.newest else []),
            *([f"  {calibration.caution}"] if calibration.caution else []),
        ]
        if self.published is not None:
            lines.append("  published without past models' responses")
        if own:
            lines.append(f"  items to run: {', '.join(map(str, own[:-1]))}{' or ' * (len(own) > 1)}{own[-1]}")
        lines.append(f"  Next: ib.select(bank, {n_next}); ib.info(bank) says more")
        return "\n".join(lines)

    @property
    def parameters(self) -> ItemParameters:
        """Item parameters of all items."""
        return self.calibration.parameters

    @property
    def items_to_run(self) -> Selection | None:
        """The items to run that the bank was published with, unless a number is asked for; None if any may be run."""
        return next(iter(self.own_selections), None)

    @property
    def own_selections(self) -> tuple[Selection, ...]:
        """The selections to run that the bank was published with, of several sizes; none if any items may be run."""
        if self.published is not None:
            return tuple(one.selection for one in self.subsets)
        if self.calibration.method != KNOWN_PARAMETERS or SELECTION_WEIGHT not in self.responses.items.columns:
            return ()
        rows = self.responses.items.filter(pl.col(SELECTION_WEIGHT).is_not_null())
        ids, scenarios, weights = (rows[name] for name in ("item_id", "scenario", SELECTION_WEIGHT))
        chosen = Selection(
            tuple(ids),
            tuple(scenarios),
            weights.cast(pl.Float64).to_numpy(),
            "published",
            self.bank_id,
            target=self.target_id,
            target_digest=self.target_digest,
        )
        return (chosen,)

    @property
    def subsets(self) -> tuple[PublishedSubset, ...]:
        """What a published bank keeps of each selection that it has to be run; none of other banks."""
        return () if self.published is None else self.published.subsets

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the banks whose selections fit: its own, and that of the bank it was published from."""
        return (self.bank_id,) if self.published is None else (self.bank_id, self.published.whole_bank)

    @property
    def name(self) -> str:
        """Name of the benchmark; empty if none was given."""
        return "" if self.history is None else self.history.name

    @property
    def version(self) -> str:
        """Version of the bank: major.minor.patch."""
        return FIRST_VERSION if self.history is None else self.history.version

    @property
    def target_digest(self) -> str:
        """Digest of the items and weights that its scores are of: banks with the same one estimate the same score."""
        if self.rest is not None:
            return self.rest.target_digest
        return self.cache.remember("target", lambda: target_digest(self.item_ids, self.targets))

    @property
    def target_id(self) -> str:
        """What its scores estimate: `mmlu_pro@1`, or the digest if the bank has no name."""
        if self.history is None:
            return self.target_digest if self.rest is None else self.rest.target_id
        return self.history.targets[self.history.current].target_id

    @property
    def item_ids(self) -> list[str]:
        """Ids of the items, in the order of every array over items."""
        return self.responses.item_ids

    @property
    def items(self) -> pl.DataFrame:
        """Items with their parameters, one a row in the bank's order.

        `item_id`, `scenario`, `subscenario`, `mean_response` of the past models, `is_degenerate` (all of them
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
    def models(self) -> pl.DataFrame:
        """Past models with what is known of each, and their scores: one a row, a column a scenario, then the overall.

        A score is NaN where it is not known. Of a bank that was published without responses there are the names and
        overall scores that it was published with.
        """
        if self.published is not None:
            past = self.past_models
            ids = past.told or (() if past.salt else past.names)
            columns = {"model_id": ids or [None] * past.scores.size, self.targets.last: past.scores}
            return pl.DataFrame(columns, schema_overrides={"model_id": pl.String})
        names = [name if name not in self.responses.models.columns else f"score:{name}" for name in self.targets.names]
        scores = pl.DataFrame(np.ascontiguousarray(self.past_scores), schema=names)
        return self.responses.models.hstack(scores)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the bank's folder, with what has been derived from it so far; `load_bank` reads it.

        Raises
        ------
        BankError
            When `path` exists and is not a bank, or is one and `overwrite` is not set; or the bank is asked for an
            earlier score (`itembank.banks.with_target`).
        ParameterError
            When `path` is a file, or nothing can be made there.
        """
        above.save_bank(self, path, overwrite=overwrite)

    @property
    def mean_responses(self) -> FloatArray:
        """Mean response of the past models to each item, NaN where none answered, (n_items,)."""
        if self.published is not None:
            return self.published.factor_model.mean[: self.n_items]
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
    def n_total(self) -> int:
        """Number of items that count in its scores, also those that a published bank leaves out (`rest`)."""
        return int(self.targets.scenario_sizes.sum())

    @property
    def rest(self) -> Rest | None:
        """What replaces items that count in the scores of a published bank and are not in it."""
        return None if self.published is None else self.published.rest

    @property
    def n_models(self) -> int:
        """Number of past models whose responses the bank holds."""
        return self.responses.n_models

    @property
    def n_calibration_models(self) -> int:
        """Number of past models, also of a bank that was published without their responses."""
        return self.n_models if self.published is None else self.published.n_models

    @property
    def newest(self) -> datetime.date | None:
        """Day of the newest past model, by the table of models (`model_dates`); None if it has no dates."""
        if self.published is not None:
            return self.published.newest
        dates = model_dates(self.responses.models)
        return None if dates is None else dates.max()  # type: ignore[return-value]

    @property
    def past_models(self) -> PastModels:
        """Who the past models were, and their overall scores or those in their place, as far as the bank knows."""
        if self.published is None:
            return PastModels(tuple(self.responses.model_ids), self.past_scores[:, -1])
        if self.published.past is not None and self.headline is None:
            return self.published.past
        return PastModels((), np.zeros(0))

    @property
    def n_compared_models(self) -> int:
        """Number of past models that new ones are compared with: those that are cross-validated."""
        return self.distinct_models.size if self.published is None else self.published.n_models

    @property
    def n_aside(self) -> int:
        """Number of items that are kept aside and count in no score: retired, or on trial."""
        return 0 if self.whole is None else self.whole.n_items - self.n_items

    def check_responses(self, what: str) -> None:
        """Raise `DataError` if the bank has next to no responses; `what` begins the message: "A plan needs"."""
        if self.calibration.method == KNOWN_PARAMETERS:
            raise DataError(
                f"{what} past models' responses, and this bank was made of known item parameters and has none. "
                "For that, calibrate a bank from results: itembank calibrate RESPONSES."
            )
        if self.published is not None:
            raise DataError(
                f"{what} past models' responses, and this bank was published without them. "
                f"For that, take the whole bank, {self.published.whole_bank}."
            )
        self.check_item_model(what)

    def check_item_model(self, what: str) -> None:
        """Raise `DataError` if the bank has no item model; `what` begins it: "A session needs"."""
        if not self.calibration.is_fitted:
            raise DataError(
                f"{what} an item model, and this bank was begun with {plural(self.n_models, 'past model')}, too few to "
                "fit one, which takes ten. Begin it again, with all results and the items that are to count: itembank "
                "calibrate RESPONSES --items ITEMS."
            )

    @property
    def scenario_scores(self) -> FloatArray:
        """Mean of each scenario's items that a past model answered, (n_models, n_scenarios).

        NaN without any. These are full scores of the models that answered everything only: see `known_scores`.
        """
        parts = self.responses.parts()
        return np.concatenate([self.targets.scenario_means(part.responses, missing=True) for part in parts])

    @property
    def known_scores(self) -> KnownScores:
        """Full scores of the past models, where enough was answered to know them."""
        return self.cache.remember(
            "known scores", lambda: KnownScores.of(self.responses, self.targets, self._expected_responses())
        )

    def known_means(self, weights: FloatArray) -> KnownScores:
        """Return means of the bank's items by weights (n_items,) of past models, the one target 'mean'."""
        items = np.flatnonzero(weights > 0.0)
        part, shares = self.responses.take(items=items), weights[items] / weights.sum()
        targets = ScoreTargets(("mean",), np.zeros(items.size, dtype=np.int64), shares, np.ones(1), "custom", "items")
        expected = self._expected_responses()
        of_items = None if expected is None else (lambda *rows: expected(*rows)[:, items])
        return KnownScores.of(part, targets, of_items)

    def _expected_responses(self) -> Callable[[int, int], FloatArray] | None:
        """Return what gives the item model's expectations of a run of past models; None without an item model."""

        def expected(first: int, last: int) -> FloatArray:
            return probability(self.parameters, self.calibration.abilities[first:last])

        @functools.cache
        def scale() -> FloatArray | float:
            is_graded = self.responses.items["scenario"].is_in(list(self.calibration.thresholds)).to_numpy()
            slopes = response_slopes(self.responses, self.targets, expected) if is_graded.any() else 1.0
            return np.where(is_graded, slopes, 1.0)

        # models lack the items that came after them, or that a benchmark had no longer, easy or hard
        return (lambda *rows: scale() * expected(*rows)) if self.calibration.is_fitted else None

    @property
    def content_order(self) -> ContentOrder:
        """Order of past models and items in which chance and ties decide: by their answers, not by their names.

        That of a fold is its whole bank's: items that all its models answered alike are not alike to the others.
        """
        if self.published is not None:
            return ContentOrder(np.arange(0), self.published.item_order)
        shapes = {"models": (self.n_models,), "items": (self.n_items,)}

        def find() -> dict[str, FloatArray]:
            return {name: order.astype(np.float64) for name, order in content_order(self.responses)._asdict().items()}

        def fits(kept: dict[str, FloatArray]) -> bool:
            return {name: order.shape for name, order in kept.items()} == shapes

        def find_or_read() -> ContentOrder:
            kept = self.cache.arrays("content-order", find, fits=fits)
            return ContentOrder(*(kept[name].astype(np.int64) for name in shapes))

        return self.cache.remember(CONTENT_ORDER, find_or_read)

    @property
    def siblings(self) -> IntArray:
        """Group of each past model, (n_models,): models of one group answer alike (`sibling_groups`)."""
        kept = self.cache.arrays(
            "siblings",
            lambda: {"group": sibling_groups(self.responses).astype(np.float64)},
            fits=lambda found: found["group"].shape == (self.n_models,),
        )
        return kept["group"].astype(np.int64)

    @property
    def distinct_models(self) -> IntArray:
        """Models that are cross-validated: one of each group of siblings whose score is known, (n_distinct,), rising.

        Their siblings are left out with them.
        """

        def find() -> IntArray:
            known = self.known_scores.models
            ascending = order_by_answers(self.responses, known, self.content_order)
            return np.sort(one_of_each(self.siblings, known[ascending]))

        return self.cache.remember("distinct models", find)

    @property
    def best_known_scores(self) -> FloatArray:
        """Known scores; for a target without any, the observed means, (n_models, n_targets)."""

        def find() -> FloatArray:
            known = self.known_scores.value
            is_unknown = np.isnan(known).all(axis=0)
            if not is_unknown.any():
                return known
            return np.where(is_unknown, self.targets.with_overall(self.scenario_scores), known)

        return self.cache.remember("best known scores", find)

    @property
    def past_scores(self) -> FloatArray:
        """Known scores of the past models on `targets.names`, NaN where not known, (n_models, n_targets)."""
        known = self.known_scores.value
        return known if self.headline is None else np.column_stack([known[:, :-1], self.headline.past])
