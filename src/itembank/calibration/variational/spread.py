"""The passes of a sweep over all responses, wherever these lie: at hand, in sections, or in sections on workers.

With workers a sweep is one round: each section's items are updated where its answers are, and what comes back is the
items' posterior and one sum for the abilities. Without, the second half of a sweep waits until it is wanted. Both do
the same to each section, and add up the sums of sections in the same order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from itembank.calibration.variational.blocks import ResponseBlocks
from itembank.calibration.variational.passes import (
    AbilityStatistics,
    CellRule,
    ItemStatistics,
    ability_statistics,
    item_statistics,
)
from itembank.calibration.variational.sections import CodedSections, Section, laid_out
from itembank.calibration.variational.state import Covariances, Posterior
from itembank.calibration.variational.updates import update_items
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import in_parallel

Result = TypeVar("Result")


class Items(NamedTuple):
    """Posterior of the items of a section."""

    mean: FloatArray
    spread: Covariances


class Improved(NamedTuple):
    """New items, and what the update of the abilities needs of them."""

    posterior: Posterior
    statistics: AbilityStatistics


@dataclass(frozen=True, slots=True)
class SectionStatistics:
    """What the first half of a sweep found, section by section.

    Attributes
    ----------
    blocks : CodedSections
    likelihood : (n_items,)
        Expected log-likelihood of each item's responses.
    of_sections : tuple of ItemStatistics
        Of each section; none where workers went on with the second half.
    improved : Improved or None
        What these found there.
    """

    blocks: CodedSections
    likelihood: FloatArray
    of_sections: tuple[ItemStatistics, ...] = ()
    improved: Improved | None = None


def first_half(
    blocks: ResponseBlocks, posterior: Posterior, rule: CellRule, steps: FloatArray
) -> ItemStatistics | SectionStatistics:
    """Find the items' likelihoods, and what their update by `steps` (n_items,) needs."""
    if not isinstance(blocks, CodedSections) or posterior.has_common_slope:  # a common slope needs all items at once
        return item_statistics(blocks, posterior, rule)
    likelihood = np.empty(blocks.n_items)
    if blocks.is_spread:
        both = _over_sections(blocks, _both_halves, posterior, rule, [(steps[place],) for place in blocks.places])
        improved = _together(blocks, posterior, _noting(blocks, likelihood, both))
        return SectionStatistics(blocks, likelihood, improved=improved)
    found = tuple(_over_sections(blocks, _items_of_section, posterior, rule))
    for place, one in zip(blocks.places, found, strict=True):
        likelihood[place] = one.likelihood
    return SectionStatistics(blocks, likelihood, found)


def second_half(
    blocks: ResponseBlocks,
    posterior: Posterior,
    before: ItemStatistics | SectionStatistics,
    steps: FloatArray,
    *,
    rule: CellRule,
    with_cross: bool = False,
) -> Improved:
    """Update the items by `steps` (n_items,), and find what the update of the abilities needs of them.

    `with_cross` keeps what a coupled step needs.
    """
    if isinstance(before, ItemStatistics):
        proposed = update_items(posterior, before, steps)
        return Improved(proposed, ability_statistics(blocks, proposed, rule, with_cross=with_cross))
    if before.improved is not None:
        return before.improved
    sections = before.blocks
    given = [(steps[place], one) for place, one in zip(sections.places, before.of_sections, strict=True)]
    return _together(sections, posterior, _over_sections(sections, _improve_section, posterior, rule, given))


