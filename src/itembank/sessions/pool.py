"""`SessionPool`: what sessions over one bank share, made once, and what those of past models say of a new one's."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import CostUnit
from itembank.bank.known_scores import Headline
from itembank.bank.past_models import PastModels
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.drawn_one_by_one import DrawnDesign
from itembank.estimation.estimands import past_ratio
from itembank.estimation.estimator_specs import RUN
from itembank.estimation.headlines import reader_of
from itembank.estimation.point_methods import target_weights
from itembank.estimation.response_summary import ScoreBasis
from itembank.estimation.trials import FactorModels
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.how_read import HowRead
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.criteria import CRITERIA, Criterion, DrawnItem, VOptimality, uses_cost
from itembank.selection.greedy import Bounds, askable_items, check_goal
from itembank.selection.item_worth import DesignItems, goal_matrix
from itembank.sessions.asking import SessionState
from itembank.sessions.events import Event
from itembank.sessions.first_items import excluded_items, lead_items
from itembank.sessions.limits import Decision
from itembank.sessions.prices import Prices
from itembank.sessions.session_spec import CUSTOM, SessionSpec
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True)
class PastSessions:
    """Estimates of past models after some numbers of answers, from banks that had not seen them."""

    n_answered: FloatArray  # (n_checkpoints,): Rising
    # (n_models, n_targets): The targets are every scenario and the overall score; a custom target is the last.
    truth: FloatArray
    truth_variance: FloatArray  # (n_models, n_targets): As in `PastEstimates`
    # (n_checkpoints, n_models, n_targets): Estimates, their errors by the item model, and the expected size of their
    # errors up to a factor, as in `PastEstimates`; NaN where a session ended before.
    value: FloatArray
    standard_error: FloatArray  # (n_checkpoints, n_models, n_targets)
    scale: FloatArray  # (n_checkpoints, n_models, n_targets)
    # (n_checkpoints, 3, n_targets): Of p-IRT and of both factor models, from all models that were tried; 1, 0, 0 where
    # p-IRT serves best.
    weights: FloatArray
    misfit: FloatArray  # (n_checkpoints, n_models)
    # (n_checkpoints, n_targets): 1 where the scale is the item model's standard errors (`PastEstimates`), else 0.
    follows_item_model: FloatArray

    def around(
        self,
        n: int,
        # (n_columns,): Targets to take, in this order
        columns: IntArray,
        headline: Headline | None = None,  # The score that the last of them is, where it is not the overall one
    ) -> list[tuple[PastEstimates, float]]:
        """Return what is known at the checkpoints around n answers, with shares linear in the logarithm of n.

        Before the first and after the last checkpoint that of the nearest counts alone.
        """
        last, after = len(self.n_answered) - 1, int(np.searchsorted(self.n_answered, n))
        shares = {min(after, last): 1.0}
        if 0 < after <= last and n < self.n_answered[after]:
            low, high = np.log(self.n_answered[after - 1 : after + 1])
            fraction = float((np.log(n) - low) / (high - low))
            shares = {after - 1: 1.0 - fraction, after: fraction}
        return [(self._at(checkpoint, columns, headline), share) for checkpoint, share in shares.items()]

    def _at(self, checkpoint: int, columns: IntArray, headline: Headline | None) -> PastEstimates:
        found = PastEstimates(
            self.truth[:, columns],
            self.value[checkpoint][:, columns],
            self.standard_error[checkpoint][:, columns],
            self.scale[checkpoint][:, columns],
            self.truth_variance[:, columns],
            misfit=self.misfit[checkpoint],
            weights=self.weights[checkpoint][:, columns],
            follows_item_model=float(self.follows_item_model[checkpoint, columns[-1]]) > 0.0,
        )
        return found if headline is None else replace(found, reader=reader_of(headline, found))


NO_LIMIT = np.iinfo(np.int64).max


def with_errors_of(bank: Bank, spec: SessionSpec) -> SessionSpec:
    """Return the spec with lost answers counted as the bank's were, where it does not say."""
    return replace(spec, errors=spec.errors or HowRead(bank.responses.items).lost_as or "missing")


