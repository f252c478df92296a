"""Past errors and weights that a bank keeps which was published without past models' responses."""

import numpy as np

from itembank.bank.bank_views import repeatable
from itembank.bank.banks import Bank, PublishedSubset
from itembank.bank.selections import Selection
from itembank.estimation.estimator_specs import PointSpec, Stacked
from itembank.estimation.members_out_of_fold import Past
from itembank.estimation.out_of_fold import OutOfFold
from itembank.estimation.typicality import PastMisfit


def selection_or_published(bank: Bank, selection: Selection | None) -> Selection | None:
    """Return the selection, or else the items that a bank was published with, where there are such."""
    subset = None if bank.published is None else bank.published.subset
    if selection is None:
        return None if subset is None else subset.selection
    return repeatable(bank, selection)


def published_subset(bank: Bank, selection: Selection | None, spec: PointSpec | Stacked) -> PublishedSubset | None:
    """Return what is kept of a method's estimates from a selection; None where nothing is.

    It is kept for the stacked estimate from the published items. Where a model left some of them unanswered it still
    serves: widths are in units of what the item model expects of the items answered.
    """
    subset = None if bank.published is None else bank.published.subset
    if subset is None or not subset.errors.shape[0] or spec != Stacked() or selection is None:
        return None
    if subset.methods != stacked_methods() or subset.weights.shape[0] != len(subset.methods):
        return None
    is_same = selection.item_ids == subset.selection.item_ids and np.array_equal(
        selection.weights, subset.selection.weights
    )
    return subset if is_same else None


def stacked_methods() -> tuple[str, ...]:
    """Name what this release's 'stacked' combines."""
    return tuple(map(repr, Stacked().members))


def published_past(subset: PublishedSubset) -> Past:
    """Return the errors in the form of estimates of models left out; their scores are not kept, and count as zero."""
    truth = np.zeros(subset.errors.shape)
    estimates = OutOfFold(truth, subset.errors, subset.standard_errors, subset.scales)
    flagged, others = subset.misfit_errors.tolist()
    return Past(estimates, subset.weights, PastMisfit(subset.misfit, flagged, others), float(subset.tail[0]))
