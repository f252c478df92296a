import dataclasses

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.pages.figures.selection_figures import MOST_PARTS, figure_selection_weights
from itembank.selection.select import select
from itembank.studies.papers.selection_weights import selection_weights
from tests.bank.banks import make_bank
from tests.pages.figures.drawn import message_of, note_of


def test_marks_stand_at_the_weights():
    bank = make_bank()
    chosen = {method: select(bank, 9, method=method, rng=0) for method in ("random", "anchor-irt")}
    found = selection_weights(bank, chosen)
    curves, dots = figure_selection_weights(found).axes
    for one, curve in zip(found.selections, curves.get_lines()[::2], strict=True):
        np.testing.assert_allclose(curve.get_ydata(), 100.0 * one.weights)
    for one, marks in zip(found.selections, dots.get_lines(), strict=True):
        np.testing.assert_allclose(marks.get_xdata(), 100.0 * one.part_weights[list(found.finest)])
    names = [label.get_text() for label in dots.get_yticklabels()]
    assert names == ["math, part 0", "math, part 1", "code", "law"]
    np.testing.assert_allclose([bar.get_width() for bar in dots.patches], [100 / 6, 100 / 6, 100 / 3, 100 / 3])


def test_the_message_says_what_the_items_are_worth():
    bank = make_bank()
    found = selection_weights(bank, select(bank, 9, method="random", rng=0))
    assert message_of(figure_selection_weights(found)) == "Weights make random's 9 items worth 9 of equal weight"


def test_of_many_parts_those_are_drawn_that_differ_most():
    bank = make_bank(n_items=3 * (MOST_PARTS + 4))
    items = bank.responses.items
    several = items.with_columns(subscenario=items["item_id"])
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=several))
    chosen = Selection(("math/0", "code/1", "law/2"), ("math", "code", "law"), np.ones(3), "mine", bank.bank_id)
    figure = figure_selection_weights(selection_weights(bank, chosen))
    names = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert len(names) == MOST_PARTS
    assert {"math, math/0", "code, code/1", "law, law/2"} < set(names)
    assert f"The {bank.n_items - MOST_PARTS} others" in note_of(figure)


def test_more_selections_than_marks_are_refused():
    bank = make_bank()
    one = select(bank, 9, method="random", rng=0)
    with pytest.raises(ParameterError, match="at most 4 selections, got 5"):
        figure_selection_weights(selection_weights(bank, {str(k): one for k in range(5)}))