@dataclass(frozen=True, slots=True, repr=False)
class SessionPool(Compact):
    """A bank made ready for sessions of one kind, without the calibration responses.

    Make one with `prepare_sessions`, send it to as many processes as you like, and give each model its
    `AdaptiveSession`.
    """

    spec: SessionSpec
    bank_id: str
    target_id: str
    item_table: pl.DataFrame  # The bank's table of items
    positions: Mapping[str, int]  # By item id
    items: DesignItems
    # What scores are made of; of a custom target also the same with targets whose 'overall' is the custom one.
    bases: tuple[ScoreBasis, ...]
    bounds: Bounds
    target_weights: FloatArray  # (n_items,): Of the score that is wanted
    goal: FloatArray | None  # (n_dims, n_dims): M of 'v-optimal'
    prices: Prices
    threshold: float  # Of the decision; NaN without one
    headline: Headline | None  # The score in place of the overall one, if one was asked for
    is_lead: BoolArray  # (n_items,): Items that every model is asked first
    past_models: PastModels  # Who the past models were and what they scored, and how many new ones are compared with
    n_past: int
    # What reads the answers beside the item model, and what the weights of both, and intervals, rest on; None where
    # scores are the item model's alone, and why, if calibrated intervals were asked for
    factors: FactorModels | None = None
    past: PastSessions | None = None
    why_not_calibrated: str = ""
    # (n_scenarios,): How past models' answers vary from run to run, if repeated runs are meant
    past_ratio: FloatArray | None = None
    drawn: DrawnDesign | None = None  # What draws rest on, of criterion 'drawn'

    @classmethod
    def create(cls, bank: Bank, spec: SessionSpec) -> Self:
        """Prepare a bank for sessions of this spec, with scores by the item model; see `prepare_sessions`.

        Raises
        ------
        DataError
            When the bank has no item model, or an item, column, model or cost that the spec names is not
            in it.
        ParameterError
            When nothing may be asked, constraints contradict each other, a score is unknown, or the criterion does
            not fit the bank.
        """
        criterion, excluded = CRITERIA.resolve(spec.criterion), excluded_items(bank, spec)
        spec = with_errors_of(bank, spec)
        is_drawn = isinstance(criterion, DrawnItem)
        if is_drawn:
            _check_drawn(bank, excluded)
        else:
            bank.check_item_model("An adaptive session needs")
        if excluded:
            spec = replace(spec, constraints=replace(spec.constraints, excluded=excluded))
        positions = {item: position for position, item in enumerate(bank.item_ids)}
        custom = custom_targets(spec.target, bank)
        weights = (custom or bank.targets).target(OVERALL if custom else str(spec.target)).weights
        may_be_asked = weights > 0.0 if is_drawn else askable_items(bank, excluded)
        is_lead = lead_items(bank, spec, criterion)
        unit = (spec.cost_unit or CostUnit()) if uses_cost(criterion) else None
        items = DesignItems.of_bank(bank, may_be_asked | is_lead, cost=unit)
        check_goal(items, criterion, weights)
        # a scenario that may be asked in full has no limit, whatever else applies
        bounds = spec.constraints.bounds(bank.targets, items.is_candidate, spec.budget.n_items)
        available = np.bincount(items.scenario_index[items.is_candidate], minlength=items.n_scenarios)
        pool = cls(
            spec=spec,
            bank_id=bank.bank_id,
            target_id=bank.target_id,
            item_table=bank.responses.items,
            positions=positions,
            items=items,
            bases=(ScoreBasis.of_bank(bank), *([] if custom is None else [ScoreBasis.of_bank(bank, custom)])),
            bounds=replace(bounds, at_most=np.where(bounds.at_most >= available, NO_LIMIT, bounds.at_most)),
            target_weights=weights,
            goal=goal_matrix(items, weights) if isinstance(criterion, VOptimality) else None,
            prices=Prices.of_bank(bank, spec, items.is_candidate),
            threshold=_decision_threshold(spec.stopping.decision, bank, custom),
            headline=bank.headline,
            is_lead=is_lead,
            past_models=bank.past_models,
            n_past=bank.n_compared_models,
        )
        if spec.estimand != RUN:
            pool = replace(pool, past_ratio=past_ratio(bank))  # a session that begins has no attempts of its own
        if is_drawn:
            column = pool.score_names.index(CUSTOM if custom else str(spec.target))
            pool = replace(pool, drawn=DrawnDesign.of_bank(bank, pool.score_weights(bank), column))
        decision, scores = spec.stopping.decision, pool.score_names
        wanted = [*spec.stopping.half_widths, *([] if decision is None else [decision.target])]
        unknown = [name for name in wanted if name not in scores]
        if unknown:
            raise ParameterError(
                f"a rule must name a score among {shown(scores)}, got {shown(unknown)}.{did_you_mean(unknown, scores)}"
            )
        pool.prices.check_budget(spec, items, bounds, whichever=is_drawn)
        return pool

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores that sessions estimate: every scenario, 'overall', and 'custom' if there is one."""
        return (*self.basis.targets.names, *([CUSTOM] if self.has_custom else []))

    @property
    def basis(self) -> ScoreBasis:
        """That of the bank's own targets."""
        return self.bases[0]

    @property
    def has_custom(self) -> bool:
        """Whether the target was given as weights of items."""
        return len(self.bases) > 1

    @property
    def criterion(self) -> Criterion:
        """The spec's."""
        return CRITERIA.resolve(self.spec.criterion)

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids of all items, in the bank's order."""
        return tuple(self.positions)

    def thresholds(self, positions: IntArray) -> FloatArray:
        """Return from which response on answers count as right for ability; NaN where they are taken as they are."""
        return self.basis.thresholds[self.basis.targets.scenario_index[positions]]

    def score_weights(self, bank: Bank) -> FloatArray:
        """Return the weight of each item in all scores that sessions estimate, (n_items, n_scores)."""
        weights = target_weights(bank)
        return np.column_stack([weights, self.target_weights]) if self.has_custom else weights

    def with_factors(self, bank: Bank) -> Self:
        """Return the same pool with the factor models of its bank, for all scores that sessions estimate."""
        return replace(self, factors=FactorModels.of_bank(bank, self.score_weights(bank)))

    def state_after(self, events: Iterable[Event] = ()) -> SessionState:
        """Return the state of a session after these events; `DataError` if they are not of one over this bank."""
        items = self.items
        return SessionState.after(
            *(events, self.positions, items.is_candidate, items.scenario_index),
            n_scenarios=items.n_scenarios,
            design=self.drawn,
        )

    def with_seed(self, seed: int) -> Self:
        """Return the same pool for sessions with another seed."""
        return replace(self, spec=replace(self.spec, seed=seed))


