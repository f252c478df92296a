"""An order of models and items that follows from their answers alone, whatever they are called and however a file is.

Whatever chance decides is decided in this order: which items a seed draws, who is left out with whom, which of two
equally good items comes first. So other names, or another order of a file, give the same numbers.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.ties import id_order
from itembank.responses.responses import ResponseMatrix

N_SUMS = 2
"""Sums of each row and column by different weights, as two unlike ones may agree in one."""

Keys = NDArray[np.uint64]


class ContentOrder(NamedTuple):
    """Positions of models and items from first to last."""

    models: IntArray  # (n_models,)
    items: IntArray  # (n_items,)

    def of_models(self, rows: IntArray) -> "ContentOrder":
        """Return the order of the same items and of some models, (n_rows,), given in that of their rows."""
        return ContentOrder(order_among(rows, self.models), self.items)


def content_order(responses: ResponseMatrix) -> ContentOrder:
    """Order models and items by their answers, and those that answered or were answered alike by their ids.

    Colour refinement (Weisfeiler and Leman 1968): at first all models have one key, and all items another. Then each
    gets a new one from its old one and the multiset of its answers, each beside the key of who gave it or what it was
    to, until this tells no more of them apart. A multiset counts as two sums of answer times random weight of the key;
    all are whole numbers, so that no processor rounds them. With wrong for right in every answer the order is the same.
    """
    n_models, n_items = responses.n_models, responses.n_items
    # a sum of whole numbers of float64 up to these has no last digit that the order of its terms could change
    exact_bits = 53
    bits = (exact_bits - max(n_models, n_items, 2).bit_length()) // 2  # of an answer, and of a weight
    models, items = np.zeros(n_models, dtype=np.uint64), np.ones(n_items, dtype=np.uint64)
    n_distinct = 0
    while True:
        of_models, of_items = _weights(models, bits), _weights(items, bits)
        sums_of_models, sums_of_items = np.zeros((2, n_models, N_SUMS)), np.zeros((2, n_items, N_SUMS))
        for rows in row_blocks(n_models, n_items):
            for side, answers in enumerate(_whole_numbers(responses, rows, bits)):
                sums_of_models[side, rows] = answers @ of_items
                sums_of_items[side] += answers.T @ of_models[rows]
        models, items = _refined(models, sums_of_models), _refined(items, sums_of_items)
        n_before, n_distinct = n_distinct, np.unique(models).size + np.unique(items).size
        if n_distinct in {n_before, n_models + n_items}:
            break
    # at last right is told from wrong, for those of which one is the other with all answers turned over
    return ContentOrder(
        _ordered(models, sums_of_models[0], responses.model_ids), _ordered(items, sums_of_items[0], responses.item_ids)
    )


def in_content_order(responses: ResponseMatrix, *, every: int = 1) -> ResponseMatrix:
    """Return models, and the items of each scenario by name, in their content order; of the items every so many-th."""
    models, items = content_order(responses)
    scenarios = responses.items["scenario"].to_list()
    number = {name: number for number, name in enumerate(sorted(set(scenarios)))}
    items = items[np.argsort([number[scenarios[item]] for item in items.tolist()], kind="stable")]
    return responses.take(models=models, items=items[::every])


def order_among(positions: IntArray, order: IntArray) -> IntArray:
    """Return how some positions, (n_positions,), follow one another in an order of all, (n,)."""
    return np.argsort(np.argsort(order)[positions])


def numbered_groups(groups: Sequence[Hashable] | None, order: IntArray) -> IntArray:
    """Return the number of each model's group, (n_models,), as groups come in an order; None if each is alone."""
    names = order.tolist() if groups is None else [groups[row] for row in order.tolist()]
    number = {name: number for number, name in enumerate(dict.fromkeys(names))}
    index = np.empty(order.size, dtype=np.int64)
    index[order] = [number[name] for name in names]
    return index


def _whole_numbers(responses: ResponseMatrix, rows: slice, bits: int) -> Iterator[FloatArray]:
    """Give answers of some models, then what each lacks to right, as whole numbers, (n_rows, n_items); 0 where missing.

    Answers count as equal that are so but for the last digits, which depend on the order in which attempts were added.
    """
    given = responses.responses[rows].astype(np.float64)
    known = ~np.isnan(given)
    values = np.where(known, given, 0.0)
    # attempts tell more than their mean
    n_trials = known if responses.n_trials is None else np.mod(responses.n_trials[rows], 2.0 ** (bits - 1))
    for side in (values, known - values):
        yield np.rint(side * 2.0 ** (bits - 1)) + n_trials


def _weights(keys: Keys, bits: int) -> FloatArray:
    """Weights that seem random, whole numbers of so many bits, (n, N_SUMS)."""
    mixed = np.stack([_mixed(keys + np.uint64(number)) for number in range(N_SUMS)], axis=1)
    return (mixed >> np.uint64(64 - bits)).astype(np.float64)


def _refined(keys: Keys, sums: FloatArray) -> Keys:
    """Make new keys (n,) of the old ones and the sums (2, n, N_SUMS) of right and wrong, whichever is which."""
    both = _mixed(keys)
    for side in sums.astype(np.uint64):
        of_side = keys
        for column in side.T:
            of_side = _mixed(of_side) + column
        both = both + _mixed(of_side)
    return _mixed(both)


def _mixed(keys: Keys) -> Keys:
    """Whole numbers that seem random, one for each key: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _ordered(keys: Keys, sums: FloatArray, ids: list[str]) -> IntArray:
    """Order by keys (n,), then by sums (n, N_SUMS), then by ids."""
    by_id = id_order(ids)
    return by_id[np.lexsort((*sums[by_id].T, keys[by_id]))]
