import dataclasses

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from itembank_studies.papers.selection_weights import selection_weights
from tests.bank.banks import make_bank


def by_part(found, name):
    return {(row["scenario"], row["subscenario"]): row for row in found.rows() if row["selection"] == name}


def test_weights_by_hand_and_effective_items_are_worth_as_many_of_equal_weight(rng):
    """Scenarios weigh a third each; math has two subscenarios of five items, the others none."""
    bank = make_bank()
    weights = np.array([0.7, 0.2, 0.1, 0.5, 0.5, 1.0])
    ids = ("math/0", "math/6", "math/3", "code/1", "code/4", "law/2")
    scenarios = ("math", "math", "math", "code", "code", "law")
    found = selection_weights(bank, Selection(ids, scenarios, weights, "anchor-irt", bank.bank_id))
    rows = by_part(found, "anchor-irt")
    parts = [(OVERALL, None), ("math", None), ("math", "part 0"), ("math", "part 1"), ("code", None), ("law", None)]
    assert list(rows) == parts
    expected = {"part 0": (5, 1 / 6, 2, 0.9 / 3, 0.81 / 0.53), "part 1": (5, 1 / 6, 1, 0.1 / 3, 1.0)}
    for part, (n_items, score, n_chosen, weight, effective) in expected.items():
        row = rows["math", part]
        assert (row["n_items"], row["n_chosen"]) == (n_items, n_chosen)
        assert (row["weight_in_score"], row["weight"]) == (pytest.approx(score), pytest.approx(weight))
        assert row["effective_items"] == pytest.approx(effective)
    squares = (0.49 + 0.04 + 0.01 + 0.25 + 0.25 + 1.0) / 9
    assert found.selections["effective_items"][0] == pytest.approx(1 / squares)
    assert found.selections["effective_share"][0] == pytest.approx(1 / squares / 6)
    np.testing.assert_allclose(found.weights["anchor-irt"], [1 / 3, 0.7 / 3, 0.5 / 3, 0.5 / 3, 0.2 / 3, 0.1 / 3])
    # a weighted mean of independent answers varies as the plain mean of so many (Kish 1965)
    found = selection_weights(bank, select(bank, 12, method="anchor-correctness", rng=0))
    answers = rng.random((40_000, 12)) < 0.3
    variance = (answers @ found.weights["anchor-correctness"]).var()
    assert variance == pytest.approx(0.3 * 0.7 / found.selections["effective_items"][0], rel=0.05)


def test_every_item_has_the_weights_of_the_score_and_finest_parts_share_out_the_whole():
    bank = make_bank()
    found = selection_weights(bank, {m: select(bank, 9, method=m, rng=0) for m in ("random", "anchor-irt")})
    for name in ("random", "anchor-irt"):
        own = found.finest.filter(selection=name)
        assert own["n_items"].sum() == bank.n_items
        assert own["weight"].sum() == pytest.approx(1.0)
        assert own["n_chosen"].sum() == 9
    bank = dataclasses.replace(bank, targets=ScoreTargets.create(bank.responses.items, within="macro", across="items"))
    scenarios = tuple(bank.responses.items["scenario"])
    everything = Selection(tuple(bank.item_ids), scenarios, bank.targets.weights, "all", bank.bank_id)
    found = selection_weights(bank, everything)
    np.testing.assert_allclose(found.table["weight"], found.table["weight_in_score"])
    np.testing.assert_array_equal(found.table["n_chosen"], found.table["n_items"])


def test_parts_without_items_count_nothing_later_stages_with_the_earlier_and_others_are_refused():
    bank = make_bank()
    found = selection_weights(bank, Selection(("code/1",), ("code",), np.ones(1), "mine", bank.bank_id))
    row = by_part(found, "mine")["law", None]
    assert (row["n_chosen"], row["weight"]) == (0, 0.0)
    assert np.isnan(row["effective_items"])
    earlier = Selection(("math/0",), ("math",), np.array([0.4]), "mine", bank.bank_id)
    later = Selection(("math/3",), ("math",), np.array([0.6]), "mine", bank.bank_id, earlier=earlier)
    np.testing.assert_allclose(selection_weights(bank, later).weights["mine"], [0.2, 0.4 / 3])
    with pytest.raises(ParameterError, match="at least one selection"):
        selection_weights(bank, {})
    with pytest.raises(DataError, match="math/99"):
        selection_weights(bank, Selection(("math/99",), ("math",), np.ones(1), "mine", bank.bank_id))