def _check_drawn(bank: Bank, excluded: tuple[str, ...]) -> None:
    """Refuse banks of which items that count cannot be drawn, and scores that are no means of items."""
    if bank.headline is not None:
        raise ParameterError(
            f"criterion 'drawn' estimates means of items, and {bank.targets.last!r} is none. Take another criterion."
        )
    if excluded or bank.rest is not None:
        n = f"{len(excluded)} of them" if excluded else "those that the bank leaves out"
        raise ParameterError(
            f"criterion 'drawn' needs every item of the bank, and {n} may not be asked. Give an empty "
            "constraints.excluded if all can be run, or take another criterion."
        )


def custom_targets(target: str | Mapping[str, float], bank: Bank) -> ScoreTargets | None:
    """Turn weights of items into targets over the bank's scenarios whose overall score is the weighted mean."""
    if isinstance(target, str):
        return None
    if CUSTOM in bank.targets.names:
        raise ParameterError(f"a target given as weights is called {CUSTOM!r}, and so is a scenario; rename that.")
    positions = {item: position for position, item in enumerate(bank.item_ids)}
    unknown = [item for item in target if item not in positions]
    if unknown:
        raise DataError(
            f"every item of the target must be in bank {bank.bank_id}, got {shown(unknown)}."
            f"{did_you_mean(unknown, positions)}"
        )
    weights, index = np.zeros(bank.n_items), bank.targets.scenario_index
    weights[[positions[item] for item in target]] = list(target.values())
    mass = np.bincount(index, weights=weights, minlength=bank.targets.n_scenarios)
    within = np.divide(weights, mass[index], out=np.zeros(weights.shape), where=mass[index] > 0.0)
    return ScoreTargets(bank.targets.scenarios, index, within, mass / mass.sum(), "custom", "items")


def _decision_threshold(decision: Decision | None, bank: Bank, custom: ScoreTargets | None) -> float:
    """Return the threshold of a decision: as given, or a past model's score."""
    if decision is None:
        return float("nan")
    if decision.threshold is not None:
        return decision.threshold
    row = bank.responses.model_indices([str(decision.model)])
    if custom is not None and decision.target == CUSTOM:
        value = float(bank.known_means(custom.overall_weights).value[row[0], -1])
    elif decision.target in bank.targets.names:
        value = float(bank.past_scores[row[0], bank.targets.names.index(decision.target)])
    else:
        return float("nan")  # refused with unknown names of other rules
    if np.isnan(value):
        raise DataError(
            f"model {decision.model!r} must have a score on {decision.target!r}, but answered too few of its items for "
            "it to be known. Compare with another model, or give a threshold."
        )
    return value