@item_statistics.register(CodedSections)
def _item_statistics(blocks: CodedSections, posterior: Posterior, rule: CellRule) -> ItemStatistics:
    """As `item_statistics`."""
    size = posterior.n_dims + 1
    whole = ItemStatistics(
        np.empty((blocks.n_items, size * (size + 1) // 2)), np.empty((blocks.n_items, size)), np.empty(blocks.n_items)
    )
    found = _over_sections(blocks, _items_of_section, posterior, rule)
    for place, one in zip(blocks.places, found, strict=True):
        whole.precision[place], whole.linear[place] = one.precision, one.linear
        whole.likelihood[place] = one.likelihood
    return whole


@ability_statistics.register(CodedSections)
def _ability_statistics(
    blocks: CodedSections,
    posterior: Posterior,
    rule: CellRule,
    *,
    with_cross: bool = False,  # noqa: ARG001
) -> AbilityStatistics:
    """As `ability_statistics`, but for coupled steps, which sections never take."""
    return _summed(blocks, posterior, _over_sections(blocks, _abilities_of_section, posterior, rule))


def update_items_alone(blocks: ResponseBlocks, posterior: Posterior, rule: CellRule, n_rounds: int) -> Posterior:
    """Update the items so many times while the abilities stay: one round to workers, but for a common slope."""
    if not isinstance(blocks, CodedSections) or posterior.has_common_slope:
        for _ in range(n_rounds):
            statistics = item_statistics(blocks, posterior, rule)
            posterior = update_items(posterior, statistics, np.ones(posterior.n_items))
        return posterior
    found = _over_sections(blocks, _rounds_of_section, posterior, rule, [(n_rounds,)] * len(blocks.places))
    return _with_items(blocks, posterior, found)


def _items_of_section(section: Section, posterior: Posterior, rule: CellRule) -> ItemStatistics:
    return item_statistics(laid_out(section), posterior, rule)


def _abilities_of_section(section: Section, posterior: Posterior, rule: CellRule) -> AbilityStatistics:
    return ability_statistics(laid_out(section), posterior, rule)


def _improve_section(
    section: Section, posterior: Posterior, rule: CellRule, steps: FloatArray, before: ItemStatistics
) -> tuple[Items, AbilityStatistics]:
    proposed = update_items(posterior, before, steps)
    return _items_of(proposed), ability_statistics(laid_out(section), proposed, rule)


def _both_halves(
    section: Section, posterior: Posterior, rule: CellRule, steps: FloatArray
) -> tuple[FloatArray, tuple[Items, AbilityStatistics]]:
    before = _items_of_section(section, posterior, rule)
    return before.likelihood, _improve_section(section, posterior, rule, steps, before)


def _rounds_of_section(section: Section, posterior: Posterior, rule: CellRule, n_rounds: int) -> Items:
    return _items_of(update_items_alone(laid_out(section), posterior, rule, n_rounds))


def _items_of(posterior: Posterior) -> Items:
    return Items(posterior.item_mean, posterior.items_spread)


def _over_sections(
    blocks: CodedSections,
    function: Callable[..., Result],
    posterior: Posterior,
    rule: CellRule,
    given: Iterable[tuple[Any, ...]] | None = None,
) -> Iterator[Result]:
    """Call a function with each section, the posterior of its items, the rule and what else is given; in order."""
    others = [()] * len(blocks.places) if given is None else given
    parts = [
        (section, posterior.take_items(place), rule, *other)
        for section, place, other in zip(blocks.sections, blocks.places, others, strict=True)
    ]
    early, following = {}, 0
    for number, found in in_parallel(function, parts, n_jobs=None if blocks.is_spread else 1):
        early[number] = found
        while following in early:  # whichever section is done first
            yield early.pop(following)
            following += 1


def _noting(
    blocks: CodedSections,
    likelihood: FloatArray,
    found: Iterable[tuple[FloatArray, tuple[Items, AbilityStatistics]]],
) -> Iterator[tuple[Items, AbilityStatistics]]:
    """Write the likelihoods of sections to their places; pass on what else was found."""
    for place, (of_section, improved) in zip(blocks.places, found, strict=True):
        likelihood[place] = of_section
        yield improved


def _together(
    blocks: CodedSections, posterior: Posterior, found: Iterable[tuple[Items, AbilityStatistics]]
) -> Improved:
    """Put the items and the sums of all sections together, of each as it comes."""
    items: list[Items] = []

    def statistics() -> Iterator[AbilityStatistics]:
        for of_section, one in found:
            items.append(of_section)
            yield one

    summed = _summed(blocks, posterior, statistics())
    return Improved(_with_items(blocks, posterior, items), summed)


def _summed(blocks: CodedSections, posterior: Posterior, found: Iterable[AbilityStatistics]) -> AbilityStatistics:
    """Add up the sums of sections, in the order of these."""
    n_models, n_dims = posterior.ability_mean.shape
    precision, linear = np.zeros((n_models, n_dims * (n_dims + 1) // 2)), np.zeros((n_models, n_dims))
    likelihood = np.empty(blocks.n_items)
    for place, one in zip(blocks.places, found, strict=True):
        precision += one.precision
        linear += one.linear
        likelihood[place] = one.likelihood
    return AbilityStatistics(precision, linear, likelihood)


def _with_items(blocks: CodedSections, posterior: Posterior, found: Iterable[Items]) -> Posterior:
    """Put the items of all sections in their places."""
    mean, matrices = np.empty_like(posterior.item_mean), np.empty_like(posterior.item_covariance)
    log_determinant = np.empty(blocks.n_items)
    for place, one in zip(blocks.places, found, strict=True):
        mean[place], matrices[place] = one.mean, one.spread.matrices
        log_determinant[place] = one.spread.log_determinant
    return replace(posterior, item_mean=mean, items_spread=Covariances(matrices, log_determinant))
